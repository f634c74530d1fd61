"""The version that a library of CUDA has of itself, where its soname tells the major alone; read, never run.

cudart and NCCL store it as a number through the pointer that `cudaRuntimeGetVersion` and `ncclGetVersion` are given
(CUDA Runtime API, "Version Management"; nccl.h, NCCL_VERSION), cuDNN keeps it in objects beside `cudnnGetVersion`.
The parts of libraries that were looked at are in tests/fixtures/library-versions.yaml.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator

from toolmatrix.inventory.dynamic import File

_SONAME = re.compile(r"lib(cudart|nccl|cudnn)(_\w+)?\.so\.\d.*")
_OBJECTS = ("cudnn_graph_version", "cudnn_ops_infer_version", "cudnn_cnn_infer_version")
# Bytes of a function that are looked at.
_LARGEST = 4096
# `test %rdi,%rdi; je; movl $NUMBER,(%rdi); xor %eax,%eax; ret`, Intel SDM volume 2.
_STORES_X86 = re.compile(rb"\x48\x85\xff\x74.\xc7\x07(.{4})\x31\xc0\xc3", re.DOTALL)
# `endbr64` and `bti c`, with which a function may begin.
_MARKED = (b"\xf3\x0f\x1e\xfa", b"\x5f\x24\x03\xd5")
_CBZ_X0, _MOV_X1_X0, _MOVZ_W2, _MOVZ_W0_0, _STR_W2_X1, _RET, _BL = (
    *(0xB4000000, 0xAA0003E1, 0x52800002, 0x52800000, 0xB9000022, 0xD65F03C0),
    0x94000000,
)
"""`cbz x0; mov x1,x0; mov w2,#NUMBER; mov w0,#0; str w2,[x1]; ret`, the first two in either order; and `bl`."""


def read(file: File, soname: str) -> tuple[str, str] | None:
    """The component that a library is, and its version as far as it tells; raises NotKept and DamagedElf."""
    found = _SONAME.fullmatch(soname)
    if found is None:
        return None
    if found[1] == "cudnn":
        return _cudnn(file)
    name, component, version = _FUNCTIONS[found[1]]
    symbol = file.symbol(name)
    numbers = {*_numbers(file, *symbol)} if symbol else set()
    text = version(numbers.pop()) if len(numbers) == 1 else ""
    return (component, text) if text else None


def _cudnn(file: File) -> tuple[str, str] | None:
    # An object of four bytes: patch level, minor, major and zero.
    for name in _OBJECTS:
        symbol = file.symbol(name)
        if symbol and symbol[1] == 4:
            patch, minor, major, zero = file.at(symbol[0], 4)
            if major and not zero:
                return "cudnn", f"{major}.{minor}.{patch}"
    return None


def _cudart(number: int) -> str:
    # 1000 for the major and 10 for the minor; there is no patch level in it.
    major, rest = divmod(number, 1000)
    return f"{major}.{rest // 10}" if major and not rest % 10 else ""


def _nccl(number: int) -> str:
    # Of four digits up to 2.8, of five from 2.9 on, see NCCL_VERSION in nccl.h.
    major, rest = divmod(number, 10_000 if number >= 10_000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}" if major else ""


_FUNCTIONS: dict[str, tuple[str, str, Callable[[int], str]]] = {
    "cudart": ("cudaRuntimeGetVersion", "cuda", _cudart),
    "nccl": ("ncclGetVersion", "nccl", _nccl),
}


def _numbers(file: File, address: int, size: int) -> Iterator[int]:
    code = file.at(address, min(size, _LARGEST))
    own = _stored(code, file.machine)
    if own is not None:
        yield own
        return
    calls = _CALLS.get(file.machine)
    for target in set(calls(code, address)) if calls else ():
        number = _stored(file.at(target, 32, short=True), file.machine)
        if number is not None:
            yield number


def _stored(code: bytes, machine: str) -> int | None:
    code = code[4:] if code.startswith(_MARKED) else code
    if machine == "amd64":
        found = _STORES_X86.match(code)
        return int.from_bytes(found[1], "little") if found else None
    if machine != "arm64" or len(code) < 24:
        return None
    *begin, load, zero, store, back = struct.unpack_from("<6I", code)
    tests = [word & 0xFF00001F if word != _MOV_X1_X0 else word for word in begin]
    fits = (
        sorted(tests) == sorted((_CBZ_X0, _MOV_X1_X0))
        and load & 0xFFE0001F == _MOVZ_W2
        and (zero, store, back) == (_MOVZ_W0_0, _STR_W2_X1, _RET)
    )
    return load >> 5 & 0xFFFF if fits else None


def _calls_x86(code: bytes, address: int) -> Iterator[int]:
    # A byte that only looks like `call` leads to what stores no number.
    place = code.find(b"\xe8")
    while 0 <= place <= len(code) - 5:
        (step,) = struct.unpack_from("<i", code, place + 1)
        yield address + place + 5 + step
        place = code.find(b"\xe8", place + 1)


def _calls_arm(code: bytes, address: int) -> Iterator[int]:
    for place, (word,) in enumerate(struct.iter_unpack("<I", code[: len(code) & ~3])):
        if word & 0xFC000000 == _BL:
            step = (word & 0x3FFFFFF) - ((word & 0x2000000) << 1)
            yield address + 4 * (place + step)


_CALLS = {"amd64": _calls_x86, "arm64": _calls_arm}
