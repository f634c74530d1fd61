"""Runs a replay: steps in parallel, in an order that keeps every file correct, each one measured."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Lock

from toolmatrix.compilation.cost import urgency
from toolmatrix.compilation.drivers.dry_run import LAST_LINES, end_group, start_group
from toolmatrix.compilation.replay import Replay, ReplayStep
from toolmatrix.documents import Amount, Count, Ordinal
from toolmatrix.errors import ToolMissing
from toolmatrix.process import processors
from toolmatrix.value import Document

SHELL = "/bin/sh"


class Timing(Document):
    """Cost of one step: seconds on the clock and of CPU, bytes of peak memory and of what it wrote.

    `start` is in seconds after the start of the run. The peak is that of its largest process.
    """

    stage: Count
    start: Amount
    wall: Amount
    cpu: Amount
    peak: Count
    size: Count
    said: str = ""


class Run(Document):
    """A whole run: `wall` seconds with `jobs` at once, on `cores` cores with a load before and after it.

    `floor` are bytes below which a peak says nothing: Linux counts to a process what the one that started it needed.
    """

    timings: tuple[Timing, ...]
    wall: Amount
    jobs: Ordinal
    cores: Ordinal
    load: tuple[Amount, Amount]
    floor: Count = 0


def run(replay: Replay, *, jobs: int = 0, cwd: Path | None = None) -> Run:
    """Run all steps in `cwd`, at most `jobs` at once, 0 for one on each core; those that most others wait for go first.

    Raises ToolMissing with the stage and its output at the first that fails; however the run ends, no process that it
    started is left.
    """
    folder = cwd or Path.cwd()
    for path in replay.needed:
        if not (folder / path).exists():
            raise ToolMissing(
                f"{path} is needed, but does not exist",
                help="run the whole plan once in this directory before you run a part of it",
            )
    for directory in replay.directories:
        (folder / directory).mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    started = time.perf_counter()
    cores = processors()
    timings = _Runner(replay, folder, jobs or cores).run()
    return Run(
        timings=tuple(sorted(timings, key=lambda timing: timing.stage)),
        wall=time.perf_counter() - started,
        jobs=jobs or cores,
        cores=cores,
        load=(load, os.getloadavg()[0]),
        # Linux keeps the peak of a process over exec, so a small program shows what we needed when it was forked.
        floor=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


class _Runner:
    def __init__(self, replay: Replay, folder: Path, jobs: int) -> None:
        self.folder = folder
        self.jobs = max(1, jobs)
        self.env = {**os.environ, **replay.env}
        self.steps = {step.id: step for step in replay.steps}
        self.waits = {step.id: set(step.after) for step in replay.steps}
        self.urgency = urgency(replay.steps)
        self.running: set[subprocess.Popen[bytes]] = set()
        self.lock = Lock()
        self.stopped = False
        self.started = time.perf_counter()

    def run(self) -> list[Timing]:
        done: list[Timing] = []
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                futures = self._start_ready(pool, 0)
                while futures:
                    ended, futures = wait(futures, return_when=FIRST_COMPLETED)
                    for future in ended:
                        timing = future.result()
                        done.append(timing)
                        for waiting in self.waits.values():
                            waiting.discard(timing.stage)
                    futures |= self._start_ready(pool, len(futures))
            finally:
                # A thread may be about to start a step, so it checks `stopped` under the same lock.
                with self.lock:
                    self.stopped = True
                    for child in self.running:
                        end_group(child)
        return done

    def _start_ready(self, pool: ThreadPoolExecutor, busy: int) -> set[Future[Timing]]:
        ready = sorted(
            (stage for stage, waiting in self.waits.items() if not waiting),
            key=lambda stage: (-self.urgency[stage], stage),
        )[: self.jobs - busy]
        for stage in ready:
            del self.waits[stage]
        return {pool.submit(self._measure, self.steps[stage]) for stage in ready}

    def _measure(self, step: ReplayStep) -> Timing:
        with tempfile.TemporaryFile() as output:
            start = time.perf_counter()
            with self.lock:
                if self.stopped:
                    raise ToolMissing(f"{step.name} was not started: the run was stopped")
                command = [SHELL, "-e", "-c", "\n".join(step.commands)]
                child = start_group(command, self.env, self.folder, output)
                self.running.add(child)
            # Popen.wait() does not report the memory and the CPU time of a child.
            _, status, used = os.wait4(child.pid, 0)
            wall = time.perf_counter() - start
            with self.lock:
                child.returncode = os.waitstatus_to_exitcode(status)
                self.running.discard(child)
            output.seek(0)
            printed = output.read().decode("utf-8", "replace")
        if child.returncode:
            raise _failure(step, child.returncode, printed)
        # A stage may name more than it writes.
        written = filter(Path.is_file, (self.folder / path for path in step.outputs))
        return Timing(
            stage=step.id,
            start=start - self.started,
            wall=wall,
            cpu=used.ru_utime + used.ru_stime,
            peak=used.ru_maxrss * 1024,
            size=sum(path.stat().st_size for path in written),
            said=printed,
        )


def _failure(step: ReplayStep, code: int, printed: str) -> ToolMissing:
    how = f"was killed by signal {-code}" if code < 0 else f"failed with exit code {code}"
    return ToolMissing(
        f"{step.name} {how}",
        found="\n".join(printed.splitlines()[-LAST_LINES:]),
        help="the stages before it have run; correct the reported error and run again",
    )
