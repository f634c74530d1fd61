"""The rules for comparing two environments, from matrix/porting.yaml: kinds, effects, spellings, and rules.

What is expected to differ is data with a reason; what no rule expects is suspicious.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

from toolmatrix.resources import load_yaml, porting_path
from toolmatrix.value import Value

ALWAYS = "always"


class ComparedKind(Value):
    """A kind of thing that is compared; the fields are those of the file."""

    kind: str
    group: str
    of: re.Pattern[str]
    none: str = ""
    by: str = ""

    def shown(self, name: str) -> str:
        """The part of a name that people read: the group of the pattern, where one took part."""
        found = self.of.fullmatch(name)
        return next((part for part in found.groups() if part), name) if found else name


class DerivationStep(Value):
    """One source of an effect: a feature or an architecture, and the value where it is not that of the feature."""

    of: re.Pattern[str] | None = None
    arch: str = ""
    value: str = ""


class DerivedProperty(Value):
    """A property that follows from several features; the first step that speaks decides."""

    name: str
    why: str
    source: str
    steps: tuple[DerivationStep, ...]


class Alike(Value):
    """A part of values that is left out before they are compared."""

    of: re.Pattern[str]
    drop: re.Pattern[str]
    why: str
    source: str


class Pair(Value):
    """One thing that differs, as rules see it.

    `holds` are words about the two subjects, `names` what either has; `holder` is the architecture of the side that
    alone has the thing, None where both do.
    """

    name: str
    holds: frozenset[str]
    names: Collection[str]
    values: tuple[str, str]
    holder: str | None = None


class DifferenceRule(Value):
    """A judgement on differences; the fields are those of the file."""

    of: re.Pattern[str]
    verdict: str
    why: str
    when: tuple[str, ...] = ()
    only: bool = False
    on: str = ""
    values: tuple[re.Pattern[str], ...] = ()
    within: float = 0
    without: re.Pattern[str] | None = None
    source: str = ""

    def fits(self, pair: Pair) -> bool:
        """True if the rule is about this difference."""
        return (
            self.of.fullmatch(pair.name) is not None
            and pair.holds.issuperset(self.when)
            and (not self.only or pair.holder is not None)
            and (not self.on or pair.holder == self.on)
            and (not self.values or self._valued(pair.values))
            and (not self.within or self._near(pair.values))
            and (not self.without or not any(map(self.without.fullmatch, pair.names)))
        )

    def _valued(self, values: tuple[str, str]) -> bool:
        # Turned round a comparison says the same, so that a rule fits both ways.
        one, other = self.values
        there, back = zip(values, values[::-1], strict=True)
        return any(one.fullmatch(a) and other.fullmatch(b) for a, b in (there, back))

    def _near(self, values: tuple[str, str]) -> bool:
        if not all(value.isdecimal() for value in values):
            return False
        low, high = sorted(map(int, values))
        return high <= low * self.within


class PortingCatalog(Value):
    """Everything the file says."""

    kinds: tuple[ComparedKind, ...]
    ignored: tuple[re.Pattern[str], ...]
    same: Mapping[str, str]
    effects: tuple[DerivedProperty, ...]
    spellings: Mapping[str, tuple[tuple[str, str], ...]]
    alike: tuple[Alike, ...]
    units: tuple[tuple[re.Pattern[str], str], ...]
    packages: Mapping[str, str]
    renamed: re.Pattern[str]
    rules: tuple[DifferenceRule, ...]

    def kind(self, name: str) -> ComparedKind | None:
        """The kind of a name; None for one that is not compared."""
        if any(one.fullmatch(name) for one in self.ignored):
            return None
        return next((one for one in self.kinds if one.of.fullmatch(name)), None)

    def spelt(self, text: str, architecture: str) -> str:
        """A text with one spelling for what each architecture calls by its own name."""
        for own, common in self.spellings.get(architecture, ()):
            text = text.replace(own, common)
        return text

    def unit(self, name: str) -> str:
        """The unit that the numbers of something count; empty where they have none."""
        return next((unit for pattern, unit in self.units if pattern.fullmatch(name)), "")

    def rule(self, pair: Pair) -> DifferenceRule | None:
        """The first rule that speaks of a difference."""
        return next((rule for rule in self.rules if rule.fits(pair)), None)


@lru_cache(maxsize=1)
def load() -> PortingCatalog:
    """The catalog that comes with the program."""
    held = load_yaml(porting_path())
    # Findings name a source as people would look it up; the names of the file are its own.
    sources = {name: f"{one['title']}, {one['at']}" for name, one in held["sources"].items()}
    return PortingCatalog(
        kinds=tuple(ComparedKind(**_made(fields, sources)) for fields in held["kinds"]),
        ignored=tuple(re.compile(fields["of"]) for fields in held["ignored"]),
        same={fields["of"]: fields["as"] for fields in held["same"]},
        effects=tuple(_effect(fields, sources) for fields in held["effects"]),
        spellings=_spellings(held["spellings"]),
        alike=tuple(Alike(**_made(fields, sources)) for fields in held["alike"]),
        units=tuple((re.compile(one["of"]), one["unit"]) for one in held["units"]),
        packages={name: several[0] for several in held["packages"] for name in several},
        renamed=re.compile(held["renamed"]["drop"]),
        rules=tuple(DifferenceRule(**_made(fields, sources)) for fields in held["rules"]),
    )


def _made(fields: Mapping[str, Any], sources: Mapping[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in fields.items():
        if name in ("of", "drop", "without"):
            made[name] = re.compile(value)
        elif name == "values":
            made[name] = tuple(map(re.compile, value))
        else:
            made[name] = tuple(value) if isinstance(value, list) else value
    return made | {"source": sources[fields["source"]]} if "source" in fields else made


def _effect(fields: Mapping[str, Any], sources: Mapping[str, str]) -> DerivedProperty:
    steps = tuple(
        DerivationStep(
            of=re.compile(step["of"]) if "of" in step else None,
            arch=step.get("arch", ""),
            value=step.get("is", ""),
        )
        for step in fields["steps"]
    )
    return DerivedProperty(**_made(fields, sources) | {"steps": steps})


def _spellings(held: Iterable[Mapping[str, Any]]) -> dict[str, tuple[tuple[str, str], ...]]:
    # In the order of the file: a triplet contains a name of its architecture, and is replaced before that.
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for one in held:
        for architecture, several in one.items():
            # Beside the lists of architectures stands the common name.
            if isinstance(several, list):
                pairs = tuple((own, one["name"]) for own in several)
                found[architecture] = found.get(architecture, ()) + pairs
    return found
