"""How long the engine takes for adversarial problems: median CPU milliseconds, conflicts, answer.

    python benchmarks/engine.py [NAME...]

A name is the start of one in the table. It needs the package to be importable, and nothing else.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from statistics import median
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.solve.generate import puzzles
from toolmatrix.solve.engine import searched, solve

RUNS = 5
BAR = 200.0
"""Milliseconds above which a line is marked."""


def main(names: tuple[str, ...]) -> None:
    print(f"{'problem':<18}{'variables':>10}{'nogoods':>9}{'ms':>9}{'conflicts':>11}  answer")
    for name, problem in puzzles().items():
        if names and not name.startswith(names):
            continue
        times: list[float] = []
        for _ in range(RUNS):
            gc.collect()
            start = process_time()
            solve(problem)
            times.append((process_time() - start) * 1000)
        search = searched(problem)
        size = f"{len(problem.sizes):>10}{len(problem.nogoods):>9}"
        answer = "none" if search.failed else "one"
        slow = "  slow" if median(times) > BAR else ""
        print(f"{name:<18}{size}{median(times):>9.1f}{len(search.antecedents):>11}  {answer}{slow}")


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
