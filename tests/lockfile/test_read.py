"""Whatever `toolmatrix lock` did not write is refused."""

from __future__ import annotations

import os
from binascii import crc_hqx
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolmatrix.errors import LockError
from toolmatrix.lockfile import lock_file
from toolmatrix.lockfile.model import Lock

ANEW = "write it again with `toolmatrix lock`, or restore it from version control"


def refused(data: str | bytes) -> LockError:
    with pytest.raises(LockError) as caught:
        lock_file.parse(data.encode() if isinstance(data, str) else data, "x.lock")
    assert caught.value.exit_code == 2
    assert caught.value.help
    return caught.value


def line_of(error: LockError) -> int:
    assert error.where is not None
    return error.where.line


def resealed(text: str, old: str, new: str) -> str:
    """A lock that says something else under a seal that holds."""
    body = text[: text.index("# seal ")]
    assert old in body
    return lock_file.sealed(body.replace(old, new, 1))


def with_marks(text: str) -> str:
    """A lock as it was sealed once: below the digest a checksum of each line, sixteen to a row."""
    lines = text.split("\n")[:-2]
    marks = [f"{crc_hqx(line.encode(), 0xFFFF):04x}" for line in lines]
    rows = [
        f"# seal {place + 1}: {' '.join(marks[place : place + 16])}\n"
        for place in range(0, len(marks), 16)
    ]
    return text + "".join(rows)


EDITED = "the lock was edited after it was written"


@pytest.mark.parametrize("written", [str, with_marks], ids=["one-line", "marks"])
def test_every_line_that_is_deleted_doubled_or_moved_is_an_edit(
    small: Lock, written: Callable[[str], str]
) -> None:
    lines = written(lock_file.text(small)).splitlines()
    sealed = next(place for place, line in enumerate(lines) if line.startswith("# seal sha256:"))
    for place in range(sealed):
        for changed in (
            [*lines[:place], *lines[place + 1 :]],
            [*lines[: place + 1], *lines[place:]],
            [*lines[:place], lines[place + 1], lines[place], *lines[place + 2 :]],
        ):
            error = refused("\n".join([*changed, ""]))
            assert (error.what, str(error.where)) == (EDITED, "x.lock")


def test_every_changed_letter_is_an_edit(small: Lock) -> None:
    text = lock_file.text(small)
    for place, letter in enumerate(text):
        error = refused(text[:place] + ("y" if letter == "x" else "x") + text[place + 1 :])
        damaged = place >= text.index("\n# seal ")
        expected = (EDITED, "the lock is truncated") if damaged else (EDITED,)
        assert error.what in (*expected, "the lock has a different schema")


@given(st.data())
def test_a_replaced_or_inserted_line_is_an_edit(small: Lock, data: st.DataObject) -> None:
    lines = lock_file.text(small).splitlines()
    place = data.draw(st.integers(0, len(lines) - 2))
    new = data.draw(st.text(st.characters(codec="utf-8", exclude_characters="\n\r")))
    for changed in (
        [*lines[:place], new, *lines[place + 1 :]],
        [*lines[:place], new, *lines[place:]],
    ):
        if changed != lines:
            refused("\n".join([*changed, ""]))


def test_a_lock_with_marks_of_its_lines_is_read_as_before(small: Lock) -> None:
    text = with_marks(lock_file.text(small))
    assert text.count("# seal ") > 4
    assert lock_file.parse(text.encode(), "x.lock") == small
    error = refused(text.replace('"3.9"', '"3.8"'))
    assert (error.what, str(error.where)) == (EDITED, "x.lock")
    assert refused(text + "[matrix]\n").what == EDITED
    assert refused(text[:-1]).what == EDITED


def test_every_cut_is_named(small: Lock) -> None:
    """Cut anywhere, it is said that the file ends too early, and where it ends."""
    text = lock_file.text(small)
    for length in range(1, len(text)):
        error = refused(text[:length])
        begun = 'schema = "toolmatrix.lock/1"' in text[:length]
        expected = "the lock is truncated" if begun else error.what
        assert error.what == expected
        lines = text[:length].split("\n")
        assert line_of(error) == (len(lines) if lines[-1] else len(lines) - 1)


def test_what_stands_below_the_seal_is_an_edit(small: Lock) -> None:
    text = lock_file.text(small)
    for more in ("\n", "# mine\n", "[matrix]\n", "x"):
        error = refused(text + more)
        assert (error.what, str(error.where)) == (EDITED, "x.lock")


def test_an_edit_says_what_to_do(small: Lock) -> None:
    error = refused(lock_file.text(small).replace('"3.9"', '"3.8"'))
    assert error.expected == "what `toolmatrix lock` wrote"
    assert error.found == "lines whose digest does not match its seal"
    assert error.help == ANEW


def test_line_ends_converted_by_git_are_called_that(small: Lock) -> None:
    text = lock_file.text(small)
    error = refused(text.replace("\n", "\r\n"))
    assert error.what == "the line endings of the lock were converted"
    assert (str(error.where), error.found) == ("x.lock:1", "CR LF")
    assert ".gitattributes" in error.help
    edited = refused(text.replace('"3.9"', '"3.8"').replace("\n", "\r\n"))
    assert edited.what == EDITED


def test_another_schema_is_told_before_its_seal(small: Lock) -> None:
    for text in (
        lock_file.text(small).replace("toolmatrix.lock/1", "toolmatrix.lock/2"),
        '# new\nschema = "toolmatrix.lock/2"\n',
    ):
        error = refused(text)
        assert error.what == "the lock has a different schema"
        assert (str(error.where), error.expected, error.found) == (
            "x.lock:2",
            "`toolmatrix.lock/1`",
            "`toolmatrix.lock/2`",
        )


@pytest.mark.parametrize(
    ("data", "what", "where"),
    [
        (b"", "this is not a lock", "x.lock:1"),
        (b'version = 4\n[[package]]\nname = "a"\n', "this is not a lock", "x.lock:1"),
        (b'[metadata]\nschema = "toolmatrix.lock/2"\n', "this is not a lock", "x.lock:1"),
        (b'a = 1\nb = "\n', "the lock is not TOML", "x.lock:2:6"),
        (b"a = " + b"[" * 100_000, "the lock is not TOML", "x.lock"),
        (b"a = 1\n\xff\n", "the lock is not text", "x.lock:2"),
        (b"\x00\x01", "the lock is not TOML", "x.lock:1:1"),
        (b" " * (lock_file.LARGEST + 1), "the lock is too large", "x.lock"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_lock(data: bytes, what: str, where: str) -> None:
    error = refused(data)
    assert error.what == what
    assert str(error.where).startswith(where)


@pytest.mark.parametrize(
    ("old", "new", "where", "expected"),
    [
        ('date = "2026-11-20"', "date = 3", 5, "a string"),
        ('digest = "sha256:00"\n', "", 4, "the key `digest`"),
        ('digest = "sha256:00"', 'digest = ""\nx = 1', 7, "a key known to this toolmatrix"),
        ('schema = "toolmatrix.lock/1"', 'schema = "else"', 2, "`toolmatrix.lock/1`"),
        ('request = ["Foo_Bar ~=1"]', 'request = "Foo"', 14, "a list of strings"),
        ('request = ["Foo_Bar ~=1"]', "request = [1]", 14, "a list of strings"),
        ('evidence = "derived"', 'evidence = "sure"', 18, "an evidence word"),
        ('version = "3.9"', 'version = "3.9", floor = "3"', 23, "either `version` or `floor`"),
        ('version = "3.9", ', "", 23, "either `version` or `floor`"),
        ('version = "3.9"', 'version = "3.9", new = 1', 23, "a key known to this toolmatrix"),
        ("kept = true", "kept = false", 47, "true"),
        ('"8.6" = { evidence = "stated"', '"8.6" = { evidence = 1', 53, "an evidence word"),
        ('cflags = ["-O2"]', "cflags = {}", 56, "a list of strings"),
        ('CC = "gcc-7"', "CC = 7", 61, "a string"),
        ('dialect = "classic"', "dialect = []", 10, "a string"),
        ('base = ["debian:12=a", "b=c"]', 'base = "a"', 9, "a list of strings"),
        ('dialect = "classic"', 'output = "/"', 10, "a key known to this toolmatrix"),
    ],
)
def test_a_sealed_lock_that_says_something_odd(
    small: Lock, old: str, new: str, where: int, expected: str
) -> None:
    error = refused(resealed(lock_file.text(small), old, new))
    assert error.what.startswith("the lock has an invalid ")
    assert (line_of(error), error.expected) == (where, expected)


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf# seal ")
@example(b"# seal 1: " + b"9" * 30)
@example(b"# seal \xc2\xb2: 1")
def test_no_bytes_do_harm(data: bytes) -> None:
    refused(data)


def test_a_byte_order_mark_is_an_edit(small: Lock) -> None:
    error = refused(b"\xef\xbb\xbf" + lock_file.text(small).encode())
    assert error.what == EDITED


def test_a_missing_or_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(LockError, match="there is no lock") as caught:
        lock_file.read(str(tmp_path / "x.lock"))
    assert caught.value.help == "`toolmatrix lock` writes one"
    with pytest.raises(LockError, match="cannot read the lock") as caught:
        lock_file.read(str(tmp_path))
    assert caught.value.found == os.strerror(21)
    with pytest.raises(LockError, match="cannot read the lock"):
        lock_file.read("a\0b")
