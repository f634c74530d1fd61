"""Compiler options as evidence: recorded in files, set in the configuration or in bazelrc; and device code."""

from __future__ import annotations

import re
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolmatrix.inventory.record import Record, View

_TELLING = re.compile(
    r"-f(un)?signed-char|-m(arch|cpu|tune|abi|fpu|float-abi)=.*|-m(crc32|sse4.*|avx.*|fma|f16c)"
    r"|-f(no-)?(fast-math|lto.*|PIC|pic|pie|PIE|openmp)|-O.+|-std=.*|-D_GLIBCXX_USE_CXX11_ABI=.*"
)
"""Options of files that tell what they run on or go with; the rest would only fill pages."""
_VARIABLE = re.compile(r"(.*_)?(C|CXX|CPP|LD|F|NVCC|HIPCC)FLAGS(_.*)?|CC_OPT_FLAGS|.*_COPTS?")
_COPT = re.compile(r"--(?:host_|per_file_)?(?:copt|cxxopt|conlyopt|linkopt)[= ]([^\s]+)")
_CRC = re.compile(r"-m(?:arch|cpu)=.*\+crc\b.*|-mcrc32|-msse4(?:\.2)?")
"""Options with which GCC may use CRC32 instructions, by its manual for AArch64 and for x86."""


def observe(view: View, record: Record) -> None:
    """Put in options, the sign of char, and the codegen archs of device code."""
    settings(view, record)
    _put(record, _recorded(view))
    for path, elf in view.elves.items():
        if elf.char and elf.machine == view.machine:
            record.feature("char", elf.char, "DWARF", path)
        for arch in elf.device:
            record.feature("codegen", arch, "device code", path)
        for reason in elf.unread:
            record.skip("codegen", f"/{path}: {reason}")
    if not any(elf.options for elf in view.elves.values()):
        record.skip("recorded options", "no file was compiled with -frecord-gcc-switches or -g")


def settings(view: View, record: Record) -> None:
    """Put in the options that variables and bazelrc files give to whatever is compiled."""
    _put(record, _set(view))


def _put(record: Record, options: Iterable[tuple[str, str, str]]) -> None:
    for option, seen_by, where in options:
        record.feature(f"flag:{option}", option, seen_by, where)
        if _CRC.fullmatch(option):
            record.feature("crc32", "yes", f"{seen_by}: {option}", where)


def _set(view: View) -> Iterator[tuple[str, str, str]]:
    """Options of variables of the configuration, and of bazelrc files."""
    for name, value in view.env.items():
        if _VARIABLE.fullmatch(name):
            for word in _words(value):
                yield word, "configuration", f"Env {name}"
    for path, data in view.kept.items():
        if path.endswith("bazelrc"):
            for line in data.decode("utf-8", "replace").splitlines():
                for found in _COPT.finditer(line.partition("#")[0]):
                    yield found[1].strip("\"'"), "bazelrc", path


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return [word for word in words if word.startswith("-")]


def _recorded(view: View) -> Iterator[tuple[str, str, str]]:
    for path, elf in view.elves.items():
        for option, section in elf.options:
            if elf.machine == view.machine and _TELLING.fullmatch(option):
                yield option, section, path
