"""Subjects observed and checked against a baseline: a lock, expectations, or the lock inside an image.

Each may be judged in a process of its own, and the results of a long run are kept as JSON Lines: a run that was killed
in the middle goes on where it stopped. Each line is one document `toolmatrix.verdicts/1` with the key of its run, which
is what decides besides the subject, and with what the subject was: a name may stand for another image by now. A line is
on the disk before the next subject is taken; one that was cut off is taken away, and lines of another run are left.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from toolmatrix.errors import (
    BoundExceeded,
    CannotSay,
    LockError,
    NothingMatched,
    Position,
    ToolmatrixError,
    ToolMissing,
    UsageError,
)
from toolmatrix.factbase.index import Index
from toolmatrix.finding import FAIL, PASS, UNKNOWN, VERDICTS, WARN, Judged, Verdict
from toolmatrix.images import streams
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import programs, running, subjects
from toolmatrix.inspection.layers import LayerStore
from toolmatrix.inspection.model import LOCK, REST, Inventory, Seen, Skipped
from toolmatrix.inspection.running import ProgramProbe
from toolmatrix.inspection.subjects import SCHEMES as OBSERVED
from toolmatrix.inspection.subjects import Scheme, SubjectRequest
from toolmatrix.judging import expectations, images
from toolmatrix.judging.expectations import LABEL, Expectation
from toolmatrix.judging.pool import IndexedWork, Pool
from toolmatrix.lockfile import lock_file
from toolmatrix.lockfile.model import Lock, LockedTarget
from toolmatrix.opener import open_file
from toolmatrix.outputs import ResultsFile
from toolmatrix.processors import this_platform
from toolmatrix.recipes import fields
from toolmatrix.recipes import model as recipe
from toolmatrix.recipes.model import Book, Effect, Provision
from toolmatrix.recipes.read import provisions
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    from typing_extensions import Self

    from toolmatrix.inspection.subjects import Ask
    from toolmatrix.judging.pool import WorkBounds, WorkResult


_COMPILERS = ("gcc", "clang")
_NAMES = ("cc", *_COMPILERS)
# Prints the macros that a compiler defines of itself (GCC manual, options of the preprocessor).
_MACROS = ("-dM", "-E", "-x", "c", "/dev/null")
_DEFINED = re.compile(r"(!?)defined\((\w+)\)")


def probes_of(index: Index, wanted: Collection[str] = ()) -> tuple[ProgramProbe, ...]:
    """Every probe that needs no value of an answer; those of `wanted` components are asked whatever reading saw."""
    return tuple(probe.replace(wanted=probe.name in wanted) for probe in _known(index))


@lru_cache(maxsize=1)
def _known(index: Index) -> tuple[ProgramProbe, ...]:
    catalog = provisions(index)
    return (*_of_components(catalog), *_of_flags(catalog.effects))


def _of_components(catalog: Book) -> Iterator[ProgramProbe]:
    # The probes of a component's first provision go in the first round; the fallbacks follow.
    rounds: dict[str, dict[tuple[str, ...], int]] = {}
    for provision in catalog.provisions:
        own_rounds = rounds.setdefault(provision.component, {})
        together = max(own_rounds.values(), default=-1) + 1
        for is_fallback, probe, run in sorted(_runs(provision), key=lambda entry: entry[0]):
            if run not in own_rounds:
                later = max(own_rounds.values(), default=-1) + 1
                own_rounds[run] = later if is_fallback else together
                yield ProgramProbe(
                    name=provision.component,
                    run=run,
                    about=(provision.component,),
                    after=probe.after,
                    round=own_rounds[run],
                )


def _runs(provision: Provision) -> Iterator[tuple[bool, recipe.Probe, tuple[str, ...]]]:
    """Each probe with its arguments, and whether it is a fallback for others."""
    for probe in provision.probes:
        try:
            words = [fields.fill(word, {"component": provision.component}) for word in probe.run]
        except KeyError:
            # It needs a value of an answer, and an image that is only looked at has none.
            continue
        # `python` is missing in many images that have `python3`. A version that a probe names no program has to print.
        for name in (words[0], *programs.other_names(words[0])) if not probe.wanted else ():
            yield bool(probe.when) or name != words[0], probe, (name, *words[1:])


def _of_flags(effects: Sequence[Effect]) -> Iterator[ProgramProbe]:
    # The default of a compiler shows in a macro, so that no file has to be compiled.
    names = [effect.name for effect in effects]
    for position, effect in enumerate(effects):
        match = _DEFINED.fullmatch(effect.holds)
        if match and names.count(effect.name) > 1 and effect.name not in names[:position]:
            values = (effect.expected, effect.otherwise)
            for turn, name in enumerate(_NAMES):
                yield ProgramProbe(
                    name=effect.name,
                    run=(name, *_MACROS),
                    about=_COMPILERS,
                    holds=f"#define {match[2]} ",
                    values=values[::-1] if match[1] else values,
                    round=turn,
                )


_LISTS = ("cflags", "cxxflags", "nvcc", "hipcc")
_WITNESS = "lock"
# Bytes from which a lock and an archive can be distinguished.
_HEAD = 1024
# How files begin that gzip, zstd, bzip2 and xz packed.
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")


def observe(
    subject: str,
    platform: str = "",
    directory: str = "",
    stdin: IO[bytes] | None = None,
    probes: Ask | None = None,
    store: LayerStore | None = None,
) -> Inventory:
    """The inventory of a subject, as `subjects.observe`, of a lock as well. Raises what that raises, and LockError."""
    inventory = subjects.observe(subject, platform, directory, stdin, SCHEMES, probes, store)
    try:
        digest = lock_file.digest(embedded(inventory))
    except LockError:
        return inventory
    # By the digest of its answers, as in labels: how a directory is rendered changes none of them.
    sightings = inventory.features.get(_WITNESS, ())
    locks = tuple(sighting.replace(version=digest) for sighting in sightings)
    return inventory.replace(features={**inventory.features, _WITNESS: locks})


def embedded(inventory: Inventory) -> Lock:
    """The lock inside an image. Raises LockError where there is none, or one that was edited."""
    if not inventory.lock:
        raise LockError(
            "it contains no lock",
            expected=f"/{LOCK}, as in a rendered image",
            help="name a lock with `--lock FILE`, or requirements with `--expect python==3.11.*`",
        )
    return lock_file.parse(inventory.lock.encode(), "/" + LOCK)


def subject_identity(subject: str, directory: str = "") -> str:
    """The identity of a subject at this moment, as `subjects.identity`, of a lock as well."""
    return subjects.identity(subject, directory, SCHEMES)


def is_subject(text: str, path: str) -> bool:
    """True if a word names a subject, by its scheme or because what lies at `path` is neither text nor a lock."""
    if subjects.is_named(text, SCHEMES) or os.path.isdir(path):
        return True
    try:
        with open_file(path) as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    # A lock is TOML: it begins with neither a brace nor the mark of a compressor, and has no byte 0.
    return b"\0" in head or head.lstrip().startswith(b"{") or head.startswith(_PACKED)


def inventory(target: LockedTarget, name: str, subject: str = "") -> Inventory:
    """A target as an inventory: its components, flags, variables, codegen archs and devices."""
    flags = target.flags
    features: dict[str, tuple[Seen, ...]] = {
        f"flag:{flag}": (_sighting(flag, f"{name} {kind}"),)
        # Reversed, so that of a flag in several lists the first one is named: a later value of a key wins.
        for kind in reversed(_LISTS)
        for flag in getattr(flags, kind)
    }
    for key, value in flags.env.items():
        features[f"env:{key}"] = (_sighting(value, f"{name} env"),)
    features |= {"codegen": _names(target.archs, name), "device": _names(target.devices, name)}
    return Inventory(
        subject=subject,
        platform=target.platform,
        components={
            component: (_sighting(f">={locked.version}" if locked.floor else locked.version, name),)
            for component, locked in sorted(target.components.items())
        },
        features={feature: several for feature, several in sorted(features.items()) if several},
        skipped=(Skipped(what=REST, reason="a lock has nothing else"),),
    )


def _names(values: Iterable[str], name: str) -> tuple[Seen, ...]:
    return tuple(_sighting(value, name) for value in sorted(values))


def _sighting(value: str, where: str) -> Seen:
    return Seen(version=value, seen_by=_WITNESS, where=where, default=True)


def _read(request: SubjectRequest) -> Inventory:
    path, wanted = _split_target(request)
    targets = lock_file.read(os.path.join(request.directory, path)).all_targets
    if wanted and wanted not in targets:
        raise NothingMatched(
            f"{path} has no target `{wanted}`", expected=", ".join(targets), found=f"`{wanted}`"
        )
    fitting = [
        name
        for name, target in targets.items()
        if name == wanted or (not wanted and request.platform in ("", target.platform))
    ]
    if len(fitting) != 1:
        raise UsageError(
            "a lock is compared for one target",
            expected=" or ".join(f"`lock:{path}#{name}`" for name in fitting or targets),
            found=f"`{request.subject}`",
        )
    return inventory(targets[fitting[0]], fitting[0], request.subject)


def _identity(request: SubjectRequest) -> str:
    return streams.file_identity(os.path.join(request.directory, _split_target(request)[0]))


def _split_target(request: SubjectRequest) -> tuple[str, str]:
    # The last `#` is the one before a target: a path may have others.
    path, sharp, target = request.place.rpartition("#")
    return (path, target) if sharp else (target, "")


SCHEMES = OBSERVED | {"lock": Scheme("lock:FILE#TARGET", "one target of a lock", _read, _identity)}
"""The kinds of subjects, by what precedes the first colon."""

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
        lock = lock_file.read(path)
        return self.replace(lock=lock, path=path, digest=lock_file.digest(lock))

    def target(self, inventory: Inventory) -> str:
        """The target that an image was made for: the one named, of its label, or of its platform."""
        targets = self.locked_targets
        if len(self.targets) > 1:
            raise UsageError(
                "validate checks one target at a time",
                expected="`--target NAME`",
                found=f"`--target {','.join(self.targets)}`",
            )
        if self.targets and self.targets[0] not in targets:
            raise NothingMatched(
                f"{self.path} has no target `{self.targets[0]}`", expected=", ".join(targets)
            )
        if self.targets or len(targets) == 1:
            return self.targets[0] if self.targets else next(iter(targets))
        label = inventory.features.get(f"label:{LABEL}target", ())
        named = [name for name in targets if label and label[0].version == name]
        platform = _platform(inventory.platform)
        fitting = named or [
            name for name in targets if platform and platform == _platform(targets[name].platform)
        ]
        # Two targets of one platform differ in what is installed, and no guess would be right for both.
        if len(fitting) != 1:
            raise UsageError(
                "the image does not name its target in the lock",
                expected="`--target` with one of " + ", ".join(fitting or targets),
                found=inventory.platform or "no platform",
            )
        return fitting[0]

    @property
    def components(self) -> set[str]:
        """The components that are expected, whatever the target."""
        names = {expected.name for expected in self.expected if expected.kind == "component"}
        return names.union(*(target.components for target in self.locked_targets.values()))

    @property
    def features(self) -> set[str]:
        """The features that are expected, or that a flag which is expected changes."""
        flags = {flag for target in self.locked_targets.values() for flag in target.flags.cflags}
        flags |= {expectation.name for expectation in self.expected if expectation.kind == "flag"}
        named = {expectation.name for expectation in self.expected if expectation.kind == "feature"}
        return named | {images.EFFECTS[flag][0] for flag in flags & images.EFFECTS.keys()}

    @property
    def locked_targets(self) -> dict[str, LockedTarget]:
        """The targets of the lock, whatever environment asks for them; of one name the last."""
        return self.lock.all_targets if self.lock else {}

    def of(self, inventory: Inventory) -> Baseline:
        """This one, or where it expects nothing the lock inside the image. Raises LockError for an image without."""
        if self.expected or self.lock is not None:
            return self
        lock = embedded(inventory)
        return self.replace(lock=lock, path=f"/{LOCK}", digest=lock_file.digest(lock))


def _platform(text: str) -> str:
    # Whoever builds may leave out the variant, as in `linux/arm64/v8` (OCI image index, platform).
    return "/".join(text.split("/")[:2])


class Attempt(Value):
    """The verdicts about one subject, and its identity by then; None where the known ones are still valid."""

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
        wanted = (baseline.digest, baseline.targets, baseline.expected)
        return (*wanted, self.only, self.run, self.strict, self.platform or this_platform())

    def judge(self, subject: str) -> Judged:
        """The verdicts about one subject. Raises ToolmatrixError where it cannot be observed.

        With `attach` they are those that are attached to an image in a registry, or are attached to it; where the
        registry does not take them they say why.
        """
        if not self.attach:
            return self._judge(subject)
        from toolmatrix.images import registry

        reference, budget = subject.removeprefix(REGISTRY), Budget(subject)
        run = {f"{LABEL}run": self.key}
        with registry.opened_referrers(reference, _ATTACHED, budget) as there:
            digest = there.digest
            for document in there.documents(run):
                attached = _parse_attached(document)
                if attached is not None:
                    # Another name of the same image may have been judged.
                    return attached.replace(subject=subject)
        judgement = self._judge(subject)
        try:
            # Opened again, as the time limit of one connection does not include reading the image.
            with registry.opened_referrers(reference, _ATTACHED, budget) as there:
                # What a name stood for before and after it was read is what was read.
                if there.digest == digest:
                    there.put(judgement.to_json(), run)
        except registry.UNREADABLE as error:
            return judgement.replace(not_attached=_reason(error))
        return judgement

    def _judge(self, subject: str) -> Judged:
        inventory = observe(subject, self.platform, self.directory, None, self.asks, self.store)
        baseline = self.baseline.of(inventory)
        expected = list(baseline.expected)
        target = ""
        if baseline.lock is not None:
            target = baseline.target(inventory)
            expected += expectations.of_lock(
                self.index,
                baseline.locked_targets[target],
                baseline.digest,
                baseline.lock.requests[target],
            )
        verdicts = images.judge(inventory, expected, self.index)
        return Judged(
            subject=subject,
            platform=inventory.platform,
            digest=inventory.digest,
            lock=baseline.path,
            lock_digest=baseline.digest,
            target=target,
            verdicts=self._select(_mark_followed(verdicts, inventory, self.index, target)),
        )

    def asks(self, read: Inventory) -> Sequence[ProgramProbe]:
        """The probes for the programs of an image that was read: those of what is expected of it, and no others."""
        baseline = self.baseline.of(read)
        wanted = baseline.components
        # A program that nothing is expected of is not started: each costs a process in the container.
        known = probes_of(self.index, wanted) if self.run else ()
        imports = running.import_probes(read, wanted) if self.run else []
        others = (wanted | baseline.features) - {probe.name for probe in imports}
        return [*imports, *(probe for probe in known if probe.name in others)]

    def _select(self, verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
        every = tuple(verdicts)
        kinds = {name for verdict in every for name in (verdict.kind, verdict.name)}
        odd = next((name for name in self.only if name not in kinds), "")
        # A misspelt name would leave no check, and nothing would be wrong.
        if odd:
            raise NothingMatched(
                f"unknown check `{odd}`",
                expected="one of " + ", ".join(dict.fromkeys(verdict.kind for verdict in every)),
                found=f"`--only {odd}`",
            )
        only = {*self.only} or kinds
        chosen = (verdict for verdict in every if {verdict.kind, verdict.name} & only)
        return tuple(
            verdict.replace(word=FAIL) if self.strict and verdict.word == WARN else verdict
            for verdict in chosen
        )

    def attempt(self, subject: str, known: str | None) -> Attempt:
        """The verdicts, or the one that says why there are none, unless the subject still has the identity `known`."""
        # Nobody keeps results where that is None, so that nothing has to be identified.
        identity = "" if known is None else subject_identity(subject, self.directory)
        if identity and identity == known:
            return Attempt(identity=identity)
        try:
            judgement = self.judge(subject)
        except (ToolMissing, BoundExceeded):
            # Another run may not meet these though the subject is the same, so that they are kept without identity.
            raise
        except ToolmatrixError as error:
            judgement = refused(subject, error)
        # Read again afterwards, for a tag may move while its image is read.
        # Where it changed meanwhile, which one was judged is unknown.
        if identity and identity != subject_identity(subject, self.directory):
            identity = ""
        return Attempt(identity=identity, judged=judgement)


def _parse_attached(document: Any) -> Judged | None:
    # Whoever may push may attach anything; what is no document of ours counts as not there.
    try:
        return Judged.from_json(document) if document["schema"] == VERDICTS else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _reason(error: ToolmatrixError) -> str:
    return error.what + (f", found {error.found}" if error.found else "")


def refused(subject: str, error: Exception) -> Judged:
    """The verdict about a subject that could not be observed."""
    if isinstance(error, ToolmatrixError):
        where = f"{error.where}: " if error.where else ""
        reason, code, help = f"{where}{_reason(error)}", error.code, error.help
    else:
        reason, code, help = f"{type(error).__name__}: {error}", "TM900", "report it"
    verdict = Verdict(
        word=UNKNOWN, kind="subject", name="subject", reason=reason, code=code, help=help
    )
    return Judged(subject=subject, verdicts=(verdict,))


def _mark_followed(
    verdicts: Iterable[Verdict], inventory: Inventory, index: Index, target: str
) -> list[Verdict]:
    """The verdicts; what fails only since the image follows a lock of its own says so, and asks for nothing."""
    every = list(verdicts)
    try:
        own = embedded(inventory)
    except LockError:
        return every
    locked = own.all_targets.get(target)
    if locked is None or not any(verdict.word == FAIL for verdict in every):
        return every
    wanted = expectations.of_lock(index, locked, lock_file.digest(own), own.requests[target])
    follows = {
        (verdict.kind, verdict.name)
        for verdict in images.judge(inventory, wanted, index)
        if verdict.word == PASS
    }
    return [
        verdict.replace(reason="the lock in the image requires it", help="")
        if verdict.word == FAIL
        and verdict.kind == "component"
        and (verdict.kind, verdict.name) in follows
        else verdict
        for verdict in every
    ]


def expectations_of(words: Iterable[tuple[str, Position | None]]) -> tuple[Expectation, ...]:
    """The expectations of some words with their places. Raises UsageError for a word that is not an expectation."""
    return tuple(expectations.parse_expectation(word, where) for word, where in words)


# What another machine has of its own under the same name, or not at all.
_ENGINES = ("docker:", "podman:", "containerd:")
_OF_A_MACHINE = ("host", "archive:-", "-")
_GO_ON = "use `--resume` to continue"


def validate(validator: Validator, subject: str, bounds: WorkBounds) -> Judged:
    """The verdicts about one subject, or that a bound was reached. Raises ToolmatrixError."""
    with Pool(validator.judge, bounds) as pool:
        ((_, outcome),) = pool.outcomes({subject: (subject,)})
    if isinstance(outcome.error, BoundExceeded):
        return refused(subject, outcome.error)
    judgement: Judged = outcome.result()
    return judgement


def reachable(subjects: Iterable[str]) -> None:
    """Raise UsageError for a subject that is another one, or none, on another machine."""
    for subject in subjects:
        if subject in _OF_A_MACHINE or subject.startswith(_ENGINES):
            raise UsageError(
                f"`{subject}` is on this machine, but an executor runs elsewhere",
                expected="subjects in a registry, or in a folder that all machines share",
                found=f"`{subject}`",
            )


def validate_all(
    key: str,
    subjects: Sequence[str],
    workers: Pool,
    resume: str,
    each: Callable[[Judged], None],
) -> list[Judged]:
    """The verdicts of a validator with that key about every subject; `each` is called with each as soon as it is known.

    The subjects that the file `resume` has results of are not validated again, if they are still the same.
    """
    by_subject: dict[str, Judged] = {}
    with Results(resume, key) as results, workers as pool:
        known = {name: results.identity(name) if resume else None for name in subjects}
        for name, outcome in pool.outcomes({name: (name, known[name]) for name in subjects}):
            by_subject[name] = results.record(name, outcome)
            each(by_subject[name])
    return [by_subject[name] for name in subjects]


def merge_results(files: Iterable[tuple[str, bytes]]) -> dict[str, Judged]:
    """The verdicts that files of results or of `--format jsonl` hold, paths and contents, by subject.

    In one file the last line about a subject counts, as for `--resume`. Of a file whose last line is cut off something
    is not known, which is told under its own name. Raises UsageError for a file that is none, for results of different
    runs, and for a subject that two files tell different things about.
    """
    by_subject: dict[str, tuple[Judged, str]] = {}
    runs: dict[str, str] = {}
    for path, data in files:
        own: dict[str, Judged] = {}

        def take(body: Any, path: str = path, own: dict[str, Judged] = own) -> None:
            runs.setdefault(body["run"], path)
            own[body["subject"]] = Judged.from_json(body)

        # Compared when it is read to its end, for a later line may say something else.
        if not ResultsFile(path, VERDICTS, take).read(data):
            own[path] = refused(path, CannotSay("its last line is cut off", help=_GO_ON))
        # The results of another run may well differ.
        if len(runs) > 1:
            raise UsageError(
                "these are results of different runs",
                expected="the same lock, matrix, expectations and options in all",
                found=" and ".join(dict.fromkeys(runs.values())),
            )
        for subject, judgement in own.items():
            before, where = by_subject.setdefault(subject, (judgement, path))
            if before != judgement:
                raise UsageError(
                    f"two files have different results for `{subject}`",
                    where=Position(path),
                    expected=f"what {where} says of it",
                    help="validate it again with `--resume`, or leave one of the files out",
                )
    return {subject: judgement for subject, (judgement, _) in by_subject.items()}


def missing_result(subject: str) -> Judged:
    """The verdict about a subject that no run has a result for."""
    return refused(subject, CannotSay("no run has a result for it", help=_GO_ON))


class Results:
    """The file of results, or nothing where no path is given; `done` is what it has for this key."""

    def __init__(self, path: str, key: str) -> None:
        self.file = ResultsFile(path, VERDICTS, self._take)
        self.key = key
        self.done: dict[str, tuple[str, Judged]] = {}
        """By subject its identity and its verdicts."""

    def __enter__(self) -> Self:
        self.file.__enter__()
        return self

    def _take(self, body: Any) -> None:
        # Of a subject that was judged twice the last line counts: it was another one by the second time.
        if body["run"] == self.key:
            self.done[body["subject"]] = body.get("identity", ""), Judged.from_json(body)

    def identity(self, name: str) -> str:
        """The identity of a subject when it was judged; empty where there is no result of it."""
        return self.done[name][0] if name in self.done else ""

    def record(self, name: str, outcome: WorkResult) -> Judged:
        """The verdicts about a subject, put on the disk where they are not there yet. Raises OutputError."""
        error = outcome.error
        attempt: Attempt = Attempt(judged=refused(name, error)) if error else outcome.value
        if attempt.judged is None:
            return self.done[name][1]
        more = {"run": self.key, "subject": name, "identity": attempt.identity}
        self.file.add(attempt.judged.to_json() | more)
        return attempt.judged

    def __exit__(self, *_: object) -> None:
        self.file.__exit__()
