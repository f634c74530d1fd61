"""From the options and arguments of a run to what is asked, and where."""

from __future__ import annotations

from toolmatrix.cli.merge import misfit
from toolmatrix.cli.options import OPTIONS
from toolmatrix.errors import UsageError
from toolmatrix.request import fields, read
from toolmatrix.request.fields import BadValue, Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.cli.context import Context
    from toolmatrix.cli.options import Options
    from toolmatrix.facts.index import Index
    from toolmatrix.request.read import Surroundings
    from toolmatrix.solve.request import Kept, Request


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
        raise misfit(OPTIONS[bad.name], context.origins[bad.name], bad) from None


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
    """The releases of the lock of `--keep`, if that was said."""
    if not path:
        return ()
    from toolmatrix.api.requests import kept

    return kept(path)


def standing_request(context: Context, words: Sequence[str]) -> Sequence[str]:
    """The words of a request: those given, else the standing request of the configuration."""
    if words or context.configured_request:
        return words or context.configured_request
    raise UsageError(
        "no request to answer",
        expected="a request after the name, or `request` in toolmatrix.toml",
        found="neither",
        help=f"`toolmatrix {context.command.name} cuda tensorflow==2.6.5`",
    )


def surroundings(context: Context, index: Index) -> Surroundings:
    """The surroundings of a `toolmatrix resolve` pasted where this run was: its settings and variables, no flag."""
    options, carried = context.options, []
    for path in options.matrix:
        carried += ["--matrix", path]
    if options.keep:
        carried += ["--keep", options.keep]
    return read.Surroundings(
        index=index,
        fields=written(context.settings.pasted(context.env)),
        carried=tuple(carried),
        keep=_kept(options.keep),
    )
