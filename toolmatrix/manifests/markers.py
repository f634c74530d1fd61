"""YAML, and JSON with comments, as values with their places; aliases and merge keys are followed, tags are not.

A matrix has a stricter reader (`facts.yamlfile`), which refuses what files of others are full of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from toolmatrix.errors import ManifestError, Position
from toolmatrix.manifests.model import FileText, Traced

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# A file of a project has a handful; more is no such file, and walking it would take the stack.
_DEEPEST = 40


class Marked:
    """A value, or nothing: what is not there has no items and no text."""

    __slots__ = ("node", "source")

    def __init__(self, source: FileText, node: yaml.Node | None) -> None:
        self.source = source
        self.node = node

    def fields(self, deep: int = 0) -> dict[str, tuple[Traced, Marked]]:
        """The keys of a mapping with their places, and the values; those of merged mappings behind its own."""
        entries: dict[str, tuple[Traced, Marked]] = {}
        if not isinstance(self.node, yaml.MappingNode) or deep > _DEEPEST:
            return entries
        self._visit()
        merged: list[Marked] = []
        for key, value in self.node.value:
            name = Marked(self.source, key).text()
            if name is None:
                continue
            marked = Marked(self.source, value)
            if name.text == "<<":
                merged += marked.items() if isinstance(value, yaml.SequenceNode) else [marked]
            else:
                # Of a repeated key the last one counts, as in most readers.
                entries[key.value] = name, marked
        for marked in merged:
            for called, field in marked.fields(deep + 1).items():
                entries.setdefault(called, field)
        return entries

    def get(self, name: str) -> Marked:
        """The value of a key."""
        entry = self.fields().get(name)
        return entry[1] if entry else Marked(self.source, None)

    def items(self) -> list[Marked]:
        """The items of a list; of anything else none."""
        if not isinstance(self.node, yaml.SequenceNode):
            return []
        self._visit()
        return [Marked(self.source, node) for node in self.node.value]

    def _visit(self) -> None:
        if self.node is not None and not self.source.visit(1 + len(self.node.value)):
            raise ManifestError(
                "the file expands to too many values",
                where=Position(self.source.path, self.node.start_mark.line + 1),
                expected="fewer aliases, or fewer merged mappings",
            )

    def text(self) -> Traced | None:
        """A scalar as text with its place; None for anything else, and for null."""
        node = self.node
        if not isinstance(node, yaml.ScalarNode) or node.tag.endswith(":null"):
            return None
        start, end = node.start_mark.index, node.end_mark.index
        raw = self.source.whole()[start:end].strip()
        # The quotes are no part of the value.
        if node.style in ("'", '"'):
            raw = raw[1:-1]
        if raw.text == node.value:
            return raw
        # Escapes or folded lines: the text differs from the source, so only its beginning has a position.
        return Traced(self.source, node.value, [start] * len(node.value))


def parse(source: FileText, text: str = "") -> Marked:
    """A file of YAML; `text` is what is parsed in its place, letter for letter as long. Raises ManifestError."""
    try:
        node = yaml.compose(text or source.text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = (
            Position(source.path, mark.line + 1, mark.column + 1) if mark else Position(source.path)
        )
        raise ManifestError(
            "the file is not YAML",
            where=where,
            expected="YAML",
            found=getattr(error, "problem", None) or "a syntax error",
        ) from None
    except RecursionError:
        raise ManifestError("the file is nested too deeply", where=Position(source.path)) from None
    return Marked(source, node)


_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|\t', re.DOTALL)


def parse_json(source: FileText) -> Marked:
    """A file of JSON, which may have comments and trailing commas. Raises ManifestError."""

    # JSON is YAML but for comments and tabs, which become as many blanks.
    def blank(match: re.Match[str]) -> str:
        token = match[0]
        return token if token[0] == '"' else re.sub(r"[^\n]", " ", token)

    text = _STRING.sub(blank, source.text)
    return parse(source, text or " ")


def texts(items: list[Marked]) -> Iterator[Traced]:
    """Those of some values that are text."""
    return (text for text in (item.text() for item in items) if text is not None)
