"""Measures child processes: CPU seconds, wall seconds, peak memory, and ratios of interleaved pairs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

# A child's peak counts the pages of the process that started it, so the starter must be small: a bare interpreter.
_PEAK = """
import os, sys
null = os.open(os.devnull, os.O_WRONLY)
opened = [(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=opened)
_, status, used = os.wait4(child, 0)
print(used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


class Spread(NamedTuple):
    """The median of some measurements, and the least and the most of them."""

    median: float
    least: float
    most: float


class Cost(NamedTuple):
    """What one run took, in seconds."""

    cpu: float
    wall: float


class Pairs(NamedTuple):
    """Interleaved runs of two commands: ours, theirs, and the spread of ours / theirs within each pair."""

    ours: Spread
    theirs: Spread
    ratio: Spread


class Place(NamedTuple):
    """Where commands run: a directory without settings files, and an environment without settings."""

    directory: str
    env: Mapping[str, str]

    def output(self, command: Sequence[str]) -> str:
        """The standard output of a command. Raises SystemExit with all it printed if it fails."""
        done = subprocess.run(
            command, cwd=self.directory, env=self.env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(
                f"{' '.join(command)[:200]} failed:\n{(done.stdout + done.stderr)[-4000:]}"
            )
        return done.stdout

    def cost(self, command: Sequence[str]) -> Cost:
        """Run a command with its output read from a pipe. Raises SystemExit with what it printed if it fails."""
        start = time.perf_counter()
        child = subprocess.Popen(
            command,
            cwd=self.directory,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said = child.stdout.read() if child.stdout else b""
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(
                f"{' '.join(command)[:200]} failed:\n{said.decode(errors='replace')[-4000:]}"
            )
        return Cost(used.ru_utime + used.ru_stime, wall)

    def pairs(self, ours: Sequence[str], theirs: Sequence[str], count: int) -> tuple[Pairs, Pairs]:
        """CPU and wall seconds of A B A B ..., after one run of each that does not count."""
        self.cost(ours)
        self.cost(theirs)
        runs = [(self.cost(ours), self.cost(theirs)) for _ in range(count)]
        return _paired(runs, lambda cost: cost.cpu), _paired(runs, lambda cost: cost.wall)

    def spread(self, command: Sequence[str], count: int) -> Spread:
        """CPU seconds of a command alone, after a run that does not count."""
        self.cost(command)
        return spread([self.cost(command).cpu for _ in range(count)])

    def peak(self, command: Sequence[str], count: int) -> Spread:
        """Peak resident memory in MiB."""
        starter = [sys.executable, "-I", "-S", "-c", _PEAK, *command]
        return spread([int(self.output(starter)) / 1024 for _ in range(count)])


def spread(values: Sequence[float]) -> Spread:
    """Median, least and most."""
    return Spread(median(values), min(values), max(values))


def mean(parts: Sequence[Spread]) -> Spread:
    """The mean of several, part by part."""
    return Spread(*(sum(values) / len(parts) for values in zip(*parts, strict=True)))


def _paired(runs: Sequence[tuple[Cost, Cost]], part: Callable[[Cost], float]) -> Pairs:
    ours = [part(one) for one, _ in runs]
    theirs = [part(other) for _, other in runs]
    return Pairs(
        spread(ours),
        spread(theirs),
        spread([one / other for one, other in zip(ours, theirs, strict=True)]),
    )
