"""Plans for people and machines: as text with a table of stages, as commands, and in the prose of `stage_words.yaml`.

People count stages from 1; in documents their ids count from 0. The table has one line for each stage, and those that
repeat for every arch are on one line.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import cache

from toolmatrix.compilation.compare import host_compiler, own_name, role
from toolmatrix.compilation.model import Diagnostic, Log, Plan, Stage
from toolmatrix.report import terminal
from toolmatrix.report.terminal import Terminal
from toolmatrix.resources import load_yaml, of_package
from toolmatrix.value import Value
from toolmatrix.wording import quoted

HOST, DEVICE, BOTH = "host", "device", "both"
# So many files are named in a heading.
_NAMED = 3
# So many archs are named in a total.
_ARCHS = 8
# So many diagnostics of one plan are shown; `full` shows all.
_MESSAGES = 10
_STYLES = {"error": "error", "warning": "partial", "note": "unknown"}
_MODES = frozenset(("-E", "-c", "-S", "-cc1", "-cc1as", "/E", "/c"))
# Kinds that read what was compiled before; what they read from outside is no source.
_JOINS = frozenset(("link", "nvlink", "linker-wrapper", "unbundle"))
_HEAD = ("#", "side", "step", "tool", "arch", "reads -> writes")
# What nvcc's names for temp files begin with.
_TEMP = "tmpxft_"
# So many files of one side are named; of more, one less and how many there are.
_MOST_FILES = 4
# A run of stages that comes so often in a row, once for each arch, is put on one set of lines.
_REPEATS = 4
_LONGEST_RUN = 6
# With fewer columns for them, files stand on a line of their own.
_NARROW = 30


def text(
    log: Log,
    where: str,
    screen: Terminal,
    *,
    full: bool = False,
    explain: bool = False,
    source: str = "",
) -> str:
    """Every plan of a log with a heading, its stages and what there is to know of it; then a total.

    `where` is what the log is called, empty for a dry run of our own; `source` describes any other
    origin of the plans. `full` leaves nothing out, `explain` adds a sentence for each stage.
    """
    several = len(log.plans) > 1
    shapes: dict[object, int] = {}
    blocks = []
    for number, plan in enumerate(log.plans, 1):
        origin = f"{where}:{plan.line}" if where else source or "dry run: nothing executed"
        like = number if full else shapes.setdefault(_shape_of_plan(plan), number)
        stages = (
            table(plan, screen, full=full, explain=explain)
            if like == number and plan.stages
            else []
        )
        alike = f", as in {like}" if like != number and plan.stages else ""
        blocks.append(
            [
                *heading(plan, origin, screen, number=number if several else 0),
                *stages,
                *diagnostics(plan.diagnostics, screen, full=full),
                *screen.wrap(_counted([plan]) + alike),
            ]
        )
    closing = [*diagnostics(log.diagnostics, screen, full=full)]
    if several:
        closing += screen.wrap(_counted(log.plans))
    return terminal.blocks([*blocks, closing])


def heading(plan: Plan, where: str, screen: Terminal, *, number: int = 0) -> list[str]:
    """The driver with its version, what it makes of what, and where that was read; `number` counts from 1."""
    parts = [(f"{number}. " if number else "") + title(plan)]
    if compiler := host_compiler(plan):
        parts.append(f"host compiler {_release(compiler)}")
    parts.append(where)
    # The first line is broken as if it were indented as well.
    lines = screen.wrap(terminal.printable(", ".join(parts)), first="  ")
    return [screen.style(lines[0].strip(), "bold"), *lines[1:]]


def title(plan: Plan) -> str:
    """The driver with its version, and what it makes of what: `nvcc 12.4: a.cu, b.cu -> app`."""
    named = f"{plan.tool} {plan.version}".rstrip()
    if plan.tool == "hipcc":
        # The release of HIP counts; the clang below it has versions of its own.
        version = f"(clang {plan.version})" if plan.version else ""
        named = " ".join(filter(None, (plan.tool, plan.hip, version)))
    names = FileNames(plan)
    of, output = (
        terminal.some(list(map(names.of, paths)), _NAMED)
        for paths in (sources(plan), products(plan))
    )
    makes = f"{of} -> {output}" if of and output else of or output
    return ": ".join(filter(None, (named, makes)))


def _release(compiler: str) -> str:
    # A front end gets the version as one number: `gnu 120200` is gnu 12.2.0.
    name, _, number = compiler.partition(" ")
    if name == "microsoft" or not number.isdigit():
        return compiler
    major, rest = divmod(int(number), 10_000)
    # GCC has no release X.0.0: where a plan has this number, the series is all that is known.
    if name == "gnu" and not rest:
        return f"{name} {major}"
    return f"{name} {major}.{rest // 100}.{rest % 100}"


def diagnostics(messages: Sequence[Diagnostic], screen: Terminal, *, full: bool) -> list[str]:
    """Messages of a driver and of its reader, each with its stage and line."""
    lines: list[str] = []
    visible = messages if full else messages[:_MESSAGES]
    for diagnostic in visible:
        position = [f"stage {diagnostic.stage + 1}"] if diagnostic.stage is not None else []
        position += [f"line {diagnostic.line}"] if diagnostic.line else []
        tail = f" ({', '.join(position)})" if position else ""
        severity = screen.style(diagnostic.severity, _STYLES.get(diagnostic.severity, "unknown"))
        lines += screen.wrap(terminal.printable(diagnostic.text) + tail, f"{severity}: ")
    if len(visible) < len(messages):
        lines.append(f"and {len(messages) - len(visible)} more; `-v` shows all")
    return lines


def _shape_of_plan(plan: Plan) -> object:
    # A build compiles many files in one way; a plan like one above is not laid out again.
    return (
        plan.tool,
        plan.version,
        tuple((prose_of(plan, stage).name, stage.tool, stage.arch) for stage in plan.stages),
    )


def _counted(plans: Sequence[Plan]) -> str:
    counted = terminal.plural(sum(len(plan.stages) for plan in plans), "stage")
    if len(plans) > 1:
        counted = f"{terminal.plural(len(plans), 'invocation')}, {counted}"
    named = list(dict.fromkeys(stage.arch for plan in plans for stage in plan.stages if stage.arch))
    if not named:
        return counted
    archs = terminal.listing(named) if len(named) <= _ARCHS else f"{len(named)} archs"
    return terminal.printable(f"{counted} for {archs}")


def raw(log: Log) -> str:
    """The commands as they were printed, each below a comment that says which stage it is."""
    lines = []
    for plan in log.plans:
        for stage in plan.stages:
            prose = prose_of(plan, stage)
            arch = f" for {stage.arch}" if stage.arch else ""
            # A shell takes it for a comment, so that what is printed can be run.
            lines.append(f"# {stage.id + 1} {prose.side} {prose.name}{arch}, line {stage.line}")
            lines.append(stage.text)
    return "".join(terminal.printable(line) + "\n" for line in lines)


class Line(Value):
    """One line of a table: a stage, or those that do the same for one arch after the other."""

    stages: tuple[Stage, ...]
    prose: StageProse


class FileNames:
    """Names of a plan's files: those that stages hand on lose their folder and prefix, all others are as printed.

    `short` writes `*` for the name of the only source.
    """

    def __init__(self, plan: Plan, *, full: bool = False) -> None:
        written = {path for stage in plan.stages for path in stage.outputs}
        self.read = {path for stage in plan.stages for path in stage.inputs}
        # Files that a driver removes in the end are temporary, whether or not a stage read them.
        self.passed = (written & self.read) | set(plan.removed)
        self.folders = {posixpath.dirname(path) for path in self.passed}
        self.full = full
        self.short = False
        stems = {posixpath.splitext(own_name(path))[0] for path in sources(plan)}
        self.stem = stems.pop() if len(stems) == 1 else ""

    def of(self, path: str, *, every_arch: bool = False) -> str:
        """The name of a file, or of those for `every_arch` of which it is one."""
        if self.full or not self._is_temp(path):
            return terminal.printable(path)
        name = (role(path) if every_arch else own_name(path)) or path
        if self.short and self.stem and name.startswith(self.stem + "."):
            name = "*" + name[len(self.stem) :]
        return terminal.printable(name)

    def _is_temp(self, path: str) -> bool:
        if path in self.passed:
            return True
        folder, name = posixpath.split(path)
        return own_name(path) != name and (folder in self.folders or name.startswith(_TEMP))

    def words(self, line: Line) -> list[str]:
        """The files of a line, `reads -> writes`, as words that must not be broken."""
        stage = line.stages[0]
        read = [path for path in stage.outputs if path in self.read]
        left_out = 0 if self.full or not read else len(stage.outputs) - len(read)
        many = len(line.stages) > 1
        wrote = read if left_out else stage.outputs
        reads = _abbreviated([self.of(path, every_arch=many) for path in stage.inputs], self.full)
        writes = _abbreviated([self.of(path, every_arch=many) for path in wrote], self.full)
        unread = [f"(and {left_out} unread)"] if left_out else []
        return [*reads, "->", *(writes or ["nothing"]), *unread]


def _abbreviated(names: list[str], full: bool) -> list[str]:
    names = list(dict.fromkeys(names))
    more = len(names) - _MOST_FILES + 1
    if more > 1 and not full:
        return [*_abbreviated(names[: _MOST_FILES - 1], full), f"and {more} more"]
    return [*(f"{name}," for name in names[:-1]), *names[-1:]]


def sources(plan: Plan) -> list[str]:
    """The files that a plan compiles: read by a stage that does not merely join, and written by none."""
    written = {path for stage in plan.stages for path in stage.outputs}
    compiled = [
        path
        for stage in plan.stages
        if stage.kind not in _JOINS
        for path in stage.inputs
        if path not in written
    ]
    return list(dict.fromkeys(compiled))


def products(plan: Plan) -> list[str]:
    """The files for which a plan is made: what its last sort of stage writes and no stage reads."""
    read = {path for stage in plan.stages for path in stage.inputs}
    makers = [stage for stage in plan.stages if set(stage.outputs) - read]
    last = [path for stage in makers if stage.kind == makers[-1].kind for path in stage.outputs]
    return [path for path in dict.fromkeys(last) if path not in read]


def runs(plan: Plan, *, unfolded: bool = False) -> list[list[Line]]:
    """The lines of a plan's table in the order of its stages; lines that each cover many stages are one run."""
    singles = [Line(stages=(stage,), prose=prose_of(plan, stage)) for stage in plan.stages]
    shapes = [_shape(line) for line in singles]
    groups: list[list[Line]] = []
    at = 0
    while at < len(singles):
        length, times = _repetition(shapes, at)
        if unfolded or times < _REPEATS:
            length = times = 1
        end = at + length * times
        groups.append(
            [
                Line(stages=tuple(plan.stages[position:end:length]), prose=singles[position].prose)
                for position in range(at, at + length)
            ]
        )
        at = end
    return groups


def _shape(line: Line) -> object:
    """Everything about a line but its arch; None for a stage without one."""
    stage = line.stages[0]
    if stage.arch is None:
        return None
    return (
        line.prose.name,
        stage.kind,
        stage.tool,
        tuple(map(role, stage.inputs)),
        tuple(map(role, stage.outputs)),
    )


def _repetition(shapes: Sequence[object], at: int) -> tuple[int, int]:
    """The length of the run that repeats at a place and covers most, and how often it comes."""
    # Of two runs that cover the same the shorter one stays: it takes fewer lines.
    best = (1, 1)
    for length in range(1, _LONGEST_RUN + 1):
        run = shapes[at : at + length]
        # A stage without an arch comes once, so that no run goes over it.
        if None in run or len(run) < length:
            break
        times = 1
        while shapes[at + times * length : at + (times + 1) * length] == run:
            times += 1
        if length * times > best[0] * best[1] and times > 1:
            best = (length, times)
    return best


def table(plan: Plan, screen: Terminal, *, full: bool = False, explain: bool = False) -> list[str]:
    """The stages of a plan as lines; `full` leaves nothing out, `explain` adds a sentence for each."""
    folded = runs(plan, unfolded=full)
    lines = [line for run in folded for line in run]
    names = FileNames(plan, full=full)
    left = _left_columns(lines)
    indent = max(map(len, left)) + 2
    beside = not explain and screen.width - indent >= _NARROW
    margin = indent if beside else 4
    files = _files(lines, names, screen.width - margin)
    if beside:
        rows = [screen.style(f"{left[0].ljust(indent)}{_HEAD[-1]}", "bold")]
    else:
        rows = [screen.style(left[0], "bold"), "    " + screen.style(_HEAD[-1], "bold")]
    described: dict[str, int] = {}
    for line, head, packed in zip(lines, left[1:], files, strict=True):
        rows.append(f"{head.ljust(indent)}{packed.pop(0)}" if beside else head)
        rows += [" " * margin + rest for rest in packed]
        if explain:
            rows += [*screen.wrap(_explained(line, described), "    ", "    "), ""]
    if names.short:
        rows.append(f"`*` is short for {terminal.printable(names.stem)}")
    return rows + [note for run in folded for note in _archs(run, screen)]


def _left_columns(lines: Sequence[Line]) -> list[str]:
    """The columns beside which the files stand, below their titles."""
    rows = [_HEAD[:-1], *map(_cells, lines)]
    # A plan for the host alone has no archs, and no column of them.
    if lines and not any(row[-1] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    return terminal.columns(rows)


def _files(lines: Sequence[Line], names: FileNames, room: int) -> list[list[str]]:
    """The files of each line, packed; with short names where that saves lines."""

    def packed(*, short: bool) -> list[list[str]]:
        names.short = short
        return [list(_packed(names.words(line), room)) for line in lines]

    layouts = packed(short=False), packed(short=bool(names.stem))
    long, short = (sum(map(len, layout)) for layout in layouts)
    # `*` costs the reader a look at the note below the table, so it has to save a line.
    names.short = short < long
    return layouts[names.short]


def _cells(line: Line) -> tuple[str, ...]:
    first, last = line.stages[0], line.stages[-1]
    ids = str(first.id + 1) if first is last else f"{first.id + 1}..{last.id + 1}"
    arch = first.arch or "" if first is last else f"{len(line.stages)} archs"
    cells = (ids, line.prose.side, line.prose.name, tool(first), arch)
    return tuple(map(terminal.printable, cells))


def tool(stage: Stage) -> str:
    """The program of a stage with the word that says how it is used, such as `gcc -E`."""
    mode = next((argument for argument in stage.argv[1:] if argument in _MODES), "")
    return f"{stage.tool} {mode}".rstrip()


def _explained(line: Line, described: dict[str, int]) -> str:
    # A plan for ten archs would say each sentence ten times.
    stage = line.stages[0]
    arch = stage.arch if len(line.stages) == 1 else "each arch"
    before = described.setdefault(line.prose.does, stage.id)
    if before != stage.id:
        return terminal.printable(f"as stage {before + 1}" + (f", for {arch}" if arch else ""))
    return terminal.printable(sentence(line.prose, arch))


def _archs(run: Sequence[Line], screen: Terminal) -> list[str]:
    parts = []
    for stages in zip(*(line.stages for line in run), strict=True):
        archs = dict.fromkeys(stage.arch or "" for stage in stages)
        first, last = stages[0].id + 1, stages[-1].id + 1
        parts.append(f"{' '.join(archs)} ({first}{f'-{last}' if last > first else ''})")
    head = f"{run[0].stages[0].id + 1}..{run[-1].stages[-1].id + 1}: "
    text = terminal.printable(", ".join(parts))
    return screen.wrap(text, head) if len(parts) > 1 else []


def _packed(words: Sequence[str], room: int) -> Iterator[str]:
    """Words as lines of at most `room` columns; what is longer loses its beginning."""
    line = ""
    for word in words:
        word = word if len(word) <= room else shortened(word, room)
        if line and len(line) + 1 + len(word) > room:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line


def shortened(path: str, room: int) -> str:
    """The end of a path in so many columns, whole parts of it where that leaves enough."""
    end = path[-(room - 3) :]
    cut = end.find("/")
    return "..." + (end[cut:] if 0 <= cut < room // 2 else end)


class StageProse(Value):
    """An entry of `stage_words.yaml`, which describes the fields; a condition that is empty holds for every stage."""

    side: str
    name: str
    does: str
    flags: tuple[str, ...] = ()
    driver: str = ""
    tool: str = ""
    word: str = ""
    reads: str = ""
    writes: str = ""
    arch: bool | None = None

    def describes(self, driver: str, stage: Stage) -> bool:
        """Return whether all conditions hold for a stage of a driver."""
        if self.arch is not None and self.arch != (stage.arch is not None):
            return False
        # `re` keeps the patterns that it compiled.
        return all(
            not pattern or any(map(re.compile(pattern).search, texts))
            for pattern, texts in (
                (self.driver, (driver,)),
                (self.tool, (stage.tool,)),
                (self.word, stage.argv),
                (self.reads, stage.inputs),
                (self.writes, stage.outputs),
            )
        )


@cache
def catalog() -> dict[str, tuple[StageProse, ...]]:
    """The entries by the kind of stage, in the order in which they are tried."""
    return {
        kind: tuple(
            StageProse(**entry | {"flags": tuple(entry.get("flags", ()))}) for entry in entries
        )
        for kind, entries in load_yaml(of_package("stage_words.yaml")).items()
    }


def prose_of(plan: Plan, stage: Stage) -> StageProse:
    """The prose of a stage of a plan; that of an unknown program where nothing is written of its kind."""
    for entry in catalog().get(stage.kind, ()):
        if entry.describes(plan.tool, stage):
            return entry
    # The last entry of a kind is the most general one, and that of `other` says that the program is unknown.
    return catalog()["other"][-1]


def sentence(prose: StageProse, arch: str | None) -> str:
    """The sentence of a stage for an arch, with the flags that change it."""
    does = prose.does.replace("{arch}", arch or "the device")
    if not prose.flags:
        return does
    verb = "changes it" if len(prose.flags) == 1 else "change it"
    return f"{does}; {quoted(prose.flags)} {verb}"
