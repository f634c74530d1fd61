"""Compiler options as evidence: recorded in files, set in the configuration or in bazelrc; and device code."""

from __future__ import annotations

import re
import shlex

from toolmatrix.inspection.elf import Elf
from toolmatrix.inspection.model import UNKEPT, FilePattern
from toolmatrix.inspection.record import Record, View
from toolmatrix.processors import processor

# Options that decide what a file runs on or goes with; the rest would only fill pages.
_TELLING = re.compile(
    r"-f(un)?signed-char|-m(arch|cpu|tune|abi|fpu|float-abi)=.*|-m(crc32|sse4.*|avx.*|fma|f16c)"
    r"|-f(no-)?(fast-math|lto.*|PIC|pic|pie|PIE|openmp)|-O.+|-g(\d|dwarf.*|gdb\d?)?|-frecord-gcc-switches|-std=.*|-D_GLIBCXX_USE_CXX11_ABI=.*"
)
_VARIABLE = re.compile(r"(.*_)?(C|CXX|CPP|LD|F|NVCC|HIPCC)FLAGS(_.*)?|CC_OPT_FLAGS|.*_COPTS?")
_COPT = re.compile(r"--(?:host_|per_file_)?(?:copt|cxxopt|conlyopt|linkopt)[= ]([^\s]+)")
_BAZELRC = FilePattern(r".*\.bazelrc", 64 << 10)
READS = (_BAZELRC,)
_PROMISES = ("CFLAGS", "CXXFLAGS")
# Where distributions and vendors install what they compiled.
_OWN_FILES = re.compile(
    r"(usr/(?!local/)|(s?bin|lib(\d\d)?|usr/local/cuda[^/]*|opt/(rocm|nvidia|conda)[^/]*)/).*"
)
# The sign of plain char in debug information without a flag, GCC manual, options controlling C dialect.
_CHAR = {"-fsigned-char": "unsigned", "-funsigned-char": "signed"}
_MARCH = re.compile(r"-m(?:arch|cpu)=.*")
# The record of GCC for x86 without such an option (its configuration, --with-arch).
_UNASKED = "-march=x86-64"
# Architectures with CRC32 whether it is named or not, and processors that are not known here.
_CRC_OF_ITS_OWN = re.compile(r"-march=armv(8\.[1-9]|9).*|-mcpu=.*")
# Options with which GCC may use CRC32 instructions, by its manual for AArch64 and for x86.
_CRC = re.compile(r"-m(?:arch|cpu)=.*\+crc\b.*|-mcrc32|-msse4(?:\.2)?")


def observe(view: View, record: Record) -> None:
    """Record options, the sign of char, and the codegen archs of device code."""
    settings(view, record)
    for path, elf in view.own.items():
        record.feature("char", elf.char, "DWARF", path)
        for option, section in elf.options:
            if _TELLING.fullmatch(option):
                _record_option(record, option, section, path)
    for path, elf in view.elves.items():
        for arch in elf.device:
            record.feature("codegen", arch, "device code", path)
        for reason in elf.unread:
            record.skip("codegen", f"/{path}: {reason}")
    _unkept(view, record)
    if not any(elf.options for elf in view.elves.values()):
        record.skip("recorded options", "no file was compiled with -frecord-gcc-switches or -g")


# Flags in the variables of the image without which files were compiled.
def _unkept(view: View, record: Record) -> None:
    promised = [
        option
        for name in _PROMISES
        for option in _options(view.env.get(name, ""))
        if option in _CHAR or _MARCH.fullmatch(option)
    ]
    for path, elf in view.own.items() if promised else ():
        if _OWN_FILES.fullmatch(path):
            continue
        options = {option for option, _ in elf.options}
        for flag in dict.fromkeys(promised):
            lacks = _lacks_char if flag in _CHAR else _lacks_arch
            if lacks(flag, options, elf):
                seen_by = elf.options[0][1] if elf.options else "DWARF"
                evidence = f"char {elf.char}" if flag in _CHAR and elf.char else "without"
                record.feature(f"{UNKEPT}:{flag}", evidence, seen_by, path)


def _lacks_char(flag: str, options: set[str], elf: Elf) -> bool:
    # Debug information has the sign itself; options imply it where plain char has another one without the flag.
    if elf.char or flag in options or not options:
        return elf.char == _CHAR[flag]
    return processor(elf.machine).char == _CHAR[flag]


def _lacks_arch(flag: str, options: set[str], _: Elf) -> bool:
    # A file without any recorded option proves nothing.
    named = [option for option in options if _MARCH.fullmatch(option) and option != _UNASKED]
    if not options or flag in options:
        return False
    knows_crc = any(_CRC.fullmatch(option) or _CRC_OF_ITS_OWN.fullmatch(option) for option in named)
    return not named or ("+crc" in flag and not knows_crc)


def settings(view: View, record: Record) -> None:
    """Record the options in variables and bazelrc files."""
    for name, value in view.env.items():
        for option in _options(value) if _VARIABLE.fullmatch(name) else ():
            _record_option(record, option, "configuration", f"Env {name}")
    for path_match, text in view.files(_BAZELRC):
        for line in text.splitlines():
            for setting in _COPT.finditer(line.partition("#")[0]):
                _record_option(record, setting[1].strip("\"'"), "bazelrc", path_match[0])


def _record_option(record: Record, option: str, seen_by: str, where: str) -> None:
    record.feature(f"flag:{option}", option, seen_by, where)
    if _CRC.fullmatch(option):
        record.feature("crc32", "yes", f"{seen_by}: {option}", where)


def _options(text: str) -> list[str]:
    try:
        # A variable may have an unbalanced quote, as it was never run.
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return [option for option in words if option.startswith("-")]
