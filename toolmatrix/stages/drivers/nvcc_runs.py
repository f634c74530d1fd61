"""Tells apart the runs of nvcc whose lines are mixed in one log."""

from __future__ import annotations

import re

from toolmatrix.stages.drivers.nvcc_plan import TEMP
from toolmatrix.stages.model import Diagnostic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolmatrix.stages.drivers.nvcc_tools import Draft

_LONGEST_PID = 16
_NUMBERED = re.compile(r"tmpxft_[0-9a-fA-F]+_[0-9a-fA-F]+-([0-9a-fA-F]+)_([^.]*)")
# Variables that a run prints once, before any that it prints twice.
_FIRST = frozenset({"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "_NVVM_BRANCH_", "_SPACE_"})


def pid_of(text: str) -> str | None:
    """The process id in the name of the temp file that a text names first."""
    begin = text.find(TEMP) + len(TEMP)
    return text[begin : text.find("_", begin)][:_LONGEST_PID] if begin >= len(TEMP) else None


class Run:
    """One run of nvcc as far as it has been read."""

    def __init__(self, line: int, env: dict[str, str]) -> None:
        self.line = line
        self.env = env
        self.drafts: list[Draft] = []
        self.said: list[Diagnostic] = []
        self.removed: dict[str, None] = {}
        self.resources: dict[str, Sequence[str]] = {}
        self.lost_mark = False
        """Whether it is said already that commands of it are left out."""
        self.depfiles: list[tuple[str, int]] = []
        """Where nvcc writes dependencies, and how many commands stand before that."""
        self._numbers: dict[str, str] = {}
        self._counted = 0

    def windows(self) -> bool:
        """Whether this run was on Windows, where another shell reads the lines."""
        return "_WIN_PLATFORM_" in self.env or self.env.get("_HERE_", "")[1:2] == ":"

    def fresh(self) -> bool:
        """Whether it has said nothing but its variables."""
        return not self.drafts and not self.removed

    def only_removes(self) -> bool:
        """Whether it has done nothing but remove files, as `nvcc -clean` does."""
        return bool(self.removed) and not self.drafts

    def say(self, line: int, severity: str, text: str, *, here: bool = True) -> None:
        """Note something about the latest stage, or about the run as a whole."""
        stage = len(self.drafts) - 1 if here and self.drafts else None
        self.said.append(Diagnostic(line=line, severity=severity, text=text, stage=stage))

    def cannot_write(self, paths: Iterable[str]) -> bool:
        """Whether temp files are another run's with the same pid: a run numbers its own, and uses no number twice."""
        for draft in self.drafts[self._counted :]:
            self._numbers.update(_NUMBERED.findall(" ".join(draft.writes)))
        self._counted = len(self.drafts)
        return any(
            self._numbers.get(number, stem) != stem
            for number, stem in _NUMBERED.findall(" ".join(paths))
        )


class Runs:
    """The runs of a log, in the order in which they begin."""

    def __init__(self) -> None:
        self.all: list[Run] = []
        self.latest: Run | None = None
        self.waiting: dict[Run, None] = {}
        """Runs that have said nothing but their variables; they share these, for the lines may be mixed."""
        self._foreign = False
        self._counts: dict[str, int] = {}
        self._by_pid: dict[str, Run] = {}
        self._writer: dict[str, Run] = {}

    def begin(self, line: int, env: dict[str, str] | None = None) -> Run:
        """A run of which nothing was read before this line."""
        run = Run(line, {} if env is None else env)
        self.all.append(run)
        self.latest = run
        return run

    def set_up(self) -> None:
        """Note that the variables to come, up to the first of a run or a command, are those of a host compiler."""
        self._foreign = True

    def variable(self, line: int, name: str, value: str) -> Run | None:
        """The run, begun by this line or before, that prints a variable; None for one of a host compiler's."""
        if not self.waiting and self.latest and self.latest.windows():
            self._foreign |= name not in self.latest.env
        self._foreign &= name not in _FIRST
        if self._foreign:
            return None
        if not self.waiting:
            self._counts = {}
        if name in _FIRST:
            self._counts[name] = self._counts.get(name, 0) + 1
        if not self.waiting or self._counts.get(name, 0) > len(self.waiting):
            env = next(reversed(self.waiting)).env if self.waiting else {}
            self.waiting[self.begin(line, env)] = None
        run = next(reversed(self.waiting))
        run.env[name] = value
        return run

    def known(self, pid: str | None) -> Run | None:
        """The run of a pid, if it is certain."""
        return self._by_pid.get(pid) if pid and not self.waiting else None

    def named(self, pid: str | None) -> Run | None:
        """The latest run of a pid."""
        return self._by_pid.get(pid) if pid else None

    def of(
        self,
        line: int,
        pid: str | None,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
        *,
        removes: str = "",
    ) -> Run:
        """The run that a command belongs to: by its pid, by the files it reads, or the one that spoke last."""
        run = self.named(pid)
        if run is not None and self.waiting and self._is_another(run, writes, removes):
            run = None
        if run is None and not pid:
            cleans = removes and self.latest and self.latest.only_removes()
            run = self.latest if cleans else self.writer(reads)
            if run is None and not self.waiting:
                run = self.latest
        if run is None:
            run = next(iter(self.waiting), None) or self.begin(line)
        self.spoke(run)
        if pid:
            self._by_pid[pid] = run
        return run

    def _is_another(self, run: Run, writes: Sequence[str], removes: str) -> bool:
        """Whether a pid has come again, as it does where each run has a container."""
        if removes:
            return removes in run.removed or run.cannot_write([removes])
        again = bool(writes) and all(self._writer.get(path) is run for path in writes)
        return again or run.cannot_write(writes)

    def spoke(self, run: Run) -> None:
        """Note that a run has gone on, or given up, after its variables."""
        self._foreign = False
        self.latest = run
        if run in self.waiting:
            del self.waiting[run]
            self._counts = {name: count - 1 for name, count in self._counts.items()}

    def writer(self, paths: Iterable[str]) -> Run | None:
        """The run that wrote the first of some files that any wrote."""
        return next((self._writer[path] for path in paths if path in self._writer), None)

    def keep(self, run: Run, draft: Draft) -> None:
        """Add a command to a run."""
        run.drafts.append(draft)
        for path in draft.writes:
            self._writer[path] = run
        self.latest = run

    def next(self) -> Run | None:
        """The run that most likely speaks next."""
        return next(iter(self.waiting), self.latest)
