"""How much of the code in packages was read, by the kind of that code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from toolmatrix.factbase.evidence import UNKNOWN
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.model import CODE
from toolmatrix.factbase.records import OPENED_CODE, UNOPENED_CODE
from toolmatrix.value import Value


class CodeCoverage(Value):
    """The packages with one kind of code, and their builds that were released from a day on.

    Builds of opened packages, `partly`, that nobody read are among the unopened.
    """

    kind: str
    components: tuple[str, ...]
    builds: int
    partly: tuple[str, ...] = ()


def code_coverage(index: Index, since: str) -> Iterator[CodeCoverage]:
    """Each kind of code, as the newest file of each package has it; a release without known builds counts as one."""
    named: dict[str, list[str]] = {kind: [] for kind in CODE}
    for name, head in index.header["components"].items():
        named.setdefault(head["code"], []).append(name)
    unread = {name: _unread_since(index, name, since) for name in named[OPENED_CODE]}
    partly = {UNOPENED_CODE: tuple(name for name, count in unread.items() if count)}
    moved = {OPENED_CODE: -sum(unread.values()), UNOPENED_CODE: sum(unread.values())}
    for kind in CODE:
        count = sum(_builds_since(index, name, since) for name in named[kind]) + moved.get(kind, 0)
        yield CodeCoverage(
            kind=kind, components=tuple(named[kind]), builds=count, partly=partly.get(kind, ())
        )


def _unread_since(index: Index, name: str, since: str) -> int:
    """The builds of which no fact says what archs they hold, though they hold some."""
    build, known, unknown = index.builds_of(name), 0, 0
    if not build:
        return 0
    own, builds = index.component(name), index.component(build)
    for binding in builds.bindings:
        if binding.component == "arch":
            evidence = {binding.evidence, *(cite.evidence for cite in index.cites(binding.cites))}
            if evidence == {UNKNOWN}:
                unknown |= binding.mask
            else:
                known |= binding.mask
    days = dict(zip(own.versions, own.dates, strict=True))
    return sum(
        # Bit 0 says that the component is absent.
        (unknown & ~known) >> position & 1
        and days[index.release(number).attributes["release"]] >= since
        for position, number in enumerate(builds.releases, 1)
    )


def _builds_since(index: Index, name: str, since: str) -> int:
    own, build = index.component(name), index.builds_of(name)
    numbers = index.component(build).releases if build else ()
    built = Counter(index.release(number).attributes["release"] for number in numbers)
    released = zip(own.versions, own.dates, strict=True)
    return sum(max(1, built[version]) for version, day in released if day >= since)
