"""A finding: one judged difference, with a code, a place and the facts behind it. Judges make it, `report` words it."""

from __future__ import annotations

from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.errors import Position

SEVERITIES = ("error", "warning", "info")


class Way(Value):
    """One way to ask for a framework: where it runs, and whether it is built or installed."""

    target: str
    from_: str


class Ground(Value):
    """One line of a reason: what facts say about one pair of components.

    `kind` is requires, limits, needs or evidence; `releases` are those of the subject that matter; `clashing` are the
    releases of `component` that the other lines leave and this one excludes; `conditions` are further components that
    must be within the given releases.
    """

    kind: str
    subject: str
    releases: tuple[str, ...]
    component: str
    values: tuple[str, ...]
    clashing: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    facts: tuple[str, ...] = ()
    evidence: str = ""


class Finding(Value):
    """One judged difference. `names` are the names it is about, in an order that its code fixes.

    `plan` and `stage` count from 0: the invocation of a driver in a log, and the stage of it.
    """

    code: str
    severity: str
    component: str = ""
    releases: tuple[str, ...] = ()
    ways: tuple[Way, ...] = ()
    grounds: tuple[Ground, ...] = ()
    names: tuple[str, ...] = ()
    expected: str = ""
    actual: str = ""
    facts: tuple[str, ...] = ()
    where: Position | None = None
    plan: int | None = None
    stage: int | None = None
