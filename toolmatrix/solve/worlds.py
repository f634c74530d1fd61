"""Worlds: what a refusal cannot rule out, as it covers known releases alone and earlier ones exist.

A list of releases that was read whole is closed by that, and so is the time after the day on which it was read. Where
an index lists more releases than are known there are others before the first, which were not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from toolmatrix.factbase import lookups
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import JOINS_NONE
from toolmatrix.factbase.versions import Key, Scale, key, order
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.parts import SEVERAL, Statement
from toolmatrix.solve.request import Ask, Stipulation
from toolmatrix.value import Value

_RELEASE_COUNTS = "published"
"""The table of how many releases an index of packages lists of each component."""
_HIGH = ".9999"


class Outside(Value):
    """A component whose releases before the first known one may satisfy a request."""

    component: str
    first: str


def outside(assembly: Assembly, cores: Sequence[Sequence[int]]) -> tuple[Outside, ...]:
    """The components whose earlier releases may satisfy a request; none where a core is closed."""
    reasons = [[assembly.statements[number] for number in core] for core in cores]
    openings = [next(_open_components(assembly, reason), None) for reason in reasons]
    distinct = dict.fromkeys(opening for opening in openings if opening)
    for opening, reason in zip(openings, reasons, strict=True):
        if not opening and not any(_escapes(assembly, reason, o.component) for o in distinct):
            return ()
    return tuple(distinct)


def _escapes(assembly: Assembly, statements: Sequence[Statement], component: str) -> bool:
    """True if a reason rests on known releases or builds of a component, so that earlier ones are not bound by it."""
    own = assembly.index.with_builds(component)
    return _is_open(statements) and any(s.binding and s.subject in own for s in statements)


def _is_open(statements: Sequence[Statement]) -> bool:
    # What a recipe or a minimum of evidence refuses, it refuses of any release.
    return not any(isinstance(statement.origin, (str, Stipulation)) for statement in statements)


def _runs_there(assembly: Assembly, component: str, release: str) -> bool:
    """True if there is an answer with a release where the request wants one to run, whatever else it asks for."""
    from toolmatrix.solve.resolve import Resolution, attempt

    components, request = assembly.header["components"], assembly.request
    # A default accelerator was not requested, but a device needs its own.
    left_out = set() if request.devices or request.archs else {"accelerator"}
    context = [
        ask
        for ask in request.asks
        if components[ask.component]["given"] and not (ask.implied and ask.component in left_out)
    ]
    wanted = Ask(component=component, selector=f"=={release}", text=f"{component}=={release}")
    asks = (wanted, *context)
    alone = request.replace(asks=asks, align=(), keep=(), policies=(), stipulations=())
    return isinstance(attempt(assembly.index, alone), Resolution)


def begins_later(index: Index, component: str) -> bool:
    """True if the index of packages lists more releases of a component than are known."""
    return _published(index, component) > len(index.component(component).versions)


def is_whole(index: Index, component: str) -> bool:
    """True if all releases of a component are known that the index of packages lists."""
    return 0 < _published(index, component) <= len(index.component(component).versions)


def _published(index: Index, component: str) -> int:
    """How many releases the index of packages lists, 0 where they were not counted."""
    if index.is_independent(component):
        return index.independent_row(component)[0].published
    counts = [0]
    while cells := lookups.row(index, f"{_RELEASE_COUNTS}/{len(counts)}")[1]:
        # Several packages may make one component.
        counts.append(int(cells["releases"]) if cells["component"] == component else 0)
    return max(counts)


def earlier(index: Index, component: str, selectors: Iterable[str]) -> bool:
    """True if some version before the first known release satisfies all of some selectors."""
    return _admitted(index, component, selectors, newer=False)


def later(index: Index, component: str, selector: str) -> bool:
    """True if some version after the newest known release satisfies a selector."""
    return _admitted(index, component, [selector], newer=True)


def _admitted(index: Index, component: str, selectors: Iterable[str], *, newer: bool) -> bool:
    scale = index.scale(component)
    if scale.scheme == "names" or not scale.versions:
        return False
    end = scale.versions[-1 if newer else 0]
    parsed = [scale.parse(selector) for selector in selectors]
    # Bounds that leave room beyond the end leave it at one of them, just above one, or next to the end.
    tried = {_dotted(key(end)) + _HIGH} if newer else {"0", _below(end)}
    for clause in (clause for selector in parsed for clauses in selector for clause in clauses):
        if clause.version is not None:
            release = _dotted(clause.version)
            tried |= {release, release + _HIGH}
    bound = order(key(end))
    # What would be several majors away is a slip of the fingers.
    highest = key(end)[0][0] + 1
    beyond = sorted(
        version
        for version in tried
        if (
            order(key(version)) > bound and key(version)[0][0] <= highest
            if newer
            else order(key(version)) < bound
        )
    )
    left = (2 << len(beyond)) - 2
    for clauses in parsed:
        left &= Scale("pep440", beyond).mask(clauses)
    return bool(left)


def _dotted(version: Key) -> str:
    return ".".join(map(str, version[0]))


def _below(version: str) -> str:
    """A version just below another one: 1.11.9999 of 1.12.0."""
    numbers = list(key(version)[0])
    while numbers and not numbers[-1]:
        numbers.pop()
    if not numbers:
        return "0"
    numbers[-1] -= 1
    return ".".join(map(str, numbers)) + _HIGH


def _open_components(assembly: Assembly, statements: Sequence[Statement]) -> Iterator[Outside]:
    """The components of a core whose earlier releases nothing in it covers."""
    index, components = assembly.index, assembly.header["components"]
    requested = {s.origin.component for s in statements if isinstance(s.origin, Ask)}
    subjects = {s.subject for s in statements if s.binding}
    about = {s.component for s in statements if s.binding}
    for name in sorted(subjects & (requested | about)) if _is_open(statements) else ():
        if components[name]["scheme"] == "names" or not earlier(
            index, name, _selectors(assembly, statements, name)
        ):
            continue
        first, day = index.component(name).versions[0], index.component(name).dates[0]
        others = [other for other in requested - {name, *SEVERAL} if not components[other]["given"]]
        if (
            all(_by(assembly, statements, other, day) for other in others)
            and begins_later(index, name)
            # Where not even the first known release runs, earlier ones do not know better.
            and _runs_there(assembly, name, first)
        ):
            yield Outside(component=name, first=first)


def _selectors(
    assembly: Assembly, statements: Sequence[Statement], component: str
) -> Iterator[str]:
    for statement in statements:
        if isinstance(statement.origin, Ask):
            if statement.origin.component == component:
                yield statement.origin.selector
        elif (
            (fact := statement.binding)
            and fact.component == component
            and fact.kind not in JOINS_NONE
        ):
            for cite in assembly.index.cites(fact.cites):
                yield assembly.index.claim(cite.record).selector


def _by(assembly: Assembly, statements: Sequence[Statement], component: str, day: str) -> bool:
    """True if a release that is asked for may have been out on a day: earlier releases of another can know it."""
    allowed = -1
    for statement in statements:
        if isinstance(statement.origin, Ask) and statement.origin.component == component:
            allowed &= assembly.mask(component, statement.origin.selector)
    dates = assembly.component(component).dates
    admitted = [date for position, date in enumerate(dates) if allowed >> position + 1 & 1]
    return bool(day) and any(date <= day for date in admitted)
