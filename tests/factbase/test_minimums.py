"""A minimum speaks of what was there when it was written: what came later is unread, neither a yes nor a no."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factbase.small import (
    FRONT,
    NAMES,
    bound,
    facts,
    refused,
    statement,
    table,
    vouched,
    write,
)
from toolmatrix.factbase import compile as compiling
from toolmatrix.factbase import evidence, minimums
from toolmatrix.factbase.compiled import Compiled
from toolmatrix.factbase.load import load
from toolmatrix.factbase.versions import Scale

RULE = "  minimum-of-its-time: {evidence: unknown, reason: who wrote it knew the releases of that day}\n"
COUNTED = FRONT.replace(
    "gcc: {title: GCC, scheme: series}", "gcc: {title: GCC, scheme: series, major: 1}"
).replace("rules:\n", "rules:\n" + RULE)
# The app is of 2021-08-11: GCC 9 was there, 11 was there and has no day that anybody knows, 12 and 13 came later.
DATED = (
    NAMES.replace(
        '{"7": {}, "8": {}, "9": {}}',
        '{"9": {date: 2019-05-03}, "11": {}, "12": {date: 2022-05-06}, "13": {date: 2023-04-26}}',
    )
    .replace(
        '{"3.6": {}, "3.7": {}, "3.9": {}}',
        '{"3.9": {date: 2020-10-05}, "3.12": {date: 2023-10-02}}',
    )
    .replace("2.6.1: {}", "2.6.1: {date: 2022-11-01}")
)
BROKE = {
    "id": "pythons-that-broke",
    "key": "python",
    "lists": "breaks",
    "columns": {"known": {"as": "attribute"}, "breaks": {"as": "attribute"}},
}
LATER = "app 2.6.0: limits gcc absent 9 11 (unknown)"


def made(folder: Path, text: str, front: str = COUNTED) -> Compiled:
    """The small matrix with dated releases, compiled."""
    return compiling.compile_matrix(load([write(folder, text, front=front, names=DATED)]))


def limits(*rows: dict[str, Any], columns: dict[str, Any] | None = None, **given: Any) -> str:
    """A table that limits GCC and Python."""
    usual = {"gcc": {"as": "limits"}, "python": {"as": "limits"}}
    return facts(
        tables=[table(columns=columns or usual, rows=list(rows), evidence="stated", **given)]
    )


def unread(result: Compiled) -> list[str]:
    """What nobody knows."""
    return [line for line in bound(result) if line.endswith(f"({evidence.UNKNOWN})")]


@pytest.mark.parametrize(
    ("row", "left"),
    [
        # Up to the newest major of the day on which the release came out; one without a day may have been there.
        ({"app": "===2.6.0", "gcc": ">=9"}, [LATER]),
        ({"app": "===2.6.0", "gcc": ">9"}, [LATER]),
        ({"app": "===2.6.1", "gcc": ">=9"}, ["app 2.6.1: limits gcc absent 9 11 12 (unknown)"]),
        # A minimum speaks of the release that it names, whenever that came out.
        ({"app": "===2.6.0", "gcc": ">=12"}, ["app 2.6.0: limits gcc absent 9 11 12 (unknown)"]),
        # Without a day of its subject a row was written when its source was read, and all of these were out.
        ({"app": "===2.6.5", "gcc": ">=9"}, []),
        # What has an upper bound is read as it is, and so is what names releases.
        ({"app": "===2.6.0", "gcc": ">=9,<13"}, []),
        ({"app": "===2.6.0", "gcc": "9-12"}, []),
        ({"app": "===2.6.0", "gcc": "13"}, []),
        # That any will do is no minimum, where a major is no break that somebody knows.
        ({"app": "===2.6.0", "gcc": "*"}, []),
        # A component that counts no majors and is known to have broken nothing has no end.
        ({"app": "===2.6.0", "python": ">=3.9"}, []),
    ],
)
def test_a_minimum_holds_up_to_the_newest_major_of_its_day(
    tmp_path: Path, row: dict[str, Any], left: list[str]
) -> None:
    assert unread(made(tmp_path, limits(row))) == left


def test_releases_of_which_the_same_is_unread_share_a_statement_that_cites_what_each_says(
    tmp_path: Path,
) -> None:
    result = made(
        tmp_path,
        limits({"app": "===2.6.0", "gcc": ">=9"}, {"id": "b", "app": "===2.6.1", "gcc": ">=9"}),
    )
    cited = {
        cite.claim.id: (cite.evidence, cite.rules)
        for binding in result.bindings
        if binding.evidence == evidence.UNKNOWN
        for _, cite in binding.cites
    }
    assert cited == {
        "t/===2.6.0#gcc": ("unknown", ("minimum-of-its-time",)),
        "b#gcc": ("unknown", ("minimum-of-its-time",)),
    }


def test_the_minimum_itself_stays_as_it_is(tmp_path: Path) -> None:
    row = limits({"app": "===2.6.0", "gcc": ">=11"}, columns={"gcc": {"as": "requires"}})
    assert bound(made(tmp_path, row)) == ["app 2.6.0: requires gcc 11 12 13 (stated)", LATER]


def test_a_bound_beside_a_minimum_is_read_as_it_is(tmp_path: Path) -> None:
    columns: dict[str, dict[str, Any]] = {
        "gcc": {"as": "limits"},
        "most": {"component": "gcc", "as": "limits"},
    }
    row = {"app": "===2.6.0", "gcc": ">=9", "most": "<=12"}
    assert unread(made(tmp_path, limits(row, columns=columns))) == []
    # Where it holds under a condition alone, what it admits is known, and of the rest nobody knows.
    columns["most"]["context"] = {"accelerator": "cuda"}
    assert unread(made(tmp_path, limits(row, columns=columns))) == [
        "app 2.6.0: limits gcc absent 9 11 12 (unknown)"
    ]


def test_what_a_row_vouches_for_is_known(tmp_path: Path) -> None:
    columns = {"gcc": {"as": "limits"}, "with": {"component": "gcc", "as": "tested"}}
    row = {"app": "===2.6.0", "gcc": ">=9", "with": "13"}
    assert unread(made(tmp_path, limits(row, columns=columns))) == [
        "app 2.6.0: limits gcc absent 9 11 13 (unknown)"
    ]


def test_a_row_with_a_minimum_vouches_for_what_was_there_alone(tmp_path: Path) -> None:
    row = limits({"app": "===2.6.0", "gcc": ">=9"}, columns={"gcc": {"as": "tested"}})
    result = made(tmp_path, row)
    assert vouched(result) == ["app 2.6.0 (stated), gcc 9 11 (stated)"]
    assert unread(result) == [LATER]


def test_a_row_widened_to_another_release_was_written_with_the_one_it_names(tmp_path: Path) -> None:
    wider: dict[str, Any] = {"stands-for": ["same-minor"]}
    row = limits({"app": "===2.6.0", "gcc": ">=9"}, **wider)
    assert unread(made(tmp_path, row)) == [
        "app 2.6.0 2.6.1 2.6.5: limits gcc absent 9 11 (unknown)"
    ]


@pytest.mark.parametrize(
    ("selector", "left"),
    [
        (">=3.9", ["app 2.6.0: limits python absent 3.9 (unknown)"]),
        ("!=3.6", ["app 2.6.0: limits python absent 3.9 (unknown)"]),
        # Whoever asks for any of them wrote before the break as well.
        ("*", ["app 2.6.0: limits python absent 3.9 (unknown)"]),
        (">=3.12", []),
        ("<3.13", []),
    ],
)
def test_a_release_that_broke_its_users_ends_what_was_written_before(
    tmp_path: Path, selector: str, left: list[str]
) -> None:
    given = statement(when={"app": "2.6.0"}, limits={"python": selector})
    rows = [{"python": "3.12", "known": "2023-10-02", "breaks": "removed imp"}]
    text = facts(statements=[given], tables=[table(**BROKE, rows=rows)])
    assert unread(made(tmp_path, text)) == left


def test_who_could_know_of_a_break_wrote_of_it_as_well(tmp_path: Path) -> None:
    rows = [{"python": "3.12", "known": "2021-08-11", "breaks": "removed imp"}]
    given = statement(when={"app": "2.6.0"}, limits={"python": ">=3.9"})
    assert (
        unread(made(tmp_path, facts(statements=[given], tables=[table(**BROKE, rows=rows)]))) == []
    )


def test_a_front_page_without_the_rule_and_a_component_that_counts_no_majors_switch_it_off(
    tmp_path: Path,
) -> None:
    text = limits({"app": "===2.6.0", "gcc": ">=9"})
    assert unread(made(tmp_path, text, COUNTED.replace(RULE, ""))) == []
    path = write(tmp_path, text, front=COUNTED, names=DATED)
    (tmp_path / "ours.yaml").write_text(
        facts(components={"gcc": {"title": "GCC", "scheme": "series"}})
    )
    assert unread(compiling.compile_matrix(load([path, str(tmp_path / "ours.yaml")]))) == []


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (
            {"python": ">=3.12", "known": "2023-10-02", "breaks": "removed imp"},
            (
                "facts.yaml:14:13: a row of breaks must name one release; expected a version; "
                "found `>=3.12` is not a version; "
            ),
        ),
        (
            {"python": "3.12", "breaks": "removed imp"},
            "facts.yaml:14:5: a row of breaks has no `known`; expected a day; found no such key; ",
        ),
        (
            {"python": "3.12", "known": "2023-10-02"},
            "facts.yaml:14:5: a row of breaks has no `breaks`; expected a few words; found no such key; ",
        ),
        (
            {"python": "3.12", "known": "2023-10", "breaks": "removed imp"},
            "facts.yaml:15:12: known is not a date; expected YYYY-MM-DD; found `2023-10`; ",
        ),
    ],
)
def test_a_break_that_says_too_little_is_refused(
    tmp_path: Path, row: dict[str, str], error: str
) -> None:
    assert refused(tmp_path, facts(tables=[table(**BROKE, rows=[row])])).startswith(error)


@pytest.mark.parametrize(
    ("was", "now", "place"),
    [
        ("gcc: {title: GCC, scheme: series", "gcc: {title: GCC, scheme: series, major: 0", "9:44"),
        (
            "arch: {title: arch, scheme: names",
            "arch: {title: arch, scheme: names, major: 1",
            "8:45",
        ),
    ],
)
def test_a_major_is_the_first_numbers_of_a_version(
    tmp_path: Path, was: str, now: str, place: str
) -> None:
    assert refused(tmp_path, front=FRONT.replace(was, now)).startswith(
        f"matrix.yaml:{place}: invalid `major`; "
        "expected 1 or more, of a component whose releases are versions; "
    )


def test_a_row_without_a_day_cannot_be_written(tmp_path: Path) -> None:
    # A source without `read` is refused, so that each minimum has one day at least.
    names = NAMES.replace(", read: 2026-01-01}", "}")
    assert refused(tmp_path, limits({"app": "2.7.0", "gcc": ">=7"}), names=names).startswith(
        "names.yaml:3:11: source `vendor` has no `read`; expected `read:`; "
    )


RELEASES = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 3), st.sampled_from(["", "2020", "2021", "2022"])),
    min_size=1,
    max_size=8,
    unique_by=lambda one: one[:2],
)


@given(RELEASES, st.sampled_from(["2019", "2020", "2021", "2022"]), st.data())
def test_what_is_left_unread_begins_at_a_major_that_came_later(
    releases: list[tuple[int, int, str]], day: str, data: st.DataObject
) -> None:
    known = sorted(releases)
    names = [f"{major}.{minor}" for major, minor, _ in known]
    part = minimums.Counterpart(Scale("pep440", names), [date for _, _, date in known], 1, ())
    least = data.draw(st.sampled_from(names))
    found = minimums.find_later(part, f">={least}", day)
    left = part.scale.named(found.mask) if found else []
    # It is the end of the releases, begins a major, and that is behind the one of the minimum and of a later day.
    assert left == names[len(names) - len(left) :]
    if left:
        first = known[len(names) - len(left)]
        assert first[0] > int(least.partition(".")[0])
        assert first[2] > day
        assert known[len(names) - len(left) - 1][0] < first[0]


@given(RELEASES, st.data())
def test_a_later_day_leaves_no_more_unread(
    releases: list[tuple[int, int, str]], data: st.DataObject
) -> None:
    known = sorted(releases)
    names = [f"{major}.{minor}" for major, minor, _ in known]
    part = minimums.Counterpart(Scale("pep440", names), [date for _, _, date in known], 1, ())
    least = data.draw(st.sampled_from(names))
    masks = [
        found.mask if (found := minimums.find_later(part, f">={least}", day)) else 0
        for day in ("2019", "2020", "2021")
    ]
    assert all(not after & ~before for before, after in pairwise(masks))
