"""What is run in environments of releases: a program for each component, and words by which machines fail."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from toolmatrix import resources
from toolmatrix.value import Value

# As most number them; of others the file says it.
_SERIES = 2


class Operation(Value):
    """A program that imports a component and does one thing with it; `series` numbers of a version make a series.

    What else there is of one is for the checks of images (`render.wheels`).
    """

    program: str
    series: int = _SERIES

    @property
    def digest(self) -> str:
        """The first letters of its sha256, by which a fact names it."""
        return hashlib.sha256(self.program.encode()).hexdigest()[:12]

    @property
    def widens(self) -> bool:
        """True if a series is what the matrix takes for a minor series as well."""
        return self.series == _SERIES

    def newest(self, versions: Iterable[str]) -> list[str]:
        """The last release of each series of versions that are in order."""
        found = {tuple(one.split(".")[: self.series]): one for one in versions}
        return list(found.values())


class Operations(Value):
    """The operation of each component, and what an exception says where it tells of the machine."""

    of: Mapping[str, Operation]
    machine: re.Pattern[str]


def operations() -> Operations:
    """Those of this package."""
    held = resources.load_yaml(resources.operations_path())
    return Operations(
        of={
            name: Operation(**{key: one[key] for key in Operation._fields if key in one})
            for name, one in held["operations"].items()
        },
        machine=re.compile("|".join(held["machine"])),
    )
