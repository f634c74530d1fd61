"""The JSON Schemas of the documents that the program writes and reads, made of the declarations in its source.

`UPDATE_GOLDEN=1 ./tests/run tests/test_schemas.py` writes their files. See toolmatrix/documents.py for the words that a
declaration is made of.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from toolmatrix.factbase import evidence
from toolmatrix.resources import schema_path

PACKAGE = Path(__file__).parent.parent / "toolmatrix"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
WORDS = "toolmatrix.documents"
VALUES = "toolmatrix.value"

Shape = dict[str, Any]

NAMED: dict[str, Shape] = {
    "Any": {},
    "object": {},
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "Day": {"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
    "Month": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"},
    "Digest": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
    "Code": {"type": "string", "pattern": "^TM[0-9]{3}$"},
    "Evidence": {"enum": list(evidence.WORDS)},
    "Count": {"type": "integer", "minimum": 0},
    "Ordinal": {"type": "integer", "minimum": 1},
    "Amount": {"type": "number", "minimum": 0},
    "Text": {"type": ["string", "number"], "minLength": 1},
    "Flag": {"enum": [True, False, "true", "false"]},
    "Rank": {"type": ["integer", "string"], "pattern": "^-?[0-9]+$"},
    "Id": {"type": ["string", "number"], "minLength": 1, "pattern": "^[^#]*$"},
    "ComponentName": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]*$"},
    "PackageName": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
}
REGEX: Shape = {"type": "string", "format": "regex", "minLength": 1}
BOUNDS = {"NonEmpty": {"minItems": 1}, "Pair": {"minItems": 2, "maxItems": 2}}
# Documents that have no more keys than are declared, in any of their objects.
CLOSED = ("harvest", "judged", "layer-reading", "machine", "porting", "signatures")


def shipped(name: str) -> Shape:
    """The schema of a document, as the package ships it."""
    made: Shape = json.loads(Path(schema_path(name)).read_text(encoding="utf-8"))
    return made


class Name(NamedTuple):
    """A name as a module knows it."""

    module: str
    name: str


@cache
def source(module: str) -> ast.Module:
    """The source of a module."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


@cache
def names(module: str) -> dict[str, ast.AST | Name]:
    """What the names of a module mean: a class, a value, or what is imported."""
    known: dict[str, ast.AST | Name] = {}
    for node in _statements(source(module).body):
        if isinstance(node, ast.ClassDef):
            known[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known[node.targets[0].id] = node.value
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                known[alias.asname or alias.name] = Name(node.module, alias.name)
    return known


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a module, also the ones that are there for type checkers alone."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _statements(node.body)


def meaning(node: ast.expr, module: str) -> tuple[Name, ast.AST | None]:
    """What a name or an attribute of a module means, and where: None for what is the library's own."""
    if isinstance(node, ast.Attribute):
        holder = names(module)[ast.unparse(node.value)]
        assert isinstance(holder, Name), ast.unparse(node)
        name = Name(".".join(holder), node.attr)
    else:
        name = Name(module, ast.unparse(node))
    while name.module.startswith(PACKAGE.name):
        found = names(name.module).get(name.name)
        if not isinstance(found, Name):
            return name, found
        name = found
    return name, None


class Schema:
    """The schema of one document, with the definition of each class that it is made of."""

    def __init__(self, document: Name) -> None:
        node = names(document.module)[document.name]
        assert isinstance(node, ast.ClassDef)
        self.definitions: dict[str, Shape] = {}
        self.name: str = _values(dict(_fields(node))["schema"], document.module)[0]
        self.closed = self.short in CLOSED
        self.whole = self.objects(node, document.module)

    @property
    def short(self) -> str:
        """The name of the schema's file, without its end."""
        return self.name.partition(".")[2].partition("/")[0]

    def to_json(self) -> Shape:
        """The schema."""
        head = {"$schema": DRAFT, "title": self.name, **self.whole}
        return head | ({"$defs": self.definitions} if self.definitions else {})

    def objects(self, node: ast.AST, module: str) -> Shape:
        """The shape of the objects of a class, which has that of its bases."""
        made: Shape = {"type": "object", "required": [], "properties": {}}
        for base in getattr(node, "bases", ()):
            name, parent = meaning(base, module)
            if _declares(parent) and name.module != VALUES:
                inherited = self.objects(parent, name.module)
                made["required"] += inherited["required"]
                made["properties"] |= inherited["properties"]
        written = _is_written(node, module)
        for field, annotation, needed in _keys(node, written=written):
            made["properties"][field] = self.shape(annotation, module)
            made["required"] += [field] if needed else []
        if self.closed or written:
            made["additionalProperties"] = False
        if not isinstance(node, ast.ClassDef):
            return made
        for field, text in _docstrings(node):
            field = _key(field) if written else field
            made["properties"][field] = made["properties"][field] | {"description": text}
        made |= self.attributes(node, module)
        return {"description": _text(ast.get_docstring(node) or ""), **made}

    def attributes(self, node: ast.ClassDef, module: str) -> Shape:
        """What attributes of a class say of its keys."""
        made: Shape = {}
        for one in node.body:
            if not isinstance(one, ast.Assign):
                continue
            match ast.unparse(one.targets[0]):
                case "extra_items":
                    made["additionalProperties"] = self.shape(one.value, module)
                case "any_of" | "one_of" as word:
                    choices = [{"required": [key]} for key in ast.literal_eval(one.value)]
                    made[word.replace("_of", "Of")] = choices
        return made

    def shape(self, node: ast.expr, module: str) -> Shape:
        """The shape of an annotation."""
        if isinstance(node, ast.Constant) and node.value is None:
            return {"type": "null"}
        if isinstance(node, ast.BinOp):
            return _either([self.shape(one, module) for one in (node.left, node.right)])
        if isinstance(node, ast.Subscript):
            return self.subscript(_word(node), node, module)
        name, found = meaning(node, module)
        if name.name in NAMED and (found is None or name.module == WORDS):
            return dict(NAMED[name.name])
        if _declares(found):
            own = name.name.strip("_")
            if own not in self.definitions:
                self.definitions[own] = {}
                self.definitions[own] = self.objects(found, name.module)
            return {"$ref": f"#/$defs/{own}"}
        assert isinstance(found, ast.expr), f"{module}: {ast.unparse(node)}"
        text = dict(_docstrings(source(name.module))).get(name.name)
        if text is None:
            return self.shape(found, name.module)
        self.definitions[name.name] = {"description": text, **self.shape(found, name.module)}
        return {"$ref": f"#/$defs/{name.name}"}

    def subscript(self, word: str, node: ast.Subscript, module: str) -> Shape:
        """The shape of an annotation with brackets."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if word == "Annotated" and _word(parts[0]) == "dict":
            return self.mapping(parts[0], node, module)
        if word == "Annotated" and (_word(parts[1]) or ast.unparse(parts[1]) in NAMED):
            return self.shape(parts[1], module)
        if word in ("Literal", "Annotated"):
            values = _values(node, module)
            return {"const": values[0]} if len(values) == 1 else {"enum": values}
        if word == "re.Pattern":
            return dict(REGEX)
        if word in ("dict", "Mapping"):
            made = {"type": "object", "additionalProperties": self.shape(parts[1], module)}
            keys = self.shape(parts[0], module)
            return made if keys == NAMED["str"] else made | {"propertyNames": keys}
        assert word in ("list", "tuple", "Sequence", *BOUNDS), ast.unparse(node)
        if word == "tuple" and ast.unparse(parts[-1]) != "...":
            size = len(parts)
            items = [self.shape(one, module) for one in parts]
            if any(one != items[0] for one in items):
                return {"type": "array", "prefixItems": items, "items": False, "minItems": size}
            return {"type": "array", "items": items[0], "minItems": size, "maxItems": size}
        return {"type": "array", "items": self.shape(parts[0], module), **BOUNDS.get(word, {})}

    def mapping(self, node: ast.expr, annotated: ast.Subscript, module: str) -> Shape:
        """The shape of a dictionary: what a class writes, or values of one kind under the keys that are named."""
        assert isinstance(annotated.slice, ast.Tuple)
        about = annotated.slice.elts[1]
        if not isinstance(about, ast.Constant) and _declares(meaning(about, module)[1]):
            return self.shape(about, module)
        assert isinstance(node, ast.Subscript)
        assert isinstance(node.slice, ast.Tuple)
        keys = _values(annotated, module)
        value = self.shape(node.slice.elts[1], module)
        made: Shape = {"type": "object", "required": keys, "properties": dict.fromkeys(keys, value)}
        return made | ({"additionalProperties": False} if self.closed else {})


def _declares(node: ast.AST | None) -> TypeGuard[ast.ClassDef | ast.Call]:
    """Whether it declares objects: a class, or a call of `TypedDict`."""
    return isinstance(node, (ast.ClassDef, ast.Call))


def _word(node: ast.expr) -> str:
    """What stands before the brackets."""
    return ast.unparse(node.value) if isinstance(node, ast.Subscript) else ""


def _fields(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The fields of a class, or of a call with their names and annotations."""
    if isinstance(node, ast.Call):
        declared = node.args[1]
        assert isinstance(declared, ast.Dict)
        for key, annotation in zip(declared.keys, declared.values, strict=True):
            yield ast.literal_eval(key or ""), annotation
    for one in getattr(node, "body", ()):
        if isinstance(one, ast.AnnAssign):
            yield ast.unparse(one.target), one.annotation


def _keys(node: ast.AST, *, written: bool) -> Iterator[tuple[str, ast.expr, bool]]:
    """The keys of a class's own fields, with their annotations and whether they must be there."""
    if written:
        for one in getattr(node, "body", ()):
            if isinstance(one, ast.AnnAssign):
                annotation = one.annotation
                if one.value and ast.unparse(one.value) == "None":
                    assert isinstance(annotation, ast.BinOp)
                    annotation = annotation.left
                yield _key(ast.unparse(one.target)), annotation, one.value is None
        return
    partial = any(one.arg == "total" for one in getattr(node, "keywords", ()))
    for field, annotation in _fields(node):
        needed = not partial
        if isinstance(annotation, ast.Subscript) and _word(annotation) == "NotRequired":
            annotation, needed = annotation.slice, False
        yield field, annotation, needed


def _key(field: str) -> str:
    """The key of a file that a field of a `Value` stands for."""
    return field.rstrip("_").replace("_", "-")


def _is_written(node: ast.AST, module: str) -> bool:
    """Whether a class is a `Value` that stands for a mapping in files."""
    bases = [meaning(base, module) for base in getattr(node, "bases", ())]
    return any(
        name == (VALUES, "Value") or _is_written(parent, name.module)
        for name, parent in bases
        if parent is not None and name != (VALUES, "Document")
    )


def _docstrings(node: ast.ClassDef | ast.Module) -> Iterator[tuple[str, str]]:
    """The fields or names that have a text below them."""
    for before, after in zip(node.body, node.body[1:], strict=False):
        if isinstance(before, (ast.AnnAssign, ast.Assign)) and isinstance(after, ast.Expr):
            target = before.target if isinstance(before, ast.AnnAssign) else before.targets[0]
            yield ast.unparse(target), _text(ast.literal_eval(after.value))


def _text(docstring: str) -> str:
    return " ".join(inspect.cleandoc(docstring).split())


def _values(node: ast.expr, module: str) -> list[Any]:
    """What a field may be: constants, or what names of the package hold."""
    assert isinstance(node, ast.Subscript)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    values: list[Any] = []
    for part in parts[1:] if _word(node) == "Annotated" else parts:
        if isinstance(part, ast.Constant):
            values.append(part.value)
        else:
            name, _ = meaning(part, module)
            held = getattr(import_module(name.module), name.name)
            values += [held] if isinstance(held, str) else held
    return values


def _either(shapes: list[Shape]) -> Shape:
    """The shape of what has one of some shapes, without `anyOf` where one shape can say it."""
    first, last = shapes
    if last == {"type": "null"} and "type" in first:
        kinds = first["type"] if isinstance(first["type"], list) else [first["type"]]
        return first | {"type": [*kinds, "null"]}
    if all(set(one) == {"type"} for one in shapes):
        kinds = first["type"] if isinstance(first["type"], list) else [first["type"]]
        return {"type": [*kinds, last["type"]]}
    if "enum" in first and ("enum" in last or "const" in last or last == {"type": "null"}):
        return {"enum": first["enum"] + last.get("enum", [last.get("const")])}
    return {"anyOf": [*first.get("anyOf", [first]), last]}


def documents() -> Iterator[Schema]:
    """The schema of each document that the source declares: those whose `schema` is one word."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        module = module.removesuffix(".__init__")
        for name, node in names(module).items():
            if isinstance(node, ast.ClassDef) and _is_document(node):
                yield Schema(Name(module, name))


def _is_document(node: ast.ClassDef) -> bool:
    annotation = dict(_fields(node)).get("schema")
    return annotation is not None and _word(annotation) in ("Annotated", "Literal")
