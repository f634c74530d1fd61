"""`toolmatrix news`."""

from __future__ import annotations

import os
import re

from toolmatrix.api import Report
from toolmatrix.api.caller import caller
from toolmatrix.api.news import (
    ChangedComponent,
    ChangedFact,
    CountedMatrix,
    changes,
    counted,
    lines_of,
    open_earlier,
    read_since,
)
from toolmatrix.api.requests import OpenMatrix, open_matrix
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.documents import Annotated, Any, Count, Flag, TypedDict
from toolmatrix.errors import NothingMatched, ToolmatrixError, UsageError
from toolmatrix.factbase import installed
from toolmatrix.factbase.index import Index, IndexFolder
from toolmatrix.factbase.store import built_in_index
from toolmatrix.report.terminal import plural
from toolmatrix.request.fields import Fields, is_date, parse_arguments
from toolmatrix.request.names import Names
from toolmatrix.request.read import read
from toolmatrix.request.upgrades import Moved
from toolmatrix.solve.resolve import possible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolmatrix.api import Matrix, Path
    from toolmatrix.lockfile.model import Lock, LockedEnvironment
    from toolmatrix.report.terminal import Terminal

SCHEMA = "toolmatrix.news/1"
_DIGEST = re.compile(r"(sha256:)?[0-9a-f]{6,64}")
# Releases and facts that are printed of a component.
_MOST = 6
_SIGNS = {"added": "+", "removed": "-", "changed": "~", "read": "="}


class LockNews(TypedDict):
    """What changed for a lock: what its requests choose, and the facts that it rests on."""

    path: str
    answered: Flag
    moved: list[Annotated[dict[str, Any], Moved]]
    """From the earlier matrix to this one; without an earlier one, from the lock to this one."""
    facts: list[ChangedFact]


class NewsDocument(TypedDict):
    """What `toolmatrix news --json` prints: what changed in the matrix, by component.

    By `matrices` two are compared. By `readings` it lists the facts of sources that were read since a day, and whether
    they are new is not known: a source that is read again has a new day.
    """

    schema: Annotated[str, SCHEMA]
    basis: Annotated[str, "matrices", "readings"]
    since: str
    before: CountedMatrix | None
    after: CountedMatrix
    reread: Count
    components: list[ChangedComponent]
    lock: LockNews | None


@command(
    group="Explore the matrix",
    order=8,
    usage="[NAME...]",
    completer="component",
    formats=PRINTED,
    does="comparing",
    examples=(
        "toolmatrix news",
        "toolmatrix news --since 2026-11-20 torch",
        "toolmatrix news --earlier matrix-12.tmx --json",
    ),
)
def news(
    *names: str,
    since: str = option(
        "--since",
        configurable=False,
        metavar="DATE|DIGEST",
        help="Compare with the matrix of this digest, or list what was read since this day",
    ),
    earlier: Path = option(
        "--earlier",
        shape="path",
        configurable=False,
        excludes=("since",),
        help="Compare with this matrix: a bundle, the folder of an index, or a front page",
    ),
    lock: Path = option(
        "-l",
        "--lock",
        shape="path",
        configurable=False,
        help="Restrict it to the components of this lock, and compare its answers",
    ),
    matrix: Matrix = None,
) -> Report:
    """Show what changed in the matrix.

    It compares the matrix with the one before the last `update`, or with the one that `since` names. A day is that of a
    reading: the facts of every source that was read since are listed, whether they are new or not. Raises LockError,
    MatrixError, NothingMatched and UsageError.
    """
    after = open_matrix(matrix)
    locked = _read_lock(os.fspath(lock)) if lock else None
    known = Names(after.index)
    wanted = {known.component(name) for name in names}
    if locked:
        wanted |= {name for name, *_ in _chosen_in(locked)}
    before = open_earlier(os.fspath(earlier)) if earlier else None
    # The matrix of a day is not kept; which sources were read since is known.
    if not earlier and not is_date(since):
        before = _kept(since, after)
    if before is None:
        components, reread = read_since(after, since, wanted), 0
    else:
        difference = changes(before, after, wanted)
        components, reread = difference["components"], difference["reread"]
    document: NewsDocument = {
        "schema": SCHEMA,
        "basis": "matrices" if before else "readings",
        "since": since or (before.date if before else ""),
        "before": counted(before) if before else None,
        "after": counted(after),
        "reread": reread,
        "components": components,
        "lock": _of_lock(os.fspath(lock), locked, before, after, components) if locked else None,
    }
    # Thousands of facts may have changed: they are printed for what is named alone.
    in_full = bool(names) or caller().verbose
    return Report(
        words=lambda screen: _text(document, screen, in_full=in_full), document=lambda: document
    )


def _read_lock(path: str) -> Lock:
    from toolmatrix.lockfile.lock_file import read as read_file

    return read_file(path)


def _kept(since: str, after: OpenMatrix) -> OpenMatrix:
    """The matrix before the last update, or that of a digest. Raises MatrixError, NothingMatched and UsageError."""
    env = caller().env
    record = installed.record(env)
    if not since and not record:
        raise UsageError(
            "there is no earlier matrix to compare with",
            expected="an earlier `toolmatrix update`, `--since DATE|DIGEST` or `--earlier FILE`",
            help="`--since 2026-11-20` lists what was read since that day",
        )
    entries = [installed.entry(env, record, name) for name in ("before", "current")]
    kept = [Index(entry.index, IndexFolder(entry.index)) for entry in entries if entry]
    # The first update replaces the matrix that the program came with.
    kept.insert(0 if record and not record.get("before") else len(kept), built_in_index(env))
    if not since:
        return OpenMatrix(index=kept[0])
    # Texts show the beginning of a digest, with its algorithm or without.
    digest = since if since.startswith("sha256:") else f"sha256:{since}"
    digests = [index.header["digest"] for index in kept]
    for index, own in zip(kept, digests, strict=True):
        if _DIGEST.fullmatch(since) and own.startswith(digest):
            return OpenMatrix(index=index)
    raise NothingMatched(
        f"no matrix `{since}` is at hand",
        expected="a day, or one of " + ", ".join(own[:19] for own in dict.fromkeys(digests)),
        found=f"`{since}`, and the matrix in use {after.digest[:19]}",
    )


def _chosen_in(lock: Lock) -> Iterator[tuple[str, str]]:
    for target in lock.answers:
        yield from ((name, entry.version) for name, entry in target.components.items())


def _of_lock(
    path: str,
    lock: Lock,
    before: OpenMatrix | None,
    after: OpenMatrix,
    components: list[ChangedComponent],
) -> LockNews:
    answered, moved = True, []
    for environment in lock.environments.values():
        now = _answer(after.index, environment)
        old = _answer(before.index, environment) if before else None
        answered = answered and now is not None
        # Without an answer of the earlier matrix the lock says what was chosen.
        old = old or {
            (target, name): entry.version
            for target, locked in environment.targets.items()
            for name, entry in locked.components.items()
        }
        moved += [
            Moved(*place, old.get(place, ""), (now or old).get(place, ""))._asdict()
            for place in {**old, **(now or {})}
            if now and old.get(place, "") != now.get(place, "")
        ]
    rests = {
        fact
        for target in lock.answers
        for entry in target.components.values()
        for fact in entry.facts
    }
    # Other facts of these components move nothing that the lock has.
    facts = [fact for part in components for fact in part["listed"] if fact["id"] in rests]
    return {"path": path, "answered": answered, "moved": moved, "facts": facts}


def _answer(index: Index, environment: LockedEnvironment) -> Mapping[tuple[str, str], str] | None:
    """What the request of an environment chooses, by target and component; None where it has no answer."""
    try:
        request = read(index, Fields(**parse_arguments(environment.request)))
        resolution = possible(index, request)
    # A request may name what only the other matrix knows.
    except ToolmatrixError:
        return None
    if resolution is None:
        return None
    return {
        (target, name): version
        for target in resolution.targets
        for name, version in resolution.chosen(target).items()
        # A build moves with its release.
        if not index.header["components"][name]["variant_of"]
    }


def _text(document: NewsDocument, screen: Terminal, *, in_full: bool) -> str:
    after, before = document["after"], document["before"]
    if before:
        title = f"from the matrix of {_named(before)} to that of {_named(after)}"
    else:
        title = (
            f"facts of sources that were read since {document['since']}, in the matrix of "
            f"{_named(after)}: a day is that of the reading, so a fact may be older"
        )
    lines = screen.wrap(title, "", "  ")
    if (lock := document["lock"]) is not None:
        lines += ["", *_lock_lines(lock)]
    for part in document["components"]:
        *releases, rest = lines_of(part)
        more = [f"  {len(releases) - _MOST} releases more"] if len(releases) > _MOST else []
        for line in (*releases[:_MOST], *more, rest):
            lines += screen.wrap(line, "", "    ")
        for fact in part["listed"] if in_full else ():
            was = f", before: {fact['was']['text']}" if fact["was"] else ""
            text = f"{_SIGNS[fact['how']]} {fact['text']} ({fact['evidence']}){was}"
            lines += screen.wrap(text, "  ", "    ")
        if in_full and part["facts"] > len(part["listed"]):
            lines.append(f"  {part['facts'] - len(part['listed'])} facts more")
    if not document["components"]:
        lines.append("nothing changed" if before else "no source was read since")
    if document["reread"]:
        lines.append(f"{plural(document['reread'], 'fact')} read again and unchanged")
    return "\n".join(lines) + "\n"


def _lock_lines(lock: LockNews) -> Iterator[str]:
    if not lock["answered"]:
        yield f"{lock['path']}: no answer any more"
    elif not lock["moved"]:
        yield f"{lock['path']}: its requests have the same answer"
    else:
        yield f"{lock['path']}: a new lock would have other releases (`toolmatrix upgrade` moves it)"
    for move in lock["moved"]:
        yield f"  {move['target']}: {move['component']} {move['old'] or 'absent'} -> {move['new'] or 'absent'}"
    for fact in lock["facts"]:
        yield f"  it rests on {fact['id']}, {fact['how']}: {fact['text']}"


def _named(matrix: CountedMatrix) -> str:
    return f"{matrix['date']} ({matrix['digest'][:19]}, {matrix['facts']} facts)"
