"""Judges what a manifest asks for: which of it a hard fact refuses, what facts join, and of what none speaks.

An environment is not one question: a wheel may bring a CUDA of its own beside that of an image, and two may bring two.
So the toolkit is asked about with the code that it makes, and each package that computes on an accelerator by itself,
with those that facts tie to it and all that is on no accelerator. A refusal holds where every machine and accelerator
that the file leaves open refuses it.
"""

from __future__ import annotations

from functools import partial

from toolmatrix.codes.manifests import BuiltBySource, RefusedTogether
from toolmatrix.facts import evidence as words
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import CONDA, IMAGE, PIP
from toolmatrix.request import manifests as reading
from toolmatrix.request.fields import Fields
from toolmatrix.request.judged import (
    FINE,
    REFUSED,
    UNKNOWN,
    JudgedEnvironment,
    JudgedManifest,
    JudgedPair,
    ManifestRefusal,
)
from toolmatrix.request.manifests import ARCH
from toolmatrix.request.read import context, option
from toolmatrix.solve.partners import Way
from toolmatrix.solve.request import Request
from toolmatrix.solve.resolve import Resolution, attempt, resolve
from toolmatrix.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolmatrix.codes.manifests import ManifestFinding
    from toolmatrix.facts.index import Index
    from toolmatrix.finding import Incompatibility
    from toolmatrix.manifests.model import ProjectManifest
    from toolmatrix.request.manifests import AskedPart, AskedParts
    from toolmatrix.solve.grounds import Core
    from toolmatrix.solve.resolve import Unsatisfiable

_WHEEL, _SOURCE = "wheel", "source"
_DERIVED = "derived"


def judge(index: Index, manifest: ProjectManifest, *, paired: bool = True) -> JudgedManifest:
    """Judge all environments of a manifest; unless `paired`, no pairs are told but what is refused."""
    known: dict[tuple[str, ...], JudgedEnvironment] = {}
    found = []
    for asked in manifest.environments:
        parts = reading.parts(index, asked)
        # Many an extra of a project adds nothing that facts are about.
        key = tuple(f"{part.text} {part.item.where}" for part in parts.parts)
        if key not in known:
            known[key] = _environment(index, parts, paired=paired)
        found.append(known[key].replace(name=asked.name, unknown=parts.unknown))
    return JudgedManifest(manifest=manifest, environments=tuple(found))


def _environment(index: Index, parts: AskedParts, *, paired: bool) -> JudgedEnvironment:
    judged = _Environment(index, parts)
    refusals = tuple(judged.refusals())
    return JudgedEnvironment(
        name=parts.name,
        parts=parts.parts,
        unknown=parts.unknown,
        refusals=refusals,
        pairs=tuple(judged.pairs(refusals)) if paired else (),
    )


class Question(NamedTuple):
    """Some parts that have to go together, and the ways in which they may: whether as wheels, and what they run on."""

    parts: tuple[AskedPart, ...]
    ways: tuple[tuple[str, str], ...]


class _Environment:
    def __init__(self, index: Index, parts: AskedParts) -> None:
        self.index = index
        self.components = index.header["components"]
        self.name = parts.name
        self.parts = parts.parts
        self.targets = reading.targets(index, parts)
        own = index.header["targets"][self.targets[0]]["accelerator"]
        # What a target computes on by itself is no more than a default; a file tells it by what it takes.
        self.accelerator = own if own == "rocm" else "cuda"

    def refusals(self) -> Iterator[ManifestRefusal]:
        """What is refused, each reason once: of parts that a fact forbids no lack of a wheel is told besides."""
        found: dict[tuple[str, ...], ManifestRefusal] = {}
        for question in self.questions():
            refused = self.refused(question)
            for core in refused.cores if refused else ():
                told = self.finding(core, question.parts)
                if told is None:
                    continue
                # Of a part of a toolkit the question may ask for more releases than the file does.
                texts = {part.text for part in told[1]}
                held = [part for part in question.parts if part.text in texts]
                request = self.request(held, self.targets[0], *question.ways[0])
                one = ManifestRefusal(finding=told[0], parts=told[1], request=request)
                known = found.get(told[0].asked)
                if known is None or not known.hard:
                    found[told[0].asked] = one
        yield from found.values()

    def questions(self) -> Iterator[Question]:
        """The questions of this environment; those with fewer parts first, so that a reason is told with the fewest."""
        computing = [part for part in self.parts if self.computes(part)]
        tools = tuple(
            part for part in self.parts if not self.is_package(part) and part.component != "python"
        )
        plain = [part for part in self.parts if self.is_package(part) and part not in computing]
        python = [part for part in self.parts if part.component == "python"]
        distro = [part for part in tools if part.component == "distro"]
        if len(tools) > 1:
            yield Question(tools, ((_SOURCE, self.accelerator),))
        yield Question(
            (*plain, *python, *distro), tuple((one, "none") for one in self.froms(plain))
        )
        for part in computing:
            beside = [
                other for other in computing if other is not part and self.joined(part, other)
            ]
            # Where one that goes with it brings a toolkit, that is loaded, and not the one of the image.
            brought = any(self.needs_toolkit(other) is False for other in beside)
            toolkit = self.toolkit() if self.needs_toolkit(part) and not brought else []
            held = (part, *beside, *plain, *python, *distro, *toolkit)
            # Who has a toolkit beside a wheel that needs one wants to compute on it.
            accelerators = (self.accelerator,) if toolkit else (self.accelerator, "none")
            ways = ((from_, one) for from_ in self.froms(held) for one in accelerators)
            yield Question(held, tuple(ways))

    def is_package(self, part: AskedPart) -> bool:
        """True for a package of Python, however it gets there."""
        packaged = (
            part.component in called.packages().values()
            or part.component in self.index.header["packages"].values()
        )
        return packaged and part.component not in reading.TOOLKIT

    def computes(self, part: AskedPart) -> bool:
        return self.is_package(part) and bool(self.components[part.component]["accelerators"])

    def froms(self, parts: Sequence[AskedPart]) -> tuple[str, ...]:
        """Whether packages come as wheels; of what conda or an image brings nobody knows, and either will do."""
        either = any(part.item.kind in (CONDA, IMAGE) and self.is_package(part) for part in parts)
        return (_WHEEL, _SOURCE) if either else (_WHEEL,)

    def needs_toolkit(self, part: AskedPart) -> bool | None:
        """Whether every build that is left of a wheel needs a toolkit beside it; None where nobody knows."""
        variant = reading.variant(self.index, part.component)
        if not variant or part.item.kind != PIP:
            return None
        facts = self.index.component(variant)
        builds = _all(len(facts.versions))
        for ask in part.asks:
            mask = self.index.scale(ask.component).select(ask.selector)
            if ask.component == variant:
                builds &= mask
                continue
            for binding in facts.about(ask.component, builds):
                if not binding.conditions and not binding.allowed & mask:
                    builds &= ~binding.mask
        beside = 0
        for binding in facts.about("cuda", builds):
            cites = self.index.cites(binding.cites)
            if any(self.index.claim(cite.record).beside for cite in cites):
                beside |= binding.mask
            else:
                # pip may take one that brings its own.
                return False
        # Builds for no accelerator need none beside them.
        return True if builds & beside else None

    def toolkit(self) -> list[AskedPart]:
        """The parts of a toolkit that an image has."""
        return [
            self.widened(other)
            for other in self.parts
            if other.component in ("cuda", "cudnn") and not self.is_package(other)
        ]

    def widened(self, part: AskedPart) -> AskedPart:
        """A part of a toolkit with all releases that a library compiled for one of them loads beside."""
        ask = part.asks[0]
        scale = self.index.scale(part.component)
        held = scale.named(scale.select(ask.selector))
        major = held[0].partition(".")[0] if held else ""
        first = called.family(part.component)
        if not major or not first or not scale.select(f">={first}") & scale.select(f"=={held[0]}"):
            return part
        return part.replace(asks=(ask.replace(selector=f"=={major}.*"),))

    def joined(self, one: AskedPart, other: AskedPart) -> bool:
        """True if any fact is about both, or about builds of one and the other."""
        names = [
            {part.component, reading.variant(self.index, part.component)} - {""}
            for part in (one, other)
        ]
        return any(
            group.component in theirs
            for own, theirs in (names, names[::-1])
            for name in own
            for group in self.index.component(name).binding_groups
        )

    def request(
        self, parts: Sequence[AskedPart], target: str, from_: str, accelerator: str
    ) -> Request:
        """The request that parts make on a target."""
        given = context(target, Fields(), self.index)
        for name, value in (("accelerator", accelerator), ("from", from_)):
            given.append(option(name, value, target, implied=True))
        asked = [
            ask.replace(option="distro") if ask.component == "distro" else ask
            for part in parts
            if part.component != ARCH
            for ask in part.asks
        ]
        archs = [part.asks[0].selector for part in parts if part.component == ARCH]
        return Request(
            asks=(*dict.fromkeys(asked), *given),
            targets=(target,),
            archs=tuple(dict.fromkeys(archs)),
        )

    def refused(self, question: Question) -> Unsatisfiable | None:
        """The refusal of a question in the likeliest way, if no way has an answer."""
        if not question.parts:
            return None
        first: Callable[[], Resolution | Unsatisfiable] | None = None
        for target in self.targets:
            for from_, accelerator in question.ways:
                request = self.request(question.parts, target, from_, accelerator)
                if isinstance(attempt(self.index, request), Resolution):
                    return None
                first = first or partial(resolve, self.index, request)
        found = first() if first else None
        return None if isinstance(found, Resolution) else found

    def finding(
        self, core: Core, parts: Sequence[AskedPart]
    ) -> tuple[ManifestFinding, tuple[AskedPart, ...]] | None:
        """The finding that a core makes, and its parts; None where it rests on nothing that the file says."""
        asked = {(ask.component, ask.selector) for ask in core.asks}
        # In the order of the file, in which every question tells the same.
        held = tuple(
            part
            for part in self.parts
            if any(
                (ask.component, ask.selector) in asked
                for one in parts
                if one.text == part.text
                for ask in one.asks
            )
        )
        grounds = tuple(line.ground for line in core.lines if line.ground is not None)
        if core.soft or not held or not grounds or self.unsound(held, grounds):
            return None
        wheels = [
            ground.subject
            for ground in grounds
            if self.about_wheels(ground.subject, ground.kind, ground.component)
        ]
        # An index that nobody read may have wheels of whatever is required besides.
        if wheels and any(part.open for part in held):
            return None
        others = {part.component for part in held if part.item.kind != PIP}
        kind: type[ManifestFinding] = RefusedTogether
        for name in wheels:
            of = self.components[name]["variant_of"] or name
            # Of what comes by conda or in an image no wheel of the index speaks.
            if of in others:
                return None
            if of not in called.wheels_alone():
                kind = BuiltBySource
        facts = tuple(dict.fromkeys(fact for ground in grounds for fact in ground.facts))
        return (
            kind(
                severity="error" if kind is RefusedTogether else "warning",
                component=held[0].component,
                asked=tuple(part.text for part in held),
                places=tuple(part.item.where for part in held),
                environment=self.name,
                grounds=grounds,
                facts=facts,
                where=held[0].item.where,
            ),
            held,
        )

    def unsound(self, held: Sequence[AskedPart], grounds: Sequence[Incompatibility]) -> bool:
        """True if a refusal rests on what the matrix leaves out, or on what a file need not keep to."""
        bare = {part.component for part in held if part.item.bare}
        # What a wheel requires its package of conda need not: that is made by a recipe of its own.
        conda = {part.component for part in held if part.item.kind == CONDA}
        # What something computes on is no more than asked after, unless a toolkit says it.
        tools = any(part.component in reading.TOOLKIT for part in held)
        for ground in grounds:
            about = {ground.subject, ground.component}
            # A file may bring a Python in more ways than facts tell of, and a package by other ways than a wheel of the
            # index.
            if about & {"interpreter", "from"} or ("accelerator" in about and not tools):
                return True
            # That builds of two packages match is derived from their lines, and nothing enforces it.
            if ground.evidence == _DERIVED and self.components[ground.component]["variant_of"]:
                return True
            if (self.components[ground.subject]["variant_of"] or ground.subject) in conda:
                return True
            # The requirements of what is installed without them bind nobody.
            if ground.subject in bare and ground.component not in ("python", "glibc", "machine"):
                return True
        # A machine that nobody named is no reason.
        alone = len(held) == 1 and any(ground.component == "machine" for ground in grounds)
        return alone or any(part.older for part in held)

    def about_wheels(self, subject: str, kind: str, component: str) -> bool:
        """True if a ground tells which wheels there are, and not what a package takes."""
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
        for place, part in enumerate(self.parts):
            ways: dict[str, Way] = {}
            for other in self.parts[place + 1 :]:
                # Of several archs each is for a device of its own.
                if part.component == other.component:
                    continue
                if (part.text, other.text) in clashes:
                    facts = clashes[part.text, other.text]
                    yield JudgedPair(part, other, REFUSED, "", facts)
                    continue
                packaged = self.is_package(part) or self.is_package(other)
                from_ = _WHEEL if packaged else _SOURCE
                if from_ not in ways:
                    held = [] if part.component == ARCH else [part]
                    request = self.request(held, target, from_, self.accelerator)
                    ways[from_] = Way(self.index, request, part.component)
                yield self.pair(part, other, ways[from_])

    def pair(self, part: AskedPart, other: AskedPart, way: Way) -> JudgedPair:
        at = self.index.scale(part.component).select(part.asks[0].selector)
        found = way.at(at).partner(other.component)
        wanted = self.index.scale(other.component).select(other.asks[0].selector)
        speaking = [
            said
            for said in found.facts
            if said.says != REFUSED and said.mask & wanted and said.of & at
        ]
        if not (found.tested | found.allowed) & wanted or not speaking:
            return JudgedPair(part, other, UNKNOWN, "", ())
        best = max((said.evidence for said in speaking), key=words.rank)
        cites = [
            self.index.claim(cite.record).id
            for said in speaking
            if said.evidence == best
            for cite in self.index.cites(said.cites)
            if cite.touches(said.touching)
        ]
        return JudgedPair(part, other, FINE, best, tuple(dict.fromkeys(cites))[:4])


def _all(count: int) -> int:
    return (2 << count) - 2
