"""Writes the compiled index; `index` says how it is laid out."""

from __future__ import annotations

import json
import zlib

from toolmatrix.facts import versions
from toolmatrix.facts.index import BREAK, CLAIM, FORMAT, RELEASE, ROW
from toolmatrix.facts.model import Component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from toolmatrix.facts.compiled import Binding, Compiled, Reading, Vouch
    from toolmatrix.facts.model import Claim, Release, Row, Source
    from toolmatrix.facts.versions import Scale

    _Part = TypeVar("_Part")


def write(compiled: Compiled, files: Mapping[str, int]) -> bytes:
    """The bytes of the index of a compiled matrix; `files` are the sizes of what it was made from, by relative name."""
    return _Writer(compiled, files).finish()


class _Writer:
    """Numbers records as they are needed and gathers sections."""

    def __init__(self, compiled: Compiled, files: Mapping[str, int]) -> None:
        self.compiled = compiled
        self.files = files
        self.sources: Mapping[str, Source] = compiled.matrix.sources
        self.records: list[bytes] = []
        self.ids: dict[str, int] = {}
        self.sections: dict[str, bytes] = {}

    def put(self, record: Any) -> int:
        self.records.append(_dump(record))
        return len(self.records) - 1

    def claim(self, claim: Claim) -> int:
        if claim.id not in self.ids:
            self.ids[claim.id] = self.put([0, *(getattr(claim, key) for key in CLAIM)])
        return self.ids[claim.id]

    def release(self, release: Release) -> int:
        name = f"{release.component}=={release.version}"
        if name not in self.ids:
            given = {
                "kind": "release",
                "selector": release.version,
                "attributes": dict(sorted(release.attributes.items())),
            }
            self.ids[name] = self.put(
                [1, *(given[key] if key in given else getattr(release, key) for key in RELEASE)]
            )
        return self.ids[name]

    def row(self, row: Row) -> int:
        return self.put([2, *("row" if key == "kind" else getattr(row, key) for key in ROW)])

    def cites(self, cites: list[tuple[int, Reading]]) -> int:
        return self.put(
            [
                [_ranges(mask), self.claim(reading.claim), reading.evidence, reading.rules]
                for mask, reading in cites
            ]
        )

    def components(self) -> None:
        matrix = self.compiled.matrix
        bindings = _by(self.compiled.bindings, lambda binding: binding.when[0][0])
        vouches = _by(self.compiled.vouches, lambda vouch: vouch.terms[0][0])
        disputes = _by(self.compiled.disputes, lambda dispute: dispute.subject)
        for name, scale in self.compiled.scales.items():
            releases = [matrix.releases[name, version] for version in scale.versions]
            self.sections["c:" + name] = _dump(
                {
                    "versions": scale.versions,
                    "dates": [release.date for release in releases],
                    "since": _since(scale, [release.date for release in releases]),
                    "yanked": sum(
                        2 << place for place, release in enumerate(releases) if release.yanked
                    ),
                    "releases": [self.release(release) for release in releases],
                    "packages": _packages(releases) if matrix.components[name].variant_of else {},
                    "brings": self.brings(bindings.get(name, ())),
                    "bindings": [
                        [
                            *(
                                binding.kind,
                                binding.when,
                                binding.component,
                                binding.allowed,
                                binding.alternatives,
                            ),
                            *(binding.evidence, self.cites(list(binding.cites))),
                        ]
                        for binding in bindings.get(name, ())
                    ],
                    "vouches": self.vouches(vouches.get(name, ())),
                    "disputes": [
                        [
                            *(
                                dispute.component,
                                dispute.mask,
                                dispute.rival.when[1:],
                                self.claim(dispute.rival.claim),
                            ),
                            *(
                                dispute.rival.evidence,
                                self.claim(dispute.deciding.claim),
                                dispute.rival.allowed,
                            ),
                            dispute.rival.claim.kind,
                        ]
                        for dispute in disputes.get(name, ())
                    ],
                }
            )

    def brings(self, bindings: Sequence[Binding]) -> int:
        """The variants that bring the runtime of an accelerator, inside or as packages."""
        components = self.compiled.matrix.components
        found = 0
        for binding in bindings:
            part = components[binding.component]
            own = components[binding.when[0][0]].variant_of
            if own and binding.kind == "requires" and part.accelerators and not part.framework:
                for mask, reading in binding.cites:
                    found |= 0 if reading.claim.beside else mask
        return found

    def vouches(self, vouches: Sequence[Vouch]) -> list[Any]:
        """Rows that vouch, those about the same components with the same evidence under one head, column by column."""
        heads: dict[Any, list[tuple[tuple[int, ...], int]]] = {}
        for vouch in vouches:
            names, masks, evidences = zip(*vouch.terms, strict=True)
            cells = [(mask, cell) for mask, held in vouch.cites for cell in held]
            carried = any(cell.claim.carried for _, cell in cells)
            head = (vouch.context, names, evidences, vouch.evidence, carried)
            heads.setdefault(head, []).append((masks, self.cites(cells)))
        found = []
        for head, rows in heads.items():
            masks_of_rows, cites_of_rows = zip(*rows, strict=True)
            found.append([*head, list(zip(*masks_of_rows, strict=True)), cites_of_rows])
        return found

    def finish(self) -> bytes:
        matrix = self.compiled.matrix
        self.components()
        for _, row in sorted(matrix.rows.items()):
            self.ids[row.id] = self.row(row)
        for _, claim in sorted(matrix.claims.items()):
            self.claim(claim)
        self.sections["ids"] = _entries(self.ids)
        self.sections["products"] = _dump(self.products())
        self.sections["sources"] = _entries(
            {
                name: {"title": source.title, "at": source.at, "read": source.read}
                for name, source in self.sources.items()
            }
        )
        self.sections["channels"] = _dump(
            {
                name: {
                    key: getattr(channel, key)
                    for key in ("title", "kind", "source", "default", "install")
                }
                for name, channel in sorted(matrix.channels.items())
            }
        )
        self.sections["records"] = b"".join(self.records)
        end = 0
        table = []
        for number, record in enumerate(self.records):
            end += len(record)
            table += [end.to_bytes(4, "little"), zlib.crc32(record, number).to_bytes(4, "little")]
        self.sections["table"] = b"".join(table)
        return self.join()

    def join(self) -> bytes:
        places: dict[str, tuple[int, int, int]] = {}
        body = b"".join(self.sections.values())
        start = 0
        for name, data in self.sections.items():
            places[name] = (start, len(data), zlib.crc32(data))
            start += len(data)
        header = _dump(self.head() | {"sections": places})
        return f"{FORMAT} {zlib.crc32(header)} {len(header)}\n".encode() + header + body

    def products(self) -> list[tuple[str, str]]:
        """Every name that a device is sold under, as (device, name): the cells `products` of tables of products."""
        found: dict[tuple[str, str], None] = {}
        for _, row in sorted(self.compiled.matrix.rows.items()):
            cells = dict(row.cells)
            if "device" in cells and "-products/" in row.id:
                names = (name.strip() for name in cells.get("products", "").split(";"))
                found |= dict.fromkeys((cells["device"], name) for name in names if name)
        return list(found)

    def packages(self) -> dict[str, str]:
        """The component of which a package installs variants, where it is not called as that or another is."""
        matrix = self.compiled.matrix
        found: dict[str, str] = {}
        for (component, _), release in sorted(matrix.releases.items()):
            of = matrix.components[component].variant_of
            package = _package(release).partition("[")[0] if of else ""
            if package and package not in matrix.components:
                found[package] = of
        return found

    def head(self) -> dict[str, Any]:
        matrix = self.compiled.matrix
        return {
            "digest": self.compiled.digest,
            "date": matrix.date,
            "files": dict(sorted(self.files.items())),
            "facts": len(matrix.claims) + len(matrix.releases),
            "components": {
                name: {
                    key: value
                    for key in part._fields
                    if (value := getattr(part, key)) != part._defaults.get(key)
                }
                for name, part in matrix.components.items()
            },
            "usual": dict(Component._defaults),
            "targets": {
                name: {
                    "context": dict(sorted(part.context.items())),
                    "accelerator": part.accelerator,
                    "policies": dict(sorted(part.policies.items())),
                }
                for name, part in matrix.targets.items()
            },
            "aliases": dict(sorted(matrix.aliases.items())),
            "packages": self.packages(),
            "rules": {
                name: {"evidence": rule.evidence, "reason": rule.reason}
                for name, rule in sorted(matrix.rules.items())
            },
        }


def _package(variant: Release) -> str:
    """What a requirement names, with its extras: `jax[cuda12]`."""
    return variant.attributes["install"].partition("=")[0]


def _packages(variants: Sequence[Release]) -> dict[str, int]:
    """By package, the variants that it installs."""
    found: dict[str, int] = {}
    for place, variant in enumerate(variants):
        package = _package(variant)
        found[package] = found.get(package, 0) | 2 << place
    return found


def _since(scale: Scale, dates: Sequence[str]) -> tuple[list[str], list[int]]:
    """Days on which minor series began, and the releases of all that had by each: a bug fix goes with its series."""
    if scale.scheme != "pep440":
        return [], []
    series = [versions.key(version)[0][:2] for version in scale.versions]
    first: dict[tuple[int, ...], str] = {}
    for name, day in zip(series, dates, strict=True):
        if day:
            first[name] = min(day, first.get(name, day))
    began = sorted(set(first.values()))
    out = [
        sum(2 << place for place, name in enumerate(series) if first.get(name, "~") <= day)
        for day in began
    ]
    return began, out


def _by(parts: Sequence[_Part], subject: Callable[[_Part], str]) -> dict[str, list[_Part]]:
    found: dict[str, list[_Part]] = {}
    for part in parts:
        found.setdefault(subject(part), []).append(part)
    return found


def _ranges(mask: int) -> list[int]:
    """The set bits as first, last, first, last, ...: short where a mask of hundreds of releases would be long."""
    found: list[int] = []
    place = 0
    while mask:
        skipped = (mask & -mask).bit_length() - 1
        mask >>= skipped
        length = (~mask & mask + 1).bit_length() - 1
        found += [place + skipped, place + skipped + length - 1]
        place += skipped + length
        mask >>= length
    return found


def _entries(parts: Mapping[str, Any]) -> bytes:
    """An object of which each entry can be found by itself."""
    told = b",".join(
        BREAK.encode() + _dump(name) + b":" + _dump(part) for name, part in sorted(parts.items())
    )
    return b"{" + told + BREAK.encode() + b"}"


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict).encode()
