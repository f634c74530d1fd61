"""Laws of the built-in matrix: it compiles, everything in it is sourced, and it agrees with what was captured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests import matrix
from toolmatrix import resources
from toolmatrix.factbase import evidence
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.load import files

FRONT = str(Path(resources.matrix_root()) / "matrix.yaml")
PROBE = Path(__file__).parent.parent / "fixtures" / "cuda_arch_probe.json"
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
REGISTRY = re.compile(
    r"\b(pypi|pythonhosted|anaconda|conda|registry[\w-]*|npmjs|crates|rubygems|maven|docker|quay|[gn]vcr|g[hc]*r)"
    r"\.(org|io|com|docker)\b"
)
IMAGE = re.compile(
    r'image: ("[^"]*"|[\w./:-]+)|- \["\{,[\w./,-]+/\}[^"]*"|docker_package: docker\.io'
)
"""What a build begins from is called as the builder takes it, with its host; and so are images in lists of them.
Debian calls its package of Docker so."""

# Rows of the probe that the matrix does not follow, with the reason.
NOT_FOLLOWED = {
    "the installed CUDA 13.0 toolkit: nvcc --list-gpu-code": (
        "nvcc's list leaves out the a and f variants that ptxas of the same toolkit accepts"
    ),
}


@pytest.fixture(scope="module")
def index() -> Index:
    return matrix.index()


def test_every_fact_has_a_source_evidence_and_the_day_it_was_read(index: Index) -> None:
    facts, sources = [*map(index.record, index.ids.values())], index.sources()
    assert len(facts) > 1000
    for fact in facts:
        assert fact.evidence in evidence.WORDS, fact.id
        assert DAY.fullmatch(sources[fact.source].read), fact.id


def test_a_record_is_found_by_its_id(index: Index) -> None:
    ids = [*index.ids.items()]
    some = ids[:: len(ids) // 500]
    # Names that JSON quotes, or that are those of releases in the names of rows.
    some += [(id, number) for id, number in ids if not id.isascii() or '"' in id or "\\" in id]
    assert {id: index.number(id) for id, _ in some} == dict(some)


def test_every_source_says_what_and_where_it_is(index: Index) -> None:
    for name, source in index.sources().items():
        assert source.title.strip(), name
        assert source.at.strip(), name


def test_no_file_names_the_host_of_a_registry() -> None:
    found = [
        f"{Path(path).name}:{number}"
        for path in files(FRONT)
        for number, line in enumerate(Path(path).read_text().splitlines(), 1)
        if REGISTRY.search(IMAGE.sub("", line))
    ]
    assert found == []


def test_every_component_has_releases(index: Index) -> None:
    assert [name for name in index.header["components"] if not index.component(name).versions] == []


def known_archs(index: Index, release: str) -> set[str]:
    """The sm names that a release of the toolkit makes code for."""
    bit = index.scale("cuda").bit(release)
    # What makes code for fewer with it says nothing of the toolkit.
    binding = [part.allowed for part in index.component("cuda").about("arch", bit)]
    assert binding, f"nothing says which archs cuda {release} knows"
    return {
        name
        for place, name in enumerate(index.component("arch").versions)
        if name.startswith("sm_") and all(mask >> place + 1 & 1 for mask in binding)
    }


def probe() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(PROBE.read_text())
    return rows


def test_the_probe_is_whole() -> None:
    rows = probe()
    assert len(rows) == 56
    assert {row["source"] for row in rows} >= set(NOT_FOLLOWED)


@pytest.mark.parametrize(
    "row",
    [row for row in probe() if row["source"] not in NOT_FOLLOWED],
    ids=lambda row: f"{row['cuda']}-{row['component_version'] or 'declared'}",
)
def test_the_archs_of_a_toolkit_are_those_captured(index: Index, row: dict[str, Any]) -> None:
    minor = row["cuda"] + "."
    found = [name for name in index.component("cuda").versions if f"{name}.".startswith(minor)]
    assert found
    for release in found:
        assert known_archs(index, release) == set(row["sm_list"].split()), release
