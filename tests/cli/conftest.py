"""A run of the program in this process, with an environment and a directory of its own."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from toolmatrix.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Cli = Callable[..., "Outcome"]


class Outcome(NamedTuple):
    """What a run left behind."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """The document on stdout."""
        document: dict[str, Any] = json.loads(self.out)
        return document


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache directory that lives as long as the tests: `cli(..., XDG_CACHE_HOME=cache)` compiles the matrix once."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def cli(here: Path) -> Cli:
    """`cli("resolve", "x", TOOLMATRIX_TARGET="arm")`: a run in the empty directory."""

    def run(*argv: str, **env: str) -> Outcome:
        stdout, stderr = io.StringIO(), io.StringIO()
        code = main(argv, {"HOME": str(here.parent), **env}, io.StringIO(), stdout, stderr)
        return Outcome(code, stdout.getvalue(), stderr.getvalue())

    return run
