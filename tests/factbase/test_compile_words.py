"""What is compiled of small matrices, in the corners: digests, point releases, devices, offers, rivals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.factbase.small import (
    FRONT,
    NAMES,
    bound,
    compiled,
    disputed,
    facts,
    refused,
    releases,
    statement,
    table,
    vouched,
    write,
)
from tests.factbase.test_variant_claims import ADDON, matrix
from tests.factbase.test_variants import CHANNELS, COLUMNS, MORE_NAMES, ROWS, RUNS, WITH_VARIANTS
from toolmatrix.factbase.compile import compile_matrix
from toolmatrix.factbase.compiled import Compiled
from toolmatrix.factbase.load import load

REQUIRES = {"gcc": {"as": "requires"}}


def one_table(folder: Path, *rows: dict[str, Any], **more: Any) -> Compiled:
    return compiled(folder, facts(tables=[table(rows=list(rows), **{"columns": REQUIRES, **more})]))


# the digest


def digest(folder: Path, text: str = "", *, front: str = FRONT, names: str = NAMES) -> str:
    return compile_matrix(load([write(folder, text or facts(), front=front, names=names)])).digest


def test_a_digest_names_its_kind(tmp_path: Path) -> None:
    assert re.fullmatch("sha256:[0-9a-f]{64}", digest(tmp_path))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("date: 2026-01-02", "date: 2026-01-03"),
        ("title: GCC", "title: gcc"),
        ("scheme: series", "scheme: pep440"),
        ("context: {machine: x86_64}, accel", "context: {machine: aarch64}, accel"),
        ("the same sources", "other sources"),
        ("{machine: aarch64}", "{machine: x86_64}"),
        ("targets:", "aliases: {cc: gcc}\ntargets:"),
    ],
)
def test_the_front_page_is_in_the_digest(tmp_path: Path, old: str, new: str) -> None:
    assert old in FRONT
    assert digest(tmp_path, front=FRONT.replace(old, new, 1)) != digest(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"), [("Vendor", "Seller"), ("page@1", "page@9"), ("2.6.1", "2.6.2")]
)
def test_sources_and_releases_are_in_the_digest(tmp_path: Path, old: str, new: str) -> None:
    assert digest(tmp_path, names=NAMES.replace(old, new)) != digest(tmp_path)


def test_channels_rows_and_claims_are_in_the_digest(tmp_path: Path) -> None:
    texts = [
        facts(),
        facts(channels=CHANNELS),
        facts(channels=CHANNELS[:1]),
        facts(tables=[table(columns=REQUIRES, rows=[{"app": "2.6.0", "gcc": "8"}])]),
        facts(tables=[table(columns=REQUIRES, rows=[{"app": "2.6.0", "gcc": "==8"}])]),
        facts(tables=[table(columns=REQUIRES, rows=[{"app": "2.6.0", "note": "n", "gcc": "8"}])]),
    ]
    assert len({digest(tmp_path, text) for text in texts}) == len(texts)


def test_the_order_of_components_is_in_the_digest(tmp_path: Path) -> None:
    """It is what the solver prefers by."""
    lines = FRONT.split("\n")
    gcc, python = (lines.index(line) for line in lines if line.startswith(("  gcc:", "  python:")))
    lines[gcc], lines[python] = lines[python], lines[gcc]
    assert digest(tmp_path, front="\n".join(lines)) != digest(tmp_path)


def test_the_order_of_aliases_and_of_attributes_says_nothing(tmp_path: Path) -> None:
    def both(aliases: str, attributes: str) -> str:
        front = FRONT.replace("targets:", f"aliases: {{{aliases}}}\ntargets:")
        names = NAMES.replace("2.6.1: {}", f"2.6.1: {{{attributes}}}")
        return digest(tmp_path, front=front, names=names)

    assert both("cc: gcc, py: python", "a: x, b: y") == both("py: python, cc: gcc", "b: y, a: x")


# selectors and their releases


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("7.3.1", "requires gcc 7 (derived)"),
        ("==7.3.1", "requires gcc 7 (derived)"),
        (">=7.3.1", "requires gcc 7 8 9 (derived)"),
        ("<=8.2", "requires gcc 7 8 (derived)"),
        ("7.3.1-8", "requires gcc 7 8 (derived)"),
        ("7-8.1", "requires gcc 7 8 (derived)"),
        ("7", "requires gcc 7 (tested)"),
        (">=7", "requires gcc 7 8 9 (tested)"),
        ("7.*", "requires gcc 7 (tested)"),
        ("!=7.3.1", "requires gcc 7 8 9 (tested)"),
        ("<8.1", "requires gcc 7 8 (tested)"),
        ("<=10.2", "requires gcc 7 8 9 (tested)"),
        ("7.0.*", "requires gcc 7 (tested)"),
        ("absent", "requires gcc absent (tested)"),
    ],
)
def test_a_bound_that_is_a_point_release_is_taken_as_its_series(
    tmp_path: Path, selector: str, said: str
) -> None:
    """A release that is named or reached is derived from its series; one that is excluded leaves the series."""
    assert bound(one_table(tmp_path, {"app": "2.6.0", "gcc": selector})) == [f"app 2.6.0: {said}"]


def test_a_component_named_twice_must_satisfy_both(tmp_path: Path) -> None:
    text = facts(
        statements=[statement(when={"app": "2.6.0", "gcc": ">=8"}, requires={"python": "3.9"})]
    )
    assert bound(compiled(tmp_path, text)) == ["app 2.6.0, gcc 8 9: requires python 3.9 (stated)"]
    cell = {"is": "3.9", "when": {"gcc": ">=8"}}
    columns = {"python": {"as": "requires", "context": {"gcc": "<=8"}}}
    found = one_table(tmp_path, {"app": "2.6.0", "python": cell}, columns=columns)
    assert bound(found) == ["app 2.6.0, gcc 8: requires python 3.9 (tested)"]


def test_a_row_that_defines_its_release_speaks_of_none_that_is_finer(tmp_path: Path) -> None:
    names = NAMES.replace("2.6.1: {}", "2.6.1: {}, 2.6.1.1: {}")
    rows = [{"app": "2.6.1", "gcc": "8"}]
    said = []
    for more in ({}, {"defines": "releases"}):
        text = facts(tables=[table(columns=REQUIRES, rows=rows, **more)])
        said.append(bound(compile_matrix(load([write(tmp_path, text, names=names)]))))
    assert said == [
        ["app 2.6.1 2.6.1.1: requires gcc 8 (tested)"],
        ["app 2.6.1: requires gcc 8 (tested)"],
    ]


def test_a_condition_that_nothing_meets_binds_nothing(tmp_path: Path) -> None:
    columns = {"gcc": {"as": "requires", "unreleased": True, "context": {"python": "2.7"}}}
    assert bound(one_table(tmp_path, {"app": "2.6.0", "gcc": "8"}, columns=columns)) == []


def test_a_tested_row_of_what_nobody_released_vouches_for_nothing(tmp_path: Path) -> None:
    columns = {"gcc": {"as": "tested", "unreleased": True}, "python": {"as": "tested"}}
    row = {"app": "2.6.0", "gcc": "15", "python": "3.9"}
    assert vouched(one_table(tmp_path, row, columns=columns)) == [
        "app 2.6.0 (tested), python 3.9 (tested)"
    ]


@pytest.mark.parametrize(
    ("selector", "near"),
    [(">=2.8,<1", "2.7.0"), ("==2.6.3", "2.6.5"), ("~=9.1", "2.6.1"), ("!=2.*", "2.7.0")],
)
def test_an_error_names_the_nearest_known_release(tmp_path: Path, selector: str, near: str) -> None:
    text = facts(tables=[table(columns=REQUIRES, rows=[{"app": selector, "gcc": "8"}])])
    message = refused(tmp_path, text)
    assert message == (
        f"facts.yaml:11:10: `t/{selector}#gcc` names a version of app that was never released;"
        f" expected a known release of app, such as {near}; found `{selector}`;"
        " correct it, add the release with its source, or say `unreleased: true`"
    )


def test_an_error_about_a_component_without_releases_names_none(tmp_path: Path) -> None:
    names = re.sub(r"  - id: pythons\n(    .*\n)+", "", NAMES)
    text = facts(statements=[statement(requires={"python": "3.9"})])
    assert refused(tmp_path, text, names=names) == (
        "facts.yaml:9:13: `s#python` names a version of python that was never released;"
        " expected a known release of python; found `3.9`;"
        " correct it, add the release with its source, or say `unreleased: true`"
    )


# rules


def test_names_have_no_minor_releases_to_stand_for(tmp_path: Path) -> None:
    rows = [{"machine": "x86_64", "gcc": "8"}]
    of_names = table(key="machine", columns=REQUIRES, rows=rows, **{"stands-for": "same-minor"})
    text = facts(tables=[of_names])
    assert refused(tmp_path, text) == (
        "facts.yaml:12:10: `t/x86_64#gcc` cannot be widened by `same-minor`;"
        " expected a subject whose releases are versions; found machine, whose releases are names;"
        " remove the rule from `stands-for:`"
    )


def test_a_widened_claim_remembers_the_releases_that_it_names_itself(tmp_path: Path) -> None:
    more = {"context": {"machine": "x86_64"}, "stands-for": ["same-minor", "x86-for-arm"]}
    result = one_table(tmp_path, {"app": "2.6.0 2.7.0", "gcc": "8"}, **more)
    assert sorted(
        (
            releases(result.scales, "app", reading.when[0][1]),
            releases(result.scales, "machine", reading.when[1][1]),
            reading.rules,
            releases(result.scales, "app", reading.written_for),
        )
        for binding in result.bindings
        for _, reading in binding.cites
    ) == [
        ("2.6.0 2.7.0", "aarch64", ("x86-for-arm",), "2.6.0 2.7.0"),
        ("2.6.0 2.7.0", "x86_64", (), ""),
        ("2.6.1 2.6.5", "aarch64", ("same-minor", "x86-for-arm"), "2.6.0 2.7.0"),
        ("2.6.1 2.6.5", "x86_64", ("same-minor",), "2.6.0 2.7.0"),
    ]


def test_a_rule_that_widens_nothing_new_adds_no_reading(tmp_path: Path) -> None:
    result = one_table(tmp_path, {"app": "2.6.*", "gcc": "8"}, **{"stands-for": "same-minor"})
    assert bound(result) == ["app 2.6.0 2.6.1 2.6.5: requires gcc 8 (tested)"]


def test_the_rule_and_the_series_are_both_named(tmp_path: Path) -> None:
    columns = {"gcc": {"as": "requires", "rule": "wheel-toolkit"}}
    result = one_table(tmp_path, {"app": "2.6.0", "gcc": "7.3.1"}, columns=columns)
    assert bound(result) == ["app 2.6.0: requires gcc 7 (derived)"]
    assert result.bindings[0].cites[0][1].rules == ("wheel-toolkit", "same-series")
    exact = one_table(tmp_path, {"app": "2.6.0", "gcc": "7"}, columns=columns)
    assert bound(exact) == ["app 2.6.0: requires gcc 7 (derived)"]


# devices


def test_a_build_beside_another_runs_where_the_code_of_its_own_archs_runs(tmp_path: Path) -> None:
    result = compile_matrix(matrix(tmp_path))
    every = (
        "addon-variant 1.0+cu12@own/aarch64/new 1.0+cu12@own/x86_64/new"
        " 1.1+cu12@own/aarch64/new 1.1+cu12@own/x86_64/new"
    )
    limits = [binding for binding in result.bindings if binding.component == "device"]
    assert [line for line in bound(result) if "limits device" in line] == [
        f"{every}: limits device absent 8.0 8.6 (stated)"
    ]
    (_, reading), = limits[0].cites  # fmt: skip
    assert (reading.claim.selector, reading.claim.says) == (
        "8.0 8.6",
        "holds code that runs on {value}",
    )


@pytest.mark.parametrize(
    ("code", "devices", "says"),
    [
        ("sm_80", "absent 8.0", "holds code that runs on {value}"),
        ("sm_80 sm_86", "absent 8.0 8.6", "holds code that runs on {value}"),
        ("sm_86", "absent 8.6", "holds code that runs on {value}"),
        ("unknown", "absent", ""),
    ],
)
@pytest.mark.parametrize(
    "several", [lambda *of: of, lambda *of: reversed(of)], ids=["first", "last"]
)
def test_code_for_some_archs_runs_on_the_devices_that_take_one_of_them(
    tmp_path: Path,
    code: str,
    devices: str,
    says: str,
    several: Callable[..., Iterable[dict[str, Any]]],
) -> None:
    front = WITH_VARIANTS.replace("  device: {title", f"  {ADDON}\n  device: {{title")
    addons = (
        "  - {id: addons, component: addon, source: vendor, evidence: stated, where: list,"
        " versions: {'1.0': {}}}\n"
    )
    row = {"addon": "1.0", "line": "cu12", "channel": "own", "machine": "x86_64", "code": code}
    own = table(
        id="b", key="addon", defines="variants", matches=["app"], rows=[row], evidence="artifact",
        columns={"code": {"component": "arch", "as": "limits"}},
    )  # fmt: skip
    apps = table(id="builds", defines="variants", columns=COLUMNS, rows=ROWS, evidence="artifact")
    narrow = {**RUNS, "id": "narrow", "rows": [{"device": "8.6", "arch": "sm_86"}]}
    text = facts(channels=CHANNELS, tables=[*several(RUNS, narrow), apps, own])
    result = compile_matrix(load([write(tmp_path, text, front=front, names=MORE_NAMES + addons)]))
    found = [line for line in bound(result) if "limits device" in line]
    assert [line.partition("limits device ")[2].rpartition(" (")[0] for line in found] == [devices]
    cited = [one for part in result.bindings if part.component == "device" for _, one in part.cites]
    assert [one.claim.says for one in cited] == [says]


def test_builds_that_go_with_no_known_build_are_refused_at_their_row(tmp_path: Path) -> None:
    front = WITH_VARIANTS.replace("  device: {title", f"  {ADDON}\n  device: {{title")
    names = MORE_NAMES + (
        "  - {id: addons, component: addon, source: vendor, evidence: stated, where: list,"
        " versions: {'1.0': {}}}\n"
    )
    row = {"addon": "1.0", "line": "cpu", "channel": "own", "machine": "x86_64", "id": "one"}
    own = table(id="b", key="addon", defines="variants", matches=["app"], rows=[row], columns={})
    apps = table(id="apps-built", defines="variants", columns=COLUMNS, rows=ROWS[:1])
    text = facts(channels=CHANNELS, tables=[RUNS, apps, own])
    assert refused(tmp_path, text, front=front, names=names).partition(": ")[2] == (
        "`one#matches-app` names a version of app-variant that was never released;"
        " expected a known release of app-variant, such as 2.7.0+cu11@default/x86_64;"
        " found `*+cpu@*`;"
        " correct it, add the release with its source, or say `unreleased: true`"
    )


# who decides


def offers(folder: Path, *pairs: tuple[dict[str, Any], dict[str, Any]]) -> Compiled:
    columns = {"gcc": {"as": "offers"}}
    return compiled(
        folder,
        facts(
            tables=[
                table(**{"id": f"t{place}", "columns": columns, "rows": [row], **more})
                for place, (row, more) in enumerate(pairs)
            ]
        ),
    )


def test_offers_are_pooled_for_each_set_of_releases(tmp_path: Path) -> None:
    result = offers(
        tmp_path,
        ({"app": "2.6.0 2.6.1", "gcc": "7"}, {}),
        ({"app": "2.6.1 2.6.5", "gcc": "8"}, {"evidence": "ran"}),
        ({"app": "2.6.5 2.7.0", "gcc": "9", "decides": False, "note": "gone"}, {}),
    )
    assert bound(result) == [
        "app 2.6.0: limits gcc absent 7 (tested)",
        "app 2.6.1: limits gcc absent 7 8 (ran)",
        "app 2.6.5: limits gcc absent 8 (ran)",
    ]
    assert [
        [(releases(result.scales, "app", mask), reading.claim.id) for mask, reading in part.cites]
        for part in result.bindings
    ] == [
        [("2.6.0", "t0/2.6.0 2.6.1#gcc")],
        [("2.6.1", "t1/2.6.1 2.6.5#gcc"), ("2.6.1", "t0/2.6.0 2.6.1#gcc")],
        [("2.6.5", "t1/2.6.1 2.6.5#gcc")],
    ]
    assert [part.alternatives for part in result.bindings] == [(), (), ()]


def test_releases_of_which_the_same_places_speak_are_one_binding(tmp_path: Path) -> None:
    result = offers(
        tmp_path,
        ({"app": "2.6.0 2.6.5 2.7.0", "gcc": "7"}, {}),
        ({"app": "2.6.1", "gcc": "8"}, {}),
    )
    assert bound(result) == [
        "app 2.6.0 2.6.5 2.7.0: limits gcc absent 7 (tested)",
        "app 2.6.1: limits gcc absent 8 (tested)",
    ]


def test_offers_under_a_condition_keep_it(tmp_path: Path) -> None:
    more = {"context": {"machine": "x86_64"}}
    result = offers(
        tmp_path, ({"app": "2.6.0", "gcc": "7"}, more), ({"app": "2.6.0", "gcc": "8"}, more)
    )
    assert bound(result) == ["app 2.6.0, machine x86_64: limits gcc absent 7 8 (tested)"]


def test_an_offer_and_a_limit_are_no_rivals(tmp_path: Path) -> None:
    columns = {
        "gcc": {"as": "offers"},
        "other": {"as": "limits", "component": "gcc", "topic": "gcc"},
    }
    result = one_table(tmp_path, {"app": "2.6.0", "gcc": "7 8", "other": "8 9"}, columns=columns)
    assert disputed(result) == []
    assert sorted(bound(result)) == [
        "app 2.6.0: limits gcc absent 7 8 (tested)",
        "app 2.6.0: limits gcc absent 8 9 (tested)",
    ]


def test_each_dispute_names_the_releases_about_which_it_is(tmp_path: Path) -> None:
    rows = [
        {"app": "2.6.0", "gcc": "7", "id": "a", "evidence": "ran"},
        {"app": "2.6.0 2.6.1", "gcc": "8", "id": "b"},
        {"app": "*", "gcc": "9", "id": "c", "evidence": "reported"},
    ]
    result = one_table(tmp_path, *rows)
    assert disputed(result) == [
        "app 2.6.0: b#gcc against a#gcc",
        "app 2.6.0: c#gcc against a#gcc",
        "app 2.6.1: c#gcc against b#gcc",
    ]
    assert {part.rival.claim.component for part in result.disputes} == {"gcc"}
    assert bound(result) == [
        "app 2.6.0: requires gcc 7 (ran)",
        "app 2.6.1: requires gcc 8 (tested)",
        "app 2.6.5 2.7.0: requires gcc 9 (reported)",
    ]


def test_claims_that_say_the_same_bind_as_one_and_are_cited_for_their_own(tmp_path: Path) -> None:
    rows = [
        {"app": "2.6.0 2.6.1", "gcc": "8", "id": "a"},
        {"app": "2.6.1 2.6.5", "gcc": "8", "id": "b"},
        {"app": "2.7.0", "gcc": "8", "id": "c", "evidence": "ran"},
    ]
    result = one_table(tmp_path, *rows)
    assert bound(result) == [
        "app 2.7.0: requires gcc 8 (ran)",
        "app 2.6.0 2.6.1 2.6.5: requires gcc 8 (tested)",
    ]
    assert [
        (releases(result.scales, "app", mask), reading.claim.id)
        for mask, reading in result.bindings[1].cites
    ] == [("2.6.0 2.6.1", "a#gcc"), ("2.6.5", "b#gcc")]


def test_a_tested_row_is_disputed_by_each_claim_that_excludes_some_of_it(tmp_path: Path) -> None:
    columns = {
        "python": {"as": "tested", "context": {"machine": "x86_64"}},
        "least": {"as": "requires", "component": "python", "context": {"gcc": "8"}},
        "most": {"as": "limits", "component": "python", "context": {"machine": "*"}},
        "arm": {"as": "requires", "component": "python", "context": {"machine": "aarch64"}},
    }
    rows = [
        {"app": "2.6.0 2.6.1", "python": "3.6-3.9", "id": "a"},
        {"app": "2.6.1", "least": ">=3.7", "most": "<=3.9", "arm": "3.9", "id": "b"},
    ]
    result = one_table(tmp_path, *rows, columns=columns)
    assert disputed(result) == ["app 2.6.1: a#python against b#least"]


def test_of_rows_marked_as_rivals_the_best_is_disputed_by_none(tmp_path: Path) -> None:
    columns = {"gcc": {"as": "tested", "rival": True}, "python": {"as": "tested"}}
    rows: list[dict[str, Any]] = [
        {"app": "2.6.0", "gcc": "9", "id": "z", "evidence": "reported", "python": "3.6"},
        {"app": "2.6.0", "gcc": "8", "id": "b", "python": "3.7"},
        {"app": "2.6.0 2.6.1", "gcc": "7", "id": "a", "python": "3.9"},
        {
            "app": "2.6.0",
            "gcc": "9",
            "id": "wrong",
            "decides": False,
            "evidence": "ran",
            "note": "n",
        },
    ]
    result = one_table(tmp_path, *rows, columns=columns)
    assert disputed(result) == [
        "app 2.6.0: b#gcc against a#gcc",
        "app 2.6.0: z#gcc against a#gcc",
        "app 2.6.0: z#gcc against b#gcc",
        "app 2.6.0: wrong#gcc against a#gcc",
        "app 2.6.0: wrong#gcc against b#gcc",
    ]


def test_rows_marked_as_rivals_under_other_conditions_are_none(tmp_path: Path) -> None:
    def row(machine: str, gcc: str) -> dict[str, Any]:
        return {
            "id": machine, "columns": {"gcc": {"as": "tested", "rival": True}},
            "context": {"machine": machine}, "rows": [{"app": "2.6.0", "gcc": gcc}],
        }  # fmt: skip

    tables = [table(**row("x86_64", "7")), table(**row("aarch64", "8"))]
    assert disputed(compiled(tmp_path, facts(tables=tables))) == []


def test_a_rival_of_what_nobody_released_disputes_nothing(tmp_path: Path) -> None:
    columns = {"gcc": {"as": "tested", "rival": True, "unreleased": True}}
    rows = [{"app": "2.6.0", "gcc": "15", "id": "b"}, {"app": "2.6.0", "gcc": "8", "id": "a"}]
    assert disputed(one_table(tmp_path, *rows, columns=columns)) == []


def test_columns_marked_as_rivals_are_rivals_within_each(tmp_path: Path) -> None:
    columns = {name: {"as": "tested", "rival": True} for name in ("gcc", "python")}
    row = {"app": "2.6.0", "gcc": "7", "python": "3.9"}
    rows = [row | {"id": "a"}, row | {"id": "b", "app": "2.6.0 2.6.1"}]
    assert disputed(one_table(tmp_path, *rows, columns=columns)) == []


def test_what_is_offered_stops_no_other_decision(tmp_path: Path) -> None:
    columns = {
        "cuda": {"as": "requires"},
        "gcc": {"as": "offers"},
        "python": {"as": "requires"},
    }
    rows = [
        {"app": "2.6.0", "cuda": "11.1", "gcc": "7", "python": "3.6", "id": "a"},
        {"app": "2.6.0", "cuda": "12.0.0", "gcc": "8", "python": "3.9", "id": "b"},
    ]
    result = one_table(tmp_path, *rows, columns=columns)
    assert bound(result) == [
        "app 2.6.0: requires cuda 11.1 (tested)",
        "app 2.6.0: limits gcc absent 7 8 (tested)",
        "app 2.6.0: requires python 3.6 (tested)",
    ]
    assert disputed(result) == [
        "app 2.6.0: b#cuda against a#cuda",
        "app 2.6.0: b#python against a#python",
    ]


def test_names_stand_in_the_order_of_their_ranks(tmp_path: Path) -> None:
    names = NAMES.replace(
        "{x86_64: {rank: 2}, aarch64: {rank: 1}}", "{x86_64: {rank: 1}, aarch64: {rank: 2}}"
    )
    scales = compile_matrix(load([write(tmp_path, names=names)])).scales
    assert scales["machine"].versions == ("x86_64", "aarch64")
