"""`toolmatrix search`."""

from __future__ import annotations

import shlex
from functools import partial

from toolmatrix.api import Report
from toolmatrix.api.requests import open_matrix
from toolmatrix.command import COMMANDS, PRINTED, all_options, command, every_format, meanings
from toolmatrix.command.option import option
from toolmatrix.errors import NothingMatched
from toolmatrix.report import search as report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.api import Matrix
    from toolmatrix.report.search import Findable

MOST = 20
"""So many hits fit on a screen."""


@command(
    group="Explore the matrix",
    order=2,
    usage="TEXT...",
    formats=PRINTED,
    examples=("toolmatrix search cudnn", "toolmatrix search 4090 --limit 3"),
)
def search(
    text: str,
    *,
    limit: int = option("--limit", default=MOST, help="Maximum number of results; 0 for all"),
    matrix: Matrix = None,
) -> Report:
    """Search components, devices and commands.

    A text may mean components, releases, devices and other names, sources, and parts of this program. Raises
    NothingMatched.
    """
    found = report.find_matches(open_matrix(matrix).index, text, _parts_of_program())
    if not found:
        raise NothingMatched(
            "nothing found",
            found=f"`{text}`",
            help="`toolmatrix list` shows the components",
        )
    document = report.document(open_matrix(matrix).index, text, found, limit)
    return Report(words=partial(report.as_text, document), document=lambda: document)


def _parts_of_program() -> Iterator[Findable]:
    """Commands, options, formats, codes and topics of this program."""
    from toolmatrix.cli import topics
    from toolmatrix.render import formats
    from toolmatrix.report.rules import load_rules
    from toolmatrix.report.search import Findable

    def entry(kind: str, name: str, says: str, *words: str) -> Findable:
        line = shlex.join(("toolmatrix", *words))
        return Findable(kind=kind, name=name, says=says, command=line)

    commands = COMMANDS.values()
    for one in commands:
        yield entry("command", one.name, one.summary, "help", one.name)
    for known in all_options().values():
        for text, takers in meanings(known).items():
            for flag in (known.flags[-1], *known.shorthand):
                yield entry("option", flag, text, "help", takers[0])
    for name, topic in topics.load().items():
        yield entry("topic", name, topic.title, "help", name)
    rendered = formats.known()
    for name in every_format():
        takers = [one.name for one in commands if name in one.formats]
        says = [*([rendered[name].SUMMARY] if name in rendered else []), *takers]
        yield entry("format", name, ", ".join(says), "help", "formats")
    for code, page in load_rules().items():
        yield entry("code", code, page.name, "rule", code)
