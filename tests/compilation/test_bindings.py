"""The graph read from `-###` is the one that `-ccc-print-bindings` tells of, edge by edge."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.compilation.bindings import jobs, trees_of_jobs, trees_of_stages
from tests.compilation.corpus import case, cases
from toolmatrix.compilation import parse

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = {
    **{
        f"clang-{version}__hip-print-bindings": f"clang-{version}__hip-link-two"
        for version in ("13.0.1", "15.0.6", "16.0.6", "19.1.7", "21.1.8", "23.1.4")
    },
    **{
        f"hipcc-{version}__print-bindings": f"hipcc-{version}__link-many-gfx"
        for version in ("5.2.3", "7.0.2")
    },
}


@pytest.mark.parametrize("bindings", PAIRS)
def test_a_dry_run_has_the_edges_of_the_bindings(bindings: str) -> None:
    told = jobs(case(bindings).text)
    assert told
    assert trees_of_stages(parse(case(PAIRS[bindings]).text)) == trees_of_jobs(told)


def test_every_list_of_bindings_in_the_corpus_is_compared() -> None:
    listed = {one.name for one in cases() if one.case.endswith("bindings") and jobs(one.text)}
    # no dry run in the corpus asks hipcc 5.7.1 for the same
    assert listed - PAIRS.keys() == {"hipcc-5.7.1__print-bindings"}


def test_a_list_of_bindings_has_no_stages_and_says_why() -> None:
    plan = parse(case("clang-21.1.8__hip-print-bindings").text)
    assert plan.stages == ()
    assert [one.text for one in plan.diagnostics if one.severity == "note"] == [
        "the log lists phases or bindings, not commands: take it with `-###`"
    ]


ASKED = {
    "two archs": "-c k.hip --offload-arch=gfx906 --offload-arch=gfx90a:xnack+",
    "device code only": "--genco k.hip --offload-arch=gfx906 --offload-arch=gfx90a",
    "a link": "k.hip m.hip --offload-arch=gfx906 -o app",
    "relocatable": "-fgpu-rdc -c k.hip --offload-arch=gfx906 -o k.o",
    "relocatable and linked": "-fgpu-rdc k.hip m.hip --offload-arch=gfx906 -o app",
    "relocatable objects": "-fgpu-rdc a.o b.o --offload-arch=gfx906 --offload-arch=gfx90a -o app",
    "the new driver": "-fgpu-rdc --offload-new-driver k.hip m.hip --offload-arch=gfx906 -o app",
    "host only": "--cuda-host-only -c k.hip --offload-arch=gfx906",
}


@pytest.mark.large
@pytest.mark.process
@pytest.mark.skipif(shutil.which("hipcc") is None, reason="hipcc is not installed")
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_the_installed_hipcc_agrees_with_itself(asked: str, tmp_path: Path) -> None:
    for name in ("k.hip", "m.hip", "a.o", "b.o"):
        (tmp_path / name).write_text("__global__ void k() {}\n")

    def says(how: str) -> str:
        run = subprocess.run(
            ["hipcc", how, *asked.split()],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HIP_PLATFORM": "amd"},
            capture_output=True,
            text=True,
            check=False,
        )
        return run.stderr

    told = jobs(says("-ccc-print-bindings"))
    assert told
    assert trees_of_stages(parse(says("-###"))) == trees_of_jobs(told)
