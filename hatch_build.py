"""Build hook: what a wheel carries beside the package, under `toolmatrix/data/`."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_CARRIED = ("matrix.yaml", "matrix", "recipes", "dockerfiles", "explorer")


class DataHook(BuildHookInterface):  # type: ignore[misc]
    """Adds the data files, and an index compiled from them by the package being built."""

    PLUGIN_NAME = "custom"
    _made: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files; an editable install reads them where they are."""
        if version == "editable":
            return
        for name in _CARRIED:
            build_data["force_include"][os.path.join(self.root, name)] = f"toolmatrix/data/{name}"
        self._made = tempfile.TemporaryDirectory(prefix="toolmatrix-index-")
        index = os.path.join(self._made.name, "index.bin")
        _compile(self.root, index)
        build_data["force_include"][index] = "toolmatrix/data/index.bin"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made for the build."""
        del version, build_data, artifact_path
        if self._made is not None:
            self._made.cleanup()


def _compile(root: str, destination: str) -> None:
    sys.path.insert(0, root)
    try:
        from toolmatrix.facts.store import build_index

        build_index(root, destination)
    finally:
        sys.path.remove(root)
