"""Subjects validated in processes of their own, and the results of a long run as JSON Lines.

A run that was killed in the middle goes on where it stopped.
Each line is one document `toolmatrix.verdicts/1` with the key of its run, which is what decides besides the subject,
and with what the subject was: a name may stand for another image by now. A line is on the disk before the next subject
is taken; one that was cut off is taken away, and lines of another run are left alone.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from toolmatrix.errors import BoundReached, OutputError, Position, UsageError
from toolmatrix.finding import PLAIN, VERDICTS, Judged, Verdict
from toolmatrix.judge.pool import Pool
from toolmatrix.judge.validator import Attempt, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from io import FileIO
    from typing import Any

    from typing_extensions import Self

    from toolmatrix.judge.pool import WorkBounds, WorkResult
    from toolmatrix.judge.validator import Validator


def validate(validator: Validator, subject: str, bounds: WorkBounds) -> Judged:
    """The verdicts about one subject, or that a bound was reached. Raises ToolmatrixError."""
    with Pool(validator.judge, bounds) as pool:
        ((_, outcome),) = pool.outcomes({subject: (subject,)})
    if isinstance(outcome.error, BoundReached):
        return refused(subject, outcome.error)
    judged: Judged = outcome.result()
    return judged


def validate_all(
    validator: Validator,
    subjects: Sequence[str],
    bounds: WorkBounds,
    jobs: int,
    resume: str,
    each: Callable[[Judged], None],
) -> list[Judged]:
    """The verdicts about every subject; `each` is called with those about one as soon as they are known.

    The subjects that the file `resume` has results of are not validated again, if they are still the same.
    """
    found: dict[str, Judged] = {}
    with (
        Results(resume, validator.key) as results,
        Pool(validator.attempt, bounds, jobs) as pool,
    ):
        known = {name: results.identity(name) if resume else None for name in subjects}
        for name, outcome in pool.outcomes({name: (name, known[name]) for name in subjects}):
            found[name] = results.settled(name, outcome)
            each(found[name])
    return [found[name] for name in subjects]


class Results:
    """The file of results, or nothing where no path is given; `done` is what it has for this key."""

    def __init__(self, path: str, key: str) -> None:
        self.path = path
        self.key = key
        self.done: dict[str, tuple[str, Judged]] = {}
        """By subject its identity and its verdicts."""
        self.whole = 0
        self.file: FileIO | None = None

    def __enter__(self) -> Self:
        if self.path:
            try:
                self.whole = self._take_up()
                # Unbuffered, so that after a failed write the file can be cut back to its whole lines.
                self.file = open(self.path, "ab", buffering=0)
                self.file.truncate(self.whole)
            except OSError as error:
                raise self._failed(error) from None
        return self

    def _take_up(self) -> int:
        if not os.path.exists(self.path):
            return 0
        with open(self.path, "rb") as file:
            data = file.read()
        # A run that was killed may have left half a line, which is cut off.
        whole = data[: data.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            self._line(line, number)
        return len(whole)

    def _line(self, line: bytes, number: int) -> None:
        try:
            body = json.loads(line)
            # Of a subject that was judged twice the last line counts: it was another one by the second time.
            if body["run"] == self.key:
                self.done[body["subject"]] = body.get("identity", ""), _judged(body)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageError(
                "this is no file of results",
                where=Position(self.path, number),
                expected=f"lines of `{VERDICTS}`",
                help="name a file that `--resume` wrote, or a new one",
            ) from None

    def identity(self, name: str) -> str:
        """The identity of a subject when it was judged; empty where there is no result of it."""
        return self.done[name][0] if name in self.done else ""

    def settled(self, name: str, outcome: WorkResult) -> Judged:
        """The verdicts about a subject, put on the disk where they are not there yet. Raises OutputError."""
        error = outcome.error
        attempt: Attempt = Attempt(judged=refused(name, error)) if error else outcome.value
        if attempt.judged is None:
            return self.done[name][1]
        more = {"run": self.key, "subject": name, "identity": attempt.identity}
        self._add(json.dumps(attempt.judged.to_json() | more, sort_keys=True).encode() + b"\n")
        return attempt.judged

    def _add(self, line: bytes) -> None:
        if self.file is None:
            return
        try:
            # An unbuffered file may take less than it is given.
            left = memoryview(line)
            while left:
                left = left[self.file.write(left) or 0 :]
            # A machine that loses power must not lose what was reported as kept.
            os.fsync(self.file.fileno())
        except OSError as error:
            # Whole or not at all: the next run would take half a line for a damaged file.
            with suppress(OSError):
                self.file.truncate(self.whole)
            raise self._failed(error) from None
        self.whole += len(line)

    def _failed(self, error: OSError) -> OutputError:
        return OutputError(
            "cannot keep the results",
            where=Position(self.path),
            found=error.strerror or "",
            help="what is there stays: make room and run it again, or name a file elsewhere",
        )

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()


def _judged(body: Mapping[str, Any]) -> Judged:
    lock = body["lock"] or {"path": "", "digest": "", "target": ""}
    return Judged(
        subject=body["subject"],
        platform=body["platform"] or "",
        digest=body["digest"] or "",
        lock=lock["path"],
        lock_digest=lock["digest"],
        target=lock["target"],
        verdicts=tuple(map(_verdict, body["verdicts"])),
    )


def _verdict(body: Mapping[str, Any]) -> Verdict:
    where = body["where"]
    return Verdict(
        word=body["verdict"],
        wanted=body["expected"] or "",
        found=body["actual"] or "",
        where=where["path"] or "",
        layer=where["layer"] or "",
        made_by=where["instruction"] or "",
        others=tuple((one["version"], one["where"]) for one in body["others"]),
        facts=tuple(body["facts"]),
        **{name: body[name] or "" for name in PLAIN},
    )
