"""Families of kind `toolkits`: what the headers and programs of CUDA toolkits accept, one row for each toolkit.

A toolkit is read from the wheels of its packages at the index, from wheels in a directory, or from an installation;
docs/harvest-tools.md describes the keys. Codegen archs are those that its programs list, and accept when tried.
"""

from __future__ import annotations

import json
import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from toolmatrix.errors import HarvestRefused, Position
from toolmatrix.factbase import pieces
from toolmatrix.harvest import families, headers, programs, project
from toolmatrix.harvest.families import Family, HarvestContext
from toolmatrix.harvest.headers import GlibcCeiling, HostCompilers
from toolmatrix.harvest.wheel import RemoteWheel
from toolmatrix.outputs import file_digest
from toolmatrix.value import Value

if TYPE_CHECKING:

    class _Files(Protocol):
        name: str

        def names(self) -> list[str]: ...

        def read(self, name: str, limit: int) -> bytes: ...


PTXAS = "ptxas"
DRIVER = ("nvcc", "nvcc.profile")
"""The driver, and the file beside it that it needs to start."""
# PTX of the first 64-bit version; later archs accept code for earlier ones.
_NOTHING = ".version 3.0\n.target sm_20\n.address_size 64\n"
_NAME = re.compile(r"'(sm_(\d+)[a-z]?)'")
_GPU_NAME = re.compile(r"(?:sm|compute)_\d+[a-z]?")
_ARCH = re.compile(r"([a-z]+)_(\d+)([a-z]?)")


class KnownArchs(Value):
    """The archs of one toolkit."""

    # The `sm_` names that ptxas accepts, followed by the `compute_` names of nvcc.
    archs: tuple[str, ...]
    # The output of `nvcc --list-gpu-code`, in its order; empty without nvcc.
    gpu_codes: tuple[str, ...] = ()


def known_archs(files: Mapping[str, bytes], label: str) -> KnownArchs:
    """The archs that programs accept; `files` are the bytes of ptxas, and of the driver if there is one.

    Raises HarvestRefused for a ptxas that accepts none of the archs that it lists, and ToolMissing if one cannot run.
    """
    with tempfile.TemporaryDirectory(prefix="toolmatrix-") as folder:
        for name, data in files.items():
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, 0o700)
        # Help and behaviour have differed, so each listed name is tried.
        accepted = _accepted(folder)
        if not accepted:
            raise HarvestRefused(
                "ptxas accepts none of the archs that it lists",
                where=Position(label),
                expected="archs in `--help` that ptxas compiles for",
            )
        if set(DRIVER) <= files.keys():
            gpu_codes = _list(folder, "--list-gpu-code")
            virtual = _list(folder, "--list-gpu-arch")
        else:
            # Every number has a virtual arch, which nvcc lists without a suffix.
            gpu_codes = ()
            virtual = tuple(
                f"compute_{name.partition('_')[2]}" for name in accepted if name[-1].isdigit()
            )
    return KnownArchs(
        archs=(*sorted(accepted, key=_order), *sorted(virtual, key=_order)), gpu_codes=gpu_codes
    )


def _accepted(folder: str) -> list[str]:
    """The names in the help of ptxas that it accepts."""
    program = os.path.join(folder, PTXAS)
    with open(os.path.join(folder, "nothing.ptx"), "w", encoding="ascii") as file:
        file.write(_NOTHING)
    named = dict.fromkeys(name for name, _ in _NAME.findall(programs.ask([program, "--help"]).text))
    # With nothing to compile only the name can fail, and never an instruction that an arch lacks.
    command = [program, "nothing.ptx", "-o", os.devnull, "-arch"]
    return [name for name in named if not programs.ask([*command, name], folder).status]


def _list(folder: str, option: str) -> tuple[str, ...]:
    output = programs.ask([os.path.join(folder, DRIVER[0]), option], folder)
    return tuple(_GPU_NAME.findall(output.text)) if not output.status else ()


def _order(name: str) -> tuple[int, str]:
    # By number: as text, `sm_100` comes before `sm_75`.
    match = _ARCH.fullmatch(name)
    return (int(match[2]), match[3]) if match else (0, name)


HOST_CONFIG = "crt/host_config.h"
MATH_FUNCTIONS = "crt/math_functions.h"
_WHEEL = re.compile(
    r"(?P<package>[\w.]+)-(?P<version>[\w.]+)-py\w+-none-(?:\w+\.)*?\w*?(?P<machine>x86_64|aarch64)\.whl"
)
_NVCC_VERSION = re.compile(r"\bV(\d+\.\d+\.\d+)\b")
_LARGEST_HEADER = 4 << 20
_LARGEST_PROGRAM = 256 << 20
_MOST_FILES = 200_000
_ELF_MACHINES = {62: "x86_64", 183: "aarch64"}
"""Numbers of ELF, e_machine."""


class ToolkitFiles(Value):
    """The files of one toolkit for one machine that are read."""

    # The version of its nvcc, which identifies the release.
    nvcc: str
    machine: str
    name: str
    # The key, title and `at` of its source, and the `where` of its rows.
    source: str
    title: str
    at: str
    where: str
    # The day of its upload, "" if unknown.
    uploaded: str = ""
    host_config: bytes = b""
    math: bytes = b""
    programs: Callable[[], Mapping[str, bytes]] | None = None


def at_index(packages: Iterable[str], context: HarvestContext) -> list[ToolkitFiles]:
    """The toolkits in the wheels of some packages at the index. Raises ToolmatrixError."""
    urls = families.index_urls(context)
    toolkits = []
    for package in packages:
        for release in project.releases(context.session, urls, package):
            for wheel in release.wheels:
                files = RemoteWheel(context.session, wheel.url, wheel.sha256)
                toolkits += _of_wheel(files, wheel.sha256, release.date)
    return toolkits


def below(root: str, context: HarvestContext) -> list[ToolkitFiles]:
    """The toolkits in a wheel, in the wheels of a directory, or installed in it. Raises ToolmatrixError."""
    wheels = [root] if root.endswith(".whl") else _wheels(root)
    if wheels:
        toolkits = [
            toolkit
            for path in wheels
            for toolkit in _of_wheel(
                RemoteWheel(context.session, f"file://{os.path.abspath(path)}"),
                file_digest(path),
                "",
            )
        ]
    else:
        toolkits = _unpacked(root)
    if not toolkits:
        raise HarvestRefused(
            "no CUDA toolkit found",
            where=Position(root),
            expected=f"`{HOST_CONFIG}` or `bin/{PTXAS}` below it, or wheels that hold them",
        )
    return toolkits


def _wheels(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise HarvestRefused(
            "the toolkit cannot be read", where=Position(folder), found=error.strerror or ""
        ) from None
    return [os.path.join(folder, name) for name in names if name.endswith(".whl")]


def _of_wheel(files: _Files, sha256: str, uploaded: str) -> list[ToolkitFiles]:
    """The toolkit in a wheel; none if it is for another system or has none of the wanted files."""
    named = _WHEEL.fullmatch(files.name)
    if named is None:
        return []
    package = named["package"].replace("_", "-")
    return _toolkit(
        files,
        ToolkitFiles(
            nvcc=named["version"],
            machine=named["machine"],
            name=files.name,
            source=f"toolkit-{package}",
            title=f"wheels of {package} at the package index",
            at=f"package {package}, the file that the row names",
            where=f"{files.name} (sha256 {sha256})",
            uploaded=uploaded,
        ),
    )


def _toolkit(files: _Files, bare: ToolkitFiles) -> list[ToolkitFiles]:
    names = files.names()

    def shortest(end: str) -> str:
        matches = [name for name in names if f"/{name}".endswith(f"/{end}")]
        return min(matches, key=len, default="")

    paths = {name: path for name in (PTXAS, *DRIVER) if (path := shortest(f"bin/{name}"))}
    host_config, math = shortest(HOST_CONFIG), shortest(MATH_FUNCTIONS)
    # Since CUDA 13, headers and programs are separate packages.
    if not host_config and PTXAS not in paths:
        return []

    # Only called where they can run: ptxas alone takes 5 to 12 MB of a wheel.
    def programs() -> dict[str, bytes]:
        return {name: files.read(path, _LARGEST_PROGRAM) for name, path in paths.items()}

    return [
        bare.replace(
            host_config=files.read(host_config, _LARGEST_HEADER) if host_config else b"",
            math=files.read(math, _LARGEST_HEADER) if math else b"",
            programs=programs if PTXAS in paths else None,
        )
    ]


class _Folder:
    """A directory, read as a wheel is."""

    def __init__(self, folder: str) -> None:
        self.name = folder

    def names(self) -> list[str]:
        paths: list[str] = []
        for folder, _, names in os.walk(self.name):
            relative = os.path.relpath(folder, self.name)
            paths += (os.path.normpath(os.path.join(relative, name)) for name in names)
            if len(paths) > _MOST_FILES:
                raise HarvestRefused(
                    "the directory is too large for a toolkit",
                    where=Position(self.name),
                    expected=f"at most {_MOST_FILES} files",
                )
        return sorted(paths)

    def read(self, name: str, limit: int) -> bytes:
        path = os.path.join(self.name, name)
        try:
            with open(path, "rb") as file:
                data = file.read(limit + 1)
        except OSError as error:
            raise self._refusal(path, error.strerror or "an error") from None
        if len(data) > limit:
            raise self._refusal(path, f"more than {limit} bytes")
        return data

    def _refusal(self, path: str, found: str) -> HarvestRefused:
        return HarvestRefused("the toolkit cannot be read", where=Position(path), found=found)


def _unpacked(root: str) -> list[ToolkitFiles]:
    files = _Folder(root)
    names = files.names()
    program = next((name for name in names if f"/{name}".endswith(f"/bin/{PTXAS}")), "")
    version = next((name for name in names if os.path.basename(name) == "version.json"), "")
    if not program:
        return []
    # e_machine of the ELF header. Read before running a program, which may be for another machine.
    machine = _ELF_MACHINES.get(
        int.from_bytes(files.read(program, _LARGEST_PROGRAM)[18:20], "little"), ""
    )
    nvcc = _stated(files.read(version, _LARGEST_HEADER)) if version else ""
    nvcc = nvcc or _printed(os.path.join(root, program))
    if not machine or not nvcc:
        raise HarvestRefused(
            "the toolkit has no version",
            where=Position(os.path.join(root, program)),
            expected="version.json, or a ptxas that runs on this machine",
        )
    bare = ToolkitFiles(
        nvcc=nvcc,
        machine=machine,
        name=root,
        source=f"toolkit-{nvcc}-{machine}",
        title=f"CUDA toolkit with nvcc {nvcc} as installed",
        at=f"CUDA toolkit with nvcc {nvcc}, {machine}",
        where="installed",
    )
    return _toolkit(files, bare)


def _stated(data: bytes) -> str:
    """The version of nvcc in version.json, "" if it has none."""
    try:
        version = json.loads(data)["cuda_nvcc"]["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return version if isinstance(version, str) and re.fullmatch(r"[\d.]+", version) else ""


def _printed(program: str) -> str:
    match = _NVCC_VERSION.search(programs.ask([os.path.abspath(program), "--version"]).text)
    return match[1] if match else ""


_SERIES = re.compile(r"\d+\.\d+")
_ARCHS: Mapping[str, Any] = {
    "id": "cuda-archs-toolkits",
    "about": "codegen archs each toolkit takes, found by asking its programs",
    "evidence": "ran",
    "key": "cuda",
    "stands-for": ["same-minor"],
    "columns": {
        "arch": {"as": "limits", "says": "nvcc accepts {value}"},
        "list-gpu-code": {"as": "attribute"},
    },
}
_HOSTS: Mapping[str, Any] = {
    "id": "cuda-host-compilers-toolkits",
    "about": "newest GCC and Clang that the guard of each toolkit lets pass, found by asking the preprocessor",
    "evidence": "artifact",
    "key": "cuda",
    "columns": {
        "machine": {"as": "when"},
        "gcc": {"as": "limits", "topic": "gcc-max", "says": "takes GCC {value} as host compiler"},
        "clang": {
            "as": "limits",
            "topic": "clang-max",
            # If Clang compiles the CUDA sources itself, the guard for nvcc does not apply.
            "context": {"cuda-compiler": "absent nvcc"},
            "says": "takes Clang {value} as host compiler",
        },
        "clang-oldest": {"as": "attribute"},
        "guard": {"as": "attribute"},
        "override": {"as": "attribute"},
    },
}
_MSVC: Mapping[str, Any] = {
    "id": "cuda-msvc",
    "about": "releases of Microsoft's compiler, as _MSC_VER, that the guard of each toolkit lets pass",
    "evidence": "artifact",
    "key": "cuda",
    "columns": {"msvc": {"as": "attribute"}, "override": {"as": "attribute"}},
}
_GLIBC: Mapping[str, Any] = {
    "id": "cuda-glibc-toolkits",
    "about": "the glibc beside which each toolkit's headers compile, found by compiling them",
    "evidence": "artifact",
    "context": {"from": "source"},
    "key": "cuda",
    "stands-for": ["x86-row-for-arm"],
    "columns": {
        "machine": {"as": "when"},
        "glibc": {
            "as": "limits",
            "topic": "glibc-max",
            "says": "its headers compile with glibc {value}",
        },
        "guards": {"as": "attribute"},
    },
}


class _Keys(Value):
    wheels: tuple[str, ...]
    # The releases that have each nvcc.
    releases: Mapping[str, tuple[str, ...]]
    # The functions of one double that each glibc added.
    glibc: Mapping[str, tuple[str, ...]]


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """The facts about the toolkits of a family. Raises ToolmatrixError."""
    keys = _keys(family)
    toolkits = _once(
        below(context.place, context) if context.place else at_index(keys.wheels, context)
    )
    rows = _Rows(keys, toolkits, context)
    tables = [
        {**_ARCHS, "rows": rows.archs()},
        {**_HOSTS, "rows": rows.hosts()},
        {**_MSVC, "rows": rows.microsoft()},
        {**_GLIBC, "rows": rows.glibc()},
    ]
    return {
        "sources": {
            toolkit.source: {"title": toolkit.title, "at": toolkit.at, "read": context.day}
            for toolkit in toolkits
        },
        "releases": _releases(toolkits, keys.releases, rows.named),
        "tables": [
            {"id": table["id"], "source": table["rows"][0]["source"], **table}
            for table in tables
            if table["rows"]
        ],
    }


def _once(toolkits: Iterable[ToolkitFiles]) -> list[ToolkitFiles]:
    """Distinct toolkits by version: one may be in several wheels with different platform tags."""
    unique: dict[tuple[str, str, str], ToolkitFiles] = {}
    for toolkit in sorted(
        toolkits,
        key=lambda toolkit: (
            _numbers(toolkit.nvcc),
            project.MACHINES.index(toolkit.machine),
            toolkit.name,
        ),
    ):
        first = unique.setdefault((toolkit.source, toolkit.nvcc, toolkit.machine), toolkit)
        if (toolkit.host_config, toolkit.math) != (first.host_config, first.math):
            raise HarvestRefused(
                "copies of one toolkit have different headers",
                where=Position(toolkit.name),
                expected=f"those of {first.name}",
            )
    return list(unique.values())


def _keys(family: Family) -> _Keys:
    fields = family.only(("wheels", "releases", "glibc"))
    releases: dict[str, list[str]] = {}
    for version, nvcc in families.release_attributes(family, "nvcc").items():
        releases.setdefault(nvcc, []).append(version)
    return _Keys(
        wheels=tuple(package.string("a package") for package in pieces.items(fields, "wheels")),
        releases={nvcc: tuple(sorted(names, key=_numbers)) for nvcc, names in releases.items()},
        glibc={
            version: tuple(function.string("a function") for function in node.several())
            for version, node in sorted(
                pieces.entries(fields, "glibc").items(), key=lambda pair: _numbers(pair[0])
            )
        },
    )


def _named(
    toolkits: Iterable[ToolkitFiles], known: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """The releases of each nvcc: the known ones, or else the series of the nvcc."""
    # A wheel does not name its update of CUDA, but its nvcc identifies it: updates of one series differ in nvcc, and in
    # what they accept (12.3.52 and 12.3.103).
    named = dict(known)
    for toolkit in toolkits:
        series = _SERIES.match(toolkit.nvcc)
        name = series[0] if series else toolkit.nvcc
        clash = next((nvcc for nvcc, names in named.items() if (name,) == names), toolkit.nvcc)
        if toolkit.nvcc not in known and clash != toolkit.nvcc:
            raise HarvestRefused(
                f"no known release has nvcc {toolkit.nvcc}",
                where=Position(toolkit.name),
                expected=f"`nvcc: {toolkit.nvcc}` on a release",
                found=f"{name}, which has nvcc {clash}",
                help="add the release to the file that the family names under `releases`",
            )
        named.setdefault(toolkit.nvcc, (name,))
    return named


def _releases(
    toolkits: Sequence[ToolkitFiles],
    known: Mapping[str, tuple[str, ...]],
    named: Mapping[str, tuple[str, ...]],
) -> list[dict[str, Any]]:
    fresh = [toolkit for toolkit in toolkits if toolkit.nvcc not in known]
    if not fresh:
        return []
    return [
        {
            "id": "cuda-releases-nvcc",
            "component": "cuda",
            "source": fresh[0].source,
            "evidence": "artifact",
            "where": "releases that nothing else tells of, by their nvcc; date: first upload",
            "versions": {
                named[toolkit.nvcc][0]: {
                    **({"date": toolkit.uploaded} if toolkit.uploaded else {}),
                    "nvcc": toolkit.nvcc,
                }
                for toolkit in fresh
            },
        }
    ]


class _Rows:
    """The rows of each table; identical headers are tried only once."""

    def __init__(
        self, keys: _Keys, toolkits: Sequence[ToolkitFiles], context: HarvestContext
    ) -> None:
        self._keys = keys
        self._toolkits = toolkits
        self.named = _named(toolkits, keys.releases)
        self._context = context
        self._done = 0
        self._hosts: dict[tuple[bytes, str], HostCompilers] = {}
        self._ceilings: dict[bytes, GlibcCeiling] = {}

    def archs(self) -> list[dict[str, Any]]:
        """A row for each toolkit whose programs run on this machine."""
        rows = []
        for toolkit in self._toolkits:
            if toolkit.programs is not None and toolkit.machine == platform.machine():
                known = known_archs(toolkit.programs(), toolkit.name)
                lists = "; nvcc --list-gpu-code; nvcc --list-gpu-arch" if known.gpu_codes else ""
                cells = {"arch": " ".join(known.archs), "list-gpu-code": " ".join(known.gpu_codes)}
                rows.append(self._row("cuda-archs", toolkit, cells, f"ptxas -arch{lists}"))
            self._progress()
        return rows

    def hosts(self) -> list[dict[str, Any]]:
        """A row for each machine and toolkit that has the header."""
        rows = []
        for toolkit in self._toolkits:
            compilers = self._guard(toolkit)
            if compilers is not None:
                cells = {
                    "machine": toolkit.machine,
                    "gcc": compilers.gcc,
                    "clang": compilers.clang,
                    "clang-oldest": compilers.clang_oldest,
                    "guard": compilers.guard,
                    "override": compilers.override,
                }
                rows.append(
                    self._row("cuda-host-compilers", toolkit, cells, HOST_CONFIG, toolkit.machine)
                )
            self._progress()
        return rows

    def microsoft(self) -> list[dict[str, Any]]:
        """A row for each toolkit: the header for Linux also has the guard for Windows, on every machine."""
        rows: dict[str, dict[str, Any]] = {}
        for toolkit in self._toolkits:
            compilers = self._guard(toolkit)
            if compilers is not None and compilers.msvc and toolkit.nvcc not in rows:
                cells = {"msvc": compilers.msvc, "override": compilers.override}
                rows[toolkit.nvcc] = self._row("cuda-msvc", toolkit, cells, HOST_CONFIG)
        return list(rows.values())

    def glibc(self) -> list[dict[str, Any]]:
        """A row for each toolkit, shared by machines with the same result."""
        rows: dict[tuple[str, GlibcCeiling], dict[str, Any]] = {}
        for toolkit in self._toolkits:
            if not toolkit.math:
                continue
            ceiling = self._ceiling(toolkit)
            if row := rows.get((toolkit.nvcc, ceiling)):
                row["machine"] += f" {toolkit.machine}"
                row["where"] += f"; {toolkit.where}"
                continue
            cells = {
                "machine": toolkit.machine,
                "glibc": ceiling.glibc,
                "guards": " ".join(ceiling.guards) or "none",
            }
            other = toolkit.machine if any(nvcc == toolkit.nvcc for nvcc, _ in rows) else ""
            rows[toolkit.nvcc, ceiling] = self._row(
                "cuda-glibc", toolkit, cells, MATH_FUNCTIONS, other
            )
        return list(rows.values())

    def _progress(self) -> None:
        self._done += 1
        self._context.progress(self._done, 2 * len(self._toolkits))

    def _ceiling(self, toolkit: ToolkitFiles) -> GlibcCeiling:
        if toolkit.math not in self._ceilings:
            self._ceilings[toolkit.math] = headers.glibc_ceiling(
                toolkit.math, self._keys.glibc, toolkit.name
            )
        return self._ceilings[toolkit.math]

    def _guard(self, toolkit: ToolkitFiles) -> HostCompilers | None:
        if not toolkit.host_config:
            return None
        key = (toolkit.host_config, toolkit.machine)
        if key not in self._hosts:
            self._hosts[key] = headers.host_compilers(*key, toolkit.name)
        return self._hosts[key]

    def _row(
        self,
        table: str,
        toolkit: ToolkitFiles,
        cells: Mapping[str, str],
        where: str,
        suffix: str = "",
    ) -> dict[str, Any]:
        names = self.named[toolkit.nvcc]
        return {
            "id": f"{table}/{names[0]}" + (suffix and f"/{suffix}"),
            "cuda": " ".join(names),
            **{name: cell for name, cell in cells.items() if cell},
            "source": toolkit.source,
            "where": f"{toolkit.where}, {where}",
        }


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
