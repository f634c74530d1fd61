"""Subjects judged in processes of their own, several at a time where that is asked for, each result as it comes."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from toolmatrix.cli.worker import ENDING, Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType
    from typing import Any

    from typing_extensions import Self

    from toolmatrix.cli.worker import Bounds, Outcome, Work


class _Ended(BaseException):
    """A signal that ends this process, once its workers are gone."""


class Fleet:
    """So many workers, as they are needed; at the end none is left, whatever ends it."""

    def __init__(self, work: Work, bounds: Bounds, jobs: int = 1) -> None:
        self.work = work
        self.bounds = bounds
        self.jobs = jobs
        self.idle: list[Worker] = []
        self.busy: dict[Worker, str] = {}
        self._handlers: dict[int, Any] = {}
        self._caught = 0

    def __enter__(self) -> Self:
        self.lifeline = os.pipe()
        for number in ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:
                with suppress(ValueError):  # only the main thread can
                    self._handlers[number] = signal.signal(number, self._end)
        return self

    def _end(self, number: int, _frame: FrameType | None) -> None:
        if not self._caught:
            self._caught = number
            raise _Ended

    def outcomes(self, tasks: Mapping[str, tuple[object, ...]]) -> Iterator[tuple[str, Outcome]]:
        """What came of each task, by its name, in the order in which they are done."""
        left = list(tasks.items())[::-1]
        while left or self.busy:
            while left and len(self.busy) < self.jobs:
                name, task = left.pop()
                worker = self.idle.pop() if self.idle else self._worker()
                self.busy[worker] = name
                worker.begin(*task)
            worker = self._first()
            outcome = worker.outcome()
            name = self.busy.pop(worker)
            if not worker.line.closed:
                self.idle.append(worker)
            yield name, outcome

    def _worker(self) -> Worker:
        return Worker(self.work, self.bounds, self.lifeline)

    def _first(self) -> Worker:
        """The worker that is done first, or whose time is over."""
        from multiprocessing.connection import wait

        soonest = min(self.busy, key=lambda worker: worker.deadline)
        patience = max(0.0, soonest.deadline - time.monotonic())
        ready = wait([worker.line for worker in self.busy], patience)
        return next((worker for worker in self.busy if worker.line in ready), soonest)

    def __exit__(self, *_: object) -> None:
        workers = [one for one in (*self.busy, *self.idle) if not one.line.closed]
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.end()
        for end in self.lifeline:
            os.close(end)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if self._caught:
            os.kill(os.getpid(), self._caught)
