"""Images of a real engine: read as what it saves, and one clear error for each way in which that fails."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.engine import docker
from tests.engine.docker import Engine
from tests.images import images, nobody, stores
from toolmatrix.errors import SubjectError, ToolMissing
from toolmatrix.images import engines
from toolmatrix.images.limits import Budget
from toolmatrix.images.streams import Readable
from toolmatrix.inspection import subjects

pytestmark = pytest.mark.process

NAME = "toolmatrix-test/read:some"


@pytest.fixture(scope="module")
def saved(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An image that the engine holds, and the archive that it saves."""
    files = {"etc/os-release": b"ID=debian\nVERSION_ID=12\n", "usr/bin/a": b"#!/bin/sh\n"}
    made = images.image(files, {"usr/bin/b": b"b" * 5_000_000}, Env=["A=b"], User="me")
    path = tmp_path_factory.mktemp("saved") / "image.tar"
    engine.load(images.tar(images.saved(made, NAME)))
    engine.done("save", "--output", str(path), NAME)
    yield path
    engine.done("rmi", NAME)


@pytest.mark.parametrize("form", ["docker:{}", "docker://{}"])
@pytest.mark.parametrize("in_place", [True, False])
def test_an_image_is_what_the_engine_saves(
    reached: Engine, saved: Path, form: str, in_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reached
    if not in_place:
        monkeypatch.setattr("toolmatrix.images.local.read_storage", lambda *_: None)
    read = subjects.observe(f"archive:{saved}")
    found = subjects.observe(form.format(NAME), "linux/amd64")
    assert found.components["distro"][0].version == "debian12"
    assert found == read.replace(subject=form.format(NAME))


@pytest.mark.parametrize(
    ("name", "what", "expected"),
    [
        ("toolmatrix-test/read:som", "the engine has no such image", f"`docker:{NAME}`"),
        ("toolmatrix-test/READ", "this is not a valid image name", ""),
        ("../containers/json", "this is not a valid image name", ""),
        ("//", "this is not a valid image name", ""),
    ],
)
def test_an_image_that_is_not_there_is_told_with_its_neighbours(
    reached: Engine, saved: Path, name: str, what: str, expected: str
) -> None:
    assert reached
    assert saved.exists()
    with pytest.raises(SubjectError) as caught:
        subjects.observe(f"docker:{name}")
    assert caught.value.what == what
    near = caught.value.expected.split(" or ")
    assert near[0] == expected  # others may be there by chance


def test_an_image_of_another_platform_is_not_taken(reached: Engine, saved: Path) -> None:
    assert reached
    assert saved.exists()
    with pytest.raises(SubjectError, match="no image for this platform"):
        subjects.observe(f"docker:{NAME}", "linux/arm64")


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("unix:///nowhere/docker.sock", "unix:///nowhere/docker.sock"),
        ("tcp://127.0.0.1:1", "tcp://127.0.0.1:1"),
        ("gopher://here", "gopher://here"),
    ],
)
def test_an_engine_that_does_not_answer_is_told(
    host: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    with pytest.raises(ToolMissing) as caught:
        subjects.observe("docker:some")
    error = caught.value
    assert (error.what, found in error.found) == ("no engine answers", True)
    assert error.exit_code == 5


def test_a_client_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for scheme, program in (("docker", "docker"), ("podman", "podman")):
        with pytest.raises(ToolMissing) as caught:
            subjects.observe(f"{scheme}:some")
        assert caught.value.what == f"the program `{program}` cannot be run"
        assert f"install {program}" in caught.value.help


def test_an_engine_that_hangs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_ANSWER", 1)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{tmp_path}/engine")
        listening.listen()
        with pytest.raises(ToolMissing, match="no engine answers"):
            subjects.observe("docker:a")


def test_the_context_in_force_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text('{"currentContext": "other"}')
    meta = tmp_path / "contexts" / "meta" / sha256(b"other").hexdigest() / "meta.json"
    meta.parent.mkdir(parents=True)
    endpoint = '"Endpoints": {"docker": {"Host": "tcp://127.0.0.1:1"}}'
    for text, found in (
        (f'{{"Name": "other", "Metadata": {{}}, {endpoint}}}', "tcp://127.0.0.1:1"),
        ("{", "unexpected end of JSON input"),
    ):
        meta.write_text(text)
        with pytest.raises(ToolMissing, match=r"no engine answers|docker fails") as caught:
            subjects.observe("docker:some")
        assert found in caught.value.found


def test_a_user_who_may_not_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        docker.unable("another user can be taken by root alone")
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        path.chmod(0o600)
        for folder in (tmp_path, *tmp_path.parents[:3]):
            if folder.owner() == "root" and folder.name.startswith(("pytest", "test", "0", "1")):
                folder.chmod(0o755)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        said = nobody.told(lambda: subjects.observe("docker:some"))
    what, _, found = said.partition(": ")
    assert what == "this user may not access the engine"
    assert found.endswith("permission denied")


@pytest.mark.large
@pytest.mark.slow
def test_an_engine_that_ends_on_the_way_is_no_damaged_image(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacking = docker.missing("docker", "dockerd", "ip")
    if lacking:
        docker.unable(f"an engine to end needs {', '.join(lacking)}")
    with docker.own() as (own, process):
        monkeypatch.setenv("DOCKER_HOST", own.host)
        made = images.image({"a": b"1", **{f"b{n}": os.urandom(1 << 20) for n in range(64)}})
        own.load(images.tar(images.saved(made, NAME)))

        def look(path: str, size: int, stream: Readable) -> bytes | None:
            if path == "a":
                os.kill(process, signal.SIGKILL)
            return images.everything(path, size, stream)

        # Out of its storage an image is read without it.
        monkeypatch.setattr("toolmatrix.images.local.read_storage", lambda *_: None)
        image = engines.find("docker", NAME, Budget(NAME))
        with pytest.raises(ToolMissing, match="the engine stopped answering"):
            engines.read(image, "", images.reader(NAME, look))


def test_an_engine_that_saves_nothing_for_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores.program(tmp_path, "docker", "[ $1 = save ] && exec sleep 1000")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(engines, "_PATIENCE", 0.5)
    image = engines.EngineImage(engines.DOCKER, NAME, "1", "1", {})
    with pytest.raises(ToolMissing) as caught:
        engines.read(image, "", images.reader(NAME))
    assert caught.value.found == "nothing for 0.5 seconds"
