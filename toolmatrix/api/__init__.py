"""The questions of the command line as functions of Python, and their answers; the commands use nothing else."""

from __future__ import annotations

import os

from toolmatrix.errors import ConfigError
from toolmatrix.report.terminal import Terminal
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import date
    from os import PathLike
    from typing import Any, TypeAlias

    from toolmatrix.api.requests import OpenMatrix

    Words: TypeAlias = str | Iterable[str]
    Wanted: TypeAlias = str | Mapping[str, str | int] | Iterable[str]
    Path: TypeAlias = str | PathLike[str]
    Matrix: TypeAlias = "OpenMatrix | Path | Sequence[Path] | bytes | None"
else:
    # Annotations are never evaluated, so that these names need mean nothing.
    Words = Wanted = Path = Matrix = None

# A pipe: 80 columns, no colours.
PLAIN = Terminal()


def this_day(env: Mapping[str, str]) -> date:
    """Today in UTC, or the day of SOURCE_DATE_EPOCH, so that a build can be repeated. Raises ConfigError."""
    from datetime import datetime, timezone

    fixed = env.get("SOURCE_DATE_EPOCH", "")
    if not fixed:
        return datetime.now(timezone.utc).date()
    try:
        return datetime.fromtimestamp(int(fixed), timezone.utc).date()
    except (ValueError, OverflowError, OSError):
        raise ConfigError(
            "`SOURCE_DATE_EPOCH` is not a time",
            expected="seconds since 1970-01-01",
            found=f"`{fixed}`",
        ) from None


def split_words(words: Words) -> tuple[str, ...]:
    """The words of an option that takes several: commas separate those of one string."""
    return tuple(filter(None, words.split(","))) if isinstance(words, str) else tuple(words)


def path_list(paths: Path | Iterable[Path]) -> list[str]:
    """The paths of an argument that takes one or several."""
    several = (paths,) if isinstance(paths, (str, os.PathLike)) else paths
    return [os.fspath(path) for path in several]


def log_of(log: Path | Iterable[str]) -> tuple[str, Sequence[str]]:
    """The path that names a log, or the lines of one that is given: a text has a line break in it, a path has none."""
    if isinstance(log, str):
        return ("", log.split("\n")) if "\n" in log else (log, ())
    return (os.fspath(log), ()) if isinstance(log, os.PathLike) else ("", tuple(log))


def as_json(document: Mapping[str, Any]) -> str:
    """A document as the bytes that every machine writes: sorted keys, ASCII, one newline at the end."""
    # So that documents can be compared, and put under version control, as texts.
    import json

    return json.dumps(document, sort_keys=True, indent=2) + "\n"


class Printed:
    """A value that prints as the command prints it, and is the document that the command writes."""

    # Options that only change how it is laid out, which its `text` takes.
    layout: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0 yes, 1 no, 4 where no fact decides."""
        return 0

    @property
    def hint(self) -> str:
        """What the user may do next, shown below the text."""
        return ""

    def text(self, screen: Terminal = PLAIN) -> str:
        """The text that the command prints on a screen."""
        raise NotImplementedError

    def to_json(self) -> Mapping[str, Any]:
        """The document that the command writes."""
        raise NotImplementedError

    def written(self, form: str, title: str = "") -> str:
        """The text of `--format`; as `md`, `html` and `svg` what is printed, below a title. Raises KeyError."""
        from toolmatrix.report import pictures

        return pictures.FORMS[form](title, self.text(pictures.SCREEN))

    def step_summary(self, title: str) -> str:
        """The Markdown that a step of GitHub keeps of it, below a title."""
        return self.written("md", title)

    def __str__(self) -> str:
        return self.text().removesuffix("\n")


class Outcome(Printed):
    """An answer to a question; true where the command exits with 0."""

    @property
    def ok(self) -> bool:
        """True if the answer is yes."""
        return self.exit_code == 0

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: exit code {self.exit_code}>"


class Report(Outcome, Value):
    """An answer whose forms are computed on demand."""

    words: Callable[[Terminal], str]
    document: Callable[[], Mapping[str, Any]]
    exit_code: int = 0
    hint: str = ""
    # The texts of `--format`, by its word.
    forms: Mapping[str, Callable[[], str]] = {}

    def text(self, screen: Terminal = PLAIN) -> str:
        """The text that the command prints on a screen."""
        return self.words(screen)

    def to_json(self) -> Mapping[str, Any]:
        """The document that the command writes."""
        return self.document()

    def written(self, form: str, title: str = "") -> str:
        """The text of `--format`: one of its own, or what is printed, below a title. Raises KeyError."""
        return self.forms[form]() if form in self.forms else super().written(form, title)
