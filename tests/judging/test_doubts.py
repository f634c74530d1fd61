"""What is odd about answers: releases younger than the rows that vouch for them, toolkits that nobody names."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from tests.judging import small
from toolmatrix.factbase.records import ClaimRecord, ReleaseRecord
from toolmatrix.finding import InstallMethod
from toolmatrix.judging import sweep as doubts_of
from toolmatrix.solve.support import Choice, Cite

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.judging.conftest import Small
    from toolmatrix.finding import Finding

WAY = InstallMethod(target="x86", from_="wheel", accelerator="cuda")
DAYS = {("app", "1"): "2020-01-01", ("kit", "1"): "2019-06-01", ("kit", "2"): "2021-06-01"}


def choice(component: str, version: str, *cites: tuple[int, str], evidence: str = "") -> Choice:
    """A choice that rests on records, each with its evidence."""
    return Choice(
        target="x86",
        component=component,
        instance=0,
        version=version,
        evidence=evidence or (cites[0][1] if cites else "unknown"),
        cites=tuple(Cite(record=record, evidence=word, rules=()) for record, word in cites),
        disputed=(),
        parent="",
    )


def claim(subject: str, kind: str, name: str) -> ClaimRecord:
    """A record of the index, as far as it is looked at."""
    empty: dict[str, Any] = dict.fromkeys(ClaimRecord._fields, "")
    return ClaimRecord(**empty | {"id": name, "kind": kind, "subject": subject, "releases": "*"})


RELEASE = ReleaseRecord("app==1", "release", "app", "1", "artifact", "s", "w", "", {})


@pytest.mark.parametrize(
    ("version", "kind", "evidence", "found"),
    [
        ("2", "tested", "tested", True),
        ("2", "tested", "artifact", True),
        ("2", "tested", "stated", False),
        ("2", "tested", "derived", False),
        ("2", "requires", "artifact", False),
        ("1", "tested", "tested", False),
        ("3", "tested", "tested", False),
    ],
    ids=("tested", "artifact", "stated", "derived", "hard", "older", "undated"),
)
def test_nobody_tested_what_came_later(
    version: str, kind: str, evidence: str, *, found: bool
) -> None:
    choices = [choice("app", "1", (0, "artifact")), choice("kit", version, (1, evidence))]
    records: list[ClaimRecord | ReleaseRecord] = [RELEASE, claim("app", kind, "row#kit")]
    doubts = list(
        doubts_of.younger(choices, WAY, records.__getitem__, lambda *key: DAYS.get(key, ""))
    )
    assert [(one.component, one.releases, one["version"], one.actual) for one in doubts] == (
        [("app", ("1",), "2", "2021-06-01")] if found else []
    )


COMPONENTS: dict[str, dict[str, Any]] = {
    name: {"framework": name in ("app", "lib"), "variant_of": of, "accelerators": can}
    for name, of, can in (
        ("app", "", ["cuda"]),
        ("lib", "", ["cuda"]),
        ("app-variant", "app", []),
        ("lib-variant", "lib", []),
        ("kit", "", ["cuda"]),
        ("tool", "", []),
    )
}


@pytest.mark.parametrize(
    ("owner", "kind", "evidence", "found"),
    [
        ("app", "tested", "tested", False),
        ("app-variant", "requires", "artifact", False),
        ("lib", "requires", "artifact", False),
        ("lib-variant", "requires", "artifact", False),
        ("tool", "tested", "tested", True),
        ("kit", "limits", "stated", True),
        ("app", "tested", "unknown", True),
    ],
)
def test_a_toolkit_is_named_by_what_was_asked_for(
    owner: str, kind: str, evidence: str, *, found: bool
) -> None:
    choices = [
        choice("app", "1", (0, "artifact")),
        choice("lib", "1", (1, "artifact")),
        choice("kit", "1", (2, evidence)),
        choice("tool", "1"),
    ]
    records: list[ClaimRecord | ReleaseRecord] = [
        RELEASE,
        claim("app", "requires", "app/1#lib"),
        claim(owner, kind, "row#kit"),
    ]
    doubts = doubts_of.unnamed(("app", "1"), choices, WAY, records.__getitem__, COMPONENTS)
    assert [(one.toolkit, one.facts) for one in doubts] == (
        [("kit", ("row#kit",))] if found else []
    )


def test_a_framework_that_is_needed_speaks_for_itself() -> None:
    choices = [
        choice("app", "1", (0, "artifact")),
        choice("lib", "1").replace(parent="app"),
        choice("kit", "1", (1, "artifact")),
    ]
    records: list[ClaimRecord | ReleaseRecord] = [RELEASE, claim("lib", "requires", "row#kit")]
    args = ("app", "1"), choices, WAY, records.__getitem__
    assert list(doubts_of.unnamed(*args, COMPONENTS)) == []
    plain = COMPONENTS | {"lib": COMPONENTS["lib"] | {"framework": False, "accelerators": []}}
    assert [one.toolkit for one in doubts_of.unnamed(*args, plain)] == ["kit"]


def find(held: Small, code: str) -> list[Finding]:
    """The findings with one code in what people would be told."""
    return [one for one in doubts_of.doubts_about(held.outcomes(), held.matrix) if one.code == code]


LATER = (
    ('- {app: "2.0", machine: x86_64, tool: ">=2"}', """\
- {app: "2.0", date: 2025-01-01, machine: x86_64, tool: ">=2"}
      - {app: 2.0.1, date: 2025-06-01, machine: x86_64, tool: ">=2"}"""),
    ('"2.0": {}, "3.0": {}}}', '"2.0": {date: 2025-03-01}, "3.0": {date: 2025-09-01}}}'),
    ("evidence: reported", "evidence: tested\n    stands-for: [same-minor]"),
    ('- {app: "2.0", tool: "1.0"}', '- {app: 2.0.1, tool: "2.0"}'),
)  # fmt: skip


def test_a_widened_row_that_is_worth_too_much_is_found(make: Callable[..., Small]) -> None:
    (found,) = find(make(*LATER, ("minor, evidence: derived", "minor, evidence: tested")), "TM311")
    assert found.severity == "warning"
    assert (found.component, found.releases) == ("app", ("2.0",))
    assert found.names == ("tool", "2.0")
    assert (found.expected, found.actual) == ("2025-01-01", "2025-03-01")
    assert found.facts == ("tested/2.0.1#tool",)
    assert {way.from_ for way in found.ways} == {"source"}


def test_a_widened_row_that_is_worth_less_is_none(make: Callable[..., Small]) -> None:
    assert find(make(*LATER), "TM311") == []


def test_what_was_run_was_there_when_it_was_run(make: Callable[..., Small]) -> None:
    ran = ("evidence: tested\n    stands-for: [same-minor]", "evidence: ran")
    newer = ('- {app: 2.0.1, tool: "2.0"}', '- {app: "===2.0", tool: "2.0"}')
    held = make(*LATER, ran, newer)
    assert find(held, "TM311") == []
    index = held.matrix
    vouching = [claim for claim in index.claims.values() if claim.row == "tested/===2.0"]
    assert [claim.evidence for claim in vouching] == ["ran"]


def test_what_is_inside_is_inside_whenever_it_was_made(make: Callable[..., Small]) -> None:
    inside = ("columns: {tool: {as: tested}}", "columns: {tool: {as: carries}}")
    widened = ("minor, evidence: derived", "minor, evidence: tested")
    assert find(make(*LATER, inside, widened), "TM311") == []


NEEDED = """\
  - {id: lib-needs, when: {lib: "*"}, needs: [kit, tool], evidence: stated, source: vendor, where: text}
"""
BY_A_TOOL = """\
  - {id: lib-tool, when: {lib: "*"}, tested: {tool: "2.0"}, evidence: tested, source: vendor, where: text}
  - {id: tool-kit, when: {tool: "2.0"}, tested: {kit: "1.0"}, evidence: tested, source: vendor, where: text}
"""
NAMED = """\
  - {id: lib-kit, when: {lib: "*"}, tested: {kit: "2.0"}, evidence: tested, source: vendor, where: text}
"""


@pytest.mark.parametrize(
    ("facts", "names", "owners"),
    [
        (NEEDED, [("kit", "2.0")], [""]),
        (NEEDED + BY_A_TOOL, [("kit", "1.0")], ["tool"]),
        (NEEDED + BY_A_TOOL + NAMED, [], []),
    ],
    ids=("by chance", "by others", "named"),
)
def test_a_toolkit_that_nobody_names_is_found(
    make: Callable[..., Small], facts: str, names: list[tuple[str, str]], owners: list[str]
) -> None:
    found = find(make(*small.BUILDS, facts=facts), "TM312")
    assert [one.names for one in found] == names
    assert [one.actual for one in found] == owners
    assert {(one.component, one.releases, one.severity) for one in found} <= {
        ("lib", ("1.0",), "warning")
    }
    assert {way.from_ for one in found for way in one.ways} <= {"wheel"}


def test_builds_name_their_toolkits(make: Callable[..., Small]) -> None:
    assert find(make(*small.BUILDS), "TM312") == []


def test_doubts_travel_between_processes(make: Callable[..., Small]) -> None:
    held = make(*small.BUILDS, facts=NEEDED).outcomes()
    assert any(verdict.doubts for verdict in held)
    assert pickle.loads(pickle.dumps(held)) == held  # noqa: S301 - its own bytes
