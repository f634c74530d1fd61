"""How fast logs are read, and how a replay compares with nvcc itself; benchmarks/README.md says how to read it.

    python benchmarks/stages.py [--quick] [--json FILE]

It installs this checkout and nvcc into a temporary environment, so it needs a package index, g++ and some minutes;
it needs no GPU, and everything it measures runs offline.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import _stagelog
from _measure import Cost, Place, Spread, spread

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "blocks.cu"
ARCHS = ("75", "80", "86", "90", "100", "120")
BUDGET = 360
"""Seconds after which no further round is begun."""

FASTEST = 20
"""MB of a log that have to be read in a second of CPU time."""
MEMORY = 10
"""How many times the size of a log reading it may take."""


class Plan(NamedTuple):
    """How much to measure: lines of the log, readings of it, archs, rounds."""

    lines: int
    readings: int
    archs: int
    rounds: int


FULL = Plan(100_000, 5, len(ARCHS), 5)
QUICK = Plan(10_000, 2, 2, 1)


class Bench:
    """The environment with everything installed, and the folder where everything runs."""

    def __init__(self, work: Path, plan: Plan) -> None:
        self.work = work
        self.plan = plan
        self.python = str(work / "env" / "bin" / "python")
        empty = work / "empty"
        empty.mkdir()
        env = {"HOME": str(empty), "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        self.place = Place(str(empty), env)

    def install(self) -> None:
        """Make the environment, from the package index that pip is configured for."""
        tell("installing")
        subprocess.run([sys.executable, "-m", "venv", str(self.work / "env")], check=True)
        wanted = [f"{HERE.parent}[nvcc]", "nvidia-cuda-cccl"]
        subprocess.run([self.python, "-m", "pip", "install", "-q", *wanted], check=True)

    @property
    def nvcc(self) -> str:
        """The nvcc of the environment."""
        return str(next(self.work.glob("env/lib/python*/site-packages/nvidia/*/bin/nvcc")))

    def script(self, name: str, *arguments: str) -> list[str]:
        """The command of one of the scripts beside this one."""
        return [self.python, str(HERE / name), *arguments]


def tell(what: str) -> None:
    """Say on standard error what goes on."""
    print(f"... {what}", file=sys.stderr)


def reading(bench: Bench) -> dict[str, Any]:
    """Speed and memory of reading a long log."""
    tell("reading a log")
    path = bench.work / "long.log"
    path.write_text(_stagelog.log(bench.plan.lines), encoding="utf-8")
    size = path.stat().st_size
    found = json.loads(
        bench.place.output(bench.script("_parse.py", str(path), str(bench.plan.readings)))
    )
    peak = bench.place.peak(bench.script("_parse.py", str(path), "1"), 3)
    ground = bench.place.peak(bench.script("_parse.py", str(path), "0"), 3)
    speeds = [size / 1e6 / seconds for seconds in found["seconds"]]
    return {
        "lines": bench.plan.lines,
        "MB": size / 1e6,
        "stages": found["stages"],
        "MB/s": spread(speeds),
        "stages/s": spread([found["stages"] / seconds for seconds in found["seconds"]]),
        "peak MiB": peak,
        "ground MiB": ground,
        "times the log": peak.median * (1 << 20) / size,
    }


def flags(count: int) -> list[str]:
    """A cubin for each of the last archs, and PTX of the last."""
    archs = ARCHS[-count:]
    found = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs]
    return [*found, f"-gencode=arch=compute_{archs[-1]},code=compute_{archs[-1]}", "-c"]


def building(bench: Bench) -> dict[str, Any]:
    """nvcc and our replay, with one and two jobs, in turn."""
    wanted = flags(bench.plan.archs)
    source = Path(bench.place.directory, SOURCE.name)
    source.write_text(SOURCE.read_text(encoding="utf-8"), encoding="utf-8")
    commands = {
        "nvcc": [bench.nvcc, *wanted, source.name],
        "nvcc --threads 2": [bench.nvcc, "--threads=2", *wanted, source.name],
        "replay, 1 job": bench.script("_replay.py", bench.nvcc, "1", source.name, *wanted),
        "replay, 2 jobs": bench.script("_replay.py", bench.nvcc, "2", source.name, *wanted),
    }
    tell("the first of each, which does not count")
    computed = json.loads(bench.place.output(commands["replay, 1 job"]))
    begun = time.monotonic()
    rounds: list[dict[str, Cost]] = []
    loads: list[float] = []
    while len(rounds) < bench.plan.rounds and (not rounds or time.monotonic() - begun < BUDGET):
        tell(f"round {len(rounds) + 1}")
        loads.append(os.getloadavg()[0])
        rounds.append({name: bench.place.cost(command) for name, command in commands.items()})
    walls = {name: [one[name].wall for one in rounds] for name in commands}
    return {
        "archs": bench.plan.archs,
        "rounds": len(rounds),
        "load": spread([*loads, os.getloadavg()[0]]),
        "wall": {name: spread(values) for name, values in walls.items()},
        "cpu": {name: spread([one[name].cpu for one in rounds]) for name in commands},
        "ratios": {
            f"{ours} / {theirs}": ratio(walls[ours], walls[theirs])
            for ours, theirs in (
                ("replay, 1 job", "nvcc"),
                ("replay, 2 jobs", "nvcc --threads 2"),
                ("replay, 2 jobs", "nvcc"),
                ("nvcc --threads 2", "nvcc"),
            )
        },
        "computed": computed,
    }


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Ratios within each round."""
    return spread([one / other for one, other in zip(ours, theirs, strict=True)])


def shown(part: Spread) -> str:
    """Median, and in brackets the least and the most."""
    digits = 2 if part.median < 10 else 1 if part.median < 100 else 0
    return f"{part.median:.{digits}f} [{part.least:.{digits}f}-{part.most:.{digits}f}]"


def verdict(met: bool) -> str:
    return "met" if met else "NOT MET"


def reading_lines(found: dict[str, Any]) -> list[str]:
    """The table of reading."""
    speed, times = found["MB/s"], found["times the log"]
    before = found["ground MiB"].median
    return [
        f"a log of {found['lines']} lines, {found['MB']:.1f} MB, {found['stages']} stages",
        f"  read, MB per CPU second      {shown(speed):24} bar {FASTEST}   {verdict(speed.median >= FASTEST)}",
        f"  read, stages per CPU second  {shown(found['stages/s'])}",
        f"  peak memory, MiB             {shown(found['peak MiB']):24} with {before:.1f} before reading",
        f"  peak memory, times the log   {times:<24.1f} bar {MEMORY}   {verdict(times <= MEMORY)}",
    ]


def building_lines(found: dict[str, Any]) -> list[str]:
    """The tables of building."""
    lines = [
        f"{SOURCE.name} for {found['archs']} archs, {found['rounds']} rounds in turn, load {shown(found['load'])}",
        f"  {'':34}{'wall s':24}CPU s",
    ]
    lines += [
        f"  {name:34}{shown(wall):24}{shown(found['cpu'][name])}"
        for name, wall in found["wall"].items()
    ]
    bar = "replay, 2 jobs / nvcc --threads 2"
    lines += [
        f"  {name:34}{shown(part):24}"
        + (f"bar 1.0  {verdict(part.median <= 1)}" if name == bar else "")
        for name, part in found["ratios"].items()
    ]
    lines.append("computed from the CPU seconds of the stages, run one by one")
    lines += [
        f"  {one['cores']:2} cores  {one['seconds']:6.1f} s  {one['memory'] / (1 << 20):5.0f} MiB"
        for one in found["computed"]["schedules"]
    ]
    lines.append(f"  critical path  {found['computed']['critical_seconds']:.1f} s")
    return [line.rstrip() for line in lines]


def main() -> None:
    """Install, measure, print."""
    parser = argparse.ArgumentParser(description="How fast logs are read and plans replayed.")
    parser.add_argument("--quick", action="store_true", help="little of each: to see that it works")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there, too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(Path(work), QUICK if asked.quick else FULL)
        bench.install()
        release = bench.place.output([bench.nvcc, "--version"]).splitlines()[-2]
        found = {"reading": reading(bench), "building": building(bench)}
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"{os.cpu_count()} cores, load {load}; python {platform.python_version()}; {release}\n")
    print("\n".join([*reading_lines(found["reading"]), "", *building_lines(found["building"])]))
    if asked.json:
        Path(asked.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
