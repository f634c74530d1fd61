"""What changed in a matrix: between two of them, or by the days on which sources were read, in words for a reviewer."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

from toolmatrix.api.requests import OpenMatrix, open_matrix
from toolmatrix.documents import Annotated, Count, Day, Digest, Evidence, Literal, TypedDict
from toolmatrix.factbase.index import facts_file
from toolmatrix.factbase.records import ReleaseRecord, RowRecord
from toolmatrix.report.fact_pages import text_of
from toolmatrix.report.terminal import some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Any

    from toolmatrix.api import Path
    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import ComponentHead, FactRecord

    Facts = dict[str, FactRecord]
    """By id."""


CHANGES_SCHEMA = "toolmatrix.matrix-changes/1"
# What a zip archive begins with, and the line in front of that of a bundle.
_ARCHIVE, _BUNDLE = b"PK\x03\x04", b"{"
# Facts that are listed of each component; all are counted.
_MOST = 40
# Requirements, archs and lines that the words of a release name.
_MOST_NAMED = 8
_HOW = ("changed", "removed", "added", "read")


class CountedMatrix(TypedDict):
    """A matrix, and how many facts it has."""

    digest: Digest
    date: Day
    facts: Count


class SaidBefore(TypedDict):
    """The text and evidence of a fact."""

    text: str
    evidence: Evidence | Literal[""]


class ChangedFact(SaidBefore):
    """A fact that came, went, or says something else; or one that was read since a day, which may be older."""

    id: str
    how: Annotated[str, "changed", "removed", "added", "read"]
    was: SaidBefore | None


class ChangedRelease(TypedDict):
    """A release that came or went, with what sets it apart from the release before it, in words."""

    release: str
    date: Day | Literal[""]
    how: Annotated[str, "new", "removed"]
    words: list[str]


class ChangedComponent(TypedDict):
    """What changed in the facts of a component and its builds."""

    component: str
    title: str
    facts: Count
    changed: Count
    removed: Count
    added: Count
    read: Count
    releases: list[ChangedRelease]
    listed: list[ChangedFact]
    """Some of them, those that say something else first."""


class MatrixChangesDocument(TypedDict):
    """What changed between two matrices, fact by fact: what came, what went, and what says something else."""

    schema: Annotated[str, CHANGES_SCHEMA]
    before: CountedMatrix
    after: CountedMatrix
    reread: Count
    """Facts that say the same and were read again at another place."""
    components: list[ChangedComponent]


def open_earlier(path: Path) -> OpenMatrix:
    """An earlier matrix: the folder of an index, a bundle, what `to_bytes` made in a file, or a front page.

    Raises MatrixError.
    """
    # Files that cannot be read are reported where files of facts are read.
    with suppress(OSError), open(path, "rb") as file:
        start = file.read(len(_ARCHIVE))
        if start == _ARCHIVE:
            return open_matrix(start + file.read())
        if start[:1] == _BUNDLE:
            from toolmatrix.factbase import bundle

            return OpenMatrix(index=bundle.index(start + file.read(), str(path)))
    return open_matrix(path)


def counted(matrix: OpenMatrix) -> CountedMatrix:
    """A matrix as documents name it."""
    return {
        "digest": matrix.digest,
        "date": matrix.date,
        "facts": matrix.index.header["facts"],
    }


def changes(
    before: OpenMatrix, after: OpenMatrix, names: Collection[str] = ()
) -> MatrixChangesDocument:
    """The document `toolmatrix.matrix-changes/1`: by component, those of which most changed first."""
    indexes = before.index, after.index
    of_before, of_after = files = tuple({*_files(index)} for index in indexes)
    owners = {name: _belongs(name, indexes) for name in of_before | of_after}
    # Files with the same bytes say the same, so that none of their facts is read.
    moved = {
        owner
        for name, owner in owners.items()
        if not names or owner in names
        if not (name in of_before and name in of_after and _same(name, indexes))
    }
    # The rows of a component may have claims about its builds.
    both = {name for name, owner in owners.items() if owner in moved}
    old, new = (_facts(index, both & own) for index, own in zip(indexes, files, strict=True))
    by_component: dict[str, list[ChangedFact]] = {}
    reread = 0
    for id in sorted({*old, *new}):
        was, now = old.get(id), new.get(id)
        if was == now:
            continue
        # What says the same was read again at another place.
        if was and now and _statement(was) == _statement(now):
            reread += 1
            continue
        how = "changed" if was and now else "added" if now else "removed"
        fact = now or was
        if fact is None:
            continue
        entry: ChangedFact = {
            **_statement(fact),
            "how": how,
            "id": id,
            "was": _statement(was) if was and now else None,
        }
        by_component.setdefault(_belongs(_subject(fact), indexes), []).append(entry)
    components = [
        _component(name, indexes, facts, _releases(name, before.index, after.index))
        for name, facts in by_component.items()
    ]
    return {
        "schema": CHANGES_SCHEMA,
        "before": counted(before),
        "after": counted(after),
        "reread": reread,
        "components": sorted(components, key=lambda entry: (-entry["facts"], entry["component"])),
    }


def read_since(matrix: OpenMatrix, day: str, names: Collection[str] = ()) -> list[ChangedComponent]:
    """By component the facts whose sources were read on a day or later, and releases of that time.

    A source that is read again has a new day, and its facts may be those of before.
    """
    index = matrix.index
    recent = {name for name, source in index.sources().items() if source.read >= day}
    by_component: dict[str, list[ChangedFact]] = {}
    indexes = (index,)
    wanted = {name for name in _files(index) if not names or _belongs(name, indexes) in names}
    for id, fact in _facts(index, wanted).items():
        if fact.source in recent:
            entry: ChangedFact = {**_statement(fact), "how": "read", "id": id, "was": None}
            by_component.setdefault(_belongs(_subject(fact), indexes), []).append(entry)
    components = [
        _component(name, indexes, facts, _released_since(name, index, day))
        for name, facts in by_component.items()
    ]
    return sorted(components, key=lambda entry: (-entry["facts"], entry["component"]))


def _files(index: Index) -> Iterator[str]:
    return iter((*index.header["components"], ""))


def _same(name: str, indexes: Iterable[Index]) -> bool:
    first, second = (index.file(facts_file(name)) for index in indexes)
    return first == second


def _head(name: str, indexes: Iterable[Index]) -> ComponentHead | None:
    # The newer matrix says what a component is.
    known = [
        index.header["components"][name] for index in indexes if name in index.header["components"]
    ]
    return known[-1] if known else None


def _belongs(name: str, indexes: Iterable[Index]) -> str:
    """The component that people know a component by, whose releases are builds of that."""
    head = _head(name, indexes)
    return head["variant_of"] or name if head else name


def _subject(fact: FactRecord) -> str:
    if isinstance(fact, ReleaseRecord):
        return fact.component
    return fact.subject.partition(" ")[0] if isinstance(fact, RowRecord) else fact.subject


def _facts(index: Index, names: Iterable[str]) -> Facts:
    """Claims, releases and rows of data by id; other rows are what claims and releases are printed in."""
    facts: Facts = {}
    rows: Facts = {}
    printed = set()
    for name in names:
        for record in index.records(name):
            if isinstance(record, RowRecord):
                rows[record.id] = record
            elif isinstance(record, ReleaseRecord):
                printed.add(record.id)
                facts[f"{record.component}=={record.selector}"] = record
            else:
                printed.add(record.row)
                facts[record.id] = record
    return facts | {id: row for id, row in rows.items() if id not in printed}


def _statement(fact: FactRecord) -> SaidBefore:
    return {"text": text_of(fact), "evidence": fact.evidence}


def _component(
    name: str,
    indexes: Iterable[Index],
    facts: list[ChangedFact],
    releases: list[ChangedRelease],
) -> ChangedComponent:
    # Changed facts are the ones to review.
    ordered = sorted(facts, key=lambda fact: (_HOW.index(fact["how"]), fact["id"]))
    counts = Counter(fact["how"] for fact in facts)
    head = _head(name, indexes)
    return {
        "component": name,
        "title": head["title"] if head else "",
        "facts": len(facts),
        "changed": counts["changed"],
        "removed": counts["removed"],
        "added": counts["added"],
        "read": counts["read"],
        "releases": releases,
        "listed": ordered[:_MOST],
    }


def _releases(name: str, before: Index, after: Index) -> list[ChangedRelease]:
    """The releases of a component that came, the newest first, and those that went."""
    old, new = (_versions(index, name) for index in (before, after))
    releases = [
        _described(after, name, version, new[version]) for version in new if version not in old
    ]
    gone: list[ChangedRelease] = [
        {"release": version, "date": day, "how": "removed", "words": []}
        for version, day in old.items()
        if version not in new
    ]
    return [*releases[::-1], *gone]


def _released_since(name: str, index: Index, day: str) -> list[ChangedRelease]:
    versions = _versions(index, name)
    recent = [version for version, date in versions.items() if date and date >= day]
    return [_described(index, name, version, versions[version]) for version in reversed(recent)]


def _versions(index: Index, name: str) -> dict[str, str]:
    if name not in index.header["components"]:
        return {}
    facts = index.component(name)
    return dict(zip(facts.versions, facts.dates, strict=True))


def _described(index: Index, name: str, version: str, day: str) -> ChangedRelease:
    """A release beside the one before it: what it newly needs, and the lines and archs of its builds."""
    versions = [*_versions(index, name)]
    position = versions.index(version)
    previous = versions[position - 1] if position else ""
    needs, before = (_needs(index, name, release) for release in (version, previous))
    words = []
    if news := [text for text in needs if text not in before]:
        words.append(f"needs {some(news, _MOST_NAMED)}")
    builds, former = (_builds(index, name, release) for release in (version, previous))
    # Builds of one channel and machine alone are compared: those of others may not have been read yet.
    lines: dict[str, None] = {}
    archs: dict[str, dict[str, None]] = {"adds": {}, "drops": {}}
    for place, (own_lines, own_archs) in builds.items():
        old_lines, old_archs = former.get(place, (set(), set()))
        lines |= dict.fromkeys(f"{line} line" for line in sorted(own_lines - old_lines))
        lines |= dict.fromkeys(f"no {line} line" for line in sorted(old_lines - own_lines))
        if own_archs and old_archs:
            archs["adds"] |= dict.fromkeys(sorted(own_archs - old_archs))
            archs["drops"] |= dict.fromkeys(sorted(old_archs - own_archs))
    words += lines
    words += [f"{verb} {some([*named], _MOST_NAMED)}" for verb, named in archs.items() if named]
    return {"release": version, "date": day, "how": "new", "words": words}


def _needs(index: Index, name: str, version: str) -> dict[str, None]:
    """What a release and its builds require, each as a component and its selector."""
    texts: dict[str, None] = {}
    if not version:
        return texts
    heads = index.header["components"]
    for component, releases in (
        (name, index.scale(name).bit(version)),
        *(
            (builds, _mask_of(index, builds, version))
            for builds in (index.builds_of(name),)
            if builds
        ),
    ):
        for group in index.component(component).binding_groups:
            # What holds for a machine or a target is no news of a release, and a floor follows from others.
            head = heads.get(group.component)
            # Of devices and archs the builds say more.
            if head is None or head["scheme"] == "names" or head["variant_of"]:
                continue
            if group.component == name:
                continue
            for binding in group.of(releases):
                for cite in index.cites(binding.cites):
                    claim = index.claim(cite.record)
                    if cite.touches(releases) and claim.selector not in ("*", "absent"):
                        texts[f"{claim.component} {claim.selector}".replace("==", "")] = None
    return texts


def _mask_of(index: Index, builds: str, version: str) -> int:
    # A build is called by its release and its line: `2.7.1+cu128`.
    start = f"{version}+"
    return sum(
        2 << number
        for number, build in enumerate(index.component(builds).versions)
        if build.startswith(start)
    )


def _builds(
    index: Index, name: str, version: str
) -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    """The lines and archs of the builds of a release, by channel and machine."""
    builds = index.builds_of(name)
    by_place: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    if not builds or not version:
        return by_place
    facts = index.component(builds)
    for build, number in zip(facts.versions, facts.releases, strict=True):
        if build.startswith(f"{version}+"):
            fields: Mapping[str, Any] = index.release(number).attributes
            place = fields.get("channel", ""), fields.get("machine", "")
            lines, archs = by_place.setdefault(place, (set(), set()))
            lines.add(fields.get("line", ""))
            archs.update(fields.get("archs", "").split())
    return by_place


def lines_of(component: ChangedComponent) -> Iterator[str]:
    """A component in words, a line for each release and one for its other facts."""
    for release in component["releases"]:
        dated = f" ({release['date']})" if release["date"] else ""
        state = "; ".join((release["how"], *release["words"]))
        yield f"{component['component']} {release['release']}{dated}: {state}"
    counts = [f"{component[how]} {how}" for how in _HOW if component[how]]  # type: ignore[literal-required]
    yield f"{component['component'] or 'no component'}: {', '.join(counts)}"
