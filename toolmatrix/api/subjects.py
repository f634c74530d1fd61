"""Images, machines and saved file systems for Python: what they hold, and whether that is what was resolved.

A result prints as the command prints it into a pipe, and `to_json()` is the document that the command writes.
"""

from __future__ import annotations

import os

from toolmatrix.api import PLAIN
from toolmatrix.api.requests import open_matrix
from toolmatrix.finding import Judged
from toolmatrix.inventory.model import Inventory
from toolmatrix.judge import locked, probes
from toolmatrix.judge.validator import Baseline, Validator, expectations_of
from toolmatrix.report import inventory as inventory_text
from toolmatrix.report import verdicts as verdicts_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from os import PathLike
    from typing import IO

    from toolmatrix.api.requests import OpenMatrix
    from toolmatrix.facts.index import Index
    from toolmatrix.report.terminal import Terminal

    Path = str | PathLike[str]
    Matrix = OpenMatrix | Path | Sequence[Path] | bytes | None


class SubjectInventory(Inventory):
    """Everything observed of one subject; see `Inventory` for its fields."""

    def text(self, screen: Terminal = PLAIN, *, everything: bool = False) -> str:
        """The lines that the command prints; `everything` lists the features that are only counted otherwise."""
        return inventory_text.text(self, screen, everything=everything)

    def __str__(self) -> str:
        return self.text().removesuffix("\n")


class Validation(Judged):
    """The verdicts about one subject, true where all of them hold; see `Judged` for its fields."""

    def text(self, screen: Terminal = PLAIN) -> str:
        """The lines that the command prints."""
        return verdicts_text.text(self, screen)

    def __bool__(self) -> bool:
        return self.exit_code == 0

    def __str__(self) -> str:
        return self.text().removesuffix("\n")


def inventory(
    subject: str,
    *,
    platform: str = "",
    directory: Path = "",
    run: bool = True,
    matrix: Matrix = None,
) -> SubjectInventory:
    """Observe a subject: `docker:NAME`, `registry://HOST/NAME:TAG`, `archive:FILE`, `oci:DIR`, `dir:ROOT`, `host`...

    `platform` picks an image from an index, such as `linux/arm64`; paths are relative to `directory`. With `run` the
    programs of an image of Docker's engine are asked for their versions, in a container without a network. Raises
    SubjectError for what cannot be read, UsageError for what is not a subject, NothingMatched for another platform,
    ToolMissing without an engine.
    """
    return observed(
        subject,
        platform,
        os.fspath(directory),
        None,
        (lambda: open_matrix(matrix).index) if run else None,
    )


def observed(
    subject: str,
    platform: str,
    directory: str,
    stdin: IO[bytes] | None,
    index: Callable[[], Index] | None,
) -> SubjectInventory:
    """Observe a subject, also an archive on `stdin`; `index` is called only to ask programs, which None forbids."""
    asked = (lambda _: probes.of_index(index())) if index is not None else None
    found = locked.observe(subject, platform, directory, stdin, asked)
    return SubjectInventory(**{field: getattr(found, field) for field in found._fields})


def validate(
    subject: str,
    *,
    lock: Path = "",
    expect: str | Iterable[str] = (),
    target: str = "",
    platform: str = "",
    directory: Path = "",
    only: Sequence[str] = (),
    run: bool = True,
    strict: bool = False,
    matrix: Matrix = None,
) -> Validation:
    """Check a subject against a lock, against expectations such as `python==3.11.*`, or else against the lock in it.

    `target` names the target of the lock, where neither a label nor the platform of the image tells it. `only` keeps
    the verdicts of some kinds or names, and `strict` makes a warning a failure. The subject is read in this process,
    within no bounds of time or memory but those of the caller. Raises LockError for a lock that cannot be used, and
    what `inventory` raises.
    """
    words = (expect,) if isinstance(expect, str) else expect
    baseline = Baseline(
        expected=expectations_of((word, None) for word in words),
        targets=(target,) if target else (),
    )
    validator = Validator(
        index=open_matrix(matrix).index,
        baseline=baseline.with_lock(os.fspath(lock)),
        directory=os.fspath(directory),
        platform=platform,
        only=tuple(only),
        run=run,
        strict=strict,
    )
    found = validator.judge(subject)
    return Validation(**{field: getattr(found, field) for field in found._fields})
