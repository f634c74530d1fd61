"""What the headers of a CUDA toolkit take: the compilers that their guards let pass, and the glibc they compile beside.

g++ is asked, as any other host compiler by its macros; the text of the headers is not read for it. What the system
would bring is left out, so that the answer is the same on every machine.
"""

from __future__ import annotations

import os
import re
import tempfile

from toolmatrix.errors import HarvestRefused, Position
from toolmatrix.harvest import programs
from toolmatrix.harvest.series import counted, series
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

COMPILER = "g++"
OVERRIDE = "-allow-unsupported-compiler"
"""The option of nvcc by which the guard is not asked: it defines what `_UNGUARDED` does."""
_UNGUARDED = "-D__NV_NO_HOST_COMPILER_CHECK=1"
_NVCC = ("-D__CUDACC__", "-D__CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__")
_LINUX = (*_NVCC, "-D__linux__", "-D__LP64__")
_WINDOWS = (*_NVCC, "-D_WIN32")
_SYSTEM = ("features.h", "crtdefs.h", "corecrt.h", "cstdarg")
"""The headers of the system that host_config.h includes; nothing in them counts for its guard."""
_NEVER = 99
"""A series that no guard lets pass, because it is far from being there."""
_GNU = counted("gcc", 4, _NEVER)
_CLANG = counted("clang", 3, _NEVER)
_MICROSOFT = [*range(1200, 3000), 10 * _NEVER**2]
_ERROR = re.compile(r":(\d+):\d+: (?:fatal )?error: (.*)")
_FROM = re.compile(r"from asked\.cc:(\d+)")
_PROBE = "asked.cc"
_ONCE = re.compile(rb"^[ \t]*#[ \t]*pragma[ \t]+once\b", re.MULTILINE)
_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"]([\w./+-]+)[>\"]", re.MULTILINE)
_QUALIFIERS = ("__host__", "__device__", "__device_builtin__", "__cudart_builtin__")
# What glibc's <features.h> defines: with _GNU_SOURCE, which g++ always has, the functions of C23 are declared.
# A released toolkit asks __GNUC_PREREQ for the version of glibc, so that one is there too.
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
    """The host compilers that a guard lets pass, as selectors; "" where it says nothing."""

    gcc: str = ""
    clang: str = ""
    # The first Clang that passes, as the guard knows it: what is documented may be later.
    clang_oldest: str = ""
    msvc: str = ""
    # The condition that the first GCC which is refused meets, as printed.
    guard: str = ""
    override: str = ""


class GlibcCeiling(Value):
    """The glibc that the headers compile beside, as a selector, and the functions that they declare as it does."""

    glibc: str
    guards: tuple[str, ...]


def host_compilers(text: bytes, machine: str, label: str) -> HostCompilers:
    """What crt/host_config.h takes on Linux, and of Microsoft's compiler on Windows.

    Raises HarvestRefused for a header that lets everything pass or nothing, or that is not whole, and ToolMissing.
    """
    with tempfile.TemporaryDirectory(prefix="toolmatrix-") as folder:
        guard = _Guard(folder, text, label)
        gnu = (*_LINUX, f"-D__{machine}__")

        def gcc(version: tuple[int, int]) -> tuple[str, ...]:
            return (*gnu, f"-D__GNUC__={version[0]}", f"-D__GNUC_MINOR__={version[1]}")

        def clang(version: tuple[int, int]) -> tuple[str, ...]:
            # Clang says that it is GCC 4.2, whatever its own version.
            own = (f"-D__clang_major__={version[0]}", f"-D__clang_minor__={version[1]}")
            return (*gcc((4, 2)), "-D__clang__", *own)

        def microsoft(version: int) -> tuple[str, ...]:
            return (*_WINDOWS, f"-D_MSC_VER={version}")

        # What a header says of Clang stands beside the guard for the GCC that Clang says it is.
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
    """The first glibc whose functions the header of CUDA's functions declares in another way.

    `declared` has the functions of one double that each version of glibc brought, the oldest version first. Raises
    HarvestRefused for a header that declares none of them, and ToolMissing.
    """
    with tempfile.TemporaryDirectory(prefix="toolmatrix-") as folder:
        _write(folder, "crt/math_functions.h", text)
        # Joined with the root and taken off it again, so that no `..` of a header leads out of the folder.
        for name in set(_INCLUDE.findall(text)) - {b"features.h"}:
            _write(folder, os.path.normpath("/" + name.decode())[1:], b"")
        guards: list[str] = []
        ceiling = ""
        for version, functions in declared.items():
            _write(folder, "features.h", _FEATURES.format(*version.split(".")).encode())
            _refuse_unread(folder, label)
            # Without what it includes the header is not right by itself: only what a declaration adds is a clash.
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
    """A host_config.h alone in a directory, and what the preprocessor says of it."""

    def __init__(self, folder: str, text: bytes, label: str) -> None:
        self._folder = folder
        # Included once for each compiler, it begins anew: no macro of its own is there, and no pragma keeps it out.
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
        """The versions that pass, which follow one upon the other; none where there is no guard or nothing passes."""
        met = self._errors([words(version) for version in versions])
        passed: list[_Version] = []
        for version, lines in zip(versions, met, strict=True):
            if not lines:
                passed.append(version)
            elif passed:
                break
        # What comes later than all that is there yet is refused by every guard.
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
        """The condition above the `#error` that stops these words, as it is printed."""
        line = self._errors([words])[0][0]
        above = (text.strip() for text in reversed(self._lines[:line]))
        return next((text for text in above if text.startswith("#if")), "")

    def _errors(self, cases: Sequence[tuple[str, ...]]) -> list[list[int]]:
        """The lines of the directives `#error` that are met with the words of each, all in one run."""
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
        # -undef takes the macros of g++ itself away: what a compiler says that it is are these words alone.
        output = _compile(self._folder, "-E", "-undef", "-isystem", "system", _PROBE)
        met: list[int] = []
        consistent = bool(output.status) == bool(_ERROR.search(output.text))
        other = [] if consistent else [output.text.strip()[:200]]
        for line in output.text.splitlines():
            if origin := _FROM.search(line):
                met = errors[int(origin[1])]
            elif error := _ERROR.search(line):
                met.append(int(error[1]))
                # A header that is not there is an error as well. Taken for the guard it would refuse every compiler.
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


if TYPE_CHECKING:
    from typing import TypeVar

    _Version = TypeVar("_Version")


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
    """What g++ has against the header, where the C library declares a function of one double, and one of one float."""
    # A guard may be right for one of the two alone. Without a function as many lines are there, so that complaints
    # about the same place stay the same.
    declared = (
        f'extern "C" double {function}(double) __THROW;\n'
        f'extern "C" float {function}f(float) __THROW;\n'
        if function
        else "\n\n"
    )
    start = f"#include <features.h>\n{declared}"
    _write(folder, _PROBE, f'{start}#include "crt/math_functions.h"\n'.encode())
    # Words that headers define which are not there; a function's declaration is the same without them.
    empty = [f"-D{name}=" for name in (*_QUALIFIERS, "_CRTIMP", "_ACRTIMP")]
    output = _compile(
        folder,
        "-fsyntax-only",
        "-w",
        "-fmax-errors=0",
        "-I.",
        *_NVCC,
        *empty,
        "-D__forceinline__=inline",
        _PROBE,
    )
    return set(_ERROR.findall(output.text))


def _compile(folder: str, *words: str) -> programs.ProgramOutput:
    # No header of this machine is found, and none of it counts.
    sink = ("-o", os.devnull)
    return programs.ask([COMPILER, "-x", "c++", "-nostdinc", *sink, *words], folder)


def _write(folder: str, name: str, data: bytes) -> None:
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
