"""Whether a replay makes what the driver makes: byte for byte, or else where the two differ first."""

from __future__ import annotations

import re
import shutil
import struct
import tempfile
from pathlib import Path

from toolmatrix.errors import ToolMissing, UsageError
from toolmatrix.stages import driver
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from toolmatrix.stages.replay import Replay

LIMIT = 3600
"""Seconds that the driver may take to build."""

_TEXT = re.compile(rb"[\x20-\x7e]*\Z")
_TEMP_NAME = re.compile(r"tmpxft_|\.cudafe\d|\.cpp\d\.ii|\.stub\.c|\.fatbin|-[0-9a-f]{6}|/tmp/")
_NEAR = 64


class Verdict(Value):
    """One file of the replay against the driver's own.

    `sections` are the ELF sections that differ, the first first; `offset` is where in the file. `ours` and `theirs`
    are the text around that place, and `why` says what it looks like. All are empty where the files are identical.
    `steady` is whether the driver made the same in two runs, None where it ran once.
    """

    path: str
    identical: bool
    sections: tuple[str, ...] = ()
    offset: int = 0
    ours: str = ""
    theirs: str = ""
    why: str = ""
    steady: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """The verdict as JSON holds it."""
        return {field: getattr(self, field) for field in self._fields} | {
            "sections": list(self.sections)
        }


def verify(
    dry: driver.DryRun, replay: Replay, *, cwd: Path | None = None, limit: float = LIMIT
) -> tuple[Verdict, ...]:
    """Build with the driver itself, its temp files where the replay had them, and compare each result of the replay.

    The replay has run in `cwd`; what it made is put aside, and what the driver makes stays. Where they differ the
    driver builds once more: it may differ from itself. Raises UsageError for a part of a plan, ToolMissing where the
    driver fails.
    """
    place = cwd or Path.cwd()
    if replay.left_out:
        raise UsageError(
            "a part of a plan cannot be verified: the driver builds the whole",
            help="leave out --only, --until and --since",
        )

    def build() -> None:
        driver.build(dry, cwd=cwd, limit=limit)

    with tempfile.TemporaryDirectory(prefix="toolmatrix-") as aside:
        made = [path for path in replay.results if (place / path).is_file()]
        ours = _built_anew(made, replay, place, Path(aside, "ours"), build)
        verdicts = [_judged(path, kept, place / path) for path, kept in ours.items()]
        doubtful = [one.path for one in verdicts if not one.identical]
        if not doubtful:
            return tuple(verdicts)
        first = _built_anew(doubtful, replay, place, Path(aside, "first"), build)
        unsteady = {
            path for path, kept in first.items() if not _judged(path, kept, place / path).identical
        }
        return tuple(
            one if one.identical else one.replace(steady=one.path not in unsteady)
            for one in verdicts
        )


def _built_anew(
    paths: Sequence[str], replay: Replay, place: Path, aside: Path, build: Callable[[], None]
) -> dict[str, Path]:
    """Where files were put while the driver made them anew; back where they were if it failed."""
    aside.mkdir()
    kept = {path: aside / str(number) for number, path in enumerate(paths)}
    for path, to in kept.items():
        shutil.move(place / path, to)
    for temp in {path for step in replay.steps for path in step.outputs}:
        if temp.startswith(f"{replay.work}/") and (place / temp).is_file():
            (place / temp).unlink()
    try:
        build()
    except BaseException:
        for path, at in kept.items():
            shutil.move(at, place / path)
        raise
    return kept


def _judged(path: str, ours: Path, theirs: Path) -> Verdict:
    if not theirs.is_file():
        raise ToolMissing(f"the driver did not write {path}, but its dry run says that it does")
    return compare(path, ours.read_bytes(), theirs.read_bytes())


def compare(path: str, ours: bytes, theirs: bytes) -> Verdict:
    """The verdict on two contents of a file."""
    if ours == theirs:
        return Verdict(path=path, identical=True)
    offset = _first_difference(ours, theirs)
    near = _around(ours, offset), _around(theirs, offset)
    return Verdict(
        path=path,
        identical=False,
        sections=tuple(_differing(ours, theirs, offset)),
        offset=offset,
        ours=near[0],
        theirs=near[1],
        why=_reason(near, (len(ours), len(theirs))),
    )


def _first_difference(ours: bytes, theirs: bytes) -> int:
    low, high = 0, min(len(ours), len(theirs))
    while low < high:
        middle = (low + high + 1) // 2
        if ours[:middle] == theirs[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _around(content: bytes, offset: int) -> str:
    """The printable text that runs through a place."""
    before = _TEXT.search(content[max(0, offset - _NEAR) : offset])
    after = re.match(rb"[\x20-\x7e]*", content[offset : offset + _NEAR])
    return ((before[0] if before else b"") + (after[0] if after else b"")).decode("ascii")


def _reason(near: tuple[str, str], sizes: tuple[int, int]) -> str:
    if all(map(_TEMP_NAME.search, near)):
        return "the names of temp files got into it"
    if sizes[0] != sizes[1]:
        return f"{sizes[0]} bytes against {sizes[1]}"
    return ""


def _differing(ours: bytes, theirs: bytes, offset: int) -> Iterator[str]:
    """Names of the ELF sections that differ: the one with the place first, then the others in order."""
    mine, other = _sections(ours), _sections(theirs)
    found = [
        name
        for name in dict.fromkeys((*mine, *other))
        if _content(ours, mine.get(name)) != _content(theirs, other.get(name))
    ]
    first = [name for name in found if name in mine and _holds(mine[name], offset)]
    yield from dict.fromkeys((*first, *found))


def _holds(place: tuple[int, int], offset: int) -> bool:
    return place[0] <= offset < place[0] + place[1]


def _content(whole: bytes, place: tuple[int, int] | None) -> bytes | None:
    return None if place is None else whole[place[0] : place[0] + place[1]]


def _sections(content: bytes) -> dict[str, tuple[int, int]]:
    """Offset and size of each section of a 64-bit little-endian ELF file; none for any other (elf.h, Elf64_Shdr)."""
    if content[:6] != b"\x7fELF\x02\x01" or len(content) < 64:
        return {}
    table = struct.unpack_from("<Q", content, 40)[0]
    size, count, names_at = struct.unpack_from("<HHH", content, 58)
    if size < 64 or table + size * count > len(content) or names_at >= count:
        return {}
    headers = [struct.unpack_from("<IIQQQQ", content, table + size * one) for one in range(count)]
    _, _, _, _, start, length = headers[names_at]
    names = content[start : start + length]
    nobits = 8
    return {
        names[name:].split(b"\0", 1)[0].decode("utf-8", "replace"): (at, long)
        for name, kind, _, _, at, long in headers
        if kind not in (0, nobits)
    }
