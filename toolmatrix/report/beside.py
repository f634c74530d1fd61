"""What is said beside an answer: newer releases that facts refuse, the other way to get it, and what is fully known."""

from __future__ import annotations

from toolmatrix.report import claims, terminal
from toolmatrix.request import origin
from toolmatrix.request.names import Names
from toolmatrix.solve.resolve import supported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from toolmatrix.finding import Incompatibility
    from toolmatrix.request.read import RequestContext
    from toolmatrix.solve.alternatives import Alternative
    from toolmatrix.solve.request import Request
    from toolmatrix.solve.resolve import Choice, Resolution

_REFUSED = ("forbidden", "entangled", "later", "apart")
# So many ranges of releases are named in a line.
_RANGES = 3
# For more components the list is too long to read, and each line takes a search; `explain` says why one is older.
_MANY = 8


def document(context: RequestContext, found: Resolution) -> dict[str, Any]:
    """The lines as JSON values; a key is left out where there is nothing to say."""
    known = _fully_known(context, found)
    other = _other_way(context, found)
    return {
        "skipped": [*_skipped(found)],
        **({"other_way": other} if other else {}),
        **({"fully_known": known} if known else {}),
    }


def lines(document: dict[str, Any]) -> list[str]:
    """The lines in words."""
    found = [
        f"skipped {part['component']} {terminal.few(part['range'], _RANGES)}: {part['why']}"
        for part in document["skipped"]
    ]
    for name in ("other_way", "fully_known"):
        found += [document[name]["text"]] if name in document else []
    return found


def _skipped(found: Resolution) -> Iterator[dict[str, Any]]:
    wanted = {*found.request.wanted} if len(found.request.wanted) <= _MANY else set()
    for target, choices in found.targets.items():
        for choice in choices:
            # Most answers hold the newest, and cost nothing here.
            within = _newer(found, choice) if choice.component in wanted else 0
            if within:
                yield from _refused(found, choice, within, target)


def _newer(found: Resolution, choice: Choice) -> int:
    """The releases newer than the chosen one that the request admits, as a mask; none where age does not decide."""
    index, request, name = found.index, found.request, choice.component
    head, part = index.header["components"][name], index.component(name)
    if head["scheme"] == "names" or "oldest" in (head["prefer"], request.prefer):
        return 0
    left = -1 << (part.versions.index(choice.version) + 2) & (2 << len(part.versions)) - 1
    for ask in request.asks:
        if ask.component == name and ask.target in ("", choice.target):
            left &= index.scale(name).select(ask.selector)
    dates = enumerate(part.dates) if request.at else ()
    return left & ~part.yanked & ~sum(2 << place for place, day in dates if day > request.at)


def _refused(
    found: Resolution, choice: Choice, within: int, target: str
) -> Iterator[dict[str, Any]]:
    from toolmatrix.solve.alternatives import alternatives

    index = found.index
    groups: dict[tuple[str, str], list[str]] = {}
    values: dict[str, list[str]] = {}
    for group in alternatives(found, choice, within):
        if group.kind in _REFUSED:
            ground = _end(found, choice, group)
            # What needs other releases of the same component is one reason.
            reason = (ground.component, "") if ground else ("", _short(found, choice, group))
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


def _short(found: Resolution, choice: Choice, group: Alternative) -> str:
    from toolmatrix.report import explanation

    about = {(line.ground.subject, line.ground.component) for line in group.core if line.ground}
    if group.kind == "entangled" and about == {("device", "arch")}:
        devices = [found.request.named(device) for device in found.request.devices]
        return f"they have no code that {terminal.listing(devices, 'or')} runs"
    return explanation.why(found, choice, group)


def _end(found: Resolution, choice: Choice, group: Alternative) -> Incompatibility | None:
    """The fact of a reason that asks for another release of something that the request names."""
    named = {ask.component for ask in found.request.asks if not ask.implied} - {choice.component}
    grounds = [line.ground for line in group.core if line.ground]
    if group.kind == "later" or choice.component in {ground.component for ground in grounds}:
        return None
    return next(
        (
            ground
            for ground in grounds
            if ground.component in named
            and ground.kind in ("requires", "limits")
            and ground.values != ("absent",)
        ),
        None,
    )


def _other_way(context: RequestContext, found: Resolution) -> dict[str, Any] | None:
    """The wheel of what would be built, or the words that build what is installed; only where nobody said which."""
    index, request = found.index, found.request
    way = next((ask for ask in request.asks if ask.component == "from"), None)
    framework = next(
        (name for name in request.wanted if index.header["components"][name]["framework"]), ""
    )
    target = request.targets[0]
    release = found.chosen(target).get(framework, "")
    if way is None or not way.implied or not release:
        return None
    if way.selector == "source":
        # Who names a build tool or an arch builds.
        return _as_wheel(found, target, framework, release)
    from toolmatrix.report import refusal

    names = Names(index)
    admitted = [ask for ask in request.asks if ask.component == framework]
    if not all(origin.admits(ask, "from", "source", names, {}) for ask in admitted):
        return None
    asks = tuple(
        ask.replace(selector="source", text="--from source", implied=False) if ask is way else ask
        for ask in request.asks
    )
    command = refusal.command(request.replace(asks=asks), context.carried)
    return {"from": "source", "command": command, "text": f"to build it: `{command}`"}


def _as_wheel(
    found: Resolution, target: str, framework: str, release: str
) -> dict[str, Any] | None:
    index, request = found.index, found.request
    given = {
        ask.component: ask.selector
        for ask in request.asks
        if ask.target in ("", target) and ask.component in ("machine", "accelerator")
    }
    component, held = origin.published(Names(index), framework, release, given)
    fit = origin.running(index, component, held, request.devices) if held else 0
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
    build = variants.build(index, component, name, found.chosen(target).get("python", ""))
    install = {tool: variants.installs([build], tool) for tool in ("pip", "uv")}
    text = f"as a wheel: {framework} {build.local} on {build.channel_title}, `{install['pip'][0]}`"
    return {"from": "wheel", "build": variants.document(build), "install": install, "text": text}


def _fully_known(context: RequestContext, found: Resolution) -> dict[str, Any] | None:
    """The newest releases of what is asked for of which everything is known, where the answer rests on less."""
    known = None if found.known else supported(found.index, found.request)
    if known is None or not known.known or not found.request.wanted:
        return None
    target = found.request.targets[0]
    releases = known.chosen(target)
    here = found.chosen(target)
    wanted = found.request.wanted
    moved = [name for name in wanted if releases.get(name) != here.get(name)] or [wanted[0]]
    pins = {name: releases.get(name, "") for name in moved}
    request = _pinned(found.request, pins)
    # It is solved as it will be pasted, and offered where it is a yes.
    answer = context.answered(request.words()) if all(pins.values()) else None
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
