"""A run of the program in this process, with an environment and a directory of its own."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import matrix
from toolmatrix.cli.main import main

Cli = Callable[..., "Outcome"]


SMALL = matrix.SMALL


class Tty(io.StringIO):
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


class Ascii(io.StringIO):
    """A stream of a terminal that knows nothing but ASCII."""

    encoding = "ascii"


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
def heeds_sighup() -> Iterator[None]:
    """What the test starts ends by SIGHUP, which under nohup the tests ignore, and so would what they start."""
    kept = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, kept)


def heeding(*words: str, path: str = "") -> Outcome:
    """An interpreter run on these words, which hears an interrupt whatever started the tests."""
    ended = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, [path]), *sys.path])},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(ended.returncode, ended.stdout, ended.stderr)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def real(cli: Cli, cache: str) -> Cli:
    """A run on the built-in matrix, compiled once for all tests."""
    return partial(cli, XDG_CACHE_HOME=cache)


@pytest.fixture
def small(real: Cli, _small_matrix: None) -> Cli:
    """A run on the small matrix."""
    return real


@pytest.fixture
def cli(here: Path, cache: str, _opened_once: None) -> Cli:
    """`cli("resolve", "x", TOOLMATRIX_TARGET="arm")`: a run in the empty directory, which compiles no matrix anew."""
    own = {"HOME": str(here.parent), "XDG_CACHE_HOME": cache}

    def run(
        *argv: str, screen: type[io.StringIO] = io.StringIO, piped: str = "", **env: str
    ) -> Outcome:
        stdout, stderr = screen(), screen()
        code = main(argv, {**own, **env}, io.StringIO(piped), stdout, stderr)
        return Outcome(code, stdout.getvalue(), stderr.getvalue())

    return run
