"""Compilers and interpreters: which one a user gets by its bare name, which others are there, and their versions.

The version of a program is in its own file, in files beside it, or in the record of its package. A bare
name may start something else, though: a script, or a program under another name, such as the shims of pyenv, mise
and ccache. It shows its version only when it is run, and later directories of PATH say nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolmatrix.inspection import packages, toolkits
from toolmatrix.inspection.elf import Elf
from toolmatrix.inspection.model import FilePattern
from toolmatrix.inspection.packages import MANAGERS, upstream
from toolmatrix.inspection.record import ACCOUNTS, Record, View
from toolmatrix.value import Value

PACKAGED = re.compile(r"(usr/)?(s?bin|lib\d*|libexec)/|opt/rocm")
"""Where packages of distributions put programs; what lies elsewhere came another way, whatever is recorded."""
# Directories of one LLVM among several in Debian and Fedora.
_LLVM = re.compile(r"/llvm-?(\d+)/")
# The variable and the file with the version that Bazelisk has to fetch, https://github.com/bazelbuild/bazelisk
_WANTED_BAZEL = "USE_BAZEL_VERSION"
_BAZELVERSION = FilePattern(r"(?:.*/)?(\.bazelversion)", 64)
READS = (
    *(_BAZELVERSION, toolkits.HIP, ACCOUNTS),
    FilePattern(r".*/include/python[^/]+/patchlevel\.h", 64 << 10),
)
VERSION_TEXTS = tuple(
    (name, re.compile(text))
    for name, text in (
        (r"(.*-)?(gcc|g\+\+|cc1|cc1plus)(-\d+)?", rb"\0(\d+\.\d+\.\d+)\0"),
        (
            r"python(\d(\.\d+)?[a-z]*)?|libpython.*\.so.*",
            rb"\0(\d\.\d+\.\d+(?:(?:a|b|rc)\d+)?\+?)\0",
        ),
        (r"clang(-\d+)?|libclang-cpp\.so.*", rb"(?:\0|version )(\d+\.\d+\.\d+)\0"),
        # A file, stored unpacked, of the zip archive behind the program, see src/package-bazel.sh of Bazel.
        (r"bazel[\w.-]*", rb"PK\x03\x04[\x00-\xff]{26}build-label\.txt(\d+\.\d+\.\d+)"),
        (r"nvcc", rb"release \d+\.\d+, V(\d+\.\d+\.\d+)"),
    )
)
"""Names of programs and of their libraries, and the form of the version inside such a file."""
# Variables that choose compilers, and what they may be; that of nvcc's host compiler may be a directory.
_HOST_COMPILER = "NVCC_CCBIN"
_COMPILERS = dict.fromkeys(("CC", "CXX", "CUDAHOSTCXX", _HOST_COMPILER), ("gcc", "clang"))
SETTINGS = "pyvenv.cfg"
"""The settings of a virtual environment, below its prefix."""
_HOME = re.compile(r"^home[ \t]*=[ \t]*(/.*?)[ \t]*$", re.MULTILINE)
_SCRIPT = "its version shows only when it is run"


class Program(Value):
    """The names of a program and of its own files, and the other sources of its version.

    `beside` are shell patterns below the directory that holds bin, `{}` being the number in the name of the file, each
    with a pattern for the version: in the contents of what matches where they were kept, else in its path. `tools` are
    programs that come with it, by their names and the patterns of their files, and `speaks_for` the components whose
    version it has as well. `is_script`: its makers ship it as one, so what lies beside the script is its own.
    """

    component: str
    names: tuple[str, ...]
    files: str
    beside: tuple[tuple[str, str], ...] = ()
    packages: tuple[str, ...] = ()
    tools: tuple[tuple[str, str], ...] = ()
    speaks_for: tuple[str, ...] = ()
    is_script: bool = False


_PROGRAMS = (
    Program(
        component="python",
        names=("python3", "python"),
        files=r"(?:pypy|(?:platform-)?python)(\d(?:\.\d+)?)?",
        beside=(
            ("include/python{}*/patchlevel.h", r'PY_VERSION\s+"([^"]+)"'),
            ("lib/libpython{}*.so*", ""),
            ("lib/*/libpython{}*.so*", ""),
        ),
        packages=("python{}-minimal", "python{}", "python3", "platform-python"),
    ),
    Program(
        component="gcc",
        names=("gcc",),
        files=r"(?:(?:x86_64|aarch64)[\w-]*-)?gcc-?(\d+)?",
        beside=(("lib/gcc/*/{}*", r".*/(\d+\.\d+\.\d+)"),),
        packages=("gcc-{}", "gcc"),
        tools=(("g++", r"(?:(?:x86_64|aarch64)[\w-]*-)?g\+\+-?(?:\d+)?"),),
    ),
    Program(
        component="clang",
        names=("clang",),
        files=r"clang-?(\d+)?",
        beside=(("lib/clang/*", r".*/(\d+\.\d+\.\d+)"), ("lib/libclang-cpp.so*", "")),
        packages=("clang-{}", "clang"),
    ),
    Program(component="nvcc", names=("nvcc",), files=r"nvcc()", speaks_for=("cuda",)),
    Program(
        component="hip",
        names=("hipcc",),
        files=r"hipcc(?:\.bin)?()",
        beside=tuple(
            (path, r"HIP_VERSION_MAJOR=(\d+)\s+HIP_VERSION_MINOR=(\d+)\s+HIP_VERSION_PATCH=(\d+)")
            for path in ("share/hip/version", "bin/.hipVersion")
        ),
        packages=("hipcc",),
        is_script=True,
    ),
    Program(
        component="bazel",
        names=("bazel",),
        files=r"bazel-?(\d+\.\d+\.\d+)?[\w-]*",
        beside=(("bin/bazel-real", ""),),
        packages=("bazel", "bazel-{}", "bazel-bootstrap"),
        is_script=True,
    ),
)


def names(component: str) -> tuple[str, ...]:
    """The names that a user calls a component by, in the order of trying; empty for a library."""
    return next((program.names for program in _PROGRAMS if program.component == component), ())


def other_names(name: str) -> tuple[str, ...]:
    """The other names of a program."""
    spellings = next((program.names for program in _PROGRAMS if name in program.names), ())
    return tuple(spelling for spelling in spellings if spelling != name)


class Default(Value):
    """The program that a bare name starts: the path it is found at, and the file behind its links."""

    called: str
    real: str
    version: str = ""


def observe(view: View, record: Record) -> dict[str, Default]:
    """Record the programs; returned are those whose versions are known, by component."""
    defaults: dict[str, Default] = {}
    for program in _PROGRAMS:
        default = _default(view, program.names)
        if default is not None:
            default = default.replace(version=_add(view, record, program, default.real))
            defaults[program.component] = default
        for path in view.elves:
            is_other = default is None or path != default.real
            if is_other and re.fullmatch(r"(?:.*/)?s?bin/" + program.files, path):
                _add(view, record, program, path, default=False)
    _compilers(view, record)
    nvcc = defaults.get("nvcc")
    if nvcc is not None:
        # A toolkit shares the first two numbers of its compiler.
        record.component("cuda", upstream(nvcc.version, 2), "nvcc", nvcc.real, default=True)
    _bazelisk(view, record, defaults)
    for program in _PROGRAMS:
        reason = _silent(view, program, defaults.get(program.component))
        if reason:
            record.hide((program.component, *program.speaks_for), reason)
            defaults.pop(program.component, None)
    return defaults


def _compilers(view: View, record: Record) -> None:
    """Record the compilers that variables choose: what builds with them gets them as well."""
    for variable in _COMPILERS:
        words = view.env.get(variable, "").split()
        path = words[0].strip("/") if words and words[0].startswith("/") else ""
        path = path or (view.which(words[0]) if words else "")
        if view.tree.names(path) and variable == _HOST_COMPILER:
            # A directory is allowed there.
            path = f"{path}/gcc"
        real = view.tree.real(path) or ""
        for program in _PROGRAMS:
            tools = (program.files, *(pattern for _, pattern in program.tools))
            if program.component in _COMPILERS[variable] and any(
                _is_own(view, real, pattern) for pattern in tools
            ):
                version = _elf_version(view.elves.get(real), "")
                record.component(program.component, version, f"Env {variable}", real, default=True)


def _silent(view: View, program: Program, default: Default | None) -> str:
    if default is not None and not default.version:
        what = "a program" if default.real in view.elves else "not a program itself"
        return f"/{default.real} is {what}; {_SCRIPT}"
    files = ((name, program.files) for name in program.names)
    # A wrapper for g++ alone is enough to compile with another version than gcc has.
    for name, pattern in (*files, *program.tools):
        candidate = _default(view, (name,))
        if candidate is None or (default is not None and candidate.real == default.real):
            continue
        if not _is_own(view, candidate.real, pattern):
            return f"/{candidate.called} is not a program itself; {_SCRIPT}"
    return ""


def _is_own(view: View, path: str, pattern: str) -> bool:
    # A script, or a link to a program of another name, such as the shims of pyenv, is not.
    return path in view.elves and re.fullmatch(r"(?:.*/)?" + pattern, path) is not None


# The Bazel that a launcher fetches; it is the default where the program itself has no version.
def _bazelisk(view: View, record: Record, defaults: dict[str, Default]) -> None:
    bazel = defaults.get("bazel")
    fetches = bazel is not None and not bazel.version and bazel.real in view.elves
    reported = [(view.env.get(_WANTED_BAZEL, ""), "configuration", f"Env {_WANTED_BAZEL}")]
    reported += [(text, match[1], match[0]) for match, text in view.files(_BAZELVERSION)]
    for text, seen_by, where in reported:
        version = upstream(text)
        # Sources of several projects may have such a file; the variable goes before them.
        is_first = "bazel" not in defaults or not defaults["bazel"].version
        record.component("bazel", version, seen_by, where, default=fetches and is_first)
        if bazel is not None and fetches and version and is_first:
            defaults["bazel"] = bazel.replace(version=version)


def _default(view: View, names: tuple[str, ...]) -> Default | None:
    path = next(filter(None, map(view.which, names)), "")
    return Default(called=path, real=view.tree.real(path) or path) if path else None


def _add(view: View, record: Record, program: Program, path: str, *, default: bool = True) -> str:
    for version, seen_by, where in _versions(view, record, program, path):
        record.component(program.component, version, seen_by, where, default=default)
        return version
    return ""


def python_version(view: View, record: Record, path: str) -> str:
    """The version of the Python at a path without links; empty where nothing shows it."""
    return next((version for version, *_ in _versions(view, record, _PROGRAMS[0], path)), "")


# Versions of a program with witness and place, the best first.
def _versions(
    view: View, record: Record, program: Program, path: str
) -> Iterator[tuple[str, str, str]]:
    match = re.fullmatch(r"(?:.*/)?" + program.files, path)
    series = (match[1] if match else "") or "".join(_LLVM.findall(path)[-1:])
    version = _elf_version(view.elves.get(path), series)
    if version:
        yield version, "elf", path
    prefix, _, folder = path.rpartition("/")[0].rpartition("/")
    is_program = _is_own(view, path, program.files)
    if is_program or (program.is_script and folder == "bin" and path not in view.elves):
        yield from _beside(view, program, prefix, series)
    # In a virtual environment of copies the library, which has the version, lies beside what was copied.
    home = _HOME.search(view.tree.text(f"{prefix}/{SETTINGS}")) if folder == "bin" else None
    called = (f"{home[1]}/{name}" for name in (path.rpartition("/")[2], "python3")) if home else ()
    origin = next(filter(None, map(view.tree.real, called)), path)
    if origin != path:
        yield from _versions(view, record, program, origin)
    for package in program.packages if PACKAGED.match(path) else ():
        package = package.format(series)
        for manager in MANAGERS if is_program else packages.owners(view, path, package):
            for sighting in record.features.get(f"{manager}:{package}", ()):
                if _is_of(upstream(sighting.version), series):
                    yield upstream(sighting.version), manager, sighting.where
    if is_program and series.count("."):
        yield series, "file name", path


def _elf_version(elf: Elf | None, series: str) -> str:
    # A file may hold texts that only look like versions; the number in its name distinguishes them.
    versions = elf.versions if elf is not None else ()
    return next((version for version in versions if _is_of(version, series)), "")


def _is_of(version: str, series: str) -> bool:
    return not series or version == series or version.startswith(f"{series}.")


def _beside(
    view: View, program: Program, prefix: str, series: str
) -> Iterator[tuple[str, str, str]]:
    for pattern, text in program.beside:
        for path in view.tree.glob(f"{prefix}/{pattern.format(series)}"):
            entry = view.tree.entry(path)
            if entry is not None and isinstance(entry.content, Elf):
                version = _elf_version(entry.content, series)
            else:
                contents = view.tree.text(path)
                match = re.search(text, contents) if contents else re.fullmatch(text, path)
                version = ".".join(match.groups()) if match else ""
            if version:
                yield version, "beside it", path
