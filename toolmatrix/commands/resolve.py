"""`toolmatrix resolve`."""

from __future__ import annotations

from toolmatrix.api.arguments import request
from toolmatrix.api.requests import read_request
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ONLINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from toolmatrix.api import Wanted
    from toolmatrix.api.answers import NoAnswer, Resolved
    from toolmatrix.api.requests import RequestOptions


@command(
    group="Resolve and explain",
    order=1,
    usage="REQUEST...",
    completer="release",
    requests=True,
    environments=True,
    formats=PRINTED,
    examples=(
        "toolmatrix resolve tensorflow==2.6.5",
        "toolmatrix resolve tensorflow==2.6.5 --target x86,arm,amd --align tensorflow,python",
        "toolmatrix resolve 'tensorflow>=2.6,<2.9' --arch sm_86 --with gcc==9 --json",
        "toolmatrix resolve lightgbm --online",
    ),
)
def resolve(
    *wanted: Wanted, online: bool = ONLINE, **options: Unpack[RequestOptions]
) -> Resolved | NoAnswer:
    """Find versions that work together.

    The answer is the best one, or why there is none.
    """
    from toolmatrix.api import answers

    return answers.resolve_request(
        *read_request(request(wanted, "resolve"), options, online=online)
    )
