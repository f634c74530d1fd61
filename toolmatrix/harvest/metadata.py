"""METADATA of wheels: read without the wheel where the index has it apart, and what it requires on each Python.

Raises IndexFailed, and HarvestRefused for a wheel that is damaged or is not the one that it is called.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolmatrix.errors import HarvestRefused, Position
from toolmatrix.harvest.project import Wheel
from toolmatrix.harvest.transport import Session
from toolmatrix.harvest.wheel import RemoteFile, RemoteWheel
from toolmatrix.value import Value

if TYPE_CHECKING:
    from packaging.metadata import RawMetadata
    from packaging.requirements import Requirement
    from packaging.specifiers import Specifier


LARGEST = 4 << 20
"""Bytes; the longest descriptions take some hundred KiB."""
LARGEST_SOURCE = 64 << 20
"""Bytes of a packed source archive that are read to find what it says of itself."""
_SOURCE = ".tar.gz"
# The version of metadata in which sources say what may change when they are built (PEP 643).
_SETTLED = (2, 2)
# Lower bounds before upper ones, as people read them.
_ORDER = (">=", ">", "===", "==", "~=", "<=", "<", "!=")
_EXACT = ("==", "!=")
_BOUNDS: tuple[tuple[str, Callable[..., str]], ...] = (
    (">=", max),
    (">", max),
    ("<=", min),
    ("<", min),
)
# `==2.4` of PEP 440 is 2.4.0 alone, and that of a selector every 2.4.x: numbers that are left out are zeros.
_NUMBERS = 3


class Metadata(Value):
    """What a wheel requires of packages that somebody asks about: lines of Requires-Dist, with their components.

    `others` are the lines about packages that stand for no component, and those that nobody can read. `whole`: it says
    everything that is required.
    """

    wheel: Wheel
    requires: tuple[tuple[str, str], ...]
    others: tuple[str, ...] = ()
    whole: bool = True

    @property
    def lines(self) -> tuple[object, ...]:
        """Everything that it says."""
        return self.requires, self.others


def read(session: Session, wheel: Wheel, components: Mapping[str, str]) -> Metadata:
    """The requirements of a wheel on packages that stand for components."""
    from packaging.metadata import parse_email
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    text = _text(session, wheel)
    if not text and wheel.name.endswith(_SOURCE):
        # It fetches a wheel from elsewhere when it is built, or is older than PKG-INFO.
        return Metadata(wheel=wheel, requires=(), whole=False)
    told, _ = parse_email(text)
    named = canonicalize_name(wheel.package)
    # METADATA that was read apart from its wheel has no digest here to be held against: its name is all that tells
    # whether it is the right file.
    if canonicalize_name(told.get("name", "")) != named:
        raise HarvestRefused(
            "METADATA is not that of the wheel",
            where=Position(wheel.name),
            expected=f"the name {named}",
            found=f"`{told.get('name', '')}`",
        )
    requires, others = [], []
    whole = not wheel.name.endswith(_SOURCE) or _is_settled(told)
    for line in told.get("requires_dist", []):
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            others.append(line)
            whole = False
            continue
        package = canonicalize_name(requirement.name)
        if package == named and requirement.extras:
            # An extra that is made of others.
            requires.append(("", line))
        elif package in components and package != named:
            requires.append((components[package], line))
        elif package != named:
            others.append(line)
    return Metadata(
        wheel=wheel, requires=tuple(sorted(requires)), others=tuple(sorted(others)), whole=whole
    )


def _is_settled(told: RawMetadata) -> bool:
    """Whether PKG-INFO of a source says all that it requires."""
    # Tools that leave requirements to the build leave out all of them. Since PEP 643 none may mean that there is none.
    form = tuple(
        int(part) for part in told.get("metadata_version", "").split(".") if part.isdigit()
    )
    dynamic = [name.lower() for name in told.get("dynamic", ())]
    return bool(told.get("requires_dist")) or (form >= _SETTLED and "requires-dist" not in dynamic)


def _text(session: Session, wheel: Wheel) -> bytes:
    # Kept beside the pieces of the wheel, as that of a file that never changes.
    kept = session.kept(wheel.sha256, "METADATA")
    if kept:
        return kept
    # Indexes that have it do not always say so.
    reply = session.whole(f"{wheel.url}.metadata", LARGEST)
    data = reply.data if reply is not None else b""
    # A page to sign in is an answer too, and comes with status 200.
    if not data.startswith(b"Metadata-Version:"):
        if wheel.name.endswith(_SOURCE):
            data = of_source(session, wheel.name, wheel.url, wheel.sha256, "PKG-INFO")
        else:
            data = _of_wheel(session, wheel)
    session.keep(wheel.sha256, "METADATA", data)
    return data


def _of_wheel(session: Session, wheel: Wheel) -> bytes:
    remote = RemoteWheel(session, wheel.url, wheel.sha256)
    members = [name for name in remote.names() if _is_metadata(name)]
    if len(members) != 1:
        raise HarvestRefused(
            "the wheel has no METADATA",
            where=Position(wheel.name),
            expected="one member NAME.dist-info/METADATA",
            found=", ".join(members[:3]) or "none",
        )
    return remote.read(members[0], LARGEST)


def of_source(session: Session, name: str, url: str, sha256: str, wanted: str) -> bytes:
    """A file of the top folder of a source archive, of which no more is read than stands before it; "" without it."""
    archive = RemoteFile(session, url, sha256)
    archive.rewind()
    try:
        with tarfile.open(fileobj=archive, mode="r|gz") as opened:
            for member in opened:
                folder, _, last = member.name.partition("/")
                if folder and last == wanted and member.size <= LARGEST:
                    held = opened.extractfile(member)
                    return held.read() if held is not None else b""
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
    return b""


def _is_metadata(name: str) -> bool:
    folder, _, last = name.partition("/")
    # At the top alone: what a wheel carries along has a .dist-info of its own further down.
    return folder.endswith(".dist-info") and last == "METADATA"


def required(
    metadata: Metadata, machine: str, python: str, extras: Sequence[str] = ()
) -> dict[str, str]:
    """The selector for each component that is required on Linux, without extras but these."""
    from packaging.requirements import Requirement

    environment = _environment(machine, python)
    wanted = _wanted(metadata, environment, extras)
    found: dict[str, list[Requirement]] = {}
    for component, line in metadata.requires:
        requirement = Requirement(line)
        if component and _holds(requirement, environment, wanted):
            found.setdefault(component, []).append(requirement)
    return {component: _selector(several) for component, several in found.items()}


def named(
    metadata: Metadata, machine: str, python: str, extras: Sequence[str] = ()
) -> dict[str, str]:
    """The packages that are required on Linux, without extras but these, each with its component, "" where it has none.

    Lines that nobody can read name nothing.
    """
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    environment = _environment(machine, python)
    wanted = _wanted(metadata, environment, extras)
    found: dict[str, str] = {}
    for component, line in (
        *(one for one in metadata.requires if one[0]),
        *(("", line) for line in metadata.others),
    ):
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if _holds(requirement, environment, wanted):
            found[canonicalize_name(requirement.name)] = component
    return found


def besides(metadata: Metadata, machine: str, python: str) -> set[str]:
    """What is required on Linux beside components, without extras; a line that nobody can read is as it stands."""
    from packaging.requirements import InvalidRequirement, Requirement

    environment = _environment(machine, python)
    found = set()
    for line in metadata.others:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            found.add(line)
            continue
        if _holds(requirement, environment, ()):
            requirement.marker = None
            found.add(str(requirement))
    return found


def _wanted(metadata: Metadata, environment: Mapping[str, str], extras: Iterable[str]) -> set[str]:
    """Some extras, with those that they are made of."""
    from packaging.requirements import Requirement

    own = [Requirement(line) for component, line in metadata.requires if not component]
    wanted = set(extras)
    while True:
        # An extra may be made of others (`app[more]; extra == "all"`), and these again, so that one pass is not enough.
        more = {
            extra
            for requirement in own
            if _holds(requirement, environment, wanted)
            for extra in requirement.extras
        }
        if more <= wanted:
            return wanted
        wanted |= more


def _holds(requirement: Requirement, environment: Mapping[str, str], extras: Iterable[str]) -> bool:
    # A marker compares `extra` with one name (PEP 508): each is put to it alone, and none for what always holds.
    marker = requirement.marker
    return marker is None or any(
        marker.evaluate({**environment, "extra": extra}) for extra in ("", *extras)
    )


def _environment(machine: str, python: str) -> dict[str, str]:
    # The last patch of a series: what only its first ones take is not what people have.
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


def _selector(requirements: Iterable[Requirement]) -> str:
    return joined(one for requirement in requirements for one in requirement.specifier) or "*"


def joined(specifiers: Iterable[Specifier]) -> str:
    """Specifiers as one selector, lower bounds first; of several bounds of one kind the one that decides."""
    from packaging.version import Version

    found: dict[str, list[str]] = {}
    for one in specifiers:
        found.setdefault(one.operator, []).append(_written(one.operator, one.version))
    # Several lines may be about one package, and all of them hold.
    for operator, decides in _BOUNDS:
        if operator in found:
            found[operator] = [decides(found[operator], key=Version)]
    clauses = (
        f"{operator}{version}"
        for operator in _ORDER
        for version in sorted(set(found.get(operator, ())))
    )
    return ",".join(clauses)


def ordered(specifier: str) -> str:
    """A specifier of Requires-Python, lower bounds first."""
    from packaging.specifiers import SpecifierSet

    return ",".join(sorted(map(str, SpecifierSet(specifier)), key=_place))


def _place(clause: str) -> tuple[int, str]:
    return next(place for place, sign in enumerate(_ORDER) if clause.startswith(sign)), clause


def _written(operator: str, version: str) -> str:
    from packaging.version import InvalidVersion, Version

    if version.endswith(".*"):
        return version
    try:
        read = Version(version)
    except InvalidVersion:
        return version
    # A local version stands for one build of a release: `==2.1.0+cu121` pins what the matrix calls 2.1.0.
    numbers = read.release
    if operator in _EXACT and not (read.is_prerelease or read.is_postrelease):
        numbers += (0,) * (_NUMBERS - len(numbers))
        return ".".join(map(str, numbers))
    return read.public
