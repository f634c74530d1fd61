"""A plan prepared to run again, in an order that keeps every file correct: as a shell script, as a Ninja file.

nvcc hands each line that it prints to `sh -c`, so the line itself is what a faithful replay runs: a `$` or a
backquote in it expands exactly as it does under nvcc. clang starts its programs without a shell, so its words are
quoted one by one. Temp files are moved into one directory.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import shlex
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from toolmatrix.compilation import model
from toolmatrix.compilation.drivers.nvcc import TEMP
from toolmatrix.compilation.drivers.nvcc_commands import without_messages
from toolmatrix.compilation.model import Depfile, Plan, Stage
from toolmatrix.errors import NothingMatched, UsageError
from toolmatrix.resources import load_yaml, of_package
from toolmatrix.value import Value

_RUN_BY_A_SHELL = ("nvcc",)
# Options for nvcc itself; the commands that it printed have them already.
_NOT_EXPORTED = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
_NAME = re.compile(r"[A-Za-z_]\w*")
_WINDOWS = re.compile(r"(?i)[a-z]:[\\/].*|.*\.exe|cl")
_SHELL_WORK = re.compile(r"[A-Za-z0-9_/.+-]+")
_EXPANDED = re.compile(r"`|\$(?=[A-Za-z_{(])")


class ReplayStep(Value):
    """One stage, ready to run: `commands` are lines for a POSIX shell, to be stopped at the first that fails.

    `after` are the ids of the stages that have to end before. `inputs` and `outputs` are paths as the commands use
    them. Those of a stage that reads headers are `tracked` where they can write to `depfile` which.
    """

    id: int
    kind: str
    tool: str
    arch: str | None
    commands: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    after: tuple[int, ...]
    depfile: str = ""
    tracked: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that messages call it by, such as `stage 4 (cicc compute_NN)`; numbers count from 1."""
        return f"stage {self.id + 1} ({' '.join(filter(None, (self.tool, self.arch)))})"


class Replay(Value):
    """Steps to run. `work` holds the temp files, `directories` have to exist, `env` is set for every step.

    `left_out` are ids of the plan's stages that are not run, `needed` the files these would have made and that must
    be there already. `results` are the files that no later step reads and that do not lie in `work`. `notes` are
    sentences a reader should know.
    """

    title: str
    work: str
    env: Mapping[str, str]
    steps: tuple[ReplayStep, ...]
    directories: tuple[str, ...]
    results: tuple[str, ...]
    left_out: tuple[int, ...] = ()
    needed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def replay(
    plan: Plan,
    *,
    work: str,
    only: Sequence[str] = (),
    until: str | None = None,
    since: str | None = None,
    asked: Sequence[str] = (),
) -> Replay:
    """Make a plan, or a part of it that can run, ready; see `select` for the parts.

    `asked` is the driver's command line, if known. Raises UsageError for a plan made on Windows or a `work` that a
    shell would not take literally, NothingMatched for a stage or an arch that the plan does not have.
    """
    _check(plan, work)
    moves = _moves(plan, work)
    plan, listings = plan_with_depfiles(_with_host_objects(plan), asked)
    chosen = select(plan, only=only, until=until, since=since)
    waits = model.predecessors(order(plan.stages))
    moved = _mover(moves)

    def step(stage: Stage) -> ReplayStep:
        by_driver = _mcin_files(plan, stage)
        line = without_messages(stage.text).strip()
        commands = [
            *(_script_of_objects(plan, stage, path) for path in by_driver),
            line if plan.tool in _RUN_BY_A_SHELL else shlex.join(stage.argv),
            *filter(None, (listings.get(stage.id),)),
        ]
        depfile = posixpath.join(work, f"stage-{stage.id + 1}.d")
        reads_headers = stage_reads_headers(stage)
        return ReplayStep(
            id=stage.id,
            kind=stage.kind,
            tool=stage.tool,
            arch=stage.arch,
            commands=tuple(map(moved, commands)),
            inputs=tuple(moves.get(path, path) for path in stage.inputs if path not in by_driver),
            outputs=tuple(moves.get(path, path) for path in stage.outputs),
            after=tuple(before for before in waits[stage.id] if before in chosen),
            depfile=depfile if reads_headers else "",
            tracked=tuple(map(moved, with_depfile(stage, commands, depfile)))
            if reads_headers
            else (),
        )

    steps = tuple(step(stage) for stage in plan.stages if stage.id in chosen)
    return Replay(
        title=" ".join(filter(None, (plan.tool, plan.version))),
        work=work,
        env=_exported(plan.env),
        steps=steps,
        directories=_directories(work, steps),
        results=_results(work, steps),
        left_out=tuple(stage.id for stage in plan.stages if stage.id not in chosen),
        needed=tuple(moves.get(path, path) for path in _needed(plan, chosen)),
        notes=(*_notes(plan, chosen), *depfile_notes(plan, asked)),
    )


def _check(plan: Plan, work: str) -> None:
    # The directory is inserted into lines of the log, quoted or not.
    if not _SHELL_WORK.fullmatch(work):
        raise UsageError(
            "the directory for temp files needs quoting in a shell",
            expected="letters, digits and `_/.+-`",
            found=work,
        )
    for stage in plan.stages:
        if stage.argv and _WINDOWS.fullmatch(stage.argv[0]):
            raise UsageError(
                "a plan made on Windows cannot be replayed: its programs and paths are not of this system",
                found=stage.argv[0],
                help="make the dry run on Linux",
            )


def order(stages: Sequence[Stage]) -> tuple[tuple[int, int], ...]:
    """Pairs of ids that have to run in this order: a file is read after it is written, and is not written again
    before those who read or wrote it are done."""
    writers: dict[str, list[int]] = {}
    readers: dict[str, list[int]] = {}
    pairs: set[tuple[int, int]] = set()
    for stage in stages:
        # A program without known outputs may write any file that it names.
        perhaps = stage.inputs if stage.kind == "other" and not stage.outputs else ()
        writes = (*stage.outputs, *perhaps)
        before = [writers.get(path, ()) for path in (*stage.inputs, *writes)]
        before += [readers.get(path, ()) for path in writes]
        pairs |= {(earlier, stage.id) for ids in before for earlier in ids}
        for path in stage.inputs:
            readers.setdefault(path, []).append(stage.id)
        for path in writes:
            writers.setdefault(path, []).append(stage.id)
    return tuple(sorted(pair for pair in pairs if pair[0] != pair[1]))


def select(
    plan: Plan, *, only: Sequence[str] = (), until: str | None = None, since: str | None = None
) -> frozenset[int]:
    """Ids of the stages of a part of the plan that can run.

    `only` are archs: stages that serve only others are left out, and those that join others with these. `until` is a
    stage: it and its predecessors. `since` is a stage: it and its successors; its inputs must exist already. A stage is
    a number, counted from 1, a kind, a tool, or one of these with an arch after a colon. Raises NothingMatched.
    """
    pairs = order(plan.stages)
    backward = [(after, before) for before, after in pairs]
    chosen = everything = frozenset(range(len(plan.stages)))
    if only:
        own = frozenset(stage for arch in only for stage in _stages_for(plan, arch))
        core = model.reachable_ids(own, backward)
        others = frozenset(stage.id for stage in plan.stages if stage.arch) - core
        # Stages without an arch, such as the host compile, serve these as well.
        chosen &= everything - model.reachable_ids(others, pairs)
    if until is not None:
        chosen &= model.reachable_ids(find(plan, until), backward)
    if since is not None:
        chosen &= model.reachable_ids(find(plan, since), pairs)
    return chosen


def find(plan: Plan, words: str) -> frozenset[int]:
    """Ids of the stages that words such as `5`, `cicc` or `ptxas:sm_NN` mean; raises NothingMatched."""
    what, _, arch = words.partition(":")
    matches = frozenset(
        stage.id
        for stage in plan.stages
        if what in (str(stage.id + 1), stage.kind, stage.tool) and arch in ("", stage.arch)
    )
    if not matches:
        kinds = dict.fromkeys(stage.kind for stage in plan.stages)
        raise NothingMatched(
            f"the plan has no stage {words}",
            expected=f"a number from 1 to {len(plan.stages)}, or one of: {', '.join(kinds)}",
            help="`cicc:ARCH` selects that stage for one arch",
        )
    return matches


def _stages_for(plan: Plan, arch: str) -> list[int]:
    stages = [
        stage.id
        for stage in plan.stages
        if stage.arch is not None and arch in (stage.arch, stage.arch.partition(":")[0])
    ]
    if not stages:
        archs = dict.fromkeys(stage.arch for stage in plan.stages if stage.arch)
        raise NothingMatched(
            f"the plan makes no code for {arch}",
            expected=f"one of: {', '.join(archs)}" if archs else "a plan with device stages",
        )
    return stages


def _needed(plan: Plan, chosen: frozenset[int]) -> tuple[str, ...]:
    """Files that chosen stages read and that stages left out, before them, write."""
    return tuple(
        dict.fromkeys(
            path
            for before, after in plan.edges
            if after in chosen and before not in chosen
            for path in plan.stages[after].inputs
            if path in plan.stages[before].outputs
        )
    )


def _moves(plan: Plan, work: str) -> dict[str, str]:
    read = {path for stage in plan.stages for path in stage.inputs}
    temps = [
        path
        for stage in plan.stages
        for path in (*_temps(stage, read), *_mcin_files(plan, stage))
        if path.startswith("/")
    ]
    if not temps:
        return {}
    # Files of one name in two directories have to stay apart.
    common = posixpath.commonpath([posixpath.dirname(path) for path in temps])
    return {path: posixpath.join(work, posixpath.relpath(path, common)) for path in temps}


def _temps(stage: Stage, read: Container[str]) -> list[str]:
    # clang's temp files have no special names: outputs with absolute paths that a later stage reads are taken for them.
    passed_on = any(path in read and path.startswith("/") for path in stage.outputs)
    return [path for path in stage.outputs if passed_on or TEMP in posixpath.basename(path)]


def _mover(moves: Mapping[str, str]) -> Callable[[str], str]:
    if not moves:
        return lambda text: text
    # A path must not match the beginning of a longer one.
    pattern = re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, moves))})(?![\w./+-])")
    return lambda text: pattern.sub(lambda match: moves[match[0]], text)


def _directories(work: str, steps: Iterable[ReplayStep]) -> tuple[str, ...]:
    written = {posixpath.dirname(path) for step in steps for path in step.outputs} - {""}
    return tuple(sorted({work} | {path for path in written if not path.startswith("/")}))


def _results(work: str, steps: Sequence[ReplayStep]) -> tuple[str, ...]:
    # A step that only checks a file does not use it up.
    read = {path for step in steps if step.outputs for path in step.inputs}
    return tuple(
        dict.fromkeys(
            path
            for step in steps
            for path in step.outputs
            if path not in read and not path.startswith(work + "/")
        )
    )


def _exported(env: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in sorted(env.items())
        if _NAME.fullmatch(name) and name not in _NOT_EXPORTED
    }


def _mcin_files(plan: Plan, stage: Stage) -> list[str]:
    """The .mcin files of a stage, which clang writes by itself."""
    written = {path for other in plan.stages for path in other.outputs}
    return [word for word in stage.argv if word.endswith(".mcin") and word not in written]


def _with_host_objects(plan: Plan) -> Plan:
    """The plan in which a stage with an .mcin file also reads the objects of the host that it serves."""
    stages = tuple(
        stage.replace(inputs=tuple(dict.fromkeys((*stage.inputs, *_host_objects(plan, stage)))))
        if _mcin_files(plan, stage)
        else stage
        for stage in plan.stages
    )
    return plan.replace(stages=stages)


def _host_objects(plan: Plan, stage: Stage) -> list[str]:
    """The objects of earlier stages that are linked with the one that a stage makes of an .mcin file."""
    written = {path for earlier in plan.stages[: stage.id] for path in earlier.outputs}
    linked = [linking.inputs for linking in plan.stages if {*linking.inputs} & {*stage.outputs}]
    return [path for inputs in linked for path in inputs if path in written]


def _script_of_objects(plan: Plan, stage: Stage, path: str) -> str:
    """A command that writes the .mcin file: assembly that puts the device code of a stage's .hipfb in an object."""
    # Older clang calls the code `__hip_fatbin` in every object; newer adds a hash of the id of the compilation unit,
    # and has a handle of such a name as well. Which of them this clang is, its objects show. The shape is what
    # -fhip-dump-offload-linker-script prints (clang, lib/Driver/ToolChains/HIPUtility.cpp).
    bundle = next((file for file in stage.inputs if file.endswith(".hipfb")), "")
    ids = {word for other in plan.stages for word in other.argv if word.startswith("-cuid=")}
    units = sorted(_unit_hash(word.removeprefix("-cuid=")) for word in ids)
    major = plan.version.partition(".")[0]
    since = load_yaml(of_package("compilation", "replay.yaml"))["no-executable-stack"]["since"]
    marked = not major.isdecimal() or int(major) >= since
    older = _assembly([], ["__hip_fatbin"], bundle, marked)
    objects = _host_objects(plan, stage)
    if not (units and objects):
        return f"{older} > {shlex.quote(path)}"
    newer = _assembly(
        [f"__hip_gpubin_handle_{unit}" for unit in units],
        [f"__hip_fatbin_{unit}" for unit in units],
        bundle,
        marked=True,
    )
    has_hash = f"grep -q __hip_fatbin_{units[0]} {shlex.join(objects)}"
    return f"if {has_hash}; then {newer}; else {older}; fi > {shlex.quote(path)}"


def _assembly(handles: Sequence[str], codes: Sequence[str], bundle: str, marked: bool) -> str:
    lines = [
        *_symbols(handles, '.section .hip_gpubin_handle,"aw"', 3, ".zero 8"),
        *_symbols(codes, '.section .hip_fatbin,"a",@progbits', 12, f'.incbin "{bundle}"'),
        *(('.section .note.GNU-stack, "", @progbits',) if marked else ()),
    ]
    return f"printf '%s\\n' {shlex.join(lines)}"


def _unit_hash(unit: str) -> str:
    # The first 64 bits of MD5, as llvm::MD5Hash has them.
    digest = hashlib.md5(unit.encode(), usedforsecurity=False).digest()
    return format(int.from_bytes(digest[:8], "little"), "x")


def _symbols(names: Sequence[str], section: str, alignment: int, content: str) -> list[str]:
    if not names:
        return []
    first = names[0]
    lines = [f".protected {first}", f".type {first},@object", section, f".globl {first}"]
    lines.append(f".p2align {alignment}")
    for alias in names[1:]:
        lines += [f".globl {alias}", f".set {alias},{first}"]
    return [*lines, f"{first}:", content]


def _notes(plan: Plan, chosen: frozenset[int]) -> list[str]:
    notes = []
    expanded = [
        str(stage.id + 1)
        for stage in plan.stages
        if stage.id in chosen and plan.tool in _RUN_BY_A_SHELL and _expands(plan, stage)
    ]
    if expanded:
        notes.append(
            f"the shell expands words of stage {', '.join(expanded)}, as it does under {plan.tool} itself"
        )
    if any(_mcin_files(plan, stage) for stage in plan.stages if stage.id in chosen):
        notes.append(
            "the driver writes the .mcin file by itself; its text here is derived from the plan"
        )
    return notes


def _expands(plan: Plan, stage: Stage) -> bool:
    text = stage.text
    # The driver's own variables are meant to expand.
    for name in plan.env:
        text = text.replace(f"${name}/", "")
    return bool(_EXPANDED.search(text))


_READERS = ("preprocess", "host-compile", "device-compile")

# Compilers that take -MD and -MF.
_LIKE_GCC = re.compile(
    r"(?:[\w.]+-)*(?:gcc|g\+\+|cc|c\+\+|(?:arm)?clang(?:\+\+)?|icp?x)(?:-?\d+(?:\.\d+)*)?"
)
# Endings of what was preprocessed before: no compiler reads headers for these.
_PREPROCESSED = (".i", ".ii", ".bc", ".s", ".cui", ".hipi")

# nvcc lists what the lines `# 1 "name" 1 3` of its preprocessors enter, each once; 3 marks a header of the system.
_LISTING = (
    r"""/^# [0-9]+ "/ { name = $0; sub(/^# [0-9]+ "/, "", name); flags = name; sub(/.*"/, "", flags);"""
    r""" sub(/"[ 0-9]*$/, "", name); if ((FNR > 1 && flags !~ / 1( |$)/) || name ~ /^</ || seen[name]++) next;"""
    r""" if (own && flags ~ / 3( |$)/) next; gsub(/ /, "\\ ", name); all[count++] = name }"""
    r""" END { printf "%s :", ENVIRON["target"]; for (i = 0; i < count; i++)"""
    r""" printf "%s %s", i ? " \\\n   " : "", all[i]; print "";"""
    r""" for (i = 1; phony && i < count; i++) printf "\n%s:\n", all[i] }"""
)


def plan_with_depfiles(plan: Plan, words: Sequence[str]) -> tuple[Plan, dict[int, str]]:
    """The plan with each file of dependencies as an output of the last stage it is made from, and the commands for it.

    nvcc writes such a file itself. `words` are those of its command line, empty if unknown.
    """
    stages = list(plan.stages)
    commands: dict[int, str] = {}
    for depfile in plan.depfiles:
        last = stages[depfile.stages[-1]]
        texts = [path for stage in depfile.stages for path in stages[stage].outputs]
        others = [path for path in texts if path not in last.outputs]
        commands[last.id] = _command(depfile, texts, _target(plan, depfile, words), words)
        stages[last.id] = last.replace(
            inputs=(*last.inputs, *others), outputs=(*last.outputs, *filter(None, (depfile.path,)))
        )
    return plan.replace(stages=tuple(stages)), commands


def depfile_notes(plan: Plan, words: Sequence[str]) -> Iterator[str]:
    """Notes on the files of dependencies for a reader of the replay."""
    for depfile in () if words else plan.depfiles:
        target = _target(plan, depfile, words)
        yield (
            f"the log does not show -MT, -MMD and -MP: {depfile.path or 'the output'}"
            f" lists all headers, for {target}"
        )


def _command(depfile: Depfile, texts: Iterable[str], target: str, words: Sequence[str]) -> str:
    own = any(word in ("-MMD", "-MM") or word.endswith("-nonsystem-dependencies") for word in words)
    phony = any(word in ("-MP", "--generate-dependency-targets") for word in words)
    options = " -v own=1" * own + " -v phony=1" * phony
    arguments = shlex.join([_LISTING, *texts])
    to = f" > {shlex.quote(depfile.path)}" if depfile.path else ""
    return f"target={shlex.quote(target)} awk{options} {arguments}{to}"


def _target(plan: Plan, depfile: Depfile, words: Sequence[str]) -> str:
    named = _value(words, "-MT", "--dependency-target-name") or _value(words, "-o", "--output-file")
    # A log does not show -o; the outputs of the stages do.
    target = named or ("" if words else _product_of(plan, depfile))
    if target:
        return target
    source = plan.stages[depfile.stages[0]].inputs[:1]
    stem = posixpath.splitext(posixpath.basename("".join(source)))[0]
    return posixpath.join(_value(words, "-odir", "--output-directory"), f"{stem}.o")


def _value(words: Sequence[str], *options: str) -> str:
    latest = ""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, joined, value = word.partition("=")
        if name in options:
            latest = value if joined else following
    return latest


def _product_of(plan: Plan, depfile: Depfile) -> str:
    # One command may name several sources: the stages of each come before the next file of dependencies.
    later = [other.stages[0] for other in plan.depfiles if other.stages > depfile.stages]
    following = plan.stages[depfile.stages[-1] + 1 : min(later, default=None)]
    read = {path for stage in plan.stages for path in stage.inputs}
    outputs = [path for stage in following for path in stage.outputs]
    return next((path for path in reversed(outputs) if path not in read and TEMP not in path), "")


def stage_reads_headers(stage: Stage) -> bool:
    """Check whether a stage reads headers: it compiles a source, or preprocesses it."""
    language = _value(stage.argv, "-x")
    return (
        stage.kind in _READERS
        and language != "ir"
        and not language.endswith("cpp-output")
        and "-fpreprocessed" not in stage.argv
        and not all(path.endswith(_PREPROCESSED) for path in stage.inputs)
    )


def with_depfile(stage: Stage, commands: Sequence[str], depfile: str) -> tuple[str, ...]:
    """The commands of a stage with the compiler writing its headers to a depfile; none if it cannot.

    The first is the compiler's own.
    """
    own = _value(stage.argv, "-MF", "-dependency-file")
    to = shlex.quote(depfile)
    # Ninja deletes the depfile, so it gets a copy of one that the plan writes itself.
    if own:
        return (*commands, f"cp {shlex.quote(own)} {to}")
    # Other options for dependencies have to stay as they are.
    if any(word.startswith("-M") for word in stage.argv):
        return ()
    # -MD and -MF are options of the driver; cc1 has others.
    if stage.argv[1:2] == ("-cc1",):
        target = shlex.quote("".join(stage.outputs[:1]) or depfile)
        more = f"-sys-header-deps -MT {target} -dependency-file {to}"
    elif _LIKE_GCC.fullmatch(stage.tool):
        more = f"-MD -MF {to}"
    else:
        return ()
    return (f"{commands[0]} {more}", *commands[1:])


# Restores the time of outputs whose contents did not change, for Ninja to see.
_KEEP = (
    '(for f in $made; do test ! -e "$$f" || cp -p "$$f" "$$f.was"; done) && $run && (for f in $made; do'
    ' if cmp -s "$$f.was" "$$f"; then mv "$$f.was" "$$f"; else rm -f "$$f.was"; fi; done)'
)

# Kinds of stages whose memory decides how many may run at once.
HEAVY = ("cicc", "device-compile")

# The files by which Ninja knows each step.
Targets: TypeAlias = Mapping[int, tuple[str, ...]]


def script(replay: Replay) -> str:
    """A POSIX shell script that runs the steps one after another and names the one that fails."""
    lines = ["#!/bin/sh", *(f"# {line}" for line in _heading(replay)), "set -e"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in replay.env.items()]
    lines += [
        "step='before the first stage'",
        'trap \'code=$?; [ "$code" = 0 ] || echo "$step failed with exit code $code" >&2\' EXIT',
        f"mkdir -p {shlex.join(replay.directories)}",
    ]
    # With `set -e` a test that fails ends the script, and the trap says what it was looking for.
    for path in replay.needed:
        lines += [f"step={shlex.quote('looking for ' + path)}", f"test -e {shlex.quote(path)}"]
    for step in replay.steps:
        lines += ["", f"step={shlex.quote(step.name)}", *step.commands]
    return "\n".join(lines) + "\n"


def _heading(replay: Replay) -> Iterator[str]:
    yield f"{replay.title}: {len(replay.steps)} stages replayed; made by `toolmatrix stages`."
    yield f"Temp files stay in {replay.work}."
    if replay.left_out:
        stages = ", ".join(str(stage + 1) for stage in replay.left_out)
        yield f"Left out: stage {stages}."
    for path in replay.needed:
        yield f"Must exist already: {path}."
    yield from (f"{note[0].upper()}{note[1:]}." for note in replay.notes)


def ninja(replay: Replay, *, depth: int = 0) -> str:
    """A Ninja file with the true edges of the steps; a changed header rebuilds the stages that read it.

    Unchanged outputs rebuild nothing. `depth` is the maximum number of parallel stages that need much memory, 0 for no
    limit. If several steps write one file, it belongs to the last, and they keep their order. Raises UsageError for a
    name that a Ninja file cannot contain.
    """
    lines = [f"# {line}" for line in _heading(replay)]
    untracked = [str(step.id + 1) for step in replay.steps if step.depfile and not step.tracked]
    if untracked:
        lines.append(f"# The headers of stage {', '.join(untracked)} are not tracked.")
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in replay.env.items())
    lines += [
        f"builddir = {_path(replay.work)}",
        f"begin = mkdir -p {_ninja_value(shlex.join(replay.directories))}"
        + (f" && export {_ninja_value(exports)}" if exports else ""),
        "",
        "pool memory",
        f"  depth = {depth}",
        "rule stage",
        "  command = $begin && $run",
        "  description = $what",
        "rule keep",
        f"  command = $begin && {_KEEP}",
        "  description = $what",
        "  restat = 1",
    ]
    targets = _ninja_targets(replay)
    # With `restat` Ninja checks the outputs again: an unchanged time does not rebuild the readers.
    for step in replay.steps:
        lines += ["", *_statement(step, targets, replay.work)]
    return "\n".join(lines) + "\n"


def _ninja_targets(replay: Replay) -> Targets:
    """For each step its targets in Ninja: wanted files that no later step writes, or else a stamp."""
    # Other files are not always written, and Ninja would rebuild them each time.
    last = {path: step.id for step in replay.steps for path in step.outputs}
    wanted = {path for step in replay.steps for path in step.inputs} | set(replay.results)
    return {
        step.id: tuple(
            path for path in dict.fromkeys(step.outputs) if last[path] == step.id and path in wanted
        )
        or (posixpath.join(replay.work, f"stage-{step.id + 1}.done"),)
        for step in replay.steps
    }


def _restat_files(step: ReplayStep, targets: Targets, work: str) -> list[str]:
    """The temp files of a step that keep their time if their contents stay the same."""
    own = targets[step.id]
    # It overwrites a file of another step, which has to run again even if this one changes nothing.
    others = {path for stage, paths in targets.items() if stage != step.id for path in paths}
    if not others.isdisjoint(step.outputs):
        return []
    return [path for path in own if path in step.outputs and path.startswith(work + "/")]


def _inputs(step: ReplayStep, targets: Targets) -> tuple[Sequence[str], Sequence[str]]:
    """The files that a step reads, and a target of each other step that has to end before."""
    written = {path for paths in targets.values() for path in paths}
    before = [path for stage in step.after for path in targets[stage]]
    read = [path for path in dict.fromkeys(step.inputs) if path in before or path not in written]
    # Ninja needs an edge to each step that has to end before, also where no file of it is read.
    return read, [targets[stage][0] for stage in step.after if set(targets[stage]).isdisjoint(read)]


def _statement(step: ReplayStep, targets: Targets, work: str) -> Iterator[str]:
    read, awaited = _inputs(step, targets)
    commands = [*(step.tracked or step.commands)]
    restat_files = _restat_files(step, targets, work)
    if targets[step.id][0] not in step.outputs:
        commands.append(f": > {shlex.quote(targets[step.id][0])}")
    rule = "keep" if restat_files else "stage"
    line = f"build {_paths(targets[step.id])}: {rule} {_paths(read)}".rstrip()
    yield line + (f" | {_paths(awaited)}" if awaited else "")
    yield f"  run = {_ninja_value(' && '.join(commands))}"
    yield f"  what = {_ninja_value(step.name)}"
    if restat_files:
        yield f"  made = {_ninja_value(shlex.join(restat_files))}"
    if step.tracked:
        yield f"  depfile = {_ninja_value(step.depfile)}"
        yield "  deps = gcc"
    if step.kind in HEAVY:
        yield "  pool = memory"


def _paths(paths: Iterable[str]) -> str:
    return " ".join(map(_path, paths))


def _path(path: str) -> str:
    return re.sub(r"([$: ])", r"$\1", _one_line(path))


def _ninja_value(text: str) -> str:
    # Where Ninja takes a line to its end, blanks and colons mean nothing.
    return _one_line(text).replace("$", "$$")


def _one_line(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise UsageError("a Ninja file cannot hold a line break in a name or a command", found=text)
    return text
