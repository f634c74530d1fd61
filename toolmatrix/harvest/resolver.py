"""uv as the judge of answers: whether it resolves pins for a Python and a machine, from wheels alone."""

from __future__ import annotations

import os.path
import shutil
import subprocess
import sys

from toolmatrix.errors import ToolMissing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol
else:
    Protocol = object

PATIENCE = 180
"""Seconds for one answer."""

_ARGUMENTS = (
    # A pyproject.toml or uv.toml where it happens to be started would add constraints of its own to the question.
    *("pip", "compile", "-", "--quiet", "--no-header", "--no-annotate", "--no-config"),
    # A source archive says what it needs by running its own program.
    *("--only-binary", ":all:"),
    # It is asked about a Python that need not be here, and would fetch one.
    *("--no-python-downloads", "--python", sys.executable),
)


class Resolver(Protocol):
    """What says whether pins of Python packages resolve."""

    name: str

    def refusal(self, requirements: Sequence[str], python: str, platform: str) -> str:
        """Why they do not, "" where they do."""


class Uv:
    """The program, found on PATH or beside this interpreter. Raises ToolMissing where there is none."""

    name = "uv"

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = dict(env)
        # A virtual environment that was not activated is not on PATH.
        beside = os.path.dirname(sys.executable)
        found = shutil.which("uv", path=env.get("PATH")) or shutil.which("uv", path=beside)
        if not found:
            raise ToolMissing(
                "uv is needed to judge answers by a resolver",
                expected="`uv` on PATH",
                help="`pip install uv`, or leave `--online` out",
            )
        self.program = found

    def refusal(self, requirements: Sequence[str], python: str, platform: str) -> str:
        """Why pins do not resolve, "" where they do; `platform` is `x86_64-manylinux_2_28` and the like.

        Raises ToolMissing where uv failed otherwise.
        """
        asked = [*_ARGUMENTS, "--python-version", python, "--python-platform", platform]
        try:
            done = subprocess.run(  # noqa: S603 - a list of arguments, of which only versions are not ours
                [self.program, *asked],
                input="\n".join(requirements) + "\n",
                capture_output=True,
                text=True,
                env=self.env,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ToolMissing(
                "uv did not answer", expected=f"an answer in {PATIENCE} seconds"
            ) from None
        if done.returncode == 0:
            return ""
        said = " ".join(done.stderr.split())
        # uv ends with 1 where there is no solution, and with 2 where it could not look for one.
        if done.returncode == 1:
            return said.removeprefix("error: ")
        raise ToolMissing(
            "uv failed", found=said[-400:], help="run it by hand: uv " + " ".join(asked)
        )
