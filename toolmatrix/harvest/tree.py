"""Facts out of source trees: what the makers of a release wrote into it, read for every release at once.

A family says which tags are releases, which files are read at which of them, and in which way a value stands there
(docs/harvest-trees.md). A file or value that a family names and a tree does not have is refused, never left out.
"""

from __future__ import annotations

from toolmatrix.errors import HarvestRefused, Position
from toolmatrix.facts import versions
from toolmatrix.harvest import reading, source_tree, ways
from toolmatrix.harvest.source_tree import Snapshot, UnpackedTree
from toolmatrix.harvest.ways import Unread
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, NoReturn

    from toolmatrix.facts.yamlfile import YamlNode
    from toolmatrix.harvest.families import Errand, Family
    from toolmatrix.harvest.reading import CellReading, FileReading
    from toolmatrix.harvest.source_tree import Found

_FAMILY = (
    *("kind", "about", "title", "repository", "tags", "branches", "marks", "version", "tables"),
)
# The keys of a table of facts that a family has in the same words.
_FACTS = (
    *("id", "about", "where", "evidence", "context", "key", "defines", "stands-for", "note"),
    *("install", "matches", "columns"),
)
_TABLE = (*_FACTS, "floor", "read")
_OWN_CELLS = ("id", "date", "line", "channel", "machine", "abi")
_SHOWN = 5
_HELP = "if its makers changed it, the family has to be changed; what was harvested before is kept"


class _Release(Value):
    version: str
    at: Snapshot


def harvest(family: Family, errand: Errand) -> dict[str, Any]:
    """The facts of the source tree at `errand.place`.

    Raises HarvestRefused where the tree is another project's, lacks a file or value that the family names, or gives
    fewer rows than its floors; MatrixError where the family is wrong; ToolMissing without git.
    """
    reader = _Reader(family, errand)
    return {"tables": [reader.table(node) for node in reader.tables], "sources": reader.sources}


class _Reader:
    def __init__(self, family: Family, errand: Errand) -> None:
        needed = ("title", "repository", "marks", "tables")
        fields = family.node.only(f"family `{family.name}`", _FAMILY, needed)
        self.family, self.errand = family, errand
        self.repository = fields["repository"].string("repository")
        self.title = fields["title"].string("title")
        self.tables = fields["tables"].sequence("tables")
        self.sources: dict[str, dict[str, str]] = {}
        if not errand.place:
            self._refuse("no source tree is named", f"`--from PATH`, a clone of {self.repository}")
        self.tree = source_tree.opened(errand.place, errand.env)
        marks = [node.string("a mark") for node in fields["marks"].sequence("marks")]
        head = self.tree.head()
        found = self.tree.read([(head, mark) for mark in marks])
        missing = [mark for mark in marks if found[head, mark].data is None]
        if missing:
            self._refuse(
                f"this is no tree of {self.repository}",
                ", ".join(marks),
                f"no {', '.join(missing)}",
            )
        self.releases = self._releases(fields)

    def _releases(self, fields: Mapping[str, YamlNode]) -> list[_Release]:
        if isinstance(self.tree, UnpackedTree):
            return self._unpacked(fields)
        kind = next((word for word in ("tags", "branches") if word in fields), "")
        if not kind:
            return []
        known = self.tree.snapshots("refs/tags" if kind == "tags" else "refs/heads")
        found: dict[str, _Release] = {}
        # Of several patterns the first that has a release tells of it.
        for node in fields[kind].several():
            named = reading.pattern(node)
            if "release" not in named.groupindex:
                node.fail("a pattern names no release", expected="`(?P<release>...)` in it")
            for at in known:
                match = named.fullmatch(at.name)
                if match:
                    one = _Release(version=match["release"], at=at)
                    found.setdefault(one.version, one)
        if not found:
            self._refuse(
                f"none of its {kind} is a release",
                " or ".join(node.string("a pattern") for node in fields[kind].several()),
                ", ".join(at.name for at in known[:_SHOWN]) or f"no {kind}",
            )
        try:
            return [found[version] for version in sorted(found, key=versions.key, reverse=True)]
        except versions.SelectorError as error:
            self._refuse(f"one of its {kind} is no version", "a version", str(error))

    def _unpacked(self, fields: Mapping[str, YamlNode]) -> list[_Release]:
        if "version" not in fields:
            self._refuse("this tree does not tell its release", "a clone with its tags")
        told = reading.file(fields["version"])
        one = _Release(version="0", at=self.tree.head())
        text = self._text(one.at, told.path, self.tree.read([(one.at, told.path)]))
        cells = self._cells(told, one, text, {})
        if "release" not in cells:
            fields["version"].fail("no release is read", expected="`cells: {release: ...}`")
        return [self._release(told, one.at, cells["release"])]

    def table(self, node: YamlNode) -> dict[str, Any]:
        """One table of facts."""
        fields = node.only("a table", _TABLE, ("id", "key", "evidence", "columns", "floor", "read"))
        component, columns = fields["key"].string("key"), fields["columns"].mapping("columns")
        rows: list[dict[str, Any]] = []
        for part in fields["read"].several():
            told = reading.file(part)
            for column in told.cells:
                if column not in (*columns, *_OWN_CELLS):
                    part.fail(f"there is no column `{column}`", expected=", ".join(columns))
            rows += self._rows(told, component)
        floor = fields["floor"].integer("floor")
        floor = min(floor, 1) if isinstance(self.tree, UnpackedTree) else floor
        name = fields["id"].string("id")
        if len(rows) < max(floor, 1):
            self._refuse(f"rows of `{name}` are lost", f"{floor} rows at least", f"{len(rows)}")
        names = [row.get("id", row[component]) for row in rows]
        twice = dict.fromkeys(one for one in names if names.count(one) > 1)
        if twice:
            self._refuse(f"rows of `{name}` stand twice", "each once", ", ".join(twice))
        plain = {key: _plain(fields[key]) for key in _FACTS if key in fields}
        # Every row has a source of its own; that of the table is one of them, as each table has one.
        return {**plain, "source": rows[0]["source"], "rows": rows}

    def _rows(self, told: FileReading, component: str) -> list[dict[str, Any]]:
        chosen = [_Release(version="", at=self.tree.head())]
        if not told.grid:
            chosen = [one for one in self.releases if reading.among(one.version, told.releases)]
        found = self.tree.read([(one.at, told.path) for one in chosen if told.path])
        rows = []
        for done, one in enumerate(chosen, 1):
            text = self._text(one.at, told.path, found) if told.path else ""
            source = self._source(one, told.path, found.get((one.at, told.path)))
            for release, record in self._records(told, one, text):
                cells = self._cells(told, release, text, record)
                where = told.where or told.path
                if not told.grid and one.at.ref:
                    kind = "tag" if one.at.ref.startswith("refs/tags/") else "branch"
                    where = f"{where}, {kind} {one.at.name}".removeprefix(", ")
                rows.append({component: release.version, **cells, "source": source, "where": where})
            self.errand.progress(done, len(chosen))
        return rows

    def _records(
        self, told: FileReading, one: _Release, text: str
    ) -> Iterator[tuple[_Release, Mapping[str, list[str]]]]:
        if not told.grid:
            yield one, {}
            return
        try:
            grid = ways.grid(text, told.path, columns=told.grid.columns, after=told.grid.after)
        except Unread as found:
            self._moved(told, one.at, "a table", str(found))
        for record in grid:
            named = self._values(told.grid.release, "release", told, one.at, text, record)
            for release in (self._release(told, one.at, name) for name in named):
                if reading.among(release.version, told.releases):
                    yield release, record

    def _release(self, told: FileReading, at: Snapshot, version: str) -> _Release:
        try:
            versions.key(version)
        except versions.SelectorError:
            self._moved(told, at, "the version of a release", version)
        return _Release(version=version, at=at)

    def _cells(
        self, told: FileReading, one: _Release, text: str, record: Mapping[str, list[str]]
    ) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, cells in told.cells.items():
            values, as_list = [], False
            for cell in cells:
                if isinstance(cell, str):
                    values.append(cell.replace("{release}", one.version))
                elif reading.among(one.version, cell.releases):
                    values += self._values(cell, name, told, one.at, text, record)
                    as_list = cell.several == "list"
            if values:
                made[name] = values if as_list else " ".join(values)
        return made

    def _values(
        self,
        cell: CellReading,
        name: str,
        told: FileReading,
        at: Snapshot,
        text: str,
        record: Mapping[str, list[str]],
    ) -> list[str]:
        try:
            if cell.way == "date":
                return [at.date] if at.date else []
            if cell.way == "column":
                # An empty cell of a table says nothing.
                texts = ways.column(record, cell.node.string("column"))
                return cell.values(texts) if texts else []
            find = ways.WAYS.get(cell.way)
            return cell.values(find(text, told.path, cell.node) if find else [text])
        except Unread as found:
            self._moved(told, at, f"{name}: {cell.expected}", str(found))

    def _text(self, at: Snapshot, path: str, found: Mapping[tuple[Snapshot, str], Found]) -> str:
        data, why = found[at, path]
        where = Position(self._place(at, path))
        if data is None:
            raise HarvestRefused(
                "a file is not in the tree", where=where, expected=path, found=why, help=_HELP
            )
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise HarvestRefused("a file is no text", where=where, expected="text in UTF-8")
        return text

    def _moved(self, told: FileReading, at: Snapshot, expected: str, found: str) -> NoReturn:
        raise HarvestRefused(
            "a value does not stand where it did",
            where=Position(self._place(at, told.path)),
            expected=expected,
            found=found,
            help=_HELP,
        ) from None

    def _source(self, one: _Release, path: str, found: Found | None) -> str:
        known = one.at.name or one.version
        inside = f":{path}" if path else ""
        if one.at.commit:
            place = f"{self.repository}{inside}@{one.at.commit}"
        else:
            import hashlib

            digest = hashlib.sha256(found.data if found and found.data else b"").hexdigest()
            place = f"{self.repository}{inside}, release {known} unpacked, sha256 {digest}"
        name = "/".join(part for part in (self.family.name, known, path) if part)
        self.sources[name] = {
            "title": f"{self.title}, {path or 'tag'}" + (f" at {known}" if known != "HEAD" else ""),
            "at": place,
            "read": self.errand.day.isoformat(),
        }
        return name

    def _place(self, at: Snapshot, path: str) -> str:
        # As `git show` takes it.
        return f"{at.name}:{path}" if at.ref else f"{self.errand.place}/{path}"

    def _refuse(self, what: str, expected: str, found: str = "") -> NoReturn:
        where = Position(self.errand.place) if self.errand.place else None
        raise HarvestRefused(what, where=where, expected=expected, found=found, help=_HELP)


def _plain(node: YamlNode) -> Any:
    if node.fields is not None:
        return {name: _plain(part) for name, part in node.fields.items()}
    return node.text if node.items is None else [_plain(part) for part in node.items]
