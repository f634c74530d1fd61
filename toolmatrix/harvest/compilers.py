"""Families of kind `compilers`: names that compilers accept and macros that they define, found by running them.

The path is one compiler, the root of a distribution, or a directory of such roots; docs/harvest-tools.md describes the
keys. A series is not enough: distributions package point releases, and some names were added in a later one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from toolmatrix.errors import HarvestRefused, Position, UsageError
from toolmatrix.factbase import pieces
from toolmatrix.harvest import programs
from toolmatrix.harvest.families import Family, HarvestContext, run_parallel, series
from toolmatrix.process import processors
from toolmatrix.value import Value

_NAME = re.compile(
    r"(?:(?P<machine>aarch64|x86_64)-linux-gnu-)?(?P<compiler>gcc|clang)(?:-[\d.]+)?"
)
# Three numbers, as distributions print their own version first: `gcc-16 (Ubuntu 16-20260322-1ubuntu1) 16.0.1 20260322`.
_VERSION = re.compile(r"^[^\n]*?(?:version )?(\d+)\.(\d+)\.(\d+)\b[^\n]*", re.MULTILINE)
_TARGET = re.compile(r"(x86_64|aarch64)\S*linux\S*")
_OS_RELEASE = re.compile(r"^(ID|VERSION_ID)=[\"']?([^\"'\n]*)", re.MULTILINE)
_VALID_ARGUMENTS = re.compile(r"note: valid arguments (?:to '-march=' switch )?are:([^;\n]*)")
_CPU = re.compile(r"^\t(\S+)$", re.MULTILINE)
_FOLDERS = ("usr/bin", "usr/local/bin", "bin")
_NO_NAME = "no-such-name"
# The options that take the name of a CPU, and the macro for CRC32 instructions.
_MACHINES = {
    "x86_64": (("march",), "__SSE4_2__"),
    "aarch64": (("mcpu", "march"), "__ARM_FEATURE_CRC32"),
}
_COLUMNS: Mapping[str, Any] = {
    "machine": {"as": "when"},
    **{
        name: {"as": "attribute"}
        for name in ("compiler", "series", "version", "printed", "char", "crc32", "mcpu", "march")
    },
}


class _Program(Value):
    """A compiler that compiles for one machine."""

    distro: str
    # The command line, with the command that enters the root of its distribution first.
    argv: tuple[str, ...]
    compiler: str
    machine: str
    version: tuple[int, int, int]
    printed: str

    @property
    def command(self) -> str:
        return " ".join(self.argv)

    def preprocess(self, *words: str) -> programs.ProgramOutput:
        # Preprocessing is enough: it sets the macros and refuses unknown names.
        return programs.ask([*self.argv, *words, "-E", "-dM", "-x", "c", os.devnull])


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """The facts about the compilers at a path. Raises ToolmatrixError."""
    fields = family.only((), ("rolling", "asked"))
    rolling = {name: node.string(name) for name, node in pieces.entries(fields, "rolling").items()}
    more = {
        option: [name.string("a name") for name in node.several()]
        for option, node in pieces.entries(fields, "asked").items()
    }
    if not context.place:
        raise UsageError(
            f"family `{family.name}` is read from compilers on disk",
            expected="`--from PATH` of a compiler, or of a distribution's root (`/` for this machine)",
        )
    compilers = list(_programs(context.place, rolling))
    if not compilers:
        raise HarvestRefused(
            "no compiler found",
            where=Position(context.place),
            expected="a program gcc or clang, a distribution's root with one, or a directory of roots",
        )
    # The order of rows must not depend on the names of directories.
    compilers.sort(
        key=lambda program: (program.distro, program.machine, program.compiler, program.version)
    )
    names = _names(compilers, more)
    rows = run_parallel(
        lambda program: _row(program, names), compilers, context.progress, processors()
    )
    return {
        "sources": {
            f"compilers-{distro}": {
                "title": f"compilers that {distro} packages, run",
                "at": f"packages of {distro}, as each compiler prints them with --version",
                "read": context.day,
            }
            for distro in sorted({program.distro for program in compilers})
        },
        "tables": [
            {
                "id": "compiler-names",
                "about": "what compilers define without a flag, and the names of CPUs that they take",
                "source": rows[0]["source"],
                "where": "-E -dM without a flag, and with each of the names",
                "evidence": "ran",
                "key": "distro",
                "columns": dict(_COLUMNS),
                "rows": rows,
            }
        ],
    }


def _programs(path: str, rolling: Mapping[str, str]) -> Iterator[_Program]:
    if os.path.isfile(path):
        yield from _targets([path], _distro("/", rolling), os.path.basename(path))
        return
    roots = [path] if _release(path) else _roots(path)
    for root in roots:
        distro = _distro(root, rolling)
        known = set()
        for name in _named(root):
            prefix = [] if os.path.realpath(root) == "/" else _change_root(root)
            for program in _targets([*prefix, name], distro, name):
                # One program may have several names.
                key = (program.compiler, program.machine, program.version)
                if key not in known:
                    known.add(key)
                    yield program


def _roots(folder: str) -> list[str]:
    try:
        below = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
    except OSError as error:
        raise HarvestRefused(
            "the compilers cannot be read", where=Position(folder), found=error.strerror or ""
        ) from None
    return [path for path in below if _release(path)]


def _release(root: str) -> dict[str, str]:
    # The link in etc is often absolute, and would lead to the file of this machine.
    for path in ("usr/lib/os-release", "etc/os-release"):
        with suppress(OSError), open(os.path.join(root, path), "rb") as file:
            return dict(_OS_RELEASE.findall(file.read(1 << 16).decode("utf-8", "replace")))
    return {}


def _distro(root: str, rolling: Mapping[str, str]) -> str:
    """The matrix's name of the distribution of a root; one without a version is the rolling one of its family."""
    fields = _release(root)
    # Debian unstable has no number until it becomes a release.
    name, version = fields.get("ID", ""), fields.get("VERSION_ID", "")
    if not name or (not version and name not in rolling):
        raise HarvestRefused(
            "the distribution has no name or no version",
            where=Position(os.path.join(root, "usr/lib/os-release")),
            expected="ID= and VERSION_ID=",
        )
    return name + version if version else rolling[name]


def _named(root: str) -> list[str]:
    """The names of compilers below a root."""
    names: set[str] = set()
    for folder in _FOLDERS:
        with suppress(OSError):
            names.update(os.listdir(os.path.join(root, folder)))
    return sorted(name for name in names if _NAME.fullmatch(name))


def _change_root(root: str) -> list[str]:
    """The command that starts a program below a root with that root's libraries."""
    # chroot needs root, which every user is in a user namespace of their own.
    command = ["chroot", root]
    return command if os.geteuid() == 0 else ["unshare", "--map-root-user", *command]


def _targets(argv: Sequence[str], distro: str, name: str) -> Iterator[_Program]:
    """A program for each machine that a compiler targets: one for GCC, all for Clang."""
    output = programs.ask([*argv, "--version"])
    version = _VERSION.search(output.text)
    if output.status or version is None:
        raise HarvestRefused(
            "the compiler prints no version",
            where=Position(" ".join(argv)),
            expected="`--version` output with three numbers",
            found=output.text.strip().partition("\n")[0][:120] or f"status {output.status}",
        )
    # A file of `--from` may have any name, so its output decides.
    compiler = "clang" if "clang" in name or "clang version" in output.text else "gcc"
    program = _Program(
        distro=distro,
        argv=tuple(argv),
        compiler=compiler,
        machine="",
        version=(int(version[1]), int(version[2]), int(version[3])),
        printed=version[0].strip(),
    )
    if compiler == "clang":
        for machine in _MACHINES:
            target = (*argv, f"--target={machine}-linux-gnu")
            yield program.replace(machine=machine, argv=target)
    elif match := _TARGET.search(programs.ask([*argv, "-dumpmachine"]).text):
        yield program.replace(machine=match[1])


def _names(
    compilers: Iterable[_Program], more: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], list[str]]:
    """The names to try for each machine and option: those that any compiler lists, and those of the family."""
    names: dict[tuple[str, str], set[str]] = {}
    # Old compilers list none, and point releases of one series differ: each name is tried with every compiler.
    for program in compilers:
        for option in _MACHINES[program.machine][0]:
            candidates = names.setdefault((program.machine, option), set())
            candidates.update(_printed_names(program, option))
            # Lists lack names with an extension (`generic+crc`), which only ARM has.
            if program.machine == "aarch64":
                candidates.update(more.get(option, ()))
    return {key: sorted(candidates) for key, candidates in names.items()}


def _printed_names(program: _Program, option: str) -> list[str]:
    """The names that a compiler lists; none for an old one."""
    if program.compiler == "clang":
        # Clang lists CPUs: names for -march on x86, for -mcpu on ARM.
        cpus = option == _MACHINES[program.machine][0][0]
        return _CPU.findall(program.preprocess("--print-supported-cpus").text) if cpus else []
    match = _VALID_ARGUMENTS.search(program.preprocess(f"-{option}={_NO_NAME}").text)
    # `native` depends on this machine; rows must not.
    return [name for name in match[1].split() if name != "native"] if match else []


def _row(program: _Program, names: Mapping[tuple[str, str], Sequence[str]]) -> dict[str, Any]:
    options, macro = _MACHINES[program.machine]
    output = program.preprocess()
    if output.status:
        raise HarvestRefused(
            "the compiler cannot preprocess an empty file",
            where=Position(program.command),
            found=output.text.strip().partition("\n")[0][:120],
        )
    defined = {line.split()[1] for line in output.text.splitlines() if line.startswith("#define ")}
    accepted = {
        option: [
            name
            for name in names[program.machine, option]
            if not program.preprocess(f"-{option}={name}").status
        ]
        for option in options
    }
    release_series = series(program.compiler, *program.version[:2])
    return {
        "id": f"compiler-names/{program.distro}/{program.compiler}-{release_series}/{program.machine}",
        "distro": program.distro,
        "machine": program.machine,
        "compiler": program.compiler,
        "series": release_series,
        "version": ".".join(map(str, program.version)),
        "printed": program.printed,
        "char": "unsigned" if "__CHAR_UNSIGNED__" in defined else "signed",
        "crc32": macro in defined,
        **{option: " ".join(cpus) for option, cpus in accepted.items() if cpus},
        "source": f"compilers-{program.distro}",
    }
