"""Which codegen archs to make for some devices: each its own, the fewest with machine code, the fewest of all.

A plan holds archs that one release of the toolkit knows all of, by facts about the two, and names every such release.
Machine code runs on the devices that facts limit to it; PTX, which the driver compiles when it is first loaded, on
those that facts let it. Covers are minimal and exact: every smaller set leaves a device without code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.index import Index
from toolmatrix.solve.flags import PTX
from toolmatrix.solve.pairs import ALLOWED, SAYS, TESTED, PairFact, Partner, RequestFacts
from toolmatrix.solve.parts import bits_of, union
from toolmatrix.solve.preferences import limits
from toolmatrix.solve.request import Request
from toolmatrix.value import NamedTuple, Value

EXACT, COMPATIBLE, COMPILED = HOW = "exact", "compatible", "ptx"
"""How a device runs a cover: code made for it, machine code for another that it runs, or PTX."""


class Runs(NamedTuple):
    """The archs whose code a device runs, as masks: machine code with what is made for the device itself, and PTX."""

    device: str
    machine: int
    exact: int
    ptx: int

    def best(self, archs: int) -> tuple[int, str]:
        """The arch of a cover whose code the device runs, and how; 0 and nothing if none does."""
        for runnable, how in (
            (archs & self.exact, EXACT),
            (archs & self.machine, COMPATIBLE),
            (archs & self.ptx, COMPILED),
        ):
            if runnable:
                return highest(runnable), how
        return 0, ""


def runs(index: Index, device: str) -> Runs | None:
    """What a device runs; None where no fact says."""
    archs = limits(index, "device", "arch", index.scale("device").bit(device))
    # -1 is every arch, those included that the matrix does not know: no fact limits the device.
    if archs < 0:
        return None
    names = index.component("arch").versions
    ptx = sum(2 << position for position, name in enumerate(names) if name.startswith(PTX))
    # Bit 0 would be that there is no arch at all.
    machine = archs & ~ptx & ~1
    # Code for the device itself ranks above what it runs besides.
    return Runs(device, machine, highest(machine), archs & ptx)


def highest(mask: int) -> int:
    """The bit of the highest rank in a mask; 0 for none."""
    return 1 << mask.bit_length() - 1 if mask else 0


def exact(devices: Sequence[Runs], known: int) -> int | None:
    """The archs made for each device itself; None where one of them is not known."""
    archs = 0
    for device in devices:
        if not device.exact & known:
            return None
        archs |= device.exact
    return archs


def fewest(devices: Sequence[Runs], known: int, *, machine: bool) -> int | None:
    """The fewest of the known archs that all devices run; None where one of them runs none.

    With `machine` each device that can have machine code gets some. Of equally many, those are chosen whose machine
    code more devices run, then code made for the devices themselves, then higher ranks.
    """
    options = []
    for device in devices:
        native, any_code = device.machine & known, (device.machine | device.ptx) & known
        if not any_code:
            return None
        # A device that no known arch is machine code for is not left out of a plan: PTX may serve it.
        options.append(native if machine and native else any_code)
    archs = 0
    # Devices that share no arch have nothing to do with each other.
    for group in _sharing_groups(options):
        own = [devices[position] for position in group]
        wanted = [options[position] for position in group]
        # By growing counts: a smallest set that meets each of several sets has no quick way to it, and all that are as
        # small have to be compared. Devices of a group share archs, so that few are enough.
        count = 1
        while not (covers := [*_covers(wanted, count)]):
            count += 1
        archs |= max(covers, key=lambda cover: _worth(own, cover))
    return archs


def _sharing_groups(options: Sequence[int]) -> list[list[int]]:
    groups: list[tuple[int, list[int]]] = []
    for position, mask in enumerate(options):
        joined, positions = mask, [position]
        rest = []
        # One device may join groups that had nothing in common until then.
        for other, members in groups:
            if other & joined:
                joined |= other
                positions += members
            else:
                rest.append((other, members))
        groups = [*rest, (joined, positions)]
    return [sorted(positions) for _, positions in groups]


def _covers(options: Sequence[int], count: int, chosen: int = 0, refused: int = 0) -> Iterator[int]:
    """Every set of at most so many archs more that has one of each option, once."""
    left = [mask & ~refused for mask in options if not mask & chosen]
    if not left:
        yield chosen
        return
    if not count:
        return
    # The device with the fewest ways decides; a way that was tried is not tried again below the others.
    archs = min(left, key=int.bit_count)
    while archs:
        bit = archs & -archs
        archs ^= bit
        yield from _covers(options, count - 1, chosen | bit, refused)
        refused |= bit


def _worth(devices: Sequence[Runs], cover: int) -> tuple[int, int, int]:
    how = [device.best(cover)[1] for device in devices]
    return len(how) - how.count(COMPILED), how.count(EXACT), cover


OWN_ARCHS, MACHINE, FEWEST = "exact", "machine code", "fewest"
KINDS = (OWN_ARCHS, MACHINE, FEWEST)
"""Code for each device itself; the fewest archs with machine code where there can be some; the fewest of all."""


class ArchPlan(Value):
    """Archs for some devices as a mask, and what each device runs of it; `kinds` are those that it is the plan for.

    `toolkits` are the releases that know all archs by how well that is known, `unknown` the rest.
    `others` are the further devices that run some of it.
    """

    kinds: tuple[str, ...]
    archs: int
    devices: Mapping[str, tuple[int, str]]
    toolkits: Mapping[str, int]
    unknown: int
    others: Mapping[str, str]
    facts: tuple[PairFact, ...]


class NoPlan(NamedTuple):
    """A kind that no release of the toolkit is known to have, and the releases that know code for each device.

    `open` are the releases that no fact refuses for one, so that there may be a plan with them.
    """

    kind: str
    toolkits: Mapping[str, int]
    open: int


class BuildsOf(Value):
    """The builds of a component by whether they run on all of some devices, as masks.

    `native` have machine code for each, `runs` code of some kind, `refused` lack it for one; the rest is `unknown`.
    """

    component: str
    native: int
    runs: int
    refused: int
    unknown: int
    evidence: Mapping[int, str]


class Planner:
    """Plans for devices that one toolkit makes code for, under a request."""

    def __init__(
        self, index: Index, request: Request, toolkit: str, devices: Sequence[Runs]
    ) -> None:
        self.index = index
        self.toolkit = toolkit
        self.devices = devices
        self._archs = RequestFacts(index, request, "arch")
        own = RequestFacts(index, request, toolkit)
        # Every plan asks for the same archs again, and each answer is a pass over the claims.
        self._partners: dict[int, Partner] = {}
        # Without its runtime a device is of no use, whatever the compiler knows.
        boards, bit = RequestFacts(index, request, "device"), index.scale("device").bit
        refused = union(
            boards.at(bit(device.device)).partner(toolkit).refused for device in devices
        )
        self.requested = own.mask
        self.releases = own.mask & ~refused

    def known(self, arch: int) -> Partner:
        """What is said of the releases of the toolkit beside an arch."""
        if arch not in self._partners:
            self._partners[arch] = self._archs.at(arch).partner(self.toolkit)
        return self._partners[arch]

    def takes(self, archs: int) -> int:
        """The releases of the toolkit that know all archs of a mask."""
        releases = self.releases
        for arch in bits_of(archs):
            releases &= self.known(arch).tested | self.known(arch).allowed
        return releases

    def oldest(self, archs: int) -> tuple[int, str]:
        """The oldest release of the toolkit that knows all archs of a mask, and how well that is known; 0 for none."""
        takes = self.takes(archs)
        release = takes & -takes
        return release, words.weakest(self._evidence(arch, release) for arch in bits_of(archs))

    def plans(self) -> tuple[list[ArchPlan], list[NoPlan]]:
        """The plans, each once, and the kinds that there is none for."""
        relevant = union(device.machine | device.ptx for device in self.devices)
        # Releases that know the same archs have the same plans.
        together: dict[int, int] = {}
        for release in bits_of(self.releases):
            knows = sum(arch for arch in bits_of(relevant) if self.takes(arch) & release)
            together[knows] = together.get(knows, 0) | release
        kinds_of: dict[int, list[str]] = {}
        missing = []
        for kind in KINDS:
            covers = [cover for knows in together if (cover := self._cover(kind, knows))]
            if covers:
                best = max(covers, key=lambda cover: self._worth(kind, cover))
                kinds_of.setdefault(best, []).append(kind)
            else:
                missing.append(self._missing(kind))
        return [self._plan(kinds, archs) for archs, kinds in kinds_of.items()], missing

    def _cover(self, kind: str, knows: int) -> int:
        # 0 where there is no cover: an empty set of archs serves no device.
        if kind == OWN_ARCHS:
            return exact(self.devices, knows) or 0
        return fewest(self.devices, knows, machine=kind == MACHINE) or 0

    def _worth(self, kind: str, cover: int) -> tuple[int, ...]:
        native, own, _ = _worth(self.devices, cover)
        few = -cover.bit_count()
        # A toolkit that makes machine code for more of the devices is worth further archs where machine code was asked
        # for. The mask comes last: it is greater where archs of higher rank are in it, and makes the choice certain.
        return (native, few, own, cover) if kind == MACHINE else (few, native, own, cover)

    def _missing(self, kind: str) -> NoPlan:
        toolkits, open_ = {}, self.releases
        for device in self.devices:
            wanted = device.exact if kind == OWN_ARCHS else device.machine | device.ptx
            knows = may = 0
            for arch in bits_of(wanted):
                # Of all releases that were asked for, those too that another device keeps from being taken.
                knows |= self.requested & (self.known(arch).tested | self.known(arch).allowed)
                may |= self.releases & ~self.known(arch).refused
            toolkits[device.device] = knows
            open_ &= may
        return NoPlan(kind, toolkits, open_)

    def _plan(self, kinds: Sequence[str], archs: int) -> ArchPlan:
        toolkits: dict[str, int] = {}
        for release in bits_of(self.takes(archs)):
            # One release has to make all of the archs, so that it is known as well as the arch that is known worst.
            evidence = words.weakest(self._evidence(arch, release) for arch in bits_of(archs))
            toolkits[evidence] = toolkits.get(evidence, 0) | release
        refused = union(self.known(arch).refused for arch in bits_of(archs))
        planned = {device.device for device in self.devices}
        others = {}
        for name in self.index.component("device").versions:
            other = None if name in planned else runs(self.index, name)
            if other and (how := other.best(archs)[1]):
                others[name] = how
        return ArchPlan(
            kinds=tuple(kinds),
            archs=archs,
            devices={device.device: device.best(archs) for device in self.devices},
            toolkits={word: toolkits[word] for word in words.WORDS if word in toolkits},
            unknown=self.releases & ~refused & ~self.takes(archs),
            others=others,
            facts=tuple(self._facts(archs)),
        )

    def _evidence(self, arch: int, release: int) -> str:
        for says in SAYS:
            for evidence, mask, _ in self.known(arch).by_evidence(says):
                if mask & release:
                    return evidence
        return words.UNKNOWN

    def _facts(self, archs: int) -> Iterator[PairFact]:
        takes = self.takes(archs)
        for arch in bits_of(archs):
            for says in (TESTED, ALLOWED):
                for _, mask, facts in self.known(arch).by_evidence(says):
                    yield from (fact for fact in facts if fact.mask & mask & takes)


def toolkit_of(index: Index, device: Runs) -> str:
    """The toolkit that makes the code that a device runs; nothing where facts name none, or several."""
    archs = device.machine | device.ptx
    toolkits = {
        binding.component
        for binding in index.component("arch").bindings
        if binding.kind == "requires" and binding.mask & archs
    }
    # Plans name releases of one toolkit: where several make the code, none of them is meant.
    return toolkits.pop() if len(toolkits) == 1 else ""


def builds(index: Index, facts: RequestFacts, devices: Sequence[Runs]) -> BuildsOf:
    """Which of the builds that a request leaves run on all of some devices."""
    wanted = facts.mask
    native = runs = wanted
    refused = 0
    evidence: dict[int, str] = {}
    for device in devices:
        can = own = no = 0
        bit = index.scale("device").bit(device.device)
        for binding in index.component(facts.component).bindings:
            # A limit that was never read refuses nothing.
            binds = binding.kind == "limits" and binding.evidence != words.UNKNOWN
            if not binds or binding.component not in ("arch", "device"):
                continue
            # A build that runs beside a framework, such as one of its extensions, limits devices and not the code that
            # the framework holds.
            if binding.component == "device":
                # What code it is that a device runs is not said.
                fits, machine = binding.allowed & bit, 0
            else:
                fits = binding.allowed & (device.machine | device.ptx)
                machine = binding.allowed & device.machine
            can |= binding.mask if fits else 0
            own |= binding.mask if machine else 0
            no |= 0 if fits else binding.mask
            for build in bits_of(binding.mask & wanted):
                known = evidence.get(build, binding.evidence)
                evidence[build] = words.weaker(known, binding.evidence)
        # A build has to run on every device, and one that a single fact refuses does not, whatever another one admits.
        runs &= can & ~no
        native &= own & ~no
        refused |= no & wanted
    return BuildsOf(
        component=facts.component,
        native=native,
        runs=runs & ~native,
        refused=refused,
        unknown=wanted & ~(runs | refused),
        evidence=evidence,
    )
