"""Compares the results of a replay with those of its driver byte by byte."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from toolmatrix.compilation.drivers import dry_run
from toolmatrix.compilation.replay import Replay
from toolmatrix.documents import Count
from toolmatrix.errors import ToolMissing, UsageError
from toolmatrix.value import Document

# Seconds that the driver may take to build.
LIMIT = 3600

_UNPRINTABLE = re.compile(rb"[^\x20-\x7e]")
_TEMP_NAME = re.compile(r"tmpxft_|\.cudafe\d|\.cpp\d\.ii|\.stub\.c|\.fatbin|-[0-9a-f]{6}|/tmp/")
# Bytes on each side of a place in which its text is looked for.
_NEAR = 64
_UNIT = re.compile(r"(?<!\S)-cuid=\w+")


class Reproduction(Document):
    """One file of the replay against the driver's own.

    `sections` are the ELF sections that differ, the first first; `offset` is where in the file. `ours` and `theirs`
    are the text around that place, and `why` says what it looks like. All are empty where the files are identical.
    `steady` is whether the driver made the same in two runs, None where it ran once. `given` is the option without
    which the driver made something else.
    """

    path: str
    identical: bool
    sections: tuple[str, ...] = ()
    offset: Count = 0
    ours: str = ""
    theirs: str = ""
    why: str = ""
    steady: bool | None = None
    given: str = ""


def verify(
    dry: dry_run.DryRun, replay: Replay, *, cwd: Path | None = None, limit: float = LIMIT
) -> tuple[Reproduction, ...]:
    """Build with the driver itself, its temp files where the replay had them, and compare each result of the replay.

    The replay has run in `cwd`; its results are moved aside, and those of the driver stay. Where they differ, the
    driver builds with the compilation unit id of the replay, then once more without: it may not be reproducible.
    Raises UsageError for a part of a plan, ToolMissing where the driver fails.
    """
    if replay.left_out:
        raise UsageError(
            "a part of a plan cannot be verified: the driver builds the whole",
            help="leave out --only, --until and --since",
        )
    with tempfile.TemporaryDirectory(prefix="toolmatrix-") as aside:
        return tuple(_Comparison(dry, replay, cwd or Path.cwd(), Path(aside), limit).verdicts())


class _Comparison(NamedTuple):
    dry: dry_run.DryRun
    replay: Replay
    folder: Path
    aside: Path
    limit: float

    def verdicts(self) -> Iterator[Reproduction]:
        results = [path for path in self.replay.results if (self.folder / path).is_file()]
        ours = self._rebuild(results)
        differing = [path for path in results if not self._compare_with(path, ours).identical]
        alike, unit_option = self._by_unit(differing, ours)
        differing = [path for path in differing if path not in alike]
        first = self._rebuild(differing) if differing else {}
        for path in results:
            if path in alike:
                yield Reproduction(path=path, identical=True, given=unit_option)
            elif path in first:
                verdict = compare(path, ours[path].read_bytes(), first[path].read_bytes())
                yield verdict.replace(steady=self._compare_with(path, first).identical)
            else:
                yield self._compare_with(path, ours)

    def _by_unit(self, differing: Sequence[str], ours: Mapping[str, Path]) -> tuple[set[str], str]:
        # clang makes the id of its whole command line, to which `-###` belongs in a dry run (lib/Driver, CUIDOptions).
        commands = (command for step in self.replay.steps for command in step.commands)
        ids = set(_UNIT.findall("\n".join(commands)))
        if not differing or len(ids) != 1:
            return set(), ""
        unit_option = ids.pop()
        theirs = self._rebuild(differing, unit_option)
        alike = {path for path in differing if self._compare_with(path, ours).identical}
        for path, built in theirs.items():
            shutil.move(built, self.folder / path)
        return alike, unit_option

    def _compare_with(self, path: str, copies: Mapping[str, Path]) -> Reproduction:
        current = self.folder / path
        if not current.is_file():
            raise ToolMissing(f"the driver did not write {path}, but its dry run says that it does")
        return compare(path, copies[path].read_bytes(), current.read_bytes())

    def _rebuild(self, paths: Sequence[str], *more: str) -> dict[str, Path]:
        folder = Path(tempfile.mkdtemp(dir=self.aside))
        copies = {path: folder / str(index) for index, path in enumerate(paths)}
        for path, to in copies.items():
            shutil.move(self.folder / path, to)
        for temp in {path for step in self.replay.steps for path in step.outputs}:
            if temp.startswith(f"{self.replay.work}/") and (self.folder / temp).is_file():
                (self.folder / temp).unlink()
        dry = self.dry.replace(words=(*self.dry.words, *more))
        try:
            dry_run.build(dry, cwd=self.folder, limit=self.limit)
        except BaseException:
            # The results of the replay have to stay, also after Ctrl-C.
            for path, at in copies.items():
                shutil.move(at, self.folder / path)
            raise
        return copies


def compare(path: str, ours: bytes, theirs: bytes) -> Reproduction:
    """The verdict on two contents of a file."""
    if ours == theirs:
        return Reproduction(path=path, identical=True)
    # Beginnings are equal up to the first difference and differ from there on: it can be searched for by halves.
    offset = bisect_left(
        range(min(len(ours), len(theirs))), 1, key=lambda at: ours[: at + 1] != theirs[: at + 1]
    )
    near = _nearby_text(ours, offset), _nearby_text(theirs, offset)
    why = f"{len(ours)} bytes against {len(theirs)}" if len(ours) != len(theirs) else ""
    if all(map(_TEMP_NAME.search, near)):
        why = "it contains names of temp files"
    return Reproduction(
        path=path,
        identical=False,
        sections=_differing(ours, theirs, offset),
        offset=offset,
        ours=near[0],
        theirs=near[1],
        why=why,
    )


def _nearby_text(content: bytes, offset: int) -> str:
    before = _UNPRINTABLE.split(content[max(0, offset - _NEAR) : offset])[-1]
    after = _UNPRINTABLE.split(content[offset : offset + _NEAR])[0]
    return (before + after).decode("ascii")


def _differing(ours: bytes, theirs: bytes, offset: int) -> tuple[str, ...]:
    """Names of the ELF sections that differ: the one with the place first, then the others in order."""
    mine, other = _sections(ours), _sections(theirs)
    names = [
        name
        for name in dict.fromkeys((*mine, *other))
        if name not in mine or name not in other or ours[mine[name]] != theirs[other[name]]
    ]
    first = [
        name for name in names if name in mine and mine[name].start <= offset < mine[name].stop
    ]
    return tuple(dict.fromkeys((*first, *names)))


def _sections(content: bytes) -> dict[str, slice]:
    from elftools.elf.elffile import ELFFile

    try:
        sections = [*ELFFile(io.BytesIO(content)).iter_sections()]
    # A result may be truncated, or only look like ELF: pyelftools then raises whatever its parts do.
    except Exception:  # noqa: BLE001
        return {}
    return {
        section.name: slice(section["sh_offset"], section["sh_offset"] + section["sh_size"])
        for section in sections
        if section["sh_type"] not in ("SHT_NULL", "SHT_NOBITS")
    }
