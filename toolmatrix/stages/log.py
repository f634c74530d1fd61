"""From the text of a log to plans: clean lines, one reader for each driver, one plan for each invocation."""

from __future__ import annotations

from toolmatrix.stages.model import Log
from toolmatrix.stages.prefixes import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from toolmatrix.stages.model import Plan

    class Reader(Protocol):
        """What understands one family of drivers."""

        def read(self, number: int, line: str) -> bool:
            """Take a line if it is this driver's; `line` has no prefix, no colour and no line end."""

        def message(self, number: int, line: str) -> None:
            """Hear a line that no reader took, while this one's invocation is the latest."""

        def plans(self) -> list[Plan]:
            """What was read, one plan for each invocation; called once, at the end."""


def parse_log(lines: Iterable[str]) -> Log:
    """Every invocation that the lines of a log tell of; raises nothing, whatever the lines are."""
    from toolmatrix.stages.clang import ClangReader
    from toolmatrix.stages.nvcc import NvccReader

    readers: list[Reader] = [NvccReader(), ClangReader()]
    latest: Reader | None = None
    for number, raw in enumerate(lines, 1):
        line = clean(raw)
        for reader in readers:
            if reader.read(number, line):
                latest = reader
                break
        else:
            if latest is not None:
                latest.message(number, line)
    plans = [plan for reader in readers for plan in reader.plans()]
    return Log(plans=tuple(sorted(plans, key=lambda plan: plan.line)))
