"""`toolmatrix harvest`: facts as their sources say them now."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from functools import partial

from toolmatrix import resources
from toolmatrix.api import PLAIN, Outcome, Path, this_day
from toolmatrix.api.caller import caller
from toolmatrix.api.checks import Workers
from toolmatrix.api.harvests import (
    Effort,
    HarvestedFile,
    cache,
    compare_with_file,
    describe_changes,
    folder_lock,
    state_of,
)
from toolmatrix.api.requests import OpenMatrix, open_matrix, paths_of
from toolmatrix.command import command
from toolmatrix.command.option import option
from toolmatrix.command.options import CHECK, EXECUTOR
from toolmatrix.documents import Annotated, Any, Count, HasIs, Literal, TypedDict
from toolmatrix.errors import MatrixError, UsageError
from toolmatrix.harvest import base_matrix, families, runs
from toolmatrix.harvest.families import Family, HarvestContext
from toolmatrix.judging.pool import IndexedWork
from toolmatrix.outputs import replace_files
from toolmatrix.report.terminal import Terminal
from toolmatrix.value import Value


class CellDifference(HasIs):
    """A cell that differs."""

    was: str


class RowDifference(TypedDict):
    """A row that differs from the file before."""

    row: str
    state: Annotated[str, "new", "gone", "changed"]
    cells: dict[str, CellDifference]


class HarvestFile(TypedDict):
    """A file of facts as its sources say it now."""

    family: str
    path: str
    rows: Count
    changed: bool
    differences: list[RowDifference]


class HarvestDocument(TypedDict):
    """What `toolmatrix harvest --json` prints: each file of facts as its sources say it now, and the rows in which
    that differs from the file before. A cell that was or is not there is empty.
    """

    schema: Literal["toolmatrix.harvest/1"]
    files: list[HarvestFile]
    effort: Annotated[dict[str, Any], Effort]


class Harvested(Outcome):
    """Files of facts as their sources say them now; true where all are as they were."""

    def __init__(
        self,
        files: Sequence[HarvestedFile],
        effort: Effort,
        damage: Sequence[MatrixError] = (),
        *,
        checked: bool = True,
    ) -> None:
        self.files = files
        self.effort = effort
        self._checked = checked
        self._damage = damage

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of the matrix cannot be read, and which file was compared with nothing for it."""
        damage = [*self._damage, *(file.damage for file in self.files if file.damage is not None)]
        return tuple(
            dict.fromkeys(
                ": ".join(filter(None, (str(error.where or ""), error.what, error.found)))
                for error in damage
            )
        )

    @property
    def exit_code(self) -> int:
        """1 where a file differs that is only checked: otherwise that is what was wanted."""
        return int(self._checked and any(file.changed for file in self.files))

    def text(self, screen: Terminal = PLAIN) -> str:  # noqa: ARG002 - rows are for a file or a review
        """Each file, with its new, removed and changed rows."""
        return "".join(describe_changes(file) for file in self.files)

    def to_json(self) -> HarvestDocument:
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
                            "row": difference.row,
                            "state": state_of(difference),
                            "cells": {
                                name: {"was": was, "is": now}
                                for name, (was, now) in difference.cells.items()
                            },
                        }
                        for difference in file.differences
                    ],
                }
                for file in self.files
            ],
            "effort": self.effort.to_json(),
        }

    def write(self, *, accept: bool = False) -> None:
        """Write the files that changed, all or none.

        Raises HarvestRefused where rows have vanished, unless that is to be `accept`ed, and OutputError.
        """
        # Check all files before writing any, so that a refusal writes none.
        if not accept:
            for file in self.files:
                runs.refuse_vanished(file.path, file.differences)
        replace_files({file.path: file.text for file in self.files if file.changed})


@command(
    group="Maintain the matrix",
    order=3,
    usage="[NAME...]",
    writes_folder=True,
    does="harvesting",
    examples=(
        "toolmatrix harvest numpy",
        "toolmatrix harvest --check",
        "toolmatrix harvest vllm --output facts",
        "toolmatrix harvest numpy --from saved-index",
    ),
)
def harvest(
    *names: str,
    from_: Path = option(
        "--from",
        metavar="WORD",
        completer="from",
        help="Read the sources from this path instead",
    ),
    output: Path = "",
    check: bool = CHECK,
    accept: bool = option(
        "--accept",
        cli_only=True,
        excludes=("check",),
        help="Write files even if some of their rows have disappeared from the source",
    ),
    executor: str = EXECUTOR,
    matrix: OpenMatrix | Path | Sequence[Path] | None = None,
) -> Harvested:
    """Refresh facts from their sources.

    Families of these names, all where none is named, are read and written to the directory `output`, that of the matrix
    if nothing is said. Workers of an executor are known by their matrix, which has to be readable. Raises
    HarvestRefused, IndexFailed, MatrixError, NothingMatched, OutputError, ToolMissing, UsageError.
    """
    calling = caller()
    # As a setting or variable `from` is about frameworks, not a path.
    source_path = calling.path(os.fspath(from_)) if from_ and calling.is_flag("from_") else ""
    folder = _folder(os.fspath(output))
    # A check does not need the lock.
    with nullcontext() if check else folder_lock(folder):
        wanted = families.select_families(families.families(), names)
        began = time.monotonic()
        readings, damage = _readings(wanted, source_path, executor, matrix)
        texts = [text for reading in readings for text in reading.texts]
        files = [
            compare_with_file(family.name, os.path.join(folder, f"{family.name}.yaml"), text)
            for family, text in zip(wanted, texts, strict=True)
        ]
        effort = Effort(
            requests=sum(reading.requests for reading in readings),
            bytes=sum(reading.bytes for reading in readings),
            seconds=time.monotonic() - began,
        )
        harvested = Harvested(files, effort, damage, checked=check)
        for warning in harvested.warnings:
            calling.say(f"warning: harvested without what cannot be read: {warning}")
        if not check:
            harvested.write(accept=accept)
    calling.note(str(effort))
    return harvested


def _folder(output: str) -> str:
    """The directory that files are written to. Raises UsageError."""
    # The files of an installed package are not changed.
    if not output and resources.builtin_index():
        raise UsageError(
            "the matrix of an installed package is read-only",
            expected="`--output DIR`",
            help="`--matrix FILE` puts a file from there on top of the built-in matrix",
        )
    return output or resources.of_matrix("matrix", "harvested")


def _readings(
    wanted: Sequence[Family],
    source_path: str,
    executor: str,
    matrix: OpenMatrix | Path | Sequence[Path] | None,
) -> tuple[Sequence[FamilyReading], Sequence[MatrixError]]:
    """What the sources say, and what of the matrix cannot be read."""
    env, overlays = caller().env, paths_of(matrix)
    paths = [os.path.join(resources.matrix_root(), "matrix.yaml"), *overlays]
    ground = base_matrix.read(
        lambda: open_matrix(matrix).index, paths, families.line_components(wanted)
    )
    context = {
        "day": this_day(env),
        **families.vocabulary(),
        # A worker may run in another folder.
        "place": os.path.abspath(source_path) if source_path and executor else source_path,
        **ground.as_dict("components", "pythons", "lines"),
    }
    with caller().progress("reading", "families" if executor else "wheels") as progress:
        if not executor:
            return [_read(wanted, context, env, progress.of)], ground.damage
        work = Harvester(index=open_matrix(matrix).index, asked=context)
        batches, readings = [[family] for family in wanted], []
        with Workers(work, batches, overlays, 0, executor) as workers:
            for reading in workers.results():
                readings.append(reading)
                progress.of("sources", len(readings), len(wanted))
        return readings, ground.damage


class FamilyReading(Value):
    """The texts of the files of some families, and the requests and bytes that they took."""

    texts: tuple[str, ...]
    requests: int
    bytes: int


class Harvester(IndexedWork):
    """Reads families where it runs, by the settings and the cache of that machine; `asked` goes into each context."""

    asked: Mapping[str, Any]

    def attempt(self, batch: Sequence[Family]) -> FamilyReading:
        """What the sources of some families say."""
        return _read(batch, self.asked, os.environ)


def _read(
    wanted: Sequence[Family],
    fields: Mapping[str, Any],
    env: Mapping[str, str],
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> FamilyReading:
    from toolmatrix.harvest.transport import Session

    with closing(Session(cache(env))) as session:
        context = HarvestContext(session=session, env=env, **fields)
        texts = [
            runs.text(
                families.harvest(family, context.replace(progress=partial(progress, family.name))),
                family.about,
            )
            for family in wanted
        ]
    return FamilyReading(texts=tuple(texts), requests=session.requests, bytes=session.bytes)
