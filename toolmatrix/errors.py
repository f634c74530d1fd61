"""Every failure of toolmatrix: one class, one exit code, one code to look up, one thing to do next.

`toolmatrix rule CODE` explains each code; nothing else may end the program, and a user never sees a traceback.
Exit codes: 0 yes or done, 1 the answer is no, 2 bad usage, configuration, matrix, recipe or lock, 3 nothing
matched, 4 cannot say, 5 an outside tool is missing or failed, 70 internal error, 130 interrupted.
"""

from __future__ import annotations

from toolmatrix.documents import Code, FilePlace, Literal, TypedDict

__all__ = (
    "AccessDenied",
    "BeyondMatrix",
    "BoundExceeded",
    "CannotSay",
    "ConfigError",
    "HarvestRefused",
    "IndexFailed",
    "LockError",
    "LogError",
    "ManifestError",
    "MatrixError",
    "NoImage",
    "NothingMatched",
    "OutputError",
    "Position",
    "RecipeError",
    "RegistryFailed",
    "ReleasedLater",
    "RenderError",
    "SubjectError",
    "ToolMissing",
    "ToolmatrixError",
    "Unpinned",
    "Unresolved",
    "UsageError",
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolmatrix.further_errors import (
        AccessDenied,
        HarvestRefused,
        IndexFailed,
        LockError,
        LogError,
        ManifestError,
        NoImage,
        RecipeError,
        RegistryFailed,
        RenderError,
        SubjectError,
        ToolMissing,
        Unpinned,
        Unresolved,
    )


class ErrorEntry(TypedDict):
    """What went wrong, where, and what to do."""

    code: Code
    what: str
    where: FilePlace | None
    expected: str
    found: str
    help: str


class ErrorDocument(TypedDict):
    """What every command prints with --json when it fails."""

    schema: Literal["toolmatrix.error/1"]
    error: ErrorEntry


class Position:
    """A place in a file: path as the user knows it, line and column counted from 1 (0: not known)."""

    __slots__ = ("column", "line", "path")

    def __init__(self, path: str, line: int = 0, column: int = 0) -> None:
        self.path = path
        self.line = line
        self.column = column

    def to_json(self) -> FilePlace:
        """The place as documents hold it."""
        return {"path": self.path, "line": self.line or None, "column": self.column or None}

    def __str__(self) -> str:
        parts = [self.path, *(str(number) for number in (self.line, self.column) if number)]
        return ":".join(parts)


class ToolmatrixError(Exception):
    """Base: what went wrong, where, what was expected, what was found, what to do.

    `each` are several that were found, shown one by one.
    """

    # Whatever is not one of the classes below is a mistake in the program: 70 is EX_SOFTWARE of sysexits.h.
    code = "TM900"
    exit_code = 70
    # The negative answer behind it, which shows the reasons.
    answer: Any = None

    def __init_subclass__(cls, code: str = "", exit_code: int = 0) -> None:
        cls.code = code or cls.code
        cls.exit_code = exit_code or cls.exit_code

    def __init__(
        self,
        what: str,
        *,
        where: Position | None = None,
        expected: str = "",
        found: str = "",
        each: tuple[str, ...] = (),
        help: str = "",
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.found = found or "; ".join(each)
        self.each = each
        self.help = help

    def to_json(self) -> ErrorDocument:
        """The document `toolmatrix.error/1`."""
        return {
            "schema": "toolmatrix.error/1",
            "error": {
                "code": self.code,
                "what": self.what,
                "where": self.where.to_json() if self.where else None,
                "expected": self.expected,
                "found": self.found,
                "help": self.help,
            },
        }


class UsageError(ToolmatrixError, code="TM901", exit_code=2):
    """Options or arguments that cannot be understood or contradict each other."""


class ConfigError(ToolmatrixError, code="TM902", exit_code=2):
    """A configuration file or TOOLMATRIX_* variable that cannot be used."""


class MatrixError(ToolmatrixError, code="TM903", exit_code=2):
    """A matrix file that is missing, unreadable, malformed or says something impossible."""


class OutputError(ToolmatrixError, code="TM905", exit_code=2):
    """An output that cannot be written; what was there before is untouched."""


class NothingMatched(ToolmatrixError, code="TM110", exit_code=3):
    """A well-formed request for an unknown component, release, arch, device, CPU or fact."""


class BeyondMatrix(NothingMatched, code="TM121", exit_code=4):
    """A release before the first or after the newest one that is known: it may exist, and nothing is known of it."""


class ReleasedLater(NothingMatched, code="TM303"):
    """A release that was not yet released on the day of `--at`."""


class CannotSay(ToolmatrixError, code="TM120", exit_code=4):
    """No fact decides: neither yes nor no."""


class BoundExceeded(CannotSay, code="TM908"):
    """A bound on time, processor time or memory that was reached before there was an answer."""


if not TYPE_CHECKING:

    def __getattr__(name):
        """The failures that no query raises: creating their classes takes a hundredth of a `resolve`."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from toolmatrix import further_errors

        return getattr(further_errors, name)
