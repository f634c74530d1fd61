"""Runs mutmut in the copy that is the current directory, and writes how each sampled mutant ended to results.json.

It is a program of its own because mutmut reads its configuration from the current directory, once.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import mutmut.__main__ as mutmut
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.mutation.mutators import mutation_operators
from mutmut.stats import status_by_exit_code

from tests.mutants.operators import OPERATORS


def main(module: str, sample: int, seed: int, jobs: int) -> None:
    """Run a sample of the mutants of one module; all where the sample is 0."""
    mutation_operators.extend(OPERATORS)
    prefix = module.removesuffix(".py").replace("/", ".")
    names = [
        f"{prefix}.{name}"
        for name in mutate_file_contents(module, Path(module).read_text()).mutant_names
    ]
    if 0 < sample < len(names):
        names = sorted(random.Random(seed).sample(names, sample), key=names.index)
    mutmut._run(names, jobs)
    ends = json.loads(Path("mutants", f"{module}.meta").read_text())["exit_code_by_key"]
    missing = [name for name in names if ends[name] is None]
    if missing:
        sys.exit(f"not run: {', '.join(missing)}")
    results = [
        (name, status_by_exit_code[ends[name]], get_diff_for_mutant(name, path=module))
        for name in names
    ]
    Path("results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
