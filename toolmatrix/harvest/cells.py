"""What holds on machines and Pythons as the cell of a row: one selector, or one each with what it depends on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Place = tuple[str, str]
    """A machine and a Python series."""


_PRE_RELEASE = re.compile(r"==[\d.]+(a|b|rc|\.dev)\d+")


def _known(value: str) -> dict[str, Any]:
    # Final releases alone are read: of what is pinned to another one nobody can say whether it is there.
    return {"is": value} | ({"evidence": "unknown"} if _PRE_RELEASE.search(value) else {})


def series(found: Iterable[str], known: Sequence[str], *, later: bool = False) -> str:
    """The selector of some Python series, `known` being all of them, the oldest first.

    With `later` what reaches the newest one goes on.
    """
    # By the places among those that there are: next after 2.7 may come 3.8, and after 3.9 comes 3.10.
    places = sorted(map(known.index, found))
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return " | ".join(_run(known[run[0]], known[run[-1]], known, later=later) for run in runs)


def _run(first: str, last: str, known: Sequence[str], *, later: bool) -> str:
    if later and last == known[-1]:
        return f">={first}"
    return first if first == last else f"{first}-{last}"


def cell(values: Mapping[Place, str], known: Sequence[str], *, later: bool = False) -> Any:
    """The cell that says of each machine and Python what it says of them; "" says nothing, and so does None."""
    if len(set(values.values())) == 1:
        value = next(iter(values.values()))
        return (_known(value) if _PRE_RELEASE.search(value) else value) if value else None
    # Machines are named only where they make a difference: a condition more is one more that an answer depends on.
    by_python: dict[str, set[str]] = {}
    for (_, python), value in values.items():
        by_python.setdefault(python, set()).add(value)
    if all(len(several) == 1 for several in by_python.values()):
        return _parts({python: value for (_, python), value in values.items()}, known, later, {})
    parts = []
    for machine in sorted({machine for machine, _ in values}, reverse=True):
        own = {python: value for (held, python), value in values.items() if held == machine}
        parts += _parts(own, known, later, {"machine": machine})
    return parts


def _parts(
    values: Mapping[str, str], known: Sequence[str], later: bool, when: Mapping[str, str]
) -> list[dict[str, Any]]:
    groups: dict[str, list[str]] = {}
    for python in sorted(values, key=known.index):
        groups.setdefault(values[python], []).append(python)
    alone = len(groups) == 1
    return [
        _known(value)
        | {
            "when": {**when} if alone else {**when, "python": series(held, known, later=later)},
        }
        for value, held in groups.items()
        if value
    ]
