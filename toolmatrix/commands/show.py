"""`toolmatrix show`."""

from __future__ import annotations

from functools import partial

from toolmatrix.api import Report
from toolmatrix.api.requests import with_online_packages
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ALL, ONLINE
from toolmatrix.errors import NothingMatched
from toolmatrix.request.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.api import Matrix


@command(
    group="Explore the matrix",
    order=3,
    usage="NAME",
    completer="release",
    formats=PRINTED,
    examples=(
        "toolmatrix show torch",
        "toolmatrix show torch==2.7.1",
        "toolmatrix show cuda==12.4 --all",
    ),
)
def show(
    subject: str,
    *,
    everything: bool = ALL,
    online: bool = ONLINE,
    at: str = "",
    matrix: Matrix = None,
) -> Report:
    """Show the releases, builds and facts of a component.

    A subject such as `torch==2.7` names some of its releases or builds. The text has the newest releases, and the
    builds of the newest that has some, unless `everything` is asked for. Raises NothingMatched for what no fact knows.
    """
    from toolmatrix.report import profile

    index = with_online_packages((subject,), {"matrix": matrix}, online=online).index
    names = Names(index)
    # The second of two is the builds that the same word names: `torch==2.7.1+cu128`.
    first, *builds = [
        (ask, names.scale(ask.component).select(ask.selector)) for ask in names.asks(subject)
    ]
    # Before anything is collected: a release that was not out yet is another error than one that nobody knows.
    if at:
        names.known_at(first[0], at)
    wanted = profile.Shown(
        component=first[0].component,
        releases=first[1],
        builds=builds[0][1] if builds else -1,
        at=at,
        everything=everything,
    )
    document = profile.document(index, wanted)
    if not document["releases"]:
        raise NothingMatched(
            f"the matrix knows no release of {wanted.component}", found=f"`{subject}`"
        )
    return Report(
        words=partial(profile.text, index, document, everything=everything),
        document=lambda: document,
    )
