"""Remarks on an answer: its caveats, newer releases that facts refuse, other ways to get it, images built of it.

Caveats keep an answer from being taken for more: what an option did not do, what is untested or unknown. An image that
was built proves these versions on this distribution, and no other.
"""

from __future__ import annotations

from toolmatrix.documents import Annotated, HasFrom, NotRequired, TypedDict
from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.records import REFUSE
from toolmatrix.report import claims, terminal
from toolmatrix.request import read
from toolmatrix.request.names import Names
from toolmatrix.solve.known import BOUND, INCOMPLETE, UNJOINED, UNOPENED, UNTIED
from toolmatrix.solve.request import Request
from toolmatrix.solve.resolve import possible, supported
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import BuildRecord
    from toolmatrix.finding import Incompatibility
    from toolmatrix.report.variants import BuildForm
    from toolmatrix.request.read import RequestContext
    from toolmatrix.solve.grounds import Alternative
    from toolmatrix.solve.known import Touching
    from toolmatrix.solve.resolve import Resolution
    from toolmatrix.solve.support import Choice


class BuiltEntry(TypedDict):
    """An image of the release that was built and passed its check."""

    fact: str
    date: str
    same: bool
    """Whether the image has the distribution and the Python of this answer."""
    text: str
    distro: str
    python: str


class CaveatComponent(TypedDict):
    """A component that a caveat is about."""

    target: str
    component: str
    evidence: str


class Caveat(TypedDict):
    """Something that an answer is not."""

    kind: Annotated[
        str,
        "implied-target",
        "tested-not-preferred",
        "nothing-to-align",
        "needless-build",
        "meant-for-another",
        "below-minimum",
        "untested",
        "to-bring",
        "source-archive",
        "harvested",
        "not-covered",
    ]
    text: str
    components: list[CaveatComponent]


class UnreadPair(TypedDict):
    """Two parts that touch, and why nothing is known of the two."""

    target: str
    one: str
    other: str
    reason: Annotated[str, "bound", "unjoined", "incomplete", "untied", "unopened"]


class UnreadEntry(TypedDict):
    """What an answer rests on and no fact decides."""

    text: str
    facts: list[str]
    pair: NotRequired[UnreadPair]


class SkippedEntry(TypedDict):
    """Newer releases that were not taken."""

    target: str
    component: str
    releases: list[str]
    range: str
    why: str


class WayInstall(TypedDict):
    """The commands that install it, by tool."""

    pip: NotRequired[list[str]]
    uv: NotRequired[list[str]]


class OtherWay(HasFrom):
    """The other way to get the framework where `--from` was left out: the wheel of the release that is built, or the
    command that builds what is installed.
    """

    text: str
    command: NotRequired[str]
    build: NotRequired[BuildForm]
    install: NotRequired[WayInstall]


class FullyKnown(TypedDict):
    """Where the answer rests on unread statements: the newest release of which everything is known, and the command
    that answers it.
    """

    component: str
    release: str
    command: str
    text: str


class Remarks(TypedDict):
    """Remarks on an answer: a key is left out where it would be empty."""

    skipped: NotRequired[list[SkippedEntry]]
    """Newer releases of what was asked for that were not taken, and the fact that refuses them, or what no source
    joins them with."""
    other_way: NotRequired[OtherWay]
    """The other way to get the framework where `--from` was left out: the wheel of the release that is built, or the
    command that builds what is installed."""
    fully_known: NotRequired[FullyKnown]
    """Where the answer rests on unread statements: the newest release of which everything is known, and the command
    that answers it."""


def unread(resolution: Resolution) -> list[UnreadEntry]:
    """Unknown statements that the answer rests on: with any of them it is neither yes nor no."""
    # Several grounds may read the same.
    grounds = {claims.silence(resolution.index, ground): ground for ground in resolution.unread}
    silent: list[UnreadEntry] = [
        {"text": text, "facts": list(ground.facts)} for text, ground in grounds.items()
    ]
    return [*silent, *(_touching(resolution, pair) for pair in resolution.touching)]


def summarized(entries: Sequence[UnreadEntry]) -> list[str]:
    """What an answer rests on in a sentence each, and one for a part that is not joined with any of several others."""
    incomplete = [entry["pair"]["one"] for entry in entries if _is_incomplete(entry)]
    texts: dict[str, str] = {}
    for entry in entries:
        part = entry["pair"]["one"] if _is_incomplete(entry) else ""
        more = incomplete.count(part) - 1
        others = terminal.plural(more, "other part")
        text = f"{entry['text']} or {others}" if more > 0 else entry["text"]
        texts.setdefault(part or text, text)
    return [*texts.values()]


def _is_incomplete(entry: UnreadEntry) -> bool:
    return "pair" in entry and entry["pair"]["reason"] == INCOMPLETE


def _touching(resolution: Resolution, pair: Touching) -> UnreadEntry:
    chosen = resolution.chosen(pair.target) | {
        name: release for target, name, release in resolution.hidden if target == pair.target
    }
    # A device is not part of an answer.
    first, second = (
        f"{name} {chosen.get(name, '')}".rstrip() for name in (pair.component, pair.other)
    )
    where = f" on {pair.target}" if len(resolution.targets) > 1 else ""
    text = {
        BOUND: f"the compiled code of {first} is bound to {pair.other}, and no fact joins it to {second}{where}",
        UNJOINED: f"facts about {pair.component} name {pair.other}, but none joins {first} and {second}{where}",
        UNOPENED: f"no fact says which devices the compiled code of {first} is for{where}",
        UNTIED: f"no fact ties {first} to {second} or to any other part of the answer{where}",
        INCOMPLETE: f"not all requirements of {first} have been read, and no fact joins it and {second}{where}",
    }[pair.reason]
    return {
        "text": text,
        "facts": [],
        "pair": {
            "target": pair.target,
            "one": pair.component,
            "other": pair.other,
            "reason": pair.reason,
        },
    }


def _components(target: str, evidence: str, *names: str) -> list[CaveatComponent]:
    return [{"target": target, "component": name, "evidence": evidence} for name in names]


def caveats(resolution: Resolution) -> list[Caveat]:
    """The caveats of an answer, each of a kind, in words and with the components it is about."""
    # What an option did not do comes first, what is untested or unknown last.
    kinds = (
        *(_implied, _without_effect, _needless, _other_targets, _to_bring, _archived),
        *(_harvested, _untested),
    )
    return [
        {"kind": kind, "text": text, "components": components}
        for collect in kinds
        for kind, text, components in collect(resolution)
    ]


def _implied(resolution: Resolution) -> Iterator[tuple[str, str, list[CaveatComponent]]]:
    """The target that the request does not name, where the machine of its devices is not that of the default one."""
    request, targets = resolution.request, resolution.index.header["targets"]
    machine = targets[next(iter(targets))]["context"]["machine"]
    for ask in request.asks:
        other = ask.component == "machine" and ask.selector != machine
        if (request.devices or request.boards) and other and ask.option == "target" and ask.implied:
            devices = terminal.listing([request.named(device) for device in request.devices])
            if request.boards:
                devices = request.boards + (f" (device {devices})" if devices else "")
            text = f"target {ask.target}: chosen because the machine of {devices} is {ask.selector}"
            yield "implied-target", text, []


def _without_effect(resolution: Resolution) -> Iterator[tuple[str, str, list[CaveatComponent]]]:
    if resolution.request.prefer == "newest":
        text = "--prefer newest: tested combinations were not preferred"
        yield "tested-not-preferred", text, []
    for name in (*resolution.request.align, *resolution.request.unaligned):
        lacking = [target for target in resolution.targets if name not in resolution.chosen(target)]
        if lacking:
            text = f"--align {name}: the answer has none on {terminal.listing(lacking)}"
            yield "nothing-to-align", text, []


def _needless(resolution: Resolution) -> Iterator[tuple[str, str, list[CaveatComponent]]]:
    """Builds for an accelerator where the request asks for none."""
    index = resolution.index
    for target, choices in resolution.targets.items():
        wanted = any(
            (ask.component, ask.selector) == ("accelerator", "none")
            and ask.target in ("", target)
            and not ask.implied
            for ask in resolution.request.asks
        )
        larger = []
        for choice in choices if wanted else ():
            package = index.header["components"][choice.component]["variant_of"]
            if package in resolution.request.wanted:
                record = index.release(index.number(f"{choice.component}=={choice.version}"))
                if record.attributes["accelerator"] != "none":
                    name = f"{package} {choice.version.partition('@')[0]}"
                    larger.append((package, name, choice.evidence))
        if larger:
            names = terminal.listing([name for _, name, _ in larger])
            text = (
                f"--accelerator none: the answer has {names}, made for an accelerator, "
                "as no build without one is known to fit"
            )
            parts = [_components(target, evidence, name) for name, _, evidence in larger]
            yield "needless-build", text, [part for (part,) in parts]


def _other_targets(resolution: Resolution) -> Iterator[tuple[str, str, list[CaveatComponent]]]:
    """Codegen archs and devices that are meant for other targets, where this one could have them as well."""
    request = resolution.request
    for target, name in request.unavailable:
        option = "device" if name in request.devices else "arch"
        asks = tuple(ask for ask in request.asks if ask.target == target)
        kind = "devices" if option == "device" else "archs"
        alone = Request(asks=asks, targets=(target,)).replace(**{kind: (name,)})
        # It may be available there with an accelerator that the request does not name.
        if possible(resolution.index, alone):
            text = (
                f"--{option} {request.named(name)}: not on {target}, which has no accelerator here; "
                f"use `--target {target}` alone"
            )
            yield "meant-for-another", text, []


def _to_bring(resolution: Resolution) -> Iterator[tuple[str, str, list[CaveatComponent]]]:
    # Releases of hidden components say what the user has to install; the answer itself lacks it.
    index = resolution.index
    for target, name, release in resolution.hidden:
        record = index.release(index.number(f"{name}=={release}"))
        if "bring" in record.attributes:
            text = record.attributes["bring"]
            for component, version in resolution.chosen(target).items():
                text = text.replace(f"{{{component}}}", version)
            yield "to-bring", text, _components(target, record.evidence, name)


def _archived(resolution: Resolution) -> Iterator[tuple[str, str, list[CaveatComponent]]]:
    """What was to be installed from wheels, and has none."""
    index, request = resolution.index, resolution.request
    if not any(ask.component == "from" and ask.selector == "wheel" for ask in request.asks):
        return
    components = index.header["components"]
    for target, choices in resolution.targets.items():
        # Its builds may be published elsewhere than its releases.
        built = {components[choice.component]["variant_of"] for choice in choices}
        for choice in choices:
            if choice.component not in request.wanted or choice.component in built:
                continue
            record = index.release(index.number(f"{choice.component}=={choice.version}"))
            if "archive" in record.attributes:
                text = (
                    f"{choice.component} {choice.version} has no wheel: "
                    "it is published as a source archive, which pip builds during installation"
                )
                yield "source-archive", text, _components(target, record.evidence, choice.component)


def _harvested(resolution: Resolution) -> Iterator[tuple[str, str, list[CaveatComponent]]]:
    # Read for a request and unreviewed, with requirements that are not components of the matrix.
    index = resolution.index
    for target, choices in resolution.targets.items():
        for choice in choices:
            facts = index.component(choice.component)
            position = facts.versions.index(choice.version) if facts.unreviewed else 0
            if not facts.unreviewed & 2 << position:
                continue
            record = index.release(facts.releases[position])
            attributes, name = record.attributes, f"{choice.component} {choice.version}"
            components = _components(target, choice.evidence, choice.component)
            if "harvested" in attributes:
                read = index.source(record.source).at
                text = (
                    f"{choice.component} is not a component of the matrix: it was harvested from the index on "
                    f"{attributes['harvested']} ({read}), and is unreviewed"
                )
                yield "harvested", text, components
            if "also-requires" in attributes:
                text = f"not covered: {name} also requires {attributes['also-requires']} (not components of the matrix)"
                yield "not-covered", text, components


def _untested(resolution: Resolution) -> Iterator[tuple[str, str, list[CaveatComponent]]]:
    header = resolution.index.header["components"]
    asks = [ask for ask in resolution.request.asks if not header[ask.component]["given"]]
    if len(asks) + len(resolution.request.archs) + len(resolution.request.devices) < 2:
        return
    # Most answers have no such pair, and are printed without these two.
    from toolmatrix.solve.untested import untested

    pairs = untested(resolution.index, resolution.request)
    if not pairs:
        return
    from toolmatrix.report import cores

    documents = cores.soft_documents(resolution.index, resolution.request, pairs)
    for pair, core in zip(pairs, documents, strict=True):
        # One row is enough here; `why-not` shows all of them.
        lines = "; ".join(line["text"] for line in core["lines"][:1])
        text = f"{core['conclusion'].removesuffix('.')}: {lines}  TM102"
        components = _components(pair.target, words.UNKNOWN, pair.subject, pair.component)
        yield "untested", text, components


_REFUSED = ("forbidden", "entangled", "later", "apart", "after")
# So many ranges of releases are named in a line.
_RANGES = 3
# For more components the list is too long to read, and each line takes a search; `explain` says why one is older.
_MANY = 8


def document(context: RequestContext, resolution: Resolution) -> Remarks:
    """The lines as JSON values; a key is left out where there is nothing to say."""
    remarks: Remarks = {"skipped": [*_skipped(resolution)]}
    if other := _alternative(context, resolution):
        remarks["other_way"] = other
    if known := _fully_known(context, resolution):
        remarks["fully_known"] = known
    return remarks


def lines(document: Remarks) -> list[str]:
    """The lines in words."""
    texts = [
        f"skipped {skipped['component']} {terminal.few(skipped['range'], _RANGES)}: {skipped['why']}"
        for skipped in document["skipped"]
    ]
    texts += [document["other_way"]["text"]] if "other_way" in document else []
    texts += [document["fully_known"]["text"]] if "fully_known" in document else []
    return texts


def _skipped(resolution: Resolution) -> Iterator[SkippedEntry]:
    wanted = {*resolution.request.wanted} if len(resolution.request.wanted) <= _MANY else set()
    for target, choices in resolution.targets.items():
        for choice in choices:
            # Most answers have the newest, and cost nothing here.
            within = _newer(resolution, choice) if choice.component in wanted else 0
            if within:
                yield from _refused(resolution, choice, within, target)


def _newer(resolution: Resolution, choice: Choice) -> int:
    """The releases newer than the chosen one that the request admits, as a mask; none where age does not decide."""
    index, request, name = resolution.index, resolution.request, choice.component
    head, facts = index.header["components"][name], index.component(name)
    if head["scheme"] == "names" or "oldest" in (head["prefer"], request.prefer):
        return 0
    left = -1 << (facts.versions.index(choice.version) + 2) & (2 << len(facts.versions)) - 1
    for ask in request.asks:
        if ask.component == name and ask.target in ("", choice.target):
            left &= index.scale(name).select(ask.selector)
    dates = enumerate(facts.dates) if request.at else ()
    return left & ~facts.yanked & ~sum(2 << position for position, day in dates if day > request.at)


def _refused(
    resolution: Resolution, choice: Choice, within: int, target: str
) -> Iterator[SkippedEntry]:
    from toolmatrix.solve.grounds import alternatives

    index = resolution.index
    groups: dict[tuple[str, str], list[str]] = {}
    values: dict[str, list[str]] = {}
    for group in alternatives(resolution, choice, within):
        if group.kind in _REFUSED:
            ground = _deciding_ground(resolution, choice, group)
            # What needs other releases of the same component is one reason.
            reason = (
                (ground.component, "") if ground else ("", _short_reason(resolution, choice, group))
            )
            groups.setdefault(reason, []).extend(group.releases)
            if ground:
                values.setdefault(ground.component, []).extend(ground.values)
    age = index.scale(choice.component).versions.index
    for (needed, why), releases in groups.items():
        allowed = claims.union(index, needed, values[needed]) if needed else ""
        yield {
            "target": target,
            "component": choice.component,
            "releases": sorted(releases, key=age),
            "range": claims.ranged(index, choice.component, releases),
            "why": why or f"they need {needed} {allowed}",
        }


def _short_reason(resolution: Resolution, choice: Choice, group: Alternative) -> str:
    from toolmatrix.report import explanation

    about = {(line.ground.subject, line.ground.component) for line in group.core if line.ground}
    if group.kind == "entangled" and about == {("device", "arch")}:
        devices = [resolution.request.named(device) for device in resolution.request.devices]
        return f"they have no code for {terminal.listing(devices, 'or')}"
    return explanation.why(resolution, choice, group)


def _deciding_ground(
    resolution: Resolution, choice: Choice, group: Alternative
) -> Incompatibility | None:
    """The fact of a reason that asks for another release of something that the request names."""
    asks = [ask for ask in resolution.request.asks if not ask.implied]
    named = {ask.component for ask in asks} - {choice.component}
    grounds = [line.ground for line in group.core if line.ground]
    if group.kind == "later" or choice.component in {ground.component for ground in grounds}:
        return None
    return next(
        (
            ground
            for ground in grounds
            if ground.component in named and ground.kind in REFUSE and ground.values != ("absent",)
        ),
        None,
    )


def _alternative(context: RequestContext, resolution: Resolution) -> OtherWay | None:
    """The wheel of what would be built, or the command that builds what is installed; only without `--from`."""
    index, request = resolution.index, resolution.request
    origin = next((ask for ask in request.asks if ask.component == "from"), None)
    framework = next(
        (name for name in request.wanted if index.header["components"][name]["framework"]), ""
    )
    target = request.targets[0]
    release = resolution.chosen(target).get(framework, "")
    if origin is None or not origin.implied or not release:
        return None
    if origin.selector == "source":
        # A request that names a build tool or an arch builds; without a known build, known wheels are the answer.
        return _as_wheel(resolution, target, framework, release) if resolution.known else None
    from toolmatrix.report import refusal

    names = Names(index)
    admitted = [ask for ask in request.asks if ask.component == framework]
    if not all(read.admits(ask, "from", "source", names, {}) for ask in admitted):
        return None
    built = origin.replace(selector="source", text="--from source", implied=False)
    asks = tuple(built if ask is origin else ask for ask in request.asks)
    command = refusal.command(request.replace(asks=asks), context.carried)
    return {"from": "source", "command": command, "text": f"to build it: `{command}`"}


def _as_wheel(resolution: Resolution, target: str, framework: str, release: str) -> OtherWay | None:
    index, request = resolution.index, resolution.request
    context = {
        ask.component: ask.selector
        for ask in request.asks
        if ask.target in ("", target) and ask.component in ("machine", "accelerator")
    }
    component, mask = read.published(Names(index), framework, release, context)
    fit = read.running(index, component, mask, request.devices) if mask else 0
    # What is named beside it is not given up for a wheel.
    for ask in (ask for ask in request.asks if not ask.implied and ask.component != framework):
        beside = index.scale(ask.component).select(ask.selector)
        for binding in index.component(component).about(ask.component, fit) if fit else ():
            fit &= -1 if binding.allowed & beside else ~binding.mask
    if not fit:
        return None
    from toolmatrix.report import variants

    # Of several the best ranked, as an answer takes it.
    name = index.component(component).versions[fit.bit_length() - 2]
    build = variants.build(index, component, name, resolution.chosen(target).get("python", ""))
    install: WayInstall = {
        "pip": variants.installs([build]),
        "uv": variants.installs([build], "uv"),
    }
    text = f"as a wheel: {framework} {build.local} on {build.channel_title}, `{install['pip'][0]}`"
    return {"from": "wheel", "build": variants.document(build), "install": install, "text": text}


def _fully_known(context: RequestContext, resolution: Resolution) -> FullyKnown | None:
    """The newest releases of what is asked for of which everything is known, where the answer rests on less."""
    known = None if resolution.known else supported(resolution.index, resolution.request)
    if known is None or not known.known or not resolution.request.wanted:
        return None
    target = resolution.request.targets[0]
    releases = known.chosen(target)
    here = resolution.chosen(target)
    wanted = resolution.request.wanted
    moved = [name for name in wanted if releases.get(name) != here.get(name)] or [wanted[0]]
    pins = {name: releases.get(name, "") for name in moved}
    request = _pinned(resolution.request, pins)
    # It is solved as it will be pasted, and offered where it is a yes.
    answer = context.answered(request.arguments()) if all(pins.values()) else None
    if answer is None or not answer.known:
        return None
    if any(answer.chosen(target).get(name) != release for name, release in pins.items()):
        return None
    from toolmatrix.report import refusal

    command = refusal.command(request, context.carried)
    named = terminal.listing([f"{name} {release}" for name, release in pins.items()])
    name, release = next(iter(pins.items()))
    text = f"fully known: {named}, run `{command}`"
    return {"component": name, "release": release, "command": command, "text": text}


def _pinned(request: Request, pins: Mapping[str, str]) -> Request:
    return request.replace(
        asks=tuple(
            ask.replace(
                selector=f"=={pins[ask.component]}", text=f"{ask.component}=={pins[ask.component]}"
            )
            if ask.component in pins and not ask.option
            else ask
            for ask in request.asks
        )
    )


# Where one of these differs a build says nothing about the image; those below may differ and are shown.
_SAME = ("machine", "from", "accelerator")
_VARYING = ("distro", "python")


class BuiltImage(Value):
    """A build beside an answer: its day, its words, whether it is what the answer says, and its fact."""

    component: str
    day: str
    text: str
    same: bool
    build: BuildRecord


def images_of(index: Index, resolution: Resolution, target: str) -> list[BuiltImage]:
    """The builds of what was asked for on a target: those that are what the answer says, or else those near it."""
    chosen = resolution.chosen(target)
    selectors = {
        ask.component: ask.selector for ask in resolution.request.asks if ask.target in ("", target)
    }
    images = []
    for name in resolution.request.wanted:
        builds = index.builds(name, chosen[name]) if name in chosen else []
        near = [
            _built_image(name, build, chosen)
            for build in builds
            if "check" in build.cells
            and all(build.cells.get(key, selectors.get(key)) == selectors.get(key) for key in _SAME)
            # Of one release there are builds for several toolkits, and each is another thing to install.
            and build.cells.get("build", "") == chosen.get(f"{name}-variant", "")
        ]
        images += [image for image in near if image.same] or near
    return images


def _built_image(component: str, build: BuildRecord, chosen: Mapping[str, str]) -> BuiltImage:
    other = {
        name: chosen[name]
        for name in _VARYING
        if name in chosen and build.cells.get(name) != chosen[name]
    }
    text = f"on {_described(build.cells)} by recipe {build.cells['recipe']}"
    if other:
        text += (
            f", not on {_described(other)}"
            if "distro" in other
            else f", not with {_described(other)}"
        )
    return BuiltImage(
        component=component, day=build.cells["day"], text=text, same=not other, build=build
    )


def _described(cells: Mapping[str, str]) -> str:
    distro, python = cells.get("distro", ""), cells.get("python", "")
    return " with ".join(filter(None, (distro, python and f"python {python}")))


def image_documents(builds: list[BuiltImage]) -> list[BuiltEntry]:
    """Builds beside an answer as JSON values."""
    return [
        {
            "fact": image.build.fact,
            "date": image.day,
            "same": image.same,
            "text": image.text,
            "distro": image.build.cells.get("distro", ""),
            "python": image.build.cells.get("python", ""),
        }
        for image in builds
    ]


def image_row(cells: Mapping[str, str]) -> list[str]:
    """The columns of a build at a glance, by the cells of its row."""
    columns = [cells.get(name, "") for name in (*_SAME, *_VARYING)]
    ended = cells["check"] if "check" in cells else f"missing: {cells['missing']}"
    return [*columns, cells["day"], cells.get("size", ""), ended]
