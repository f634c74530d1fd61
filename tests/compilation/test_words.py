"""Words: what nvcc meant, and that splitting undoes quoting."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compilation.bindings import jobs, trees_of_jobs, trees_of_stages
from tests.compilation.corpus import case, cases
from tests.compilation.laws.outputs import broken
from tests.compilation.real import nvcc, program
from toolmatrix.compilation import parse, parse_log
from toolmatrix.compilation.drivers.dry_run import dry_run
from toolmatrix.compilation.drivers.nvcc_commands import (
    Lexicon,
    closed,
    take_redirections,
    variables,
)
from toolmatrix.compilation.replay import ninja, replay

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


# The graph read from `-###` is the one that `-ccc-print-bindings` tells of, edge by edge.


PAIRS = {
    **{
        f"clang-{version}__hip-print-bindings": f"clang-{version}__hip-link-two"
        for version in ("13.0.1", "15.0.6", "16.0.6", "19.1.7", "21.1.8", "23.1.4")
    },
    **{
        f"hipcc-{version}__print-bindings": f"hipcc-{version}__link-many-gfx"
        for version in ("5.2.3", "7.0.2")
    },
}


@pytest.mark.parametrize("bindings", PAIRS)
def test_a_dry_run_has_the_edges_of_the_bindings(bindings: str) -> None:
    told = jobs(case(bindings).text)
    assert told
    assert trees_of_stages(parse(case(PAIRS[bindings]).text)) == trees_of_jobs(told)


def test_every_list_of_bindings_in_the_corpus_is_compared() -> None:
    listed = {one.name for one in cases() if one.case.endswith("bindings") and jobs(one.text)}
    # no dry run in the corpus asks hipcc 5.7.1 for the same
    assert listed - PAIRS.keys() == {"hipcc-5.7.1__print-bindings"}


def test_a_list_of_bindings_has_no_stages_and_says_why() -> None:
    plan = parse(case("clang-21.1.8__hip-print-bindings").text)
    assert plan.stages == ()
    assert [one.text for one in plan.diagnostics if one.severity == "note"] == [
        "the log lists phases or bindings, not commands: take it with `-###`"
    ]


ASKED = {
    "two archs": "-c k.hip --offload-arch=gfx906 --offload-arch=gfx90a:xnack+",
    "device code only": "--genco k.hip --offload-arch=gfx906 --offload-arch=gfx90a",
    "a link": "k.hip m.hip --offload-arch=gfx906 -o app",
    "relocatable": "-fgpu-rdc -c k.hip --offload-arch=gfx906 -o k.o",
    "relocatable and linked": "-fgpu-rdc k.hip m.hip --offload-arch=gfx906 -o app",
    "relocatable objects": "-fgpu-rdc a.o b.o --offload-arch=gfx906 --offload-arch=gfx90a -o app",
    "the new driver": "-fgpu-rdc --offload-new-driver k.hip m.hip --offload-arch=gfx906 -o app",
    "host only": "--cuda-host-only -c k.hip --offload-arch=gfx906",
}


@pytest.mark.large
@pytest.mark.process
@pytest.mark.skipif(shutil.which("hipcc") is None, reason="hipcc is not installed")
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_the_installed_hipcc_agrees_with_itself(asked: str, tmp_path: Path) -> None:
    for name in ("k.hip", "m.hip", "a.o", "b.o"):
        (tmp_path / name).write_text("__global__ void k() {}\n")

    def says(how: str) -> str:
        run = subprocess.run(
            ["hipcc", how, *asked.split()],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HIP_PLATFORM": "amd"},
            capture_output=True,
            text=True,
            check=False,
        )
        return run.stderr

    told = jobs(says("-ccc-print-bindings"))
    assert told
    assert trees_of_stages(parse(says("-###"))) == trees_of_jobs(told)


# What cleaning after a real build leaves; the law of outputs itself is in `laws/outputs.py`.


@pytest.mark.long
@pytest.mark.process
@pytest.mark.slow
def test_cleaning_after_a_device_link_of_two_archs_leaves_the_objects(tmp_path: Path) -> None:
    ninja_program, driver = program("ninja"), nvcc()
    archs = [f"-gencode=arch=compute_{one},code=sm_{one}" for one in (75, 80)]
    (tmp_path / "a.cu").write_text(
        "__device__ int twice(int);\n__global__ void k(int *p) { *p = twice(*p); }\n"
    )
    (tmp_path / "b.cu").write_text("__device__ int twice(int x) { return 2 * x; }\n")
    subprocess.run([driver, "-dc", *archs, "a.cu", "b.cu"], cwd=tmp_path, check=True)
    objects = {name: (tmp_path / name).read_bytes() for name in ("a.o", "b.o")}
    dry = dry_run(["a.o", "b.o"], [*archs, "-dlink", "-o", "dlink.o"], driver, cwd=tmp_path)
    (plan,) = parse_log(dry.text.split("\n")).plans
    assert broken(plan) == []
    (tmp_path / "build.ninja").write_text(ninja(replay(plan, work=dry.work)))
    for words in ([], ["-t", "clean"]):
        subprocess.run([ninja_program, *words], cwd=tmp_path, check=True, capture_output=True)
        assert (tmp_path / "dlink.o").exists() == (not words)
        assert {name: (tmp_path / name).read_bytes() for name in objects} == objects
