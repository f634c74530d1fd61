"""`toolmatrix resolve`: whole outputs in every form, what its options change, and what stays the same."""

from __future__ import annotations

import json
import re
import shlex
from itertools import permutations
from pathlib import Path

import pytest

from tests import matrix
from tests.cli.conftest import SMALL, Cli
from tests.cli.transcript import check, check_without, read
from toolmatrix.api.checks import load_matrix
from toolmatrix.harvest import families
from toolmatrix.judging import audit
from toolmatrix.solve import resolve
from toolmatrix.solve.engine import Conflict, Problem, Solution, solve

LINES = {
    "answer": "resolve app==2.1.3 --arch sm_86",
    "refused": "resolve app==2.0.0 python==3.12 --with gcc==8",
    "unknown": "resolve app==2.9",
    "unlisted": "resolve app==2.1.2",
}


@pytest.mark.parametrize("form", ["plain", "tty", "ascii", "narrow", "json"])
@pytest.mark.parametrize("name", LINES)
def test_golden(small: Cli, name: str, form: str) -> None:
    outcome = check(small, name, LINES[name], form)
    assert outcome.code == {"answer": 0, "refused": 1, "unknown": 4, "unlisted": 3}[name]
    if form == "ascii":
        assert (outcome.out + outcome.err).isascii()


@pytest.mark.parametrize("name", LINES)
def test_colour_and_talk_are_all_that_is_left_out(small: Cli, name: str) -> None:
    check_without(small, LINES[name])


@pytest.mark.parametrize("name", LINES)
def test_colours_change_no_letter(small: Cli, name: str) -> None:
    plain, tty = read(small, LINES[name]), read(small, LINES[name], "tty")
    assert "\x1b[" in tty.out + tty.err
    assert re.sub(r"\x1b\[[\d;]*m", "", tty.out + tty.err) == plain.out + plain.err


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("two-targets", "resolve app==2.1.3 --target x86,arm --align python"),
        ("device", "resolve app --device 8.6"),
        ("toolkit", "resolve cuda"),
        ("one-sided", "resolve cuda --target x86,arm"),
        ("depth", "resolve app==2.1.3 --arch sm_86 --depth 1"),
        ("oldest", "resolve app --prefer oldest"),
        ("wheel", "resolve app --from wheel --target arm"),
        ("at-a-day", "resolve app --at 2020-12-31"),
        ("alone", "resolve gcc"),
    ],
)
def test_golden_of_options(small: Cli, name: str, line: str) -> None:
    assert check(small, name, line).code == (1 if name == "wheel" else 0)


def test_the_hint_is_talk(small: Cli) -> None:
    outcome = small("resolve", "app")
    assert outcome.err.startswith("hint: `toolmatrix lock`")
    assert "hint" not in outcome.out


def test_an_output_file_holds_what_stdout_would(small: Cli, here: Path) -> None:
    plain = small("resolve", "app==2.1.3")
    written = small("resolve", "app==2.1.3", "-o", "answer.txt")
    assert (written.code, written.out, written.err) == (0, "", plain.err)
    assert (here / "answer.txt").read_text() == plain.out


def test_a_refusal_goes_to_the_output_too(small: Cli, here: Path) -> None:
    line = shlex.split(LINES["refused"])
    assert small(*line, "-o", "answer.txt") == (1, "", "")
    assert (here / "answer.txt").read_text() == small(*line).out
    assert small(*line, "--exit-zero").code == 0


def test_a_standing_request_is_answered(small: Cli, here: Path) -> None:
    (here / "toolmatrix.toml").write_text('request = ["app==2.1.3"]\ntarget = ["arm"]\n')
    assert small("resolve") == small("resolve", "app==2.1.3", "--target", "arm")
    assert "x86, from" in small("resolve", "--target", "x86").out


def test_variables_are_options(small: Cli) -> None:
    said = small("resolve", "app", "--target", "arm", "--json")
    assert small("resolve", "app", TOOLMATRIX_TARGET="arm", TOOLMATRIX_JSON="1") == said


def test_the_order_of_words_changes_no_choice(small: Cli) -> None:
    one = small("resolve", "app", "cuda", "--json", "--with", "gcc==8").json()
    other = small("--with", "gcc==8", "--json", "resolve", "app", "cuda").json()
    assert one == other


def test_keeping_a_lock_keeps_its_choices(small: Cli, here: Path) -> None:
    assert small("lock", "app==2.1.3", "--with", "cuda==11.2.0").code == 0
    kept = small("resolve", "app==2.1.3", "--keep", "toolmatrix.lock", "--json").json()
    free = small("resolve", "app==2.1.3", "--json").json()
    assert kept["targets"]["x86"]["components"]["cuda"]["version"] == "11.2.0"
    assert free["targets"]["x86"]["components"]["cuda"]["version"] == "11.2.2"
    assert (here / "toolmatrix.lock").is_file()


def test_every_line_has_evidence_and_a_note(small: Cli) -> None:
    """Each branch of a tree names how well it is known and ends with a note that is printed below."""
    out = small("resolve", "app==2.1.3", "--target", "x86,arm", COLUMNS="200").out
    notes = set(re.findall(r"^(\[\d+\])", out, re.MULTILINE))
    words = "ran|artifact|tested|stated|derived|reported|unknown"
    rows = [row for row in out.splitlines() if re.match("[├└│]|app ", row)]
    assert len(rows) > 12
    for row in rows:
        assert re.search(rf"  ({words})  ", row), row
        assert set(re.findall(r"\[\d+\]", row)) <= notes
        assert row.endswith("]")
    numbers = [int(mark) for mark in re.findall(r"\[(\d+)\]", out.partition("\n[1]")[0])]
    first = list(dict.fromkeys(numbers))
    assert first == sorted(first)


def test_json_is_sorted_ascii_and_one_document(small: Cli) -> None:
    out = small("resolve", "app==2.1.3", "--json").out
    assert out.isascii()
    assert out == json.dumps(json.loads(out), sort_keys=True, indent=2) + "\n"


def test_ways_out_carry_what_they_need(small: Cli, here: Path) -> None:
    """A matrix of the user's own is named in every command, which works only with it."""
    (here / "our own.yaml").write_text(
        "schema: toolmatrix.facts/1\n"
        'sources: {mine: {title: M, at: "m:p@1", read: 2026-01-01}}\n'
        'releases: [{id: ours, component: app, source: mine, evidence: stated, where: tags, versions: {"3.0": {}}}]\n'
    )
    refused = small("resolve", "app==3.0", "gcc==7", "gcc==8", "--matrix", "our own.yaml")
    commands = re.findall(r"^    toolmatrix (.*)$", refused.out, re.MULTILINE)
    assert refused.code == 1
    assert commands
    for command in commands:
        assert command.endswith("--matrix 'our own.yaml'")
        # No fact joins an app of the user's own and a compiler.
        assert small(*shlex.split(command)).code == 4
        assert small(*shlex.split(command)[:-2]).code == 4


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_prose_keeps_to_the_width(small: Cli, width: int) -> None:
    """Reasons and notes are wrapped; commands are not, so that they can be pasted."""
    out = small(*shlex.split(LINES["refused"]), COLUMNS=str(width)).out
    prose = [line for line in out.splitlines() if not line.startswith("    toolmatrix ")]
    assert max(map(len, prose)) <= width
    assert out.split() == small(*shlex.split(LINES["refused"])).out.split()


@pytest.mark.parametrize("width", [50, 60, 80, 100])
@pytest.mark.parametrize("line", ["app==2.1.3 --arch sm_86", "app==2.1.3 --target x86,arm"])
def test_a_tree_keeps_to_the_screen_and_says_the_same(small: Cli, line: str, width: int) -> None:
    """Whatever the width, the letters are the same in the same order."""
    out, wide = (
        small("resolve", *line.split(), COLUMNS=str(columns)).out for columns in (width, 300)
    )
    assert max(map(len, out.splitlines())) <= width
    plain = [re.sub(r"[\s├└─│]", "", text) for text in (out, wide)]
    assert plain[0] == plain[1]


def test_an_image_is_named_once_and_a_flag_is_known_as_well_as_its_arch(real: Cli) -> None:
    out = real("resolve", "tensorflow==2.6.5", "--arch", "sm_86").out
    assert out.count("nvidia/cuda:11.2.2-cudnn8-devel-ubuntu20.04") == 1
    assert "distro ubuntu20.04  artifact  base-image is ubuntu20.04  [" in out
    assert re.search(
        r"-gencode=arch=compute_86,code=sm_86  ran +nvcc makes sm_86 code  \[\d\]", out
    )


def test_what_an_option_did_not_do_is_said(small: Cli) -> None:
    line = ("resolve", "app==2.1.3", "--accelerator", "none")
    assert small(*line, "--json").json()["caveats"] == []
    newest = "--prefer newest: tested combinations were not preferred"
    assert small(*line, "--prefer", "newest").out.endswith(f"\n{newest}\n")
    run = small(*line, "--prefer", "newest", "--json").json()
    assert run["caveats"] == [{"kind": "tested-not-preferred", "text": newest, "components": []}]


def test_a_minimum_of_evidence_is_what_an_answer_is_worth_at_least(small: Cli) -> None:
    line = ("resolve", "app==2.1.3", "--accelerator", "none")
    answer = small(*line, "--json").json()
    # A tool is a free choice: any other one would do as well.
    assert (answer["evidence"], answer["targets"]["x86"]["components"]["tool"]["evidence"]) == (
        "unknown",
        "unknown",
    )
    refused = small(*line, "--min-evidence", "derived")
    assert refused.code == 1
    assert "and no fact supports tool at --min-evidence derived\n" in refused.out


@pytest.mark.parametrize("name", ["numpy", "h5py"])
def test_a_package_is_as_new_where_its_old_releases_have_no_wheel(real: Cli, name: str) -> None:
    # What needs no Python is not preferred to what does: nobody asked for none.
    found = real("resolve", name, "--target", "arm,x86", "--json").json()["targets"]
    versions = {held["components"][name]["version"] for held in found.values()}
    assert len(versions) == 1


def test_a_package_beside_a_framework_leaves_its_toolkit_alone(real: Cli) -> None:
    alone, beside = (
        real("resolve", "torch==2.6.0", *more, "--json").json()["targets"]["x86"]["components"]
        for more in ((), ("numpy",))
    )
    told = {name: alone[name]["version"] for name in ("cuda", "cudnn", "gcc")}
    assert {name: beside[name]["version"] for name in told} == told


def test_a_withdrawn_release_is_taken_where_it_is_pinned_and_nowhere_else(real: Cli) -> None:
    """As pip does (PEP 592): transformers 4.57.0 was withdrawn, and sglang 0.5.3 requires it alone."""

    def chosen(line: str) -> str:
        outcome = real("resolve", *line.split(), "--json")
        # Which FlashInfer goes with this sglang nobody says.
        assert outcome.code in (0, 4), outcome.err
        components = outcome.json()["targets"]["x86"]["components"]
        return str(components["transformers"]["version"])

    assert chosen("sglang==0.5.3") == chosen("transformers==4.57.0") == "4.57.0"
    # A range that begins with it has other releases.
    assert chosen("transformers>=4.57.0,<4.57.2") == "4.57.1"
    assert chosen("sglang==0.5.2") != "4.57.0"


# A minimum written before a release came out says nothing of it: which answers that changes, and in what words.
#
# Each is right by a source that the matrix cites, or by a report beside the case.


UNREAD = {
    # pytorch#150167: parts of its tree are refused by CMake 4.
    "auto-gptq==0.7.1 torch==2.10.0 --from wheel": (
        "auto-gptq 0.7.1 goes with torch >=1.13.0, written 2024-03-01, before PyTorch 2.3"
    ),
    "torch==2.6.0 cmake==4.0 --from source": "torch 2.6.0 goes with cmake >=3.18, written 2025-01-29, before CMake 4",
    "apache-tvm==0.20 llvm==23": "apache-tvm 0.20.0 goes with llvm >=15, written 2025-04-12, before LLVM 21",
    "lightgbm==2.1.0 gcc==15 --from source": (
        "lightgbm 2.1.0 goes with gcc >=4.8.2, written 2018-01-25, before GCC 8"
    ),
    "xgboost==1.7.1 cuda==12.0.0 --from source": (
        "xgboost 1.7.1 goes with cuda >=11.0, written 2022-11-03, before CUDA toolkit 12"
    ),
    "accelerate==0.20.3 numpy==2.0.0 --from wheel": (
        "accelerate 0.20.3 goes with numpy >=1.17, written 2023-06-08, before NumPy 2.0.0, "
        "which changed its binary interface and removed names"
    ),
    # Pure Python, so that no tag of a wheel limits it.
    # What the answer brings is named by the release that it brings.
    "vllm==0.11.0 transformers==5.0.0 --from wheel": (
        "compressed-tensors 0.11.0 goes with transformers, written 2025-08-19, before Transformers 5.0.0, "
        "which removed TensorFlow and JAX and changed tokenizers and the loading of weights"
    ),
}
"""What an answer cannot say, by the question."""

KNOWN = [
    ("torch==2.6.0 cmake --from source", "cmake", "3.31"),
    # CMake 4 was out.
    ("torch==2.14.1 cmake==4.0 --from source", "cmake", "4.0"),
    ("apache-tvm==0.20 llvm --from source", "llvm", "15"),
    ("lightgbm==2.1.0 gcc --from source", "gcc", "7"),
    ("accelerate==0.20.3 --from wheel", "numpy", "1.24.4"),
    # tensorflow#32319: it fails with any later gast.
    ("tensorflow==1.14.0 --from wheel", "gast", "0.2.2"),
    # Of NumPy 2 and Python 3.13 its makers knew.
    ("accelerate==1.2.0 numpy==2.0.2 --from wheel", "numpy", "2.0.2"),
    # A driver goes on to serve, however old what asks for it.
    ("torch==2.0.1 --from wheel --with driver==580.65.06", "driver", "580.65.06"),
]
"""Questions with an answer, a component of it, and its release."""


@pytest.mark.parametrize("line", UNREAD)
def test_what_came_after_a_minimum_was_written_is_neither_yes_nor_no(real: Cli, line: str) -> None:
    outcome = real("resolve", *shlex.split(line), "--json")
    assert outcome.code == 4
    assert UNREAD[line] in [one["text"] for one in outcome.json()["unread"]]


@pytest.mark.parametrize(("line", "component", "release"), KNOWN)
def test_an_answer_takes_what_was_there(real: Cli, line: str, component: str, release: str) -> None:
    outcome = real("resolve", *shlex.split(line), "--json")
    assert outcome.code == 0, outcome.json()["unread"]
    (part,) = outcome.json()["targets"].values()
    held = part["components"][component]
    assert held.get("version", held.get("floor")) == release


def test_a_fact_names_the_rule_by_which_it_ends(real: Cli) -> None:
    assert "minimum-of-its-time" in real("facts", "accelerate-releases/0.20.3#numpy").out


# What METADATA names and what lies in opened wheels, asked of the real matrix, and that nothing in it contradicts.


@pytest.mark.parametrize(
    ("request_", "code", "says"),
    [
        # Requires-Dist of torch 2.10.0: cuda-bindings==12.9.4.
        ("torch==2.10.0 cuda-bindings==12.9.3 --from wheel", 1, "cuda-bindings 12.9.3"),
        ("torch==2.10.0 cuda-bindings==12.9.4 --from wheel", 0, "cuda-bindings 12.9.4"),
        # The opened wheel links libcudart.so.12 and holds code for sm_90.
        ("vllm==0.12.0 --target arm --device GH200 --from wheel", 0, "vllm 0.12.0+cu129"),
        # A NumPy whose Python nobody names is not the newest.
        ("diffusers", 0, "numpy 2."),
        # The index has a wheel for x86_64 and a source archive.
        ("xformers torch==2.1.2 --target arm --from wheel", 1, "does not go with machine aarch64"),
    ],
)
def test_what_was_read_in_files_decides(real: Cli, request_: str, code: int, says: str) -> None:
    run = real("resolve", *request_.split())
    assert (run.code, says in run.out) == (code, True), run.out


def test_all_releases_of_frameworks_are_known_by_all_that_they_require() -> None:
    index = matrix.index()
    for name in ("torch", "torchvision", "triton", "tensorflow", "jax", "numpy"):
        facts = index.component(name)
        # What is a source archive alone computes its requirements.
        opened = [release for release in facts.versions if release != "1.10.0.post2"]
        assert index.scale(name).named(facts.complete) == opened, name


@pytest.mark.long
def test_nothing_in_the_matrix_contradicts_something_else() -> None:
    index, known = matrix.index(), load_matrix([])
    packages = families.called(audit.packages(known), index.header["packages"])
    assert [*audit.contradictions(known, index, packages)] == []


# What is named beside a wanted component anchors it: the release that its own tables join with that, or the newest.


JOINED = {
    # TensorFlow's tested build configurations.
    "tensorflow --with cuda==11.2": "2.11",
    "tensorflow cuda==11.2": "2.11",
    "tensorflow --with cuda==10.0": "2.0",
    "tensorflow --with cuda==9.0": "1.12",
    "tensorflow --with 'cuda>=11,<12'": "2.14",
    "tensorflow --with bazel==3.7.2": "2.7",
    "tensorflow --with cuda==11.2 --with bazel==3.7.2": "2.7",
    "tensorflow --with cuda==11.2 --with python==3.10": "2.11",
    "tensorflow --with cudnn==8.1": "2.11",
    "tensorflow --with gcc==9": "2.12",
    "tensorflow --with rocm==5.3": "2.11",
    # ONNX Runtime's table of CUDA, and the builds of its own feed.
    "onnxruntime --with cuda==11.4": "1.12",
    "onnxruntime --with cuda==11.8 --from wheel": "1.20",
    # torchvision's table of torch, and torch's own table of ROCm.
    "torchvision torch==2.1.0": "0.16",
    "torch --with rocm==5.7": "2.2",
    # METADATA of torchvision and torchaudio pins torch, and that of torch pins Triton on Python before 3.13.
    "torch --with torchvision==0.18.1": "2.3",
    "torch --with torchaudio==2.2.2": "2.2",
    "triton --with torch==2.5.1": "3.1",
    # METADATA: 1.2.1 declares torch >=1.10.0 and 1.3.0 torch >=2.0.0; optax 0.2.2 jax >=0.1.55 and 0.2.3 jax >=0.4.27.
    "accelerate torch==1.13.1": "1.2",
    "accelerate --with torch==1.13.1": "1.2",
    "optax jax==0.4.20": "0.2",
    # Its code takes torch before 2.2 for absent from 5.0 on.
    "transformers torch==2.1.2": "4.57",
}
"""A question, and the series that a source joins with what is named."""
NEWEST = (
    "tensorflow --with driver==470",
    "torch --distro ubuntu20.04",
    "torch --with gcc==9",
    "jax --with cuda==12",
    "transformers --with torch==2.1.2",
    # METADATA names releases of torch, or of what stands on torch and names its releases.
    "deepspeed torch==2.8.0",
    "transformers torch==2.8.0",
    "peft torch==2.1.0",
    "trl torch==2.5.1",
)
"""Nothing older is taken for what facts limit by themselves, nor for where the result runs."""


def _first(cli: Cli, line: str) -> str:
    document = cli("resolve", *shlex.split(line), "--json").json()
    (target,) = document["targets"].values()
    version: str = target["components"][shlex.split(line)[0]]["version"]
    return version


@pytest.mark.parametrize("line", JOINED)
def test_a_release_that_a_source_joins_comes_before_a_newer_one(real: Cli, line: str) -> None:
    assert _first(real, line).startswith(f"{JOINED[line]}.")


@pytest.mark.parametrize("line", NEWEST)
def test_the_newest_is_taken_where_rows_are_silent(real: Cli, line: str) -> None:
    assert _first(real, line) == _first(real, f"{line} --prefer newest")


def test_the_order_of_anchors_does_not_matter(real: Cli) -> None:
    named = ("--with cuda==11.2", "--with python==3.9", "--with bazel==3.7.2")
    found = {_first(real, " ".join(("tensorflow", *order))) for order in permutations(named)}
    assert len(found) == 1


def test_the_newest_can_be_preferred(real: Cli) -> None:
    """`--prefer newest` leaves out what sources join, as it leaves out rows."""
    newest = _first(real, "tensorflow --with cuda==11.2 --prefer newest")
    assert newest == _first(real, "tensorflow --prefer newest")


def test_what_is_not_joined_says_so(real: Cli) -> None:
    entry = real("explain", "tensorflow", "tensorflow", "--with", "cuda==11.2", "--json").json()
    first = entry["explained"][0]["not_taken"][0]
    assert first["kind"] == "apart"
    assert first["why"] == "no source joins them with cuda==11.2"


# A front page of one's own: its targets, accelerators and ways are words of the command line.


EDGE = "  edge: {context: {target: edge, machine: aarch64}, accelerator: xpu}\n"


@pytest.fixture
def front(here: Path) -> str:
    """The small matrix with a target and an accelerator more, as a file here."""
    text = (SMALL / "matrix.yaml").read_text()
    (here / "matrix.yaml").write_text(text.replace("  arm: {context", f"{EDGE}  arm: {{context"))
    facts = (SMALL / "facts.yaml").read_text()
    facts = facts.replace("arm: {rank: 1}}", "arm: {rank: 1}, edge: {rank: 0}}")
    facts = facts.replace("cuda: {rank: 1}}", "cuda: {rank: 1}, xpu: {rank: 0}}")
    (here / "facts.yaml").write_text(facts)
    return "matrix.yaml"


def test_a_further_target_is_resolved_locked_and_compared(real: Cli, front: str) -> None:
    said = ("-m", front)
    answer = real("resolve", "app==2.1.3", "--target", "x86,edge", "--json", *said)
    assert answer.code == 0
    assert list(answer.json()["targets"]) == ["edge", "x86"]
    assert answer.json()["request"]["targets"] == ["x86", "edge"]
    assert real("resolve", "app==2.1.3", "--json", *said, TOOLMATRIX_TARGET="x86,EDGE") == answer
    assert real("lock", "app==2.1.3", "--target", "x86,edge", *said).code == 0
    assert real("diff", "toolmatrix.lock", "--target", "x86,edge", *said).code == 0
    assert real("diff", "toolmatrix.lock", "--target", "amd64,edge", *said).code == 0


def test_a_further_accelerator_is_one(real: Cli, front: str) -> None:
    """Of `xpu` the built-in matrix says nothing, and this one does."""
    line = ("resolve", "app==2.1.3", "--accelerator", "xpu")
    assert real(*line).code == 4
    answer = real(*line, "--target", "edge", "-m", front, "--json")
    assert (answer.code, answer.json()["request"]["accelerator"]) == (0, {"edge": "xpu"})


@pytest.mark.parametrize(
    ("text", "env", "message"),
    [
        (
            "",
            {"TOOLMATRIX_TARGET": "amd"},
            "error[TM902]: bad value for the environment variable `TOOLMATRIX_TARGET`\n",
        ),
        (
            'target = "amd"\n',
            {},
            "error[TM902]: bad value for `target`\n  --> toolmatrix.toml:1:1\n",
        ),
    ],
)
def test_a_target_that_it_lacks_is_refused_where_it_was_said(
    real: Cli, here: Path, front: str, text: str, env: dict[str, str], message: str
) -> None:
    (here / "toolmatrix.toml").write_text(text)
    told = real("resolve", "app", "-m", front, **env)
    rest = "  expected: one of x86, edge, arm\n  found: `amd`\nhelp: did you mean `arm`?\n"
    assert (told.code, told.out, told.err) == (2, "", message + rest)


# Pairs of real releases that facts say go together, that have nothing to do with each other, or are less well known.
#
# What is right is from METADATA and files of the releases, as each line names; the exit code of `why-not` is that of
# `resolve`.


@pytest.mark.parametrize(
    ("line", "code", "pair"),
    [
        # torchao/__init__.py names the torch that its kernels load beside.
        ("torchao torch==2.10.0 --from wheel", 0, ()),
        # common_ops.abi3.so needs libtorch.so, and METADATA names no torch.
        ("sgl-kernel==0.1.1 torch==2.5.1 --from wheel", 4, ("sgl-kernel", "torch", "bound")),
        # METADATA of the wheels asks for numpy >=1.14.0; of NumPy 2 it knew nothing.
        ("dgl==1.0.0 numpy==2", 4, ("dgl", "numpy", "unjoined")),
        # The tested build configurations name GCC 7.3.1.
        ("tensorflow==2.6.5 gcc==9 --from source", 4, ("tensorflow", "gcc", "unjoined")),
        # The requirements page begins with CUDA 10.0.
        ("onnxruntime --with cuda==9.2", 4, ("onnxruntime", "cuda", "bound")),
        # Tested build configurations, row 1.4.0, and the sonames of the wheel.
        ("tensorflow==1.4 cudnn", 0, ()),
        # README.md at tag jax-v0.3.25, and the extra of its setup.py.
        ("jax==0.3.25 cuda==11.8 cudnn==8.6 --from wheel", 0, ()),
        # Documentation of ROCm 6.4: links of tensorflow-rocm.
        ("tensorflow==2.18.1 rocm==6.4 --from wheel", 0, ()),
        # Eigen in TensorFlow Lite: tensorflow/tensorflow#33861 is about 1.14, and no report about 1.15.
        ("tensorflow==1.15.3 gcc==4.9 --from source", 4, ("tensorflow", "gcc", "unjoined")),
        # No source ties them to each other.
        ("cmake ninja", 4, ("cmake", "ninja", "untied")),
        # setup.py of the archive was not read for what it requires.
        ("apache-tvm==0.20.0 diffusers", 4, ("apache-tvm", "diffusers", "incomplete")),
        # libcuda_ops.so.11 was not opened for the archs that it holds.
        ("mindspore --device H100 --from wheel", 4, ("mindspore", "device", "unopened")),
        # METADATA: torch ==2.7.0.
        ("xformers==0.0.30 torch==2.7.0 --from wheel", 0, ()),
        # torch/version.py of the wheel: CUDA 10.1; its page names torchvision 0.5.0 beside it.
        ("torch==1.4.0 torchvision==0.5.0 cuda==10.1 --from wheel", 0, ()),
        # METADATA: torch ==1.7.0. The wheel of torchaudio has no device code and goes with every build.
        ("torch==1.7.0+cu110 torchaudio==0.7.0 torchvision==0.8.1 --from wheel", 0, ()),
        # A build of 2019 from source is in no table that was read.
        ("torch==1.3.1 gcc --from source", 4, ("torch", "gcc", "unjoined")),
        # Pure Python; METADATA of both were read whole, and neither names the other.
        ("flax peft", 0, ()),
        # METADATA of a wheel would name a package, and a package needs no compiler to be installed.
        ("transformers gcc==13 --from wheel", 0, ()),
        # Builds against NumPy 2 go with NumPy 1 as well (pytorch/pytorch#107302).
        ("torch==2.6.0 numpy==1.26.4 --from wheel", 0, ()),
        # Support policy of cuda.bindings: any 13.y.
        ("cuda-bindings==13.0.0 cuda==13.2 --from wheel", 0, ()),
        # METADATA of the wheels: torch ==2.15.0. A build goes with what they go with.
        ("torchvision==0.29.2 torch==2.15.0 --from source", 0, ()),
        # flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl
        ("flash-attn==2.8.3 torch==2.8.0 --from source", 0, ()),
        # METADATA: torch ==2.3.1. That both go with a NumPy is no tie between the two.
        ("torch==2.15.0 torchvision==0.18.1 --from source", 4, ("torchvision", "torch", "bound")),
        # torch >=1.13.0 of 2024-03-01, by what was compiled against torch 2.2.
        ("auto-gptq==0.7.1 torch==2.2.1 --from wheel", 0, ()),
        # That torchvision goes with torch, and that both take CUDA 13.0, says nothing of torchaudio.
        (
            "torch==2.15.0 torchvision==0.29.1 torchaudio==2.11.0 --from wheel",
            *(4, ("torchaudio", "torch", "bound")),
        ),
        # What torch was built with says nothing of libraries in a wheel that was not opened.
        ("bitsandbytes==0.47.0 rocm==7.2.3 --from wheel", 4, ("bitsandbytes", "rocm", "bound")),
        # No file of 2.8.3 is for a torch after 2.9.
        ("flash-attn==2.8.3 torch==2.12.0 --from source", 4, ("flash-attn", "torch", "bound")),
        # required_tensorflow_version at tag v0.10.0: 2.2.
        ("tensorflow-probability==0.10.0 tensorflow==2.2", 0, ()),
    ],
)
def test_a_pair_is_as_well_known_as_its_facts(
    real: Cli, line: str, code: int, pair: tuple[str, ...]
) -> None:
    run = real("resolve", *shlex.split(line), "--json")
    assert run.code == code, run.out
    pairs = [part["pair"] for part in run.json()["unread"] if "pair" in part]
    assert [(one["one"], one["other"], one["reason"]) for one in pairs[:1]] == [pair][: len(pair)]
    assert real("why-not", *shlex.split(line)).code == code
    assert real("resolve", *shlex.split(line), "--unknown-ok").code == 0


@pytest.mark.parametrize(
    ("line", "command"),
    [
        # The release that is made for TensorFlow 2.18 is the newest.
        (
            "tensorflow-probability tensorflow",
            "toolmatrix resolve tensorflow-probability tensorflow==2.18.1",
        ),
        # The newest TorchAudio was made for torch 2.11, four minors back.
        ("torch torchaudio", "toolmatrix resolve torch==2.11.0 torchaudio"),
    ],
)
def test_the_newest_of_which_everything_is_known_is_offered(
    real: Cli, line: str, command: str
) -> None:
    run = real("resolve", *line.split(), "--json")
    assert (run.code, run.json()["fully_known"]["command"]) == (4, command)
    assert real(*command.split()[1:]).code == 0


def releases(real: Cli, line: str) -> dict[str, dict[str, str]]:
    """By target the releases of an answer."""
    targets = real("resolve", *shlex.split(line), "--json").json()["targets"]
    return {
        target: {name: part.get("version", "") for name, part in held["components"].items()}
        for target, held in targets.items()
    }


@pytest.mark.parametrize(
    "line",
    [
        # A distribution whose packages were not read is no reason for a Python that those known lack.
        "transformer-engine python --from source --accelerator cuda",
        "jaxlib --with gcc --from source --accelerator none",
    ],
)
def test_a_distribution_that_was_taken_anyway_changes_nothing(real: Cli, line: str) -> None:
    found = releases(real, line)
    (distro,) = {held["distro"] for held in found.values()}
    assert releases(real, f"{line} --distro {distro}") == found


@pytest.mark.parametrize(
    "names", ["cuda tensorrt-llm", "bazel==1.0.0 ml-dtypes", "xformers torchaudio"]
)
def test_what_is_there_at_whatever_release_is_chosen_like_what_is_wanted(
    real: Cli, names: str
) -> None:
    wanted, other = names.split()
    both, having = releases(real, names)["x86"], releases(real, f"{wanted} --with {other}")["x86"]
    assert having[other] == both[other]


def test_an_extension_takes_the_framework_that_joins_it_with_the_toolkit(real: Cli) -> None:
    found = releases(real, "rocm==7.2.4 --with torchaudio")["amd"]
    assert (found["torch"], found["torchaudio"]) == ("2.11.0", "2.11.0")


def test_no_row_brings_a_library_that_nothing_needs(real: Cli) -> None:
    """Builds of torch for CUDA pin NCCL, and the one for the CPU does not."""
    line = "torch==2.6.0 --from wheel"
    assert releases(real, line)["x86"]["nccl"] == "2.21.5"
    assert "nccl" not in releases(real, f"{line} --accelerator none")["x86"]
    # The rows of what was asked for still do.
    assert "cudnn" in releases(real, "tensorrt==8.6.1.6")["x86"]


@pytest.mark.parametrize(
    ("line", "release"),
    [
        ("tensorrt cudnn --target arm,x86 --with cuda==11.6.2", "cuda 11.6.2"),
        ("tensorrt-dispatch --target arm,x86 --arch compute_88 --from wheel", "compute_88"),
    ],
)
def test_what_is_given_is_there_on_each_target_that_gets_its_accelerator(
    real: Cli, line: str, release: str
) -> None:
    arm, x86 = real("resolve", *line.split()).out.split("\n\n")[:2]
    assert f"─ {release} " in arm
    assert f"─ {release} " in x86


def test_each_of_several_targets_has_the_answer_that_it_has_alone(real: Cli) -> None:
    line = "xformers 'cuda-bindings>=13.4.1' auto-gptq --from wheel"
    both = releases(real, f"{line} --target x86,amd")
    assert both["x86"] == releases(real, f"{line} --target x86")["x86"]


def test_explain_says_which_pair_no_fact_joins(real: Cli) -> None:
    run = real("explain", "cuda", "onnxruntime==1.20.2", "cudnn==9")
    assert "(no fact joins onnxruntime 1.20.2 and\n  cuda)" in run.out


def test_releases_that_nothing_joins_are_refused_together(
    real: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems: list[Problem] = []

    def counted(problem: Problem) -> Solution | Conflict:
        problems.append(problem)
        return solve(problem)

    monkeypatch.setattr(resolve, "solve", counted)
    # No fact joins any MXNet with any cuDNN: one by one that would be a thousand problems.
    assert real("resolve", "mxnet", "cuda", "cudnn", "--min-evidence", "stated").code == 1
    assert len(problems) < 20


@pytest.mark.parametrize(
    "line",
    [
        # Keras 3 begins with TensorFlow 2.15, and METADATA of it names no backend.
        "keras==3.3.3 tensorflow==2.5.0 --from wheel",
        # The cuDNN of the wheel is of before the A100.
        "torch==1.4.0 --device A100 --from wheel",
        # torch/version.py of the wheel: CUDA 10.2.
        "torch==1.9.0+cu102 --with cuda==11.1 --from wheel",
    ],
)
def test_a_pair_that_a_fact_excludes_is_refused(real: Cli, line: str) -> None:
    assert real("resolve", *shlex.split(line)).code == 1
