"""What is said while a long command runs, and what a GitHub step keeps of it."""

from __future__ import annotations

import time

from toolmatrix.errors import OutputError, Position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context

PATIENCE = 0.5
"""Seconds without a word; then a progress line, where somebody watches."""


class Progress:
    """One line that is written over, on a terminal and after a while: `solving 3/7 releases, 2 s`."""

    def __init__(self, context: Context, total: int, doing: str, what: str) -> None:
        options = context.options
        stream = context.stderr
        self.stream = stream
        self.total = total
        self.words = doing, what
        self.shown = False
        self.wanted = stream.isatty() and not options.quiet and not options.no_progress
        self.began = time.monotonic()

    def at(self, done: int) -> None:
        """Say how far it is."""
        elapsed = time.monotonic() - self.began
        if self.wanted and elapsed > PATIENCE:
            doing, what = self.words
            self.shown = True
            self.stream.write(f"\r{doing} {done}/{self.total} {what}, {elapsed:.0f} s ")
            self.stream.flush()

    def end(self) -> None:
        """Take the line away."""
        if self.shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


def summarize(context: Context, markdown: str) -> None:
    """Add to the summary of a GitHub step, where one runs."""
    path = context.env.get("GITHUB_STEP_SUMMARY", "")
    if not path:
        return
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(markdown)
    except OSError as error:
        raise OutputError(
            "cannot write the summary of the step",
            where=Position(path),
            found=error.strerror or "",
            help="`GITHUB_STEP_SUMMARY` names the file",
        ) from None
