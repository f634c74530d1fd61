"""Facts of what was run: packages that went together, and newer ones with which a release fails, found by halving."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolmatrix.harvest import run_tables
from toolmatrix.harvest.environments import FAILED, RAISED, RAN, ImportOutcome
from toolmatrix.value import Value

# What a row leaves out was not there, and is not forgotten.
_RAN_WITH = {"as": "tested", "complete": True, "says": "ran with {subject} {release}"}
ABOUT = (
    "Releases that were imported and used beside others, and newer releases with which they fail."
)


class Trial(Value):
    """Where and how something was run: Python in full, machine, system, the program by its digest, and the day."""

    python: str
    machine: str
    system: str
    program: str
    day: str


class RanTogether(Value):
    """A release that ran with others; `also` are newer releases that it runs with, each alone in the place of one."""

    component: str
    release: str
    series: str
    beside: Mapping[str, str]
    also: Mapping[str, str]
    trial: Trial


class Break(Value):
    """A release that fails with a newer one of a dependency; `widens` says that the rest of its series does as well."""

    component: str
    release: str
    dependency: str
    bound: UpperBound
    trial: Trial
    widens: bool = False


def document(path: str, together: Iterable[RanTogether], breaks: Iterable[Break]) -> dict[str, Any]:
    """The facts with those that a file has already: what was run on another machine was run as well."""
    tables = run_tables.tables(path)
    for ran in together:
        name = f"{ran.component}-imports-{ran.trial.machine}"
        table = run_tables.table(tables, name, _ran_head(ran))
        table["columns"] |= dict.fromkeys(("python", *ran.beside), _RAN_WITH)
        run_tables.put(table, _ran_row(ran))
    for broken in breaks:
        # A table for each dependency: what a row of another leaves out would look like something forgotten.
        name = f"{broken.component}-breaks-{broken.dependency}"
        table = run_tables.table(tables, name, _break_head(broken))
        run_tables.put(table, _break_row(broken))
    return run_tables.document(
        tables,
        _keys,
        title="toolmatrix, imports that were run",
        at="imports of {} as each row names them, by `toolmatrix audit --import`",
    )


def _ran_head(ran: RanTogether) -> dict[str, Any]:
    name = ran.component
    return {
        "about": f"{name}: what it was imported and used with",
        "source": _source(name),
        "where": f"operations.yaml of toolmatrix, {name}",
        "evidence": "ran",
        "context": {"machine": ran.trial.machine, "from": "wheel", "accelerator": "none"},
        "key": name,
        "columns": {one: {"as": "attribute"} for one in ("also", "on", "program", "day")},
    }


def _ran_row(ran: RanTogether) -> dict[str, Any]:
    also = "; ".join(f"{name} {release}" for name, release in sorted(ran.also.items()))
    return {
        "id": f"{ran.component}-imports-{ran.trial.machine}/{ran.release}/{ran.series}",
        # Exactly this one: `1.2` would be 1.2.1 as well.
        ran.component: f"==={ran.release}",
        "python": ran.series,
        **ran.beside,
        **({"also": also} if also else {}),
        "on": f"CPython {ran.trial.python}, {ran.trial.system}",
        "program": ran.trial.program,
        "day": ran.trial.day,
    }


def _break_head(broken: Break) -> dict[str, Any]:
    name, dependency = broken.component, broken.dependency
    limits = {
        "as": "limits",
        # Whoever else limits it says it for another reason, and both bind.
        "topic": f"{dependency}-imported",
        "says": "runs with {component} {value}",
    }
    return {
        "about": f"{name}: releases of {dependency} that its requirements let through, and with which it fails",
        "source": _source(name),
        "evidence": "ran",
        "key": name,
        **({"stands-for": ["same-minor"]} if broken.widens else {}),
        "columns": {dependency: limits, **{one: {"as": "attribute"} for one in ("program", "day")}},
    }


def _break_row(broken: Break) -> dict[str, Any]:
    bound, trial, name = broken.bound, broken.trial, broken.dependency
    several = f"{bound.fails} and {bound.newest}" if bound.newest != bound.fails else bound.fails
    said = bound.outcome.said if bound.outcome else ""
    return {
        "id": f"{broken.component}-breaks-{name}/{broken.release}",
        broken.component: f"==={broken.release}",
        name: f"<{bound.fails}",
        "where": f"runs with {name} {bound.works}, fails with {several}: {said}"
        f" (CPython {trial.python} on {trial.machine}, {trial.system})",
        "program": trial.program,
        "day": trial.day,
    }


def _source(component: str) -> str:
    return f"imported-{component}"


def _keys(row: Mapping[str, Any], subject: str) -> list[str]:
    first, last = ("id", subject, "python"), ("also", "where", "on", "program", "day")
    others = sorted(key for key in row if key not in (*first, *last))
    return [key for key in (*first, *others, *last) if key in row]


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
