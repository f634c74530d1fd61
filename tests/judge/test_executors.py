"""Subjects judged by executors of other processes: the same verdicts, within the same bounds, and no others."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import docker
from toolmatrix.errors import BoundReached, ToolMissing, UsageError
from toolmatrix.facts.store import open_index
from toolmatrix.judge import executors, results
from toolmatrix.judge.executors import Executed, RemoteWork
from toolmatrix.judge.pool import Pool, WorkBounds, WorkResult
from toolmatrix.judge.validator import Baseline, Validator, expectations_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

pytestmark = pytest.mark.process

IMAGE = Path(__file__).parent.parent.parent / "docs" / "logs" / "image.json"
BOUNDS = WorkBounds(seconds=60, processor=60, memory=1 << 12)
NAMES = [f"image{number}.json" for number in range(6)]


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory, cache: str) -> Iterator[Validator]:
    """A validator of some images, of which one is not there."""
    folder = tmp_path_factory.mktemp("images")
    for name in NAMES[1:]:
        shutil.copy(IMAGE, folder / name)
    baseline = Baseline(expected=expectations_of([("python==3.9.*", None)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", cache)
        index = open_index((), os.environ)
        yield Validator(index=index, baseline=baseline, directory=str(folder))
        # The process beside this one ends with what holds it.
        vars(executors._kept).clear()


def made(monkeypatch: pytest.MonkeyPatch, executor: Executor) -> None:
    """Take this executor whatever is asked for."""

    @contextmanager
    def opened(_: str) -> Iterator[Executor]:
        with executor:
            yield executor

    monkeypatch.setattr(executors, "opened", opened)


def verdicts(workers: Pool | Executed, key: str) -> list[dict[str, Any]]:
    seen: list[str] = []
    found = results.validate_all(key, NAMES, workers, "", lambda one: seen.append(one.subject))
    assert sorted(seen) == NAMES
    return [one.to_json() for one in found]


@pytest.mark.parametrize("jobs", [1, 2, None])
def test_an_executor_tells_what_the_pool_tells(
    validator: Validator, monkeypatch: pytest.MonkeyPatch, jobs: int | None
) -> None:
    made(monkeypatch, ThreadPoolExecutor(2))
    there = verdicts(Executed("any", validator, (), BOUNDS, jobs), validator.key)
    assert there == verdicts(Pool(validator.attempt, BOUNDS), validator.key)
    assert [one["outcome"] for one in there] == ["unknown", *["yes"] * 5]


def piece(validator: Validator, **changes: Any) -> bytes:
    held = {name: part for name, part in validator.as_dict().items() if name != "index"}
    given: dict[str, Any] = {"key": validator.key, "bounds": BOUNDS, "overlays": ()}
    return pickle.dumps((RemoteWork(validator=held, **given | changes), (NAMES[1], None)))


def done(asked: bytes) -> WorkResult:
    found: WorkResult = pickle.loads(executors.do(asked))  # noqa: S301 - made right here
    return found


def test_bounds_hold_there(validator: Validator) -> None:
    bounds = BOUNDS.replace(memory=1)
    error = done(piece(validator, bounds=bounds)).error
    assert isinstance(error, BoundReached)
    assert "--memory" in error.help
    # And work comes through again behind it.
    assert done(piece(validator)).error is None


def test_another_program_or_matrix_judges_nothing(validator: Validator) -> None:
    error = done(piece(validator, key="0" * 64)).error
    assert isinstance(error, UsageError)
    assert error.what.startswith("the machine of an executor has another toolmatrix or matrix")


def test_a_process_that_is_killed_is_told_and_the_next_one_works(validator: Validator) -> None:
    executors.do(piece(validator))
    executors._kept.process.process.kill()
    executors._kept.process.process.wait()
    with pytest.raises(RuntimeError, match="ended with -9"):
        executors.do(piece(validator))
    assert done(piece(validator)).error is None


def test_a_killed_executor_leaves_each_subject_unknown(
    validator: Validator, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(monkeypatch, ProcessPoolExecutor(1))
    monkeypatch.setattr(executors, "do", _killed)
    there = verdicts(Executed("any", validator, (), BOUNDS, 1), validator.key)
    assert {one["outcome"] for one in there} == {"unknown"}
    told = {one["verdicts"][0]["reason"] for one in there}
    assert any("the process of the executor that read it ended" in text for text in told)


def _killed(_: bytes) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


@pytest.mark.parametrize(
    "subject", ["host", "archive:-", "-", "docker:app", "podman:app", "containerd:app"]
)
def test_what_is_of_this_machine_is_refused_early(subject: str) -> None:
    with pytest.raises(UsageError, match="is of this machine"):
        executors.reachable(["registry://localhost:1/a", subject])


def test_executors_are_those_of_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError) as caught:
        executors.opened("nobody:else")
    assert caught.value.found == "`--executor nobody:else`"
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ToolMissing, match="Dask is not installed"), executors.dask("tcp://a:1"):
        pass


@pytest.mark.long
def test_dask_loses_none_and_tells_none_twice(tmp_path: Path, cache: str) -> None:
    if find_spec("distributed") is None:
        docker.unable("a cluster of Dask needs `pip install 'toolmatrix[dask]'`")
    from tests.cli import test_validate_many as many

    wanted = many.tagged(tmp_path, many.put(tmp_path))
    env = {**os.environ, "PYTHONPATH": str(many.ROOT), "XDG_CACHE_HOME": cache}
    with cluster(tmp_path, env) as (address, workers):
        words = many.command("--executor", f"dask:{address}")
        words[words.index("--jobs") + 1] = "8"
        patience = time.monotonic() + 300
        first = subprocess.Popen(words, cwd=tmp_path, env=env, start_new_session=True)
        while len(many.lines(tmp_path)) < many.COUNT // 5:
            many.wait(patience, "too slow")
        workers[0].kill()
        while len(many.lines(tmp_path)) < many.COUNT // 3:
            many.wait(patience, "too slow after a worker was killed")
        first.kill()
        first.wait()
        ended = subprocess.run(
            [*words, "--json"], cwd=tmp_path, env=env, capture_output=True, check=False
        )
    assert ended.returncode == 1, ended.stderr
    document = json.loads(ended.stdout)
    assert {one["subject"]: one["outcome"] for one in document["subjects"]} == wanted
    told = [json.loads(line)["subject"] for line in many.lines(tmp_path)]
    assert sorted(told) == sorted(wanted)


@contextmanager
def cluster(
    folder: Path, env: dict[str, str]
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler of Dask and two workers: its address, and the workers."""
    here = folder / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--scheduler-file"]
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(here)]
    with (folder / "dask.log").open("wb") as log:
        started = [
            subprocess.Popen(words, cwd=folder, env=env, stdout=log, stderr=log)
            for words in (
                [*command, str(here), *options],
                *[[*worker, "--nthreads", "1", "--no-nanny", "--no-dashboard"]] * 2,
            )
        ]
    try:
        end = time.monotonic() + 120
        while not here.exists():
            assert time.monotonic() < end
            time.sleep(0.1)
        yield json.loads(here.read_text())["address"], started[1:]
    finally:
        for one in started:
            one.kill()
            one.wait()
