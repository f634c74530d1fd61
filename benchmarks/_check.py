"""Whether what an installer answered is an answer to the question, and how far it is the one the solver calls best.

Run by `resolve.py` with the interpreter that toolmatrix is installed for: `_check.py PROBLEM ANSWER`. Prints JSON.
"""

from __future__ import annotations

import json
import sys

from toolmatrix.solve.engine import Problem, Solution, Support, solve


def check(path: str, lines: list[str]) -> dict[str, int]:
    """How many nogoods an answer violates, and on how many of the components it answers as the engine does."""
    with open(path, encoding="utf-8") as stream:
        names, sizes, nogoods, supports, domains = json.load(stream)
    chosen = dict(
        line.split()[0].split("==")
        for line in lines
        if "==" in line and not line.lstrip().startswith("#")
    )
    values = [
        int(chosen[name]) - 1 if name in chosen else size - 1
        for name, size in zip(names, sizes, strict=True)
    ]
    violated = sum(
        all(mask >> values[variable] & 1 for variable, mask in nogood) for nogood in nogoods
    )
    rows = [
        Support(tuple((one, mask, weight) for one, mask, weight in terms), least)
        for terms, least in supports
    ]
    best = solve(Problem(sizes, nogoods, rows, domains))
    if not isinstance(best, Solution):
        raise SystemExit(f"{path} has no answer")
    same = sum(one == other for one, other in zip(values, best.values, strict=True))
    return {"components": len(names), "violated": violated, "same": same}


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as answer:
        print(json.dumps(check(sys.argv[1], answer.read().splitlines())))
