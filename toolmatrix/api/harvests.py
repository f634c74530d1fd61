"""Files of harvested facts: what changed in one, and one writer at a time."""

from __future__ import annotations

import os
import os.path
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from toolmatrix.documents import Amount, Count
from toolmatrix.errors import MatrixError, UsageError
from toolmatrix.factbase import yamlfile
from toolmatrix.factbase.store import cache_folder
from toolmatrix.harvest import runs
from toolmatrix.harvest.runs import FactDifference
from toolmatrix.outputs import os_errors_as
from toolmatrix.value import Document, Value
from toolmatrix.wording import plural


class HarvestedFile(Value):
    """What a harvester made of one family: its file, the text for it, and the rows in which the two differ."""

    family: str
    path: str
    text: str
    rows: int
    differences: Sequence[FactDifference]
    # A file may differ in the day of its sources alone.
    changed: bool
    # Why the file that is there cannot be read: with no row of it the text was compared.
    damage: MatrixError | None = None


class Effort(Document):
    """What a harvest took: requests and bytes of HTTP, and seconds."""

    requests: Count
    bytes: Count
    seconds: Amount

    def __str__(self) -> str:
        return f"{self.requests} requests, {self.bytes / 1e6:.1f} MB, {self.seconds:.0f} s"


def cache(env: Mapping[str, str]) -> str:
    """The directory for what a harvest read that can never change, "" where there is none."""
    folder = cache_folder(env)
    return os.path.join(folder, "harvest") if folder else ""


@contextmanager
def folder_lock(folder: str, doing: str = "harvest") -> Iterator[None]:
    """Hold the lock of a directory. Raises OutputError, and UsageError where another process has it."""
    # Windows has no such module, and what only reads or checks does not lock.
    import fcntl

    path = os.path.join(folder, ".lock")
    with os_errors_as(f"cannot write to the directory of the {doing}", folder):
        os.makedirs(folder, exist_ok=True)
        file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - held open as long as the lock
    with file:
        try:
            # The system releases it with the process, however that ends. The file stays: if it were removed, a process
            # that has it open and one that creates it again would both have a lock.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                f"another {doing} is writing there",
                expected=f"one {doing} at a time per directory",
                found=folder,
                help="wait for it, or name another directory with `--output`",
            ) from None
        yield


def compare_with_file(name: str, path: str, text: str) -> HarvestedFile:
    """A text beside the file that it is for, which may be damaged. Raises MatrixError."""
    damage = None
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            before = file.read()
        differences = runs.differences(path, text)
    except FileNotFoundError:
        before, differences = "", runs.differences("", text)
    except MatrixError as error:
        damage, differences = error, runs.differences("", text)
    return HarvestedFile(
        family=name,
        path=path,
        text=text,
        rows=len(runs.rows(yamlfile.parse(text.encode(), path))),
        differences=differences,
        changed=before != text,
        damage=damage,
    )


def state_of(difference: FactDifference) -> str:
    """Whether a row is gone, new or changed."""
    return "gone" if difference.gone else "new" if difference.new else "changed"


_SIGNS = {"gone": "-", "new": "+", "changed": "~"}


def describe_changes(file: HarvestedFile) -> str:
    """A file, with the rows that came, went or changed."""
    lines = [f"{file.path}: {plural(file.rows, 'row')}, " + ("" if file.changed else "as before")]
    if file.changed:
        counts = dict.fromkeys(_SIGNS, 0)
        for difference in file.differences:
            counts[state_of(difference)] += 1
        summary = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
        lines[0] += summary or "read again"
    for difference in file.differences:
        cells = "; ".join(
            f"{name} {was} -> {now}" if was and now else f"{name} {now or f'{was} -> nothing'}"
            for name, (was, now) in difference.cells.items()
        )
        sign = _SIGNS[state_of(difference)]
        lines.append(f"  {sign} {difference.row}" + (f"  {cells}" if cells else ""))
    return "\n".join(lines) + "\n"
