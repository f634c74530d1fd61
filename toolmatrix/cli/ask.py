"""From the options and arguments of a run to what is asked, and where; and the commands that print the answer."""

from __future__ import annotations

from toolmatrix.api import answers
from toolmatrix.cli.options import OPTIONS
from toolmatrix.cli.prepare import invalid_option
from toolmatrix.errors import UsageError
from toolmatrix.request import fields, read
from toolmatrix.request.fields import BadValue, Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.api import Outcome
    from toolmatrix.cli.context import Context
    from toolmatrix.cli.options import Options
    from toolmatrix.facts.index import Index
    from toolmatrix.request.read import RequestContext
    from toolmatrix.solve.request import Kept, Request
    from toolmatrix.solve.resolve import Unsatisfiable


def written(options: Options, wanted: Sequence[str] = ()) -> Fields:
    """The fields of a request as options give them."""
    return Fields(wanted=tuple(wanted), **{name: options[name] for name in fields.OPTIONS})


def settled(context: Context, index: Index, wanted: Sequence[str] = ()) -> Fields:
    """The fields of a run, with the words of the matrix for those that were said.

    Raises UsageError or ConfigError with the place of a word that means none, and CannotSay for one of which no fact
    speaks.
    """
    try:
        return fields.settled(written(context.options, wanted), index)
    except BadValue as bad:
        raise invalid_option(OPTIONS[bad.name], context.origins[bad.name], bad) from None


def build(
    context: Context,
    index: Index,
    arguments: Sequence[str] | None = None,
    *,
    varied: Sequence[str] = (),
) -> Request:
    """The request of a run: positional arguments and every request option; `varied` are the sides of a grid."""
    wanted = context.arguments if arguments is None else arguments
    keep = _kept(context.options.keep)
    return read.read(index, settled(context, index, wanted), keep=keep, varied=varied)


def _kept(path: str) -> Kept:
    if not path:
        return ()
    # The reader of locks is imported where one is named.
    from toolmatrix.api.requests import read_kept_releases

    return read_kept_releases(path)


def request_context(context: Context, index: Index) -> RequestContext:
    """The context of a `toolmatrix resolve` pasted where this run was: its settings and variables, no flag."""
    # What is offered has to say these itself: the command that is pasted has none of the flags of this run.
    options, carried = context.options, []
    for path in options.matrix:
        carried += ["--matrix", path]
    if options.keep:
        carried += ["--keep", options.keep]
    return read.RequestContext(
        index=index,
        fields=written(context.settings.pasted(context.env)),
        carried=tuple(carried),
        keep=_kept(options.keep),
    )


def with_online_packages(context: Context, words: Sequence[str] = ()) -> Context:
    """This run, if it is `--online`, with the packages of the index that words, or its arguments, name and it lacks."""
    options = context.options
    if not options.online:
        return context
    from toolmatrix.api import online
    from toolmatrix.cli.progress import Progress
    from toolmatrix.report.terminal import listing

    index, asked = context.index(), (*(words or context.arguments), *options.with_)
    progress = Progress(context, "reading", "wheels")
    try:
        found = online.harvested(index, asked, context.env, progress.at)
    finally:
        progress.end()
    if found is None:
        return context
    context.say_after(
        f"harvested {listing(found.packages)} just now, unreviewed ({found.effort}): "
        f"`--matrix {found.path}` asks the same without the index"
    )
    return context.replace(options=options.replace(matrix=(*options.matrix, found.path)))


def resolve(context: Context) -> int:
    """Print the best answer and return 0, 4 if it rests on what nobody knows, or why there is none and return 1."""
    context = with_online_packages(context)
    index = context.index()
    found = answers.resolved(request_context(context, index), build(context, index))
    if found.ok and context.options.format != "json":
        context.say_after(
            "hint: `toolmatrix lock` saves this answer; `toolmatrix explain NAME` shows why"
        )
    return _answer(context, found)


def refuse(context: Context, index: Index, refusal: Unsatisfiable) -> int:
    """Print a refusal with its repairs; the answer is no."""
    return _answer(context, answers.NoAnswer(request_context(context, index), refusal))


def explain(context: Context) -> int:
    """Explain one component of the answer to a request; exit 3 if the answer does not hold it."""
    from toolmatrix.request.names import Names

    context = with_online_packages(context, (*context.arguments, *context.configured_request))
    index = context.index()
    # A name with a version asks for it as well; one alone is looked for in the answer to the rest.
    subject, *words = context.arguments
    component, told = Names(index).subject(subject)
    request = build(context, index, (subject, *words) if told else _standing(context, words))
    here, invert = request_context(context, index), context.options.invert
    return _answer(context, answers.explained(here, request, component, invert=invert))


def why_not(context: Context) -> int:
    """Exit 1 with the reasons, 0 when facts support it, 4 when nothing forbids it and nothing supports it either."""
    context = with_online_packages(context)
    index = context.index()
    return _answer(context, answers.allowed(request_context(context, index), build(context, index)))


def matrix(context: Context) -> int:
    """Print a grid (`--rows`, `--cols`), a list of releases (`--rows` alone) or the cells of a CI matrix."""
    from toolmatrix.api import grids

    sides = (context.options.rows, context.options.cols, *context.options.where)
    context = with_online_packages(context, [*filter(None, sides)])
    index, options = context.index(), context.options
    varied = grids.sides(index, options.rows, options.cols, several=options.cells)
    here = request_context(context, index)
    request = build(context, index, grids.wanted(varied, options.where), varied=varied)
    if options.cells:
        context.write_json(grids.cells(here, request, varied, options.where))
        return 0
    table = grids.ReleaseTable(here, request, varied, where=options.where, everything=options.all)
    return context.give(table)


def _answer(context: Context, found: Outcome) -> int:
    return context.give(found, depth=context.options.depth)


def _standing(context: Context, words: Sequence[str]) -> Sequence[str]:
    if words or context.configured_request:
        return words or context.configured_request
    raise UsageError(
        "no request to answer",
        expected="a request after the name, or `request` in toolmatrix.toml",
        found="neither",
        help=f"`toolmatrix {context.command.name} cuda tensorflow==2.6.5`",
    )
