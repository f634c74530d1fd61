"""Progress of a long command, and the summary that a GitHub step keeps of it."""

from __future__ import annotations

import time

from toolmatrix.api import caller
from toolmatrix.cli.context import terminal_of, write_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Thread
    from typing import TextIO

    from toolmatrix.cli.context import Context

# Seconds before the first progress line on a terminal.
PATIENCE = 0.5
# Back to the first column, and erase to the end of the line (ECMA-48, EL).
_ERASED = "\r\x1b[K"
# Columns reserved for the elapsed seconds.
_FIGURES = 12
# Seconds between two lines in a log.
APART = 10
# Seconds before a remaining time can be estimated.
_GUESSED = 5


class _ClearedLine:
    """A line on a terminal that other messages clear."""

    stream: TextIO
    visible = False

    def clear(self) -> None:
        """Clear the line for another message; it is shown again later."""
        if self.visible:
            self.visible = False
            write_message(self.stream, _ERASED)


class ProgressLine(_ClearedLine, caller.Progress):
    """Progress of a command, after a while: `solving 30/70 releases, 6 s, about 8 s left`.

    On a terminal it is one line that is written over, in the place of what was said to go on; in a log a line every ten
    seconds.
    """

    def __init__(self, context: Context, doing: str, what: str) -> None:
        options, self.stream = context.options, context.stderr
        # Earlier messages pause, and other messages clear the line.
        self.before = tuple(context.waiting)
        self.waiting = context.waiting
        self.waiting.append(self)
        self.words = doing, what
        self.watched = self.stream.isatty()
        self.wanted = not options.quiet and not options.no_progress
        self.began = time.monotonic()
        self.next = PATIENCE if self.watched else APART

    def at(self, done: int, total: int) -> None:
        """Show the progress."""
        elapsed = time.monotonic() - self.began
        if self.wanted and elapsed > self.next:
            doing, what = self.words
            line = f"{doing} {done}/{total} {what}, {elapsed:.0f} s{_left(done, total, elapsed)}"
            for waiting in self.before if self.watched else ():
                waiting.rest()
            self.visible = self.watched
            write_message(self.stream, f"{_ERASED}{line} " if self.watched else f"{line}\n")
            self.next = self.next if self.watched else elapsed + APART

    def of(self, subject: str, done: int, total: int) -> None:
        """Show the progress of one of several subjects."""
        self.words = f"reading {subject}:", self.words[1]
        self.at(done, total)

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Clear the line."""
        if self in self.waiting:
            self.waiting.remove(self)
        self.clear()
        for waiting in self.before:
            waiting.go()

    def rest(self) -> None:
        """Stop: another progress takes its place."""
        self.clear()

    def go(self) -> None:
        """Nothing: the next progress shows it again."""


def _left(done: int, total: int, elapsed: float) -> str:
    # Assumes constant speed.
    if not 0 < done < total or elapsed < _GUESSED:
        return ""
    return f", about {elapsed * (total - done) / done:.0f} s left"


class Waiting(_ClearedLine):
    """A message on a terminal that something takes a while: `reading /, 3 s`."""

    def __init__(self, context: Context, doing: str) -> None:
        options, self.stream = context.options, context.stderr
        # A line that wraps could not be overwritten.
        room = terminal_of(self.stream, context.env, options).width - _FIGURES
        self.doing = doing if len(doing) <= room else f"{doing[: room - 3]}..."
        watched = self.stream.isatty() and not options.quiet and not options.no_progress
        self.wanted = bool(doing) and watched
        self.thread: Thread | None = None

    def __enter__(self) -> None:
        self.go()

    def go(self) -> None:
        """Start showing it, after a while."""
        if self.wanted and self.thread is None:
            # A thread, because the command is in one call that does not report progress.
            import threading

            self.over = threading.Event()
            self.thread = threading.Thread(target=self._print_elapsed, daemon=True)
            self.thread.start()

    def rest(self) -> None:
        """Stop showing it, until it is started again."""
        if self.thread is not None:
            self.over.set()
            self.thread.join()
            self.thread = None
            self.clear()

    def _print_elapsed(self) -> None:
        began, patience = time.monotonic(), PATIENCE
        while not self.over.wait(patience):
            self.visible, patience = True, 1
            write_message(self.stream, f"\r{self.doing}, {time.monotonic() - began:.0f} s ")

    def __exit__(self, *_: object) -> None:
        self.rest()


def summarize(context: Context, markdown: str) -> None:
    """Add to the summary of a GitHub step, where one runs."""
    path = context.env.get("GITHUB_STEP_SUMMARY", "")
    if not path:
        return
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(markdown)
    except OSError as error:
        # The answer does not depend on it.
        reason = error.strerror or error
        context.say_after(f"note: cannot write the step summary: {path}: {reason}")
