"""The files of a package at an index, and what their names and the index say of them: releases, machines, Pythons.

Raises IndexFailed for an answer that is not that of an index, NothingMatched for a package that it does not have, and
ToolMissing where a library is not installed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from toolmatrix.errors import HarvestRefused, IndexFailed, NothingMatched, Position
from toolmatrix.harvest.transport import Reply, Session, missing
from toolmatrix.value import NamedTuple, Value

if TYPE_CHECKING:
    from packaging.tags import Tag
    from pypi_simple import DistributionPackage, ProjectPage


LARGEST_PAGE = 64 << 20
"""Bytes; the longest pages of the public index have 20 MiB."""
MACHINES = ("x86_64", "aarch64")
# Requires-Python may begin or end within a series (`>=3.8.1`): what takes its first or its last release serves it.
_LAST_PATCH = 99
# musllinux (PEP 656) is left out: it is another C library, whose version says nothing about glibc.
_PLATFORM = re.compile(rf"(?P<policy>manylinux\w*|linux)_(?P<machine>{'|'.join(MACHINES)})")
_INTERPRETER = re.compile(r"(?P<kind>cp|py)(?P<major>\d)(?P<minor>\d*)")
_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)")
# The floors of names from before PEP 600, by PEPs 513, 571 and 599.
_NAMED_GLIBC = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}


class Serves(NamedTuple):
    """What one tag of a wheel serves: a machine ("" for any), Pythons, and the glibc it wants at least."""

    machine: str
    major: int
    minor: int
    # Every later minor of the same major as well.
    later: bool
    glibc: tuple[int, int]

    @property
    def order(self) -> tuple[bool, bool, int, tuple[int, int]]:
        """What installers go by: one for the machine, for this Python, for a late one, and what asks for least."""
        return not self.machine, self.later, -self.minor, self.glibc


class Wheel(Value):
    """A wheel for Linux, or the source of a release that has none."""

    name: str
    url: str
    sha256: str
    requires_python: str
    serves: tuple[Serves, ...]
    package: str

    def best(self, machine: str, python: str) -> Serves | None:
        """What of it serves a machine and a Python series best, None where nothing does."""
        major, minor = map(int, python.split("."))
        fit = [
            one
            for one in self.serves
            if one.machine in ("", machine) and one.major == major
            if one.minor == minor or (one.later and one.minor <= minor)
        ]
        return min(fit, key=lambda one: one.order, default=None)

    def allows(self, python: str) -> bool:
        """Whether its Requires-Python takes a release of a series, the first or the last."""
        from packaging.specifiers import SpecifierSet

        wanted = SpecifierSet(self.requires_python)
        return any(f"{python}.{patch}" in wanted for patch in (0, _LAST_PATCH))


class PublishedRelease(Value):
    """One final release."""

    version: str
    # The day of the first upload, "" where the index does not say.
    date: str
    yanked: bool
    requires_python: str
    wheels: tuple[Wheel, ...]
    # The source of a release that has no wheel for Linux.
    source: Wheel | None = None
    # Wheels or not, a source archive is there.
    buildable: bool = False

    @property
    def files(self) -> tuple[Wheel, ...]:
        """The wheels, or the source where there are none."""
        return self.wheels or ((self.source,) if self.source is not None else ())

    @property
    def portable(self) -> bool:
        """Whether a wheel serves any machine."""
        return any(not one.machine for wheel in self.files for one in wheel.serves)


def releases(session: Session, indexes: Sequence[str], package: str) -> list[PublishedRelease]:
    """The final releases of a package, newest first, from the first of some indexes that has it."""
    try:
        from pypi_simple import ACCEPT_ANY
    except ImportError:
        raise missing("pypi-simple") from None
    for index in indexes:
        reply = session.whole(f"{index.rstrip('/')}/{package}/", LARGEST_PAGE, ACCEPT_ANY)
        if reply is not None:
            return _releases(_page(package, reply), package)
    raise NothingMatched(
        f"the package index has no `{package}`",
        where=Position(package),
        expected="the name of a package",
        help="the index is that of pip's or uv's settings",
    )


def addresses(session: Session, indexes: Sequence[str], package: str) -> dict[str, str]:
    """Where each file of a package lies, by its name; of a file that several indexes have, at the first of them."""
    try:
        from pypi_simple import ACCEPT_ANY
    except ImportError:
        raise missing("pypi-simple") from None
    found: dict[str, str] = {}
    for index in indexes:
        reply = session.whole(f"{index.rstrip('/')}/{package}/", LARGEST_PAGE, ACCEPT_ANY)
        if reply is not None:
            for file in _page(package, reply).packages:
                found.setdefault(file.filename, file.url)
    return found


def _page(package: str, reply: Reply) -> ProjectPage:
    from pypi_simple import ProjectPage, UnsupportedRepoVersionError

    kind = reply.headers.get("Content-Type", "").partition(";")[0]
    try:
        if kind.endswith("json"):
            return ProjectPage.from_json_data(json.loads(reply.data), reply.url)
        return ProjectPage.from_html(package, reply.data.decode(), reply.url)
    except (
        # JSON of another shape is found out wherever pypi-simple happens to look something up in it.
        *(ValueError, TypeError, KeyError, AttributeError, RecursionError),
        UnsupportedRepoVersionError,
    ) as error:
        raise IndexFailed(
            "the package index does not answer like one",
            where=Position(package),
            expected="the files of a project, as JSON (PEP 691) or HTML (PEP 503)",
            found=f"{kind or 'no type'}: {str(error).partition(chr(10))[0][:120]}",
        ) from None


def _releases(page: ProjectPage, package: str) -> list[PublishedRelease]:
    from packaging.version import InvalidVersion, Version

    grouped: dict[Version, list[DistributionPackage]] = {}
    for file in page.packages:
        try:
            # An index may list anything beside releases, and versions from before PEP 440: neither can be asked for.
            version = Version(file.version or "")
        except InvalidVersion:
            continue
        # A local version stands for one of several builds, which an index of its own has. Versions of the matrix have
        # no epoch, without which the order would be another one.
        if not (version.is_prerelease or version.local or version.epoch):
            grouped.setdefault(version, []).append(file)
    if not grouped:
        raise HarvestRefused(
            "the package index lists no final release",
            where=Position(package),
            expected="files of final releases",
            found=f"{len(page.packages)} files",
        )
    return [_release(str(version), grouped[version]) for version in sorted(grouped, reverse=True)]


def _release(version: str, files: list[DistributionPackage]) -> PublishedRelease:
    wheels = tuple(sorted(_wheels(files), key=lambda one: one.name))
    days = [file.upload_time.date().isoformat() for file in files if file.upload_time is not None]
    # Of files that disagree nothing is said of all; each wheel keeps its own.
    wanted = {_plain(file.requires_python) for file in files}
    return PublishedRelease(
        version=version,
        date=min(days, default=""),
        # Files are yanked one by one (PEP 592): a release is withdrawn when none of them is left.
        yanked=all(file.is_yanked for file in files),
        requires_python=wanted.pop() if len(wanted) == 1 else "",
        wheels=wheels,
        source=None if wheels else _source(files),
        buildable=any(file.package_type == "sdist" for file in files),
    )


def _source(files: list[DistributionPackage]) -> Wheel | None:
    """The source archive of a release, as what serves every machine and Python that it allows."""
    for file in sorted(files, key=lambda one: one.filename):
        if file.package_type == "sdist" and file.filename.endswith(".tar.gz"):
            # No tag says what a source is for: it serves every Python that its Requires-Python allows.
            anything = tuple(
                Serves(machine="", major=major, minor=0, later=True, glibc=(0, 0))
                for major in (2, 3)
            )
            return _file(file, anything)
    return None


def _wheels(files: list[DistributionPackage]) -> Iterator[Wheel]:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    for file in files:
        if file.package_type != "wheel":
            continue
        try:
            tags = parse_wheel_filename(file.filename)[3]
        except InvalidWheelFilename:
            continue
        serves = tuple(sorted(one for tag in tags if (one := _serves(tag)) is not None))
        if serves:
            yield _file(file, serves)


def _file(file: DistributionPackage, serves: tuple[Serves, ...]) -> Wheel:
    return Wheel(
        name=file.filename,
        package=file.project or "",
        # Behind it stands the digest (PEP 503), which is no part of the address of METADATA beside the file.
        url=file.url.partition("#")[0],
        sha256=file.digests.get("sha256", ""),
        requires_python=_plain(file.requires_python),
        serves=serves,
    )


def _plain(specifier: str | None) -> str:
    """A specifier without blanks, "" for one that is none."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    text = "".join((specifier or "").split())
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return ""
    return text


def _serves(tag: Tag) -> Serves | None:
    """What a tag of a wheel serves, None for what is not for CPython on Linux, or free-threaded."""
    interpreter = _INTERPRETER.fullmatch(tag.interpreter)
    platform = _PLATFORM.fullmatch(tag.platform)
    # `cp313t` is the ABI of the free-threaded interpreter, which wheels of that name serve and no other one.
    if interpreter is None or tag.abi.endswith("t") or (platform is None and tag.platform != "any"):
        return None
    glibc = (0, 0)
    if platform is not None:
        known = _GLIBC.fullmatch(platform["policy"])
        numbers = known and (int(known[1]), int(known[2]))
        glibc = numbers or _NAMED_GLIBC.get(platform["policy"], glibc)
    return Serves(
        machine=platform["machine"] if platform is not None else "",
        major=int(interpreter["major"]),
        minor=int(interpreter["minor"] or 0),
        later=interpreter["kind"] == "py" or tag.abi == "abi3",
        glibc=glibc,
    )
