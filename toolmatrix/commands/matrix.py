"""`toolmatrix matrix`."""

from __future__ import annotations

import re

from toolmatrix.api import PLAIN, Outcome, as_json
from toolmatrix.api.arguments import words
from toolmatrix.api.requests import read_request, with_online_packages
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.command.options import ONLINE
from toolmatrix.errors import NothingMatched, UsageError
from toolmatrix.report import grid as report
from toolmatrix.request.names import Names
from toolmatrix.solve.assemble import Assembly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from toolmatrix.api import Wanted
    from toolmatrix.api.requests import RequestOptions
    from toolmatrix.factbase.index import Index
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.request.read import RequestContext
    from toolmatrix.solve.request import Request


def sides(index: Index, rows: str, cols: str, *, several: bool = False) -> tuple[str, ...]:
    """The components of `rows` and `cols`, which may list `several`. Raises UsageError where they make no table."""
    names = Names(index)
    components = tuple(names.component(word) for word in (rows, *cols.split(",")) if word)
    if not components:
        raise UsageError(
            "no rows to show",
            expected="`--rows NAME`, and `--cols NAME` for a grid",
            found="neither",
            help="`toolmatrix matrix --rows cuda --cols arch --where 'cuda>=10.2,<=13'`",
        )
    if len(set(components)) < len(components):
        raise UsageError(
            "rows and columns are the same component",
            expected="another name in `--cols` than in `--rows`",
            found=f"`{components[0]}` on both",
        )
    if len(components) > 2 and not several:
        raise UsageError(
            "too many components for a grid",
            expected="one name in `--cols`",
            found=cols,
            help="`--cells` takes several",
        )
    return components


def wanted(varied: Sequence[str], where: Sequence[str]) -> tuple[str, ...]:
    """The words of the request: the releases of `where`, and every release of what varies besides."""
    # A component that is named without a selector is asked for in every release.
    named = {re.split("[=<>~!]", text)[0].strip() for text in where}
    return (*where, *(name for name in varied if name not in named))


class ReleaseTable(Outcome):
    """A grid of two components, or the releases of one, of those that a request admits."""

    def __init__(
        self,
        context: RequestContext,
        request: Request,
        varied: Sequence[str],
        *,
        where: Sequence[str] = (),
        everything: bool = False,
    ) -> None:
        self.context = context
        self.rows, self.columns = varied[0], varied[1] if len(varied) > 1 else ""
        self.request = request
        self.where = where
        self.everything = everything

    def text(self, screen: Terminal = PLAIN) -> str:
        """The table in columns."""
        return self._in("text", screen)

    def written(self, form: str, title: str = "") -> str:
        """The table as `csv`, `md`, `html` or `svg`. Raises NothingMatched where nothing is left to lay out."""
        return super().written(form, title) if form == "svg" else self._in(form, PLAIN, title)

    def _in(self, form: str, screen: Terminal, title: str = "") -> str:
        if not self.columns:
            return report.releases_text(self.releases(), form, title)
        return report.text(self.context.index, self._lay_out(form), form, screen, title)

    def to_json(self) -> report.GridDocument | report.ReleasesDocument:
        """The document `toolmatrix.grid/1`, or `toolmatrix.releases/1` of one component."""
        return self.grid() if self.columns else self.releases()

    def grid(self) -> report.GridDocument:
        """The document of two components."""
        return report.document(self.context.index, self.request, self._lay_out("json"))

    def releases(self) -> report.ReleasesDocument:
        """The document of one component."""
        index = self.context.index
        return report.releases(index, self.rows, Assembly(index, self.request))

    def _lay_out(self, form: str) -> report.Layout:
        from toolmatrix.solve.pairs import grid

        assembly = Assembly(self.context.index, self.request)
        pairs = grid(assembly, self.request.targets[0], self.rows, self.columns)
        if not pairs.rows or not pairs.columns:
            raise NothingMatched("no releases to show", found=" ".join(self.where))
        layout = report.layout(
            assembly,
            pairs,
            self.rows,
            self.columns,
            everything=self.everything,
            brief=form == "text",
        )
        if not layout.columns:
            raise NothingMatched(
                f"no fact joins {self.rows} and {self.columns}",
                found=f"`--rows {self.rows} --cols {self.columns}`",
                help="`--all` shows every column",
            )
        return layout


class Combinations(Outcome):
    """Every consistent combination of components on every target, and what is left out and why, for a CI matrix."""

    def __init__(
        self,
        context: RequestContext,
        request: Request,
        varied: Sequence[str],
        where: Sequence[str],
    ) -> None:
        from toolmatrix.solve.pairs import grid_cells

        # A combination may hold on one target and not on another, so each target is solved by itself.
        per_target = [
            grid_cells(Assembly(context.index, request.replace(targets=(target,))), target, varied)
            for target in request.targets
        ]
        if not any(cells.consistent or cells.excluded for cells in per_target):
            raise NothingMatched("no releases to combine", found=" ".join(where))
        self.document = report.cells_document(context.index, request, varied, per_target)

    def text(self, screen: Terminal = PLAIN) -> str:
        """The document, whatever the screen."""
        del screen
        return as_json(self.document)

    def written(self, form: str, title: str = "") -> str:
        """The document, whatever the format."""
        del form, title
        return self.text()

    def to_json(self) -> report.CellsDocument:
        """The document `toolmatrix.cells/1`."""
        return self.document


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
    named = words(where)
    opened = with_online_packages((rows, cols, *named), options, online=online)
    varied = sides(opened.index, rows, cols, several=cells)
    context, request = read_request(wanted(varied, named), options, varied)
    if cells:
        return Combinations(context, request, varied, named)
    return ReleaseTable(context, request, varied, where=named, everything=everything)
