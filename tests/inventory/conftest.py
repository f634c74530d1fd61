"""A real engine, for the tests that need one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine import docker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.engine.docker import Engine


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with docker.needed() as found:
        yield found


@pytest.fixture
def reached(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The engine, which this process reaches as well."""
    monkeypatch.setenv("DOCKER_HOST", engine.host)
    yield engine
    docker.let_go()
