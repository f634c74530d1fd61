"""A replay as a shell script and as a Ninja file."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from toolmatrix.errors import UsageError
from toolmatrix.stages.replay import Replay, ReplayStep

# A command around which outputs keep their time where their content is what it was, for Ninja to see.
_KEEP = (
    '(for f in $made; do test ! -e "$$f" || cp -p "$$f" "$$f.was"; done) && $run && (for f in $made; do'
    ' if cmp -s "$$f.was" "$$f"; then mv "$$f.was" "$$f"; else rm -f "$$f.was"; fi; done)'
)

# Kinds of stages whose memory decides how many may run at once.
HEAVY = ("cicc", "device-compile")


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
        numbers = ", ".join(str(number + 1) for number in replay.left_out)
        yield f"Left out: stage {numbers}."
    for path in replay.needed:
        yield f"Must exist already: {path}."
    yield from (f"{note[0].upper()}{note[1:]}." for note in replay.notes)


def ninja(replay: Replay, *, depth: int = 0) -> str:
    """A Ninja file with the true edges of the steps, in which a header that changed builds anew what reads it.

    What comes out as it was before builds nothing that reads it. `depth` is how many stages that need much memory may
    run at once, 0 for no limit. Of several steps that write one file the last is the one that Ninja knows it from, and
    they keep their order. Raises UsageError for a name that no Ninja file can hold.
    """
    lines = [f"# {line}" for line in _heading(replay)]
    untracked = [str(one.id + 1) for one in replay.steps if one.depfile and not one.tracked]
    if untracked:
        lines.append(f"# The headers of stage {', '.join(untracked)} are not tracked.")
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in replay.env.items())
    lines += [
        f"builddir = {_path(replay.work)}",
        f"begin = mkdir -p {_value(shlex.join(replay.directories))}"
        + (f" && export {_value(exports)}" if exports else ""),
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
    made = _made(replay)
    # A rule with `restat` asks Ninja to look at the outputs again: what kept its time starts nothing that reads it.
    for step in replay.steps:
        lines += ["", *_statement(step, made, replay.work)]
    return "\n".join(lines) + "\n"


def _made(replay: Replay) -> dict[int, tuple[str, ...]]:
    """For each step the files that Ninja knows it from: what it writes last and somebody wants, or else a stamp."""
    # What nobody wants is not always written, and Ninja would build it again each time.
    last = {path: step.id for step in replay.steps for path in step.outputs}
    wanted = {path for step in replay.steps for path in step.inputs} | set(replay.results)
    return {
        step.id: tuple(
            path for path in dict.fromkeys(step.outputs) if last[path] == step.id and path in wanted
        )
        or (posixpath.join(replay.work, f"stage-{step.id + 1}.done"),)
        for step in replay.steps
    }


def _kept(step: ReplayStep, made: Mapping[int, tuple[str, ...]], work: str) -> list[str]:
    """The temp files that a step leaves as they were where it makes them anew with what they held."""
    own = made[step.id]
    # It has written over the file of another step, which has to run again even where its own came out as they were.
    others = {path for number, paths in made.items() if number != step.id for path in paths}
    if not others.isdisjoint(step.outputs):
        return []
    return [path for path in own if path in step.outputs and path.startswith(work + "/")]


def _before(
    step: ReplayStep, made: Mapping[int, tuple[str, ...]]
) -> tuple[Sequence[str], Sequence[str]]:
    """The files that a step reads, and one more of each other step that has to end before."""
    written = {path for paths in made.values() for path in paths}
    before = [path for one in step.after for path in made[one]]
    read = [path for path in dict.fromkeys(step.inputs) if path in before or path not in written]
    # Ninja needs an edge to each step that has to end before, also where no file of it is read.
    return read, [made[one][0] for one in step.after if set(made[one]).isdisjoint(read)]


def _statement(step: ReplayStep, made: Mapping[int, tuple[str, ...]], work: str) -> Iterator[str]:
    read, awaited = _before(step, made)
    commands = [*(step.tracked or step.commands)]
    kept = _kept(step, made, work)
    if made[step.id][0] not in step.outputs:
        commands.append(f": > {shlex.quote(made[step.id][0])}")
    rule = "keep" if kept else "stage"
    line = f"build {_paths(made[step.id])}: {rule} {_paths(read)}".rstrip()
    yield line + (f" | {_paths(awaited)}" if awaited else "")
    yield f"  run = {_value(' && '.join(commands))}"
    yield f"  what = {_value(step.name)}"
    if kept:
        yield f"  made = {_value(shlex.join(kept))}"
    if step.tracked:
        yield f"  depfile = {_value(step.depfile)}"
        yield "  deps = gcc"
    if step.kind in HEAVY:
        yield "  pool = memory"


def _paths(paths: Iterable[str]) -> str:
    return " ".join(map(_path, paths))


def _path(path: str) -> str:
    return re.sub(r"([$: ])", r"$\1", _one_line(path))


def _value(text: str) -> str:
    # Where Ninja takes a line to its end, blanks and colons mean nothing.
    return _one_line(text).replace("$", "$$")


def _one_line(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise UsageError("a Ninja file cannot hold a line break in a name or a command", found=text)
    return text
