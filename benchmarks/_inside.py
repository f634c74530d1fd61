"""Measures inside one warm process, without the start of an interpreter.

Run by `resolve.py` with the interpreter that toolmatrix is installed for: `_inside.py RUNS FOLDER SIZES`. Prints JSON.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from _asked import ask
from _measure import Spread, mean, spread
from _prepare import matrix

from toolmatrix.cli import COLLECT_EVERY
from toolmatrix.factbase.store import open_index
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.engine import Problem, solve
from toolmatrix.solve.resolve import resolve

REAL = (
    "tensorflow==2.6.5",
    "tensorflow==2.6.5 --target x86,arm,amd --align tensorflow,python",
    "tensorflow==1.15.5 --arch sm_70",
    "tensorflow==2.6.5 python==3.12",
)
SEEDS = (1, 2, 3)


def timed(work: Callable[[], object], runs: int) -> Spread:
    """CPU milliseconds of a piece of work, after a run that does not count."""
    work()
    found = []
    for _ in range(runs):
        start = time.process_time()
        work()
        found.append((time.process_time() - start) * 1000)
    return spread(found)


def request(words: str, overlays: Sequence[str], runs: int) -> dict[str, Any]:
    """Resolving from an unopened index, with an open one, and the engine alone; and how much the request reaches."""
    env = dict(os.environ)
    index = open_index(overlays, env)
    asked = ask(index, words.split())
    assembly = Assembly(index, asked)
    problem = assembly.problem()
    return {
        "words": words,
        "variables": len(problem.sizes),
        "whole": timed(lambda: resolve(open_index(overlays, env), asked), runs),
        # A request that is the same object as the last one is not put together again.
        "held": timed(lambda: resolve(index, asked.replace()), runs),
        "open": timed(lambda: open_index(overlays, env), runs),
        "solve": engine(problem, runs),
    }


def growth(times: int, runs: int) -> dict[str, Any]:
    """The engine alone on generated matrices of one size, the mean over several of them."""
    problems = [matrix(times, seed) for seed in SEEDS]
    return {
        "nogoods": sum(len(problem.nogoods) for problem in problems) / len(problems),
        "solve": mean([engine(problem, runs) for problem in problems]),
    }


def engine(problem: Problem, runs: int) -> Spread:
    """The engine alone on one problem."""
    return timed(lambda: solve(problem), runs)


def main(runs: int, folder: str, sizes: Sequence[int]) -> None:
    """Measure everything, looking for garbage as rarely as the program does."""
    gc.set_threshold(COLLECT_EVERY)
    wide = {
        f"x{size}": request(REAL[0], [os.path.join(folder, f"x{size}.yaml")], runs)
        for size in sizes
    }
    real = [request(words, (), runs) for words in REAL]
    grown = {f"x{size}": growth(size, max(3, runs // size)) for size in sizes}
    print(json.dumps({"real": real, "wide": wide, "growth": grown}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], [int(size) for size in sys.argv[3].split(",")])
