"""Words: what nvcc meant, and that splitting undoes quoting."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmatrix.compilation.drivers.nvcc_commands import (
    Lexicon,
    closed,
    take_redirections,
    variables,
)

WORD = st.text(st.characters(exclude_characters='"\\\n', exclude_categories=["Cs"]), max_size=8)
QUOTABLE = st.lists(st.one_of(WORD, st.just('"')), max_size=4).map("".join)


def split(text: str) -> list[str]:
    """What the words of a line mean, by a fresh memory."""
    return Lexicon().split(text)[1]


def quoted(word: str) -> str:
    """A word as nvcc prints a path."""
    return '"' + word.replace('"', '\\"') + '"'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gcc  -E   -m64 ", ["gcc", "-E", "-m64"]),
        ('gcc "my kernel.cu" -o "out dir/k.o"', ["gcc", "my kernel.cu", "-o", "out dir/k.o"]),
        ('-D "MSG=\\"hello, world\\"" -m64', ["-D", 'MSG="hello, world"', "-m64"]),
        ('-DFATBINFILE="\\"/tmp/x.fatbin.c\\""', ['-DFATBINFILE="/tmp/x.fatbin.c"']),
        ('-I"inc dir" "/opt/bin"/xlc++', ["-Iinc dir", "/opt/bin/xlc++"]),
        ('--cmdline="-a  b "  -link', ["--cmdline=-a  b ", "-link"]),
        ('"we\'ird $na me.cu"', ["we'ird $na me.cu"]),
        ('"`gcc -print-prog-name=ar`" cr', ["`gcc -print-prog-name=ar`", "cr"]),
        ("-D\"Q=\\'x\\'\"", ["-DQ=\\'x\\'"]),
        ('-D "B=x\\\\" -m64', ["-D", "B=x\\\\", "-m64"]),
        ('"-IC:\\Program Files\\x" -E', ["-IC:\\Program Files\\x", "-E"]),
        ('a\tb "c\td"', ["a", "b", "c\td"]),
        ('""', [""]),
        ('gcc "cut off', ["gcc", "cut off"]),
        ("", []),
    ],
)
def test_words_are_what_nvcc_meant(text: str, words: list[str]) -> None:
    assert split(text) == words


@given(st.lists(QUOTABLE))
def test_splitting_undoes_quoting(words: list[str]) -> None:
    assert split(" ".join(map(quoted, words))) == words


@given(st.lists(st.text(st.sampled_from('a"\\ \t$'), max_size=8), max_size=4).map(" ".join))
def test_words_and_blanks_make_up_the_line(text: str) -> None:
    raw, means = Lexicon().split(text)
    assert len(raw) == len(means)
    assert "".join(raw).replace(" ", "").replace("\t", "") == text.replace(" ", "").replace(
        "\t", ""
    )
    for word in raw[:-1]:
        assert closed(word)


@given(st.lists(st.sampled_from(['"a b"', "c", '-D"x y"z', '"\\"q\\""', '""', "-o", "=\\\\"])))
def test_words_end_where_a_shell_ends_them(words: list[str]) -> None:
    line = "  ".join(words)
    assert len(split(line)) == len(shlex.split(line))


@given(st.text())
def test_a_memory_changes_nothing(text: str) -> None:
    memory = Lexicon()
    assert memory.split(text) == memory.split(text) == Lexicon().split(text)


def test_a_long_line_is_read_in_linear_time() -> None:
    for text in ('"a ' * 200_000, "a\\ " * 200_000, '"' + "a " * 400_000, '\\"' * 400_000):
        assert split(text)


@pytest.mark.parametrize(
    ("text", "rest", "reads", "writes"),
    [
        ('gcc -E "a.cu" > "tmp/a b.ii" ', ["gcc", "-E", "a.cu"], [], ["tmp/a b.ii"]),
        ("gcc a > tmp/o 2>tmp/e", ["gcc", "a"], [], ["tmp/o", "tmp/e"]),
        ('cl.exe > "a.ii" -E "a.cu"', ["cl.exe", "-E", "a.cu"], [], ["a.ii"]),
        ("gcc < in >> out 2>&1", ["gcc"], ["in"], ["out"]),
        ('gcc "-DA>b" ">"', ["gcc", "-DA>b", ">"], [], []),
    ],
)
def test_redirections_are_files_and_no_words(
    text: str, rest: list[str], reads: list[str], writes: list[str]
) -> None:
    assert take_redirections(*Lexicon().split(text)) == (rest, reads, writes)


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ('gcc "we\'ird $na me.cu"', ['"we\'ird $na me.cu"']),
        ('gcc -D "TICK=`x`"', ['"TICK=`x`"']),
        ("gcc -DNAME='a -m64", ["-DNAME='a"]),
        ("gcc -DF(a)=1", ["-DF(a)=1"]),
        ('gcc -E a.cu > "a b.ii" 2>a.err 2>&1', []),
        ("gcc -E a.cu >$out", [">$out"]),
        ('gcc "-DF(a)=1" "it\'s" "a;b" "C:\\x" "cost $" a=b -Wl,--x', []),
    ],
)
def test_words_that_a_shell_would_change_are_known(text: str, odd: list[str]) -> None:
    memory = Lexicon()
    assert memory.expanded(memory.split(text)[0]) == odd


def test_only_variables_of_the_log_are_put_in() -> None:
    env = {"CICC_PATH": "/cuda/nvvm/bin"}
    assert variables("$CICC_PATH/cicc", env) == "/cuda/nvvm/bin/cicc"
    assert variables("${CICC_PATH}/cicc", env) == "/cuda/nvvm/bin/cicc"
    assert variables("%CICC_PATH%\\cicc", env) == "/cuda/nvvm/bin\\cicc"
    assert variables("$CICC_PATHS/cicc", env) == "$CICC_PATHS/cicc"
    assert variables("$HOME/100%", env) == "$HOME/100%"


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolmatrix.compilation.drivers.nvcc_commands._MOST", 10)
    memory = Lexicon()
    for number in range(100):
        assert memory.split(f"a{number} $b")[1] == [f"a{number}", "$b"]
    assert len(memory._known) <= 10
