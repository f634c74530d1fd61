"""Makes what is measured: the same questions as wheels, as fact files and as problems of the solver.

Run by `resolve.py` with the interpreter that toolmatrix is installed for: `_prepare.py FOLDER MATRIX WHEELS`.
The last two are lists such as `1,4,16`: how many times the size of the real matrix. Prints what was made as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import _matrix
import _wheels
from _asked import ask

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tests.solve.generate import banded
from toolmatrix.factbase.store import open_index
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.engine import Problem, Support

WANTED = "tensorflow"
RELEASE = "2.6.5"
COMPONENTS = 28
VERSIONS = 60
SEED = 1


def real(folder: str) -> dict[str, Any]:
    """All that any release of the wanted component reaches, as wheels, and the question about one release of it."""
    index = open_index((), {})
    assembly = Assembly(index, ask(index, [WANTED]))
    problem = worst_first(assembly.problem())
    names = [variable.component for variable in assembly.variables]
    asked = {nogood[0][0]: ~nogood[0][1] for nogood in problem.nogoods if len(nogood) == 1}
    given = {
        place: mask
        for place, mask in asked.items()
        if assembly.header["components"][names[place]]["given"]
    }
    store = _wheels.write(problem, names, given, os.path.join(folder, "real"))
    _wheels.write(problem, names, given, os.path.join(folder, "plain"), exact=False)
    wanted = names.index(WANTED)
    asked[wanted] = 1 << assembly.component(WANTED).versions.index(RELEASE)
    _lines(os.path.join(folder, "real.in"), _asked_for(asked, names, problem.sizes))
    pin = (wanted, ~asked[wanted] & (1 << problem.sizes[wanted]) - 1)
    problem.nogoods = [*problem.nogoods, (pin,)]
    _dump(os.path.join(folder, "real.json"), names, problem)
    return store._asdict() | {"components": len(names)}


def worst_first(problem: Problem) -> Problem:
    """The same problem with the candidates in the order of versions: an absence, which is preferred, comes last."""

    def moved(variable: int, mask: int) -> int:
        count, releases = problem.sizes[variable] - 1, mask >> 1
        if problem.oldest >> variable & 1:
            releases = int(f"{releases:b}".zfill(count)[::-1], 2)
        return releases | (mask & 1) << count

    return Problem(
        problem.sizes,
        [tuple((one, moved(one, mask)) for one, mask in terms) for terms in problem.nogoods],
        [
            Support(
                [(one, moved(one, mask), weight) for one, mask, weight in row.terms], row.weight
            )
            for support in problem.supports
            for row in support.rows(-1)
        ],
        [moved(variable, domain) for variable, domain in enumerate(problem.domains)],
    )


def generated(folder: str, times: int, wheels: bool) -> dict[str, Any]:
    """A matrix of so many times the components of the real one: a fact file and, where asked for, wheels."""
    problem = matrix(times, SEED)
    names = [_matrix.name(place) for place in range(len(problem.sizes))]
    with open(os.path.join(folder, f"x{times}.yaml"), "w", encoding="utf-8") as stream:
        stream.write(_matrix.text(problem))
    pins = {nogood[0][0]: ~nogood[0][1] for nogood in problem.nogoods if len(nogood) == 1}
    asked = {place: pins.get(place, -1) for place in range(len(names))}
    _lines(os.path.join(folder, f"x{times}.in"), _asked_for(asked, names, problem.sizes))
    made: dict[str, Any] = {"components": len(names), "versions": sum(problem.sizes)}
    if wheels:
        made |= _wheels.write(problem, names, {}, os.path.join(folder, f"x{times}"))._asdict()
        _dump(os.path.join(folder, f"x{times}.json"), names, problem)
    return made


def matrix(times: int, seed: int) -> Problem:
    """The generated problem of a size, with some of its components pinned."""
    return banded(COMPONENTS * times, VERSIONS, seed, pins=2 * times)


def _asked_for(asked: Mapping[int, int], names: Sequence[str], sizes: Sequence[int]) -> list[str]:
    return [_wheels.requirement(names[place], mask, sizes[place]) for place, mask in asked.items()]


def _lines(path: str, lines: Sequence[str]) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        stream.writelines(line + "\n" for line in lines)


def _dump(path: str, names: Sequence[str], problem: Problem) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        supports = [[row.terms, row.weight] for row in problem.supports]
        json.dump(
            [names, list(problem.sizes), problem.nogoods, supports, list(problem.domains)], stream
        )


def main(folder: str, matrices: str, wheels: str) -> None:
    """Make everything."""
    with_wheels = wheels.split(",")
    made = {
        f"x{times}": generated(folder, int(times), times in with_wheels)
        for times in matrices.split(",")
    }
    print(json.dumps({"real": real(folder)} | made))


if __name__ == "__main__":
    main(*sys.argv[1:])
