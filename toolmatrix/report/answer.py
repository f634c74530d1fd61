"""An answer as a document: the contract `toolmatrix.resolution/1`. `tree` shows the same to people."""

from __future__ import annotations

from toolmatrix.documents import (
    Annotated,
    Evidence,
    HasFrom,
    HasWith,
    Literal,
    MatrixHead,
    NonEmpty,
    NotRequired,
    TypedDict,
)
from toolmatrix.processors import platform_of
from toolmatrix.report import claims, remarks, variants
from toolmatrix.report.remarks import Remarks
from toolmatrix.report.variants import BuildForm
from toolmatrix.solve import flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.factbase.index import Index
    from toolmatrix.report.cores import CoreEntry
    from toolmatrix.report.remarks import BuiltEntry, Caveat, UnreadEntry
    from toolmatrix.solve.request import Request
    from toolmatrix.solve.resolve import Resolution
    from toolmatrix.solve.support import Rival

SCHEMA = "toolmatrix.resolution/1"


class WantedEntry(HasWith):
    """What a request asks for, apart from the ways to get it."""

    wanted: list[str]
    align: list[str]
    archs: list[str]
    devices: list[str]
    cpu: str
    distro: str
    prefer: Annotated[str, "newest", "oldest", "best-evidence"]
    min_evidence: str
    at: str
    recipe: NotRequired[str]


class RequestEntry(WantedEntry, HasFrom):
    """A request with the defaults that were filled in."""

    targets: NonEmpty[Annotated[str, "x86", "arm", "amd"]]
    accelerator: dict[str, str]


class DisputeEntry(TypedDict):
    """A claim that says otherwise, and the one that decided."""

    fact: str
    evidence: Evidence
    says: str
    decided_by: str


class Grounds(TypedDict):
    """How well a choice is known, and why it was made."""

    evidence: Evidence
    facts: list[str]
    why: str
    disputed: list[DisputeEntry]


class ChosenBuild(BuildForm, Grounds):
    """The build that is installed."""


class ChosenComponent(Grounds):
    """A component with the release that was chosen, or the one from which on any will do."""

    version: NotRequired[str]
    floor: NotRequired[str]
    variant: NotRequired[ChosenBuild]
    inside: NotRequired[str]
    """The component whose build brings it."""
    built: NotRequired[list[BuiltEntry]]
    """Images of this release that were built and passed their check, those that are what the answer says or else those
    that differ in distribution or Python."""


class ChosenName(Grounds):
    """A codegen arch or device."""

    name: str


class ChosenFlags(TypedDict):
    """The flags of the compilers, and the facts that they rest on."""

    cflags: list[str]
    cxxflags: list[str]
    nvcc: list[str]
    hipcc: list[str]
    env: dict[str, str]
    missing: list[str]
    facts: list[str]


class TargetEntry(TypedDict):
    """What was chosen for a target."""

    components: dict[str, ChosenComponent]
    archs: list[ChosenName]
    devices: list[ChosenName]
    flags: ChosenFlags
    platform: str
    install: NotRequired[dict[str, list[str]]]
    """By tool the commands that install all packages that were asked for, in their order; absent where one of them
    would be missing."""


class ResolutionDocument(Remarks):
    """What `toolmatrix resolve --json` prints when there is an answer."""

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    request: RequestEntry
    targets: dict[str, TargetEntry]
    evidence: Evidence
    caveats: NotRequired[list[Caveat]]
    """What an answer is not: `implied-target` where the devices imply the target, `tested-not-preferred`
    by `--prefer newest`, `nothing-to-align` by `--align`, `meant-for-another` where of several targets one has no
    code for a codegen arch or device that it could have, `below-minimum` in documents of earlier releases, `to-
    bring` where something is not packaged, `source-archive` where what was to come as a wheel has none, `harvested`
    and `not-covered` where a component was read from the package index for a request and requires what the matrix
    does not have, `untested` (TM102) where rows cover parts of the request but never together."""
    unread: NotRequired[list[UnreadEntry]]
    """What the answer rests on and no fact decides: with any of it the answer is neither yes nor no (exit 4). A `pair`
    is of parts that touch."""
    untested: NotRequired[list[CoreEntry]]
    """Parts of the request that were never tested together; only in `why-not`."""
    allowed: NotRequired[Literal[True] | None]
    """Of `why-not`: true where facts support the request, null where none decides."""


def head(index: Index) -> MatrixHead:
    """The matrix an answer rests on: its digest and date."""
    return {"digest": index.header["digest"], "date": index.header["date"]}


def request_document(request: Request) -> RequestEntry:
    """The request as JSON values, with the defaults that were filled in."""
    chosen = {
        option: {
            ask.target or "*": ask.selector
            for ask in request.asks
            if ask.option == option and ask.component == option
        }
        for option in ("accelerator", "from")
    }
    return {
        **wanted_document(request),
        "targets": list(request.targets),
        "from": chosen["from"].get("*", ""),
        "accelerator": chosen["accelerator"],
    }


def wanted_document(request: Request) -> WantedEntry:
    """What a request asks for as JSON values, apart from the ways to get it."""
    entry: WantedEntry = {
        "wanted": [ask.text for ask in request.asks if not ask.option],
        "with": [ask.text for ask in request.asks if ask.option == "with"],
        "align": [*request.align, *request.unaligned],
        "archs": list(request.archs),
        "devices": list(request.devices),
        "cpu": request.cpu,
        "distro": next((ask.selector for ask in request.asks if ask.option == "distro"), ""),
        "prefer": request.prefer,
        "min_evidence": request.min_evidence,
        "at": request.at,
    }
    if request.recipe:
        entry["recipe"] = request.recipe
    return entry


def document(index: Index, resolution: Resolution) -> ResolutionDocument:
    """The answer as JSON values."""
    return {
        "schema": SCHEMA,
        "matrix": head(index),
        "request": request_document(resolution.request),
        "targets": {target: _target(index, resolution, target) for target in resolution.targets},
        "evidence": resolution.evidence,
        "caveats": remarks.caveats(resolution),
        "unread": remarks.unread(resolution),
    }


def _target(index: Index, resolution: Resolution, target: str) -> TargetEntry:
    components = index.header["components"]
    context = {
        ask.component: ask.selector for ask in resolution.request.asks if ask.target == target
    }
    chosen: dict[str, ChosenComponent] = {}
    names: dict[str, list[ChosenName]] = {"arch": [], "device": []}
    flag_facts: list[str] = []
    builds: dict[str, Grounds] = {}
    for choice in resolution.targets[target]:
        grounds: Grounds = {
            "evidence": choice.evidence,
            # A fact that applies by several rules is cited for each.
            "facts": list(dict.fromkeys(index.record(cite.record).id for cite in choice.cites)),
            "why": claims.reason(index, choice),
            "disputed": [dispute_document(index, rival) for rival in choice.disputed],
        }
        of = components[choice.component]["variant_of"]
        if of:
            builds[of] = grounds
        elif choice.component in names:
            names[choice.component].append({"name": choice.version, **grounds})
        elif components[choice.component]["flag"]:
            # Each flag is solved for by itself, but documents list flags as one command line has them.
            flag_facts += [index.record(cite.record).id for cite in choice.cites]
        else:
            component = chosen[choice.component] = _component(grounds)
            # Any release from a floor on will do.
            if components[choice.component]["floor"]:
                component["floor"] = choice.version
            else:
                component["version"] = choice.version
    # A build is shown inside the component that it is a build of.
    for variant in variants.of(index, resolution.targets[target]):
        chosen[variant.component]["variant"] = {
            **variants.document(variant),
            **builds[variant.component],
        }
    for name, owner in variants.carried(index, resolution, target).items():
        if name in chosen:
            chosen[name]["inside"] = owner
    images = remarks.images_of(index, resolution, target)
    for name in dict.fromkeys(image.component for image in images):
        own = remarks.image_documents([image for image in images if image.component == name])
        chosen[name]["built"] = own
    entry: TargetEntry = {
        "components": chosen,
        "archs": names["arch"],
        "devices": names["device"],
        "flags": _flags(resolution, target, flag_facts),
        "platform": platform_of(context["machine"]) if "machine" in context else "",
    }
    if commands := variants.commands(index, resolution, target):
        entry["install"] = {
            "pip": commands,
            "uv": variants.commands(index, resolution, target, "uv"),
        }
    return entry


def _component(grounds: Grounds) -> ChosenComponent:
    return {
        "evidence": grounds["evidence"],
        "facts": grounds["facts"],
        "why": grounds["why"],
        "disputed": grounds["disputed"],
    }


def _flags(resolution: Resolution, target: str, facts: list[str]) -> ChosenFlags:
    chosen = flags.of(resolution, target)
    return {
        "cflags": list(chosen.cflags),
        "cxxflags": list(chosen.cxxflags),
        "nvcc": list(chosen.nvcc),
        "hipcc": list(chosen.hipcc),
        "env": dict(chosen.env),
        "missing": list(chosen.missing),
        "facts": facts,
    }


def dispute_document(index: Index, rival: Rival) -> DisputeEntry:
    """A claim that says otherwise, and the one that decided."""
    record = index.claim(rival.rival)
    return {
        "fact": record.id,
        "evidence": rival.evidence,
        "says": claims.disagreement(record),
        "decided_by": index.claim(rival.deciding).id,
    }
