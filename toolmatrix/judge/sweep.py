"""Every release is asked for: of a framework in every way, which is on every target, from source and as a wheel, with
everything that can compute there; of all else once. The answers are looked at as people would get them.

Each release is judged by itself, so the work may be shared out over processes: `Sweeper` judges a part of it.
"""

from __future__ import annotations

from toolmatrix.codes.matrix import ExplainedRefusal, Undecided, UnexplainedRefusal, Unreachable
from toolmatrix.finding import InstallMethod, united
from toolmatrix.judge import doubts
from toolmatrix.judge.pool import IndexedWork
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.engine import Conflict, conflict, solve
from toolmatrix.solve.grounds import grounds
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.solve.request import Ask, Request
from toolmatrix.solve.resolve import attempt
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.model import Matrix
    from toolmatrix.finding import Finding, Incompatibility
    from toolmatrix.solve.parts import TestedRowGroup

    Release = tuple[str, str]
    """A component and one of its versions."""

PART = 24
"""Releases handed to a process at a time: some tenths of a second of work."""
# Lines of a reason beyond which it explains nothing to anybody.
_LONGEST = 7


class ReleaseOutcome(Value):
    """One release in each way that was tried: answers and doubts about them, or the finding that there is none.

    `evidence` is that of each answer. `unread` are answers that rest on what nobody knows: neither yes nor no. `lost`
    is set when no target, accelerator or way at all has an answer, and then says why not on the first.
    """

    component: str
    version: str
    answered: tuple[InstallMethod, ...]
    refused: tuple[Finding, ...]
    evidence: tuple[str, ...] = ()
    unread: tuple[Finding, ...] = ()
    doubts: tuple[Finding, ...] = ()
    lost: Finding | None = None


def releases(index: Index) -> list[Release]:
    """Everything that can be asked for, frameworks first; a withdrawn release counts, as it may be named."""
    components = index.header["components"]
    asked = [name for name, part in components.items() if not part["given"]]
    asked.sort(key=lambda name: not components[name]["framework"])
    return [(name, version) for name in asked for version in index.component(name).versions]


def touched(index: Index, matrix: Matrix, paths: Collection[str]) -> list[Release]:
    """The releases of `releases` that some files declare, or whose facts stand there."""
    masks: dict[str, int] = {}
    # A file may speak of a release that another declares, whose answer it then changes.
    for claim in matrix.claims.values():
        if claim.node.where.path in paths:
            component, selector = claim.when[0]
            masks[component] = masks.get(component, 0) | index.scale(component).select(selector)
    for (component, version), release in matrix.releases.items():
        if release.node.where.path in paths:
            masks[component] = masks.get(component, 0) | index.scale(component).bit(version)
    return [
        (component, version)
        for component, version in releases(index)
        if masks.get(component, 0) & index.scale(component).bit(version)
    ]


def parts(work: Sequence[Release]) -> list[list[Release]]:
    """The work in pieces for a process each."""
    return [list(work[place : place + PART]) for place in range(0, len(work), PART)]


def request(index: Index, release: Release, way: InstallMethod, *beside: Release) -> Request:
    """The request `component==version --target TARGET --from WAY` with what the target stands for.

    `beside` are releases that are asked for with it.
    """
    component, version = release
    target = index.header["targets"][way.target]
    accelerator = way.accelerator or accelerators(index, way.target, component)[0]
    asks = [
        Ask(component=name, selector=value, text="", option="target", target=way.target)
        for name, value in target["context"].items()
    ]
    asks.append(Ask(component="accelerator", selector=accelerator, text="", option="accelerator"))
    asks.append(Ask(component="from", selector=way.from_, text="", option="from"))
    for name, one in (*(() if component in SEVERAL else (release,)), *beside):
        # `==` would admit what is finer as well, and exactly this release is asked for.
        alone = index.scale(name).exact(one)
        asks.append(Ask(component=name, selector=alone, text=f"{name}=={one}"))
    return Request(
        asks=tuple(asks),
        targets=(way.target,),
        archs=(version,) if component == "arch" else (),
        devices=(version,) if component == "device" else (),
        # A policy about the component itself would have another release than the one that is asked for, and one is a
        # flag of the compiler: a wheel was compiled already.
        policies=tuple(
            (way.target, name, (value,))
            for name, value in target["policies"].items()
            if way.from_ == "source" and name != component
        ),
    )


def accelerators(index: Index, target: str, component: str = "") -> list[str]:
    """The accelerators of a target, its own first; with a component, those that it can use, or none."""
    own: str = index.header["targets"][target]["accelerator"]
    # A target has every accelerator that no fact forbids.
    left = -1
    here = index.scale("target").bit(target)
    for binding in index.component("target").about("accelerator", here):
        if not binding.conditions:
            left &= binding.allowed
    found = index.scale("accelerator").named(left)[::-1]
    if component:
        can = (*index.header["components"][component]["accelerators"], "none")
        found = [name for name in found if name in can] or [own]
    return sorted(found, key=lambda name: name != own)


def install_methods(index: Index, component: str = "") -> list[InstallMethod]:
    """Every target, built and installed, with everything that can compute there, or what of it a component can use."""
    return [
        InstallMethod(target=target, from_=from_, accelerator=accelerator)
        for target in index.header["targets"]
        for from_ in reversed(index.component("from").versions)
        for accelerator in accelerators(index, target, component)
    ]


def promised(index: Index) -> InstallMethod:
    """The way in which every release of the first framework must have an answer: on the first target, from source."""
    target = next(iter(index.header["targets"]))
    accelerator = accelerators(index, target, first_framework(index))[0]
    return InstallMethod(target=target, from_="source", accelerator=accelerator)


def judge_release(index: Index, release: Release, luck: dict[str, int]) -> ReleaseOutcome:
    """Ask for one release in every way that counts: only frameworks are had in several."""
    component, version = release
    answered: list[InstallMethod] = []
    refused: list[Finding] = []
    unread: list[Finding] = []
    evidence: list[str] = []
    doubtful: list[Finding] = []
    framework = index.header["components"][component]["framework"]
    for way in install_methods(index, component) if framework else ():
        found = attempt(index, request(index, release, way))
        if isinstance(found, Assembly):
            refused.append(refusal(release, way, found))
        elif found.unread:
            unread.append(_unanswered(Undecided, release, way, found.unread))
        else:
            answered.append(way)
            evidence.append(found.evidence)
            doubtful += doubts.of_answer(release, way, found)
    return ReleaseOutcome(
        component=component,
        version=version,
        answered=tuple(answered),
        refused=tuple(refused),
        evidence=tuple(evidence),
        unread=tuple(unread),
        doubts=tuple(doubtful),
        lost=None if answered or unread else search(index, release, luck),
    )


def search(index: Index, release: Release, luck: dict[str, int]) -> Finding | None:
    """None when some way with some accelerator has an answer, else the finding that none has."""
    can: Sequence[str] = index.header["components"][release[0]]["accelerators"] or ("none",)
    tried = sorted(install_methods(index), key=lambda way: way.accelerator not in can)
    last = luck.get(release[0], 0)
    # Neighbouring releases mostly have an answer in the same way: one solve instead of a dozen. `luck` remembers by
    # component where the release before had one; it saves time and changes nothing.
    for place in (last, *range(len(tried))):
        if possible(index, request(index, release, tried[place])):
            luck[release[0]] = place
            return None
    found = attempt(index, request(index, release, tried[0]))
    if not isinstance(found, Assembly):
        return None
    reason = refusal(release, tried[0], found).grounds
    return _unanswered(Unreachable, release, None, reason, severity="warning")


def refusal(release: Release, way: InstallMethod, assembly: Assembly) -> Finding:
    """The finding that a problem has no answer, explained where a shortest core of it is short, hard and has facts."""
    core = conflict.explain(assembly.problem(), assembly.asked_nogoods)
    components = assembly.header["components"]
    held = grounds(assembly, core)
    # That an installed release is one of its builds, and a build one of a release, explains nothing.
    hard = tuple(
        ground
        for ground in held
        if components[ground.component]["variant_of"] != ground.subject
        and components[ground.subject]["variant_of"] != ground.component
    )
    # All that is left may be that variants belong to releases; then that is the reason.
    held = hard or held
    # The lines of the request count too: who reads the reason reads them as well.
    size = len(held) + len({*core} & {*assembly.asked_nogoods})
    kinds = {ground.kind for ground in held}
    if size <= _LONGEST and kinds & {"requires", "limits"} and "evidence" not in kinds:
        return _unanswered(ExplainedRefusal, release, way, held)
    return _unanswered(UnexplainedRefusal, release, way, held, severity="warning")


def _unanswered(
    code: type[Finding],
    release: Release,
    way: InstallMethod | None,
    held: tuple[Incompatibility, ...],
    severity: str = "info",
) -> Finding:
    return code(
        severity=severity,
        component=release[0],
        releases=(release[1],),
        ways=(way,) if way else (),
        grounds=held,
        facts=united(held, "facts"),
    )


def possible(index: Index, asked: Request) -> bool:
    """True if there is an answer, even one that rests on what nobody knows."""
    assembly = _Unranked(index, asked)
    if not assembly.refused():
        return True
    # Only where facts that say that nobody knows took part: without any the second solve would be the first again.
    return bool(assembly.unread) and not _Unranked(index, asked, silent=True).refused()


class _Unranked(Assembly):
    """Without the rows that rank: whether there is an answer is the question, not which is best."""

    def rows(self, *_: object) -> Iterator[TestedRowGroup]:
        return iter(())

    def refused(self) -> bool:
        """True if there is no answer."""
        return isinstance(solve(self.problem(), order="index"), Conflict)


class Sweeper(IndexedWork):
    """Judges parts of the work."""

    def attempt(self, part: Sequence[Release]) -> list[ReleaseOutcome]:
        """The outcomes of some releases."""
        luck: dict[str, int] = {}
        return [judge_release(self.index, release, luck) for release in part]


def first_framework(index: Index) -> str:
    """The framework that stands first on the front page, or nothing."""
    components = index.header["components"]
    return next((name for name, part in components.items() if part["framework"]), "")


def counts(index: Index, outcomes: Sequence[ReleaseOutcome]) -> dict[str, int]:
    """The numbers of what was looked at."""
    components = index.header["components"]
    frameworks = [outcome for outcome in outcomes if components[outcome.component]["framework"]]
    return {
        "releases": len(outcomes),
        "reached": sum(outcome.lost is None for outcome in outcomes),
        "frameworks": len(frameworks),
        "ways": len(install_methods(index)),
        "answers": sum(len(outcome.answered) for outcome in frameworks),
        "refusals": sum(len(outcome.refused) for outcome in frameworks),
        "unknown": sum(len(outcome.unread) for outcome in frameworks),
    }
