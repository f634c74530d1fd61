"""Where the files of CUDA toolkits are: in wheels at the index or in a directory, or unpacked as they are installed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from toolmatrix.errors import HarvestRefused, Position
from toolmatrix.harvest import programs
from toolmatrix.harvest.archs import DRIVER, PTXAS
from toolmatrix.harvest.families import HarvestContext
from toolmatrix.harvest.wheel import RemoteWheel
from toolmatrix.outputs import file_digest
from toolmatrix.value import Value

if TYPE_CHECKING:
    from datetime import date

    class _Files(Protocol):
        name: str

        def names(self) -> list[str]: ...

        def read(self, name: str, limit: int) -> bytes: ...


HOST_CONFIG = "crt/host_config.h"
MATH_FUNCTIONS = "crt/math_functions.h"
_WHEEL = re.compile(
    r"(?P<package>[\w.]+)-(?P<version>[\w.]+)-py\w+-none-(?:\w+\.)*?\w*?(?P<machine>x86_64|aarch64)\.whl"
)
_SAID = re.compile(r"\bV(\d+\.\d+\.\d+)\b")
_LARGEST_HEADER = 4 << 20
_LARGEST_PROGRAM = 256 << 20
_MOST_FILES = 200_000
_ELF_MACHINES = {62: "x86_64", 183: "aarch64"}
"""Numbers of ELF, e_machine."""


class ToolkitFiles(Value):
    """What is read of one toolkit for one machine."""

    # The version of its nvcc, which tells releases apart.
    nvcc: str
    machine: str
    name: str
    # The key of its source, that source's title and place, and what rows say of the file.
    source: str
    title: str
    at: str
    where: str
    # The day of its upload, "" where that is not known.
    uploaded: str = ""
    host_config: bytes = b""
    math: bytes = b""
    programs: Callable[[], Mapping[str, bytes]] | None = None

    def described(self, day: date) -> dict[str, Any]:
        """The source as fact files declare it."""
        return {"title": self.title, "at": self.at, "read": day}


def at_index(packages: Iterable[str], context: HarvestContext) -> list[ToolkitFiles]:
    """The toolkits in the wheels of some packages at the index. Raises ToolmatrixError."""
    from toolmatrix.harvest import families, project

    indexes = families.indexes(context.env)
    context.session.trust(indexes.certificates, indexes.proxy)
    found = []
    for package in packages:
        for release in project.releases(context.session, indexes.urls, package):
            for wheel in release.wheels:
                files = RemoteWheel(context.session, wheel.url, wheel.sha256)
                found += _of_wheel(files, wheel.sha256, release.date)
    return found


def below(place: str, context: HarvestContext) -> list[ToolkitFiles]:
    """The toolkits in a wheel, in the wheels of a directory, or unpacked in it. Raises ToolmatrixError."""
    wheels = [place] if place.endswith(".whl") else sorted(_wheels(place))
    if wheels:
        found = [
            toolkit
            for path in wheels
            for toolkit in _of_wheel(
                RemoteWheel(context.session, f"file://{os.path.abspath(path)}"),
                file_digest(path),
                "",
            )
        ]
    else:
        found = _unpacked(place)
    if not found:
        raise HarvestRefused(
            "there is no CUDA toolkit",
            where=Position(place),
            expected=f"`{HOST_CONFIG}` or `bin/{PTXAS}` below it, or wheels that hold them",
        )
    return found


def _wheels(place: str) -> Iterator[str]:
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.name.endswith(".whl"):
                    yield entry.path
    except OSError as error:
        raise HarvestRefused(
            "the toolkit cannot be read", where=Position(place), found=error.strerror or ""
        ) from None


def _of_wheel(files: _Files, sha256: str, uploaded: str) -> list[ToolkitFiles]:
    """The toolkit of a wheel; none where it is for another system or holds nothing that is asked for."""
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

    def one(end: str) -> str:
        found = [name for name in names if f"/{name}".endswith(f"/{end}")]
        return min(found, key=len, default="")

    held = {name: path for name in (PTXAS, *DRIVER) if (path := one(f"bin/{name}"))}
    host_config, math = one(HOST_CONFIG), one(MATH_FUNCTIONS)
    # From CUDA 13 on headers and programs come in packages of their own.
    if not host_config and PTXAS not in held:
        return []

    # Called where they can be run and nowhere else: ptxas alone takes 5 to 12 MB of a wheel.
    def programs() -> dict[str, bytes]:
        return {name: files.read(path, _LARGEST_PROGRAM) for name, path in held.items()}

    return [
        bare.replace(
            host_config=files.read(host_config, _LARGEST_HEADER) if host_config else b"",
            math=files.read(math, _LARGEST_HEADER) if math else b"",
            programs=programs if PTXAS in held else None,
        )
    ]


class _Folder:
    """A directory, read as a wheel is."""

    def __init__(self, place: str) -> None:
        self.name = place

    def names(self) -> list[str]:
        found: list[str] = []
        for folder, _, names in os.walk(self.name):
            inside = os.path.relpath(folder, self.name)
            found += (os.path.normpath(os.path.join(inside, name)) for name in names)
            if len(found) > _MOST_FILES:
                raise HarvestRefused(
                    "the directory is too large for a toolkit",
                    where=Position(self.name),
                    expected=f"at most {_MOST_FILES} files",
                )
        return sorted(found)

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


def _unpacked(place: str) -> list[ToolkitFiles]:
    files = _Folder(place)
    names = files.names()
    program = next((name for name in names if f"/{name}".endswith(f"/bin/{PTXAS}")), "")
    version = next((name for name in names if os.path.basename(name) == "version.json"), "")
    if not program:
        return []
    # e_machine of the ELF header. Files are read before a program is asked, which may be one for another machine.
    machine = _ELF_MACHINES.get(
        int.from_bytes(files.read(program, _LARGEST_PROGRAM)[18:20], "little"), ""
    )
    nvcc = _stated(files.read(version, _LARGEST_HEADER)) if version else ""
    nvcc = nvcc or _printed(os.path.join(place, program))
    if not machine or not nvcc:
        raise HarvestRefused(
            "the toolkit does not say its version",
            where=Position(os.path.join(place, program)),
            expected="version.json, or a ptxas of this machine that prints it",
        )
    bare = ToolkitFiles(
        nvcc=nvcc,
        machine=machine,
        name=place,
        source=f"toolkit-{nvcc}-{machine}",
        title=f"CUDA toolkit with nvcc {nvcc} as installed",
        at=f"CUDA toolkit with nvcc {nvcc}, {machine}",
        where="installed",
    )
    return _toolkit(files, bare)


def _stated(data: bytes) -> str:
    """The version of nvcc in version.json, "" where it says none."""
    try:
        found = json.loads(data)["cuda_nvcc"]["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return found if isinstance(found, str) and re.fullmatch(r"[\d.]+", found) else ""


def _printed(program: str) -> str:
    found = _SAID.search(programs.ask([os.path.abspath(program), "--version"]).text)
    return found[1] if found else ""
