"""Judges what a manifest asks for: which of it a hard fact refuses, what facts join, and of what none speaks.

An environment is not one question: a wheel may bring a CUDA of its own beside that of an image, and two may bring two.
So the toolkit is asked about with the code that it makes, and each package that computes on an accelerator by itself,
with those that facts tie to it and all that is on no accelerator. A refusal holds where every machine and accelerator
that the file leaves open refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolmatrix.codes.manifests import (
    BuiltBySource,
    ManifestFinding,
    NoSuchRelease,
    RefusedTogether,
)
from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import Binding, ClaimRecord
from toolmatrix.finding import Incompatibility
from toolmatrix.judging.effects import effects
from toolmatrix.judging.installs import Installation
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import CONDA, IMAGE, PIP, Item, ProjectManifest
from toolmatrix.request import manifests as reading
from toolmatrix.request.fields import Fields
from toolmatrix.request.judgement import (
    ARCH,
    FINE,
    REFUSED,
    UNKNOWN,
    JudgedEnvironment,
    JudgedManifest,
    JudgedPair,
    ManifestRefusal,
    RequestedPart,
    RequestedParts,
    builds,
    older,
    requirements_of,
    wheel_accelerators,
)
from toolmatrix.request.read import context, option
from toolmatrix.solve.grounds import Core
from toolmatrix.solve.pairs import RequestFacts
from toolmatrix.solve.request import Request
from toolmatrix.solve.resolve import Resolution, Unsatisfiable, attempt, resolve
from toolmatrix.value import NamedTuple

_WHEEL, _SOURCE = "wheel", "source"
_DERIVED = "derived"
# The kinds of files whose packages are mostly installed from a lock beside them.
_LOCKED = frozenset(("pyproject",))
# What a wheel may load that it does not bring.
_TOOLKIT = frozenset(("cuda", "cudnn"))


def judge(index: Index, manifest: ProjectManifest, *, paired: bool = True) -> JudgedManifest:
    """Judge all environments of a manifest; unless `paired`, pairs without a refusal are left out."""
    known: dict[tuple[str, ...], JudgedEnvironment] = {}
    environments = []
    for environment in manifest.environments:
        parts = reading.requested_parts(index, environment)
        # Many an extra of a project adds nothing that facts are about.
        lacking = (release.part for release in parts.missing)
        key = tuple(f"{part.text} {part.item.where}" for part in (*parts.parts, *lacking))
        if key not in known:
            items = () if manifest.kind in _LOCKED else environment.items
            known[key] = _environment(index, parts, items, paired=paired)
        environments.append(known[key].replace(name=environment.name, unknown=parts.unknown))
    return JudgedManifest(manifest=manifest, environments=tuple(environments))


def _environment(
    index: Index, parts: RequestedParts, items: Sequence[Item], *, paired: bool
) -> JudgedEnvironment:
    environment = _Environment(index, parts)
    refusals = environment.after_installs(items, parts, [*environment.refusals()])
    return JudgedEnvironment(
        name=parts.name,
        parts=parts.parts,
        unknown=parts.unknown,
        refusals=refusals,
        pairs=tuple(environment.pairs(refusals)) if paired else (),
    )


class Question(NamedTuple):
    """Some parts that have to go together, whether as wheels, and what they run on unless their builds say it."""

    parts: tuple[RequestedPart, ...]
    froms: tuple[str, ...]
    accelerators: tuple[str, ...]


class _Environment:
    def __init__(self, index: Index, parts: RequestedParts) -> None:
        self.index = index
        self.components = index.header["components"]
        self.name = parts.name
        self.parts = parts.parts
        self.machine = parts.machine
        self.missing = parts.missing
        self.targets = reading.targets(index, parts)
        own = index.header["targets"][self.targets[0]]["accelerator"]
        # The accelerator of a target is only a default; a file chooses it by what it installs.
        self.accelerator = own if own == "rocm" else "cuda"

    def refusals(self) -> Iterator[ManifestRefusal]:
        """What is refused, each reason once: a missing wheel is not reported for parts that a fact forbids."""
        refusals = {
            refusal.finding.asked: refusal
            for refusal in (*self.missing_releases(), *self.contradictions())
        }
        for question in self.questions():
            refused = self.find_refusal(question)
            for core in refused.cores if refused else ():
                finding, refused_parts = self.finding(core, question.parts)
                known = refusals.get(finding.asked) if finding else None
                if finding is None or (known and known.hard):
                    continue
                # Of a part of a toolkit the question may ask for more releases than the file does.
                texts = {part.text for part in refused_parts}
                parts = [part for part in question.parts if part.text in texts]
                method = next(self.install_methods(question, self.targets[0]))
                request = self.request(parts, self.targets[0], *method)
                refusals[finding.asked] = ManifestRefusal(
                    finding=finding, parts=refused_parts, request=request
                )
        yield from refusals.values()

    def after_installs(
        self, items: Sequence[Item], parts: RequestedParts, refusals: Sequence[ManifestRefusal]
    ) -> tuple[ManifestRefusal, ...]:
        """Refusals with what commands do in their order: a later one may replace what it does not go with."""
        target = self.targets[0]
        machine = self.index.header["targets"][target]["context"]["machine"]
        run = Installation(self.index, items, parts, machine)
        left = [refusal for refusal in refusals if not run.resolves(refusal.parts)]
        names = [frozenset(part.component for part in refusal.parts) for refusal in left]
        for finding, concerned, instead in effects(run, names):
            request = self.request(concerned, target, _WHEEL, self.accelerator)
            if instead and instead in names:
                # Its way out is that of the conflict.
                request = left.pop(names.index(instead)).request
                names.remove(instead)
            finding = finding.replace(environment=self.name)
            left.append(ManifestRefusal(finding=finding, parts=concerned, request=request))
            names.append(frozenset())
        return tuple(left)

    def missing_releases(self) -> Iterator[ManifestRefusal]:
        """Releases that the index does not have."""
        for missing in self.missing:
            finding = NoSuchRelease(
                severity="error",
                component=missing.part.component,
                asked=(missing.part.text,),
                positions=(missing.part.item.where,),
                environment=self.name,
                where=missing.part.item.where,
                package=missing.package,
                release=missing.release,
                near=missing.near,
                read=missing.read,
            )
            request = self.request((), self.targets[0], _WHEEL, "none")
            yield ManifestRefusal(finding=finding, parts=(missing.part,), request=request)

    def contradictions(self) -> Iterator[ManifestRefusal]:
        """Lines about one component that hold together and leave no release of it; the last stays for the rest."""
        by_component: dict[str, list[RequestedPart]] = {}
        for part in self.parts:
            if part.component != ARCH:
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

    def questions(self) -> Iterator[Question]:
        """The questions of this environment; those with fewer parts first, so that a reason has the fewest."""
        computing = [part for part in self.parts if self.computes(part)]
        tools = tuple(
            part for part in self.parts if not self.is_package(part) and part.component != "python"
        )
        packages = [part for part in self.parts if self.is_package(part)]
        plain = [part for part in packages if part not in computing]
        python = [part for part in self.parts if part.component == "python"]
        distro = [part for part in tools if part.component == "distro"]
        if len(tools) > 1:
            yield Question(tools, (_SOURCE,), (self.accelerator,))
        # On the CPU alone, where the toolkits of two packages cannot clash.
        yield Question((*packages, *python, *distro), self.froms(packages), ("none",))
        for part in computing:
            beside = [
                other for other in computing if other is not part and self.share_facts(part, other)
            ]
            # Where one that goes with it brings a toolkit, that is loaded, and not the one of the image.
            brings_toolkit = any(needs_toolkit(self.index, other) is False for other in beside)
            loads = loads_toolkit(self.index, part) and not brings_toolkit
            toolkit = self.toolkit() if loads else []
            parts = (part, *beside, *plain, *python, *distro, *toolkit)
            # Who has a toolkit beside a wheel that needs one wants to compute on it.
            accelerators = (self.accelerator,) if toolkit else (self.accelerator, "none")
            yield Question(parts, self.froms(parts), accelerators)

    def install_methods(self, question: Question, target: str) -> Iterator[tuple[str, str]]:
        """Whether wheels or not, and on what: pip takes a build for CUDA wherever the index has that alone."""
        machine = self.index.header["targets"][target]["context"]["machine"]
        left = question.accelerators
        for part in question.parts:
            built_for = wheel_accelerators(self.index, part, machine)
            left = tuple(name for name in left if name in built_for or not built_for)
        # What was built for one, beside what was built for another, runs on the processor at most.
        for from_ in question.froms:
            for accelerator in left or ("none",):
                yield from_, accelerator

    def is_package(self, part: RequestedPart) -> bool:
        """True for a package of Python, however it gets there."""
        packaged = (
            part.component in called.packages().values()
            or part.component in self.index.header["packages"].values()
        )
        return packaged and part.component not in reading.TOOLKIT

    def computes(self, part: RequestedPart) -> bool:
        return self.is_package(part) and bool(self.components[part.component]["accelerators"])

    def froms(self, parts: Sequence[RequestedPart]) -> tuple[str, ...]:
        """Whether packages come as wheels; for what conda or an image brings that is unknown, and either will do."""
        either = any(
            (part.item.built or part.item.kind in (CONDA, IMAGE)) and self.is_package(part)
            for part in parts
        )
        return (_WHEEL, _SOURCE) if either else (_WHEEL,)

    def toolkit(self) -> list[RequestedPart]:
        """The parts of a toolkit that an image has."""
        return [
            self.widen(other)
            for other in self.parts
            if other.component in _TOOLKIT and not self.is_package(other)
        ]

    def widen(self, part: RequestedPart) -> RequestedPart:
        """A part of a toolkit with all releases that a library compiled for one of them loads beside."""
        ask = part.asks[0]
        scale = self.index.scale(part.component)
        releases = scale.named(scale.select(ask.selector))
        major = releases[0].partition(".")[0] if releases else ""
        first = called.family(part.component)
        if not major or not first:
            return part
        if not scale.select(f">={first}") & scale.select(f"=={releases[0]}"):
            return part
        return part.replace(asks=(ask.replace(selector=f"=={major}.*"),))

    def share_facts(self, first: RequestedPart, second: RequestedPart) -> bool:
        """True if any fact is about both, or about builds of one and the other."""
        names = [self.index.with_builds(part.component) for part in (first, second)]
        return any(
            group.component in theirs
            for own, theirs in (names, names[::-1])
            for name in own
            for group in self.index.component(name).binding_groups
        )

    def request(
        self, parts: Sequence[RequestedPart], target: str, from_: str, accelerator: str
    ) -> Request:
        """The request that parts make on a target."""
        options = context(target, Fields(), self.index)
        for name, value in (("accelerator", accelerator), ("from", from_)):
            options.append(option(name, value, target, implied=True))
        asks = [
            ask.replace(option="distro") if ask.component == "distro" else ask
            for part in parts
            if part.component != ARCH
            for ask in part.asks
        ]
        archs = [part.asks[0].selector for part in parts if part.component == ARCH]
        return Request(
            asks=(*dict.fromkeys(asks), *options),
            targets=(target,),
            archs=tuple(dict.fromkeys(archs)),
        )

    def find_refusal(self, question: Question) -> Unsatisfiable | None:
        """The refusal of a question in the likeliest way, if no way has an answer."""
        if not question.parts:
            return None
        first: Unsatisfiable | None = None
        for target in self.targets:
            for from_, accelerator in self.install_methods(question, target):
                request = self.request(question.parts, target, from_, accelerator)
                if isinstance(attempt(self.index, request), Resolution):
                    return None
                if first is None:
                    resolution = resolve(self.index, request)
                    first = None if isinstance(resolution, Resolution) else resolution
            # Without a named machine the likeliest counts, as for markers, unless there is nothing for it.
            lines = [line for core in first.cores for line in core.lines] if first else []
            if first and not any(
                line.ground and line.ground.component == "machine" for line in lines
            ):
                break
        # Releases before those that are known may do.
        return None if first and first.outside else first

    def finding(
        self, core: Core, parts: Sequence[RequestedPart]
    ) -> tuple[ManifestFinding | None, tuple[RequestedPart, ...]]:
        """The finding that a core makes, None where it rests on nothing in the file, and its parts."""
        asks = {(ask.component, ask.selector) for ask in core.asks}
        # In the order of the file, so that every question reports the same.
        involved = tuple(
            part
            for part in self.parts
            if any(
                (ask.component, ask.selector) in asks
                for candidate in parts
                if candidate.text == part.text
                for ask in candidate.asks
            )
        )
        grounds = tuple(line.ground for line in core.lines if line.ground is not None)
        if core.soft or not involved or not grounds or self.is_unsound(involved, grounds):
            return None, ()
        manifests = [
            ground.subject
            for ground in grounds
            if self.about_wheels(ground.subject, ground.kind, ground.component)
        ]
        # An unread index may have wheels for anything that is required, and what is compiled needs none.
        if manifests and any(part.open or part.item.built for part in involved):
            return None, ()
        others = {part.component for part in involved if part.item.kind != PIP}
        kind: type[ManifestFinding] = RefusedTogether
        for name in manifests:
            of = self.components[name]["variant_of"] or name
            # Of what comes by conda or in an image no wheel of the index speaks.
            if of in others:
                return None, ()
            if of not in called.wheels_alone():
                kind = BuiltBySource
        return self.build_finding(kind, involved, grounds), involved

    def build_finding(
        self,
        kind: type[ManifestFinding],
        parts: tuple[RequestedPart, ...],
        grounds: tuple[Incompatibility, ...],
    ) -> ManifestFinding:
        """A finding about some parts."""
        return kind(
            severity="error" if kind is RefusedTogether else "warning",
            component=parts[0].component,
            asked=tuple(part.text for part in parts),
            positions=tuple(part.item.where for part in parts),
            environment=self.name,
            grounds=grounds,
            facts=tuple(dict.fromkeys(fact for ground in grounds for fact in ground.facts)),
            where=parts[0].item.where,
        )

    def is_unsound(
        self, parts: Sequence[RequestedPart], grounds: Sequence[Incompatibility]
    ) -> bool:
        """True if a refusal rests on what the matrix leaves out, or on what a file need not keep to."""
        bare = {part.component for part in parts if part.item.bare}
        overridden = {part.component for part in parts if part.item.overrides}
        # What a wheel requires its package of conda need not: that is made by a recipe of its own.
        conda = {part.component for part in parts if part.item.kind == CONDA}
        # What something computes on is no more than asked after, unless a toolkit says it.
        tools = any(part.component in reading.TOOLKIT for part in parts)
        for ground in grounds:
            about = {ground.subject, ground.component}
            # A file may bring a Python in more ways than facts know, and a package by other ways than a wheel of the
            # index.
            if about & {"interpreter", "from"} or ("accelerator" in about and not tools):
                return True
            # That builds of two packages match is read off their lines, and nothing enforces it.
            of = self.components[ground.component]["variant_of"]
            builds_of = self.components[ground.subject]["variant_of"]
            if of and (ground.evidence == _DERIVED or builds_of not in ("", of)):
                return True
            if (self.components[ground.subject]["variant_of"] or ground.subject) in conda:
                return True
            # Whatever others require of it, an override says what is taken.
            if ground.component in overridden:
                return True
            # Requirements that are ignored by the installation do not count.
            if ground.subject in bare and ground.component not in ("python", "glibc", "machine"):
                return True
        # A machine that the file does not name is no reason.
        alone = (
            len(parts) == 1
            and not self.machine
            and any(ground.component == "machine" for ground in grounds)
        )
        return alone or any(self.may_be_older(part, grounds) for part in parts if part.older)

    def may_be_older(self, part: RequestedPart, grounds: Sequence[Incompatibility]) -> bool:
        """True where a release before those that are known may do for all that is required of a part."""
        selectors = [
            claim.selector
            for ground in grounds
            if ground.component == part.component and ground.kind == "requires"
            for claim in map(self.index.find, ground.facts)
            if isinstance(claim, ClaimRecord)
        ]
        own = part.asks[0].selector
        return not selectors or any(
            older(self.index, part.component, own, selector) for selector in selectors
        )

    def about_wheels(self, subject: str, kind: str, component: str) -> bool:
        """True if a ground is about which wheels exist, and not about what a package requires."""
        if component == "python":
            # What is declared for a Python limits it, and what there is a wheel for requires it.
            return kind == "requires"
        of = self.components[subject]["variant_of"]
        return (
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
                        clashes[part.text, other.text] = refusal.finding.facts
        target = self.targets[0]
        for position, part in enumerate(self.parts):
            facts_by_method: dict[tuple[str, str], RequestFacts] = {}
            for other in self.parts[position + 1 :]:
                # Of several archs each is for a device of its own.
                if part.component == other.component:
                    continue
                if (part.text, other.text) in clashes:
                    facts = clashes[part.text, other.text]
                    yield JudgedPair(part, other, REFUSED, "", facts)
                    continue
                apart = self.independent_pair(part, other)
                if apart:
                    yield apart
                    continue
                method = self.install_method(part, other, target)
                if method not in facts_by_method:
                    parts = [] if part.component == ARCH else [part]
                    facts_by_method[method] = RequestFacts(
                        self.index, self.request(parts, target, *method), part.component
                    )
                yield self.judge_pair(part, other, facts_by_method[method])

    def install_method(
        self, part: RequestedPart, other: RequestedPart, target: str
    ) -> tuple[str, str]:
        """In which way two parts are there together."""
        packages = [package for package in (part, other) if self.is_package(package)]
        question = Question(
            (part, other), (_WHEEL if packages else _SOURCE,), (self.accelerator, "none")
        )
        return next(self.install_methods(question, target))

    def independent_pair(self, part: RequestedPart, other: RequestedPart) -> JudgedPair | None:
        """A wheel beside the toolkit of an image that it does not load: one that brings its own, or uses none."""
        packages = [package for package in (part, other) if self.is_package(package)]
        if len(packages) != 1 or not _TOOLKIT & {part.component, other.component}:
            return None
        known = bool(builds(self.index, packages[0])[1])
        if not known or loads_toolkit(self.index, packages[0]):
            return None
        proof = without_loaded_toolkit(self.index, packages[0])
        return JudgedPair(part, other, FINE if proof else UNKNOWN, *(proof or ("", ())))

    def judge_pair(
        self, part: RequestedPart, other: RequestedPart, facts: RequestFacts
    ) -> JudgedPair:
        at = self.index.scale(part.component).select(part.asks[0].selector)
        partner = facts.at(at).partner(other.component)
        wanted = self.index.scale(other.component).select(other.asks[0].selector)
        speaking = [
            fact
            for fact in partner.facts
            if fact.says != REFUSED and fact.mask & wanted and fact.of & at
        ]
        if not (partner.tested | partner.allowed) & wanted or not speaking:
            return JudgedPair(part, other, UNKNOWN, "", ())
        best = max((fact.evidence for fact in speaking), key=words.rank)
        cites = [
            self.index.claim(cite.record).id
            for fact in speaking
            if fact.evidence == best
            for cite in self.index.cites(fact.cites)
            if cite.touches(fact.touching)
        ]
        return JudgedPair(part, other, FINE, best, tuple(dict.fromkeys(cites))[:4])


def needs_toolkit(index: Index, part: RequestedPart) -> bool | None:
    """Whether every build that is left of a wheel needs a toolkit beside it; None where that is unknown."""
    name, left = builds(index, part)
    beside = 0
    for binding in index.component(name).about("cuda", left) if left else ():
        if not _beside(index, binding):
            # pip may take one that brings its own.
            return False
        beside |= binding.mask
    # Builds for no accelerator need none beside them.
    return True if left & beside else None


def loads_toolkit(index: Index, part: RequestedPart) -> bool:
    """True for a wheel that needs a toolkit beside it, and requires no other that brings one."""
    if not needs_toolkit(index, part):
        return False
    variants = (index.builds_of(name) for name in requirements_of(index, part))
    return not any(index.component(name).brings for name in variants if name)


def without_loaded_toolkit(index: Index, part: RequestedPart) -> tuple[str, tuple[str, ...]] | None:
    """The evidence, and the facts, by which no build that is left of a wheel loads a toolkit beside it.

    They bring their own, or use none; None where that is unknown of one of them.
    """
    name, left = builds(index, part)
    bindings = list(_without_toolkit(index, name, left)) if left else []
    for binding in bindings:
        left &= ~binding.mask
    if left or not bindings:
        return None
    cites = (cite for binding in bindings for cite in index.cites(binding.cites))
    claims = (index.claim(cite.record).id for cite in cites)
    best = max((binding.evidence for binding in bindings), key=words.rank)
    return best, tuple(dict.fromkeys(claims))[:4]


def _without_toolkit(index: Index, name: str, left: int) -> Iterator[Binding]:
    facts, none = index.component(name), index.scale("accelerator").bit("none")
    for binding in facts.about("cuda", left):
        if not _beside(index, binding):
            left &= ~binding.mask
            yield binding
    for binding in facts.about("accelerator", left):
        if binding.allowed & ~1 == none:
            yield binding


def _beside(index: Index, binding: Binding) -> bool:
    return any(index.claim(cite.record).beside for cite in index.cites(binding.cites))
