"""Build hook: what a wheel carries beside the package, under `toolmatrix/data/`."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_CARRIED = ("matrix.yaml", "matrix", "recipes", "dockerfiles", "explorer")


class DataHook(BuildHookInterface):  # type: ignore[misc]
    """Adds the data files, and what the package being built makes: an index compiled from them, and manual pages."""

    PLUGIN_NAME = "custom"
    _made: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files; an editable install reads them where they are."""
        if version == "editable":
            return
        for name in _CARRIED:
            build_data["force_include"][os.path.join(self.root, name)] = f"toolmatrix/data/{name}"
        self._made = tempfile.TemporaryDirectory(prefix="toolmatrix-made-")
        index = os.path.join(self._made.name, "index")
        for name, text in _made(self.root, index).items():
            page = os.path.join(self._made.name, name)
            with open(page, "w", encoding="utf-8") as file:
                file.write(text)
            build_data["shared_data"][page] = f"share/man/man1/{name}"
        build_data["force_include"][index] = "toolmatrix/data/index"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made for the build."""
        del version, build_data, artifact_path
        if self._made is not None:
            self._made.cleanup()


def _made(root: str, index: str) -> dict[str, str]:
    """Write the index; returns the manual pages by name."""
    sys.path.insert(0, root)
    try:
        from toolmatrix.commands import _man as man
        from toolmatrix.factbase.index import Index, IndexFolder
        from toolmatrix.factbase.store import build_index

        build_index(root, index)
        return man.pages(Index(index, IndexFolder(index)).header["date"])
    finally:
        sys.path.remove(root)
