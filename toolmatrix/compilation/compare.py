"""Comparison of two plans: stages that only one has, their order, the files they pass on, and their words.

Words are compared without anything that changes from run to run: temp names, pids, paths and versions of tools, archs.
Remaining differences are those of the drivers.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from toolmatrix.compilation import model
from toolmatrix.compilation.model import Log, Plan, Stage
from toolmatrix.documents import Annotated, Ordinal
from toolmatrix.value import Document, Value

if TYPE_CHECKING:
    Key = tuple[object, ...]
    Pair = tuple[int, int]
    # Kinds that write a file, and kinds that read it.
    Ends = tuple[tuple[str, ...], tuple[str, ...]]


# The word for the directory in which the toolkit lies.
TOOLKIT = "<toolkit>"

_TEMP = re.compile(r"(?:_tmp_)?tmpxft_[0-9a-f]+_[0-9a-f]+[-_]\d+_")
_TEMP_NAME = re.compile(r"""[^\s=,:"'<>]*tmpxft_[^\s=,"'<>]*""")
_RANDOM = re.compile(r"(?:-[0-9a-f]{6,})+(?=[./]|$)")
_ARCH_PART = re.compile(r"[.-](?:compute|sm|lto|gfx)_?\d\w*(?:[:@][\w:+-]+)?")
_ARCH = re.compile(r"\b(compute|sm|lto)_\d+[a-z]?\b|\b(sm=)\d+[a-z]?|\bgfx\d\w*(?:[:@][\w:+-]+)?")
_ARCH_DEFINE = re.compile(r"(-D_*CUDA_ARCH\w*=)[\d,]+(?=$)|(-D_*CUDA_ARCH_FEAT_)\w+")
_VERSION_DEFINE = re.compile(r"(-D_*CUD(?:ACC|A_API)_VER\w*=)\d+")
_COMPILER_VERSION = re.compile(r"(--?(?:gnu|clang|microsoft)_version=)(\d+)")
_VERSION = re.compile(r"(?<![A-Za-z_\d])\d+(?:\.\d+)*(?![A-Za-z_\d])")
_UNIT_ID = re.compile(r"(-cuid=)[0-9a-f]+")
_PATH = re.compile(r"""[^\s=,:"'<>]*[/\\][^\s=,"'<>]*""")
_ROOTS = ("TOP", "CUDA_ROOT", "_HERE_", "_THERE_")


class _WordNormalizer:
    """The words of one plan without what changes from run to run."""

    def __init__(self, plan: Plan) -> None:
        self.roots = tuple(_roots(plan.env))
        written = {path for stage in plan.stages for path in stage.outputs}
        read = {path for stage in plan.stages for path in stage.inputs}
        passed_on = written & read
        self.names = {path: role(path) for path in passed_on}
        self.names |= {posixpath.basename(path): role(path) for path in passed_on}
        # `k.c` begins `k.cpp`, and the first alternative that fits is taken.
        longest_first = sorted(self.names, key=len, reverse=True)
        self.known = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def words(self, stage: Stage) -> tuple[str, ...]:
        """The words of a stage after its program, normalized."""
        return tuple(self.word(word) for word in stage.argv[1:])

    def word(self, word: str) -> str:
        """One word, normalized."""
        word = _VERSION_DEFINE.sub(r"\1*", _COMPILER_VERSION.sub(r"\1*", word))
        word = _UNIT_ID.sub(r"\1*", word)
        word = _ARCH_DEFINE.sub(lambda match: (match[1] or match[2]) + "*", word)
        word = self.known.sub(lambda match: self.names[match[0]], word)
        word = _TEMP_NAME.sub(lambda match: role(match[0]), word)
        word = _PATH.sub(lambda match: self.path(match[0]), word)
        return _ARCH.sub(
            lambda match: (match[1] + "_*") if match[1] else (match[2] or "gfx") + "*", word
        )

    def path(self, path: str) -> str:
        """A path that the plan does not pass on, normalized."""
        # Names of temp files change from run to run.
        if path.startswith("/tmp/"):  # noqa: S108 - a name in a log
            return role(path)
        plain = path.replace("\\", "/")
        prefix = plain[:2] if plain[:1] == "-" else ""
        plain = posixpath.normpath(plain[len(prefix) :])
        for root in self.roots:
            if plain == root or plain.startswith(root + "/"):
                return prefix + TOOLKIT + plain[len(root) :]
        return prefix + _VERSION.sub("*", plain)


def role(path: str) -> str:
    """The name of a file without its directory, the run it belongs to, and the arch.

    `tmpxft_00003a36_00000000-6_saxpy.compute_90.cudafe1.stub.c` is `saxpy.cudafe1.stub.c`.
    """
    return _ARCH_PART.sub("", own_name(path))


def own_name(path: str) -> str:
    """The name of a file without its directory and without what changes from run to run."""
    return _RANDOM.sub("", _TEMP.sub("", path.replace("\\", "/").rpartition("/")[2]))


def _roots(env: Mapping[str, str]) -> Iterator[str]:
    # Of nested directories the innermost is taken for the toolkit.
    roots = set()
    for name in _ROOTS:
        path = env.get(name, "").strip().replace("\\", "/")
        if path:
            plain = posixpath.normpath(path)
            # nvcc prints the directory that it lies in itself, which is not the root of the toolkit.
            roots.add(posixpath.dirname(plain) if posixpath.basename(plain) == "bin" else plain)
    yield from sorted(roots - {"", "/", "."}, key=len, reverse=True)


def host_compiler(plan: Plan) -> str:
    """The host compiler that the front end was set to, such as `gnu 120200`; empty if the plan does not say."""
    for stage in plan.stages:
        for word in stage.argv:
            match = _COMPILER_VERSION.fullmatch(word)
            if match:
                return match[1].strip("-").partition("_")[0] + " " + match[2]
    return ""


# The name of the change of codegen archs.
ARCHS = "archs"
# Variables of nvcc that hold words for its programs; the others are paths.
_FLAG_VARIABLES = ("_FLAGS", "INCLUDES", "LIBRARIES")


class StageKey(Document):
    """Step of a plan, apart from its arch: its kind, for which side, and from which sources."""

    kind: str
    side: Annotated[str, "device", "host"]
    sources: tuple[str, ...]


class WordDifference(Value):
    """Words that stages of one step have on one side alone.

    `stages` are ids in the plan that has them, out of the `matched` stages of the kind and side.
    """

    step: StageKey
    only: str
    words: tuple[str, ...]
    stages: tuple[int, ...]
    matched: int


class Move(Document):
    """A step at another position; positions count from 1 among the steps that both plans have."""

    step: StageKey
    old: Ordinal
    new: Ordinal


class Handover(Value):
    """Kinds of stages that write a file and that read it; None where a plan has no such file."""

    file: str
    old: Ends | None
    new: Ends | None


class PlanChange(Document):
    """One property of a plan as a whole, such as its version, with what it was and what it is."""

    name: str
    old: str
    new: str


class PlanDifference(Value):
    """Everything in which two plans differ; `gone` and `come` are stage ids of the old and the new plan."""

    old: int
    new: int
    changes: tuple[PlanChange, ...]
    gone: tuple[int, ...]
    come: tuple[int, ...]
    moves: tuple[Move, ...]
    handovers: tuple[Handover, ...]
    words: tuple[WordDifference, ...]

    def __bool__(self) -> bool:
        return any((self.changes, self.gone, self.come, self.moves, self.handovers, self.words))


class LogComparison(Value):
    """The differences of two logs, plan by plan, and the plans that only one of them has."""

    differences: tuple[PlanDifference, ...]
    gone: tuple[int, ...]
    come: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.gone or self.come or any(self.differences))


def compare(old: Log, new: Log) -> LogComparison:
    """Compare plan by plan: first those of the same sources, then in the order of the logs."""
    left, right = ([frozenset().union(*origins(plan)) for plan in log.plans] for log in (old, new))
    pairs, gone, come = _match((left, right), ([()] * len(left), [()] * len(right)))
    return LogComparison(
        differences=tuple(_difference(old, new, pair) for pair in pairs), gone=gone, come=come
    )


def origins(plan: Plan) -> list[tuple[str, ...]]:
    """For each stage the names of the files from which, in the end, it is made."""
    waits = model.predecessors(plan.edges)
    written = {path for stage in plan.stages for path in stage.outputs}
    origins_of: list[tuple[str, ...]] = []
    for stage in plan.stages:
        names = {role(path) for path in stage.inputs if path not in written}
        for before in waits[stage.id]:
            names.update(origins_of[before])
        origins_of.append(tuple(sorted(names)))
    return origins_of


def steps(plan: Plan) -> list[StageKey]:
    """Each stage of a plan, apart from its arch."""
    return [
        StageKey(kind=stage.kind, side="device" if stage.arch else "host", sources=sources)
        for stage, sources in zip(plan.stages, origins(plan), strict=True)
    ]


def _difference(old: Log, new: Log, pair: Pair) -> PlanDifference:
    before, after = old.plans[pair[0]], new.plans[pair[1]]
    left, right = steps(before), steps(after)
    # A toolkit may have other archs, and a release may make a thing from other files: then the kind has to do.
    pairs, gone, come = _match(
        (_exact(before, left), _exact(after, right)),
        (left, right),
        ([(step.kind, step.side) for step in left], [(step.kind, step.side) for step in right]),
    )
    return PlanDifference(
        old=pair[0],
        new=pair[1],
        changes=tuple(_changes(before, after)),
        gone=gone,
        come=come,
        moves=tuple(_moves(pairs, left)),
        handovers=tuple(_handovers(before, after)),
        words=tuple(_words(before, after, pairs, left)),
    )


def _exact(plan: Plan, done: Sequence[StageKey]) -> list[Key]:
    return [(step, stage.arch) for step, stage in zip(done, plan.stages, strict=True)]


def _match(
    *keys: tuple[Sequence[object], Sequence[object]],
) -> tuple[list[Pair], tuple[int, ...], tuple[int, ...]]:
    """Pair indexes by the first key that they share, the n-th of a key with the n-th; return the unpaired ones too.

    A key is a pair of sequences: its values by index on the left and on the right.
    """
    left, right = (list(range(len(side))) for side in keys[0])
    pairs: list[Pair] = []
    for old, new in keys:
        waiting: dict[object, list[int]] = {}
        for index in right:
            waiting.setdefault(new[index], []).append(index)
        rest = []
        for index in left:
            same = waiting.get(old[index])
            if same:
                pairs.append((index, same.pop(0)))
            else:
                rest.append(index)
        left, right = rest, sorted(index for indexes in waiting.values() for index in indexes)
    return sorted(pairs), tuple(left), tuple(right)


def _changes(before: Plan, after: Plan) -> Iterator[PlanChange]:
    for name, read in (
        ("driver", lambda plan: plan.tool),
        ("version", lambda plan: plan.version),
        ("host compiler", host_compiler),
        ("programs", lambda plan: _joined(sorted(stage.tool for stage in plan.stages))),
        (ARCHS, archs),
    ):
        old, new = read(before), read(after)
        if old != new:
            yield PlanChange(name=name, old=old, new=new)
    normalizers = _WordNormalizer(before), _WordNormalizer(after)
    names = sorted({*before.env, *after.env})
    for name in (name for name in names if name.endswith(_FLAG_VARIABLES)):
        values = [
            " ".join(map(normalizer.word, plan.env.get(name, "").replace('"', "").split()))
            for normalizer, plan in zip(normalizers, (before, after), strict=True)
        ]
        if values[0] != values[1]:
            yield PlanChange(name=name, old=values[0], new=values[1])


def archs(plan: Plan) -> str:
    """The codegen archs of a plan, each once, in the order of the plan."""
    return _joined(stage.arch for stage in plan.stages if stage.arch)


def _joined(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _moves(pairs: Sequence[Pair], left: Sequence[StageKey]) -> Iterator[Move]:
    # The fewest moves that give the new order are those of the stages outside of a longest run that keeps it.
    stay = set(_longest_rising([new for _, new in pairs]))
    target = {new: position for position, new in enumerate(sorted(new for _, new in pairs), 1)}
    yielded = set()
    for position, (old, new) in enumerate(pairs, 1):
        # A step outside of the run may still have its old position, if others moved past it.
        elsewhere = position - 1 not in stay and position != target[new]
        if elsewhere and left[old] not in yielded:
            yielded.add(left[old])
            yield Move(step=left[old], old=position, new=target[new])


def _longest_rising(values: Sequence[int]) -> list[int]:
    """The indexes of a longest rising subsequence."""
    # Patience sorting: for each length the pile keeps the index of the smallest last value.
    tops: list[int] = []
    pile_tops: list[int] = []
    back: list[int] = []
    for index, value in enumerate(values):
        pile = bisect_left(tops, value)
        tops[pile : pile + 1] = [value]
        pile_tops[pile : pile + 1] = [index]
        back.append(pile_tops[pile - 1] if pile else -1)
    rising: list[int] = []
    at = pile_tops[-1] if pile_tops else -1
    while at >= 0:
        rising.append(at)
        at = back[at]
    return rising[::-1]


def _handovers(before: Plan, after: Plan) -> Iterator[Handover]:
    old, new = _passed_on(before), _passed_on(after)
    for file in sorted({*old, *new}):
        if old.get(file) != new.get(file):
            yield Handover(file=file, old=old.get(file), new=new.get(file))


def _passed_on(plan: Plan) -> Mapping[str, Ends]:
    """For each file that one stage hands to another, by its role, the kinds that write and read it."""
    writers: dict[str, set[str]] = {}
    for stage in plan.stages:
        for path in stage.outputs:
            writers.setdefault(path, set()).add(stage.kind)
    merged: dict[str, tuple[set[str], set[str]]] = {}
    for stage in plan.stages:
        for path in stage.inputs:
            if path in writers:
                known = merged.setdefault(role(path), (set(), set()))
                known[0].update(writers[path])
                known[1].add(stage.kind)
    return {
        name: (tuple(sorted(writing)), tuple(sorted(reading)))
        for name, (writing, reading) in merged.items()
    }


def _words(
    before: Plan, after: Plan, pairs: Sequence[Pair], left: Sequence[StageKey]
) -> Iterator[WordDifference]:
    """Words that matched stages do not share; stages of one kind and side with the same words make one difference."""
    normalizers = _WordNormalizer(before), _WordNormalizer(after)
    matched = Counter((left[old].kind, left[old].side) for old, _ in pairs)
    grouped: dict[tuple[str, str, str, tuple[str, ...]], list[tuple[int, StageKey]]] = {}
    for old, new in pairs:
        words = normalizers[0].words(before.stages[old]), normalizers[1].words(after.stages[new])
        lost, won = Counter(words[0]), Counter(words[1])
        for only, own, other, at in (("old", 0, won, old), ("new", 1, lost, new)):
            alone = _unshared(words[own], other)
            if alone:
                key = (only, left[old].kind, left[old].side, alone)
                grouped.setdefault(key, []).append((at, left[old]))
    for (only, kind, side, alone), where in grouped.items():
        yield WordDifference(
            step=where[0][1],
            only=only,
            words=alone,
            stages=tuple(at for at, _ in where),
            matched=matched[kind, side],
        )


def _unshared(words: Sequence[str], other: Counter[str]) -> tuple[str, ...]:
    # A value means nothing without its flag, so a value that differs is reported with it.
    left = Counter(other)
    phrases: list[str] = []
    flag = ""
    flag_is_alone = False
    for word in words:
        alone = left[word] <= 0
        left[word] -= 1
        if alone and flag and not word.startswith("-"):
            if flag_is_alone:
                phrases.pop()
            phrases.append(f"{flag} {word}")
        elif alone:
            phrases.append(word)
        takes_value = word.startswith("-") and "=" not in word
        flag, flag_is_alone = (word, alone) if takes_value else ("", False)
    return tuple(phrases)
