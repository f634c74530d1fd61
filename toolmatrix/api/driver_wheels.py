"""The wheels that the driver of a release is unpacked from; `toolmatrix fetch` brings them."""

from __future__ import annotations

import platform
from collections.abc import Iterator

from toolmatrix.factbase.index import Index

TABLE = "nvcc-wheels"
COMPONENT = "cuda"
"""The toolkit that the wheels of the table are of."""


def files(index: Index, component: str, release: str, machine: str) -> Iterator[tuple[str, str]]:
    """The wheels of the driver of a release for a machine, each with its SHA-256; none if unknown."""
    from toolmatrix.factbase import lookups

    for _, cells in lookups.rows(index, TABLE) if component == COMPONENT else ():
        if release in cells[COMPONENT].split():
            words = cells.get(machine, "").split()
            yield from zip(words[::2], words[1::2], strict=True)


def command(index: Index, component: str, release: str) -> str:
    """The command that fetches the driver of a release for this machine; empty where no fact names its wheels."""
    known = any(files(index, component, release, platform.machine()))
    return f"toolmatrix fetch {component}=={release}" if known else ""
