"""What came of a program in an environment: what is the packages' doing, and what may be the machine's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from toolmatrix import resources
from toolmatrix.harvest import isolated
from toolmatrix.harvest.environments import ImportOutcome, Operation, judge_environment, operations


def told(tmp_path: Path, program: str) -> dict[str, Any]:
    path = tmp_path / "program.py"
    path.write_text(program)
    return isolated.answer(str(path))


def test_a_program_that_runs_tells_what_it_loaded(tmp_path: Path) -> None:
    found = judge_environment(told(tmp_path, "import packaging.version\n"), operations())
    assert (found.state, found.said, found.frames) == ("ran", "", ())
    assert "packaging" in found.loaded


def test_the_innermost_package_is_told(tmp_path: Path) -> None:
    program = "from packaging.version import Version\nVersion('no version')\n"
    found = judge_environment(told(tmp_path, program), operations())
    assert (found.state, found.said) == ("raised", "InvalidVersion: Invalid version: 'no version'")
    assert found.culprit("") == "packaging"
    # What it was given to is not to blame for what it does not have.
    assert found.culprit("packaging") == ""


@pytest.mark.parametrize(
    ("program", "state", "said"),
    [
        ("raise AttributeError('x is gone\\nand more')", "raised", "AttributeError: x is gone"),
        (
            "raise ImportError('Traceback (most recent call last):\\n a\\nlast')",
            "raised",
            "ImportError: last",
        ),
        ("assert 1 + 1 == 3", "raised", "AssertionError"),
        ("raise MemoryError", "failed", "MemoryError"),
        ("raise SystemExit(0)", "failed", "SystemExit: 0"),
        ("import socket\nraise socket.timeout('late')", "failed", "TimeoutError: late"),
        (
            "raise RuntimeError('built using AVX instructions')",
            "failed",
            "RuntimeError: built using AVX instructions",
        ),
        ("raise ImportError('/lib/libm.so.6: version `GLIBC_2.99\\' not found')", "failed", None),
        ("raise ModuleNotFoundError('No module named _lzma', name='_lzma')", "failed", None),
        ("raise ModuleNotFoundError('No module named old', name='old')", "raised", None),
        # Whatever it was raised from may have been the machine's.
        (
            "try:\n  open('/nothing')\nexcept OSError as e:\n  raise ValueError('no data') from e",
            "failed",
            "ValueError: no data",
        ),
        ("this is no program", "raised", "SyntaxError: invalid syntax (<program>, line 1)"),
    ],
)
def test_what_may_be_the_machines_is_not_the_packages(
    tmp_path: Path, program: str, state: str, said: str | None
) -> None:
    found = judge_environment(told(tmp_path, program), operations())
    assert found.state == state
    assert said is None or found.said == said


def test_what_it_says_names_no_environment(tmp_path: Path) -> None:
    found = told(
        tmp_path, "import sys\nraise ImportError(f'in {sys.prefix}/lib/x.py ' + 'y' * 999)"
    )
    assert found["said"].startswith("ImportError: in lib/x.py yyy")
    assert len(found["said"]) == 300


def test_operations_are_programs_of_the_package() -> None:
    held = operations()
    assert {"jax", "tensorflow", "onnxruntime", "numba"} <= {*held.of}
    for name, operation in held.of.items():
        compile(operation.program, name, "exec")
        assert re.fullmatch("[0-9a-f]{12}", operation.digest)
    assert resources.operations_path().endswith("toolmatrix/operations.yaml")


def test_the_newest_of_a_series_is_run() -> None:
    versions = ["1.0", "1.0.1", "1.9", "1.10.0", "1.10.2", "2"]
    assert Operation(program="").newest(versions) == ["1.0.1", "1.9", "1.10.2", "2"]
    assert Operation(program="", series=3).newest(versions[-3:]) == versions[-3:]


def test_outcomes_are_blamed_on_the_first_other_package() -> None:
    outcome = ImportOutcome(state="raised", frames=("", "numpy", "numpy", "h5py", "keras", ""))
    assert outcome.culprit("numpy") == "h5py"
    assert outcome.culprit("h5py") == "numpy"
    assert ImportOutcome(state="raised", frames=("", "numpy")).culprit("numpy") == ""
