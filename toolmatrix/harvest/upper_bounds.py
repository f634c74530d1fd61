"""The last release of a dependency with which something still runs, found by halving."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolmatrix.harvest.environments import FAILED, RAISED, RAN, ImportOutcome
from toolmatrix.value import Value


class UpperBound(Value):
    """The newest release that was run, the last that works, and, where one does not, the first such with its outcome.

    `works` is the newest one where all work; `undecided` says why nothing can be said after `tried`.
    """

    newest: str
    works: str
    fails: str = ""
    outcome: ImportOutcome | None = None
    undecided: str = ""
    tried: str = ""


def search(
    versions: Sequence[str],
    attempt: Callable[[str], ImportOutcome | None],
    *,
    works: bool = True,
) -> UpperBound | None:
    """The bound among releases in order, of which the first `works`; None where no newer one can be had.

    Where it is not known to, it has to be shown first, by the oldest that can be had; None where that fails as well.

    `attempt` runs one, and gives None for a release that cannot be installed. Between the first that fails and the
    newest, which fails as well, all are taken to fail.
    """
    left = list(versions)
    oldest = RAN if works else ""
    while left and not oldest:
        first = attempt(left[0])
        oldest = first.state if first else ""
        left = left if first else left[1:]
    if oldest != RAN:
        return None
    low, high = 0, len(left)
    newest = ""
    failing: ImportOutcome | None = None
    while high - low > 1:
        # The newest first: mostly it works, and then there is no bound.
        at = (low + high) // 2 if newest else len(left) - 1
        outcome = attempt(left[at])
        if outcome is None:
            del left[at]
            high -= 1
            continue
        newest = newest or left[at]
        if outcome.state == FAILED:
            told = outcome.said
            return UpperBound(newest=newest, works=left[low], undecided=told, tried=left[at])
        if outcome.state == RAN:
            low = at
        elif outcome.state == RAISED:
            high, failing = at, outcome
    if not newest:
        return None
    return UpperBound(
        newest=newest,
        works=left[low],
        fails=left[high] if failing else "",
        outcome=failing,
    )
