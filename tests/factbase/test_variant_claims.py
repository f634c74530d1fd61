"""What a table of published builds says, whole: each variant, each claim and each row that is read out of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.factbase.small import facts, refused, table, write
from tests.factbase.test_variants import (
    CHANNELS,
    COLUMNS,
    MORE_NAMES,
    ROWS,
    RUNS,
    SHAPE,
    WITH_VARIANTS,
    builds,
)
from toolmatrix.factbase.load import load
from toolmatrix.factbase.model import Channel, Claim, Component, Matrix, TableRow

ADDON = (
    "addon: {title: Addon, scheme: pep440, framework: true, accelerators: [cuda], variants: true}"
)
RULE = "no-other-build: {evidence: derived, reason: what no known channel publishes does not exist}"
FRONT = WITH_VARIANTS.replace("  device: {title", f"  {ADDON}\n  device: {{title")
NAMES = (
    MORE_NAMES
    + """\
  - id: addons
    component: addon
    source: vendor
    evidence: stated
    versions: {"1.0": {}, "1.1": {}, "1.2": {}}
    where: list
"""
)
ADDONS = table(
    id="addon-builds",
    defines="variants",
    key="addon",
    columns={"size": {"as": "attribute"}, "code": {"component": "arch", "as": "limits"}},
    evidence="artifact",
    matches=["app"],
    rows=[
        {
            "addon": "1.0 1.1",
            "line": "cu12",
            "channel": "own",
            "machine": "x86_64 aarch64",
            "abi": "new",
            "code": {"is": "sm_80 sm_86", "evidence": "stated"},
            "size": "9 GB",
            "where": "row 1",
            "note": "seen",
        },
        {
            "addon": "1.0",
            "line": "cpu",
            "channel": "own",
            "machine": "x86_64",
            "install": "addon=={release} --no-deps",
            "id": "bare",
            "decides": False,
            "note": "withdrawn",
        },
    ],
)


def matrix(folder: Path, *, front: str = FRONT) -> Matrix:
    """Builds of app, and of an addon that goes with them."""
    own = table(id="builds", defines="variants", columns=COLUMNS, rows=ROWS, evidence="artifact")
    text = facts(channels=CHANNELS, tables=[RUNS, own, ADDONS])
    return load([write(folder, text, front=front, names=NAMES)])


def variants(read: Matrix, start: str) -> Iterator[tuple[Any, ...]]:
    """The releases of a variant component: by name, the row, its evidence and place, the rank."""
    for (component, name), one in sorted(read.releases.items()):
        if component == f"{start}-variant":
            yield name, one.id, one.evidence, one.where, one.rank, dict(one.attributes)


def said(claim: Claim) -> str:
    """A claim in one line."""
    when = ", ".join(f"{name} {selector}" for name, selector in claim.when)
    marks = [claim.topic, claim.evidence, claim.where, claim.note, claim.says, claim.rule]
    flags = [name for name in ("decides", "by_device", "rival", "carried") if getattr(claim, name)]
    kind = f"{claim.kind} {claim.component} {claim.selector}"
    return f"{when}: {kind} ({'; '.join(filter(None, [*marks, *flags]))})"


def claims(read: Matrix, row: str) -> dict[str, str]:
    """The claims of a row by what is behind its id."""
    return {
        name.removeprefix(f"{row}#"): said(claim)
        for name, claim in sorted(read.claims.items())
        if claim.row == row and claim.source == "vendor"
    }


ADDED = "addon-builds/1.0 1.1+cu12@own/x86_64 aarch64/new"
X1, A1 = "1.0+cu12@own/x86_64/new", "1.0+cu12@own/aarch64/new"
X2, A2 = "1.1+cu12@own/x86_64/new", "1.1+cu12@own/aarch64/new"


def test_each_variant_says_what_it_is(tmp_path: Path) -> None:
    read = matrix(tmp_path)
    built = {"line": "cu12", "channel": "own", "accelerator": "cuda", "abi": "new"}
    more = {"size": "9 GB", "archs": "sm_80 sm_86"}
    bare = {
        "release": "1.0",
        "line": "cpu",
        "channel": "own",
        "machine": "x86_64",
        "accelerator": "none",
    }
    assert list(variants(read, "addon")) == [
        ("1.0+cpu@own/x86_64", "bare", "artifact", "table 1", 0,
         {**bare, "archs": "", "install": "addon==1.0 --no-deps"}),
        *(
            (name, ADDED, "artifact", "row 1", 1,
             {**built, **more, "release": name[:3], "machine": machine, "install": f"addon=={name[:3]}"})
            for name, machine in ((A1, "aarch64"), (X1, "x86_64"), (A2, "aarch64"), (X2, "x86_64"))
        ),
    ]  # fmt: skip
    assert [(name, rank) for name, _, _, _, rank, _ in variants(read, "app")] == [
        ("2.6.0+cpu@own/aarch64", 0),
        ("2.6.0+cpu@own/x86_64", 0),
        ("2.6.0+cu11@default/x86_64", 1000),
        ("2.6.0+cu12@own/x86_64", 1),
        ("2.6.1+cu12@own/x86_64", 1),
        ("2.7.0+cu11@default/x86_64", 1000),
    ]
    assert read.releases["addon-variant", X1].source == "vendor"
    assert read.releases["app-variant", "2.6.1+cu12@own/x86_64"].attributes["archs"] == "unknown"


def test_a_row_says_what_holds_for_its_variants(tmp_path: Path) -> None:
    every = f"addon-variant {X1} {A1} {X2} {A2}"
    assert claims(matrix(tmp_path), ADDED) == {
        "accelerator": f"{every}: limits accelerator cuda none"
        " (variant-accelerator; artifact; row 1; seen; computes on {value}; decides)",
        "code": f"{every}: limits arch sm_80 sm_86 (code; stated; row 1; seen; decides; by_device)",
        "machine.1": f"addon-variant {X1} {X2}: limits machine x86_64"
        " (variant-machine; artifact; row 1; seen; is built for {value}; decides)",
        "machine.2": f"addon-variant {A1} {A2}: limits machine aarch64"
        " (variant-machine; artifact; row 1; seen; is built for {value}; decides)",
        "matches-app": f"{every}: limits app-variant *+cu12@*"
        " (variant-app-variant; artifact; row 1; seen; decides)",
        "release.1": f"addon-variant {X1} {A1}: requires addon ===1.0"
        " (variant-addon; artifact; row 1; seen; decides)",
        "release.2": f"addon-variant {X2} {A2}: requires addon ===1.1"
        " (variant-addon; artifact; row 1; seen; decides)",
    }


def test_a_row_of_one_release_on_one_machine_numbers_nothing_and_may_not_decide(
    tmp_path: Path,
) -> None:
    one = "addon-variant 1.0+cpu@own/x86_64"
    assert claims(matrix(tmp_path), "bare") == {
        "accelerator": f"{one}: limits accelerator none"
        " (variant-accelerator; artifact; table 1; withdrawn; computes on {value})",
        "machine": f"{one}: limits machine x86_64"
        " (variant-machine; artifact; table 1; withdrawn; is built for {value})",
        "matches-app": f"{one}: limits app-variant *+cpu@* (variant-app-variant; artifact; table 1; withdrawn)",
        "release": f"{one}: requires addon ===1.0 (variant-addon; artifact; table 1; withdrawn)",
    }


def test_a_build_beside_no_other_runs_by_the_archs_of_all(tmp_path: Path) -> None:
    built = claims(matrix(tmp_path), "builds/2.6.0+cu12@own/x86_64")
    assert built["archs"] == (
        "app-variant 2.6.0+cu12@own/x86_64: limits arch sm_80 sm_86"
        " (archs; artifact; table 1; holds {value}; decides)"
    )
    assert "matches-app" not in built


PUBLISHED = "is published for {value}"


@pytest.mark.parametrize("rule", ["", "no-other-build"])
def test_the_rows_together_say_what_was_published(tmp_path: Path, rule: str) -> None:
    front = FRONT.replace("rules:\n", f"rules:\n  {RULE}\n") if rule else FRONT
    read = matrix(tmp_path, front=front)
    end = f"{PUBLISHED}; {rule}; decides)" if rule else f"{PUBLISHED}; decides)"
    both = "addon ===1.0 ===1.1, from wheel"
    assert claims(read, "addon-variants") == {
        "accelerator.1": f"{both}, machine aarch64: limits accelerator cuda none"
        f" (published-accelerator; derived; row 1; {end}",
        "accelerator.2": f"{both}, machine x86_64: limits accelerator cuda none"
        f" (published-accelerator; derived; row 1; {end}",
        "machine.3": f"{both}: limits machine aarch64 x86_64 (published-machine; derived; row 1; {end}",
        "needs": f"{both}: needs addon-variant * (variant; derived; row 1; decides)",
        "unread": "addon ===1.2, from wheel: limits accelerator none (variant; unknown; row 1; decides)",
    }
    assert read.claims["addon-variants#needs"].alternatives == ("addon-variant",)
    assert claims(read, "app-variants") == {
        "accelerator.1": "app ===2.6.0 ===2.6.1 ===2.7.0, from wheel, machine x86_64:"
        f" limits accelerator cuda none (published-accelerator; derived; table 1; {end}",
        "accelerator.2": "app ===2.6.0, from wheel, machine aarch64:"
        f" limits accelerator none (published-accelerator; derived; table 1; {end}",
        "machine.3": "app ===2.6.0, from wheel: limits machine aarch64 x86_64"
        f" (published-machine; derived; table 1; {end}",
        "machine.4": "app ===2.6.1 ===2.7.0, from wheel: limits machine x86_64"
        f" (published-machine; derived; table 1; {end}",
        "needs": "app ===2.6.0 ===2.6.1 ===2.7.0, from wheel: needs app-variant *"
        " (variant; derived; table 1; decides)",
        "unread": "app ===2.6.5, from wheel: limits accelerator none (variant; unknown; table 1; decides)",
    }


def test_the_rows_are_kept_as_printed(tmp_path: Path) -> None:
    read = matrix(tmp_path)
    assert read.rows[ADDED] == TableRow(
        id=ADDED,
        table="addon-builds",
        about="addon-builds",
        subject="addon 1.0 1.1+cu12@own/x86_64 aarch64/new",
        cells=(
            ("addon", "1.0 1.1"),
            ("machine", "x86_64 aarch64"),
            ("code", "is: sm_80 sm_86, evidence: stated"),
            ("abi", "new"),
            ("channel", "own"),
            ("line", "cu12"),
            ("size", "9 GB"),
        ),
        source="vendor",
        evidence="artifact",
        where="row 1",
        note="seen",
    )
    assert read.rows["addon-variants"] == TableRow(
        id="addon-variants",
        table="addon-variants",
        about="addon: what is installed is one of the builds that were published",
        subject="addon",
        cells=(),
        source="vendor",
        evidence="derived",
        where="row 1",
        note="",
    )


def test_only_a_build_for_cuda_runs_without_an_accelerator_too(tmp_path: Path) -> None:
    names = MORE_NAMES.replace("{none: {rank: 2}, cuda", "{none: {rank: 3}, rocm: {rank: 2}, cuda")
    channel = CHANNELS[1] | {"lines": {"rocm": ["rocm6"]}}
    row = {
        "app": "2.6.0",
        "line": "rocm6",
        "channel": "own",
        "machine": "x86_64",
        "archs": "unknown",
    }
    own = table(id="built", defines="variants", columns=COLUMNS, rows=[row], evidence="artifact")
    text = facts(channels=[channel], tables=[own])
    read = load([write(tmp_path, text, front=WITH_VARIANTS, names=names)])
    selectors = {
        claim.selector for claim in read.claims.values()
        if claim.component == "accelerator" and claim.evidence != "unknown"
    }  # fmt: skip
    assert selectors == {"rocm"}


def test_a_channel_and_the_component_of_the_variants(tmp_path: Path) -> None:
    read = matrix(tmp_path)
    common: Any = {"kind": "index", "source": "vendor", "evidence": "stated", "where": "list"}
    lines = {"cpu": "none", "cu11": "cuda", "cu12": "cuda"}
    install = ("--index-url", "https://wheels.example/{line}")
    assert read.channels == {
        "default": Channel(
            name="default", title="the default index", default=True, lines=lines, **common
        ),
        "own": Channel(name="own", title="its own index", install=install, lines=lines, **common),
    }
    assert read.components["app-variant"] == Component(
        name="app-variant", title="App variant", scheme="names", variant_of="app", under="app"
    )


def test_a_framework_without_builds_in_the_matrix_says_nothing_of_them(tmp_path: Path) -> None:
    text = facts(channels=CHANNELS, tables=[RUNS, ADDONS])
    read = load([write(tmp_path, text, front=FRONT, names=NAMES)])
    assert "app-variants" not in read.rows
    assert "addon-variants" in read.rows


def test_of_several_rows_the_first_by_its_id_is_cited(tmp_path: Path) -> None:
    rows = [ROWS[1] | {"id": "b", "where": "row b"}, ROWS[0] | {"id": "a", "where": "row a"}]
    read = load([write(tmp_path, builds(*rows), front=WITH_VARIANTS, names=MORE_NAMES)])
    assert read.rows["app-variants"].where == "row a"
    assert read.claims["app-variants#needs"].where == "row a"
    assert read.claims["app-variants#unread"].where == "row a"


def test_a_release_whose_every_build_is_known_is_not_unread(tmp_path: Path) -> None:
    row = ROWS[0] | {"app": "*"}
    read = load([write(tmp_path, builds(row), front=WITH_VARIANTS, names=MORE_NAMES)])
    assert sorted(claims(read, "app-variants")) == ["accelerator.1", "machine.2", "needs"]


KEYS = "id, title, kind, source, evidence, where, default, install, lines, unread"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"title": None},
            f"facts.yaml:3:3: a channel has no `title`; expected `title:`; found no such key; {SHAPE}",
        ),
        (
            {"colour": "red"},
            f"facts.yaml:18:3: a channel has an unknown key; expected {KEYS}; found `colour`; {SHAPE}",
        ),
        (
            {"kind": "shop"},
            (
                "facts.yaml:5:9: kind is not a known word; expected index | feed | releases | images;"
                f" found `shop`; {SHAPE}"
            ),
        ),
    ],
)
def test_channels_that_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    own = {key: value for key, value in (CHANNELS[1] | change).items() if value is not None}
    text = facts(channels=[own], tables=[])
    assert refused(tmp_path, text, front=WITH_VARIANTS, names=MORE_NAMES) == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"channel": "owm"},
            f"facts.yaml:64:14: no such channel; expected `own`?; found `owm`; {SHAPE}",
        ),
        (
            {"machine": ["x86_64"]},
            f"facts.yaml:66:5: machine must be text; expected text; found a list; {SHAPE}",
        ),
        (
            {"channel": ["own"]},
            f"facts.yaml:65:5: channel must be text; expected text; found a list; {SHAPE}",
        ),
        (
            {"line": ["cu12"]},
            f"facts.yaml:64:5: line must be text; expected text; found a list; {SHAPE}",
        ),
        (
            {"line": "rocm"},
            (
                "facts.yaml:63:11: the channel `own` has no such line; expected one of cpu, cu11, cu12;"
                " found `rocm`; correct it, or add the line to the channel with its source"
            ),
        ),
        (
            {"colour": "red"},
            (
                "facts.yaml:68:5: a row of `builds` has an unknown key; expected app, cuda, archs, id,"
                " source, where, evidence, note, decides, line, channel, machine, abi,"
                f" install; found `colour`; {SHAPE}"
            ),
        ),
    ],
)
def test_rows_that_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    text = builds(ROWS[1] | change)
    assert refused(tmp_path, text, front=WITH_VARIANTS, names=MORE_NAMES) == message
