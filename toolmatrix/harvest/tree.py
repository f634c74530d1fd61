"""Facts from source trees, read for all releases at once.

A family defines which tags are releases, which files are read at each of them, and how a value is extracted
(docs/harvest-trees.md). A file or value that a family names has to exist in the tree, or the tree is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from toolmatrix.errors import HarvestRefused, Position
from toolmatrix.factbase import versions
from toolmatrix.factbase.yamlfile import YamlNode
from toolmatrix.harvest import reading, source_tree
from toolmatrix.harvest.families import Family, HarvestContext, plain_value
from toolmatrix.harvest.reading import CellReading, FileReading, GridReading, Unread
from toolmatrix.harvest.source_tree import GitTree, Snapshot, TreeFile, UnpackedTree
from toolmatrix.value import Value

# The keys that a table of a family and a table of facts share.
_FACTS = (
    *("id", "about", "where", "evidence", "context", "key", "defines", "stands-for", "note"),
    *("install", "matches", "columns"),
)
_TABLE = (*_FACTS, "floor", "read")
_KINDS = {"tags": "refs/tags", "branches": "refs/heads"}
_OWN_CELLS = ("id", "date", "line", "channel", "machine", "abi")
_MOST_NAMED = 5
_HELP = "if the project changed it, update the family; the facts harvested before are kept"


class _Page(Value):
    # The source of the cells of one row: a file, a record of a table in it, and groups of its path.
    at: Snapshot
    path: str
    data: bytes = b""
    text: str = ""
    record: Mapping[str, list[str]] = {}
    groups: Mapping[str, str] = {}


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """The facts of the source tree at `context.place`.

    Raises HarvestRefused if the tree is of another project, lacks a file or value that the family names, or has
    fewer rows than a floor; MatrixError if the family is wrong; ToolMissing without git.
    """
    reader = _Reader(family, context)
    tables = [reader.table(node) for node in reader.tables]
    # One unpacked release, or early ones, may have no rows in some tables.
    filled = [table for table in tables if table["rows"]]
    if not filled and reader.releases and not isinstance(reader.tree, UnpackedTree):
        reader.refuse(
            "no table covers the releases of this tree",
            "a newer clone",
            next(iter(reader.releases)),
        )
    return {"tables": filled, "sources": reader.sources}


class _Reader:
    def __init__(self, family: Family, context: HarvestContext) -> None:
        needed = ("title", "repository", "marks", "tables")
        fields = family.only(needed, ("tags", "branches", "version"))
        self.family, self.context = family, context
        self.repository = fields["repository"].string("repository")
        self.title = fields["title"].string("title")
        self.tables = fields["tables"].sequence("tables")
        self.sources: dict[str, dict[str, str]] = {}
        if not context.place:
            self.refuse("no source tree is named", f"`--from PATH`, a clone of {self.repository}")
        self.tree = source_tree.open_tree(context.place, context.env)
        marks = [node.string("a mark") for node in fields["marks"].sequence("marks")]
        if isinstance(self.tree, UnpackedTree):
            self._check(self.tree.head(), marks)
            self.releases = self._unpacked(fields, self.tree.head())
        else:
            self.releases = self._releases(fields, self.tree)
            # An abandoned repository may have an empty tree at HEAD.
            self._check(next(iter(self.releases.values()), None) or self.tree.head(), marks)

    def _check(self, at: Snapshot, marks: list[str]) -> None:
        files = self.tree.read([(at, mark) for mark in marks])
        missing = [mark for mark in marks if files[at, mark].data is None]
        if missing:
            self.refuse(
                f"this is not a tree of {self.repository}",
                ", ".join(marks),
                f"no {', '.join(missing)}",
            )

    def _releases(self, fields: Mapping[str, YamlNode], tree: GitTree) -> dict[str, Snapshot]:
        kinds = [kind for kind in _KINDS if kind in fields]
        if not kinds:
            return {}
        releases: dict[str, Snapshot] = {}
        names: list[str] = []
        patterns: list[str] = []
        for kind in kinds:
            known = tree.snapshots(_KINDS[kind])
            names += [at.name for at in known]
            for node in fields[kind].several():
                patterns.append(node.string("a pattern"))
                # The first pattern that matches a release wins.
                releases = {**self._matching(node, known, fields), **releases}
        if not releases:
            self.refuse(
                f"none of its {' and '.join(kinds)} is a release",
                " or ".join(patterns),
                ", ".join(names[:_MOST_NAMED]) or f"no {' and no '.join(kinds)}",
            )
        try:
            newest_first = sorted(releases, key=versions.key, reverse=True)
            return {version: releases[version] for version in newest_first}
        except versions.SelectorError as error:
            self.refuse(
                f"one of its {' and '.join(kinds)} is not a version", "a version", str(error)
            )

    def _matching(
        self, node: YamlNode, known: list[Snapshot], fields: Mapping[str, YamlNode]
    ) -> dict[str, Snapshot]:
        named = reading.pattern(node)
        matches = [(at, match) for at in known if (match := named.fullmatch(at.name))]
        if "release" in named.groupindex:
            return {match["release"]: at for at, match in reversed(matches)}
        if "version" not in fields:
            node.fail("a pattern names no release", expected="`(?P<release>...)` in it")
        return self._releases_in(fields["version"], [at for at, _ in matches])

    def _unpacked(self, fields: Mapping[str, YamlNode], head: Snapshot) -> dict[str, Snapshot]:
        if "version" in fields:
            return self._releases_in(fields["version"], [head])
        if any(kind in fields for kind in _KINDS):
            self.refuse("the release of this tree is unknown", "a clone with its tags")
        return {}

    def _releases_in(self, version: YamlNode, trees: list[Snapshot]) -> dict[str, Snapshot]:
        # The release of a tree is in the first of these files that it has.
        files = [reading.file(child) for child in version.several()]
        contents = self.tree.read([(at, file.path) for at in trees for file in files])
        releases: dict[str, Snapshot] = {}
        for at in trees:
            known = (file for file in files if contents[at, file.path].data is not None)
            file = next(known, files[-1])
            page = self._page(at, file.path, contents)
            cells = self._cells(file, "0", page)
            if "release" not in cells:
                version.fail("no release is read", expected="`cells: {release: ...}`")
            releases.setdefault(self._version(page, cells["release"]), at)
        return releases

    def table(self, node: YamlNode) -> dict[str, Any]:
        """One table of facts."""
        fields = node.only("a table", _TABLE, ("id", "key", "evidence", "columns", "floor", "read"))
        component, columns = fields["key"].string("key"), fields["columns"].mapping("columns")
        rows: list[dict[str, Any]] = []
        readings = [(child, reading.file(child)) for child in fields["read"].several()]
        for child, file in readings:
            for column in file.cells:
                if column not in (*columns, *_OWN_CELLS):
                    child.fail(f"unknown column `{column}`", expected=", ".join(columns))
            rows += self._rows(file, component)
        rows.sort(key=lambda row: _order(row[component]), reverse=True)
        floor = fields["floor"].integer("floor")
        # An unpacked release, or a clone that ends before the releases of the table, may have no rows. Any other clone
        # has to have some.
        spoken = any(self._speaks(file) for _, file in readings)
        floor = 0 if isinstance(self.tree, UnpackedTree) or not spoken else max(floor, 1)
        name = fields["id"].string("id")
        if len(rows) < floor:
            self.refuse(f"rows of `{name}` are missing", f"at least {floor} rows", f"{len(rows)}")
        names = [row.get("id", row[component]) for row in rows]
        twice = dict.fromkeys(row_name for row_name in names if names.count(row_name) > 1)
        if twice:
            self.refuse(f"duplicate rows in `{name}`", "unique rows", ", ".join(twice))
        plain = {key: plain_value(fields[key]) for key in _FACTS if key in fields}
        # Every row has its own source; a table needs one as well.
        return {**plain, "source": rows[0]["source"] if rows else "", "rows": rows}

    def _speaks(self, file: FileReading) -> bool:
        if file.paths or file.grid:
            return True
        return any(reading.among(version, file.releases) for version in self.releases)

    def _rows(self, file: FileReading, component: str) -> list[dict[str, Any]]:
        rows = []
        pages = list(self._pages(file))
        for done, (release, page) in enumerate(pages, 1):
            where = file.where or page.path
            if file.paths:
                where = page.path
            elif not file.grid and page.at.ref:
                kind = "tag" if page.at.ref.startswith("refs/tags/") else "branch"
                where = f"{where}, {kind} {page.at.name}".removeprefix(", ")
            cells = self._cells(file, release, page)
            source = self._source(release, page, file)
            rows.append({component: release, **cells, "source": source, "where": where})
            self.context.progress(done, len(pages))
        return rows

    def _pages(self, file: FileReading) -> Iterator[tuple[str, _Page]]:
        head = self.tree.head()
        if file.paths:
            matches = list(filter(None, map(file.paths.match.fullmatch, self.tree.paths(head))))
            contents = self.tree.read([(head, match[0]) for match in matches])
            for match in matches:
                page = self._page(head, match[0], contents, match.groupdict(default=""))
                for name in self._values(file.paths.release, "release", page):
                    yield name, page
        elif file.grid:
            page = self._page(head, file.path, self.tree.read([(head, file.path)]))
            yield from self._records(file, file.grid, page)
        else:
            chosen = {
                version: at
                for version, at in self.releases.items()
                if reading.among(version, file.releases)
            }
            # All releases at once, so that git starts only once.
            contents = self.tree.read([(at, file.path) for at in chosen.values() if file.path])
            for version, at in chosen.items():
                # An unpacked tree has no tag to read.
                if file.path or at.ref:
                    yield version, self._page(at, file.path, contents)

    def _records(
        self, file: FileReading, grid: GridReading, page: _Page
    ) -> Iterator[tuple[str, _Page]]:
        try:
            records = reading.grid(page.text, page.path, columns=grid.columns, after=grid.after)
        except Unread as error:
            self._moved(page, "a table", str(error))
        for record in records:
            here = page.replace(record=record)
            for name in self._values(grid.release, "release", here):
                if reading.among(self._version(here, name), file.releases):
                    yield name, here

    def _version(self, page: _Page, version: str) -> str:
        try:
            versions.key(version)
        except versions.SelectorError:
            self._moved(page, "the version of a release", version)
        return version

    def _cells(self, file: FileReading, release: str, page: _Page) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for name, cells in file.cells.items():
            values, as_list = [], False
            for cell in cells:
                if isinstance(cell, str):
                    values.append(cell.replace("{release}", release))
                elif cell.releases == "*" or reading.among(release, cell.releases):
                    values += self._values(cell, name, page)
                    as_list = cell.several == "list"
            if values:
                row[name] = values if as_list else " ".join(values)
        return row

    def _values(self, cell: CellReading, name: str, page: _Page) -> list[str]:
        try:
            if cell.method == "date":
                return [page.at.date] if page.at.date else []
            if cell.method == "column":
                # An empty cell of a table is no value.
                texts = reading.column(page.record, cell.node.string("column"))
                return cell.values(texts) if texts else []
            find = reading.EXTRACTORS.get(cell.method)
            texts = find(page.text, page.path, cell.node) if find else [page.text]
            return cell.values(texts, page.groups)
        except Unread as error:
            self._moved(page, f"{name}: {cell.expected}", str(error))

    def _page(
        self,
        at: Snapshot,
        path: str,
        contents: Mapping[tuple[Snapshot, str], TreeFile],
        groups: Mapping[str, str] | None = None,
    ) -> _Page:
        page = _Page(at=at, path=path, groups=groups or {})
        if not path:
            return page
        data, why = contents[at, path]
        where = Position(self._location(page))
        if data is None:
            raise HarvestRefused(
                "a file is not in the tree", where=where, expected=path, found=why, help=_HELP
            )
        try:
            # `-sig` removes a byte order mark.
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise HarvestRefused("a file is not text", where=where, expected="text in UTF-8")
        return page.replace(data=data, text=text)

    def _moved(self, page: _Page, expected: str, found: str) -> NoReturn:
        raise HarvestRefused(
            "a value is no longer where it was",
            where=Position(self._location(page)),
            expected=expected,
            found=found,
            help=_HELP,
        ) from None

    def _source(self, release: str, page: _Page, file: FileReading) -> str:
        # If a commit has many files, the rows name the path.
        path = "" if file.paths else page.path
        # A file about all releases belongs to none of them.
        known = page.at.name or ("HEAD" if file.grid or file.paths else release)
        inside = f":{path}" if path else ""
        if page.at.commit:
            address = f"{self.repository}{inside}@{page.at.commit}"
        else:
            import hashlib

            # Without a commit, the digest identifies the file.
            digest = hashlib.sha256(page.data).hexdigest()
            tree = "" if known == "HEAD" else f"release {known} "
            address = f"{self.repository}:{page.path}, {tree}unpacked, sha256 {digest}"
        name = "/".join(segment for segment in (self.family.name, known, path) if segment)
        kind = path or ("tree" if file.paths else "tag")
        self.sources[name] = {
            "title": f"{self.title}, {kind}" + (f" at {known}" if known != "HEAD" else ""),
            "at": address,
            "read": self.context.day.isoformat(),
        }
        return name

    def _location(self, page: _Page) -> str:
        # As `git show` takes it.
        return f"{page.at.name}:{page.path}" if page.at.ref else f"{self.context.place}/{page.path}"

    def refuse(self, what: str, expected: str, found: str = "") -> NoReturn:
        """Refuse the tree."""
        where = Position(self.context.place) if self.context.place else None
        raise HarvestRefused(what, where=where, expected=expected, found=found, help=_HELP)


def _order(release: str) -> tuple[object, ...]:
    # Versions after names, as rows are sorted in reverse.
    try:
        return 1, versions.key(release)
    except versions.SelectorError:
        return 0, release
