"""uv as resolver: whether pins resolve for a Python and a machine, from wheels only.

It also lists the installed Pythons, and creates environments of pins.
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
    # A pyproject.toml or uv.toml in the current folder would add its constraints.
    "--no-config",
    # It would download a Python that is not installed.
    "--no-python-downloads",
)
# The requirements of a source archive are known only after running its code.
_WHEELS = ("--only-binary", ":all:")
_COMPILE = ("pip", "compile", "-", "--quiet", "--no-header", "--no-annotate", *_WHEELS, *_OWN)
# Variables that add to the indexes of the command line.
_OTHER_INDEXES = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")


class Interpreter(Value):
    """A Python on this machine: its path, its full version, and its series."""

    path: str
    version: str

    @property
    def series(self) -> str:
        """`3.11` of 3.11.7."""
        return ".".join(self.version.split(".")[:2])


class Resolver(Protocol):
    """A resolver of Python packages."""

    name: str

    def refusal(self, requirements: Sequence[str], python: str, platform: str) -> str:
        """Why pins do not resolve, "" if they do."""


class Uv:
    """The program, on PATH or beside this interpreter. Raises ToolMissing if it is not installed."""

    name = "uv"

    def __init__(self, env: Mapping[str, str], option: str = "--online") -> None:
        self.env = dict(env)
        # A virtual environment that was not activated is not on PATH.
        folder = os.path.dirname(sys.executable)
        program = shutil.which("uv", path=env.get("PATH")) or shutil.which("uv", path=folder)
        if not program:
            raise ToolMissing(
                "uv is needed to check answers with a resolver",
                expected="`uv` on PATH",
                help=f"`pip install uv`, or leave `{option}` out",
            )
        self.program = program

    def refusal(self, requirements: Sequence[str], python: str, platform: str) -> str:
        """Why pins do not resolve, "" if they do; `platform` is `x86_64-manylinux_2_28` or similar.

        Raises ToolMissing if uv failed.
        """
        where = ("--python", sys.executable, "--python-version", python)
        _, refusal = self._compile(requirements, *where, "--python-platform", platform)
        return refusal

    def pins(self, requirements: Sequence[str], python: Interpreter) -> tuple[tuple[str, ...], str]:
        """The newest packages for requirements on this machine, each `name==version`, or why they do not resolve.

        Raises ToolMissing if uv failed.
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
        """Write all packages for requirements to a `pylock.toml` (PEP 751): why they do not resolve, "" if they do.

        `where` are further arguments. For the packages in `sources` uv uses source archives, and runs their code to
        learn their requirements. The user's settings of uv apply, but not those of the current folder; with `alone`,
        only the indexes in `where` are used. Raises ToolMissing if uv failed.
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
        """The newest installed CPython of each series, or those at `paths`; the oldest first.

        Raises ToolMissing, and UsageError for a path that is not a Python.
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
        # uv lists the newest of each series first.
        newest: dict[str, Interpreter] = {}
        for interpreter in interpreters:
            newest.setdefault(interpreter.series, interpreter)
        return sorted(
            newest.values(), key=lambda interpreter: tuple(map(int, interpreter.series.split(".")))
        )

    def environment(self, folder: str, python: Interpreter) -> None:
        """Create an environment without packages. Raises ToolMissing."""
        self._run_checked("venv", folder, "--python", python.path, *_OWN)

    def fill(self, folder: str, pins: Sequence[str]) -> None:
        """Install exactly these packages into an environment, from wheels. Raises ToolMissing."""
        # The cache of uv would fill a disk with every release of a framework.
        where = ("--python", folder, "--no-cache")
        self._run_checked("pip", "sync", "-", *where, *_WHEELS, *_OWN, text="\n".join(pins) + "\n")

    def _compile(self, requirements: Sequence[str], *where: str) -> tuple[str, str]:
        done = self._run(*_COMPILE, *where, text="\n".join(requirements) + "\n")
        refusal = self._refusal(done)
        return "" if refusal else done.stdout, refusal

    def _refusal(self, done: subprocess.CompletedProcess[str]) -> str:
        # uv exits with 1 if there is no solution, and with 2 for other errors.
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
        self, *words: str, text: str = "", folder: str | None = None, without: Sequence[str] = ()
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
