"""`toolmatrix plan`: archs that cover devices and no more of them, which toolkits know them, and which builds run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolmatrix
from tests.cli.conftest import Cli
from tests.cli.test_documents import validated
from tests.cli.transcript import check, check_without
from toolmatrix.errors import UsageError

LINE = "plan --device 7.0,8.6"


@pytest.mark.parametrize(
    ("name", "line", "code"),
    [
        ("two", LINE, 0),
        ("held", f"{LINE} --with cuda==11.0.3", 0),
        ("none", f"{LINE} cuda==10.2", 1),
        ("framework", f"{LINE} app==2.1.0", 0),
        ("no-device", "plan", 2),
        ("archs", f"{LINE} --arch sm_80", 2),
    ],
)
def test_golden(small: Cli, name: str, line: str, code: int) -> None:
    assert check(small, name, line).code == code


def test_colour_and_talk_are_all_that_is_left_out(small: Cli) -> None:
    check_without(small, LINE)


@pytest.mark.parametrize("line", [LINE, f"{LINE} cuda==10.2", f"{LINE} app --with cuda==11.2.2"])
def test_the_document_keeps_to_its_schema(small: Cli, line: str) -> None:
    validated(small(*shlex.split(line), "--json").json(), "arch-plan")


@cache
def runs(device: str) -> frozenset[str]:
    """The archs that a device runs, as the page of its fact has them."""
    rows = toolmatrix.facts("device-runs" if device[0].isdigit() else "gfx-device-runs").to_json()
    (row,) = (row for row in rows["facts"] if row["row"]["device"] == device)
    return frozenset(row["row"]["arch"].split())


@cache
def known() -> tuple[str, ...]:
    """Every device of the matrix."""
    return tuple(toolmatrix.open_matrix().index.component("device").versions)


def test_a_plan_is_for_all_devices_of_its_toolkit_and_target() -> None:
    held = toolmatrix.plan(device=known()).to_json()
    of = {one["device"]: (one["toolkit"], one["target"]) for one in held["devices"]}
    assert {target for _, target in of.values()} == {"x86", "arm", "amd"}
    for plan in held["plans"]:
        place = plan["toolkit"], plan["target"]
        assert set(plan["devices"]) == {name for name in of if of[name] == place}


def kinds(*devices: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plans for devices, each by its kind."""
    for plan in toolmatrix.plan(device=devices).to_json()["plans"]:
        yield from ((kind, plan) for kind in plan["kinds"])


def plans(*devices: str, **options: Any) -> dict[str, dict[str, Any]]:
    """The plans for devices by their kind; of several toolkits, the archs of all of them together."""
    found: dict[str, dict[str, Any]] = {}
    for plan in toolmatrix.plan(device=devices, **options).to_json()["plans"]:
        for kind in plan["kinds"]:
            held = found.setdefault(kind, {"archs": [], "devices": {}})
            held["archs"] = [*held["archs"], *plan["archs"]]
            held["devices"] = held["devices"] | plan["devices"]
            held["releases"] = [name for one in plan["releases"] for name in one["releases"]]
    return found


@pytest.mark.long
@settings(max_examples=25)
@given(st.data())
def test_a_plan_covers_every_device_and_can_spare_no_arch(data: st.DataObject) -> None:
    devices = data.draw(st.lists(st.sampled_from(known()), min_size=1, max_size=6, unique=True))
    for kind, plan in kinds(*devices):
        # Of some devices no toolkit is known to make all of the code.
        archs, held = set(plan["archs"]), list(plan["devices"])
        for device, one in plan["devices"].items():
            assert one["arch"] in archs & runs(device)
            assert (one["how"] == "ptx") == one["arch"].startswith("compute_")
        if kind == "exact":
            assert {one["how"] for one in plan["devices"].values()} == {"exact"}
            continue
        for arch in archs:
            left = archs - {arch}
            without = [device for device in held if not left & runs(device)]
            slower = [
                device
                for device in held
                if not any(not name.startswith("compute_") for name in left & runs(device))
                and plan["devices"][device]["how"] != "ptx"
            ]
            # Without it a device runs nothing, or in the plan for machine code nothing but PTX.
            assert without or (kind == "machine code" and slower), (kind, archs, arch)


@settings(max_examples=25)
@given(st.data())
@pytest.mark.long
def test_no_fewer_archs_would_do(data: st.DataObject) -> None:
    devices = data.draw(st.lists(st.sampled_from(known()), min_size=1, max_size=5, unique=True))
    for kind, plan in kinds(*devices):
        if kind != "fewest":
            continue
        held = list(plan["devices"])
        every = sorted(frozenset().union(*(runs(device) for device in held)))
        for fewer in combinations(every, len(plan["archs"]) - 1):
            assert not all(runs(device) & set(fewer) for device in held)


def test_every_toolkit_of_a_plan_knows_all_of_its_archs() -> None:
    held = plans("8.0", "9.0", "12.0")["exact"]
    assert held["archs"] == ["sm_80", "sm_90", "sm_120"]
    for release in held["releases"]:
        refused = toolmatrix.why_not(f"cuda==={release}", arch=held["archs"])
        assert refused.exit_code != 1, release
    index = toolmatrix.open_matrix().index
    for release in set(index.component("cuda").versions) - set(held["releases"]):
        assert toolmatrix.why_not(f"cuda==={release}", arch=held["archs"]).exit_code == 1, release


def test_ptx_stands_in_where_a_toolkit_makes_no_machine_code() -> None:
    found = toolmatrix.plan("cuda==12.4", device="A100,RTX 5090")
    held = found.to_json()
    (plan,) = (plan for plan in held["plans"] if "machine code" in plan["kinds"])
    assert plan["devices"]["8.0"] == {"arch": "sm_80", "how": "exact"}
    assert plan["devices"]["12.0"] == {"arch": "compute_90", "how": "ptx"}
    assert [(one["kind"], one["devices"]["12.0"]) for one in held["missing"]] == [("exact", [])]
    assert found.exit_code == 0


def test_devices_of_two_makers_get_plans_of_two_toolkits() -> None:
    held = toolmatrix.plan(device=["MI300X", "A100"]).to_json()
    assert [(one["device"], one["toolkit"]) for one in held["devices"]] == [
        ("gfx942", "rocm"),
        ("8.0", "cuda"),
    ]
    flags = [plan["flags"] for plan in held["plans"] if "exact" in plan["kinds"]]
    assert flags == [
        {"nvcc": [], "hipcc": ["--offload-arch=gfx942"]},
        {"nvcc": ["-gencode=arch=compute_80,code=sm_80"], "hipcc": []},
    ]


def test_a_generic_target_takes_the_place_of_several() -> None:
    found = plans("gfx1100", "gfx1101", "gfx1102")
    assert found["exact"]["archs"] == ["gfx1100", "gfx1101", "gfx1102"]
    assert found["machine code"]["archs"] == ["gfx11-generic"]
    # Its runtime loads generic targets from 6.4 on.
    assert min(found["machine code"]["releases"]) >= "6.4.0" > min(found["exact"]["releases"])


def test_builds_are_told_apart_by_what_they_run_on() -> None:
    (held,) = toolmatrix.plan("torch==2.7.1", device="GTX 1080 Ti,H100").to_json()["builds"]
    lines = {name.partition("@")[0].partition("+")[2] for name in held["native"]}
    assert lines == {"cu118", "cu126"}
    assert {name.partition("@")[0] for name in held["refused"]} == {"2.7.1+cu128"}
    # Each of them is what `resolve` says of it.
    for name in (*held["native"], *held["refused"]):
        line = name.partition("@")[0]
        found = toolmatrix.resolve(f"torch=={line}", device="6.1,9.0")
        assert found.ok == (name in held["native"]), name


def test_what_cannot_be_planned_is_said() -> None:
    with pytest.raises(UsageError, match="no device to plan for"):
        toolmatrix.plan()
    with pytest.raises(UsageError, match="`plan` chooses the codegen archs"):
        toolmatrix.plan(device="8.0", arch="sm_80")


def test_a_device_without_facts_is_neither_yes_nor_no(small: Cli, here: Path) -> None:
    (here / "own.yaml").write_text(
        "schema: toolmatrix.facts/1\n"
        "sources: {us: {title: ours, at: 'us:page@1', read: 2026-01-01}}\n"
        "releases:\n"
        "  - {id: our-device, component: device, source: us, evidence: stated, where: text,\n"
        "     versions: {'99.0': {rank: 9900}}}\n"
    )
    outcome = small("plan", "--device", "99.0", "--matrix", "own.yaml")
    assert outcome.code == 4
    assert "no fact names the code that 99.0 runs" in outcome.err


def test_an_arch_that_no_toolkit_is_known_for_is_neither_yes_nor_no() -> None:
    """Nobody says which ROCm makes code for gfx1250, and none is known to refuse it."""
    found = toolmatrix.plan(device="gfx1250")
    assert found.exit_code == 4
    assert found.to_json()["plans"] == []
    assert "no release of rocm is known to compile for all devices" in str(found)
