"""The smallest edit of a file with which no fact refuses anything of it: each is read, judged and solved again.

What is tried are the repairs of what was refused, the cheapest first, then what the facts behind it require, and of a
base image the nearest tags that the matrix knows. An edit that leaves a refusal, or asks for something that nobody
knows, is none; one after which facts join what was refused comes before one of which they are silent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from toolmatrix.codes.manifests import (
    ExternallyManaged,
    ImageGone,
    LibraryMissing,
    NewestUnfit,
    NoLocalVersion,
    NoSuchRelease,
    NotOnIndex,
    Replaced,
    StubPackage,
)
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import ClaimRecord
from toolmatrix.judging.manifests import judge, judge_pairs
from toolmatrix.manifests import names as called
from toolmatrix.manifests import read
from toolmatrix.manifests.installed import written
from toolmatrix.manifests.model import (
    CONDA,
    INSTALLED,
    MACHINE,
    PIP,
    PYTHON,
    FileText,
    Item,
    ProjectManifest,
    Traced,
)
from toolmatrix.request import manifests as reading
from toolmatrix.request.images import tagged_versions
from toolmatrix.request.judgement import (
    ARCH,
    DEVICE,
    FINE,
    RUNTIME,
    Edit,
    JudgedManifest,
    ManifestRefusal,
    RequestedPart,
    refused,
    wheel_accelerators,
)
from toolmatrix.request.manifests import match_address, plain
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.solve.repair import Repair, repairs
from toolmatrix.solve.request import Ask, Request
from toolmatrix.solve.resolve import Resolution, attempt
from toolmatrix.value import NamedTuple

# So many refusals are mended one after the other, and so many files judged on the way.
_STEPS = 6
_TRIED = 24
_DEFAULT = "default"
# So many repairs of one refusal, and tags of one image, are tried.
_REPAIRS = 6
_TAGS = 5
# What a machine has for what is compiled there, while a wheel may bring its own.
_BESIDE = frozenset(("cuda", "cudnn", "rocm", "gcc", "clang"))
_VERSION = re.compile(r"(?P<sign>[=~<>!^]*)(?P<blank>\s*)(?P<version>[^+,|]*)(?P<line>\+[\w.]+)?")


class Replacement(NamedTuple):
    """A range of a file, and the text that replaces it."""

    source: FileText
    start: int
    end: int
    text: str

    @property
    def old(self) -> str:
        """The text that is replaced."""
        return self.source.text[self.start : self.end]


def smallest(index: Index, judgement: JudgedManifest) -> Edit | None:
    """The edit after which nothing is refused, None where none was found."""
    return _Search(index, judgement).find_edit()


class _Search:
    def __init__(self, index: Index, judgement: JudgedManifest) -> None:
        self.index = index
        self.first = judgement
        self.tried = 0

    def find_edit(self) -> Edit | None:
        current, left = self.first, _hard_refusals(self.first)
        for _ in range(_STEPS):
            if not left:
                return self.edit(current) if current is not self.first else None
            better = self.step(current, left)
            if better is None:
                return None
            current, left = better
        return None

    def edit(self, judgement: JudgedManifest) -> Edit:
        if judgement.manifest.kind in INSTALLED:
            return Edit(files=(), commands=tuple(_commands(self.index, self.first, judgement)))
        before = {source.path: source.text for source in self.first.manifest.sources}
        after = {source.path: source.text for source in judgement.manifest.sources}
        return Edit(
            files=tuple(
                (path, text, after[path])
                for path, text in before.items()
                if after.get(path, text) != text
            )
        )

    def step(
        self, judgement: JudgedManifest, left: Sequence[ManifestRefusal]
    ) -> tuple[JudgedManifest, list[ManifestRefusal]] | None:
        """The file with one change fewer to make: of those that mend the first refusal, the one that leaves least."""
        best: tuple[JudgedManifest, list[ManifestRefusal]] | None = None
        for replacements in candidates(self.index, judgement, left[0]):
            if self.tried >= _TRIED:
                break
            changed = self.changed(judgement, replacements)
            if pins := [*_new_pins(judgement, changed, replacements)]:
                changed = self.changed(judgement, (*replacements, *pins))
            still = _hard_refusals(changed)
            if _count_unknown(changed) > _count_unknown(judgement) or len(still) >= len(left):
                continue
            joined = not still and _facts_join(self.index, changed, left[0])
            if best is None or joined or len(still) < len(best[1]):
                best = changed, still
            if joined:
                break
        return best

    def changed(
        self, judgement: JudgedManifest, replacements: Sequence[Replacement]
    ) -> JudgedManifest:
        """The file with some changes, read and judged again."""
        self.tried += 1
        reread = _reread(judgement, replacements)
        return judge(
            self.index,
            reread,
            judgement.machine,
            paired=False,
            elsewhere=judgement.elsewhere,
        )


def _new_pins(
    before: JudgedManifest, after: JudgedManifest, replacements: Sequence[Replacement]
) -> Iterator[Replacement]:
    """What a changed file leaves open and its newest release does not fit, pinned in the place where it was before."""
    known = {part.text for refusal in before.refusals for part in refusal.parts[:1]}
    places = {change.start for change in replacements}
    open_lines = {
        part.text: part
        for environment in before.environments
        for part in environment.parts
        if part.item.kind == PIP and not part.item.specifier.startswith("==")
    }
    for refusal in after.refusals:
        finding, part = refusal.finding, open_lines.get(refusal.parts[0].text)
        for pin in finding.pins if isinstance(finding, NewestUnfit) and part else ():
            component, _, release = pin.partition("==")
            if part and component == part.component and part.text not in known:
                pinned = _replace(part, release) if part.version else _behind(part, release)
                if pinned and pinned.start not in places:
                    yield pinned


def _hard_refusals(judgement: JudgedManifest) -> list[ManifestRefusal]:
    return [refusal for refusal in judgement.refusals if refusal.hard]


def _facts_join(index: Index, judgement: JudgedManifest, refusal: ManifestRefusal) -> bool:
    names = {part.component for part in refusal.parts}
    among = [
        pair
        for pair in judge_pairs(index, judgement)
        if {pair.first.component, pair.second.component} <= names
    ]
    return all(pair.says == FINE for pair in among)


def _count_unknown(judgement: JudgedManifest) -> int:
    # Replacing something by an unknown version silences a refusal and repairs nothing.
    return sum(len(environment.unknown) for environment in judgement.environments)


def _reread(judgement: JudgedManifest, replacements: Sequence[Replacement]) -> ProjectManifest:
    manifest = judgement.manifest
    if manifest.kind in INSTALLED:
        return _reinstalled(
            manifest, {(change.source, change.start): change.text for change in replacements}
        )
    texts = {source.path: source.text for source in manifest.sources}
    # From the end, so that places before it stay.
    for source, start, end, new in sorted(replacements, key=lambda change: -change.start):
        text = texts[source.path]
        texts[source.path] = text[:start] + new + text[end:]
    main = manifest.sources[0]
    return read.manifest(FileText(main.path, texts[main.path], main.root), texts)


def _reinstalled(
    manifest: ProjectManifest, versions: Mapping[tuple[FileText, int], str]
) -> ProjectManifest:
    """A paste with other versions of packages, by the places of those that it names: no text of it changes."""

    def changed(item: Item) -> Item:
        at = item.version.span if item.version else None
        if item.version is None or at is None or (item.version.source, at[0]) not in versions:
            return item
        specifier = f"=={versions[item.version.source, at[0]]}"
        return item.replace(specifier=specifier, text=written(item.text, item.name + specifier))

    return manifest.replace(
        environments=tuple(
            environment.replace(items=tuple(map(changed, environment.items)))
            for environment in manifest.environments
        )
    )


def _commands(index: Index, before: JudgedManifest, after: JudgedManifest) -> Iterator[str]:
    """What installs the versions in which two readings of a paste differ."""
    for old, new in zip(before.environments, after.environments, strict=True):
        known = {part.item for part in old.parts}
        requirements: dict[tuple[str, ...], list[str]] = {}
        for part in new.parts:
            item = part.item
            if item not in known and item.kind == CONDA:
                requirements.setdefault(("conda",), []).append(item.name + item.specifier[1:])
            elif item not in known:
                words = ("pip", *_index_options(index, part))
                requirements.setdefault(words, []).append(item.name + item.specifier)
        for (tool, *options), names in requirements.items():
            yield " ".join((tool, "install", *names, *options))


def _index_options(index: Index, part: RequestedPart) -> Sequence[str]:
    """The options with which pip finds a local version."""
    _, _, line = part.item.specifier.partition("+")
    for ask in part.asks[1:] if line else ():
        scale = index.scale(ask.component)
        for build in scale.named(scale.select(ask.selector)):
            channel = index.channel(build.partition("@")[2].partition("/")[0])
            if not channel.default:
                return [word.replace("{line}", line) for word in channel.install]
    return ()


def candidates(
    index: Index, judgement: JudgedManifest, refusal: ManifestRefusal
) -> Iterator[tuple[Replacement, ...]]:
    """The changes of a file that may mend a refusal, the cheapest first."""
    yielded = set()
    # For a machine all packages have to move together, often to builds of another line.
    on_machine = any(part.item.kind == MACHINE for part in refusal.parts)
    # Another line of an index may have what the named one lacks.
    elsewhere = isinstance(refusal.finding, NotOnIndex)
    for replacements in _by_solving(index, judgement, refusal) if on_machine or elsewhere else ():
        yielded.add(replacements)
        yield replacements
    strategies = (
        *(_by_permission, _by_present_names, _by_pins, _by_repairs),
        *(_by_facts, _by_lines, _by_releases, _by_images),
    )
    for strategy in strategies:
        for replacements in strategy(index, refusal):
            together = *replacements, *_in_commands(index, judgement, replacements)
            for changes in dict.fromkeys((replacements, together)):
                if changes and changes not in yielded:
                    yielded.add(changes)
                    yield changes
    tools = (
        part
        for environment in judgement.environments
        if refusal in environment.refusals
        for part in environment.parts
        if part.carried
    )
    images = refusal.replace(parts=tuple(tools))
    # The toolkit of the image may be too old for the arch.
    for added in _by_archs(index, refusal):
        yield added
        yield from ((*added, *changes) for changes in _by_images(index, images))


def _in_commands(
    index: Index, judgement: JudgedManifest, replacements: Sequence[Replacement]
) -> Iterator[Replacement]:
    """What else the commands of some changes name and later ones replace, in the releases of those."""
    places = {(change.source, change.start) for change in replacements}
    for environment in judgement.manifest.environments:
        parts = reading.requested_parts(index, environment, judgement.machine.items)
        commands = {
            part.item.command
            for part in parts.parts
            if part.version
            and part.version.span
            and (part.version.source, part.version.span[0]) in places
        }
        last_named = {part.component: part for part in parts.parts if part.item.kind == PIP}
        for part in parts.written if commands - {""} else ():
            last = last_named.get(part.component)
            if part.item.command not in commands or last in (None, part):
                continue
            scale = index.scale(part.component)
            releases = scale.named(scale.select(last.asks[0].selector))
            replacement = _replace(part, releases[0]) if len(releases) == 1 else None
            if replacement and replacement.old != replacement.text:
                yield replacement


def _by_pins(index: Index, refusal: ManifestRefusal) -> Iterator[tuple[Replacement, ...]]:  # noqa: ARG001 - as others
    """The release of what a command names by which it replaces nothing."""
    finding, part = refusal.finding, refusal.parts[0]
    for pin in finding.pins if isinstance(finding, Replaced) else ():
        component, _, release = pin.partition("==")
        if component == part.component:
            replacement = _replace(part, release) if part.version else _behind(part, release)
            yield (replacement,) if replacement else ()


@lru_cache(maxsize=64)
def _repairs(index: Index, request: Request) -> tuple[Repair, ...]:
    alone = refused(index, request)
    # What is refused with all the rest may go by itself.
    return () if alone is None else repairs(index, alone, _REPAIRS)


def _by_repairs(index: Index, refusal: ManifestRefusal) -> Iterator[tuple[Replacement, ...]]:
    for repair in _repairs(index, refusal.request):
        replacements = []
        for old, new in repair.changes:
            part = _part(refusal, old)
            replacement = part and new and _replace(part, new.selector.removeprefix("=="))
            if not replacement:
                break
            replacements.append(replacement)
        else:
            yield tuple(replacements)


def _by_permission(_: Index, refusal: ManifestRefusal) -> Iterator[tuple[Replacement, ...]]:
    """The variable by which pip installs for a Python that is externally managed."""
    if isinstance(refusal.finding, ExternallyManaged):
        # Set in the image, it holds for all its commands, also those of stages that begin with it.
        image = refusal.parts[-1].item.text
        line = image.source.text.split("\n")[image.where[0] - 1]
        end = image.source.offset(image.where[0], len(line) + 1)
        yield (Replacement(image.source, end, end, "\nENV PIP_BREAK_SYSTEM_PACKAGES=1"),)


def _by_present_names(_: Index, refusal: ManifestRefusal) -> Iterator[tuple[Replacement, ...]]:
    """The present name of a package in the place of an old one."""
    text = refusal.parts[0].item.text
    if isinstance(refusal.finding, StubPackage) and text.span:
        yield (Replacement(text.source, *text.span, refusal.finding.instead),)


def _on_accelerator(index: Index, refusal: ManifestRefusal) -> Request:
    """The request of a refusal for what the builds of the named line were made for: a file for CUDA stays one."""
    part, request = refusal.parts[0], refusal.request
    machine = index.header["targets"][request.targets[0]]["context"]["machine"]
    built_for = wheel_accelerators(index, part.replace(asks=part.asks[1:]), machine)
    asks = [
        ask.replace(selector=built_for[0]) if ask.component == "accelerator" and built_for else ask
        for ask in request.asks
    ]
    return request.replace(asks=tuple(asks))


def _by_solving(
    index: Index, judgement: JudgedManifest, refusal: ManifestRefusal
) -> Iterator[tuple[Replacement, ...]]:
    """All packages of the environment at the nearest releases that run on the machine, be they newer or older."""
    parts = next(
        environment.parts
        for environment in judgement.environments
        if refusal in environment.refusals
    )
    at_index = isinstance(refusal.finding, NotOnIndex)
    request = _on_accelerator(index, refusal) if at_index else refusal.request
    named = {part.component for part in refusal.parts}
    moving = [part for part in parts if part.item.kind == PIP]
    fixed = [
        ask
        for part in parts
        if part not in moving
        and (
            (part.item.kind == MACHINE and part.component not in _BESIDE)
            or part.component in (*named, "python")
        )
        for ask in reading.as_asks(part)
        if ask.component not in SEVERAL
    ]
    options = [ask for ask in request.asks if ask.option]
    # What the file leaves open moves alone if that will do, and is then the newest that runs.
    for sign, prefer, added in (
        ("==", "newest", True),
        ("==", "newest", False),
        (">=", "oldest", False),
        (">=", "oldest", True),
        ("<=", "newest", False),
        ("<=", "newest", True),
    ):
        # Only a device and a driver are a matter of the build.
        if added and not named & {*RUNTIME}:
            continue
        asks = [ask for part in moving for ask in _moved(index, part, sign, added=added)]
        answer = attempt(
            index,
            request.replace(asks=tuple(dict.fromkeys([*asks, *fixed, *options])), prefer=prefer),
        )
        if isinstance(answer, Resolution):
            chosen = answer.chosen(request.targets[0])
            replacements = [change for part in moving for change in _changes(index, part, chosen)]
            replacements += _index_lines(index, judgement.manifest, moving, chosen)
            if replacements:
                yield tuple(dict.fromkeys(replacements))


def _moved(index: Index, part: RequestedPart, sign: str, *, added: bool) -> Iterator[Ask]:
    """A part at its own release or beyond, from its indexes, or from any where one may be added; of whatever line."""
    first = part.asks[0]
    releases = index.scale(part.component).named(index.scale(part.component).select(first.selector))
    exact = len(releases) == 1
    yield first.replace(selector=f"{sign}{releases[0]}") if exact else first
    channels = [channel for channel, _ in _channels(index, part)]
    # A local version, such as 2.1.0+cu121, is on an index of its own alone.
    if not part.item.alone and "+" not in first.text:
        channels.append(_DEFAULT)
    if len(part.asks) > 1 and channels and (part.item.indexes or not added):
        selector = " ".join(f"*@{channel}/*" for channel in channels)
        yield first.replace(component=index.builds_of(part.component), selector=selector)


def _index_lines(
    index: Index,
    manifest: ProjectManifest,
    parts: Sequence[RequestedPart],
    chosen: Mapping[str, str],
) -> Iterator[Replacement]:
    """The index of the chosen builds, added to a file of requirements whose packages come from the default one."""
    for part in parts:
        build = chosen.get(index.builds_of(part.component), "").partition("+")[2]
        line, _, channel = build.partition("/")[0].partition("@")
        if channel in ("", _DEFAULT) or part.item.indexes or manifest.kind != "requirements":
            continue
        for option, address in pairwise(index.channel(channel).install):
            if "://" in address:
                # The other packages still come from the default index.
                option = option if option == "-f" else "--extra-index-url"
                text = f"{option} {address.format(line=line)}\n"
                yield Replacement(manifest.sources[0], 0, 0, text)


def _channels(index: Index, part: RequestedPart) -> Iterator[tuple[str, re.Match[str]]]:
    """The known channels that the indexes of a part lead to, each with the match of its address."""
    for address in part.item.indexes:
        for channel in index.channels():
            match = match_address(index.channel(channel).install, address)
            if match:
                yield channel, match


def _changes(index: Index, part: RequestedPart, chosen: Mapping[str, str]) -> Iterator[Replacement]:
    """What names a release of a part in its file, and the line of its builds, as an answer has them."""
    release = chosen.get(part.component, "")
    build = chosen.get(index.builds_of(part.component), "").partition("+")[2]
    line, _, source_channel = build.partition("/")[0].partition("@")
    scale = index.scale(part.component)
    # What is left open is pinned, as the newest is taken else.
    exact = scale.select(part.asks[0].selector).bit_count() == 1
    computes = index.header["components"][part.component]["accelerators"]
    stays = not release or (
        scale.select(part.asks[0].selector) & scale.bit(release) and (exact or not computes)
    )
    replacement = None if stays and "+" not in part.asks[0].text else _replace(part, release, line)
    if replacement and replacement.old != replacement.text:
        yield replacement
    source = part.item.text.source
    for channel, match in _channels(index, part):
        start = source.text.find(match.string)
        # One page may have all lines.
        moves = match.groupdict().get("line", line) != line
        if channel == source_channel and start >= 0 and moves:
            begin, end = match.span("line")
            yield Replacement(source, start + begin, start + end, line)


def _by_facts(index: Index, refusal: ManifestRefusal) -> Iterator[tuple[Replacement, ...]]:
    """The newest release that each fact behind a refusal requires."""
    for ground in refusal.finding.grounds:
        for part in refusal.parts if ground.kind == "requires" else ():
            claims = map(index.find, ground.facts if part.component == ground.component else ())
            for claim in claims:
                scale = index.scale(part.component)
                if isinstance(claim, ClaimRecord) and (left := scale.select(claim.selector)):
                    replacement = _replace(part, scale.versions[left.bit_length() - 2])
                    yield (replacement,) if replacement else ()


def _by_lines(index: Index, refusal: ManifestRefusal) -> Iterator[tuple[Replacement, ...]]:
    """The release that one of several lines about the same thing names, in the place of the others."""
    # One line alone may name a release that no scale has, such as a local version.
    several = len(refusal.parts) > 1 and not refusal.finding.grounds
    for part in refusal.parts if several else ():
        scale = index.scale(part.component)
        named = scale.named(scale.select(part.asks[0].selector))
        if len(named) == 1:
            others = (other for other in refusal.parts if other is not part)
            yield tuple(filter(None, (_replace(other, named[0]) for other in others)))


def _by_releases(index: Index, refusal: ManifestRefusal) -> Iterator[tuple[Replacement, ...]]:  # noqa: ARG001 - as others
    """The neighbours of a release that does not exist, those of its own series first."""
    finding = refusal.finding
    if isinstance(finding, NoLocalVersion) and finding.options:
        source, span = refusal.parts[0].item.text.source, refusal.parts[0].item.text.span
        options = " ".join(finding.options)
        if refusal.parts[0].item.command:
            if span:
                yield (Replacement(source, span[1], span[1], f" {options}"),)
        elif source.path.endswith((".txt", ".in")):
            yield (Replacement(source, 0, 0, f"{options}\n"),)
    if isinstance(finding, NoSuchRelease):
        series = finding.release.rpartition(".")[0] + "."
        for release in sorted(finding.near, key=lambda version: not version.startswith(series)):
            replacement = _replace(refusal.parts[0], release)
            yield (replacement,) if replacement else ()


def _part(refusal: ManifestRefusal, ask: Ask) -> RequestedPart | None:
    # An ask of a toolkit is widened, so its component identifies it; an arch is identified by its selector.
    return next(
        (
            part
            for part in refusal.parts
            if part.component == ask.component
            and (ask.component != ARCH or part.asks[0].selector == ask.selector)
        ),
        None,
    )


def _replace(part: RequestedPart, release: str, line: str = "") -> Replacement | None:
    """A part with another release in its place, and another line where it names one."""
    if part.component == ARCH:
        return _arch(part, release)
    if part.version is None and part.item.kind == PIP and part.item.text.span:
        end = part.item.text.span[1]
        return Replacement(part.item.text.source, end, end, f"=={release}")
    if part.version is None or part.version.span is None:
        return None
    # An unknown tag may not exist.
    if part.carried:
        # Only Python's images have a tag for every series; of others the matrix knows which there are.
        known = part.component == "python" and plain(part.item.name).startswith("python:")
        return _at(part, release) if known else None
    match = _VERSION.fullmatch(part.version.text)
    old_sign = match["sign"] if match else ""
    if part.item.kind == PYTHON and old_sign not in ("", "=="):
        # A range of a project says what it supports.
        return None
    sign = old_sign if old_sign in ("", "=", "==") else "=="
    old_line = match["line"] or "" if match else ""
    line = f"+{line}" if line and old_line else old_line
    blank = match["blank"] if match else ""
    return _at(part, f"{sign}{blank}{release}{line}")


def _at(part: RequestedPart, text: str) -> Replacement | None:
    span = part.version.span if part.version else None
    return Replacement(part.version.source, *span, text) if part.version and span else None


def _behind(part: RequestedPart, release: str) -> Replacement | None:
    """A package that no version was asked of, with one."""
    span = part.item.text.span
    return Replacement(part.item.text.source, span[1], span[1], f"=={release}") if span else None


def _arch(part: RequestedPart, release: str) -> Replacement | None:
    variable = called.variables()[part.item.name]
    match = re.fullmatch(variable["back"], release)
    if not match or part.version is None:
        return None
    text = part.version.text
    suffix = text[text.index("+") :] if "+" in text else ""
    value = variable["said"].format(*match.groups()) + suffix
    # Leaving an arch out leaves a device out, which only the user can decide.
    line = part.version.source.text.split("\n")[part.version.where[0] - 1]
    archs = re.split(r"[^\w.+]+", line)
    return None if value in archs else _at(part, value)


def _by_archs(index: Index, refusal: ManifestRefusal) -> Iterator[tuple[Replacement, ...]]:
    """The arch of a device behind those that a variable lists."""
    last = next((part for part in reversed(refusal.parts) if part.component == ARCH), None)
    span = last.version.span if last and last.version else None
    if last is None or last.version is None or span is None:
        return
    variable, source = called.variables()[last.item.name], last.version.source
    # The list is extended: its other archs may be wanted as well.
    between = re.search(r"[^\s;,]([\s;,]+)$", source.text[: span[0]])
    scale = index.scale(DEVICE)
    for device in (part for part in refusal.parts if part.component == DEVICE):
        for name in scale.named(scale.select(device.asks[0].selector)):
            # A capability 12.0 is the arch sm_120, and an arch of AMD is called as its device.
            arch = f"sm_{name.replace('.', '')}" if name[:1].isdigit() else name
            if match := re.fullmatch(variable["back"], arch):
                added = variable["said"].format(*match.groups())
                text = f"{between[1] if between else ';'}{added}"
                yield (Replacement(source, span[1], span[1], text),)


def _by_images(index: Index, refusal: ManifestRefusal) -> Iterator[tuple[Replacement, ...]]:
    """The nearest known images that differ in what was refused alone; of one that is gone the nearest that is there."""
    finding = refusal.finding
    if isinstance(finding, ImageGone) and not finding.moves:
        for image in finding.near:
            yield (*_renamed(refusal.parts[0].item.text, finding.image, image),)
    if isinstance(finding, LibraryMissing):
        for image in finding.near:
            yield (*_renamed(refusal.parts[-1].item.text, finding.image, image),)
    for part in refusal.parts:
        # The matrix knows the images for development, and the others have the same in them.
        name = called.alike(plain(part.item.name))
        match = called.image(name) if part.carried else None
        group = called.contents(match).get(part.component) if match else None
        if match is None or group is None or part.version is None:
            continue
        versions = tagged_versions(index, match, group)
        scale = index.scale(part.component)
        positions = {
            version: scale.select(f"=={version}").bit_length()
            for version in versions
            if re.fullmatch(r"[\d.]+", version)
        }
        # A part of a question may be widened to its whole major.
        own = scale.select(f"=={match[group]}").bit_length()
        # What is newer comes first: an older toolkit is a step back.
        near = sorted(
            (version for version, position in positions.items() if position and position != own),
            key=lambda version: (positions[version] < own, abs(positions[version] - own)),
        )
        # Of a series the nearest, and of each major version: a driver runs all of one, or none.
        series = {version.rpartition(".")[0]: version for version in reversed(near)}
        majors = {version.partition(".")[0]: version for version in reversed(near)}
        for version in dict.fromkeys([*[*series.values()][::-1][:_TAGS], *majors.values()]):
            replacement = _at(part, version)
            if replacement:
                yield (replacement,)


def _renamed(text: Traced, name: str, image: str) -> Iterator[Replacement]:
    """Another image in the place of one: the whole name, or the releases in it that a file has elsewhere."""
    start = text.text.find(name)
    own, other = called.image(name), called.image(image)
    whole = text[start : start + len(name)]
    if whole.span:
        yield Replacement(text.source, *whole.span, image)
    # A variable has the release, and the file says its name elsewhere.
    elif own and other and own.re is other.re:
        moved = [key for key in own.re.groupindex if own[key] != other[key]]
        spans = {key: text[start + own.start(key) : start + own.end(key)].span for key in moved}
        for key, span in spans.items() if _differ_in(own, other, moved) else ():
            if span and None not in spans.values():
                yield Replacement(text.source, *span, other[key])


def _differ_in(own: re.Match[str], other: re.Match[str], moved: Sequence[str]) -> bool:
    """True if two images are the same but for some releases in them."""
    texts = []
    for match in (own, other):
        spans = sorted((match.span(key) for key in moved), reverse=True)
        text = match[0]
        for begin, end in spans:
            text = f"{text[:begin]} {text[end:]}"
        texts.append(text)
    return texts[0] == texts[1]
