"""nvcc's dry run."""

from __future__ import annotations

from toolmatrix.stages.model import Plan


class NvccReader:
    """Reads the lines of `nvcc --dryrun`."""

    def read(self, number: int, line: str) -> bool:
        """Take a line if it is nvcc's."""
        return False

    def message(self, number: int, line: str) -> None:
        """Hear a line between the commands."""

    def plans(self) -> list[Plan]:
        """One plan for each invocation."""
        return []
