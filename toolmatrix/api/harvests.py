"""Facts read anew at their sources, for Python; `toolmatrix harvest` writes the same files."""

from __future__ import annotations

import os
import os.path
import time
from contextlib import closing, contextmanager
from functools import partial

from toolmatrix import resources
from toolmatrix.api import PLAIN, Outcome, this_day
from toolmatrix.documents import Amount, Annotated, Any, Count, HasIs, Literal, TypedDict
from toolmatrix.errors import MatrixError, UsageError
from toolmatrix.facts import yamlfile
from toolmatrix.facts.store import cache_folder
from toolmatrix.harvest import base_matrix, families, written
from toolmatrix.harvest.families import HarvestContext
from toolmatrix.harvest.transport import Session
from toolmatrix.judge.pool import IndexedWork
from toolmatrix.outputs import os_errors_as, replace_files
from toolmatrix.value import Document, Value
from toolmatrix.wording import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.api import Path
    from toolmatrix.facts.index import Index
    from toolmatrix.harvest.families import Family
    from toolmatrix.harvest.written import FactDifference
    from toolmatrix.report.terminal import Terminal


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


class HarvestedFile(Value):
    """What a harvester made of one family: its file, the text for it, and the rows in which the two differ."""

    family: str
    path: str
    text: str
    rows: int
    differences: Sequence[FactDifference]
    # A file may differ in the day of its sources alone.
    changed: bool
    # Why the file that is there cannot be read: with no row of it the text was compared.
    damage: MatrixError | None = None


class Effort(Document):
    """What a harvest took: requests and bytes of HTTP, and seconds."""

    requests: Count
    bytes: Count
    seconds: Amount

    def __str__(self) -> str:
        return f"{self.requests} requests, {self.bytes / 1e6:.1f} MB, {self.seconds:.0f} s"


class Harvested(Outcome):
    """Files of facts as their sources say them now; true where all are as they were."""

    def __init__(
        self,
        files: Sequence[HarvestedFile],
        effort: Effort,
        damage: Sequence[MatrixError] = (),
    ) -> None:
        self.files = files
        self.effort = effort
        self._damage = damage

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of the matrix cannot be read, and which file was compared with nothing for it."""
        damage = [*self._damage, *(file.damage for file in self.files if file.damage is not None)]
        return tuple(
            dict.fromkeys(
                ": ".join(filter(None, (str(one.where or ""), one.what, one.found)))
                for one in damage
            )
        )

    @property
    def exit_code(self) -> int:
        """1 where a file differs."""
        return int(any(file.changed for file in self.files))

    def text(self, screen: Terminal = PLAIN) -> str:  # noqa: ARG002 - rows are for a file or a review
        """Each file, with the rows that came, went or changed."""
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
            "effort": self.effort.to_json(),
        }

    def write(self, *, accept: bool = False) -> None:
        """Put the files that changed in their places, all or none.

        Raises HarvestRefused where rows have vanished, unless that is to be `accept`ed, and OutputError.
        """
        # Every file is judged before the first is written, or a refusal would leave one half of a harvest.
        if not accept:
            for file in self.files:
                written.refuse_vanished(file.path, file.differences)
        replace_files({file.path: file.text for file in self.files if file.changed})


def harvest(*names: str, place: Path = "", output: Path = "") -> Harvested:
    """The families of these names, all where none is named, as their sources say them now; `write` puts them there.

    `place` is read instead of the sources, and `output` is the directory of the files, that of the matrix if nothing is
    said. Raises HarvestRefused, IndexFailed, MatrixError, NothingMatched, ToolMissing, UsageError.
    """
    from toolmatrix.api.requests import open_matrix

    folder = folder_of(os.fspath(output))
    return gathered(names, lambda: open_matrix().index, (), os.fspath(place), folder, os.environ)


def gathered(
    names: Sequence[str],
    index: Callable[[], Index],
    overlays: Sequence[str],
    place: str,
    folder: str,
    env: Mapping[str, str],
    progress: Callable[[str, int, int], None] = lambda *_: None,
    executor: str = "",
) -> Harvested:
    """Those families; `progress` hears the name of each, how much of it was read, and of how much.

    `overlays` are the files on top of the built-in matrix that `index` opens. An executor, whose workers are known by
    their matrix, needs one that can be read; then `progress` hears of families.
    """
    wanted = families.chosen(families.families(), names)
    paths = [os.path.join(resources.matrix_root(), "matrix.yaml"), *overlays]
    ground = base_matrix.read(index, paths, families.matched(wanted))
    began = time.monotonic()
    asked = {
        "day": this_day(env),
        "packages": families.packages(),
        "programs": families.programs(),
        # A worker may run in any folder.
        "place": os.path.abspath(place) if place and executor else place,
        **ground.as_dict("components", "pythons", "lines"),
    }
    if executor:
        work = Harvester(index=index(), asked=asked)
        readings = list(_elsewhere(work, wanted, overlays, executor, progress))
    else:
        readings = [_read(wanted, asked, env, progress)]
    texts = [text for reading in readings for text in reading.texts]
    files = [
        compared(family.name, os.path.join(folder, f"{family.name}.yaml"), text)
        for family, text in zip(wanted, texts, strict=True)
    ]
    effort = Effort(
        requests=sum(reading.requests for reading in readings),
        bytes=sum(reading.bytes for reading in readings),
        seconds=time.monotonic() - began,
    )
    return Harvested(files, effort, ground.damage)


class FamilyReading(Value):
    """The texts of the files of some families, and the requests and bytes that they took."""

    texts: tuple[str, ...]
    requests: int
    bytes: int


class Harvester(IndexedWork):
    """Reads families where it runs, by the settings and the cache of that machine; `asked` goes into each context."""

    asked: Mapping[str, Any]

    def attempt(self, part: Sequence[Family]) -> FamilyReading:
        """What the sources of some families say."""
        return _read(part, self.asked, os.environ)


def _read(
    wanted: Sequence[Family],
    asked: Mapping[str, Any],
    env: Mapping[str, str],
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> FamilyReading:
    with closing(Session(cache(env))) as session:
        context = HarvestContext(session=session, env=env, **asked)
        texts = [
            written.text(
                families.harvest(family, context.replace(progress=partial(progress, family.name))),
                family.about,
            )
            for family in wanted
        ]
    return FamilyReading(texts=tuple(texts), requests=session.requests, bytes=session.bytes)


def _elsewhere(
    work: Harvester,
    wanted: Sequence[Family],
    overlays: Sequence[str],
    executor: str,
    progress: Callable[[str, int, int], None],
) -> Iterator[FamilyReading]:
    from toolmatrix.api.checks import Workers

    with Workers(work, [[family] for family in wanted], overlays, 0, executor) as workers:
        for done, reading in enumerate(workers.results(), 1):
            yield reading
            progress("sources", done, len(wanted))


def cache(env: Mapping[str, str]) -> str:
    """The directory for what a harvest read that can never change, "" where there is none."""
    folder = cache_folder(env)
    return os.path.join(folder, "harvest") if folder else ""


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """While nobody else harvests into a directory. Raises OutputError, and UsageError where somebody does."""
    # Windows has no such module, and what only reads or checks does not lock.
    import fcntl

    path = os.path.join(folder, ".lock")
    with os_errors_as("cannot write to the directory of harvested facts", folder):
        os.makedirs(folder, exist_ok=True)
        file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - held open as long as the lock
    with file:
        try:
            # The system lets go of it with the process, however that ends. The file stays: were it removed, who had
            # it open already and who makes it anew would both hold a lock.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                "another harvest is writing there",
                expected="one harvest at a time per directory",
                found=folder,
                help="wait for it, or name another directory with `--output`",
            ) from None
        yield


def compared(name: str, path: str, text: str) -> HarvestedFile:
    """A text beside the file that it is for, which may be damaged. Raises MatrixError."""
    damage = None
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            before = file.read()
        differences = written.differences(path, text)
    except FileNotFoundError:
        before, differences = "", written.differences("", text)
    except MatrixError as error:
        damage, differences = error, written.differences("", text)
    return HarvestedFile(
        family=name,
        path=path,
        text=text,
        rows=len(written.rows(yamlfile.parse(text.encode(), path))),
        differences=differences,
        changed=before != text,
        damage=damage,
    )


def folder_of(output: str = "") -> str:
    """The directory that files are written to: `output`, else that of the matrix. Raises UsageError."""
    # An installed package is its packager's: what is harvested there goes elsewhere.
    if not output and resources.builtin_index():
        raise UsageError(
            "the matrix of an installed package is read-only",
            expected="`--output DIR`",
            help="`--matrix FILE` puts a file from there on top of the built-in matrix",
        )
    return output or resources.harvested_root()


def _state(one: FactDifference) -> str:
    return "gone" if one.gone else "new" if one.new else "changed"


_SIGNS = {"gone": "-", "new": "+", "changed": "~"}


def describe_changes(file: HarvestedFile) -> str:
    """A file, with the rows that came, went or changed."""
    lines = [f"{file.path}: {plural(file.rows, 'row')}, " + ("" if file.changed else "as before")]
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
