"""Answers written down: solved for each environment, compared with what was kept, and put into a file."""

from __future__ import annotations

from functools import partial

from toolmatrix.api import PLAIN, Printed, Report
from toolmatrix.api.caller import caller
from toolmatrix.documents import (
    Annotated,
    Count,
    Evidence,
    Literal,
    MatrixHead,
    NotRequired,
    TypedDict,
)
from toolmatrix.errors import CannotSay, LockError, NothingMatched
from toolmatrix.lockfile import lock_file, model
from toolmatrix.lockfile.model import Lock
from toolmatrix.opener import open_file
from toolmatrix.report.terminal import plural
from toolmatrix.solve.resolve import Unsatisfiable, resolve
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from toolmatrix.factbase.index import Index
    from toolmatrix.lockfile.model import LockedTarget
    from toolmatrix.report.differences import ChangeEntry, LockMatrix
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.solve.request import PreferredReleases, Request
    from toolmatrix.solve.resolve import Resolution


class LockedCounts(TypedDict):
    """How much a target holds."""

    components: Count
    packages: NotRequired[Count]
    """How many Python packages it holds, with the SHA-256 of their files (`--packages`)."""
    evidence: Evidence


class LockedRequest(TypedDict):
    """The request of an environment, and its targets."""

    request: list[str]
    targets: dict[str, LockedCounts]


class LockedDocument(TypedDict):
    """What `toolmatrix lock --json` prints, with and without `--check`. `matrix` is that of the lock, `present_matrix`
    that of this run; `reasons` are requests that moved; `differences` are from the lock as it was to the present
    answer.
    """

    schema: Literal["toolmatrix.locked/1"]
    path: str
    status: Annotated[str, "written", "unchanged", "fresh", "stale"]
    digest: str
    harvested: NotRequired[list[str]]
    """Files of facts beside the lock that were harvested for it from the package index: `--matrix` takes them."""
    matrix: LockMatrix
    present_matrix: MatrixHead
    environments: dict[str, LockedRequest]
    reasons: list[str]
    differences: list[ChangeEntry]


class Unsolved(Exception):
    """A request without an answer; `environment` is empty where there is only one."""

    def __init__(self, environment: str, refusal: Unsatisfiable) -> None:
        super().__init__(environment)
        self.environment = environment
        self.refusal = refusal


class LockRequest(Value):
    """One request, with the releases that it prefers, and the words that a lock keeps of it."""

    request: Request
    words: tuple[str, ...]


class Locked(Printed):
    """A lock; true, as there is an answer. It prints as the file that it is."""

    def __init__(
        self,
        index: Index,
        lock: Lock,
        harvested: tuple[str, ...] = (),
        renewed: Lock | None = None,
    ) -> None:
        self.index = index
        self.lock = lock
        # Files of facts that were read for it; repeating the request needs them.
        self.harvested = harvested
        # The lock of which it answers the requests again.
        self.renewed = renewed

    @property
    def digest(self) -> str:
        """The digest that files and images made from it name it by."""
        return lock_file.digest(self.lock)

    def text(self, screen: Terminal = PLAIN) -> str:  # noqa: ARG002 - a file has no width
        """The lock as a file holds it."""
        return lock_file.text(self.lock)

    def to_json(self, path: str = "toolmatrix.lock") -> LockedDocument:
        """The document `toolmatrix.locked/1` of a lock that is written to a path for the first time."""
        harvested = paths_beside(path, self.harvested)
        return document(self.index, path, self.lock, "written", harvested=harvested)

    def write(self, path: str | PathLike[str] = "toolmatrix.lock") -> None:
        """Put the lock in its place, whole or not at all, behind what was harvested for it. Raises OutputError."""
        import os

        from toolmatrix.outputs import replace_file, replace_files

        destination = os.fspath(path)
        replace_files(texts_beside(destination, self.harvested))
        replace_file(destination, self.text())

    def deliver(
        self, *, lock: str, output: str, format: str, upgrade: Sequence[str], packages: bool
    ) -> Printed:
        """Write it to the path `lock` and say what changed there; for another place it is printed itself."""
        from toolmatrix.api.packages import carry_packages
        from toolmatrix.outputs import replace_file, replace_files
        from toolmatrix.report import differences

        # `--output -` is the default, and can be said all the same: then the lock itself is the result.
        if format == "text" and (lock == "-" or not caller().is_default("output")):
            where = "" if output == "-" else f"wrote {output}: "
            caller().note(where + describe_counts(self.lock))
            return self
        # `render` keeps its options in the lock beside its files, and finds them there again.
        before = self.renewed or _read_previous(lock)
        updated, note = self.lock.replace(render=before.render if before else {}), ""
        if not packages:
            with_packages = carry_packages(self.index, updated, before)
            updated, note = with_packages.lock, with_packages.note
        text = lock_file.text(updated)
        same = _has_text(lock, text)
        facts = texts_beside(lock, self.harvested)
        old = None if same else before
        changes = model.locks(old, updated) if old is not None else None
        lines = [f"{'unchanged' if same else 'wrote'} {lock}: {describe_counts(updated)}\n"]
        lines += [f"wrote {name}: the harvested facts, for `--matrix`\n" for name in facts]

        def words(screen: Terminal) -> str:
            if old is None or changes is None or not upgrade:
                return "".join(lines)
            return "\n".join(
                (differences.text(self.index, old, updated, changes, screen), "".join(lines))
            )

        if note:
            caller().note(note)
        replace_files(facts)
        # An unchanged file keeps its time, which make and others compare.
        if not same:
            replace_file(lock, text)
        status = "unchanged" if same else "written"
        form = partial(document, self.index, lock, updated, status, old, changes)
        return Report(
            words=words, document=partial(form, harvested=paths_beside(lock, self.harvested))
        )


def paths_beside(path: str, harvested: Sequence[str]) -> list[str]:
    """The paths of harvested files beside a lock."""
    import os.path

    return [os.path.join(os.path.dirname(path), os.path.basename(name)) for name in harvested]


def texts_beside(path: str, harvested: Sequence[str]) -> dict[str, str]:
    """The texts of harvested files by their paths beside a lock, without existing ones. Raises OutputError.

    Their names contain the digest of their contents, so an existing file is the same.
    """
    import os.path

    from toolmatrix.outputs import os_errors_as

    texts = {}
    for name, destination in zip(harvested, paths_beside(path, harvested), strict=True):
        with os_errors_as("cannot read the harvested facts", name), open_file(name) as file:
            if not os.path.exists(destination):
                texts[destination] = file.read().decode()
    return texts


def _read_previous(path: str) -> Lock | None:
    # A broken lock may be replaced; a file that never was a lock must not be.
    try:
        return lock_file.read(path)
    except LockError:
        if lock_file.may_be_replaced(path):
            return None
        raise


def _has_text(path: str, text: str) -> bool:
    try:
        with open_file(path) as file:
            return file.read() == text.encode()
    except OSError:
        return False


def describe_counts(lock: Lock) -> str:
    """The numbers of what a lock holds, in words."""
    components = sum(len(target.components) for target in lock.answers)
    counts = [plural(len(lock.answers), "target"), plural(components, "component")]
    closures = [target.closure for target in lock.answers if target.closure]
    if closures:
        counts.append(plural(sum(len(closure.packages) for closure in closures), "package"))
        sources = dict.fromkeys(name for closure in closures for name in closure.sources)
        if sources:
            counts.append(f"{len(sources)} of them from source archives ({' '.join(sources)})")
    if len(lock.environments) > 1:
        counts.insert(0, plural(len(lock.environments), "environment"))
    return ", ".join(counts)


def solve(
    index: Index, wanted: Mapping[str, LockRequest], say: Callable[[str], object] = lambda _: None
) -> Lock:
    """The answers of all environments; `say` gets each untested pair in them.

    Raises Unsolved for the first that has none, CannotSay where no fact decides.
    """
    environments = {}
    for name, request in wanted.items():
        resolution = resolve(index, request.request)
        if isinstance(resolution, Unsatisfiable):
            # The only environment needs no name.
            raise Unsolved(name if len(wanted) > 1 else "", resolution)
        if resolution.unread:
            from toolmatrix.report import remarks

            unread = remarks.unread(resolution)
            raise CannotSay(
                "the request has no answer that can be locked",
                expected="an answer that rests on facts",
                found="; ".join(entry["text"] for entry in unread),
                help="`toolmatrix resolve` prints it with its unknowns; a fact of your own can decide them",
            )
        from toolmatrix.report import answer

        # A lock marks what it kept, so that `--check` does not call it stale for being kept.
        keep = [choice[:2] for choice in _decisive(index, request.request, resolution)]
        document = answer.document(index, resolution)
        environments[name] = model.environment(document, request.words, keep)
        for caveat in document["caveats"]:
            if caveat["kind"] == "untested":
                say(caveat["text"])
        for unknown in document["unread"]:
            say(f"cannot say: {unknown['text']}  TM120")
    return Lock(
        matrix_digest=index.header["digest"],
        matrix_date=index.header["date"],
        environments=environments,
    )


def _decisive(index: Index, request: Request, resolution: Resolution) -> PreferredReleases:
    # A release that the request gives anyway was not kept for the sake of the earlier lock, and is not marked so.
    alone = resolve(index, request.replace(keep=())) if request.keep else resolution
    if alone is resolution or isinstance(alone, Unsatisfiable):
        return ()
    followed = tuple(choice for choice in request.keep if _chosen(resolution, choice) == choice[2])
    different = tuple(choice for choice in followed if _chosen(alone, choice) != choice[2])
    again = resolve(index, request.replace(keep=different))
    same = not isinstance(again, Unsatisfiable) and again.targets == resolution.targets
    return different if same else followed


def _chosen(resolution: Resolution, choice: tuple[str, str, str]) -> str:
    target, component, _ = choice
    return resolution.chosen(target).get(component, "") if target in resolution.targets else ""


def preferred_releases(
    index: Index, path: str, upgrade: Sequence[str]
) -> Callable[[str], PreferredReleases]:
    """The releases of a lock that an environment prefers, but for components of `upgrade` and what follows from them.

    Raises LockError, NothingMatched.
    """
    from toolmatrix.request import upgrades
    from toolmatrix.request.names import Names

    names = Names(index)
    moving = {names.component(name.lower()) for name in upgrade}
    lock = lock_file.read(path)
    locked = {name for target in lock.answers for name in target.components}
    for name in sorted(moving - locked):
        raise NothingMatched(
            f"{path} has no {name}",
            expected="one of " + ", ".join(sorted(locked)),
            found=f"`--upgrade {name}`",
        )

    def of(environment: str) -> PreferredReleases:
        locked = lock.environment(environment)
        return upgrades.releases_without(index, locked, moving) if locked else ()

    return of


def kept_releases(lock: Lock, environment: str) -> PreferredReleases:
    """Releases that a lock marks as kept."""
    if environment not in lock.environments:
        return ()
    return tuple(
        (target, component, locked.version)
        for target, locked_target in lock.environments[environment].targets.items()
        for component, locked in locked_target.components.items()
        if locked.kept
    )


def document(
    index: Index,
    path: str,
    lock: Lock,
    status: str,
    old: Lock | None = None,
    changes: model.Differences | None = None,
    reasons: Sequence[str] = (),
    new: Lock | None = None,
    harvested: Sequence[str] = (),
) -> LockedDocument:
    """The document `toolmatrix.locked/1`; `old` and `changes` are the previous lock and the differences from it.

    `harvested` are files of facts beside it that repeating the request needs.
    """
    from toolmatrix.report import answer, differences

    changed = (
        differences.change_documents(index, old, new or lock, changes)
        if old is not None and changes is not None
        else []
    )
    body: LockedDocument = {
        "schema": "toolmatrix.locked/1",
        "path": path,
        "status": status,
        "digest": lock_file.digest(lock),
        "matrix": {"digest": lock.matrix_digest, "date": lock.matrix_date},
        "present_matrix": answer.head(index),
        "environments": {
            name: {
                "request": list(environment.request),
                "targets": {
                    target: _counts(locked) for target, locked in environment.targets.items()
                },
            }
            for name, environment in lock.environments.items()
        },
        "reasons": list(reasons),
        "differences": changed,
    }
    if harvested:
        body["harvested"] = list(harvested)
    return body


def _counts(target: LockedTarget) -> LockedCounts:
    counts: LockedCounts = {"components": len(target.components), "evidence": target.evidence}
    if target.closure:
        counts["packages"] = len(target.closure.packages)
    return counts
