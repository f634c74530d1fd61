"""Questions about one component or release, which are answered from facts alone: nothing is solved."""

from __future__ import annotations

from functools import partial

from toolmatrix.api import Report
from toolmatrix.errors import CannotSay, NothingMatched, UsageError
from toolmatrix.request.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypedDict

    from typing_extensions import Unpack

    from toolmatrix.api import Matrix
    from toolmatrix.api.requests import RequestOptions
    from toolmatrix.facts.index import Index
    from toolmatrix.report.search import Findable
    from toolmatrix.solve.request import Request

    class GivenWay(TypedDict):
        """Where a framework comes from, and what computes."""

        from_: str
        accelerator: str


MOST = 20
"""So many hits of a search fit on a screen."""


def show(
    subject: str,
    *,
    everything: bool = False,
    at: str = "",
    online: bool = False,
    matrix: Matrix = None,
) -> Report:
    """A component at a glance, all of it or those of its releases or builds that `subject` names: `torch==2.7`.

    The text has the newest releases, and the builds of the newest that has some, unless `everything` is asked for.
    Raises NothingMatched for what nobody knows.
    """
    from toolmatrix.api.requests import with_online_packages

    opened = with_online_packages((subject,), {"matrix": matrix, "online": online})
    return shown(opened.index, subject, everything=everything, at=at)


def shown(index: Index, text: str, *, everything: bool = False, at: str = "") -> Report:
    """`show` of an open index."""
    from toolmatrix.report import profile

    names = Names(index)
    # The second of two is the builds that the same word names: `torch==2.7.1+cu128`.
    first, *builds = [
        (ask, names.scale(ask.component).select(ask.selector)) for ask in names.asks(text)
    ]
    # Before anything is collected: a release that was not out yet is another error than one that nobody knows.
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


def components(*, everything: bool = False, at: str = "", matrix: Matrix = None) -> Report:
    """All components at a glance, by group; with `everything` those that answers hide as well."""
    from toolmatrix.api.requests import open_matrix

    return listed(open_matrix(matrix).index, everything=everything, at=at)


def listed(index: Index, *, everything: bool = False, at: str = "") -> Report:
    """`components` of an open index."""
    from toolmatrix.report import components as report

    held = report.document(index, everything=everything, at=at)
    return Report(words=partial(report.text, held), document=lambda: held)


def search(text: str, *, limit: int = MOST, matrix: Matrix = None) -> Report:
    """What a text may mean: components, releases, devices and other names, sources; at most `limit`, 0 for all.

    Raises NothingMatched.
    """
    from toolmatrix.api.requests import open_matrix

    return hits(open_matrix(matrix).index, text, limit)


def hits(index: Index, text: str, limit: int = MOST, more: Iterable[Findable] = ()) -> Report:
    """`search` in an open index, and in `more` entries."""
    from toolmatrix.report import search as report

    found = report.find_matches(index, text, more)
    if not found:
        raise NothingMatched(
            "nothing found",
            found=f"`{text}`",
            help="`toolmatrix list` shows the components",
        )
    held = report.document(index, text, found, limit)
    return Report(words=partial(report.as_text, held), document=lambda: held)


def what(subject: str, *, everything: bool = False, **options: Unpack[RequestOptions]) -> Report:
    """What goes with the releases that `subject` names: `cuda==12.4`; by what facts say of the two alone.

    The options are those of a request, of which the first target counts; without `from_` and `accelerator` every way is
    looked at that the target has.
    Raises NothingMatched where these releases cannot be.
    """
    from toolmatrix.api.requests import read_request, with_online_packages

    # Opened once, for there are as many requests as ways.
    opened = with_online_packages((subject,), options)
    component = subject_of(opened.index, subject)
    requests = [
        read_request((subject,), {**options, **way}, varied=(component,))[1]
        for way in install_methods(
            opened.index, options.get("from_", ""), options.get("accelerator", "")
        )
    ]
    return what_goes_with(opened.index, component, requests, everything=everything)


def subject_of(index: Index, subject: str) -> str:
    """The component that a word names: that of builds, where it names some. Raises UsageError for what is given."""
    component = Names(index).asks(subject)[-1].component
    if index.header["components"][component]["given"]:
        raise UsageError(
            f"`{subject}` is a property of a target, not a component",
            expected="a component such as `cuda` or `python`",
            found=f"`{subject}`",
            help="`toolmatrix help what` shows the options for targets",
        )
    return component


def install_methods(index: Index, from_: str, accelerator: str) -> list[GivenWay]:
    """Where frameworks come from and what computes: as said, or in every way that there is."""
    # Releases of `from` and `accelerator` have the one that is preferred last.
    return [
        {"from_": source, "accelerator": computes}
        for source in ([from_] if from_ else reversed(index.component("from").versions))
        for computes in (
            [accelerator] if accelerator else reversed(index.component("accelerator").versions)
        )
    ]


def what_goes_with(
    index: Index, component: str, requests: Sequence[Request], *, everything: bool = False
) -> Report:
    """`what` of a component, by the requests for it, which differ in the ways."""
    from toolmatrix.report import partners as report
    from toolmatrix.solve import pairs

    first = requests[0]
    found = pairs.partners_of(index, component, requests)
    if not found.mask:
        # Ways are no part of the question where all of them were looked at.
        said = {ask.option: ask for ask in first.asks if ask.option in ("from", "accelerator")}
        every = {name for name in said if any(said[name] not in one.asks for one in requests)}
        lines = tuple(ask for ask in first.asks if ask.option not in every)
        asking = " ".join(first.replace(asks=lines).words())
        raise NothingMatched(
            f"none of the named releases of {component} is possible",
            found=asking,
            help=f"`toolmatrix why-not {asking}` shows why",
        )
    held = report.document(index, found)
    return Report(
        words=partial(report.text, index, held, everything=everything),
        document=lambda: held,
        # Where facts say nothing of any other component, or only no, nobody can say what goes with it.
        exit_code=0 if report.positive(held) else CannotSay.exit_code,
    )
