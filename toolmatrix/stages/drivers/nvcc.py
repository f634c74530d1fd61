"""Reads the lines of `nvcc --dryrun` and `nvcc -v`, of any number of runs at once.

The words of a stage are what its program gets: redirections are its inputs and outputs and no words, a response file
that the log shows stands for itself, and in the program's path the log's own variables are put in.
"""

from __future__ import annotations

import re

from toolmatrix.lines import MARK
from toolmatrix.stages import words
from toolmatrix.stages.drivers import nvcc_plan
from toolmatrix.stages.drivers.nvcc_plan import TEMP
from toolmatrix.stages.drivers.nvcc_runs import Run, Runs, pid_of
from toolmatrix.stages.drivers.nvcc_tools import Draft, draft, is_compiler, is_known, is_tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.stages.model import Plan

_REMOVES = frozenset({"rm", "erase", "del"})
_RESOURCES = re.compile(r"resource file (.*?): *\[(.*)", re.DOTALL)
_DEPENDENCIES = "-- Filter Dependencies --"
_SAID = re.compile(r"(?:nvcc )?(fatal|error|warning|info)\s+: ?(.*)", re.DOTALL)
_FAILED = re.compile(r"# --error (0x[0-9a-fA-F]{1,8}) --")
_COMPLAINT = re.compile(
    r"\b(?:(fatal error|error|warning|fatal)\b ?(?:#[\w-]+)? ?:|No such file|command not found)"
)
_RACE = re.compile(r"Could not open input file .*_std(?:out|err)")
_VARIABLE = re.compile(r"[A-Za-z_][\w().]*")
# The batch file from which nvcc takes the environment of Microsoft's compiler, and prints it.
_SETS_UP = re.compile(r'(?i)(?:call )?"?[a-z]:[^"]*\b(?:vcvars\w*|vsdevcmd|setenv)\.(?:bat|cmd)\b')
_NOWHERE = frozenset({"/dev/null", "NUL", "nul"})
_SEVERITY = {"fatal": "error", "fatal error": "error", "info": "note", None: "error"}
_LONGEST_MESSAGE = 2000


class NvccReader:
    """Takes what nvcc says; what it does not say itself is heard as a message."""

    def __init__(self) -> None:
        self._runs = Runs()
        self._early: list[tuple[int, str, str]] = []
        self._words = words.Lexicon()

    def read(self, number: int, line: str) -> bool:
        """Take a line if it is nvcc's."""
        if line.startswith(MARK):
            return self._marked(number, line[len(MARK) :])
        text = line.strip(" ")
        if text.startswith("# --error "):
            return self._failed(number, text)
        if text.startswith(("nvcc ", "fatal ")):
            return self._said(number, text)
        return self._bare(number, line)

    def message(self, number: int, line: str) -> None:
        """Hear a line between the commands."""
        if TEMP in line:
            self._doubt_mark(number, line)
        found = _COMPLAINT.search(line[:_LONGEST_MESSAGE])
        if found is not None and self._runs.latest is not None:
            severity = _SEVERITY.get(found[1], found[1])
            self._runs.latest.say(number, severity, line.strip()[:_LONGEST_MESSAGE])

    def _doubt_mark(self, number: int, line: str) -> None:
        """Say so where a command of a run has lost its mark on its way into the log."""
        run = self._runs.named(pid_of(line))
        program = line.partition(" ")[0].strip('"')
        if run is not None and not run.lost_mark and (is_tool(program) or is_compiler(program)):
            run.lost_mark = True
            why = "commands without the mark `#$` are left out, this one first: a part of the log is missing"
            run.say(number, "warning", why, here=False)

    def plans(self) -> list[Plan]:
        """One plan for each run, in the order in which they begin."""
        if self._early:
            self._say_early(self._runs.latest or self._runs.begin(self._early[0][0]))
        return [
            nvcc_plan.plan(run.line, run.env, run.drafts, run.said, run.removed, run.depfiles)
            for run in self._runs.all
            if run.env or run.said or run.removed or any(map(_is_of_nvcc, run.drafts))
        ]

    def _marked(self, number: int, text: str) -> bool:
        first, _, rest = text.partition(" ")
        name, assigned, _ = first.partition("=")
        if assigned and (name.isidentifier() or _VARIABLE.fullmatch(name)):
            run = self._runs.variable(number, name, text[len(name) + 1 :])
            if self._early and run:
                self._say_early(run)
        elif first in _REMOVES:
            self._remove(number, rest.rstrip())
        elif text.startswith(_DEPENDENCIES):
            self._dependencies(number, text)
        elif text.startswith("resource file "):
            self._resource(number, text)
        elif first == "nvcc" and self._said(number, text):
            pass  # some releases mark what they say themselves
        elif _SETS_UP.match(text):
            self._runs.set_up()
        elif text and not text.isspace():
            self._command(number, text.rstrip())
        else:
            return False
        return True

    def _remove(self, number: int, path: str) -> None:
        path = words.plain(path)
        run = self._runs.of(number, pid_of(path), [path], removes=path)
        if path:
            run.removed[path] = None

    def _dependencies(self, number: int, text: str) -> None:
        run = self._runs.latest or self._runs.begin(number)
        target = words.plain(text[len(_DEPENDENCIES) :].strip(" >"))
        run.depfiles.append((target, len(run.drafts)))
        where = f"to `{target}`" if target else "to its standard output"
        run.say(number, "note", f"nvcc itself writes the dependencies {where}", here=False)

    def _say_early(self, run: Run) -> None:
        for number, severity, text in self._early:
            run.say(number, severity, text, here=False)
        self._early = []

    def _failed(self, number: int, line: str) -> bool:
        found = _FAILED.match(line)
        if found is None or self._runs.latest is None:
            return False
        code = int(found[1], 16)
        self._runs.latest.say(number, "error", f"the command failed with exit code {code}")
        return True

    def _said(self, number: int, line: str) -> bool:
        found = _SAID.fullmatch(line)
        if found is None:
            return False
        severity = _SEVERITY.get(found[1], found[1])
        text = f"nvcc: {found[2].strip()}"[:_LONGEST_MESSAGE]
        run = self._runs.named(pid_of(line))
        if run is None and found[1] == "fatal":
            run = self._gives_up(number)
        if run is None:
            self._early.append((number, severity, text))
            return True
        run.say(number, severity, text, here=False)
        if _RACE.search(text):
            why = "its threads race in a dry run: what they would have run is missing here"
            run.say(number, "note", why, here=False)
        return True

    def _gives_up(self, number: int) -> Run:
        """The run that ends before its first command: one that has said nothing else yet."""
        latest = self._runs.latest
        run = latest if latest in self._runs.waiting else None
        run = run or self._runs.begin(number)
        self._runs.spoke(run)
        self._say_early(run)
        return run

    def _resource(self, number: int, text: str) -> None:
        found = _RESOURCES.fullmatch(text)
        if found is not None:
            run = self._runs.of(number, pid_of(text))
            content = found[2].rstrip().removesuffix("]")
            run.resources[f"@{nvcc_plan.alike(words.plain(found[1]))}"] = self._words.split(
                content
            )[1]

    def _command(self, number: int, text: str) -> None:
        pid = pid_of(text)
        run = self._runs.known(pid)
        made, raw = self._draft(number, text, run or self._runs.next())
        if run is None:
            run = self._runs.of(number, pid, made.reads, made.writes)
        self._runs.keep(run, made)
        self._doubt(run, made, raw)

    def _draft(self, number: int, text: str, run: Run | None) -> tuple[Draft, Sequence[str]]:
        """A command read by itself, and its words with their quotes on."""
        raw, plain = self._words.split(_without_outer_quotes(words.without_messages(text)))
        reads: list[str] = []
        writes: list[str] = []
        if ">" in text or "<" in text:
            plain, reads, writes = words.take_redirections(raw, plain)
            writes = [path for path in writes if path not in _NOWHERE]
        if run is not None and run.resources:
            plain = [one for word in plain for one in _content(run, word)]
        if not plain:
            return Draft(number, text, (), ""), raw
        if run is not None:
            plain[0] = words.variables(plain[0], run.env)
        return draft(number, text, plain, reads, writes), raw

    def _doubt(self, run: Run, made: Draft, raw: Sequence[str]) -> None:
        if raw and not words.closed(raw[-1]):
            run.say(made.line, "warning", 'a `"` is not closed: the command is cut off')
        for word in self._words.expanded(raw[1:]):
            if not run.windows():
                run.say(made.line, "warning", f"the shell that nvcc calls will expand `{word}`")

    def _bare(self, number: int, line: str) -> bool:
        """Take a command that a person or make ran, if it goes on with what the only run of nvcc wrote."""
        if len(self._runs.all) != 1 or " -o " not in line or line[:1].isspace():
            return False
        if not is_compiler(line.partition(" ")[0]):
            return False
        made, _ = self._draft(number, line.rstrip(), None)
        run = self._runs.writer(made.reads)
        if run is None or made.kind != "link":
            return False
        self._runs.keep(run, made)
        run.say(number, "note", "not a command of nvcc, but it reads what this run writes")
        return True


def _content(run: Run, word: str) -> Sequence[str]:
    """What a word stands for: the words of a response file that the log shows, or itself."""
    if word[:1] != "@":
        return (word,)
    return run.resources.pop(nvcc_plan.alike(word), (word,))


def _is_of_nvcc(made: Draft) -> bool:
    """Whether a command is one that nvcc may print; other programs mark lines as it does."""
    return is_known(made) or nvcc_plan.TEMP in made.text


def _without_outer_quotes(text: str) -> str:
    """A line that nvcc quoted as a whole once more, for `cmd /c`, without these quotes."""
    if text.startswith('""') and text.endswith('"') and text[2:3] not in ("", " "):
        return text[1:-1]
    return text
