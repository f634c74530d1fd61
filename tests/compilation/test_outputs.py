"""What cleaning after a real build leaves; the law of outputs itself is in `laws/outputs.py`."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.compilation.laws.outputs import broken
from tests.compilation.real import nvcc, program
from toolmatrix.compilation import parse_log
from toolmatrix.compilation.drivers.dry_run import dry_run
from toolmatrix.compilation.replay import ninja, replay

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.long
@pytest.mark.process
@pytest.mark.slow
def test_cleaning_after_a_device_link_of_two_archs_leaves_the_objects(tmp_path: Path) -> None:
    ninja_program, driver = program("ninja"), nvcc()
    archs = [f"-gencode=arch=compute_{one},code=sm_{one}" for one in (75, 80)]
    (tmp_path / "a.cu").write_text(
        "__device__ int twice(int);\n__global__ void k(int *p) { *p = twice(*p); }\n"
    )
    (tmp_path / "b.cu").write_text("__device__ int twice(int x) { return 2 * x; }\n")
    subprocess.run([driver, "-dc", *archs, "a.cu", "b.cu"], cwd=tmp_path, check=True)
    objects = {name: (tmp_path / name).read_bytes() for name in ("a.o", "b.o")}
    dry = dry_run(["a.o", "b.o"], [*archs, "-dlink", "-o", "dlink.o"], driver, cwd=tmp_path)
    (plan,) = parse_log(dry.text.split("\n")).plans
    assert broken(plan) == []
    (tmp_path / "build.ninja").write_text(ninja(replay(plan, work=dry.work)))
    for words in ([], ["-t", "clean"]):
        subprocess.run([ninja_program, *words], cwd=tmp_path, check=True, capture_output=True)
        assert (tmp_path / "dlink.o").exists() == (not words)
        assert {name: (tmp_path / name).read_bytes() for name in objects} == objects
