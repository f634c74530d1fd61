"""A judged manifest: its requirements as lines of a request, what facts say about each, and an edit of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

from toolmatrix.codes.manifests import ManifestFinding
from toolmatrix.errors import ToolmatrixError
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.versions import Key, Scale, SelectorError, key, order
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import CONDA, PIP, Item, NotRead, ProjectManifest, Traced
from toolmatrix.request.images import NamedImage
from toolmatrix.request.machine import TargetMachine
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.request import Ask, Request
from toolmatrix.solve.resolve import Resolution, Unsatisfiable, attempt, unsatisfiable
from toolmatrix.solve.worlds import is_whole
from toolmatrix.value import NamedTuple, Value

ARCH, DEVICE = "arch", "device"
RUNTIME = (DEVICE, "driver")
"""What a container has from the machine that it runs on."""
_PIN = re.compile(r"={2,3}(\d+(?:\.\d+)*)")
# A release with a local version, which only an index of its maker has.
_LOCAL_PIN = re.compile(r"==\s*(\d[\w.]*\+[\w.]+)")
_FILE = re.compile(r"\.whl(?:$|[#?])")
# What sources of a list of files say.
_RELEASE_RANGE = re.compile(r"package ([\w.-]+), (?:final )?releases (\S+) to ([^\s,;]+)")
_ALL = ": file list"


class RequestedPart(Value):
    """One line of a request that an item of a manifest makes.

    `asks` are its component, and the builds of it that it leaves; `text` is how a sentence names it. A change of
    version replaces `version`, which is None where the file does not have it as it is. `carried`: an image brings it.
    `open`: an index that was not read may have builds of it; `older`: it may be a release before those that are known;
    `as_wheel`: conda or an image brings it, compiled for the archs of a wheel.
    """

    component: str
    asks: tuple[Ask, ...]
    text: str
    item: Item
    version: Traced | None = None
    carried: bool = False
    open: bool = False
    older: bool = False
    as_wheel: bool = False


def finding_fields(
    parts: Sequence[RequestedPart], environment: str = "", component: str = ""
) -> dict[str, Any]:
    """What every finding about some parts has; it is about the component of the first unless one is given."""
    return {
        "component": component or parts[0].component,
        "asked": tuple(part.text for part in parts),
        "positions": tuple(part.item.where for part in parts),
        "environment": environment,
        "where": parts[0].item.where,
    }


class MissingRelease(Value):
    """A release that was not in the list of its package when that was `read`; `near` are its neighbours.

    A local version is in no list of the package index, and has none; `options` lead pip to an index that has it.
    """

    part: RequestedPart
    package: str
    release: str
    near: tuple[str, ...] = ()
    read: str = ""
    options: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """What the list has in its place."""
        *older, newer = self.near
        place = "conda" if self.part.item.kind == CONDA else "the package index"
        others = f", but {older[0]} and {newer}" if older else f" and none before {newer}"
        return f"{place} has no {self.package} {self.release}{others}"


class RequestedParts(Value):
    """All parts of one environment, the machine that it is for, and what of it the matrix does not know.

    `missing` are releases that are known not to be there, `images` those of which lists of images speak, `unread` the
    components of which a line wants a release that the matrix does not know, `written` all parts in the order of the
    file, also those that a later one replaces, and `items` all that installers are called for.
    """

    name: str
    parts: tuple[RequestedPart, ...]
    machine: str
    unknown: tuple[NotRead, ...]
    missing: tuple[MissingRelease, ...] = ()
    images: tuple[NamedImage, ...] = ()
    unread: tuple[str, ...] = ()
    written: tuple[RequestedPart, ...] = ()
    items: tuple[Item, ...] = ()


def older(index: Index, component: str, *selectors: str) -> bool:
    """True if selectors admit releases before the oldest that is known, about which there are no facts."""
    scale = index.scale(component)
    if index.header["components"][component]["scheme"] == "names" or not scale.versions:
        return False
    # Each bound, and what lies just above it, represents all that is between bounds.
    bounds = {
        clause.text
        for selector in selectors
        for clauses in scale.parse(selector)
        for clause in clauses
        if clause.version
    }
    tried = {"0", *(bound + more for bound in bounds for more in ("", ".0.1"))}
    below = Scale("pep440", sorted(filter(partial(_before, scale.versions[0]), tried), key=_key))
    left = all_releases(len(below.versions))
    for selector in selectors:
        left &= below.select(selector)
    return bool(left)


def by_command(parts: Iterable[RequestedPart]) -> Iterator[tuple[RequestedPart, ...]]:
    """The packages that each command installs."""
    commands: dict[str, list[RequestedPart]] = {}
    for part in parts:
        if part.item.kind == PIP and part.item.command:
            commands.setdefault(part.item.command, []).append(part)
    yield from map(tuple, commands.values())


def is_file(item: Item) -> bool:
    """True for a package at the address of one wheel."""
    return any(_FILE.search(address) for address in item.indexes)


def local_version(item: Item) -> str:
    """The release that a package is pinned to, if it is a local version and only the package index is asked."""
    match = _LOCAL_PIN.fullmatch(item.specifier.strip())
    elsewhere = item.kind != PIP or item.bounds or item.indexes or item.alone or item.installed
    return match[1] if match and not elsewhere else ""


def exact(scale: Scale, selector: str) -> str:
    """A selector of pip as one of the matrix: `==2.1` is 2.1.0 alone (PEP 440), and no series, if there is one."""
    pinned = _PIN.fullmatch(selector)
    release = f"==={pinned[1]}" if pinned else selector
    known = scale.select(release) if pinned else 0
    return release if known and known != scale.select(selector) else selector


def missing(index: Index, part: RequestedPart, package: str) -> MissingRelease | None:
    """The release that a part pins, if a list of all files of its package lacks it and has newer ones.

    Without older ones in the list it must be known that it was read whole.
    """
    if release := local_version(part.item):
        options = _options(index, part)
        return MissingRelease(part=part, package=package, release=release, options=options)
    item = part.item
    pinned = _PIN.fullmatch(part.asks[0].selector)
    # What is installed without a release was built somewhere.
    if not pinned or item.kind != PIP or item.bounds or item.indexes or item.installed:
        return None
    builds = (
        index.component(index.builds_of(part.component)).packages
        if package != part.component
        else {}
    )
    mask = sum(bits for name, bits in builds.items() if name.partition("[")[0] == package)
    names = index.scale(index.builds_of(part.component)).named(mask) if mask else ()
    releases = {name.partition("+")[0] for name in names if "@default/" in name}
    known = sorted(releases or index.component(part.component).versions, key=_key)
    older = [release for release in known if _before(pinned[1], release)]
    newer = [release for release in known if _before(release, pinned[1])]
    closed = bool(older) or is_whole(index, part.component)
    for source in index.sources().values() if closed and newer else ():
        # What was listed on the index is all that there was.
        match = _RELEASE_RANGE.match(source.at) if _ALL in source.title else None
        if match and match[1] == package and _before(match[3], pinned[1]):
            near = (*older[-1:], newer[0])
            return MissingRelease(
                part=part, package=package, release=pinned[1], near=near, read=source.read
            )
    return None


def not_at_indexes(items: Iterable[Item]) -> Iterator[NotRead]:
    """Packages that the only indexes that are asked for them are not known to have."""
    for item in items:
        name = called.package_name(item.name)
        addresses = item.indexes if item.kind == PIP and item.alone and not item.bounds else ()
        if addresses and not any(called.may_be_at(name, address) for address in addresses):
            why = "the only index that is named is not known to have this package"
            yield NotRead(text=item.text, why=why, decides=True)


def missing_of_conda(part: RequestedPart) -> MissingRelease | None:
    """The release that a part pins, if it is before the first of its package of conda."""
    name = part.item.name
    first, read = called.first_of_conda(name)
    pinned = _PIN.fullmatch(part.asks[0].selector.removesuffix(".*"))
    if not first or not pinned or not _before(first, pinned[1]):
        return None
    return MissingRelease(part=part, package=name, release=pinned[1], near=(first,), read=read)


def _options(index: Index, part: RequestedPart) -> tuple[str, ...]:
    """The options with which pip finds a local version, empty where no channel is known to have it."""
    line = part.item.specifier.partition("+")[2].strip()
    for ask in part.asks[1:]:
        scale = index.scale(ask.component)
        for build in scale.named(scale.select(ask.selector)):
            channel = index.channel(build.partition("@")[2].partition("/")[0])
            if not channel.default and channel.install:
                words = (word.replace("{line}", line) for word in channel.install)
                return tuple("--extra-index-url" if w == "--index-url" else w for w in words)
    return ()


def with_indexes(parts: RequestedParts, elsewhere: frozenset[str]) -> RequestedParts:
    """The parts of an environment, of which an index that another file names may have the missing local versions."""
    there = [
        release
        for release in parts.missing
        if not release.near and release.package in elsewhere and not release.part.item.command
    ]
    unread = tuple(
        NotRead(
            text=release.part.item.text,
            why="the package index has no local versions, and only another file names an index",
        )
        for release in there
    )
    left = tuple(release for release in parts.missing if release not in there)
    return parts.replace(missing=left, unknown=(*parts.unknown, *unread)) if there else parts


class Question(NamedTuple):
    """Some parts that have to go together, whether as wheels, and what they run on unless their builds say it."""

    parts: tuple[RequestedPart, ...]
    froms: tuple[str, ...]
    accelerators: tuple[str, ...]

    def without(self, part: RequestedPart) -> Question:
        """The same about all other parts."""
        return self._replace(parts=tuple(each for each in self.parts if each != part))


@lru_cache(maxsize=128)
def answer_of(index: Index, request: Request) -> Resolution | Assembly:
    """What `attempt` gives, kept: files of a folder, and their edits, ask much the same."""
    return attempt(index, request)


def has_answer(index: Index, request: Request) -> bool:
    """True if a request has an answer, which takes a small part of what its refusal takes."""
    return isinstance(answer_of(index, request), Resolution)


@lru_cache(maxsize=128)
def refused(index: Index, request: Request) -> Unsatisfiable | None:
    """Why a request has no answer, None if it has one."""
    outcome = answer_of(index, request)
    return None if isinstance(outcome, Resolution) else unsatisfiable(outcome, request)


def requirements_of(index: Index, part: RequestedPart) -> set[str]:
    """The components that hard facts say some release of a part requires."""
    left = index.scale(part.component).select(part.asks[0].selector)
    return {
        name
        for binding in index.component(part.component).bindings
        if binding.kind in ("requires", "needs") and binding.mask & left
        for name in binding.named
    }


def builds(index: Index, part: RequestedPart, machine: str = "") -> tuple[str, int]:
    """The component of the builds of a package, and those of them that a part leaves, on a machine if one is given."""
    name = index.builds_of(part.component)
    if not name or part.item.kind != PIP:
        return name, 0
    selectors = tuple((ask.component, ask.selector) for ask in part.asks)
    return name, _builds(index, name, selectors, machine)


@lru_cache(maxsize=1024)
def _builds(index: Index, name: str, selectors: tuple[tuple[str, str], ...], machine: str) -> int:
    facts = index.component(name)
    left = all_releases(len(facts.versions))
    selected = [
        (component, index.scale(component).select(selector)) for component, selector in selectors
    ]
    if machine:
        selected.append(("machine", index.scale("machine").bit(machine)))
    for component, mask in selected:
        if component == name:
            left &= mask
            continue
        for binding in facts.about(component, left):
            if not binding.conditions and not binding.allowed & mask:
                left &= ~binding.mask
    return left


def wheel_accelerators(index: Index, part: RequestedPart, machine: str) -> tuple[str, ...]:
    """What the builds of a package that are left on a machine were made for; nothing where they are not known."""
    name, left = builds(index, part, machine)
    return _accelerators(index, name, left)


@lru_cache(maxsize=1024)
def _accelerators(index: Index, name: str, left: int) -> tuple[str, ...]:
    accelerators: dict[str, None] = {}
    scale = index.scale("accelerator")
    for binding in index.component(name).about("accelerator", left) if left else ():
        # A build for CUDA runs without one as well, and is no other for it.
        built_for = [name for name in scale.named(binding.allowed & ~1) if name != "none"]
        accelerators |= dict.fromkeys(built_for or ["none"])
    return tuple(accelerators)


def all_releases(count: int) -> int:
    """The mask of so many releases: bit 0 is the absence of a component, and none of them."""
    return (2 << count) - 2


def _key(version: str) -> Key:
    return order(key(version))


def _before(first: str, version: str) -> bool:
    try:
        return _key(version) < _key(first)
    except SelectorError:
        return False


FINE, REFUSED, UNKNOWN = "fine", "refused", "unknown"


class JudgedPair(NamedTuple):
    """What facts say of two parts: `says` is fine, refused or unknown, `evidence` the best that supports it.

    They are `bound` where the compiled code of one goes with some releases of the other.
    """

    first: RequestedPart
    second: RequestedPart
    says: str
    evidence: str
    facts: tuple[str, ...]
    bound: bool

    @property
    def decides(self) -> bool:
        """True if nothing works without it: it is about bound code, a device or a driver."""
        return self.bound or self.second.component in RUNTIME


class ManifestRefusal(Value):
    """A finding with the parts that it is about, and the request that these alone make."""

    finding: ManifestFinding
    parts: tuple[RequestedPart, ...]
    request: Request

    @property
    def hard(self) -> bool:
        """True where a fact forbids it, and no wheel is only lacking."""
        return self.finding.severity == "error"


def with_reason(index: Index, pairs: Iterable[JudgedPair]) -> Iterator[JudgedPair]:
    """The pairs, but for an independent package with what it does not require: there all was read, and is silent."""
    for pair in pairs:
        sides = pair.first.component, pair.second.component
        if pair.says != UNKNOWN or not any(map(index.is_independent, sides)):
            yield pair


class JudgedEnvironment(Value):
    """One environment: its parts, what it asks for that is unknown, its refusals and every pair of parts."""

    name: str
    parts: tuple[RequestedPart, ...]
    unknown: tuple[NotRead, ...]
    refusals: tuple[ManifestRefusal, ...]
    pairs: tuple[JudgedPair, ...]

    def of_lock(self) -> JudgedEnvironment:
        """The same as what is locked and not installed: what is refused stops the lock, and the rest is of no use."""
        errors = (r for r in self.refusals if r.finding.severity == "error")
        return self.replace(unknown=(), pairs=(), refusals=tuple(errors))


class JudgedManifest(Value):
    """A file with its environments, and the machine that it is for; `refusals` are those of all, each once.

    `elsewhere` are the packages for which another file of its folder names an index.
    """

    manifest: ProjectManifest
    environments: tuple[JudgedEnvironment, ...]
    machine: TargetMachine
    elsewhere: frozenset[str] = frozenset()

    @property
    def refusals(self) -> tuple[ManifestRefusal, ...]:
        """Each refusal once: a stage has those of the stage that it starts from."""
        unique: dict[tuple[object, ...], ManifestRefusal] = {}
        for environment in self.environments:
            for refusal in environment.refusals:
                finding = refusal.finding
                places = tuple(map(str, finding.positions))
                key = (finding.code, finding.component, finding.asked, places)
                unique.setdefault(key, refusal)
        return tuple(unique.values())

    def pairs(self) -> tuple[JudgedPair, ...]:
        """Each pair of places once."""
        unique: dict[tuple[object, ...], JudgedPair] = {}
        for environment in self.environments:
            for pair in environment.pairs:
                sides = (pair.first, pair.second)
                unique.setdefault(tuple((part.text, str(part.item.where)) for part in sides), pair)
        return tuple(unique.values())


class Edit(Value):
    """Files by path with their text before and after; of what is installed, the commands that change it."""

    files: tuple[tuple[str, str, str], ...]
    commands: tuple[str, ...] = ()

    @property
    def patch(self) -> str:
        """A unified patch, for `patch -p0` and `git apply -p0`."""
        from difflib import unified_diff

        lines: list[str] = []
        for path, old, new in self.files:
            before, after = (text.splitlines(keepends=True) for text in (old, new))
            lines += map(_ended, unified_diff(before, after, path, path))
        return "".join(lines)


def _ended(line: str) -> str:
    # The last line of a file may have no end, which a patch has to say.
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


class JudgedFile(Value):
    """One file: what came of it, or the error that it cannot be read by."""

    path: str
    judged: JudgedManifest | None = None
    edit: Edit | None = None
    error: ToolmatrixError | None = None

    @property
    def refusals(self) -> tuple[ManifestRefusal, ...]:
        """All that is refused in it, and all without a wheel."""
        return self.judged.refusals if self.judged else ()

    @property
    def hard(self) -> tuple[ManifestRefusal, ...]:
        """What a fact refuses."""
        return tuple(refusal for refusal in self.refusals if refusal.hard)

    @property
    def asks(self) -> bool:
        """True where it asks for something, or something of it was not read."""
        return self.judged is None or bool(self.judged.environments or self.unread)

    @property
    def outcome(self) -> str:
        """no where a fact refuses something, yes where facts join any of it, unknown else; unread for an error."""
        if self.judged is None:
            return "unread"
        if self.hard:
            return "no"
        unproven = any(pair.decides and pair.says == UNKNOWN for pair in self.judged.pairs())
        unproven = unproven or any(entry.decides for entry in self.unknown)
        return "yes" if self.count(FINE) and not unproven else "unknown"

    def count(self, says: str) -> int:
        """The number of pairs with this verdict."""
        return sum(pair.says == says for pair in self.judged.pairs()) if self.judged else 0

    @property
    def unread(self) -> tuple[NotRead, ...]:
        """What was not read of it, in the order of the file."""
        return self.judged.manifest.unread if self.judged else ()

    @property
    def unknown(self) -> tuple[NotRead, ...]:
        """What the matrix does not know, each place once."""
        unique: dict[tuple[str, str], NotRead] = {}
        for environment in self.judged.environments if self.judged else ():
            for not_read in environment.unknown:
                unique.setdefault((str(not_read.where), not_read.text.text), not_read)
        return tuple(unique.values())
