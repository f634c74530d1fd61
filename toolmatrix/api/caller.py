"""The caller of a command, a Python program or the command line: variables, settings, notes and progress."""

from __future__ import annotations

import os

from toolmatrix.request.fields import Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from typing import Any, TextIO, TypeVar

    from typing_extensions import Self

    from toolmatrix.api.requests import RequestOptions
    from toolmatrix.factbase.index import Index

    T = TypeVar("T")


class Caller:
    """A Python program: it has variables and no settings, and sees nothing but the result."""

    stdin: TextIO | None = None
    # True where more than usual is to be shown.
    verbose = False
    # Processes that share work where no number is named, 0 for one a processor: a program may have threads of its own,
    # which a process that is forked does not take along.
    processes = 1
    # What a request may come from.
    requests = "at least one component"
    # The request of the settings.
    request: tuple[str, ...] = ()

    @property
    def env(self) -> Mapping[str, str]:
        """The environment variables."""
        return os.environ

    def open_index(self, paths: tuple[str, ...]) -> Index:
        """The index of the built-in matrix with files on top. Raises MatrixError."""
        from toolmatrix.factbase.store import open_index

        return open_index(paths, self.env)

    def environments(
        self, read: Callable[[str, tuple[str, ...], RequestOptions], T]
    ) -> dict[str, T]:
        """What is read of each environment of the settings: of its name, its words, and the options of its request."""
        del read
        return {}

    def path(self, text: str) -> str:
        """A path from an argument, ready to be opened."""
        return text

    def called(self, path: str) -> str:
        """A path as it is written in a command."""
        return path

    def piped(self, what: str, most: int) -> bytes:
        """At most so many bytes of stdin, which a program reads by itself. Raises UsageError."""
        del what, most
        return b""

    def is_flag(self, option: str) -> bool:
        """True where the call itself says an option, and not a setting or a variable."""
        del option
        return True

    def is_default(self, option: str) -> bool:
        """True where nothing says an option."""
        del option
        return False

    def pasted(self) -> Fields:
        """The options of a request that hold where a printed command is pasted, which has no flag of this run."""
        return Fields()

    def example(self, function: str, *words: str) -> str:
        """A call of a command, as this caller writes it."""
        arguments = ", ".join(f'"{word}"' for word in words)
        return f"`toolmatrix.{function}({arguments})`"

    def say(self, text: str) -> None:
        """Show at once what is not part of the result."""

    def note(self, text: str) -> None:
        """Show below the result what is not part of it."""

    def part(self, document: Mapping[str, Any]) -> None:
        """Give a part of the result as soon as it is known, where the format is one of lines."""

    def progress(self, doing: str, what: str) -> AbstractContextManager[Progress]:
        """Show how far something is, such as `solving 3/70 releases`, while the context lasts."""
        del doing, what
        return _SILENT


class Progress:
    """How far something is; here it is not shown."""

    def at(self, done: int, total: int) -> None:
        """Show how much is done, and of how much."""

    def of(self, subject: str, done: int, total: int) -> None:
        """Show how far it is with one of several subjects."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


_SILENT = Progress()
# Not a ContextVar: the command line runs one command in one thread, and all Python programs are alike.
_CALLERS = [Caller()]


def caller() -> Caller:
    """The caller of the command that is running."""
    return _CALLERS[-1]


def call_for(caller: Caller, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a function that is called for a caller."""
    _CALLERS.append(caller)
    try:
        return function(*args, **kwargs)
    finally:
        _CALLERS.pop()
