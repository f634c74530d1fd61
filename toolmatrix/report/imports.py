"""Answers that were installed and used, as a table with what came of each, and findings below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolmatrix.documents import Annotated
from toolmatrix.factbase.index import Index
from toolmatrix.finding import Finding
from toolmatrix.report import terminal
from toolmatrix.report.findings import FindingsDocument, MatrixReport
from toolmatrix.report.grid import markdown
from toolmatrix.report.terminal import Terminal
from toolmatrix.value import Document

_HEAD = ("release", "python", "result", "packages")


class ImportedAnswer(Document):
    """The answer for a release with a Python series: its pins, and what came of them: ran, raised or failed."""

    component: str
    release: str
    python: str
    pins: tuple[str, ...]
    state: Annotated[str, "ran", "raised", "failed"]
    said: str = ""


class ImportReport(MatrixReport):
    """What came of each answer, and findings, the worst first."""

    def __init__(
        self, index: Index, findings: Iterable[Finding], answers: Sequence[ImportedAnswer]
    ) -> None:
        super().__init__(index, findings, {"answers": len(answers)})
        self.answers = answers

    def document(self, subject: str) -> FindingsDocument:
        """Everything as JSON values."""
        document = super().document(subject)
        document["imports"] = [answer.to_json() for answer in self.answers]
        return document

    def text(self, screen: Terminal) -> str:
        """The table, then the findings."""
        return "\n".join(terminal.columns(self._rows())) + "\n\n" + super().text(screen)

    def markdown(self) -> str:
        """The table and the findings as Markdown."""
        return f"{markdown(self._rows())}\n{super().markdown()}"

    def looked(self) -> str:
        """The numbers of what was looked at."""
        states = [answer.state for answer in self.answers]
        counts = ", ".join(f"{states.count(name)} {name}" for name in dict.fromkeys(states))
        answers = terminal.plural(len(states), "answer")
        return f"installed and used {answers}" + (f": {counts}" if counts else "")

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            _HEAD,
            *(
                (f"{row.component} {row.release}", row.python, row.state, " ".join(row.pins))
                for row in self.answers
            ),
        ]
