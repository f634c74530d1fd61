"""What in a lock could move to a newer release, what would move with it, and what prevents it.

Each move is a request that was solved: the words of the answer with one release more, or with another in the place of
the one that they name, and all other releases preferred as they were locked. Components of names have no newer ones.
"""

from __future__ import annotations

from toolmatrix.factbase.records import ClaimRecord
from toolmatrix.request.fields import Fields, parse_arguments
from toolmatrix.request.names import Names
from toolmatrix.request.read import read
from toolmatrix.solve.resolve import Resolution, Unsatisfiable, possible, resolve
from toolmatrix.value import NamedTuple, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolmatrix.factbase.index import Index
    from toolmatrix.lockfile.model import LockedEnvironment, LockedTarget
    from toolmatrix.solve.request import PreferredReleases

    Progress = Callable[[int, int], None]
    """Receives the number of components done, and of all."""


class Moved(NamedTuple):
    """A component of a target that another release takes the place of; empty where it was not or is no more."""

    target: str
    component: str
    old: str
    new: str


class Newer(Value):
    """A release that a component can move to, the words of the request for it, and what moves with it."""

    version: str
    words: tuple[str, ...]
    resolution: Resolution
    changes: tuple[Moved, ...]


class Upgrade(Value):
    """What can become of one component: `held` are its releases by target, `newest` the newest that there is.

    `move` is the newest that components decided before it let it have, `further` the newest with these moving, and
    `refusal` why it cannot have the newest at all; `asked` are the words of the request that keep it where it is, and
    without which moves were looked for.
    """

    component: str
    held: Mapping[str, str]
    newest: str
    asked: str = ""
    move: Newer | None = None
    further: Newer | None = None
    refusal: Unsatisfiable | Resolution | None = None


class Upgrades(Value):
    """All of an environment: `answer` is what its words are answered with today where locked releases are preferred."""

    words: tuple[str, ...]
    answer: Resolution | Unsatisfiable
    components: tuple[Upgrade, ...]
    unknown: tuple[Moved, ...]


def upgrades(
    index: Index, locked: LockedEnvironment, progress: Progress = lambda *_: None
) -> Upgrades:
    """The upgrades of an environment of a lock. Raises ToolmatrixError where its words cannot be asked any more."""
    return _Environment(index, locked).upgrades(progress)


class _Environment:
    def __init__(self, index: Index, locked: LockedEnvironment) -> None:
        self.index = index
        self.locked = locked
        self.names = Names(index)
        self.fields = Fields(**parse_arguments(locked.request))
        self.keep: PreferredReleases = tuple(
            (target, component, version)
            for target, locked_target in locked.targets.items()
            for component, version in locked_target.chosen.items()
        )
        # Locked releases are preferred, not required: a lock of an older matrix may have what facts refuse today.
        self.answer = resolve(index, read(index, self.fields, keep=self.keep))

    def upgrades(self, progress: Progress) -> Upgrades:
        known, unknown = self._known_releases()
        upgrades = []
        # Without an answer to the words alone every release would be refused, and for reasons that are not its own.
        movable = known if isinstance(self.answer, Resolution) else {}
        for done, (component, versions) in enumerate(movable.items()):
            progress(done, len(movable))
            upgrades.append(self.upgrade(component, versions))
        return Upgrades(
            words=self.locked.request,
            answer=self.answer,
            components=tuple(upgrades),
            unknown=tuple(unknown),
        )

    def _known_releases(self) -> tuple[dict[str, dict[str, str]], list[Moved]]:
        """The releases of each component that has an order, by target, and what the matrix does not know."""
        heads = self.index.header["components"]
        known: dict[str, dict[str, str]] = {}
        unknown = []
        for target, locked_target in self.locked.targets.items():
            for name, entry in locked_target.components.items():
                head = heads.get(name)
                if head is None:
                    unknown.append(Moved(target, name, entry.version, ""))
                elif head["scheme"] != "names" and not entry.floor:
                    known.setdefault(name, {})[target] = entry.version
        ranked = dict.fromkeys((*heads, *known))
        return {name: known[name] for name in ranked if name in known}, unknown

    def upgrade(self, component: str, releases: dict[str, str]) -> Upgrade:
        scale, facts = self.index.scale(component), self.index.component(component)
        at = self.fields.at
        newer = ~facts.yanked
        # Newer than on each target: otherwise one would move up, and another down.
        for version in releases.values():
            newer &= scale.select(f">{version}")
        newer &= ~sum(2 << i for i, date in enumerate(facts.dates) if at and date > at)
        if not newer:
            return Upgrade(component=component, held=releases, newest="")
        newest = facts.versions[newer.bit_length() - 2]
        fields, pins = self._freed(component, newer)
        # Components that are decided before it keep what they have, unless they cannot.
        bound = f">={scale.named(newer)[0]}"
        # By itself a request prefers what is known best, and not the newest that the component can have.
        looked = self._floored(_with(fields, component, bound), component).replace(prefer="newest")
        # With another release of what was asked for, what follows from it is decided by its facts and not by the lock.
        keep = releases_without(self.index, self.locked, {component}) if pins else self.keep
        answer = possible(self.index, read(self.index, looked, keep=_but(keep, component)))
        move = further = refusal = None
        if answer is not None:
            move = self._move(component, fields, _chosen(answer, component), keep)
        if move is None or move.version != newest:
            further = self._move(component, fields, newest, keep)
            refusal = self._refusal(component, fields, newest, further)
        return Upgrade(
            component=component,
            held=releases,
            newest=newest,
            asked=pins,
            move=move,
            further=further,
            refusal=refusal,
        )

    def _refusal(
        self, component: str, fields: Fields, newest: str, further: Newer | None
    ) -> Unsatisfiable | Resolution:
        """Why the newest cannot be had: at all, or with what would have to move for it where it is."""
        wanted = self._floored(_with(fields, component, f"=={newest}"), component)
        # What would be added was not locked at any release.
        moved = further.changes if further else ()
        current = {change.component: change.old for change in moved if change.old}
        for name, version in current.items():
            wanted = wanted.replace(with_=(*wanted.with_, f"{name}=={version}"))
        return resolve(self.index, read(self.index, wanted, keep=_but(self.keep, component)))

    def _freed(self, component: str, newer: int) -> tuple[Fields, str]:
        """The words without those that keep a component where it is, and these; it stays asked for."""
        words = (*self.fields.wanted, *self.fields.with_)
        asks_of = {word: self.names.asks(word) for word in words}
        pins = [
            word
            for word, asks in asks_of.items()
            if asks[0].component == component
            and not newer & self.index.scale(component).select(asks[0].selector)
        ]
        if not pins:
            return self.fields, ""
        # Of what is wanted the bare name stays, or an answer without the component would do.
        wanted = tuple(component if word in pins else word for word in self.fields.wanted)
        with_ = tuple(word for word in self.fields.with_ if word not in pins)
        return self.fields.replace(wanted=wanted, with_=with_), " ".join(pins)

    def _move(
        self, component: str, fields: Fields, version: str, keep: PreferredReleases
    ) -> Newer | None:
        changed = _with(fields, component, f"=={version}")
        # Why it cannot be is looked for once, by `_refusal`: a reason takes many more solves than an answer.
        resolution = possible(self.index, read(self.index, changed, keep=keep))
        # What rests on unread facts cannot be locked, and no move may lower what was asked for.
        if resolution is None or resolution.unread or self._lowers(resolution, component):
            return None
        return Newer(
            version=version,
            words=changed.arguments(),
            resolution=resolution,
            changes=tuple(self._changes(resolution, component)),
        )

    def _others(self, component: str) -> dict[str, str]:
        """The lowest locked releases of what else was asked for."""
        wanted = {self.names.asks(word)[0].component for word in self.fields.wanted}
        known = self._known_releases()[0]
        return {
            name: min(known[name].values(), key=self.index.component(name).versions.index)
            for name in known
            if name in wanted and name != component
            # A lock of another matrix may hold releases that this one does not know: they have no place in its order.
            if set(known[name].values()) <= {*self.index.component(name).versions}
        }

    def _floored(self, fields: Fields, component: str) -> Fields:
        # The newest NumPy goes with a TensorFlow of years before, which would be no upgrade of either.
        floors = [f"{name}>={version}" for name, version in self._others(component).items()]
        return fields.replace(with_=(*fields.with_, *floors))

    def _lowers(self, resolution: Resolution, component: str) -> bool:
        # The words of a move become those of the next lock, which floors would bind from then on: so what was
        # answered is looked at instead of asking with them.
        for name, floor in self._others(component).items():
            order = self.index.component(name).versions.index
            chosen = [resolution.chosen(target).get(name, "") for target in resolution.targets]
            if any(version and order(version) < order(floor) for version in chosen):
                return True
        return False

    def _changes(self, resolution: Resolution, component: str) -> Iterator[Moved]:
        before = self.answer
        # Nothing can be said to change where nothing is answered today.
        if isinstance(before, Unsatisfiable):
            return
        heads = self.index.header["components"]
        for target in resolution.targets:
            old, new = before.chosen(target), resolution.chosen(target)
            for name in dict.fromkeys((*heads, *old, *new)):
                # The bound of a driver follows from the rest; a build is of its release.
                independent = name != component and not heads[name]["variant_of"]
                if independent and old.get(name, "") != new.get(name, ""):
                    yield Moved(target, name, old.get(name, ""), new.get(name, ""))


def _but(keep: PreferredReleases, component: str) -> PreferredReleases:
    # A build is of its release, and goes with it.
    return tuple(pin for pin in keep if pin[1] not in (component, f"{component}-variant"))


def _with(fields: Fields, component: str, selector: str) -> Fields:
    """The words with a bound more, in the place of the bare name of what is wanted."""
    spec = f"{component}{selector}"
    if component in fields.wanted:
        wanted = tuple(spec if word == component else word for word in fields.wanted)
        return fields.replace(wanted=wanted)
    return fields.replace(with_=(*fields.with_, spec))


def _chosen(answer: Resolution, component: str) -> str:
    return next(
        version for target in answer.targets if (version := answer.chosen(target).get(component))
    )


def releases_without(
    index: Index, locked: LockedEnvironment, moving: set[str]
) -> PreferredReleases:
    """The releases of an environment, but for components that may move and what follows from them."""
    return tuple(
        (target, component, version)
        for target, locked_target in locked.targets.items()
        for component, version in locked_target.chosen.items()
        if component not in _moved(index, locked_target, moving)
    )


def _moved(index: Index, locked: LockedTarget, moving: set[str]) -> set[str]:
    # What a component says of another decided on it: when the one moves, so may the other, and what follows from that.
    mentions = {
        name: {
            record.subject
            for fact in entry.facts
            if isinstance(record := index.find(fact), ClaimRecord)
        }
        for name, entry in locked.components.items()
    }
    moved = set(moving)
    while more := {name for name in mentions if name not in moved and mentions[name] & moved}:
        moved |= more
    return moved
