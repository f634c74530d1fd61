"""Stores of documents: what is damaged or foreign counts as not there, and nothing fails for want of room."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.engine import docker
from toolmatrix import document_store
from toolmatrix.document_store import DocumentStore, FolderFiles
from toolmatrix.errors import UsageError

SCHEMA = "test.thing/1"
BODY: dict[str, Any] = {"a": [1, "é\udcff"], "b": {"c": None}}


def kept(store: DocumentStore, key: str = "one", body: dict[str, Any] = BODY) -> None:
    """Keep a document."""
    store.put(SCHEMA, "thing", key, body)


def held(store: DocumentStore, key: str = "one") -> Any:
    """What is kept of a document, None where it is not there."""
    found = store.get(SCHEMA, "thing", key)
    return found and {name: found[name] for name in found if name in BODY}


def files(folder: Path) -> list[Path]:
    """The files of a store."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.fixture(params=["folder", "memory://", "local://", "file://"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store may be."""
    if request.param == "memory://":
        return f"memory://{uuid4()}/store"
    return f"{'' if request.param == 'folder' else request.param}{tmp_path}/some/store"


def test_what_is_kept_is_there_for_others(place: str) -> None:
    first, second = document_store.open_store(place), document_store.open_store(place)
    assert held(first) is None
    kept(first)
    assert held(second) == BODY
    assert held(second, "two") is None
    kept(second, body=BODY | {"a": 2})
    assert held(first) == BODY | {"a": 2}


def test_a_document_of_another_name_is_not_there(tmp_path: Path) -> None:
    store = document_store.open_store(str(tmp_path))
    kept(store)
    assert store.get("test.thing/2", "thing", "one") is None
    (path,) = files(tmp_path)
    kept(store, "two")
    (other,) = set(files(tmp_path)) - {path}
    other.write_bytes(path.read_bytes())
    assert held(store, "two") is None


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_a_damaged_document_is_not_there_and_is_written_anew(data: st.DataObject) -> None:
    class Held:
        """One file."""

        data = b""

        def read(self, _: str) -> bytes:
            return self.data

        def write(self, _: str, data: bytes) -> None:
            self.data = data

    one = Held()
    store = DocumentStore(one)
    kept(store)
    whole = one.data
    place = data.draw(st.integers(0, len(whole) - 1))
    change = data.draw(st.one_of(st.none(), st.integers(0, 255)))
    one.data = (
        whole[:place] if change is None else whole[:place] + bytes([change]) + whole[place + 1 :]
    )
    assert held(store) == (BODY if one.data == whole else None)
    kept(store)
    assert one.data == whole


def test_what_unpacks_without_end_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = document_store.open_store(str(tmp_path))
    kept(store, body=BODY | {"b": "x" * 3000})
    assert held(store) is not None
    monkeypatch.setattr(document_store, "_LARGEST", 1000)
    assert held(store) is None
    kept(store, "two", BODY | {"b": "x" * 3000})
    assert len(files(tmp_path)) == 1


def test_nobody_else_can_look_into_a_folder(tmp_path: Path) -> None:
    kept(document_store.open_store(str(tmp_path / "a/b")))
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700


def test_a_folder_keeps_what_was_used_last(tmp_path: Path) -> None:
    store = DocumentStore(FolderFiles(str(tmp_path), 10_000))
    mine = tmp_path / "thing" / "notes.txt"
    mine.parent.mkdir()
    mine.write_text("not of the store" * 1000)
    left = tmp_path / "tmpkilled.tmx-part"
    left.write_bytes(b"x")
    os.utime(left, (0, 0))
    noise = {"a": os.urandom(1000).hex()}
    for number in range(30):
        kept(store, str(number), noise)
        # What is of a day to come is no younger than what is of today.
        moment = time.time() + 1e6 if number == 3 else 1e9 + number
        for path in files(tmp_path / "thing")[-1:]:
            assert path.exists()
        name = tmp_path / document_store._name("thing", str(number))
        os.utime(name, (moment, moment))
        assert held(store, "0") is not None
    total = sum(path.stat().st_size for path in tmp_path.rglob("*.tmx"))
    assert total <= 10_000 + 2000
    assert mine.exists()
    assert not left.exists()
    assert (held(store, "29"), held(store, "4")) == ({"a": noise["a"]}, None)


def test_a_store_that_cannot_be_written_is_read_and_one_that_is_none_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = document_store.open_store(str(tmp_path / "store"))
    kept(whole)

    def refused(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("replace", "utime"):
        monkeypatch.setattr(os, name, refused)
    kept(whole, "two")
    assert (held(whole), held(whole, "two")) == (BODY, None)
    assert len(files(tmp_path)) == 1
    (tmp_path / "file").write_text("")
    none = document_store.open_store(str(tmp_path / "file"))
    kept(none)
    assert held(none) is None


ODD: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a directory": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path),
    "a device without end": lambda path: path.symlink_to("/dev/zero"),
    "nothing": Path.touch,
}


@pytest.mark.parametrize("what", ODD)
def test_what_is_no_document_is_not_there_and_is_not_waited_for(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_store, "_LARGEST", 1 << 20)
    store = document_store.open_store(str(tmp_path))
    kept(store)
    (path,) = files(tmp_path)
    path.unlink()
    ODD[what](path)
    assert held(store) is None
    kept(store)
    assert held(store) == (None if path.is_dir() else BODY)
    assert not list(tmp_path.rglob("*.tmx-part"))


@pytest.mark.process
@pytest.mark.parametrize("option", ["size=64k", "ro"])
def test_a_disk_that_is_full_or_cannot_be_written_fails_nothing(
    option: str, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        docker.unable("a disk can be mounted by root alone")
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        docker.unable("a small disk needs the right to mount one")
    try:
        store = document_store.open_store(str(tmp_path))
        kept(store, "first")
        if option == "ro":
            subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        for number in range(100):
            kept(store, str(number), BODY | {"b": os.urandom(1000).hex()})
        assert held(store, "first") == BODY
        assert held(store, "99") is None
        assert bool(document_store.problem_with_folder(str(tmp_path))) == (option == "ro")
        assert not list(tmp_path.rglob("*.tmx-part"))
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize("place", ["file://", "file://some/store", "file://host/some/store"])
def test_an_address_of_a_file_that_is_none_is_refused(place: str) -> None:
    with pytest.raises(UsageError) as caught:
        document_store.open_store(place)
    assert (caught.value.what, caught.value.found) == (
        "the store is not a folder or a supported URL",
        f"`{place}`",
    )


def test_a_folder_says_why_nothing_can_be_kept_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, why in (("new", ""), ("file/below", "Not a directory"), ("file", "File exists")):
        assert document_store.problem_with_folder(str(tmp_path / name)) == why


def test_a_place_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        document_store.open_store("nowhere://bucket/folder")
    assert caught.value.what == "the store is not a folder or a supported URL"
    assert caught.value.found.startswith("`nowhere://bucket/folder`: ")


def test_a_place_without_fsspec_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(UsageError, match="a store that is not a folder needs fsspec"):
        document_store.open_store("s3://bucket/folder")


def test_a_document_names_what_it_is(tmp_path: Path) -> None:
    kept(document_store.open_store(str(tmp_path)))
    (path,) = files(tmp_path)
    body = document_store._unpack(path.read_bytes())
    assert json.dumps(body) == json.dumps({"schema": SCHEMA, "kind": "thing", "key": "one", **BODY})


@pytest.mark.process
def test_processes_share_a_folder(tmp_path: Path) -> None:
    """Each sees whole documents or none, while others write them and make room."""
    bodies = [BODY | {"a": os.urandom(400).hex()} for _ in range(8)]

    def work(seed: int) -> bool:
        store = DocumentStore(FolderFiles(str(tmp_path), 4000))
        right = True
        for step in range(150):
            number = (step * seed) % len(bodies)
            kept(store, str(number), bodies[number])
            right = right and held(store, str(number)) in (None, bodies[number])
        return right

    children = []
    for seed in (3, 5, 7):
        child = os.fork()
        if not child:
            os._exit(0 if work(seed) else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert not list(tmp_path.rglob("*.tmx-part"))
