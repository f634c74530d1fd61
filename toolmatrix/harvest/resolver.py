"""uv as the judge of answers: whether it resolves pins for a Python and a machine, from wheels alone.

It also tells which Pythons there are, and makes environments of pins.
"""

from __future__ import annotations

import json
import os.path
import shutil
import subprocess
import sys

from toolmatrix.errors import ToolMissing, UsageError
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol
else:
    Protocol = object

PATIENCE = 180
"""Seconds for one answer."""

_OWN = (
    # A pyproject.toml or uv.toml where it happens to be started would add constraints of its own to the question.
    "--no-config",
    # It is asked about a Python that need not be here, and would fetch one.
    "--no-python-downloads",
)
# A source archive says what it needs by running its own program.
_WHEELS = ("--only-binary", ":all:")
_COMPILE = ("pip", "compile", "-", "--quiet", "--no-header", "--no-annotate", *_WHEELS, *_OWN)
# What adds to the indexes that a command line names.
_OTHER_INDEXES = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")


class Interpreter(Value):
    """A Python on this machine: its path, its version in full, and the series of it."""

    path: str
    version: str

    @property
    def series(self) -> str:
        """`3.11` of 3.11.7."""
        return ".".join(self.version.split(".")[:2])


class Resolver(Protocol):
    """What says whether pins of Python packages resolve."""

    name: str

    def refusal(self, requirements: Sequence[str], python: str, platform: str) -> str:
        """Why they do not, "" where they do."""


class Uv:
    """The program, found on PATH or beside this interpreter. Raises ToolMissing where there is none."""

    name = "uv"

    def __init__(self, env: Mapping[str, str], option: str = "--online") -> None:
        self.env = dict(env)
        # A virtual environment that was not activated is not on PATH.
        beside = os.path.dirname(sys.executable)
        program = shutil.which("uv", path=env.get("PATH")) or shutil.which("uv", path=beside)
        if not program:
            raise ToolMissing(
                "uv is needed to check answers with a resolver",
                expected="`uv` on PATH",
                help=f"`pip install uv`, or leave `{option}` out",
            )
        self.program = program

    def refusal(self, requirements: Sequence[str], python: str, platform: str) -> str:
        """Why pins do not resolve, "" where they do; `platform` is `x86_64-manylinux_2_28` and the like.

        Raises ToolMissing where uv failed otherwise.
        """
        where = ("--python", sys.executable, "--python-version", python)
        _, refusal = self._compile(requirements, *where, "--python-platform", platform)
        return refusal

    def pins(self, requirements: Sequence[str], python: Interpreter) -> tuple[tuple[str, ...], str]:
        """The newest packages that requirements take on this machine, each `name==version`, or why there are none.

        Raises ToolMissing where uv failed otherwise.
        """
        output, refusal = self._compile(requirements, "--python", python.path)
        return tuple(sorted(output.split())), refusal

    def lock(
        self,
        requirements: Sequence[str],
        path: str,
        where: Sequence[str],
        alone: bool = False,
        sources: Sequence[str] = (),
    ) -> str:
        """Write all packages that requirements take to a `pylock.toml` (PEP 751): why there are none, "" if there are.

        Of the packages of `sources` their archives are taken, whose own programs uv runs to learn what they require.
        The user's own settings of uv hold, and none of the folder that it happens to be started in; `alone` nothing is
        asked but what `where` names, which are further arguments. Raises ToolMissing where uv failed otherwise.
        """
        done = self._run(
            *("pip", "compile", "-", "--quiet", "--format", "pylock.toml", "--output-file", path),
            *(*_WHEELS, "--no-python-downloads", "--python", sys.executable, *where),
            *(f"--no-binary={name}" for name in sources),
            *(("--no-config",) if alone else ()),
            text="\n".join(requirements) + "\n",
            folder=os.path.dirname(path),
            without=_OTHER_INDEXES if alone else (),
        )
        return self._refusal(done)

    def interpreters(self, paths: Sequence[str] = ()) -> list[Interpreter]:
        """The newest CPython of each series that is installed, or the ones at paths; the oldest first.

        Raises ToolMissing, and UsageError for a path that is no Python.
        """
        interpreters = []
        for path in paths:
            done = self._run("python", "find", "--show-version", path, *_OWN)
            if done.returncode:
                raise UsageError(
                    "the path is not a Python interpreter",
                    expected="the path of a Python",
                    found=path,
                )
            interpreters.append(Interpreter(path=path, version=done.stdout.strip()))
        if not paths:
            done = self._run("python", "list", "--only-installed", "--output-format=json", *_OWN)
            interpreters = [
                Interpreter(path=entry["path"], version=entry["version"])
                for entry in json.loads(done.stdout or "[]")
                if (entry["implementation"], entry["variant"]) == ("cpython", "default")
            ]
        # The first of each is the newest, as uv lists them.
        newest: dict[str, Interpreter] = {}
        for interpreter in interpreters:
            newest.setdefault(interpreter.series, interpreter)
        return sorted(
            newest.values(), key=lambda interpreter: tuple(map(int, interpreter.series.split(".")))
        )

    def environment(self, folder: str, python: Interpreter) -> None:
        """Make an environment without any package. Raises ToolMissing."""
        self._run_checked("venv", folder, "--python", python.path, *_OWN)

    def fill(self, folder: str, pins: Sequence[str]) -> None:
        """Let an environment hold these packages and no others, from wheels. Raises ToolMissing."""
        # What is kept by uv would fill a disk with every release of a framework.
        where = ("--python", folder, "--no-cache")
        self._run_checked("pip", "sync", "-", *where, *_WHEELS, *_OWN, text="\n".join(pins) + "\n")

    def _compile(self, requirements: Sequence[str], *where: str) -> tuple[str, str]:
        done = self._run(*_COMPILE, *where, text="\n".join(requirements) + "\n")
        refusal = self._refusal(done)
        return "" if refusal else done.stdout, refusal

    def _refusal(self, done: subprocess.CompletedProcess[str]) -> str:
        # uv ends with 1 where there is no solution, and with 2 where it could not look for one.
        if done.returncode == 1:
            return " ".join(done.stderr.split()).removeprefix("error: ")
        if done.returncode:
            raise self._failure(done)
        return ""

    def _run_checked(self, *words: str, text: str = "") -> None:
        done = self._run(*words, text=text)
        if done.returncode:
            raise self._failure(done)

    def _failure(self, done: subprocess.CompletedProcess[str]) -> ToolMissing:
        message = " ".join(done.stderr.split())
        help = "run it by hand: uv " + " ".join(done.args[1:])
        return ToolMissing("uv failed", found=message[-400:], help=help)

    def _run(
        self,
        *words: str,
        text: str = "",
        folder: str | None = None,
        without: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(  # noqa: S603 - a list of arguments, of which only versions are not ours
                [self.program, *words],
                input=text,
                capture_output=True,
                text=True,
                cwd=folder,
                env={name: text for name, text in self.env.items() if name not in without},
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ToolMissing(
                "uv did not answer", expected=f"an answer in {PATIENCE} seconds"
            ) from None
