"""`toolmatrix matrix`: a grid of two components, or every consistent combination for a CI matrix (`--cells`)."""

from __future__ import annotations

from toolmatrix.api import grids
from toolmatrix.cli import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


def run(context: Context) -> int:
    """Print a grid (`--rows`, `--cols`), a list of releases (`--rows` alone) or the cells of a CI matrix."""
    index, options = context.index(), context.options
    varied = grids.sides(index, options.rows, options.cols, several=options.cells)
    around = ask.surroundings(context, index)
    request = ask.build(context, index, grids.wanted(varied, options.where), varied=varied)
    if options.cells:
        context.write_json(grids.cells(around, request, varied, options.where))
        return 0
    table = grids.ReleaseTable(around, request, varied, where=options.where, everything=options.all)
    return context.give(table)
