"""Writes the compiled index; `index` says how it is laid out."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from toolmatrix.factbase import minimums, pulling, records, versions
from toolmatrix.factbase.compiled import (
    Compiled,
    CompiledBinding,
    CompiledClaim,
    CompiledDispute,
    SoftConstraint,
    union,
)
from toolmatrix.factbase.index import (
    BLOCK,
    FORMAT,
    GZIP,
    HEADER,
    INDEPENDENTS,
    INDEPENDENTS_PACKED,
    REPEATED,
    ROWS,
    Index,
    component_file,
    facts_file,
    first_number,
    repeated,
)
from toolmatrix.factbase.model import (
    BUILDS,
    IMAGES_LIST,
    INDEPENDENT_LIST,
    PRODUCTS,
    REPORTS,
    SUPPORT,
    TERM_LIST,
    Claim,
    Component,
    PackageCode,
    Release,
    TableRow,
)
from toolmatrix.factbase.pieces import SEVERAL
from toolmatrix.factbase.versions import Scale
from toolmatrix.value import NamedTuple, Value

_Fact = TypeVar("_Fact")
_Record = TypeVar("_Record", bound=NamedTuple)

_ROW = records.KINDS.index(records.RowRecord)
# The columns of lists of images.
_IMAGE = ("image", "pulls", "day", "recipe", "note")


def write(
    compiled: Compiled, files: records.States, below: Index | None = None
) -> dict[str, bytes]:
    """The files of the index of a compiled matrix; `files` are the states of what it was made from.

    Those of components that were not compiled are the same as `below`.
    """
    return _Writer(compiled, files, below).finish()


class _Writer:
    # Records are written as they are needed, each into the file of its component.
    def __init__(self, compiled: Compiled, files: records.States, below: Index | None) -> None:
        self.compiled = compiled
        self.files = files
        self.below = below
        self.lines: dict[str, list[bytes]] = {name: [] for name in (*compiled.scales, "")}
        self.ends = dict.fromkeys(self.lines, 0)
        # The row that was written last for each component.
        self.last_row: dict[str, records.RowRecord] = {}
        self.ids: dict[str, int] = {}
        self.owners: dict[str, dict[str, None]] = {}
        self.component_facts: dict[str, records.ComponentFacts] = {}
        for table, names in (below.owners() if below else {}).items():
            for name in names:
                if name and name not in compiled.subjects:
                    self.owners.setdefault(table, {})[name] = None

    def append(self, component: str, record: Any) -> int:
        line, start = _dump(record) + b"\n", self.ends[component]
        self.lines[component].append(line)
        self.ends[component] += len(line)
        return first_number(component) + start

    def named(self, id: str, component: str, record: Any) -> int:
        """Put the record of a claim or row, and file its component under its table."""
        table = id.partition("#")[0].partition("/")[0]
        self.owners.setdefault(table, {})[component] = None
        self.ids[id] = self.append(component, record)
        return self.ids[id]

    def claim(self, claim: Claim) -> int:
        if claim.id in self.ids:
            return self.ids[claim.id]
        subject, releases = claim.when[0]
        overrides = {"subject": subject, "releases": releases, "conditions": claim.when[1:]}
        record = _record(records.ClaimRecord, claim, overrides)
        return self.named(claim.id, subject, self.fields(claim.row, subject, record))

    def fields(
        self, row: str, component: str, record: records.ClaimRecord | records.ReleaseRecord
    ) -> list[Any]:
        """A record as it is written: behind its row without what this says as well."""
        last, kind = self.last_row.get(component), records.KINDS.index(type(record))
        if last is None or last.id != row or not record.id.startswith(row):
            return [kind, *record]
        of_row = repeated(last[:REPEATED])
        shortened = {
            name: None if value == of_row.get(name) else value
            for name, value in record._asdict().items()
        } | {"id": record.id.removeprefix(row)}
        return [len(records.KINDS) + kind, *shortened.values()]

    def release(self, release: Release) -> int:
        name = f"{release.component}=={release.version}"
        if name not in self.ids:
            overrides = {
                "kind": "release",
                "selector": release.version,
                "attributes": dict(sorted(release.attributes.items())),
            }
            record = _record(records.ReleaseRecord, release, overrides)
            fields = self.fields(release.id, release.component, record)
            self.ids[name] = self.append(release.component, fields)
        return self.ids[name]

    def row(self, row: TableRow | None, of_row: Sequence[Claim | Release]) -> None:
        """Put a row, and behind it the claims and releases that came from it."""
        if row and row.lists != INDEPENDENT_LIST:
            component = next(map(_subject, of_row), row.subject.partition(" ")[0])
            component = component if component in self.lines else ""
            if not component or component in self.compiled.subjects:
                record = _record(records.RowRecord, row, {"kind": "row"})
                self.named(row.id, component, [_ROW, *record])
                self.last_row[component] = record
        for fact in of_row:
            if _subject(fact) in self.compiled.subjects:
                self.release(fact) if isinstance(fact, Release) else self.claim(fact)

    def cites(self, component: str, cites: Iterable[tuple[int, CompiledClaim]]) -> int:
        return self.append(
            component,
            [
                _record(
                    records.CitedClaim,
                    reading,
                    {"ranges": _ranges(mask), "record": self.claim(reading.claim)},
                )
                for mask, reading in cites
            ],
        )

    def components(self) -> None:
        matrix = self.compiled.matrix
        bindings = _by(self.compiled.bindings, lambda binding: binding.when[0][0])
        soft_constraints = _by(self.compiled.soft_constraints, lambda soft: soft.terms[0][0])
        disputes = _by(self.compiled.disputes, lambda dispute: dispute.rival.when[0][0])
        complete, unbounded = self.requirements_read()
        for name, scale in self.compiled.scales.items():
            if self.below and name not in self.compiled.subjects:
                continue
            releases = [matrix.releases[name, version] for version in scale.versions]
            dates = [release.date for release in releases]
            # It is asked of packages alone, and they are numbered as PEP 440 says.
            numbered = scale.versions if scale.scheme == "pep440" else ()
            since_days, since_masks = since(numbered, dates)
            self.component_facts[name] = records.ComponentFacts(
                blocks=[],
                versions=scale.versions,
                dates=dates,
                since_days=since_days,
                since_masks=since_masks,
                yanked=_mask(scale, filter(self.is_withdrawn, releases)),
                releases=[self.release(release) for release in releases],
                packages=_packages(releases) if matrix.components[name].variant_of else {},
                brings=self.brings(bindings.get(name, ())),
                unreviewed=_mask(scale, filter(_is_unreviewed, releases)),
                complete=complete.get(name, 0),
                unbounded=unbounded.get(name, {}),
                binding_groups=self.binding_groups(name, bindings.get(name, ())),
                row_groups=self.row_groups(name, soft_constraints.get(name, ())),
                disputes=[*map(self.dispute, disputes.get(name, ()))],
            )

    def component_files(self) -> Iterator[tuple[str, bytes]]:
        """The two files of each component, once all records are there."""
        for name in filter(None, self.lines):
            files = component_file(name), facts_file(name)
            facts = self.component_facts.get(name)
            if facts is None and self.below:
                yield from ((file, self.below.file(file)) for file in files)
            elif facts:
                blocks = [*_blocks(b"".join(self.lines[name]))]
                ends = itertools.accumulate(map(len, blocks), initial=0)
                yield files[0], _dump(facts._replace(blocks=[*ends]))
                yield files[1], b"".join(blocks)

    def requirements_read(self) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
        """The releases of which the requirements were read whole, by component: those in rows of such tables.

        Then those of them that may require another component or independent package, by both: it became one after
        their list was read.
        """
        matrix = self.compiled.matrix
        masks: dict[str, int] = {}
        unbounded: dict[str, dict[str, int]] = {}
        independent = {row.cells[0][1] for row in matrix.rows_of(INDEPENDENT_LIST)}
        for row in matrix.rows.values():
            read = matrix.requirements.get(row.table)
            if read is not None:
                scale = self.compiled.scales[read.component]
                named = row.subject.partition(" ")[2]
                # `0.9.0` also admits 0.9.0.1, which has a row of its own.
                mask = scale.bit(named) or scale.select(named)
                mask &= ~scale.select(read.unread)
                masks[read.component] = masks.get(read.component, 0) | mask
                for other in read.others:
                    if other in matrix.components or other in independent:
                        by_other = unbounded.setdefault(read.component, {})
                        by_other[other] = by_other.get(other, 0) | mask
        return masks, unbounded

    def binding_groups(
        self, component: str, bindings: Sequence[CompiledBinding]
    ) -> list[records.BindingGroup]:
        # Neighbours alone: the order of bindings is the order in which facts are shown.
        groups = []
        for head, group in itertools.groupby(bindings, _head):
            kind, conditions, *shared = head
            rows = (
                (binding.when[0][1], binding.allowed, self.cites(component, binding.cites))
                for binding in group
            )
            masks, *columns = zip(*rows, strict=True)
            fields = union(masks), kind, dict(conditions), *shared, masks, *columns
            groups.append(records.BindingGroup._make(fields))
        return groups

    def dispute(self, dispute: CompiledDispute) -> records.Dispute:
        claim = dispute.rival.claim
        overrides = {
            "mask": dispute.mask,
            "conditions": dict(dispute.rival.when[1:]),
            "rival": self.claim(claim),
            "deciding": self.claim(dispute.deciding.claim),
            **claim.as_dict("component", "kind"),
        }
        return _record(records.Dispute, dispute.rival, overrides)

    def brings(self, bindings: Sequence[CompiledBinding]) -> int:
        # The variants that bring the runtime of an accelerator, inside or as packages.
        components = self.compiled.matrix.components
        bringing = 0
        for binding in bindings:
            toolkit = components[binding.component]
            is_build = components[binding.when[0][0]].variant_of and binding.kind == "requires"
            if is_build and toolkit.accelerators and not toolkit.framework:
                for mask, reading in binding.cites:
                    # What is needed beside the build has to be there already: the build does not bring it.
                    bringing |= 0 if reading.claim.beside else mask
        return bringing

    def row_groups(
        self, component: str, soft_constraints: Sequence[SoftConstraint]
    ) -> list[records.RowGroup]:
        # Column by column, as readers check all rows for a release before they make one.
        heads: dict[Any, list[tuple[tuple[int, ...], int]]] = {}
        for soft in soft_constraints:
            names, masks, evidences = zip(*soft.terms, strict=True)
            cells = [(mask, cell) for mask, claims in soft.cites for cell in claims]
            carried = any(cell.claim.carried for _, cell in cells)
            head = (soft.context, names, evidences, soft.evidence, carried)
            heads.setdefault(head, []).append((masks, self.cites(component, cells)))
        groups = []
        for (context, *shared), rows in heads.items():
            masks_of_rows, cites_of_rows = zip(*rows, strict=True)
            columns = [*zip(*masks_of_rows, strict=True)]
            groups.append(records.RowGroup._make([dict(context), *shared, columns, cites_of_rows]))
        return groups

    def finish(self) -> dict[str, bytes]:
        matrix = self.compiled.matrix
        # By their rows: claims of one release are read together, and are much alike, which packs them well.
        of_rows: dict[str, list[Claim | Release]] = {}
        for _, release in sorted(matrix.releases.items()):
            of_rows.setdefault(release.id, []).append(release)
        claims = matrix.claims | {claim.id: claim for claim in self.cited()}
        for _, claim in sorted(claims.items()):
            of_rows.setdefault(claim.row, []).append(claim)
        for id in sorted({*matrix.rows, *of_rows}):
            self.row(matrix.rows.get(id), of_rows.get(id, ()))
        self.components()
        sources, channels = (
            {name: _record(kind, record, {}) for name, record in sorted(entries.items())}
            for kind, entries in (
                (records.SourceRecord, matrix.sources),
                (records.ChannelRecord, matrix.channels),
            )
        )
        tables = {
            "builds.jsonl": _lines(sorted(self.builds().items())),
            "sources.jsonl": _lines(sources.items()),
            "breaks.json": _dump(minimums.breaks(matrix)),
            "channels.json": _dump(channels),
            "owners.json": _dump({name: sorted(of) for name, of in sorted(self.owners.items())}),
            "images.json": _dump(self.images),
            "packages.json": _dump(dict(sorted((matrix.packages | self.packages()).items()))),
            "products.json": _dump(self.products()),
            "reports.json": _dump(self.reports()),
            "support.json": _dump(self.support()),
            "terms.json": _dump(self.terms()),
            **self.independents(),
            ROWS: b"".join(self.lines[""]),
        }
        header = self.head() | {"sizes": {name: len(data) for name, data in tables.items()}}
        return {HEADER: _dump(header), **tables, **dict(self.component_files())}

    def cited(self) -> Iterator[Claim]:
        """The claims behind bindings, rows and disputes; of code that runs on devices they say which."""
        for binding in self.compiled.bindings:
            yield from (reading.claim for _, reading in binding.cites)
        for soft in self.compiled.soft_constraints:
            yield from (reading.claim for _, readings in soft.cites for reading in readings)
        for dispute in self.compiled.disputes:
            yield from (dispute.rival.claim, dispute.deciding.claim)

    def builds(self) -> dict[str, list[records.BuildRecord]]:
        """The images that were built, by component and release: the rows of tables that list builds."""
        by_release: dict[str, list[records.BuildRecord]] = {}
        for row in self.compiled.matrix.rows_of(BUILDS):
            component, _, release = row.subject.partition(" ")
            name = f"{component}=={release.lstrip('=')}"
            by_release.setdefault(name, []).append(records.BuildRecord(row.id, dict(row.cells)))
        return by_release

    def independents(self) -> dict[str, bytes]:
        """The rows of independent packages, a line each, and the places of the lines by name."""
        lines, places, end = [], {}, 0
        for row in self.compiled.matrix.rows_of(INDEPENDENT_LIST):
            name, *cells = (text for _, text in row.cells)
            places[name] = end
            lines.append(_dump([name, *cells[:4], row.table, row.source, row.where, row.evidence]))
            end += len(lines[-1]) + 1
        blocks = [*_blocks(b"".join(line + b"\n" for line in lines))]
        ends = [*itertools.accumulate(map(len, blocks), initial=0)]
        return {
            INDEPENDENTS: _dump({"blocks": ends, "places": places}),
            INDEPENDENTS_PACKED: b"".join(blocks),
        }

    def support(self) -> dict[str, list[records.SupportRecord]]:
        """The ends of support, by component: the rows of tables that list them, what was read later first."""
        matrix = self.compiled.matrix
        by_component: dict[str, list[records.SupportRecord]] = {}
        rows = matrix.rows_of(SUPPORT)
        for row in sorted(rows, key=lambda row: matrix.sources[row.source].read, reverse=True):
            component, _, selector = row.subject.partition(" ")
            cells = dict(row.cells)
            mask = self.compiled.scales[component].select(selector)
            columns = [cells.get(name, "") for name in ("until", "ended-by", "branch")]
            record = records.SupportRecord._make([row.id, mask, *columns, row.evidence])
            by_component.setdefault(component, []).append(record)
        return by_component

    @cached_property
    def images(self) -> list[records.ImageRecord]:
        """The rows of lists that say which images can be pulled."""
        rows = sorted(self.compiled.matrix.rows_of(IMAGES_LIST), key=lambda row: _place(row.id))
        return [
            records.ImageRecord(row.id, *(cells.get(column, "") for column in _IMAGE))
            for row in rows
            if (cells := dict(row.cells))
        ]

    def is_withdrawn(self, release: Release) -> bool:
        """True for a release that is chosen only if it is named: an image that cannot be pulled is one."""
        gone = release.component == pulling.BASE and (
            pulling.availability(self.images, release.version).pulls == "no"
        )
        return release.yanked or gone

    def reports(self) -> list[records.ReportRecord]:
        """The failures with a line by which they show: statements that list reports."""
        matrix = self.compiled.matrix
        reports = []
        for _, claim in sorted(matrix.claims.items()):
            row = matrix.rows[claim.row]
            if claim.kind == records.FAILS and row.lists == REPORTS:
                symptoms = dict(row.cells)["symptom"].split(SEVERAL)
                about = *claim.when[0], claim.component, claim.selector
                reports.append(
                    records.ReportRecord(claim.id, *about, symptoms, claim.source, claim.evidence)
                )
        return reports

    def products(self) -> list[records.Product]:
        """Every name that a device is sold under: the cells `products` of tables that list products."""
        named: dict[records.Product, None] = {}
        for row in self.compiled.matrix.rows_of(PRODUCTS):
            cells = dict(row.cells)
            names = (name.strip() for name in cells.get("products", "").split(";"))
            named |= dict.fromkeys(
                records.Product(
                    cells["device"], name, cells.get("board-machine", ""), cells.get("kind", "")
                )
                for name in names
                if name
            )
        return list(named)

    def terms(self) -> list[records.Term]:
        """The names that are no components: rows of one name are about one term, whichever table they are in."""
        named: dict[str, list[TableRow]] = {}
        for row in self.compiled.matrix.rows_of(TERM_LIST):
            named.setdefault(dict(row.cells)["name"], []).append(row)
        terms = []
        for name, rows in sorted(named.items()):
            cells = {key: text for row in rows for key, text in row.cells if text}
            also = [other.strip() for other in cells.get("also", "").split(";")]
            kind, of, after, says = (cells.get(key, "") for key in ("kind", "of", "after", "says"))
            ids = [row.id for row in rows]
            terms.append(records.Term(name, kind, [*filter(None, also)], of, after, says, ids))
        return terms

    def packages(self) -> dict[str, str]:
        # By package the component of which it installs variants, where it is not called as that or another is.
        matrix = self.compiled.matrix
        by_package: dict[str, str] = {}
        for (component, _), release in sorted(matrix.releases.items()):
            of = matrix.components[component].variant_of
            package = _package(release).partition("[")[0] if of else ""
            # `torch` is a component, and needs no entry to be known; `onnxruntime-gpu` is none.
            if package and package not in matrix.components:
                by_package[package] = of
        return by_package

    def code(self) -> dict[str, dict[str, Any]]:
        """The code of each component without what is usual, as its other fields are written."""
        return {
            name: {key: value for key, value in code.as_dict().items() if value}
            for name, code in self.compiled.matrix.code().items()
        }

    def head(self) -> dict[str, Any]:
        matrix, code = self.compiled.matrix, self.code()
        return {
            "format": FORMAT,
            "digest": self.compiled.digest,
            "date": matrix.date,
            "files": dict(sorted(self.files.items())),
            "facts": len(matrix.claims) + len(matrix.releases),
            "components": {
                name: {
                    key: value
                    for key, value in component.as_dict().items()
                    if value != component._defaults.get(key)
                }
                | code.get(name, {})
                for name, component in matrix.components.items()
            },
            # Most components have most of these: written once, they are put back where the header is read.
            "usual": {**Component._defaults, **PackageCode._defaults},
            "targets": {
                name: {
                    "context": dict(sorted(target.context.items())),
                    "accelerator": target.accelerator,
                    "policies": dict(sorted(target.policies.items())),
                }
                for name, target in matrix.targets.items()
            },
            "aliases": dict(sorted(matrix.aliases.items())),
            "packages": self.packages(),
            "rules": {
                name: rule.as_dict("evidence", "reason")
                for name, rule in sorted(matrix.rules.items())
            },
        }


def _record(kind: type[_Record], value: Value, extra: Mapping[str, Any]) -> _Record:
    """A record of the fields that a value has under the same names, but for `extra` ones."""
    return kind._make([extra[key] if key in extra else getattr(value, key) for key in kind._fields])


def _head(binding: CompiledBinding) -> tuple[Any, ...]:
    kind, conditions = binding.kind, binding.when[1:]
    return kind, conditions, binding.component, binding.alternatives, binding.evidence


def _subject(fact: Claim | Release) -> str:
    return fact.component if isinstance(fact, Release) else fact.when[0][0]


def _package(variant: Release) -> str:
    # With its extras: `jax[cuda12]` installs other builds than `jax`.
    # A requirement with an address of its own is written as `flash-attn@https://...`.
    return variant.attributes["install"].partition("@")[0].partition("=")[0]


def _is_unreviewed(release: Release) -> bool:
    return bool(records.UNREVIEWED & release.attributes.keys())


def _place(name: str) -> tuple[str, int]:
    """The table of a row that has no name of its own, and its place there."""
    table, _, number = name.rpartition("/")
    return table, int(number) if number.isdigit() else 0


def _mask(scale: Scale, releases: Iterable[Release]) -> int:
    return union(scale.bit(release.version) for release in releases)


def _packages(variants: Sequence[Release]) -> dict[str, int]:
    masks: dict[str, int] = {}
    for index, variant in enumerate(variants):
        package = _package(variant)
        masks[package] = masks.get(package, 0) | 2 << index
    return masks


def since(numbered: Sequence[str], dates: Sequence[str]) -> tuple[list[str], list[int]]:
    """The days on which series of releases began, and the releases of all that had by each, as masks."""
    # A bug fix goes with its series: it counts as out from the day on which the series began.
    series = [versions.key(version)[0][:2] for version in numbered]
    first: dict[tuple[int, ...], str] = {}
    for name, day in zip(series, dates, strict=False):
        if day:
            first[name] = min(day, first.get(name, day))
    began = sorted(set(first.values()))
    out = [
        sum(2 << index for index, name in enumerate(series) if first.get(name, "~") <= day)
        for day in began
    ]
    return began, out


def _by(facts: Sequence[_Fact], subject: Callable[[_Fact], str]) -> dict[str, list[_Fact]]:
    groups: dict[str, list[_Fact]] = {}
    for fact in facts:
        groups.setdefault(subject(fact), []).append(fact)
    return groups


def _ranges(mask: int) -> list[int]:
    # The set bits as first, last, first, last, ...: short where a mask of hundreds of releases would be long.
    ranges: list[int] = []
    position = 0
    while mask:
        skipped = (mask & -mask).bit_length() - 1
        mask >>= skipped
        length = (~mask & mask + 1).bit_length() - 1
        ranges += [position + skipped, position + skipped + length - 1]
        position += skipped + length
        mask >>= length
    return ranges


# Records hold no records, and need not be watched for going round.
_JSON = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))


def _dump(value: Any) -> bytes:
    return _JSON.encode(value).encode()


def _blocks(text: bytes) -> Iterator[bytes]:
    # The time of a member is none, so that equal facts make equal bytes.
    for start in range(0, len(text), BLOCK):
        member = zlib.compressobj(zlib.Z_BEST_COMPRESSION, wbits=GZIP)
        yield member.compress(text[start : start + BLOCK]) + member.flush()


def _lines(entries: Iterable[Sequence[Any]]) -> bytes:
    return b"".join(_dump(entry) + b"\n" for entry in entries)
