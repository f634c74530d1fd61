"""Headers that a replay reads: the file that nvcc itself writes of them, and how its compilers tell them to Ninja."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from toolmatrix.stages.drivers.nvcc_plan import TEMP

if TYPE_CHECKING:
    from toolmatrix.stages.model import Depfile, Plan, Stage

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


def written(plan: Plan, asked: Sequence[str]) -> tuple[Plan, dict[int, str]]:
    """The plan with each file of dependencies as an output of the last stage it is made from, and the commands for it.

    nvcc writes such a file itself. `asked` are the words of its command line, none where nobody knows them.
    """
    stages = list(plan.stages)
    commands: dict[int, str] = {}
    for depfile in plan.depfiles:
        last = stages[depfile.stages[-1]]
        texts = [path for number in depfile.stages for path in stages[number].outputs]
        others = [path for path in texts if path not in last.outputs]
        commands[last.id] = _command(depfile, texts, _target(plan, depfile, asked), asked)
        stages[last.id] = last.replace(
            inputs=(*last.inputs, *others), outputs=(*last.outputs, *filter(None, (depfile.path,)))
        )
    return plan.replace(stages=tuple(stages)), commands


def notes(plan: Plan, asked: Sequence[str]) -> Iterator[str]:
    """Notes on the files of dependencies for a reader of the replay."""
    for depfile in () if asked else plan.depfiles:
        target = _target(plan, depfile, asked)
        yield (
            f"the log does not tell -MT, -MMD and -MP: {depfile.path or 'what is printed'}"
            f" names all headers, for {target}"
        )


def _command(depfile: Depfile, texts: Iterable[str], target: str, asked: Sequence[str]) -> str:
    own = any(word in ("-MMD", "-MM") or word.endswith("-nonsystem-dependencies") for word in asked)
    phony = any(word in ("-MP", "--generate-dependency-targets") for word in asked)
    options = " -v own=1" * own + " -v phony=1" * phony
    words = shlex.join([_LISTING, *texts])
    to = f" > {shlex.quote(depfile.path)}" if depfile.path else ""
    return f"target={shlex.quote(target)} awk{options} {words}{to}"


def _target(plan: Plan, depfile: Depfile, asked: Sequence[str]) -> str:
    given = _value(asked, "-MT", "--dependency-target-name") or _value(asked, "-o", "--output-file")
    if given:
        return given
    # A log does not show -o; what the stages make of the source tells it.
    if not asked:
        made = _made_from(plan, depfile)
        if made:
            return made
    source = plan.stages[depfile.stages[0]].inputs[:1]
    stem = posixpath.splitext(posixpath.basename("".join(source)))[0]
    return posixpath.join(_value(asked, "-odir", "--output-directory"), f"{stem}.o")


def _value(words: Sequence[str], *options: str) -> str:
    found = ""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, joined, value = word.partition("=")
        if name in options:
            found = value if joined else following
    return found


def _made_from(plan: Plan, depfile: Depfile) -> str:
    # One command may name several sources: the stages of each come before the next file of dependencies.
    end = min((one.stages[0] for one in plan.depfiles if one.stages > depfile.stages), default=None)
    read = {path for stage in plan.stages for path in stage.inputs}
    made = [path for stage in plan.stages[depfile.stages[-1] + 1 : end] for path in stage.outputs]
    return next((path for path in reversed(made) if path not in read and TEMP not in path), "")


def reads_headers(stage: Stage) -> bool:
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
    """The commands of a stage, so that its compiler tells a file of which headers it read; none where it cannot.

    The first is the compiler's own.
    """
    own = _value(stage.argv, "-MF", "-dependency-file")
    to = shlex.quote(depfile)
    # Ninja takes the file away, so it gets a copy of one that the plan writes itself.
    if own:
        return (*commands, f"cp {shlex.quote(own)} {to}")
    # It tells of dependencies in another way, which has to stay.
    if any(word.startswith("-M") for word in stage.argv):
        return ()
    # -MD and -MF are the driver's own; what it calls has other words for them.
    if stage.argv[1:2] == ("-cc1",):
        target = shlex.quote("".join(stage.outputs[:1]) or depfile)
        more = f"-sys-header-deps -MT {target} -dependency-file {to}"
    elif _LIKE_GCC.fullmatch(stage.tool):
        more = f"-MD -MF {to}"
    else:
        return ()
    return (f"{commands[0]} {more}", *commands[1:])
