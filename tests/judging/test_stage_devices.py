"""Which device runs which code: the rules one by one, whole logs, and laws over any set of images."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judging.stage_cases import fatbinary, index, judged, made, of_plan, plan
from toolmatrix.judging import stages
from toolmatrix.judging.stage_archs import DeviceImage, DevicePart, device_codes
from toolmatrix.judging.stages import best_image_finding, finding_rank

NO, UNKNOWN, PTX, CODE = range(4)
NAMES = index().component("arch").versions
DEVICES = index().component("device").versions
KINDS = {"sm": "cubin", "co": "ptx", "gf": "object"}
IMAGES = [DeviceImage(kind=KINDS[name[:2]], arch=name) for name in NAMES]
IMAGES += [
    DeviceImage(kind="ptx", arch=name.replace("sm_", "compute_"))
    for name in NAMES
    if name[-1] in "af"
]
IMAGES += [DeviceImage(kind="lto", arch="lto_80"), DeviceImage(kind="tile", arch="sm_100")]
IMAGES += [
    DeviceImage(kind="object", arch="gfx90a:xnack+"),
    DeviceImage(kind="object", arch="amdgcnspirv"),
]


def part(*images: DeviceImage) -> DevicePart:
    """DeviceCode that is loaded as one."""
    return DevicePart(plan=0, stage=0, images=images)


@pytest.mark.parametrize(
    ("images", "device", "answer", "image"),
    [
        (("elf:80",), "8.0", CODE, "sm_80"),
        (("elf:80",), "8.6", CODE, "sm_80"),
        (("elf:86",), "8.0", NO, ""),
        (("elf:80",), "9.0", NO, ""),
        (("elf:80", "elf:86"), "8.6", CODE, "sm_86"),
        (("elf:80", "elf:86"), "8.9", CODE, "sm_86"),
        (("elf:80", "ptx:80"), "9.0", PTX, "compute_80"),
        (("ptx:80", "ptx:90"), "10.0", PTX, "compute_90"),
        (("ptx:90",), "8.6", NO, ""),
        (("elf:90a",), "9.0", CODE, "sm_90a"),
        (("elf:90a", "ptx:90a"), "10.0", NO, ""),
        (("elf:100f",), "10.0", CODE, "sm_100f"),
        (("elf:100f",), "10.3", CODE, "sm_100f"),
        (("elf:100f", "ptx:100f"), "12.0", NO, ""),
        (("ptx:100f",), "10.3", PTX, "compute_100f"),
        (("elf:100a",), "10.3", NO, ""),
        (("elf:80", "elf:86"), "8.7", NO, ""),
        (("elf:80", "ptx:80"), "8.7", PTX, "compute_80"),
        (("elf:87",), "8.7", CODE, "sm_87"),
        (("elf:87",), "8.9", NO, ""),
        (("nvvm:80",), "8.0", NO, ""),
        (("tileir:100",), "10.0", UNKNOWN, ""),
    ],
)
def test_the_rules(images: tuple[str, ...], device: str, answer: int, image: str) -> None:
    (code,) = device_codes([made(*images)])
    found = best_image_finding(index(), device, code.parts[0])
    assert (finding_rank(found), found.image) == (answer, image)
    assert found.facts


@pytest.mark.parametrize(
    ("arch", "device", "answer"),
    [
        ("gfx90a", "gfx90a", CODE),
        ("gfx90a", "gfx908", NO),
        ("gfx90a:xnack+", "gfx90a", CODE),
        ("gfx90a:xnack+", "gfx90a:xnack+", CODE),
        ("gfx90a:xnack+", "gfx90a:xnack-", NO),
        ("gfx90a", "gfx90a:xnack-", CODE),
        ("gfx9-generic", "gfx906", CODE),
        ("gfx9-generic", "gfx90a", NO),
        ("gfx90a", "9.0", NO),
        ("amdgcnspirv", "gfx90a", UNKNOWN),
    ],
)
def test_the_rules_of_amd(arch: str, device: str, answer: int) -> None:
    found = best_image_finding(index(), device, part(DeviceImage(kind="object", arch=arch)))
    assert finding_rank(found) == answer


@given(st.lists(st.sampled_from(IMAGES)), st.sampled_from(IMAGES), st.sampled_from(DEVICES))
def test_more_code_never_makes_a_device_unable(
    images: list[DeviceImage], more: DeviceImage, device: str
) -> None:
    before = finding_rank(best_image_finding(index(), device, part(*images)))
    after = finding_rank(best_image_finding(index(), device, part(*images, more)))
    assert after >= before


@given(st.lists(st.sampled_from(IMAGES)), st.sampled_from(DEVICES))
def test_the_order_of_images_says_nothing(images: list[DeviceImage], device: str) -> None:
    one = best_image_finding(index(), device, part(*images))
    other = best_image_finding(index(), device, part(*reversed(images)))
    assert (finding_rank(one), one.image, sorted(one.why)) == (
        finding_rank(other),
        other.image,
        sorted(other.why),
    )


@given(
    st.lists(st.sampled_from(IMAGES)), st.sampled_from([name for name in DEVICES if "." in name])
)
def test_a_cubin_for_the_device_itself_always_runs(images: list[DeviceImage], device: str) -> None:
    exact = DeviceImage(kind="cubin", arch="sm_" + device.replace(".", ""))
    found = best_image_finding(index(), device, part(*images, exact))
    assert (finding_rank(found), found.image.rstrip("af")) == (CODE, exact.arch)


@given(st.lists(st.sampled_from(IMAGES), min_size=1), st.sampled_from(DEVICES))
def test_an_answer_names_what_it_takes_or_why_not(images: list[DeviceImage], device: str) -> None:
    found = best_image_finding(index(), device, part(*images))
    if finding_rank(found) in (PTX, CODE):
        assert found.image in {image.arch for image in images}
        assert found.facts
    else:
        assert {arch for arch, _ in found.why} == {image.arch for image in images}
        assert "unknown" not in {why for _, why in found.why} or finding_rank(found) == UNKNOWN


def answers(name: str, *devices: str) -> dict[str, str]:
    """The codes of the answers for each device about a whole log."""
    found = [one for one in judged(name, *devices) if one.code.startswith("TM22")]
    whole = [one for one in found if one.plan is None] or found
    return {one.names[0]: one.code for one in whole}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvcc-13.0.88__c-many-gencode-ptx", {"8.6": "TM222", "9.0": "TM222", "12.0": "TM222", "8.7": "TM220"}),
        ("nvcc-13.0.88__c-one-arch", {"8.0": "TM222", "8.6": "TM222", "9.0": "TM221", "7.5": "TM220"}),
        ("nvcc-13.0.88__make-log", {"8.6": "TM222", "9.0": "TM221", "7.5": "TM220"}),
        ("nvcc-13.0.88__rdc-link-many", {"10.0": "TM222", "12.0": "TM222", "12.1": "TM222", "9.0": "TM220"}),
        ("nvcc-13.1.115__lto-link", {"9.0": "TM222", "10.0": "TM221", "8.6": "TM220"}),
        ("nvcc-13.0.88__ptx-only", {"8.0": "TM221", "9.0": "TM221", "7.5": "TM220"}),
        ("nvcc-13.1.115__cubin", {"9.0": "TM222", "10.0": "TM220"}),
        ("nvcc-13.0.88__ltoir", {"8.0": "TM220"}),
        ("nvcc-13.0.88__optix-ir", {"8.0": "TM220"}),
        ("nvcc-13.0.88__link-existing-objects", {"8.0": "TM223"}),
        ("nvcc-13.0.88__preprocess-E", {"8.0": "TM223"}),
        ("nvcc-13.3.73__tile-enable", {"10.0": "TM222", "9.0": "TM220"}),
        ("nvcc-7.5.17__fatbin", {"2.0": "TM222", "5.2": "TM222", "6.0": "TM221"}),
        ("nvcc-4.2__seed", {"3.0": "TM222", "3.5": "TM222", "5.0": "TM221", "2.0": "TM220"}),
        ("clang-15.0.6__cuda-c-two-archs", {"7.5": "TM222", "8.6": "TM222", "9.0": "TM221"}),
        ("clang-23.1.4__cuda-c-two-archs", {"8.6": "TM222", "9.0": "TM220"}),
        ("hipcc-7.0.2__c-many-gfx", {"gfx90a": "TM222", "gfx1100": "TM222", "gfx942": "TM220"}),
        ("hipcc-7.0.2__new-driver-link", {"gfx90a": "TM222", "gfx906": "TM220"}),
        ("clang-23.1.4__hip-rdc-link", {"gfx1030": "TM222", "gfx1100": "TM220"}),
        ("hipcc-7.0.2__c-xnack-features", {"gfx90a:xnack-": "TM222", "gfx908:xnack+": "TM220"}),
        ("hipcc-7.0.2__generic-and-spirv", {"gfx1100": "TM222", "gfx906": "TM222", "gfx942": "TM223"}),
    ],
)  # fmt: skip
def test_whole_logs(name: str, expected: dict[str, str]) -> None:
    assert answers(name, *expected) == expected


def test_a_device_that_nobody_knows_is_not_answered_with_no() -> None:
    found = of_plan(made("elf:80", "ptx:80"), index(), ["99.9"])
    assert [(one.code, one.names) for one in found] == [("TM223", ("99.9", "99.9", "device"))]


def test_ptx_wants_a_driver_of_its_toolkit() -> None:
    (found,) = [one for one in of_plan(made("ptx:80"), index(), ["9.0"]) if one.plan == 0]
    assert found.names == ("9.0", "compute_80", "580.65.06")
    assert found.facts == ("device-runs/9.0#arch", "cuda-drivers/13.0.0")


def test_a_device_must_run_every_part() -> None:
    held = plan(fatbinary("elf:80", "ptx:80"), fatbinary("elf:90"))
    (found,) = [one for one in of_plan(held, index(), ["8.0"]) if one.code[:4] == "TM22"]
    assert (found.code, found.stage, found.names) == ("TM220", 1, ("8.0", "sm_90", "major"))


def test_relocatable_code_keeps_the_ptx_that_all_objects_have() -> None:
    held = plan(
        fatbinary("elf:80", "ptx:80", more="--device-c"),
        fatbinary("elf:80", "ptx:80", "ptx:90", more="--device-c"),
        ("nvlink", "sm_80", "nvlink --arch=sm_80 a.o b.o"),
        fatbinary("elf:80", more="-link"),
    )
    (code,) = device_codes([held])
    (joined,) = code.parts
    assert [(image.kind, image.arch) for image in joined.images] == [
        ("cubin", "sm_80"),
        ("ptx", "compute_80"),
    ]
    assert (joined.stage, joined.relocatable) == (3, False)


def test_an_ordinary_link_leaves_the_code_of_the_objects_as_it_is() -> None:
    held = plan(
        fatbinary("elf:80", "ptx:80"),
        ("nvlink", "sm_80", "nvlink --arch=sm_80 a.o"),
        fatbinary("elf:80", more="-link"),
    )
    (code,) = device_codes([held])
    assert [part.archs("ptx") for part in code.parts] == [("compute_80",)]


def test_the_total_is_the_worst_of_all_invocations() -> None:
    found = stages.findings([made("elf:80", "ptx:80"), made("elf:80")], index(), ["9.0", "8.0"])
    totals = {one.names: one.code for one in found if one.plan is None}
    assert totals == {("9.0", "2", "1"): "TM220", ("8.0", "2", "2"): "TM222"}
