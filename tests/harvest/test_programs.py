"""Programs that hang, talk without end, or cannot be started end in one error."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.harvest.tools import program
from toolmatrix.errors import ToolMissing
from toolmatrix.harvest import programs

pytestmark = pytest.mark.process


def test_both_streams_and_the_status_are_told(tmp_path: Path) -> None:
    path = program(tmp_path / "asked", 'echo "$LC_ALL $1"; echo "two words" >&2; cat; exit 3\n')
    assert programs.ask([path, "a  b"]) == programs.ProgramOutput(
        status=3, text="C a  b\ntwo words\n"
    )


def test_bytes_that_are_no_text_are_no_error(tmp_path: Path) -> None:
    path = program(tmp_path / "asked", "printf '\\377\\376'\n")
    assert programs.ask([path]).text == "\ufffd\ufffd"


@pytest.mark.parametrize("text", ["sleep 60\n", "sleep 60 & exit 0\n", "exec >&- 2>&-; sleep 60\n"])
def test_a_program_that_hangs_is_ended_and_so_is_what_it_started(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "PATIENCE", 0.5)
    began = time.monotonic()
    with pytest.raises(ToolMissing) as refused:
        programs.ask([program(tmp_path / "gcc", text)])
    assert time.monotonic() - began < 30
    assert refused.value.what == "`gcc` did not finish"
    assert refused.value.expected == "an answer within 0.5 seconds"


def test_a_program_that_talks_without_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "LONGEST", 1 << 20)
    with pytest.raises(ToolMissing) as refused:
        programs.ask([program(tmp_path / "gcc", "while :; do echo gcc gcc gcc gcc; done\n")])
    assert refused.value.expected == "an answer within 1 MiB"


def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing) as refused:
        programs.ask([str(tmp_path / "nvcc")])
    assert refused.value.what == "`nvcc` cannot be started"
    assert refused.value.found == f"{tmp_path / 'nvcc'}: No such file or directory"
