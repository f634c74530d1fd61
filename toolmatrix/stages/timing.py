"""Times of stages: the table that `nvcc -time FILE` writes, for each phase, or what a run of a replay measured."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from toolmatrix.errors import LogError, Position, UsageError
from toolmatrix.opener import opened
from toolmatrix.stages.fold import own_name
from toolmatrix.stages.replay import ReplayStep
from toolmatrix.value import Value

HEADER = ("source file name", "phase name", "phase input files", "phase output file", "arch")
# Bytes of a file.
_LARGEST = 64 << 20
_UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

# What a phase is called whose program alone does not say the kind of its stage.
_KINDS = (
    (re.compile(r".*\(preprocessing"), "preprocess"),
    (re.compile(r"cudafe"), "cudafe"),
    (re.compile(r".*\(compiling"), "host-compile"),
    (re.compile(r".*\(linking"), "link"),
)


class Phase(Value):
    """One row: `output` is the file's name without directory and pid, `seconds` are on the clock."""

    line: int
    name: str
    output: str
    arch: str
    seconds: float

    @property
    def kind(self) -> str:
        """The kind of stage that it is."""
        return next((kind for words, kind in _KINDS if words.match(self.name)), self.name)


def seconds_of(
    path: str, steps: Sequence[ReplayStep], note: Callable[[str], None]
) -> tuple[Mapping[int, float], Mapping[int, int], str]:
    """Seconds and bytes per stage id, and what the seconds are, from the CSV of nvcc or the JSON of a run.

    `note` hears of rows that no step stands for. Raises LogError, UsageError.
    """
    try:
        with opened(path) as file:
            text = file.read(_LARGEST).decode("utf-8", "replace")
    except OSError as error:
        raise LogError(
            "cannot read the times", where=Position(path), found=error.strerror or ""
        ) from None
    # Neither file has a name of its own kind; only a document begins with a brace.
    if not text.lstrip().startswith("{"):
        phases = read(text.splitlines(), path)
        seconds, unknown = match(phases, steps)
        for phase in unknown:
            note(f"no stage of the plan is `{phase.name}` of {path}:{phase.line}")
        return seconds, {}, "wall"
    try:
        (held,) = (plan["run"]["timings"] for plan in json.loads(text)["plans"])
        return (
            {int(one["stage"]): float(one["cpu"]) for one in held},
            {int(one["stage"]): int(one["peak"]) for one in held},
            "cpu",
        )
    except (ValueError, KeyError, TypeError):
        raise LogError(
            "this is not a run of one plan",
            where=Position(path),
            expected="what `toolmatrix stages ... --run --json` printed",
            help="`nvcc -time FILE ...` writes times as well",
        ) from None


def read(lines: Iterable[str], name: str) -> tuple[Phase, ...]:
    """The rows of a table; other lines around it, as where it shares a stream, are passed over.

    `name` is the file as errors call it. Raises UsageError where there is no such table or a row of it is damaged.
    """
    # The csv module refuses NUL, which a cut log may hold, and a quote in a path is no quoting.
    plain = (line.replace("\0", "").replace('"', "") for line in lines)
    phases: list[Phase] = []
    header_at = 0
    for number, row in enumerate(csv.reader(plain, skipinitialspace=True), 1):
        cells = [cell.strip() for cell in row]
        if tuple(cells[: len(HEADER)]) == HEADER:
            header_at = number
        elif header_at and len(cells) >= len(HEADER) + 3:
            phases.append(_phase(cells, Position(name, number)))
    if not header_at:
        raise UsageError(
            "this is not a table of nvcc's times",
            where=Position(name),
            expected=f"a line `{', '.join(HEADER)}, ...`",
            help="`nvcc -time FILE ...` writes one",
        )
    return tuple(phases)


def _phase(cells: Sequence[str], where: Position) -> Phase:
    amount, unit = cells[-2], cells[-1]
    try:
        seconds = float(amount) * _UNITS[unit]
    except (KeyError, ValueError):
        raise UsageError(
            "a row of nvcc's times cannot be read",
            where=where,
            expected=f"a number and one of {', '.join(_UNITS)} at its end",
            found=f"{amount} , {unit}",
        ) from None
    return Phase(
        line=where.line, name=cells[1], output=own_name(cells[3]), arch=cells[4], seconds=seconds
    )


def match(
    phases: Sequence[Phase], steps: Sequence[ReplayStep]
) -> tuple[Mapping[int, float], tuple[Phase, ...]]:
    """Seconds per stage id, and the phases that no step stands for.

    A phase is the first free step that writes its output, else the first free one of its kind and arch.
    """
    seconds: dict[int, float] = {}
    unknown: list[Phase] = []
    for phase in phases:
        free = [step for step in steps if step.id not in seconds]
        by_output = [step for step in free if phase.output and phase.output in _written(step)]
        by_kind = [
            step
            for step in free
            if step.kind == phase.kind and (step.arch or "") in ("", phase.arch)
        ]
        if found := by_output or by_kind:
            seconds[found[0].id] = phase.seconds
        else:
            unknown.append(phase)
    return seconds, tuple(unknown)


def _written(step: ReplayStep) -> set[str]:
    names = {own_name(path) for path in step.outputs}
    # nvcc's table calls the byte array of a fatbinary by the binary that it holds.
    return names | {name.removesuffix(".c") for name in names if name.endswith(".fatbin.c")}
