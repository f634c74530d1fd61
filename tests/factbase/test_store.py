"""Where an index comes from: shipped, cached or made anew, and never a stale or damaged one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.factbase.small import FRONT, facts, said, statement, write
from tests.factbase.test_index import everything
from toolmatrix import resources
from toolmatrix.errors import MatrixError
from toolmatrix.factbase import load, store
from toolmatrix.factbase.index import FORMAT, HEADER, Index, IndexFolder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolmatrix.factbase.records import States

GCC_8 = facts(statements=[statement(requires={"gcc": "8"})])
GCC_9 = facts(statements=[statement(requires={"gcc": "9"})])


class Home:
    """A built-in matrix in one folder, and a cache in another."""

    def __init__(self, path: Path) -> None:
        self.data = path / "data"
        self.data.mkdir()
        self.front = write(self.data, GCC_8)
        self.cache = path / "cache" / "toolmatrix"
        self.env = {"XDG_CACHE_HOME": str(path / "cache")}

    def gcc(self, *overlays: str) -> str:
        """The GCC that the matrix requires: which of the texts above was read."""
        index = store.open_index(overlays, self.env)
        return index.claim(index.ids["s#gcc"]).selector

    def cached(self) -> list[str]:
        return sorted(entry.name for entry in self.cache.glob("index-*"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = Home(tmp_path)
    monkeypatch.setattr(resources, "matrix_root", lambda: str(made.data))
    monkeypatch.setattr(resources, "builtin_index", lambda: None)
    return made


def forbid_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object) -> None:
        raise AssertionError("YAML was parsed")

    monkeypatch.setattr(load, "load", refuse)
    monkeypatch.setattr(load, "files", refuse)


def test_an_index_is_cached_and_then_read(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    assert home.gcc() == "8"
    (name,) = home.cached()
    assert name.startswith("index-")
    forbid_yaml(monkeypatch)
    assert home.gcc() == "8"


@pytest.mark.parametrize(
    "front",
    [
        FRONT,
        FRONT.replace(
            "files:\n  - names.yaml\n  - facts.yaml\n", "files: [names.yaml, facts.yaml]\n"
        ),
        FRONT.replace("  - facts.yaml", '  - "facts.yaml"'),
        FRONT.replace("  - facts.yaml", "  # the facts\n\n  - facts.yaml # all of them"),
        FRONT.replace("\n", "\r\n"),
        FRONT.replace("files:", "'files':"),
        FRONT.replace("files:\n", "files: # in any order\n").replace("  - ", "- "),
    ],
)
def test_a_change_of_a_listed_file_is_seen_however_it_is_listed(home: Home, front: str) -> None:
    (home.data / "matrix.yaml").write_text(front)
    assert home.gcc() == "8"
    (home.data / "facts.yaml").write_text(GCC_9)
    assert home.gcc() == "9"


def test_an_index_knows_its_files(home: Home, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(GCC_9)
    names = ("matrix.yaml", "names.yaml", "facts.yaml")
    wanted = [*(str(home.data / name) for name in names), str(own)]
    files = store.open_index([str(own)], home.env).header["files"]
    assert sorted(files) == sorted(wanted)


def test_a_change_of_time_alone_is_seen(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.gcc()
    os.utime(home.data / "facts.yaml", (1, 1))
    forbid_yaml(monkeypatch)
    with pytest.raises(AssertionError, match="YAML was parsed"):
        home.gcc()


def test_files_on_top_have_an_index_of_their_own(home: Home, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(GCC_9)
    assert [home.gcc(), home.gcc(str(own)), home.gcc()] == ["8", "9", "8"]
    assert len(home.cached()) == 2
    own.write_text(GCC_8 + "\n")
    assert home.gcc(str(own)) == "8"


@pytest.mark.parametrize("env", [{}, {"HOME": ""}, {"XDG_CACHE_HOME": "relative"}])
def test_without_a_cache_folder_the_index_is_made_in_memory(
    home: Home, env: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    home.env = env
    before = sorted(tmp_path.iterdir())
    assert home.gcc() == "8"
    assert sorted(tmp_path.iterdir()) == before


def test_a_cache_that_cannot_be_written_is_done_without(home: Home) -> None:
    home.cache.parent.write_text("a file where the folder should be")
    assert home.gcc() == "8"


def test_a_write_that_fails_leaves_nothing_behind(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    assert home.gcc() == "8"
    assert home.cached() == []


def test_files_that_change_while_they_are_read_are_not_cached(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = store.build

    def slow(
        paths: Sequence[str], files: States | None = None, cache: str = ""
    ) -> dict[str, bytes]:
        data = build(paths, files, cache)
        (home.data / "facts.yaml").write_text(GCC_9 + "\n")
        return data

    monkeypatch.setattr(store, "build", slow)
    assert home.gcc() == "8"
    assert not home.cache.exists()
    monkeypatch.setattr(store, "build", build)
    assert home.gcc() == "9"


def test_a_changed_file_takes_the_place_of_what_was_made_of_it(home: Home) -> None:
    for number in range(3):
        os.utime(home.data / "facts.yaml", (number, number))
        home.gcc()
    assert len(home.cached()) == 1


def test_old_indexes_are_removed_and_never_that_of_the_matrix_alone(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_MAX_INDEXES", 4)
    home.gcc()
    (alone,) = home.cached()
    for number in range(12):
        own = tmp_path / f"own{number}.yaml"
        own.write_text(GCC_9)
        home.gcc(str(own))
    assert alone in home.cached()
    assert len(home.cached()) == 1 + 4
    # As releases before this one wrote them.
    for number in range(4):
        (home.cache / f"index-with-{number}.bin").write_bytes(b"")
        os.utime(home.cache / f"index-with-{number}.bin", (number, number))
    own = tmp_path / "another.yaml"
    own.write_text(GCC_9)
    home.gcc(str(own))
    assert len(home.cached()) == 1 + 4
    # After a clock was set back the others are of a day to come.
    before = set(home.cached())
    for name in before:
        os.utime(home.cache / name, (1 << 34, 1 << 34))
    own = tmp_path / "own.yaml"
    own.write_text(GCC_9)
    home.gcc(str(own))
    (new,) = set(home.cached()) - before
    home.gcc(str(own))
    assert new in home.cached()
    assert len(home.cached()) == 1 + 4


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def test_an_index_whose_header_is_damaged_is_made_anew(home: Home) -> None:
    wanted = everything(store.open_index((), home.env))
    (name,) = home.cached()
    damage(home.cache / name / HEADER)
    assert everything(store.open_index((), home.env)) == wanted
    assert everything(Index("", IndexFolder(str(home.cache / name)))) == wanted
    assert home.cached() == [name]


def test_an_index_of_another_format_is_made_anew(home: Home) -> None:
    home.gcc()
    header = home.cache / home.cached()[0] / HEADER
    header.write_bytes(header.read_bytes().replace(FORMAT.encode(), b"toolmatrix-index/0", 1))
    assert home.gcc() == "8"
    assert FORMAT.encode() in header.read_bytes()


def test_a_damaged_file_is_one_error_that_names_it(home: Home) -> None:
    home.gcc()
    file = home.cache / home.cached()[0] / "components/gcc.json"
    damage(file)
    with pytest.raises(MatrixError) as caught:
        store.open_index((), home.env).component("gcc")
    assert said(caught.value) == (
        f"{file}: the compiled matrix is damaged or from another version; expected {FORMAT}; found ; "
        "run the command again; if that fails too, remove the folder of this file"
    )


def test_what_an_ended_run_left_does_no_harm(home: Home) -> None:
    home.gcc()
    (name,) = home.cached()
    (home.cache / f"{name}.new{os.getpid()}" / "components").mkdir(parents=True)
    os.utime(home.data / "facts.yaml", (1, 1))
    assert home.gcc() == "8"


# the index of a wheel


@pytest.fixture
def wheel(home: Home, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = home.data / "index"
    store.build_index(str(home.data), str(path))
    monkeypatch.setattr(resources, "builtin_index", lambda: str(path))
    return path


def test_the_shipped_index_is_read(
    home: Home, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_yaml(monkeypatch)
    assert home.gcc() == "8"
    assert store.open_index((), home.env).path == str(wheel)
    assert not home.cache.exists()


def test_the_shipped_index_is_not_read_under_files_on_top(
    home: Home, wheel: Path, tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text(GCC_9)
    assert wheel.exists()
    assert home.gcc(str(tmp_path / "own.yaml")) == "9"


def test_the_shipped_index_is_refused_when_a_file_beside_it_changed(
    home: Home, wheel: Path
) -> None:
    (home.data / "facts.yaml").write_text(GCC_9 + "\n")
    assert home.gcc() == "9"
    assert wheel.exists()


def test_the_shipped_index_is_refused_when_a_file_is_much_younger(home: Home, wheel: Path) -> None:
    (home.data / "facts.yaml").write_text(GCC_9)
    assert home.gcc() == "8"
    later = (wheel / HEADER).stat().st_mtime + 2 * store._SLACK
    os.utime(home.data / "facts.yaml", (later, later))
    assert home.gcc() == "9"


def test_the_shipped_index_is_refused_when_a_file_is_gone(home: Home, wheel: Path) -> None:
    (home.data / "facts.yaml").unlink()
    assert wheel.exists()
    with pytest.raises(MatrixError, match="a listed file is missing"):
        home.gcc()


def test_a_shipped_index_whose_header_is_damaged_is_made_anew_in_the_cache(
    home: Home, wheel: Path
) -> None:
    wanted = everything(store.open_index((), home.env))[2:]
    damage(wheel / HEADER)
    assert everything(store.open_index((), home.env))[2:] == wanted
    assert len(home.cached()) == 1
