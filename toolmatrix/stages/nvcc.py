"""Reads the lines of `nvcc --dryrun` and `nvcc -v`, of any number of runs at once."""

from __future__ import annotations

import re

from toolmatrix.stages import nvcc_plan, words
from toolmatrix.stages.model import Diagnostic
from toolmatrix.stages.nvcc_tools import Draft, draft, is_compiler
from toolmatrix.stages.prefixes import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.stages.model import Plan

_FIRST_OF_ALL = "_SPACE_"
"""The variable that every version prints, once."""
_PID = re.compile(r"tmpxft_([0-9a-fA-F]{6,16})_")
_REMOVES = frozenset({"rm", "erase", "del"})
_RESOURCES = re.compile(r"resource file (.*?): *\[(.*?)\]? *", re.DOTALL)
_DEPENDENCIES = "-- Filter Dependencies --"
_SAID = re.compile(r"(?:nvcc )?(fatal|error|warning|info)\s+: ?(.*)", re.DOTALL)
_FAILED = re.compile(r"# --error (0x[0-9a-fA-F]+) --")
_COMPLAINT = re.compile(r"\b(fatal error|error|warning|fatal)\b ?(?:#[\w-]+)? ?:")
_NOWHERE = frozenset({"/dev/null", "NUL", "nul"})
_SEVERITY = {"fatal": "error", "fatal error": "error", "info": "note"}


class _Run:
    """One run of nvcc as far as it has been read."""

    def __init__(self, line: int, env: dict[str, str]) -> None:
        self.line = line
        self.env = env
        self.drafts: list[Draft] = []
        self.said: list[Diagnostic] = []
        self.removed: list[str] = []
        self.resources: dict[str, Sequence[str]] = {}

    def windows(self) -> bool:
        """Whether this run was on Windows, where another shell reads the lines."""
        return "_WIN_PLATFORM_" in self.env or self.env.get("_HERE_", "")[1:2] == ":"

    def fresh(self) -> bool:
        """Whether it has said nothing but its variables."""
        return not self.drafts and not self.removed

    def say(self, line: int, severity: str, text: str, *, here: bool = True) -> None:
        """Note something about the latest stage, or about the run as a whole."""
        stage = len(self.drafts) - 1 if here and self.drafts else None
        self.said.append(Diagnostic(line=line, severity=severity, text=text, stage=stage))


class NvccReader:
    """Takes what nvcc says and tells its runs apart."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._waiting: list[_Run] = []
        self._by_pid: dict[str, _Run] = {}
        self._writer: dict[str, _Run] = {}
        self._latest: _Run | None = None
        self._early: list[tuple[int, str, str]] = []
        self._block: dict[str, str] | None = None
        self._words = words.Lexicon()

    def read(self, number: int, line: str) -> bool:
        """Take a line if it is nvcc's."""
        if line.startswith(MARK):
            self._marked(number, line[len(MARK) :])
            return True
        if line.startswith("# --error "):
            return self._failed(number, line)
        if line.startswith(("nvcc ", "fatal ")):
            return self._said(number, line)
        return self._bare(number, line)

    def message(self, number: int, line: str) -> None:
        """Hear a line between the commands."""
        found = _COMPLAINT.search(line[:2000])
        if found is not None and self._latest is not None:
            severity = _SEVERITY.get(found[1], found[1])
            self._latest.say(number, severity, line.strip())

    def plans(self) -> list[Plan]:
        """One plan for each run, in the order in which they begin."""
        if self._early:
            self._say_early(self._latest or self._begin(self._early[0][0], {}))
        return [
            nvcc_plan.plan(run.line, run.env, run.drafts, run.said, run.removed)
            for run in self._runs
        ]

    def _marked(self, number: int, text: str) -> None:
        first, _, rest = text.partition(" ")
        name, assigned, _ = first.partition("=")
        if assigned and name.isidentifier():
            self._variable(number, name, text[len(name) + 1 :])
            return
        self._block = None
        if first in _REMOVES:
            self._remove(number, rest.rstrip())
        elif text.startswith(_DEPENDENCIES):
            self._dependencies(number, text)
        elif text.startswith("resource file "):
            self._resource(number, text)
        else:
            self._command(number, text.rstrip())

    def _remove(self, number: int, path: str) -> None:
        run = self._run_of(number, _pid(path))
        if path:
            run.removed.append(words.plain(path))

    def _dependencies(self, number: int, text: str) -> None:
        run = self._run_of(number, None)
        target = text[len(_DEPENDENCIES) :].strip(" >")
        where = f"to `{words.plain(target)}`" if target else "to its standard output"
        run.say(number, "note", f"nvcc itself writes the dependencies {where}", here=False)

    def _variable(self, number: int, name: str, value: str) -> None:
        if self._block is None or (name == _FIRST_OF_ALL and name in self._block):
            self._block = {} if self._block is None else self._block
            run = self._begin(number, self._block)
            self._waiting.append(run)
            self._say_early(run)
        self._block[name] = value

    def _begin(self, number: int, env: dict[str, str]) -> _Run:
        run = _Run(number, env)
        self._runs.append(run)
        self._latest = run
        return run

    def _say_early(self, run: _Run) -> None:
        for number, severity, text in self._early:
            run.say(number, severity, text, here=False)
        self._early = []

    def _failed(self, number: int, line: str) -> bool:
        found = _FAILED.match(line)
        if found is None or self._latest is None:
            return False
        self._latest.say(number, "error", f"the command failed with exit code {int(found[1], 16)}")
        return True

    def _said(self, number: int, line: str) -> bool:
        found = _SAID.fullmatch(line)
        if found is None:
            return False
        severity = _SEVERITY.get(found[1], found[1])
        text = f"nvcc: {found[2].strip()}"
        pid = _pid(line)
        run = self._by_pid.get(pid) if pid else None
        if run is not None:
            run.say(number, severity, text, here=False)
        elif found[1] == "fatal":
            latest = self._latest
            owner = latest if latest is not None and latest.fresh() and latest.env else None
            owner = owner or self._begin(number, {})
            self._say_early(owner)
            owner.say(number, severity, text, here=False)
        else:
            self._early.append((number, severity, text))
        return True

    def _resource(self, number: int, text: str) -> None:
        found = _RESOURCES.fullmatch(text)
        if found is not None:
            run = self._run_of(number, _pid(text))
            run.resources[f"@{words.plain(found[1])}"] = self._words.split(found[2])[1]

    def _command(self, number: int, text: str) -> None:
        pid = _pid(text)
        run = self._by_pid.get(pid) if pid else None
        made, raw = self._draft(number, text, run)
        if run is None or self._waiting:
            run = self._run_of(number, pid, made.reads, made.writes)
        self._keep(run, made)
        self._doubt(run, made, raw)

    def _draft(self, number: int, text: str, run: _Run | None) -> tuple[Draft, Sequence[str]]:
        """A command read by itself, and its words with their quotes on."""
        run = run or (self._waiting[0] if self._waiting else self._latest)
        raw, plain = self._words.split(_without_outer_quotes(text))
        reads: list[str] = []
        writes: list[str] = []
        if ">" in text or "<" in text:
            plain, reads, writes = words.take_redirections(raw, plain)
        if run is not None and run.resources:
            plain = [one for word in plain for one in run.resources.get(word, (word,))]
        if not plain:
            return Draft(number, text, (), ""), raw
        if run is not None:
            plain[0] = words.variables(plain[0], run.env)
        writes = [path for path in writes if path not in _NOWHERE]
        return draft(number, text, plain, reads, writes), raw

    def _keep(self, run: _Run, made: Draft) -> None:
        run.drafts.append(made)
        for path in made.writes:
            self._writer[path] = run
        self._latest = run

    def _doubt(self, run: _Run, made: Draft, raw: Sequence[str]) -> None:
        if raw and not words.closed(raw[-1]):
            run.say(made.line, "warning", 'a `"` is not closed: the command is cut off')
        for word in self._words.expanded(raw[1:]):
            if not run.windows():
                run.say(made.line, "warning", f"the shell that nvcc calls will expand `{word}`")

    def _run_of(
        self, number: int, pid: str | None, reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> _Run:
        """The run that a command belongs to: by its pid, by the files it reads, or the one that spoke last."""
        run = self._by_pid.get(pid) if pid else None
        if run is not None and any(self._writer.get(path) is run for path in writes):
            # Another run may have got the pid, as in containers; two nvlinks of one run write one file.
            run = None if self._waiting else run
        if run is None and not pid:
            run = next((self._writer[path] for path in reads if path in self._writer), None)
            if run is None and not self._waiting:
                run = self._latest
        if run is None:
            run = self._waiting[0] if self._waiting else self._begin(number, {})
        if run in self._waiting:
            self._waiting.remove(run)
        if pid:
            self._by_pid[pid] = run
        self._latest = run
        return run

    def _bare(self, number: int, line: str) -> bool:
        """Take a command that a person or make ran, if it goes on with what a run of nvcc wrote."""
        if not self._writer or " -o " not in line or line[:1].isspace():
            return False
        if len(self._runs) != 1 or not is_compiler(line.partition(" ")[0]):
            return False
        made, _ = self._draft(number, line.rstrip(), None)
        run = next((self._writer[path] for path in made.reads if path in self._writer), None)
        if run is None or made.kind != "link":
            return False
        self._keep(run, made)
        run.say(number, "note", "not a command of nvcc, but it reads what this run writes")
        return True


def _pid(text: str) -> str | None:
    """The process id in the name of a temp file that a text names first."""
    found = _PID.search(text) if nvcc_plan.TEMP in text else None
    return found[1] if found is not None else None


def _without_outer_quotes(text: str) -> str:
    """A line that nvcc quoted as a whole once more, for `cmd /c`, without these quotes."""
    if text.startswith('""') and text.endswith('"') and text[2:3] not in ("", " "):
        return text[1:-1]
    return text
