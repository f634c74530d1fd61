"""Many subjects judged side by side in processes of their own, each result as it comes."""

from __future__ import annotations

from toolmatrix.cli.judging import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import ProcessPoolExecutor

    from toolmatrix.cli.judging import Bench
    from toolmatrix.report.verdicts import Judged

_ENDED = "the process that read it was ended, by the system or for want of memory"


class Fleet:
    """The subjects that are left, shared out over so many processes; one job needs none."""

    def __init__(self, bench: Bench, subjects: Sequence[str], jobs: int) -> None:
        self.bench = bench
        self.subjects = list(subjects)
        self.jobs = min(jobs, len(subjects))

    def results(self) -> Iterator[tuple[str, Judged]]:
        """Each subject with its verdicts, in the order in which they are done."""
        if self.jobs < 2:
            for subject in self.subjects:
                yield subject, self.bench.attempt(subject)
            return
        left = dict.fromkeys(self.subjects)
        for subject, judged in self._shared(list(left), self.jobs):
            del left[subject]
            yield subject, judged
        # A process that dies takes the pool with it, and nobody can tell which subject it was: each gets its own.
        for subject in left:
            alone = list(self._shared([subject], 1))
            yield alone[0] if alone else (subject, refused(subject, _ENDED, "TM900"))

    def _shared(self, subjects: Sequence[str], jobs: int) -> Iterator[tuple[str, Judged]]:
        """Those that were done before a process died, if one did."""
        from concurrent.futures import BrokenExecutor, as_completed

        pool = _pool(jobs)
        try:
            started = {pool.submit(self.bench.attempt, one): one for one in subjects}
            for future in as_completed(started):
                if future.exception() is None:
                    yield started[future], future.result()
        except BrokenExecutor:
            return
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _pool(jobs: int) -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    method = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, mp_context=method, initializer=_begin)


def _begin() -> None:
    """End on Ctrl-C without a word, since the process that talks to the user says it; and with that process."""
    import signal
    import threading

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever: it holds both ends of its own pipe.

    It ends as by a signal, so that what it started is removed first.
    """
    import os
    import signal
    from multiprocessing import connection, parent_process

    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
