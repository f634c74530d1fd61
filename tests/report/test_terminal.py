"""Terminals: what is detected, and how text is laid out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmatrix.report.terminal import (
    ASCII,
    UNICODE,
    Terminal,
    blocks,
    columns,
    common_width,
    cut,
    detect,
    listing,
    pad,
    plural,
    some,
    visible,
    wrap,
)


@pytest.mark.parametrize(
    ("env", "tty", "color", "expected"),
    [
        ({}, True, "auto", True),
        ({}, False, "auto", False),
        ({"TERM": "dumb"}, True, "auto", False),
        ({"NO_COLOR": "1"}, True, "auto", False),
        ({"NO_COLOR": ""}, True, "auto", True),
        ({"FORCE_COLOR": "1"}, False, "auto", True),
        ({"FORCE_COLOR": "0"}, False, "auto", False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, "auto", False),
        ({"NO_COLOR": "1"}, False, "always", True),
        ({"FORCE_COLOR": "1"}, True, "never", False),
    ],
)
def test_colour(env: dict[str, str], tty: bool, color: str, expected: bool) -> None:
    assert detect(env, tty=tty, encoding="utf-8", color=color).colour is expected


@pytest.mark.parametrize(
    ("columns", "measured", "expected"),
    [("", 0, 80), ("", 132, 132), ("40", 132, 40), ("x", 132, 132), ("0", 0, 80), ("3", 0, 20)],
)
def test_width(columns: str, measured: int, expected: int) -> None:
    found = detect({"COLUMNS": columns}, tty=True, encoding="utf-8", measured_width=measured)
    assert found.width == expected


@pytest.mark.parametrize(
    ("encoding", "ascii_only", "expected"),
    [
        ("utf-8", False, UNICODE),
        ("UTF8", False, UNICODE),
        ("ascii", False, ASCII),
        ("utf-8", True, ASCII),
        ("latin-1", False, ASCII),
    ],
)
def test_charset(encoding: str, ascii_only: bool, expected: object) -> None:
    found = detect({}, tty=True, encoding=encoding, ascii_only=ascii_only)
    assert found.charset == expected


def test_style_is_seen_only_with_colour() -> None:
    assert Terminal().style("yes", "yes") == "yes"
    styled = Terminal(colour=True).style("yes", "yes", "bold")
    assert styled == "\x1b[32;1myes\x1b[0m"
    assert visible(styled) == "yes"
    assert pad(styled, 5) == styled + "  "
    assert pad("1", 3, right=True) == "  1"


def test_columns_are_aligned() -> None:
    assert columns([("a", "bbb", "c"), ("dd", "", "e"), ("f",)]) == [
        "a   bbb  c",
        "dd       e",
        "f",
    ]
    assert columns([("a", "12", "c"), ("dd", "3")], right=(1,)) == ["a   12  c", "dd   3"]


def test_a_long_cell_widens_no_column() -> None:
    assert common_width(["a", "bbb", "cccccc"], 5) == 3
    assert common_width(["cccccc"], 5) == 0


def test_what_is_long_is_cut() -> None:
    assert [cut("abcdef", 6), cut("abcdefg", 6), cut("a\x1b", 6)] == ["abcdef", "abc...", "a\\x1b"]
    assert [some(["a", "b"], 2), some(["a", "b", "c"], 1)] == ["a, b", "a and 2 more"]


def test_blocks_without_lines_are_left_out() -> None:
    assert blocks([["a", "b"], [], ["c"]]) == "a\nb\n\nc\n"


def test_words() -> None:
    assert [plural(n, "fact") for n in (0, 1, 2)] == ["0 facts", "1 fact", "2 facts"]
    assert plural(2, "match", "matches") == "2 matches"
    assert [listing(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_wrap_hangs_its_indent() -> None:
    assert wrap("one two three", 9, indent="  ", first="- ") == ["- one two", "  three"]
    assert wrap("", 9, first="- ") == ["- "]


@given(st.lists(st.text("abc", min_size=1, max_size=12), min_size=1), st.integers(1, 40))
def test_wrap_loses_nothing_and_keeps_the_width(words: list[str], width: int) -> None:
    lines = wrap(" ".join(words), width)
    assert " ".join(lines).split() == words
    assert all(len(line) <= width or " " not in line for line in lines)
