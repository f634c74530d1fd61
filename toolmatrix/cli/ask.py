"""From the options and arguments of a run to what is asked, and where."""

from __future__ import annotations

from toolmatrix.api import answers
from toolmatrix.cli.prepare import invalid_option
from toolmatrix.request import fields, read
from toolmatrix.request.fields import BadValue, Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.api import Outcome
    from toolmatrix.cli.context import Context
    from toolmatrix.command.options import Options
    from toolmatrix.facts.index import Index
    from toolmatrix.request.read import RequestContext
    from toolmatrix.solve.request import Kept, Request
    from toolmatrix.solve.resolve import Unsatisfiable


def written(options: Options, wanted: Sequence[str] = ()) -> Fields:
    """The fields of a request as options give them."""
    return Fields(
        wanted=tuple(wanted), **{name: options[name] for name in fields.OPTIONS if name in options}
    )


def settled(context: Context, index: Index, wanted: Sequence[str] = ()) -> Fields:
    """The fields of a run, with the words of the matrix for those that were said.

    Raises UsageError or ConfigError with the place of a word that means none, and CannotSay for one of which no fact
    speaks.
    """
    try:
        return fields.settled(written(context.options, wanted), index)
    except BadValue as bad:
        raise invalid_option(
            context.command.options[bad.name], context.origins[bad.name], bad
        ) from None


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
    from toolmatrix.cli.progress import ProgressLine
    from toolmatrix.report.terminal import listing

    index, asked = context.index(), (*(words or context.arguments), *options.with_)
    progress = ProgressLine(context, "reading", "wheels")
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


def refuse(context: Context, index: Index, refusal: Unsatisfiable) -> int:
    """Print a refusal with its repairs; the answer is no."""
    return _answer(context, answers.NoAnswer(request_context(context, index), refusal))


def _answer(context: Context, found: Outcome) -> int:
    return context.give(found, depth=context.options.depth)
