"""The audit of a matrix as a table of what it covers, and findings below it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolmatrix.factbase.index import Index
from toolmatrix.finding import Finding
from toolmatrix.report import terminal
from toolmatrix.report.findings import FindingsDocument, MatrixReport
from toolmatrix.report.grid import markdown
from toolmatrix.report.terminal import Terminal

_UNASKED = "-"


class AuditReport(MatrixReport):
    """What of each family is known, and findings, the worst first."""

    def __init__(
        self,
        index: Index,
        findings: Iterable[Finding],
        families: Sequence[dict[str, Any]],
        counts: Mapping[str, int],
    ) -> None:
        super().__init__(index, findings, counts)
        self.counts = counts
        self.families = families
        self.targets = list(index.header["targets"])

    def document(self, subject: str) -> FindingsDocument:
        """Everything as JSON values."""
        document = super().document(subject)
        document["families"] = list(self.families)
        return document

    def text(self, screen: Terminal) -> str:
        """The table, then the findings."""
        rows = [self._head(), *map(self._row, self.families)]
        table = terminal.columns(rows, right=range(1, len(rows[0]) - 1))
        return "\n".join(table) + "\n\n" + super().text(screen)

    def coverage(self) -> str:
        """The table as Markdown."""
        return markdown([self._head(), *map(self._row, self.families)])

    def markdown(self) -> str:
        """The table and the findings as Markdown."""
        return f"{self.coverage()}\n{super().markdown()}"

    def looked(self) -> str:
        """The numbers of what was looked at."""
        totals = [terminal.plural(count, name) for name, count in self.counts.items()]
        return f"looked at {terminal.listing(totals)}"

    def _head(self) -> tuple[str, ...]:
        return ("component", "known", "published", "variants", *self.targets, "answers by evidence")

    def _row(self, family: Mapping[str, Any]) -> tuple[str, ...]:
        targets = (family["targets"].get(name) for name in self.targets)
        return (
            family["component"],
            str(family["known"]),
            _count_text(family["published"]),
            _count_text(family["variants"]),
            *("/".join(map(str, counts.values())) if counts else _UNASKED for counts in targets),
            # What is no framework is not asked for by itself, and has facts alone.
            _shares(family["answers"]) or _shares(family["facts"]),
        )


def _count_text(count: int | None) -> str:
    return str(count) if count else _UNASKED


def _shares(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    return ", ".join(f"{evidence} {100 * count // total} %" for evidence, count in counts.items())
