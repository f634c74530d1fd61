"""Caveats of an answer, so that nobody takes it for more: what an option did not do, what nobody tested or knows."""

from __future__ import annotations

from toolmatrix.facts import evidence as words
from toolmatrix.report import claims, terminal
from toolmatrix.solve.known import BOUND, INCOMPLETE, UNJOINED, UNOPENED, UNTIED
from toolmatrix.solve.request import Request
from toolmatrix.solve.resolve import possible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from toolmatrix.solve.known import Touching
    from toolmatrix.solve.resolve import Resolution

    Caveat = tuple[str, str, list[dict[str, str]]]
    """Its kind, its words, and the components that it is about, each with its target and evidence."""


def unread(resolution: Resolution) -> list[dict[str, Any]]:
    """Statements that the answer rests on and nobody knows: with any of it, it is neither yes nor no."""
    # Several grounds may read the same.
    found = {claims.silence(resolution.index, ground): ground for ground in resolution.unread}
    silent = [{"text": text, "facts": list(ground.facts)} for text, ground in found.items()]
    pairs = (pair for pair in resolution.touching if pair.decides)
    return [*silent, *(_touching(resolution, pair) for pair in pairs)]


def _touching(resolution: Resolution, pair: Touching) -> dict[str, Any]:
    chosen = resolution.chosen(pair.target) | {
        name: release for target, name, release in resolution.hidden if target == pair.target
    }
    # A device is no choice of an answer.
    one, other = (f"{name} {chosen.get(name, '')}".rstrip() for name in (pair.one, pair.other))
    where = f" on {pair.target}" if len(resolution.targets) > 1 else ""
    text = {
        BOUND: f"the compiled code of {one} is bound to {pair.other}, and no fact joins it to {other}{where}",
        UNJOINED: f"facts about {pair.one} name {pair.other}, but none joins {one} and {other}{where}",
        UNOPENED: f"no fact says which devices the compiled code of {one} is for{where}",
        UNTIED: f"no fact ties {one} to {other} or to any other part of the answer{where}",
        INCOMPLETE: f"not all that {one} requires has been read, and no fact joins it and {other}{where}",
    }[pair.reason]
    return {"text": text, "facts": [], "pair": dict(zip(pair._fields[:4], pair, strict=False))}


def caveats(resolution: Resolution) -> list[dict[str, Any]]:
    """The caveats of an answer, each of a kind, in words and with the components it is about."""
    # What an option did not do comes first, what nobody tested or knows last.
    kinds = (
        *(_implied, _without_effect, _elsewhere, _to_bring, _archived),
        *(_harvested, _untested, _unjoined),
    )
    return [
        {"kind": kind, "text": text, "components": components}
        for found in kinds
        for kind, text, components in found(resolution)
    ]


def _implied(resolution: Resolution) -> Iterator[Caveat]:
    """The target that nobody named, where the machine of the devices is not that of the default one."""
    request, targets = resolution.request, resolution.index.header["targets"]
    machine = targets[next(iter(targets))]["context"]["machine"]
    for ask in request.asks:
        other = ask.component == "machine" and ask.selector != machine
        if request.devices and other and ask.option == "target" and ask.implied:
            devices = terminal.listing([request.named(device) for device in request.devices])
            text = f"target {ask.target}: none is named, and the machine of {devices} is {ask.selector}"
            yield "implied-target", text, []


def _without_effect(resolution: Resolution) -> Iterator[Caveat]:
    if resolution.request.prefer == "newest":
        text = "--prefer newest: combinations that somebody tested were not preferred"
        yield "tested-not-preferred", text, []
    for name in (*resolution.request.align, *resolution.request.lone):
        lacking = [target for target in resolution.targets if name not in resolution.chosen(target)]
        if lacking:
            text = f"--align {name}: the answer has none on {terminal.listing(lacking)}"
            yield "nothing-to-align", text, []


def _elsewhere(resolution: Resolution) -> Iterator[Caveat]:
    """Codegen archs and devices that are meant for other targets, where this one could have them as well."""
    request = resolution.request
    for target, name in request.apart:
        option = "device" if name in request.devices else "arch"
        asks = tuple(ask for ask in request.asks if ask.target == target)
        kind = "devices" if option == "device" else "archs"
        alone = Request(asks=asks, targets=(target,)).replace(**{kind: (name,)})
        # With an accelerator that nobody named it may be had there.
        if possible(resolution.index, alone):
            text = (
                f"--{option} {request.named(name)}: not on {target}, which computes on no accelerator here; "
                f"by itself `--target {target}` has it"
            )
            yield "meant-for-another", text, []


def _to_bring(resolution: Resolution) -> Iterator[Caveat]:
    # Releases of hidden components say what somebody has to bring; the answer itself does not hold it.
    index = resolution.index
    for target, name, release in resolution.hidden:
        facts = index.component(name)
        record = index.release(facts.releases[facts.versions.index(release)])
        if "bring" in record.attributes:
            text = record.attributes["bring"]
            for component, version in resolution.chosen(target).items():
                text = text.replace(f"{{{component}}}", version)
            components = [{"target": target, "component": name, "evidence": record.evidence}]
            yield "to-bring", text, components


def _archived(resolution: Resolution) -> Iterator[Caveat]:
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
            facts = index.component(choice.component)
            record = index.release(facts.releases[facts.versions.index(choice.version)])
            if "archive" in record.attributes:
                text = (
                    f"{choice.component} {choice.version} has no wheel: "
                    "it is published as a source archive, which pip builds where it is installed"
                )
                parts = [
                    {"target": target, "component": choice.component, "evidence": record.evidence}
                ]
                yield "source-archive", text, parts


def _harvested(resolution: Resolution) -> Iterator[Caveat]:
    # Read for a request and looked at by nobody, with requirements that no component of the matrix stands for.
    index = resolution.index
    for target, choices in resolution.targets.items():
        for choice in choices:
            facts = index.component(choice.component)
            place = facts.versions.index(choice.version) if facts.unreviewed else 0
            if not facts.unreviewed & 2 << place:
                continue
            record = index.release(facts.releases[place])
            told, name = record.attributes, f"{choice.component} {choice.version}"
            components = [
                {"target": target, "component": choice.component, "evidence": choice.evidence}
            ]
            if "harvested" in told:
                read = index.source(record.source).at
                text = (
                    f"{choice.component} is no component of the matrix: it was harvested from the index on "
                    f"{told['harvested']} ({read}), and nobody has reviewed it"
                )
                yield "harvested", text, components
            if "also-requires" in told:
                text = f"not covered: {name} also requires {told['also-requires']} (no components of the matrix)"
                yield "not-covered", text, components


def _untested(resolution: Resolution) -> Iterator[Caveat]:
    header = resolution.index.header["components"]
    asked = [ask for ask in resolution.request.asks if not header[ask.component]["given"]]
    if len(asked) + len(resolution.request.archs) + len(resolution.request.devices) < 2:
        return
    # Most answers have no such pair, and are printed without these two.
    from toolmatrix.report import cores
    from toolmatrix.solve.untested import untested

    pairs = untested(resolution.index, resolution.request)
    documents = cores.soft_documents(resolution.index, resolution.request, pairs)
    for pair, told in zip(pairs, documents, strict=True):
        # One row is enough here; `why-not` tells all of them.
        lines = "; ".join(line["text"] for line in told["lines"][:1])
        text = f"{told['conclusion'].removesuffix('.')}: {lines}  TM102"
        components = [
            {"target": pair.target, "component": name, "evidence": words.UNKNOWN}
            for name in (pair.subject, pair.component)
        ]
        yield "untested", text, components


def _unjoined(resolution: Resolution) -> Iterator[Caveat]:
    for pair in resolution.touching:
        if not pair.decides:
            chosen = resolution.chosen(pair.target)
            text = (
                f"{pair.other} {chosen[pair.other]} is untested with {pair.one} {chosen[pair.one]}: "
                "no fact joins the two  TM102"
            )
            components = [
                {"target": pair.target, "component": name, "evidence": words.UNKNOWN}
                for name in (pair.one, pair.other)
            ]
            yield "untested", text, components
