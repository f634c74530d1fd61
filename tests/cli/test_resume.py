"""`--resume` keeps what was said of an image, not of a name: what a name stands for may have changed since."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import docker
from tests.images import hostile, images

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Cli
    from tests.engine.docker import Engine

pytestmark = pytest.mark.process

GOOD, BAD = (
    images.image({"etc/os-release": f"ID=debian\nVERSION_ID={version}\n".encode()})
    for version in ("12", "11")
)
NAME = "toolmatrix-test/resume"


@pytest.fixture
def engine(_large: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    with docker.needed() as found:
        monkeypatch.setenv("DOCKER_HOST", found.host)
        for tag, made in (("good", GOOD), ("bad", BAD)):
            found.load(images.tar(images.saved(made, f"{NAME}:{tag}")))
        yield found
        found.done("rmi", "--force", *(f"{NAME}:{tag}" for tag in ("good", "bad", "moved")))


def judged(real: Cli, here: Path, subject: str, *words: str) -> tuple[str, int]:
    """What is said of a subject, and how many results are kept by now."""
    (here / "list").write_text(f"{subject}\n")
    words = ("--resume", "kept.jsonl", "--expect", "distro==debian12", "--json", *words)
    run = real("validate", "--all", "list", *words)
    (one,) = run.json()["subjects"]
    return one["outcome"], len((here / "kept.jsonl").read_text().splitlines())


def test_a_tag_that_was_moved_is_judged_again(real: Cli, here: Path, engine: Engine) -> None:
    subject = f"docker:{NAME}:moved"
    engine.done("tag", f"{NAME}:good", f"{NAME}:moved")
    assert judged(real, here, subject) == ("yes", 1)
    assert judged(real, here, subject) == ("yes", 1)
    engine.done("tag", f"{NAME}:bad", f"{NAME}:moved")
    assert judged(real, here, subject) == ("no", 2)
    assert judged(real, here, subject) == ("no", 2)
    engine.done("tag", f"{NAME}:good", f"{NAME}:moved")
    assert judged(real, here, subject) == ("yes", 3)


@pytest.mark.usefixtures("engine")
def test_an_engine_that_did_not_answer_is_asked_again(
    real: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
        assert judged(real, here, f"docker:{NAME}:good") == ("unknown", 1)
    assert judged(real, here, f"docker:{NAME}:good") == ("yes", 2)


def test_a_tag_that_was_pushed_over_is_judged_again(
    real: Cli, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with hostile.running() as server:
        subject = f"registry://{server.host}/app:1"
        server.serve("app", GOOD)
        assert judged(real, here, subject) == ("yes", 1)
        server.asked.clear()
        assert judged(real, here, subject) == ("yes", 1)
        assert [one.path for one in server.asked] == ["/v2/app/manifests/1"]
        server.serve("app", BAD)
        assert judged(real, here, subject) == ("no", 2)


def archive(path: Path, made: images.Made) -> None:
    """An archive with a time of its own making, as tools write them whose output can be repeated."""
    path.write_bytes(images.tar(images.saved(made)))
    os.utime(path, (1, 1))


def layout(path: Path, made: images.Made) -> None:
    shutil.rmtree(path, ignore_errors=True)
    images.put(path, images.layout(made))


def copied(path: Path, made: images.Made) -> None:
    shutil.rmtree(path, ignore_errors=True)
    images.put(path, images.copied(made))


@pytest.mark.parametrize(
    ("subject", "write"),
    [("archive:x", archive), ("x", archive), ("oci:x", layout), ("dir:x", copied)],
)
def test_a_file_that_was_replaced_is_judged_again(
    subject: str, write: Callable[[Path, images.Made], None], real: Cli, here: Path
) -> None:
    write(here / "x", GOOD)
    assert judged(real, here, subject) == ("yes", 1)
    assert judged(real, here, subject) == ("yes", 1)
    write(here / "x", BAD)
    assert judged(real, here, subject) == ("no", 2)


def test_a_directory_as_a_root_is_judged_every_time(real: Cli, here: Path) -> None:
    release = images.put(here / "root", {"etc/os-release": b"ID=debian\nVERSION_ID=12\n"})
    assert judged(real, here, "dir:root") == ("yes", 1)
    (release / "etc" / "os-release").write_text("ID=debian\nVERSION_ID=11\n")
    assert judged(real, here, "dir:root") == ("no", 2)
    assert judged(real, here, "dir:root") == ("no", 3)


def test_an_image_that_changes_while_it_is_judged_is_judged_again(
    real: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolmatrix.inspection import subjects

    archive(here / "x", GOOD)
    before = subjects.observe

    def meanwhile(*given: Any) -> Any:
        found = before(*given)
        archive(here / "x", BAD)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(subjects, "observe", meanwhile)
        assert judged(real, here, "archive:x") == ("yes", 1)
    assert judged(real, here, "archive:x") == ("no", 2)


def test_what_was_asked_and_by_whom_counts(
    real: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(here / "x", GOOD)
    assert judged(real, here, "x") == ("yes", 1)
    assert judged(real, here, "x", "--expect", "arch==arm64") == ("no", 2)
    monkeypatch.setattr("toolmatrix.judging.pool.__version__", "0.0.0")
    assert judged(real, here, "x") == ("yes", 3)


def test_results_on_a_full_disk_are_an_error_with_a_way_out(real: Cli, here: Path) -> None:
    if os.geteuid() != 0:
        docker.unable("a disk of 16 KiB can be mounted by root alone")
    (here / "disk").mkdir()
    archive(here / "x", GOOD)
    names = [f"x{number}" for number in range(40)]
    for name in names:
        (here / name).symlink_to("x")
    (here / "list").write_text("\n".join(names) + "\n")
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", "disk"]
    if subprocess.run(mount, check=False, cwd=here, capture_output=True).returncode:
        docker.unable("a disk of 16 KiB needs the right to mount one")
    words = ("validate", "--all", "list", "--expect", "distro==debian12", "--json", "--resume")
    try:
        run = real(*words, "disk/kept.jsonl")
        assert run.code == 2
        assert run.json()["error"] == {
            "code": "TM905",
            "what": "cannot save the results",
            "where": {"path": "disk/kept.jsonl", "line": None, "column": None},
            "expected": "",
            "found": "No space left on device",
            "help": "earlier results are kept: free disk space and run it again, or name another file",
        }
        kept = (here / "disk" / "kept.jsonl").read_bytes()
    finally:
        subprocess.run(["umount", "disk"], check=True, cwd=here)
    assert kept.endswith(b"\n")
    (here / "kept.jsonl").write_bytes(kept)
    done = [json.loads(line)["subject"] for line in kept.splitlines()]
    assert 0 < len(done) < len(names)
    again = real(*words, "kept.jsonl")
    assert again.json()["summary"] == {"subjects": 40, "yes": 40, "no": 0, "unknown": 0}
    whole = (here / "kept.jsonl").read_bytes()
    assert whole.startswith(kept)
    assert sorted(json.loads(line)["subject"] for line in whole.splitlines()) == sorted(names)
