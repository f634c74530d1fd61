"""`toolmatrix list`; in Python it is `toolmatrix.components`."""

from __future__ import annotations

from functools import partial

from toolmatrix.api import Report
from toolmatrix.api.requests import open_matrix
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ALL
from toolmatrix.report import components as report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.api import Matrix


@command(
    group="Explore the matrix",
    order=1,
    formats=PRINTED,
    examples=("toolmatrix list", "toolmatrix list --all --json"),
)
def components(*, everything: bool = ALL, at: str = "", matrix: Matrix = None) -> Report:
    """List the components.

    They are listed by group; with `everything` those that answers hide as well.
    """
    document = report.document(open_matrix(matrix).index, everything=everything, at=at)
    return Report(
        words=partial(report.text, document),
        document=lambda: document,
        hint="`toolmatrix show NAME` shows one; `toolmatrix search TEXT` finds more",
    )
