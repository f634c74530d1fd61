"""Two inventories compared: what differs, whether that is to be expected, and what only one side was asked for.

Turned round it says the same with the sides exchanged. What is expected to differ is data with a reason, from
matrix/porting.yaml; what no rule expects is suspicious.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

from toolmatrix.inventory.model import (
    EXPECTED,
    REST,
    SUSPICIOUS,
    WHICH,
    Comparison,
    Difference,
    Held,
    Seen,
    Unseen,
)
from toolmatrix.inventory.packages import upstream
from toolmatrix.judge.expectations import COMPONENTS, admits
from toolmatrix.resources import load_yaml, porting_path
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolmatrix.inventory.model import Inventory

    Why = Callable[[str], tuple[str, str]]
    """Why a feature matters, and the source that says so; nothing where nobody knows."""
    Judgement = tuple[str, str, str]
    """A verdict, why, and the source that says so."""
    Sides = tuple["_Side", "_Side"]


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


_NOT_READ = "on a machine, only variables that affect builds and speed are read"
_MANAGERS = ("dpkg", "rpm", "apk")


class _Item(Value):
    """One thing of one side: its values, where the first was seen, what it is called there, and its package manager."""

    values: tuple[str, ...]
    seen: Seen
    called: str = ""
    manager: str = ""

    @property
    def value(self) -> str:
        return ", ".join(self.values)

    def held(self, kind: ComparedKind) -> Held:
        """The value to report; where only names count, that it is there."""
        value = "yes" if kind.by == "name" else self.value
        return Held(value=value, seen_by=self.seen.seen_by, where=self.seen.where)


class _Side:
    """One side: its items by name, and why it has none of what it was not asked for."""

    def __init__(self, inventory: Inventory, catalog: PortingCatalog) -> None:
        self.inventory = inventory
        self.catalog = catalog
        self.architecture = inventory.platform.partition("/")[2].partition("/")[0]
        self.skipped = {one.what: one.reason for one in inventory.skipped}
        self.items: dict[str, _Item] = {}
        self.kinds: dict[str, ComparedKind] = {}
        # A saved inventory may name things without a sighting.
        self.features = {name: held for name, held in inventory.features.items() if held}
        for name, item in self._found():
            kind = catalog.kind(name)
            if kind is not None:
                # Two things of one name for both sides, such as two packages, are one item.
                known = self.items.setdefault(name, item)
                values = tuple(sorted({*known.values, *item.values}))
                self.items[name] = item if known is item else known.replace(values=values)
                self.kinds[name] = kind
        self.has = {kind.kind for kind in self.kinds.values()}
        # A lock is neither: it says nothing of what it does not hold.
        word = "image" if REST not in self.skipped else ""
        self.subject = "machine" if "kernel" in self.has else word
        labels = inventory.features.get("label:" + COMPONENTS, ())
        self.listed = frozenset(labels[0].version.split()) if labels else None

    def _found(self) -> Iterator[tuple[str, _Item]]:
        for name, several in self.inventory.components.items():
            if not several:
                continue
            default = next((one for one in several if one.default), several[0])
            # Nobody knows which of them a user gets, so that none of them can differ from the other side.
            if not default.default and f"{WHICH}{name}" in self.skipped:
                continue
            yield f"component:{name}", _Item(values=(default.version,), seen=default)
        for name, several in self.features.items():
            values = tuple(sorted({one.version for one in several}))
            manager, _, called = name.partition(":")
            item = _Item(values=values, seen=several[0])
            if manager in _MANAGERS:
                item = item.replace(called=called, manager=manager)
            yield self._named(name), item
        if self.architecture and "arch" not in self.inventory.features:
            seen = Seen(version=self.architecture, seen_by="platform", where="")
            yield "arch", _Item(values=(self.architecture,), seen=seen)
        for one in self.inventory.sonames:
            if not one.found:
                there = f"there is {', '.join(one.others)}" if one.others else "missing"
                seen = Seen(version=there, seen_by="loader", where=next(iter(one.needed_by), ""))
                yield self._named(f"needs:{one.name}"), _Item(values=(there,), seen=seen)
        yield from self._effects()

    def _named(self, name: str) -> str:
        """A feature under the name that it has for both sides."""
        manager, _, called = name.partition(":")
        if manager in _MANAGERS:
            plain = self.catalog.renamed.sub("", called)
            name = f"package:{self.catalog.packages.get(plain, plain)}"
        return self.catalog.same.get(name) or self.catalog.spelt(name, self.architecture)

    def _effects(self) -> Iterator[tuple[str, _Item]]:
        for effect in self.catalog.effects:
            item = next(filter(None, map(self._step, effect.steps)), None)
            if item is not None:
                yield f"effect:{effect.name}", item

    def _step(self, step: DerivationStep) -> _Item | None:
        """The value by one step of an effect; None where the step does not apply."""
        name = next((one for one in self.features if step.of and step.of.fullmatch(one)), "")
        if name:
            held = self.features[name]
            values = {step.value} if step.value else {one.version for one in held}
            return _Item(values=tuple(sorted(values)), seen=held[0])
        if step.arch and step.arch == self.architecture:
            seen = Seen(version=step.value, seen_by="architecture", where=step.arch)
            return _Item(values=(step.value,), seen=seen)
        return None

    def value(self, name: str) -> str:
        """The value of something, nothing where this side has none of it."""
        return self.items[name].value if name in self.items else ""

    def blind(self, name: str, kind: ComparedKind) -> str | None:
        """The reason why this side cannot tell of something that it lacks; None where lacking it is an answer."""
        feature, _, bare = name.partition(":")
        managers = _MANAGERS if feature == "package" else ()
        for what in (name, bare, WHICH + bare, feature, *managers, kind.kind, kind.group, REST):
            if what in self.skipped:
                return self.skipped[what]
        # Nothing of a kind is an answer only where something shows that the side was asked for that kind.
        proof = kind.none or kind.kind
        return None if proof == ALWAYS or proof in self.has else "it has no information about them"

    def compared(self, name: str, text: str) -> str:
        """A value as it is compared: spelt in common, and without what never counts."""
        text = self.catalog.spelt(text, self.architecture)
        for one in self.catalog.alike:
            if one.of.fullmatch(name):
                text = one.drop.sub("", text)
        return text


class _Pairing:
    """Two sides, what holds of them, and what a lock says of either."""

    def __init__(self, sides: Sides, locked: Sides | None, why: Why) -> None:
        self.sides = sides
        self.locked = locked
        self.why = why
        self.catalog = sides[0].catalog
        self.names = sides[0].items.keys() | sides[1].items.keys()
        asked = {
            "architecture": [side.architecture for side in sides],
            "distribution": [side.value("component:distro") for side in sides],
            "char": [side.value("effect:char") for side in sides],
            "subject": [side.subject for side in sides],
        }
        self.holds = frozenset(
            f"{'same' if one == other else 'other'}-{word}"
            for word, (one, other) in asked.items()
            if one and other
        )

    def items(self, name: str) -> tuple[_Item | None, _Item | None]:
        """The items of both sides under a name."""
        return self.sides[0].items.get(name), self.sides[1].items.get(name)

    def blind(self, name: str, kind: ComparedKind) -> tuple[int, str] | None:
        """The side that lacks something only because it cannot tell of it, and why."""
        for place, (side, item) in enumerate(zip(self.sides, self.items(name), strict=True)):
            reason = self._unread(side, name) or side.blind(name, kind) if item is None else None
            if reason is not None:
                return place, reason
        return None

    def _unread(self, side: _Side, name: str) -> str | None:
        is_read = not name.startswith("env:") or bool(self.why(name)[0])
        return None if is_read or side.subject != "machine" else _NOT_READ

    def difference(self, name: str, kind: ComparedKind) -> Difference:
        """Something that is not the same, judged."""
        one, other = self.items(name)
        # Package managers may call a thing by two names, and then it goes by the one for both.
        called = {item.called for item in (one, other) if item}
        verdict, why, source = self._alike(name) or self._locked(name) or self._judged(name)
        return Difference(
            group=kind.group,
            kind=kind.kind,
            name=name,
            shown=(called.pop() if len(called) == 1 else "") or kind.shown(name),
            old=one.held(kind) if one else None,
            new=other.held(kind) if other else None,
            verdict=verdict,
            why=why,
            source=source,
            unit=self.catalog.unit(name),
        )

    def _judged(self, name: str) -> Judgement:
        # What no rule expects is suspicious, for the reason why it matters at all.
        rule = self.catalog.rule(self._pair(name))
        if rule is not None:
            return rule.verdict, rule.why, rule.source
        effect = next((one for one in self.catalog.effects if f"effect:{one.name}" == name), None)
        return SUSPICIOUS, *((effect.why, effect.source) if effect else self.why(name))

    def _pair(self, name: str) -> Pair:
        holder, words = None, set(self.holds)
        for side, item, opposite in zip(
            self.sides, self.items(name), reversed(self.sides), strict=True
        ):
            if item is None:
                holder = opposite.architecture
                if side.listed is not None and name.removeprefix("component:") not in side.listed:
                    words.add("unlisted")
        return Pair(
            name=name,
            holds=frozenset(words),
            names=self.names,
            values=(self.sides[0].value(name), self.sides[1].value(name)),
            holder=holder,
        )

    def _alike(self, name: str) -> Judgement | None:
        one, other = self.items(name)
        if one is None or other is None:
            return None
        both = tuple(zip(self.sides, (one, other), strict=True))
        spelt = [
            {self.catalog.spelt(v, side.architecture) for v in held.values} for side, held in both
        ]
        if spelt[0] == spelt[1]:
            return EXPECTED, "each names its own architecture", ""
        bare = [{side.compared(name, v) for v in held.values} for side, held in both]
        if bare[0] != bare[1]:
            return None
        # One was dropped, or the values would differ still.
        part = next(
            part
            for part in self.catalog.alike
            if part.of.fullmatch(name) and any(map(part.drop.search, (*spelt[0], *spelt[1])))
        )
        return EXPECTED, part.why, part.source

    def _locked(self, name: str) -> Judgement | None:
        """The judgement that a lock holds what was found on either side, and holds it differently."""
        if self.locked is None or name.startswith("effect:"):
            return None
        says = [side.items.get(name) for side in self.locked]
        values = [side.value(name) or "none" for side in self.locked]
        # The lock explains a difference only if each side has what the lock says of it.
        agree = all(
            item is said is None or (item and said and _covers(said, item))
            for said, item in zip(says, self.items(name), strict=True)
        )
        if not agree or values[0] == values[1]:
            return None
        return EXPECTED, "the lock has this difference between the two targets", ""


def compare(
    one: Inventory,
    other: Inventory,
    catalog: PortingCatalog,
    why: Why = lambda _name: ("", ""),
    locked: tuple[Inventory, Inventory] | None = None,
) -> Comparison:
    """Compare two inventories. `locked` are what a lock says of either side, so that what it explains is expected."""
    lock_sides = (_Side(locked[0], catalog), _Side(locked[1], catalog)) if locked else None
    pairing = _Pairing((_Side(one, catalog), _Side(other, catalog)), lock_sides, why)
    differences: list[Difference] = []
    same: list[tuple[str, str, str]] = []
    unseen: dict[tuple[str, str, int, str], list[str]] = {}
    kinds = pairing.sides[0].kinds | pairing.sides[1].kinds
    order = {kind.kind: place for place, kind in enumerate(catalog.kinds)}
    for name in sorted(kinds, key=lambda name: (order[kinds[name].kind], name)):
        kind = kinds[name]
        items = pairing.items(name)
        blind = pairing.blind(name, kind)
        if blind is not None:
            unseen.setdefault((kind.group, kind.kind, *blind), []).append(kind.shown(name))
        elif _equal(name, kind, *items):
            same.append(
                (kind.group, kind.shown(name), items[0].held(kind).value if items[0] else "")
            )
        else:
            differences.append(pairing.difference(name, kind))
    return Comparison(
        sides=(one, other),
        differences=tuple(differences),
        same=tuple(same),
        unseen=tuple(
            Unseen(group=group, kind=kind, names=tuple(names), side=side, reason=reason)
            for (group, kind, side, reason), names in unseen.items()
        ),
    )


def _equal(name: str, kind: ComparedKind, one: _Item | None, other: _Item | None) -> bool:
    if one is None or other is None:
        return False
    if kind.by == "name" or one.values == other.values:
        return True
    # Distributions number packages by themselves, so that only the number of the upstream release can agree.
    if one.manager != other.manager:
        return {*map(upstream, one.values)} == {*map(upstream, other.values)}
    return name.startswith("component:") and _agree(one.value, other.value)


def _covers(said: _Item, item: _Item) -> bool:
    return said.values == item.values or _agree(said.value, item.value)


def _agree(one: str, other: str) -> bool:
    """True if two versions may be the same: one may have fewer numbers, or be a floor such as `>=450`."""
    return _may_be(one, other) or _may_be(other, one)


def _may_be(coarse: str, fine: str) -> bool:
    if coarse.startswith(">="):
        return admits(coarse, fine.removeprefix(">="))
    return fine.startswith((f"{coarse}.", f"{coarse}+"))
