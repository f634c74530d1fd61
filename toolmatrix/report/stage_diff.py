"""Differences between two dry runs: as a document (`toolmatrix.stage-differences/1`) and as lines for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from toolmatrix.compilation.compare import (
    ARCHS,
    Handover,
    LogComparison,
    Move,
    PlanChange,
    PlanDifference,
    StageKey,
    WordDifference,
)
from toolmatrix.compilation.model import Log, Plan
from toolmatrix.documents import Annotated, Any, Count, TypedDict
from toolmatrix.report import terminal
from toolmatrix.report.terminal import Terminal
from toolmatrix.resources import load_yaml, of_package
from toolmatrix.value import Value

SCHEMA = "toolmatrix.stage-differences/1"
_NAMES = {"cudafe": "front end", "cicc": "device compile", "fatbinary": "fat binary"}
_MOST_FILES = 3


class EndsEntry(TypedDict):
    """Kinds of stages that write and read a file."""

    written_by: list[str]
    read_by: list[str]


class HandoverEntry(TypedDict):
    """A file that stages hand on."""

    file: str
    old: EndsEntry | None
    new: EndsEntry | None


class MeantWord(TypedDict):
    """A word and its meaning."""

    word: str
    meaning: str | None


class WordsEntry(TypedDict):
    """Words that stages of one plan alone have."""

    step: Annotated[dict[str, Any], StageKey]
    only: Annotated[str, "old", "new"]
    stages: list[Count]
    words: list[MeantWord]


class PlanDifferenceEntry(TypedDict):
    """In what two plans differ."""

    old: Count
    new: Count
    gone: list[Count]
    come: list[Count]
    changes: list[Annotated[dict[str, Any], PlanChange]]
    moves: list[Annotated[dict[str, Any], Move]]
    handovers: list[HandoverEntry]
    words: list[WordsEntry]


class StageDifferencesDocument(TypedDict):
    """What `toolmatrix stages diff --json` prints: two logs, plan by plan. Ids of plans and stages count from 0,
    places from 1.
    """

    schema: Annotated[str, SCHEMA]
    old: str
    new: str
    gone: list[Count]
    come: list[Count]
    differences: list[PlanDifferenceEntry]


class KnownWord(Value):
    """The meaning of a word of a dry run, and the toolkits with which it came or went."""

    flag: str
    meaning: str
    driver: str = ""
    first: str = ""
    before: str = ""
    last: str = ""
    after: str = ""

    def sentence(self) -> str:
        """The meaning with what is known of its history and of the option that changes it."""
        history = [
            f"{label} {release} (not in {other})" if other else f"{label} {release}"
            for label, release, other in (
                ("since", self.first, self.before),
                ("until", self.last, self.after),
            )
            if release
        ]
        option = [f"option {self.driver}"] if self.driver else []
        return "; ".join([self.meaning, *history, *option])


def load_flags() -> dict[str, KnownWord]:
    """The known words by name."""
    return {
        entry["flag"]: KnownWord(**entry)
        for entry in load_yaml(of_package("compilation", "flags.yaml"))
    }


def document(
    old: tuple[str, Log], new: tuple[str, Log], comparison: LogComparison
) -> StageDifferencesDocument:
    """The comparison of two logs, each given with its path."""
    flags = load_flags()
    return {
        "schema": SCHEMA,
        "old": old[0],
        "new": new[0],
        "differences": [_plans(difference, flags) for difference in comparison.differences],
        "gone": list(comparison.gone),
        "come": list(comparison.come),
    }


def _plans(difference: PlanDifference, flags: Mapping[str, KnownWord]) -> PlanDifferenceEntry:
    return {
        "old": difference.old,
        "new": difference.new,
        "changes": [change.to_json() for change in difference.changes],
        "gone": list(difference.gone),
        "come": list(difference.come),
        "moves": [move.to_json() for move in difference.moves],
        "handovers": [
            {"file": handover.file, "old": _ends(handover.old), "new": _ends(handover.new)}
            for handover in difference.handovers
        ],
        "words": [
            {
                "step": entry.step.to_json(),
                "only": entry.only,
                "stages": list(entry.stages),
                "words": [{"word": word, "meaning": _meaning(word, flags)} for word in entry.words],
            }
            for entry in difference.words
        ],
    }


def _ends(ends: tuple[tuple[str, ...], tuple[str, ...]] | None) -> EndsEntry | None:
    return None if ends is None else {"written_by": list(ends[0]), "read_by": list(ends[1])}


def _meaning(word: str, flags: Mapping[str, KnownWord]) -> str | None:
    # The value after the name of a flag is that of one run.
    name = word.partition("=")[0].partition(" ")[0]
    return flags[name].sentence() if name in flags else None


def text(
    old: tuple[str, Log],
    new: tuple[str, Log],
    comparison: LogComparison,
    screen: Terminal,
    by_default: Callable[[Plan], bool],
) -> str:
    """Lines for people: for each pair of plans what changed as a whole, the order, files handed on, words.

    `by_default` says whether the only arch of a plan is what its toolkit takes when none is named.
    """
    flags = load_flags()
    parts: list[list[str]] = []
    for difference in comparison.differences:
        before, after = old[1].plans[difference.old], new[1].plans[difference.new]
        if difference:
            parts += [
                [screen.style(f"{_heading(before)} -> {_heading(after)}", "bold")],
                _changes(difference, (before, after), screen, by_default),
                _stages(difference, before, after, screen),
                _moves(difference),
                _handovers(difference.handovers),
                _words(difference.words, flags, screen),
            ]
    for sign, (path, log), plans in (("-", old, comparison.gone), ("+", new, comparison.come)):
        for at in plans:
            parts.append([f"{screen.style(sign, sign)} {_heading(log.plans[at])}, only in {path}"])
    if not comparison:
        parts.append(["identical except for names, paths and tool versions"])
    return terminal.blocks(parts)


def _heading(plan: Plan) -> str:
    name = f"{plan.tool} {plan.version}".rstrip()
    return f"{name}, {terminal.plural(len(plan.stages), 'stage')}"


def _changes(
    difference: PlanDifference,
    plans: tuple[Plan, Plan],
    screen: Terminal,
    by_default: Callable[[Plan], bool],
) -> list[str]:
    """The changes of a plan as a whole; default archs of a toolkit are marked."""
    rows = []
    for change in difference.changes:
        marks = [
            " (the default)" if change.name == ARCHS and by_default(plan) else "" for plan in plans
        ]
        sides = f"{change.old or 'none'}{marks[0]} -> {change.new or 'none'}{marks[1]}"
        rows.append((f"{screen.style('~', '~')} {change.name}", sides))
    # A name that takes half of the screen has its text below it, so that the others stay beside theirs.
    width = max((len(terminal.visible(name)) for name, _ in rows), default=0)
    width = min(width, screen.width // 2)
    lines: list[str] = []
    for name, text in rows:
        first = terminal.pad(name, width) + "  "
        if len(terminal.visible(name)) > width:
            lines.append(name)
            first = " " * (width + 2)
        lines += screen.wrap(text, first, " " * (width + 2))
    return lines


def _stages(difference: PlanDifference, before: Plan, after: Plan, screen: Terminal) -> list[str]:
    rows = [
        (f"  {screen.style(sign, sign)} stage {at + 1}", stage.kind, stage.arch or "", stage.tool)
        for sign, plan, ids in (("-", before, difference.gone), ("+", after, difference.come))
        for at in ids
        for stage in (plan.stages[at],)
    ]
    return ["stages in only one plan", *terminal.columns(rows)] if rows else []


def _moves(difference: PlanDifference) -> list[str]:
    moves = difference.moves
    rows = [(f"  {_named(move.step)}", f"step {move.old} -> {move.new}") for move in moves]
    return ["order", *terminal.columns(rows)] if rows else []


def _handovers(handovers: Sequence[Handover]) -> list[str]:
    # A source for ten archs hands on dozens of files that go alike; they share a line.
    routes: dict[tuple[str, str], list[str]] = {}
    for handover in handovers:
        routes.setdefault((_route(handover.old), _route(handover.new)), []).append(handover.file)
    rows = []
    for (old, new), files in routes.items():
        route = f"{old} -> {new}" if old and new else old or new
        when = "" if old and new else "no longer" if old else "new"
        rows.append((f"  {terminal.some(files, _MOST_FILES)}", route, when))
    return ["files passed between stages", *terminal.columns(rows)] if rows else []


def _words(
    differences: Sequence[WordDifference], flags: Mapping[str, KnownWord], screen: Terminal
) -> list[str]:
    """Each word that one side has alone, once, with the steps that have it and what is known of it."""
    steps_by_word: dict[tuple[str, str], dict[str, None]] = {}
    for difference in differences:
        for word in difference.words:
            steps_by_word.setdefault((difference.only, word), {})[_describe_step(difference)] = None
    if not steps_by_word:
        return []
    width = min(max(len(word) for _, word in steps_by_word), screen.width // 2)
    indent = " " * (width + 6)
    lines = ["words"]
    # Removed words come before added ones.
    for (only, word), steps in sorted(steps_by_word.items(), key=lambda item: item[0][0] == "new"):
        sign = "+" if only == "new" else "-"
        head = f"  {screen.style(sign, sign)} {word.ljust(width)}  "
        if len(word) > width:
            lines.append(head.rstrip())
            head = indent
        lines += screen.wrap(", ".join(steps), head, indent)
        meaning = _meaning(word, flags)
        if meaning:
            lines += screen.wrap(meaning, " " * 6, " " * 6)
    return lines


def _describe_step(words: WordDifference) -> str:
    # The number of stages with these words is shown only where some lack them.
    count = len(words.stages)
    return _named(words.step) + (f" ({count} of {words.matched})" if count < words.matched else "")


def _named(step: StageKey) -> str:
    kind = _NAMES.get(step.kind, step.kind.replace("-", " "))
    return kind if kind.startswith(step.side) else f"{step.side} {kind}"


def _route(ends: tuple[tuple[str, ...], tuple[str, ...]] | None) -> str:
    return "" if ends is None else f"{'+'.join(ends[0])} to {'+'.join(ends[1])}"
