"""What the headers of a CUDA toolkit accept: host compilers that pass their guard, and glibc versions that work.

g++ preprocesses the headers with the macros of each host compiler; their text is not parsed. Headers of the system are
left out, so that the result is the same on every machine.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from toolmatrix.errors import HarvestRefused, Position
from toolmatrix.harvest import programs
from toolmatrix.harvest.families import counted, series
from toolmatrix.value import Value

_Version = TypeVar("_Version")

COMPILER = "g++"
OVERRIDE = "-allow-unsupported-compiler"
"""The option of nvcc that skips the guard: it defines the macro of `_UNGUARDED`."""
_UNGUARDED = "-D__NV_NO_HOST_COMPILER_CHECK=1"
_NVCC = ("-D__CUDACC__", "-D__CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__")
_LINUX = (*_NVCC, "-D__linux__", "-D__LP64__")
_WINDOWS = (*_NVCC, "-D_WIN32")
_SYSTEM = ("features.h", "crtdefs.h", "corecrt.h", "cstdarg")
"""The headers of the system that host_config.h includes; its guard needs nothing in them."""
_NEVER = 99
"""A major version far in the future, which every guard refuses."""
_GNU = counted("gcc", 4, _NEVER)
_CLANG = counted("clang", 3, _NEVER)
_MICROSOFT = [*range(1200, 3000), 10 * _NEVER**2]
_ERROR = re.compile(r":(\d+):\d+: (?:fatal )?error: (.*)")
_FROM = re.compile(r"from probe\.cc:(\d+)")
_PROBE = "probe.cc"
_ONCE = re.compile(rb"^[ \t]*#[ \t]*pragma[ \t]+once\b", re.MULTILINE)
_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"]([\w./+-]+)[>\"]", re.MULTILINE)
_QUALIFIERS = ("__host__", "__device__", "__device_builtin__", "__cudart_builtin__")
# The macros of glibc's <features.h>: with _GNU_SOURCE, which g++ always sets, functions of C23 are declared.
# One toolkit checks __GNUC_PREREQ for the version of glibc, so it is defined as well.
_FEATURES = """\
#define __GLIBC__ {0}
#define __GLIBC_MINOR__ {1}
#define __GLIBC_PREREQ(major, minor) \\
    ((__GLIBC__ << 16) + __GLIBC_MINOR__ >= ((major) << 16) + (minor))
#define __GLIBC_USE_ISOC23 1
#define __GNUC_PREREQ(major, minor) \\
    ((__GNUC__ << 16) + __GNUC_MINOR__ >= ((major) << 16) + (minor))
#define __THROW noexcept (true)
"""


class HostCompilers(Value):
    """The host compilers that a guard accepts, as selectors; "" without a restriction."""

    gcc: str = ""
    clang: str = ""
    # The first Clang that passes the guard; documentation may name a later one.
    clang_oldest: str = ""
    msvc: str = ""
    # The condition that refuses the first GCC, as written in the header.
    guard: str = ""
    override: str = ""


class GlibcCeiling(Value):
    """The glibc that the headers compile with, as a selector, and the functions that they declare as glibc does."""

    glibc: str
    guards: tuple[str, ...]


def host_compilers(text: bytes, machine: str, label: str) -> HostCompilers:
    """The compilers that crt/host_config.h accepts on Linux, and the releases of Microsoft's compiler on Windows.

    Raises HarvestRefused for a header that accepts everything or nothing, or is incomplete, and ToolMissing.
    """
    with tempfile.TemporaryDirectory(prefix="toolmatrix-") as folder:
        guard = _Guard(folder, text, label)
        gnu = (*_LINUX, f"-D__{machine}__")

        def gcc(version: tuple[int, int]) -> tuple[str, ...]:
            return (*gnu, f"-D__GNUC__={version[0]}", f"-D__GNUC_MINOR__={version[1]}")

        def clang(version: tuple[int, int]) -> tuple[str, ...]:
            # Every Clang claims to be GCC 4.2.
            own = (f"-D__clang_major__={version[0]}", f"-D__clang_minor__={version[1]}")
            return (*gcc((4, 2)), "-D__clang__", *own)

        def microsoft(version: int) -> tuple[str, ...]:
            return (*_WINDOWS, f"-D_MSC_VER={version}")

        # The conditions for Clang are beside the guard for the GCC that it claims to be.
        gccs = guard.passing(gcc, _GNU)
        if not gccs:
            raise HarvestRefused(
                "the header does not check host compilers",
                where=Position(label),
                expected="a header that accepts some GCC and rejects later ones",
                found="every GCC is accepted, or none",
            )
        refused = _GNU[_GNU.index(gccs[-1]) + 1]
        clangs = guard.passing(clang, _CLANG)
        versions = guard.passing(microsoft, _MICROSOFT)
        return HostCompilers(
            gcc="<=" + series("gcc", *gccs[-1]),
            clang="<=" + series("clang", *clangs[-1]) if clangs else "",
            clang_oldest=series("clang", *clangs[0]) if clangs and clangs[0] != _CLANG[0] else "",
            msvc=f">={versions[0]},<{versions[-1] + 1}" if versions else "",
            guard=guard.condition(gcc(refused)),
            override=OVERRIDE if guard.passes((*gcc(refused), _UNGUARDED)) else "",
        )


def glibc_ceiling(text: bytes, declared: Mapping[str, Sequence[str]], label: str) -> GlibcCeiling:
    """The first glibc whose functions conflict with the declarations in crt/math_functions.h.

    `declared` has the functions of one double that each version of glibc added, the oldest version first. Raises
    HarvestRefused for a header that lacks one of them, and ToolMissing.
    """
    with tempfile.TemporaryDirectory(prefix="toolmatrix-") as folder:
        _write(folder, "crt/math_functions.h", text)
        # Normalized below `/`, so that no `..` of a header leads out of the folder.
        for name in set(_INCLUDE.findall(text)) - {b"features.h"}:
            _write(folder, os.path.normpath("/" + name.decode())[1:], b"")
        guards: list[str] = []
        ceiling = ""
        for version, functions in declared.items():
            _write(folder, "features.h", _FEATURES.format(*version.split(".")).encode())
            _refuse_unread(folder, label)
            # Without its includes the header has errors anyway: only an additional one is a conflict.
            before = _complaints(folder, "")
            for function in functions:
                if not re.search(rb"\bdouble\s+%s\s*\(" % function.encode(), text):
                    raise HarvestRefused(
                        f"the header does not declare `{function}`",
                        where=Position(label),
                        expected="crt/math_functions.h of a CUDA toolkit",
                    )
                if _complaints(folder, function) - before:
                    ceiling = ceiling or version
                else:
                    guards.append(function)
    return GlibcCeiling(glibc=f"<{ceiling}" if ceiling else "*", guards=tuple(guards))


class _Guard:
    """A host_config.h in a directory of its own, to run the preprocessor on."""

    def __init__(self, folder: str, text: bytes, label: str) -> None:
        self._folder = folder
        # It is included once for each compiler, so its macros are undefined each time and the pragma is removed.
        text = _ONCE.sub(b"", text)
        self._macros = {name.decode() for name in _DEFINE.findall(text)}
        self._lines = text.decode("utf-8", "replace").splitlines()
        self._label = label
        _write(folder, "host_config.h", text)
        for name in _SYSTEM:
            _write(folder, f"system/{name}", b"")

    def passing(
        self, words: Callable[[_Version], tuple[str, ...]], versions: Sequence[_Version]
    ) -> list[_Version]:
        """The first run of consecutive versions that pass; none if there is no guard or nothing passes."""
        met = self._errors([words(version) for version in versions])
        passed: list[_Version] = []
        for version, lines in zip(versions, met, strict=True):
            if not lines:
                passed.append(version)
            elif passed:
                break
        # Every guard refuses the version in the far future.
        if not met[-1] and len(passed) < len(versions):
            raise HarvestRefused(
                "the header does not check host compilers",
                where=Position(self._label),
                expected="a header that rejects later compilers",
                found=f"`{' '.join(words(versions[-1])[-2:])}` is accepted",
            )
        return [] if not met[-1] else passed

    def passes(self, words: tuple[str, ...]) -> bool:
        return not self._errors([words])[0]

    def condition(self, words: tuple[str, ...]) -> str:
        """The condition above the `#error` for these options, as written in the header."""
        line = self._errors([words])[0][0]
        above = (text.strip() for text in reversed(self._lines[:line]))
        return next((text for text in above if text.startswith("#if")), "")

    def _errors(self, cases: Sequence[tuple[str, ...]]) -> list[list[int]]:
        """The lines of the `#error` directives for the options of each case, all in one run."""
        names = {name for words in cases for name, _ in map(_parse_define, words)}
        forget = [f"#undef {name}" for name in sorted(self._macros | names)]
        lines: list[str] = []
        errors: dict[int, list[int]] = {}
        for words in cases:
            lines += forget
            lines += [f"#define {name} {value or 1}" for name, value in map(_parse_define, words)]
            lines.append('#include "host_config.h"')
            errors[len(lines)] = []
        _write(self._folder, _PROBE, "\n".join([*lines, ""]).encode())
        # -undef removes the macros of g++ itself, so that only those of the case count.
        output = _compile(self._folder, "-E", "-undef", "-isystem", "system", _PROBE)
        met: list[int] = []
        consistent = bool(output.status) == bool(_ERROR.search(output.text))
        other = [] if consistent else [output.text.strip()[:200]]
        for line in output.text.splitlines():
            if origin := _FROM.search(line):
                met = errors[int(origin[1])]
            elif error := _ERROR.search(line):
                met.append(int(error[1]))
                # A missing header is an error as well, which must not count as the guard.
                other += [] if error[2].startswith("#error") else [error[2]]
        if other:
            raise HarvestRefused(
                "the header cannot be read",
                where=Position(self._label),
                expected="crt/host_config.h of a CUDA toolkit, and what it includes of the toolkit",
                found=other[0],
            )
        return [*errors.values()]


def _parse_define(option: str) -> tuple[str, str]:
    name, _, value = option.removeprefix("-D").partition("=")
    return name, value


def _refuse_unread(folder: str, label: str) -> None:
    output = _compile(folder, "-E", "-w", "-I.", *_NVCC, "crt/math_functions.h")
    errors = _ERROR.findall(output.text)
    if errors or output.status:
        raise HarvestRefused(
            "the header cannot be read",
            where=Position(label),
            expected="crt/math_functions.h of a CUDA toolkit",
            found=errors[0][1] if errors else output.text.strip()[:200],
        )


def _complaints(folder: str, function: str) -> set[tuple[str, str]]:
    """The errors of g++ in the header if the C library declares a function of one double, and its variant for float."""
    # Declared for both, as a guard may be right for only one. Without a function there are as many lines, so that the
    # positions of errors do not change.
    declared = (
        f'extern "C" double {function}(double) __THROW;\n'
        f'extern "C" float {function}f(float) __THROW;\n'
        if function
        else "\n\n"
    )
    start = f"#include <features.h>\n{declared}"
    _write(folder, _PROBE, f'{start}#include "crt/math_functions.h"\n'.encode())
    # Macros of the missing headers; declarations are the same without them.
    empty = [f"-D{name}=" for name in (*_QUALIFIERS, "_CRTIMP", "_ACRTIMP")]
    options = ("-fsyntax-only", "-w", "-fmax-errors=0", "-I.", "-D__forceinline__=inline")
    output = _compile(folder, *options, *_NVCC, *empty, _PROBE)
    return set(_ERROR.findall(output.text))


def _compile(folder: str, *words: str) -> programs.ProgramOutput:
    # Without the headers of this machine.
    sink = ("-o", os.devnull)
    return programs.ask([COMPILER, "-x", "c++", "-nostdinc", *sink, *words], folder)


def _write(folder: str, name: str, data: bytes) -> None:
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
