"""The matrix for other tools to import, as one document or one table: `toolmatrix export`."""

from __future__ import annotations

from toolmatrix.api import PLAIN, Outcome
from toolmatrix.report.export import Extract
from toolmatrix.request.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from toolmatrix.api import Matrix
    from toolmatrix.facts.index import Index
    from toolmatrix.report.terminal import Terminal


class Export(Outcome):
    """The facts of a matrix, or those about some components; `pieces` are its text without holding all of it."""

    def __init__(self, extract: Extract) -> None:
        self.extract = extract

    def text(self, screen: Terminal = PLAIN) -> str:
        """The document as JSON, whatever the screen."""
        del screen
        return self.written("json")

    def written(self, form: str, title: str = "") -> str:
        """The whole text as `json` or `csv`, which have no title."""
        del title
        return "".join(self.pieces(form))

    def pieces(self, form: str) -> Iterator[str]:
        """The text as `json` or `csv`, piece by piece, made while it is read."""
        return self.extract.csv() if form == "csv" else self.extract.json()

    def to_json(self) -> dict[str, Any]:
        """The document `toolmatrix.export/1`."""
        return self.extract.document()


def export(*names: str, matrix: Matrix = None) -> Export:
    """The facts about some components, their variants, and what they were read from; all facts where none is named.

    A name is that of a component, or any other that it has. Raises NothingMatched.
    """
    from toolmatrix.api.requests import open_matrix

    return exported(open_matrix(matrix).index, names)


def exported(index: Index, names: Iterable[str]) -> Export:
    """The facts of a matrix about the components that words name."""
    known = Names(index)
    return Export(Extract(index, map(known.component, names)))
