"""`toolmatrix audit`."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain

from toolmatrix.api import Report, harvests, this_day, trials
from toolmatrix.api.caller import caller
from toolmatrix.api.checks import Workers, files, findings_report, loaded
from toolmatrix.api.requests import open_matrix
from toolmatrix.codes.matrix import ValueNotThere
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.command.options import EXECUTOR, JOBS, WRITE
from toolmatrix.errors import NothingMatched, UsageError
from toolmatrix.facts.store import cache_folder
from toolmatrix.harvest import environments, families, project, runs, written
from toolmatrix.harvest.environments import Bench
from toolmatrix.harvest.resolver import Uv
from toolmatrix.judge import audit as judge
from toolmatrix.judge import lints, sweep
from toolmatrix.judge.audit import Published, PublishedWheel, family_coverage, harvested_releases
from toolmatrix.outputs import replace_files
from toolmatrix.report.audit import AuditReport
from toolmatrix.report.imports import ImportReport
from toolmatrix.request.names import Names
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from toolmatrix.api import Path
    from toolmatrix.api.caller import Progress
    from toolmatrix.api.harvests import HarvestedFile
    from toolmatrix.api.requests import OpenMatrix
    from toolmatrix.api.trials import ImportedReleases, Pins
    from toolmatrix.facts.index import Index
    from toolmatrix.facts.model import Claim, Matrix
    from toolmatrix.finding import Finding
    from toolmatrix.harvest.environments import Operation
    from toolmatrix.harvest.resolver import Resolver
    from toolmatrix.judge.sweep import Release, ReleaseOutcome


@command(
    group="Maintain the matrix",
    order=2,
    usage="[NAME...]",
    completer="component",
    does="auditing",
    formats=("text", "json", "sarif", "github", *PRINTED[2:]),
    examples=(
        "toolmatrix audit",
        "toolmatrix audit torch jax",
        "toolmatrix audit numpy --online --format sarif --output findings.sarif",
        "toolmatrix audit --import 'jax==0.4.*' --write imports.yaml",
    ),
)
def audit(
    *names: str,
    online: bool = option(
        "--online",
        configurable=False,
        help="Compare the matrix with the package index, and its answers with uv",
    ),
    from_: Path = option(
        "--from",
        metavar="WORD",
        completer="from",
        help="Directory of git clones to check values against",
    ),
    import_: bool = option(
        "--import",
        only_flag=True,
        excludes=("online",),
        help="Install answers from wheels, import them and use them, and report what fails",
    ),
    python: Path | Iterable[Path] = option(
        "--python",
        metavar="PATH",
        shape="path",
        split=False,
        only_flag=True,
        help="Import with this Python instead of every installed one; repeatable",
    ),
    write: Path = WRITE,
    jobs: int | None = JOBS,
    executor: str = EXECUTOR,
    matrix: OpenMatrix | Path | Sequence[Path] | None = None,
) -> Report:
    """Report coverage of the matrix, and wrong, missing or stale facts.

    `online` asks the package index of pip's and uv's settings, and uv; `from_` is a directory with clones of sources at
    `DIR/owner/name`, which are opened again. With `import_` names may be releases such as `jax==0.4.*`: of each minor
    release the newest is tried, and `write` is the file that gets the facts. Raises NothingMatched, MatrixError,
    HarvestRefused, IndexFailed, OutputError, ToolMissing, UsageError.
    """
    calling = caller()
    if import_ and executor and calling.is_flag("executor"):
        raise UsageError(
            "`--import` uses the interpreters of this machine, and takes no `--executor`"
        )
    if (python or write) and not import_:
        raise UsageError("only `--import` takes `--python` and `--write`")
    opened = open_matrix(matrix)
    if import_:
        pythons = (python,) if isinstance(python, (str, os.PathLike)) else python
        return _imports(opened, names, [os.fspath(one) for one in pythons], write, jobs or 1)
    # A setting or variable says how frameworks get there, and no path.
    clones = calling.path(os.fspath(from_)) if from_ and calling.is_flag("from_") else ""
    processes = jobs or calling.processes
    workers = partial(Workers, paths=opened.paths, processes=processes, executor=executor)
    return _audited(opened, names, asked_online(calling.env) if online else None, clones, workers)


def _imports(
    opened: OpenMatrix, names: Sequence[str], pythons: Sequence[str], write: Path, jobs: int
) -> Report:
    found = _tried(opened, names, pythons, jobs)
    if write:
        file = _put(found, os.fspath(write))
        caller().note(harvests.describe_changes(file).removesuffix("\n"))
    located = lints.located(found.findings, loaded(opened.paths), files(opened.paths))
    report = ImportReport(opened.index, located, found.answers)
    return findings_report(report, ", ".join(names) or "matrix")


class Sources(Value):
    """What an audit asks beside the matrix: the releases of a package at the index, and a resolver of packages."""

    releases: Callable[[str], Sequence[project.PublishedRelease]]
    resolver: Resolver
    # Answers that are asked at once.
    parallel: int = 4


def asked_online(env: Mapping[str, str]) -> Sources:
    """The index and the resolver of this machine. Raises ToolMissing."""
    from toolmatrix.harvest.transport import Session

    where, session = families.indexes(env), Session()
    session.trust(where.certificates, where.proxy)
    return Sources(releases=partial(project.releases, session, where.urls), resolver=Uv(env))


def _audited(
    opened: OpenMatrix,
    names: Sequence[str],
    sources: Sources | None,
    clones: str,
    workers: Callable[..., Workers],
) -> Report:
    index, env = opened.index, caller().env
    work = _work(index, names)
    parts = sweep.parts(work)
    outcomes: list[ReleaseOutcome] = []
    with caller().progress("judging", "answers") as progress:
        with workers(sweep.Sweeper(index=index), parts) as shared:
            # An index keeps no places, and the files take seconds to read.
            reading = shared.meanwhile(lambda: loaded(opened.paths))
            for part in shared.results():
                outcomes += part
                progress.at(len(outcomes), len(work))
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
            with workers(trials.Pinner(index=index, own=read), parts) as shared:
                asked = list(chain(*shared.results()))
            found += _unresolved(asked, sources, rules, progress)
    if clones:
        found += reopened(matrix, clones, env)
    counts = harvested_releases(matrix) | {
        name: (len(held.releases), held.releases[-1])
        for name, held in listed.items()
        if held.releases
    }
    covered = list(family_coverage(matrix, index, outcomes, counts, names))
    found += judge.findings(matrix, index, covered, rules, this_day(env), _called(own, index))
    shown = [one for one in found if not names or one.component in names]
    looked_at = {
        "component": len(covered),
        "framework release": len(work),
        "source": len(matrix.sources),
    }
    located = lints.located(shown, matrix, files(opened.paths))
    report = AuditReport(index, located, [one.to_json() for one in covered], looked_at)
    return findings_report(report, ", ".join(names) or "matrix")


def _called(own: Iterable[str], index: Index) -> dict[str, str]:
    """The component of each package: those of which releases were read, and those that are called otherwise."""
    return {**{name: name for name in own}, **index.header["packages"], **families.packages()}


def _listed(
    sources: Sources, wanted: Mapping[str, Iterable[str]], pythons: Sequence[str]
) -> dict[str, Published]:
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
    progress: Progress,
) -> Iterator[Finding]:
    def refusal(one: Pins) -> str:
        platform = rules.platform(one.machine, one.glibc)
        return sources.resolver.refusal(one.requirements, one.python, platform)

    with ThreadPoolExecutor(sources.parallel) as pool:
        for done, (one, said) in enumerate(zip(asked, pool.map(refusal, asked), strict=True), 1):
            progress.at(done, len(asked))
            if said:
                yield trials.resolver_refusal(one, sources.resolver.name, said)


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


def _tried(
    opened: OpenMatrix, names: Sequence[str], pythons: Sequence[str], jobs: int
) -> ImportedReleases:
    """Releases run, so many at a time."""
    index, env = opened.index, caller().env
    operations = environments.operations()
    work = list(_releases(index, names, operations.of))
    folder = cache_folder(env)
    kept = os.path.join(folder, "imports") if folder else ""
    bench = Bench(Uv(env, "--import"), operations, kept, this_day(env).isoformat())
    there = [
        one
        for one in bench.uv.interpreters(pythons)
        if one.series in index.component("python").versions
    ]
    if not there:
        raise NothingMatched(
            "no installed Python is known to the matrix", help="name one with `--python PATH`"
        )
    own = judge.packages(loaded(opened.paths))
    trying = trials.Trials(index, bench, own, there)
    parts = []
    with caller().progress("importing", "releases") as progress, ThreadPoolExecutor(jobs) as pool:
        try:
            for done, part in enumerate(pool.map(trying.of, work), 1):
                parts.append(part)
                progress.at(done, len(work))
        finally:
            # An interrupt waits for what runs at the moment, and for nothing after it.
            bench.stopped.set()
    return trials.ImportedReleases(
        **{
            field: tuple(one for part in parts for one in getattr(part, field))
            for field in trials.ImportedReleases._fields
        }
    )


def _put(found: ImportedReleases, path: str) -> HarvestedFile:
    with harvests.locked(os.path.dirname(path) or "."):
        # Read while nobody else writes: their rows stay.
        made = runs.imports_document(path, found.together, found.breaks)
        text = written.text(made, runs.ABOUT_IMPORTS, "toolmatrix audit --import --write")
        file = harvests.compared("imports", path, text)
        replace_files({path: text} if file.changed and made["tables"] else {})
    return file


def _releases(
    index: Index, names: Sequence[str], known: Mapping[str, Operation]
) -> Iterator[Release]:
    read = Names(index)
    for text in names or [name for name in known if name in index.header["components"]]:
        ask = read.asks(text)[0]
        operation = known.get(ask.component)
        if operation is None:
            raise NothingMatched(
                f"no operation is known for {ask.component}",
                expected="one of " + ", ".join(sorted(known)),
                help="toolmatrix/operations.yaml has a program for each",
            )
        mask = read.scale(ask.component).select(ask.selector)
        scale = read.scale(ask.component)
        versions = [
            version
            for version in trials.standing(index, ask.component)
            if mask & scale.bit(version)
        ]
        for version in operation.newest(versions):
            yield ask.component, version
