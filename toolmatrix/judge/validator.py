"""Subjects observed and checked against a baseline: a lock, expectations, or the lock inside an image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolmatrix.errors import (
    BoundExceeded,
    LockError,
    NothingMatched,
    Position,
    ToolmatrixError,
    ToolMissing,
    UsageError,
)
from toolmatrix.facts.index import Index
from toolmatrix.finding import FAIL, PASS, UNKNOWN, VERDICTS, WARN, Judged, Verdict
from toolmatrix.images.limits import Budget
from toolmatrix.images.names import this_platform
from toolmatrix.inventory.layers import LayerStore
from toolmatrix.inventory.model import LOCK, Inventory
from toolmatrix.inventory.running import ProgramProbe
from toolmatrix.judge import expectations, images, locked, probes
from toolmatrix.judge.expectations import LABEL, Expectation
from toolmatrix.judge.pool import IndexedWork
from toolmatrix.lock import read, write
from toolmatrix.lock.model import Lock, LockedTarget
from toolmatrix.value import Value

REGISTRY = "registry:"
"""How subjects begin that verdicts can be attached to."""
# The media type of verdicts that are attached.
_ATTACHED = "application/vnd.toolmatrix.verdicts.v1+json"


class Baseline(Value):
    """The expectations that subjects are checked against: own ones, and a lock with the targets that count."""

    expected: tuple[Expectation, ...] = ()
    lock: Lock | None = None
    path: str = ""
    digest: str = ""
    targets: tuple[str, ...] = ()

    def with_lock(self, path: str) -> Baseline:
        """This one with the lock at a path, unless that is empty. Raises LockError."""
        if not path:
            return self
        lock = read.read(path)
        return self.replace(lock=lock, path=path, digest=write.digest(lock))

    def target(self, inventory: Inventory) -> str:
        """The target that an image was made for: the one named, of its label, or of its platform."""
        held = self.held
        if len(self.targets) > 1:
            raise UsageError(
                "validate checks one target at a time",
                expected="`--target NAME`",
                found=f"`--target {','.join(self.targets)}`",
            )
        if self.targets and self.targets[0] not in held:
            raise NothingMatched(
                f"{self.path} has no target `{self.targets[0]}`", expected=", ".join(held)
            )
        if self.targets or len(held) == 1:
            return self.targets[0] if self.targets else next(iter(held))
        label = inventory.features.get(f"label:{LABEL}target", ())
        named = [name for name in held if label and label[0].version == name]
        platform = _platform(inventory.platform)
        alike = [name for name in held if platform and platform == _platform(held[name].platform)]
        fitting = named or alike
        # Two targets of one platform differ in what is installed, and no guess would be right for both.
        if len(fitting) != 1:
            raise UsageError(
                "the image does not name the target of the lock it was made for",
                expected="`--target` with one of " + ", ".join(fitting or held),
                found=inventory.platform or "no platform",
            )
        return fitting[0]

    @property
    def components(self) -> set[str]:
        """The components that are expected, whatever the target."""
        names = {one.name for one in self.expected if one.kind == "component"}
        return names.union(*(target.components for target in self.held.values()))

    @property
    def features(self) -> set[str]:
        """The features that are expected, or that a flag which is expected changes."""
        flags = {flag for target in self.held.values() for flag in target.flags.cflags}
        flags |= {one.name for one in self.expected if one.kind == "flag"}
        named = {one.name for one in self.expected if one.kind == "feature"}
        return named | {images.EFFECTS[flag][0] for flag in flags & images.EFFECTS.keys()}

    @property
    def held(self) -> dict[str, LockedTarget]:
        """The targets of the lock, whatever environment asks for them; of one name the last."""
        return self.lock.held if self.lock else {}

    def of(self, inventory: Inventory) -> Baseline:
        """This one, or where it expects nothing the lock inside the image. Raises LockError for an image without."""
        if self.expected or self.lock is not None:
            return self
        lock = locked.embedded(inventory)
        return self.replace(lock=lock, path=f"/{LOCK}", digest=write.digest(lock))


def _platform(text: str) -> str:
    # Whoever builds may leave out the variant, as in `linux/arm64/v8` (OCI image index, platform).
    return "/".join(text.split("/")[:2])


class Attempt(Value):
    """The verdicts about one subject, and its identity by then; None where those that were known still stand."""

    identity: str = ""
    judged: Judged | None = None


class Validator(IndexedWork):
    """Everything that checking a subject takes; `store` changes no verdict, only how long it takes."""

    baseline: Baseline
    directory: str = ""
    platform: str = ""
    only: tuple[str, ...] = ()
    run: bool = True
    strict: bool = False
    attach: bool = False
    store: LayerStore | None = None

    @property
    def settings(self) -> tuple[object, ...]:
        """What decides verdicts besides the matrix and the subjects."""
        baseline = self.baseline
        asked = (baseline.digest, baseline.targets, baseline.expected)
        return (*asked, self.only, self.run, self.strict, self.platform or this_platform())

    def judge(self, subject: str) -> Judged:
        """The verdicts about one subject. Raises ToolmatrixError where it cannot be observed.

        With `attach` they are those that are attached to an image in a registry, or are attached to it; where the
        registry does not take them they say why.
        """
        if not self.attach:
            return self._judged(subject)
        from toolmatrix.images import referrers

        place, budget = subject.removeprefix(REGISTRY), Budget(subject)
        run = {f"{LABEL}run": self.key}
        with referrers.opened(place, _ATTACHED, budget) as there:
            digest = there.digest
            for document in there.documents(run):
                kept = _attached(document)
                if kept is not None:
                    # Another name of the same image may have been judged.
                    return kept.replace(subject=subject)
        judged = self._judged(subject)
        try:
            # Opened anew, for one line has a measure of time that reading the image is no part of.
            with referrers.opened(place, _ATTACHED, budget) as there:
                # What a name stood for before and after it was read is what was read.
                if there.digest == digest:
                    there.put(judged.to_json(), run)
        except referrers.UNREADABLE as error:
            return judged.replace(not_attached=_reason(error))
        return judged

    def _judged(self, subject: str) -> Judged:
        inventory = locked.observe(
            subject, self.platform, self.directory, None, self.asks, self.store
        )
        baseline = self.baseline.of(inventory)
        expected = list(baseline.expected)
        target = ""
        if baseline.lock is not None:
            target = baseline.target(inventory)
            expected += expectations.of_lock(
                self.index, baseline.held[target], baseline.digest, baseline.lock.requests[target]
            )
        found = images.judge(inventory, expected, self.index)
        return Judged(
            subject=subject,
            platform=inventory.platform,
            digest=inventory.digest,
            lock=baseline.path,
            lock_digest=baseline.digest,
            target=target,
            verdicts=self._wanted(_following(found, inventory, self.index, target)),
        )

    def asks(self, read: Inventory) -> Sequence[ProgramProbe]:
        """The probes for the programs of an image that was read: those of what is expected of it, and no others."""
        baseline = self.baseline.of(read)
        wanted = baseline.components
        # A program that nothing is expected of is not started: each costs a process in the container.
        known = probes.of_index(self.index, wanted) if self.run else ()
        return [one for one in known if one.name in wanted | baseline.features]

    def _wanted(self, found: Iterable[Verdict]) -> tuple[Verdict, ...]:
        every = tuple(found)
        kinds = {word for one in every for word in (one.kind, one.name)}
        odd = next((word for word in self.only if word not in kinds), "")
        # A misspelt name would leave no check, and nothing would be wrong.
        if odd:
            raise NothingMatched(
                f"unknown check `{odd}`",
                expected="one of " + ", ".join(dict.fromkeys(one.kind for one in every)),
                found=f"`--only {odd}`",
            )
        chosen = (one for one in every if not self.only or {one.kind, one.name} & {*self.only})
        return tuple(
            one.replace(word=FAIL) if self.strict and one.word == WARN else one for one in chosen
        )

    def attempt(self, subject: str, known: str | None) -> Attempt:
        """The verdicts, or the one that says why there are none, unless the subject still has the identity `known`."""
        # Nobody keeps results where that is None, so that nothing has to be identified.
        identity = "" if known is None else locked.identity(subject, self.directory)
        if identity and identity == known:
            return Attempt(identity=identity)
        try:
            judged = self.judge(subject)
        except (ToolMissing, BoundExceeded):
            # Another run may not meet these though the subject is the same, so that they are kept without identity.
            raise
        except ToolmatrixError as error:
            judged = refused(subject, error)
        # Told anew after reading, for a tag may move while its image is read.
        # Where it changed meanwhile nobody knows which one was judged.
        if identity and identity != locked.identity(subject, self.directory):
            identity = ""
        return Attempt(identity=identity, judged=judged)


def _attached(document: Any) -> Judged | None:
    # Whoever may push may attach anything; what is no document of ours counts as not there.
    try:
        return Judged.from_json(document) if document["schema"] == VERDICTS else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _reason(error: ToolmatrixError) -> str:
    return error.what + (f", found {error.found}" if error.found else "")


def refused(subject: str, error: Exception) -> Judged:
    """A subject that could not be observed: nobody can say what it is."""
    if isinstance(error, ToolmatrixError):
        where = f"{error.where}: " if error.where else ""
        reason, code, help = f"{where}{_reason(error)}", error.code, error.help
    else:
        reason, code, help = f"{type(error).__name__}: {error}", "TM900", "report it"
    verdict = Verdict(
        word=UNKNOWN, kind="subject", name="subject", reason=reason, code=code, help=help
    )
    return Judged(subject=subject, verdicts=(verdict,))


def _following(
    verdicts: Iterable[Verdict], inventory: Inventory, index: Index, target: str
) -> list[Verdict]:
    """The verdicts; what fails only since the image follows a lock of its own says so, and asks for nothing."""
    found = list(verdicts)
    try:
        own = locked.embedded(inventory)
    except LockError:
        return found
    part = own.held.get(target)
    if part is None or not any(one.word == FAIL for one in found):
        return found
    wanted = expectations.of_lock(index, part, write.digest(own), own.requests[target])
    follows = {
        (one.kind, one.name) for one in images.judge(inventory, wanted, index) if one.word == PASS
    }
    return [
        one.replace(reason="the lock in the image requires it", help="")
        if one.word == FAIL and one.kind == "component" and (one.kind, one.name) in follows
        else one
        for one in found
    ]


def expectations_of(words: Iterable[tuple[str, Position | None]]) -> tuple[Expectation, ...]:
    """The expectations of some words with their places. Raises UsageError for a word that is not an expectation."""
    return tuple(expectations.of_word(word, where) for word, where in words)
