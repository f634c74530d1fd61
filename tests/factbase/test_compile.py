"""What binds, what vouches, what is disputed, and how rows speak for what they do not name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.factbase.small import (
    bound,
    compiled,
    disputed,
    facts,
    releases,
    statement,
    table,
    vouched,
)
from toolmatrix.factbase.compiled import Compiled

REQUIRES = {"gcc": {"as": "requires"}}
TESTED = {"gcc": {"as": "tested"}, "python": {"as": "tested"}}


def one_table(folder: Path, *rows: dict[str, Any], **more: Any) -> Compiled:
    return compiled(folder, facts(tables=[table(rows=list(rows), **{"columns": REQUIRES, **more})]))


# inheritance


def test_a_row_stands_for_the_patches_of_its_minor(tmp_path: Path) -> None:
    result = one_table(tmp_path, {"app": "2.6.0", "gcc": "8"}, **{"stands-for": ["same-minor"]})
    assert bound(result) == [
        "app 2.6.0: requires gcc 8 (tested)",
        "app 2.6.1 2.6.5: requires gcc 8 (derived)",
    ]
    assert [reading.rules for part in result.bindings for _, reading in part.cites] == [
        (),
        ("same-minor",),
    ]


def test_a_row_of_its_own_is_better_than_an_inherited_one(tmp_path: Path) -> None:
    rows = {"app": "2.6.0", "gcc": "8"}, {"app": "2.6.5", "gcc": "9"}
    result = one_table(tmp_path, *rows, **{"stands-for": ["same-minor"]})
    assert bound(result) == [
        "app 2.6.0: requires gcc 8 (tested)",
        "app 2.6.5: requires gcc 9 (tested)",
        "app 2.6.1: requires gcc 8 (derived)",
    ]
    assert disputed(result) == [
        "app 2.6.5: t/2.6.0#gcc against t/2.6.5#gcc",
        "app 2.6.0: t/2.6.5#gcc against t/2.6.0#gcc",
        "app 2.6.1: t/2.6.5#gcc against t/2.6.0#gcc",
    ]


def test_a_point_release_is_taken_as_its_series(tmp_path: Path) -> None:
    result = one_table(tmp_path, {"app": "2.6.0", "gcc": "7.3.1"}, {"app": "2.7.0", "gcc": ">=8"})
    assert bound(result) == [
        "app 2.7.0: requires gcc 8 9 (tested)",
        "app 2.6.0: requires gcc 7 (derived)",
    ]
    assert result.bindings[1].cites[0][1].rules == ("same-series",)


def test_a_row_stands_for_another_machine(tmp_path: Path) -> None:
    more = {"context": {"machine": "x86_64"}, "stands-for": "x86-for-arm"}
    result = one_table(tmp_path, {"app": "2.6.0", "gcc": "8"}, **more)
    assert bound(result) == [
        "app 2.6.0, machine aarch64: requires gcc 8 (derived)",
        "app 2.6.0, machine x86_64: requires gcc 8 (tested)",
    ]
    without = one_table(tmp_path, {"app": "2.6.0", "gcc": "8"}, **{"stands-for": "x86-for-arm"})
    assert bound(without) == ["app 2.6.0: requires gcc 8 (tested)"]


def test_a_row_does_not_inherit_what_it_says_itself(tmp_path: Path) -> None:
    more = {"context": {"machine": "*"}, "stands-for": "x86-for-arm"}
    result = one_table(tmp_path, {"app": "2.6.0", "gcc": "8"}, **more)
    assert bound(result) == ["app 2.6.0, machine aarch64 x86_64: requires gcc 8 (tested)"]


def test_rules_are_applied_one_after_the_other(tmp_path: Path) -> None:
    more = {"context": {"machine": "x86_64"}, "stands-for": ["same-minor", "x86-for-arm"]}
    result = one_table(tmp_path, {"app": "2.6.0", "gcc": "8"}, **more)
    assert sorted(bound(result)) == [
        "app 2.6.0 2.6.1 2.6.5, machine aarch64: requires gcc 8 (derived)",
        "app 2.6.0, machine x86_64: requires gcc 8 (tested)",
        "app 2.6.1 2.6.5, machine x86_64: requires gcc 8 (derived)",
    ]


def test_inheritance_never_makes_evidence_better(tmp_path: Path) -> None:
    more = {"evidence": "reported", "stands-for": ["same-minor"]}
    result = one_table(tmp_path, {"app": "2.6.0", "gcc": "8"}, **more)
    assert bound(result) == ["app 2.6.0 2.6.1 2.6.5: requires gcc 8 (reported)"]


# cells


def test_cells_with_conditions_of_their_own(tmp_path: Path) -> None:
    cell = ["7", {"is": "8", "when": {"python": ">=3.7"}}, {"is": "9", "when": {"python": "3.9"}}]
    assert sorted(bound(one_table(tmp_path, {"app": "2.6.0", "gcc": cell}))) == [
        "app 2.6.0, python 3.7 3.9: requires gcc 8 (tested)",
        "app 2.6.0, python 3.9: requires gcc 9 (tested)",
        "app 2.6.0: requires gcc 7 (tested)",
    ]


def test_a_cell_or_column_with_evidence_of_its_own(tmp_path: Path) -> None:
    columns = {"gcc": {"as": "requires"}, "python": {"as": "limits", "evidence": "reported"}}
    row = {"app": "2.6.0", "gcc": {"is": "8", "evidence": "ran"}, "python": "3.9"}
    result = one_table(tmp_path, row, columns=columns)
    assert bound(result) == [
        "app 2.6.0: requires gcc 8 (ran)",
        "app 2.6.0: limits python absent 3.9 (reported)",
    ]


def test_a_column_does_not_make_evidence_better(tmp_path: Path) -> None:
    columns = {"gcc": {"as": "requires", "evidence": "ran"}}
    result = one_table(tmp_path, {"app": "2.6.0", "gcc": "8"}, columns=columns)
    assert bound(result) == ["app 2.6.0: requires gcc 8 (tested)"]


def test_a_column_may_have_several_meanings(tmp_path: Path) -> None:
    wheel = {"as": "requires", "context": {"machine": "x86_64"}, "rule": "wheel-toolkit"}
    columns = {"cuda": [{"as": "tested"}, wheel]}
    result = one_table(tmp_path, {"app": "2.6.0", "cuda": "11.2"}, columns=columns)
    assert bound(result) == ["app 2.6.0, machine x86_64: requires cuda 11.2.0 11.2.2 (derived)"]
    assert vouched(result) == ["app 2.6.0 (tested), cuda 11.2.0 11.2.2 (tested)"]
    assert sorted(result.matrix.claims) == ["t/2.6.0#cuda", "t/2.6.0#cuda@wheel-toolkit"]


def test_what_is_carried_is_required_and_vouched_for(tmp_path: Path) -> None:
    result = one_table(tmp_path, {"app": "2.6.0", "gcc": "8"}, columns={"gcc": {"as": "carries"}})
    assert bound(result) == ["app 2.6.0: requires gcc 8 (tested)"]
    assert vouched(result) == ["app 2.6.0 (tested), gcc absent 8 (tested)"]
    assert result.matrix.claims["t/2.6.0#gcc+tested"].carried


def test_limits_admit_what_is_absent_and_requirements_do_not(tmp_path: Path) -> None:
    text = facts(statements=[statement(requires={"gcc": ">=8"}, limits={"cuda": "absent"})])
    every = "app 2.6.0 2.6.1 2.6.5 2.7.0"
    assert bound(compiled(tmp_path, text)) == [
        f"{every}: limits cuda absent (stated)",
        f"{every}: requires gcc 8 9 (stated)",
    ]


def test_needs_are_alternatives(tmp_path: Path) -> None:
    result = compiled(tmp_path, facts(statements=[statement(needs=["python", ["gcc", "cuda"]])]))
    assert [part.alternatives for part in result.bindings] == [("gcc", "cuda"), ("python",)]


def test_a_requirement_of_what_nobody_released_can_never_be_met(tmp_path: Path) -> None:
    columns = {"gcc": {"as": "requires", "unreleased": True}}
    result = one_table(tmp_path, {"app": "2.6.0", "gcc": "15"}, columns=columns)
    assert bound(result) == ["app 2.6.0: requires gcc  (tested)"]


def test_a_row_about_no_release_says_nothing(tmp_path: Path) -> None:
    columns = {"gcc": {"as": "requires", "unreleased": True}}
    assert bound(one_table(tmp_path, {"app": "9.0", "gcc": "8"}, columns=columns)) == []


def test_the_same_release_from_two_places_keeps_the_better_evidence(tmp_path: Path) -> None:
    rows = [{"app": "2.6.0", "note": "again"}, {"app": "2.8.0", "id": "b"}]
    late = {"id": "late", "defines": "releases", "source": "later", "columns": {}}
    for word, wanted in (
        ("ran", "late/2.6.0"),
        ("artifact", "late/2.6.0"),
        ("stated", "apps/2.6.0"),
    ):
        text = facts(tables=[table(**{**late, "evidence": word, "rows": rows})])
        assert compiled(tmp_path, text).matrix.releases["app", "2.6.0"].id == wanted


# rows that vouch


def test_rows_that_say_the_same_are_one(tmp_path: Path) -> None:
    rows = (
        {"app": "2.6.0", "gcc": "7.3.1", "python": "3.6-3.9"},
        {"app": "2.7.0", "gcc": "7.3.1", "python": "3.6-3.9"},
    )
    assert vouched(one_table(tmp_path, *rows, columns=TESTED)) == [
        "app 2.6.0 2.7.0 (tested), gcc 7 (derived), python 3.6 3.7 3.9 (tested)"
    ]


def test_an_inherited_row_vouches_less(tmp_path: Path) -> None:
    more = {"columns": TESTED, "stands-for": ["same-minor"]}
    assert vouched(one_table(tmp_path, {"app": "2.6.0", "gcc": "8", "python": "3.9"}, **more)) == [
        "app 2.6.1 2.6.5 (derived), gcc 8 (derived), python 3.9 (derived)",
        "app 2.6.0 (tested), gcc 8 (tested), python 3.9 (tested)",
    ]


def test_a_row_that_does_not_decide_does_not_vouch(tmp_path: Path) -> None:
    row = {"app": "2.6.0", "gcc": "8", "decides": False, "note": "a misprint"}
    assert vouched(one_table(tmp_path, row, columns=TESTED)) == []


# disputes


def rivals(folder: Path, *pairs: tuple[dict[str, Any], dict[str, Any]]) -> Compiled:
    """Two or more tables of one row and one column about the same topic."""
    return compiled(
        folder,
        facts(
            tables=[
                table(**{"id": f"t{place}", "columns": REQUIRES, "rows": [row], **more})
                for place, (row, more) in enumerate(pairs)
            ]
        ),
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (({"app": "*", "gcc": "7"}, {"evidence": "artifact"}), ({"app": "2.6.0", "gcc": "8"}, {})),
        (({"app": "2.6.0", "gcc": "7"}, {}), ({"app": "2.6.0 2.6.1", "gcc": "8"}, {})),
        (({"app": "2.6.0", "gcc": "7"}, {"source": "later"}), ({"app": "2.6.0", "gcc": "8"}, {})),
        (({"app": "2.6.0", "gcc": "7", "id": "a"}, {}), ({"app": "2.6.0", "gcc": "8", "id": "b"}, {})),
        (
            ({"app": "*", "gcc": "7"}, {"evidence": "reported"}),
            ({"app": "2.6.0", "gcc": "8", "decides": False, "note": "wrong"}, {"evidence": "ran"}),
        ),
    ],
    ids=["better evidence", "fewer releases", "read later", "smaller id", "does not decide"],
)  # fmt: skip
def test_which_of_two_rivals_decides(tmp_path: Path, one: Any, other: Any) -> None:
    for pairs in ((one, other), (other, one)):
        result = rivals(tmp_path, *pairs)
        deciding = {
            reading.claim.selector
            for binding in result.bindings
            for mask, reading in binding.cites
            if mask & result.scales["app"].bit("2.6.0")
        }
        assert deciding == {"7"}
        losing = {
            (part.rival.claim.selector, part.deciding.claim.selector) for part in result.disputes
        }
        assert losing == {("8", "7")} or ("8", "7") in losing


def test_a_rival_still_decides_where_no_better_one_speaks(tmp_path: Path) -> None:
    result = rivals(
        tmp_path,
        ({"app": "2.6.0", "gcc": "7"}, {"evidence": "ran"}),
        ({"app": "*", "gcc": "8"}, {}),
    )
    assert bound(result) == [
        "app 2.6.0: requires gcc 7 (ran)",
        "app 2.6.1 2.6.5 2.7.0: requires gcc 8 (tested)",
    ]
    assert disputed(result) == ["app 2.6.0: t1/*#gcc against t0/2.6.0#gcc"]


def test_rivals_that_say_the_same_are_no_dispute_and_both_are_cited(tmp_path: Path) -> None:
    result = rivals(
        tmp_path,
        ({"app": "2.6.0", "gcc": "7"}, {}),
        ({"app": "2.6.0 2.7.0", "gcc": "==7"}, {}),
    )
    assert disputed(result) == []
    assert bound(result) == ["app 2.6.0 2.7.0: requires gcc 7 (tested)"]


def test_what_several_places_offer_is_offered(tmp_path: Path) -> None:
    offers = {"gcc": {"as": "offers"}}
    tables = [
        table(id="own", columns=offers, rows=[{"app": "2.6.0 2.7.0", "gcc": "7"}]),
        table(id="extra", columns=offers, rows=[{"app": "2.7.0", "gcc": "9"}], evidence="derived"),
    ]
    result = compiled(tmp_path, facts(tables=tables))
    assert bound(result) == [
        "app 2.6.0: limits gcc absent 7 (tested)",
        "app 2.7.0: limits gcc absent 7 9 (tested)",
    ]
    assert disputed(result) == []
    assert [len(binding.cites) for binding in result.bindings] == [1, 2]


def test_claims_of_another_topic_or_condition_are_no_rivals(tmp_path: Path) -> None:
    columns = {
        "least": {"as": "requires", "component": "gcc"},
        "most": {"as": "requires", "component": "gcc"},
        "arm": {"as": "requires", "component": "gcc", "topic": "most", "context": {"machine": "aarch64"}},
    }  # fmt: skip
    row = {"app": "2.6.0", "least": ">=8", "most": "<=8", "arm": "9"}
    result = one_table(tmp_path, row, columns=columns)
    assert disputed(result) == []
    assert sorted(bound(result)) == [
        "app 2.6.0, machine aarch64: requires gcc 9 (tested)",
        "app 2.6.0: requires gcc 7 8 (tested)",
        "app 2.6.0: requires gcc 8 9 (tested)",
    ]


def test_a_tested_row_against_what_binds_is_disputed(tmp_path: Path) -> None:
    columns = {"python": {"as": "tested"}, "wheels": {"as": "requires", "component": "python"}}
    row = {"app": "2.6.0", "python": "3.6-3.9", "wheels": ">=3.7"}
    result = one_table(tmp_path, row, columns=columns)
    assert disputed(result) == ["app 2.6.0: t/2.6.0#python against t/2.6.0#wheels"]


def test_a_tested_row_within_what_binds_is_not_disputed(tmp_path: Path) -> None:
    columns = {"python": {"as": "tested"}, "wheels": {"as": "requires", "component": "python"}}
    row = {"app": "2.6.0", "python": "3.7", "wheels": ">=3.7"}
    assert disputed(one_table(tmp_path, row, columns=columns)) == []


def test_a_claim_that_does_not_decide_binds_nothing_where_it_stands_alone(tmp_path: Path) -> None:
    row = {"app": "2.6.0", "gcc": "8", "decides": False, "note": "a misprint"}
    result = one_table(tmp_path, row)
    assert (bound(result), disputed(result)) == ([], [])


def test_a_tested_row_under_other_conditions_is_not_disputed(tmp_path: Path) -> None:
    wheels = {"as": "requires", "component": "python", "context": {"machine": "aarch64"}}
    columns = {"python": {"as": "tested", "context": {"machine": "x86_64"}}, "wheels": wheels}
    row = {"app": "2.6.0", "python": "3.6-3.9", "wheels": ">=3.7"}
    assert disputed(one_table(tmp_path, row, columns=columns)) == []


def test_tested_rows_marked_as_rivals(tmp_path: Path) -> None:
    columns = {"gcc": {"as": "tested", "rival": True}}
    better = {"app": "2.6.0", "gcc": "7", "evidence": "ran", "id": "better"}
    apart, overlapping = (
        {"app": "2.6.0", "gcc": "8", "id": "apart"},
        {"app": "2.6.0", "gcc": "7 8", "id": "both"},
    )
    result = one_table(tmp_path, better, apart, overlapping, columns=columns)
    assert disputed(result) == ["app 2.6.0: apart#gcc against better#gcc"]


# scales


def test_a_scale_is_ascending_and_names_follow_their_rank(tmp_path: Path) -> None:
    scales = compiled(tmp_path, facts()).scales
    assert scales["cuda"].versions == ("11.1", "11.2.0", "11.2.2", "12.0.0")
    assert scales["machine"].versions == ("aarch64", "x86_64")
    assert releases(scales, "gcc", scales["gcc"].everything | 1) == "absent 7 8 9"
