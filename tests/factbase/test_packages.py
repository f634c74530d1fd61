"""What the matrix says of packages of the index: what they pin, how they get there, and what nobody read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import toolmatrix
from tests import matrix
from toolmatrix.api.answers import Resolved
from toolmatrix.factbase.versions import Scale
from toolmatrix.harvest import families

if TYPE_CHECKING:
    from pathlib import Path

ANSWERS = [
    # Pins of METADATA, the toolkit of the torch that is pinned, and companions of the day.
    (
        "vllm==0.8.5",
        {
            "from": "wheel",
            "torch": "2.6.0",
            "cuda": "12.4",
            "xformers": "0.0.29.post2",
            "transformers": "4.51",
            "protobuf": "<5",
            "numba": "0.61.2",
        },
    ),
    ("vllm==0.6.3", {"from": "wheel", "torch": "2.4.0", "torchvision": "0.19.0", "cuda": "12.1"}),
    ("xformers==0.0.27", {"from": "wheel", "torch": "2.3.1", "cuda": "12.1"}),
    # A package stands for a CUDA by its name.
    ("cupy==12.3.0", {"from": "wheel", "cuda": "12", "numpy": ">=1.20,<1.29"}),
    ("flax", {"from": "wheel", "cuda": "absent"}),
    ("numba==0.60.0", {"llvmlite": "0.43.*", "numpy": ">=1.22,<2.1"}),
    ("torch==2.6.0 transformers", {"from": "source", "cuda": "12.4"}),
]


def components(found: Any) -> dict[str, str]:
    """The releases of an answer on its only target, and the way in which they get there."""
    document = found.to_json()
    (target,) = document["targets"].values()
    held = {
        name: part["version"] for name, part in target["components"].items() if "version" in part
    }
    return {**held, "from": document["request"]["from"]}


@pytest.mark.parametrize(("request_", "wanted"), ANSWERS)
def test_packages_get_what_they_pin(request_: str, wanted: dict[str, str]) -> None:
    found = components(toolmatrix.resolve(*request_.split(), matrix=None))
    schemes = {name: part["scheme"] for name, part in matrix.index().header["components"].items()}
    for name, selector in wanted.items():
        version = found.get(name, "absent")
        if name == "from" or selector == "absent":
            assert version == selector
        else:
            assert Scale(schemes[name], [version]).select(selector), (name, version)


@pytest.mark.parametrize(
    ("release", "told"),
    [
        (
            "0.55.2",
            [
                "not covered: numba 0.55.2 also requires setuptools<82 (not components of the matrix)"
            ],
        ),
        ("0.56.4", []),
    ],
)
def test_what_fails_with_a_package_that_is_no_component_says_so(
    release: str, told: list[str]
) -> None:
    found = toolmatrix.resolve(f"numba=={release}", from_="wheel")
    assert isinstance(found, Resolved)
    caveats = found.to_json()["caveats"]
    assert [one["text"] for one in caveats if one["kind"] == "not-covered"] == told


def test_code_that_nobody_read_is_neither_a_yes_nor_a_no() -> None:
    for request in ("cupy==12.3.0", "sglang==0.5.23", "torchao==0.16.0"):
        assert toolmatrix.resolve(request).exit_code == 0
        assert toolmatrix.resolve(request, device="9.0").exit_code == 4


def test_every_family_has_its_file_and_its_components(tmp_path: Path) -> None:
    assert tmp_path.is_dir()
    known = matrix.index().header["components"]
    assert set(families.packages().values()) <= set(known)
