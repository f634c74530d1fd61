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
        ("", "it is empty or has leading or trailing blanks"),
        (" make", "it is empty or has leading or trailing blanks"),
        ("a\nUSER root", "it contains a control character or a line break"),
        ("a\rb", "it contains a control character or a line break"),
        ("a\u2028b", "it contains a control character or a line break"),
        ("EOF", "`EOF` would end the script"),
        ("make \\", "it ends with `\\`, so that a shell continues on the next line"),
        ("make &&", "it ends with `&`, so that a shell continues on the next line"),
        ("make;", "it ends with `;`, so that a shell continues on the next line"),
        ("make |", "it ends with `|`, so that a shell continues on the next line"),
        ("make # all", "it contains a comment"),
        ("# make", "it contains a comment"),
        ("cat <<EOF", "it contains a heredoc"),
        ("echo 'a", "the quote ' is not closed"),
        ("echo \"a'b", 'the quote " is not closed'),
        ("echo {cflags}", "`{cflags}` is a list and must be quoted"),
    ],
)
def test_what_reaches_beyond_its_end_is_refused(line: str, why: str) -> None:
    assert fields.shell_fault(line) == why
