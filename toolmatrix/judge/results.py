"""Subjects validated in processes of their own, and the results of a long run as JSON Lines.

A run that was killed in the middle goes on where it stopped.
Each line is one document `toolmatrix.verdicts/1` with the key of its run, which is what decides besides the subject,
and with what the subject was: a name may stand for another image by now. A line is on the disk before the next subject
is taken; one that was cut off is taken away, and lines of another run are left alone.
"""

from __future__ import annotations

from toolmatrix.errors import BoundExceeded, CannotSay, Position, UsageError
from toolmatrix.finding import VERDICTS, Judged
from toolmatrix.judge.pool import Pool
from toolmatrix.judge.validator import Attempt, refused
from toolmatrix.outputs import KeptLines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from typing_extensions import Self

    from toolmatrix.judge.pool import WorkBounds, WorkResult
    from toolmatrix.judge.validator import Validator

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
    judged: Judged = outcome.result()
    return judged


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
    found: dict[str, Judged] = {}
    with Results(resume, key) as results, workers as pool:
        known = {name: results.identity(name) if resume else None for name in subjects}
        for name, outcome in pool.outcomes({name: (name, known[name]) for name in subjects}):
            found[name] = results.settled(name, outcome)
            each(found[name])
    return [found[name] for name in subjects]


def merged(files: Iterable[tuple[str, bytes]]) -> dict[str, Judged]:
    """The verdicts that files of results or of `--format jsonl` hold, paths and contents, by subject.

    In one file the last line about a subject counts, as for `--resume`. Of a file whose last line is cut off something
    is not known, which is told under its own name. Raises UsageError for a file that is none, for results of different
    runs, and for a subject that two files tell different things about.
    """
    found: dict[str, tuple[Judged, str]] = {}
    runs: dict[str, str] = {}
    for path, data in files:
        own: dict[str, Judged] = {}

        def take(body: Any, path: str = path, own: dict[str, Judged] = own) -> None:
            runs.setdefault(body["run"], path)
            own[body["subject"]] = Judged.from_json(body)

        # Compared when it is read to its end, for a later line may say something else.
        if not KeptLines(path, VERDICTS, take).read(data):
            own[path] = refused(path, CannotSay("its last line is cut off", help=_GO_ON))
        # Those of another run may well tell different things.
        if len(runs) > 1:
            raise UsageError(
                "these are results of different runs",
                expected="the same lock, matrix, expectations and options in all",
                found=" and ".join(dict.fromkeys(runs.values())),
            )
        for subject, judged in own.items():
            before, where = found.setdefault(subject, (judged, path))
            if before != judged:
                raise UsageError(
                    f"two files have different results for `{subject}`",
                    where=Position(path),
                    expected=f"what {where} says of it",
                    help="validate it again with `--resume`, or leave one of the files out",
                )
    return {subject: judged for subject, (judged, _) in found.items()}


def lacking(subject: str) -> Judged:
    """The verdict about a subject that no run told of."""
    return refused(subject, CannotSay("no run has a result for it", help=_GO_ON))


class Results:
    """The file of results, or nothing where no path is given; `done` is what it has for this key."""

    def __init__(self, path: str, key: str) -> None:
        self.kept = KeptLines(path, VERDICTS, self._take)
        self.key = key
        self.done: dict[str, tuple[str, Judged]] = {}
        """By subject its identity and its verdicts."""

    def __enter__(self) -> Self:
        self.kept.__enter__()
        return self

    def _take(self, body: Any) -> None:
        # Of a subject that was judged twice the last line counts: it was another one by the second time.
        if body["run"] == self.key:
            self.done[body["subject"]] = body.get("identity", ""), Judged.from_json(body)

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
        self.kept.add(attempt.judged.to_json() | more)
        return attempt.judged

    def __exit__(self, *_: object) -> None:
        self.kept.__exit__()
