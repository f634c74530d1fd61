"""What a recipe asks of an answer: the components that it needs, and its rules and those of provisions as stipulations.

Raises RecipeError for a recipe that is missing or cannot be read.
"""

from __future__ import annotations

import os.path
from functools import lru_cache

from toolmatrix import resources
from toolmatrix.recipes import read
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.solve.request import Stipulation
from toolmatrix.wording import listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.recipes.model import Book, Part, Provision, Recipe

    When = tuple[tuple[str, str], ...]

TOOLS, WHEELS = "toolchain", "wheel"
"""The recipes that are taken where none is named: of tools, and of what comes as wheels."""

# So many ways are told; of more there is a count.
_MOST = 4


def needs(recipe: Recipe) -> tuple[str, ...]:
    """The components that an answer must hold to be made an image of."""
    # No recipe has to say that it starts from an image and installs packages.
    # Of several that it builds it is left to who asks.
    only = recipe.builds if len(recipe.builds) == 1 else ()
    return tuple(dict.fromkeys(("base-image", "distro", *only, *recipe.needs)))


def stipulations(recipe: Recipe, index: Index) -> tuple[Stipulation, ...]:
    """The conditions under which an answer can be made an image of."""
    book = provisions(index)
    own = tuple(_of_recipe(recipe))
    return (*own, _packaged(recipe, book), *_brought(recipe, book, index))


def recipe(name: str, index: Index) -> Recipe:
    """The recipe of a name, of a component, or in a file."""
    if not read.is_path(name):
        return _built_in(name, index)
    return read.recipe(name, index)


def by_default(from_: Iterable[str], asked: Iterable[str], index: Index) -> str:
    """The name of the recipe where none is named: of wheels, unless it refuses something asked for."""
    if {*from_} != {"wheel"}:
        return TOOLS
    refused = {name for part in recipe(WHEELS, index).refuses for name, _ in part.when}
    return TOOLS if refused & {*asked} - {"from"} else WHEELS


# Repairs read their words again, each as a request of its own.
@lru_cache(maxsize=16)
def _built_in(name: str, index: Index) -> Recipe:
    return read.recipe(name, index)


@lru_cache(maxsize=4)
def provisions(index: Index) -> Book:
    """The built-in provisions."""
    return read.provisions(index)


def installable(recipe: Recipe, book: Book) -> When:
    """The condition on the distribution under which repositories can be read: that its manager is apt."""
    # Templates write repositories and areas for apt alone.
    apt = [one for one in (*recipe.distros, *book.distros) if one.manager == "apt"]
    return (("distro", " ".join(selector for one in apt for _, selector in one.when)),)


def _of_recipe(recipe: Recipe) -> Iterator[Stipulation]:
    subject = recipe.builds[0] if len(recipe.builds) == 1 else "distro"
    for part in recipe.refuses:
        yield Stipulation(
            subject=subject,
            when=part.when,
            text=f"the recipe `{recipe.name}` builds nothing with {_shown(part.when)}: {part.because}",
            at=_places([part]),
            source=_source(recipe, part),
        )
    if recipe.targets:
        yield Stipulation(
            subject="target",
            one_of=((("target", " ".join(recipe.targets)),),),
            text=f"the recipe `{recipe.name}` is made for {listing(recipe.targets)}",
            at=(_shortened(recipe.path),),
        )
    if len(recipe.builds) > 1:
        yield Stipulation(
            subject=subject,
            when=((subject, "*"),),
            one_of=tuple(((name, "*"),) for name in recipe.builds),
            text=f"the recipe `{recipe.name}` builds {listing(recipe.builds, 'or')}",
            at=(_shortened(recipe.path),),
        )
    if recipe.steps:
        yield Stipulation(
            subject=subject,
            one_of=tuple(dict.fromkeys(step.when for step in recipe.steps)),
            text=f"the recipe `{recipe.name}` has steps {_ways([step.when for step in recipe.steps])}",
            at=_places(recipe.steps),
        )


def _packaged(recipe: Recipe, book: Book) -> Stipulation:
    distros = (*recipe.distros, *book.distros)
    return Stipulation(
        subject="distro",
        when=(("distro", "*"),),
        one_of=tuple(one.when for one in distros),
        text=f"packages get into an image {_ways([one.when for one in distros])}",
        at=_places(distros),
    )


def _brought(recipe: Recipe, book: Book, index: Index) -> Iterator[Stipulation]:
    apt = installable(recipe, book)
    on_the_way = [one for one in book.provisions if one.harvested]
    offered: dict[str, list[Provision]] = {}
    for part in (*recipe.provisions, *book.provisions):
        offered.setdefault(part.component, []).append(part)
    for name, head in index.header["components"].items():
        # What an answer does not show is in no lock, and what is given is no part of an image.
        apart = head["given"] or head["hidden"] or head["flag"] or head["variant_of"]
        if apart or name in SEVERAL or name in recipe.builds:
            continue
        parts = offered.get(name) or (on_the_way if _is_harvested(index, name) else [])
        whens = [(*one.when, *(apt if one.repositories or one.areas else ())) for one in parts]
        told = _ways([one.when for one in parts])
        yield Stipulation(
            subject=name,
            when=((name, "*"),),
            one_of=tuple(dict.fromkeys(whens)),
            brought=name not in recipe.tools,
            text=f"{name} gets into an image {told}"
            if parts
            else f"nothing brings {name} into an image",
            at=_places(parts) or (_shortened(book.path),),
            source=_source(book, parts[0]) if parts and parts[0].source in book.sources else "",
        )


def _is_harvested(index: Index, component: str) -> bool:
    """Whether a component was read from the package index for this request."""
    releases = index.component(component).releases
    return bool(releases) and "harvested" in index.release(releases[0]).attributes


def _ways(whens: Iterable[When]) -> str:
    told = [*dict.fromkeys(_shown(when) for when in whens)]
    more = [f"in {len(told) - _MOST} more ways"] if len(told) > _MOST + 1 else []
    return "only with " + listing([*(told[:_MOST] if more else told), *more], "or")


def _shown(when: When) -> str:
    return listing([f"{name} {selector}" for name, selector in when])


def _source(book: Book, part: Part) -> str:
    return book.sources[part.source].at if part.source in book.sources else ""


def _places(parts: Sequence[Part]) -> tuple[str, ...]:
    found = [f"{_shortened(part.at.path)}:{part.at.line}" for part in parts if part.at]
    return tuple(dict.fromkeys(found))


def _shortened(path: str) -> str:
    # A built-in file as people know it, `recipes/...`; another as it is.
    root = os.path.join(resources.matrix_root(), "")
    return os.path.normpath(path).removeprefix(root)
