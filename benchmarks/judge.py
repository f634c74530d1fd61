"""How much CPU `toolmatrix judge` takes beside `resolve`, for a folder, and as a file grows.

    python benchmarks/judge.py [--runs N]

It measures the checkout that it belongs to, offline, with this interpreter. The exit code is 1 where a bar is not met.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from _measure import Place, Spread

ROOT = Path(__file__).resolve().parent.parent
# Five lines of which two conflict, as a public file has them.
WRONG = "torch==2.5.0\ntorchaudio==2.2.0\ntransformers\nnumba\nnltk\n"
# Lines of a requirements file, and a command of each Dockerfile: some conflict, most do not.
PINS = (
    "torch==2.5.0",
    "torchvision==0.20.0",
    "torchaudio==2.2.0",
    "numpy==1.26.4",
    "transformers==4.46.0",
    "pandas==2.2.3",
)
FILES = 50
LINES = 40


def lines(count: int) -> str:
    """A Dockerfile of so many commands, each of which installs a package."""
    commands = [f"RUN pip install {PINS[at % len(PINS)]}" for at in range(count)]
    return "\n".join(["FROM python:3.11", *commands, ""])


def row(what: str, spread: Spread, bar: float, unit: str) -> bool:
    """Print a row; whether its bar is met."""
    met = spread.median <= bar
    verdict = "met" if met else "NOT MET"
    print(
        f"{what:<48} {spread.median:7.2f} [{spread.least:.2f}-{spread.most:.2f}] {unit:<5} {bar:g}  {verdict}"
    )
    return met


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "empty").mkdir()
        env = {
            "HOME": folder,
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", f"{folder}/cache"),
        }
        (place / "requirements.txt").write_text(WRONG)
        for number in range(FILES):
            project = place / "fifty" / f"p{number}"
            project.mkdir(parents=True)
            (project / "Dockerfile").write_text(lines(number % 5 + 1))
        for name, count in (("small", LINES), ("large", 4 * LINES)):
            (place / f"{name}.Dockerfile").write_text(lines(count))
        # A refusal ends with 1, which is what is measured here.
        program = "import os; from toolmatrix.cli import main_script; os._exit(main_script() > 1)"
        command = [sys.executable, "-c", program]
        judge, measured = [*command, "judge"], Place(str(place / "empty"), env)
        wrong = measured.pairs(
            [*judge, str(place / "requirements.txt")], [*command, "resolve", "torch"], runs
        )[0]
        fifty = measured.spread([*judge, str(place / "fifty")], max(3, runs // 3))
        growth = measured.pairs(
            [*judge, str(place / "large.Dockerfile")],
            [*judge, str(place / "small.Dockerfile")],
            max(3, runs // 3),
        )[0]
    print(f"{'CPU of':<48} {'median [least-most]':<20}       bar")
    met = [
        row("judge, a wrong file of five lines / resolve", wrong.ratio, 6, "times"),
        row(f"judge, a folder of {FILES} files", fifty, 2, "s"),
        row(f"judge, {4 * LINES} commands / {LINES}", growth.ratio, 5, "times"),
    ]
    print(f"resolve {wrong.theirs.median:.3f} s, judge {wrong.ours.median:.3f} s")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
