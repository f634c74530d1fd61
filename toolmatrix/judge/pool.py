"""A pool of processes, each doing one piece of work after another within bounds of time, processor time and memory.

`concurrent.futures` would not do: it neither ends a worker whose work takes too long nor bounds what one may take.
"""

from __future__ import annotations

import math
import os
import pickle
import signal
import time
from contextlib import contextmanager, suppress

from toolmatrix import __version__
from toolmatrix.errors import BoundExceeded, ToolmatrixError
from toolmatrix.value import Value
from toolmatrix.wording import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.connection import Connection
    from types import FrameType
    from typing import Any, NoReturn

    from typing_extensions import Self

    from toolmatrix.facts.index import Index

    Line = Connection[Any, Any]
    Work = Callable[..., Any]

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a process, once what it started is removed."""
# Seconds in which a worker that is ended removes what it started, such as containers.
_GRACE = 30


class IndexedWork(Value):
    """Work that is done piece by piece, here or elsewhere: an index, and beside it fields that can be pickled."""

    index: Index

    @property
    def settings(self) -> tuple[object, ...]:
        """What decides the results of pieces besides the matrix and the pieces."""
        return ()

    @property
    def key(self) -> str:
        """A digest of what decides the results of pieces besides the pieces."""
        from hashlib import sha256

        # With the version of the program: a later one may see or judge more.
        decides = (__version__, self.index.header["digest"], *self.settings)
        return sha256(repr(decides).encode()).hexdigest()

    def attempt(self, *task: Any, **named: Any) -> Any:
        """The result of a piece."""
        raise NotImplementedError


class WorkBounds(Value):
    """Bounds of a piece of work: seconds, seconds of processor time, and MiB of memory; 0 where there is none."""

    seconds: int = 0
    processor: int = 0
    memory: int = 0

    def exceeded(self, option: str) -> BoundExceeded:
        """The error for the bound that an option sets."""
        bounds = {
            "--timeout": f"longer than {plural(self.seconds, 'second')}",
            "--cpu-time": f"more than {plural(self.processor, 'second')} of processor time",
            "--memory": f"more than {self.memory} MiB of memory, or than the system gives",
        }
        return BoundExceeded(f"it takes {bounds[option]}", help=f"raise the limit with `{option}`")


class WorkResult(Value):
    """The result of a piece of work: a value, or an error, and for a defect its traceback."""

    value: Any = None
    error: Exception | None = None
    traceback: str = ""

    def result(self) -> Any:
        """The value; raises the error."""
        if self.error is not None:
            raise self.error from (_Shown(self.traceback) if self.traceback else None)
        return self.value


# A traceback cannot be pickled; its text stands where `raise from` shows it.
class _Shown(Exception):
    pass


# Not an Exception: work may catch those, and would go on beyond its bound.
class _ProcessorBound(BaseException):
    pass


class Worker:
    """A process that does `work`, which ends when no other process has the writing end of `lifeline` any more."""

    def __init__(self, work: Work, bounds: WorkBounds, lifeline: tuple[int, int]) -> None:
        from multiprocessing import Pipe

        self.bounds = bounds
        self.deadline = 0.0
        self.line, theirs = Pipe()
        self.process = _fork()
        if not self.process:
            self.line.close()
            os.close(lifeline[1])
            _serve(theirs, work, bounds, lifeline[0])
        theirs.close()

    def begin(self, *task: object) -> None:
        """Give it something to do: the arguments of `work`."""
        self.deadline = time.monotonic() + (self.bounds.seconds or math.inf)
        with suppress(OSError):  # its outcome tells that it is gone
            self.line.send(task)

    @property
    def patience(self) -> float | None:
        """The seconds until its deadline; None where it has none."""
        return None if self.deadline == math.inf else max(0.0, self.deadline - time.monotonic())

    def outcome(self) -> WorkResult:
        """Its result, waited for until the deadline; a worker that a bound stopped is ended."""
        try:
            if self.line.poll(self.patience):
                made: WorkResult = self.line.recv()
            else:
                made = WorkResult(error=self.bounds.exceeded("--timeout"))
        except (EOFError, OSError):
            return WorkResult(error=_ended(self.end()))
        # After a bound its memory may be in any state; a new one starts clean.
        if isinstance(made.error, BoundExceeded):
            self.end()
        self.deadline = 0.0
        return made

    def stop(self) -> None:
        """Tell it to end: by a signal where it is at work, else by giving it nothing to do."""
        with suppress(OSError):
            if self.deadline:
                os.kill(self.process, signal.SIGTERM)
            else:
                self.line.send(())

    def end(self) -> int:
        """Stop it, wait for it, and return its exit code; the processor time that it took is then counted here."""
        self.stop()
        patience = time.monotonic() + _GRACE
        with suppress(EOFError, OSError):
            while self.line.poll(max(0.0, patience - time.monotonic())):
                self.line.recv()
            os.kill(self.process, signal.SIGKILL)
        self.line.close()
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def _fork() -> int:
    import warnings

    with warnings.catch_warnings():
        # Python warns of a fork where threads run (os.fork, since 3.12), and the program has none.
        warnings.simplefilter("ignore", DeprecationWarning)
        # A fork and not a new interpreter: it has the modules, the opened matrix and the standard input already.
        return os.fork()


def _ended(code: int) -> ToolmatrixError:
    if code == -signal.SIGKILL:
        return BoundExceeded(
            "the system killed the process that read it, as it does when memory runs out",
            help="set a lower limit with `--memory`, or use fewer `--jobs`",
        )
    if -code in ENDING:
        return BoundExceeded(
            "the process that read it was ended from outside",
            found=signal.Signals(-code).name,
            help="judge it again with `--resume`",
        )
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return ToolmatrixError("the process that read it ended", found=how, help="report it")


def _serve(line: Line, work: Work, bounds: WorkBounds, lifeline: int) -> NoReturn:
    import threading

    code = 1
    try:
        # A terminal sends Ctrl-C to every process of the group, and the one that talks to the user ends the others.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in ENDING:
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
        while task := line.recv():
            line.send(_done(work, task, bounds))
        code = 0
    except (EOFError, OSError):
        pass
    finally:
        # Not `sys.exit`: buffers and handlers of the parent were copied, and are not this process's to flush or run.
        os._exit(code)


def _end_with_parent(lifeline: int) -> None:
    # Returns only at the end of the file, which comes when the last process that holds the other end is gone.
    os.read(lifeline, 1)
    # As by a signal, so that what was started is removed first.
    os.kill(os.getpid(), signal.SIGTERM)


def _done(work: Work, task: tuple[object, ...], bounds: WorkBounds) -> WorkResult:
    try:
        with _within(bounds):
            return WorkResult(value=work(*task))
    except MemoryError:
        return WorkResult(error=bounds.exceeded("--memory"))
    except _ProcessorBound:
        return WorkResult(error=bounds.exceeded("--cpu-time"))
    except ToolmatrixError as error:
        return WorkResult(error=error)
    except Exception as error:  # noqa: BLE001 - a defect that this piece of work shows
        from traceback import format_exc

        return WorkResult(error=_sendable(error), traceback=format_exc())


def _sendable(error: Exception) -> Exception:
    try:
        # An exception with arguments of its own may be pickled and then fail to be made again where it is awaited.
        pickle.loads(pickle.dumps(error))  # noqa: S301 - made right here
    except Exception:  # noqa: BLE001 - whatever a class of exceptions does when it is copied
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


@contextmanager
def _within(bounds: WorkBounds) -> Iterator[None]:
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    bounded = {
        # RLIMIT_CPU counts from the start of the process, which may have done other work; it is in whole seconds, and
        # both figures were cut to them.
        resource.RLIMIT_CPU: bounds.processor
        and int(used.ru_utime + used.ru_stime) + 1 + bounds.processor,
        # Not RLIMIT_AS, which counts mapped files and room that is only reserved; from Linux 4.7 on this one counts
        # every private page that can be written (setrlimit(2)). A fork begins with those of its parent.
        resource.RLIMIT_DATA: bounds.memory and _data() + (bounds.memory << 20),
    }
    wanted = {kind: bound for kind, bound in bounded.items() if bound}
    before = {kind: resource.getrlimit(kind) for kind in wanted}
    signal.signal(signal.SIGXCPU, _stop)
    try:
        for kind, (soft, hard) in before.items():
            held = [one for one in (soft, hard, wanted[kind]) if one != resource.RLIM_INFINITY]
            resource.setrlimit(kind, (min(held), hard))
        yield
    finally:
        for kind, limits in before.items():
            resource.setrlimit(kind, limits)


def _data() -> int:
    """The bytes of private pages that this process may write, 0 where the system does not say."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            sizes = [line.split()[1] for line in status if line.startswith("VmData:")]
    except OSError:
        return 0
    return sum(map(int, sizes)) << 10


def _stop(*_: object) -> NoReturn:
    raise _ProcessorBound


# Raised where a signal finds this process, so that it leaves the pool and waits for its workers.
class _Signalled(BaseException):
    pass


class Pool:
    """At most `jobs` workers, started as they are needed; at the end none is left, whatever ends it."""

    def __init__(self, work: Work, bounds: WorkBounds, jobs: int = 1) -> None:
        self.work = work
        self.bounds = bounds
        self.jobs = jobs
        self.idle: list[Worker] = []
        self.busy: dict[Worker, str] = {}
        self._handlers: dict[int, Any] = {}
        self._caught = 0
        self._leaving = False

    def __enter__(self) -> Self:
        # Nobody writes into it: a worker reads its end when this process is gone, even by SIGKILL.
        self.lifeline = os.pipe()
        for number in ENDING:
            # `nohup` ignores SIGHUP for good reason.
            if signal.getsignal(number) != signal.SIG_IGN:
                with suppress(ValueError):  # only the main thread can
                    self._handlers[number] = signal.signal(number, self._end)
        return self

    def _end(self, number: int, _frame: FrameType | None) -> None:
        if not self._caught:
            self._caught = number
            if not self._leaving:
                raise _Signalled

    def outcomes(self, tasks: Mapping[str, tuple[object, ...]]) -> Iterator[tuple[str, WorkResult]]:
        """The result of each task by its name, in the order in which they are done; the first begin at once."""
        waiting = list(tasks.items())[::-1]
        self._hand_out(waiting)
        return self._results(waiting)

    def _hand_out(self, waiting: list[tuple[str, tuple[object, ...]]]) -> None:
        while waiting and len(self.busy) < self.jobs:
            if not self.idle:
                self.idle.append(Worker(self.work, self.bounds, self.lifeline))
            worker = self.idle.pop()
            self.busy[worker], task = waiting.pop()
            worker.begin(*task)

    def _results(
        self, waiting: list[tuple[str, tuple[object, ...]]]
    ) -> Iterator[tuple[str, WorkResult]]:
        while self.busy:
            worker = self._first()
            outcome = worker.outcome()
            name = self.busy.pop(worker)
            if not worker.line.closed:
                self.idle.append(worker)
            yield name, outcome
            self._hand_out(waiting)

    def _first(self) -> Worker:
        from multiprocessing.connection import wait

        soonest = min(self.busy, key=lambda worker: worker.deadline)
        ready = wait([worker.line for worker in self.busy], soonest.patience)
        return next((worker for worker in self.busy if worker.line in ready), soonest)

    def __exit__(self, *_: object) -> None:
        self._leaving = True
        # All are told first and waited for afterwards, so that they clean up side by side.
        workers = [one for one in (*self.busy, *self.idle) if not one.line.closed]
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.end()
        for end in self.lifeline:
            os.close(end)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        # Ends as it would have by the signal, so that the shell sees which one it was.
        if self._caught:
            os.kill(os.getpid(), self._caught)


class Attendant:
    """A process with a pool of one, for a program that has threads later: it is forked when there are none yet."""

    def __init__(self, work: Work, bounds: WorkBounds) -> None:
        from multiprocessing import Pipe

        self.line, theirs = Pipe()
        self.process = _fork()
        if not self.process:
            self.line.close()
            _attend(theirs, work, bounds)
        theirs.close()

    def ask(self, *task: object) -> WorkResult:
        """The result of a piece of work, one at a time."""
        try:
            self.line.send(task)
            made: WorkResult = self.line.recv()
        except (EOFError, OSError):
            return WorkResult(error=ToolmatrixError("the process that answers is gone"))
        return made

    def end(self) -> None:
        """End it, also while it is at work."""
        self.line.close()
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGTERM)
        os.waitpid(self.process, 0)


def _attend(line: Line, work: Work, bounds: WorkBounds) -> NoReturn:
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(EOFError, OSError), Pool(work, bounds) as pool:
            while True:
                ((_, result),) = pool.outcomes({"": line.recv()})
                line.send(result)
    finally:
        os._exit(0)
