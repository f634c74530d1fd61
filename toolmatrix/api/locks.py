"""Answers written down, or the reasons why there is none; `toolmatrix lock` makes the same."""

from __future__ import annotations

from toolmatrix.api import PLAIN, Printed, arguments, split_words
from toolmatrix.errors import CannotSay, NothingMatched
from toolmatrix.lock import compare, lock_file, model
from toolmatrix.lock.model import DEFAULT, Lock
from toolmatrix.opener import opened
from toolmatrix.solve.resolve import Unsatisfiable, resolve
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from typing import Any

    from typing_extensions import Unpack

    from toolmatrix.api import Wanted, Words
    from toolmatrix.api.answers import NoAnswer
    from toolmatrix.api.requests import RequestOptions
    from toolmatrix.facts.index import Index
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.solve.request import Kept, Request
    from toolmatrix.solve.resolve import Resolution


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

    def __init__(self, index: Index, lock: Lock, harvested: Sequence[str] = ()) -> None:
        self.index = index
        self.lock = lock
        # Files of facts that were read for it, without which nobody can ask it again.
        self.harvested = harvested

    @property
    def digest(self) -> str:
        """The digest that files and images made from it name it by."""
        return lock_file.digest(self.lock)

    def text(self, screen: Terminal = PLAIN) -> str:  # noqa: ARG002 - a file has no width
        """The lock as a file holds it."""
        return lock_file.text(self.lock)

    def to_json(self, path: str = "toolmatrix.lock") -> dict[str, Any]:
        """The document `toolmatrix.locked/1` of a lock that is written to a path for the first time."""
        return document(
            self.index, path, self.lock, "written", harvested=places(path, self.harvested)
        )

    def write(self, path: str | PathLike[str] = "toolmatrix.lock") -> None:
        """Put the lock in its place, whole or not at all, behind what was harvested for it. Raises OutputError."""
        import os

        from toolmatrix.outputs import replace_file, replace_files

        place = os.fspath(path)
        replace_files(beside(place, self.harvested))
        replace_file(place, self.text())


def places(path: str, harvested: Sequence[str]) -> list[str]:
    """Where harvested files lie beside a lock."""
    import os.path

    return [os.path.join(os.path.dirname(path), os.path.basename(name)) for name in harvested]


def beside(path: str, harvested: Sequence[str]) -> dict[str, str]:
    """The texts of harvested files by their places beside a lock, but for those that are there. Raises OutputError.

    They are called after what is in them, so that what is there is the same.
    """
    import os.path

    from toolmatrix.outputs import os_errors_as

    found = {}
    for name, place in zip(harvested, places(path, harvested), strict=True):
        with os_errors_as("cannot read the harvested facts", name), opened(name) as file:
            if not os.path.exists(place):
                found[place] = file.read().decode()
    return found


def lock(
    *wanted: Wanted,
    upgrade: Words = (),
    packages: bool = False,
    online: bool = False,
    **options: Unpack[RequestOptions],
) -> Locked | NoAnswer:
    """The answer to a request as a lock.

    With `keep` only the components of `upgrade` move. With `packages` uv is asked for every Python package and its
    files, on the user's index. Raises ToolmatrixError.
    """
    import os

    from toolmatrix.api import packages as closures
    from toolmatrix.api.answers import NoAnswer
    from toolmatrix.api.requests import fields, open_matrix, read_request, with_online_packages

    given = open_matrix(options.get("matrix")).paths
    named = arguments.request(wanted, "lock")
    opened = with_online_packages(named, options, online=online)
    # A request would keep all of the lock: here `upgrade` lets some of it move.
    kept = os.fspath(options.pop("keep", ""))
    place, request = read_request(named, options)
    said = {name: value for name, value in options.items() if name != "matrix"}
    if kept:
        earlier = keeping(place.index, kept, split_words(upgrade))
        request = request.replace(keep=earlier(DEFAULT))
    words = fields(named, said).words()
    asked_for = {DEFAULT: LockRequest(request=request, words=words)}
    try:
        found = solved(place.index, asked_for)
    except Unsolved as unsolved:
        return NoAnswer(place, unsolved.refusal)
    from toolmatrix.api import files

    found = files.for_images(place.index, asked_for, found, lambda _: None)
    before = lock_file.read(kept) if kept else None
    if packages:
        found = closures.filled(place.index, found, os.environ, before)
    elif before:
        found = closures.keep_packages(place.index, found, before).lock
    return Locked(place.index, found, opened.paths[len(given) :])


def solved(
    index: Index, wanted: Mapping[str, LockRequest], say: Callable[[str], object] = lambda _: None
) -> Lock:
    """The answers of all environments; `say` hears of each pair in them that nobody tested.

    Raises Unsolved for the first that has none, CannotSay where no fact decides.
    """
    environments = {}
    for name, part in wanted.items():
        found = resolve(index, part.request)
        if isinstance(found, Unsatisfiable):
            # The only environment needs no name.
            raise Unsolved(name if len(wanted) > 1 else "", found)
        if found.unread:
            from toolmatrix.report import remarks

            unread = remarks.unread(found)
            raise CannotSay(
                "the request has no answer that can be locked",
                expected="an answer that rests on facts",
                found="; ".join(part["text"] for part in unread),
                help="`toolmatrix resolve` prints it with its unknowns; a fact of your own can decide them",
            )
        from toolmatrix.report import answer

        # A lock marks what it kept, so that `--check` does not call it stale for being kept.
        kept = [place[:2] for place in _decisive(index, part.request, found)]
        document = answer.document(index, found)
        environments[name] = model.environment(document, part.words, kept)
        for caveat in document["caveats"]:
            if caveat["kind"] == "untested":
                say(caveat["text"])
        for part in document["unread"]:
            say(f"cannot say: {part['text']}  TM120")
    return Lock(
        matrix_digest=index.header["digest"],
        matrix_date=index.header["date"],
        environments=environments,
    )


def _decisive(index: Index, request: Request, found: Resolution) -> Kept:
    # A release that the request gives anyway was not kept for the sake of the earlier lock, and is not marked so.
    alone = resolve(index, request.replace(keep=())) if request.keep else found
    if alone is found or isinstance(alone, Unsatisfiable):
        return ()
    followed = tuple(place for place in request.keep if _chosen(found, place) == place[2])
    different = tuple(place for place in followed if _chosen(alone, place) != place[2])
    again = resolve(index, request.replace(keep=different))
    same = not isinstance(again, Unsatisfiable) and again.targets == found.targets
    return different if same else followed


def _chosen(found: Resolution, place: tuple[str, str, str]) -> str:
    return found.chosen(place[0]).get(place[1], "") if place[0] in found.targets else ""


def keeping(index: Index, path: str, upgrade: Sequence[str]) -> Callable[[str], Kept]:
    """The releases of a lock that an environment prefers, but for components of `upgrade` and what follows from them.

    Raises LockError, NothingMatched.
    """
    from toolmatrix.request import upgrades
    from toolmatrix.request.names import Names

    names = Names(index)
    moving = {names.component(name.lower()) for name in upgrade}
    lock = lock_file.read(path)
    held = {
        name
        for environment in lock.environments.values()
        for target in environment.targets.values()
        for name in target.components
    }
    for name in sorted(moving - held):
        raise NothingMatched(
            f"{path} has no {name}",
            expected="one of " + ", ".join(sorted(held)),
            found=f"`--upgrade {name}`",
        )

    def of(environment: str) -> Kept:
        found = lock.environment(environment)
        return upgrades.letting(index, found, moving) if found else ()

    return of


def marked(held: Lock, environment: str) -> Kept:
    """Releases that a lock says it was made to keep."""
    if environment not in held.environments:
        return ()
    return tuple(
        (target, component, part.version)
        for target, held_target in held.environments[environment].targets.items()
        for component, part in held_target.components.items()
        if part.kept
    )


def document(
    index: Index,
    path: str,
    lock: Lock,
    status: str,
    old: Lock | None = None,
    found: compare.Differences | None = None,
    reasons: Sequence[str] = (),
    new: Lock | None = None,
    harvested: Sequence[str] = (),
) -> dict[str, Any]:
    """The document `toolmatrix.locked/1`; `old` and `found` are the lock that was there and what differs from it.

    `harvested` are files of facts that lie beside it, and without which nobody can ask it again.
    """
    from toolmatrix.report import answer, differences

    listed = (
        differences.change_documents(index, old, new or lock, found)
        if old is not None and found is not None
        else []
    )
    return {
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
                    target: {
                        "components": len(part.components),
                        "evidence": part.evidence,
                        **({"packages": len(part.closure.packages)} if part.closure else {}),
                    }
                    for target, part in environment.targets.items()
                },
            }
            for name, environment in lock.environments.items()
        },
        "reasons": list(reasons),
        "differences": listed,
        **({"harvested": list(harvested)} if harvested else {}),
    }
