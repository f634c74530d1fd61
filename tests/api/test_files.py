"""`toolmatrix.lock` and `toolmatrix.render` make what the commands write."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

import toolmatrix
from toolmatrix.api.locks import Locked
from toolmatrix.cli.main import main
from toolmatrix.commands.lock import LockCheck, lock
from toolmatrix.commands.render import render
from toolmatrix.errors import LockError, NoImage, NothingMatched, OutputError, Unpinned, UsageError

REQUEST = ("gcc", "python")
WORDS = (*REQUEST, "--distro", "debian12", "--target", "x86,arm", "--accelerator", "none")
# The packages of these names are called as the functions, which type checkers do not see.
FRONT: Any = toolmatrix


def command(*words: str) -> tuple[int, str]:
    """Exit code and stdout of the command."""
    out = io.StringIO()
    code = main(list(words), {**os.environ}, io.StringIO(), out, io.StringIO())
    return code, out.getvalue()


def locked(**more: Any) -> Locked:
    """The lock of the request."""
    found = lock(*REQUEST, distro="debian12", target="x86,arm", accelerator="none", **more)
    assert isinstance(found, Locked)
    return found


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_lock_is_the_one_that_the_command_writes(here: Path) -> None:
    found = locked()
    assert command("lock", *WORDS, "--lock", "-") == (0, f"{found}\n")
    code, out = command("lock", *WORDS, "--json")
    assert (code, json.loads(json.dumps(found.to_json()))) == (0, json.loads(out))
    found.write("mine.lock")
    assert (here / "mine.lock").read_bytes() == (here / "toolmatrix.lock").read_bytes()
    assert str(FRONT.lock("gcc", target="arm")) == str(lock("gcc", target="arm"))


def test_a_lock_is_kept_but_for_what_may_move() -> None:
    old = lock("numpy", target="x86", at="2023-06-01")
    assert isinstance(old, Locked)
    old.write("old.lock")
    kept = lock("numpy", target="x86", keep="old.lock")
    moved = lock("numpy", target="x86", keep="old.lock", upgrade="numpy")
    new = lock("numpy", target="x86")
    assert isinstance(kept, Locked)
    assert isinstance(moved, Locked)
    assert isinstance(new, Locked)
    version = [
        one.lock.targets["x86"].components["numpy"].version for one in (old, kept, moved, new)
    ]
    assert version[0] == version[1] != version[3] == version[2]
    with pytest.raises(NothingMatched, match="has no cuda"):
        lock("numpy", target="x86", keep="old.lock", upgrade=["cuda"])


def test_a_lock_is_asked_again_and_checked_by_its_path(here: Path) -> None:
    locked(at="2024-06-01").write("old.lock")
    fresh = lock(lock="old.lock", check=True)
    assert isinstance(fresh, LockCheck)
    assert command("lock", "--check", "--lock", "old.lock") == (0, fresh.text())
    assert str(lock(lock="old.lock")) == (here / "old.lock").read_text().removesuffix("\n")
    later = lock(lock="old.lock", at="2026-06-01", check=True)
    assert not later
    asked = ("--at", "2026-06-01", "--lock", "old.lock")
    assert command("lock", "--check", *asked) == (1, later.text())


def test_a_request_is_rendered_without_a_lock(here: Path) -> None:
    found = render(wanted=REQUEST, distro="debian12", target="x86,arm", accelerator="none")
    assert command("render", *WORDS, "--output", "out") == (
        0,
        "".join(f"wrote out/{name}\n" for name in sorted(found)),
    )
    assert (here / "out/arm.Dockerfile").read_text() == found["arm.Dockerfile"]
    with pytest.raises(NoImage) as caught:
        render(wanted=("tensorflow==2.6.5", "python==3.12"), target="x86")
    assert caught.value.answer.exit_code == 1


def test_what_has_no_answer_is_a_refusal() -> None:
    found = lock("tensorflow==2.6.5", "python==3.12", target="x86")
    assert not found
    assert (
        f"{found}\n" == command("resolve", "tensorflow==2.6.5", "python==3.12", "--target=x86")[1]
    )


def test_files_are_those_that_the_command_writes(here: Path) -> None:
    found = render(locked(recipe="toolchain"))
    assert command("render", *WORDS, "--output", "out")[0] == 0
    done = found.write(here / "mine")
    assert all(done.values())
    for path in (here / "out").rglob("*"):
        if path.is_file():
            assert (
                here / "mine" / path.relative_to(here / "out")
            ).read_bytes() == path.read_bytes()
    assert len(done) == len(found)
    assert found.unpinned == (
        "apt-get install gcc-12 g++-12 make python3.11 python3.11-dev python3.11-venv python3-distutils",
        "debian:12",
        "docker/dockerfile:1",
    )
    assert not any(found.write("mine").values())
    assert str(found) == command("render", "--output", "out", "--stdout")[1]


def test_a_lock_remembers_how_it_was_rendered(here: Path) -> None:
    first = render(locked(recipe="toolchain"), dialect="classic", format="dockerfile", target="arm")
    first.write("out")
    assert sorted(first) == ["arm.Dockerfile", "arm.check.sh", "toolmatrix.lock"]
    again = FRONT.render("out/toolmatrix.lock")
    assert dict(again) == dict(first)
    assert again.differences("out") == ({}, False)
    (here / "out/arm.Dockerfile").write_text("# mine\n")
    changed, kept = again.differences("out")
    assert ([*changed], kept) == (["out/arm.Dockerfile"], True)
    with pytest.raises(OutputError, match="an existing file was not written by toolmatrix"):
        again.write("out")
    assert again.write("out", force=True)["out/arm.Dockerfile"]


def test_a_recipe_of_ones_own_is_found_from_the_lock(here: Path) -> None:
    recipe = (
        "schema: toolmatrix.recipe/1\nname: mine\nabout: a compiler\nneeds: [base-image, distro]\n"
    )
    (here / "mine.yaml").write_text(recipe)
    found = render(locked(recipe="mine.yaml"), recipe="mine.yaml", format="dockerfile")
    found.write("deep/out")
    again = render("deep/out/toolmatrix.lock")
    assert os.path.normpath(again.options.recipe) == "mine.yaml"
    assert again["arm.Dockerfile"] == found["arm.Dockerfile"]


def test_what_cannot_be_rendered_is_refused(here: Path) -> None:
    held = locked(recipe="toolchain")
    with pytest.raises(Unpinned):
        render(held, strict=True)
    with pytest.raises(UsageError, match="bad value for `dialect`"):
        render(held, dialect="new")
    with pytest.raises(UsageError, match="bad value for `format`"):
        render(held, format="dockerfile,paper")
    with pytest.raises(UsageError, match="no file uses the base image"):
        render(held, base=["alpine=debian:12"])
    with pytest.raises(LockError, match="there is no lock"):
        render(here / "none.lock")
