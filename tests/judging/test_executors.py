"""Work done by executors of other processes: the same results, within the same bounds, and no others."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.amount import sampled
from tests.engine import docker
from tests.harvest import shop
from tests.judging import small
from toolmatrix import __version__, document_store
from toolmatrix.api.caller import Caller, Progress, call_for
from toolmatrix.api.checks import Workers
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.cli.main import main
from toolmatrix.commands.harvest import Harvested, harvest
from toolmatrix.errors import BoundExceeded, NothingMatched, ToolMissing, UsageError
from toolmatrix.factbase.store import open_index
from toolmatrix.inspection.layers import LayerStore
from toolmatrix.judging import executors, sweep, validation
from toolmatrix.judging.executors import ExecutorPool, reopened
from toolmatrix.judging.pool import Pool, WorkBounds, WorkResult
from toolmatrix.judging.validation import Baseline, Validator, expectations_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor

    from toolmatrix.finding import Judged, VerdictsDocument

pytestmark = pytest.mark.process

ROOT = Path(__file__).parent.parent.parent
IMAGE = ROOT / "docs" / "logs" / "image.json"
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
        vars(executors._thread_state).clear()


def made(monkeypatch: pytest.MonkeyPatch, executor: Executor) -> None:
    """Take this executor whatever is asked for."""

    @contextmanager
    def opened(_: str) -> Iterator[Executor]:
        with executor:
            yield executor

    monkeypatch.setattr(executors, "open_executor", opened)


def verdicts(workers: Pool, key: str) -> list[VerdictsDocument]:
    seen: list[str] = []
    found = validation.validate_all(key, NAMES, workers, "", lambda one: seen.append(one.subject))
    assert sorted(seen) == NAMES
    return [one.to_json() for one in found]


@pytest.mark.parametrize("jobs", [1, 2, 0])
def test_an_executor_tells_what_the_pool_tells(
    validator: Validator, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    made(monkeypatch, ThreadPoolExecutor(2))
    there = verdicts(ExecutorPool("any", validator, (), BOUNDS, jobs), validator.key)
    assert there == verdicts(Pool(validator.attempt, BOUNDS), validator.key)
    assert [one["outcome"] for one in there] == ["unknown", *["yes"] * 5]


def piece(validator: Validator, bounds: WorkBounds = BOUNDS, **changes: Any) -> bytes:
    held = {name: part for name, part in validator.as_dict().items() if name != "index"}
    given: dict[str, Any] = {"key": validator.key, "paths": ()}
    given |= {"release": __version__, "fields": held}
    work = partial(reopened, kind=Validator, **given | changes)
    return pickle.dumps((pickle.dumps(work), bounds, (NAMES[1], None)))


def done(asked: bytes) -> WorkResult:
    found: WorkResult = pickle.loads(executors.do(asked))  # noqa: S301 - made right here
    return found


def test_work_with_a_store_is_the_same_for_each_task(
    validator: Validator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[bytes] = []

    def do(piece: bytes) -> bytes:
        asked.append(piece)
        return executors_do(piece)

    executors_do = executors.do
    made(monkeypatch, ThreadPoolExecutor(1))
    monkeypatch.setattr(executors, "do", do)
    held = validator.replace(store=LayerStore(document_store.open_store(str(tmp_path))))
    verdicts(ExecutorPool("any", held, (), BOUNDS, 1), held.key)
    assert len(asked) == len(NAMES)
    assert len({pickle.loads(one)[0] for one in asked}) == 1  # noqa: S301 - made right here


def test_bounds_hold_there(validator: Validator) -> None:
    bounds = BOUNDS.replace(memory=1)
    error = done(piece(validator, bounds=bounds)).error
    assert isinstance(error, BoundExceeded)
    assert "--memory" in error.help
    # And work comes through again behind it.
    assert done(piece(validator)).error is None


def test_another_program_or_matrix_judges_nothing(validator: Validator) -> None:
    error = done(piece(validator, key="0" * 64)).error
    assert isinstance(error, UsageError)
    assert error.what.startswith("an executor machine has a different matrix")
    error = done(piece(validator, release="0.0.1", fields={"later": 1})).error
    assert isinstance(error, UsageError)
    assert error.what == "an executor machine has a different version of toolmatrix"
    assert (error.expected, error.found) == ("0.0.1 on all", __version__)


def test_a_process_that_is_killed_is_told_and_the_next_one_works(validator: Validator) -> None:
    executors.do(piece(validator))
    os.kill(executors._thread_state.worker.process, signal.SIGKILL)
    error = done(piece(validator)).error
    assert isinstance(error, BoundExceeded)
    assert error.what.startswith("the system killed the process")
    assert done(piece(validator)).error is None


def test_a_killed_executor_leaves_each_subject_unknown(
    validator: Validator, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(monkeypatch, ProcessPoolExecutor(1))
    monkeypatch.setattr(executors, "do", _killed)
    there = verdicts(ExecutorPool("any", validator, (), BOUNDS, 1), validator.key)
    assert {one["outcome"] for one in there} == {"unknown"}
    told = {one["verdicts"][0]["reason"] or "" for one in there}
    assert any("the worker process of the executor ended" in text for text in told)


def _killed(_: bytes) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


@pytest.mark.parametrize(
    "subject", ["host", "archive:-", "-", "docker:app", "podman:app", "containerd:app"]
)
def test_what_is_of_this_machine_is_refused_early(subject: str) -> None:
    with pytest.raises(UsageError, match="is on this machine"):
        validation.reachable(["registry://localhost:1/a", subject])


def test_executors_are_those_of_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError) as caught:
        executors.open_executor("nobody:else")
    assert caught.value.found == "`--executor nobody:else`"
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ToolMissing, match="Dask is not installed"), executors.dask("tcp://a:1"):
        pass


ODD = """\
from concurrent.futures import ThreadPoolExecutor

class Broken(ThreadPoolExecutor):
    def submit(self, *given, **named):
        raise RuntimeError("the line is down")

class Open(ThreadPoolExecutor):
    def __exit__(self, *ended):
        super().__exit__(*ended)
        raise OSError("the line is down")

def failing(address):
    raise ConnectionError(f"nobody is at {address}")

def none(address):
    return None

def threads(address):
    return ThreadPoolExecutor(1)

def broken(address):
    return Broken(1)

def unclosed(address):
    return Open(1)
"""


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of somebody else with executors, each of which fails in its way."""
    (tmp_path / "odd_executors.py").write_text(ODD)
    about = tmp_path / "odd_executors-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-executors\nVersion: 1\n")
    names = ("failing", "none", "threads", "broken", "unclosed", "lacking")
    lines = [f"{name} = odd_executors:{name}" for name in names]
    entries = "\n".join([f"[{executors.GROUP}]", *lines, "gone = odd_executors_of_nobody:made"])
    (about / "entry_points.txt").write_text(entries)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("odd")
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("failing:here", "ConnectionError: nobody is at here"),
        ("none", "AttributeError: 'NoneType' object has no attribute '__enter__'"),
        ("lacking", "AttributeError: module 'odd_executors' has no attribute 'lacking'"),
        ("gone", "ModuleNotFoundError: No module named 'odd_executors_of_nobody'"),
    ],
)
def test_an_executor_that_cannot_be_had_is_no_defect(
    validator: Validator, name: str, found: str
) -> None:
    with (
        pytest.raises(ToolMissing, match=f"the executor `{name}` cannot be used") as caught,
        ExecutorPool(name, validator, (), BOUNDS, 1),
    ):
        pass
    assert caught.value.found == found


@pytest.mark.usefixtures("odd")
def test_an_executor_that_takes_nothing_leaves_each_subject_unknown(validator: Validator) -> None:
    there = verdicts(ExecutorPool("broken", validator, (), BOUNDS, 1), validator.key)
    told = {(one["outcome"], one["verdicts"][0]["reason"]) for one in there}
    found = "found RuntimeError: the line is down"
    assert told == {("unknown", f"the executor `broken` cannot do the work, {found}")}


@pytest.mark.usefixtures("odd")
def test_an_executor_that_cannot_be_closed_costs_no_answer(validator: Validator) -> None:
    there = verdicts(ExecutorPool("unclosed", validator, (), BOUNDS, 1), validator.key)
    assert [one["outcome"] for one in there] == ["unknown", *["yes"] * 5]


@pytest.mark.usefixtures("odd")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_work_ends_without_a_word_where_nobody_waits_for_it_any_more(
    tmp_path: Path, cache: str, number: int
) -> None:
    registry = socket.create_server(("127.0.0.1", 0))
    image = f"registry:127.0.0.1:{registry.getsockname()[1]}/odd:1"
    started = subprocess.Popen(
        [
            *(sys.executable, "-m", "toolmatrix", "validate", image),
            *("--expect", "python==3.9.*", "--executor", "threads"),
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
            "XDG_CACHE_HOME": cache,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 120
    with registry, silent(registry):
        # A terminal sends Ctrl-C to all of them.
        os.killpg(started.pid, number) if number == signal.SIGINT else started.send_signal(number)
        _, err = started.communicate(timeout=60)
        assert err == ("interrupted\n" if number == signal.SIGINT else "")
        with suppress(ProcessLookupError):
            while True:
                os.killpg(started.pid, 0)
                assert time.monotonic() < end, "a process is left"
                time.sleep(0.05)


@contextmanager
def silent(registry: socket.socket) -> Iterator[None]:
    """While a process waits for a registry that does not answer."""
    registry.settimeout(120)
    connection, _ = registry.accept()
    with connection:
        yield


@pytest.mark.long
def test_a_harvest_reads_elsewhere_what_it_reads_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    monkeypatch.chdir(tmp_path)
    requires: dict[str, list[str]] = {"numpy": [], "scipy": ["numpy>=1.26"], "h5py": ["numpy<99"]}
    for name, several in requires.items():
        one = shop.wheel(name, "99.1", "py3-none-any", several)
        place = tmp_path / "saved" / name
        place.mkdir(parents=True)
        (place / one.name).write_bytes(one.data)
        (place / "index.html").write_text(
            f'<a href="{one.name}#sha256={one.sha256}">{one.name}</a>'
        )
    index = open_index((), os.environ)
    heard: list[tuple[str, int, int]] = []

    class Hearing(Caller, Progress):
        def progress(self, doing: str, what: str) -> Progress:
            del doing, what
            return self

        def of(self, subject: str, done: int, total: int) -> None:
            heard.append((subject, done, total))

    def read(*names: str, executor: str = "") -> Harvested:
        found: Harvested = call_for(
            Hearing(),
            harvest,
            *names,
            from_="saved",
            output="out",
            check=True,
            executor=executor,
            matrix=OpenMatrix(index=index),
        )
        return found

    here = read(*requires)
    heard.clear()
    made(monkeypatch, ThreadPoolExecutor(2))
    there = read(*requires, executor="any")
    assert there.files == here.files
    assert [file.rows for file in there.files] == [1, 1, 1]
    assert heard == [("sources", number, 3) for number in (1, 2, 3)]
    made(monkeypatch, ThreadPoolExecutor(2))
    with pytest.raises(NothingMatched, match="the package index has no `mnn`"):
        read("numpy", "edge-engines", executor="any")


@pytest.mark.parametrize(
    "address", sampled(["nowhere", "bar://nowhere:1", "tls://127.0.0.1:1"], every=3)
)
def test_what_is_no_scheduler_is_told_and_nothing_else(
    tmp_path: Path, cache: str, address: str
) -> None:
    if find_spec("distributed") is None:
        docker.unable("a client of Dask needs `pip install 'toolmatrix[dask]'`")
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "toolmatrix", "validate", str(IMAGE)),
            *("--expect", "python==3.9.*", "--executor", f"dask:{address}"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    told = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout, len(told)) == (5, "", 3)
    assert told[0] == "error[TM500]: the Dask scheduler does not answer"
    assert told[1] == f"  expected: one at {address}"


@pytest.mark.long
def test_where_the_scheduler_of_dask_is_gone_the_rest_is_unknown(
    validator: Validator, tmp_path: Path, cache: str
) -> None:
    names = [f"{number}.json" for number in range(300)]
    for name in names:
        shutil.copy(IMAGE, tmp_path / name)
    there = validator.replace(directory=str(tmp_path))
    outcomes: dict[str, list[str]] = {}
    with cluster(tmp_path, {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache}) as (
        address,
        scheduler,
        _,
    ):

        def each(one: Judged) -> None:
            outcomes.setdefault(one.to_json()["outcome"], []).append(one.subject)
            if len(outcomes["yes"]) == 20:
                scheduler.kill()

        workers = ExecutorPool(f"dask:{address}", there, (), BOUNDS, 2)
        found = validation.validate_all(there.key, names, workers, str(tmp_path / "kept"), each)
    assert sorted(outcomes) == ["unknown", "yes"]
    assert "the connection to its scheduler was lost" in found[-1].verdicts[0].reason
    # Those are judged by the next run, and the others are not judged again.
    pool = Pool(there.attempt, BOUNDS, 1)
    again = validation.validate_all(there.key, names, pool, str(tmp_path / "kept"), lambda _: None)
    assert {one.to_json()["outcome"] for one in again} == {"yes"}
    kept = (tmp_path / "kept").read_text().splitlines()
    assert len(kept) == len(names) + len(outcomes["unknown"])


@pytest.mark.long
def test_dask_loses_none_and_tells_none_twice(tmp_path: Path, cache: str) -> None:
    from tests.cli import test_validate_many as many

    wanted = many.tagged(tmp_path, many.put(tmp_path))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache}
    with cluster(tmp_path, env) as (address, _, workers):
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
    # What a killed worker had in hand Dask may give up: that is unknown (TM908), and the second run judges it again.
    lines = [line for line in many.lines(tmp_path) if b'"TM908"' not in line]
    told = [json.loads(line)["subject"] for line in lines]
    assert sorted(told) == sorted(wanted)


@pytest.mark.long
@pytest.mark.usefixtures("_opened_once", "_loaded_once")
def test_dask_finds_in_a_matrix_what_the_pool_finds(tmp_path: Path, cache: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache}
    with cluster(tmp_path, env) as (address, *_):
        there = ["--executor", f"dask:{address}", "--jobs", "4"]
        for words in (["check", "--only", "bazel.yaml"], ["audit", "flax"]):
            first, second = (asked(cache, *words, *more) for more in ([], there))
            assert json.loads(first[1])["schema"] == "toolmatrix.findings/1"
            assert second == first


def asked(cache: str, *words: str) -> tuple[int, str, str]:
    """What a command prints as JSON: exit code, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    code = main([*words, "--json"], {"XDG_CACHE_HOME": cache}, io.StringIO(), out, err)
    return code, out.getvalue(), err.getvalue()


@pytest.mark.long
def test_a_sweep_by_dask_outlives_its_workers_and_refuses_another_matrix(
    tmp_path: Path, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    monkeypatch.setattr(sweep, "BATCH", 1)
    path = small.write(tmp_path)
    index = open_index([path], os.environ)
    work, parts = sweep.Sweeper(index=index), sweep.batches(sweep.releases(index))
    wanted = [work.attempt(part) for part in parts]
    ending = Ending(index=index, marker=str(tmp_path / "marker"))
    with cluster(tmp_path, {**os.environ, "PYTHONPATH": str(ROOT)}) as (address, _, workers):
        name = f"dask:{address}"
        with Workers(ending, parts, (path,), 4, name) as held:
            assert list(held.results()) == wanted
        assert [one.poll() for one in workers].count(-signal.SIGKILL) == 1
        small.write(tmp_path, ('"3.0": {}', '"3.0": {}, "4.0": {}'))
        with (
            pytest.raises(UsageError, match="has a different matrix or platform"),
            Workers(work, parts, (path,), 4, name) as held,
        ):
            list(held.results())


class Ending(sweep.Sweeper):
    """A sweep that kills the worker which does a piece of it first."""

    marker: str

    def attempt(self, part: Sequence[sweep.Release]) -> list[sweep.ReleaseOutcome]:
        with suppress(FileExistsError):
            Path(self.marker).touch(exist_ok=False)
            # A process beside the worker does it.
            os.kill(os.getppid(), signal.SIGKILL)
        return super().attempt(part)


@pytest.mark.process
def test_workers_that_are_not_there_or_lack_the_program_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hides = (
        "import sys\n"
        "class Hides:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'toolmatrix':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Hides())\n"
    )
    (tmp_path / "sitecustomize.py").write_text(hides)
    with cluster(tmp_path, {**os.environ, "PYTHONPATH": str(tmp_path)}) as (address, _, workers):
        with pytest.raises(ToolMissing, match="cannot import toolmatrix") as lacking:
            executors.dask(address).__enter__()
        assert "tcp://" in lacking.value.found
        for one in workers:
            one.kill()
            one.wait()
        monkeypatch.setattr(executors, "_PATIENCE", 2)
        with pytest.raises(ToolMissing, match="no worker"):
            executors.dask(address).__enter__()


@contextmanager
def cluster(
    folder: Path, env: dict[str, str]
) -> Iterator[tuple[str, subprocess.Popen[bytes], list[subprocess.Popen[bytes]]]]:
    """A scheduler of Dask and two workers: its address, and their processes."""
    if find_spec("distributed") is None:
        docker.unable("a cluster of Dask needs `pip install 'toolmatrix[dask]'`")
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
        # It is there before it is written.
        while not (here.exists() and here.read_text()):
            assert time.monotonic() < end
            time.sleep(0.1)
        yield json.loads(here.read_text())["address"], started[0], started[1:]
    finally:
        for one in started:
            one.kill()
            one.wait()
