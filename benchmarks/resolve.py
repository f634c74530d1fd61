"""How long `toolmatrix resolve` takes, beside other resolvers; benchmarks/README.md says how to read it.

    python benchmarks/resolve.py [--quick] [--json FILE]

It installs this checkout and what it is compared with into a temporary environment, so it needs a package index and a
few minutes; everything it measures runs offline.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from _measure import Pairs, Place, Spread

HERE = Path(__file__).resolve().parent
QUESTION = ("resolve", "tensorflow==2.6.5")
RIGSOLVE = ("solve", "--want", "torch==2.8.0", "--target", "A100,driver=570.54,python=3.11,linux")
TENFOLD = 1.1
"""How much longer a request may take where the matrix has ten times the facts, which it does not reach."""
FROM = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from toolmatrix.cli import script; script()"
)
"""Runs the package in a folder."""
NOISE = 1.2
"""How far a growth ratio may be above 1: two measurements of the same thing differ by that much on shared cores."""


class Plan(NamedTuple):
    """How much to measure: pairs of processes, of slow ones, runs inside a process, sizes of generated matrices."""

    pairs: int
    slow: int
    inside: int
    sizes: tuple[int, ...]


FULL = Plan(25, 5, 50, (1, 4, 16, 64))
QUICK = Plan(5, 1, 10, (1, 4, 16))


class Line(NamedTuple):
    """One line of the table. `bar` is what the ratio, or the first value where there is no ratio, must not exceed."""

    what: str
    unit: str
    ours: Spread
    theirs: Spread | None = None
    ratio: Spread | None = None
    bar: float | None = None

    @property
    def judged(self) -> float:
        return (self.ratio or self.ours).median

    @property
    def verdict(self) -> str:
        if self.bar is None:
            return ""
        return "met" if self.judged <= self.bar else "NOT MET"


class Bench:
    """The environment with everything installed, and the folder with everything prepared."""

    def __init__(self, work: Path, plan: Plan) -> None:
        self.work = work
        self.plan = plan
        self.bin = work / "env" / "bin"
        self.python = str(self.bin / "python")
        self.prepared: dict[str, Any] = {}
        empty = work / "empty"
        empty.mkdir()
        env = {
            "HOME": str(work / "home"),
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "UV_CACHE_DIR": str(work / "uv-cache"),
            "UV_NO_CONFIG": "1",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        self.place = Place(str(empty), env)

    def install(self) -> None:
        """Make the environment, from the package index that pip is configured for."""
        tell("installing")
        subprocess.run([sys.executable, "-m", "venv", str(self.work / "env")], check=True)
        # In two steps: the launcher of a command is written by the pip that installs it, and that of an older pip
        # imports more than the command does.
        for wanted in (["--upgrade", "pip"], [f"{HERE.parent}[bench]"]):
            subprocess.run([self.python, "-m", "pip", "install", "-q", *wanted], check=True)

    def prepare(self) -> None:
        """Write the questions, and let toolmatrix read the generated matrices once, as its first use would."""
        tell("writing the questions")
        sizes = ",".join(map(str, self.plan.sizes))
        self.prepared = self.script("_prepare.py", str(self.work), sizes, "16")
        for size in self.plan.sizes:
            tell(f"compiling x{size}")
            self.place.cost(self.toolmatrix(*QUESTION, "--matrix", self.matrix(size)))

    def copies(self) -> list[list[str]]:
        """The question to the installed package, and to another one whose index has ten times the facts."""
        found = []
        where = "import toolmatrix; print(toolmatrix.__path__[0])"
        installed = self.place.output([self.python, "-c", where]).strip()
        for name in ("one", "ten"):
            package = self.work / name / "toolmatrix"
            shutil.copytree(installed, package)
            found.append([self.python, "-c", FROM, str(package.parent), *QUESTION])
        self.place.output([self.python, str(HERE / "_tenfold.py"), str(package / "data" / "index")])
        return found

    def script(self, name: str, *arguments: str) -> Any:
        """The JSON printed by one of the scripts beside this one."""
        return json.loads(self.place.output([self.python, str(HERE / name), *arguments]))

    def matrix(self, size: int) -> str:
        return str(self.work / f"x{size}.yaml")

    def toolmatrix(self, *arguments: str) -> list[str]:
        return [str(self.bin / "toolmatrix"), *arguments]

    def uv(self, store: str, question: str, *options: str) -> list[str]:
        """The interpreter is named: looking for one would cost uv more than resolving."""
        local = [
            "--offline",
            "--no-index",
            "--find-links",
            str(self.work / store),
            "--python",
            self.python,
        ]
        command = [str(self.bin / "uv"), "pip", "compile", "-q", *local, *options]
        return [*command, str(self.work / f"{question}.in")]

    def pip(self) -> list[str]:
        local = ["--dry-run", "-q", "--no-index", "--find-links", str(self.work / "real")]
        return [self.python, "-m", "pip", "install", *local, "-r", str(self.work / "real.in")]

    def versions(self) -> dict[str, str]:
        """What is compared, as each names itself."""
        names = ("toolmatrix", "uv", "pip", "rigsolve")
        found = {name: self.place.output([str(self.bin / name), "--version"]) for name in names}
        return {name: said.partition(" from ")[0].strip() for name, said in found.items()}


def tell(what: str) -> None:
    """Say on standard error what goes on."""
    print(f"... {what}", file=sys.stderr)


def machine() -> dict[str, str]:
    """The processor, how many of them, how busy, and the interpreter."""
    cpu = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next(
            line.partition(":")[2].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        pass
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    return {
        "cpu": cpu,
        "cores": str(os.cpu_count()),
        "load": load,
        "python": platform.python_version(),
    }


def compared(what: str, pairs: tuple[Pairs, Pairs], bar: float | None) -> list[Line]:
    """The lines of a comparison: CPU and wall."""
    return [
        Line(
            f"{what}, {name}",
            "ms",
            scaled(part.ours, 1000),
            scaled(part.theirs, 1000),
            part.ratio,
            bar,
        )
        for name, part in zip(("CPU", "wall"), pairs, strict=True)
    ]


def scaled(part: Spread, factor: float) -> Spread:
    """The same in another unit."""
    return Spread(*(value * factor for value in part))


def processes(bench: Bench) -> list[Line]:
    """Whole processes: the real question, and the start alone."""
    place, plan = bench.place, bench.plan
    ours = bench.toolmatrix(*QUESTION)
    found = []
    for what, theirs, count, bar in (
        ("resolve / uv warm", bench.uv("real", "real"), plan.pairs, 1.0),
        ("resolve / uv warm, no choices", bench.uv("plain", "real"), plan.pairs, None),
        ("resolve / uv cold", bench.uv("real", "real", "--no-cache"), plan.pairs, None),
        ("resolve / rigsolve", [str(bench.bin / "rigsolve"), *RIGSOLVE], plan.pairs, 0.2),
    ):
        tell(what)
        found += compared(what, place.pairs(ours, theirs, count), bar)
    tell("ten times the facts")
    one, ten = bench.copies()
    found += compared("ten times the facts / as it is", place.pairs(ten, one, plan.pairs), TENFOLD)
    tell("start")
    bare = [bench.python, "-c", "pass"]
    found += compared("resolve / python -c pass", place.pairs(ours, bare, plan.pairs), 3.0)
    found += compared(
        "--version / python -c pass",
        place.pairs(bench.toolmatrix("--version"), bare, plan.pairs),
        2.5,
    )
    tell("memory")
    peak = place.peak(ours, 3), place.peak(bench.uv("real", "real"), 3)
    return [*found, Line("peak memory, resolve and uv", "MiB", peak[0], peak[1], bar=40)]


def larger(bench: Bench) -> list[Line]:
    """Whole processes on generated matrices in which everything is asked for."""
    found: list[Line] = []
    for size in bench.plan.sizes:
        tell(f"whole x{size}")
        asked = (bench.work / f"x{size}.in").read_text(encoding="utf-8").split()
        ours = bench.toolmatrix("resolve", *asked, "--matrix", bench.matrix(size))
        if size == 16:
            theirs = bench.uv("x16", "x16")
            found += compared(
                "all of x16 / uv warm", bench.place.pairs(ours, theirs, bench.plan.pairs), 0.5
            )
        else:
            found.append(
                Line(
                    f"all of x{size}, CPU",
                    "ms",
                    scaled(bench.place.spread(ours, bench.plan.slow), 1000),
                )
            )
    return found


def inside(measured: Mapping[str, Any]) -> list[Line]:
    """One warm process: real requests, growth with what is reached, growth with what is not."""
    found = []
    for part in measured["real"]:
        words = f"{part['words']} ({part['variables']} variables)"
        found.append(Line(f"in process: {words}", "ms", Spread(*part["held"]), bar=10))
        found.append(Line("    and reading its facts", "ms", Spread(*part["whole"])))
        found.append(Line("    the engine alone", "ms", Spread(*part["solve"])))
    first = measured["growth"]["x1"]
    for size, part in measured["growth"].items():
        times = part["nogoods"] / first["nogoods"]
        grown = scaled(Spread(*part["solve"]), 1 / first["solve"][0] / times)
        bar = None if size == "x1" else NOISE
        found.append(
            Line(
                f"engine, all of {size}; per nogood / x1",
                "ms",
                Spread(*part["solve"]),
                None,
                grown,
                bar,
            )
        )
    first = measured["wide"]["x1"]
    for size, part in measured["wide"].items():
        bar = None if size == "x1" else NOISE
        grown = scaled(Spread(*part["whole"]), 1 / first["whole"][0])
        found.append(
            Line(f"{size} not reached; / x1", "ms", Spread(*part["whole"]), None, grown, bar)
        )
        found.append(Line("    opening the index", "ms", Spread(*part["open"])))
    return found


def table(lines: Sequence[Line]) -> str:
    """The lines, aligned."""
    rows = [("", "", "ours", "theirs", "ratio", "bar", "")]
    for line in lines:
        bar = "" if line.bar is None else f"{line.bar:g}"
        cells = (shown(line.ours), shown(line.theirs), shown(line.ratio), bar, line.verdict)
        rows.append((line.what, line.unit, *cells))
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return "\n".join("  ".join(row).rstrip() for row in padded)


def described(about: Mapping[str, Any]) -> list[str]:
    """What was measured on what, in a few lines."""
    found = [
        "; ".join(f"{name} {value}" for name, value in about["machine"].items())
        + f"; after {about['load after']}"
    ]
    found += about["compared"].values()
    for name, made in about["made"].items():
        found.append(f"{name}: " + ", ".join(f"{value} {part}" for part, value in made.items()))
    return [*found, ""]


def shown(part: Spread | None) -> str:
    """Median, and in brackets the least and the most, in as many digits as are of use."""
    if part is None:
        return ""
    digits = 2 if part.median < 10 else 1 if part.median < 100 else 0
    return f"{part.median:.{digits}f} [{part.least:.{digits}f}-{part.most:.{digits}f}]"


def pip_answer(bench: Bench) -> tuple[list[Line], list[str]]:
    """Lines about pip, which is slow; or, where it gives up, what it said."""
    tell("pip")
    ours = bench.toolmatrix(*QUESTION)
    try:
        return compared(
            "resolve / pip --dry-run", bench.place.pairs(ours, bench.pip(), bench.plan.slow), None
        ), []
    except SystemExit as error:
        return [], ["pip gives no answer: " + str(error).strip().splitlines()[-1]]


def checked(bench: Bench) -> str:
    """What uv answered, held against the facts and against our answer."""
    said = []
    for name in ("real", "x16"):
        answer = bench.work / f"{name}.out"
        answer.write_text(bench.place.output(bench.uv(name, name)), encoding="utf-8")
        part = bench.script("_check.py", str(bench.work / f"{name}.json"), str(answer))
        said.append(
            f"{name}: {part['violated']} facts violated, {part['same']} of {part['components']} as ours"
        )
    return "uv's answers, by our facts: " + "; ".join(said)


def main() -> None:
    """Install, prepare, measure, print."""
    parser = argparse.ArgumentParser(
        description="How long `toolmatrix resolve` takes, beside other resolvers."
    )
    parser.add_argument("--quick", action="store_true", help="few runs: to see that it works")
    parser.add_argument("--json", metavar="FILE", help="write the numbers there, too")
    options = parser.parse_args()
    plan = QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory(prefix="toolmatrix-bench-") as work:
        bench = Bench(Path(work), plan)
        bench.install()
        bench.prepare()
        about: dict[str, Any] = {
            "machine": machine(),
            "compared": bench.versions(),
            "made": bench.prepared,
        }
        pip_lines, pip_notes = pip_answer(bench)
        lines = [*processes(bench), *pip_lines, *larger(bench)]
        tell("inside one process")
        lines += inside(
            bench.script("_inside.py", str(plan.inside), work, ",".join(map(str, plan.sizes)))
        )
        notes = [checked(bench), *pip_notes]
        about["load after"] = machine()["load"]
    print("\n".join([*described(about), table(lines), "", *notes]))
    if options.json:
        numbers = [line._asdict() | {"verdict": line.verdict} for line in lines]
        text = json.dumps(about | {"lines": numbers, "notes": notes}, indent=1)
        Path(options.json).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
