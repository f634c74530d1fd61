"""The parts of a recipe that hold for an answer, and their texts with the values of that answer.

Raises RecipeError where a text names a value that the answer does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from toolmatrix.errors import Position, RecipeError
from toolmatrix.facts.versions import Scale
from toolmatrix.recipes import fields
from toolmatrix.recipes.model import Part
from toolmatrix.value import Value

if TYPE_CHECKING:
    from toolmatrix.recipes.model import BuildStep

    Answer = Mapping[str, tuple[str, ...]]

P = TypeVar("P", bound=Part)

# Fields without values to fill in: conditions, positions, and words of the schema.
_UNFILLED = ("when", "source", "at", "match", "stage")


class Picker(NamedTuple):
    """One answer: the releases of each component, the schemes they are compared by, and the values of texts."""

    answer: Answer
    schemes: Mapping[str, str]
    values: Mapping[str, str]

    def holds(self, part: Part) -> bool:
        """True if every condition admits one of the releases that the answer has of its component."""
        return all(
            _admits(self.schemes[component], self.answer.get(component, ()), selector)
            for component, selector in part.when
        )

    def fill(self, part: P, **more: str) -> P:
        """The part with values filled in and, inside it, only the parts that hold."""
        return cast("P", self._fill(part, {**self.values, **more}, part.at))

    def all(self, parts: Iterable[P], **more: str) -> tuple[P, ...]:
        """The parts that hold, in their order, with values filled in."""
        return tuple(self.fill(part, **more) for part in parts if self.holds(part))

    def first(self, parts: Iterable[P], **more: str) -> P | None:
        """The first part that holds, with values filled in."""
        # The parts after it stay as they are: they may name values that this answer does not have.
        return next((self.fill(part, **more) for part in parts if self.holds(part)), None)

    def texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Texts outside of any part, with values filled in."""
        return tuple(_fill_text(text, self.values, None) for text in texts)

    def _fill(self, value: Any, values: Mapping[str, str], at: Position | None) -> Any:
        if isinstance(value, str):
            # Most texts name no value.
            return _fill_text(value, values, at) if "{" in value else value
        if isinstance(value, tuple):
            elements = (
                element for element in value if not isinstance(element, Part) or self.holds(element)
            )
            return tuple(self._fill(element, values, at) for element in elements)
        if isinstance(value, Value):
            # Errors point to the innermost part.
            here = value.at if isinstance(value, Part) else at
            changes = {
                field: self._fill(getattr(value, field), values, here)
                for field in value._fields
                if field not in _UNFILLED
            }
            return value.replace(**changes)
        if hasattr(value, "items"):
            return {
                self._fill(name, values, at): self._fill(content, values, at)
                for name, content in value.items()
            }
        return value


def merged_steps(steps: Iterable[BuildStep]) -> tuple[BuildStep, ...]:
    """Steps that do something, each with its variables and those of the settings before it, neighbours joined.

    A setting is a step with variables and no commands: it holds for the next step of its stage that has some. Two
    values of one variable are refused.
    """
    waiting: dict[str, dict[str, str]] = {}
    done: list[BuildStep] = []
    for step in steps:
        settings = waiting.setdefault(step.stage, {})
        for name, text in step.env.items():
            if settings.setdefault(name, text) != text:
                raise RecipeError(
                    f"two steps of {step.stage} set {name}",
                    where=step.at,
                    expected=f"`{settings[name]}`, as before",
                    found=f"`{text}`",
                    help="give the steps mutually exclusive conditions",
                )
        if step.run:
            step = step.replace(env=waiting.pop(step.stage))
            if done and _alike(done[-1], step):
                step = _joined(done.pop(), step)
            done.append(step)
        elif step.packages or step.runtime or step.downloads:
            done.append(step.replace(env={}))
    return tuple(done)


def _alike(step: BuildStep, following: BuildStep) -> bool:
    # Neighbours are one instruction of a Dockerfile unless variables or downloads of one would reach into the other.
    apart = (step.env, following.env, following.downloads)
    same = (step.stage, step.workdir) == (following.stage, following.workdir)
    return bool(step.run) and same and not any(apart)


def _joined(step: BuildStep, following: BuildStep) -> BuildStep:
    return step.replace(
        name=f"{step.name}, {following.name}",
        run=step.run + following.run,
        packages=step.packages + following.packages,
        runtime=step.runtime + following.runtime,
    )


# Many parts have the same conditions.
@lru_cache(maxsize=4096)
def _admits(scheme: str, versions: tuple[str, ...], selector: str) -> bool:
    scale = Scale(scheme, versions)
    # Where the answer has no release of the component there is bit 0 alone, by which it is absent.
    return bool(scale.select(selector) & (scale.everything or 1))


def _fill_text(text: str, values: Mapping[str, str], at: Position | None) -> str:
    try:
        return fields.fill(text, values)
    except KeyError as error:
        raise RecipeError(
            f"the answer has no {error.args[0]}",
            where=at,
            expected=f"a `when:` that asks for {error.args[0]}, or an answer that has it",
            found=f"`{text}`",
        ) from None
