"""Recipes and provisions from their files.

Raises RecipeError with file, line and column for everything that docs/recipes.md does not allow: unknown keys and
values, lines of shell that continue beyond their end, conditions that no release meets, statements without a source.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

from toolmatrix import resources
from toolmatrix.errors import Position, RecipeError
from toolmatrix.factbase import pieces, yamlfile
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.versions import Scale, SelectorError
from toolmatrix.factbase.yamlfile import YamlNode
from toolmatrix.recipes import fields as tables
from toolmatrix.recipes import model
from toolmatrix.recipes.model import BuildStep, Part
from toolmatrix.value import Value

Answer = Mapping[str, tuple[str, ...]]


RECIPE_FILE = yamlfile.NodeKind(
    noun="the recipe",
    error=RecipeError,
    help="docs/recipes.md shows the shape of a recipe",
    missing="`--recipe` takes the name of a built-in recipe, or the path of a file",
)


def names() -> tuple[str, ...]:
    """The built-in recipes."""
    folder = resources.recipes_root()
    split = (os.path.splitext(name) for name in os.listdir(folder))
    return tuple(
        sorted(stem for stem, end in split if end == ".yaml" and stem != tables.PROVISIONS_NAME)
    )


def recipe(name: str, index: Index) -> model.Recipe:
    """The recipe of that name, of the component that it builds, or in that file."""
    path = name if is_path(name) else _built_in(_builtin_name(name, index))
    return parse(yamlfile.read(path, label=path, of=RECIPE_FILE), index)


def is_path(name: str) -> bool:
    """True if the name of a recipe is the path of a file of its own, and not a built-in one."""
    return os.path.basename(name) != name or name.endswith((".yaml", ".yml"))


def _built_in(name: str) -> str:
    return os.path.join(resources.recipes_root(), name + ".yaml")


def builder(component: str) -> str:
    """The name of the built-in recipe that builds a component; empty if there is none."""
    import re

    # One line of each file says what it builds; only the wanted file is parsed.
    for known in names():
        with open(_built_in(known), encoding="utf-8") as file:
            built = re.search(r"^builds: (.*)$", file.read(), re.MULTILINE)
        if built and component in re.findall(r"[^\[\], ]+", built[1]):
            return known
    return ""


def _builtin_name(name: str, index: Index) -> str:
    plain = name.lower().replace("_", "-")
    component = index.header["aliases"].get(plain, plain)
    for known in names():
        if known in (plain, component):
            return known
    if building := builder(component):
        return building
    from difflib import get_close_matches

    near = get_close_matches(plain, names(), 1)
    raise RecipeError(
        f"unknown recipe `{name}`",
        expected="one of " + ", ".join(names()) + ", or the path of a file",
        found=f"`{name}`",
        help=f"did you mean `{near[0]}`?" if near else RECIPE_FILE.missing,
    )


def provisions(index: Index) -> model.Book:
    """The built-in provisions."""
    root = yamlfile.read(_built_in(tables.PROVISIONS_NAME), of=RECIPE_FILE)
    return cast("model.Book", _book(root, index, model.PROVISIONS, tables.BOOK))


def parse(root: YamlNode, index: Index) -> model.Recipe:
    """A recipe from its nodes."""
    parsed = cast("model.Recipe", _book(root, index, model.RECIPE, tables.RECIPE))
    if parsed.probes and not parsed.builds:
        root.fail(
            "the recipe has probes but builds nothing", expected="`builds:`", found="no such key"
        )
    return parsed


def _book(root: YamlNode, index: Index, schema: str, shape: tables.Shape) -> Any:
    nodes = root.only("the recipe", (*shape.fields, *shape.lists, "schema", "sources"), ("schema",))
    nodes["schema"].choice("schema", (schema,))
    # Sources are read first: every statement names one of them. Steps name options.
    named = nodes["sources"].mapping("sources") if "sources" in nodes else {}
    sources = {name: _source(name, node) for name, node in named.items()}
    options = nodes["options"].sequence("options") if "options" in nodes else ()
    reader = _RecipeReader(index, sources, tuple(map(_option_name, options)))
    book = reader.part(root, shape, extra=("schema", "sources"))
    return book.replace(sources=sources, path=root.file)


def _option_name(node: YamlNode) -> str:
    # Whatever else is wrong with an option is said where it is read.
    name = node.mapping("an option").get("name")
    return name.string("name") if name else ""


def _source(name: str, node: YamlNode) -> model.Source:
    keys = ("title", "at", "read")
    nodes = node.only(f"source `{name}`", keys, keys)
    return model.Source(
        id=name,
        title=nodes["title"].string("title"),
        at=nodes["at"].string("at"),
        read=pieces.date(nodes["read"], "read"),
    )


class _RecipeReader:
    """Reads parts by the tables of `fields`."""

    def __init__(
        self, index: Index, sources: Mapping[str, model.Source], options: tuple[str, ...]
    ) -> None:
        self.components = index.header["components"]
        self.index = index
        self.sources = sources
        self.options = Scale("names", tuple(dict.fromkeys(options)))

    def part(self, node: YamlNode, shape: tables.Shape, extra: tuple[str, ...] = ()) -> Any:
        """The part that a mapping describes."""
        kind = shape.kind
        is_part = issubclass(kind, Part)
        shared = (*(("when", "source") if is_part else ()), *extra)
        nodes = node.only(kind.noun, (*shape.fields, *shape.lists, *shared), shape.required)
        values: dict[str, Any] = {}
        for name, entry in nodes.items():
            if name in shape.fields:
                values[name] = self.field(entry, name, shape.fields[name])
            elif name in shape.lists:
                inner = tables.SHAPES[shape.lists[name]]
                values[name] = tuple(
                    element for item in entry.sequence(name) for element in self.parts(item, inner)
                )
        if is_part:
            values["at"] = node.where
            values["source"] = self.source(node, nodes, kind)
        return kind(**values)

    def parts(self, node: YamlNode, shape: tables.Shape) -> list[Any]:
        """The parts that a mapping describes: one for each of its conditions and components."""
        spread = shape.kind.spread
        nodes = node.mapping(shape.kind.noun)
        part = self.part(node, shape)
        # Each becomes a part of its own, so that a part always has one condition and one component.
        steps = shape.kind is model.BuildStep
        whens = (
            [self.conditions(when, steps=steps) for when in nodes["when"].several()]
            if "when" in nodes
            else [()]
        )
        each = [{spread: name} for name in getattr(part, spread)] if spread else [{}]
        return [part.replace(when=when, **named) for named in each for when in whens]

    def source(
        self, node: YamlNode, nodes: Mapping[str, YamlNode], kind: type[model.RecipeEntry]
    ) -> str:
        """The source of a statement; an inner part may have none of its own."""
        if "source" not in nodes:
            if kind.sourced:
                node.fail(f"{kind.noun} has no `source`", expected="`source:`", found="no such key")
            return ""
        name = nodes["source"].string("source")
        if name not in self.sources:
            nodes["source"].fail(
                "no such source", expected="an entry of `sources:`", help="declare it there"
            )
        return name

    def conditions(self, node: YamlNode, *, steps: bool) -> tuple[tuple[str, str], ...]:
        """`{component: selector}` as in the facts; each selector admits a release that is known.

        Conditions of `steps` may name options.
        """
        selectors = []
        for name, selector in node.mapping("conditions").items():
            if steps and name == model.OPTION:
                selectors.append((name, self.selector(name, selector, self.options)))
                continue
            if name not in self.components:
                node.key(name).fail("unknown component", expected="a component of the matrix")
            selectors.append((name, self.selector(name, selector, self.index.scale(name))))
        return tuple(selectors)

    def selector(self, component: str, node: YamlNode, scale: Scale) -> str:
        """A selector that at least one known release meets."""
        text = node.string(f"a selector of {component}")
        try:
            admitted = scale.select(text)
        except SelectorError as error:
            node.fail("a selector cannot be read", expected="a selector", found=str(error))
        if not admitted:
            node.fail(
                f"no release of {component} meets this condition",
                expected=f"a selector that admits a release of {component}",
                help=f"`toolmatrix matrix --rows {component}` lists its releases",
            )
        return text

    def field(self, node: YamlNode, name: str, rule: str) -> Any:
        """A value by its rule: `shape`, `[shape]` for a list, `{shape: shape}` for a mapping, `?` for a flag."""
        if rule == "?":
            return node.flag(name)
        if rule.startswith("["):
            return tuple(self.text(item, name, rule[1:-1]) for item in node.several())
        if rule.startswith("{"):
            first, _, second = rule[1:-1].partition(": ")
            return {
                self.text(node.key(key), name, first): self.text(content, name, second)
                for key, content in node.mapping(name).items()
            }
        if "|" in rule:
            return node.choice(name, tuple(rule.split("|")))
        return self.text(node, name, rule)

    def text(self, node: YamlNode, name: str, shape: str) -> str:
        """One text of a shape; every value in braces has to be known."""
        # A variable may be set to nothing; no other text may be empty.
        text = node.text if shape == "value" and node.text == "" else node.string(name)
        strange = tables.unknown(text, self.components)
        if strange:
            node.fail(
                f"unknown value `{{{strange}}}`",
                expected="a component of the matrix or a name of docs/recipes.md",
            )
        expected, actual = tables.fault(shape, text)
        if expected:
            node.fail(f"{name} cannot be used", expected=expected, found=actual)
        return text


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
            _admits(
                # Options are names, and no component.
                "names" if component == model.OPTION else self.schemes[component],
                self.answer.get(component, ()),
                selector,
            )
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

    A setting is a step with variables and no commands: it holds for the next step of its stage that has some. What an
    option sets goes before others; two values of one variable are refused otherwise.
    """
    waiting: dict[str, dict[str, str]] = {}
    done: list[BuildStep] = []
    for step in steps:
        settings = waiting.setdefault(step.stage, {})
        for name, text in step.env.items():
            if any(component == model.OPTION for component, _ in step.when):
                settings[name] = text
            elif settings.setdefault(name, text) != text:
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
        return tables.fill(text, values)
    except KeyError as error:
        raise RecipeError(
            f"the answer has no {error.args[0]}",
            where=at,
            expected=f"a `when:` that asks for {error.args[0]}, or an answer that has it",
            found=f"`{text}`",
        ) from None
