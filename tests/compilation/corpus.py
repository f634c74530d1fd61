"""The real logs of corpus/, each with the sidecar that says how it was made."""

from __future__ import annotations

import json
import tarfile
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from toolmatrix.compilation import Log, parse_log

ARCHIVE = Path(__file__).parent / "corpus" / "logs.tar.xz"


class Case(NamedTuple):
    """One log: its text as read from a file with universal newlines off, and its sidecar."""

    name: str
    text: str
    sidecar: dict[str, Any]

    @property
    def tool(self) -> str:
        """The tool that was asked: nvcc, hipcc or clang."""
        return str(self.sidecar["tool"])

    @property
    def version(self) -> str:
        """The full version of the tool."""
        return str(self.sidecar["version"])

    @property
    def case(self) -> str:
        """What was asked for."""
        return str(self.sidecar["case"])


@cache
def members() -> dict[str, bytes]:
    """Every file of the archive by its name."""
    with tarfile.open(ARCHIVE) as archive:
        return {one.name: data.read() for one in archive if (data := archive.extractfile(one))}


@cache
def case(name: str) -> Case:
    """The log of a name such as nvcc-4.2__seed."""
    files = members()
    text = files[f"{name}.log"].decode("utf-8", "surrogateescape")
    return Case(name, text, json.loads(files[f"{name}.json"]))


# A test asks many things of one log and then goes on to the next; all of them together are gigabytes.
@lru_cache(maxsize=4)
def log(name: str) -> Log:
    """What the reader makes of the log of a name."""
    return parse_log(case(name).text.split("\n"))


def cases(*tools: str) -> list[Case]:
    """Every log of some tools, of all if none is named, sorted by name."""
    names = sorted(name.removesuffix(".log") for name in members() if name.endswith(".log"))
    return [one for one in map(case, names) if not tools or one.tool in tools]


def sources() -> frozenset[str]:
    """Names of the files that lay in the working directory of every command."""
    return frozenset(name.removeprefix("src/") for name in members() if name.startswith("src/"))
