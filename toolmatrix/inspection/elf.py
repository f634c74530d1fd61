"""ELF files: what they need and give, how they were compiled, and which device code they carry.

A file is read in one pass. A small one is kept whole; of a large one its head, its dynamic section and its end are,
which a loader reads. The rest of a large file is left out and `partial` says so. Debug information
is that of DWARF 5: section 3.1.1, the producer of a compilation unit, and 5.1, the encoding of a base type.

Device code is read from the headers in front of it, without any GPU, for its archs and gfx.

CUDA: a fat binary begins with a magic number; each image in it has a header with its kind (PTX or cubin), the number of
its arch and flags, of which two mark arch-specific (`a`) and family-specific (`f`) code. Its layout is not published;
it was derived from the output of nvcc and is tested against that. A cubin by itself is an ELF file: the flags in its
header are those of LLVM's BinaryFormat/ELF.h (EF_CUDA_*), and a note has the command line of ptxas.

HIP: https://clang.llvm.org/docs/ClangOffloadBundler.html, sections "Bundled Binary File Layout" and "Compression and
Decompression"; code objects by themselves name their target in a note, https://llvm.org/docs/AMDGPUUsage.html.
"""

from __future__ import annotations

import io
import re
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import IO, Any

from toolmatrix.images.streams import BLOCK, Readable, Section, section
from toolmatrix.inspection import dynamic
from toolmatrix.inspection.dynamic import CUDA, Dynamic
from toolmatrix.value import Value

FATBIN = struct.pack("<I", 0xBA55ED50)
# Magic, version, bytes of this header, bytes of the images that follow.
_FATBIN_HEADER = struct.Struct("<IHHQ")
# Kind, version, bytes of this header and of the image, two sizes, two halves of a version, arch, two more, flags.
_IMAGE = struct.Struct("<HHIQIIHHIIIQ")
_KINDS = {1: "compute_", 2: "sm_"}
# Kinds of images; the last is intermediate code for the linker, which is for no device yet.
_IMAGES = {*_KINDS, 8}
_SUFFIXES = ((1 << 20, "a"), (1 << 21, "f"))
_ARCHS = range(10, 1000)
# Headers of images and bundles in one file; the libraries of PyTorch have some ten thousand.
_MOST_HEADERS = 200_000

BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
_COUNT = struct.Struct("<Q")
# Offset and bytes of an image, and bytes of its name, which follows.
_BUNDLE_ENTRY = struct.Struct("<QQQ")
_MOST_BUNDLE_ENTRIES = 256
_GFX = re.compile(rb"gfx[0-9a-f]+(?:-\d+)*(?:-generic)?(?::[a-z]+[+-])*")
_LONGEST_NAME = 256

COMPRESSED = b"CCOB"
# Bytes of the header of a compressed bundle by its version, a number after the magic.
_COMPRESSED_HEADERS = {1: 20, 2: 24, 3: 32}
_ZLIB, _ZSTD = 0, 1
# Bytes of an unpacked bundle that hold its names.
_NAMES = 32 << 10

_PTXAS = re.compile(rb"-arch (sm_\d+[af]?)\b")
_TARGET = re.compile(rb"amdgcn-amd-amdhsa-\w*-(" + _GFX.pattern + rb")")
_ABI, _FLAGS = 8, 48
"""Offsets in an ELF header of the version of the ABI, and of its flags."""
_CUDA_OLD, _CUDA_OLD_SPECIFIC = 7, 0x800
"""Up to this version of the ABI the arch is in the first byte of the flags, and arch-specific code has this flag."""

OVERLAP = 192 << 10
"""Bytes that are searched again with the next block, so that no header is cut in two: a block of zstd, and more."""


class Scan:
    """Looks through a file as it passes for device code.

    `archs` are `sm_`, `compute_` (PTX) and gfx names; `unread` says why some are not known.
    """

    def __init__(self) -> None:
        self.archs: set[str] = set()
        self.unread: set[str] = set()
        self._data = b""
        self._base = 0
        self._done = 0
        # The next header of an image, and the end of its fat binary.
        self._next = 0
        self._end = 0
        self._left = _MOST_HEADERS

    def add(self, data: bytes) -> None:
        """Look at the next bytes."""
        behind = self._base + len(self._data) + len(data)
        if self._next >= behind:
            # All of them are of an image whose header was read.
            self._data = b""
            self._base = self._done = behind
            return
        self._data += data
        self._look(self._base + len(self._data) - OVERLAP)
        cut = max(0, len(self._data) - OVERLAP)
        self._data = self._data[cut:]
        self._base += cut

    def finish(self) -> None:
        """Look at the last bytes."""
        self._look(self._base + len(self._data))

    # Read every header that begins before a position.
    def _look(self, end: int) -> None:
        if end <= self._done:
            return
        position = self._images(max(self._done, self._next))
        while position < end:
            last = end - self._base + len(FATBIN) - 1
            start = self._data.find(FATBIN, position - self._base, last)
            until = self._base + start if start >= 0 else end
            for magic, read in ((BUNDLE, self._bundle), (COMPRESSED, self._compressed)):
                self._each(magic, read, position, until)
            position = self._fatbin(start) if start >= 0 else end
        self._done = end

    def _each(self, magic: bytes, read: Callable[[int], None], position: int, until: int) -> None:
        end = until - self._base
        start = self._data.find(magic, position - self._base, end + len(magic) - 1)
        while start >= 0:
            read(start)
            start = self._data.find(magic, start + 1, end + len(magic) - 1)

    # Read a fat binary; the result is where to go on, behind its code as far as that is known.
    def _fatbin(self, start: int) -> int:
        if start + _FATBIN_HEADER.size <= len(self._data):
            _, _, header, size = _FATBIN_HEADER.unpack_from(self._data, start)
            if header <= _LONGEST_NAME:
                self._next = self._base + start + header
                self._end = self._next + size
        return self._images(self._base + start + 1)

    # Read the headers of images up to the end of a fat binary, or to one that is not there yet; the result is where to
    # go on, at `position` or later.
    def _images(self, position: int) -> int:
        position = max(position, self._next)
        while self._next + _IMAGE.size <= self._end:
            start = self._next - self._base
            if start + _IMAGE.size > len(self._data):
                return position
            kind, _, header, length, *_, arch, _, _, flags = _IMAGE.unpack_from(self._data, start)
            if (
                header < _IMAGE.size
                or kind not in _IMAGES
                or arch not in _ARCHS
                or not self._spend()
            ):
                break
            if kind in _KINDS:
                suffix = "".join(letter for bit, letter in _SUFFIXES if flags & bit)
                self.archs.add(f"{_KINDS[kind]}{arch}{suffix}")
            # Code is packed or machine code: no other header begins in it.
            self._next = min(self._next + header + length, self._end)
            position = max(position, self._next)
        self._next = self._end = 0
        return position

    def _spend(self) -> bool:
        self._left -= 1
        if self._left < 0:
            self.unread.add(f"there are more than {_MOST_HEADERS} headers of device code")
        return self._left >= 0

    def _bundle(self, start: int) -> None:
        if self._spend():
            self.archs |= set(_bundle_targets(self._data, start))

    def _compressed(self, start: int) -> None:
        # The names are at the beginning of a bundle, so no more of it is unpacked.
        version, method = struct.unpack_from(
            "<HH", self._data[start : start + 8].ljust(8, b"\0"), 4
        )
        header = _COMPRESSED_HEADERS.get(version)
        if header is None or method not in (_ZLIB, _ZSTD) or not self._spend():
            return
        unpacked = _unpacked(self._data[start + header : start + OVERLAP], method)
        if not unpacked.startswith(BUNDLE):
            self.unread.add("a compressed bundle is damaged")
        else:
            self.archs |= set(_bundle_targets(unpacked, 0))


def _bundle_targets(data: bytes, start: int) -> Iterator[str]:
    position = start + len(BUNDLE)
    if position + _COUNT.size > len(data):
        return
    (count,) = _COUNT.unpack_from(data, position)
    position += _COUNT.size
    for _ in range(min(count, _MOST_BUNDLE_ENTRIES)):
        if position + _BUNDLE_ENTRY.size > len(data):
            return
        _, _, length = _BUNDLE_ENTRY.unpack_from(data, position)
        if length > _LONGEST_NAME:
            return
        position += _BUNDLE_ENTRY.size
        name = _GFX.search(data, position, position + length)
        if name:
            yield name[0].decode()
        position += length


def _unpacked(packed: bytes, method: int) -> bytes:
    import zlib

    import zstandard

    try:
        if method == _ZLIB:
            return zlib.decompressobj().decompress(packed, _NAMES)
        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        return decompressor.stream_reader(io.BytesIO(packed)).read(_NAMES)
    except (zlib.error, zstandard.ZstdError):
        return b""


def archs_alone(device: str, data: bytes) -> set[str]:
    """The arch of an ELF file for a device, CUDA or AMDGPU: from its notes, else from the flags in its header."""
    archs = {match[1].decode() for match in (_PTXAS if device == CUDA else _TARGET).finditer(data)}
    if archs or device != CUDA or len(data) < _FLAGS + 4:
        return archs
    (flags,) = struct.unpack_from("<I", data, _FLAGS)
    if data[_ABI] > _CUDA_OLD:
        return {f"sm_{flags >> 8 & 0xFF}"}
    return {f"sm_{flags & 0xFF}{'a' if flags & _CUDA_OLD_SPECIFIC else ''}"}


MAGIC = dynamic.MAGIC
_WHOLE = 24 << 20
# Bytes of a file that are faster to read at once than part by part.
_AT_ONCE = 256 << 10
_TAIL = 2 << 20
_DYNAMIC = 1 << 20
_MOST_VERSIONS = 16
# Bytes that are searched again with the next, so that no text is cut in two.
_OVERLAP = 256
# Bytes at the beginning of a file that describe its segments.
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

    `options` are compiler options that were recorded, each with its section. `char` is `signed` or
    `unsigned` where debug information says so. `versions` are texts that match the searched pattern, `version` is a
    component and the version that a library has of it. `device` are codegen archs of device code in it,
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


class OutsideWindow(Exception):
    """A read of a range of a large file that is not in memory."""


class Windows:
    """A file of which only some ranges are known; reading elsewhere raises OutsideWindow."""

    def __init__(self, size: int, ranges: Iterable[tuple[int, bytes]]) -> None:
        self.size = size
        self.position = 0
        self.ranges = tuple(ranges)

    def seek(self, position: int, /) -> None:
        """Go to a position."""
        self.position = position

    def read(self, size: int, /) -> bytes:
        """Bytes from there on, fewer at the end of the file or of a range."""
        if self.position >= self.size:
            return b""
        for start, data in self.ranges:
            if start <= self.position < start + len(data):
                begin = self.position - start
                return data[begin : begin + size]
        raise OutsideWindow


def read(
    head: bytes,
    stream: Readable,
    size: int,
    pattern: re.Pattern[bytes] | None,
    *,
    debug: bool = True,
) -> Elf:
    """An ELF file that begins with `head` and goes on in `stream`, which is read to its end.

    `pattern` finds version texts; without `debug` recorded options are not searched. A damaged file gives what
    could be read of it, and says so.
    """
    texts, code = _Texts(pattern), Scan()
    large = _Large()
    whole = _whole(head, stream, size) if size <= _WHOLE else None
    for chunk in large.data(head, stream, size) if whole is None else _data_of(whole, size):
        texts.add(chunk)
        code.add(chunk)
    file = large.file() if whole is None else whole
    machine = dynamic.machine(head)
    if machine in (CUDA, dynamic.AMDGPU) and whole is not None:
        code.archs |= archs_alone(machine, _piece(whole))
    fields: dict[str, Any] = {"versions": tuple(texts.versions), **_device(code)}
    try:
        fields["dynamic"] = linkage = dynamic.read(file)
        fields["version"] = dynamic.library_version(dynamic.File(file), linkage.soname)
    except OutsideWindow:
        pass
    except dynamic.DamagedElf as error:
        fields["damaged"] = str(error)
    if debug and whole is not None:
        fields |= _recorded(whole)
    return Elf(machine=machine, partial=whole is None, **fields)


def read_code(head: bytes, stream: Readable) -> Elf | None:
    """The device code in a file of another kind that begins with `head`, such as an archive; None without any."""
    code = Scan()
    data = head
    while data:
        code.add(data)
        data = stream.read(BLOCK)
    device = _device(code)
    return Elf(machine="", **device) if any(device.values()) else None


def _device(code: Scan) -> dict[str, Any]:
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
            texts = (match.decode("ascii", "replace") for match in self.pattern.findall(data))
            self.versions |= dict.fromkeys(texts)
            self.before = data[-_OVERLAP:]


# A file with random access: of one that lies in another as it is, most is never read.
def _whole(head: bytes, stream: Readable, size: int) -> IO[bytes] | Section:
    source = section(stream) if size > _AT_ONCE else None
    if source is not None:
        return source.part(source.position - len(head), size)
    # Pieces that are joined would be there twice.
    file = io.BytesIO()
    file.write(head)
    while (left := size - file.tell()) > 0 and (data := stream.read(min(left, BLOCK))):
        file.write(data)
    return file


# Bytes of a small file as far as they exist, by default all.
def _piece(file: IO[bytes] | Section, offset: int = 0, size: int = _WHOLE) -> bytes:
    if offset >= _WHOLE or size <= 0:
        return b""
    file.seek(offset)
    return file.read(min(size, _WHOLE))


# Byte order and width of a file; offset, entry size and length of its table of sections, and the index of their names.
def _section_table(file: IO[bytes] | Section) -> tuple[str, bool, int, int, int, int]:
    head = _piece(file, 0, 64)
    order, wide = "<>"[head[5] == 2], head[4] == 2
    (start,) = struct.unpack_from(order + "IQ"[wide], head, 40 if wide else 32)
    size, count, index = struct.unpack_from(order + "HHH", head, 58 if wide else 46)
    return order, wide, start, size, count, index


# The sections that may contain device code and texts: those that are loaded and no code of the processor, and what
# was put behind the last of them; all of a file without a table of them or with overlapping ones, so that each byte is
# searched once.
def _data_of(file: IO[bytes] | Section, whole: int) -> Iterator[bytes]:
    try:
        order, wide, start, size, count, _ = _section_table(file)
        form = struct.Struct(order + ("4xIQ8xQQ" if wide else "4xII4xII"))
        table = _piece(file, start, count * size + form.size)
        tables = [form.unpack_from(table, index * size) for index in range(count)]
        end = start + count * size if tables else 0
    except struct.error:
        tables, end = [], 0
    loaded = []
    for kind, flags, offset, length in tables:
        if kind == _PROGBITS and flags & _LOADED and not flags & _EXECUTABLE:
            loaded.append((offset, offset + length))
        end = max(end, offset + length) if kind != _NOBITS else end
    if not tables or sum(end - begin for begin, end in loaded) > whole:
        loaded, end = [], 0
    for offset, until in (*loaded, (end, whole)):
        yield _piece(file, offset, until - offset)


class _Large:
    def __init__(self) -> None:
        self.head = io.BytesIO()
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
            self.head.seek(begin)
            self.head.write(data)
            return
        # The dynamic section lies with the data, behind the code: in a library of a gigabyte far from head and end.
        if self.start < 0:
            try:
                self.start, _ = dynamic.File(self.head).dynamic
            except dynamic.DamagedElf:
                self.start = 0
        if self.start < self.count and begin < self.start + _DYNAMIC:
            self.dynamic += data[max(0, self.start - begin) :][: _DYNAMIC - len(self.dynamic)]
        self.tail.append(data)
        self.behind += len(data)
        while self.behind - len(self.tail[0]) >= _TAIL:
            self.behind -= len(self.tail.popleft())

    # The latest bytes without the code of the processor, as far as segments say: mixed ones say nothing.
    def data_of(self, data: bytes) -> Iterator[bytes]:
        if self.code is None and self.count >= _HEAD:
            try:
                self.code = dynamic.File(self.head).code
            except dynamic.DamagedElf:
                self.code = []
        begin = position = self.count - len(data)
        for start, end in self.code or ():
            if position < end and start < self.count:
                yield data[position - begin : max(0, start - begin)]
                position = min(end, self.count)
        yield data[position - begin :]

    def file(self) -> Windows:
        tail = (self.count - self.behind, b"".join(self.tail))
        head = (0, self.head.getvalue())
        return Windows(self.count, [head, (self.start, self.dynamic), tail])


def _recorded(file: IO[bytes] | Section) -> dict[str, Any]:
    names = _section_names(file)
    # pyelftools takes milliseconds for a file; most have neither, as their section names show.
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
    try:
        order, wide, start, size, count, index = _section_table(file)
        entry = _piece(file, start + index * size, 64)
        offset, length = struct.unpack_from(order + "IQ"[wide] * 2, entry, 24 if wide else 16)
    except struct.error:
        return _piece(file)
    return _piece(file, offset, length) if 0 < index < count else _piece(file)


def _by_sections(data: bytes) -> dict[str, Any]:
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(data))
    options: dict[tuple[str, str], None] = {}
    section = elf.get_section_by_name(_COMMAND_LINE)
    if section is not None:
        words = re.split(rb"[\0\s]+", section.data()[: 1 << 20])
        options |= dict.fromkeys((option, _COMMAND_LINE) for option in _options(words))
    # Without `strict` unwind tables alone, which every file has, count as debug information.
    producers, char = _debug(elf) if elf.has_dwarf_info(strict=True) else ([], "")
    for producer in producers:
        words = producer.split()
        options |= dict.fromkeys((option, "DW_AT_producer") for option in _options(words))
    return {"options": tuple(options), "char": char}


def _options(words: Iterable[bytes]) -> list[str]:
    options = dict.fromkeys(word.decode("utf-8", "replace") for word in words if word[:1] == b"-")
    return list(options)[:_MOST_OPTIONS]


def _debug(elf: Any) -> tuple[list[bytes], str]:
    info = elf.get_dwarf_info(relocate_dwarf_sections=True)
    producers: dict[bytes, None] = {}
    char = ""
    for unit in islice(info.iter_CUs(), _MOST_UNITS):
        top = unit.get_top_DIE()
        producer = top.attributes.get("DW_AT_producer")
        if producer is not None and isinstance(producer.value, bytes):
            producers[producer.value] = None
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
