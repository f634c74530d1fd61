"""ELF files: what they need and give, how they were compiled, and which device code they carry.

A file is read in one pass. A small one is taken whole; of a large one its head, its dynamic section and its end are,
which hold what a loader reads. What lies elsewhere in a large file is left out and `partial` says so. Debug information
is that of DWARF 5: section 3.1.1, the producer of a compilation unit, and 5.1, the encoding of a base type.
"""

from __future__ import annotations

import io
import re
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from toolmatrix.images.streams import BLOCK, first, section
from toolmatrix.inventory import dynamic, library_version, offload
from toolmatrix.inventory.dynamic import Dynamic
from toolmatrix.value import Value

if TYPE_CHECKING:
    from toolmatrix.images.streams import Readable, Section

MAGIC = dynamic.MAGIC
_WHOLE = 24 << 20
# Bytes of a file that are read at once sooner than its parts are one by one.
_AT_ONCE = 256 << 10
_TAIL = 2 << 20
_DYNAMIC = 1 << 20
_MOST_VERSIONS = 16
# Bytes that are searched again with the next, so that no text is cut in two.
_OVERLAP = 256
# Bytes at the beginning of a file in which its segments are told.
_HEAD = 64 << 10

_COMMAND_LINE = ".GCC.command.line"
_DEBUG = (b".debug_info\0", b".zdebug_info\0")
_MOST_OPTIONS = 400
# Type (sh_type) and flags (sh_flags) of sections, System V gABI chapter 4.
_PROGBITS, _NOBITS, _LOADED, _EXECUTABLE = 1, 8, 2, 4
# Compilation units of a file, which repeat the options of the first, and entries of one that are searched for `char`:
# compilers write the base types where they first need them, so a unit without it among these has none.
_MOST_UNITS = 4
_MOST_ENTRIES = 600
# DW_ATE_signed_char and DW_ATE_unsigned_char.
_CHAR = {6: "signed", 8: "unsigned"}


class Elf(Value):
    """The contents of an ELF file that matter here.

    `options` are compiler options that were recorded, each with the section that tells. `char` is `signed` or
    `unsigned` where debug information tells. `versions` are texts that match what was looked for, `version` is a
    component and the version of it that a library has of itself. `device` are codegen archs of device code in it,
    `unread` why some are not known. `damaged` says why no more could be read.
    """

    machine: str
    dynamic: Dynamic = Dynamic()
    options: tuple[tuple[str, str], ...] = ()
    char: str = ""
    versions: tuple[str, ...] = ()
    version: tuple[str, str] | None = None
    device: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    partial: bool = False
    damaged: str = ""


class NotKept(Exception):
    """A piece of a large file that was not kept."""


class Windows:
    """A file of which only some ranges are known; reading elsewhere raises NotKept."""

    def __init__(self, size: int, ranges: Iterable[tuple[int, bytes]]) -> None:
        self.size = size
        self.place = 0
        self.ranges = tuple(ranges)

    def seek(self, place: int, /) -> None:
        """Go to a place."""
        self.place = place

    def read(self, size: int, /) -> bytes:
        """Bytes from there on, fewer at the end of the file or of a range."""
        if self.place >= self.size:
            return b""
        for start, data in self.ranges:
            if start <= self.place < start + len(data):
                begin = self.place - start
                return data[begin : begin + size]
        raise NotKept


def read(
    head: bytes,
    stream: Readable,
    size: int,
    pattern: re.Pattern[bytes] | None,
    *,
    debug: bool = True,
) -> Elf:
    """An ELF file that begins with `head` and goes on in `stream`, which is read to its end.

    `pattern` finds version texts; without `debug` recorded options are not looked for. A file that is damaged gives
    what could be read of it, and says so.
    """
    texts, code = _Texts(pattern), offload.Scan()
    large = _Large()
    whole = _whole(head, stream, size) if size <= _WHOLE else None
    for part in large.data(head, stream, size) if whole is None else _data_of(whole, size):
        texts.add(part)
        code.add(part)
    file = large.file() if whole is None else whole
    machine = dynamic.machine(head)
    if machine in (dynamic.CUDA, dynamic.AMDGPU) and whole is not None:
        code.archs |= offload.archs_alone(machine, _piece(whole))
    found: dict[str, Any] = {"versions": tuple(texts.versions), **_device(code)}
    try:
        found["dynamic"] = held = dynamic.read(file)
        found["version"] = library_version.read(dynamic.File(file), held.soname)
    except NotKept:
        pass
    except dynamic.DamagedElf as error:
        found["damaged"] = str(error)
    if debug and whole is not None:
        found |= _recorded(whole)
    return Elf(machine=machine, partial=whole is None, **found)


def read_code(head: bytes, stream: Readable) -> Elf | None:
    """The device code in a file of another kind that begins with `head`, such as an archive; None without any."""
    code = offload.Scan()
    data = head
    while data:
        code.add(data)
        data = stream.read(BLOCK)
    device = _device(code)
    return Elf(machine="", **device) if any(device.values()) else None


def _device(code: offload.Scan) -> dict[str, Any]:
    code.finish()
    return {"device": tuple(sorted(code.archs)), "unread": tuple(sorted(code.unread))}


# Version texts are looked for in all data: the sections that hold them have no name in common.
class _Texts:
    def __init__(self, pattern: re.Pattern[bytes] | None) -> None:
        self.pattern = pattern
        self.versions: dict[str, None] = {}
        self.before = b""

    def add(self, data: bytes) -> None:
        if self.pattern is not None and len(self.versions) < _MOST_VERSIONS:
            data = self.before + data
            found = (one.decode("ascii", "replace") for one in self.pattern.findall(data))
            self.versions |= dict.fromkeys(found)
            self.before = data[-_OVERLAP:]


# A file of which every part may be read: where it lies in another as it is, most of it is not.
def _whole(head: bytes, stream: Readable, size: int) -> IO[bytes] | Section:
    held = section(stream) if size > _AT_ONCE else None
    if held is not None:
        return held.part(held.place - len(head), size)
    return io.BytesIO(head + first(size - len(head), stream))


# What there is of some bytes of a small file; all of it unless said otherwise.
def _piece(file: IO[bytes] | Section, place: int = 0, size: int = _WHOLE) -> bytes:
    if place >= _WHOLE or size <= 0:
        return b""
    file.seek(place)
    return file.read(min(size, _WHOLE))


# The sections in which device code and texts may stand: those that are loaded and no code of the processor, and what
# was put behind the last of them; all of a file that has no table of them, or one whose sections overlap, so that each
# byte is looked at once.
def _data_of(file: IO[bytes] | Section, whole: int) -> Iterator[bytes]:
    head = _piece(file, 0, 64)
    order = "<>"[head[5] == 2]
    wide = head[4] == 2
    form = struct.Struct(order + ("4xIQ8xQQ" if wide else "4xII4xII"))
    try:
        (start,) = struct.unpack_from(order + "IQ"[wide], head, 40 if wide else 32)
        size, count = struct.unpack_from(order + "HH", head, 58 if wide else 46)
        table = _piece(file, start, count * size + form.size)
        tables = [form.unpack_from(table, number * size) for number in range(count)]
        end = start + count * size if tables else 0
    except struct.error:
        tables, end = [], 0
    loaded = []
    for kind, flags, place, length in tables:
        if kind == _PROGBITS and flags & _LOADED and not flags & _EXECUTABLE:
            loaded.append((place, place + length))
        end = max(end, place + length) if kind != _NOBITS else end
    if not tables or sum(end - place for place, end in loaded) > whole:
        loaded, end = [], 0
    for place, until in (*loaded, (end, whole)):
        yield _piece(file, place, until - place)


class _Large:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.count = 0
        self.tail: deque[bytes] = deque()
        self.behind = 0
        self.start = -1
        self.dynamic = b""
        self.code: list[tuple[int, int]] | None = None

    # All of a file as it passes, but for the code of the processor.
    def data(self, head: bytes, stream: Readable, size: int) -> Iterator[bytes]:
        data = head
        while data:
            self.add(data)
            yield from self.data_of(data)
            data = stream.read(min(BLOCK, size - self.count))

    def add(self, data: bytes) -> None:
        begin = self.count
        self.count += len(data)
        if begin < _WHOLE:
            self.pieces.append(data)
            return
        # The dynamic section lies with the data, behind the code: in a library of a gigabyte far from head and end.
        if self.start < 0:
            try:
                self.start, _ = dynamic.File(io.BytesIO(b"".join(self.pieces))).dynamic
            except dynamic.DamagedElf:
                self.start = 0
        if self.start < self.count and begin < self.start + _DYNAMIC:
            self.dynamic += data[max(0, self.start - begin) :][: _DYNAMIC - len(self.dynamic)]
        self.tail.append(data)
        self.behind += len(data)
        while self.behind - len(self.tail[0]) >= _TAIL:
            self.behind -= len(self.tail.popleft())

    # What of the bytes that came last is no code of the processor, as far as segments tell: those with sections of
    # both kinds tell nothing.
    def data_of(self, data: bytes) -> Iterator[bytes]:
        if self.code is None and self.count >= _HEAD:
            try:
                self.code = dynamic.File(io.BytesIO(b"".join(self.pieces))).code
            except dynamic.DamagedElf:
                self.code = []
        begin = place = self.count - len(data)
        for start, end in self.code or ():
            if place < end and start < self.count:
                yield data[place - begin : max(0, start - begin)]
                place = min(end, self.count)
        yield data[place - begin :]

    def file(self) -> Windows:
        tail = (self.count - self.behind, b"".join(self.tail))
        return Windows(self.count, [(0, b"".join(self.pieces)), (self.start, self.dynamic), tail])


def _recorded(file: IO[bytes] | Section) -> dict[str, Any]:
    names = _section_names(file)
    # pyelftools takes milliseconds for a file; most have neither, which their section names tell.
    if _COMMAND_LINE.encode() not in names and not any(name in names for name in _DEBUG):
        return {}
    try:
        return _by_sections(_piece(file))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - on damaged files pyelftools raises whatever its parts do
        return {"damaged": f"{type(error).__name__}: {error}"[:200]}


# The names of the sections, as one table; all of a file that has none, or more than its header can count.
def _section_names(file: IO[bytes] | Section) -> bytes:
    head = _piece(file, 0, 64)
    order = "<>"[head[5] == 2]
    wide = head[4] == 2
    try:
        (start,) = struct.unpack_from(order + "IQ"[wide], head, 40 if wide else 32)
        size, count, number = struct.unpack_from(order + "HHH", head, 58 if wide else 46)
        entry = _piece(file, start + number * size, 64)
        place, length = struct.unpack_from(order + "IQ"[wide] * 2, entry, 24 if wide else 16)
    except struct.error:
        return _piece(file)
    return _piece(file, place, length) if 0 < number < count else _piece(file)


def _by_sections(data: bytes) -> dict[str, Any]:
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(data))
    options: dict[tuple[str, str], None] = {}
    section = elf.get_section_by_name(_COMMAND_LINE)
    if section is not None:
        words = re.split(rb"[\0\s]+", section.data()[: 1 << 20])
        options |= dict.fromkeys((word, _COMMAND_LINE) for word in _options(words))
    # Without `strict` unwind tables alone, which every file has, count as debug information.
    producers, char = _debug(elf) if elf.has_dwarf_info(strict=True) else ([], "")
    for producer in producers:
        words = producer.split()
        options |= dict.fromkeys((word, "DW_AT_producer") for word in _options(words))
    return {"options": tuple(options), "char": char}


def _options(words: Iterable[bytes]) -> list[str]:
    found = dict.fromkeys(word.decode("utf-8", "replace") for word in words if word[:1] == b"-")
    return list(found)[:_MOST_OPTIONS]


def _debug(elf: Any) -> tuple[list[bytes], str]:
    info = elf.get_dwarf_info(relocate_dwarf_sections=True)
    producers: dict[bytes, None] = {}
    char = ""
    for unit in islice(info.iter_CUs(), _MOST_UNITS):
        top = unit.get_top_DIE()
        held = top.attributes.get("DW_AT_producer")
        if held is not None and isinstance(held.value, bytes):
            producers[held.value] = None
        char = char or _char(unit)
    return list(producers), char


def _char(unit: Any) -> str:
    for entry in islice(unit.iter_DIEs(), _MOST_ENTRIES):
        if entry.tag == "DW_TAG_base_type":
            name = entry.attributes.get("DW_AT_name")
            encoding = entry.attributes.get("DW_AT_encoding")
            if name is not None and name.value == b"char" and encoding is not None:
                return _CHAR.get(encoding.value, "")
    return ""
