"""Published builds: how tables of them are read, what follows from their rows, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.factbase.small import FRONT, NAMES, bound, facts, refused, table, write
from toolmatrix.factbase import writer
from toolmatrix.factbase.compile import compile_matrix
from toolmatrix.factbase.compiled import Compiled
from toolmatrix.factbase.index import Index, in_memory
from toolmatrix.factbase.load import load
from toolmatrix.solve.request import Ask, Request
from toolmatrix.solve.resolve import Resolution, Unsatisfiable, resolve

WITH_VARIANTS = FRONT.replace(
    "app: {title: App, scheme: pep440, framework: true, accelerators: [cuda]}",
    "from: {title: from, scheme: names, given: true}\n"
    "  app: {title: App, scheme: pep440, framework: true, accelerators: [cuda], variants: true}\n"
    "  device: {title: device, scheme: names}",
)
MORE_NAMES = (
    NAMES
    + """\
  - id: ways
    component: from
    source: vendor
    evidence: stated
    versions: {source: {rank: 2}, wheel: {rank: 1}}
    where: list
  - id: devices
    component: device
    source: vendor
    evidence: stated
    versions: {"8.0": {rank: 80}, "8.6": {rank: 86}, "9.0": {rank: 90}}
    where: list
"""
)
CHANNELS: list[dict[str, Any]] = [
    {
        "id": "default",
        "title": "the default index",
        "kind": "index",
        "source": "vendor",
        "evidence": "stated",
        "where": "list",
        "default": True,
        "lines": {"none": ["cpu"], "cuda": ["cu11", "cu12"]},
    },
    {
        "id": "own",
        "title": "its own index",
        "kind": "index",
        "source": "vendor",
        "evidence": "stated",
        "where": "list",
        "install": ["--index-url", "https://wheels.example/{line}"],
        "lines": {"none": ["cpu"], "cuda": ["cu11", "cu12"]},
    },
]
COLUMNS = {
    "cuda": {"as": "requires", "context": {"accelerator": "cuda"}},
    "archs": {"component": "arch", "as": "limits", "says": "holds {value}"},
}
RUNS = {
    "id": "runs",
    "source": "vendor",
    "evidence": "stated",
    "where": "table",
    "key": "device",
    "columns": {"arch": {"as": "limits"}},
    "rows": [
        {"device": "8.0", "arch": "sm_80"},
        {"device": "8.6", "arch": "sm_80 sm_86"},
        {"device": "9.0", "arch": "absent"},
    ],
}
ROWS: list[dict[str, Any]] = [
    {"app": "2.6.0 2.7.0", "line": "cu11", "channel": "default", "machine": "x86_64", "cuda": "11.2", "archs": "sm_80"},
    {"app": "2.6.0", "line": "cu12", "channel": "own", "machine": "x86_64", "cuda": "12.0.0", "archs": "sm_80 sm_86"},
    {"app": "2.6.0", "line": "cpu", "channel": "own", "machine": "x86_64 aarch64"},
    {"app": "2.6.1", "line": "cu12", "channel": "own", "machine": "x86_64", "cuda": "12.0.0", "archs": "unknown"},
]  # fmt: skip


def builds(*rows: dict[str, Any], **more: Any) -> str:
    """A fact file with channels, what devices run, and a table of builds of app."""
    made = table(
        id="builds", defines="variants", columns=COLUMNS, rows=list(rows), evidence="artifact"
    )
    return facts(channels=CHANNELS, tables=[RUNS, {**made, **more}])


def small(folder: Path, text: str) -> Compiled:
    return compile_matrix(load([write(folder, text, front=WITH_VARIANTS, names=MORE_NAMES)]))


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index("", in_memory(writer.write(small(tmp_path, builds(*ROWS)), {})))


def ask(component: str, selector: str) -> Ask:
    return Ask(component=component, selector=selector, text=f"{component}=={selector}")


def answer(
    index: Index,
    *asks: Ask,
    device: str = "",
    accelerator: str = "cuda",
    machine: str = "x86_64",
    min_evidence: str = "",
) -> Resolution | Unsatisfiable:
    """What an installed app is answered with."""
    given = {"machine": machine, "accelerator": accelerator, "from": "wheel"}
    lines = [
        Ask(component=name, selector=word, text="", option=name) for name, word in given.items()
    ]
    return resolve(
        index,
        Request(
            asks=(*asks, *lines),
            targets=("x86",),
            devices=(device,) if device else (),
            min_evidence=min_evidence,
        ),
    )


def chosen(found: Resolution | Unsatisfiable) -> dict[str, str]:
    assert isinstance(found, Resolution)
    assert not found.unread
    return found.chosen("x86")


def test_each_release_on_each_machine_is_one_variant(tmp_path: Path) -> None:
    result = small(tmp_path, builds(*ROWS))
    assert set(result.scales["app-variant"].versions) == {
        "2.6.0+cu11@default/x86_64",
        "2.7.0+cu11@default/x86_64",
        "2.6.0+cu12@own/x86_64",
        "2.6.0+cpu@own/x86_64",
        "2.6.0+cpu@own/aarch64",
        "2.6.1+cu12@own/x86_64",
    }
    assert "app-variant 2.6.0+cpu@own/aarch64: limits machine absent aarch64 (artifact)" in bound(
        result
    )
    assert result.matrix.components["app-variant"].variant_of == "app"


def test_what_the_rows_say_together(tmp_path: Path) -> None:
    told = bound(small(tmp_path, builds(*ROWS)))
    assert "app 2.6.0 2.6.1 2.7.0, from wheel: needs app-variant 2.6.1" not in " ".join(told)
    assert any(
        line.startswith("app 2.6.0 2.6.1 2.7.0, from wheel: needs app-variant") for line in told
    )
    assert "app 2.6.5, from wheel: limits accelerator absent none (unknown)" in told
    assert "app 2.6.1 2.7.0, from wheel: limits machine absent x86_64 (derived)" in told
    assert (
        "app 2.6.0, from wheel, machine aarch64: limits accelerator absent none (derived)" in told
    )


def test_the_default_channel_comes_before_a_newer_line(index: Index) -> None:
    assert chosen(answer(index, ask("app", "2.6.0")))["app-variant"] == "2.6.0+cu11@default/x86_64"


def test_machine_code_for_the_device_decides_between_builds(tmp_path: Path) -> None:
    rows = [dict(row, archs="compute_80") if row["line"] == "cu11" else row for row in ROWS]
    names = MORE_NAMES.replace("sm_80: {rank: 80}", "sm_80: {rank: 80}, compute_80: {rank: 8}")
    text = builds(*rows).replace("arch: sm_80\n", "arch: sm_80 compute_80\n")
    path = write(tmp_path, text, front=WITH_VARIANTS, names=names)
    index = Index("", in_memory(writer.write(compile_matrix(load([path])), {})))
    held = chosen(answer(index, ask("app", "2.6.0"), device="8.0"))
    assert (held["app-variant"], held["arch"]) == ("2.6.0+cu12@own/x86_64", "sm_80")
    held = chosen(answer(index, ask("app", "2.7.0"), device="8.0"))
    assert (held["app-variant"], held["arch"]) == ("2.7.0+cu11@default/x86_64", "compute_80")


def test_what_is_held_chooses_the_line(index: Index) -> None:
    held = chosen(answer(index, ask("app", "*"), ask("cuda", "12.0.0")))
    assert (held["app"], held["app-variant"]) == ("2.6.1", "2.6.1+cu12@own/x86_64")


def test_without_an_accelerator_a_build_without_one_is_taken(index: Index) -> None:
    held = chosen(answer(index, ask("app", "2.6.0"), accelerator="none"))
    assert held["app-variant"] == "2.6.0+cpu@own/x86_64"
    assert "cuda" not in held
    # Where there is none, that of CUDA runs as well.
    held = chosen(answer(index, ask("app", "2.7.0"), accelerator="none"))
    assert held["app-variant"] == "2.7.0+cu11@default/x86_64"


def test_a_newer_build_that_nobody_looked_into_is_the_answer_and_no_yes(index: Index) -> None:
    found = answer(index, ask("app", "<2.7"), device="8.0")
    assert isinstance(found, Resolution)
    assert found.chosen("x86")["app"] == "2.6.1"
    assert [part.component for part in found.unread] == ["arch"]
    # Who asks for some evidence gets what is known, however old it is.
    known = answer(index, ask("app", "<2.7"), device="8.0", min_evidence="derived")
    assert chosen(known)["app"] == "2.6.0"


def test_what_nobody_looked_into_is_neither_yes_nor_no(index: Index) -> None:
    found = answer(index, ask("app", "2.6.1"), device="8.0")
    assert isinstance(found, Resolution)
    assert found.unread
    assert found.evidence == "unknown"
    assert isinstance(
        answer(index, ask("app", "2.6.1"), device="8.0", machine="aarch64"), Unsatisfiable
    )


def test_a_device_that_no_build_runs_on_is_refused(index: Index) -> None:
    assert isinstance(answer(index, ask("app", "2.7.0"), device="9.0"), Unsatisfiable)


def test_a_release_without_a_row_is_unknown(index: Index) -> None:
    found = answer(index, ask("app", "2.6.5"))
    assert isinstance(found, Resolution)
    assert found.unread


def changed(place: int, **given: Any) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in (row | given).items() if value is not None}
        if number == place
        else row
        for number, row in enumerate(ROWS)
    ]


SHAPE = "`toolmatrix rule TM903` shows the layout of matrix files and the paths of their schemas"


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        (
            changed(0, archs=None),
            {},
            ("facts.yaml:62:5: a row of `builds` does not name the codegen archs of its build; "
            "expected a cell of a column about `arch`: their names, or `unknown`; "
            f"found none, for the line cu11; {SHAPE}"),
        ),
        (
            changed(0, line="cu13"),
            {},
            ("facts.yaml:63:11: the channel `default` has no such line; expected `cu12`?; "
            "found `cu13`; correct it, or add the line to the channel with its source"),
        ),
        (
            changed(0, channel="ours"),
            {},
            f"facts.yaml:64:14: no such channel; expected a channel under `channels:`; found `ours`; {SHAPE}",
        ),
        (
            changed(0, app="3.0"),
            {},
            ("facts.yaml:62:10: a row of `builds` names a version of app that was never released; "
            f"expected known releases of app; found `3.0`; {SHAPE}"),
        ),
        (
            [*ROWS, ROWS[1] | {"id": "again"}],
            {},
            ("facts.yaml:84:5: a variant is listed twice; "
            "expected each release, line, channel and machine once; "
            "found `2.6.0+cu12@own/x86_64`; join the two rows, or distinguish the builds by `abi:`"),
        ),
        (
            changed(0, machine=None),
            {},
            f"facts.yaml:62:5: a row of `builds` has no `machine`; expected `machine:`; found no such key; {SHAPE}",
        ),
        (
            ROWS,
            {"key": "gcc"},
            ("facts.yaml:50:8: `gcc` has no variants; expected `variants: true` in the definition of `gcc`; "
            "found `gcc`; a table of variants is about a component that is published in several builds"),
        ),
        (
            ROWS,
            {"requirements-read": {"others": []}},
            ("facts.yaml:86:5: a table of variants cannot have `requirements-read`; "
            "expected the key in the table of their releases; found a mapping; "
            "a release has one answer, and builds of it may require different packages"),
        ),
    ],
)  # fmt: skip
def test_rows_that_are_refused(
    tmp_path: Path, rows: list[dict[str, Any]], more: dict[str, Any], message: str
) -> None:
    assert (
        refused(tmp_path, builds(*rows, **more), front=WITH_VARIANTS, names=MORE_NAMES) == message
    )


PARTLY = {**ROWS[0], "app": "2.6.0", "archs": {"is": "sm_80", "at-least": True}}


def test_what_was_read_in_part_says_yes_where_it_can_and_never_no(tmp_path: Path) -> None:
    index = Index("", in_memory(writer.write(small(tmp_path, builds(PARTLY)), {})))
    assert chosen(answer(index, ask("app", "2.6.0"), device="8.0"))["app-variant"] == (
        "2.6.0+cu11@default/x86_64"
    )
    # 8.0 code runs on 8.6; no code that was seen runs on 9.0, and the rest was not read.
    assert chosen(answer(index, ask("app", "2.6.0"), device="8.6"))["arch"] == "sm_80"


def test_of_a_device_beyond_what_was_read_nobody_knows(tmp_path: Path) -> None:
    runs = {
        **RUNS,
        "rows": [{"device": "8.0", "arch": "sm_80"}, {"device": "9.0", "arch": "sm_86"}],
    }
    made = table(
        id="builds", defines="variants", columns=COLUMNS, rows=[PARTLY], evidence="artifact"
    )
    text = facts(channels=CHANNELS, tables=[runs, made])
    index = Index("", in_memory(writer.write(small(tmp_path, text), {})))
    found = answer(index, ask("app", "2.6.0"), device="9.0")
    assert isinstance(found, Resolution)
    assert [ground.component for ground in found.unread] == ["arch"]
    assert found.evidence == "unknown"


def test_a_list_read_whole_says_no_where_one_read_in_part_does_not(tmp_path: Path) -> None:
    index = Index("", in_memory(writer.write(small(tmp_path, builds(ROWS[0])), {})))
    assert isinstance(answer(index, ask("app", "2.6.0"), device="9.0"), Unsatisfiable)


def test_only_what_limits_is_read_in_part(tmp_path: Path) -> None:
    row = {**ROWS[0], "cuda": {"is": "11.2", "at-least": True}}
    message = refused(tmp_path, builds(row), front=WITH_VARIANTS, names=MORE_NAMES)
    assert "only a limit can be known in part" in message
    assert "found `as: requires`" in message


def test_places_of_a_requirement_are_filled_by_build(tmp_path: Path) -> None:
    install = "app@https://wheels.example/app-{release}+{line}-{python}-{machine}.whl"
    result = small(tmp_path, builds(ROWS[0], install=install))
    told = result.matrix.releases["app-variant", "2.6.0+cu11@default/x86_64"].attributes
    assert told["install"] == "app@https://wheels.example/app-2.6.0+cu11-{python}-x86_64.whl"


def test_an_extension_limits_the_devices_and_not_the_code_of_others(tmp_path: Path) -> None:
    result = small(tmp_path, builds(ROWS[0], extends=True))
    limited = {claim.component for claim in result.matrix.claims.values() if claim.by_device}
    assert limited == {"arch"}
    devices = [one for one in result.bindings if one.component == "device"]
    assert [result.scales["device"].named(one.allowed & ~1) for one in devices] == [["8.0", "8.6"]]


CONTENTS = {
    "id": "contents",
    "source": "later",
    "where": "members of wheels",
    "evidence": "artifact",
    "key": "app-variant",
    "columns": {"archs": {"component": "arch", "as": "limits", "unreleased": True}},
}


def read_later(*rows: dict[str, Any], **more: Any) -> str:
    """Builds of which nobody knew what they hold, and what was read out of them."""
    row = {**ROWS[0], "archs": "unknown"}
    made = table(id="builds", defines="variants", columns=COLUMNS, rows=[row], evidence="artifact")
    return facts(channels=CHANNELS, tables=[RUNS, made, {**CONTENTS, "rows": list(rows), **more}])


def test_what_was_read_out_of_a_build_takes_the_place_of_what_nobody_knew(tmp_path: Path) -> None:
    row = {"app-variant": "2.6.0+*@default/x86_64", "archs": "sm_80"}
    result = small(tmp_path, read_later(row))
    index = Index("", in_memory(writer.write(result, {})))
    found = answer(index, ask("app", "2.6.0"), device="8.6")
    assert chosen(found)["arch"] == "sm_80"
    assert isinstance(found, Resolution)
    assert not any(choice.disputed for choice in found.targets["x86"])
    assert isinstance(answer(index, ask("app", "2.6.0"), device="9.0"), Unsatisfiable)
    # Of the other release nobody read anything yet.
    left = answer(index, ask("app", "2.7.0"), device="8.0")
    assert isinstance(left, Resolution)
    assert left.unread
    told = result.matrix.releases["app-variant", "2.6.0+cu11@default/x86_64"].attributes
    assert (told["archs"], "at-least" in told) == ("sm_80", False)


def test_a_build_that_was_read_in_part_is_shown_as_that(tmp_path: Path) -> None:
    row = {"app-variant": "2.6.0+*@default/x86_64", "archs": {"is": "sm_80", "at-least": True}}
    result = small(tmp_path, read_later(row))
    told = result.matrix.releases["app-variant", "2.6.0+cu11@default/x86_64"].attributes
    assert (told["archs"], told["at-least"]) == ("sm_80", "true")


def test_contents_of_an_extension_limit_devices(tmp_path: Path) -> None:
    row = {"app-variant": "2.6.0+*@default/x86_64", "archs": "sm_80"}
    result = small(tmp_path, read_later(row, extends=True))
    limited = [one.cites[0][1].claim.id for one in result.bindings if one.component == "device"]
    assert limited == ["contents/2.6.0+*@default/x86_64#archs"]
