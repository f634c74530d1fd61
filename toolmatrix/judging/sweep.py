"""Every release is asked for: of a framework in every way, which is on every target, from source and as a wheel, with
everything that can compute there; of all else once. The answers are looked at as people would get them.

Each release is judged by itself, so the work may be shared out over processes: `Sweeper` judges a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.records import REFUSE, ClaimRecord
from toolmatrix.finding import (
    UNDECIDED,
    Finding,
    Incompatibility,
    InstallMethod,
    merge,
    union_of_fields,
)
from toolmatrix.judging.pool import IndexedWork
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.engine import Conflict, conflict, solve
from toolmatrix.solve.grounds import grounds
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.solve.request import Ask, Request
from toolmatrix.solve.resolve import attempt
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.model import Matrix
    from toolmatrix.factbase.records import ReleaseRecord
    from toolmatrix.finding import Words
    from toolmatrix.solve.parts import TestedRowGroup
    from toolmatrix.solve.resolve import Resolution
    from toolmatrix.solve.support import Choice

    Release = tuple[str, str]
    """A component and one of its versions."""
    Statement = Callable[[int], ClaimRecord | ReleaseRecord]
    """What a choice cites, by the number of its record."""
    Day = Callable[[str, str], str]
    """The day on which a release of a component came out, empty where it is unknown."""


BATCH = 24
"""Releases handed to a process at a time: some tenths of a second of work."""
# Lines of a reason beyond which it explains nothing to anybody.
_LONGEST = 8


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
    names = [name for name, entry in components.items() if not entry["given"]]
    names.sort(key=lambda name: not components[name]["framework"])
    return [(name, version) for name in names for version in index.component(name).versions]


def touched(index: Index, matrix: Matrix, paths: Collection[str]) -> list[Release]:
    """The releases of `releases` that some files declare or have facts about."""
    masks: dict[str, int] = {}
    # A file may have facts about a release that another declares, and change its answer.
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


def batches(work: Sequence[Release]) -> list[list[Release]]:
    """The work in pieces for a process each."""
    return [list(work[start : start + BATCH]) for start in range(0, len(work), BATCH)]


def request(index: Index, release: Release, method: InstallMethod, *beside: Release) -> Request:
    """The request `component==version --target TARGET --from WAY` with what the target implies.

    `beside` are releases that are asked for with it.
    """
    component, version = release
    target = index.header["targets"][method.target]
    accelerator = method.accelerator or accelerators(index, method.target, component)[0]
    asks = [
        Ask(component=name, selector=value, text="", option="target", target=method.target)
        for name, value in target["context"].items()
    ]
    asks.append(Ask(component="accelerator", selector=accelerator, text="", option="accelerator"))
    asks.append(Ask(component="from", selector=method.from_, text="", option="from"))
    for name, wanted in (*(() if component in SEVERAL else (release,)), *beside):
        # `==` would admit what is finer as well, and exactly this release is asked for.
        alone = index.scale(name).exact(wanted)
        asks.append(Ask(component=name, selector=alone, text=f"{name}=={wanted}"))
    return Request(
        asks=tuple(asks),
        targets=(method.target,),
        archs=(version,) if component == "arch" else (),
        devices=(version,) if component == "device" else (),
        # A policy about the component itself would have another release than the one that is asked for, and one is a
        # flag of the compiler: a wheel was compiled already.
        policies=tuple(
            (method.target, name, (value,))
            for name, value in target["policies"].items()
            if method.from_ == "source" and name != component
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
    usable = index.scale("accelerator").named(left)[::-1]
    if component:
        can = (*index.header["components"][component]["accelerators"], "none")
        usable = [name for name in usable if name in can] or [own]
    return sorted(usable, key=lambda name: name != own)


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
    for method in install_methods(index, component) if framework else ():
        outcome = attempt(index, request(index, release, method))
        if isinstance(outcome, Assembly):
            refused.append(refusal(release, method, outcome))
        elif outcome.unread:
            unread.append(_unanswered(UNDECIDED, release, method, outcome.unread))
        else:
            answered.append(method)
            evidence.append(outcome.evidence)
            doubtful += answer_doubts(release, method, outcome)
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
    tried = sorted(install_methods(index), key=lambda method: method.accelerator not in can)
    last = luck.get(release[0], 0)
    # Neighbouring releases mostly have an answer in the same way: one solve instead of a dozen. `luck` remembers by
    # component where the release before had one; it saves time and changes nothing.
    for position in (last, *range(len(tried))):
        if possible(index, request(index, release, tried[position])):
            luck[release[0]] = position
            return None
    outcome = attempt(index, request(index, release, tried[0]))
    if not isinstance(outcome, Assembly):
        return None
    reason = refusal(release, tried[0], outcome).grounds
    return _unanswered("TM306", release, None, reason, severity="warning")


def refusal(release: Release, method: InstallMethod, assembly: Assembly) -> Finding:
    """The finding that a problem has no answer, explained where a shortest core of it is short, hard and has facts."""
    core = conflict.explain(assembly.problem(), assembly.request_nogoods)
    components = assembly.header["components"]
    reasons = grounds(assembly, core)
    # That an installed release is one of its builds, and a build one of a release, explains nothing.
    hard = tuple(
        ground
        for ground in reasons
        if components[ground.component]["variant_of"] != ground.subject
        and components[ground.subject]["variant_of"] != ground.component
    )
    # All that is left may be that variants belong to releases; then that is the reason.
    reasons = hard or reasons
    # The lines of the request count too: they are read with the reason.
    size = len(reasons) + len({*core} & {*assembly.request_nogoods})
    kinds = {ground.kind for ground in reasons}
    if size <= _LONGEST and not kinds.isdisjoint(REFUSE) and "evidence" not in kinds:
        return _unanswered("TM104", release, method, reasons)
    return _unanswered("TM105", release, method, reasons, severity="warning")


def _unanswered(
    code: str,
    release: Release,
    method: InstallMethod | None,
    reasons: tuple[Incompatibility, ...],
    severity: str = "info",
) -> Finding:
    return Finding.of(
        code,
        severity=severity,
        component=release[0],
        releases=(release[1],),
        ways=(method,) if method else (),
        grounds=reasons,
        facts=union_of_fields(reasons, "facts"),
    )


def possible(index: Index, request: Request) -> bool:
    """True if there is an answer, even one that rests on unknowns."""
    assembly = _Unranked(index, request)
    if not assembly.refused():
        return True
    # Only where facts that mark something as unknown took part: else the second solve would repeat the first.
    return bool(assembly.unread) and not _Unranked(index, request, silent=True).refused()


class _Unranked(Assembly):
    """Without the rows that rank: whether there is an answer is the question, not which is best."""

    def rows(self, *_: object) -> Iterator[TestedRowGroup]:
        return iter(())

    def refused(self) -> bool:
        """True if there is no answer."""
        return isinstance(solve(self.problem(), order="index"), Conflict)


class Sweeper(IndexedWork):
    """Judges parts of the work."""

    def attempt(self, batch: Sequence[Release]) -> list[ReleaseOutcome]:
        """The outcomes of some releases."""
        luck: dict[str, int] = {}
        return [judge_release(self.index, release, luck) for release in batch]


def first_framework(index: Index) -> str:
    """The first framework on the front page, or nothing."""
    components = index.header["components"]
    return next((name for name, entry in components.items() if entry["framework"]), "")


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


ANACHRONISM = "TM311"
VOUCHED = "tested"
"""The least evidence of a row that was tested, run or read out of a file."""


def answer_doubts(
    release: tuple[str, str], method: InstallMethod, answer: Resolution
) -> Iterator[Finding]:
    """The doubts about the answer for a release, asked for in one way."""
    index = answer.index

    def day(component: str, version: str) -> str:
        bit = index.scale(component).bit(version)
        return index.component(component).dates[bit.bit_length() - 2] if bit else ""

    choices = answer.targets[method.target]
    yield from younger(choices, method, index.statement, day)
    # What is built from source takes the toolkit that is there; a wheel was built with a known one.
    if method.from_ == "wheel":
        yield from unnamed(release, choices, method, index.statement, index.header["components"])


def younger(
    choices: Sequence[Choice], method: InstallMethod, record: Statement, day: Day
) -> Iterator[Finding]:
    """Choices that a row is said to have been tested with, although its subject came out before them."""
    # Of several instances the first, as everywhere.
    chosen = {choice.component: choice.version for choice in reversed(choices)}
    for choice in choices:
        out = day(choice.component, choice.version)
        for cite in choice.cites if out else ():
            claim = record(cite.record)
            if not isinstance(claim, ClaimRecord) or claim.kind != "tested":
                continue
            # What was run was there when it was run.
            if words.rank(cite.evidence) < words.rank(VOUCHED) or cite.evidence == "ran":
                continue
            release = chosen.get(claim.subject, "")
            written = day(claim.subject, release) if release else ""
            # Days are ISO 8601, whose order is that of their letters.
            if written and written < out:
                yield Finding.of(
                    ANACHRONISM,
                    component=claim.subject,
                    releases=(release,),
                    ways=(method,),
                    tested=choice.component,
                    version=choice.version,
                    actual=out,
                    facts=(claim.id,),
                )


class UnnamedToolkit(Finding):
    """A toolkit that is in the answer for releases, and that no fact of theirs names."""

    toolkit: str
    versions: tuple[str, ...]

    def sentence(self, words: Words) -> str:
        chosen = (("chosen", words.named(self.toolkit, self.versions)),)
        return super(UnnamedToolkit, self.replace(phrases=self.phrases + chosen)).sentence(words)


def unnamed(
    release: tuple[str, str],
    choices: Sequence[Choice],
    method: InstallMethod,
    record: Statement,
    components: Mapping[str, Mapping[str, Any]],
) -> Iterator[Finding]:
    """Toolkits that no fact names: none of what was asked for, none of its builds, none of what these require."""
    claims = {
        choice.component: [
            claim
            for claim in (record(cite.record) for cite in choice.cites)
            if isinstance(claim, ClaimRecord)
        ]
        for choice in choices
    }
    speaking = _speaking(release[0], choices, claims, components)
    for choice in choices:
        definition = components[choice.component]
        # Only toolkits are named by others: frameworks are asked for, and builds follow from their releases.
        if definition["framework"] or definition["variant_of"] or not definition["accelerators"]:
            continue
        owners = dict.fromkeys(claim.subject for claim in claims[choice.component])
        unknown = choice.evidence == words.UNKNOWN
        if unknown or speaking.isdisjoint(owners):
            named = "by chance" if unknown else f"only because of {', '.join(owners)}"
            yield UnnamedToolkit.of(
                "TM312",
                phrases={"by": named},
                component=release[0],
                releases=(release[1],),
                ways=(method,),
                toolkit=choice.component,
                versions=(choice.version,),
                expected=release[0],
                actual="" if unknown else ", ".join(owners),
                facts=tuple(claim.id for claim in claims[choice.component]),
            )


def _speaking(
    component: str,
    choices: Sequence[Choice],
    claims: Mapping[str, Sequence[ClaimRecord]],
    components: Mapping[str, Mapping[str, Any]],
) -> set[str]:
    """The component asked for, those that it requires in a certain release, and so on, with the builds of each."""
    speaking: set[str] = set()
    more = {component}
    while more:
        speaking |= more
        speaking |= {name for name, entry in components.items() if entry["variant_of"] in more}
        more = {
            choice.component
            for choice in choices
            if any(
                claim.subject in speaking and claim.kind == "requires"
                for claim in claims[choice.component]
            )
            # A framework that another needs counts by itself, in any release.
            or (choice.parent in speaking and components[choice.component]["framework"])
        } - speaking
    return speaking


def doubts_about(outcomes: Iterable[ReleaseOutcome], matrix: Matrix) -> Iterator[Finding]:
    """The doubts of all answers: releases and ways for which the same is doubted are one finding."""
    young: list[Finding] = []
    nameless: list[Finding] = []
    for doubt in (doubt for outcome in outcomes for doubt in outcome.doubts):
        if doubt.code != ANACHRONISM:
            nameless.append(doubt)
        # What is inside is a fact about a file, whenever the file was made.
        elif not matrix.claims[doubt.facts[0]].carried:
            young.append(doubt)
    for finding in merge(young, "releases", "ways", "facts"):
        days = [matrix.releases[finding.component, name].date for name in finding.releases]
        yield finding.replace(expected=max(days))
    yield from merge(nameless, "releases", "ways", "versions", "facts")


def unanswered(
    outcomes: Iterable[ReleaseOutcome], promised: InstallMethod, framework: str
) -> Iterator[Finding]:
    """Every way in which a release has no answer, merged, and every unreachable release.

    `promised` is the way in which every release of `framework`, the first one of the matrix, must have an answer.
    """
    unanswered: list[Finding] = []
    lost: list[Finding] = []
    tried: dict[str, dict[InstallMethod, None]] = {}
    for outcome in outcomes:
        without = [*outcome.refused, *outcome.unread]
        methods = (*outcome.answered, *union_of_fields(without, "ways"))
        tried.setdefault(outcome.component, {}).update(dict.fromkeys(methods))
        unanswered += without
        lost += [outcome.lost] if outcome.lost else []
    for finding in merge(_merged_releases(unanswered), "ways"):
        # The first framework of the matrix, built from source on the first target, is what the project promises.
        broken = promised in finding.ways and finding.component == framework
        yield finding.replace(
            severity="error" if broken else finding.severity,
            ways=whole(finding.ways, tried[finding.component]),
        )
    yield from _merged_releases(lost)


def whole(
    methods: Iterable[InstallMethod], tried: Iterable[InstallMethod]
) -> tuple[InstallMethod, ...]:
    """Ways with every accelerator that was tried there as one without any."""
    unique = dict.fromkeys(methods)
    # All that were tried on a target fall together: then the accelerator is not what matters.
    left = {(method.target, method.from_) for method in tried if method not in unique}
    return tuple(
        dict.fromkeys(
            method if (method.target, method.from_) in left else method.replace(accelerator="")
            for method in unique
        )
    )


def _merged_releases(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings about several releases of one component by facts about the same pairs of components as one."""
    # Patch releases fail by the same rows of the same tables: a finding for each would say one thing a hundred times.
    same: dict[tuple[Finding, object], list[Finding]] = {}
    for finding in findings:
        about = finding.replace(releases=(), grounds=(), facts=())
        same.setdefault((about, tuple(map(_shape, finding.grounds))), []).append(finding)
    for alike in same.values():
        grounds = tuple(map(_union, zip(*(finding.grounds for finding in alike), strict=True)))
        facts = union_of_fields(grounds, "facts")
        yield alike[0].replace(
            releases=union_of_fields(alike, "releases"), grounds=grounds, facts=facts
        )


def _shape(ground: Incompatibility) -> tuple[object, ...]:
    """The part that grounds must share to be reported as one: everything but releases, values and facts."""
    conditions = tuple(name for name, _ in ground.conditions)
    return ground.kind, ground.subject, ground.component, ground.alternatives, conditions


def _union(lines: Sequence[Incompatibility]) -> Incompatibility:
    conditions: Mapping[str, dict[str, None]] = {name: {} for name, _ in lines[0].conditions}
    for line in lines:
        for name, releases in line.conditions:
            conditions[name].update(dict.fromkeys(releases))
    return lines[0].replace(
        releases=union_of_fields(lines, "releases"),
        values=union_of_fields(lines, "values"),
        # Where nothing clashes for one of the releases, what clashes for the others is no common reason.
        clashing=union_of_fields(lines, "clashing") if all(line.clashing for line in lines) else (),
        facts=union_of_fields(lines, "facts"),
        conditions=tuple((name, tuple(releases)) for name, releases in conditions.items()),
    )
