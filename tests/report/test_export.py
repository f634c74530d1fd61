"""An export holds every fact of the index and all that an answer is solved from; equal facts make equal bytes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.factbase.small import compiled, facts, table
from tests.schemas import shipped
from toolmatrix.commands.export import COLUMNS, SCHEMA, Extract
from toolmatrix.factbase.index import Index, in_memory
from toolmatrix.factbase.records import ClaimRecord, ReleaseRecord
from toolmatrix.factbase.store import build, open_index
from toolmatrix.factbase.writer import write as write_index

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.factbase.records import FactRecord

    Document = dict[str, Any]

SMALL = Path(__file__).parents[1] / "cli" / "fixtures" / "small" / "matrix.yaml"


@pytest.fixture(scope="module")
def index(cache: str) -> Index:
    """The built-in matrix."""
    return open_index([], {"XDG_CACHE_HOME": cache})


@pytest.fixture(scope="module")
def whole(index: Index) -> Document:
    """All of it, as whoever reads the file has it."""
    return read(Extract(index))


@pytest.fixture(scope="module")
def small() -> Index:
    """A matrix small enough to work out by hand."""
    return Index("", in_memory(build([str(SMALL)])))


def read(extract: Extract) -> Document:
    """The document out of its text."""
    document: Document = json.loads("".join(extract.json()))
    return document


def rows(extract: Extract) -> list[dict[str, str]]:
    """The table out of its text."""
    return [*csv.DictReader(io.StringIO("".join(extract.csv())))]


def validator() -> jsonschema.Draft202012Validator:
    """The schema that the package ships."""
    return jsonschema.Draft202012Validator(shipped("export"))


@pytest.mark.long
def test_the_text_is_the_document(index: Index, whole: Document) -> None:
    assert whole == Extract(index).document()


@pytest.mark.long
def test_every_fact_of_the_index_is_read_back(index: Index, whole: Document) -> None:
    told = {part["id"]: part for name in ("claims", "releases", "data") for part in whole[name]}
    assert len(whole["claims"]) + len(whole["releases"]) == index.header["facts"]
    # Rows that claims and releases were printed in say nothing besides these.
    printed = {part["row"] for name in ("claims", "releases") for part in whole[name]}
    assert {*index.ids} - printed == {*told} - printed
    for name, part in told.items():
        record = index.record(index.ids[name])
        assert written(part) == fields(record), name


def written(part: Document) -> list[Any]:
    """What a fact of an export says."""
    common = [part["id"], part["evidence"], part["source"], part["where"]]
    if "version" in part:
        own = [part["component"], part["version"], part["date"] or "", part["attributes"]]
        return [*common, part["row"], *own]
    if "cells" in part:
        return [*common, part["table"], part["about"], part["note"], part["cells"]]
    # Of what needs one of several the index names the first.
    says = part["says"] or {"component": part["any_of"][0], "is": "*"}
    when = [[one["component"], one["is"]] for one in (part["subject"], *part["when"], says)]
    own = [part[name] for name in ("row", "kind", "any_of", "note", "exact", "beside")]
    return [*common, when, *own]


def fields(record: FactRecord) -> list[Any]:
    """What a record of the index says."""
    common = [record.id, record.evidence, record.source, record.where]
    if isinstance(record, ReleaseRecord):
        common[0] = f"{record.component}=={record.selector}"
        own = [record.component, record.selector, record.date, record.attributes]
        return [*common, record.id, *own]
    if not isinstance(record, ClaimRecord):
        return [*common, record.table, record.about, record.note, dict(record.cells)]
    said = [record.component, record.selector]
    when = [[record.subject, record.releases], *map(list, record.conditions), said]
    own = [record.row, record.kind, [*record.alternatives], record.note]
    return [*common, when, *own, record.exact, record.beside]


@pytest.mark.long
def test_what_an_answer_is_solved_from_is_read_back(index: Index, whole: Document) -> None:
    """Masks made of the releases in the document are those of the index: bindings, tested rows and disputes."""
    releases = {name: part["releases"] for name, part in whole["components"].items()}

    def mask(component: str, names: Sequence[str]) -> int:
        places = {name: place + 1 for place, name in enumerate(releases[component])}
        return sum(1 << places.get(name, 0) for name in names)

    def masks(named: Mapping[str, Sequence[str]]) -> dict[str, int]:
        return {name: mask(name, listed) for name, listed in named.items()}

    def cited(subject: str, one: Document) -> list[tuple[str, int, list[str]]]:
        return [(c["fact"], mask(subject, c["releases"]), c["rules"]) for c in one["cites"]]

    hard, soft, disputes = [], [], []
    for one in whole["hard"]:
        bound = (mask(one["subject"], one["releases"]), masks(one["when"]))
        component = one["component"] or one["any_of"][0]
        allowed = releases[component] if one["allowed"] is None else one["allowed"]
        to = (component, mask(component, allowed), one["any_of"])
        hard.append(
            (one["subject"], one["kind"], *bound, *to, one["evidence"], cited(one["subject"], one))
        )
    for one in whole["soft"]:
        terms = [(part["component"], part["releases"]) for part in one["together"]]
        words = [part["evidence"] for part in one["together"]]
        told = ([name for name, _ in terms], [mask(*term) for term in terms], words)
        subject = one["together"][0]["component"]
        how = (one["evidence"], one["carried"], cited(subject, one))
        soft.append((masks(one["when"]), *told, *how))
    for one in whole["disputes"]:
        about = (one["subject"], mask(one["subject"], one["releases"]), masks(one["when"]))
        claimed = (one["component"], mask(one["component"], one["claimed"]), one["kind"])
        disputes.append((*about, *claimed, one["evidence"], one["rival"], one["deciding"]))
    assert releases == {name: [*index.component(name).versions] for name in sorted(releases)}
    assert hard == [*bindings_of(index)]
    assert soft == [*rows_of(index)]
    assert disputes == [*disputes_of(index)]


def bindings_of(index: Index) -> Iterator[tuple[Any, ...]]:
    """The bindings of an index with the ids of their facts."""
    for name in sorted(index.header["components"]):
        for one in index.component(name).bindings:
            bound = (one.mask, dict(one.conditions), one.component, one.allowed)
            told = ([*one.alternatives], one.evidence, cites_of(index, one.cites))
            yield (name, one.kind, *bound, *told)


def rows_of(index: Index) -> Iterator[tuple[Any, ...]]:
    """The tested rows of an index with the ids of their facts."""
    for name in sorted(index.header["components"]):
        for group in index.component(name).row_groups:
            for place, cites in enumerate(group.cites):
                terms = [column[place] for column in group.columns]
                told = ([*group.components], terms, [*group.evidences], group.evidence)
                yield (dict(group.conditions), *told, group.carried, cites_of(index, cites))


def disputes_of(index: Index) -> Iterator[tuple[Any, ...]]:
    """The disputes of an index with the ids of their facts."""
    for name in sorted(index.header["components"]):
        for one in index.component(name).disputes:
            sides = [index.claim(number).id for number in (one.rival, one.deciding)]
            told = (one.component, one.allowed, one.kind, one.evidence)
            yield (name, one.mask, dict(one.conditions), *told, *sides)


def cites_of(index: Index, number: int) -> list[tuple[str, int, list[str]]]:
    """The claims behind a binding or row: the id of each, the mask of what it speaks of, its rules."""
    found = []
    for cite in index.cites(number):
        ends = iter(cite.ranges)
        places = [place for first in ends for place in range(first, next(ends) + 1)]
        mask = sum(1 << place for place in places)
        found.append((index.claim(cite.record).id, mask, [*cite.rules]))
    return found


@pytest.mark.long
def test_the_table_has_a_row_for_every_fact(index: Index, whole: Document) -> None:
    table = rows(Extract(index))
    told = [part["id"] for name in ("releases", "claims", "data") for part in whole[name]]
    assert [row["id"] for row in table] == told
    assert {row["matrix"] for row in table} == {index.header["digest"]}
    for row in table:
        source = whole["sources"][row["source"]]
        assert {key: row[key] for key in ("title", "at", "read")} == source, row["id"]
        assert row["evidence"], row["id"]


@pytest.mark.long
def test_facts_that_decide_are_those_that_bind_or_vouch(whole: Document) -> None:
    listed = [part for name in ("hard", "soft") for one in whole[name] for part in one["cites"]]
    assert {part["fact"] for part in listed} == {
        claim["id"] for claim in whole["claims"] if claim["decides"]
    }
    assert any(not claim["decides"] for claim in whole["claims"])


@pytest.mark.long
def test_the_same_facts_make_the_same_bytes(index: Index, cache: str) -> None:
    again = open_index([], {"XDG_CACHE_HOME": cache})
    for form in ("json", "csv"):
        one, other = (getattr(Extract(part, ["cudnn"]), form)() for part in (index, again))
        assert "".join(one) == "".join(other)


@pytest.mark.long
@pytest.mark.parametrize("name", ["bazel", "cudnn", "jax"])
def test_a_family_is_closed(index: Index, whole: Document, name: str) -> None:
    """What the facts about a component name is in the same document, and each is as in the whole one."""
    part = read(Extract(index, [name]))
    assert part["names"] == [name]
    assert not [*validator().iter_errors(part)]
    family = {name, f"{name}-variant"}
    claims = {claim["id"] for claim in part["claims"]}
    assert claims >= {
        claim["id"]
        for claim in whole["claims"]
        if {claim["subject"]["component"], (claim["says"] or claim["subject"])["component"]}
        & family
        or family & {*claim["any_of"]}
    }
    assert {one["component"] for one in part["releases"]} == family & {*whole["components"]}
    for one in (*part["hard"], *part["soft"]):
        assert claims >= {part["fact"] for part in one["cites"]}
    for one in part["disputes"]:
        assert claims >= {one["rival"], one["deciding"]}
    for section in ("releases", "claims", "data", "hard", "soft", "disputes"):
        everything = {json.dumps(one) for one in whole[section]}
        assert everything >= {json.dumps(one) for one in part[section]}, section
    for section in ("components", "sources", "channels"):
        assert whole[section].items() >= part[section].items(), section
    named = {one["component"] for claim in part["claims"] for one in claim["when"]}
    named |= {claim["subject"]["component"] for claim in part["claims"]}
    named |= {claim["says"]["component"] for claim in part["claims"] if claim["says"]}
    named |= {name for claim in part["claims"] for name in claim["any_of"]}
    assert {*part["components"]} >= named | family & {*whole["components"]}
    assert {*part["sources"]} >= {
        one["source"] for section in ("releases", "claims", "data") for one in part[section]
    }


def test_a_small_matrix_in_full(small: Index) -> None:
    document = read(Extract(small, ["gcc"]))
    assert not [*validator().iter_errors(document)]
    assert document["schema"] == SCHEMA
    assert document["matrix"] == {"date": "2026-01-02", "digest": small.header["digest"]}
    claims = {one["id"]: one for one in document["claims"]}
    assert claims["cuda-archs/11.2.0#gcc"] == {
        "id": "cuda-archs/11.2.0#gcc",
        "row": "cuda-archs/11.2.0",
        "table": "cuda-archs",
        "kind": "limits",
        "strength": "hard",
        "evidence": "artifact",
        "subject": {"component": "cuda", "is": "11.2.0", "releases": ["11.2.0"]},
        "exact": False,
        "when": [],
        "says": {"component": "gcc", "is": "<=9", "releases": ["7", "8", "9"]},
        "any_of": [],
        "beside": False,
        "text": "cuda 11.2.0: takes GCC <=9 as host compiler",
        "note": "",
        "rules": ["same-minor"],
        "decides": True,
        "disputed_by": [],
        "disputes": [],
        "source": "vendor",
        "where": "nvcc --list-gpu-arch",
    }
    # The row of 11.2.0 speaks for 11.2.2 as well, and is worth less there.
    widened = [one for one in document["hard"] if one["cites"][0]["rules"]]
    assert widened == [
        {
            "kind": "limits",
            "subject": "cuda",
            "releases": ["11.2.2"],
            "when": {},
            "component": "gcc",
            "allowed": ["absent", "7", "8", "9"],
            "any_of": [],
            "evidence": "derived",
            "cites": [
                {"fact": "cuda-archs/11.2.0#gcc", "releases": ["11.2.2"], "rules": ["same-minor"]}
            ],
        }
    ]


def test_one_of_several_is_no_statement_about_the_first(index: Index) -> None:
    part = read(Extract(index, ["clang"]))
    told = [one for one in part["claims"] if one["any_of"] == ["clang", "gcc"]]
    assert told
    assert {(one["kind"], one["says"]) for one in told} == {("needs", None)}
    bound = [one for one in part["hard"] if one["any_of"] == ["clang", "gcc"]]
    assert bound
    assert {(one["kind"], one["component"], one["allowed"]) for one in bound} == {
        ("needs", None, None)
    }
    row = next(row for row in rows(Extract(index, ["clang"])) if row["id"] == told[0]["id"])
    assert (row["component"], row["is"], row["releases"]) == ("", "", "")
    assert row["any_of"] == "clang gcc"


def test_a_release_of_a_row_is_no_finer_one(tmp_path: Path) -> None:
    """A row of a table of releases speaks of 3.0 and not of 3.0.1, though the selector 3.0 admits both."""
    held = table(
        id="made",
        evidence="artifact",
        defines="releases",
        columns={"python": {"as": "requires"}},
        rows=[{"app": "3.0", "python": "3.7"}, {"app": "3.0.1", "python": "3.9"}],
    )
    index = Index("", in_memory(write_index(compiled(tmp_path, facts(tables=[held])), {})))
    told = {one["id"]: one for one in read(Extract(index))["claims"]}
    subjects = {name: (one["exact"], one["subject"]["releases"]) for name, one in told.items()}
    assert subjects == {"made/3.0#python": (True, ["3.0"]), "made/3.0.1#python": (True, ["3.0.1"])}


def test_every_key_is_missed_when_it_is_gone(small: Index) -> None:
    document = Extract(small).document()
    assert validator().is_valid(document)
    for name in document:
        assert not validator().is_valid({k: v for k, v in document.items() if k != name}), name
    for name in ("claims", "releases", "hard", "soft", "disputes"):
        first, *rest = document[name]
        for key in first:
            less = [{k: v for k, v in first.items() if k != key}, *rest]
            assert not validator().is_valid(document | {name: less}), (name, key)


def test_columns_stay() -> None:
    """Others read the table by these names: a new one goes to the end, and none goes away within `/1`."""
    assert COLUMNS[:26] == (
        *("id", "kind", "strength", "evidence", "subject", "subject_is", "subject_releases"),
        *("when", "component", "is", "releases", "any_of", "says", "decides", "disputed_by"),
        *("rules", "date", "attributes", "note", "table", "where", "source", "title", "at"),
        *("read", "matrix"),
    )
