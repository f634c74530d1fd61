"""Judges what a manifest asks for: which of it a hard fact refuses, what facts join, and of what none speaks.

A refusal holds where every machine and accelerator that the file leaves open refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from toolmatrix.codes.manifests import (
    BuiltBySource,
    ForProcessorAlone,
    ManifestFinding,
    NotOnIndex,
    RefusedTogether,
)
from toolmatrix.factbase.evidence import weaker
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.pulling import BASE
from toolmatrix.finding import Incompatibility
from toolmatrix.judging import bundled, managed, missing
from toolmatrix.judging.builds import unbuildable
from toolmatrix.judging.effects import FOLLOWED, after_installs
from toolmatrix.judging.installs import Installation
from toolmatrix.judging.joins import (
    as_wheel,
    beside_toolkit,
    is_series,
    joined_by_builds,
    joined_by_releases,
    support,
    unlisted_of_conda,
)
from toolmatrix.judging.libraries import Loading
from toolmatrix.judging.questions import SOURCE, WHEEL, EnvironmentQuestions, part_key
from toolmatrix.judging.soundness import Soundness
from toolmatrix.judging.stubs import stubs
from toolmatrix.judging.uses import removed
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import CONDA, IMAGE, PIP, SYSTEM_PIP, ProjectManifest, Traced
from toolmatrix.request import manifests as reading
from toolmatrix.request.judgement import (
    ARCH,
    DEVICE,
    FINE,
    REFUSED,
    RUNTIME,
    UNKNOWN,
    JudgedEnvironment,
    JudgedManifest,
    JudgedPair,
    ManifestRefusal,
    Question,
    RequestedPart,
    RequestedParts,
    builds,
    finding_fields,
    is_file,
    refused,
    with_indexes,
    with_reason,
)
from toolmatrix.request.machine import ANY_MACHINE, TargetMachine
from toolmatrix.solve.grounds import Core
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.solve.request import Request
from toolmatrix.solve.resolve import Resolution, Unsatisfiable, attempt, resolve
from toolmatrix.wording import listing

# What an answer says of running on a device.
_RUNNING = (DEVICE, ARCH, "cuda", "driver")


def judge(
    index: Index,
    manifest: ProjectManifest,
    machine: TargetMachine = ANY_MACHINE,
    *,
    paired: bool = True,
    elsewhere: frozenset[str] = frozenset(),
    uses: Mapping[str, Traced] | None = None,
) -> JudgedManifest:
    """Judge all environments of a manifest on a machine; unless `paired`, pairs without a refusal are left out.

    `elsewhere` are packages for which another file names an index, as a README does for a file of requirements; `uses`
    are names of packages that the code beside the file uses.
    """
    known: dict[tuple[str, ...], JudgedEnvironment] = {}
    environments = []
    for environment in manifest.environments:
        parts = with_indexes(reading.requested_parts(index, environment, machine.items), elsewhere)
        # Many an extra of a project adds nothing that facts are about.
        lacking = (release.part for release in parts.missing)
        named = [(part.text, part.item) for part in (*parts.parts, *lacking)]
        named += [
            (item.name, item)
            for item in parts.items
            if item.kind == SYSTEM_PIP or called.stub(item.name)
        ]
        key = tuple(f"{text} {item.where}" for text, item in named)
        if key not in known:
            if manifest.kind not in FOLLOWED or manifest.locked:
                parts = parts.replace(items=())
            known[key] = _environment(index, parts, machine, manifest, uses, paired=paired)
        unknown = (*parts.unknown, *known[key].unknown)
        result = known[key].replace(name=environment.name, unknown=unknown)
        environments.append(result.of_lock() if environment.locked else result)
    return JudgedManifest(
        manifest=manifest,
        environments=tuple(environments),
        machine=machine,
        elsewhere=elsewhere,
    )


def _environment(
    index: Index,
    parts: RequestedParts,
    machine: TargetMachine,
    manifest: ProjectManifest,
    uses: Mapping[str, Traced] | None,
    *,
    paired: bool,
) -> JudgedEnvironment:
    """One environment judged; what is `unknown` of it is what its installation leaves so."""
    environment = _Environment(index, parts, machine)
    run = Installation(index, parts, environment.targets[0])

    def request(parts: Sequence[RequestedPart]) -> Request:
        return environment.request(parts, environment.targets[0], WHEEL, environment.accelerator)

    refusals = after_installs(run, [*environment.refusals()], request)
    for replaced, finding, about in unbuildable(run, parts, manifest.kind, refusals):
        refusals = tuple(refusal for refusal in refusals if refusal is not replaced)
        own = replaced.request if replaced else request(about)
        refusals += (ManifestRefusal(finding=finding, parts=tuple(about), request=own),)
    loading = Loading(run, parts, complete=not manifest.unread)
    lacking = removed(index, uses, parts, environment.installed) if uses else ()
    refusals += tuple(
        ManifestRefusal(finding=finding, parts=parts, request=request(parts))
        for finding, parts in (*loading.findings(refusals), *lacking)
    )
    return JudgedEnvironment(
        name=parts.name,
        parts=parts.parts,
        unknown=tuple(loading.unknown),
        refusals=refusals,
        pairs=tuple(with_reason(index, environment.pairs(refusals))) if paired else (),
    )


def judge_pairs(index: Index, judgement: JudgedManifest) -> Iterator[JudgedPair]:
    """The pairs of a manifest that was judged without them."""
    machine = judgement.machine
    for environment, outcome in zip(
        judgement.manifest.environments, judgement.environments, strict=True
    ):
        parts = reading.requested_parts(index, environment, machine.items)
        pairs = _Environment(index, parts, machine).pairs(outcome.refusals)
        yield from with_reason(index, pairs)


class _Environment(EnvironmentQuestions):
    def __init__(self, index: Index, parts: RequestedParts, machine: TargetMachine) -> None:
        super().__init__(index, parts, machine)
        self.name = parts.name
        self.missing = parts.missing
        self.images = parts.images
        self.soundness = Soundness(index, parts)

    def refusals(self) -> Iterator[ManifestRefusal]:
        """What is refused, each reason once: a missing wheel is not reported for parts that a fact forbids."""
        on_cuda = partial(self.request, target=self.targets[0], from_=WHEEL, accelerator="cuda")
        refusals = {
            refusal.finding.asked: refusal
            for refusal in (
                *self.not_there(),
                *self.contradictions(),
                *self.without_accelerator(),
                *bundled.pinned(self.index, self.parts, self.items, on_cuda, self.name),
            )
        }
        for question in self.questions():
            if self.is_explained(question, refusals.values()):
                continue
            for finding, refused_parts in self.findings(question):
                known = refusals.get(finding.asked)
                if known and known.hard:
                    continue
                # Of a part of a toolkit the question may ask for more releases than the file does.
                texts = {part.text for part in refused_parts}
                parts = [
                    part for part in question.parts if part.text in texts or part in self.runtime
                ]
                method = next(self.install_methods(question, self.targets[0]))
                request = self.request(parts, self.targets[0], *method)
                refusals[finding.asked] = ManifestRefusal(
                    finding=finding, parts=refused_parts, request=request
                )
        hard = [{*named} for named, refusal in refusals.items() if refusal.hard]
        # A reason with more lines than another one says no more.
        for named, refusal in refusals.items():
            if not any(fewer < {*named} for fewer in hard):
                yield refusal

    def not_there(self) -> Iterator[ManifestRefusal]:
        """Releases that the index does not have, images that cannot be pulled or used, and a pip that stops."""
        request = self.request((), self.targets[0], WHEEL, "none")
        for finding, part in (
            *missing.releases(self.missing, self.name),
            *missing.images(self.images, self.name),
            *missing.unbuilt(self.index, self.parts, self.items, self.request, self.name),
        ):
            yield ManifestRefusal(finding=finding, parts=(part,), request=request)
        for stop, parts in (
            *managed.stopped(self.items, self.parts, self.name),
            *stubs(self.items, self.name),
        ):
            yield ManifestRefusal(finding=stop, parts=parts, request=request)

    def contradictions(self) -> Iterator[ManifestRefusal]:
        """Lines about one component that hold together and leave no release of it; the last stays for the rest."""
        by_component: dict[str, list[RequestedPart]] = {}
        for part in self.parts:
            if part.component not in SEVERAL:
                by_component.setdefault(part.component, []).append(part)
        for component, parts in by_component.items():
            scale, left = self.index.scale(component), -1
            for part in parts:
                left &= scale.select(part.asks[0].selector)
            if left or all(part.older for part in parts):
                continue
            method = self.install_method(parts[0], parts[1], self.targets[0])
            request = self.request(parts, self.targets[0], *method)
            finding = self.build_finding(RefusedTogether, tuple(parts), ())
            yield ManifestRefusal(finding=finding, parts=tuple(parts), request=request)
            self.parts = tuple(part for part in self.parts if part not in parts[:-1])

    def without_accelerator(self) -> Iterator[ManifestRefusal]:
        """Packages that leave the devices unused."""
        for part in self.parts if self.runtime else ():
            if self.computes(part) and not self.is_for_accelerator(part):
                parts = (part, *self.runtime)
                finding = ForProcessorAlone(
                    **finding_fields(parts, self.name),
                    severity="warning",
                    accelerator=self.accelerator,
                )
                request = self.request((part,), self.targets[0], WHEEL, "none")
                yield ManifestRefusal(finding=finding, parts=parts, request=request)

    def is_explained(self, question: Question, refusals: Iterable[ManifestRefusal]) -> bool:
        """True if only what was refused before stops a question: without any one part of that, it has an answer.

        Asking that takes less than explaining a question.
        """
        return any(
            refusal.hard
            and all(part in question.parts for part in refusal.parts)
            and all(
                self.has_answer(question.without(part), self.targets[0]) for part in refusal.parts
            )
            for refusal in refusals
        )

    def find_refusal(self, question: Question) -> Unsatisfiable | None:
        """The refusal of a question in the likeliest way, if no way has an answer."""
        if not question.parts:
            return None
        first: Unsatisfiable | None = None
        for target in self.targets:
            if self.has_answer(question, target):
                return None
            first = first or refused(self.index, next(self.requests(question, target)))
            # Without a named machine the likeliest counts, as for markers, unless there is nothing for it.
            if first and not _is_about_machine(first):
                break
        on_device = any(part.component in RUNTIME for part in question.parts)
        if first and not on_device and _is_about_machine(first):
            # A line of an index may lack a release on every machine, each with other builds.
            asks = tuple(ask for ask in first.request.asks if ask.component != "machine")
            first = refused(self.index, first.request.replace(asks=asks)) or first
        # Releases before those that are known may do.
        return None if first and first.outside else first

    def findings(
        self, question: Question
    ) -> list[tuple[ManifestFinding, tuple[RequestedPart, ...]]]:
        """The findings that the refusal of a question makes, each with its parts."""
        refusing = self.find_refusal(question)
        if refusing is None:
            return []
        results = [self.finding(core, question.parts) for core in refusing.cores]
        if not any(finding for finding, _ in results):
            # What is refused by builds that match may be refused without them, by what a package requires. What the
            # file itself asks for is judged by itself.
            again = resolve(self.index, refusing.request, enforced=True)
            named = {part.component for part in self.parts}
            results = [
                self.finding(core, question.parts)
                for core in (() if isinstance(again, Resolution) else again.cores)
                if not any(
                    line.ground
                    and line.ground.kind == "requires"
                    and line.ground.component in named
                    for line in core.lines
                )
            ]
        return [(finding, parts) for finding, parts in results if finding]

    def finding(
        self, core: Core, parts: Sequence[RequestedPart]
    ) -> tuple[ManifestFinding | None, tuple[RequestedPart, ...]]:
        """The finding that a core makes, None where it rests on nothing in the file, and its parts."""
        # Archs and devices that a core names are listed.
        asks = {
            (ask.component, selector)
            for ask in core.asks
            for selector in (
                ask.selector.split(",") if ask.component in SEVERAL else (ask.selector,)
            )
        }
        involved = tuple(
            part
            for part in self.in_order(parts)
            if any((ask.component, ask.selector) in asks for ask in part.asks)
        )
        grounds = tuple(line.ground for line in core.lines if line.ground is not None)
        if core.soft or not involved or not grounds or self.soundness.is_unsound(involved, grounds):
            return None, ()
        manifests = [
            ground.subject
            for ground in grounds
            if self.about_wheels(ground.subject, ground.kind, ground.component)
        ]
        # An unread index may have wheels for anything that is required, and what is compiled needs none.
        if manifests and any(part.open or part.item.built for part in involved):
            return None, ()
        # A build that is made as a wheel need not be listed as one: its archs alone count.
        archs = [part for part in involved if part.as_wheel]
        if archs and not any(part in self.runtime for part in involved):
            return None, ()
        others = {
            part.component for part in involved if part.item.kind != PIP and part not in archs
        }
        kind: type[ManifestFinding] = RefusedTogether
        for name in manifests:
            of = self.components[name]["variant_of"] or name
            # Of what comes by conda or in an image no wheel of the index speaks.
            if of in others:
                return None, ()
            is_wheel = of in called.wheels_alone() or any(
                part.component == of and is_file(part.item) for part in involved
            )
            if not is_wheel and not self.installs_wheel(of, involved):
                kind = BuiltBySource
        # What is installed was compiled already, and may require a release that the matrix lacks.
        alone = kind is BuiltBySource or len(involved) == 1
        if alone and any(part.item.installed for part in involved):
            return None, ()
        return self.build_finding(kind, involved, grounds), involved

    def in_order(self, parts: Iterable[RequestedPart]) -> list[RequestedPart]:
        """Parts of a question in the order of the file, so that every question reports the same."""
        positions = {part_key(part): at for at, part in enumerate((*self.parts, *self.written))}
        return sorted(parts, key=lambda part: positions[part_key(part)])

    def installs_wheel(self, component: str, parts: Sequence[RequestedPart]) -> bool:
        """True if pip takes a wheel of a package that does not run on the device: it knows nothing of devices."""
        part = next((part for part in parts if part.component == component), None)
        if part is None or not any(other.component in RUNTIME for other in parts):
            return False
        name, left = builds(self.index, part)
        return any("@default/" in build for build in self.index.scale(name).named(left))

    def build_finding(
        self,
        kind: type[ManifestFinding],
        parts: tuple[RequestedPart, ...],
        grounds: tuple[Incompatibility, ...],
    ) -> ManifestFinding:
        """A finding about some parts."""
        fields = finding_fields(parts, self.name)
        by_definition = grounds and all(
            self.components[ground.subject]["variant_of"] == ground.component for ground in grounds
        )
        if kind is RefusedTogether and by_definition and parts[0].item.alone:
            address = listing(parts[0].item.indexes)
            return NotOnIndex(**fields, severity="error", address=address)
        return kind(
            **fields,
            severity="error" if kind is RefusedTogether else "warning",
            grounds=grounds,
            facts=tuple(dict.fromkeys(fact for ground in grounds for fact in ground.facts)),
        )

    def about_wheels(self, subject: str, kind: str, component: str) -> bool:
        """True if a ground is about which wheels exist, and not about what a package requires."""
        if component == "python":
            # What is declared for a Python limits it, and what there is a wheel for requires it.
            return kind == "requires"
        of = self.components[subject]["variant_of"]
        return bool(of or subject in self.packages) and (
            component in ("glibc", "machine", "libstdcxx", "accelerator")
            or bool(of)
            or kind == "needs"
        )

    def pairs(self, refusals: Sequence[ManifestRefusal]) -> Iterator[JudgedPair]:
        """Every two parts, and what facts say of them."""
        clashes = {}
        for refusal in refusals:
            if refusal.hard:
                for part in refusal.parts:
                    for other in refusal.parts:
                        clashes[part_key(part), part_key(other)] = refusal.finding.facts
        target = self.targets[0]
        for position, part in enumerate(self.parts):
            for other in self.parts[position + 1 :]:
                # Of several archs each is for a device of its own, and a device is no matter of what is compiled.
                if part.component == other.component or DEVICE in (part.component, other.component):
                    continue
                if "driver" in (part.component, other.component) and not self.is_toolkit(
                    part, other
                ):
                    continue
                facts = clashes.get((part_key(part), part_key(other)))
                if facts is not None:
                    yield JudgedPair(part, other, REFUSED, "", facts, bound=False)
                    continue
                packages = [package for package in (part, other) if self.is_package(package)]
                apart = self.without_facts(part, other) or (
                    len(packages) == 1 and beside_toolkit(self.index, packages[0], part, other)
                )
                if apart:
                    yield apart
                    continue
                method = self.install_method(part, other, target)
                subject = [] if part.component == ARCH else [part]
                request = self.request(subject, target, *method)
                joined = joined_by_releases(self.index, part, other, request)
                yield joined or self.judge_builds(part, other)
        for part in self.parts if self.runtime else ():
            if self.computes(part) and self.is_for_accelerator(part):
                proof = self.runs(part)
                for other in self.runtime:
                    facts = clashes.get((part_key(part), part_key(other)))
                    verdict = proof if facts is None else (REFUSED, "", facts)
                    yield JudgedPair(part, other, *verdict, bound=False)

    def without_facts(self, part: RequestedPart, other: RequestedPart) -> JudgedPair | None:
        """Two parts that facts about releases join, and that may not be there as such; None for any others.

        A tag that no list has may join any two, and a package of conda has another Python and toolkit than a wheel.
        """
        pair = (part, other)
        if part.carried and other.carried and part.item is other.item:
            name = reading.plain(part.item.name)
            known = self.index.scale(BASE).versions if BASE in self.components else ()
            if name in known or any(name == image.name for image in self.images):
                return None
        elif not any(each.item.kind == CONDA and self.is_package(each) for each in pair) or not any(
            each.component in ("python", "cuda") for each in pair
        ):
            return None
        bound = unlisted_of_conda(self.index, part, other)
        return JudgedPair(part, other, UNKNOWN, "", (), bound=bound)

    def runs(self, part: RequestedPart) -> tuple[str, str, tuple[str, ...]]:
        """What facts say of a package on the devices and beside the driver, with their evidence and the facts."""
        wheel = as_wheel(part, self.parts, self.items)
        # Others compile for archs of their own, and without a toolkit conda may have taken a build for the processor.
        known = is_series(part) or (wheel[1:] if part.item.kind == CONDA else wheel)
        elsewhere = part.item.kind in (CONDA, IMAGE) and not known
        unread = part.open or part.item.built or elsewhere
        parts = (*(wheel or (self.installed.get(part.text, part),)), *self.runtime)
        for target in () if unread else self.targets:
            answer = attempt(self.index, self.request(parts, target, WHEEL, self.accelerator))
            if isinstance(answer, Resolution) and answer.known:
                evidence, facts = support(self.index, answer, part.component, *_RUNNING)
                # That it has the archs of a wheel is said by the scripts that build both.
                return FINE, weaker(evidence, "derived") if wheel else evidence, facts
        return UNKNOWN, "", ()

    @staticmethod
    def is_toolkit(*parts: RequestedPart) -> bool:
        """True if one of some parts is a toolkit that an image or the machine has."""
        return any(part.component in ("cuda", "rocm") for part in parts)

    def install_method(
        self, part: RequestedPart, other: RequestedPart, target: str
    ) -> tuple[str, str]:
        """In which way two parts are there together."""
        packages = [package for package in (part, other) if self.is_package(package)]
        question = Question(
            (part, other), (WHEEL if packages else SOURCE,), (self.accelerator, "none")
        )
        return next(self.install_methods(question, target))

    def judge_builds(self, part: RequestedPart, other: RequestedPart) -> JudgedPair:
        """A pair of which no fact about releases speaks: of bound packages the facts about builds may."""
        heads, names = self.index.header["components"], (part.component, other.component)
        bound = all(map(self.is_package, (part, other))) and any(
            second in heads[first]["against"] for first, second in (names, names[::-1])
        )
        if not bound or part.item.built or other.item.built:
            return JudgedPair(part, other, UNKNOWN, "", (), bound=False)
        method = self.install_method(part, other, self.targets[0])
        request = self.request((part, other), self.targets[0], *method)
        return joined_by_builds(self.index, part, other, request)


def _is_about_machine(refusing: Unsatisfiable) -> bool:
    return all(
        any(line.ground and line.ground.component == "machine" for line in core.lines)
        for core in refusing.cores
    )
