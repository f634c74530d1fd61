"""The matrix beside its sources, for Python: what it covers, and what is false, missing or stale."""

from __future__ import annotations

import os
from functools import partial
from itertools import chain

from toolmatrix.api import Report, this_day, trials
from toolmatrix.api.checks import Workers, files, findings_report, loaded
from toolmatrix.codes.matrix import ValueNotThere
from toolmatrix.errors import NothingMatched
from toolmatrix.judge import audit as judge
from toolmatrix.judge import lints, sweep
from toolmatrix.judge.audit import Published, PublishedWheel, family_coverage, harvested_releases
from toolmatrix.report.audit import AuditReport
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from toolmatrix.api import Path
    from toolmatrix.api.requests import OpenMatrix
    from toolmatrix.api.trials import Pins
    from toolmatrix.facts.index import Index
    from toolmatrix.facts.model import Claim, Matrix
    from toolmatrix.finding import Finding
    from toolmatrix.harvest import project
    from toolmatrix.harvest.resolver import Resolver
    from toolmatrix.judge.sweep import Release, ReleaseOutcome


class Sources(Value):
    """What an audit asks beside the matrix: the releases of a package at the index, and a resolver of packages."""

    releases: Callable[[str], Sequence[project.PublishedRelease]]
    resolver: Resolver
    # Answers that are asked at once.
    parallel: int = 4


def audit(
    *names: str,
    online: bool = False,
    clones: str = "",
    matrix: OpenMatrix | Path | Sequence[Path] | None = None,
) -> Report:
    """What a matrix covers of its families, or of some components, and what is missing or old.

    `online` asks the package index of pip's and uv's settings, and uv; `clones` is a directory with clones of sources,
    which are opened again. Raises NothingMatched, MatrixError, IndexFailed,
    ToolMissing.
    """
    from toolmatrix.api.requests import open_matrix

    opened = open_matrix(matrix)
    sources = asked_online(os.environ) if online else None
    # One process: the others would run the script again that calls this, as they import its main module.
    return audited(
        opened.index, opened.paths, names, os.environ, sources, clones=clones, processes=1
    )


def reopened(matrix: Matrix, clones: str, env: Mapping[str, str]) -> Iterator[Finding]:
    """Facts whose value is not in the file of a repository that they were read from, by clones at `DIR/owner/name`.

    Raises HarvestRefused, ToolMissing, and NothingMatched where no clone of a source is there.
    """
    from toolmatrix.harvest.source_tree import NOT_FOUND, SourceQuestion, reopened

    asked: dict[str, list[tuple[Claim, SourceQuestion]]] = {}
    for claim in matrix.claims.values():
        at = matrix.sources[claim.source].at
        question = SourceQuestion(at=at, value=claim.selector, where=claim.where)
        # What follows by a rule does not stand in a source.
        # What was set aside never decides, and its note says why.
        if question.repository and not claim.rule and claim.decides:
            asked.setdefault(question.repository, []).append((claim, question))
    places = {name: os.path.join(clones, *name.split("/")) for name in asked}
    there = [name for name in asked if os.path.isdir(places[name])]
    # Otherwise a path with a slip in it would read as if every value stood in its source.
    if not there:
        raise NothingMatched(
            f"no clone of a source in {clones}",
            expected="directories such as " + ", ".join(sorted(asked)[:3]),
            help="`git clone --bare` them to `DIR/owner/name`",
        )
    for name in there:
        answers = reopened([question for _, question in asked[name]], places[name], env)
        for (claim, question), answer in zip(asked[name], answers, strict=True):
            # A source that names no file or commit, or a clone that lacks it, says nothing against a fact.
            if answer.state == NOT_FOUND:
                component, selector = claim.when[0]
                yield ValueNotThere(
                    # A value is looked for as text, and may be written in another form: that is for people to look at.
                    severity="warning",
                    component=matrix.components[component].variant_of or component,
                    value=answer.why,
                    expected=str(selector),
                    actual=question.at,
                    facts=(claim.id,),
                )


def asked_online(env: Mapping[str, str]) -> Sources:
    """The index and the resolver of this machine. Raises ToolMissing."""
    from toolmatrix.harvest import families, project
    from toolmatrix.harvest.resolver import Uv
    from toolmatrix.harvest.transport import Session

    where, session = families.indexes(env), Session()
    session.trust(where.certificates, where.proxy)
    return Sources(releases=partial(project.releases, session, where.urls), resolver=Uv(env))


def audited(
    index: Index,
    paths: Sequence[str],
    names: Sequence[str],
    env: Mapping[str, str],
    sources: Sources | None = None,
    *,
    clones: str = "",
    processes: int = 0,
    executor: str = "",
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Report:
    """The audit by so many processes, 0 for one a processor, or by an executor.

    `progress` hears how much is done, and of how much.
    """
    work = _work(index, names)
    outcomes: list[ReleaseOutcome] = []
    shared = partial(
        Workers, parts=sweep.parts(work), paths=paths, processes=processes, executor=executor
    )
    with shared(sweep.Sweeper(index=index)) as workers:
        # An index keeps no places, and the files take seconds to read.
        reading = workers.meanwhile(lambda: loaded(paths))
        for part in workers.results():
            outcomes += part
            progress(len(outcomes), len(work))
        matrix = reading()
    rules = judge.rules()
    own = judge.packages(matrix)
    listed: dict[str, Published] = {}
    found: list[Finding] = []
    if sources:
        wanted = {name: held for name, held in own.items() if not names or name in names}
        listed = _listed(sources, wanted, index.component("python").versions)
        read = {name: set(chain(*held.values())) for name, held in own.items()}
        found += _otherwise(index, {name: read[name] for name in wanted}, listed)
        # Solving goes anywhere. Who asks the index is this machine, whose settings, credentials and cache it takes.
        with shared(trials.Pinner(index=index, own=read)) as workers:
            asked = list(chain(*workers.results()))
        found += _unresolved(asked, sources, rules, progress)
    if clones:
        found += reopened(matrix, clones, env)
    counts = harvested_releases(matrix) | {
        name: (len(held.releases), held.releases[-1])
        for name, held in listed.items()
        if held.releases
    }
    families = list(family_coverage(matrix, index, outcomes, counts, names))
    found += judge.findings(matrix, index, families, rules, this_day(env), _called(own, index))
    shown = [one for one in found if not names or one.component in names]
    looked_at = {
        "component": len(families),
        "framework release": len(work),
        "source": len(matrix.sources),
    }
    located = lints.located(shown, matrix, files(paths))
    report = AuditReport(index, located, [one.to_json() for one in families], looked_at)
    return findings_report(report, ", ".join(names) or "matrix")


def _called(own: Iterable[str], index: Index) -> dict[str, str]:
    """The component of each package: those of which releases were read, and those that are called otherwise."""
    from toolmatrix.harvest import families

    return {**{name: name for name in own}, **index.header["packages"], **families.packages()}


def _listed(
    sources: Sources, wanted: Mapping[str, Iterable[str]], pythons: Sequence[str]
) -> dict[str, Published]:
    from concurrent.futures import ThreadPoolExecutor

    packages = list(dict.fromkeys(chain(*wanted.values())))
    with ThreadPoolExecutor(sources.parallel) as pool:
        found = dict(
            zip(packages, pool.map(partial(_published_releases, sources), packages), strict=True)
        )
    return {
        name: _published([one for package in held for one in found[package]], pythons)
        for name, held in wanted.items()
    }


def _published_releases(sources: Sources, package: str) -> Sequence[project.PublishedRelease]:
    try:
        return sources.releases(package)
    # All that was read of a package that is not there any more is withdrawn.
    except NothingMatched:
        return ()


def _published(releases: Sequence[project.PublishedRelease], pythons: Sequence[str]) -> Published:
    from packaging.version import Version

    from toolmatrix.harvest import project

    return Published(
        # Of several packages each has its own order.
        releases=tuple(sorted({one.version for one in releases}, key=Version)),
        wheels=tuple(
            PublishedWheel(one.version, python, machine)
            for one in releases
            # What was withdrawn is known, and never an answer unless it is named exactly.
            if not one.yanked
            for python in pythons
            for machine in project.MACHINES
            if any(wheel.best(machine, python) and wheel.allows(python) for wheel in one.wheels)
        ),
    )


def _work(index: Index, names: Sequence[str]) -> list[Release]:
    components = index.header["components"]
    for name in names:
        if name not in components:
            help = "`toolmatrix facts` lists them"
            raise NothingMatched(f"unknown component `{name}`", help=help)
    return [
        release
        for release in sweep.releases(index)
        if components[release[0]]["framework"] and (not names or release[0] in names)
    ]


def _otherwise(
    index: Index, read: Mapping[str, Collection[str]], listed: Mapping[str, Published]
) -> Iterator[Finding]:
    yield from judge.releases(index, read, listed)
    for name in read:
        # Of what nobody asks for by itself no answer is judged.
        if index.header["components"][name]["framework"]:
            yield from judge.refused(index, name, listed[name].wheels)


def _unresolved(
    asked: Sequence[Pins],
    sources: Sources,
    rules: judge.AuditRules,
    progress: Callable[[int, int], None],
) -> Iterator[Finding]:
    from concurrent.futures import ThreadPoolExecutor

    def refusal(one: Pins) -> str:
        platform = rules.platform(one.machine, one.glibc)
        return sources.resolver.refusal(one.requirements, one.python, platform)

    with ThreadPoolExecutor(sources.parallel) as pool:
        for done, (one, said) in enumerate(zip(asked, pool.map(refusal, asked), strict=True), 1):
            progress(done, len(asked))
            if said:
                yield trials.resolver_refusal(one, sources.resolver.name, said)
