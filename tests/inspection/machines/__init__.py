"""Captured machines: what their files hold and their programs print, each file of this directory saying where from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from toolmatrix.images.layers import FILE, Entry, Layer
from toolmatrix.inspection import host

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GIB = 1 << 30


class Captured(host.Machine):
    """A machine of files, outputs and variables."""

    def __init__(
        self,
        files: Mapping[str, str],
        outputs: Mapping[str, str],
        free: int = 99 * GIB,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.files = files
        self.outputs = outputs
        self.left = free
        self.variables = variables or {}

    def text(self, path: str, largest: int = 1 << 20) -> str:
        return self.files.get(path, "")[:largest]

    def layer(self, paths: Sequence[str]) -> Layer:
        below = tuple(f"{path}/" for path in paths)
        entries = [
            (path.strip("/"), Entry(FILE, content=text.encode()))
            for path, text in self.files.items()
            if path in paths or path.startswith(below)
        ]
        return Layer(digest="", diff_id="", entries=tuple(entries))

    def names(self, path: str) -> list[str]:
        inside = [one[len(path) + 1 :] for one in self.files if one.startswith(path + "/")]
        return sorted({one.partition("/")[0] for one in inside})

    def where(self, program: str) -> str:
        known = {words.partition(" ")[0] for words in self.outputs}
        return f"/usr/bin/{program}" if program in known else ""

    def run(self, *argv: str) -> str | None:
        return self.outputs.get(" ".join(argv))

    def free(self, path: str) -> int:
        return self.left if path else -1

    def variable(self, name: str) -> str:
        return self.variables.get(name, "")


def load(name: str) -> Captured:
    """The machine of a file of this directory."""
    held = yaml.load((Path(__file__).parent / f"{name}.yaml").read_text(), yaml.CSafeLoader)
    return Captured(held["files"], held["outputs"], variables=held["variables"])
