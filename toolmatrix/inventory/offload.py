"""Device code inside files: for which archs and gfx, read from the headers in front of it, without any GPU.

CUDA: a fat binary begins with a magic number; each image in it has a header with its kind (PTX or cubin) and the
number of its arch. Its layout is not published; it was read out of what nvcc writes and is tested against that.
HIP: https://clang.llvm.org/docs/ClangOffloadBundler.html, section "Bundled Binary File Layout".
"""

from __future__ import annotations

import re
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FATBIN = struct.pack("<I", 0xBA55ED50)
_FATBIN_HEADER = struct.Struct("<IHHQ")
"""Magic, version, bytes of this header, bytes of the images that follow."""
_IMAGE = struct.Struct("<HHIQIIHHI")
"""Kind, version, bytes of this header, bytes of the image, two further sizes, two halves of a version, arch."""
_KINDS = {1: "compute_", 2: "sm_"}
_ARCHS = range(10, 1000)
_MOST_IMAGES = 256

_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
_COUNT = struct.Struct("<Q")
_PART = struct.Struct("<QQQ")
"""Offset and bytes of an image, and bytes of its name, which follows."""
_GFX = re.compile(rb"gfx[0-9a-f]+(?::[a-z]+[+-])*")
_LONGEST_NAME = 256

OVERLAP = 4096
"""Bytes of one block that are looked at again with the next, so that no header is cut in two."""


def archs(data: bytes) -> set[str]:
    """The archs of the device code whose headers are in this piece of a file, as `sm_`, `compute_` (PTX) and gfx names.

    Images whose headers lie beyond the piece are not in it.
    """
    return {*_cuda(data), *_hip(data)}


def _cuda(data: bytes) -> Iterator[str]:
    start = data.find(_FATBIN)
    while start >= 0:
        yield from _images(data, start)
        start = data.find(_FATBIN, start + 1)


def _images(data: bytes, start: int) -> Iterator[str]:
    if start + _FATBIN_HEADER.size > len(data):
        return
    _, _, header, size = _FATBIN_HEADER.unpack_from(data, start)
    place = start + header
    end = min(place + size, len(data) - _IMAGE.size)
    for _ in range(_MOST_IMAGES):
        if place > end:
            return
        kind, _, inner, length, *_, arch = _IMAGE.unpack_from(data, place)
        if kind not in _KINDS or arch not in _ARCHS or inner < _IMAGE.size:
            return
        yield f"{_KINDS[kind]}{arch}"
        place += inner + length


def _hip(data: bytes) -> Iterator[str]:
    start = data.find(_BUNDLE)
    while start >= 0:
        place = start + len(_BUNDLE)
        if place + _COUNT.size <= len(data):
            (count,) = _COUNT.unpack_from(data, place)
            yield from _parts(data, place + _COUNT.size, min(count, _MOST_IMAGES))
        start = data.find(_BUNDLE, start + 1)


def _parts(data: bytes, place: int, count: int) -> Iterator[str]:
    for _ in range(count):
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
