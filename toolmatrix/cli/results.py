"""The results of a long run as JSON Lines, so that what was killed in the middle goes on where it stopped.

Each line is one document `toolmatrix.verdicts/1` with the key of its run: what decides besides the subject. A line is
on the disk before the next subject is taken; one that was cut off is taken away, and lines of another run are left
alone.
"""

from __future__ import annotations

import json
import os

from toolmatrix.errors import OutputError, Position, UsageError
from toolmatrix.report import verdicts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from typing_extensions import Self

    from toolmatrix.report.verdicts import Judged


class Results:
    """The file of results, or nothing where no path is given; `done` are the subjects it has, for this key."""

    def __init__(self, path: str, key: str) -> None:
        self.path = path
        self.key = key
        self.done: dict[str, Judged] = {}
        self.file: BinaryIO | None = None

    def __enter__(self) -> Self:
        if self.path:
            try:
                whole = self._take_up()
                self.file = open(self.path, "ab")
                self.file.truncate(whole)
            except OSError as error:
                raise self._failed(error) from None
        return self

    def _take_up(self) -> int:
        """Read what is there; returns the bytes of its whole lines."""
        if not os.path.exists(self.path):
            return 0
        with open(self.path, "rb") as file:
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            self._line(line, number)
        return len(whole)

    def _line(self, line: bytes, number: int) -> None:
        try:
            body = json.loads(line)
            if body["run"] == self.key:
                self.done[body["subject"]] = verdicts.restored(body)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageError(
                "this is no file of results",
                where=Position(self.path, number),
                expected=f"lines of `{verdicts.SCHEMA}`",
                help="name a file that `--resume` wrote, or a new one",
            ) from None

    def add(self, name: str, judged: Judged) -> None:
        """Put one result on the disk. Raises OutputError."""
        if self.file is None:
            return
        body = verdicts.document(judged) | {"run": self.key, "subject": name}
        try:
            self.file.write(json.dumps(body, sort_keys=True).encode() + b"\n")
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> OutputError:
        return OutputError(
            "cannot keep the results", where=Position(self.path), found=error.strerror or ""
        )

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()
