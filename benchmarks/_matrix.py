"""Writes a generated problem as a fact file, so that the program itself can be asked about it with `--matrix`."""

from __future__ import annotations

from collections.abc import Iterator

from toolmatrix.solve.engine import Problem

_HEAD = """\
schema: toolmatrix.facts/1
sources:
  generated: {title: generated for a benchmark, at: "benchmarks:_matrix.py", read: 2026-11-21}
"""


def text(problem: Problem) -> str:
    """The fact file of a problem whose nogoods have two terms; those of one term are what is asked for, not facts."""
    places = range(len(problem.sizes))
    lines = [_HEAD + "components:"]
    lines += [f"  {name(place)}: {{title: generated, scheme: pep440}}" for place in places]
    lines.append("releases:")
    for place in places:
        lines += _releases(name(place), problem.sizes[place])
    lines.append("tables:")
    lines += _tables(problem)
    return "\n".join(lines) + "\n"


def name(variable: int) -> str:
    """What a variable is called, in the matrix and as a package."""
    return f"part-{variable}"


def _releases(component: str, size: int) -> Iterator[str]:
    versions = ", ".join(f'"{version}": {{}}' for version in range(1, size + 1))
    yield f"  - {{id: {component}-releases, component: {component}, source: generated, evidence: stated,"
    yield f"     where: all, versions: {{{versions}}}}}"


def _tables(problem: Problem) -> Iterator[str]:
    """One table for each component and one it needs."""
    rows: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for nogood in problem.nogoods:
        if len(nogood) == 2:
            (one, mask), (other, broken) = nogood
            rows.setdefault((one, other), []).append(
                (mask, (1 << problem.sizes[other]) - 1 & ~broken)
            )
    for (one, other), pairs in rows.items():
        subject, needed = name(one), name(other)
        yield f"  - id: {subject}-{needed}"
        yield "    about: generated"
        yield "    source: generated"
        yield "    where: all"
        yield "    evidence: stated"
        yield f"    key: {subject}"
        yield f"    columns: {{{needed}: {{as: requires}}}}"
        yield "    rows:"
        for mask, allowed in pairs:
            yield f"      - {{{subject}: {selector(mask)}, {needed}: {selector(allowed)}}}"


def selector(mask: int) -> str:
    """The versions of a mask as ranges, such as `3-7 12`."""
    found = []
    place = 0
    while mask >> place:
        skipped = (mask >> place & -(mask >> place)).bit_length() - 1
        first = place + skipped
        rest = ~(mask >> first)
        place = first + (rest & -rest).bit_length() - 1
        found.append(f"{first + 1}-{place}" if place > first + 1 else f"{first + 1}")
    return " ".join(found)
