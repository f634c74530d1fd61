"""Graphs of clang and hipcc: shapes checked by hand."""

from __future__ import annotations

import pytest

from tests.compilation.corpus import case
from tests.compilation.laws.clang import NAMELESS
from toolmatrix.compilation import Plan, parse, parse_log


def shape(plan: Plan) -> list[str]:
    """Each stage as its kind, its arch and the stages it waits for."""
    waits: dict[int, list[str]] = {stage.id: [] for stage in plan.stages}
    for before, after in plan.edges:
        waits[after].append(str(before))
    return [
        " ".join(
            filter(None, (stage.kind, stage.arch, "<" * bool(waits[stage.id]), *waits[stage.id]))
        )
        for stage in plan.stages
    ]


OLD = [
    "device-compile gfx1030",
    "device-link gfx1030 < 0",
    "device-compile gfx906",
    "device-link gfx906 < 2",
    "device-compile gfx90a",
    "device-link gfx90a < 4",
    "bundle < 1 3 5",
    "host-compile < 6",
]
SHAPES = {
    **{
        f"clang-{version}__hip-c-many": OLD
        for version in ("13.0.1", "15.0.6", "16.0.6", "17.0.6", "19.1.7", "21.1.8")
    },
    "clang-23.1.4__hip-c-many": [
        "device-compile gfx1030",
        "device-compile gfx906",
        "device-compile gfx90a",
        "package < 0 1 2",
        "linker-wrapper < 3",
        "host-compile < 4",
    ],
    "hipcc-7.0.2__new-driver-link": [
        "device-compile gfx1100",
        "device-compile gfx90a",
        "package < 0 1",
        "host-compile < 2",
        "linker-wrapper < 3",
        "device-compile gfx1100",
        "device-compile gfx90a",
        "package < 5 6",
        "host-compile < 7",
        "linker-wrapper < 8",
        "link < 4 9",
    ],
    "clang-13.0.1__hip-rdc-link": [
        "host-compile",
        "host-compile",
        "device-compile gfx1030",
        "device-compile gfx1030",
        "device-link gfx1030 < 2 3",
        "device-compile gfx906",
        "device-compile gfx906",
        "device-link gfx906 < 5 6",
        "device-compile gfx90a",
        "device-compile gfx90a",
        "device-link gfx90a < 8 9",
        "bundle < 4 7 10",
        "assemble < 11",
        "link < 0 1 12",
    ],
    "hipcc-7.0.2__rdc-link-sources": [
        "host-compile",
        "host-compile",
        "device-compile gfx1030",
        "device-compile gfx1030",
        "device-link gfx1030 < 2 3",
        "device-compile gfx90a",
        "device-compile gfx90a",
        "device-link gfx90a < 5 6",
        "bundle < 4 7",
        "assemble < 8",
        "link < 0 1 9",
    ],
    "clang-23.1.4__hip-rdc-link": [
        "device-compile gfx1030",
        "device-compile gfx906",
        "device-compile gfx90a",
        "package < 0 1 2",
        "host-compile < 3",
        "device-compile gfx1030",
        "device-compile gfx906",
        "device-compile gfx90a",
        "package < 5 6 7",
        "host-compile < 8",
        "linker-wrapper < 4 9",
    ],
    "hipcc-5.2.3__rdc-c": ["device-compile gfx90a", "host-compile", "bundle < 0 1"],
    "hipcc-5.2.3__link-two-sources": [
        "device-compile gfx90a",
        "unbundle gfx90a",
        "device-link gfx90a < 0 1",
        "bundle < 2",
        "host-compile < 3",
        "device-compile gfx90a",
        "unbundle gfx90a",
        "device-link gfx90a < 5 6",
        "bundle < 7",
        "host-compile < 8",
        "link < 4 9",
    ],
    "hipcc-5.7.1__c-xnack-features": [
        "device-compile gfx908:sramecc+:xnack-",
        "device-link gfx908:sramecc+:xnack- < 0",
        "device-compile gfx90a:xnack+",
        "device-link gfx90a:xnack+ < 2",
        "device-compile gfx90a:xnack-",
        "device-link gfx90a:xnack- < 4",
        "bundle < 1 3 5",
        "host-compile < 6",
    ],
    # llvm-spirv writes over the file that it reads, so both who wrote it count
    "hipcc-7.0.2__generic-and-spirv": [
        "device-compile amdgcnspirv",
        "device-link amdgcnspirv < 0",
        "device-compile amdgcnspirv < 1",
        "device-compile gfx11-generic",
        "device-link gfx11-generic < 3",
        "device-compile gfx9-generic",
        "device-link gfx9-generic < 5",
        "bundle < 1 2 4 6",
        "host-compile < 7",
    ],
    "hipcc-7.0.2__save-temps": [
        "preprocess gfx1030",
        "device-compile gfx1030 < 0",
        "device-compile gfx1030 < 1",
        "assemble gfx1030 < 2",
        "device-link gfx1030 < 3",
        "preprocess gfx90a",
        "device-compile gfx90a < 5",
        "device-compile gfx90a < 6",
        "assemble gfx90a < 7",
        "device-link gfx90a < 8",
        "bundle < 4 9",
        "preprocess",
        "host-compile < 10 11",
        "host-compile < 12",
        "assemble < 13",
    ],
    "hipcc-5.7.1__preprocess-E": ["preprocess gfx90a", "preprocess", "bundle < 0 1"],
    "hipcc-7.0.2__host-only": ["host-compile"],
    "hipcc-7.0.2__S-device-only": ["device-compile gfx90a"],
    "hipcc-7.0.2__link-objects": ["link"],
    # PTX and cubin go in the fat binary, from 21 on only the cubin
    "clang-11.0.1__cuda-c-two-archs": [
        "device-compile sm_70",
        "ptxas sm_70 < 0",
        "device-compile sm_75",
        "ptxas sm_75 < 2",
        "fatbinary < 0 1 2 3",
        "host-compile < 4",
    ],
    "clang-23.1.4__cuda-c-two-archs": [
        "device-compile sm_70",
        "ptxas sm_70 < 0",
        "device-compile sm_80",
        "ptxas sm_80 < 2",
        "fatbinary < 1 3",
        "host-compile < 4",
    ],
    # what clang-linker-wrapper hides; the object that holds the bundle is written by itself
    "clang-21.1.8__linker-wrapper-dry-run": [
        "device-link gfx1030",
        "device-link gfx90a",
        "bundle < 0 1",
        "link < 2",
    ],
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_graph_is_the_one_checked_by_hand(name: str) -> None:
    assert shape(parse(case(name).text)) == SHAPES[name]


@pytest.mark.parametrize("name", sorted(NAMELESS))
def test_a_driver_that_does_not_say_who_it_is_has_no_plan(name: str) -> None:
    assert parse_log(case(name).text.splitlines()).plans == ()
