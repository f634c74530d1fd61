"""What came of rendering every answer of the recipes: the contract `toolmatrix.renders/1`, and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from toolmatrix.documents import Annotated, Count, HasFrom, MatrixHead, NonEmpty, TypedDict
from toolmatrix.factbase.index import Index
from toolmatrix.report import answer
from toolmatrix.report.terminal import Terminal, blocks, columns, plural
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    RenderCounts = Annotated[
        dict[str, Count],
        "rendered",
        "no-answer",
        "unknown",
        "no-such-release",
        "answered-then-refused",
    ]

SCHEMA = "toolmatrix.renders/1"


class RenderedRecipe(HasFrom):
    """What came of the questions about a recipe."""

    recipe: str
    component: str
    counts: RenderCounts


class RefusedRender(TypedDict):
    """A request that was answered and whose answer makes no image."""

    request: NonEmpty[str]
    reasons: NonEmpty[str]


class RendersDocument(TypedDict):
    """What `toolmatrix check --render` prints: what came of rendering every answer of the recipes, by recipe,
    component and way. `refused` are requests that were answered and whose answer makes no image, each with the
    reasons; there should be none.
    """

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    recipes: list[RenderedRecipe]
    refused: list[RefusedRender]
    summary: RenderCounts


class Row(Value):
    """One question: its words, what came of it how many times, and of what was answered and then refused the reason."""

    recipe: str
    component: str
    from_: str
    words: tuple[str, ...]
    counts: Mapping[str, int]
    refused: tuple[str, ...] = ()


class RenderTable:
    """The questions by recipe, component and way; `outcomes` are the columns, the last one the defect."""

    def __init__(self, index: Index, outcomes: Sequence[str], rows: Sequence[Row]) -> None:
        self.index = index
        self.outcomes = outcomes
        self.rows = rows
        self.counts = self._summed(rows)

    def _summed(self, rows: Iterable[Row]) -> dict[str, int]:
        totals = dict.fromkeys(self.outcomes, 0)
        for row in rows:
            for name, count in row.counts.items():
                totals[name] += count
        return totals

    def _by_recipe(self) -> dict[tuple[str, str, str], list[Row]]:
        groups: dict[tuple[str, str, str], list[Row]] = {}
        for row in self.rows:
            groups.setdefault((row.recipe, row.component, row.from_), []).append(row)
        return groups

    def document(self) -> RendersDocument:
        """Everything as JSON values."""
        return {
            "schema": SCHEMA,
            "matrix": answer.head(self.index),
            "recipes": [
                {
                    "recipe": recipe,
                    "component": component,
                    "from": from_,
                    "counts": self._summed(rows),
                }
                for (recipe, component, from_), rows in self._by_recipe().items()
            ],
            "refused": [
                {"request": list(row.words), "reasons": list(row.refused)}
                for row in self.rows
                if row.refused
            ],
            "summary": self.counts,
        }

    def text(self, screen: Terminal) -> str:
        """The table, what was answered and then refused, and the verdict."""
        table = [("recipe", "of", *(name.replace("-", " ") for name in self.outcomes))]
        for (recipe, component, from_), rows in self._by_recipe().items():
            counts = self._summed(rows).values()
            table.append((recipe, f"{component}, {from_}", *map(str, counts)))
        refused = [
            line
            for row in self.rows
            if row.refused
            for line in (
                f"toolmatrix render {' '.join(row.words)}",
                *(f"  {reason}" for reason in row.refused),
            )
        ]
        count = self.counts[self.outcomes[-1]]
        verdict = screen.style("no", "no") if count else screen.style("yes", "yes")
        renders = plural(sum(self.counts.values()), "render")
        closing = f"{verdict}: of {renders} {count} were answered and then refused"
        return blocks([list(columns(table)), refused, [closing]])
