"""Processes that do pieces of work: how they end, and that another one takes the place of each."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from toolmatrix.errors import BoundExceeded, ToolmatrixError
from toolmatrix.judging.pool import Pool, WorkBounds

pytestmark = pytest.mark.process


def work(name: str) -> int:
    if name == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "leave":
        os._exit(7)
    if name == "sleep":
        time.sleep(60)
    if name == "spin":
        while True:
            pass
    if name == "fail":
        raise ValueError(name)
    return os.getpid()


def outcomes(pool: Pool, *names: str) -> dict[str, Any]:
    return dict(pool.outcomes({name: (name,) for name in names}))


def test_each_end_is_the_outcome_of_one_piece() -> None:
    with Pool(work, WorkBounds(processor=1)) as pool:
        first, *ended, last = outcomes(pool, "first", "kill", "leave", "spin", "last").values()
    assert [(type(one.error), str(one.error)) for one in ended] == [
        (
            BoundExceeded,
            "the system killed the process that read it, probably because memory ran out",
        ),
        (ToolmatrixError, "the process that read it ended"),
        (BoundExceeded, "it takes more than 1 second of processor time"),
    ]
    assert ended[1].error.found == "exit code 7"
    assert first.result() != last.result() != os.getpid()


def test_time_ends_a_piece_and_not_the_process_that_waits_for_the_next() -> None:
    with Pool(work, WorkBounds(seconds=1)) as pool:
        assert str(outcomes(pool, "sleep")["sleep"].error) == "it takes longer than 1 second"
        first = outcomes(pool, "first")["first"].result()
        time.sleep(1.2)
        assert outcomes(pool, "last")["last"].result() == first


def test_a_defect_keeps_its_traceback_and_its_process() -> None:
    with Pool(work, WorkBounds()) as pool:
        first, failed, last = outcomes(pool, "first", "fail", "last").values()
    with pytest.raises(ValueError, match="fail") as caught:
        failed.result()
    assert "in work\n" in str(caught.value.__cause__)
    assert first.result() == last.result()


def test_a_piece_is_done_once_the_system_has_a_process_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fork() -> int:
        raise BlockingIOError

    with Pool(work, WorkBounds()) as pool:
        outcomes(pool, "kill")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fork", fork)
            with pytest.raises(BlockingIOError):
                outcomes(pool, "none")
        assert outcomes(pool, "some")["some"].error is None
        left = pool.workers[0].process
    with pytest.raises(ProcessLookupError):
        os.kill(left, 0)
