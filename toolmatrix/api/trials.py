"""Releases tried in environments of pins: what came of their answers, and the newer packages that they fail with."""

from __future__ import annotations

from threading import Lock

from toolmatrix.finding import Finding
from toolmatrix.harvest import runs
from toolmatrix.harvest.environments import FAILED, RAISED, RAN, Environment, ImportOutcome
from toolmatrix.harvest.runs import Break, RanTogether, Trial
from toolmatrix.judging import sweep
from toolmatrix.judging.audit import machine as machine_of
from toolmatrix.judging.pool import IndexedWork
from toolmatrix.report import variants
from toolmatrix.report.imports import ImportedAnswer
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.resolve import attempt
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.factbase.index import Index
    from toolmatrix.finding import InstallMethod
    from toolmatrix.harvest.environments import Bench, Operation
    from toolmatrix.harvest.resolver import Interpreter
    from toolmatrix.harvest.runs import UpperBound
    from toolmatrix.judging.sweep import Release


def not_withdrawn(index: Index, component: str, keep: Collection[str] = ()) -> Iterator[str]:
    """The releases of a component, the oldest first, without those that were withdrawn but for some to `keep`."""
    releases, scale = index.component(component), index.scale(component)
    for version in releases.versions:
        if version in keep or not releases.yanked & scale.bit(version):
            yield version


class ImportedReleases(Value):
    """What was run: answers, findings about them, and the facts that follow."""

    answers: tuple[ImportedAnswer, ...]
    findings: tuple[Finding, ...]
    together: tuple[RanTogether, ...]
    breaks: tuple[Break, ...]


class Trials:
    """Tries releases, each with every Python that its answer takes.

    `own` are the releases of each component by the package of the index that they were read at.
    """

    def __init__(
        self,
        index: Index,
        bench: Bench,
        own: Mapping[str, Mapping[str, Collection[str]]],
        pythons: Sequence[Interpreter],
    ) -> None:
        self.index = index
        self.bench = bench
        self.pythons = pythons
        self.component = {package: name for name, versions in own.items() for package in versions}
        # Several are tried at once, and an index reads its parts as they are needed.
        self.reading = Lock()
        self.releases = {name: {*()}.union(*versions.values()) for name, versions in own.items()}

    def of(self, release: Release) -> ImportedReleases:
        """One release with each Python, and bounds with the newest of those that it runs with."""
        with self.reading:
            method = self._install_method(release[0])
        # The newest has the most releases of everything to fail with.
        pythons = reversed(self.pythons) if method else ()
        runs: list[_ImportRun] = []
        for python in pythons:
            with self.reading:
                own, series = self.releases, python.series
                pins = method and wheel_answer(self.index, release, method, own, series)
            if pins:
                runs.append(_ImportRun(self, release, pins, python))
                runs[-1].run(bounded=any(run.bounded for run in runs[:-1]))
        return ImportedReleases(
            answers=tuple(run.answer() for run in runs),
            findings=tuple(finding for run in runs for finding in run.findings()),
            together=tuple(run.together() for run in runs if run.outcome.state == RAN),
            breaks=tuple(broken for run in runs for broken in run.breaks()),
        )

    def refuses(self, answer: Pins, component: str, version: str) -> bool:
        """True if the matrix says that the release of an answer does not go with one of another component."""
        with self.reading:
            pair = (component, version)
            request = sweep.request(self.index, answer.release, answer.way, pair)
            return isinstance(attempt(self.index, request), Assembly)

    def standing(self, component: str, keep: Collection[str]) -> list[str]:
        """The releases of a component that were not withdrawn, and some to `keep`."""
        with self.reading:
            return [*not_withdrawn(self.index, component, keep)]

    def _install_method(self, component: str) -> InstallMethod | None:
        methods = (
            method
            for method in sweep.install_methods(self.index, component)
            if (method.from_, method.accelerator) == ("wheel", "none")
            if machine_of(self.index, method) == self.bench.machine
        )
        return next(methods, None)


class _ImportRun:
    """One release with one Python."""

    def __init__(self, trials: Trials, release: Release, pins: Pins, python: Interpreter) -> None:
        self.trials = trials
        self.release = release
        self.pins = pins
        self.python = python
        self.operation: Operation = trials.bench.operations.of[release[0]]
        self.installed: dict[str, str] = {}
        self.outcome = ImportOutcome(state=FAILED)
        # By package.
        self.bounds: dict[str, UpperBound] = {}

    def run(self, *, bounded: bool) -> None:
        """Install and run the answer and, if it is not `bounded` yet, newer packages."""
        uv = self.trials.bench.uv
        pins, message = uv.pins(self.pins.requirements, self.python)
        if not pins:
            self.outcome = ImportOutcome(state=FAILED, said=message)
            return
        self.installed = dict(pin.split("==") for pin in pins)
        with Environment(self.trials.bench, self.python, self.operation) as environment:
            self.outcome = environment.attempt(pins)
            if self.outcome.state != FAILED and not bounded:
                self.bounds = dict(self._bounds(environment))

    def _bounds(self, environment: Environment) -> Iterator[tuple[str, UpperBound]]:
        uv = self.trials.bench.uv
        for package, component in self._beside().items():
            others = [
                f"{name}=={installed}"
                for name, installed in self.installed.items()
                if name != package
            ]

            def try_version(
                version: str, name: str = package, rest: Sequence[str] = others
            ) -> ImportOutcome | None:
                pins, _ = uv.pins([*rest, f"{name}=={version}"], self.python)
                return environment.attempt(pins) if pins else None

            newest, _ = uv.pins([*others, package], self.python)
            allowed = dict(pin.split("==") for pin in newest).get(package, "")
            bound = runs.search(
                self._versions(component, package, allowed),
                try_version,
                works=self.outcome.state == RAN,
            )
            if bound:
                yield package, bound

    def _beside(self) -> dict[str, str]:
        """The packages that took part and that the matrix knows in these releases, with their components."""
        known = self.trials.component
        return {
            name: known[name]
            for name, version in self.installed.items()
            # What was installed and not imported shows nothing.
            if name in known and name in self.outcome.loaded and known[name] != self.release[0]
            if version in self.trials.releases[known[name]]
        }

    def _versions(self, component: str, package: str, allowed: str) -> list[str]:
        """Releases from the installed one, or the oldest if that fails, to the newest that requirements allow."""
        installed = self.installed[package]
        versions = self.trials.standing(component, (installed, allowed))
        first = versions.index(installed) if self.outcome.state == RAN else 0
        # An index may list what the matrix does not know yet.
        last = versions.index(allowed if allowed in versions else installed)
        return versions[first : last + 1]

    @property
    def bounded(self) -> bool:
        """True if it is known what a newer package does, and another Python need not show it again."""
        return self.outcome.state == RAN or any(bound.fails for bound in self.bounds.values())

    def answer(self) -> ImportedAnswer:
        """The answer with what came of it."""
        return ImportedAnswer(
            component=self.release[0],
            release=self.release[1],
            python=self.python.series,
            pins=self.pins.requirements,
            state=self.outcome.state,
            said=self.outcome.said,
        )

    def trial(self) -> Trial:
        """Where and how it was run."""
        bench = self.trials.bench
        return Trial(
            python=self.python.version,
            machine=bench.machine,
            system=bench.system,
            program=self.operation.digest,
            day=self.outcome.day,
        )

    def together(self) -> RanTogether:
        """The packages that ran."""
        beside = self._beside()
        return RanTogether(
            component=self.release[0],
            release=self.release[1],
            series=self.python.series,
            beside={component: self.installed[name] for name, component in beside.items()},
            also={
                beside[name]: bound.newest
                for name, bound in self.bounds.items()
                if not bound.fails and not bound.undecided
            },
            trial=self.trial(),
        )

    def breaks(self) -> Iterator[Break]:
        """Facts about the package whose own code met what a newer one does not have."""
        for package, bound in self.bounds.items():
            culprit = bound.outcome.culprit(package) if bound.outcome else ""
            component = self.trials.component.get(culprit, "")
            # Of code that is of no package, or of one that the matrix does not know, nothing can be said.
            if component and self.installed[culprit] in self.trials.releases[component]:
                yield Break(
                    component=component,
                    release=self.installed[culprit],
                    dependency=self.trials.component[package],
                    bound=bound,
                    trial=self.trial(),
                    widens=component == self.release[0] and self.operation.widens,
                )

    def findings(self) -> Iterator[Finding]:
        """What came of the answer if it did not run, and what it does not run with."""
        trials, message, python = self.trials, self.outcome.said, self.python.series
        if self.outcome.state == RAISED:
            yield self._finding("TM328", "error", message, python=python)
        if self.outcome.state == FAILED:
            yield self._finding("TM330", "info", message, python=python, newer="")
        for package, bound in self.bounds.items():
            component = trials.component[package]
            if bound.undecided:
                newer = f" and {component} {bound.tried}"
                yield self._finding("TM330", "info", bound.undecided, python=python, newer=newer)
            if bound.outcome:
                yield self._finding(
                    "TM329",
                    "info" if trials.refuses(self.pins, component, bound.fails) else "warning",
                    bound.outcome.said,
                    dependency=component,
                    fails=bound.fails,
                    culprit=bound.outcome.culprit(package) or "no package",
                )

    def _finding(self, code: str, severity: str, message: str, **values: Any) -> Finding:
        component, version = self.release
        return Finding.of(
            code,
            severity=severity,
            actual=message,
            component=component,
            releases=(version,),
            ways=(self.pins.way,),
            facts=(f"{component}=={version}",),
            **values,
        )


class Pins(Value):
    """The packages of an answer from wheels, as a resolver of Python packages is asked for them."""

    release: Release
    way: InstallMethod
    requirements: tuple[str, ...]
    python: str
    machine: str
    # That of the distribution, "" where none is in the answer.
    glibc: str = ""


class Pinner(IndexedWork):
    """Asks for the packages of the answers for parts of the work; `own` are the versions that were read, by name."""

    own: Mapping[str, Collection[str]]

    def attempt(self, part: Sequence[Release]) -> list[Pins]:
        """The packages of the answers for some releases."""
        return [pins for release in part for pins in wheel_answers(self.index, release, self.own)]


def wheel_answers(
    index: Index, release: Release, own: Mapping[str, Collection[str]]
) -> Iterator[Pins]:
    """The packages of each answer for a release from wheels of the default channel, the same ones once."""
    tried = set()
    for method in sweep.install_methods(index, release[0]):
        pins = wheel_answer(index, release, method, own) if method.from_ == "wheel" else None
        if pins and (key := (pins.requirements, pins.python, pins.machine)) not in tried:
            tried.add(key)
            yield pins


def wheel_answer(
    index: Index,
    release: Release,
    method: InstallMethod,
    own: Mapping[str, Collection[str]],
    python: str = "",
) -> Pins | None:
    """The packages of the answer in one way, with a Python series if one is named; None where it promises nothing."""
    beside = (("python", python),) if python else ()
    answer = attempt(index, sweep.request(index, release, method, *beside))
    # An answer that rests on unknown facts promises nothing that a resolver could refute.
    if isinstance(answer, Assembly) or not answer.known:
        return None
    builds = list(variants.of(index, answer.targets[method.target]))
    # Other channels than the default one are not the index that is asked: they have an index or files of their own.
    if any(build.arguments or "@" in build.requirement for build in builds):
        return None
    chosen = answer.chosen(method.target)
    built = {build.component for build in builds}
    requirements = [word for build in builds for word in build.requirement.split()]
    requirements += [
        f"{name}=={version}"
        for name, version in chosen.items()
        # What was not read at the index, such as a driver or a compiler, is no package that could be pinned there.
        if name not in built and version in own.get(name, ())
    ]
    series = chosen.get("python", "")
    # uv resolves for one given Python; of Python 2 it knows builds that no distribution has (cp27m).
    if not requirements or not series or series.startswith("2."):
        return None
    return Pins(
        release=release,
        way=method,
        requirements=tuple(dict.fromkeys(requirements)),
        python=series,
        machine=machine_of(index, method),
        # Answers do not show it, and it decides which wheels uv may take.
        glibc=next((pin.release for pin in answer.hidden if pin.component == "glibc"), ""),
    )


# uv's messages for a release with a source archive alone; only running its build would show more.
_NO_WHEELS = ("has no usable wheels", "have no usable wheels")


def resolver_refusal(pins: Pins, resolver: str, message: str) -> Finding:
    """The finding that a resolver refuses an answer; one that needs a source archive is reported as no error."""
    return Finding.of(
        "TM325",
        severity="info" if any(words in message for words in _NO_WHEELS) else "error",
        component=pins.release[0],
        releases=(pins.release[1],),
        ways=(pins.way,),
        resolver=resolver,
        actual=message,
    )
