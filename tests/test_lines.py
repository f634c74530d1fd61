"""Prefixes of CI systems come off; lines that only look as if they had one stay whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compilation import corpus
from toolmatrix.compilation import Plan, parse_log
from toolmatrix.lines import strip_prefixes

PREFIXES = [
    "2026-11-20T10:00:00.1234567Z ",
    "2026-11-20T10:00:00.123456Z 01O ",
    "2026-11-20T10:00:00.123456Z 00E+",
    "2026-11-20 10:00:00 ",
    "2026-11-20 10:00:00,123 ",
    "build\tRun make\t2026-11-20T10:00:00.1234567Z ",
    "[12:00:01] ",
    "12:00:01 ",
    "[2026-11-20T10:00:00.123Z] ",
    "#12 3.456 ",
    "#7 12.3 ",
    "[3/17] ",
    "[ 42%] ",
    "web-1  | ",
    "1>",
    "\ufeff",
    "\ufeff2026-11-20T10:00:00.1234567Z ",
    "\x1b[32m",
    "\x1b]0;make\x07\x1b[1;31m",
    "2026-11-20T10:00:00Z [3/17] ",
    "2026-11-20T10:00:00.1234567Z ##[debug]",
    "##[command]",
    "2026-11-20T10:00:00.123456789Z stdout F ",
    "2026-11-20T10:00:00.123456789+01:00 stderr F ",
    "\x1b_bk;t=1763632800000\x07",
    "│ ",
    "2026-11-20 10:00:00,123 INFO my.builder: ",
    "E   ",
    "     312    ",
    "  >> 312    ",
    "     12345  ",
]
MARKED_ONLY = [
    "make[2]: ",
    "  ",
    "\t",
    "12: ",
    "Nov 20 10:00:00 host nvcc[123]: ",
    "stderr: ",
    "| ",
    "+ ",
    "[build] [info] ",
    "#12 [stage 2/3] ",
    "2026-11-20 10:00:00 INFO: ",
]
LINES = [
    '#$ gcc -E "a.cu" > "a.ii"',
    "#$ _SPACE_= ",
    ' "/usr/bin/clang" "-cc1" "-o" "a.o"',
    "nvcc fatal   : Unsupported gpu architecture 'sm_10'",
    "# --error 0x2 --",
]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("line", LINES)
def test_a_prefix_comes_off(prefix: str, line: str) -> None:
    assert strip_prefixes(prefix + line + "\r\n") == line


@pytest.mark.parametrize("prefix", MARKED_ONLY)
def test_a_doubtful_prefix_comes_off_only_before_the_mark(prefix: str) -> None:
    assert strip_prefixes(prefix + LINES[0]) == LINES[0]
    assert strip_prefixes(prefix + "broken.cu(1): error: x").endswith("error: x")


@pytest.mark.parametrize(
    "line",
    [
        'echo "#$ gcc -E a.cu"',
        "// see #$ gcc -E a.cu",
        '#$ gcc -D "A=[3/17] #$ x" -E a.cu',
        '"a.cu", line 3: #$ gcc',
        "   12 |   int x;",
        "note: #12 3.456",
        "12:00:01: not a time stamp",
        "[3/17 is no step",
        "#include <a>",
        "Error: no such file",
        "ERROR k.cu: no such file",
        "     312 |  int x;",
        "E = mc2",
        "## [debug] x",
    ],
)
def test_a_line_that_only_looks_like_it_stays(line: str) -> None:
    assert strip_prefixes(line) == line


def test_what_a_progress_line_leaves_is_its_last_state() -> None:
    assert strip_prefixes("[1/9] a\r[2/9] b\r#$ gcc -E a.cu\n") == "#$ gcc -E a.cu"


@given(st.text(), st.text(st.sampled_from("[]#$ 0123456789:.|>\t\x1b+-TZaZ")))
def test_any_line_can_be_cleaned_twice(line: str, noise: str) -> None:
    for text in (line, noise, noise + LINES[0]):
        assert isinstance(strip_prefixes(strip_prefixes(text)), str)


def test_cleaning_is_linear() -> None:
    for piece in (
        "[1/2] ",
        "\x1b[0m",
        "a: ",
        "#1 1.1 ",
        " ",
        "\x1b[",
        "[",
        "2026-11-20T10:00:00Z ",
        "##[a]",
        "\x1b_",
        "│ ",
        "E   ",
        "     312    ",
    ):
        assert isinstance(strip_prefixes(piece * 200_000 + LINES[0]), str)


def bare(plans: tuple[Plan, ...]) -> list[Plan]:
    """Plans without what was said between the commands: of such a line a prefix may be part."""
    return [plan.replace(diagnostics=()) for plan in plans]


@given(
    st.sampled_from(corpus.cases("nvcc")[::7]),
    st.lists(st.sampled_from([*PREFIXES, *MARKED_ONLY, ""]), min_size=1, max_size=5),
    st.sampled_from(["", "\r"]),
)
def test_prefixes_do_not_change_a_plan(case: corpus.Case, prefixes: list[str], end: str) -> None:
    lines = case.text.split("\n")
    marked = [
        (prefixes[number % len(prefixes)] if line.startswith("#$ ") else "") + line + end
        for number, line in enumerate(lines)
    ]
    assert bare(parse_log(marked).plans) == bare(parse_log(lines).plans)


@given(st.sampled_from(corpus.cases("nvcc", "clang", "hipcc")[::7]), st.sampled_from(PREFIXES))
def test_a_prefix_on_every_line_does_not_change_a_plan(case: corpus.Case, prefix: str) -> None:
    lines = case.text.split("\n")
    assert bare(parse_log([prefix + line for line in lines]).plans) == bare(parse_log(lines).plans)
