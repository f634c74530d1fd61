"""What a family of source trees reads: files, and the cells that come out of them, as matrix/families.yaml says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from toolmatrix.facts import pieces, versions
from toolmatrix.facts.yamlfile import YamlNode
from toolmatrix.harvest import extractors
from toolmatrix.harvest.extractors import Unread
from toolmatrix.value import Value

_READ = ("path", "paths", "where", "releases", "grid", "cells")
_OTHER_WAYS = ("match", "column", "date")
_WAYS = (*extractors.EXTRACTORS, *_OTHER_WAYS)
_CELL = (*_WAYS, "is", "words", "several", "nothing", "releases")
_VALUE = "value"
# `{major+1}`: what comes before the next major release is written as below it.
_NAMED = re.compile(r"\{(\w+)(\+1)?\}")
# What an error shows of a text.
_SHOWN = 80
_NOTHING: Mapping[str, str] = {}


class CellReading(Value):
    """How the value of one column is found, and in which releases it has to be there.

    `way` is one of those of `ways`, `column` of a table, `date` of the tag, or `match` alone for the text as a whole.
    """

    way: str
    node: YamlNode
    match: re.Pattern[str] | None
    template: str
    # What a value is called here; one that is not among them is refused.
    words: Mapping[str, str]
    # One value, or several: separated by blanks as in a selector, or as a list.
    several: str
    nothing: tuple[str, ...]
    releases: str

    @property
    def expected(self) -> str:
        """What is looked for, for people."""
        return self.match.pattern if self.match else f"{self.way} {pieces.printed(self.node)}"

    def values(self, texts: Sequence[str], given: Mapping[str, str] = _NOTHING) -> list[str]:
        """The values in these texts, each once; `given` are groups that its template may name besides.

        Raises Unread where none is, or several are and one was expected.
        """
        # `N/A` is told, and is nothing: it must not be refused like a value that is missing.
        told = [text for text in texts if text not in self.nothing]
        if texts and not told:
            return []
        found = dict.fromkeys(
            self._value({**given, **groups}) for text in told for groups in self._parts(text)
        )
        if not found:
            raise Unread(repr("; ".join(told)[:_SHOWN]) if told else "nothing")
        if len(found) > 1 and not self.several:
            raise Unread(f"{len(found)} values: {', '.join(found)[:_SHOWN]}")
        return list(found)

    def _parts(self, text: str) -> Iterator[Mapping[str, str]]:
        if self.match is None:
            yield {_VALUE: text.strip()}
            return
        for match in self.match.finditer(text):
            yield {_VALUE: match[0], **match.groupdict(default="")}

    def _value(self, groups: Mapping[str, str]) -> str:
        value = _NAMED.sub(
            lambda name: str(int(groups[name[1]]) + 1) if name[2] else groups[name[1]],
            self.template,
        )
        if self.words and value not in self.words:
            raise Unread(f"`{value[:_SHOWN]}`, and not one of {', '.join(self.words)}")
        return self.words.get(value, value)


class GridReading(Value):
    """A table of releases in a file: whether its columns are records, what stands before it, what names a release."""

    columns: bool
    after: str
    release: CellReading


class PathsReading(Value):
    """Files of one release each: a pattern of their paths, and what names the release of one."""

    match: re.Pattern[str]
    release: CellReading


class FileReading(Value):
    """One file that is read, or many; the releases that have it, and the cells that come out of it.

    Without a path it is the tag that is read.
    """

    path: str
    paths: PathsReading | None
    where: str
    releases: str
    grid: GridReading | None
    # Of several readings of a cell the values follow one another.
    cells: Mapping[str, Sequence[CellReading | str]]


def file(node: YamlNode) -> FileReading:
    """One item under `read:`. Raises MatrixError."""
    fields = node.only("what is read", _READ, ("cells",))
    paths = _paths(fields["paths"]) if "paths" in fields else None
    given = tuple(paths.match.groupindex) if paths else ()
    return FileReading(
        path=_path(fields["path"]) if "path" in fields else "",
        paths=paths,
        where=pieces.text(fields, "where"),
        releases=_selector(fields),
        grid=_grid(fields["grid"]) if "grid" in fields else None,
        cells={
            name: [one.text or _cell(one, given) for one in part.several()]
            for name, part in fields["cells"].mapping("cells").items()
        },
    )


def pattern(node: YamlNode) -> re.Pattern[str]:
    """A regular expression, for each line of a text. Raises MatrixError."""
    try:
        return re.compile(node.string("a pattern"), re.MULTILINE)
    except re.error as error:
        node.fail("a pattern cannot be read", expected="a regular expression", found=str(error))


def among(version: str, selector: str) -> bool:
    """Whether a selector admits a version. Raises SelectorError for what is no version."""
    # The lowest bit is that of `absent`, which is no version.
    return versions.Scale("pep440", [version]).select(selector) > 1


def _path(node: YamlNode) -> str:
    path = node.string("a path")
    if path.startswith("/") or {"..", "."} & set(path.split("/")) or not path.isprintable():
        node.fail("a path leads out of the tree", expected="a path inside the tree")
    return path


def _grid(node: YamlNode) -> GridReading:
    fields = node.only("a grid", ("records", "after", "release"), ("records", "release"))
    return GridReading(
        columns=fields["records"].choice("records", ("rows", "columns")) == "columns",
        after=pattern(fields["after"]).pattern if "after" in fields else "",
        release=_cell(fields["release"]),
    )


def _paths(node: YamlNode) -> PathsReading:
    fields = node.only("paths", ("match", "release"), ("match", "release"))
    match = pattern(fields["match"])
    return PathsReading(match=match, release=_cell(fields["release"], tuple(match.groupindex)))


def _cell(node: YamlNode, given: tuple[str, ...] = ()) -> CellReading:
    fields = node.only("a cell", _CELL)
    named = [way for way in _WAYS if way in fields]
    # A pattern also takes apart what another way has found.
    way = [one for one in named if one != "match"] or named
    if len(way) != 1:
        node.fail("a cell is read in one way", expected=f"one of {', '.join(_WAYS)}")
    match = pattern(fields["match"]) if "match" in fields else None
    template = pieces.text(fields, "is", f"{{{_VALUE}}}")
    known = {_VALUE, *given, *(match.groupindex if match else ())}
    for name, _ in _NAMED.findall(template):
        if name not in known:
            fields["is"].fail(f"`match` has no group `{name}`", expected=", ".join(sorted(known)))
    return CellReading(
        way=way[0],
        node=fields[way[0]],
        match=match,
        template=template,
        words={name: one.string("a word") for name, one in pieces.entries(fields, "words").items()},
        several=pieces.choice(fields, "several", ("blanks", "list")),
        nothing=tuple(one.string("a text") for one in pieces.several(fields, "nothing")),
        releases=_selector(fields),
    )


def _selector(fields: Mapping[str, YamlNode]) -> str:
    written = pieces.text(fields, "releases", "*")
    try:
        versions.parse(written)
    except versions.SelectorError as error:
        fields["releases"].fail("a selector cannot be read", expected="`>=1.2`", found=str(error))
    return written
