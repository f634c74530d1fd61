"""Two inventories compared: what differs, whether that is to be expected, and what only one side was asked for.

Turned round it says the same with the sides exchanged. What is expected to differ is data with a reason, from
matrix/porting.yaml; what no rule expects is suspicious.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from toolmatrix.documents import Annotated, Text
from toolmatrix.inspection.model import (
    EXPECTED,
    REST,
    SUSPICIOUS,
    WHICH,
    Comparison,
    Difference,
    Held,
    Inventory,
    Seen,
    Unseen,
)
from toolmatrix.inspection.packages import upstream
from toolmatrix.judging.expectations import COMPONENTS, admits
from toolmatrix.resources import load_yaml, porting_path
from toolmatrix.value import Value

Why = Callable[[str], tuple[str, str]]
"""Why a feature matters, and the source that says so; empty where it is unknown."""
Judgement = tuple[str, str, str]
"""A verdict, why, and the source that says so."""
Sides = tuple["_Side", "_Side"]


ALWAYS = "always"
CONDITIONS = (
    "unlisted",
    *(f"other-{what}" for what in ("architecture", "distribution", "char", "subject")),
    *(f"same-{what}" for what in ("architecture", "distribution", "char", "subject")),
)
"""The words about two subjects that a rule may depend on."""


class ComparedKind(Value):
    """A kind of thing that is compared."""

    kind: str
    group: str
    of: re.Pattern[str]
    none: str = ""
    by: str = ""

    def label(self, name: str) -> str:
        """The part of a name that people read: the group of the pattern, where one took part."""
        match = self.of.fullmatch(name)
        return next((group for group in match.groups() if group), name) if match else name


class DerivationStep(Value):
    """One source of an effect: a feature or an architecture, and the value where it is not that of the feature."""

    one_of = ("of", "arch")

    of: re.Pattern[str] | None = None
    arch: str = ""
    value: str = ""
    source: str = ""


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
    """A judgement on differences."""

    of: re.Pattern[str]
    verdict: Annotated[str, EXPECTED, SUSPICIOUS]
    why: str
    when: tuple[Annotated[str, CONDITIONS], ...] = ()
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
        first, second = self.values
        orders = values, values[::-1]
        return any(first.fullmatch(a) and second.fullmatch(b) for a, b in orders)

    def _near(self, values: tuple[str, str]) -> bool:
        if not all(value.isdecimal() for value in values):
            return False
        low, high = sorted(map(int, values))
        return high <= low * self.within


class PortingCatalog(Value):
    """How two environments are compared, and which differences are to be expected."""

    schema: Annotated[str, "toolmatrix.porting/1"]
    sources: Annotated[Mapping[str, str], Mapping[str, Annotated[dict[str, Text], "title", "at"]]]
    kinds: tuple[ComparedKind, ...]
    ignored: Annotated[
        tuple[re.Pattern[str], ...], tuple[Annotated[dict[str, Text], "of", "why"], ...]
    ]
    same: Annotated[Mapping[str, str], tuple[Annotated[dict[str, Text], "of", "as", "source"], ...]]
    effects: tuple[DerivedProperty, ...]
    spellings: Annotated[
        Mapping[str, tuple[tuple[str, str], ...]], tuple[Mapping[str, Text | tuple[Text, ...]], ...]
    ]
    alike: tuple[Alike, ...]
    units: Annotated[
        tuple[tuple[re.Pattern[str], str], ...],
        tuple[Annotated[dict[str, Text], "of", "unit"], ...],
    ]
    packages: Annotated[Mapping[str, str], tuple[tuple[Text, ...], ...]]
    renamed: Annotated[re.Pattern[str], Annotated[dict[str, Text], "drop", "why", "source"]]
    rules: tuple[DifferenceRule, ...]

    def kind(self, name: str) -> ComparedKind | None:
        """The kind of a name; None for one that is not compared."""
        if any(pattern.fullmatch(name) for pattern in self.ignored):
            return None
        return next((kind for kind in self.kinds if kind.of.fullmatch(name)), None)

    def spelt(self, text: str, architecture: str) -> str:
        """A text with one spelling for what each architecture calls by its own name."""
        for own, common in self.spellings.get(architecture, ()):
            text = text.replace(own, common)
        return text

    def unit(self, name: str) -> str:
        """The unit that the numbers of something count; empty where they have none."""
        return next((unit for pattern, unit in self.units if pattern.fullmatch(name)), "")

    def rule(self, pair: Pair) -> DifferenceRule | None:
        """The first rule that fits a difference."""
        return next((rule for rule in self.rules if rule.fits(pair)), None)


@lru_cache(maxsize=1)
def load() -> PortingCatalog:
    """The catalog that comes with the program."""
    document = load_yaml(porting_path())
    # Findings name a source as people would look it up; the names of the file are its own.
    sources = {name: f"{page['title']}, {page['at']}" for name, page in document["sources"].items()}
    return PortingCatalog(
        schema=document["schema"],
        sources=sources,
        kinds=tuple(
            ComparedKind(**_compile_fields(fields, sources)) for fields in document["kinds"]
        ),
        ignored=tuple(re.compile(fields["of"]) for fields in document["ignored"]),
        same={fields["of"]: fields["as"] for fields in document["same"]},
        effects=tuple(_effect(fields, sources) for fields in document["effects"]),
        spellings=_spellings(document["spellings"]),
        alike=tuple(Alike(**_compile_fields(fields, sources)) for fields in document["alike"]),
        units=tuple((re.compile(entry["of"]), entry["unit"]) for entry in document["units"]),
        packages={name: several[0] for several in document["packages"] for name in several},
        renamed=re.compile(document["renamed"]["drop"]),
        rules=tuple(
            DifferenceRule(**_compile_fields(fields, sources)) for fields in document["rules"]
        ),
    )


def _compile_fields(fields: Mapping[str, Any], sources: Mapping[str, str]) -> dict[str, Any]:
    compiled: dict[str, Any] = {}
    for name, value in fields.items():
        if name in ("of", "drop", "without"):
            compiled[name] = re.compile(value)
        elif name == "values":
            compiled[name] = tuple(map(re.compile, value))
        else:
            compiled[name] = tuple(value) if isinstance(value, list) else value
    return compiled | {"source": sources[fields["source"]]} if "source" in fields else compiled


def _effect(fields: Mapping[str, Any], sources: Mapping[str, str]) -> DerivedProperty:
    steps = tuple(DerivationStep(**_compile_fields(step, sources)) for step in fields["steps"])
    return DerivedProperty(**_compile_fields(fields, sources) | {"steps": steps})


def _spellings(entries: Iterable[Mapping[str, Any]]) -> dict[str, tuple[tuple[str, str], ...]]:
    # In the order of the file: a triplet contains a name of its architecture, and is replaced before that.
    spellings: dict[str, tuple[tuple[str, str], ...]] = {}
    for entry in entries:
        for architecture, several in entry.items():
            # The common name is a field beside the lists of architectures.
            if isinstance(several, list):
                pairs = tuple((own, entry["name"]) for own in several)
                spellings[architecture] = spellings.get(architecture, ()) + pairs
    return spellings


_NOT_READ = "on a machine, only variables that affect builds and speed are read"
_MANAGERS = ("dpkg", "rpm", "apk")


class _Item(Value):
    """One thing of one side: its values, where the first was seen, what it is called there, and its package manager."""

    values: tuple[str, ...]
    sighting: Seen
    called: str = ""
    manager: str = ""

    @property
    def value(self) -> str:
        return ", ".join(self.values)

    def describe(self, kind: ComparedKind) -> Held:
        """The value to report; where only names count, that it is there."""
        value = "yes" if kind.by == "name" else self.value
        return Held(value=value, seen_by=self.sighting.seen_by, where=self.sighting.where)


class _Side:
    """One side: its items by name, and why it has none of what it was not asked for."""

    def __init__(self, inventory: Inventory, catalog: PortingCatalog) -> None:
        self.inventory = inventory
        self.catalog = catalog
        self.architecture = inventory.platform.partition("/")[2].partition("/")[0]
        self.skipped = {entry.what: entry.reason for entry in inventory.skipped}
        self.items: dict[str, _Item] = {}
        self.kinds: dict[str, ComparedKind] = {}
        # A saved inventory may name things without a sighting.
        self.features = {name: several for name, several in inventory.features.items() if several}
        for name, item in self._read_items():
            kind = catalog.kind(name)
            if kind is not None:
                # Two things of one name for both sides, such as two packages, are one item.
                known = self.items.setdefault(name, item)
                values = tuple(sorted({*known.values, *item.values}))
                self.items[name] = item if known is item else known.replace(values=values)
                self.kinds[name] = kind
        self.has = {kind.kind for kind in self.kinds.values()}
        # A lock is neither: it says nothing of what it does not hold.
        software = "image" if REST not in self.skipped else ""
        self.subject = "machine" if "kernel" in self.has else software
        labels = inventory.features.get("label:" + COMPONENTS, ())
        self.labelled = frozenset(labels[0].version.split()) if labels else None

    def _read_items(self) -> Iterator[tuple[str, _Item]]:
        for name, several in self.inventory.components.items():
            if not several:
                continue
            default = next((sighting for sighting in several if sighting.default), several[0])
            # Nobody knows which of them a user gets, so that none of them can differ from the other side.
            if not default.default and f"{WHICH}{name}" in self.skipped:
                continue
            yield f"component:{name}", _Item(values=(default.version,), sighting=default)
        for name, several in self.features.items():
            values = tuple(sorted({sighting.version for sighting in several}))
            manager, _, called = name.partition(":")
            item = _Item(values=values, sighting=several[0])
            if manager in _MANAGERS:
                item = item.replace(called=called, manager=manager)
            yield self._named(name), item
        if self.architecture and "arch" not in self.inventory.features:
            sighting = Seen(version=self.architecture, seen_by="platform", where="")
            yield "arch", _Item(values=(self.architecture,), sighting=sighting)
        for soname in self.inventory.sonames:
            if not soname.found:
                there = f"there is {', '.join(soname.others)}" if soname.others else "missing"
                where = next(iter(soname.needed_by), "")
                sighting = Seen(version=there, seen_by="loader", where=where)
                yield self._named(f"needs:{soname.name}"), _Item(values=(there,), sighting=sighting)
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
        name = next((key for key in self.features if step.of and step.of.fullmatch(key)), "")
        if name:
            sightings = self.features[name]
            values = {step.value} if step.value else {sighting.version for sighting in sightings}
            return _Item(values=tuple(sorted(values)), sighting=sightings[0])
        if step.arch and step.arch == self.architecture:
            sighting = Seen(version=step.value, seen_by="architecture", where=step.arch)
            return _Item(values=(step.value,), sighting=sighting)
        return None

    def value(self, name: str) -> str:
        """The value of something, nothing where this side has none of it."""
        return self.items[name].value if name in self.items else ""

    def blind(self, name: str, kind: ComparedKind) -> str | None:
        """The reason why this side does not know what it lacks; None where lacking it is an answer."""
        feature, _, bare = name.partition(":")
        managers = _MANAGERS if feature == "package" else ()
        for what in (name, bare, WHICH + bare, feature, *managers, kind.kind, kind.group, REST):
            if what in self.skipped:
                return self.skipped[what]
        # Nothing of a kind is an answer only where something shows that the side was asked for that kind.
        proof = kind.none or kind.kind
        return None if proof == ALWAYS or proof in self.has else "it has no information about these"

    def compared(self, name: str, text: str) -> str:
        """A value as it is compared: spelt in common, and without what never counts."""
        text = self.catalog.spelt(text, self.architecture)
        for rule in self.catalog.alike:
            if rule.of.fullmatch(name):
                text = rule.drop.sub("", text)
        return text


class _Pairing:
    """Two sides, what holds of them, and what a lock says of either."""

    def __init__(self, sides: Sides, locked: Sides | None, why: Why) -> None:
        self.sides = sides
        self.locked = locked
        self.why = why
        self.catalog = sides[0].catalog
        self.names = sides[0].items.keys() | sides[1].items.keys()
        properties = {
            "architecture": [side.architecture for side in sides],
            "distribution": [side.value("component:distro") for side in sides],
            "char": [side.value("effect:char") for side in sides],
            "subject": [side.subject for side in sides],
        }
        self.holds = frozenset(
            f"{'same' if left == right else 'other'}-{name}"
            for name, (left, right) in properties.items()
            if left and right
        )

    def items(self, name: str) -> tuple[_Item | None, _Item | None]:
        """The items of both sides under a name."""
        return self.sides[0].items.get(name), self.sides[1].items.get(name)

    def blind(self, name: str, kind: ComparedKind) -> tuple[int, str] | None:
        """The side that lacks something only because it was not read there, and why."""
        for index, (side, item) in enumerate(zip(self.sides, self.items(name), strict=True)):
            reason = self._unread(side, name) or side.blind(name, kind) if item is None else None
            if reason is not None:
                return index, reason
        return None

    def _unread(self, side: _Side, name: str) -> str | None:
        is_read = not name.startswith("env:") or bool(self.why(name)[0])
        return None if is_read or side.subject != "machine" else _NOT_READ

    def difference(self, name: str, kind: ComparedKind) -> Difference:
        """Something that is not the same, judged."""
        old, new = self.items(name)
        # Package managers may call a thing by two names, and then it goes by the one for both.
        called = {item.called for item in (old, new) if item}
        verdict, why, source = self._alike(name) or self._locked(name) or self._judge(name)
        return Difference(
            group=kind.group,
            kind=kind.kind,
            name=name,
            shown=(called.pop() if len(called) == 1 else "") or kind.label(name),
            old=old.describe(kind) if old else None,
            new=new.describe(kind) if new else None,
            verdict=verdict,
            why=why,
            source=source,
            unit=self.catalog.unit(name),
        )

    def _judge(self, name: str) -> Judgement:
        # What no rule expects is suspicious, for the reason why it matters at all.
        rule = self.catalog.rule(self._pair(name))
        if rule is not None:
            return rule.verdict, rule.why, rule.source
        for effect in self.catalog.effects:
            if name == f"effect:{effect.name}":
                return SUSPICIOUS, effect.why, effect.source
        return SUSPICIOUS, *self.why(name)

    def _pair(self, name: str) -> Pair:
        holder, words = None, set(self.holds)
        for side, item, opposite in zip(
            self.sides, self.items(name), reversed(self.sides), strict=True
        ):
            if item is None:
                holder = opposite.architecture
                bare = name.removeprefix("component:")
                if side.labelled is not None and bare not in side.labelled:
                    words.add("unlisted")
        return Pair(
            name=name,
            holds=frozenset(words),
            names=self.names,
            values=(self.sides[0].value(name), self.sides[1].value(name)),
            holder=holder,
        )

    def _alike(self, name: str) -> Judgement | None:
        old, new = self.items(name)
        if old is None or new is None:
            return None
        both = tuple(zip(self.sides, (old, new), strict=True))
        spelt = [
            {self.catalog.spelt(v, side.architecture) for v in item.values} for side, item in both
        ]
        if spelt[0] == spelt[1]:
            return EXPECTED, "each names its own architecture", ""
        bare = [{side.compared(name, v) for v in item.values} for side, item in both]
        if bare[0] != bare[1]:
            return None
        # One was dropped, or the values would differ still.
        rule = next(
            rule
            for rule in self.catalog.alike
            if rule.of.fullmatch(name) and any(map(rule.drop.search, (*spelt[0], *spelt[1])))
        )
        return EXPECTED, rule.why, rule.source

    def _locked(self, name: str) -> Judgement | None:
        """The judgement that a lock holds what was found on either side, and holds it differently."""
        if self.locked is None or name.startswith("effect:"):
            return None
        locked_items = [side.items.get(name) for side in self.locked]
        values = [side.value(name) or "none" for side in self.locked]
        # The lock explains a difference only if each side has what the lock says of it.
        agree = all(
            item is locked is None
            or (
                item
                and locked
                and (locked.values == item.values or _agree(locked.value, item.value))
            )
            for locked, item in zip(locked_items, self.items(name), strict=True)
        )
        if not agree or values[0] == values[1]:
            return None
        return EXPECTED, "the lock has this difference between the two targets", ""


def compare(
    old: Inventory,
    new: Inventory,
    catalog: PortingCatalog,
    why: Why = lambda _name: ("", ""),
    locked: tuple[Inventory, Inventory] | None = None,
) -> Comparison:
    """Compare two inventories. `locked` are what a lock says of either side, so that what it explains is expected."""
    lock_sides = (_Side(locked[0], catalog), _Side(locked[1], catalog)) if locked else None
    pairing = _Pairing((_Side(old, catalog), _Side(new, catalog)), lock_sides, why)
    differences: list[Difference] = []
    same: list[tuple[str, str, str]] = []
    unseen: dict[tuple[str, str, int, str], list[str]] = {}
    kinds = pairing.sides[0].kinds | pairing.sides[1].kinds
    order = {kind.kind: position for position, kind in enumerate(catalog.kinds)}
    for name in sorted(kinds, key=lambda name: (order[kinds[name].kind], name)):
        kind = kinds[name]
        items = pairing.items(name)
        blind = pairing.blind(name, kind)
        if blind is not None:
            unseen.setdefault((kind.group, kind.kind, *blind), []).append(kind.label(name))
        elif _equal(name, kind, *items):
            same.append(
                (kind.group, kind.label(name), items[0].describe(kind).value if items[0] else "")
            )
        else:
            differences.append(pairing.difference(name, kind))
    return Comparison(
        sides=(old, new),
        differences=tuple(differences),
        same=tuple(same),
        unseen=tuple(
            Unseen(group=group, kind=kind, names=tuple(names), side=side, reason=reason)
            for (group, kind, side, reason), names in unseen.items()
        ),
    )


def _equal(name: str, kind: ComparedKind, old: _Item | None, new: _Item | None) -> bool:
    if old is None or new is None:
        return False
    if kind.by == "name" or old.values == new.values:
        return True
    # Distributions number packages by themselves, so that only the number of the upstream release can agree.
    if old.manager != new.manager:
        return {*map(upstream, old.values)} == {*map(upstream, new.values)}
    return name.startswith("component:") and _agree(old.value, new.value)


def _agree(left: str, right: str) -> bool:
    """True if two versions may be the same: one may have fewer numbers, or be a floor such as `>=450`."""
    return _may_be(left, right) or _may_be(right, left)


def _may_be(coarse: str, fine: str) -> bool:
    if coarse.startswith(">="):
        return admits(coarse, fine.removeprefix(">="))
    return fine.startswith((f"{coarse}.", f"{coarse}+"))
