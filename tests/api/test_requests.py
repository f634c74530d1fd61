"""Questions asked from Python: they print as the command prints, and are the documents that it writes."""

from __future__ import annotations

import builtins
import importlib
import io
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import toolmatrix
from tests.cli.test_stdin import OURS
from toolmatrix.api import Outcome, requests
from toolmatrix.api.answers import Allowed, NoAnswer, Resolved
from toolmatrix.cli.main import main
from toolmatrix.errors import MatrixError, NothingMatched, ToolmatrixError, UsageError


@pytest.fixture(autouse=True)
def _cached(_opened_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_BUILT_IN", [])


ASKED: dict[str, tuple[Callable[[], Outcome], str]] = {
    "resolve": (
        lambda: toolmatrix.resolve("tensorflow==2.6.5", target="arm"),
        "resolve tensorflow==2.6.5 --target arm",
    ),
    "several": (
        lambda: toolmatrix.resolve(
            "tensorflow==2.6.5", target=["x86", "arm"], align="python,numpy", with_="gcc==9"
        ),
        "resolve tensorflow==2.6.5 --target x86,arm --align python,numpy --with gcc==9",
    ),
    "build": (
        lambda: toolmatrix.resolve("torch", from_="wheel", device="GTX 1080 Ti", at="2026-11-20"),
        "resolve torch --from wheel --device 'GTX 1080 Ti' --at 2026-11-20",
    ),
    "refused": (
        lambda: toolmatrix.resolve("numpy==1.19.5", "python==3.12"),
        "resolve numpy==1.19.5 python==3.12",
    ),
    "why-not": (
        lambda: toolmatrix.why_not("cuda==11.0", with_="tensorflow==2.6.5", arch="sm_86"),
        "why-not cuda==11.0 --with tensorflow==2.6.5 --arch sm_86",
    ),
    "allowed": (lambda: toolmatrix.why_not("numpy==1.19.5"), "why-not numpy==1.19.5"),
    "explain": (
        lambda: toolmatrix.explain("cuda", "tensorflow==2.6.5"),
        "explain cuda tensorflow==2.6.5",
    ),
    "invert": (
        lambda: toolmatrix.explain("cuda", "tensorflow==2.6.5", invert=True),
        "explain cuda tensorflow==2.6.5 --invert",
    ),
    "grid": (
        lambda: toolmatrix.matrix("cuda", "arch", where="cuda>=10.2,<=11.2"),
        "matrix --rows cuda --cols arch --where 'cuda>=10.2,<=11.2'",
    ),
    "releases": (lambda: toolmatrix.matrix("bazel"), "matrix --rows bazel"),
}


def command(cache: str, line: str) -> tuple[int, str]:
    """The exit code of a command line, and what a pipe reads."""
    stdout, other = io.StringIO(), io.StringIO()
    code = main(shlex.split(line), {"XDG_CACHE_HOME": cache}, io.StringIO(), stdout, other)
    return code, stdout.getvalue()


@pytest.mark.parametrize("name", ASKED)
def test_an_answer_is_what_the_command_gives(
    cache: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ask, line = ASKED[name]
    found = ask()
    code, printed = command(cache, line)
    print(found)  # noqa: T201 - as somebody would
    assert capsys.readouterr().out == printed
    assert (found.exit_code, found.ok, bool(found)) == (code, code == 0, code == 0)
    assert found.to_json() == json.loads(command(cache, f"{line} --json")[1])


def test_an_answer_has_what_one_asks_it_for() -> None:
    found = toolmatrix.resolve("tensorflow==2.6.5", target=("x86", "arm"))
    assert isinstance(found, Resolved)
    assert found.components["cuda"].version == found.targets["x86"]["cuda"].version == "11.2.2"
    assert "cuda" not in found.targets["arm"]
    assert (found.evidence, found.components["cuda"].evidence) == ("derived", "derived")
    assert found.request == ("tensorflow==2.6.5", "--target", "x86,arm")
    assert repr(found) == "<Resolved: tensorflow 2.6.5 on x86, arm, derived>"


def test_a_refusal_is_an_answer_with_ways_out() -> None:
    found = toolmatrix.resolve("numpy==1.19.5", "python==3.12")
    assert isinstance(found, NoAnswer)
    assert not found
    assert repr(found) == "<NoAnswer: exit code 1>"
    for offer in found.repairs:
        assert offer.command.startswith("toolmatrix resolve ")
        assert offer.answer.ok
        again = toolmatrix.resolve(*_said(offer.answer.request))
        assert isinstance(again, Resolved)
        assert again.to_json() == offer.answer.to_json()
    assert [offer.cost for offer in found.repairs] == sorted(o.cost for o in found.repairs)


def _said(words: tuple[str, ...]) -> tuple[str, ...]:
    assert not any(word.startswith("--") for word in words)
    return words


def test_what_nobody_forbids_is_told_from_what_facts_support() -> None:
    found = toolmatrix.why_not("cuda==12.4.1", "bazel==7.0.0")
    assert isinstance(found, Allowed)
    assert (found.known, found.exit_code, found.to_json()["allowed"]) == (False, 4, None)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"target": "x87"}, UsageError, "bad value for `target`"),
        ({"target": 1}, UsageError, "bad value for `target`"),
        ({"cpu": ["a"]}, UsageError, "bad value for `cpu`"),
        ({"distro": "ubuntu99"}, NothingMatched, "`--distro ubuntu99`: unknown distro"),
        (
            {"matrix": b"no index"},
            MatrixError,
            "the bytes of the matrix are damaged or from another version",
        ),
        ({"matrix": "none.yaml"}, MatrixError, "the matrix file cannot be read"),
        ({"keep": "none.lock"}, ToolmatrixError, "there is no lock"),
    ],
)
def test_bad_input_raises_an_error_of_the_package(
    options: Any, kind: type[ToolmatrixError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        toolmatrix.resolve("tensorflow==2.6.5", **options)
    assert caught.value.what == message


def test_an_option_that_is_none_is_a_type_error() -> None:
    with pytest.raises(
        TypeError, match=r"resolve\(\) has no keyword `colour`: it takes online, target, from_,"
    ):
        toolmatrix.resolve("cuda", colour="red")  # type: ignore[call-arg]


@pytest.mark.usefixtures("_small_matrix")
def test_a_matrix_on_top_is_named_in_the_commands(tmp_path: Path) -> None:
    ours = str(tmp_path / "ours.yaml")
    Path(ours).write_text(OURS)
    opened = toolmatrix.open_matrix(ours)
    assert toolmatrix.resolve("app==3.0", matrix=opened).ok
    found = toolmatrix.resolve("app==3.0", "gcc==7", "gcc==8", matrix=[ours])
    assert isinstance(found, NoAnswer)
    assert found.repairs[0].command.endswith(f" --matrix {ours}")
    shipped = opened.to_bytes()
    again = toolmatrix.open_matrix(shipped)
    assert (again.digest, again.date) == (opened.digest, opened.date)
    assert again.to_bytes() == shipped
    assert again.index.header["files"] == {}
    assert toolmatrix.resolve("app==3.0", matrix=again).ok
    assert opened.digest != toolmatrix.open_matrix().digest


def asked(matrix: toolmatrix.api.requests.OpenMatrix) -> list[str]:
    """What several questions answer, in every form."""
    found = [
        toolmatrix.resolve("tensorflow==2.6.5", target="x86,arm,amd", matrix=matrix),
        toolmatrix.resolve("torch", from_="wheel", device="RTX 3090", matrix=matrix),
        toolmatrix.why_not("cuda==11.0", with_="tensorflow==2.6.5", arch="sm_86", matrix=matrix),
        toolmatrix.explain("cuda", "tensorflow==2.6.5", matrix=matrix),
        toolmatrix.matrix("tensorflow", "python", matrix=matrix),
    ]
    return [f"{one}{one.to_json()}" for one in found]


def test_a_matrix_in_bytes_needs_no_file_thread_process_or_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = toolmatrix.open_matrix().to_bytes()
    # What is imported is read from files; the same questions import the same.
    expected = asked(toolmatrix.open_matrix(data))

    def refuse(*given: object, **_named: object) -> NoReturn:
        raise AssertionError(f"used on the way of an answer: {given}")

    for owner, name in (
        *((builtins, "open"), (io, "open"), (io, "FileIO"), (os, "open"), (os, "stat")),
        *((os, "scandir"), (os, "fork"), (os, "posix_spawn"), (subprocess.Popen, "__init__")),
        *((threading.Thread, "start"), (time, "time"), (time, "monotonic"), (time, "sleep")),
        (time, "perf_counter"),
    ):
        monkeypatch.setattr(owner, name, refuse)
    found = asked(toolmatrix.open_matrix(data))
    monkeypatch.undo()
    assert found == expected


@pytest.mark.usefixtures("_small_matrix")
def test_damage_in_bytes_is_found_when_they_are_opened() -> None:
    data = toolmatrix.open_matrix([]).to_bytes()
    # Inside of a file: an archive has no checksum of its own names and dates.
    middle = data.index(b"header.json") + 200
    flipped = bytes([data[middle] ^ 1])
    for damaged in (
        b"",
        b"{}",
        data[:-1],
        data[:middle],
        data[:middle] + flipped + data[middle + 1 :],
    ):
        with pytest.raises(MatrixError) as caught:
            toolmatrix.open_matrix(damaged)
        assert caught.value.what == "the bytes of the matrix are damaged or from another version"


def test_the_folder_of_an_index_is_a_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = toolmatrix.open_matrix()
    monkeypatch.setattr("toolmatrix.factbase.store.open_index", None)
    again = toolmatrix.open_matrix(opened.index.path)
    assert again.digest == opened.digest
    assert str(toolmatrix.resolve("cuda", matrix=again)) == str(
        toolmatrix.resolve("cuda", matrix=opened)
    )


def test_every_function_of_the_front_door_is_there() -> None:
    for name, module in toolmatrix._FUNCTIONS.items():
        found = getattr(importlib.import_module(module), name)
        function = getattr(found, "function", found)
        assert callable(getattr(toolmatrix, name))
        assert (function.__name__, function.__module__) == (name, module)


@pytest.mark.process
def test_importing_the_package_imports_nothing_of_it() -> None:
    """No package takes the place of a function."""
    code = (
        "import sys, toolmatrix\n"
        "assert [name for name in sys.modules if name.startswith('toolmatrix.')] == []\n"
        "assert {'resolve', 'lock', 'stages'} <= {*toolmatrix.__all__} & {*dir(toolmatrix)}\n"
        "import toolmatrix.lockfile.lock_file, toolmatrix.compilation\n"
        "assert toolmatrix.lockfile.lock_file.read and callable(toolmatrix.lock)\n"
        "assert callable(toolmatrix.stages)\n"
        "toolmatrix.no_such\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "AttributeError: module 'toolmatrix' has no attribute 'no_such'"
    )
