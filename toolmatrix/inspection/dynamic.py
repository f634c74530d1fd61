"""The requests of an ELF file to the loader, its symbol versions, and the version that a library of CUDA has.

System V gABI, chapters 4 and 5, and the Linux Standard Base, "Symbol Versioning". pyelftools reads the same, and the
tests compare the two; at 7 ms a file it would take most of the time of an image, which has thousands.

The soname of a library of CUDA has the major alone; the rest is read, and never run. cudart and NCCL store it as a
number through the pointer argument of `cudaRuntimeGetVersion` and `ncclGetVersion` (CUDA Runtime API, "Version
Management"; nccl.h, NCCL_VERSION), cuDNN keeps it in objects beside `cudnnGetVersion`. The examined parts of
libraries are in tests/fixtures/library-versions.yaml.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from toolmatrix.value import Value

MAGIC = b"\x7fELF"
MACHINES = {
    (3, 32, "<"): "386",
    (8, 32, "<"): "mipsle",
    (8, 64, "<"): "mips64le",
    (21, 64, ">"): "ppc64",
    (21, 64, "<"): "ppc64le",
    (22, 64, ">"): "s390x",
    (40, 32, "<"): "arm",
    (62, 64, "<"): "amd64",
    (183, 64, "<"): "arm64",
    (243, 64, "<"): "riscv64",
    (258, 64, "<"): "loong64",
}
"""Go's names of architectures, which OCI uses, by e_machine, bits and byte order."""
CUDA, AMDGPU = "cuda", "amdgpu"
DEVICES = {(190, 64, "<"): CUDA, (224, 64, "<"): AMDGPU, (247, 64, "<"): "bpf"}
"""Machines that are no processors: their files are data for those that load them."""

# Types of segments (p_type) and tags of the dynamic section (d_tag). Sections are not read: strip may remove them, and
# no loader looks at them.
_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_EXECUTABLE = 1
"""The flag of segments (p_flags) with code."""
_NEEDED, _STRTAB, _SONAME, _RPATH, _RUNPATH = 1, 5, 14, 15, 29
_SYMTAB, _GNU_HASH = 6, 0x6FFFFEF5
# Further flags (DT_FLAGS_1), and the one for no directories of the system (DF_1_NODEFLIB).
_FLAGS, _APART = 0x6FFFFFFB, 0x800
_VERDEF, _VERDEFNUM, _VERNEED, _VERNEEDNUM = range(0x6FFFFFFC, 0x70000000)
# The flag (vna_flags) of a version without which the loader goes on.
_WEAK = 2
# Segments, tags or versions of a file; no linker makes more.
_MOST = 4096
_LONGEST = 4096
# A symbol version such as GLIBC_2.34: its family and its number.
_VERSION = re.compile(rb"([A-Z][A-Z_]*)_(\d{1,9}(?:\.\d{1,9})*)")


class Dynamic(Value):
    """The dynamic section, and the loader that a program asks for.

    `gives` are the newest symbol versions by family (`GLIBC`: `2.34`), `asks` those required of each library
    (`libc.so.6`: `GLIBC_2.34`). `is_apart`: it needs nothing of the directories of the system (`-z nodefaultlib`).
    """

    needed: tuple[str, ...] = ()
    soname: str = ""
    interpreter: str = ""
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    gives: tuple[tuple[str, str], ...] = ()
    asks: tuple[tuple[str, str], ...] = ()
    is_apart: bool = False


class DamagedElf(Exception):
    """A file that is cut off or has impossible values."""


def machine(head: bytes) -> str:
    """The architecture of a file with this head; a number where it has no name, empty for other files than ELF."""
    if len(head) < 20 or not head.startswith(MAGIC):
        return ""
    order = _order(head)
    (code,) = struct.unpack_from(order + "H", head, 18)
    key = (code, _bits(head), order)
    return MACHINES.get(key) or DEVICES.get(key, f"machine {code}")


def _order(head: bytes) -> str:
    return ">" if head[5] == 2 else "<"


def _bits(head: bytes) -> int:
    return 64 if head[4] == 2 else 32


class File:
    """A file with the sizes and order of its words; `code` are its ranges of nothing but code.

    Raises DamagedElf, and OutsideWindow where only parts of it are known.
    """

    def __init__(self, file: IO[bytes] | Any) -> None:
        self.file = file
        head = self.piece(0, 64, short=True)
        self.machine = machine(head)
        if len(head) < 52 or not head.startswith(MAGIC):
            raise DamagedElf("no ELF header")
        self.order = _order(head)
        self.wide = _bits(head) == 64
        self.word = "Q" if self.wide else "I"
        self.loads: list[tuple[int, int, int]] = []
        self.code: list[tuple[int, int]] = []
        self.dynamic: tuple[int, int] = (0, 0)
        self.interpreter = ""
        self._segments()

    def piece(self, offset: int, size: int, *, short: bool = False) -> bytes:
        """The `size` bytes at an offset."""
        # Beyond 63 bits seek raises OverflowError instead of finding nothing.
        if offset >= 1 << 62:
            raise DamagedElf(f"an offset of {offset}")
        self.file.seek(offset)
        data: bytes = self.file.read(size)
        if len(data) < size and not short:
            raise DamagedElf(f"{size} bytes at {offset} are cut off")
        return data

    def words(self, form: str, offset: int) -> tuple[int, ...]:
        """Numbers at an offset, by a format of struct without its byte order."""
        form = self.order + form
        return struct.unpack(form, self.piece(offset, struct.calcsize(form)))

    def _segments(self) -> None:
        (start,) = self.words(self.word, 32 if self.wide else 28)
        size, count = self.words("HH", 54 if self.wide else 42)
        if count > _MOST:
            raise DamagedElf(f"{count} segments")
        form = struct.Struct(self.order + ("IIQQQQ" if self.wide else "I" * 7))
        if count and size < form.size:
            raise DamagedElf(f"segments described in {size} bytes")
        table = self.piece(start, count * size)
        for position in range(0, count * size, size or 1):
            if self.wide:
                kind, flags, offset, address, _, length = form.unpack_from(table, position)
            else:
                kind, offset, address, _, length, _, flags = form.unpack_from(table, position)
            if kind == _LOAD:
                self.loads.append((address, offset, length))
                if flags & _EXECUTABLE:
                    self.code.append((offset, offset + length))
            elif kind == _DYNAMIC:
                self.dynamic = (offset, length)
            elif kind == _INTERPRETER:
                self.interpreter = self.text(offset).decode("utf-8", "surrogateescape")

        # Linkers that do not separate code from data put both behind the header,
        # https://sourceware.org/binutils/docs/ld, `-z separate-code`.
        if any(start == 0 for start, _ in self.code):
            self.code.clear()
        self.code.sort()

    def offset(self, address: int) -> int:
        """The offset in the file of an address."""
        for start, offset, length in self.loads:
            if start <= address < start + length:
                return offset + address - start
        raise DamagedElf(f"the address {address:#x} lies in no segment")

    def tags(self) -> Iterator[tuple[int, int]]:
        """The tags of the dynamic section with their values."""
        start, length = self.dynamic
        form = struct.Struct(self.order + self.word * 2)
        size = min(length // form.size, _MOST) * form.size
        data = self.piece(start, size, short=True)
        for tag, value in form.iter_unpack(data[: len(data) // form.size * form.size]):
            if tag == 0:
                return
            yield tag, value
        if len(data) < size:
            raise DamagedElf(f"{size} bytes at {start} are cut off")

    def text(self, offset: int) -> bytes:
        """The bytes up to the next zero."""
        return self.piece(offset, _LONGEST, short=True).partition(b"\0")[0]

    def at(self, address: int, size: int, *, short: bool = False) -> bytes:
        """The `size` bytes at an address; with `short` maybe fewer, and none for an address in no segment."""
        if short and not any(start <= address < start + length for start, _, length in self.loads):
            return b""
        return self.piece(self.offset(address), size, short=short)

    def symbol(self, name: str) -> tuple[int, int] | None:
        """The address and size of a symbol of a 64-bit library, by its GNU hash table."""
        tags = dict(self.tags())
        if not self.wide or not {_GNU_HASH, _SYMTAB, _STRTAB} <= tags.keys():
            return None
        table, symbols, names = (self.offset(tags[tag]) for tag in (_GNU_HASH, _SYMTAB, _STRTAB))
        buckets, first, blooms, _ = self.words("IIII", table)
        if not buckets:
            return None
        hash_value = gnu_hash(name)
        chains = table + 16 + 8 * blooms + 4 * buckets
        (index,) = self.words("I", chains - 4 * (buckets - hash_value % buckets))
        for _ in range(_MOST if index >= first else 0):
            (entry,) = self.words("I", chains + 4 * (index - first))
            # The lowest bit of a hash is not part of it: it marks the end of a chain.
            if entry | 1 == hash_value | 1:
                text, _, _, section, value, size = self.words("IBBHQQ", symbols + 24 * index)
                if section and self.text(names + text) == name.encode():
                    return value, size
            if entry & 1:
                break
            index += 1
        return None


def gnu_hash(name: str) -> int:
    """The hash of a name that GNU linkers write, https://sourceware.org/legacy-ml/binutils/2006-10/msg00377.html"""
    value = 5381
    for letter in name.encode():
        value = (value * 33 + letter) & 0xFFFFFFFF
    return value


def read(file: IO[bytes] | Any) -> Dynamic:
    """The dynamic section of a seekable file; empty where it has none. Raises DamagedElf."""
    elf = File(file)
    tags = list(elf.tags())
    by_tag = dict(tags)
    if _STRTAB not in by_tag:
        return Dynamic(interpreter=elf.interpreter)
    names = elf.offset(by_tag[_STRTAB])

    def strings(tag: int) -> tuple[str, ...]:
        texts = (elf.text(names + value) for kind, value in tags if kind == tag)
        return tuple(name.decode("utf-8", "surrogateescape") for name in texts)

    def folders(tag: int) -> tuple[str, ...]:
        return tuple(folder for path in strings(tag) for folder in path.split(":") if folder)

    return Dynamic(
        needed=strings(_NEEDED),
        soname="".join(strings(_SONAME)[:1]),
        interpreter=elf.interpreter,
        rpath=folders(_RPATH),
        runpath=folders(_RUNPATH),
        gives=newest(_defined_versions(elf, by_tag, names)),
        is_apart=bool(by_tag.get(_FLAGS, 0) & _APART),
        asks=tuple(
            (library.decode("utf-8", "surrogateescape"), f"{family}_{number}")
            for library, versions in _needed_versions(elf, by_tag, names)
            for family, number in newest(versions)
        ),
    )


def _defined_versions(elf: File, tags: dict[int, int], names: int) -> Iterator[bytes]:
    if _VERDEF not in tags:
        return
    offset = elf.offset(tags[_VERDEF])
    for _ in range(min(tags.get(_VERDEFNUM, 0), _MOST)):
        _, _, _, _, _, first, following = elf.words("HHHHIII", offset)
        # The first name of an entry is its own, the others are those it follows.
        (name,) = elf.words("I", offset + first)
        yield elf.text(names + name)
        if not following:
            return
        offset += following


def _needed_versions(
    elf: File, tags: dict[int, int], names: int
) -> Iterator[tuple[bytes, list[bytes]]]:
    if _VERNEED not in tags:
        return
    offset = elf.offset(tags[_VERNEED])
    for _ in range(min(tags.get(_VERNEEDNUM, 0), _MOST)):
        _, count, library, first, following = elf.words("HHIII", offset)
        versions = []
        entry = offset + first
        for _ in range(min(count, _MOST)):
            _, flags, _, name, further = elf.words("IHHII", entry)
            if not flags & _WEAK:
                versions.append(elf.text(names + name))
            entry += further
        yield elf.text(names + library), versions
        if not following:
            return
        offset += following


def newest(names: Iterable[bytes]) -> tuple[tuple[str, str], ...]:
    """The newest of symbol versions by family, such as `2.34` of GLIBC_2.2.5 and GLIBC_2.34."""
    families: dict[str, tuple[int, ...]] = {}
    for name in names:
        match = _VERSION.fullmatch(name)
        if match:
            number = tuple(map(int, match[2].split(b".")))
            family = match[1].decode("ascii")
            families[family] = max(families.get(family, ()), number)
    return tuple((name, ".".join(map(str, number))) for name, number in sorted(families.items()))


_CUDA_SONAME = re.compile(r"lib(cudart|nccl|cudnn)(_\w+)?\.so\.\d.*")
_OBJECTS = ("cudnn_graph_version", "cudnn_ops_infer_version", "cudnn_cnn_infer_version")
# Bytes of a function to search.
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


def library_version(file: File, soname: str) -> tuple[str, str] | None:
    """The component that a library is, and its version as far as it has one; raises OutsideWindow and DamagedElf."""
    match = _CUDA_SONAME.fullmatch(soname)
    if match is None:
        return None
    if match[1] == "cudnn":
        return _cudnn(file)
    name, component, version = _FUNCTIONS[match[1]]
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
        match = _STORES_X86.match(code)
        return int.from_bytes(match[1], "little") if match else None
    if machine != "arm64" or len(code) < 24:
        return None
    *begin, load, zero, store, back = struct.unpack_from("<6I", code)
    tests = [code if code == _MOV_X1_X0 else code & 0xFF00001F for code in begin]
    fits = (
        sorted(tests) == sorted((_CBZ_X0, _MOV_X1_X0))
        and load & 0xFFE0001F == _MOVZ_W2
        and (zero, store, back) == (_MOVZ_W0_0, _STR_W2_X1, _RET)
    )
    return load >> 5 & 0xFFFF if fits else None


def _calls_x86(code: bytes, address: int) -> Iterator[int]:
    # A byte that only looks like `call` leads to code that stores no number.
    index = code.find(b"\xe8")
    while 0 <= index <= len(code) - 5:
        (step,) = struct.unpack_from("<i", code, index + 1)
        yield address + index + 5 + step
        index = code.find(b"\xe8", index + 1)


def _calls_arm(code: bytes, address: int) -> Iterator[int]:
    for index, (instruction,) in enumerate(struct.iter_unpack("<I", code[: len(code) & ~3])):
        if instruction & 0xFC000000 == _BL:
            step = (instruction & 0x3FFFFFF) - ((instruction & 0x2000000) << 1)
            yield address + 4 * (index + step)


_CALLS = {"amd64": _calls_x86, "arm64": _calls_arm}
