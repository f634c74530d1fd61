"""What every test gets: neither processes nor sockets, unless it says so."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import matrix
from tests.amount import examples
from tests.engine import docker
from tests.engine.docker import Engine
from toolmatrix import resources

# All patched once: thousands of tests would each wait for it.
_GUARDED: tuple[tuple[Any, str], ...] = (
    (subprocess.Popen, "__init__"),
    *((os, name) for name in ("system", "posix_spawn")),
    *((socket.socket, name) for name in ("connect", "bind")),
    (socket, "getaddrinfo"),
)
_COMPILING = pytest.StashKey["subprocess.Popen[bytes]"]()

# Their asserts explain themselves as those of test modules do.
pytest.register_assert_rewrite("tests.compilation.laws", "tests.report.stage_laws")


def _kept_indexes(config: pytest.Config) -> Path:
    return config.cache.mkdir("toolmatrix")


def pytest_configure(config: pytest.Config) -> None:
    """Let what tests start hear an interrupt: a shell that runs them in the background has them ignore it.

    Generated examples are the same on every run and have no deadline; where nobody names their number there are fewer
    for somebody who waits.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile(
        "repeatable",
        derandomize=True,
        deadline=None,
        database=None,
        max_examples=examples(100),
    )
    settings.load_profile("repeatable")
    if not hasattr(config, "workerinput"):
        matrix.make_folder(_kept_indexes(config))
        if getattr(config.option, "numprocesses", None):
            config.stash[_COMPILING] = matrix.compile_ahead()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what all processes of a run shared."""
    if not hasattr(config, "workerinput"):
        if compiling := config.stash.get(_COMPILING, None):
            compiling.wait()
        matrix.remove_folder(_kept_indexes(config))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what asks for an engine, a registry, a store of images or a browser."""
    if isinstance(item, pytest.Function) and "_large" in item.fixturenames:
        item.add_marker(pytest.mark.large)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files with long and slow tests first and those with few tests last, as far as these are not the same."""
    # Last, when those that are left out are gone.
    # A worker that is handed a long file when the others are done has all of them wait.
    count = Counter(item.path for item in items)
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: (item.path not in long, -slow[item.path], -count[item.path]))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Have one worker compile the tests, whose asserts pytest writes anew, and the others read what it compiled.

    All of them wait for the matrix, which each would compile for itself.
    """
    # Collecting makes no garbage to speak of.
    gc.disable()
    try:
        if not hasattr(session.config, "workerinput"):
            return (yield)
        with matrix.first_alone():
            found = yield
        matrix.index()
        return found
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Have the garbage collector leave collected tests alone, and come less often: it took a tenth of all time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.fixture(scope="session")
def cache() -> str:
    """A cache directory that lives as long as the tests: with `XDG_CACHE_HOME=cache` the matrix is compiled once."""
    return matrix.folder()


@pytest.fixture(scope="session")
def ours() -> str:
    """A file of facts for on top: NumPy 1.19.99 of a mirror."""
    return matrix.ours()


@pytest.fixture
def _small_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/cli/fixtures/small in the place of the built-in matrix."""
    recipes = resources.recipes_root()
    monkeypatch.setattr(resources, "matrix_root", lambda: str(matrix.SMALL))
    monkeypatch.setattr(resources, "recipes_root", lambda: recipes)
    monkeypatch.setattr(resources, "builtin_index", lambda: None)


@pytest.fixture(scope="session", autouse=True)
def _indexes_stay() -> Iterator[None]:
    """Many tests have small matrices in the cache of all, and none of them may push out what others compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolmatrix.factbase.store._MAX_INDEXES", 10_000)
        yield


@pytest.fixture(scope="session")
def _refusing() -> Iterator[set[str]]:
    """Processes and sockets are refused while this holds a name."""
    refusing: set[str] = set()

    def guarded(original: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            if refusing:
                raise AssertionError(
                    "a test without the marker `process` uses a process or a socket"
                )
            return original(*given, **named)

        return called

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in _GUARDED:
            patch.setattr(owner, name, guarded(getattr(owner, name)))
        yield refusing


@pytest.fixture(autouse=True)
def _alone(
    request: pytest.FixtureRequest,
    cache: str,
    monkeypatch: pytest.MonkeyPatch,
    _refusing: set[str],
) -> Iterator[None]:
    """A test has a cache that is not the user's, and neither processes nor sockets unless it says so."""
    # What asks from Python finds the index too.
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    if not request.node.get_closest_marker("process"):
        _refusing.add(request.node.name)
    yield
    _refusing.clear()


@pytest.fixture(scope="module")
def _opened_once() -> Iterator[None]:
    """Runs in this process share one index of the built-in matrix."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolmatrix.factbase.store.open_index", matrix.opened_once)
        yield


@pytest.fixture(scope="module")
def _loaded_once() -> Iterator[None]:
    """Runs in this process share what they read of the files of the built-in matrix."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolmatrix.factbase.load.load", matrix.loaded_once)
        yield
    matrix.forget_loaded()


@pytest.fixture(scope="session")
def _large() -> None:
    """What a fixture asks for whose tools `./tests/run --builds` alone installs."""


@pytest.fixture(scope="module")
def engine(_large: None) -> Iterator[Engine]:
    """A real engine."""
    with docker.needed() as found:
        yield found


@pytest.fixture
def reached(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The engine, which this process reaches as well."""
    monkeypatch.setenv("DOCKER_HOST", engine.host)
    return engine
