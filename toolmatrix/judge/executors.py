"""Work on other machines: an executor of `concurrent.futures`, such as that of Dask, has each piece done there.

What an executor is called, and what makes it, entry points of the group `toolmatrix.executors` say: a function that is
given what stands behind the name, and returns a context manager of an executor. Beside each thread of an executor runs
a process of ours with a pool of one: a piece has the same bounds wherever it is done. It refuses work for another
program or matrix than its own.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from threading import Thread, local
from typing import Any

from toolmatrix import __version__
from toolmatrix.errors import BoundExceeded, ToolmatrixError, ToolMissing, UsageError
from toolmatrix.judge.pool import Pool, WorkResult
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from multiprocessing.connection import Connection
    from types import TracebackType

    from typing_extensions import Self

    from toolmatrix.judge.pool import IndexedWork, WorkBounds

    Line = Connection[Any, Any]

GROUP = "toolmatrix.executors"
"""The group of entry points."""
AT_ONCE = 64
"""Pieces that are handed out and not done, where `--jobs` says nothing."""
# Seconds until a scheduler answers.
_PATIENCE = 30
# Seconds between two looks whether it is still there.
_LOOK = 1
_GONE = "the connection to its scheduler was lost"
# Seconds between two signals to a process that is to end.
_PAUSE = 0.1


class RemoteWork(Value):
    """Work that is done elsewhere: its class and fields without the index, the key that it must have, and bounds.

    `release` is that of the program that asks for it.
    """

    release: str
    kind: type[IndexedWork]
    fields: Mapping[str, Any]
    overlays: tuple[str, ...]
    key: str
    bounds: WorkBounds


class Executed:
    """Pieces of work done by an executor; see `Pool.outcomes`."""

    def __init__(
        self,
        name: str,
        work: IndexedWork,
        overlays: Sequence[str],
        bounds: WorkBounds,
        jobs: int | None,
    ) -> None:
        self._opening = opened(name)
        self._name = name
        asked = RemoteWork(
            release=__version__,
            kind=type(work),
            fields={name: part for name, part in work.as_dict().items() if name != "index"},
            # A worker may run in any folder.
            overlays=tuple(map(os.path.abspath, overlays)),
            key=work.key,
            bounds=bounds,
        )
        # The same bytes with each task, by which a worker knows the work that it did before.
        self._work = pickle.dumps(asked)
        self._jobs = jobs or AT_ONCE
        self._busy: dict[Future[bytes], str] = {}

    def __enter__(self) -> Self:
        with _told_as_missing(self._name):
            self._executor = self._opening.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Nobody waits for what was handed out before an interrupt.
        for future in self._busy:
            future.cancel()
        # What is known by now is not lost because an executor cannot be closed.
        with suppress(Exception):
            self._opening.__exit__(kind, error, traceback)

    def outcomes(self, tasks: Mapping[str, tuple[object, ...]]) -> Iterator[tuple[str, WorkResult]]:
        """The result of each task by its name, in the order in which they are done; the first begin at once."""
        waiting = iter(tasks.items())
        self._hand_out(waiting)
        return self._results(waiting)

    def _hand_out(self, waiting: Iterator[tuple[str, tuple[object, ...]]]) -> None:
        for name, task in islice(waiting, self._jobs - len(self._busy)):
            self._busy[self._submitted(pickle.dumps((self._work, task)))] = name

    def _results(
        self, waiting: Iterator[tuple[str, tuple[object, ...]]]
    ) -> Iterator[tuple[str, WorkResult]]:
        while self._busy:
            done = wait(self._busy, _LOOK, FIRST_COMPLETED).done
            # Of the executors that can be lost as a whole some say so.
            gone = not done and getattr(self._executor, "is_gone", False)
            for future in tuple(self._busy) if gone else done:
                yield self._busy.pop(future), self._outcome(future)
            self._hand_out(waiting)

    def _submitted(self, piece: bytes) -> Future[bytes]:
        try:
            return self._executor.submit(do, piece)
        except Exception as error:  # noqa: BLE001 - some break for good with the first process that is killed
            failed: Future[bytes] = Future()
            failed.set_exception(error)
            return failed

    def _outcome(self, future: Future[bytes]) -> WorkResult:
        if not future.done():
            return WorkResult(error=_lost(BrokenExecutor(_GONE)))
        try:
            # By those machines that the user named; an executor hands over pickles itself.
            found: WorkResult = pickle.loads(future.result())  # noqa: S301
        except (BrokenExecutor, CancelledError) as error:
            return WorkResult(error=_lost(error))
        except Exception as error:  # noqa: BLE001 - whatever an executor tells its own failures by
            if "Killed" in type(error).__name__:
                return WorkResult(error=_lost(error))
            return WorkResult(
                error=ToolMissing(
                    f"the executor `{self._name}` cannot do the work",
                    expected="the same toolmatrix where it runs",
                    found=_worded(error),
                )
            )
        return found


def _worded(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _lost(error: BaseException) -> BoundExceeded:
    return BoundExceeded(
        "the executor process that worked on it ended",
        found=_worded(error),
        help="it may lack memory; set a lower limit with `--memory`",
    )


def opened(name: str) -> AbstractContextManager[Executor]:
    """The executor `NAME[:ADDRESS]`. Raises UsageError for one that nobody made known, and ToolMissing."""
    from importlib.metadata import entry_points

    kind, _, address = name.partition(":")
    known = {one.name: one for one in entry_points(group=GROUP)}
    if kind not in known:
        raise UsageError(
            f"unknown executor `{kind}`",
            expected=", ".join(sorted(known)) or f"an entry point of the group `{GROUP}`",
            found=f"`--executor {name}`",
        )
    with _told_as_missing(name):
        made: AbstractContextManager[Executor] = known[kind].load()(address)
    return made


@contextmanager
def _told_as_missing(name: str) -> Iterator[None]:
    try:
        yield
    except ToolmatrixError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a package of somebody else fails by
        raise ToolMissing(
            f"the executor `{name}` cannot be used",
            expected=f"a working entry point in the group `{GROUP}`",
            found=_worded(error),
        ) from None


@contextmanager
def dask(address: str) -> Iterator[Executor]:
    """The executor of a Dask cluster by the address of its scheduler. Raises ToolMissing, UsageError."""
    if not address:
        raise UsageError(
            "no scheduler is named", expected="`--executor dask:tcp://HOST:PORT`", found="`dask`"
        )
    try:
        from distributed import Client
    except ImportError:
        raise ToolMissing(
            "Dask is not installed", help="`pip install 'toolmatrix[dask]'`"
        ) from None
    import logging

    # It tells of lost connections while it goes on without them; what that costs a subject its verdict tells.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    failure = ""
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except Exception as error:  # noqa: BLE001 - an address, a network and certificates fail by errors of any class
        failure = str(error) or type(error).__name__
    if failure:
        import gc

        # A client that is half made is closed now: at the end of the program it would wait a minute for its threads.
        gc.collect()
        raise ToolMissing(
            "the Dask scheduler does not answer", expected="one at " + address, found=failure
        )
    with client, client.get_executor(pure=False) as executor:
        _check_workers(client, address)
        yield _DaskExecutor(client, executor)


def _check_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except Exception:  # noqa: BLE001 - one of time, whose class is another one in each version
        raise ToolMissing(
            "the Dask scheduler has no worker",
            expected=f"one that `dask worker {address}` started where toolmatrix is installed",
            found=f"none in {_PATIENCE} seconds",
        ) from None
    # Handed over by its value: a piece of work would end a worker that cannot import what it is made of, and the next.
    told = client.run(lambda: bool(__import__("toolmatrix")), on_error="return")
    without = sorted(worker for worker, has in told.items() if has is not True)
    if without:
        raise ToolMissing(
            "Dask workers cannot import toolmatrix",
            expected="the same version of it on each, with its extra `dask`",
            found=", ".join(without),
        )


class _DaskExecutor(Executor):
    """The executor of a client of Dask, which never tells of some of what it is given while its scheduler goes."""

    def __init__(self, client: Any, executor: Executor) -> None:
        self._client = client
        self._executor = executor
        self._line = client.scheduler_comm

    @property
    def is_gone(self) -> bool:
        """True where the connection to its scheduler was lost, and with it all that was handed out."""
        return self._client.scheduler_comm is not self._line

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Hand out a piece of work. Raises BrokenExecutor where no scheduler is left."""
        if self.is_gone:
            raise BrokenExecutor(_GONE)
        return self._executor.submit(work, *given, **named)


class _WorkerProcess:
    """A process that does pieces of work, and ends when the other end of its line is gone."""

    def __init__(self) -> None:
        from multiprocessing import Pipe

        self.line, theirs = Pipe()
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603 - this program
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def __del__(self) -> None:
        self.line.close()
        self.process.wait()

    def ask(self, piece: bytes) -> bytes:
        try:
            self.line.send_bytes(piece)
            return self.line.recv_bytes()
        except (EOFError, OSError):
            code = self.process.wait()
            # A signal ended it, as one for want of memory does: that piece is lost, and what is asked there is sound.
            kind = BrokenExecutor if code < 0 else RuntimeError
            raise kind(f"the process that does the work ended with {code}") from None


# Processes of executors have threads, which a fork does not outlive, and may not be given bounds: one beside each
# thread is kept from one piece to the next.
_kept = local()


def do(piece: bytes) -> bytes:
    """Do a piece of work, which an executor calls where it runs: a work and a task, for a result."""
    beside: _WorkerProcess = vars(_kept).get("process") or _WorkerProcess()
    # Put there anew where it answered.
    vars(_kept).clear()
    answer = beside.ask(piece)
    _kept.process = beside
    return answer


def _serve(line: Line) -> None:
    """Do what comes until nobody is left who could send more."""
    Thread(target=_end_with, args=(line.fileno(),), daemon=True).start()
    before = b""
    refusal: ToolmatrixError | None = None
    with ExitStack() as stack, suppress(EOFError, OSError):
        while True:
            # Whoever started this process wrote it.
            work, task = pickle.loads(_received(line))  # noqa: S301
            if work != before:
                asked: RemoteWork = pickle.loads(work)  # noqa: S301
                stack.close()
                # A file of facts that is not there is one error, and this process goes on with other work.
                try:
                    pool = stack.enter_context(Pool(_made(asked).attempt, asked.bounds))
                    refusal = None
                except ToolmatrixError as error:
                    refusal = error
                before = work
            if refusal is not None:
                outcome = WorkResult(error=refusal)
            else:
                ((_, outcome),) = pool.outcomes({"": task})
            with suppress(OSError):  # what comes next tells that nobody is there
                line.send_bytes(pickle.dumps(outcome))


def _received(line: Line) -> bytes:
    try:
        return line.recv_bytes()
    except (EOFError, OSError):
        # One way to end is enough: that of `_end_with`.
        signal.pause()
        raise


def _end_with(line: int) -> None:
    # Of no event but that the other end is gone, which nothing else tells while a piece of work is done.
    ended = select.poll()
    ended.register(line, 0)
    ended.poll()
    # The pool heeds it, and what was started is removed. One that comes just before a system call begins is not heard.
    while True:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_PAUSE)


def _made(asked: RemoteWork) -> IndexedWork:
    from toolmatrix.facts.store import open_index

    # Another release may not even know these fields.
    if asked.release != __version__:
        raise UsageError(
            "an executor machine has another version of toolmatrix",
            expected=f"{asked.release} on all",
            found=__version__,
        )
    work = asked.kind(index=open_index(asked.overlays, os.environ), **asked.fields)
    if work.key != asked.key:
        raise UsageError(
            "an executor machine has another matrix or another platform",
            expected="the same matrix on all, and `--platform` where they differ",
            found=f"its key is {work.key[:12]}, and not {asked.key[:12]}",
        )
    return work


if __name__ == "__main__":
    from multiprocessing.connection import Connection

    # Ctrl-C goes to every process of a terminal: this one ends without a word, and its worker with it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _serve(Connection(int(sys.argv[1])))
