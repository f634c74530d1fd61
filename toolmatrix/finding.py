"""A finding: one judged difference, with a code, a place and the facts behind it. Judges make it, `report` words it.

A verdict is what came of one check of an image or a machine, whether it found something or not.
"""

from __future__ import annotations

from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolmatrix.errors import Position

SEVERITIES = ("error", "warning", "info")


class Way(Value):
    """One way to ask for a framework: where it runs, whether it is built or installed, what computes beside the CPU.

    Without an accelerator it stands for all that were asked for.
    """

    target: str
    from_: str
    accelerator: str = ""


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
    source: str = ""


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


PASS, WARN, FAIL, SKIP, UNKNOWN = "pass", "warn", "FAIL", "skip", "unknown"
WORDS = (PASS, WARN, FAIL, SKIP, UNKNOWN)
EVIDENCE = "evidence"
"""The kind of a verdict that is told beside the checks: it holds no promise, so that nothing passes by it."""
SEVERITY_OF = {FAIL: "error", UNKNOWN: "warning", WARN: "warning", SKIP: "info"}


class Verdict(Value):
    """What came of one check: `word` is pass, warn, FAIL, skip or unknown.

    `wanted` and `found` are versions or values. `seen_by` and `where` are the witness that decided and its place,
    `layer` the digest of the layer that brought it, `made_by` the instruction that made that; `others` are pairs of
    what is there besides and where. `reason` says in a few words why a check was skipped or cannot be decided, `help`
    what to do. A check that passed has no `code`.
    """

    word: str
    kind: str
    name: str
    wanted: str = ""
    found: str = ""
    seen_by: str = ""
    where: str = ""
    layer: str = ""
    made_by: str = ""
    others: tuple[tuple[str, str], ...] = ()
    code: str = ""
    reason: str = ""
    help: str = ""
    evidence: str = ""
    facts: tuple[str, ...] = ()


def outcome(verdicts: Iterable[Verdict]) -> str:
    """`yes` when what was checked holds, `no` when something is wrong, `unknown` when that cannot be said."""
    held = tuple(verdicts)
    if any(verdict.word == FAIL for verdict in held):
        return "no"
    words = {verdict.word for verdict in held if verdict.kind != EVIDENCE}
    return "unknown" if UNKNOWN in words or not words & {PASS, WARN} else "yes"
