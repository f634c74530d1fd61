"""Quoting, one place after another: what comes out letter for letter, and the whole message of what is refused."""

from __future__ import annotations

import shlex
import string
from collections.abc import Callable

import pytest

from toolmatrix.errors import RenderError
from toolmatrix.rendering import quote

SHELL = "a word of shell: printable, on one line"
VALUE = "a value of an instruction: printable, on one line"
BETWEEN = "text between quotes: printable, on one line"
HEREDOC = "a word of shell without `<<` that does not end with a backslash"


@pytest.mark.parametrize(
    ("place", "text", "expected"),
    [
        ("release", "1 0", "a release"),
        ("reference", "Debian", "an image reference such as `debian:12`"),
        ("flag", "O2", "a compiler flag"),
        ("arch", "SM_86", "a codegen arch"),
        ("path", "/a b", "a path of plain letters"),
        ("word", "a;b", "one word of plain letters"),
        ("label", ".a", "the name of a label"),
        ("mode", "755", "a mode such as `0755`"),
        ("name", "1a", "the name of a variable"),
        ("url", "file:///a", "an address"),
        ("sha256", "0" * 63, "a checksum"),
        ("digest", "0" * 64, "a digest"),
        ("condition", "a;b", "a condition of the preprocessor"),
        ("requirement", "numpy >", "a requirement of pip"),
        ("requirement", "a@https://x.example/a.whl;rm", "a requirement of pip"),
        ("requirement", "a@file:///a.whl", "a requirement of pip"),
    ],
)
def test_a_place_says_what_it_takes(place: str, text: str, expected: str) -> None:
    with pytest.raises(RenderError) as caught:
        quote.filters()[place](text)
    assert message(caught.value) == refusal(expected, text)


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("sh", "a b", "'a b'"),
        ("words", ["a b", "c"], "'a b' c"),
        ("value", 'a "b" $c', '"a \\"b\\" \\$c"'),
        ("comment", "a # b", "a # b"),
        ("line", "make && make install", "make && make install"),
        ("in_double", "it's", "it's"),
        ("sed_argument", "a b", "'a b'"),
        ("layout", "; \\\n", "; \\\n"),
        ("layout", "<<EOF", "<<EOF"),
        ("layout", "set -eux;", "set -eux;"),
        ("json", {"a": ["é", 1]}, '{"a": ["\\u00e9", 1]}'),
        ("mode", "0755", "0755"),
    ],
)
def test_a_filter_writes_a_value_for_its_place(name: str, given: object, text: str) -> None:
    quoted = quote.filters()[name](given)
    assert quoted == text
    assert type(quoted) is quote.Quoted


def test_a_program_is_one_word_however_many_lines_it_has() -> None:
    texts = ["import one\nassert 'a' << 1\n", "", "$(x) `y` \\"]
    assert shlex.split(quote.programs(texts)) == texts
    for hostile in ("a\rb", "a\x1b[0m", "a\u2028b"):
        with pytest.raises(RenderError):
            quote.programs([hostile])


def test_templates_have_a_filter_for_each_place_and_for_each_way_to_quote() -> None:
    others = {
        "sh",
        "words",
        "programs",
        "value",
        "comment",
        "line",
        "in_double",
        "sed_argument",
        "json",
        "layout",
    }
    assert quote.filters().keys() == quote.PATTERNS.keys() | others


@pytest.mark.parametrize(
    ("refuse", "text", "expected"),
    [
        (quote.sh, "a\nb", SHELL),
        (quote.sh, "a << b", HEREDOC),
        (quote.sh, "a\\", HEREDOC),
        (quote.value, "a\tb", VALUE),
        (quote.value, "a\\b", "a value without a backslash"),
        (quote.comment, "a\nb", "one line: printable, on one line"),
        (quote.comment, "a\\", "a comment that does not end with a backslash"),
        (
            quote.line,
            "make;",
            "one command on one line: it ends with `;`, so that a shell continues on the next line",
        ),
        (quote.in_double, "a\nb", BETWEEN),
        *(
            (quote.in_double, f"a{one}b", 'text without `"`, `$`, backslash and backtick')
            for one in '"$\\`'
        ),
        *(
            (
                quote.sed_argument,
                f"a{one}b",
                "text without special characters of a sed pattern",
            )
            for one in "'\\/*[]^$.&"
        ),
        (quote.layout, "X", "blanks, semicolons, backslashes and line breaks"),
        (quote.layout, "<<END", "blanks, semicolons, backslashes and line breaks"),
    ],
)
def test_what_cannot_be_quoted_is_refused(
    refuse: Callable[[str], object], text: str, expected: str
) -> None:
    with pytest.raises(RenderError) as caught:
        refuse(text)
    assert message(caught.value) == refusal(expected, text)


@pytest.mark.parametrize("take", [quote.sh, quote.value, quote.comment])
@pytest.mark.parametrize(("given", "found"), [(None, "NoneType"), (1, "int")])
def test_what_is_no_text_is_refused(
    take: Callable[[object], object], given: object, found: str
) -> None:
    with pytest.raises(RenderError) as caught:
        take(given)
    assert message(caught.value) == refusal("a text", found)


def test_letters_that_do_not_print_are_shown_as_escapes() -> None:
    with pytest.raises(RenderError) as caught:
        quote.comment("é\x1b")
    assert caught.value.found == "`\\xe9\\x1b`"


def test_every_letter_that_means_nothing_is_taken() -> None:
    letters = set(string.ascii_letters + string.digits + string.punctuation + " ")
    for take, meant in ((quote.in_double, '"\\$`'), (quote.sed_argument, "'\\/*[]^$.&")):
        text = "".join(sorted(letters - set(meant))).replace("<<", "<")
        assert text in take(text)


def test_layout_that_is_not_shown_leaves_nothing() -> None:
    assert quote.layout("; \\\n", condition=False) == ""
    assert quote.layout("; \\\n", condition=True) == "; \\\n"


def message(error: RenderError) -> tuple[str, str, str, str]:
    return error.what, error.expected, error.found, error.help


def refusal(expected: str, text: str) -> tuple[str, str, str, str]:
    return (
        "a template cannot use this value",
        expected,
        f"`{ascii(text)[1:-1]}`",
        "correct the lock, the recipe or the option that it comes from",
    )
