"""`toolmatrix matrix`."""

from __future__ import annotations

from toolmatrix.api.arguments import words
from toolmatrix.api.requests import read_request, with_online_packages
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.command.options import ONLINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from toolmatrix.api import Wanted
    from toolmatrix.api.grids import Combinations, ReleaseTable
    from toolmatrix.api.requests import RequestOptions


@command(
    group="Resolve and explain",
    order=4,
    does="filling in the grid",
    for_words=("--rows", "--cols"),
    environments=True,
    formats=("text", "json", "csv", *PRINTED[2:]),
    examples=(
        "toolmatrix matrix --rows cuda --cols arch --where 'cuda>=10.2,<=11.2'",
        "toolmatrix matrix --rows tensorflow --cols python --format md",
    ),
)
def matrix(
    rows: str = option("--rows", completer="component", help="Component in the rows"),
    cols: str = option("--cols", completer="component", help="Component in the columns"),
    *,
    where: Wanted = option(
        "--where",
        metavar="SPEC",
        completer="release",
        split=False,
        help="Restrict a component to these releases; repeatable",
    ),
    cells: bool = option(
        "--cells", help="List every consistent combination of rows and columns, for a CI matrix"
    ),
    online: bool = ONLINE,
    everything: bool = False,
    **options: Unpack[RequestOptions],
) -> ReleaseTable | Combinations:
    """Show a grid of compatible releases.

    With `rows` alone it is the list of the releases of one component; `where` restricts both, on the first target.
    """
    from toolmatrix.api import grids

    named = words(where)
    opened = with_online_packages((rows, cols, *named), options, online=online)
    varied = grids.sides(opened.index, rows, cols, several=cells)
    context, request = read_request(grids.wanted(varied, named), options, varied)
    if cells:
        return grids.Combinations(context, request, varied, named)
    return grids.ReleaseTable(context, request, varied, where=named, everything=everything)
