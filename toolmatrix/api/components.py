"""Questions about one component or release, which are answered from facts alone: nothing is solved."""

from __future__ import annotations

from functools import partial

from toolmatrix.api import Report
from toolmatrix.errors import NothingMatched
from toolmatrix.request.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.api import Matrix
    from toolmatrix.facts.index import Index


def show(subject: str, *, everything: bool = False, at: str = "", matrix: Matrix = None) -> Report:
    """A component at a glance, all of it or those of its releases or builds that `subject` names: `torch==2.7`.

    The text has the newest releases, and the builds of the newest that has some, unless `everything` is asked for.
    Raises NothingMatched for what nobody knows.
    """
    from toolmatrix.api.requests import open_matrix

    return shown(open_matrix(matrix).index, subject, everything=everything, at=at)


def shown(index: Index, text: str, *, everything: bool = False, at: str = "") -> Report:
    """`show` of an open index."""
    from toolmatrix.report import profile

    names = Names(index)
    # The second of two is the builds that the same word names: `torch==2.7.1+cu128`.
    first, *builds = [
        (ask, names.scale(ask.component).select(ask.selector)) for ask in names.asks(text)
    ]
    if at:
        names.known_at(first[0], at)
    subject = profile.Shown(
        component=first[0].component,
        releases=first[1],
        builds=builds[0][1] if builds else -1,
        at=at,
        everything=everything,
    )
    held = profile.document(index, subject)
    if not held["releases"]:
        raise NothingMatched(
            f"the matrix knows no release of {subject.component}", found=f"`{text}`"
        )
    return Report(
        words=partial(profile.text, index, held, everything=everything),
        document=lambda: held,
    )
