"""`toolmatrix list`, `search`: which components there are, and what a word may mean."""

from __future__ import annotations

import shlex

from toolmatrix.cli.commands import COMMANDS, every_format, meanings
from toolmatrix.cli.options import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.cli.context import Context
    from toolmatrix.report.search import Findable


def list(context: Context) -> int:
    """Print the components."""
    from toolmatrix.api import components

    options = context.options
    context.say_after("hint: `toolmatrix show NAME` shows one; `toolmatrix search TEXT` finds more")
    return context.give(components.listed(context.index(), everything=options.all, at=options.at))


def search(context: Context) -> int:
    """Print what a text may mean, in the matrix and in this program; exit 3 where nothing does."""
    from toolmatrix.api import components

    limit = context.options.limit
    most = components.MOST if limit is None else limit
    text = " ".join(context.arguments)
    return context.give(components.hits(context.index(), text, most, _own()))


def _own() -> Iterator[Findable]:
    """Commands, options, formats, codes and topics of this program."""
    from toolmatrix.cli import topics
    from toolmatrix.render import formats
    from toolmatrix.report.rules import load_rules
    from toolmatrix.report.search import Findable

    def entry(kind: str, name: str, says: str, *command: str) -> Findable:
        line = shlex.join(("toolmatrix", *command))
        return Findable(kind=kind, name=name, says=says, command=line)

    for name, command in COMMANDS.items():
        yield entry("command", name, command.summary, "help", name)
    for option in OPTIONS.values():
        for text, takers in meanings(option).items():
            for flag in (option.flags[-1], *option.shorthand):
                yield entry("option", flag, text, "help", takers[0])
    for name, topic in topics.load().items():
        yield entry("topic", name, topic.title, "help", name)
    known = formats.known()
    for name in every_format():
        takers = [one.name for one in COMMANDS.values() if name in one.formats]
        says = [*([known[name].SUMMARY] if name in known else []), *takers]
        yield entry("format", name, ", ".join(says), "help", "formats")
    for code, page in load_rules().items():
        yield entry("code", code, page.name, "rule", code)
