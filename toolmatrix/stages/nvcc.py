"""Reads the lines of `nvcc --dryrun` and `nvcc -v`, of any number of runs at once."""

from __future__ import annotations

import re

from toolmatrix.stages import nvcc_plan, words
from toolmatrix.stages.model import Diagnostic
from toolmatrix.stages.nvcc_tools import Draft, draft, is_compiler, program_words
from toolmatrix.stages.prefixes import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.stages.model import Plan

_ENV = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_FIRST_OF_ALL = "_SPACE_"
"""The variable that every version prints, once."""
_PID = re.compile(r"tmpxft_([0-9a-fA-F]{6,16})_[0-9a-fA-F]+-(\w+?)_")
_REMOVE = re.compile(r"(?:rm|erase|del)(?: |$)")
_RESOURCES = re.compile(r"resource file (.*?): *\[(.*?)\]? *", re.DOTALL)
_DEPENDENCIES = "-- Filter Dependencies --"
_SAID = re.compile(r"(?:nvcc )?(fatal|error|warning|info)\s+: ?(.*)", re.DOTALL)
_FAILED = re.compile(r"# --error (0x[0-9a-fA-F]+) --")
_COMPLAINT = re.compile(r"\b(fatal error|error|warning|fatal)\b ?(?:#[\w-]+)? ?:")
_SEVERITY = {"fatal": "error", "fatal error": "error", "info": "note"}


class _Run:
    """One run of nvcc as far as it has been read."""

    def __init__(self, line: int, env: dict[str, str]) -> None:
        self.line = line
        self.env = env
        self.drafts: list[Draft] = []
        self.said: list[Diagnostic] = []
        self.removed: list[str] = []
        self.written: set[str] = set()
        self.stems: dict[str, str] = {}
        self.resources: dict[str, Sequence[str]] = {}
        self.pid: str | None = None

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
        self._plain: dict[str, str] = {}

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
        variable = _ENV.fullmatch(text)
        if variable is not None:
            self._variable(number, variable[1], variable[2])
            return
        self._block = None
        if _REMOVE.match(text):
            path = text.partition(" ")[2].rstrip()
            run = self._run_of(number, text, (), ())
            if path:
                run.removed.append(words.plain(path))
        elif text.startswith(_DEPENDENCIES):
            run = self._run_of(number, text, (), ())
            target = text[len(_DEPENDENCIES) :].strip(" >")
            where = f"to `{words.plain(target)}`" if target else "to its standard output"
            run.say(number, "note", f"nvcc itself writes the dependencies {where}", here=False)
        elif text.startswith("resource file "):
            self._resource(number, text)
        else:
            self._command(number, text)

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
        pid = _PID.search(line)
        run = self._by_pid.get(pid[1]) if pid else None
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
            run = self._run_of(number, text, (), ())
            run.resources[words.plain(found[1])] = words.raw(found[2])

    def _command(self, number: int, text: str) -> None:
        text = text.rstrip()
        run = self._run_named(text)
        env = run.env if run is not None else self._env()
        made, raw = self._draft(number, text, env, run)
        if run is None or self._waiting:
            run = self._run_of(number, text, made.reads, made.writes)
        self._keep(run, made)
        self._doubt(run, made, raw)

    def _env(self) -> dict[str, str]:
        if self._waiting:
            return self._waiting[0].env
        return self._latest.env if self._latest is not None else {}

    def _draft(
        self, number: int, text: str, env: dict[str, str], run: _Run | None
    ) -> tuple[Draft, Sequence[str]]:
        unquoted = text
        if text.startswith('""') and text.endswith('"') and text[2:3] not in ("", " "):
            unquoted = text[1:-1]  # cmd /c takes a line of its own in quotes
        raw = words.raw(unquoted)
        reads: list[str] = []
        writes: list[str] = []
        if ">" in text or "<" in text:
            raw, reads, writes = words.take_redirections(raw)
        plain = program_words(raw, env)
        owner = run or self._latest
        if owner is not None and owner.resources:
            plain = [
                word
                for one in plain
                for word in (
                    map(words.plain, owner.resources[one[1:]])
                    if one[:1] == "@" and one[1:] in owner.resources
                    else (one,)
                )
            ]
        made = draft(number, text, plain) if plain else Draft(number, text, plain, "")
        made.reads += reads
        made.writes += writes
        return made, raw

    def _keep(self, run: _Run, made: Draft) -> None:
        run.drafts.append(made)
        run.written.update(made.writes)
        for path in made.writes:
            self._writer[path] = run
        self._latest = run

    def _doubt(self, run: _Run, made: Draft, raw: Sequence[str]) -> None:
        if not words.balanced(made.text):
            run.say(made.line, "warning", 'a `"` is not closed: the command is cut off')
        if not run.windows() and words.may_expand(made.text):
            for word in words.expanded_by_shell(raw[1:]):
                run.say(made.line, "warning", f"the shell that nvcc calls will expand `{word}`")

    def _run_named(self, text: str) -> _Run | None:
        found = _PID.search(text) if nvcc_plan.TEMP in text else None
        return self._by_pid.get(found[1]) if found is not None else None

    def _run_of(self, number: int, text: str, reads: Sequence[str], writes: Sequence[str]) -> _Run:
        """The run that a command belongs to: by its pid, by the files it reads, or the one that spoke last."""
        found = _PID.search(text) if nvcc_plan.TEMP in text else None
        run = self._by_pid.get(found[1]) if found is not None else None
        if run is not None and self._waiting and not run.written.isdisjoint(writes):
            run = None  # the pid is another run's now, as in containers
        if run is None and found is None:
            run = next((self._writer[path] for path in reads if path in self._writer), None)
            if run is None and not self._waiting:
                run = self._latest
        if run is None:
            run = self._waiting[0] if self._waiting else self._begin(number, {})
        if run in self._waiting:
            self._waiting.remove(run)
        if found is not None and run.pid is None:
            run.pid = found[1]
        if found is not None:
            self._by_pid[found[1]] = run
        self._latest = run
        return run

    def _bare(self, number: int, line: str) -> bool:
        """Take a command that a person or make ran, if it goes on with what a run of nvcc wrote."""
        if not self._writer or not line[:1].isalnum() or " -o " not in line:
            return False
        program = line.partition(" ")[0]
        if not is_compiler(program[program.rfind("/") + 1 :]):
            return False
        made, _ = self._draft(number, line.rstrip(), {}, None)
        run = next((self._writer[path] for path in made.reads if path in self._writer), None)
        if run is None or made.kind != "link":
            return False
        self._keep(run, made)
        run.say(number, "note", "not a command of nvcc, but it reads what this run writes")
        return True
