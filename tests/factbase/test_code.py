"""What the matrix says of the code in packages, held against what it says of the same packages elsewhere."""

from __future__ import annotations

import pytest

from tests import matrix
from toolmatrix.factbase import pieces
from toolmatrix.factbase.evidence import UNKNOWN
from toolmatrix.harvest import families

WITHOUT = {
    "cuda": "cuda-toolkit names packages, and holds none of the toolkit",
    "cmake": "a program, which its package holds for every Python",
    "ninja": "a program, which its package holds for every Python",
}
"""Components of packages of the index whose code no row describes, each with the reason."""
READ_OTHERWISE = {
    "autoawq": "up to 0.1.8 its wheels held kernels, and later ones hold none",
    "gptqmodel": "up to 6.0.3 its archive compiled kernels where it was built, and later ones compile them at run time",
    "sgl-kernel": "the archs of some wheels were not read, that of the newest were",
}
"""Packages whose device code nobody read, for some of their releases, though the row is about the newest."""
WITHOUT_DEVICE_CODE = {"cuda-bindings", "cuda-python", "torch-tensorrt"}
"""Packages with an accelerator and binaries that hold no code for it."""


def kinds() -> dict[str, str]:
    """The kind of code of each component that has a row."""
    known = matrix.index().header["components"]
    return {name: head["code"] for name, head in known.items() if head["code"]}


def named(*wanted: str) -> list[str]:
    """The components whose code is of these kinds."""
    return [name for name, kind in kinds().items() if kind in wanted]


def devices(component: str) -> set[str]:
    """How well it is known which devices a component or its builds have code for."""
    index = matrix.index()
    known = index.header["components"]
    builds = [name for name, head in known.items() if head["variant_of"] == component]
    return {
        cite.evidence
        for name in (component, *builds)
        for binding in index.component(name).bindings
        if binding.component in ("arch", "device")
        for cite in index.cites(binding.cites)
    }


def unread() -> set[str]:
    """The components of packages whose device code families say that nobody read."""
    return {
        pieces.text(fields, "component", package)
        for family in families.families().values()
        if family.kind == "index"
        for package, node in pieces.entries(family.fields, "packages").items()
        if pieces.text(fields := node.fields or {}, "device-code") == "unread"
    }


def test_every_package_of_the_index_says_what_code_it_holds() -> None:
    assert set(families.packages().values()) - set(kinds()) <= set(WITHOUT)


def test_only_devices_of_unopened_code_are_unread() -> None:
    assert unread() - set(named("unopened")) <= set(READ_OTHERWISE)
    assert unread() & set(named("unopened"))


def test_pure_code_is_for_no_device() -> None:
    assert {name for name in named("pure") if devices(name)} <= set(READ_OTHERWISE)


def test_archs_of_opened_code_are_facts() -> None:
    known = matrix.index().header["components"]
    computing = {name for name in named("opened") if known[name]["accelerators"]}
    assert {name for name in named("opened") if devices(name) - {UNKNOWN}} == (
        computing - WITHOUT_DEVICE_CODE
    )


@pytest.mark.parametrize("kind", ["unopened", "run-time"])
def test_code_for_devices_is_in_what_computes_on_them(kind: str) -> None:
    known = matrix.index().header["components"]
    assert [name for name in named(kind) if not known[name]["accelerators"]] == []


def test_an_extension_of_a_framework_is_bound_to_it() -> None:
    known = matrix.index().header["components"]
    assert {name for name, head in known.items() if "torch" in head["against"]} >= {
        *("torchvision", "torchaudio", "flash-attn", "xformers", "vllm", "torchao", "sgl-kernel"),
    }
    assert [name for name in named("pure") if known[name]["against"]] == []
