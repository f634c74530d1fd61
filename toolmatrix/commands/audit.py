"""`toolmatrix audit`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from toolmatrix.api import Report, harvests, path_list, this_day, trials
from toolmatrix.api.caller import caller
from toolmatrix.api.checks import Workers, files, findings_report, load_matrix
from toolmatrix.api.requests import open_matrix
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.command.options import EXECUTOR, JOBS, WRITE
from toolmatrix.errors import NothingMatched, UsageError
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.store import cache_folder
from toolmatrix.finding import Finding
from toolmatrix.harvest import environments, families, project, runs
from toolmatrix.harvest.environments import Bench
from toolmatrix.harvest.resolver import Uv
from toolmatrix.judging import audit as judge
from toolmatrix.judging import lints, sweep
from toolmatrix.judging.audit import (
    Published,
    PublishedWheel,
    family_coverage,
    harvested_releases,
)
from toolmatrix.judging.coverage import code_coverage
from toolmatrix.outputs import replace_files
from toolmatrix.report import terminal
from toolmatrix.report.findings import FindingsDocument, MatrixReport
from toolmatrix.report.grid import markdown
from toolmatrix.report.imports import ImportReport
from toolmatrix.report.terminal import Terminal
from toolmatrix.request.names import Names
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from toolmatrix.api import Path
    from toolmatrix.api.caller import Progress
    from toolmatrix.api.harvests import HarvestedFile
    from toolmatrix.api.requests import OpenMatrix
    from toolmatrix.api.trials import ImportedReleases, Pins
    from toolmatrix.factbase.model import Claim, Matrix
    from toolmatrix.harvest.environments import Operation
    from toolmatrix.harvest.resolver import Resolver
    from toolmatrix.judging.sweep import Release, ReleaseOutcome


_UNASKED = "-"
# Code that is older is for devices that few people have.
_BUILDS_SINCE = "2023-01-01"


class AuditReport(MatrixReport):
    """What of each family is known, and findings, the worst first."""

    def __init__(
        self,
        index: Index,
        findings: Iterable[Finding],
        families: Sequence[dict[str, Any]],
        counts: Mapping[str, int],
    ) -> None:
        super().__init__(index, findings, counts)
        self.counts = counts
        self.families = families
        self.targets = list(index.header["targets"])

    def document(self, subject: str) -> FindingsDocument:
        """Everything as JSON values."""
        document = super().document(subject)
        document["families"] = list(self.families)
        return document

    def text(self, screen: Terminal) -> str:
        """The table, then the findings."""
        rows = [self._head(), *map(self._row, self.families)]
        table = terminal.columns(rows, right=range(1, len(rows[0]) - 1))
        return "\n".join(table) + "\n\n" + super().text(screen)

    def coverage(self) -> str:
        """The table as Markdown."""
        return markdown([self._head(), *map(self._row, self.families)])

    def code(self) -> str:
        """The packages by the kind of their code, as Markdown; those whose code was not read by name."""
        kinds = [*code_coverage(self.index, _BUILDS_SINCE)]
        total = sum(kind.builds for kind in kinds) or 1
        rows = [
            (
                kind.kind,
                str(len(kind.components)),
                str(kind.builds),
                f"{100 * kind.builds / total:.1f} %",
            )
            for kind in kinds
        ]
        unread = terminal.listing(kinds[-1].components)
        partly = terminal.listing(kinds[-1].partly)
        head = ("code", "packages", f"builds since {_BUILDS_SINCE[:4]}", "share")
        some = f"; that of some builds of {partly}" if partly else ""
        return f"{markdown([head, *rows])}\nCode that was not read: {unread or 'none'}{some}.\n"

    def markdown(self) -> str:
        """The tables and the findings as Markdown."""
        return f"{self.coverage()}\n{self.code()}\n{super().markdown()}"

    def looked(self) -> str:
        """The numbers of what was looked at."""
        totals = [terminal.plural(count, name) for name, count in self.counts.items()]
        return f"looked at {terminal.listing(totals)}"

    def _head(self) -> tuple[str, ...]:
        return ("component", "known", "published", "variants", *self.targets, "answers by evidence")

    def _row(self, family: Mapping[str, Any]) -> tuple[str, ...]:
        targets = (family["targets"].get(name) for name in self.targets)
        return (
            family["component"],
            str(family["known"]),
            _count_text(family["published"]),
            _count_text(family["variants"]),
            *("/".join(map(str, counts.values())) if counts else _UNASKED for counts in targets),
            # What is no framework is not asked for by itself, and has facts alone.
            _shares(family["answers"]) or _shares(family["facts"]),
        )


def _count_text(count: int | None) -> str:
    return str(count) if count else _UNASKED


def _shares(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    return ", ".join(f"{evidence} {100 * count // total} %" for evidence, count in counts.items())


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
        cli_only=True,
        excludes=("online",),
        help="Install answers from wheels, import them and use them, and report what fails",
    ),
    python: Path | Iterable[Path] = option(
        "--python",
        metavar="PATH",
        shape="path",
        split=False,
        cli_only=True,
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
        return _imports(opened, names, path_list(python), write, jobs or 1)
    # As a setting or variable `from` is about frameworks, not a path.
    clones = calling.path(os.fspath(from_)) if from_ and calling.is_flag("from_") else ""
    processes = jobs or calling.processes
    workers = partial(Workers, paths=opened.paths, processes=processes, executor=executor)
    return _audited(opened, names, online_sources(calling.env) if online else None, clones, workers)


def _imports(
    opened: OpenMatrix, names: Sequence[str], pythons: Sequence[str], write: Path, jobs: int
) -> Report:
    imported = _tried(opened, names, pythons, jobs)
    if write:
        file = _write_facts(imported, os.fspath(write))
        caller().note(harvests.describe_changes(file).removesuffix("\n"))
    located = lints.located(imported.findings, load_matrix(opened.paths), files(opened.paths))
    report = ImportReport(opened.index, located, imported.answers)
    return findings_report(report, ", ".join(names) or "matrix")


class Sources(Value):
    """What an audit compares with: the releases of packages at the index, and a package resolver."""

    releases: Callable[[str], Sequence[project.PublishedRelease]]
    resolver: Resolver
    # Queries at a time.
    parallel: int = 4


def online_sources(env: Mapping[str, str]) -> Sources:
    """The index and the resolver of this machine. Raises ToolMissing."""
    session, urls = families.open_session(env)
    return Sources(releases=partial(project.releases, session, urls), resolver=Uv(env))


def _audited(
    opened: OpenMatrix,
    names: Sequence[str],
    sources: Sources | None,
    clones: str,
    workers: Callable[..., Workers],
) -> Report:
    index, env = opened.index, caller().env
    work = _work(index, names)
    batches = sweep.batches(work)
    outcomes: list[ReleaseOutcome] = []
    with caller().progress("judging", "answers") as progress:
        with workers(sweep.Sweeper(index=index), batches) as shared:
            # The index has no positions, and the files take seconds to read.
            reading = shared.meanwhile(lambda: load_matrix(opened.paths))
            for batch in shared.results():
                outcomes += batch
                progress.at(len(outcomes), len(work))
            matrix = reading()
        rules = judge.rules()
        own = judge.packages(matrix)
        published: dict[str, Published] = {}
        findings: list[Finding] = []
        if sources:
            wanted = {
                name: packages for name, packages in own.items() if not names or name in names
            }
            published = _fetch_published(sources, wanted, index.component("python").versions)
            read = {name: set(chain(*packages.values())) for name, packages in own.items()}
            findings += _otherwise(index, {name: read[name] for name in wanted}, published)
            # Workers may solve, but only this machine queries the index, with its settings, credentials and cache.
            with workers(trials.Pinner(index=index, own=read), batches) as shared:
                pins = list(chain(*shared.results()))
            findings += _unresolved(pins, sources, rules, progress)
    if clones:
        findings += reopened(matrix, clones, env)
    counts = harvested_releases(matrix) | {
        name: (len(entry.releases), entry.releases[-1])
        for name, entry in published.items()
        if entry.releases
    }
    covered = list(family_coverage(matrix, index, outcomes, counts, names))
    called = families.called(own, index.header["packages"])
    findings += judge.findings(matrix, index, covered, rules, this_day(env), called)
    relevant = [finding for finding in findings if not names or finding.component in names]
    looked_at = {
        "component": len(covered),
        "framework release": len(work),
        "source": len(matrix.sources),
    }
    located = lints.located(relevant, matrix, files(opened.paths))
    report = AuditReport(index, located, [coverage.to_json() for coverage in covered], looked_at)
    return findings_report(report, ", ".join(names) or "matrix")


def _fetch_published(
    sources: Sources, wanted: Mapping[str, Iterable[str]], pythons: Sequence[str]
) -> dict[str, Published]:
    packages = list(dict.fromkeys(chain(*wanted.values())))
    lists = families.run_parallel(
        partial(_published_releases, sources), packages, threads=sources.parallel
    )
    by_package = dict(zip(packages, lists, strict=True))
    return {
        name: _published(
            [release for package in own_packages for release in by_package[package]], pythons
        )
        for name, own_packages in wanted.items()
    }


def _published_releases(sources: Sources, package: str) -> Sequence[project.PublishedRelease]:
    try:
        return sources.releases(package)
    # All releases of a package that no longer exists are withdrawn.
    except NothingMatched:
        return ()


def _published(releases: Sequence[project.PublishedRelease], pythons: Sequence[str]) -> Published:
    from packaging.version import Version

    return Published(
        # Of several packages each has its own order.
        releases=tuple(sorted({release.version for release in releases}, key=Version)),
        wheels=tuple(
            PublishedWheel(release.version, python, machine)
            for release in releases
            # A withdrawn release is an answer only if it is named exactly.
            if not release.yanked
            for python in pythons
            for machine in project.MACHINES
            if any(wheel.best(machine, python) and wheel.allows(python) for wheel in release.wheels)
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
    index: Index, read: Mapping[str, Collection[str]], published: Mapping[str, Published]
) -> Iterator[Finding]:
    yield from judge.releases(index, read, published)
    for name in read:
        # Answers are checked for frameworks only.
        if index.header["components"][name]["framework"]:
            yield from judge.refused(index, name, published[name].wheels)


def _unresolved(
    all_pins: Sequence[Pins],
    sources: Sources,
    rules: judge.AuditRules,
    progress: Progress,
) -> Iterator[Finding]:
    def refusal(pins: Pins) -> str:
        platform = rules.platform(pins.machine, pins.glibc)
        return sources.resolver.refusal(pins.requirements, pins.python, platform)

    refusals = families.run_parallel(refusal, all_pins, progress.at, sources.parallel)
    for pins, refused in zip(all_pins, refusals, strict=True):
        if refused:
            yield trials.resolver_refusal(pins, sources.resolver.name, refused)


def reopened(matrix: Matrix, clones: str, env: Mapping[str, str]) -> Iterator[Finding]:
    """Facts whose value is not in the file they were read from, in clones at `DIR/owner/name`.

    Raises HarvestRefused, ToolMissing, and NothingMatched where no clone of a source is there.
    """
    from toolmatrix.harvest.source_tree import NOT_FOUND, SourceQuestion, check_sources

    questions: dict[str, list[tuple[Claim, SourceQuestion]]] = {}
    for claim in matrix.claims.values():
        at = matrix.sources[claim.source].at
        question = SourceQuestion(at=at, value=claim.selector, where=claim.where)
        # A claim derived by a rule is not in a source.
        # A claim that was set aside has a note with the reason.
        if question.repository and not claim.rule and claim.decides:
            questions.setdefault(question.repository, []).append((claim, question))
    folders = {name: os.path.join(clones, *name.split("/")) for name in questions}
    there = [name for name in questions if os.path.isdir(folders[name])]
    # Otherwise a mistyped path would look as if every value were in its source.
    if not there:
        raise NothingMatched(
            f"no clone of a source in {clones}",
            expected="directories such as " + ", ".join(sorted(questions)[:3]),
            help="`git clone --bare` them to `DIR/owner/name`",
        )
    for name in there:
        answers = check_sources([question for _, question in questions[name]], folders[name], env)
        for (claim, question), answer in zip(questions[name], answers, strict=True):
            # A source that names no file or commit, or a clone that lacks it, says nothing against a fact.
            if answer.state == NOT_FOUND:
                component, selector = claim.when[0]
                yield Finding.of(
                    "TM326",
                    # A value is searched for as text, and the source may spell it otherwise: people should look at it.
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
    """Install, import and use releases, `jobs` at a time."""
    from concurrent.futures import ThreadPoolExecutor

    index, env = opened.index, caller().env
    operations = environments.operations()
    work = list(_releases(index, names, operations.of))
    folder = cache_folder(env)
    cache = os.path.join(folder, "imports") if folder else ""
    bench = Bench(Uv(env, "--import"), operations, cache, this_day(env).isoformat())
    there = [
        interpreter
        for interpreter in bench.uv.interpreters(pythons)
        if interpreter.series in index.component("python").versions
    ]
    if not there:
        raise NothingMatched(
            "no installed Python is known to the matrix", help="name one with `--python PATH`"
        )
    own = judge.packages(load_matrix(opened.paths))
    trying = trials.Trials(index, bench, own, there)
    outcomes = []
    with caller().progress("importing", "releases") as progress, ThreadPoolExecutor(jobs) as pool:
        try:
            for done, outcome in enumerate(pool.map(trying.of, work), 1):
                outcomes.append(outcome)
                progress.at(done, len(work))
        finally:
            # An interrupt waits for running imports, but starts no more.
            bench.stopped.set()
    return trials.ImportedReleases(
        **{
            field: tuple(entry for outcome in outcomes for entry in getattr(outcome, field))
            for field in trials.ImportedReleases._fields
        }
    )


def _write_facts(imported: ImportedReleases, path: str) -> HarvestedFile:
    with harvests.folder_lock(os.path.dirname(path) or "."):
        # Read under the lock, so that rows of other writers stay.
        document = runs.imports_document(path, imported.together, imported.breaks)
        text = runs.text(document, runs.ABOUT_IMPORTS, "toolmatrix audit --import --write")
        file = harvests.compare_with_file("imports", path, text)
        replace_files({path: text} if file.changed and document["tables"] else {})
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
        scale = read.scale(ask.component)
        mask = scale.select(ask.selector)
        versions = [
            version
            for version in trials.not_withdrawn(index, ask.component)
            if mask & scale.bit(version)
        ]
        for version in operation.newest(versions):
            yield ask.component, version
