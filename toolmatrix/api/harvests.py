"""Facts read anew at their sources, for Python; `toolmatrix harvest` writes the same files."""

from __future__ import annotations

import os.path

from toolmatrix import resources
from toolmatrix.api import PLAIN, Printed
from toolmatrix.errors import UsageError
from toolmatrix.facts import yamlfile
from toolmatrix.harvest import families, written
from toolmatrix.outputs import replace_files
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from toolmatrix.harvest.families import Errand, Family
    from toolmatrix.harvest.written import FactDifference
    from toolmatrix.report.terminal import Terminal


class HarvestedFile(Value):
    """What a harvester made of one family: its file, the text for it, and the rows in which the two differ."""

    family: str
    path: str
    text: str
    rows: int
    differences: Sequence[FactDifference]
    # A file may differ in the day of its sources alone.
    changed: bool


class Harvested(Printed):
    """Files of facts as their sources say them now; true where all are as they were."""

    def __init__(self, files: Sequence[HarvestedFile]) -> None:
        self.files = files

    def __bool__(self) -> bool:
        return not any(file.changed for file in self.files)

    def text(self, screen: Terminal = PLAIN) -> str:  # noqa: ARG002 - rows are for a file or a review
        """Each file, with the rows that came, went or changed."""
        return "".join(_file(file) for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """The document `toolmatrix.harvest/1`."""
        return {
            "schema": "toolmatrix.harvest/1",
            "files": [
                {
                    "family": file.family,
                    "path": file.path,
                    "rows": file.rows,
                    "changed": file.changed,
                    "differences": [
                        {
                            "row": one.row,
                            "state": _state(one),
                            "cells": {
                                name: {"was": was, "is": now}
                                for name, (was, now) in one.cells.items()
                            },
                        }
                        for one in file.differences
                    ],
                }
                for file in self.files
            ],
        }

    def write(self, *, accept: bool = False) -> None:
        """Put the files that changed in their places, all or none.

        Raises HarvestRefused where rows have vanished, unless that is to be `accept`ed, and OutputError.
        """
        if not accept:
            for file in self.files:
                written.refuse_vanished(file.path, file.differences)
        replace_files({file.path: file.text for file in self.files if file.changed})


def harvested(family: Family, errand: Errand, folder: str) -> HarvestedFile:
    """The facts of one family, beside the file of them in a directory. Raises ToolmatrixError."""
    text = written.text(families.harvest(family, errand), family.about)
    path = os.path.join(folder, f"{family.name}.yaml")
    try:
        with open(path, encoding="utf-8") as file:
            before = file.read()
    except FileNotFoundError:
        before = ""
    return HarvestedFile(
        family=family.name,
        path=path,
        text=text,
        rows=len(written.rows(yamlfile.parse(text.encode(), path))),
        differences=written.differences(path, text),
        changed=before != text,
    )


def folder_of(output: str = "") -> str:
    """The directory that files are written to: `output`, else that of the matrix. Raises UsageError."""
    # An installed package is its packager's: what is harvested there goes elsewhere.
    if not output and resources.builtin_index():
        raise UsageError(
            "the matrix of an installed package is not written to",
            expected="`--output DIR`",
            help="`--matrix FILE` puts a file from there on top of the built-in matrix",
        )
    return output or resources.harvested_root()


def _state(one: FactDifference) -> str:
    return "gone" if one.gone else "new" if one.new else "changed"


_SIGNS = {"gone": "-", "new": "+", "changed": "~"}


def _file(file: HarvestedFile) -> str:
    lines = [f"{file.path}: {file.rows} rows, " + ("" if file.changed else "as before")]
    if file.changed:
        counts = dict.fromkeys(_SIGNS, 0)
        for one in file.differences:
            counts[_state(one)] += 1
        told = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
        lines[0] += told or "read again"
    for one in file.differences:
        cells = "; ".join(
            f"{name} {was} -> {now}" if was and now else f"{name} {now or f'{was} -> nothing'}"
            for name, (was, now) in one.cells.items()
        )
        lines.append(f"  {_SIGNS[_state(one)]} {one.row}" + (f"  {cells}" if cells else ""))
    return "\n".join(lines) + "\n"
