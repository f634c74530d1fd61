"""What a recipe asks of an answer: the components that it needs, and its rules and those of provisions as stipulations.

Raises RecipeError for a recipe that is missing or cannot be read.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from toolmatrix import resources
from toolmatrix.errors import NoImage, UsageError
from toolmatrix.factbase.index import Index
from toolmatrix.recipes import read
from toolmatrix.recipes.model import OPTION, Book, Part, Provision, Recipe
from toolmatrix.request.fields import parse_arguments
from toolmatrix.request.names import Names
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.solve.request import Request, Stipulation
from toolmatrix.value import Value
from toolmatrix.wording import listing

When = tuple[tuple[str, str], ...]

TOOLS, WHEELS = "toolchain", "wheel"
"""The recipes that are taken where none is named: of tools, and of what comes as wheels."""

BUILT = "built"
"""The way in which a recipe has what it builds, where the matrix says in which ways there is something."""

# What no image holds as a part of its own: flags, builds, what is hidden, and where an image runs.
_NOT_INSTALLED = ("given", "hidden", "flag", "variant_of")

# Alternatives that are listed; further ones are counted.
_MOST = 4


def needs(recipe: Recipe, components: Iterable[str], index: Index) -> tuple[str, ...]:
    """The components that an answer about some must hold to be made an image of."""
    # Every recipe starts from an image and installs packages. Which of several builds is up to the request.
    only = recipe.builds if len(recipe.builds) == 1 else ()
    entries = (*recipe.provisions, *provisions(index).provisions)
    by_pip = {entry.component for entry in entries if entry.pip}
    python = () if by_pip.isdisjoint(components) else ("python",)
    return tuple(dict.fromkeys(("base-image", "distro", *only, *recipe.needs, *python)))


def origins(recipe: Recipe, index: Index) -> Iterator[tuple[str, str]]:
    """The components that say where something comes from, for what a recipe builds, each with all ways and its own."""
    for name, head in index.header["components"].items():
        if head["hidden"] and head["under"] in recipe.builds and index.scale(name).bit(BUILT):
            yield name, " ".join(index.scale(name).versions)


def stipulations(recipe: Recipe, index: Index) -> tuple[Stipulation, ...]:
    """The conditions under which an answer can be made an image of."""
    book = provisions(index)
    own = tuple(_of_recipe(recipe))
    return (*own, _packaged(recipe, book), *_installations(recipe, book, index))


def recipe(name: str, index: Index) -> Recipe:
    """The recipe of a name, of a component, or in a file."""
    if not read.is_path(name):
        return _built_in(name, index)
    return read.recipe(name, index)


class DefaultRecipe(Value):
    """The recipe where none is named, `from_` where the request has to change for it, and what to say of it."""

    recipe: str
    from_: str = ""
    note: str = ""


def by_default(
    from_: str, wanted: Sequence[str], named: Iterable[str], index: Index, *, implied: bool = False
) -> DefaultRecipe:
    """The recipe where none is named: the one that builds what is wanted, that of wheels, or that of tools.

    `named` are all components of the request. Where `from_` is `implied`, what no recipe builds comes as a wheel.
    Raises NoImage for what was to be built and no recipe builds.
    """
    if from_ == "wheel":
        refused = {name for rule in recipe(WHEELS, index).refuses for name, _ in rule.when}
        return DefaultRecipe(recipe=TOOLS if refused & {*named} - {"from"} else WHEELS)
    built = [name for name in wanted if _is_built(name, index)]
    if not built:
        return DefaultRecipe(recipe=TOOLS)
    tools = f"`--recipe {TOOLS}` builds an image with only the tools"
    builder = _building(built, index)
    if builder:
        names = listing([name for name in built if name in recipe(builder, index).builds])
        note = f"the recipe `{builder}` builds {names} from source; "
        note += f"`--from wheel` installs what is published, {tools}"
        return DefaultRecipe(recipe=builder, note=note if implied else "")
    if not implied:
        raise NoImage(
            f"no recipe builds {listing(built)}",
            expected="a recipe of your own: `--recipe FILE`",
            help=f"`--from wheel` installs what is published, {tools}",
        )
    note = f"no recipe builds {listing(built)} from source, so wheels are installed; {tools}"
    return by_default("wheel", wanted, named, index).replace(from_="wheel", note=note)


def _is_built(component: str, index: Index) -> bool:
    # What provisions leave to a recipe of its own, and what there is no other way to have but as a wheel.
    own = [entry for entry in provisions(index).provisions if entry.component == component]
    if own:
        return any(entry.because and ("from", "source") in entry.when for entry in own)
    wheels = recipe(WHEELS, index).provisions
    return any(entry.pip and entry.component == component for entry in wheels)


def _building(components: Sequence[str], index: Index) -> str:
    # One recipe builds them all, or installs what it builds the others against.
    for name in dict.fromkeys(filter(None, map(read.builder, components))):
        candidate = recipe(name, index)
        installed = {provision.component for provision in candidate.provisions if provision.pip}
        if {*components} <= {*candidate.builds} | installed:
            return name
    return ""


def of_request(request: Request, index: Index) -> DefaultRecipe:
    """The recipe of a request that names none. Raises NoImage."""
    from_ = next(ask for ask in request.asks if ask.component == "from")
    components = [ask.component for ask in request.asks]
    return by_default(from_.selector, request.wanted, components, index, implied=from_.implied)


def common_recipe(defaults: Iterable[DefaultRecipe]) -> DefaultRecipe:
    """The recipe of several requests that are rendered together. Raises UsageError where they need several."""
    several = {default.recipe: default for default in defaults}
    if len(several) > 1:
        raise UsageError(
            "the environments need several recipes",
            expected="a run for each, with `--recipe`",
            found=", ".join(sorted(several)),
        )
    return several.popitem()[1]


def requested(words: Iterable[str], index: Index) -> tuple[str, ...]:
    """The components that the words of a request want of an image, but for those that this matrix does not know."""
    names, heads = Names(index), index.header["components"]
    components = (
        names.called(names.split(word)[0].partition("[")[0])
        for word in parse_arguments(words)["wanted"]
    )
    installed = (
        name
        for name in components
        if name and name not in SEVERAL and not any(map(heads[name].get, _NOT_INSTALLED))
    )
    return tuple(dict.fromkeys(installed))


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
    apt = [distro for distro in (*recipe.distros, *book.distros) if distro.manager == "apt"]
    return (("distro", " ".join(selector for distro in apt for _, selector in distro.when)),)


def _of_recipe(recipe: Recipe) -> Iterator[Stipulation]:
    subject = recipe.builds[0] if len(recipe.builds) == 1 else "distro"
    for rule in recipe.refuses:
        yield Stipulation(
            subject=subject,
            when=rule.when,
            text=f"the recipe `{recipe.name}` does not support {_phrase(rule.when)}: {rule.because}",
            at=_positions([rule]),
            source=_source(recipe, rule),
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
    # Steps of options come on top of others.
    steps = [step for step in recipe.steps if OPTION not in dict(step.when)]
    if steps:
        yield Stipulation(
            subject=subject,
            one_of=tuple(dict.fromkeys(step.when for step in steps)),
            text=f"the recipe `{recipe.name}` has steps {_methods([step.when for step in steps])}",
            at=_positions(steps),
        )


def _packaged(recipe: Recipe, book: Book) -> Stipulation:
    distros = (*recipe.distros, *book.distros)
    return Stipulation(
        subject="distro",
        when=(("distro", "*"),),
        one_of=tuple(distro.when for distro in distros),
        text=f"packages can be installed {_methods([distro.when for distro in distros])}",
        at=_positions(distros),
    )


def _installations(recipe: Recipe, book: Book, index: Index) -> Iterator[Stipulation]:
    apt = installable(recipe, book)
    offered: dict[str, list[Provision]] = {}
    for provision in (*recipe.provisions, *book.provisions):
        offered.setdefault(provision.component, []).append(provision)
    # Thousands of packages are installed in the same ways.
    nothing = _Installation([], book, apt)
    harvested = _Installation([e for e in book.provisions if e.harvested], book, apt)
    for_packages = _Installation([e for e in recipe.provisions if e.harvested], book, apt)
    for name, head in index.header["components"].items():
        if any(map(head.get, _NOT_INSTALLED)) or name in SEVERAL or name in recipe.builds:
            continue
        if name in offered:
            installation = _Installation(offered[name], book, apt)
        elif _is_harvested(index, name):
            installation = harvested
        else:
            installation = for_packages if head["code"] else nothing
        yield Stipulation(
            subject=name,
            when=((name, "*"),),
            one_of=installation.whens,
            or_in_build=name not in recipe.tools,
            text=f"{name} can be installed {installation.methods}"
            if installation.methods
            else f"there is no way to install {name} in an image",
            at=installation.at,
            source=installation.source,
        )


class _Installation:
    """The ways to install some package, where they are written, and their words."""

    def __init__(self, entries: Sequence[Provision], book: Book, apt: When) -> None:
        whens = [(*e.when, *(apt if e.repositories or e.areas else ())) for e in entries]
        self.whens = tuple(dict.fromkeys(whens))
        self.at = _positions(entries) or (_shortened(book.path),)
        self.source = _source(book, entries[0]) if entries else ""
        self.methods = _methods([entry.when for entry in entries]) if entries else ""


def _is_harvested(index: Index, component: str) -> bool:
    """Whether a component was read from the package index for this request."""
    releases = index.component(component).releases
    return bool(releases) and "harvested" in index.release(releases[0]).attributes


def _methods(whens: Iterable[When]) -> str:
    phrases = [*dict.fromkeys(_phrase(when) for when in whens)]
    more = [f"in {len(phrases) - _MOST} more ways"] if len(phrases) > _MOST + 1 else []
    return "only with " + listing([*(phrases[:_MOST] if more else phrases), *more], "or")


def _phrase(when: When) -> str:
    return listing([f"{name} {selector}" for name, selector in when])


def _source(book: Book, entry: Part) -> str:
    return book.sources[entry.source].at if entry.source in book.sources else ""


def _positions(entries: Sequence[Part]) -> tuple[str, ...]:
    positions = [f"{_shortened(entry.at.path)}:{entry.at.line}" for entry in entries if entry.at]
    return tuple(dict.fromkeys(positions))


def _shortened(path: str) -> str:
    # A built-in file as people know it, `recipes/...`; another as it is.
    root = os.path.join(resources.matrix_root(), "")
    return os.path.normpath(path).removeprefix(root)
