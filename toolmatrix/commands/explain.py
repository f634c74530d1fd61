"""`toolmatrix explain`."""

from __future__ import annotations

from toolmatrix.api.arguments import request, words
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import read_request, with_online_packages
from toolmatrix.command import PRINTED, command
from toolmatrix.command.option import option
from toolmatrix.command.options import ONLINE
from toolmatrix.request.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from toolmatrix.api import Wanted
    from toolmatrix.api.answers import Explanation, NoAnswer
    from toolmatrix.api.requests import RequestOptions


@command(
    group="Resolve and explain",
    order=2,
    usage="NAME [REQUEST...]",
    completer="component",
    environments=True,
    formats=PRINTED,
    examples=(
        "toolmatrix explain cuda tensorflow==2.6.5",
        "toolmatrix explain gcc --lock toolmatrix.lock",
        "toolmatrix explain cuda tensorflow==2.6.5 --invert",
    ),
)
def explain(
    name: str,
    *wanted: Wanted,
    invert: bool = option("--invert", help="Show what depends on the component instead"),
    online: bool = ONLINE,
    **options: Unpack[RequestOptions],
) -> Explanation | NoAnswer:
    """Explain why a version was chosen and others were not.

    A name with a version, or of a build, is asked for too; one alone is looked for in the answer to the request, which
    may be that of the settings. Raises NothingMatched where the answer does not have it.
    """
    from toolmatrix.api import answers

    named = words(*wanted)
    opened = with_online_packages((name, *named, *caller().request), options, online=online)
    component, is_request = Names(opened.index).subject(name)
    requested = (name, *named) if is_request else named or caller().request
    return answers.explain_choice(
        *read_request(request(requested, "explain", "cuda"), options), component, invert=invert
    )
