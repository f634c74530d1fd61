"""`toolmatrix matrix`: a grid of two components, or every consistent combination for a CI matrix (`--cells`)."""

from __future__ import annotations

from toolmatrix.cli import ask
from toolmatrix.errors import NothingMatched, UsageError
from toolmatrix.solve.assemble import Assembly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context
    from toolmatrix.facts.index import Index
    from toolmatrix.solve.request import Request


def run(context: Context) -> int:
    """Print a grid (`--rows`, `--cols`), a list of releases (`--rows` alone) or the cells of a CI matrix."""
    index = context.index()
    names = ask.Names(index)
    varied = [
        names.component(word)
        for word in (context.options.rows, *context.options.cols.split(","))
        if word
    ]
    if not varied:
        raise UsageError(
            "nothing to lay out",
            expected="`--rows NAME`, and `--cols NAME` for a grid",
            found="neither",
            help="`toolmatrix matrix --rows cuda --cols arch --where 'cuda>=10.2,<=13'`",
        )
    if len(set(varied)) < len(varied):
        raise UsageError(
            "the sides of a grid are the same",
            expected="another name in `--cols` than in `--rows`",
            found=f"`{varied[0]}` on both",
        )
    if context.options.cells:
        return _cells(context, index, varied)
    if len(varied) > 2:
        raise UsageError(
            "a grid has two sides",
            expected="one name in `--cols`",
            found=context.options.cols,
            help="`--cells` takes several",
        )
    return _grid(context, index, varied)


def _cells(context: Context, index: Index, varied: list[str]) -> int:
    from toolmatrix.report import grid as report
    from toolmatrix.solve.cells import cells

    request = _request(context, index, varied)
    found = [
        cells(Assembly(index, request.replace(targets=(target,))), target, varied)
        for target in request.targets
    ]
    if not any(part.consistent or part.excluded for part in found):
        raise NothingMatched("no releases to combine", found=" ".join(context.options.where))
    context.write_json(report.cells_document(index, request, varied, found))
    return 0


def _request(context: Context, index: Index, varied: list[str]) -> Request:
    """The releases of `--where`, and every release of what varies."""
    words = [*context.options.where, *_bare(context, varied)]
    return ask.build(context, index, words, varied=varied)


def _bare(context: Context, varied: list[str]) -> list[str]:
    """The varied components that no `--where` names: they are wanted too, at any release."""
    named = {
        where.split("=")[0].split("<")[0].split(">")[0].split("~")[0].split("!")[0].strip()
        for where in context.options.where
    }
    return [name for name in varied if name not in named]


def _grid(context: Context, index: Index, varied: list[str]) -> int:
    from toolmatrix.report import grid as report
    from toolmatrix.solve.grid import grid

    rows, columns = varied[0], varied[1] if len(varied) > 1 else ""
    request = _request(context, index, varied)
    assembly = Assembly(index, request)
    if not columns:
        context.write(report.releases(index, rows, assembly, context.options.format))
        return 0
    found = grid(assembly, request.targets[0], rows, columns)
    if not found.rows or not found.columns:
        raise NothingMatched("no releases to lay out", found=" ".join(context.options.where))
    laid = report.lay_out(
        assembly,
        found,
        rows,
        columns,
        everything=context.options.all,
        brief=context.options.format == "text",
    )
    if not laid.columns:
        raise NothingMatched(
            f"no fact joins {rows} and {columns}",
            found=f"`--rows {rows} --cols {columns}`",
            help="`--all` shows every column",
        )
    if context.options.format == "json":
        context.write_json(report.document(index, request, laid))
    else:
        context.write(report.text(index, laid, context.options.format, context.terminal))
    return 0
