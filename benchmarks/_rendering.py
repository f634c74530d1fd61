"""Measures rendering inside one warm process, ours and HPCCM's in turn.

Run by `render.py` with the interpreter that both are installed for: `_rendering.py CELLS ROUNDS`. Prints JSON. A cell
is an NVIDIA image with a GCC and a Python that its distribution has; both are given the three.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import _hpccm
from _asked import ask
from _measure import spread

from toolmatrix import __version__
from toolmatrix.errors import NoImage
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.store import open_index
from toolmatrix.lockfile import lock_file
from toolmatrix.lockfile import model as locks
from toolmatrix.lockfile.model import DEFAULT, Lock
from toolmatrix.recipes import read as recipes
from toolmatrix.rendering import dockerfile, formats, make
from toolmatrix.rendering.model import Choices, Job
from toolmatrix.report import answer
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.engine.conflict import combinations
from toolmatrix.solve.resolve import possible

QUESTION = ("cuda", "gcc", "python", "base-image==nvidia/cuda:*", "--target=x86")
VARIED = ("base-image", "gcc", "python")
RECIPE = "toolchain"


def cells(index: Index, rules: make.Rules) -> Iterator[Lock]:
    """Locks of one target each that the recipe has an image for, the preferred first."""
    asked = Assembly(index, ask(index, QUESTION))
    parts = [asked.by_name["x86", name][0] for name in VARIED]
    for chosen in combinations(asked.problem(), [part.number for part in parts]):
        versions = map(asked.version, parts, chosen)
        exact = (f"{name}=={version}" for name, version in zip(VARIED, versions, strict=True))
        words = ("cuda", *exact)
        found = possible(index, ask(index, words))
        if found is None:
            raise SystemExit(f"no answer to {' '.join(words)}")
        lock = Lock(
            matrix_digest=index.header["digest"],
            matrix_date=index.header["date"],
            environments={DEFAULT: locks.environment(answer.document(index, found), words)},
        )
        with suppress(NoImage):
            job(lock, rules)
            yield lock


def job(lock: Lock, rules: make.Rules) -> Job:
    """What the command does between a lock and the formats."""
    return make.job(lock, lock_file.digest(lock), rules, version=__version__)


def theirs(lock: Lock) -> str:
    """HPCCM's file for the same image, GCC and Python."""
    chosen = lock.targets["x86"].chosen
    return _hpccm.dockerfile(chosen["base-image"], chosen["gcc"], chosen["python"])


def timed(work: Callable[[Lock], int], held: Sequence[Lock]) -> float:
    """CPU milliseconds for each file of all cells."""
    start = time.process_time()
    files = sum(work(lock) for lock in held)
    return (time.process_time() - start) * 1000 / files


def main(count: int, rounds: int) -> dict[str, Any]:
    """Render so many cells, all of them by each way in turn, and again."""
    index = open_index((), {})
    rules = make.Rules(
        recipes.recipe(RECIPE, index),
        recipes.provisions(index),
        index,
        Choices(dialect=dockerfile.DIALECTS[0], syntax_line=dockerfile.SYNTAX),
    )
    held = list(islice(cells(index, rules), count))
    known = formats.known()
    works: dict[str, Callable[[Lock], int]] = {
        "one": lambda lock: len(known["dockerfile"].files(job(lock, rules))),
        "all": lambda lock: sum(
            len(form.files(made)) for made in [job(lock, rules)] for form in known.values()
        ),
        "theirs": lambda lock: bool(theirs(lock)),
    }
    files = {name: int(work(held[0])) for name, work in works.items()}
    runs = [{name: timed(work, held) for name, work in works.items()} for _ in range(rounds)]
    return {
        "cells": len(held),
        "files": files,
        "file": {name: spread([run[name] for run in runs]) for name in works},
        "cell": {name: spread([run[name] * files[name] for run in runs]) for name in works},
        "ratio": {
            name: spread([run[name] * files[name] / run["theirs"] for run in runs])
            for name in works
        },
    }


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:]))))
