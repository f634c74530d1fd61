"""Lines of shell that stay one command wherever they are put."""

from __future__ import annotations

import pytest

from toolmatrix.recipes import fields


@pytest.mark.parametrize(
    "line",
    [
        "make -j2",
        "echo 'a # b' \"c # d\"",
        "x=${name#prefix}",
        "if [ -f a ]; then rm a; fi",
        'CC="{cflags}" make',
        r"printf '%s\n' \"",
        "curl -fsSL https://example.org/a#b -o a",
    ],
)
def test_a_command_is_taken(line: str) -> None:
    assert fields.shell_fault(line) == ""


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "it is empty or has blanks around it"),
        (" make", "it is empty or has blanks around it"),
        ("a\nUSER root", "it holds a control character or a line break"),
        ("a\rb", "it holds a control character or a line break"),
        ("a\u2028b", "it holds a control character or a line break"),
        ("EOF", "`EOF` ends the script that it would stand in"),
        ("make \\", "it ends with `\\`, which reaches into the next line"),
        ("make &&", "it ends with `&`, which reaches into the next line"),
        ("make;", "it ends with `;`, which reaches into the next line"),
        ("make |", "it ends with `|`, which reaches into the next line"),
        ("make # all", "it holds a comment"),
        ("# make", "it holds a comment"),
        ("cat <<EOF", "it holds a heredoc"),
        ("echo 'a", "the quote ' is left open"),
        ("echo \"a'b", 'the quote " is left open'),
        ("echo {cflags}", "`{cflags}` is a list and needs quotes around it"),
    ],
)
def test_what_reaches_beyond_its_end_is_refused(line: str, why: str) -> None:
    assert fields.shell_fault(line) == why
