"""What takes a while says so on a terminal: what goes on, how many, how long; and takes its line away again."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Tty
from toolmatrix.cli import progress
from toolmatrix.cli.context import Context
from toolmatrix.cli.main import main
from toolmatrix.cli.progress import ProgressLine, Waiting
from toolmatrix.command import COMMANDS

ERASED = "\r\x1b[K"
# What ran for more than a second somewhere: each says what goes on from its first second on.
SLOW = {
    "check": ["check"],
    "inventory": ["inventory", "dir:."],
    "validate": ["validate", "dir:.", "--expect", "gcc==12"],
    "harvest": ["harvest", "torch"],
    "audit": ["audit", "torch"],
    "page": ["page"],
    "doctor": ["doctor"],
    "facts": ["facts"],
    "export": ["export"],
    "render": ["render", "torch"],
    "lock": ["lock", "torch"],
    "upgrade": ["upgrade"],
    "diff": ["diff", "one", "other"],
    "why-not": ["why-not", "torch"],
    "matrix": ["matrix", "--rows", "torch"],
}


def lines(err: str) -> list[str]:
    """The lines that were written over each other."""
    return [one.removeprefix("\x1b[K") for one in err.split("\r")]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)


def during(monkeypatch: pytest.MonkeyPatch, run: Callable[[Context], int]) -> None:
    """Something else in the place of what a command does."""
    monkeypatch.setattr("toolmatrix.cli.frame.run", run)


def watched(*words: str) -> str:
    """What somebody saw beside the result."""
    err = Tty()
    assert main(words, {}, io.StringIO(), io.StringIO(), err) == 0
    return err.getvalue()


@pytest.mark.usefixtures("impatient", "here")
@pytest.mark.parametrize("name", SLOW)
def test_what_takes_long_says_what_goes_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def busy(context: Context) -> int:
        (waiting,) = context.waiting
        while not waiting.visible:
            time.sleep(0.001)
        seen.append(context.stderr.getvalue())  # type: ignore[attr-defined]
        return 0

    during(monkeypatch, busy)
    err = watched(*SLOW[name])
    said = f"{COMMANDS[name].does} {' '.join(SLOW[name][1:])}".split(" --")[0].strip()
    assert lines(seen[0])[1].startswith(said)
    assert lines(seen[0])[1].endswith(", 0 s ")
    assert err.endswith(ERASED)
    out = io.StringIO()
    during(monkeypatch, lambda context: len(context.waiting) - 1)
    assert main(SLOW[name], {}, io.StringIO(), io.StringIO(), out) == 0
    assert out.getvalue() == ""


@pytest.mark.usefixtures("impatient", "here")
def test_a_count_takes_the_place_of_the_word_and_gives_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("toolmatrix.cli.progress.time.monotonic", lambda: now[0])

    def counting(context: Context) -> int:
        (waiting,) = context.waiting
        assert isinstance(waiting, Waiting)
        states = []
        told = ProgressLine(context, "solving", "releases")
        for done in (1, 30, 60):
            now[0] += 10
            told.at(done, 60)
        states.append(waiting.thread)
        context.say("note: something else")
        told.end()
        states.append(waiting.thread)
        assert [state is None for state in states] == [True, False]
        return 0

    during(monkeypatch, counting)
    told = lines(watched("check"))
    counted = [line for line in told if line.startswith("solving")]
    assert counted == [
        "solving 1/60 releases, 10 s, about 590 s left ",
        "solving 30/60 releases, 20 s, about 20 s left ",
        "solving 60/60 releases, 30 s ",
    ]
    assert "note: something else\n" in told
    assert told[-1] == ""


@pytest.mark.usefixtures("impatient")
def test_a_matrix_that_is_compiled_is_told(cli: Cli, here: Path, tmp_path: Path) -> None:
    del here
    seen: list[Any] = []

    class Slow(Waiting):
        def __exit__(self, *given: object) -> None:
            while self.wanted and not self.visible:
                time.sleep(0.001)
            seen.append(self.doing)
            super().__exit__(*given)

    with pytest.MonkeyPatch.context() as patch:
        from tests.factbase import small

        patch.setattr(progress, "Waiting", Slow)
        path = small.write(tmp_path, small.facts())
        run = cli("show", "app", "--matrix", path, screen=Tty, XDG_CACHE_HOME=str(tmp_path / "c"))
        assert seen == ["compiling the matrix"]
        again = cli("show", "app", "--matrix", path, screen=Tty, XDG_CACHE_HOME=str(tmp_path / "c"))
    assert "compiling the matrix, 0 s" in run.err
    assert run.out == again.out
    assert "compiling" not in again.err
