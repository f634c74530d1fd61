"""One subject observed and judged: what a process of its own can do as well as this one."""

from __future__ import annotations

from functools import lru_cache

from toolmatrix import __version__
from toolmatrix.cli import probes
from toolmatrix.errors import (
    BoundReached,
    NothingMatched,
    Position,
    ToolmatrixError,
    ToolMissing,
    UsageError,
)
from toolmatrix.finding import FAIL, UNKNOWN, WARN, Verdict
from toolmatrix.images.platforms import this_platform
from toolmatrix.inventory.model import LOCK
from toolmatrix.judge import expectations, images, locked, own
from toolmatrix.judge.expectations import LABEL, BadExpectation, Expectation
from toolmatrix.lock import write
from toolmatrix.report.verdicts import Judged
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.inventory.model import Inventory
    from toolmatrix.inventory.running import Probe
    from toolmatrix.lock.model import Lock, LockedTarget


class Yardstick(Value):
    """What subjects are held against: expectations, and a lock with its path, its digest and the targets that count."""

    expected: tuple[Expectation, ...] = ()
    lock: Lock | None = None
    path: str = ""
    digest: str = ""
    targets: tuple[str, ...] = ()

    def target(self, inventory: Inventory) -> str:
        """The target that an image was made for: the one named, of its label, or of its platform."""
        held = self.held
        if len(self.targets) > 1:
            raise UsageError(
                "an image is held against one target",
                expected="`--target NAME`",
                found=f"`--target {','.join(self.targets)}`",
            )
        if self.targets and self.targets[0] not in held:
            raise NothingMatched(
                f"{self.path} holds no target `{self.targets[0]}`", expected=", ".join(held)
            )
        if self.targets or len(held) == 1:
            return self.targets[0] if self.targets else next(iter(held))
        label = inventory.features.get(f"label:{LABEL}target", ())
        fitting = [name for name in held if label and label[0].version == name] or [
            name
            for name in held
            if inventory.platform
            and _platform(held[name].platform) == _platform(inventory.platform)
        ]
        if len(fitting) != 1:
            raise UsageError(
                "the image does not tell which target of the lock it was made for",
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

    def of(self, inventory: Inventory) -> Yardstick:
        """This one, or where it expects nothing the lock inside the image. Raises LockError for an image without."""
        if self.expected or self.lock is not None:
            return self
        lock = own.lock(inventory)
        return self.replace(lock=lock, path=f"/{LOCK}", digest=write.digest(lock))


def _platform(text: str) -> str:
    """`linux/arm64/v8` without its variant."""
    return "/".join(text.split("/")[:2])


class Attempt(Value):
    """What came of one subject, and what it was by then; without verdicts where those that were held still stand."""

    identity: str = ""
    judged: Judged | None = None


class Bench(Value):
    """Everything that judging a subject takes; it can be sent to another process."""

    matrices: tuple[str, ...]
    env: Mapping[str, str]
    yardstick: Yardstick
    directory: str = ""
    platform: str = ""
    only: tuple[str, ...] = ()
    run: bool = True
    strict: bool = False

    @property
    def key(self) -> str:
        """What decides verdicts besides the subjects, as a digest."""
        from hashlib import sha256

        stick = self.yardstick
        matrix = self.index.header["digest"]
        asked = (stick.digest, stick.targets, stick.expected, self.only, self.run, self.strict)
        said = (__version__, matrix, *asked, self.platform or this_platform())
        return sha256(repr(said).encode()).hexdigest()

    @property
    def index(self) -> Index:
        """The matrix in force, opened once in each process."""
        return _index(self.matrices, tuple(sorted(self.env.items())))

    def open(self) -> None:
        """Open the matrix here, so that processes that are started have it, and no subject pays for it."""
        _ = self.index

    def judge(self, subject: str) -> Judged:
        """The verdicts about one subject. Raises ToolmatrixError where it cannot be observed."""
        inventory = locked.observe(subject, self.platform, self.directory, None, self.asks)
        stick = self.yardstick.of(inventory)
        expected = list(stick.expected)
        target = ""
        if stick.lock is not None:
            target = stick.target(inventory)
            expected += expectations.of_lock(self.index, stick.held[target], stick.digest)
        found = images.judge(inventory, expected, self.index)
        return Judged(
            subject=subject,
            platform=inventory.platform,
            digest=inventory.digest,
            lock=stick.path,
            lock_digest=stick.digest,
            target=target,
            verdicts=self._wanted(own.told(found, inventory, self.index, target)),
        )

    def asks(self, read: Inventory) -> Sequence[Probe]:
        """What the programs of an image are asked that was read: what is expected of it, and nothing else."""
        stick = self.yardstick.of(read)
        wanted = stick.components
        known = probes.of_index(self.index, wanted) if self.run else ()
        return [one for one in known if one.name in wanted | stick.features]

    def _wanted(self, found: Iterable[Verdict]) -> tuple[Verdict, ...]:
        """Those that `--only` names by kind or name."""
        held = tuple(found)
        kinds = {word for one in held for word in (one.kind, one.name)}
        odd = next((word for word in self.only if word not in kinds), "")
        if odd:
            raise NothingMatched(
                f"no check is called `{odd}`",
                expected="one of " + ", ".join(dict.fromkeys(one.kind for one in held)),
                found=f"`--only {odd}`",
            )
        chosen = (one for one in held if not self.only or {one.kind, one.name} & {*self.only})
        return tuple(
            one.replace(word=FAIL) if self.strict and one.word == WARN else one for one in chosen
        )

    def attempt(self, subject: str, held: str | None) -> Attempt:
        """The verdicts, or the one that says why there are none, unless the subject still is what was `held`.

        Nothing is identified where that is None, as nobody keeps results. Raises what another run may not meet though
        the subject is the same: an engine that does not answer, a bound that is reached.
        """
        identity = "" if held is None else locked.identity(subject, self.directory)
        if identity and identity == held:
            return Attempt(identity=identity)
        try:
            judged = self.judge(subject)
        except (ToolMissing, BoundReached):
            raise
        except ToolmatrixError as error:
            judged = refused(subject, error)
        if identity and identity != locked.identity(subject, self.directory):
            identity = ""  # it changed meanwhile, and nobody knows which one was judged
        return Attempt(identity=identity, judged=judged)


def refused(subject: str, error: Exception) -> Judged:
    """A subject that could not be observed: nobody can say what it is."""
    if isinstance(error, ToolmatrixError):
        where = f"{error.where}: " if error.where else ""
        found = f", found {error.found}" if error.found else ""
        reason, code, help = f"{where}{error.what}{found}", error.code, error.help
    else:
        reason, code, help = f"{type(error).__name__}: {error}", "TM900", "report it"
    verdict = Verdict(
        word=UNKNOWN, kind="subject", name="subject", reason=reason, code=code, help=help
    )
    return Judged(subject=subject, verdicts=(verdict,))


@lru_cache(maxsize=1)
def _index(matrices: tuple[str, ...], env: tuple[tuple[str, str], ...]) -> Index:
    from toolmatrix.facts.store import open_index

    return open_index(matrices, dict(env))


def expectations_of(words: Iterable[tuple[str, Position | None]]) -> tuple[Expectation, ...]:
    """The expectations of some words with their places. Raises UsageError for one that expects nothing."""
    return tuple(_expectation(word, where) for word, where in words)


def _expectation(word: str, where: Position | None) -> Expectation:
    try:
        return expectations.of_word(word)
    except BadExpectation as error:
        raise UsageError(
            "an expectation cannot be read",
            where=where,
            expected=error.expected,
            found=f"`{word}`",
        ) from None
