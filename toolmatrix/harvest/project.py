"""A package at an index: its files, with the data of their names and of the index, and METADATA of its wheels.

METADATA is read without the wheel if the index serves it separately. Raises IndexFailed for an invalid answer of the
index, NothingMatched for an unknown package, ToolMissing if a library is not installed, and HarvestRefused for a wheel
that is damaged or belongs to another package.
"""

from __future__ import annotations

import copy
import functools
import json
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolmatrix.errors import HarvestRefused, IndexFailed, NothingMatched, Position
from toolmatrix.factbase import versions
from toolmatrix.harvest import missing
from toolmatrix.harvest.wheel import RemoteFile, RemoteWheel
from toolmatrix.value import NamedTuple, Value

if TYPE_CHECKING:
    from packaging.metadata import RawMetadata
    from packaging.requirements import Requirement
    from packaging.specifiers import Specifier
    from packaging.tags import Tag
    from pypi_simple import DistributionPackage, ProjectPage

    from toolmatrix.harvest.transport import Reply, Session


LARGEST_PAGE = 64 << 20
"""Bytes; the longest pages of the public index have 20 MiB."""
MACHINES = ("x86_64", "aarch64")
# Requires-Python may begin or end within a series (`>=3.8.1`): the first or the last release has to match.
_LAST_PATCH = 99
# Without musllinux (PEP 656), which is another C library than glibc.
_PLATFORM = re.compile(rf"(?P<policy>manylinux\w*|linux)_(?P<machine>{'|'.join(MACHINES)})")
_INTERPRETER = re.compile(r"(?P<kind>cp|py)(?P<major>\d)(?P<minor>\d*)")
_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)")
# The minimum glibc of tags older than PEP 600, by PEPs 513, 571 and 599.
_NAMED_GLIBC = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}


class Serves(NamedTuple):
    """What one tag of a wheel serves: a machine ("" for any), Pythons, and the minimum glibc."""

    machine: str
    major: int
    minor: int
    # Later minor versions of the same major version as well.
    later: bool
    glibc: tuple[int, int]

    @property
    def order(self) -> tuple[bool, bool, int, tuple[int, int]]:
        """The preference of installers: for this machine, for this Python, for a late Python, for an old glibc."""
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
        """The best tag for a machine and a Python series, None if there is none."""
        major, minor = map(int, python.split("."))
        fit = [
            tag
            for tag in self.serves
            if tag.machine in ("", machine) and tag.major == major
            if tag.minor == minor or (tag.later and tag.minor <= minor)
        ]
        return min(fit, key=lambda tag: tag.order, default=None)

    def allows(self, python: str) -> bool:
        """Whether its Requires-Python matches the first or the last release of a series."""
        from packaging.specifiers import SpecifierSet

        wanted = SpecifierSet(self.requires_python)
        return any(f"{python}.{patch}" in wanted for patch in (0, _LAST_PATCH))


class PublishedRelease(Value):
    """One final release."""

    version: str
    # The day of the first upload, "" if the index has none.
    date: str
    yanked: bool
    requires_python: str
    wheels: tuple[Wheel, ...]
    # The source of a release that has no wheel for Linux.
    source: Wheel | None = None
    # It has a source archive, with or without wheels.
    buildable: bool = False

    @property
    def files(self) -> tuple[Wheel, ...]:
        """The wheels, or the source where there are none."""
        return self.wheels or ((self.source,) if self.source is not None else ())

    @property
    def portable(self) -> bool:
        """Whether a wheel serves any machine."""
        return any(not tag.machine for wheel in self.files for tag in wheel.serves)

    @property
    def is_pure(self) -> bool:
        """Whether it has wheels, and all of them are for any machine."""
        tags = [tag for wheel in self.wheels for tag in wheel.serves]
        return bool(tags) and not any(tag.machine for tag in tags)


def releases(session: Session, indexes: Sequence[str], package: str) -> list[PublishedRelease]:
    """The final releases of a package, newest first, from the first index that has it."""
    page = next(_pages(session, indexes, package), None)
    if page is None:
        raise NothingMatched(
            f"the package index has no `{package}`",
            where=Position(package),
            expected="the name of a package",
            help="the index comes from the settings of pip or uv",
        )
    return _releases(page, package)


def between(
    releases: Iterable[PublishedRelease], since: str, before: str = ""
) -> list[PublishedRelease]:
    """The releases from one version up to but excluding another; "" is no limit."""

    def order(version: str) -> Any:
        return versions.order(versions.key(version))

    return [
        release
        for release in releases
        if not since or order(release.version) >= order(since)
        if not before or order(release.version) < order(before)
    ]


def addresses(session: Session, indexes: Sequence[str], package: str) -> dict[str, str]:
    """The address of each file of a package by name, at the first index that has the file."""
    urls: dict[str, str] = {}
    for page in _pages(session, indexes, package):
        for file in page.packages:
            urls.setdefault(file.filename, file.url)
    return urls


def _pages(session: Session, indexes: Sequence[str], package: str) -> Iterator[ProjectPage]:
    try:
        from pypi_simple import ACCEPT_ANY
    except ImportError:
        raise missing("pypi-simple") from None
    for index in indexes:
        reply = session.whole(f"{index.rstrip('/')}/{package}/", LARGEST_PAGE, ACCEPT_ANY)
        if reply is not None:
            yield _page(package, reply)


def _page(package: str, reply: Reply) -> ProjectPage:
    from pypi_simple import ProjectPage, UnsupportedRepoVersionError

    kind = reply.headers.get("Content-Type", "").partition(";")[0]
    try:
        if kind.endswith("json"):
            return ProjectPage.from_json_data(json.loads(reply.data), reply.url)
        return ProjectPage.from_html(package, reply.data.decode(), reply.url)
    except (
        # pypi-simple does not validate JSON: any lookup in it may fail.
        *(ValueError, TypeError, KeyError, AttributeError, RecursionError),
        UnsupportedRepoVersionError,
    ) as error:
        raise IndexFailed(
            "the package index sent an unexpected answer",
            where=Position(package),
            expected="the files of a project, as JSON (PEP 691) or HTML (PEP 503)",
            found=f"{kind or 'no type'}: {str(error).partition(chr(10))[0][:120]}",
        ) from None


def _releases(page: ProjectPage, package: str) -> list[PublishedRelease]:
    from packaging.version import InvalidVersion, Version

    grouped: dict[Version, list[DistributionPackage]] = {}
    for file in page.packages:
        try:
            # An index may list other files, and versions older than PEP 440: neither can be requested.
            version = Version(file.version or "")
        except InvalidVersion:
            continue
        # Local versions are builds for an index of their own. Versions of the matrix have no epoch, which would change
        # their order.
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
    wheels = tuple(sorted(_wheels(files), key=lambda wheel: wheel.name))
    days = [file.upload_time.date().isoformat() for file in files if file.upload_time is not None]
    # The release has none if its files disagree; each wheel keeps its own.
    wanted = {_plain(file.requires_python) for file in files}
    return PublishedRelease(
        version=version,
        date=min(days, default=""),
        # Files are yanked one by one (PEP 592): a release is withdrawn when all of them are.
        yanked=all(file.is_yanked for file in files),
        requires_python=wanted.pop() if len(wanted) == 1 else "",
        wheels=wheels,
        source=None if wheels else _source(files),
        buildable=any(file.package_type == "sdist" for file in files),
    )


def _source(files: list[DistributionPackage]) -> Wheel | None:
    """The source archive of a release, which serves every machine and every Python that it allows."""
    for file in sorted(files, key=lambda file: file.filename):
        if file.package_type == "sdist" and file.filename.endswith(".tar.gz"):
            # A source has no tags: its Requires-Python decides.
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
        serves = tuple(sorted(served for tag in tags if (served := _serves(tag)) is not None))
        if serves:
            yield _file(file, serves)


def _file(file: DistributionPackage, serves: tuple[Serves, ...]) -> Wheel:
    return Wheel(
        name=file.filename,
        package=file.project or "",
        # The fragment is the digest (PEP 503), which is not part of the address of METADATA.
        url=file.url.partition("#")[0],
        sha256=file.digests.get("sha256", ""),
        requires_python=_plain(file.requires_python),
        serves=serves,
    )


def _plain(specifier: str | None) -> str:
    """A specifier without blanks, "" for an invalid one."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    text = "".join((specifier or "").split())
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return ""
    return text


def _serves(tag: Tag) -> Serves | None:
    """What a tag of a wheel serves, None if it is not for CPython on Linux, or is free-threaded."""
    interpreter = _INTERPRETER.fullmatch(tag.interpreter)
    platform = _PLATFORM.fullmatch(tag.platform)
    # `cp313t` is the ABI of the free-threaded interpreter.
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


LARGEST = 4 << 20
"""Bytes of METADATA; the longest descriptions take some hundred KiB."""
LARGEST_SOURCE = 64 << 20
"""Bytes of a packed source archive that are read to find its metadata."""
_SOURCE = ".tar.gz"
# What setuptools writes beside PKG-INFO, at the top or one folder below it, and the name under which it is kept.
_INFO = re.compile(r"[^/]+/(?:[^/]+/)?([^/]+)\.egg-info/(requires|SOURCES)\.txt")
_REQUIRES = "requires.txt"
# The version of metadata from which sources declare the fields that a build may change (PEP 643).
_SETTLED = (2, 2)
# Lower bounds before upper ones, for readability.
_ORDER = (">=", ">", "===", "==", "~=", "<=", "<", "!=")
_EXACT = ("==", "!=")
_BOUNDS: tuple[tuple[str, Callable[..., str]], ...] = (
    (">=", max),
    (">", max),
    ("<=", min),
    ("<", min),
)
# `==2.4` is only 2.4.0 in PEP 440, and every 2.4.x in a selector, so missing numbers are filled with zeros.
_NUMBERS = 3


class Metadata(Value):
    """The requirements of a wheel: lines of Requires-Dist about components, each with its component.

    `others` are the lines about other packages, and those that cannot be parsed. `whole`: it has all requirements.
    """

    wheel: Wheel
    requires: tuple[tuple[str, str], ...]
    others: tuple[str, ...] = ()
    whole: bool = True

    @property
    def lines(self) -> tuple[object, ...]:
        """All lines."""
        return self.requires, self.others


def read_metadata(session: Session, wheel: Wheel, components: Mapping[str, str]) -> Metadata:
    """The requirements of a wheel, with the component of each package that has one."""
    from packaging.metadata import parse_email
    from packaging.utils import canonicalize_name

    text = _text(session, wheel)
    if not text and wheel.name.endswith(_SOURCE):
        # Its build fetches a wheel from elsewhere, or it is older than PKG-INFO.
        return Metadata(wheel=wheel, requires=(), whole=False)
    raw, _ = parse_email(text)
    named = canonicalize_name(wheel.package)
    # METADATA without its wheel has no digest to compare, so only the name shows whether it is the right file.
    if canonicalize_name(raw.get("name", "")) != named:
        raise HarvestRefused(
            "METADATA belongs to another package",
            where=Position(wheel.name),
            expected=f"the name {named}",
            found=f"`{raw.get('name', '')}`",
        )
    requires, others = [], []
    lines = [*raw.get("requires_dist", [])]
    whole = not wheel.name.endswith(_SOURCE) or _is_settled(raw)
    if not whole:
        own_lines = _listed_requirements(session, wheel)
        lines, whole = own_lines or [], own_lines is not None
    for line in lines:
        requirement = _parsed(line)
        if requirement is None:
            others.append(line)
            whole = False
            continue
        package = canonicalize_name(requirement.name)
        if package == named and requirement.extras:
            # An extra that consists of others.
            requires.append(("", line))
        elif package in components and package != named:
            requires.append((components[package], line))
        elif package != named:
            others.append(line)
    return Metadata(
        wheel=wheel, requires=tuple(sorted(requires)), others=tuple(sorted(others)), whole=whole
    )


def _is_settled(raw: RawMetadata) -> bool:
    """Whether PKG-INFO of a source has all requirements."""
    # Tools list all requirements, or none if the build decides. Since PEP 643 the list may be empty for good.
    form = tuple(
        int(digits) for digits in raw.get("metadata_version", "").split(".") if digits.isdigit()
    )
    dynamic = [name.lower() for name in raw.get("dynamic", ())]
    return bool(raw.get("requires_dist")) or (form >= _SETTLED and "requires-dist" not in dynamic)


def _listed_requirements(session: Session, source: Wheel) -> list[str] | None:
    """The requirements that setuptools lists beside an old PKG-INFO, None without such a list.

    It lists those of the machine that packed the archive, as PKG-INFO does by now.
    """
    kept = session.cached(source.sha256, _REQUIRES)
    if not kept:
        texts = dict(_of_setuptools(session, source))
        # A list of requirements is written only if there are any.
        text = texts.get("requires", b"").decode("utf-8", "replace")
        kept = json.dumps(text if "SOURCES" in texts else None).encode()
        session.keep(source.sha256, _REQUIRES, kept)
    read: str | None = json.loads(kept)
    return None if read is None else [*_requires_dist(read)]


def _requires_dist(text: str) -> Iterator[str]:
    """The lines of requires.txt as METADATA has them: a section is an extra, a marker, or both."""
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            extra, _, marker = line[1:-1].partition(":")
            terms = [f"({marker})"] * bool(marker) + [f'extra == "{extra}"'] * bool(extra)
            section = " and ".join(terms)
        elif line and section and ";" in line:
            requirement, _, own = line.partition(";")
            yield f"{requirement.strip()} ; ({own.strip()}) and {section}"
        elif line:
            yield f"{line} ; {section}" if section else line


def _text(session: Session, wheel: Wheel) -> bytes:
    # Cached with the pieces of the wheel, which never changes.
    cached = session.cached(wheel.sha256, "METADATA")
    if cached:
        return cached
    # Try it always: some indexes serve it without declaring it.
    reply = session.whole(f"{wheel.url}.metadata", LARGEST)
    data = reply.data if reply is not None else b""
    # The answer may also be a login page with status 200.
    if not data.startswith(b"Metadata-Version:"):
        if wheel.name.endswith(_SOURCE):
            data = of_source(session, wheel.name, wheel.url, wheel.sha256, "PKG-INFO")
        else:
            data = _of_wheel(session, wheel)
    session.keep(wheel.sha256, "METADATA", data)
    return data


def _of_wheel(session: Session, wheel: Wheel) -> bytes:
    remote = RemoteWheel(session, wheel.url, wheel.sha256)
    # Only at the top: vendored packages have a .dist-info further down.
    members = [name for name in remote.names() if re.fullmatch(r"[^/]*\.dist-info/METADATA", name)]
    if len(members) != 1:
        raise HarvestRefused(
            "the wheel has no METADATA",
            where=Position(wheel.name),
            expected="one member NAME.dist-info/METADATA",
            found=", ".join(members[:3]) or "none",
        )
    return remote.read(members[0], LARGEST)


def of_source(session: Session, name: str, url: str, sha256: str, wanted: str) -> bytes:
    """A file in the top folder of a source archive, which is read only up to that file; "" if it is missing."""
    for member, opened in _members(session, name, url, sha256):
        folder, _, last = member.name.partition("/")
        if folder and last == wanted and member.size <= LARGEST:
            file = opened.extractfile(member)
            return file.read() if file is not None else b""
    return b""


def _of_setuptools(session: Session, source: Wheel) -> Iterator[tuple[str, bytes]]:
    """The texts in the folder in which setuptools describes a source, by their names without a suffix."""
    from packaging.utils import canonicalize_name

    for member, opened in _members(session, source.name, source.url, source.sha256):
        match = _INFO.fullmatch(member.name)
        file = opened.extractfile(member) if match and member.size <= LARGEST else None
        # Fixtures may be descriptions of other packages.
        if match and file and canonicalize_name(match[1]) == canonicalize_name(source.package):
            yield match[2], file.read()


def source_names(session: Session, source: Wheel) -> list[str]:
    """The names of what a source archive contains."""
    members = _members(session, source.name, source.url, source.sha256)
    return [member.name for member, _ in members]


def _members(
    session: Session, name: str, url: str, sha256: str
) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
    archive = RemoteFile(session, url, sha256)
    archive.rewind()
    try:
        with tarfile.open(fileobj=archive, mode="r|gz") as opened:
            for member in opened:
                yield member, opened
                if archive.tell() > LARGEST_SOURCE:
                    break
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as error:
        session.forget(sha256)
        raise HarvestRefused(
            "the source archive is damaged",
            where=Position(name),
            expected="a packed tar archive",
            found=str(error)[:120],
        ) from None


def required(
    metadata: Metadata, machine: str, python: str, extras: Sequence[str] = ()
) -> dict[str, str]:
    """The selector for each component that is required on Linux with these extras."""
    specifiers: dict[str, list[Specifier]] = {}
    lines = [entry for entry in metadata.requires if entry[0]]
    for component, _, requirement in _applicable(metadata, lines, machine, python, extras):
        if requirement:
            specifiers.setdefault(component, []).extend(requirement.specifier)
    return {component: joined(several) or "*" for component, several in specifiers.items()}


def required_packages(
    metadata: Metadata, machine: str, python: str, extras: Sequence[str] = ()
) -> dict[str, str]:
    """The packages that are required on Linux with these extras, each with its component, "" for none.

    Lines that cannot be parsed are skipped.
    """
    from packaging.utils import canonicalize_name

    lines = [entry for entry in metadata.requires if entry[0]]
    lines += [("", line) for line in metadata.others]
    return {
        canonicalize_name(requirement.name): component
        for component, _, requirement in _applicable(metadata, lines, machine, python, extras)
        if requirement
    }


def other_requirements(metadata: Metadata, machine: str, python: str) -> set[str]:
    """The requirements on Linux that are not components, without extras; lines that cannot be parsed are unchanged."""
    lines = set()
    others = [("", line) for line in metadata.others]
    for _, line, requirement in _applicable(metadata, others, machine, python):
        if requirement:
            # What is parsed is shared.
            requirement = copy.copy(requirement)
            requirement.marker = None
        lines.add(str(requirement or line))
    return lines


def _applicable(
    metadata: Metadata,
    lines: Iterable[tuple[str, str]],
    machine: str,
    python: str,
    extras: Sequence[str] = (),
) -> Iterator[tuple[str, str, Requirement | None]]:
    """The lines that apply on Linux with these extras, each also parsed, or None if that is not possible."""
    wanted = _wanted(metadata, machine, python, extras)
    for component, line in lines:
        requirement = _parsed(line)
        if requirement is None or _holds(line, machine, python, wanted):
            yield component, line, requirement


# Releases repeat the lines of those before them, and each is evaluated for every machine and Python.
@functools.lru_cache(maxsize=1 << 16)
def _parsed(line: str) -> Requirement | None:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


def _wanted(metadata: Metadata, machine: str, python: str, extras: Iterable[str]) -> set[str]:
    """Some extras, with the extras that they consist of."""
    own = [line for component, line in metadata.requires if not component]
    wanted = set(extras)
    while True:
        # An extra may consist of others (`app[more]; extra == "all"`), and these of more, so one pass is not enough.
        more = {
            extra
            for line in own
            if (requirement := _parsed(line)) and _holds(line, machine, python, wanted)
            for extra in requirement.extras
        }
        if more <= wanted:
            return wanted
        wanted |= more


def _holds(line: str, machine: str, python: str, extras: Iterable[str]) -> bool:
    # A marker compares `extra` with one name (PEP 508): try each, and "" for lines that do not depend on one.
    return any(_holds_with(line, machine, python, extra) for extra in ("", *extras))


@functools.lru_cache(maxsize=1 << 16)
def _holds_with(line: str, machine: str, python: str, extra: str) -> bool:
    from packaging.markers import Marker

    requirement = _parsed(line)
    if requirement is None or requirement.marker is None:
        return True
    # `implementation_name === "pypy"` compares text, for which packaging has only `==`.
    marker = Marker(str(requirement.marker).replace("===", "=="))
    return marker.evaluate({**_environment(machine, python), "extra": extra})


def _environment(machine: str, python: str) -> dict[str, str]:
    # The last patch of a series, which is what users have.
    return {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": f"{python}.99",
        "python_version": python,
        "sys_platform": "linux",
    }


def joined(specifiers: Iterable[Specifier]) -> str:
    """Specifiers as one selector, lower bounds first; of several bounds of one kind only the strictest."""
    from packaging.version import Version

    by_operator: dict[str, list[str]] = {}
    for specifier in specifiers:
        by_operator.setdefault(specifier.operator, []).append(
            _written(specifier.operator, specifier.version)
        )
    # Several lines may be about one package, and all of them apply.
    for operator, decides in _BOUNDS:
        if operator in by_operator:
            by_operator[operator] = [decides(by_operator[operator], key=Version)]
    clauses = (
        f"{operator}{version}"
        for operator in _ORDER
        for version in sorted(set(by_operator.get(operator, ())))
    )
    return ",".join(clauses)


def ordered(specifier: str) -> str:
    """A specifier of Requires-Python, lower bounds first."""
    from packaging.specifiers import SpecifierSet

    clauses = SpecifierSet(specifier)
    return ",".join(
        map(str, sorted(clauses, key=lambda clause: (_ORDER.index(clause.operator), str(clause))))
    )


def _written(operator: str, version: str) -> str:
    from packaging.version import InvalidVersion, Version

    if version.endswith(".*"):
        return version
    try:
        read = Version(version)
    except InvalidVersion:
        return version
    # A local version is one build of a release: `==2.1.0+cu121` pins release 2.1.0 of the matrix.
    numbers = read.release
    if operator in _EXACT and not (read.is_prerelease or read.is_postrelease):
        numbers += (0,) * (_NUMBERS - len(numbers))
        return ".".join(map(str, numbers))
    return read.public
