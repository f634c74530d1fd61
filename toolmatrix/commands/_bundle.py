"""`toolmatrix export --bundle`: the whole matrix, compiled, as the file that `toolmatrix update` takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from toolmatrix.api import Path, Report
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import OpenMatrix, open_matrix
from toolmatrix.documents import Annotated, Count, MatrixHead
from toolmatrix.errors import UsageError
from toolmatrix.factbase import bundle
from toolmatrix.factbase.store import built_in_paths
from toolmatrix.outputs import os_errors_as, replace_files

SCHEMA = "toolmatrix.exported-bundle/1"


class BundleDocument(MatrixHead):
    """What `toolmatrix export --bundle DIR --json` prints: the file, and what its first line declares."""

    schema: Annotated[str, SCHEMA]
    path: str
    facts: Count
    format: str
    programs: str
    paths: list[str]
    size: Count
    sha256: str


def write(
    folder: str, names: Sequence[str], matrix: OpenMatrix | Path | Sequence[Path] | None
) -> Report:
    """Write the bundle of a matrix into a folder. Raises MatrixError, OutputError and UsageError."""
    if names:
        raise UsageError(
            "`--bundle` takes the whole matrix",
            expected="no names of components",
            found=" ".join(names),
        )
    opened = open_matrix(matrix)
    path = os.path.join(folder, bundle.NAME)
    # Of an update, the fact files are those that came with it.
    data = bundle.make(opened.index, (*built_in_paths(caller().env), *opened.paths))
    with os_errors_as("cannot write the bundle", path):
        os.makedirs(folder, exist_ok=True)
    replace_files({path: data})
    head = bundle.read_head(data[: data.index(b"\n") + 1], path)
    document: dict[str, Any] = {**head, "schema": SCHEMA, "path": path}
    text = (
        f"{path}: matrix of {head['date']} ({head['digest'][:19]}, {head['facts']} facts), "
        f"{len(data) / 1e6:.1f} MB, for toolmatrix {head['programs']}\n"
    )
    return Report(words=lambda _: text, document=lambda: document)
