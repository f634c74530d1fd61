"""`toolmatrix plan`."""

from __future__ import annotations

from functools import partial

from toolmatrix.api import Report, split_words
from toolmatrix.api.arguments import words
from toolmatrix.api.requests import read_request, with_online_packages
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ONLINE
from toolmatrix.documents import Annotated, Evidence, MatrixHead, NonEmpty, NotRequired, TypedDict
from toolmatrix.errors import CannotSay, UsageError
from toolmatrix.factbase import evidence as evidence_words
from toolmatrix.report import answer, claims, partners, terminal
from toolmatrix.request.names import Names
from toolmatrix.solve import arch_plans, flags
from toolmatrix.solve.pairs import ALLOWED, TESTED, RequestFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from typing_extensions import Unpack

    from toolmatrix.api import Wanted
    from toolmatrix.api.requests import RequestOptions
    from toolmatrix.factbase.index import Index
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.solve.arch_plans import HOW, KINDS, ArchPlan, BuildsOf, Runs
    from toolmatrix.solve.pairs import Partner
    from toolmatrix.solve.request import Request

    Reader = Callable[[Sequence[str], str], Request]
    """The request that is made for some devices, with where frameworks come from."""


@command(
    group="Explore the matrix",
    order=5,
    usage="[REQUEST...]",
    completer="release",
    formats=PRINTED,
    examples=(
        "toolmatrix plan --device A100,H100,'RTX 5090'",
        "toolmatrix plan torch==2.7.1 --device 'GTX 1080 Ti',H100",
        "toolmatrix plan cuda==12.4 --device A100,'RTX 5090'",
    ),
)
def plan(
    *wanted: Wanted,
    online: bool = ONLINE,
    everything: bool = False,
    **options: Unpack[RequestOptions],
) -> Report:
    """Find the fewest codegen archs for some devices.

    The plans are those for the devices of `device`, with the releases of the toolkit that know them. A release of the
    toolkit in the request narrows them; a framework is shown with the releases of the toolkit that go with it, and with
    its builds that run on all of the devices. Raises UsageError without a device, and CannotSay for one of which no
    fact says what it runs.
    """
    named = words(*wanted)
    index = with_online_packages(named, options, online=online).index

    def read(devices: Sequence[str], from_: str) -> Request:
        changed: RequestOptions = {**options, "device": devices, "from_": from_}
        return read_request(("arch", *named), changed, varied=("arch",))[1]

    if options.get("arch"):
        raise UsageError(
            "`plan` chooses the codegen archs",
            expected="`--device` without `--arch`",
            found="`--arch`",
            help="`toolmatrix matrix --rows cuda --cols arch` shows the archs of each toolkit",
        )
    return _plan(index, read, split_words(options.get("device", ())), everything=everything)


def _plan(index: Index, read: Reader, devices: Sequence[str], *, everything: bool) -> Report:
    if not devices:
        raise UsageError(
            "no device to plan for",
            expected="`--device`",
            help="`toolmatrix plan --device A100,H100,'RTX 5090'`",
        )
    names = Names(index)
    # A device may be named twice, as a product and by its capability.
    spellings = {names.device(name): name for name in devices}
    # Each toolkit and target has its own plans: devices of two vendors, or a board with its own CPU.
    groups: dict[tuple[str, tuple[str, ...]], list[Runs]] = {}
    for device, spelling in spellings.items():
        runs = arch_plans.runs(index, device)
        toolkit = arch_plans.toolkit_of(index, runs) if runs else ""
        if runs is None or not toolkit:
            raise CannotSay(
                f"no fact names the code that {device} runs, or a toolkit that makes it",
                expected="a device with facts about codegen archs",
                found=f"`--device {spelling}`",
            )
        groups.setdefault((toolkit, read([spelling], "source").targets), []).append(runs)
    several = len({targets for _, targets in groups}) > 1
    document: ArchPlanDocument = {
        "schema": SCHEMA,
        "matrix": answer.head(index),
        "devices": [],
        "plans": [],
        "missing": [],
        "builds": [],
    }
    codes = []
    for (toolkit, targets), members in groups.items():
        on: OnTarget = {"target": ",".join(targets)} if several else {}
        codes.append(_add_plans(document, index, read, toolkit, members, spellings, on))
    return Report(
        words=partial(_text, index, document, everything=everything),
        document=lambda: document,
        # No outweighs unknown, and unknown outweighs yes; the codes have another order.
        exit_code=max(codes, key=(0, CannotSay.exit_code, 1).index),
    )


def _add_plans(
    document: ArchPlanDocument,
    index: Index,
    read: Reader,
    toolkit: str,
    devices: Sequence[Runs],
    spellings: dict[str, str],
    on: OnTarget,
) -> int:
    """Add the plans for the devices of one toolkit to a document; returns their exit code."""
    names = [device.device for device in devices]
    wanted = [spellings[name] for name in names]
    # Archs are chosen for builds from source; wheels are reported as they are.
    request = read(wanted, "source")
    plans, missing = arch_plans.Planner(index, request, toolkit, devices).plans()
    frameworks = {
        ask.component: RequestFacts(index, request, ask.component)
        for ask in request.asks
        if not ask.option and index.header["components"][ask.component]["framework"]
    }
    beside = {name: facts.partner(toolkit) for name, facts in frameworks.items()}
    scale = index.scale(toolkit)
    document["devices"] += [
        {"device": name, "asked": spellings[name], "toolkit": toolkit, **on} for name in names
    ]
    document["plans"] += [_plan_entry(index, toolkit, plan, beside, on) for plan in plans]
    document["missing"] += [
        {
            "kind": gap.kind,
            "toolkit": toolkit,
            "devices": {device: scale.named(mask) for device, mask in gap.toolkits.items()},
            "open": scale.named(gap.open),
            **on,
        }
        for gap in missing
    ]
    for name, facts in frameworks.items():
        if variant := index.builds_of(name):
            builds = RequestFacts(index, read(wanted, "wheel"), variant)
            # Only builds of the requested releases.
            for binding in index.component(variant).about(name, -1):
                if not binding.allowed & facts.requested:
                    builds.mask &= ~binding.mask
            on_devices = arch_plans.builds(index, builds, devices)
            document["builds"].append(_builds(index, toolkit, on_devices))
    if plans:
        return 0
    # Without a fact against a release the answer is unknown, not no.
    return CannotSay.exit_code if any(gap.open for gap in missing) else 1


SCHEMA = "toolmatrix.arch-plan/1"
_TITLES = {
    "exact": "one per device",
    "machine code": "fewest with machine code",
    "fewest": "fewest of all",
}
# How many ranges and sources are printed without `--all`.
_RANGES, _FEW, _SOURCES = 8, 3, 3


class OnTarget(TypedDict):
    """What is said of a target where the devices imply several."""

    target: NotRequired[str]
    """The target that its devices imply, where others imply another."""


class PlannedDevice(OnTarget):
    """A device, and the name that it was asked for by."""

    device: str
    asked: str
    toolkit: str


class PlannedCode(TypedDict):
    """The code that a device runs, and how well it fits."""

    arch: str
    how: Annotated[str, HOW]


class PlannedReleases(TypedDict):
    """Releases of the toolkit that make the code, as well known as the word says."""

    evidence: Evidence
    releases: NonEmpty[str]


class PlannedFramework(TypedDict):
    """Releases of the toolkit that a framework is tested with, or allows."""

    component: str
    says: Annotated[str, TESTED, ALLOWED]
    evidence: Evidence
    releases: NonEmpty[str]


class PlannedFlags(TypedDict):
    """The flags of each compiler."""

    nvcc: list[str]
    hipcc: list[str]


class PlannedRuns(TypedDict):
    """How well it is known what the devices run."""

    evidence: Evidence
    facts: NonEmpty[str]


class PlanEntry(OnTarget):
    """The archs to make code for, and what follows."""

    toolkit: str
    kinds: NonEmpty[Annotated[str, KINDS]]
    archs: NonEmpty[str]
    devices: dict[str, PlannedCode]
    also: dict[str, Annotated[str, HOW]]
    releases: NonEmpty[PlannedReleases]
    unknown: list[str]
    frameworks: list[PlannedFramework]
    flags: PlannedFlags
    runs: PlannedRuns
    facts: NonEmpty[str]


class MissingPlan(OnTarget):
    """A kind of plan that no release of the toolkit can make."""

    open: list[str]
    kind: Annotated[str, KINDS]
    toolkit: str
    devices: dict[str, list[str]]


class PlannedBuilds(TypedDict):
    """The builds of a framework by whether they run on the devices."""

    component: str
    builds_of: str
    toolkit: str
    evidence: Evidence
    native: list[str]
    runs: list[str]
    refused: list[str]
    unknown: list[str]


class ArchPlanDocument(TypedDict):
    """What `toolmatrix plan --json` prints: the codegen archs to make for some devices, the releases of the toolkit
    that know them, and the flags.
    """

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    devices: NonEmpty[PlannedDevice]
    plans: list[PlanEntry]
    missing: list[MissingPlan]
    builds: list[PlannedBuilds]


def _plan_entry(
    index: Index, toolkit: str, plan: ArchPlan, frameworks: Mapping[str, Partner], on: OnTarget
) -> PlanEntry:
    archs, scale = index.scale("arch"), index.scale(toolkit)
    takes = 0
    for mask in plan.toolkits.values():
        takes |= mask
    names = archs.named(plan.archs)
    return {
        "toolkit": toolkit,
        **on,
        "kinds": list(plan.kinds),
        "archs": names,
        "devices": {
            device: {"arch": archs.named(arch)[0], "how": how}
            for device, (arch, how) in plan.devices.items()
        },
        "also": dict(plan.others),
        "releases": [
            {"evidence": evidence, "releases": scale.named(mask)}
            for evidence, mask in plan.toolkits.items()
        ],
        "unknown": scale.named(plan.unknown),
        "frameworks": [
            {
                "component": name,
                "says": says,
                "evidence": evidence,
                "releases": scale.named(mask & takes),
            }
            for name, partner in frameworks.items()
            for says in (TESTED, ALLOWED)
            for evidence, mask, _ in partner.by_evidence(says)
            if mask & takes
        ],
        "flags": {"nvcc": flags.nvcc(names), "hipcc": flags.hipcc(names)},
        "runs": _runs(index, [*plan.devices]),
        "facts": sorted(partners.cited(index, takes, plan.facts)),
    }


def _runs(index: Index, devices: Sequence[str]) -> PlannedRuns:
    """How well it is known what the devices run, and by which facts."""
    facts, ids, known = index.component("device"), set(), evidence_words.WORDS[0]
    for device in devices:
        bit = index.scale("device").bit(device)
        for binding in facts.about("arch", bit):
            if binding.kind == "limits":
                known = evidence_words.weaker(known, binding.evidence)
                cites = [cite for cite in index.cites(binding.cites) if cite.touches(bit)]
                ids |= {index.claim(cite.record).id for cite in cites}
    return {"evidence": known, "facts": sorted(ids)}


def _builds(index: Index, toolkit: str, builds: BuildsOf) -> PlannedBuilds:
    names = index.scale(builds.component)
    run = builds.native | builds.runs
    return {
        "component": builds.component,
        "builds_of": index.header["components"][builds.component]["variant_of"],
        "toolkit": toolkit,
        # The evidence is that of the builds that run.
        "evidence": evidence_words.weakest(
            evidence for build, evidence in builds.evidence.items() if build & run
        )
        if run
        else evidence_words.UNKNOWN,
        "native": names.named(builds.native),
        "runs": names.named(builds.runs),
        "refused": names.named(builds.refused),
        "unknown": names.named(builds.unknown),
    }


def _text(
    index: Index, document: ArchPlanDocument, screen: Terminal, *, everything: bool = False
) -> str:
    """The plans for people: archs, what runs on what, the releases of the toolkit, and the flags."""
    page = _Page(index, screen, everything)
    names = [
        device["device"]
        if device["asked"] == device["device"]
        else f"{device['asked']} ({device['device']})"
        for device in document["devices"]
    ]
    blocks = [
        screen.wrap(f"code for {terminal.listing(names)}"),
        *(page.plan(plan) for plan in document["plans"]),
        [line for missing in document["missing"] for line in page.missing(missing)],
        *(page.builds(builds) for builds in document["builds"]),
        page.notes.lines(screen.width),
    ]
    return terminal.blocks(blocks)


def _on(entry: OnTarget) -> str:
    return f"on {entry['target']}, " if "target" in entry else ""


class _Page:
    def __init__(self, index: Index, screen: Terminal, everything: bool) -> None:
        self.index = index
        self.screen = screen
        self.everything = everything
        self.notes = claims.Notes(index)

    def plan(self, plan: PlanEntry) -> list[str]:
        toolkit = plan["toolkit"]
        titles = _on(plan) + ", ".join(_TITLES[kind] for kind in plan["kinds"])
        lines = [f"{titles}: {' '.join(plan['archs'])}"]
        run: dict[str, list[str]] = {}
        for device, code in plan["devices"].items():
            compiled = " as PTX" if code["how"] == arch_plans.COMPILED else ""
            run.setdefault(code["arch"] + compiled, []).append(device)
        text = "; ".join(
            f"{terminal.listing(devices)} {'runs' if len(devices) == 1 else 'run'} {code}"
            for code, devices in run.items()
        )
        lines += self.line(
            "devices", plan["runs"]["evidence"], f"{text} {self.marks(plan['runs']['facts'])}"
        )
        # The facts are those of the whole plan: mark only the first line of releases.
        marks = self.marks(plan["facts"])
        for release in plan["releases"]:
            text = f"{self.ranges(toolkit, release['releases'])} {marks}"
            lines += self.line(toolkit, release["evidence"], text)
            marks = ""
        for beside in plan["frameworks"]:
            text = f"{beside['says']} with {toolkit} {self.ranges(toolkit, beside['releases'])}"
            lines += self.line(beside["component"], beside["evidence"], text)
        ptx = [name for name, how in plan["also"].items() if how == arch_plans.COMPILED]
        native = [name for name in plan["also"] if name not in ptx]
        also = [", ".join(names) for names in (native, ptx) if names]
        if also:
            lines += self.line("also on", "", "; ".join(also) + (" as PTX" if ptx else ""))
        for tool, arguments in (("nvcc", plan["flags"]["nvcc"]), ("hipcc", plan["flags"]["hipcc"])):
            if arguments:
                lines += self.line(tool, "", " ".join(arguments))
        return lines

    def line(self, name: str, evidence: Evidence, text: str) -> list[str]:
        head = f"  {name:8} {evidence:9} " if evidence else f"  {name:8} "
        return self.screen.wrap(text.rstrip(), head, " " * len(head))

    def ranges(self, component: str, releases: Sequence[str], most: int = _RANGES) -> str:
        text = partners.ranges(self.index, component, releases)
        return text if self.everything else partners.few(text, most)

    def marks(self, facts: Iterable[str]) -> str:
        sources = dict.fromkeys(self.index.record(self.index.number(fact)).source for fact in facts)
        return self.notes.mark([*sources][: None if self.everything else _SOURCES])

    def missing(self, entry: MissingPlan) -> list[str]:
        toolkit = entry["toolkit"]
        known = [
            f"{device}: {self.ranges(toolkit, releases, _FEW) if releases else 'none'}"
            for device, releases in entry["devices"].items()
        ]
        # Without a fact against a release, the answer is not a sure no.
        verb = "is known to compile" if entry["open"] else "in the request compiles"
        head = (
            f"{_on(entry)}{_TITLES[entry['kind']]}: no release of {toolkit} {verb} for all devices"
        )
        return self.screen.wrap(f"{head} ({'; '.join(known)})")

    def builds(self, entry: PlannedBuilds) -> list[str]:
        lines = [f"builds of {entry['builds_of']} for {entry['toolkit']}"]
        # The evidence is that of the builds that run, and says nothing of the others.
        known = entry["evidence"]
        for label, builds, evidence, most, description in (
            ("native", entry["native"], known, _RANGES, "machine code for each"),
            ("runs", entry["runs"], known, _RANGES, "PTX for some, or an unknown kind of code"),
            ("refused", entry["refused"], "", _FEW, "none for some"),
            ("unknown", entry["unknown"], "", _FEW, "codegen archs unknown"),
        ):
            if builds:
                ranges = self.ranges(entry["component"], builds, most)
                lines += self.line(label, evidence, f"{description}: {ranges}")
        return lines
