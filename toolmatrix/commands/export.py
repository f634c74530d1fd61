"""`toolmatrix export`."""

from __future__ import annotations

from toolmatrix.api import PLAIN, Outcome
from toolmatrix.api.requests import open_matrix
from toolmatrix.command import command
from toolmatrix.report.export import Extract
from toolmatrix.request.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from toolmatrix.api import Matrix
    from toolmatrix.report.terminal import Terminal


class Export(Outcome):
    """The facts of a matrix, or those about some components; `chunks` are its text without holding all of it."""

    def __init__(self, extract: Extract) -> None:
        self.extract = extract

    def text(self, screen: Terminal = PLAIN) -> str:
        """The document as JSON, whatever the screen."""
        del screen
        return self.written("json")

    def written(self, form: str, title: str = "") -> str:
        """The whole text as `json` or `csv`, which have no title."""
        del title
        return "".join(self.chunks(form))

    def chunks(self, form: str) -> Iterator[str]:
        """The text as `json` or `csv`, each part made when it is read."""
        return self.extract.csv() if form == "csv" else self.extract.json()

    def to_json(self) -> dict[str, Any]:
        """The document `toolmatrix.export/1`."""
        return self.extract.document()


@command(
    group="Explore the matrix",
    order=7,
    usage="[NAME...]",
    completer="component",
    formats=("json", "csv"),
    does="exporting",
    examples=(
        "toolmatrix export --output matrix.json",
        "toolmatrix export torch cudnn --format csv",
    ),
)
def export(*names: str, matrix: Matrix = None) -> Export:
    """Export facts for other tools.

    They are the facts about some components, their variants, and what they were read from; all facts where none is
    named. A name is that of a component, or any other that it has. Raises NothingMatched.
    """
    index = open_matrix(matrix).index
    known = Names(index)
    return Export(Extract(index, map(known.component, names)))
