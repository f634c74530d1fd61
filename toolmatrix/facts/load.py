"""Reads the front page and the fact files of a matrix, and any user's files on top, into the model.

A later layer adds to or overrides an earlier one by id; inside one layer an id may stand once.
Raises MatrixError with file, line and column for everything that docs/facts.md does not allow.
"""

from __future__ import annotations

import os
import re

from toolmatrix.errors import MatrixError, Position
from toolmatrix.facts import evidence as words
from toolmatrix.facts import tables, yamlfile
from toolmatrix.facts.model import SCHEMES, Component, Matrix, Release, Rule, Source, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.facts.model import Claim, Row
    from toolmatrix.facts.yamlfile import Node

FRONT = "toolmatrix.matrix/1"
FACTS = "toolmatrix.facts/1"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


class Layer:
    """What one matrix (a front page with its files, or one fact file) says, before layers are merged."""

    def __init__(self) -> None:
        self.date = ""
        self.components: dict[str, Component] = {}
        self.targets: dict[str, Target] = {}
        self.rules: dict[str, Rule] = {}
        self.sources: dict[str, Source] = {}
        self.releases: dict[tuple[str, str], Release] = {}
        self.rows: dict[str, Row] = {}
        self.claims: dict[str, Claim] = {}
        self.files: list[str] = []


def load(paths: Sequence[str]) -> Matrix:
    """Load the matrices at `paths`, each on top of the ones before.

    A front page stands alone: it replaces what came before it. A fact file adds to it.
    """
    merged = Layer()
    bodies: list[tuple[Layer, list[Node]]] = []
    for path in paths:
        root = yamlfile.read(path)
        layer = Layer()
        if root.only("the matrix file", _TOP, ("schema",))["schema"].text == FRONT:
            merged = Layer()
            bodies.clear()
            parts = _front(root, path, layer)
        else:
            parts = [root]
        _merge_front(merged, layer)
        bodies.append((layer, parts))
    for layer, parts in bodies:
        for part in parts:
            _facts(part, layer, merged)
        merged.sources |= layer.sources
        merged.releases |= layer.releases
        merged.rows |= layer.rows
        dropped = {claim.row for claim in layer.claims.values()}
        kept = {name: claim for name, claim in merged.claims.items() if claim.row not in dropped}
        merged.claims = kept | layer.claims
    return Matrix(
        date=merged.date,
        components=merged.components,
        targets=merged.targets,
        rules=merged.rules,
        sources=merged.sources,
        releases=merged.releases,
        rows=merged.rows,
        claims=merged.claims,
    )


def files(path: str) -> list[str]:
    """The front page (or fact file) at `path` and every file it lists, as paths."""
    root = yamlfile.read(path)
    listed = (root.fields or {}).get("files")
    return [path, *(_beside(path, item.string("a file")) for item in listed.sequence("files"))] if listed else [path]


_FRONT_KEYS = ("schema", "date", "components", "targets", "rules", "policies", "files")
_FACT_KEYS = ("schema", "sources", "releases", "tables", "statements", "data", "components")
_TOP = tuple(dict.fromkeys(_FRONT_KEYS + _FACT_KEYS))


def _beside(path: str, name: str) -> str:
    return os.path.normpath(os.path.join(os.path.dirname(path), name))


def _front(root: Node, path: str, layer: Layer) -> list[Node]:
    fields = root.only("the front page", _FRONT_KEYS, ("schema", "date", "components", "targets", "files"))
    layer.date = _date(fields["date"], "date")
    layer.components = _components(fields["components"])
    if "rules" in fields:
        layer.rules = {name: _rule(name, node) for name, node in fields["rules"].mapping("rules").items()}
    layer.targets = {name: _target(name, node) for name, node in fields["targets"].mapping("targets").items()}
    parts = []
    seen: set[str] = set()
    for item in fields["files"].sequence("files"):
        name = _beside(path, item.string("a file"))
        if name in seen or name == os.path.normpath(path):
            item.fail("a file is listed twice", expected="each file once", help="remove one of the two lines")
        seen.add(name)
        if not os.path.exists(name):
            item.fail("a listed file is missing", expected=f"a file at {name}", help="restore it or remove the line")
        part = yamlfile.read(name)
        parts.append(part)
    return parts


def _merge_front(merged: Layer, layer: Layer) -> None:
    merged.date = layer.date or merged.date
    merged.components |= layer.components
    merged.rules |= layer.rules
    merged.targets |= layer.targets


def _date(node: Node, what: str) -> str:
    text = node.string(what)
    if not _DATE.fullmatch(text):
        node.fail(f"{what} is not a date", expected="YYYY-MM-DD")
    return text


def _components(node: Node) -> dict[str, Component]:
    found = {name: _component(name, part) for name, part in node.mapping("components").items()}
    for name, part in found.items():
        _check_under(name, part, found, node)
    return found


_FLAGS = ("given", "framework", "hidden", "floor", "open", "flag")


def _component(name: str, node: Node) -> Component:
    known = ("title", "scheme", *_FLAGS, "under", "prefer", "accelerators")
    fields = node.only(f"component `{name}`", known, ("title", "scheme"))
    if not _NAME.fullmatch(name):
        node.fail("a component name must be lower case", expected="a-z, 0-9, `-`, `.`, `_`", found=f"`{name}`")
    accelerators = fields.get("accelerators")
    return Component(
        name=name,
        title=fields["title"].string("title"),
        scheme=fields["scheme"].choice("scheme", SCHEMES),
        under=fields["under"].string("under") if "under" in fields else "",
        prefer=fields["prefer"].choice("prefer", ("newest", "oldest")) if "prefer" in fields else "newest",
        accelerators=tuple(item.string("accelerator") for item in accelerators.sequence("accelerators"))
        if accelerators
        else (),
        **{flag: fields[flag].flag(flag) for flag in _FLAGS if flag in fields},
    )


def _check_under(name: str, part: Component, found: dict[str, Component], node: Node) -> None:
    chain = [name]
    while part.under:
        if part.under not in found or part.under in chain:
            cycle = " under ".join([*chain, part.under])
            raise MatrixError(
                "a component stands under itself or under one that is not there",
                where=node.keys[name],
                expected="the name of another component",
                found=cycle,
                help="correct `under:`",
            )
        chain.append(part.under)
        part = found[part.under]


def _rule(name: str, node: Node) -> Rule:
    fields = node.only(f"rule `{name}`", ("widens", "evidence", "reason"), ("evidence", "reason"))
    widens = fields.get("widens")
    context: dict[str, str] = {}
    word = ""
    if widens is not None:
        if widens.fields is not None:
            context = {key: value.string(key) for key, value in widens.fields.items()}
        else:
            word = widens.choice("widens", ("minor", "series"))
    return Rule(
        name=name,
        evidence=fields["evidence"].choice("evidence", words.WORDS),
        reason=fields["reason"].string("reason"),
        widens=word,
        context=context,
    )


def _target(name: str, node: Node) -> Target:
    fields = node.only(f"target `{name}`", ("context", "accelerator", "policies"), ("context", "accelerator"))
    policies = fields["policies"].mapping("policies") if "policies" in fields else {}
    return Target(
        name=name,
        context={key: value.string(key) for key, value in fields["context"].mapping("context").items()},
        accelerator=fields["accelerator"].string("accelerator"),
        policies={key: value.string(key) for key, value in policies.items()},
    )


def _facts(root: Node, layer: Layer, merged: Layer) -> None:
    if "files" in (root.fields or {}):
        return
    fields = root.only("the fact file", _FACT_KEYS, ("schema",))
    fields["schema"].choice("schema", (FACTS,))
    layer.files.append(root.file)
    if "components" in fields:
        merged.components |= _components(fields["components"])
    for name, node in fields["sources"].mapping("sources").items() if "sources" in fields else ():
        _source(name, node, layer, fields["sources"].keys[name])
    known = merged.sources | layer.sources
    for node in fields["releases"].sequence("releases") if "releases" in fields else ():
        _releases(node, layer, known, merged.components)
    reader = tables.Reader(layer, known, merged)
    for node in fields["tables"].sequence("tables") if "tables" in fields else ():
        reader.table(node)
    for node in fields["statements"].sequence("statements") if "statements" in fields else ():
        reader.statement(node)
    for node in fields["data"].sequence("data") if "data" in fields else ():
        reader.data(node)


def _source(name: str, node: Node, layer: Layer, where: Position) -> None:
    fields = node.only(f"source `{name}`", ("title", "at", "read"), ("title", "at", "read"))
    source = Source(
        name=name,
        title=fields["title"].string("title"),
        at=fields["at"].string("at"),
        read=_date(fields["read"], "read"),
    )
    if layer.sources.get(name, source) != source:
        raise MatrixError(
            "a source is named twice with different contents",
            where=where,
            expected=layer.sources[name].at,
            found=source.at,
            help="rename one of the two",
        )
    layer.sources[name] = source


def _releases(node: Node, layer: Layer, known: dict[str, Source], components: dict[str, Component]) -> None:
    keys = ("id", "component", "source", "evidence", "where", "versions", "about")
    fields = node.only("a list of releases", keys, ("id", "component", "source", "evidence", "versions"))
    name = fields["component"].string("component")
    component = tables.known_component(name, fields["component"], components)
    common = tables.Provenance.read(fields, known)
    versions = fields["versions"].mapping("versions")
    for version, part in versions.items():
        inner = part.fields or {}
        attributes = {key: _plain(value) for key, value in inner.items() if key not in ("date", "rank", "yanked")}
        tables.add_release(
            layer,
            component,
            version,
            common,
            f"{fields['id'].string('id')}/{version}",
            inner,
            attributes,
            Position(node.file, versions and fields["versions"].keys[version].line, 0),
            part,
        )


def _plain(node: Node) -> str:
    if node.items is not None:
        return "; ".join(item.string("an item") for item in node.items)
    return node.text or ""
