"""Subjects for Python: the answers are those of the commands, in words and as documents."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import toolmatrix
from tests.cli.test_stdin import OURS
from tests.cli.test_validate import BAD, DOUBTFUL, GOOD, LOCK
from toolmatrix.cli.main import main
from toolmatrix.errors import LockError, NothingMatched, UsageError
from toolmatrix.lockfile import lock_file

HELD = {"good": GOOD, "bad": BAD, "doubtful": DOUBTFUL}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with saved inventories and, elsewhere, a lock that nobody finds by itself."""
    monkeypatch.chdir(tmp_path)
    for name, inventory in HELD.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(inventory.to_json()))
    (tmp_path / "the.lock").write_text(lock_file.text(LOCK))
    return tmp_path


def command(folder: Path, cache: str, *words: str) -> tuple[int, str]:
    """The exit code of a command and what it prints into a pipe."""
    stdout, stderr = io.StringIO(), io.StringIO()
    env = {"HOME": str(folder), "XDG_CACHE_HOME": cache}
    code = main(list(words), env, io.StringIO(), stdout, stderr)
    assert stderr.getvalue() == ""
    return code, stdout.getvalue()


def test_an_inventory_is_that_of_the_command(folder: Path, cache: str) -> None:
    found = toolmatrix.inventory("good.json")
    assert command(folder, cache, "inventory", "good.json") == (0, f"{found}\n")
    written = command(folder, cache, "inventory", "good.json", "--json")[1]
    assert found.to_json() == json.loads(written)
    assert found.components == GOOD.components
    everything = command(folder, cache, "inventory", "good.json", "--all")[1]
    assert found.text(everything=True) == everything


def test_subjects_of_a_directory_are_compared_and_kept_in_a_store(
    folder: Path, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = folder / "elsewhere"
    there.mkdir()
    monkeypatch.chdir(there)
    store = there / "store"
    found = toolmatrix.diff("good.json", "bad.json", directory=folder, store=store, store_size=1)
    words = ("diff", "good.json", "bad.json", "--exit-code", "-C", str(folder))
    assert command(folder, cache, *words) == (found.exit_code, f"{found}\n")
    assert store.is_dir()
    store.rmdir()
    toolmatrix.diff("good.json", "bad.json", directory=folder, store=None)
    command(folder, cache, *words, "--store", str(store), "--no-store")
    assert not store.exists()


@pytest.mark.process
@pytest.mark.parametrize(("name", "code"), [("good", 0), ("bad", 1), ("doubtful", 4)])
def test_verdicts_are_those_of_the_command(folder: Path, cache: str, name: str, code: int) -> None:
    subject = f"{name}.json"
    found = toolmatrix.validate(subject, lock=folder / "the.lock")
    assert (found.exit_code, bool(found)) == (code, code == 0)
    words = ("validate", subject, "--lock", str(folder / "the.lock"))
    assert command(folder, cache, *words) == (code, f"{found}\n")
    assert found.to_json() == json.loads(command(folder, cache, *words, "--json")[1])


@pytest.mark.process
def test_several_subjects_are_judged_and_merged_as_by_the_commands(
    folder: Path, cache: str
) -> None:
    names, lock = [f"{name}.json" for name in HELD], folder / "the.lock"
    several = toolmatrix.validate(*names, lock=lock, jobs=2)
    words = ("validate", *names, "--lock", str(lock))
    assert (
        command(folder, cache, *words) == (several.exit_code, f"{several}\n") == (1, f"{several}\n")
    )
    assert several.to_json() == json.loads(command(folder, cache, *words, "--json")[1])
    (folder / "list").write_text("\n".join(names))
    for part in ("1/2", "2/2"):
        path = folder / f"{part[0]}.jsonl"
        toolmatrix.validate("list", everything=True, lock=lock, shard=part, resume=path)
    merged = toolmatrix.merge("1.jsonl", folder / "2.jsonl", subjects="list")
    assert merged.subjects == several.subjects
    assert command(folder, cache, "merge", "1.jsonl", "2.jsonl", "--subjects", "list") == (
        1,
        f"{several}\n",
    )


@pytest.mark.process
def test_expectations_are_words_as_on_the_command_line() -> None:
    assert toolmatrix.validate("good.json", expect="numpy==1.26.*").outcome == "yes"
    wrong = toolmatrix.validate("bad.json", expect=("numpy==1.26.*", "arch==arm64"))
    assert [(one.name, one.word) for one in wrong.verdicts] == [
        ("numpy", "FAIL"),
        ("platform", "pass"),
    ]
    one = toolmatrix.validate("bad.json", expect=("numpy==1.26.*", "arch==arm64"), only=["arch"])
    assert [verdict.kind for verdict in one.verdicts] == ["arch"]


@pytest.mark.process
@pytest.mark.usefixtures("_small_matrix")
def test_a_matrix_is_one_that_is_open_or_files(folder: Path) -> None:
    ours = folder / "ours.yaml"
    ours.write_text(OURS)
    expect = "python==3.9"
    assert toolmatrix.validate("good.json", expect=expect, matrix=toolmatrix.open_matrix())
    assert toolmatrix.validate("good.json", expect=expect, matrix=ours)
    assert toolmatrix.validate("good.json", expect=expect, matrix=[str(ours)])


@pytest.mark.process
@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (LockError, {}),
        (LockError, {"lock": "none.lock"}),
        (UsageError, {"expect": "numpy"}),
        (NothingMatched, {"lock": "the.lock", "target": "amd"}),
        (NothingMatched, {"lock": "the.lock", "only": ["nothing"]}),
    ],
)
def test_what_cannot_be_asked_is_an_error(
    error: type[Exception], asked: dict[str, str | list[str]]
) -> None:
    with pytest.raises(error):
        toolmatrix.validate("good.json", **asked)  # type: ignore[arg-type]
