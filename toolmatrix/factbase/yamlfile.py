"""YAML with positions: every value remembers its line and column, every scalar stays text as written.

Only the shapes a matrix needs: mappings, sequences, plain scalars. Anchors, aliases, tags and duplicate keys are
refused, so nothing in a file can run code, grow without bound or hide a value (safe loader, docs/facts.md).
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import yaml

from toolmatrix.errors import MatrixError, Position, ToolmatrixError
from toolmatrix.opener import read_file
from toolmatrix.value import Value

SIZE_LIMIT = 32 << 20
"""Bytes of one matrix file; the built-in ones are below 1 MiB."""

DEPTH_LIMIT = 32
"""Levels of nesting; the built-in files use eight."""

# Letters of a wrong value that an error shows.
_LONGEST_VALUE = 80

# The loader in C is ten times as fast, and not part of every build of PyYAML.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Its message, from PyYAML 6.0.4 on, for a thousand levels; it may have emitted no event by then.
_TOO_DEEP = "exceeded maximum nesting depth"
# What every file of ours has.
_OURS = re.compile(rb"\bschema[\"']?[ \t]*:\s*[\"']?toolmatrix\.")
# Python refuses to read numbers of thousands of digits, and no rank has more than a few.
_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)


class NodeKind(Value):
    """The name of a kind of file, its class of errors, and the page that describes its layout.

    Where it does not `quote`, the error has none of the words of the file.
    """

    noun: str
    error: type[ToolmatrixError]
    help: str
    missing: str
    quotes: bool = True

    def fail(
        self, what: str, where: Position, expected: str = "", found: str = "", help: str = ""
    ) -> NoReturn:
        """Raise the error of this kind."""
        help = help or self.help
        raise self.error(what, where=where, expected=expected, found=found, help=help) from None

    def quote(self, text: str) -> str:
        """A word of the file, if it may be shown."""
        return f"`{_one_line(text)}`" if self.quotes else ""


MATRIX = NodeKind(
    noun="the matrix file",
    error=MatrixError,
    help="`toolmatrix rule TM903` shows the layout of matrix files and the paths of their schemas",
    missing="check the path given by --matrix, `matrix:` or `files:`",
)


class YamlNode:
    """A value with its place. Exactly one of `text`, `items` (sequence), `fields` (mapping) is not None."""

    __slots__ = ("column", "fields", "file", "items", "keys", "line", "of", "text")

    def __init__(self, file: str, line: int, column: int, of: NodeKind = MATRIX) -> None:
        self.file = file
        self.of = of
        self.line = line
        self.column = column
        self.text: str | None = None
        self.items: list[YamlNode] | None = None
        self.fields: dict[str, YamlNode] | None = None
        self.keys: dict[str, Position] = {}

    @property
    def where(self) -> Position:
        return Position(self.file, self.line, self.column)

    def key(self, name: str) -> YamlNode:
        """A key of this mapping, as text with its own place."""
        node = YamlNode(self.file, self.keys[name].line, self.keys[name].column, self.of)
        node.text = name
        return node

    @property
    def kind(self) -> str:
        """The name of the kind of node, for people."""
        if self.text is not None:
            return (self.of.quote(self.text) or "text") if self.text else "nothing"
        return "a list" if self.items is not None else "a mapping"

    def fail(self, what: str, *, expected: str = "", found: str = "", help: str = "") -> NoReturn:
        self.of.fail(what, self.where, expected, found or self.kind, help)

    def mapping(self, what: str) -> dict[str, YamlNode]:
        if self.fields is None:
            self.fail(f"{what} must be a mapping", expected="`key: value` pairs")
        return self.fields

    def sequence(self, what: str) -> list[YamlNode]:
        if self.items is None:
            self.fail(f"{what} must be a list", expected="a list")
        return self.items

    def several(self) -> list[YamlNode]:
        """The items of a list, or a single value as a list."""
        return [self] if self.items is None else self.items

    def string(self, what: str) -> str:
        if not self.text:
            self.fail(f"{what} must be text", expected="text")
        return self.text

    def choice(self, what: str, words: tuple[str, ...]) -> str:
        text = self.string(what)
        if text not in words:
            self.fail(f"{what} is not a known word", expected=" | ".join(words))
        return text

    def flag(self, what: str) -> bool:
        return self.choice(what, ("true", "false")) == "true"

    def integer(self, what: str) -> int:
        text = self.string(what)
        if not _INTEGER.fullmatch(text):
            self.fail(f"{what} must be a whole number", expected="a whole number")
        return int(text)

    def only(
        self, what: str, known: tuple[str, ...], required: tuple[str, ...] = ()
    ) -> dict[str, YamlNode]:
        """The fields of a mapping after refusing unknown and missing keys."""
        fields = self.mapping(what)
        for name in fields:
            if name not in known:
                self.key(name).fail(f"{what} has an unknown key", expected=", ".join(known))
        for name in required:
            if name not in fields:
                self.fail(f"{what} has no `{name}`", expected=f"`{name}:`", found="no such key")
        return fields


def _one_line(text: str) -> str:
    # A value may hold what moves the cursor or breaks the line of a terminal.
    plain = text if text.isprintable() else ascii(text)[1:-1]
    return plain if len(plain) <= _LONGEST_VALUE else plain[:_LONGEST_VALUE] + "..."


def read(path: str, label: str = "", of: NodeKind = MATRIX) -> YamlNode:
    """Parse one file into nodes. Raises the error of its kind with the position of whatever is wrong."""
    label = label or path
    try:
        data = read_file(path, SIZE_LIMIT)
    except OSError as error:
        reason = error.strerror or "an error"
        of.fail(f"{of.noun} cannot be read", Position(label), "a readable file", reason, of.missing)
    if data is None:
        of.fail(
            f"{of.noun} is too large",
            Position(label),
            expected=f"at most {SIZE_LIMIT >> 20} MiB",
            found="more",
            help="split it, and list the parts under `files:`",
        )
    # The caller, such as an assistant, may name a file that it must not read: no foreign file is quoted.
    return parse(data, label, of if _OURS.search(data) else of.replace(quotes=False))


def parse(data: bytes, label: str, of: NodeKind = MATRIX) -> YamlNode:
    """Parse bytes. Raises the error of the kind."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        of.fail(
            f"{of.noun} is not UTF-8",
            _end_position(label, data[: error.start].decode("utf-8")),
            expected="UTF-8 text",
            found=f"byte 0x{data[error.start]:02x}",
            help="save the file as UTF-8",
        )
    try:
        root = _build_tree(text, label, of)
    except yaml.reader.ReaderError as error:
        match = yaml.reader.Reader.NON_PRINTABLE.search(text)
        of.fail(
            f"{of.noun} contains a control character",
            _end_position(label, text[: match.start()]) if match else Position(label),
            expected="printable text",
            found=f"U+{ord(match[0]):04X}" if match else of.quote(str(error)),
            help="remove it",
        )
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        of.fail(
            f"{of.noun} is not YAML",
            Position(label, mark.line + 1, mark.column + 1) if mark else Position(label),
            found=str(getattr(error, "problem", None) or "") if of.quotes else "",
        )
    if root is None:
        of.fail(f"{of.noun} is empty", Position(label, 1, 1), "`schema: ...`")
    return root


def _build_tree(text: str, label: str, of: NodeKind) -> YamlNode | None:
    try:
        return _Builder(label, of).build(text, _Loader)
    except yaml.YAMLError as error:
        if getattr(error, "problem", "") != _TOO_DEEP:
            raise
    # The loader in Python emits an event for every level.
    return _Builder(label, of).build(text, yaml.SafeLoader)


def _end_position(label: str, before: str) -> Position:
    line = before.count("\n") + 1
    return Position(label, line, len(before) - (before.rfind("\n") + 1) + 1)


class _Builder:
    # With a stack of its own: PyYAML's composer recurses in C, so a file of opening brackets would end the process.

    def __init__(self, label: str, of: NodeKind) -> None:
        self.label = label
        self.of = of
        self.root: YamlNode | None = None
        self.open: list[YamlNode] = []
        self.key: list[str | None] = []

    def build(self, text: str, loader: Any) -> YamlNode | None:
        parser = loader(text)
        try:
            while not isinstance(event := parser.get_event(), yaml.StreamEndEvent):
                self.take(event)
        finally:
            # PyYAML's own parser refers to itself until it is disposed of.
            parser.dispose()
        return self.root

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            self.open.pop()
            self.key.pop()
        elif isinstance(event, yaml.AliasEvent):
            self.node(event).fail(
                "aliases are not allowed",
                expected="the value itself",
                found=self.of.quote(f"*{event.anchor}"),
            )
        elif isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)):
            self.value(event)
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            self.node(event).fail(
                "a file must contain one document", expected="one document", found="`---`"
            )

    def node(self, event: yaml.Event) -> YamlNode:
        # Marks count from 0, people from 1.
        mark = event.start_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        return YamlNode(self.label, line, column, self.of)

    def value(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        node = self.node(event)
        # `!` alone says that a scalar is text, which every one is here.
        if event.anchor or (event.tag and event.tag != "!"):
            node.fail(
                "anchors and tags are not allowed",
                expected="plain YAML",
                found=self.of.quote(str(event.anchor or event.tag)),
            )
        if isinstance(event, yaml.ScalarEvent):
            node.text = event.value
        self.attach(node)
        if isinstance(event, yaml.ScalarEvent):
            return
        if isinstance(event, yaml.SequenceStartEvent):
            node.items = []
        else:
            node.fields = {}
        self.open.append(node)
        self.key.append(None)
        if len(self.open) > DEPTH_LIMIT:
            node.fail(
                f"{self.of.noun} is nested too deeply",
                expected=f"at most {DEPTH_LIMIT} levels",
                found="more",
            )

    def attach(self, node: YamlNode) -> None:
        if not self.open:
            self.root = node
            return
        parent = self.open[-1]
        fields = parent.fields
        if fields is None:
            parent.sequence("it").append(node)
            return
        pending = self.key[-1]
        if pending is not None:
            fields[pending] = node
            self.key[-1] = None
            return
        if node.text is None:
            node.fail("a key must be text", expected="text", found="a list or mapping")
        if node.text in fields:
            node.fail("a key is used twice", expected="each key once", help="keep one of the two")
        parent.keys[node.text] = node.where
        self.key[-1] = node.text
