"""`toolmatrix what`."""

from __future__ import annotations

from functools import partial

from toolmatrix.api import Report
from toolmatrix.api.requests import read_request, with_online_packages
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ONLINE
from toolmatrix.errors import CannotSay, NothingMatched, UsageError
from toolmatrix.request.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict

    from typing_extensions import Unpack

    from toolmatrix.api.requests import RequestOptions
    from toolmatrix.factbase.index import Index
    from toolmatrix.solve.request import Request

    class MethodOptions(TypedDict):
        """Where a framework comes from, and what computes."""

        from_: str
        accelerator: str


@command(
    group="Explore the matrix",
    order=4,
    usage="REQUEST",
    completer="release",
    formats=PRINTED,
    examples=(
        "toolmatrix what cuda==12.4",
        "toolmatrix what python==3.13 --from wheel --target arm",
    ),
)
def what(
    subject: str,
    *,
    online: bool = ONLINE,
    everything: bool = False,
    **options: Unpack[RequestOptions],
) -> Report:
    """Show what a release is compatible with, by component.

    The answer is what facts say of the two alone, on the first target; without `from_` and `accelerator` every install
    method of the target counts. Raises NothingMatched where these releases cannot be.
    """
    # Opened once for all requests: there is one for each install method.
    index = with_online_packages((subject,), options, online=online).index
    component = _component_of(index, subject)
    requests = [
        read_request((subject,), {**options, **method}, varied=(component,))[1]
        for method in _install_methods(
            index, options.get("from_", ""), options.get("accelerator", "")
        )
    ]
    return _what_goes_with(index, component, requests, everything=everything)


def _component_of(index: Index, subject: str) -> str:
    """The component that a word names, or its builds. Raises UsageError for a property of a target."""
    component = Names(index).asks(subject)[-1].component
    if index.header["components"][component]["given"]:
        raise UsageError(
            f"`{subject}` is a property of a target, not a component",
            expected="a component such as `cuda` or `python`",
            found=f"`{subject}`",
            help="`toolmatrix help what` shows the options for targets",
        )
    return component


def _install_methods(index: Index, from_: str, accelerator: str) -> list[MethodOptions]:
    # The preferred values of `from` and `accelerator` are last.
    return [
        {"from_": source, "accelerator": computes}
        for source in ([from_] if from_ else reversed(index.component("from").versions))
        for computes in (
            [accelerator] if accelerator else reversed(index.component("accelerator").versions)
        )
    ]


def _what_goes_with(
    index: Index, component: str, requests: Sequence[Request], *, everything: bool = False
) -> Report:
    from toolmatrix.report import partners as report
    from toolmatrix.solve import pairs
    from toolmatrix.solve.resolve import Resolution, attempt

    first = requests[0]
    # Facts about two components do not show that a third one, such as an arch, keeps them apart.
    possible = [request for request in requests if isinstance(attempt(index, request), Resolution)]
    goes_with = pairs.partners_of(index, component, possible)
    if not goes_with.mask:
        # Leave `from` and `accelerator` out of the message if all values were tried.
        by_option = {ask.option: ask for ask in first.asks if ask.option in ("from", "accelerator")}
        every = {
            name
            for name in by_option
            if any(by_option[name] not in request.asks for request in requests)
        }
        lines = tuple(ask for ask in first.asks if ask.option not in every)
        asking = " ".join(first.replace(asks=lines).arguments())
        raise NothingMatched(
            f"none of the named releases of {component} is possible",
            found=asking,
            help=f"`toolmatrix why-not {asking}` shows why",
        )
    document = report.document(index, goes_with)
    return Report(
        words=partial(report.text, index, document, everything=everything),
        document=lambda: document,
        # Without facts about other components, or with refusals only, the answer is unknown.
        exit_code=0 if report.positive(document) else CannotSay.exit_code,
    )
