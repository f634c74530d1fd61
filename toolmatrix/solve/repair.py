"""Repairs: the smallest changes to a request that make it possible, each solved again before it is offered.

A line of the request is changed at a time: a version to the nearest newer and the nearest older one that works (not the
highest floor), a codegen arch to one whose code runs on the same device, a word (target, accelerator, from) to another.
Where no single change helps, pairs of lines are tried. Ordered by cost.
"""

from __future__ import annotations

from itertools import combinations

from toolmatrix.factbase import evidence as words
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.solve.request import REQUIREMENT, Ask, allowed_accelerators
from toolmatrix.solve.resolve import Unsatisfiable, supported, supported_release
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.solve.grounds import Core
    from toolmatrix.solve.request import Request
    from toolmatrix.solve.resolve import Resolution

# Costs are compared with each other alone. A codegen arch moves before a device, since its code still runs there; what
# is another way to install, another accelerator or another machine moves last.
_OPTION_COST = {
    "arch": 2,
    "min-evidence": 8,
    "align": 9,
    "device": 6,
    "distro": 4,
    "from": 12,
    "accelerator": 14,
    "target": 16,
    "with": 0,
}
# A named machine or accelerator exists: another one is no repair, unless the named one cannot work at all.
_PLACES = ("target", "accelerator", "gpu-kind")
# Names without an order are tried one by one, each by solving. Of more than these none is nearer than another: devices
# and base images have hundreds. A distribution is tried however many there are, since each is a different machine.
_MOST_NAMES = 9
# What one step costs in the first, second and any later number of a version.
_STEP_COST = (20, 5, 1)


class Repair(Value):
    """A changed request that works: what was replaced by what (None: dropped), its cost, and its answer."""

    changes: tuple[tuple[Ask, Ask | None], ...]
    cost: int
    request: Request
    resolution: Resolution


def repairs(index: Index, refusal: Unsatisfiable, limit: int = 4) -> tuple[Repair, ...]:
    """Up to `limit` verified repairs of a refused request, cheapest first."""
    finder = _RepairSearch(index, refusal)
    candidates = [*finder.singles(finder.asks), *finder.wishes()]
    # Another target than the default one, then one line less, are for where no line can be said otherwise.
    candidates = candidates or list(finder.singles(finder.targets)) or list(finder.drops())
    # Each of many pairs would take many answers to judge where some evidence is asked for.
    if not refusal.request.min_evidence:
        candidates = candidates or list(finder.pairs())
    # Of changes that are said in the same words the cheapest stays.
    best: dict[tuple[str, ...], Repair] = {}
    # What facts support comes before what only none forbids.
    for repair in sorted(
        candidates, key=lambda repair: (not repair.resolution.known, repair.cost, _texts(repair))
    ):
        best.setdefault(_texts(repair), repair)
    return tuple(_following_first(refusal, [*best.values()])[:limit])


def _following_first(refusal: Unsatisfiable, candidates: list[Repair]) -> list[Repair]:
    """The repairs with the nearest release of what facts of others limit before other releases of these others.

    Who asks for two parts has a reason for the one that decides: the release of the other follows from it.
    """
    grounds = [line.ground for core in refusal.cores for line in core.lines if line.ground]
    following = {ground.component for ground in grounds} - {ground.subject for ground in grounds}
    singles = [r for r in candidates if len(r.changes) == 1 and not r.changes[0][0].option]
    for component in sorted(following, reverse=True):
        of_it = (repair for repair in singles if repair.changes[0][0].component == component)
        nearest = next(of_it, None)
        if nearest:
            position = candidates.index(singles[0])
            for ordered, at in ((candidates, position), (singles, 0)):
                ordered.remove(nearest)
                ordered.insert(at, nearest)
    return candidates


def _texts(repair: Repair) -> tuple[str, ...]:
    return tuple(new.text if new else "" for _, new in repair.changes) + tuple(
        old.text for old, _ in repair.changes
    )


def _wish(option: str, value: str) -> Ask:
    """A line of the request that is about no component."""
    return Ask(component="", selector=value, text=f"--{option} {value}", option=option)


class _RepairSearch:
    def __init__(self, index: Index, refusal: Unsatisfiable) -> None:
        self.index = index
        self.request = refusal.request
        self.components = index.header["components"]
        targets = {ask.target: ask for ask in self.request.asks if ask.component == "target"}
        asks = [
            # A machine is moved with its target.
            targets.get(ask.target, ask) if ask.option == "target" and not ask.implied else ask
            for core in refusal.cores
            for ask in core.asks
            if ask.text
            and ask.option not in ("recipe", REQUIREMENT)
            and (ask.implied or ask.option not in _PLACES or self.at_odds(core))
        ]
        self.asks: list[Ask] = list(dict.fromkeys(asks))
        # Where a target's own accelerator or machine is in the way, another target brings another.
        blocked = [
            ask.target
            for core in refusal.cores
            for ask in core.asks
            if ask.component in ("accelerator", "machine") and ask.implied
        ]
        self.targets = [
            ask
            for ask in self.request.asks
            if ask.component == "target" and ask.implied and ask.target in blocked
        ]

    def at_odds(self, core: Core) -> bool:
        """True if the options contradict each other, whatever is asked for: then one of them has to move."""
        return all(self.components[name]["given"] or name in SEVERAL for name in core.subjects)

    def singles(self, asks: Sequence[Ask]) -> Iterator[Repair]:
        for ask in asks:
            for changed in self.alternatives(ask, self.request):
                yield from self.verified(((ask, changed),))

    def drops(self) -> Iterator[Repair]:
        for ask in self.asks:
            if not self.components[ask.component]["given"]:
                yield from self.verified(((ask, None),))

    def wishes(self) -> Iterator[Repair]:
        """Less evidence, the nearest that is enough; or one component that need not be the same everywhere."""
        least = self.request.min_evidence
        for rank in range(words.rank(least) - 1 if least else 0, 0, -1):
            less = _wish("min-evidence", words.word(rank))
            weaker = list(self.verified(((_wish("min-evidence", least), less),)))
            yield from weaker
            if weaker:
                break
        for name in self.request.align:
            yield from self.verified(((_wish("align", name), None),))

    def pairs(self) -> Iterator[Repair]:
        """Change one line, then the nearest change of another; the number of lines in cores is small."""
        for first, other in combinations(self.asks, 2):
            # A default that is dropped would come back.
            drops: list[None] = [] if self.components[other.component]["given"] else [None]
            for new in self.alternatives(first, self.changed(((other, None),))):
                seconds = self.alternatives(other, self.changed(((first, new),)))
                for second in (*seconds, *drops):
                    yield from self.verified(((first, new), (other, second)))

    def verified(self, changes: tuple[tuple[Ask, Ask | None], ...]) -> Iterator[Repair]:
        request = self.changed(changes)
        # Something must still be asked for.
        if self.request.wanted and not request.wanted:
            return
        resolution = supported(self.index, request)
        if resolution is None and any(old.option == "target" for old, _ in changes):
            # Where no wheel fits, the other target builds from source by default.
            request = _from_source(request)
            resolution = supported(self.index, request)
        if resolution is not None:
            cost = sum(self.cost(old, new) for old, new in changes)
            yield Repair(changes=changes, cost=cost, request=request, resolution=resolution)

    def changed(self, changes: Sequence[tuple[Ask, Ask | None]]) -> Request:
        """The request with some lines replaced or dropped."""
        request = self.request
        for old, new in changes:
            if not old.component:
                request = _wished(request, old, new)
            elif old.option in ("arch", "device"):
                request = _recoded(request, old, new)
            else:
                request = self.restated(request, old, new)
        return request

    def restated(self, request: Request, old: Ask, new: Ask | None) -> Request:
        """The request with one line about a component replaced or dropped."""
        asks: list[Ask] = []
        for ask in request.asks:
            if new is not None and ask.option == old.option == "accelerator":
                # One option says the accelerator of all targets.
                asks.append(new.replace(target=ask.target))
            elif ask != old:
                asks.append(ask)
            elif new is not None:
                asks.append(new)
        request = request.replace(asks=tuple(asks))
        if old.option == "target" and new is not None:
            return self.moved(request, new)
        return request

    def moved(self, request: Request, new: Ask) -> Request:
        """The request on another target, which brings its own context and accelerator."""
        head = self.index.header["targets"][new.selector]
        context = head["context"]
        able = allowed_accelerators(self.index, new.selector)
        asks = []
        for ask in request.asks:
            # Only a request with one target moves: each line that names a target names that one.
            if ask.target:
                ask = ask.replace(target=new.selector)
                if ask.component in context:
                    ask = ask.replace(selector=context[ask.component], text=new.text)
                elif ask.option == "accelerator" and ask.implied:
                    # Devices keep their accelerator where the target can have it.
                    own = request.devices and self.index.scale("accelerator").bit(ask.selector)
                    accelerator = ask.selector if own and own & able else head["accelerator"]
                    ask = ask.replace(selector=accelerator, text=f"--accelerator {accelerator}")
            asks.append(ask)
        return request.replace(asks=tuple(dict.fromkeys(asks)), targets=(new.selector,))

    def alternatives(self, ask: Ask, request: Request) -> Iterator[Ask]:
        """Other ways to say a line, nearest first."""
        if ask.option == "arch":
            yield from self.archs(ask)
        elif ask.option == "target":
            if ask.component == "target" and len(request.targets) == 1:
                yield from self.names(ask)
        elif self.components[ask.component]["scheme"] == "names":
            yield from self.names(ask)
        else:
            yield from self.versions(ask, request)

    def names(self, ask: Ask) -> Iterator[Ask]:
        names = self.index.component(ask.component).versions
        if len(names) > _MOST_NAMES and ask.option != "distro":
            return
        # Of names the last one comes first, as in the search.
        for name in reversed(names):
            if name != ask.selector:
                by_option = ask.option not in ("", "with")
                text = f"--{ask.option} {name}" if by_option else f"{ask.component}=={name}"
                yield ask.replace(selector=name, text=text, implied=False)

    def archs(self, ask: Ask) -> Iterator[Ask]:
        """Codegen archs whose code runs on the device this arch is made for."""
        device = device_of(self.index, ask.selector)
        if not device:
            return
        # The solver picks the code itself, when the device is asked for in the place of the arch.
        others = tuple(name for name in self.request.archs if name != ask.selector)
        trial = self.request.replace(archs=others, devices=(*self.request.devices, device))
        resolution = supported(self.index, trial)
        if resolution is None:
            return
        for target in resolution.targets:
            codes = [choice for choice in resolution.targets[target] if choice.component == "arch"]
            # The code of the added device is the last one.
            name = codes[-1].version
            if name != ask.selector:
                yield ask.replace(selector=name, text=f"--arch {name}")

    def versions(self, ask: Ask, request: Request) -> Iterator[Ask]:
        """The nearest newer and the nearest older release that work."""
        scale = self.index.scale(ask.component)
        mask = scale.select(ask.selector)
        top, bottom = mask.bit_length() - 1, (mask & -mask).bit_length() - 1
        newer, older = scale.versions[top : top + 1], scale.versions[: bottom - 1][-1:]
        # The solver finds the nearest by itself: the oldest of the newer releases, or the newest of the older ones.
        # What is chosen before it would leave it a release that is farther away.
        for ends, sign in ((newer, ">="), (older, "<=")):
            if not ends:
                continue
            oldest = sign == ">="
            wide = ask.replace(selector=f"{sign}{ends[0]}")
            asks = tuple(wide if line == ask else line for line in request.asks)
            rising = (*request.oldest, ask.component) if oldest else request.oldest
            nearest = request.replace(
                asks=asks, oldest=rising, prefer="newest", first=ask.component
            )
            if version := supported_release(self.index, nearest, ask.component):
                yield ask.replace(selector=f"=={version}", text=f"{ask.component}=={version}")

    def cost(self, old: Ask, new: Ask | None) -> int:
        if not old.component:
            return _OPTION_COST[old.option]
        if new is None:
            # Going without costs more than another minor version, and less than another major one.
            return 10 + _OPTION_COST.get(old.option, 0)
        base = _OPTION_COST.get(old.option, 1)
        if self.components[old.component]["scheme"] == "names":
            return base + 1
        return base + self.distance(old, new)

    def distance(self, old: Ask, new: Ask) -> int:
        """The releases between a version and the nearer end of a range, weighted by the first number that differs."""
        scale = self.index.scale(old.component)
        mask = scale.select(old.selector)
        position = scale.select(new.selector).bit_length() - 2
        costs = []
        for end in (mask.bit_length() - 2, (mask & -mask).bit_length() - 2):
            ours, theirs = scale.versions[end].split("."), scale.versions[position].split(".")
            numbers = list(zip(ours, theirs, strict=False))
            level = next(
                (level for level, (our, their) in enumerate(numbers) if our != their), len(numbers)
            )
            costs.append(abs(end - position) + _STEP_COST[min(level, len(_STEP_COST) - 1)])
        return min(costs)


def _from_source(request: Request) -> Request:
    """The request with a build from source where it does not say how to install."""
    by_default = [ask for ask in request.asks if ask.option == "from" and ask.implied]
    built = {ask: ask.replace(selector="source", text="--from source") for ask in by_default}
    return request.replace(asks=tuple(built.get(ask, ask) for ask in request.asks))


def device_of(index: Index, arch: str) -> str:
    """The first device that runs code made for an arch, or nothing."""
    bit = index.scale("arch").bit(arch)
    devices = index.component("device")
    for position, name in enumerate(devices.versions):
        for binding in devices.about("arch", 2 << position):
            if binding.kind == "limits" and binding.allowed & bit:
                return name
    return ""


def _wished(request: Request, old: Ask, new: Ask | None) -> Request:
    """The request with less evidence asked for, or one component fewer to align."""
    if new is not None:
        return request.replace(min_evidence=new.selector)
    return request.replace(align=tuple(name for name in request.align if name != old.selector))


def _recoded(request: Request, old: Ask, new: Ask | None) -> Request:
    """The request with one codegen arch or device replaced or dropped: these are no lines, but lists of it."""
    instead = () if new is None else (new.selector,)
    names = request.archs if old.option == "arch" else request.devices
    changed = tuple(
        new_name for name in names for new_name in (instead if name == old.selector else (name,))
    )
    return request.replace(**{f"{old.option}s": changed})
