"""Devices by what tools print of them and by what people type, on the built-in matrix."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolmatrix.factbase import products
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.store import open_index

FIXTURES = Path(__file__).parent.parent / "fixtures"
BRANDS = re.compile(r"\b(NVIDIA|GeForce|Tesla|Quadro|Jetson|AMD|Radeon|Instinct)\b *")


@pytest.fixture(scope="module")
def index(cache: str) -> Index:
    return open_index([], {"XDG_CACHE_HOME": cache})


def devices(index: Index, name: str) -> list[str]:
    """What a name is read as, as `--device` does."""
    exact = products.exactly(name, index.scale("device").versions)
    return [exact] if exact else [device for device, _ in products.find(index, name)]


def printed(tool: str) -> list[tuple[str, str]]:
    """The names of a fixture, with their devices."""
    lines = (FIXTURES / f"{tool}-names.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return [(name, device) for name, device, _ in rows]


@pytest.mark.parametrize(
    ("tool", "line"),
    [
        ("nvidia-smi", "{}"),
        ("nvidia-smi", "GPU 0: {} (UUID: GPU-5c2a3a9e-66b5-0f1d-8c94-2b5d0a9e2f11)"),
        ("rocm-smi", "{}"),
        ("rocm-smi", "GPU[0]\t\t: Card Series: \t\t{}"),
        ("rocm-smi", "GPU[11]\t\t: Card series: \t\t{}"),
    ],
)
def test_every_name_that_tools_print(index: Index, tool: str, line: str) -> None:
    wrong = {
        name: (device, found)
        for name, device in printed(tool)
        if (found := devices(index, line.format(name))) != [device]
    }
    assert wrong == {}


@pytest.mark.long
def test_every_product_is_itself_and_without_its_brand_no_other(index: Index) -> None:
    """Also with its words run together, and printed by its maker's tool."""
    for device, name, *_ in index.products():
        maker = "AMD" if device.startswith("gfx") else "NVIDIA"
        assert devices(index, name) == [device], name
        assert devices(index, f"{maker} {name.upper()}") == [device], name
        bare = BRANDS.sub("", name)
        for less in (bare, bare.lower().replace(" ", ""), f"{bare} 80GB"):
            found = devices(index, less)
            assert device in found or not found, (name, less)
        assert devices(index, bare), name


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("rtx5090", "12.0"),
        ("RTX5090", "12.0"),
        ("gtx1080ti", "6.1"),
        ("RTX 3080Ti", "8.6"),
        ("RTXA6000", "8.6"),
        ("rx7900xtx", "gfx1100"),
        ("mi300x", "gfx942"),
        ("h100", "9.0"),
        ("H100 SXM5 80GB", "9.0"),
        ("A100-40GB", "8.0"),
        ("RTX 4060 Ti 16GB", "8.9"),
        ("RTX 3090 GeForce", "8.6"),
        ("NVIDIA GeForce RTX(TM) 4090", "8.9"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0"),
        ("H20", "9.0"),
        ("A10G", "8.6"),
        ("A10", "8.6"),
        ("MI325X", "gfx942"),
        ("L4", "8.9"),
        ("T4", "7.5"),
        ("Orin", "8.7"),
        ("Jetson Thor", "11.0"),
        ("GTX Titan", "3.5"),
        ("TITAN Xp 12GB", "6.1"),
        ("Quadro RTX 4000", "7.5"),
        ("RTX 4000 Ada", "8.9"),
        ("RTX 3050", "8.6"),
        ("RTX 3050 A", "8.9"),
        ("Radeon 680M", "gfx1035"),
        ("GTX 680M", "3.0"),
        ("Radeon VII", "gfx906"),
        ("sm_120", "12.0"),
        ("SM_120", "12.0"),
        ("sm120", "12.0"),
        ("sm_90a", "9.0"),
        ("compute_120", "12.0"),
        ("cc8.6", "8.6"),
        ("compute capability 8.6", "8.6"),
        ("8.6", "8.6"),
        ("86", "8.6"),
        ("gfx90a", "gfx90a"),
        ("GFX90A", "gfx90a"),
        ("gfx90a:sramecc+:xnack-", "gfx90a"),
        ("GPU[0]\t\t: GFX Version: \t\tgfx942", "gfx942"),
    ],
)
def test_names_that_people_type(index: Index, name: str, device: str) -> None:
    assert devices(index, name) == [device]


@pytest.mark.parametrize(
    ("name", "several"),
    [
        ("RTX 4000", {"7.5", "8.9", "12.0"}),
        ("Titan X", {"5.2", "6.1"}),
        ("680M", {"3.0", "gfx1035"}),
        ("RTX", {"7.5", "8.6", "8.9", "12.0"}),
        ("Vega", {"gfx900", "gfx906"}),
    ],
)
def test_names_of_several_devices_are_none_of_them(
    index: Index, name: str, several: set[str]
) -> None:
    assert set(devices(index, name)) == several


@pytest.mark.parametrize(
    "name",
    [
        "",
        "NVIDIA",
        "80GB PCIe",
        "AMD Radeon Graphics",
        "AMD Radeon(TM) Graphics",
        "AMD Ryzen 9 7900 Radeon Graphics",
        "Radeon 760M",
        "Radeon 840M",
        "AMD 840M",
        "Radeon RTX 3090",
        "RTX 4090 SUPER",
        "RTX 3050 B",
        "RTX 4090 3080",
        "GT 730",
        "MI300",
        "MI308X",
        "A100X",
        "Blackwell",
        "sm_130",
        "12",
        "MIG 1g.5gb     Device  0: (UUID: MIG-b19f)",
        "x" * 5000,
        "1x" * 5000,
    ],
)
def test_what_is_no_product_is_not_taken_for_one(index: Index, name: str) -> None:
    assert devices(index, name) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA A100-SXM...", ["8.0"]),
        ("NVIDIA H100 PCI...", ["9.0"]),
        ("NVIDIA H100 80G...", ["9.0"]),
        ("Tesla V100-SXM2...", ["7.0"]),
        ("GeForce GTX 105...", ["6.1"]),
        ("NVIDIA GeForce RTX 4070 ...", ["8.9"]),
        ("Quadro RTX 800...", ["7.5"]),
        ("NVIDIA RTX A600…", ["8.6"]),
        ("NVIDIA A10...", ["8.0", "8.6"]),
        ("NVIDIA GeForce ...", []),
        ("NVIDIA ...", []),
        ("...", []),
    ],
)
def test_a_name_that_a_table_cuts_is_that_of_what_begins_so(
    index: Index, name: str, expected: list[str]
) -> None:
    assert devices(index, name) == expected
