"""Every release is asked for: of a framework on every target, from source and as a wheel; of all else once.

Each is judged by itself, so the work may be shared out over processes: `Worker` judges a part of it.
"""

from __future__ import annotations

from toolmatrix.facts.store import open_index
from toolmatrix.finding import Ground, Way
from toolmatrix.solve import conflict
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.engine import Conflict, Problem, solve
from toolmatrix.solve.grounds import grounds
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.solve.request import Ask, Request
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolmatrix.facts.index import Index

    Release = tuple[str, str]
    """A component and one of its versions."""

PART = 24
"""Releases handed to a process at a time: some tenths of a second of work."""


class Refused(Value):
    """A way in which there is no answer; `size` counts the lines of the core, those of the request too."""

    way: Way
    grounds: tuple[Ground, ...]
    size: int


class Verdict(Value):
    """What became of one release: how many of the ways that were tried have an answer, and why the others have none.

    `lost` is set when no target, accelerator or way at all has an answer, and then says why not on the first.
    """

    component: str
    version: str
    answered: int
    refused: tuple[Refused, ...]
    lost: tuple[Ground, ...] | None = None


def releases(index: Index) -> list[Release]:
    """Everything that can be asked for, frameworks first; a withdrawn release counts, as it may be named."""
    components = index.header["components"]
    asked = [name for name, part in components.items() if not part["given"]]
    asked.sort(key=lambda name: not components[name]["framework"])
    return [(name, version) for name in asked for version in index.section("c:" + name)["versions"]]


def parts(work: Sequence[Release]) -> list[list[Release]]:
    """The work in pieces for a process each."""
    return [list(work[place : place + PART]) for place in range(0, len(work), PART)]


def request(index: Index, release: Release, way: Way, accelerator: str) -> Request:
    """The request `component==version --target TARGET --from WAY` with what the target stands for."""
    component, version = release
    target = index.header["targets"][way.target]
    asks = [
        Ask(component=name, selector=value, text="", option="target", target=way.target)
        for name, value in target["context"].items()
    ]
    asks.append(Ask(component="accelerator", selector=accelerator, text="", option="accelerator"))
    asks.append(Ask(component="from", selector=way.from_, text="", option="from"))
    if component not in SEVERAL:
        alone = index.scale(component).alone(version)
        asks.append(Ask(component=component, selector=alone, text=f"{component}=={version}"))
    return Request(
        asks=tuple(asks),
        targets=(way.target,),
        archs=(version,) if component == "arch" else (),
        devices=(version,) if component == "device" else (),
        policies=tuple(
            (way.target, name, (value,))
            for name, value in target["policies"].items()
            if name != component
        ),
    )


def default_accelerator(index: Index, component: str, target: str) -> str:
    """What computes beside the CPU where nothing is said: the target's own, if the component can use it."""
    own: str = index.header["targets"][target]["accelerator"]
    can: Sequence[str] = index.header["components"][component]["accelerators"]
    return own if own in can or own == _ALWAYS else "none"


_ALWAYS = "rocm"
"""The accelerator that the target made for it has whatever is asked for."""


def judge_release(index: Index, release: Release, luck: dict[str, int]) -> Verdict:
    """Ask for one release in every way that counts."""
    refused: list[Refused] = []
    answered = 0
    framework = index.header["components"][release[0]]["framework"]
    for way in ways(index) if framework else ():
        accelerator = default_accelerator(index, release[0], way.target)
        reason = ask(index, request(index, release, way, accelerator))
        if reason is None:
            answered += 1
        else:
            refused.append(Refused(way=way, grounds=reason[0], size=reason[1]))
    lost = None if answered else search(index, release, luck)
    return Verdict(
        component=release[0],
        version=release[1],
        answered=answered,
        refused=tuple(refused),
        lost=lost,
    )


def ways(index: Index) -> list[Way]:
    """Every target, built and installed."""
    return [
        Way(target=target, from_=from_)
        for target in index.header["targets"]
        for from_ in reversed(index.section("c:from")["versions"])
    ]


def search(index: Index, release: Release, luck: dict[str, int]) -> tuple[Ground, ...] | None:
    """None when some way with some accelerator has an answer, else the reason on the first.

    `luck` remembers by component where the release before had one; it saves time and changes nothing.
    """
    can: Sequence[str] = index.header["components"][release[0]]["accelerators"] or ("none",)
    tried = [
        (way, accelerator)
        for way in ways(index)
        for accelerator in reversed(index.section("c:accelerator")["versions"])
    ]
    tried.sort(key=lambda attempt: attempt[1] not in can)
    asked = [request(index, release, way, accelerator) for way, accelerator in tried]
    last = luck.get(release[0], 0)
    for place in (last, *range(len(asked))):
        if possible(_Unranked(index, asked[place]).problem()):
            luck[release[0]] = place
            return None
    reason = ask(index, asked[0])
    return reason[0] if reason else None


def ask(index: Index, asked: Request) -> tuple[tuple[Ground, ...], int] | None:
    """None for a request that has an answer, else the grounds of a shortest core and its number of lines."""
    assembly = _Unranked(index, asked)
    problem = assembly.problem()
    if possible(problem):
        return None
    core = conflict.explain(problem, (), assembly.asked_nogoods)
    told = grounds(assembly, core)
    return told, len(told) + sum(assembly.reason(number).ask is not None for number in core)


def possible(problem: Problem) -> bool:
    """Whether there is an answer, whichever."""
    return not isinstance(solve(problem, order="newest"), Conflict)


class _Unranked(Assembly):
    """Without the rows that rank: whether there is an answer is the question, not which is best."""

    def vouch(self) -> None:
        """Leave the rows where they are."""


class Worker:
    """Judges parts of the work; the index is opened once in each process."""

    def __init__(self, overlays: Sequence[str], env: Mapping[str, str]) -> None:
        self.overlays = list(overlays)
        self.env = dict(env)

    def __call__(self, part: Sequence[Release]) -> list[Verdict]:
        key = (tuple(self.overlays), tuple(sorted(self.env.items())))
        if key not in _OPENED:
            _OPENED[key] = open_index(self.overlays, self.env)
        luck: dict[str, int] = {}
        return [judge_release(_OPENED[key], release, luck) for release in part]


_OPENED: dict[object, Index] = {}


def first_framework(index: Index) -> str:
    """The framework that stands first on the front page, or nothing."""
    components = index.header["components"]
    return next((name for name, part in components.items() if part["framework"]), "")


def counts(index: Index, verdicts: Sequence[Verdict]) -> dict[str, int]:
    """What was looked at, in numbers."""
    components = index.header["components"]
    frameworks = [verdict for verdict in verdicts if components[verdict.component]["framework"]]
    return {
        "releases": len(verdicts),
        "reached": sum(verdict.lost is None for verdict in verdicts),
        "frameworks": len(frameworks),
        "ways": len(ways(index)),
        "answers": sum(verdict.answered for verdict in frameworks),
        "refusals": sum(len(verdict.refused) for verdict in frameworks),
    }
