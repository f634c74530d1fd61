"""Words come back as clang meant them, whatever they hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compilation.corpus import case
from toolmatrix.compilation import parse
from toolmatrix.compilation.drivers.clang import split


def printed(word: str, *, quote: bool = True) -> str:
    """A word as llvm::sys::printArg prints it."""
    if not quote and not set(word) & set(' "\\$'):
        return word
    escaped = "".join(f"\\{one}" if one in '"\\$' else one for one in word)
    return f'"{escaped}"'


# A line end would end the line, and a log's lines are split at these too.
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
WORD = st.text(st.characters(exclude_characters=LINE_ENDS, codec="utf-8"))
# Without quotes an empty word cannot be seen.
BARE_WORD = WORD.filter(bool)


@given(st.lists(WORD, min_size=1))
def test_quoted_words_come_back(words: list[str]) -> None:
    assert split(" ".join(printed(word) for word in words)) == (words, True)


@given(st.text('a \\"$`', min_size=1), st.lists(BARE_WORD))
def test_words_that_are_quoted_only_where_they_must_be_come_back(
    program: str, words: list[str]
) -> None:
    text = " ".join([printed(program), *(printed(word, quote=False) for word in words)])
    assert split(text) == ([program, *words], True)


@given(st.lists(WORD, min_size=2), st.data())
def test_a_cut_line_keeps_the_words_before_the_cut(words: list[str], data: st.DataObject) -> None:
    text = " ".join(printed(word) for word in words)
    cut = data.draw(st.integers(1, len(text) - 1))
    found, whole = split(text[:cut])
    if cut >= len(printed(words[0])):
        assert found[0] == words[0]
    if whole:
        assert found == words[: len(found)]


@given(st.text('a" \\$'))
def test_any_text_has_words(text: str) -> None:
    words, _ = split(text)
    assert all(isinstance(word, str) for word in words)


@pytest.mark.parametrize(
    ("word", "option"),
    [
        ('MSG="hello, world"', "-D"),
        ("Q='x'", "-D"),
        ("BS=a\\b", "-D"),
        ("DOL=$HOME", "-D"),
        ("inc dir", "-I"),
    ],
)
def test_the_words_of_a_real_command_line(word: str, option: str) -> None:
    words = parse(case("hipcc-7.0.2__flags-quotes").text).stages[0].argv
    assert words[words.index(word) - 1] == option


def test_the_words_of_a_real_run_with_only_the_program_quoted() -> None:
    stage = parse(case("hipcc-5.2.3__verbose-v-real-run").text).stages[1]
    assert stage.argv[0] == "/usr/lib/llvm-15/bin/lld"
    assert stage.argv[1:5] == ("-flavor", "gnu", "--no-undefined", "-shared")
