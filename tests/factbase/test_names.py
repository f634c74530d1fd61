"""What the package tells of the built-in matrix without being asked to solve: its date, its names, its products."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.factbase.small import compiled, facts, statement, table, write
from toolmatrix import resources
from toolmatrix.factbase import about, index, names, products, writer
from toolmatrix.factbase.index import in_memory
from toolmatrix.factbase.store import open_index

TEXT = facts(
    statements=[statement(requires={"gcc": "8"})],
    releases=[
        {
            "id": "devices",
            "component": "device",
            "source": "vendor",
            "evidence": "stated",
            "where": "list",
            "versions": {"8.6": {"rank": 86}, "8.9": {"rank": 89}, "gfx942": {"rank": 1}},
        }
    ],
    components={"device": {"title": "device", "scheme": "names"}},
    tables=[
        table(
            id="nvidia-products",
            lists="products",
            key="device",
            columns={"products": {"as": "attribute"}},
            rows=[
                {
                    "device": "8.6",
                    "products": ["GeForce RTX 3090", "GeForce RTX 3080 Ti", "RTX A5000", "A40"],
                },
                {"device": "8.9", "products": ["GeForce RTX 4090", "L40", "GeForce RTX 4070"]},
                {"device": "gfx942", "products": ["Instinct MI300X"]},
            ],
        )
    ],
)


@pytest.fixture
def built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, TEXT)
    monkeypatch.setattr(resources, "matrix_root", lambda: str(tmp_path))
    monkeypatch.setattr(resources, "builtin_index", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("built_in")
def test_the_date_and_the_number_of_facts(tmp_path: Path) -> None:
    assert about(os.environ) == ("2026-01-02", 24, "")
    assert about({}) == ("2026-01-02", 24, "")
    assert about({"XDG_CACHE_HOME": str(tmp_path)}) == ("2026-01-02", 24, "")


@pytest.mark.usefixtures("built_in")
@pytest.mark.parametrize(
    ("kind", "prefix", "wanted"),
    [
        ("component", "a", ["accelerator", "app", "arch"]),
        ("component", "x", []),
        ("release", "app==2.6", ["app==2.6.5", "app==2.6.1", "app==2.6.0"]),
        ("release", "cud", ["cuda==12.0.0", "cuda==11.2.2", "cuda==11.2.0", "cuda==11.1"]),
        ("release", "cuda==12", ["cuda==12.0.0"]),
        ("release", "cuda=", ["cuda==12.0.0", "cuda==11.2.2", "cuda==11.2.0", "cuda==11.1"]),
        ("release", "nothing==1", []),
        ("fact", "nv", ["nvidia-products/8.6", "nvidia-products/8.9", "nvidia-products/gfx942"]),
        ("fact", "s", ["s"]),
        ("fact", "s#", ["s#gcc"]),
        ("fact", "app==2.7", ["app==2.7.0"]),
        ("arch", "sm", ["sm_86", "sm_80"]),
        ("device", "8", ["8.9", "8.6"]),
        ("distro", "", []),
        ("code", "TM", []),
        ("nonsense", "", []),
    ],
)
def test_what_a_shell_offers(kind: str, prefix: str, wanted: list[str]) -> None:
    assert names(open_index([], os.environ), kind, prefix) == wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("RTX 3090", [("8.6", "GeForce RTX 3090")]),
        ("nvidia geforce rtx 3080 ti", [("8.6", "GeForce RTX 3080 Ti")]),
        ("RTX A5000", [("8.6", "RTX A5000")]),
        ("A40", [("8.6", "A40")]),
        ("RTX 4070", [("8.9", "GeForce RTX 4070")]),
        ("mi300x", [("gfx942", "Instinct MI300X")]),
        ("RTX", []),
        ("RTX 3091", []),
        ("RTX 2080", []),
        ("RTX 4090 SUPER", []),
        ("", []),
        ("NVIDIA", []),
    ],
)
def test_devices_by_the_names_of_products(
    tmp_path: Path, name: str, wanted: list[tuple[str, str]]
) -> None:
    made = index.Index("", in_memory(writer.write(compiled(tmp_path, TEXT), {})))
    assert products.find(made, name) == wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("RTX 30", ["GeForce RTX 3090", "GeForce RTX 3080 Ti"]),
        ("RTX 3091", ["GeForce RTX 3090", "GeForce RTX 4090", "GeForce RTX 3080 Ti"]),
        ("mi300", ["Instinct MI300X"]),
        ("L4", ["L40"]),
        ("toaster", []),
        ("NVIDIA", []),
    ],
)
def test_names_that_are_nearest(tmp_path: Path, name: str, wanted: list[str]) -> None:
    made = index.Index("", in_memory(writer.write(compiled(tmp_path, TEXT), {})))
    assert products.nearest(name, products.names(made)) == wanted


def test_all_product_names(tmp_path: Path) -> None:
    made = index.Index("", in_memory(writer.write(compiled(tmp_path, TEXT), {})))
    assert "A40" in products.names(made)
    assert len(products.names(made)) == 8


@pytest.mark.process
def test_importing_the_package_imports_nothing_else() -> None:
    import subprocess

    code = "import sys, toolmatrix.factbase; print(*sorted(m for m in sys.modules if 'toolmatrix' in m or m == 'yaml'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["toolmatrix", "toolmatrix.factbase"]
