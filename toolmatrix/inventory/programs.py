"""Compilers and interpreters: which one a user gets by its bare name, which others are there, and their versions.

The version of a program stands in its own file, in what lies beside it, or in the record of its package; a script tells
its version only when it is run, and is skipped.
"""

from __future__ import annotations

import re

from toolmatrix.inventory.elf import Elf
from toolmatrix.inventory.packages import MANAGERS, upstream
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.inventory.record import Record, View

_PACKAGED = re.compile(r"(usr/)?(s?bin|lib\d*|libexec)/|opt/rocm")
"""Where packages of distributions put programs; what lies elsewhere came another way, whatever is recorded."""
_LLVM = re.compile(r"/llvm-?(\d+)/")
"""Directories of one LLVM among several, as Debian and Fedora call them."""
_ASKED = ("USE_BAZEL_VERSION", ".bazelversion")
"""The variable and the file that tell Bazelisk which Bazel to fetch, https://github.com/bazelbuild/bazelisk"""
_SCRIPT = "its version shows only when it is run"


class Program(Value):
    """How a program is called, what its own files are called, and where else its version stands.

    `beside` are shell patterns below the directory that holds bin, `{}` being the number in the name of the file, each
    with a pattern for the version: in the contents of what matches where they were kept, else in its path.
    """

    component: str
    names: tuple[str, ...]
    files: str
    beside: tuple[tuple[str, str], ...] = ()
    packages: tuple[str, ...] = ()


_PROGRAMS = (
    Program(
        component="python",
        names=("python3", "python"),
        files=r"(?:pypy|python)(\d(?:\.\d+)?)?",
        beside=(
            ("include/python{}*/patchlevel.h", r'PY_VERSION\s+"([^"]+)"'),
            ("lib/libpython{}*.so*", ""),
            ("lib/*/libpython{}*.so*", ""),
        ),
        packages=("python{}-minimal", "python{}", "python3"),
    ),
    Program(
        component="gcc",
        names=("gcc",),
        files=r"(?:(?:x86_64|aarch64)[\w-]*-)?gcc-?(\d+)?",
        beside=(("lib/gcc/*/{}*", r".*/(\d+\.\d+\.\d+)"),),
        packages=("gcc-{}", "gcc"),
    ),
    Program(
        component="clang",
        names=("clang",),
        files=r"clang-?(\d+)?",
        beside=(("lib/clang/*", r".*/(\d+\.\d+\.\d+)"), ("lib/libclang-cpp.so*", "")),
        packages=("clang-{}", "clang"),
    ),
    Program(component="nvcc", names=("nvcc",), files=r"nvcc()"),
    Program(
        component="hip",
        names=("hipcc",),
        files=r"hipcc(?:\.bin)?()",
        packages=("hipcc",),
    ),
    Program(
        component="bazel",
        names=("bazel",),
        files=r"bazel-?(\d+\.\d+\.\d+)?[\w-]*",
        beside=(("bin/bazel-real", ""),),
        packages=("bazel", "bazel-{}", "bazel-bootstrap"),
    ),
)


def names(component: str) -> tuple[str, ...]:
    """What a user calls a component by, the name that is tried first before the others; nothing for a library."""
    return next((one.names for one in _PROGRAMS if one.component == component), ())


def alike(name: str) -> tuple[str, ...]:
    """The other names of a program."""
    held = next((one.names for one in _PROGRAMS if name in one.names), ())
    return tuple(one for one in held if one != name)


class Default(Value):
    """The program that a bare name starts: the path it is found at, and the file behind its links."""

    called: str
    real: str
    version: str = ""


def observe(view: View, record: Record) -> dict[str, Default]:
    """Put in the programs; the defaults are returned by component."""
    defaults: dict[str, Default] = {}
    for program in _PROGRAMS:
        default = _default(view, program)
        if default is not None:
            defaults[program.component] = default.replace(
                version=_put(view, record, program, default.real)
            )
        for path in _others(view, program):
            if default is None or path != default.real:
                _put(view, record, program, path, default=False)
    _toolkit(record, defaults.get("nvcc"))
    _bazelisk(view, record)
    return defaults


def _toolkit(record: Record, nvcc: Default | None) -> None:
    """The toolkit of an nvcc has the first two numbers of it."""
    if nvcc is not None:
        version = upstream(nvcc.version, 2)
        record.component("cuda", version, "nvcc", nvcc.real, default=True)


def _bazelisk(view: View, record: Record) -> None:
    """The Bazel that is fetched when it is called; what is there already is the better witness."""
    variable, name = _ASKED
    asked = upstream(view.env.get(variable, ""))
    record.component("bazel", asked, "configuration", f"Env {variable}")
    for path, data in view.kept.items():
        if path.rpartition("/")[2] == name:
            record.component("bazel", upstream(data.decode("utf-8", "replace")), name, path)


def find(view: View, name: str) -> str:
    """The path at which a bare name is found; empty where it is not. Links that lead nowhere are passed by."""
    for folder in view.path():
        entry = view.tree.entry(f"{folder}/{name}")
        if entry is not None and entry.kind == "file" and entry.mode & 0o111:
            return f"{folder}/{name}"
    return ""


def _default(view: View, program: Program) -> Default | None:
    for name in program.names:
        called = find(view, name)
        if called:
            return Default(called=called, real=view.tree.real(called) or called)
    return None


def _others(view: View, program: Program) -> list[str]:
    """Files of this program in any directory for programs, each once."""
    return [path for path in view.elves if re.fullmatch(r"(?:.*/)?s?bin/" + program.files, path)]


def _put(view: View, record: Record, program: Program, path: str, *, default: bool = True) -> str:
    for version, seen_by, where in _told(view, record, program, path):
        record.component(program.component, version, seen_by, where, default=default)
        return version
    if default:
        what = "a program" if path in view.elves else "no program of its own"
        record.skip(program.component, f"/{path} is {what}; {_SCRIPT}")
    return ""


def _told(
    view: View, record: Record, program: Program, path: str
) -> Iterator[tuple[str, str, str]]:
    """Versions of a program with witness and place, the best first."""
    found = re.fullmatch(r"(?:.*/)?" + program.files, path)
    number = (found[1] if found else "") or "".join(_LLVM.findall(path)[-1:])
    own = _own(view.elves.get(path), number)
    if own:
        yield own, "elf", path
    prefix = path.rpartition("/")[0].rpartition("/")[0]
    for pattern, text in program.beside:
        for other in view.tree.glob(f"{prefix}/{pattern.format(number)}"):
            version = _beside(view, other, text, number)
            if version:
                yield version, "beside it", other
    for package in program.packages if _PACKAGED.match(path) else ():
        for manager in MANAGERS:
            for seen in record.features.get(f"{manager}:{package.format(number)}", ()):
                if _is_of(upstream(seen.version), number):
                    yield upstream(seen.version), manager, seen.where
    if number.count("."):
        yield number, "file name", path


def _own(elf: Elf | None, number: str) -> str:
    """The version text of a file; of several, that of the number in its name."""
    told = elf.told if elf is not None else ()
    return next((one for one in told if _is_of(one, number)), "")


def _is_of(version: str, number: str) -> bool:
    """Whether a version begins with a number, if there is one."""
    return not number or version == number or version.startswith(f"{number}.")


def _beside(view: View, path: str, text: str, number: str) -> str:
    entry = view.tree.entry(path)
    if entry is not None and isinstance(entry.held, Elf):
        return _own(entry.held, number)
    kept = view.tree.text(path)
    found = re.search(text, kept) if kept else re.fullmatch(text, path)
    return found[1] if found and found.re.groups else ""
