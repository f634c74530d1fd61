"""What a manifest asks for: items with their places, by environment, and what of it could not be read."""

from __future__ import annotations

from collections.abc import Iterable

from toolmatrix.errors import ManifestError, Position
from toolmatrix.manifests.source_text import SHOWN, FileText, Traced
from toolmatrix.value import Value

IMAGE, PIP, CONDA, SYSTEM, VARIABLE, PYTHON, PLATFORM = (
    *("image", "pip", "conda", "system", "variable", "python"),
    "platform",
)
"""How an item is asked for: as a base image, by an installer, by a variable, as an interpreter, as a platform."""


LONGEST = 1_000
"""Letters of what one item asks for, so that no pattern takes long with it."""
MOST = 5_000
"""Items of one environment."""
# Environments of a file, each of which is a question to the solver.
_MOST_ENVIRONMENTS = 500
# Items of all environments of a file: each stage of a Dockerfile has those of the stage that it starts from.
_MOST_OF_ALL = 50_000


def place(text: Traced) -> Position:
    """Where a text stands: its file, and the line and column of its first letter."""
    return Position(text.source.path, *text.where)


class Item(Value):
    """One thing that a manifest asks for: a name as its installer has it, and a specifier as it is written there.

    `text` is the whole of it, `version` the part that a change of version replaces. `indexes` are the addresses of
    package indexes that it may come from, the default one being left out; `alone` says that it comes from no other.
    `python` is the series that the installer was called for; `bare`: it is installed whatever it requires; `built`: it
    is compiled where it is installed. What one `command` installs holds together, and a later one takes its place.
    `bounds`: it installs nothing, and holds where something else asks for it; `overrides`: in the place of what others
    require of it.
    """

    kind: str
    name: str
    specifier: str
    text: Traced
    version: Traced | None = None
    extras: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    alone: bool = False
    python: str = ""
    bare: bool = False
    built: bool = False
    command: str = ""
    bounds: bool = False
    overrides: bool = False

    @property
    def where(self) -> Position:
        """Its place."""
        return place(self.text)


class NotRead(Value):
    """Something that could not be read, and why."""

    text: Traced
    why: str

    @property
    def where(self) -> Position:
        """Its place."""
        return place(self.text)


def too_long(text: Traced) -> NotRead | None:
    """What is not read for its length alone."""
    why = f"more than {LONGEST:,} characters"
    return NotRead(text=text[:SHOWN], why=why) if len(text) > LONGEST else None


def check_number(path: str, items: int, of_all: int = 0) -> None:
    """Refuse so many items of an environment and of all those of a file. Raises ManifestError."""
    if items > MOST or of_all > _MOST_OF_ALL:
        raise ManifestError(
            "the file asks for too much",
            where=Position(path),
            expected=f"at most {MOST:,} packages in an environment, and {_MOST_OF_ALL:,} in all",
        )


class Asked(Value):
    """One environment: a stage, a service, a list of packages; `name` is empty where the file is one."""

    name: str
    items: tuple[Item, ...]


class ProjectManifest(Value):
    """A file read: its environments, what was not read, and all files that it was read from, itself first."""

    kind: str
    environments: tuple[Asked, ...]
    unread: tuple[NotRead, ...]
    sources: tuple[FileText, ...]


def bounded(path: str, environments: Iterable[Asked]) -> tuple[Asked, ...]:
    """Environments with a bounded number of items. Raises ManifestError."""
    kept: list[Asked] = []
    of_all = 0
    for asked in environments:
        of_all += len(asked.items)
        check_number(path, len(asked.items), of_all)
        kept.append(asked)
        if len(kept) > _MOST_ENVIRONMENTS:
            raise ManifestError(
                "the file asks for too many environments",
                where=Position(path),
                expected=f"at most {_MOST_ENVIRONMENTS}",
            )
    return tuple(kept)
