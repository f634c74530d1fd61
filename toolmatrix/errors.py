"""Every failure of toolmatrix: one class, one exit code, one code to look up, one thing to do next.

`toolmatrix rule CODE` explains each code; nothing else may end the program, and a user never sees a traceback.
Exit codes: 0 yes or done, 1 the answer is no, 2 bad usage, configuration, matrix, recipe or lock, 3 nothing
matched, 4 cannot say, 5 an outside tool is missing or failed, 70 internal error, 130 interrupted.
"""

from __future__ import annotations


class Position:
    """A place in a file: path as the user knows it, line and column counted from 1 (0: not known)."""

    __slots__ = ("column", "line", "path")

    def __init__(self, path: str, line: int = 0, column: int = 0) -> None:
        self.path = path
        self.line = line
        self.column = column

    def __str__(self) -> str:
        parts = [self.path, *(str(number) for number in (self.line, self.column) if number)]
        return ":".join(parts)


class ToolmatrixError(Exception):
    """Base: what went wrong, where, what was expected, what was found, what to do."""

    code = "TM900"
    exit_code = 70

    def __init__(
        self,
        what: str,
        *,
        where: Position | None = None,
        expected: str = "",
        found: str = "",
        help: str = "",
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.found = found
        self.help = help


class UsageError(ToolmatrixError):
    """Options or arguments that cannot be understood or contradict each other."""

    code = "TM901"
    exit_code = 2


class ConfigError(ToolmatrixError):
    """A configuration file or TOOLMATRIX_* variable that cannot be used."""

    code = "TM902"
    exit_code = 2


class MatrixError(ToolmatrixError):
    """A matrix file that is missing, unreadable, malformed or says something impossible."""

    code = "TM903"
    exit_code = 2


class LockError(ToolmatrixError):
    """A lock that is missing, truncated, edited by hand or of another schema."""

    code = "TM904"
    exit_code = 2


class OutputError(ToolmatrixError):
    """An output that cannot be written; what was there before is untouched."""

    code = "TM905"
    exit_code = 2


class LogError(ToolmatrixError):
    """A log that cannot be read, or in which no driver speaks."""

    code = "TM906"
    exit_code = 2


class RecipeError(ToolmatrixError):
    """A recipe that is missing, unreadable, malformed, or asks for what an answer does not have."""

    code = "TM601"
    exit_code = 2


class RenderError(ToolmatrixError):
    """A value that cannot be put where a template wants it, or a template that cannot be used."""

    code = "TM602"
    exit_code = 2


class Unpinned(ToolmatrixError):
    """Something that `--strict` refuses: a download without a checksum, a base image without a digest."""

    code = "TM603"
    exit_code = 1


class NoImage(ToolmatrixError):
    """A lock of which no target can become an image."""

    code = "TM604"
    exit_code = 1


class SubjectError(ToolmatrixError):
    """An image, archive or directory that cannot be read, is damaged, or is not what it says it is."""

    code = "TM907"
    exit_code = 2


class NothingMatched(ToolmatrixError):
    """A well-formed request for a component, release, arch, device, CPU or fact that nobody knows."""

    code = "TM110"
    exit_code = 3


class ReleasedLater(NothingMatched):
    """A release that was not out on the day of `--at`."""

    code = "TM303"


class CannotSay(ToolmatrixError):
    """No fact decides: neither yes nor no."""

    code = "TM120"
    exit_code = 4


class BoundReached(CannotSay):
    """A bound on time, processor time or memory that was reached before there was an answer."""

    code = "TM908"


class ToolMissing(ToolmatrixError):
    """An outside tool or service is missing or failed."""

    code = "TM500"
    exit_code = 5


class RegistryFailed(ToolMissing):
    """A registry that cannot be reached, is too slow, or does not answer as one."""

    code = "TM510"


class AccessDenied(ToolMissing):
    """A registry that wants credentials, or others than it was given."""

    code = "TM511"
