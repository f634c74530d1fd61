"""The compiled index: what a `resolve` reads instead of YAML; `writer` makes it.

One file: a line `toolmatrix-index/9 CRC HEADER`, a JSON header of HEADER bytes with that CRC, then the sections it
points to: one per component (its releases and what is said with it as the subject), then the records (claims with their
sources, rows as printed). Long tables lie in records as well, a run of their entries in each; their sections have the
first key and the number of each run. Sections and records are read one by one as an answer needs them. Each has a
checksum of its own, so that what a request does not reach costs nothing and damage is seen before anything of it is
used.
Equal facts make equal bytes.
"""

# It is JSON and masks throughout: nothing in it can run, the interpreter's own scanner reads it, and a set of releases
# of any size is one number on which a processor works at once.

from __future__ import annotations

import zlib

from toolmatrix.errors import MatrixError, Position
from toolmatrix.facts.records import (
    KINDS,
    BindingGroup,
    BreakRecord,
    BuildRecord,
    ChannelRecord,
    CitedClaim,
    ComponentFacts,
    Dispute,
    Product,
    RowGroup,
    SourceRecord,
    SupportRecord,
)
from toolmatrix.facts.versions import Scale
from toolmatrix.pack import Damaged, Parts, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeVar

    from toolmatrix.facts.records import ClaimRecord, FactRecord, Header, ReleaseRecord, RowRecord
    from toolmatrix.pack import Pieces

    Load = Callable[[str, Any, Callable[[], Any]], Any]
    """Gives a part by its name and by what it is made from, or makes it."""
    _Name = TypeVar("_Name", int, str)

FORMAT = "toolmatrix-index/9"


IndexDamaged = Damaged
"""Not an index, an index of another format, or a damaged one: rebuild it."""
LENGTH_BITS = 24
"""The number of a record is where it starts and, in so many bits, its length: no table has to be read to find it."""
CRC_BYTES = 4
"""Before each record."""


class Index:
    """Read access to an index file. Raises IndexDamaged when it is not one."""

    def __init__(
        self,
        path: str,
        data: bytes | Pieces | None = None,
        repair: Callable[[Index], bytes] | None = None,
        load: Load | None = None,
    ) -> None:
        """The index at `path`, or the one in memory, which came from there; raises OSError for one that cannot be read.

        `repair` makes the index anew when a part that is read later is damaged; `load` may know parts already.
        """
        self.path = path
        self._repair = repair
        self._load = load or _make
        self._parts = Parts(path, FORMAT.encode(), data)
        try:
            self.header: Header = self._load("index", self._state, self._read_header)
        except (ValueError, KeyError, RecursionError) as error:
            raise IndexDamaged(path) from error
        self._loaded: dict[str, Any] = {}
        self._tables: dict[str, dict[str, Any]] = {}
        self._records: dict[int, Any] = {}
        self._components: dict[str, ComponentFacts] = {}
        self._raw: dict[str, bytes] = {}
        self._scales: dict[str, Scale] = {}
        self._builds_of: dict[str, str] = {}
        self._requirements: dict[str, list[BindingGroup]] = {}

    @property
    def _state(self) -> tuple[bytes, int]:
        # The first line has the CRC of a header that has those of all others: it stands for all that parts come from.
        return self._parts.line, self._parts.size

    def _read_header(self) -> Header:
        header: dict[str, Any] = _json(self._parts.table())
        # Most fields of most components have their default, which is written once.
        usual, components = header.pop("usual"), header["components"]
        header["components"] = {name: usual | components[name] for name in components}
        return header  # type: ignore[return-value]

    def portable(self) -> bytes:
        """The bytes of the index without the states of files, which are those of one machine."""
        import json

        parts = self._parts
        header = _json(parts.table()) | {"files": {}}
        table = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        sections = parts.read(parts.body, parts.size - parts.body)
        return joined(FORMAT.encode(), table, {"": sections})

    def _sure(self, read: Callable[[_Name], bytes], name: _Name) -> bytes:
        # A part that is damaged is read from a new index that begins with the same line: it says the same.
        try:
            return read(name)
        except IndexDamaged:
            if self._repair is None:
                raise
        repair, self._repair = self._repair, None
        made = Parts(self.path, FORMAT.encode(), repair(self))
        if made.line != self._parts.line:
            raise MatrixError(
                "the matrix changed while it was read",
                where=Position(self.path),
                expected="the files the index was made from",
                found="others",
                help="run the command again",
            )
        self._parts = made
        self._raw.clear()
        return read(name)

    def _slice(self, name: str) -> bytes:
        if name not in self._raw:
            self._raw[name] = self._parts.part(*self.header["sections"][name])
        return self._raw[name]

    def _record(self, number: int) -> bytes:
        start, length = number >> LENGTH_BITS, number & (1 << LENGTH_BITS) - 1
        # Records are most of the file, and never read whole: each has a checksum of its own.
        first, *_ = self.header["sections"]["records"]
        data = self._parts.read(self._parts.body + first + start, length)
        crc, record = data[:CRC_BYTES], data[CRC_BYTES:]
        if sealed(record, start) != crc:
            raise IndexDamaged(self.path)
        return record

    def section(self, name: str) -> Any:
        """A section as JSON, read once."""
        if name not in self._loaded:
            self._loaded[name] = self._load(
                name, self._state, lambda: _json(self._sure(self._slice, name))
            )
        return self._loaded[name]

    def entry(self, section: str, key: str) -> Any:
        """One entry of a long table. Raises KeyError if there is none."""
        firsts, numbers = self.section(section)
        run = sum(map(key.__ge__, firsts)) - 1
        if run < 0:
            raise KeyError(key)
        return self._read(numbers[run], dict)[key]

    def entries(self, section: str) -> dict[str, Any]:
        """All entries of a long table, sorted by their keys."""
        if section not in self._tables:
            _, numbers = self.section(section)
            held = self._tables[section] = {}
            for number in numbers:
                held |= self._read(number, dict)
        return self._tables[section]

    def component(self, name: str) -> ComponentFacts:
        """The facts of a component, read once."""
        found = self._components.get(name)
        if found is None:
            # Records are made of these three alone, as the rest is plain values in the order of the fields.
            *told, bindings, row_groups, disputes = self.section("c:" + name)
            told += [*map(BindingGroup._make, bindings)], [*map(RowGroup._make, row_groups)]
            told.append([*map(Dispute._make, disputes)])
            found = self._components[name] = ComponentFacts._make(told)
        return found

    def requirements(self, name: str) -> Sequence[BindingGroup]:
        """The bindings of a component by which others must be there: all but limits."""
        found = self._requirements.get(name)
        if found is None:
            groups = self.component(name).binding_groups
            found = self._requirements[name] = [group for group in groups if group.kind != "limits"]
        return found

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
        """The number of the record of every claim, row and release by its id."""
        return self.entries("ids")

    def number(self, id: str) -> int:
        """The number of one record. Raises KeyError for an id that is not there."""
        found: int = self.entry("ids", id)
        return found

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
        return {name: SourceRecord._make(told) for name, told in self.entries("sources").items()}

    def source(self, name: str) -> SourceRecord:
        """One source. Raises KeyError for a name that is not there."""
        return SourceRecord._make(self.entry("sources", name))

    def channel(self, name: str) -> ChannelRecord:
        """One channel. Raises KeyError for a name that is not there."""
        return ChannelRecord._make(self.section("channels")[name])

    def builds(self, component: str, release: str) -> list[BuildRecord]:
        """The images of a release that were built, or could not be for want of an address; nothing where none was."""
        try:
            told = self.entry("builds", f"{component}=={release}")
        except KeyError:
            return []
        return [*map(BuildRecord._make, told)]

    def support(self, component: str) -> list[SupportRecord]:
        """What is known of the ends of support of a component, a later reading first; nothing where nothing is."""
        # An index of an earlier matrix knows of none.
        known = self.section("support") if "support" in self.header["sections"] else {}
        return [*map(SupportRecord._make, known.get(component, ()))]

    def breaks(self, component: str) -> list[BreakRecord]:
        """The releases of a component that broke what was made for those before, the oldest first."""
        known = self.section("breaks") if "breaks" in self.header["sections"] else {}
        return [*map(BreakRecord._make, known.get(component, ()))]

    def products(self) -> list[Product]:
        """Every name that a device is sold under."""
        return [*map(Product._make, self.section("products"))]

    def cites(self, number: int) -> list[CitedClaim]:
        """The claims behind a binding or row, by the number of the record that lists them."""
        return self._read(number, lambda told: [*map(CitedClaim._make, told)])  # type: ignore[no-any-return]

    def record(self, number: int) -> FactRecord:
        """One record: a claim, a release or a row."""
        return self._read(number, _fact)  # type: ignore[no-any-return]

    # Whoever asks knows of which kind it is: a choice cites claims and releases, a binding or a dispute claims alone.
    if TYPE_CHECKING:

        def statement(self, number: int) -> ClaimRecord | ReleaseRecord: ...
        def claim(self, number: int) -> ClaimRecord: ...
        def release(self, number: int) -> ReleaseRecord: ...
        def row(self, number: int) -> RowRecord: ...
    else:
        statement = claim = release = row = record

    def _read(self, number: int, made: Callable[[Any], Any]) -> Any:
        if number not in self._records:
            self._records[number] = made(_json(self._sure(self._record, number)))
        return self._records[number]


def _fact(told: Sequence[Any]) -> FactRecord:
    kind, *fields = told
    return KINDS[kind]._make(fields)


def sealed(record: bytes, start: int) -> bytes:
    """The CRC of a record at its place."""
    # Into it goes where the record starts, so that a damaged number does not lead to another whole record.
    return zlib.crc32(record, start & 0xFFFFFFFF).to_bytes(CRC_BYTES, "little")


def _make(_name: str, _state: Any, make: Callable[[], Any]) -> Any:
    return make()


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
class _Plain:
    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = None


def _scanner() -> Callable[[str, int], tuple[Any, int]]:
    # The C scanner behind `json`, which itself takes as long to import as all sections to read.
    try:
        from _json import make_scanner

        made: Callable[[str, int], tuple[Any, int]] = make_scanner(_Plain)  # type: ignore[arg-type]
    except (ImportError, AttributeError):
        from json import JSONDecoder

        return JSONDecoder().raw_decode
    return made


_scan = _scanner()
