"""The compiled index: a folder of JSON, which a `resolve` reads instead of YAML; `writer` makes it.

`header.json` is read whole: it names the components, and says what is needed of all of them. A component has two files:
`components/NAME.json`, its releases and the facts that it is the subject of, and `components/NAME.facts.jsonl.gz`, its
facts as written, one record to a line: members of gzip of `BLOCK` bytes each, so that one is read for one fact. Behind
a row are the claims and releases that came from it, and do not repeat what it says.
`rows.jsonl` has the records that are about no component, `sources.jsonl` and `builds.jsonl` an entry to a line, behind
its key, and the other files are tables of a few entries. Each is opened when an answer needs it. Equal facts make equal
bytes.
"""

# It is JSON and masks throughout: nothing in it can run, and a set of releases of any size is one number.

from __future__ import annotations

import itertools
import os
import zlib

from toolmatrix.errors import MatrixError, Position
from toolmatrix.factbase.records import (
    BOUNDS,
    KINDS,
    BindingGroup,
    BreakRecord,
    BuildRecord,
    ChannelRecord,
    CitedClaim,
    ClaimRecord,
    ComponentFacts,
    Dispute,
    ImageRecord,
    Product,
    ReleaseRecord,
    ReportRecord,
    RowGroup,
    RowRecord,
    SourceRecord,
    SupportRecord,
    Term,
)
from toolmatrix.factbase.versions import Scale

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from toolmatrix.factbase.independents import IndependentRow, RowSource
    from toolmatrix.factbase.records import ComponentHead, FactRecord, Header

    _Heads = dict[str, ComponentHead]
    ReadFile: TypeAlias = Callable[[str, int, "int | None"], bytes]
    """The bytes of a file by its name, from a place on, and so many of them; raises OSError or KeyError."""

else:
    _Heads = dict

FORMAT = "toolmatrix-index/17"
HEADER, ROWS = "header.json", "rows.jsonl"
INDEPENDENTS, INDEPENDENTS_PACKED = "independents.json", "independents.jsonl.gz"
BLOCK = 131072
"""Bytes of records that are compressed together."""
GZIP = 16 + zlib.MAX_WBITS
"""The window bits by which zlib writes and reads members of gzip."""
PLACE_BITS = 32
"""The number of a record is the CRC of the name of its component, and in so many bits its place among those of it."""
REPEATED = RowRecord._fields.index("kind")
"""How many fields of a row claims and releases may have from it: the first."""
# What the record of a row begins with behind others, and that of a claim of the row above.
_NEXT_ROW = f"\n[{KINDS.index(RowRecord)},".encode()
_CLAIM_BELOW = len(KINDS) + KINDS.index(ClaimRecord)


class IndexDamaged(MatrixError):
    """A file of an index that is missing, damaged or of another format."""


def first_number(component: str) -> int:
    """The number of the first record of a component; that of any other is higher by its place."""
    return zlib.crc32(component.encode()) << PLACE_BITS


def facts_file(component: str) -> str:
    """The file of the records of a component, or, without one, of the rows that are about none."""
    return f"components/{component}.facts.jsonl.gz" if component else ROWS


def component_file(component: str) -> str:
    """The file that answers are solved by."""
    return f"components/{component}.json"


class IndexFolder:
    """The files of a folder, which stays the same one when another takes its name. Raises OSError."""

    def __init__(self, path: str) -> None:
        self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    # At the end of the interpreter `os` may be gone before the last folder is.
    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if hasattr(self, "_folder"):
            close(self._folder)

    def __call__(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            return os.pread(file, os.fstat(file).st_size if length is None else length, start)
        finally:
            os.close(file)


def in_memory(files: Mapping[str, bytes]) -> ReadFile:
    """Files that are at hand, or that the mapping fetches when they are asked for."""

    def read(name: str, start: int = 0, length: int | None = None) -> bytes:
        return files[name][start : None if length is None else start + length]

    return read


class Index:
    """Read access to an index. Raises IndexDamaged, when it is opened or when a damaged file is read."""

    def __init__(self, path: str, read: ReadFile) -> None:
        """The index at `path`, whose files `read` gives."""
        self.path = path
        self._bytes = read
        self._loaded: dict[str, Any] = {}
        # The numbers of the claims of each independent package that became a component, by their ids.
        self._independents: dict[str, dict[str, int]] = {}
        header = self._json(HEADER)
        try:
            self.usual = header.pop("usual")
            self.header: Header = _with_defaults(header, self.usual, self._independent_head)
        except (TypeError, KeyError, AttributeError) as error:
            raise self._damaged(HEADER) from error
        self._records: dict[int, Any] = {}
        # What rows say of the claims and releases below them, by their numbers.
        self._rows: dict[int, Mapping[str, str]] = {}
        self._components: dict[str, ComponentFacts] = {}
        self._scales: dict[str, Scale] = {}
        self._builds_of: dict[str, str] = {}
        self._requirements: dict[str, list[BindingGroup]] = {}

    def independents(self) -> Mapping[str, int]:
        """The names of the packages of Python alone that are no components yet, with the places of their rows."""
        return self._table("independents")["places"]  # type: ignore[no-any-return]

    def is_independent(self, name: str) -> bool:
        """Whether a component is one of them."""
        return name in self.header["components"] and name in self._independents

    def _independent_head(self, name: str) -> ComponentHead | None:
        if name not in self.independents():
            return None
        from toolmatrix.factbase.independents import head

        self._independents[name] = {}
        return head(name, self.usual)

    def independent_row(self, name: str) -> tuple[IndependentRow, RowSource]:
        """The row of one of them, and where it is from, read once."""
        from toolmatrix.factbase.independents import RowSource, read

        def read_row() -> tuple[IndependentRow, RowSource]:
            blocks = self._table("independents")["blocks"]
            line = self._line_in(INDEPENDENTS_PACKED, blocks, self.independents()[name])
            *cells, table, source, where, evidence = self._value(INDEPENDENTS_PACKED, line)
            return read(cells), RowSource(table, source, where, evidence)

        return self._once(f"{INDEPENDENTS}/{name}", read_row)  # type: ignore[no-any-return]

    def _independent(self, name: str) -> ComponentFacts:
        from toolmatrix.factbase.independents import IndependentSection

        section = IndependentSection(self, *self.independent_row(name), first_number(name))
        facts = section.facts()
        self._records |= section.records
        self._independents[name] = section.ids
        return facts

    def _damaged(self, name: str) -> IndexDamaged:
        return IndexDamaged(
            "the compiled matrix is damaged or from another version",
            where=Position(os.path.join(self.path, name)),
            expected=FORMAT,
            help="run the command again; if that fails too, remove the folder of this file"
            if self.path
            else "",
        )

    def _read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        try:
            data = self._bytes(name, start, length)
        except (OSError, KeyError) as error:
            raise self._damaged(name) from error
        if (
            length is None
            and name != HEADER
            and len(data) != self.header["sizes"].get(name, len(data))
        ):
            raise self._damaged(name)
        return data

    def file(self, name: str) -> bytes:
        """The bytes of one file."""
        return self._read(name)

    def _json(self, name: str) -> Any:
        return self._value(name, self._read(name))

    def _text(self, name: str) -> bytes:
        """A file of lines, read once."""
        text: bytes = self._once(name, lambda: self._read(name))
        if text and not text.endswith(b"\n"):
            raise self._damaged(name)
        return text

    def _records_of(self, component: str) -> bytes:
        """The records of a component, or of none, a line each, read once."""
        if not component:
            return self._text(ROWS)
        return self._once(facts_file(component), lambda: self._unpacked(component))  # type: ignore[no-any-return]

    def _unpacked(self, component: str) -> bytes:
        name, blocks = facts_file(component), self.component(component).blocks
        data = self._read(name)
        if len(data) != blocks[-1]:
            raise self._damaged(name)
        return b"".join(
            self._decompressed(name, data[start:end]) for start, end in itertools.pairwise(blocks)
        )

    def _block(self, name: str, blocks: Sequence[int], number: int) -> bytes:
        """The lines of a file that were compressed together, read once."""
        if number + 1 >= len(blocks):
            raise self._damaged(name)
        start = blocks[number]

        def read() -> bytes:
            return self._decompressed(name, self._read(name, start, blocks[number + 1] - start))

        return self._once(f"{name}/{number}", read)  # type: ignore[no-any-return]

    def _decompressed(self, name: str, data: bytes) -> bytes:
        member = zlib.decompressobj(GZIP)
        try:
            text = member.decompress(data, BLOCK)
        except zlib.error as error:
            raise self._damaged(name) from error
        if not member.eof:
            raise self._damaged(name)
        return text

    def _record_line(self, component: str, place: int) -> bytes:
        """The record of a component, or of none, that begins at a place."""
        if not component or facts_file(component) in self._loaded:
            return _line(self._records_of(component), place)
        return self._line_in(facts_file(component), self.component(component).blocks, place)

    def _line_in(self, name: str, blocks: Sequence[int], place: int) -> bytes:
        """The line that begins at a place of a file of blocks."""
        number, start = divmod(place, BLOCK)
        text = self._block(name, blocks, number)
        while text.find(b"\n", start) < 0:
            number += 1
            text += self._block(name, blocks, number)
        return _line(text, start)

    def _of_row(self, component: str, place: int) -> Mapping[str, str]:
        """What the row above a place of a component says of the claim or release that begins there."""
        name = facts_file(component)
        if name in self._loaded:
            text, number, end = self._records_of(component), 0, place
        else:
            blocks = self.component(component).blocks
            number, end = divmod(place, BLOCK)
            text = self._block(name, blocks, number)
            while number and text.rfind(_NEXT_ROW, 0, end) < 0:
                number, end = number - 1, end + BLOCK
                text = self._block(name, blocks, number) + text
        begin = text.rfind(_NEXT_ROW, 0, end) + 1
        row = first_number(component) + number * BLOCK + begin
        if row not in self._rows:
            self._rows[row] = repeated(self._beginning(name, _line(text, begin)))
        return self._rows[row]

    def _beginning(self, name: str, line: bytes) -> Iterator[str]:
        """What a row begins with; its cells may be many, and are not read."""
        text, place = line.decode(), len("[2,")
        try:
            for _ in range(REPEATED):
                value, end = _scan(text, place)
                yield value
                place = end + 1
        except StopIteration as error:
            raise self._damaged(name) from error

    def _value(self, name: str, data: bytes) -> Any:
        try:
            return json_value(data)
        except (ValueError, RecursionError) as error:
            raise self._damaged(name) from error

    @staticmethod
    def _offset(text: bytes, beginning: str) -> int:
        """The offset of the line with this beginning; -1 where there is none."""
        mark = beginning.encode()
        return 0 if text.startswith(mark) else text.find(b"\n" + mark) + 1 or -1

    def _entry(self, name: str, key: str) -> Any:
        """The value of a key in a file of entries. Raises KeyError for a key that is not there."""
        text = self._text(name)
        offset = self._offset(text, f"[{_quoted(key)},")
        if offset < 0:
            raise KeyError(key)
        return self._value(name, _line(text, offset))[1]

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._loaded:
            self._loaded[name] = make()
        return self._loaded[name]

    def _table(self, name: str) -> Any:
        return self._once(name, lambda: self._json(f"{name}.json"))

    def files(self) -> dict[str, bytes]:
        """Its files by name, without the states of what it was made from, which are those of one machine."""
        import json

        head = self._json(HEADER) | {"files": {}}
        data = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
        pairs = ((component_file(name), facts_file(name)) for name in self._all if name)
        names = itertools.chain(self.header["sizes"], *pairs)
        return {HEADER: data} | {name: self._read(name) for name in names}

    def records(self, component: str) -> Iterator[FactRecord]:
        """Every claim, release and row in the file of a component, or of none; claims may be of another's rows."""
        of_row = None
        for _, _, line in self._numbered(component):
            fact = _fact(json_value(line), of_row)
            of_row = repeated(fact[:REPEATED]) if isinstance(fact, RowRecord) else of_row
            yield fact

    def _numbered(self, component: str) -> Iterator[tuple[int, int, bytes]]:
        """Each claim, release and row of a component: its number, its kind in the file, and its line."""
        following = first_number(component)
        for line in self._records_of(component).splitlines(keepends=True):
            number, following = following, following + len(line)
            # The others are lists of claims.
            if line[1:2].isdigit():
                yield number, int(line[1:2]), line[:-1]

    def check(self) -> None:
        """Read all that there is. Raises IndexDamaged for what cannot be read, or is of another shape."""
        try:
            for file in self.header["sizes"]:
                if file.endswith(".json"):
                    self._table(file.removesuffix(".json"))
            self.sources()
            for package in self.independents():
                self.independent_row(package)
            for component in self._all:
                if component:
                    self.scale(component)
                for _ in self.records(component):
                    continue
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
            raise self._damaged(HEADER) from error

    @property
    def _all(self) -> tuple[str, ...]:
        # Whatever has records in files.
        return (*self.header["components"], "")

    def component(self, name: str) -> ComponentFacts:
        """The facts of a component, read once."""
        component_facts = self._components.get(name)
        if component_facts is None and self.is_independent(name):
            component_facts = self._components[name] = self._independent(name)
        if component_facts is None:
            # Records are made of these three alone, as the rest is plain values in the order of the fields.
            *fields, bindings, row_groups, disputes = self._json(component_file(name))
            fields += [*map(BindingGroup._make, bindings)], [*map(RowGroup._make, row_groups)]
            fields.append([*map(Dispute._make, disputes)])
            component_facts = self._components[name] = ComponentFacts._make(fields)
        return component_facts

    def requirements(self, name: str) -> Sequence[BindingGroup]:
        """The bindings of a component by which others must be there: all but limits and failures."""
        if name not in self._requirements:
            self._requirements[name] = [
                group for group in self.component(name).binding_groups if group.kind not in BOUNDS
            ]
        return self._requirements[name]

    def scale(self, name: str) -> Scale:
        """The releases of a component, for reading selectors."""
        if name not in self._scales:
            scheme = self.header["components"][name]["scheme"]
            # Packages may require each other in a circle, so that the facts of one do not wait for those of another.
            alone = self.is_independent(name)
            row = self.independent_row(name)[0] if alone else self.component(name)
            # What was compiled was read as versions: reading all of them again is for selectors that compare.
            self._scales[name] = Scale(scheme, row.versions, known=True)
        return self._scales[name]

    def builds_of(self, component: str) -> str:
        """The component whose releases are the builds of another; nothing where they are not known apart."""
        if not self._builds_of:
            heads = self.header["components"].items()
            self._builds_of = {
                head["variant_of"]: name for name, head in heads if head["variant_of"]
            }
        return self._builds_of.get(component, "")

    def with_builds(self, component: str) -> tuple[str, ...]:
        """A component, and behind it the one whose releases are its builds, where they are known apart."""
        builds = self.builds_of(component)
        return (component, builds) if builds else (component,)

    @property
    def ids(self) -> dict[str, int]:
        """The number of the record of every claim, row and release by its id, sorted."""
        return self._once("ids", lambda: self._ids_in(self._all))  # type: ignore[no-any-return]

    def ids_of(self, table: str) -> dict[str, int]:
        """The numbers of the rows and claims of a table by their ids, sorted."""
        begin = f"{table}/"
        numbers = self._ids_in(self._owners(table))
        return {id: number for id, number in numbers.items() if id.startswith(begin)}

    def _ids_in(self, components: Iterable[str]) -> dict[str, int]:
        numbers: dict[str, int] = {}
        for name in components:
            if name:
                facts = self.component(name)
                releases = zip(facts.versions, facts.releases, strict=True)
                numbers |= {f"{name}=={version}": number for version, number in releases}
            row = ""
            for number, kind, line in self._numbered(name):
                if kind % len(KINDS) != KINDS.index(ReleaseRecord):
                    # Behind its kind a claim or row has its id.
                    id, _ = _scan(line.decode(), len("[0,"))
                    row = id if kind == KINDS.index(RowRecord) else row
                    numbers[row + id if kind == _CLAIM_BELOW else id] = number
        return dict(sorted(numbers.items()))

    def owners(self) -> dict[str, Sequence[str]]:
        """By table or statement the components whose files have its records."""
        return self._table("owners")  # type: ignore[no-any-return]

    def _owners(self, id: str) -> Sequence[str]:
        return self.owners().get(id.partition("#")[0].partition("/")[0], ())

    def number(self, id: str) -> int:
        """The number of one record. Raises KeyError for an id that is not there."""
        component, _, version = id.partition("==")
        if component in self.header["components"]:
            facts = self.component(component)
            if version in facts.versions:
                return facts.releases[facts.versions.index(version)]
        for component in self._owners(id):
            offset = self._claim_or_row(self._records_of(component), id)
            if offset >= 0:
                return first_number(component) + offset
        name = id.partition("/")[2].partition("#")[0]
        if self.is_independent(name):
            self.component(name)
            return self._independents[name][id]
        raise KeyError(id)

    def _claim_or_row(self, text: bytes, id: str) -> int:
        """The offset of the record with an id; -1 where there is none."""
        for kind in (KINDS.index(ClaimRecord), KINDS.index(RowRecord)):
            if (offset := self._offset(text, f"[{kind},{_quoted(id)},")) >= 0:
                return offset
        name, mark, column = id.partition("#")
        row = self._offset(text, f"[{KINDS.index(RowRecord)},{_quoted(name)},") if mark else -1
        if row < 0:
            return -1
        next_row = text.find(_NEXT_ROW, row)
        below = f"\n[{_CLAIM_BELOW},{_quoted(mark + column)},".encode()
        return text.find(below, row, None if next_row < 0 else next_row) + 1 or -1

    def find(self, id: str) -> FactRecord | None:
        """The record of a claim, row or release by its id; None for an id that is not there."""
        try:
            return self.record(self.number(id))
        except KeyError:
            return None

    def known(self, ids: Iterable[str]) -> list[FactRecord]:
        """The records of those ids that are there."""
        return [record for record in map(self.find, ids) if record is not None]

    def sources(self) -> dict[str, SourceRecord]:
        """Every source by its name."""
        entries = map(json_value, self._text("sources.jsonl").splitlines())
        return {name: SourceRecord._make(fields) for name, fields in entries}

    def source(self, name: str) -> SourceRecord:
        """One source."""
        try:
            return SourceRecord._make(self._entry("sources.jsonl", name))
        except KeyError as error:
            # Only records have names of sources, and each source has an entry.
            raise self._damaged("sources.jsonl") from error

    def channels(self) -> Iterable[str]:
        """The names of the channels."""
        return self._table("channels")  # type: ignore[no-any-return]

    def channel(self, name: str) -> ChannelRecord:
        """One channel. Raises KeyError for a name that is not there."""
        return ChannelRecord._make(self._table("channels")[name])

    def builds(self, component: str, release: str) -> list[BuildRecord]:
        """The images of a release that were built, or could not be for want of an address; nothing where none was."""
        try:
            images = self._entry("builds.jsonl", f"{component}=={release}")
        except KeyError:
            return []
        return [*map(BuildRecord._make, images)]

    def support(self, component: str) -> list[SupportRecord]:
        """What is known of the ends of support of a component, a later reading first; nothing where nothing is."""
        return [*map(SupportRecord._make, self._table("support").get(component, ()))]

    def images(self) -> list[ImageRecord]:
        """What lists of images say of which can be pulled."""
        return [*map(ImageRecord._make, self._table("images"))]

    def packages(self) -> Mapping[str, str]:
        """The component of each package of an index that the matrix knows."""
        return self._table("packages")  # type: ignore[no-any-return]

    def breaks(self, component: str) -> list[BreakRecord]:
        """The releases of a component that broke what was made for those before, the oldest first."""
        return [*map(BreakRecord._make, self._table("breaks").get(component, ()))]

    def reports(self) -> list[ReportRecord]:
        """The failures that were reported with the lines by which they show."""
        return [*map(ReportRecord._make, self._table("reports"))]

    def products(self) -> list[Product]:
        """Every name that a device is sold under."""
        return [*map(Product._make, self._table("products"))]

    def terms(self) -> list[Term]:
        """Every name that is no component and that rows are about."""
        return [*map(Term._make, self._table("terms"))]

    def cites(self, number: int) -> list[CitedClaim]:
        """The claims behind a binding or row, by the number of the record that lists them."""
        return self._record(number, lambda claims, _: [*map(CitedClaim._make, claims)])  # type: ignore[no-any-return]

    def record(self, number: int) -> FactRecord:
        """One record: a claim, a release or a row."""
        return self._record(number, _fact)  # type: ignore[no-any-return]

    # Callers know the kind: a choice cites claims and releases, a binding or a dispute claims alone.
    if TYPE_CHECKING:

        def statement(self, number: int) -> ClaimRecord | ReleaseRecord: ...
        def claim(self, number: int) -> ClaimRecord: ...
        def release(self, number: int) -> ReleaseRecord: ...
        def row(self, number: int) -> RowRecord: ...
    else:
        statement = claim = release = row = record

    def _record(self, number: int, make: Callable[[Any, Mapping[str, str] | None], Any]) -> Any:
        if number not in self._records:
            names = self._once("names", lambda: {first_number(name): name for name in self._all})
            place = number & (1 << PLACE_BITS) - 1
            component = names[number - place]
            values = self._value(facts_file(component), self._record_line(component, place))
            below = values and isinstance(values[0], int) and values[0] >= len(KINDS)
            of_row = self._of_row(component, place) if below else None
            self._records[number] = make(values, of_row)
        return self._records[number]


def repeated(row: Iterable[Any]) -> dict[str, str]:
    """What claims and releases may have from their row, by their fields; `row` are the first fields of it."""
    id, subject, evidence, source, where, note = row
    component, _, releases = subject.partition(" ")
    return {
        "id": id,
        "row": id,
        "subject": component,
        "component": component,
        "releases": releases,
        "selector": releases,
        "evidence": evidence,
        "source": source,
        "where": where,
        "note": note,
    }


def _fact(values: Sequence[Any], of_row: Mapping[str, str] | None) -> FactRecord:
    kind, *fields = values
    if of_row is None or kind < len(KINDS):
        return KINDS[kind]._make(fields)
    of_kind = KINDS[kind - len(KINDS)]
    fields[0] = of_row["id"] + fields[0]
    for place, name in enumerate(of_kind._fields):
        if fields[place] is None:
            fields[place] = of_row[name]
    return of_kind._make(fields)


class _Components(_Heads):
    """The heads of components by their names; that of an independent package is found by its name, and not listed."""

    def __init__(
        self, heads: Mapping[str, ComponentHead], find: Callable[[str], ComponentHead | None]
    ) -> None:
        super().__init__(heads)
        self._find = find
        # Apart from the others, so that what is listed does not depend on what was asked before.
        self._further: dict[str, ComponentHead] = {}

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and self._has_further(name))

    def __missing__(self, name: str) -> ComponentHead:
        if self._has_further(name):
            return self._further[name]
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The head of a component, or the default."""
        return self[name] if name in self else default  # noqa: SIM401 - that is this method

    def _has_further(self, name: str) -> bool:
        if name not in self._further and (head := self._find(name)):
            self._further[name] = head
        return name in self._further


def _with_defaults(
    header: dict[str, Any],
    usual: Mapping[str, Any],
    find: Callable[[str], ComponentHead | None],
) -> Header:
    if header.pop("format") != FORMAT:
        raise KeyError(FORMAT)
    # Most fields of most components have their default, which is written once.
    components = header["components"]
    heads = {name: usual | components[name] for name in components}
    header["components"] = _Components(heads, find)
    return header  # type: ignore[return-value]


def _line(text: bytes, start: int) -> bytes:
    return text[start : text.find(b"\n", start)]


def _quoted(key: str) -> str:
    # As JSON quotes it: no key has a control character.
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


def json_value(data: bytes) -> Any:
    """The value of a JSON text, without the import of `json`. Raises ValueError or RecursionError."""
    text = data.decode()
    try:
        value, end = _scan(text, 0)
    except StopIteration as error:
        raise ValueError(f"no JSON value at {error.value}") from error
    if end != len(text):
        raise ValueError(f"more than one JSON value, at {end}")
    return value


# The scanner asks its decoder for these attributes and for nothing else, in every CPython from 3.10 to 3.14.
class _DecoderOptions:
    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = None


def _scanner() -> Callable[[str, int], tuple[Any, int]]:
    # The C scanner behind `json`, which itself takes as long to import as all sections to read.
    try:
        from _json import make_scanner

        return make_scanner(_DecoderOptions)  # type: ignore[arg-type]
    except (ImportError, AttributeError):
        from json import JSONDecoder

        return JSONDecoder().raw_decode


_scan = _scanner()
