"""Reads the front page and the fact files of a matrix, and any user's files on top, into the model.

A later layer adds to or overrides an earlier one by id; inside one layer an id may stand once, and the order of files,
tables and rows says nothing. Raises MatrixError with file, line and column for everything that docs/facts.md does not
allow.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase import layout, pieces, tables, variants, yamlfile
from toolmatrix.factbase.layout import FACTS, FRONT
from toolmatrix.factbase.model import (
    SCHEMES,
    Component,
    FactSource,
    InheritanceRule,
    Matrix,
    Target,
)
from toolmatrix.factbase.yamlfile import YamlNode
from toolmatrix.process import without_collector

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_FLAGS = ("given", "framework", "hidden", "floor", "open", "flag", "variants", "binds")


@without_collector()
def load(
    paths: Sequence[str],
    left_out: Collection[str] = (),
    base: Callable[[str], Matrix | None] | None = None,
) -> Matrix:
    """Load the matrices at `paths`, each on top of the ones before; of the files that they list some may be left out.

    A front page stands alone: it replaces what came before it. A fact file adds to it. `base` may have what one with
    its files was loaded into before, and is asked where something comes on top.
    """
    roots = [yamlfile.read(path) for path in paths]
    kinds = [_schema(root, (FRONT, FACTS)) for root in roots]
    # Matrices before a front page are ignored, but for their schema.
    start = max((position for position, kind in enumerate(kinds) if kind == FRONT), default=0)
    merged = None
    if base and kinds[start] == FRONT and start + 1 < len(paths):
        merged = base(paths[start])
        start += merged is not None
    merged = merged or Matrix()
    for path, root, kind in zip(paths[start:], roots[start:], kinds[start:], strict=True):
        _facts(_front(root, path, merged, left_out) if kind == FRONT else [root], merged)
        # A matrix is of the day of its newest reading, and a user's file on top does not make it newer.
        if kind == FRONT:
            merged.date = max(merged.date, *(source.read for source in merged.sources.values()), "")
    return merged


def files(path: str) -> list[str]:
    """The front page (or fact file) at `path` and every file it names, as paths."""
    fields = yamlfile.read(path).fields or {}
    entries = [*pieces.items(fields, "files"), *filter(None, [fields.get("families")])]
    return [path, *(_beside(path, item.string("a file")) for item in entries)]


def _beside(path: str, name: str) -> str:
    return os.path.normpath(os.path.join(os.path.dirname(path), name))


def _schema(root: YamlNode, known: tuple[str, ...]) -> str:
    fields = root.mapping("the matrix file")
    if "schema" not in fields:
        root.fail(
            "the matrix file has no `schema`",
            expected=" or ".join(f"`schema: {schema}`" for schema in known),
            found="no such key",
        )
    return fields["schema"].choice("schema", known)


def _front(root: YamlNode, path: str, layer: Matrix, left_out: Collection[str]) -> list[YamlNode]:
    fields = pieces.fields(root, "the front page", layout.FrontPage)
    layer.date = pieces.date(fields["date"], "date")
    layer.components = _components(fields["components"], {})
    for name, node in pieces.entries(fields, "aliases").items():
        layer.aliases[name] = pieces.known_component(node, layer.components).name
    for name, node in pieces.entries(fields, "rules").items():
        layer.rules[name] = _rule(name, node, layer.components)
    for name, node in fields["targets"].mapping("targets").items():
        layer.targets[name] = _target(name, node, layer.components)
    if "families" in fields:
        layer.packages = _packages(_read_named(path, fields["families"], "families"))
    nodes: dict[str, YamlNode] = {}
    for item in fields["files"].sequence("files"):
        name = _beside(path, item.string("a file"))
        if name in nodes or name == os.path.normpath(path):
            item.fail(
                "a file is listed twice",
                expected="each file once",
                help="remove one of the two lines",
            )
        if name in left_out:
            continue
        nodes[name] = _read_named(path, item, "a file")
        _schema(nodes[name], (FACTS,))
    # Sorted by name: the same duplicate is reported whatever the order of the files.
    return [node for _, node in sorted(nodes.items())]


def _read_named(path: str, item: YamlNode, what: str) -> YamlNode:
    name = _beside(path, item.string(what))
    # Before it is opened: what is wrong is the line, which has a place, and not the file.
    if not os.path.exists(name):
        item.fail(
            "a listed file is missing",
            expected=f"a file at {name}",
            help="restore it or remove the line",
        )
    return yamlfile.read(name)


def _packages(root: YamlNode) -> dict[str, str]:
    """The component of each package of an index that the file of families names."""
    fields = root.mapping("the file of families")
    families = pieces.entries(fields, "families").values()
    packages: dict[str, str] = {}
    for keys in (fields, *(family.mapping("a family") for family in families)):
        node = keys.get("packages")
        if node and node.items is not None:
            packages |= {(name := item.string("a package")): name for item in node.items}
        for name, entry in (node.fields if node and node.fields else {}).items():
            packages[name] = entry.text or pieces.text(entry.fields or {}, "component", name)
    return packages


def _components(node: YamlNode, below: Mapping[str, Component]) -> dict[str, Component]:
    components = {}
    for name, entry in node.mapping("components").items():
        components[name] = _component(node.key(name), entry)
        if components[name].variants:
            # Behind its component: a release is chosen first, then the build of it.
            components[variants.name(name)] = variants.component(components[name])
        if name in below and below[name].scheme != components[name].scheme:
            entry.fail(
                f"the scheme of `{name}` cannot be changed",
                expected=f"`scheme: {below[name].scheme}`",
                found=f"`scheme: {components[name].scheme}`",
                help="facts about its releases would become unreadable",
            )
    for name in node.mapping("components"):
        _check_under(node.key(name), {**below, **components})
    return components


def _component(named: YamlNode, node: YamlNode) -> Component:
    name = named.string("a component")
    fields = pieces.fields(node, f"component `{name}`", layout.ComponentLayout)
    if not _NAME.fullmatch(name):
        named.fail(
            "a component name must be lower case",
            expected="a-z, 0-9, `-`, `.`, `_`",
            help="rename it; `title:` is the name on display",
        )
    component = Component(
        name=name,
        title=fields["title"].string("title"),
        scheme=fields["scheme"].choice("scheme", SCHEMES),
        under=pieces.text(fields, "under"),
        grid=pieces.text(fields, "grid"),
        variant_of="",
        way=pieces.choice(fields, "way", layout.INSTALL_SOURCES),
        prefer=pieces.choice(fields, "prefer", layout.ORDERS, "newest"),
        major=fields["major"].integer("major") if "major" in fields else 0,
        accelerators=tuple(
            item.string("accelerator") for item in pieces.items(fields, "accelerators")
        ),
        **{flag: pieces.flag(fields, flag) for flag in _FLAGS},
    )
    if "grid" in fields:
        pieces.selector(component, fields["grid"])
    if "major" in fields and (component.scheme == "names" or component.major < 1):
        fields["major"].fail(
            "invalid `major`",
            expected="1 or more, of a component whose releases are versions",
        )
    return component


def _check_under(key: YamlNode, components: Mapping[str, Component]) -> None:
    # An answer is printed by following such chains, which have to end.
    chain = [key.string("a component")]
    component = components[chain[0]]
    while component.under:
        if component.under not in components or component.under in chain:
            key.fail(
                "a component is under itself or under an unknown component",
                expected="the name of another component",
                found=" under ".join([*chain, component.under]),
                help="correct `under:`",
            )
        chain.append(component.under)
        component = components[component.under]


def _rule(name: str, node: YamlNode, components: Mapping[str, Component]) -> InheritanceRule:
    fields = pieces.fields(node, f"rule `{name}`", layout.RuleLayout)
    widens = fields.get("widens")
    context: dict[str, str] = {}
    widened = ""
    if widens is not None and widens.fields is not None:
        context = dict(pieces.conditions(widens, components))
    elif widens is not None:
        widened = widens.choice("widens", layout.WIDENINGS)
    return InheritanceRule(
        name=name,
        evidence=fields["evidence"].choice("evidence", words.WORDS),
        reason=fields["reason"].string("reason"),
        widens=widened,
        context=context,
    )


def _target(name: str, node: YamlNode, components: Mapping[str, Component]) -> Target:
    fields = pieces.fields(node, f"target `{name}`", layout.TargetLayout)
    return Target(
        name=name,
        context=dict(pieces.conditions(fields["context"], components)),
        accelerator=fields["accelerator"].string("accelerator"),
        policies=dict(pieces.conditions(fields.get("policies"), components)),
    )


def _facts(roots: Sequence[YamlNode], merged: Matrix) -> None:
    # First the names that any file may use, then what is said with them: the order of files says nothing.
    layer = Matrix()
    for root in roots:
        fields = pieces.fields(root, "the fact file", layout.FactFile)
        if "components" in fields:
            merged.components |= _components(fields["components"], merged.components)
        for name, node in pieces.entries(fields, "sources").items():
            _source(fields["sources"].key(name), node, layer)
    recorder = pieces.Recorder(layer, merged)
    readers = {
        "channels": variants.channel,
        "releases": _releases,
        "tables": tables.table,
        "statements": tables.statement,
        "data": tables.data,
    }
    for root in roots:
        for name, reader in readers.items():
            for node in pieces.items(root.mapping("the fact file"), name):
                reader(recorder, node)
    # Last, as rows of builds name releases that tables define, and what follows from builds counts them all.
    for node in recorder.variants:
        variants.table(recorder, node)
    variants.record_published_builds(recorder)
    merged.overlay(layer)


def _source(named: YamlNode, node: YamlNode, layer: Matrix) -> None:
    name = named.string("a source")
    fields = pieces.fields(node, f"source `{name}`", layout.SourceLayout)
    source = FactSource(
        name=name,
        title=fields["title"].string("title"),
        at=fields["at"].string("at"),
        read=pieces.date(fields["read"], "read"),
    )
    # Files of one matrix may share a source, each with its own copy of the lines.
    if layer.sources.get(name, source) != source:
        named.fail(
            "a source is named twice with different contents",
            expected=layer.sources[name].at,
            found=source.at,
            help="rename one of the two",
        )
    layer.sources[name] = source


def _releases(recorder: pieces.Recorder, node: YamlNode) -> None:
    fields = pieces.fields(node, "a list of releases", layout.ReleaseList)
    component = pieces.known_component(fields["component"], recorder.components)
    origin = pieces.Provenance.read(fields, recorder.known)
    name = recorder.group(fields)
    versions = fields["versions"]
    for version, entry in versions.mapping("versions").items():
        # `11.2:` with nothing behind it is a release of which nothing more is known.
        inner = {} if entry.text == "" else entry.mapping("a release")
        recorder.release(
            component,
            versions.key(version),
            f"{name}/{version}",
            origin,
            inner,
            {key: pieces.printed(inner[key]) for key in inner if key not in pieces.RELEASE},
        )
