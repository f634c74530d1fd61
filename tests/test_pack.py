"""A pack gives back what was loaded, and whatever does not fit counts as not there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.small import facts, statement, write
from toolmatrix import pack
from toolmatrix.facts.store import build_index
from toolmatrix.pack import Pack

if TYPE_CHECKING:
    from collections.abc import Mapping

PARTS: Mapping[str, Any] = {
    "whole": {"names": ["a", "b"], "mask": 1 << 300, "none": None},
    "code": compile("answer = 6 * 7", "made.py", "exec"),
    "text": "x" * 40,
}


@pytest.fixture(autouse=True)
def writing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "__pycache__" / "some.pack"
    loaded(made)
    return made


def loaded(path: Path, state: object = ("s", 1)) -> list[str]:
    """Load all parts and keep them; returns those that had to be made."""
    held = Pack(str(path))
    for name, part in PARTS.items():
        assert held.load(name, state, partial(PARTS.__getitem__, name)) == part
    made = list(held.added)
    held.keep()
    return made


def test_what_was_made_once_is_loaded(path: Path) -> None:
    assert loaded(path) == []


def test_another_state_of_the_original_is_made_anew(path: Path) -> None:
    assert loaded(path, ("s", 2)) == list(PARTS)
    assert loaded(path, ("s", 2)) == []
    assert loaded(path) == list(PARTS)


def test_parts_are_added_to_those_that_are_there(path: Path) -> None:
    held = Pack(str(path))
    held.load("more", 1, lambda: "more")
    held.keep()
    assert loaded(path) == []
    again = Pack(str(path))
    assert again.load("more", 1, pytest.fail) == "more"
    again.keep()


def test_what_is_said_often_is_kept_once_and_stays_of_its_type(tmp_path: Path) -> None:
    def often(times: int) -> list[dict[str, object]]:
        return [{"mask": (1 << 300) + 1 - 1, "yes": True, "one": 1} for _ in range(times)]

    sizes = []
    for times in (10, 110):
        kept = tmp_path / f"{times}.pack"
        for make in (partial(often, times), pytest.fail):
            held = Pack(str(kept))
            part = held.load("often", 1, make)
            held.keep()
        assert part == often(times)
        assert {type(value) for one in part for value in one.values()} == {int, bool}
        assert {type(one["yes"]) for one in part} == {bool}
        sizes.append(kept.stat().st_size)
    # A mask of 300 bits takes 45 bytes.
    assert sizes[1] - sizes[0] < 100 * 45


def test_every_flipped_byte_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        )
        assert loaded(path) != []
        assert loaded(path) == []


def test_every_truncation_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert loaded(path) != []


@pytest.mark.parametrize(
    "foreign", [b"", b"\xff" * 5000, pack.FORMAT.encode(), b"SQLite format 3\n" + b"\0" * 99]
)
def test_a_foreign_file_is_replaced(path: Path, foreign: bytes) -> None:
    path.write_bytes(foreign)
    assert loaded(path) == list(PARTS)
    assert loaded(path) == []


def test_a_hostile_length_takes_no_memory(path: Path) -> None:
    path.write_bytes(pack._form() + b" 0 4294967295\n" + b"\0" * 100)
    assert loaded(path) == list(PARTS)


@pytest.mark.parametrize("version", ["3.9.1 (main)", sys.version + "+"])
def test_a_pack_for_another_interpreter_is_not_read(
    path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as other:
        other.setattr(sys, "version", version)
        assert loaded(path) == list(PARTS)
    assert loaded(path) == list(PARTS)


def test_where_nothing_can_be_written_all_is_made(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").write_text("a file where the folder should be")
    assert loaded(tmp_path / "__pycache__" / "some.pack") == list(PARTS)
    assert [entry.name for entry in tmp_path.iterdir()] == ["__pycache__"]


def test_a_write_that_fails_leaves_nothing_behind(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert loaded(path, "another") == list(PARTS)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_nothing_is_written_where_python_writes_no_bytecode(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.unlink()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert loaded(path) == list(PARTS)
    assert not path.exists()


# an installed package

RUN = "from toolmatrix.cli import script; script()"
LOADED = """
import sys
from toolmatrix import pack
pack.use(sys.argv[1])
from toolmatrix.cli import main
import inspect, traceback
try:
    main.parse(7)
except TypeError:
    print(traceback.format_exc())
print(inspect.getsource(main.version_line))
print(main.__file__, main.__spec__.has_location, sorted(pack.current.added))
"""


class Installed:
    """A copy of the package with a small matrix, as a wheel would install it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "site" / "toolmatrix"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(pack.__file__).parent, self.root, ignore=ignored)
        data = self.root / "data"
        data.mkdir()
        write(data, facts(statements=[statement(requires={"gcc": "8"})]))
        build_index(str(data), str(data / "index.bin"))
        self.folder = folder

    @property
    def packs(self) -> list[Path]:
        return sorted(self.root.rglob("*.pack"))

    def run(self, *arguments: str, code: str = RUN, **env: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        given = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.root.parent)}
        done = subprocess.run(
            command, cwd=self.folder, env=given | env, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        return done.stdout


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


@pytest.mark.process
def test_runs_of_an_installed_command_make_a_pack_and_add_to_it(installed: Installed) -> None:
    first = installed.run("--version")
    (made,) = installed.packs
    assert made.parent.name == "__pycache__"
    small = made.read_bytes()
    assert installed.run("--version") == first
    assert made.read_bytes() == small
    installed.run("facts", "gcc")
    assert len(made.read_bytes()) > len(small)


@pytest.mark.process
def test_a_changed_source_is_seen(installed: Installed) -> None:
    said = installed.run("--version")
    module = installed.root / "cli" / "main.py"
    text = module.read_text()
    module.write_text(text.replace("toolmatrix {__version__} (", "TOOLMATRIX {__version__} ("))
    assert installed.run("--version") == said.replace("toolmatrix", "TOOLMATRIX", 1)


@pytest.mark.process
def test_a_changed_index_is_seen(installed: Installed) -> None:
    assert "8" in installed.run("facts", "s#gcc")
    data = installed.root / "data"
    write(data, facts(statements=[statement(requires={"gcc": "9"})]))
    build_index(str(data), str(data / "index.bin"))
    said = installed.run("facts", "s#gcc")
    assert "requires gcc 9" in said
    assert said == installed.run("facts", "s#gcc")


@pytest.mark.process
def test_tracebacks_and_sources_are_those_of_modules(installed: Installed) -> None:
    installed.run("--version")
    said = installed.run(str(installed.root), code=LOADED)
    path = installed.root / "cli" / "main.py"
    assert f'File "{installed.root / "cli" / "parser.py"}", line ' in said
    assert "def version_line() -> str:" in said
    # In a run of the command these come before the pack.
    assert f"{path} True ['toolmatrix.cli', 'toolmatrix.cli.interrupts']" in said


@pytest.mark.process
def test_a_damaged_pack_is_made_anew(installed: Installed) -> None:
    said = installed.run("--version")
    (made,) = installed.packs
    whole = made.read_bytes()
    for place in (3, len(pack._form()) + 2, len(pack._form()) + 100, len(whole) - 50):
        made.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        assert installed.run("--version") == said
        mended = made.read_bytes()
        assert installed.run("--version") == said
        assert made.read_bytes() == mended


@pytest.mark.process
@pytest.mark.parametrize(
    "env", [{"PYTHONDONTWRITEBYTECODE": "1"}, {"PYTHONPYCACHEPREFIX": "/nonexistent/cache"}]
)
def test_a_command_works_without_a_pack(installed: Installed, env: dict[str, str]) -> None:
    assert installed.run("--version", **env) == installed.run("--version")
    assert len(installed.packs) == 1


@pytest.mark.process
def test_a_folder_that_cannot_be_written_is_done_without(installed: Installed) -> None:
    shutil.rmtree(installed.root / "__pycache__", ignore_errors=True)
    (installed.root / "__pycache__").write_text("a file where the folder should be")
    said = installed.run("--version")
    assert said.startswith("toolmatrix ")
    assert installed.packs == []


@pytest.mark.process
def test_a_source_checkout_has_no_pack(installed: Installed) -> None:
    shutil.move(installed.root / "data" / "index.bin", installed.folder / "index.bin")
    installed.run("--version", HOME=str(installed.folder))
    assert installed.packs == []
