"""Words that the matrix in force gives to options: its targets, its accelerators, the ways a framework gets there."""

from __future__ import annotations

from toolmatrix import facts
from toolmatrix.cli.merge import misfit
from toolmatrix.cli.option import BadValue
from toolmatrix.cli.options import ASKING, OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolmatrix.cli.context import Context
    from toolmatrix.cli.options import Options
    from toolmatrix.facts.index import Index


def known(index: Index, name: str) -> tuple[str, ...]:
    """The words that an option takes which asks the matrix."""
    return tuple(facts.names(index, OPTIONS[name].completer, ""))


def settled(context: Context, index: Index) -> Options:
    """The options of a run, with the words of the matrix for those that were said.

    Raises UsageError or ConfigError with the place of a word that means none, and CannotSay for one of which no fact
    speaks.
    """
    changes: dict[str, Any] = {}
    for name in ASKING:
        option, said = OPTIONS[name], context.options[name]
        words = known(index, name) if said else ()
        try:
            if option.kind == "list":
                changes[name] = tuple(option.pick(word, words) for word in said)
            elif said:
                changes[name] = option.pick(said, words)
        except BadValue as bad:
            raise misfit(option, context.origins[name], bad) from None
    return context.options.replace(**changes)
