"""Readings of a machine: what matrix/machine.yaml says is worth knowing of one, each value with where it was read.

What no place tells is a skip with the reason of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from toolmatrix.inventory.host import Machine
from toolmatrix.inventory.model import Seen, Skipped
from toolmatrix.resources import machine_path
from toolmatrix.value import Value

# The whole of a place that has no form of its own, over all its lines.
_WHOLE = r"(?s)\A\s*(\S.*?)\s*\Z"
# Values of one reading, such as processors and libraries.
_MOST = 4096


class Place(Value):
    """The place of a value: a program with its arguments or a file, and its form there; see the data file."""

    find: re.Pattern[str]
    run: tuple[str, ...] = ()
    file: str = ""
    times: int = 1
    words: Mapping[str, str] = {}
    absent: str = ""

    def __str__(self) -> str:
        return " ".join(self.run) or self.file

    def value(self, text: str) -> str:
        """A value in the words and units of the data file."""
        word = self.words.get(text, text)
        return str(int(word) * self.times) if self.times > 1 and word.isdecimal() else word


class Reading(Value):
    """A feature or a component, why it matters, and the places that tell it, the first that does deciding."""

    name: str
    component: bool
    why: str
    source: str
    places: tuple[Place, ...]


class ReadingCatalog(Value):
    """Everything that is read of a machine: readings, and variables of the environment with why they matter."""

    readings: tuple[Reading, ...]
    environment: Mapping[str, str]
    sources: Mapping[str, str]

    def why(self, name: str) -> tuple[str, str]:
        """The reason why a feature matters and the source that says so, as far as a reading is behind it."""
        for reading in self.readings:
            form = re.escape(reading.name).replace(r"\{name\}", ".+")
            if not reading.component and re.fullmatch(form, name):
                return reading.why, self.sources[reading.source]
        return self.environment.get(name.removeprefix("env:"), ""), ""


@lru_cache(maxsize=1)
def load() -> ReadingCatalog:
    """The readings that come with the program."""
    import yaml

    with open(machine_path(), encoding="utf-8") as file:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        held = yaml.load(file, Loader=loader)  # noqa: S506 - both are safe loaders
    return ReadingCatalog(
        readings=tuple(map(_reading, held["readings"])),
        environment={
            name: several["why"] for several in held["environment"] for name in several["names"]
        },
        sources={name: f"{one['title']}, {one['at']}" for name, one in held["sources"].items()},
    )


def _reading(fields: Mapping[str, Any]) -> Reading:
    return Reading(
        name=fields.get("feature") or fields["component"],
        component="component" in fields,
        why=fields["why"],
        source=fields["source"],
        places=tuple(map(_place, fields["from"])),
    )


def _place(fields: Mapping[str, Any]) -> Place:
    form = re.compile(fields.get("find", _WHOLE), re.MULTILINE)
    return Place(**{**fields, "run": tuple(fields.get("run", ())), "find": form})


def observe(machine: Machine) -> Iterator[tuple[Reading, str, Seen]]:
    """Findings of the readings: the reading, the name of the feature or component, and the sighting."""
    for reading in load().readings:
        for name, seen in _read_places(machine, reading):
            yield reading, name, seen


def unseen(machine: Machine, found: frozenset[str]) -> Iterator[Skipped]:
    """The readings that are not among those that found something, each with why."""
    for reading in load().readings:
        if reading.name not in found:
            reasons = dict.fromkeys(_lack(machine, place) for place in reading.places)
            what = reading.name.removesuffix(":{name}")
            yield Skipped(what=what, reason=", ".join(reasons))


def _lack(machine: Machine, place: Place) -> str:
    if place.run:
        there = machine.where(place.run[0])
        return f"`{place}` does not show it" if there else f"no {place.run[0]}"
    return f"{place.file} does not show it" if any(_texts(machine, place)) else f"no {place.file}"


def _read_places(machine: Machine, reading: Reading) -> list[tuple[str, Seen]]:
    for place in reading.places:
        held: dict[tuple[str, str], Seen] = {}
        for star, where, text in _texts(machine, place):
            for name, value in _values(place, star, text):
                seen = Seen(
                    version=place.value(value),
                    seen_by="ran" if place.run else "file",
                    where=where,
                    default=reading.component,
                )
                held.setdefault((reading.name.replace("{name}", name), seen.version), seen)
        if held:
            return [(name, seen) for (name, _), seen in held.items()][:_MOST]
    return []


def _values(place: Place, star: str, text: str) -> Iterator[tuple[str, str]]:
    several = list(place.find.finditer(text))
    for found in several:
        groups = found.groupdict()
        value = groups["value"] if "value" in groups else found[1]
        # A flag has no value: that it stands there is all.
        yield groups.get("name") or star, "yes" if value is None else value.strip()
    if not several and place.absent:
        yield star, place.absent


def _texts(machine: Machine, place: Place) -> Iterator[tuple[str, str, str]]:
    if place.run:
        text = machine.run(*place.run)
        if text is not None:
            yield "", str(place), text
        return
    for star, path in machine.paths(place.file):
        text = machine.text(path)
        if text:
            yield star, path, text
