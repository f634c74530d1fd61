"""What recipes make of every answer that they ask for: rendered, or answered and then refused, which is a defect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolmatrix.api import Report
from toolmatrix.api.caller import caller
from toolmatrix.documents import Annotated, Count, HasFrom, MatrixHead, NonEmpty, TypedDict
from toolmatrix.errors import CannotSay, NothingMatched, ToolmatrixError
from toolmatrix.factbase.index import Index
from toolmatrix.judging.pool import IndexedWork
from toolmatrix.report import answer
from toolmatrix.report.terminal import Terminal, blocks, columns, plural
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolmatrix.api.checks import Workers
    from toolmatrix.api.files import RenderOptions
    from toolmatrix.lockfile.model import Lock
    from toolmatrix.recipes.model import Recipe

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


RENDERED, NO_ANSWER, UNKNOWN, NO_RELEASE, REFUSED = OUTCOMES = (
    "rendered",
    "no-answer",
    "unknown",
    "no-such-release",
    "answered-then-refused",
)
"""What comes of a question: files, no answer, one that no fact decides, no such release, an answer of no use."""

# Questions per batch for a process: some seconds of work.
BATCH_SIZE = 24


class RenderQuestion(Value):
    """One question: a recipe, a release, where it comes from, the target, and archs."""

    recipe: str
    component: str
    release: str
    from_: str
    target: str
    archs: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the request."""
        words = [f"{self.component}=={self.release}", f"--from={self.from_}"]
        words += [f"--target={self.target}", f"--recipe={self.recipe}"]
        return (*words, *([f"--arch={','.join(self.archs)}"] if self.archs else ()))


class RenderOutcome(Value):
    """What came of a question in each dialect and with each option of the recipe, and of what is refused the reason."""

    question: RenderQuestion
    counts: tuple[tuple[str, int], ...]
    refused: tuple[str, ...] = ()


class RenderTable:
    """The questions by recipe, component and way; the outcomes are the columns, the last one the defect."""

    def __init__(self, index: Index, rows: Sequence[RenderOutcome]) -> None:
        self.index = index
        self.rows = rows
        self.counts = self._summed(rows)

    def _summed(self, rows: Iterable[RenderOutcome]) -> dict[str, int]:
        totals = dict.fromkeys(OUTCOMES, 0)
        for row in rows:
            for name, count in row.counts:
                totals[name] += count
        return totals

    def _by_recipe(self) -> dict[tuple[str, str, str], list[RenderOutcome]]:
        groups: dict[tuple[str, str, str], list[RenderOutcome]] = {}
        for row in self.rows:
            question = row.question
            key = (question.recipe, question.component, question.from_)
            groups.setdefault(key, []).append(row)
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
                {"request": list(row.question.words), "reasons": list(row.refused)}
                for row in self.rows
                if row.refused
            ],
            "summary": self.counts,
        }

    def text(self, screen: Terminal) -> str:
        """The table, what was answered and then refused, and the verdict."""
        table = [("recipe", "of", *(name.replace("-", " ") for name in OUTCOMES))]
        for (recipe, component, from_), rows in self._by_recipe().items():
            counts = self._summed(rows).values()
            table.append((recipe, f"{component}, {from_}", *map(str, counts)))
        refused = [
            line
            for row in self.rows
            if row.refused
            for line in (
                f"toolmatrix render {' '.join(row.question.words)}",
                *(f"  {reason}" for reason in row.refused),
            )
        ]
        count = self.counts[REFUSED]
        verdict = screen.style("no", "no") if count else screen.style("yes", "yes")
        renders = plural(sum(self.counts.values()), "render")
        closing = f"{verdict}: of {renders} {count} were answered and then refused"
        return blocks([list(columns(table)), refused, [closing]])


def questions(
    index: Index, archs: Sequence[str] = (), only: Sequence[str] = ()
) -> list[RenderQuestion]:
    """Of everything that a recipe can be asked for, the newest release of each minor series, on every target.

    Of what comes as a wheel it is every release.

    Raises RecipeError for a recipe of `only` that nobody knows.
    """
    from toolmatrix.recipes import read

    selected: list[RenderQuestion] = []
    for name in only or read.names():
        recipe = read.recipe(name, index)
        for component in _subjects(recipe, index):
            for from_ in _froms(index, recipe, component):
                for release in _releases(index, component, from_):
                    selected += _placed(index, recipe, (component, release, from_), archs)
    return selected


def _froms(index: Index, recipe: Recipe, component: str) -> Sequence[str]:
    # What a recipe builds comes from source; for tools alone a wheel makes no difference.
    if recipe.runs:
        return ("wheel",)
    wheels = index.header["components"][component]["framework"] and not recipe.builds
    return ("source", "wheel") if wheels else ("source",)


def _subjects(recipe: Recipe, index: Index) -> Sequence[str]:
    """What a recipe builds, else the toolkits it needs, else the components of its provisions."""
    from toolmatrix.request import recipes

    if recipe.builds:
        return recipe.builds
    components = index.header["components"]
    toolkits = [name for name in recipe.needs if components[name]["accelerators"]]
    if toolkits:
        return toolkits
    book = recipes.provisions(index)
    # A recipe that only runs things is tried with its own packages.
    provisions = (*recipe.provisions, *(() if recipe.runs else book.provisions))
    provided = (
        provision.component
        for provision in provisions
        if provision.packages or provision.pip or provision.downloads
    )
    # Hidden components cannot be requested.
    return [name for name in dict.fromkeys(provided) if not components[name]["hidden"]]


def _releases(index: Index, component: str, from_: str) -> list[str]:
    facts = index.component(component)
    # Each release has builds of its own, under names of their own.
    if from_ == "wheel" or index.header["components"][component]["scheme"] == "names":
        return list(facts.versions)
    releases = [
        name for position, name in enumerate(facts.versions) if not facts.yanked >> position + 1 & 1
    ]
    # The last of a series stays: releases come oldest first.
    return list({".".join(name.split(".")[:2]): name for name in releases}.values())


def _placed(
    index: Index, recipe: Recipe, subject: tuple[str, str, str], archs: Sequence[str]
) -> Iterator[RenderQuestion]:
    component, release, from_ = subject
    for target, header in index.header["targets"].items():
        own = tuple(arch for arch in archs if _fits(index, arch, header["accelerator"]))
        for beside in ((), own) if own else ((),):
            yield RenderQuestion(
                recipe=recipe.name,
                component=component,
                release=release,
                from_=from_,
                target=target,
                archs=beside,
            )


def _fits(index: Index, arch: str, accelerator: str) -> bool:
    # Its accelerator is that of the toolkit that compiles for it.
    bit, components = index.scale("arch").bit(arch), index.header["components"]
    return any(
        accelerator in components[binding.component]["accelerators"]
        for binding in index.component("arch").bindings
        if binding.kind == "requires" and binding.mask & bit
    )


def table(
    index: Index, questions: Sequence[RenderQuestion], workers: Callable[..., Workers]
) -> Report:
    """The table of outcomes of questions, which workers answer."""
    batches = [
        list(questions[start : start + BATCH_SIZE])
        for start in range(0, len(questions), BATCH_SIZE)
    ]
    outcomes: list[RenderOutcome] = []
    with (
        caller().progress("rendering", "answers") as progress,
        workers(Renderer(index=index), batches) as shared,
    ):
        for batch in shared.results():
            outcomes += batch
            progress.at(len(outcomes), len(questions))
    render_table = RenderTable(index, outcomes)
    return Report(
        words=render_table.text,
        document=render_table.document,
        exit_code=int(bool(render_table.counts[REFUSED])),
    )


class Renderer(IndexedWork):
    """Answers and renders batches of questions."""

    def attempt(self, batch: Sequence[RenderQuestion]) -> list[RenderOutcome]:
        """The outcomes of some questions."""
        return [outcome(self.index, question) for question in batch]


def outcome(index: Index, question: RenderQuestion) -> RenderOutcome:
    """What comes of one question: solved once, and rendered in each dialect and with each option of the recipe."""
    from toolmatrix.api import files, locks
    from toolmatrix.lockfile.model import DEFAULT
    from toolmatrix.recipes.model import OPTION_EXAMPLES
    from toolmatrix.rendering import dockerfile
    from toolmatrix.rendering.make import offered_options
    from toolmatrix.request import recipes
    from toolmatrix.request.fields import Fields, parse_arguments
    from toolmatrix.request.read import read

    recipe = recipes.recipe(question.recipe, index)
    takes = {option.name: option.takes for option in recipe.options if not option.because}
    forms = [
        files.RenderOptions(recipe=recipe.name, dialect=dialect) for dialect in dockerfile.DIALECTS
    ]
    options = {
        name: files.RenderOptions(
            recipe=recipe.name, option=(f"{name}={OPTION_EXAMPLES[kind]}" if kind else name,)
        )
        for name, kind in takes.items()
    }

    def same_outcome(name: str) -> RenderOutcome:
        return RenderOutcome(question=question, counts=((name, len(forms) + len(options)),))

    try:
        request = read(index, Fields(**parse_arguments(question.words)))
        wanted = locks.LockRequest(request=request, words=question.words)
        lock = locks.solve(index, {DEFAULT: wanted})
    except locks.Unsolved:
        return same_outcome(NO_ANSWER)
    except CannotSay:
        return same_outcome(UNKNOWN)
    except NothingMatched:
        return same_outcome(NO_RELEASE)
    # What a release has no option of is refused for that.
    offered = offered_options(lock, files.rules(index, forms[0]))
    forms += [form for name, form in options.items() if name in offered]
    refused = [why for form in forms if (why := _refusal(index, lock, form))]
    counts = {RENDERED: len(forms) - len(refused), REFUSED: len(refused)}
    return RenderOutcome(
        question=question,
        counts=tuple((name, count) for name, count in counts.items() if count),
        refused=tuple(dict.fromkeys(refused)),
    )


def _refusal(index: Index, lock: Lock, form: RenderOptions) -> str:
    from toolmatrix.api import files

    try:
        files.render_lock(lock, form, files.rules(index, form))
    except ToolmatrixError as error:
        return f"{error}: {error.found}" if error.found else str(error)
    return ""
