"""Bills of materials: what the schema of CycloneDX and the reference of package URLs say, and what stands in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from tests.rendering.jobs import LOCKS, job, lock
from toolmatrix.errors import RenderError
from toolmatrix.lockfile.model import LockedComponent, LockedVariant
from toolmatrix.rendering.formats import cyclonedx
from toolmatrix.rendering.model import Job

JOBS = [*((name, "toolchain") for name in LOCKS), ("tensorflow", "tensorflow")]
CUDA_INDEX = "https://wheels.example.org/whl/cu128"


def bills(held: Job) -> dict[str, Any]:
    """The bills of a job by file, each valid by the schema of CycloneDX and with canonical package URLs."""
    texts = cyclonedx.files(held)
    for text in texts.values():
        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
        for part in json.loads(text)["components"]:
            assert PackageURL.from_string(part["purl"]).to_string() == part["purl"]
    return {path: json.loads(text) for path, text in texts.items()}


def purls(bill: dict[str, Any]) -> dict[str, str]:
    """The package URL of each component by its reference."""
    return {part["bom-ref"]: part["purl"] for part in bill["components"]}


def properties(part: dict[str, Any], name: str) -> list[str]:
    """The values of a property."""
    return [one["value"] for one in part["properties"] if one["name"] == f"toolmatrix:{name}"]


@pytest.mark.parametrize(("name", "recipe"), JOBS)
def test_a_bill_is_valid_and_has_one_root(name: str, recipe: str) -> None:
    held = job(lock(name), recipe=recipe)
    found = bills(held)
    assert [*found] == [f"{image.name}.cdx.json" for image in held.images]
    for bill in found.values():
        refs = [part["bom-ref"] for part in bill["components"]]
        root, *_ = bill["dependencies"]
        stays = [one["bom-ref"] for one in bill["components"] if one.get("scope") != "excluded"]
        assert root == {"ref": bill["metadata"]["component"]["bom-ref"], "dependsOn": stays}
        assert len({*refs}) == len(refs)
        assert properties(bill["metadata"], "lock") == [held.digest]
        assert "timestamp" not in bill["metadata"]
    assert len({bill["serialNumber"] for bill in found.values()}) == len(found)


def test_what_is_built_and_what_is_not_there() -> None:
    """The tools alone leave out the framework that they are for, and say so; its recipe has it as a package."""
    tools = bills(job(lock("tensorflow"), targets=("x86",)))["x86.cdx.json"]
    built = bills(job(lock("tensorflow"), recipe="tensorflow", targets=("x86",)))["x86.cdx.json"]
    assert properties(tools["metadata"], "not-in-image") == ["tensorflow 2.6.5"]
    assert properties(built["metadata"], "not-in-image") == []
    for bill in (tools, built):
        assert properties(bill["metadata"], "host") == ["driver >=450.80.02"]
    expected = {
        "base-image": "pkg:docker/nvidia/cuda@11.2.2-cudnn8-devel-ubuntu20.04",
        "bazel": "pkg:generic/bazel@3.7.2",
        "cuda": "pkg:generic/cuda@11.2.2",
        "cudnn": "pkg:generic/cudnn@8.1.1.33",
        "distro": "pkg:generic/ubuntu@20.04",
        "gast": "pkg:pypi/gast@0.4.0",
        "gcc": "pkg:generic/gcc@7",
        "h5py": "pkg:pypi/h5py@3.1.0",
        "keras": "pkg:pypi/keras@2.6.0",
        "numpy": "pkg:pypi/numpy@1.19.5",
        "protobuf": "pkg:pypi/protobuf@3.19.6",
        "python": "pkg:generic/python@3.9",
        "wrapt": "pkg:pypi/wrapt@1.12.1",
    }
    assert purls(tools) == expected
    assert purls(built) == expected | {
        "tensorflow": "pkg:pypi/tensorflow@2.6.5",
        "runtime-image": "pkg:docker/nvidia/cuda@11.2.2-cudnn8-runtime-ubuntu20.04",
    }


def test_what_the_last_stage_leaves_behind_is_excluded() -> None:
    """The label of the image names the same components as the bill does."""
    held = job(lock("tensorflow"), recipe="tensorflow", targets=("x86",))
    (bill,) = bills(held).values()
    excluded = [one["bom-ref"] for one in bill["components"] if one.get("scope") == "excluded"]
    assert excluded == ["base-image", "bazel", "gcc"]
    _, *brought = bill["dependencies"]
    assert brought == []
    (root,) = (one["dependsOn"] for one in bill["dependencies"])
    labelled = held.images[0].labels["io.github.toolmatrix.components"].split()
    assert {*root} == {*labelled, "runtime-image"}


def test_tools_alone_leave_nothing_behind() -> None:
    for name in LOCKS:
        for bill in bills(job(lock(name))).values():
            assert not [one for one in bill["components"] if "scope" in one]


def test_a_component_names_its_evidence_and_facts() -> None:
    held = job(lock("tensorflow"), targets=("x86",))
    part = held.images[0].locked.components["python"]
    bill = bills(held)["x86.cdx.json"]
    python = next(one for one in bill["components"] if one["bom-ref"] == "python")
    assert part.facts
    assert properties(python, "evidence") == [part.evidence]
    assert properties(python, "fact") == [*part.facts]
    assert properties(python, "disputed") == [*part.disputed]


def with_wheel(*install: str) -> Job:
    """A job with a build of torch, and CUDA inside it."""
    held = job(lock("debian"), targets=("arm",))
    (image,) = held.images
    components = {
        **image.locked.components,
        "torch": LockedComponent(evidence="artifact", version="2.7.1"),
        "cuda": LockedComponent(evidence="stated", version="12.8.0", inside="torch"),
    }
    build = LockedVariant(evidence="stated", build="2.7.1+cu128@wheels/aarch64", install=install)
    locked = image.locked.replace(components=components, variants={"torch": build})
    return held.replace(images=(image.replace(locked=locked),))


def test_a_build_names_its_index_and_depends_on_what_is_inside() -> None:
    bill = bills(with_wheel("torch==2.7.1", "--index-url", CUDA_INDEX))["arm.cdx.json"]
    assert purls(bill)["torch"] == f"pkg:pypi/torch@2.7.1?repository_url={CUDA_INDEX}"
    assert bill["dependencies"][1:] == [{"ref": "torch", "dependsOn": ["cuda"]}]
    torch = next(one for one in bill["components"] if one["bom-ref"] == "torch")
    assert properties(torch, "build") == ["2.7.1+cu128@wheels/aarch64"]


def test_a_build_of_another_package_has_its_name() -> None:
    bill = bills(with_wheel("Torch_GPU[cuda]==2.7.1+cu128", "helper==1.0"))["arm.cdx.json"]
    found = purls(bill)
    assert found["torch"] == "pkg:pypi/torch-gpu@2.7.1%2Bcu128"
    assert found["pip:helper"] == "pkg:pypi/helper@1.0"


def test_a_build_that_pins_nothing_has_the_release_of_the_lock() -> None:
    assert purls(bills(with_wheel("torch>=2"))["arm.cdx.json"])["torch"] == "pkg:pypi/torch@2.7.1"


def test_two_builds_may_come_in_one_package() -> None:
    held = with_wheel("torch==2.7.1")
    (image,) = held.images
    part = LockedComponent(evidence="artifact", version="3.3.1")
    locked = image.locked.replace(
        components={**image.locked.components, "triton": part},
        variants={**image.locked.variants, "triton": image.locked.variants["torch"]},
    )
    found = purls(bills(held.replace(images=(image.replace(locked=locked),)))["arm.cdx.json"])
    assert found["torch"] == found["triton"] == "pkg:pypi/torch@2.7.1"


@pytest.mark.parametrize(
    ("reference", "purl"),
    [
        ("debian", "pkg:docker/debian@latest"),
        ("debian:12", "pkg:docker/debian@12"),
        ("nvidia/cuda:12.4.1-devel", "pkg:docker/nvidia/cuda@12.4.1-devel"),
        (
            "images.example.org:5000/team/base:1",
            "pkg:docker/team/base@1?repository_url=images.example.org:5000",
        ),
        (
            f"debian:12@sha256:{'a' * 64}",
            f"pkg:docker/debian@sha256:{'a' * 64}",
        ),
    ],
)
def test_a_base_image_is_named_by_its_digest_or_tag(reference: str, purl: str) -> None:
    held = job(lock("debian"), targets=("arm",), stand_ins={"debian:12": reference})
    assert purls(bills(held)["arm.cdx.json"])["base-image"] == purl


def test_the_same_lock_makes_the_same_bill_and_another_lock_another() -> None:
    one = job(lock("debian"))
    assert cyclonedx.files(one) == cyclonedx.files(job(lock("debian")))
    other = one.replace(digest="sha256:" + "1" * 64)
    serials = [bills(held)["arm.cdx.json"]["serialNumber"] for held in (one, other)]
    assert serials[0] != serials[1]


@pytest.mark.parametrize("install", ["torch @ https://wheels.example.org/torch.whl", "torch=2.7.1"])
def test_what_is_no_pinned_requirement_is_refused(install: str) -> None:
    with pytest.raises(RenderError):
        cyclonedx.files(with_wheel(install))
