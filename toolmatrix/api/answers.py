"""Answers to requests: each prints as the command prints it, and is the document that the command writes."""

from __future__ import annotations

from toolmatrix.api import PLAIN, Outcome
from toolmatrix.errors import CannotSay, NothingMatched
from toolmatrix.solve.resolve import Resolution, Unsatisfiable, resolve
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.report.answer import ResolutionDocument
    from toolmatrix.report.cores import CoreEntry
    from toolmatrix.report.explanation import ExplanationDocument
    from toolmatrix.report.refusal import ConflictDocument
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.request.read import RequestContext
    from toolmatrix.solve.repair import Repair
    from toolmatrix.solve.request import Request
    from toolmatrix.solve.support import Choice


class Resolved(Outcome):
    """An answer; one that rests on unknown facts is neither yes nor no."""

    layout = ("depth",)

    def __init__(self, context: RequestContext, resolution: Resolution) -> None:
        self.context = context
        self.resolution = resolution

    @property
    def exit_code(self) -> int:
        """0 where facts support the answer, else 4."""
        return 0 if self.known else CannotSay.exit_code

    @property
    def known(self) -> bool:
        """True where facts support the answer, and not only none forbids it."""
        return self.resolution.known

    @property
    def hint(self) -> str:
        """How it is saved and explained, if facts support it."""
        how = "`toolmatrix lock` saves this answer; `toolmatrix explain NAME` shows why"
        return how if self.known else ""

    @property
    def request(self) -> tuple[str, ...]:
        """The words of the equivalent command."""
        return self.resolution.request.arguments()

    @property
    def evidence(self) -> str:
        """The evidence of the weakest part of the answer."""
        return self.resolution.evidence

    @property
    def targets(self) -> dict[str, dict[str, Choice]]:
        """The choices by target and component; of several codegen archs or devices the first."""
        by_target: dict[str, dict[str, Choice]] = {}
        for target, choices in self.resolution.targets.items():
            by_component = by_target.setdefault(target, {})
            # A component that several archs or devices need is listed once for each of them.
            for choice in choices:
                by_component.setdefault(choice.component, choice)
        return by_target

    @property
    def components(self) -> dict[str, Choice]:
        """The choices by component, on the first target."""
        return next(iter(self.targets.values()))

    def __repr__(self) -> str:
        components = self.components
        wanted = [components[name] for name in self.resolution.request.wanted if name in components]
        chosen = ", ".join(f"{choice.component} {choice.version}" for choice in wanted)
        return f"<{type(self).__name__}: {chosen} on {', '.join(self.targets)}, {self.evidence}>"

    def text(self, screen: Terminal = PLAIN, depth: int | None = None) -> str:
        """The answer as a tree for each target, with its sources."""
        # Each form imports its layout: a caller that needs a version alone pays for none.
        from toolmatrix.report import remarks, tree

        further = remarks.lines(remarks.document(self.context, self.resolution))
        return tree.text(self.context.index, self.resolution, screen, depth=depth, further=further)

    def to_json(self) -> ResolutionDocument:
        """The document `toolmatrix.resolution/1`."""
        from toolmatrix.report import answer, remarks

        further = remarks.document(self.context, self.resolution)
        return {**answer.document(self.context.index, self.resolution), **further}


class Allowed(Resolved):
    """A request that nothing forbids: yes where facts support it, else neither yes nor no."""

    def __init__(self, context: RequestContext, resolution: Resolution) -> None:
        super().__init__(context, resolution)
        # Pairs that were never tested together.
        self.soft = _untested(resolution)

    hint = ""

    def text(self, screen: Terminal = PLAIN, depth: int | None = None) -> str:  # noqa: ARG002 - nothing is derived
        """The sentence that nothing forbids it, and reasons why it is untested."""
        from toolmatrix.report import refusal
        from toolmatrix.report.claims import Notes

        return refusal.allowed_text(self.to_json(), Notes(self.context.index), screen)

    def to_json(self) -> ResolutionDocument:
        """The document `toolmatrix.resolution/1` with `untested`, and `allowed` true or null."""
        document = super().to_json()
        document["untested"] = [*self.soft]
        document["allowed"] = self.known or None
        return document


class Offer(Value):
    """A way out of a refusal that was solved: what it changes, the words of its request, and what these answer."""

    change: str
    command: str
    cost: int
    answer: Resolved


class NoAnswer(Outcome):
    """A refusal: independent reasons, each irreducible, and the nearest requests that have an answer.

    It is no answer at all where releases that the matrix does not know may satisfy the request.
    """

    layout = ("depth",)

    def __init__(
        self, context: RequestContext, refusal: Unsatisfiable, soft: Sequence[CoreEntry] = ()
    ) -> None:
        self.context = context
        self.refusal = refusal
        # Pairs that were never tested together.
        self.soft = soft
        # Repairs take some dozen further solutions: they are computed on demand.
        self._cached_repairs: list[Repair] | None = None

    @property
    def exit_code(self) -> int:
        """1: the answer is no; 4 where only releases that are known were refused."""
        return CannotSay.exit_code if self.refusal.outside else 1

    @property
    def repairs(self) -> tuple[Offer, ...]:
        """Ways out, the cheapest first."""
        from toolmatrix.report import refusal

        index, carried = self.context.index, self.context.carried
        return tuple(
            Offer(
                change=refusal.change_text(index, repair),
                command=refusal.command(repair.request, carried),
                cost=repair.cost,
                answer=Resolved(self.context, repair.resolution),
            )
            for repair in self._repairs()
        )

    def _repairs(self) -> list[Repair]:
        if self._cached_repairs is None:
            from toolmatrix.request.read import offers

            self._cached_repairs = offers(self.context, self.refusal)
        return self._cached_repairs

    def text(self, screen: Terminal = PLAIN, depth: int | None = None) -> str:
        """The reasons, a derivation of each to a depth, and the ways out."""
        from toolmatrix.report import refusal
        from toolmatrix.report.claims import Notes

        # What a repair answers is no part of the text, and takes longest to lay out.
        document = self.to_json(answers=False)
        return refusal.text(document, Notes(self.context.index), screen, depth=depth)

    def to_json(self, *, answers: bool = True) -> ConflictDocument:
        """The document `toolmatrix.conflict/1`, where it is asked for with what the repairs answer."""
        from toolmatrix.report import refusal

        index, carried = self.context.index, self.context.carried
        return refusal.document(
            index, self.refusal, self._repairs(), self.soft, carried=carried, answers=answers
        )


class Explanation(Outcome):
    """Why a component of an answer is at its version, or with `invert` what depends on it."""

    layout = ("depth",)

    def __init__(
        self, context: RequestContext, answer: Resolution, choices: Sequence[Choice], invert: bool
    ) -> None:
        self.context = context
        self.resolution = answer
        self.choices = tuple(choices)
        self.invert = invert

    def text(self, screen: Terminal = PLAIN, depth: int | None = None) -> str:
        """The chain from the component to the request, and what was not taken."""
        from toolmatrix.report import explanation
        from toolmatrix.report.claims import Notes

        return explanation.text(self.to_json(), Notes(self.context.index), screen, depth=depth)

    def to_json(self) -> ExplanationDocument:
        """The document `toolmatrix.explanation/1`."""
        from toolmatrix.report import explanation

        index, choices = self.context.index, self.choices
        return explanation.document(index, self.resolution, choices, invert=self.invert)


def resolve_request(context: RequestContext, request: Request) -> Resolved | NoAnswer:
    """The best answer to a request, or why there is none."""
    answer = resolve(context.index, request)
    if isinstance(answer, Unsatisfiable):
        return NoAnswer(context, answer)
    return Resolved(context, answer)


def check_request(context: RequestContext, request: Request) -> Allowed | NoAnswer:
    """The reasons that forbid a request, hard apart from soft, or the answer that nothing does."""
    answer = resolve(context.index, request)
    if isinstance(answer, Unsatisfiable):
        return NoAnswer(context, answer, _untested(answer))
    return Allowed(context, answer)


def explain_choice(
    context: RequestContext, request: Request, component: str, *, invert: bool = False
) -> Explanation | NoAnswer:
    """Why a component is in the answer to a request. Raises NothingMatched where the answer does not hold it."""
    answer = resolve(context.index, request)
    if isinstance(answer, Unsatisfiable):
        return NoAnswer(context, answer)
    every_choice = [choice for choices in answer.targets.values() for choice in choices]
    choices = [choice for choice in every_choice if choice.component == component]
    if not choices:
        names = ", ".join(dict.fromkeys(choice.component for choice in every_choice))
        raise NothingMatched(
            f"the answer has no {component}",
            expected=f"one of {names}",
            found=f"`{component}`",
            help="`toolmatrix resolve` shows the whole answer",
        )
    return Explanation(context, answer, choices, invert)


def _untested(answer: Resolution | Unsatisfiable) -> Sequence[CoreEntry]:
    from toolmatrix.report import cores
    from toolmatrix.solve import untested

    pairs = untested.untested(answer.index, answer.request)
    return cores.soft_documents(answer.index, answer.request, pairs)
