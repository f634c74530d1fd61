"""The compiled index: a folder of JSON, which a `resolve` reads instead of YAML; `writer` makes it.

`header.json` is read whole: it names the components, and says what is needed of all of them. A component has two files:
`components/NAME.json`, its releases and what is said with it as the subject, and `components/NAME.facts.jsonl`, its
facts as written, one record to a line. `sources.jsonl` and `builds.jsonl` have an entry to a line, behind its key, and
the other files are tables of a few entries. Each is opened when an answer needs it. Equal facts make equal bytes.
"""

# It is JSON and masks throughout: nothing in it can run, the interpreter's own scanner reads it, and a set of releases
# of any size is one number on which a processor works at once.

from __future__ import annotations

import os
import zlib

from toolmatrix.errors import MatrixError, Position
from toolmatrix.factbase.records import (
    KINDS,
    BindingGroup,
    BreakRecord,
    BuildRecord,
    ChannelRecord,
    CitedClaim,
    ClaimRecord,
    ComponentFacts,
    Dispute,
    Product,
    ReleaseRecord,
    RowGroup,
    RowRecord,
    SourceRecord,
    SupportRecord,
)
from toolmatrix.factbase.versions import Scale

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from toolmatrix.factbase.records import FactRecord, Header

    ReadFile: TypeAlias = Callable[[str, int, "int | None"], bytes]
    """The bytes of a file by its name, from a place on, and so many of them; raises OSError or KeyError."""

FORMAT = "toolmatrix-index/11"
HEADER, ROWS = "header.json", "rows.jsonl"
OWNER_BITS = 32
"""The number of a record is its place in the file of its component, and in so many bits the CRC of that name."""
# What the record of a release begins with.
_RELEASE = f"[{KINDS.index(ReleaseRecord)},".encode()
# Bytes that hold most records.
_LINE = 4096


class IndexDamaged(MatrixError):
    """A file of an index that is missing, damaged or of another format."""


def owner(component: str) -> int:
    """What the numbers of the records of a component end with."""
    return zlib.crc32(component.encode())


def facts_file(component: str) -> str:
    """The file of the records of a component, or, without one, of the rows that are about none."""
    return f"components/{component}.facts.jsonl" if component else ROWS


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
        header = self._json(HEADER)
        try:
            self.header: Header = _with_defaults(header)
        except (TypeError, KeyError, AttributeError) as error:
            raise self._damaged(HEADER) from error
        self._loaded: dict[str, Any] = {}
        self._records: dict[int, Any] = {}
        self._components: dict[str, ComponentFacts] = {}
        self._scales: dict[str, Scale] = {}
        self._builds_of: dict[str, str] = {}
        self._requirements: dict[str, list[BindingGroup]] = {}

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
        if length is None and name != HEADER and len(data) != self.header["sizes"].get(name):
            raise self._damaged(name)
        return data

    def file(self, name: str) -> bytes:
        """The bytes of one file."""
        return self._read(name)

    def _json(self, name: str) -> Any:
        return self._value(name, self._read(name))

    def _text(self, name: str) -> bytes:
        """A file of lines, read once."""
        return self._once(name, lambda: self._read(name))  # type: ignore[no-any-return]

    def _line(self, name: str, start: int) -> Any:
        """The value in the line of a file that begins at a place."""
        whole = self._loaded.get(name)
        if whole is not None:
            end = whole.find(b"\n", start)
            return self._value(name, whole[start:end])
        length = _LINE
        while True:
            data = self._read(name, start, length)
            end = data.find(b"\n")
            if end >= 0 or len(data) < length:
                return self._value(name, data[:end])
            length *= 4

    def _value(self, name: str, data: bytes) -> Any:
        try:
            return _json(data)
        except (ValueError, RecursionError) as error:
            raise self._damaged(name) from error

    def _lines(self, name: str) -> Iterator[tuple[int, bytes]]:
        """Each line of a file with the place where it begins."""
        start = 0
        for line in self._text(name).splitlines(keepends=True):
            if not line.endswith(b"\n"):
                raise self._damaged(name)
            yield start, line[:-1]
            start += len(line)

    def _offset(self, name: str, beginning: str) -> int:
        """The offset of the line of a file with this beginning; -1 where there is none."""
        data = self._text(name)
        mark = beginning.encode()
        return 0 if data.startswith(mark) else data.find(b"\n" + mark) + 1 or -1

    def _entry(self, name: str, key: str) -> Any:
        """The value of a key in a file of entries. Raises KeyError for a key that is not there."""
        offset = self._offset(name, f"[{_quoted(key)},")
        if offset < 0:
            raise KeyError(key)
        return self._line(name, offset)[1]

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._loaded:
            self._loaded[name] = make()
        return self._loaded[name]

    def _table(self, name: str) -> Any:
        return self._once(name, lambda: self._json(f"{name}.json"))

    def files(self) -> dict[str, bytes]:
        """Its files by name, without the states of what it was made from, which are those of one machine."""
        import json

        header = self._json(HEADER) | {"files": {}}
        data = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        return {HEADER: data} | {name: self._read(name) for name in self.header["sizes"]}

    @property
    def _all(self) -> tuple[str, ...]:
        # Whatever has records.
        return (*self.header["components"], "")

    def component(self, name: str) -> ComponentFacts:
        """The facts of a component, read once."""
        component_facts = self._components.get(name)
        if component_facts is None:
            # Records are made of these three alone, as the rest is plain values in the order of the fields.
            *fields, bindings, row_groups, disputes = self._json(component_file(name))
            fields += [*map(BindingGroup._make, bindings)], [*map(RowGroup._make, row_groups)]
            fields.append([*map(Dispute._make, disputes)])
            component_facts = self._components[name] = ComponentFacts._make(fields)
        return component_facts

    def requirements(self, name: str) -> Sequence[BindingGroup]:
        """The bindings of a component by which others must be there: all but limits."""
        if name not in self._requirements:
            self._requirements[name] = [
                group for group in self.component(name).binding_groups if group.kind != "limits"
            ]
        return self._requirements[name]

    def scale(self, name: str) -> Scale:
        """The releases of a component, for reading selectors."""
        if name not in self._scales:
            scheme = self.header["components"][name]["scheme"]
            # What was compiled was read as versions: reading all of them again is for selectors that compare.
            self._scales[name] = Scale(scheme, self.component(name).versions, known=True)
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
        numbers = {}
        for name in components:
            code = owner(name)
            for start, line in self._lines(facts_file(name)):
                if line.startswith(_RELEASE):
                    release = ReleaseRecord._make(_json(line)[1:])
                    id = f"{release.component}=={release.selector}"
                # Behind its kind a claim or row has its id; other lines are lists of claims.
                elif line[:1] == b"[" != line[1:2]:
                    id, _ = _scan(line.decode(), len(_RELEASE))
                else:
                    continue
                numbers[id] = start << OWNER_BITS | code
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
            for kind in (KINDS.index(ClaimRecord), KINDS.index(RowRecord)):
                offset = self._offset(facts_file(component), f"[{kind},{_quoted(id)},")
                if offset >= 0:
                    return offset << OWNER_BITS | owner(component)
        raise KeyError(id)

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
        entries = (_json(line) for _, line in self._lines("sources.jsonl"))
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

    def breaks(self, component: str) -> list[BreakRecord]:
        """The releases of a component that broke what was made for those before, the oldest first."""
        return [*map(BreakRecord._make, self._table("breaks").get(component, ()))]

    def products(self) -> list[Product]:
        """Every name that a device is sold under."""
        return [*map(Product._make, self._table("products"))]

    def cites(self, number: int) -> list[CitedClaim]:
        """The claims behind a binding or row, by the number of the record that lists them."""
        return self._record(number, lambda claims: [*map(CitedClaim._make, claims)])  # type: ignore[no-any-return]

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

    def _record(self, number: int, make: Callable[[Any], Any]) -> Any:
        if number not in self._records:
            names = self._once("names", lambda: {owner(name): name for name in self._all})
            component = names[number & (1 << OWNER_BITS) - 1]
            self._records[number] = make(self._line(facts_file(component), number >> OWNER_BITS))
        return self._records[number]


def _fact(values: Sequence[Any]) -> FactRecord:
    kind, *fields = values
    return KINDS[kind]._make(fields)


def _with_defaults(header: dict[str, Any]) -> Header:
    if header.pop("format") != FORMAT:
        raise KeyError(FORMAT)
    # Most fields of most components have their default, which is written once.
    usual, components = header.pop("usual"), header["components"]
    header["components"] = {name: usual | components[name] for name in components}
    return header  # type: ignore[return-value]


def _quoted(key: str) -> str:
    # As JSON quotes it: no key has a control character.
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _json(data: bytes) -> Any:
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
