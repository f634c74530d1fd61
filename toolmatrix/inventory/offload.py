"""Device code inside files: for which archs and gfx, read from the headers in front of it, without any GPU.

CUDA: a fat binary begins with a magic number; each image in it has a header with its kind (PTX or cubin), the number
of its arch and flags, of which two tell arch-specific (`a`) and family-specific (`f`) code. Its layout is not
published; it was read out of what nvcc writes and is tested against that. A cubin by itself is an ELF file: the flags
in its header are those of LLVM's BinaryFormat/ELF.h (EF_CUDA_*), and a note holds the command line of ptxas.
HIP: https://clang.llvm.org/docs/ClangOffloadBundler.html, sections "Bundled Binary File Layout" and "Compression and
Decompression"; code objects by themselves tell their target in a note, https://llvm.org/docs/AMDGPUUsage.html.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator

from toolmatrix.inventory.dynamic import CUDA

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
_PART = struct.Struct("<QQQ")
_MOST_PARTS = 256
_GFX = re.compile(rb"gfx[0-9a-f]+(?:-\d+)*(?:-generic)?(?::[a-z]+[+-])*")
_LONGEST_NAME = 256

COMPRESSED = b"CCOB"
# Bytes of the header of a compressed bundle by its version, a number after the magic.
_COMPRESSED_HEADERS = {1: 20, 2: 24, 3: 32}
_ZLIB, _ZSTD = 0, 1
# Bytes of an unpacked bundle in which its names stand.
_NAMES = 32 << 10

_PTXAS = re.compile(rb"-arch (sm_\d+[af]?)\b")
_TARGET = re.compile(rb"amdgcn-amd-amdhsa-\w*-(" + _GFX.pattern + rb")")
_ABI, _FLAGS = 8, 48
"""Offsets in an ELF header of the version of the ABI, and of its flags."""
_CUDA_OLD, _CUDA_OLD_SPECIFIC = 7, 0x800
"""Up to this version of the ABI the arch is in the first byte of the flags, and arch-specific code has this flag."""

OVERLAP = 192 << 10
"""Bytes that are looked at again with the next block, so that no header is cut in two: a block of zstd, and more."""


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

    # Read every header that begins before a place.
    def _look(self, end: int) -> None:
        if end <= self._done:
            return
        place = self._images(max(self._done, self._next))
        while place < end:
            start = self._data.find(FATBIN, place - self._base, end - self._base + len(FATBIN) - 1)
            until = self._base + start if start >= 0 else end
            for magic, read in ((BUNDLE, self._bundle), (COMPRESSED, self._compressed)):
                self._each(magic, read, place, until)
            place = self._fatbin(start) if start >= 0 else end
        self._done = end

    def _each(self, magic: bytes, read: Callable[[int], None], place: int, until: int) -> None:
        end = until - self._base
        start = self._data.find(magic, place - self._base, end + len(magic) - 1)
        while start >= 0:
            read(start)
            start = self._data.find(magic, start + 1, end + len(magic) - 1)

    # Read a fat binary; returned is where to go on, behind the code in it as far as that is known.
    def _fatbin(self, start: int) -> int:
        if start + _FATBIN_HEADER.size <= len(self._data):
            _, _, header, size = _FATBIN_HEADER.unpack_from(self._data, start)
            if header <= _LONGEST_NAME:
                self._next = self._base + start + header
                self._end = self._next + size
        return self._images(self._base + start + 1)

    # Read the headers of images up to the end of a fat binary, or to one that is not there yet; returned is where to
    # go on, which is not before a place.
    def _images(self, place: int) -> int:
        place = max(place, self._next)
        while self._next + _IMAGE.size <= self._end:
            start = self._next - self._base
            if start + _IMAGE.size > len(self._data):
                return place
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
            place = max(place, self._next)
        self._next = self._end = 0
        return place

    def _spend(self) -> bool:
        self._left -= 1
        if self._left < 0:
            self.unread.add(f"there are more than {_MOST_HEADERS} headers of device code")
        return self._left >= 0

    def _bundle(self, start: int) -> None:
        if self._spend():
            self.archs |= set(_parts(self._data, start))

    def _compressed(self, start: int) -> None:
        # The names stand at the beginning of a bundle, so no more of it is unpacked.
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
            self.archs |= set(_parts(unpacked, 0))


def _parts(data: bytes, start: int) -> Iterator[str]:
    place = start + len(BUNDLE)
    if place + _COUNT.size > len(data):
        return
    (count,) = _COUNT.unpack_from(data, place)
    place += _COUNT.size
    for _ in range(min(count, _MOST_PARTS)):
        if place + _PART.size > len(data):
            return
        _, _, length = _PART.unpack_from(data, place)
        if length > _LONGEST_NAME:
            return
        place += _PART.size
        name = _GFX.search(data, place, place + length)
        if name:
            yield name[0].decode()
        place += length


def _unpacked(packed: bytes, method: int) -> bytes:
    import io
    import zlib

    import zstandard

    try:
        if method == _ZLIB:
            return zlib.decompressobj().decompress(packed, _NAMES)
        made = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        return made.stream_reader(io.BytesIO(packed)).read(_NAMES)
    except (zlib.error, zstandard.ZstdError):
        return b""


def archs_alone(device: str, data: bytes) -> set[str]:
    """The arch of an ELF file for a device, CUDA or AMDGPU: as its notes tell, else the flags in its header."""
    found = {match[1].decode() for match in (_PTXAS if device == CUDA else _TARGET).finditer(data)}
    if found or device != CUDA or len(data) < _FLAGS + 4:
        return found
    (flags,) = struct.unpack_from("<I", data, _FLAGS)
    if data[_ABI] > _CUDA_OLD:
        return {f"sm_{flags >> 8 & 0xFF}"}
    return {f"sm_{flags & 0xFF}{'a' if flags & _CUDA_OLD_SPECIFIC else ''}"}
