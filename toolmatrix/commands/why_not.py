"""`toolmatrix why-not`."""

from __future__ import annotations

from toolmatrix.api.arguments import request
from toolmatrix.api.requests import read_request
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ONLINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from toolmatrix.api import Wanted
    from toolmatrix.api.answers import Allowed, NoAnswer
    from toolmatrix.api.requests import RequestOptions


@command(
    group="Resolve and explain",
    order=3,
    does="looking for ways to have",
    usage="REQUEST...",
    completer="release",
    environments=True,
    formats=PRINTED,
    examples=(
        "toolmatrix why-not cuda==11.0 --with tensorflow==2.6.5",
        "toolmatrix why-not cuda==11.0 --arch sm_86",
    ),
)
def why_not(
    *wanted: Wanted, online: bool = ONLINE, **options: Unpack[RequestOptions]
) -> Allowed | NoAnswer:
    """Show what forbids a request, and what would have to change.

    Yes where facts support the request; neither yes nor no where nothing forbids it and nothing supports it.
    """
    from toolmatrix.api import answers

    return answers.check_request(*read_request(request(wanted, "why_not"), options, online=online))
