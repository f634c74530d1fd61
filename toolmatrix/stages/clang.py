"""The dry run of clang and hipcc."""

from __future__ import annotations

from toolmatrix.stages.model import Plan


class ClangReader:
    """Reads the lines of `clang -###`."""

    def read(self, number: int, line: str) -> bool:
        """Take a line if it is clang's."""
        return False

    def message(self, number: int, line: str) -> None:
        """Hear a line between the commands."""

    def plans(self) -> list[Plan]:
        """One plan for each invocation."""
        return []
