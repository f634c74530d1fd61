"""How long rendering takes, beside HPCCM, and how the files of both compare; benchmarks/README.md says how to read it.

    python benchmarks/render.py [--quick] [--files DIR]

It installs this checkout and what it is compared with into a temporary environment, so it needs a package index; what
it measures runs offline.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from _measure import Spread
from resolve import FULL, HERE, Bench, Line, machine, table, tell

CASE = {"base-image": "nvidia/cuda:12.4.1-devel-ubuntu22.04", "gcc": "11", "python": "3.11"}
"""CUDA 12.4, GCC 11, Python 3.11 and CMake, which both take as it comes."""

LAYER = re.compile(r"^(RUN|COPY|ADD)\b", re.MULTILINE)
BAR = 5
"""Milliseconds that a file may take."""


class Size(NamedTuple):
    """What can be counted about a Dockerfile; `rules` are those that hadolint names, with how often."""

    lines: int
    layers: int
    findings: int
    rules: Mapping[str, int]


def measured(found: Mapping[str, Any]) -> list[Line]:
    """The lines about time: each file by itself, and all files of a cell beside the one of HPCCM."""
    lines = []
    for name, what in (("one", "Dockerfile and check"), ("all", "every format")):
        one, cell, ratio = (Spread(*found[part][name]) for part in ("file", "cell", "ratio"))
        theirs = Spread(*found["cell"]["theirs"])
        lines.append(Line(f"{what}: a file", "ms", one, bar=BAR))
        lines.append(
            Line(f"{what}: the {found['files'][name]} files of a cell", "ms", cell, theirs, ratio)
        )
    return lines


def written(bench: Bench, folder: Path) -> tuple[Path, Path]:
    """The Dockerfiles of the case: ours and HPCCM's."""
    theirs = folder / "hpccm.Dockerfile"
    theirs.write_text(
        bench.place.output([bench.python, str(HERE / "_hpccm.py"), *CASE.values()]),
        encoding="utf-8",
    )
    asked = [f"{name}=={version}" for name, version in CASE.items()]
    recipe = f"--recipe={HERE / 'cuda-tools.yaml'}"
    bench.place.output(bench.toolmatrix("render", "cuda", *asked, recipe, f"--output={folder}"))
    return folder / "x86.Dockerfile", theirs


def size(bench: Bench, file: Path) -> Size:
    """Count."""
    text = file.read_text(encoding="utf-8")
    hadolint = [str(bench.bin / "hadolint"), "--no-fail", "--format=json", str(file)]
    codes = [one["code"] for one in json.loads(bench.place.output(hadolint))]
    rules = {code: codes.count(code) for code in sorted(set(codes))}
    return Size(text.count("\n"), len(LAYER.findall(text)), len(codes), rules)


def counted(ours: Size, theirs: Size) -> list[str]:
    """The files of the case, side by side."""
    rows = [("", "ours", "HPCCM")]
    pairs = ((name, getattr(ours, name), getattr(theirs, name)) for name in Size._fields)
    rows += ((name, _said(one), _said(other)) for name, one, other in pairs)
    return [f"{what:<10}{one:<8}{other}".rstrip() for what, one, other in rows]


def _said(part: int | Mapping[str, int]) -> str:
    if isinstance(part, int):
        return str(part)
    return ", ".join(f"{count} {code}" for code, count in part.items()) or "-"


def main() -> None:
    """Install, measure, print."""
    parser = argparse.ArgumentParser(description="How long rendering takes, beside HPCCM.")
    parser.add_argument("--quick", action="store_true", help="few cells: to see that it works")
    parser.add_argument("--files", metavar="DIR", help="keep the files of the one case there")
    options = parser.parse_args()
    cells, rounds = ("50", "3") if options.quick else ("1000", "9")
    with tempfile.TemporaryDirectory(prefix="toolmatrix-bench-") as work:
        bench = Bench(Path(work), FULL)
        bench.install()
        folder = Path(options.files or Path(work) / "files").resolve()
        folder.mkdir(parents=True, exist_ok=True)
        sizes = [size(bench, file) for file in written(bench, folder)]
        tell("rendering")
        found = bench.script("_rendering.py", cells, rounds)
        versions = bench.place.output([bench.python, "-m", "pip", "list", "--format=freeze"])
    about = machine()
    print("; ".join(f"{name} {value}" for name, value in about.items()))
    print(
        "\n".join(line for line in versions.splitlines() if line.startswith(("hpccm", "hadolint")))
    )
    print(f"{found['cells']} cells, {rounds} rounds, CPU\n")
    print(table(measured(found)))
    print("\n" + "\n".join(counted(*sizes)))


if __name__ == "__main__":
    main()
