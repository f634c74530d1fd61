"""A pool of processes, each doing one piece of work after another within bounds of time, processor time and memory.

`concurrent.futures` would not do: it neither ends a worker whose work takes too long nor bounds what one may take.
A worker ends itself at a bound, and its exit code says which one it was.
"""

from __future__ import annotations

import errno
import os
import pickle
import signal
import sys
import time
from contextlib import suppress
from itertools import islice

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

    from toolmatrix.factbase.index import Index

    Line = Connection[Any, Any]
    Work = Callable[..., Any]
    Tasks = Iterator[tuple[Any, tuple[object, ...]]]

_ENDING = (signal.SIGTERM, signal.SIGHUP)
# Seconds in which a worker that is ended removes what it started, such as containers.
_GRACE = 30
# Seconds between two looks of a worker whether the process that started it is there.
_LOOK = 1


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

    def failure(self, code: int) -> ToolmatrixError:
        """The error for a worker that ended at its work with an exit code."""
        passed, spent = plural(self.seconds, "second"), plural(self.processor, "second")
        room = f"{self.memory} MiB of memory"
        bounds = {
            -signal.SIGALRM: ("--timeout", f"longer than {passed}"),
            signal.SIGPROF: ("--cpu-time", f"more than {spent} of processor time"),
            errno.ENOMEM: ("--memory", f"more than {room}, or more than the system has"),
        }
        if code in bounds:
            option, excess = bounds[code]
            return BoundExceeded(f"it takes {excess}", help=f"raise the limit with `{option}`")
        if code == -signal.SIGKILL:
            return BoundExceeded(
                "the system killed the process that read it, probably because memory ran out",
                help="set a lower limit with `--memory`, or use fewer `--jobs`",
            )
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        if -code in _ENDING:
            return BoundExceeded(
                "the process that read it was terminated from outside",
                found=how,
                help="judge it again with `--resume`",
            )
        return ToolmatrixError("the process that read it ended", found=how, help="report it")


class WorkResult(Value):
    """The result of a piece of work: a value, or an error, and for a defect its traceback."""

    value: Any = None
    error: Exception | None = None
    traceback: str = ""

    def result(self) -> Any:
        """The value; raises the error."""
        if self.error is not None:
            raise self.error from (_RemoteTraceback(self.traceback) if self.traceback else None)
        return self.value


# A traceback cannot be pickled; `raise from` shows its text.
class _RemoteTraceback(Exception):
    pass


class Worker:
    """A process that does pieces of `work`, and ends with the one that started it; after its end another one begins."""

    def __init__(self, work: Any, bounds: WorkBounds) -> None:
        self.work = work
        self.bounds = bounds
        self._open()

    def _open(self) -> None:
        from multiprocessing import Pipe

        self.line, theirs = Pipe()
        with theirs:
            try:
                self.process = self._start(theirs)
            except OSError:
                self.line.close()
                raise

    def _start(self, theirs: Line) -> int:
        import warnings

        parent = os.getpid()
        with warnings.catch_warnings():
            # Python warns of a fork where threads run (os.fork, since 3.12): those here hold no lock that work takes.
            warnings.simplefilter("ignore", DeprecationWarning)
            # A fork has the modules, the opened matrix and the standard input already; a new interpreter has not.
            process = os.fork()
        if not process:
            # A terminal sends Ctrl-C to all of the group, and the one that talks to the user ends the others.
            serve(theirs, self.work, self.bounds, parent, signal.SIG_IGN)
        return process

    def fileno(self) -> int:
        """What can be read from once there is an outcome."""
        return self.line.fileno()

    def begin(self, *task: object) -> Self:
        """Give it something to do: the arguments of `work`."""
        if self.line.closed:
            self._open()
        with suppress(OSError):  # its outcome reports that it is gone
            self.line.send(task)
        return self

    def outcome(self) -> WorkResult:
        """Its result, or the error by which it ended, waited for."""
        try:
            result: WorkResult = self.line.recv()
        except (EOFError, OSError):
            return WorkResult(error=self.bounds.failure(self.end()))
        return result

    def stop(self) -> None:
        """Tell it to end."""
        with suppress(ProcessLookupError):
            if not self.line.closed:
                os.kill(self.process, signal.SIGTERM)

    def end(self) -> int:
        """Wait until it has ended, and return its exit code; the processor time that it took is then counted here."""
        with suppress(EOFError, OSError):
            while self.line.poll(_GRACE):
                self.line.recv()
            os.kill(self.process, signal.SIGKILL)
        self.line.close()
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def serve(
    line: Line, work: Work, bounds: WorkBounds, parent: int, interrupt: signal.Handlers
) -> NoReturn:
    """Do each piece that comes until the parent is gone; `interrupt` is what Ctrl-C does."""
    import resource
    import threading

    code = 1
    try:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        # By an exception, so that what lies on the disk for a moment is removed.
        signal.signal(signal.SIGPROF, lambda signum, _: sys.exit(signum))
        for signum in _ENDING:
            if callable(signal.getsignal(signum)):
                signal.signal(signum, signal.SIG_DFL)
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
        limits = resource.getrlimit(resource.RLIMIT_DATA)
        while True:
            task = line.recv()
            _bound(bounds, limits)
            result = _done(work, task)
            _bound(WorkBounds(), limits)
            line.send(result)
    except MemoryError:
        code = errno.ENOMEM
    except SystemExit as bound:
        code = int(bound.code or 0)
    except (EOFError, OSError):
        pass
    finally:
        # Not `sys.exit`: buffers and handlers of the parent were copied, and are not this process's to flush or run.
        os._exit(code)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    # As by a signal, so that what was started is removed first.
    os.kill(os.getpid(), signal.SIGTERM)


def _bound(bounds: WorkBounds, limits: tuple[int, int]) -> None:
    import resource

    signal.setitimer(signal.ITIMER_REAL, bounds.seconds)
    # Again each second, for one that comes in a finalizer is lost.
    signal.setitimer(signal.ITIMER_PROF, bounds.processor, 1)
    soft, hard = limits
    # Not RLIMIT_AS, which counts mapped files and room that is only reserved; from Linux 4.7 on this one counts every
    # private page that can be written (setrlimit(2)). A fork begins with those of its parent.
    before = 0
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as sizes:
        before = int(sizes.read().split()[5]) * resource.getpagesize()
    wanted = before + (bounds.memory << 20) if bounds.memory else soft
    # No limit is -1 on Linux.
    resource.setrlimit(resource.RLIMIT_DATA, (soft if 0 <= soft < wanted else wanted, hard))


def _done(work: Work, task: tuple[object, ...]) -> WorkResult:
    try:
        return WorkResult(value=work(*task))
    except MemoryError:
        # Whatever has no room now may be broken for good; a new process starts clean.
        raise
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


# Raised where a signal finds this process, so that it leaves the pool and waits for its workers.
class _Signalled(BaseException):
    pass


class Pool:
    """At most `jobs` workers, started as they are needed; at the end none is left, whatever ends it."""

    def __init__(self, work: Any, bounds: WorkBounds, jobs: int = 1) -> None:
        self.work = work
        self.bounds = bounds
        self.jobs = jobs
        self.workers: list[Worker] = []
        # The name of each piece by its worker.
        self.busy: dict[Any, Any] = {}
        self._handlers: dict[int, Any] = {}
        self._caught = 0
        self._leaving = False

    def __enter__(self) -> Self:
        for signum in _ENDING:
            # `nohup` ignores SIGHUP for good reason.
            if signal.getsignal(signum) != signal.SIG_IGN:
                with suppress(ValueError):  # only the main thread can
                    self._handlers[signum] = signal.signal(signum, self._end)
        return self

    def _end(self, signum: int, _frame: FrameType | None) -> None:
        if not self._caught:
            self._caught = signum
            if not self._leaving:
                raise _Signalled

    def outcomes(self, tasks: Mapping[Any, tuple[object, ...]]) -> Iterator[tuple[Any, WorkResult]]:
        """The result of each task by its name, in the order in which they are done; the first begin at once."""
        waiting = iter(tasks.items())
        self._hand_out(waiting)
        return self._results(waiting)

    def _hand_out(self, waiting: Tasks) -> None:
        for name, task in islice(waiting, self.jobs - len(self.busy)):
            self.busy[self._submit(task)] = name

    def _results(self, waiting: Tasks) -> Iterator[tuple[Any, WorkResult]]:
        while self.busy:
            first = self._next_done()
            outcome = self._outcome(first)
            yield self.busy.pop(first), outcome
            self._hand_out(waiting)

    def _submit(self, task: tuple[object, ...]) -> Any:
        idle = [worker for worker in self.workers if worker not in self.busy]
        if not idle:
            idle = [Worker(self.work, self.bounds)]
            self.workers += idle
        return idle[0].begin(*task)

    def _next_done(self) -> Any:
        from multiprocessing.connection import wait

        return wait(self.busy)[0]

    def _outcome(self, first: Any) -> WorkResult:
        outcome: WorkResult = first.outcome()
        return outcome

    def __exit__(self, *_ended: object) -> None:
        self._leaving = True
        # All are stopped first and awaited afterwards, so that they clean up at the same time.
        left = [worker for worker in self.workers if not worker.line.closed]
        for worker in left:
            worker.stop()
        for worker in left:
            worker.end()
        for signum, handler in self._handlers.items():
            signal.signal(signum, handler)
        # Ends as it would have by the signal, so that the shell sees which one it was.
        if self._caught:
            os.kill(os.getpid(), self._caught)
