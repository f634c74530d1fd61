"""Writes a problem of the solver as tiny wheels, so that installers can be asked the same question.

A variable becomes a package and its candidates, worst to best, the versions 1, 2, ... of it; "absent" is a candidate
like any other, and so a version. A nogood of two terms becomes requirements of the one package on the other. A longer
one says that one of several things must give way, which wheels say through a package with a version for each of them.
What is left out is the order of preference: it is not hard, and installers have their own.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from toolmatrix.solve.engine import Problem

Nogood = tuple[tuple[int, int], ...]

_WHEEL = "Wheel-Version: 1.0\nGenerator: benchmarks\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


class Store(NamedTuple):
    """A folder of wheels: and in how many ways the nogoods are said in them."""

    wheels: int
    direct: int
    choices: int
    never: int


def write(
    problem: Problem,
    names: Sequence[str],
    given: Mapping[int, int],
    folder: str,
    *,
    exact: bool = True,
) -> Store:
    """Fill `folder` with the wheels of a problem; `given` are the candidates that the context of every question leaves.

    Not `exact` leaves out what needs a choice.
    """
    os.makedirs(folder)
    facts = [nogood for nogood in problem.nogoods if len(nogood) > 1]
    said = [rest for nogood in facts if (rest := reduced(nogood, given))]
    direct = [nogood for nogood in said if len(nogood) == 2]
    choices = [nogood for nogood in said if len(nogood) > 2 and exact]
    needs = _needs(direct, problem.sizes)
    wheels = 0
    for variable in range(len(problem.sizes)):
        for candidate in _bits(problem.domains[variable]):
            lines = _lines(needs[variable].get(candidate, {}), names, problem.sizes)
            lines += [
                _choice(place)
                for place, nogood in enumerate(choices)
                if _opens(nogood, variable, candidate)
            ]
            _wheel(folder, names[variable], candidate + 1, lines)
            wheels += 1
    for place, nogood in enumerate(choices):
        for version, (variable, mask) in enumerate(nogood[1:], 1):
            _wheel(folder, _choice(place), version, _lines({variable: ~mask}, names, problem.sizes))
            wheels += 1
    return Store(wheels, len(direct), len(choices), len(facts) - len(said))


def reduced(nogood: Nogood, given: Mapping[int, int]) -> Nogood:
    """A nogood without the terms that the context makes true, two are kept; nothing if the context makes one false."""
    if any(not given.get(variable, -1) & mask for variable, mask in nogood):
        return ()
    left = list(nogood)
    for part in nogood:
        if len(left) > 2 and not given.get(part[0], -1) & ~part[1]:
            left.remove(part)
    return tuple(left)


def requirement(name: str, mask: int, size: int) -> str:
    """The requirement that admits the candidates of a mask, as the shortest range with the holes taken out."""
    admitted = [place + 1 for place in range(size) if mask >> place & 1]
    if not admitted:
        return f"{name}==0"
    first, last = admitted[0], admitted[-1]
    if first == last:
        return f"{name}=={first}"
    clauses = [f">={first}"] if first > 1 else []
    clauses += [f"<={last}"] if last < size else []
    clauses += [f"!={hole}" for hole in sorted({*range(first, last)} - {*admitted})]
    return name + ",".join(clauses)


def _needs(direct: Sequence[Nogood], sizes: Sequence[int]) -> list[dict[int, dict[int, int]]]:
    """For each variable and candidate: the masks that it leaves the other variables."""
    needs: list[dict[int, dict[int, int]]] = [{} for _ in sizes]
    for (one, mask), (other, broken) in direct:
        for candidate in _bits(mask):
            held = needs[one].setdefault(candidate, {})
            held[other] = held.get(other, -1) & ~broken
    return needs


def _opens(nogood: Nogood, variable: int, candidate: int) -> bool:
    return nogood[0][0] == variable and bool(nogood[0][1] >> candidate & 1)


def _choice(place: int) -> str:
    return f"choice-{place}"


def _bits(mask: int) -> Iterator[int]:
    while mask:
        bit = mask & -mask
        yield bit.bit_length() - 1
        mask ^= bit


def _lines(needed: Mapping[int, int], names: Sequence[str], sizes: Sequence[int]) -> list[str]:
    return [
        requirement(names[variable], mask, sizes[variable])
        for variable, mask in sorted(needed.items())
    ]


def _wheel(folder: str, name: str, version: int, lines: Sequence[str]) -> None:
    stem = f"{name.replace('-', '_')}-{version}"
    inside = f"{stem}.dist-info"
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    metadata += [f"Requires-Dist: {line}" for line in lines]
    with zipfile.ZipFile(os.path.join(folder, f"{stem}-py3-none-any.whl"), "w") as wheel:
        wheel.writestr(f"{inside}/METADATA", "\n".join(metadata) + "\n")
        wheel.writestr(f"{inside}/WHEEL", _WHEEL)
        wheel.writestr(f"{inside}/RECORD", "")
