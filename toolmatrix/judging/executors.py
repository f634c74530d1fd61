"""Work on other machines: an executor of `concurrent.futures`, such as that of Dask, has each piece done there.

What an executor is called, and what makes it, entry points of the group `toolmatrix.executors` say: a function that is
given what stands behind the name, and returns a context manager of an executor. Beside each thread of an executor runs
a worker of ours: a piece has the same bounds wherever it is done. It refuses work for another program or matrix than
its own.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from concurrent import futures
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from functools import partial
from threading import local
from typing import Any

from toolmatrix import __version__
from toolmatrix.errors import BoundExceeded, ToolmatrixError, ToolMissing, UsageError
from toolmatrix.judging.pool import Pool, Worker, WorkResult, serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from multiprocessing.connection import Connection
    from typing import NoReturn

    from typing_extensions import Self

    from toolmatrix.judging.pool import IndexedWork, WorkBounds

GROUP = "toolmatrix.executors"
"""The group of entry points."""
AT_ONCE = 64
"""Pieces that are handed out and not done, where `--jobs` says nothing."""
# Seconds until a scheduler answers.
_PATIENCE = 30
# Seconds between two looks whether it is still there.
_LOOK = 1
_GONE = "the connection to its scheduler was lost"


class ExecutorPool(Pool):
    """Pieces of work done by an executor."""

    def __init__(
        self, name: str, work: IndexedWork, overlays: Sequence[str], bounds: WorkBounds, jobs: int
    ) -> None:
        fields = {name: value for name, value in work.as_dict().items() if name != "index"}
        # A worker may run in any folder.
        paths = tuple(map(os.path.abspath, overlays))
        # The same bytes with each task, by which a worker knows the work that it did before.
        there = pickle.dumps(partial(reopened, __version__, type(work), fields, paths, work.key))
        super().__init__(there, bounds, jobs or AT_ONCE)
        self._name = name
        self._opening = open_executor(name)

    def __enter__(self) -> Self:
        with _errors_as_missing(self._name):
            self._executor = self._opening.__enter__()
        return self

    def __exit__(self, *ended: object) -> None:
        # Nobody waits for what was handed out before an interrupt.
        for future in self.busy:
            future.cancel()
        # What is known by now is not lost because an executor cannot be closed.
        with suppress(Exception):
            self._opening.__exit__(*ended)  # type: ignore[arg-type]

    # Of the executors that can be lost as a whole some say so.
    def _is_gone(self) -> bool:
        return getattr(self._executor, "is_gone", bool)()

    def _submit(self, task: tuple[object, ...]) -> Future[bytes]:
        try:
            if self._is_gone():
                _refuse(BrokenExecutor(_GONE))
            return self._executor.submit(do, pickle.dumps((self.work, self.bounds, task)))
        except Exception as error:  # noqa: BLE001 - some break for good with the first process that is killed
            failed: Future[bytes] = Future()
            failed.set_exception(error)
            return failed

    def _next_done(self) -> Future[bytes]:
        while not (done := futures.wait(self.busy, _LOOK, futures.FIRST_COMPLETED).done):
            if self._is_gone():
                return next(iter(self.busy))
        return done.pop()

    def _outcome(self, first: Future[bytes]) -> WorkResult:
        try:
            if not first.done():
                _refuse(BrokenExecutor(_GONE))
            # By those machines that the user named; an executor hands over pickles itself.
            result: WorkResult = pickle.loads(first.result())  # noqa: S301
        except Exception as error:  # noqa: BLE001 - whatever an executor raises for its own failures
            return WorkResult(error=self._failure(error))
        return result

    def _failure(self, error: Exception) -> ToolmatrixError:
        if isinstance(error, (BrokenExecutor, CancelledError)) or "Killed" in type(error).__name__:
            return BoundExceeded(
                "the worker process of the executor ended",
                found=_describe(error),
                help="it may lack memory; set a lower limit with `--memory`",
            )
        return ToolMissing(
            f"the executor `{self._name}` cannot do the work",
            expected="the same version of toolmatrix where it runs",
            found=_describe(error),
        )


def _refuse(error: Exception, *_: object) -> NoReturn:
    raise error


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def open_executor(name: str) -> AbstractContextManager[Executor]:
    """The executor `NAME[:ADDRESS]`. Raises UsageError for an unknown one, and ToolMissing."""
    from importlib.metadata import entry_points

    kind, _, address = name.partition(":")
    known = {entry_point.name: entry_point for entry_point in entry_points(group=GROUP)}
    if kind not in known:
        raise UsageError(
            f"unknown executor `{kind}`",
            expected=", ".join(sorted(known)) or f"an entry point of the group `{GROUP}`",
            found=f"`--executor {name}`",
        )
    with _errors_as_missing(name):
        executor: AbstractContextManager[Executor] = known[kind].load()(address)
    return executor


@contextmanager
def _errors_as_missing(name: str) -> Iterator[None]:
    try:
        yield
    except ToolmatrixError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a package of somebody else fails by
        raise ToolMissing(
            f"the executor `{name}` cannot be used",
            expected=f"a working entry point in the group `{GROUP}`",
            found=_describe(error),
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

    # It logs lost connections while it goes on without them; a verdict says what that cost its subject.
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
        line = client.scheduler_comm
        # It never reports some of its tasks while its scheduler goes.
        executor.is_gone = lambda: client.scheduler_comm is not line
        yield executor


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
    importable = client.run(lambda: bool(__import__("toolmatrix")), on_error="return")
    without = sorted(worker for worker, has in importable.items() if has is not True)
    if without:
        raise ToolMissing(
            "Dask workers cannot import toolmatrix",
            expected="the same version of it on each, with its extra `dask`",
            found=", ".join(without),
        )


# Processes of executors have threads, which a fork does not outlive, and may not be given bounds: one beside each
# thread is kept from one piece to the next.
_thread_state = local()


class _SpawnedWorker(Worker):
    """A worker in an interpreter of its own, which opens pickled work."""

    def _start(self, theirs: Connection[Any, Any]) -> int:
        import subprocess

        started = subprocess.Popen(  # noqa: S603 - this program
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        # It is waited for by its number.
        started.returncode = 0
        self.line.send((self.work, self.bounds, os.getpid()))
        return started.pid

    def __del__(self) -> None:
        if not self.line.closed:
            self.stop()
            self.end()


def do(piece: bytes) -> bytes:
    """Do a piece of work, which an executor calls where it runs: a work, its bounds and a task, for a result."""
    # Whoever handed it out wrote it.
    work, bounds, task = pickle.loads(piece)  # noqa: S301
    worker: _SpawnedWorker | None = vars(_thread_state).get("worker")
    if worker is None or (worker.work, worker.bounds) != (work, bounds):
        worker = _thread_state.worker = _SpawnedWorker(work, bounds)
    return pickle.dumps(worker.begin(*task).outcome())


def reopened(
    release: str, kind: type[IndexedWork], fields: Mapping[str, Any], paths: Sequence[str], key: str
) -> IndexedWork:
    """Work of a program of some release over the matrix here. Raises UsageError where its key is another one."""
    from toolmatrix.factbase.store import open_index

    # Another release may not even know these fields.
    if release != __version__:
        raise UsageError(
            "an executor machine has a different version of toolmatrix",
            expected=f"{release} on all",
            found=__version__,
        )
    work = kind(index=open_index(paths, os.environ), **fields)
    if work.key != key:
        raise UsageError(
            "an executor machine has a different matrix or platform",
            expected="the same matrix on all, and `--platform` where they differ",
            found=f"its key is {work.key[:12]}, not {key[:12]}",
        )
    return work


def _serve(line: Connection[Any, Any]) -> NoReturn:
    work, bounds, parent = line.recv()
    # A file of facts that is not there is an error of each piece.
    try:
        attempt = pickle.loads(work)().attempt  # noqa: S301 - by the process that started this one
    except ToolmatrixError as error:
        attempt = partial(_refuse, error)
    # Ctrl-C goes to every process of a terminal: this one ends without a word.
    serve(line, attempt, bounds, parent, signal.SIG_DFL)


if __name__ == "__main__":
    from multiprocessing.connection import Connection

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _serve(Connection(int(sys.argv[1])))
