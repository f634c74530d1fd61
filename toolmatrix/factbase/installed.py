"""The record of updates: which compiled matrix is in use instead of the one that the program came with.

It is a small file in the user's folder of data, beside a folder for each matrix: the one in use and the one before. An
update renames the record into its place, so that whatever interrupts it, one of the two is in use.
"""

from __future__ import annotations

import os

from toolmatrix import __version__, resources
from toolmatrix.factbase.index import FORMAT, HEADER, json_value
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import States

RECORD = "current.json"


class InstalledMatrix(Value):
    """A compiled matrix that an update installed: its folder, what its bundle declares, and where that is from."""

    folder: str
    bundle: Mapping[str, Any]
    source: str
    # The day of the update.
    day: str

    @property
    def index(self) -> str:
        """The folder of its index."""
        return os.path.join(self.folder, "index")

    @property
    def paths(self) -> tuple[str, ...]:
        """The front page that it was compiled from, and files that were on top."""
        return tuple(os.path.join(self.folder, name) for name in self.bundle["paths"])


def folder(env: Mapping[str, str]) -> str:
    """The user's directory for compiled matrices, "" where there is none."""
    home = resources.user_folder(env, "XDG_DATA_HOME", ".local", "share")
    return os.path.join(home, "matrix") if home else ""


def record(env: Mapping[str, str]) -> dict[str, Any]:
    """The record as it was written; nothing where there is none that can be read."""
    place = folder(env)
    try:
        with open(os.path.join(place, RECORD), "rb") as file:
            fields = json_value(file.read().rstrip())
    except (OSError, ValueError, RecursionError):
        return {}
    return fields if place and isinstance(fields, dict) else {}


def entry(env: Mapping[str, str], fields: Mapping[str, Any], name: str) -> InstalledMatrix | None:
    """The matrix `current` or `before` of a record; None for the one that the program came with."""
    try:
        own = {**fields[name]}
        own["folder"] = os.path.join(folder(env), own["folder"])
        matrix = InstalledMatrix(**own)
        # Whatever is read later is there.
        return matrix if matrix.paths and is_read(matrix.bundle) else None
    except (KeyError, TypeError, AttributeError, ValueError):
        return None


def current(env: Mapping[str, str], date_of_built_in: Callable[[], str]) -> InstalledMatrix | None:
    """The matrix in use instead of the built-in one, whose date is asked for only where that changed since."""
    fields = record(env)
    matrix = entry(env, fields, "current") if fields else None
    if matrix is None:
        return None
    over = fields.get("over")
    if (
        isinstance(over, dict)
        and over
        and states(over) == {name: (*state,) for name, state in over.items()}
    ):
        return matrix
    # Another release of the program may bring a newer matrix, and the files of a checkout are being written.
    newer = resources.builtin_index() and str(matrix.bundle["date"]) > date_of_built_in()
    return matrix if newer else None


def is_read(bundle: Mapping[str, Any]) -> bool:
    """Whether this program reads a bundle: by the format of its index, and the versions that it is for."""
    return bundle["format"] == FORMAT and allows(bundle["programs"])


def allows(programs: str) -> bool:
    """Whether a range such as `>=1.2,<1.3` has this version. Raises ValueError for anything else."""
    own = _numbers(__version__)
    for clause in programs.split(","):
        if clause.startswith(">="):
            fits = own >= _numbers(clause[2:])
        elif clause.startswith("<"):
            fits = own < _numbers(clause[1:])
        else:
            raise ValueError(clause)
        if not fits:
            return False
    return True


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def programs() -> str:
    """The versions that read what this one compiles: those of its minor version."""
    major, minor = _numbers(__version__)[:2]
    return f">={major}.{minor},<{major}.{minor + 1}"


def over(index: Index) -> States:
    """The state of the files by which the built-in matrix is known to be the same."""
    shipped = resources.builtin_index()
    return states([os.path.join(shipped, HEADER)] if shipped else index.header["files"])


def states(names: Iterable[str]) -> States:
    """Sizes and times of files by their paths; nothing where one is missing."""
    # Then there is no state that an index could be of.
    try:
        stats = {os.path.abspath(name): os.stat(name) for name in names}
    except OSError:
        return {}
    return {name: (state.st_size, state.st_mtime_ns) for name, state in stats.items()}
