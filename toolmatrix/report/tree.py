"""An answer as a tree for people: every line with its evidence, why, and the notes it rests on."""

from __future__ import annotations

from toolmatrix.facts import evidence as words
from toolmatrix.report import claims, terminal
from toolmatrix.solve import flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.solve.resolve import Choice, Resolution

    Line = tuple[str, str, str, str]
    """What it is (drawn in the tree), evidence, why, notes."""


_WIDE = 36
"""Longer names (image references) run over their column instead of pushing all others to the right."""


def text(
    index: Index,
    resolution: Resolution,
    screen: Terminal,
    *,
    depth: int | None = None,
) -> str:
    """The answer as trees, notes and one closing line."""
    notes = claims.Notes(index)
    parts = [
        "\n".join(_tree(index, resolution, target, notes, screen, depth))
        for target in resolution.targets
    ]
    choices = [choice for held in resolution.targets.values() for choice in held]
    facts = {cite.record for choice in choices for cite in choice.cites}
    closing = (
        f"Resolved {terminal.plural(len(choices), 'component')} from {terminal.plural(len(facts), 'fact')}, "
        f"weakest evidence: {resolution.evidence}"
    )
    disputed = sum(1 for choice in choices if choice.disputed)
    if disputed:
        closing += f", {disputed} disputed"
    return "\n\n".join([*parts, "\n".join([*notes.lines(screen.width), closing])]) + "\n"


def _headline(resolution: Resolution, target: str) -> str:
    """The target with the defaults that were filled in."""
    context = {ask.component: ask for ask in resolution.request.asks if ask.target in ("", target)}
    held = [f"target {target}", f"from {context['from'].selector}"]
    if "accelerator" in context:
        held.append(f"accelerator {context['accelerator'].selector}")
    return ", ".join(held)


def _tree(
    index: Index,
    resolution: Resolution,
    target: str,
    notes: claims.Notes,
    screen: Terminal,
    depth: int | None,
) -> list[str]:
    choices = [
        choice
        for choice in resolution.targets[target]
        if not index.header["components"][choice.component]["flag"]
    ]
    if not choices:
        return [f"nothing to choose  {_headline(resolution, target)}"]
    rows: list[tuple[str, str, str, str]] = []
    wanted = {*resolution.request.wanted}
    roots = [choice for choice in choices if choice.component in wanted] or choices[:1]
    children = _children(index, choices, roots)
    for root in roots[:1]:
        rows.append(
            (
                f"{root.component} {root.version}",
                root.evidence,
                _headline(resolution, target),
                _marks(index, root, notes),
            )
        )
        rows += _disputes(index, root, "", notes, screen)
        rows += _branches(index, children, root, "", notes, screen, depth, resolution, target)
    wide = max(len(left) for left, *_ in rows if len(left) <= _WIDE)
    middle = max(len(word) for _, word, _, _ in rows)
    return [
        f"{left.ljust(wide)}  {terminal.pad(_coloured(word, screen), middle)}  {why}  {mark}".rstrip()
        for left, word, why, mark in rows
    ]


def _coloured(word: str, screen: Terminal) -> str:
    return screen.style(word, _colour(word)) if word else ""


def _colour(word: str) -> str:
    if word in words.WORDS:
        return (
            "yes"
            if words.rank(word) > words.rank("derived")
            else "unknown"
            if word == "unknown"
            else "partial"
        )
    return "partial"


def _children(
    index: Index, choices: Sequence[Choice], roots: Sequence[Choice]
) -> dict[int, list[Choice]]:
    """Each choice below the component it belongs under, all else below the first component asked for."""
    components = index.header["components"]
    first = roots[0]
    asked = {id(choice) for choice in roots}
    by_name = {choice.component: choice for choice in reversed(choices)}
    found: dict[int, list[Choice]] = {}
    for choice in choices:
        if choice is first:
            continue
        over = (
            by_name.get(components[choice.component]["under"]) or _toolkit(choice, by_name) or first
        )
        if over is choice or (id(choice) in asked and over is not first):
            over = first
        found.setdefault(id(over), []).append(choice)
    return found


def _toolkit(choice: Choice, by_name: Mapping[str, Choice]) -> Choice | None:
    """A parent that is no framework keeps what it brought in: the distro stands below its image."""
    parent = by_name.get(choice.parent)
    return parent if parent is not None and choice.component in ("distro", "driver") else None


def _branches(
    index: Index,
    children: Mapping[int, Sequence[Choice]],
    over: Choice,
    indent: str,
    notes: claims.Notes,
    screen: Terminal,
    depth: int | None,
    resolution: Resolution,
    target: str,
) -> list[tuple[str, str, str, str]]:
    rows: list[tuple[str, str, str, str]] = []
    mine = list(children.get(id(over), ()))
    if depth is not None and depth <= 0:
        return rows
    made = flags.of(resolution, target) if not indent else None
    flagged = made and (made.cflags or made.hipcc or made.missing or _gencode(made))
    charset = screen.charset
    for place, choice in enumerate(mine):
        last = place == len(mine) - 1 and not flagged
        name = _label(index, choice)
        rows.append(
            (
                indent + (charset.corner if last else charset.tee) + name,
                choice.evidence,
                claims.reason(index, choice),
                _marks(index, choice, notes),
            )
        )
        inner = indent + (charset.blank if last else charset.bar)
        rows += _disputes(index, choice, inner, notes, screen)
        deeper = None if depth is None else depth - 1
        rows += _branches(index, children, choice, inner, notes, screen, deeper, resolution, target)
    extra = _flag_rows(index, resolution, target, made, notes) if made else []
    for place, (name, evidence, why, mark) in enumerate(extra):
        rows.append(
            (
                indent + (charset.corner if place == len(extra) - 1 else charset.tee) + name,
                evidence,
                why,
                mark,
            )
        )
    return rows


def _label(index: Index, choice: Choice) -> str:
    part = index.header["components"][choice.component]
    if part["floor"]:
        return f"{choice.component} >={choice.version}"
    if choice.component in ("arch", "device"):
        return choice.version if choice.component == "arch" else f"device {choice.version}"
    return f"{choice.component} {choice.version}"


def _flag_rows(
    index: Index, resolution: Resolution, target: str, made: flags.Flags, notes: claims.Notes
) -> list[tuple[str, str, str, str]]:
    rows = []
    solved = {
        choice.version: choice
        for choice in resolution.targets[target]
        if index.header["components"][choice.component]["flag"]
    }
    for flag in made.cflags:
        if flag in solved:
            rows.append(
                (
                    flag,
                    solved[flag].evidence,
                    claims.reason(index, solved[flag]),
                    _marks(index, solved[flag], notes),
                )
            )
        else:
            rows.append(
                (
                    flag,
                    "artifact",
                    f"archspec {made.archspec} spells --cpu {resolution.request.cpu}",
                    "",
                )
            )
    rows += [(flag, "", "nvcc", "") for flag in _gencode(made)]
    rows += [(flag, "", "hipcc", "") for flag in made.hipcc]
    rows += [(f"no {wish}", "", "the chosen compiler cannot say it", "") for wish in made.missing]
    return rows


def _gencode(made: flags.Flags) -> list[str]:
    """What nvcc is told of codegen archs."""
    return [flag for flag in made.nvcc if flag.startswith("-gencode")]


def _disputes(
    index: Index, choice: Choice, indent: str, notes: claims.Notes, screen: Terminal
) -> list[tuple[str, str, str, str]]:
    rows = []
    seen = set()
    for rival, evidence, deciding in choice.disputed:
        record = index.record(rival)
        told = claims.disagreement(record)
        if told in seen:
            continue
        seen.add(told)
        winner = index.record(deciding)
        why = f"{told}, {winner['evidence']} wins  TM301"
        rows.append(
            (
                f"{indent}{screen.charset.corner}disputed",
                evidence,
                why,
                notes.mark([record["source"]]),
            )
        )
    return rows


def _marks(index: Index, choice: Choice, notes: claims.Notes) -> str:
    carried = [cite for cite in choice.cites if cite.evidence == choice.evidence] or list(
        choice.cites
    )
    return notes.mark(index.record(cite.record)["source"] for cite in carried)
