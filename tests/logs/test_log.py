"""Observing logs: every signature finds its lines and only them, whatever stands in front; memory is bounded."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.amount import sampled
from tests.compilation import corpus
from tests.logs import captured as logs
from tests.schemas import shipped
from tests.test_lines import PREFIXES
from toolmatrix.logs import log, signatures
from toolmatrix.resources import signatures_path

BOOK = signatures.load()
LINES = [(entry["signature"], entry["line"]) for entry in logs.failures()] + [
    (name, line) for name, entry in logs.variants().items() for line in entry["lines"]
]
UNLIKE = [(name, line) for name, entry in logs.variants().items() for line in entry["unlike"]]


def observed(text: str) -> log.ObservedLog:
    return log.observe(io.BytesIO(text.encode("utf-8", "surrogatepass")), BOOK, "x.log")


def names(text: str) -> list[str]:
    return [match.signature.name for match in observed(text).matches]


@pytest.mark.parametrize(("name", "line"), LINES)
def test_a_line_is_known_for_what_it_is(name: str, line: str) -> None:
    assert names(line) == [name]


@pytest.mark.parametrize(("name", "line"), UNLIKE)
def test_a_line_that_only_looks_like_it_is_not(name: str, line: str) -> None:
    assert name not in names(line)


def test_every_signature_has_both() -> None:
    held = logs.variants()
    assert set(held) == {one.name for one in BOOK.signatures}
    assert all(entry["lines"] and entry["unlike"] for entry in held.values())


@pytest.mark.parametrize("path", sampled(logs.CLEAN, every=3), ids=lambda path: path.stem)
def test_a_clean_log_of_50000_lines_tells_no_error(path: Path) -> None:
    lines = path.read_text().splitlines()
    noise = logs.noise(50_000 - len(lines))
    text = [*noise[:20_000], *lines, *noise[20_000:]]
    matches = observed("\n".join(text) + "\n").matches
    # Whether versions make a failure of a line is judged with the matrix.
    found = [match for match in matches if not match.signature.when]
    assert [match.text for match in found if match.signature.severity == "error"] == []


@pytest.mark.parametrize("name", logs.decoys())
def test_words_of_failures_in_a_log_that_went_well_tell_nothing(name: str) -> None:
    assert names(logs.decoys()[name]) == []


def test_dry_runs_tell_no_failure_but_refusals() -> None:
    told = {
        name
        for case in corpus.cases()
        if "fatal" not in case.text and "error:" not in case.text
        for name in names(case.text)
    }
    assert told <= {"arch-deprecated"}


@given(st.sampled_from(LINES), st.lists(st.sampled_from(PREFIXES), max_size=2), st.booleans())
def test_prefixes_and_colours_change_nothing(
    known: tuple[str, str], prefixes: list[str], coloured: bool
) -> None:
    name, line = known
    if coloured:
        line = line.replace("error: ", "\x1b[01;31m\x1b[Kerror: \x1b[m\x1b[K", 1)
    before, after = observed(known[1]), observed("".join(prefixes) + line + "\r\n")
    assert [match.signature.name for match in after.matches] == [name]
    assert [match.values for match in after.matches] == [match.values for match in before.matches]


@given(st.text(), st.lists(st.sampled_from(LINES), max_size=4))
def test_any_text_can_be_observed(noise: str, known: list[tuple[str, str]]) -> None:
    text = noise.join(line for _, line in known)
    seen = observed(text + noise)
    assert all(1 <= match.line <= seen.lines for match in seen.matches)


@given(st.lists(st.text(st.characters(blacklist_characters="\n")), max_size=20))
def test_lines_are_counted_as_they_stand(lines: list[str]) -> None:
    text = "\n".join([*lines, "make: *** [all] Error 2", LINES[0][1], ""])
    seen = observed(text)
    assert seen.lines == text.count("\n")
    assert seen.matches[-1].line == len(lines) + 2 or any(LINES[0][1] in one for one in lines)


@pytest.mark.parametrize("block", [7, 64, 1000])
def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    text = "\n".join([*logs.noise(40), LINES[3][1], *logs.noise(40, 1), LINES[9][1], ""])
    whole = observed(text)
    monkeypatch.setattr(signatures, "BLOCK", block)
    assert observed(text) == whole
    assert whole.lines == 82


PASTE = """\
Package                   Version
------------------------- ------------
numpy                     2.2.6
my-package                1.0          /src
torch                     2.1.2+cu121
-e git+https://example.org/x

Name: vllm
Version: 0.9.0
Summary: Version: 7 of it
# Name                    Version                   Build  Channel
python                    3.10.14         h955ad1f_1
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|   0  NVIDIA GeForce RTX 5090        Off |   00000000:01:00.0 Off |                  N/A |
jax                       9.9 is no row of a table
"""


@pytest.mark.parametrize("block", [16, 100, 1 << 16])
def test_versions_are_read_from_tables(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(signatures, "BLOCK", block)
    components = observed(PASTE).inventory.components
    assert {name: seen[0].version for name, seen in components.items()} == {
        "numpy": "2.2.6",
        "my-package": "1.0",
        "torch": "2.1.2+cu121",
        "vllm": "0.9.0",
        "python": "3.10.14",
        "gpu": "NVIDIA GeForce RTX 5090",
    }
    assert components["torch"][0].where == "x.log:5"


def test_a_list_of_packages_hides_no_build_that_was_told() -> None:
    seen = observed("PyTorch version: 2.6.0+cu124\n[pip3] torch==2.6.0\n" + LINES[0][1]).matches[0]
    assert seen.seen["torch"].version == "2.6.0+cu124"


def test_a_line_without_end_is_cut() -> None:
    long = "x" * (3 * signatures.LONGEST) + "\n" + LINES[0][1] + "\n"
    seen = observed(long)
    assert (seen.lines, [match.line for match in seen.matches]) == (2, [2])


class Endless:
    """A log of many blocks that remembers how much was asked for at a time."""

    def __init__(self, block: bytes, count: int) -> None:
        self.block, self.left, self.asked = block, count, 0

    def read(self, size: int, /) -> bytes:
        self.asked = max(self.asked, size)
        self.left -= 1
        return self.block if self.left >= 0 else b""


def test_what_is_kept_of_a_long_log_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    most, components = 100, 200
    monkeypatch.setattr(log, "MATCHES", most)
    monkeypatch.setattr(log, "_COMPONENTS", components)
    text = "".join(
        f"ImportError: lib{number}.so.{number}: cannot open shared object file: No such file\n"
        f"Successfully installed pkg{number}-1.{number}\n"
        for number in range(600)
    )
    stream = Endless(text.encode(), 2)
    seen = log.observe(stream, BOOK, "x")
    assert stream.asked == signatures.BLOCK
    assert len(seen.matches) == most
    assert seen.more == 2 * (600 - most)
    assert len(seen.inventory.components) <= components + 1


def test_a_version_is_the_nearest_above() -> None:
    text = (
        "FROM nvidia/cuda:11.0-devel\nnvcc fatal   : Unsupported gpu architecture 'compute_86'\n"
        "FROM nvidia/cuda:10.2-devel\nnvcc fatal   : Unsupported gpu architecture 'compute_80'\n"
    )
    seen = observed(text)
    assert [match.seen["cuda"].version for match in seen.matches] == ["11.0", "10.2"]
    assert [seen.where for seen in seen.inventory.components["cuda"]] == ["x.log:1", "x.log:3"]


def test_lines_of_one_failure_are_one() -> None:
    text = (
        "TypeError: Descriptors cannot not be created directly.\n"
        "If this call came from a _pb2.py file, your generated code is out of date and must be "
        "regenerated with protoc >= 3.19.0.\n"
    )
    (match,) = observed(text).matches
    assert (match.line, match.count, match.values) == (1, 2, {"least": "3.19.0"})


def test_the_book_keeps_its_schema() -> None:
    with open(signatures_path(), encoding="utf-8") as file:
        held = yaml.load(file, yaml.CSafeLoader)
    jsonschema.validate(held, shipped("signatures"))
    assert len({one.name for one in BOOK.signatures}) == len(BOOK.signatures)
    given = [case.given.get("relation") for one in BOOK.signatures for case in one.cases]
    named = {one.relation for one in BOOK.signatures} | {*filter(None, given)}
    assert named == {*held["relations"]}
    for signature in BOOK.signatures:
        groups = {name for one in signature.lines for name in one.line.groupindex}
        assert "library" not in signature.between or {"file", "symbol"} & groups
        assert re.fullmatch(r"TM\d{3}", signature.code)


def wrapped(line: str) -> str:
    """A line as a window of 100 columns shows it."""
    blank = line.rfind(" ", 60, 100)
    return line if blank < 0 else f"{line[:blank]}\n{line[blank + 1 :]}"


@pytest.mark.parametrize(
    "written",
    [
        lambda line: json.dumps({"log": line + "\n", "stream": "stderr"}).encode(),
        lambda line: json.dumps({"msg": f"\x1b[31m{line}\x1b[0m"}).encode(),
        lambda line: b" 10%|#  | 1/10\r 20%|## | 2/10\r" + line.encode() + b"\r 30%|###",
        lambda line: b"x" * 300_000 + b" " + line.encode() + b" " + b"y" * 200_000,
        lambda line: wrapped(line).encode(),
        lambda line: f"Nov 20 10:00:00 host dockerd[123]: {line}".encode(),
    ],
    ids=["json", "coloured", "progress", "long", "wrapped", "syslog"],
)
@pytest.mark.parametrize(("name", "line"), LINES[:40:4])
def test_a_line_is_known_however_it_is_written(
    written: Callable[[str], bytes], name: str, line: str
) -> None:
    seen = log.observe(io.BytesIO(b"a\n" + written(line) + b"\nb\n"), BOOK, "x.log")
    assert [match.signature.name for match in seen.matches] == [name]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("test_x PASSED ImportError: libcudart.so.12: cannot open shared object file", True),
        ("test_cannot open shared object file libcudart.so.12 PASSED", False),
        ("a.py::test_out ... ok\tnvcc fatal   : Unsupported gpu architecture 'compute_86'", True),
        ("+ nvcc -c a.cu nvcc fatal   : Unsupported gpu architecture 'compute_86'", True),
        (
            "+ nvcc -c a.cu nvcc fatal   : Value 'native' is not defined for option 'gpu-architecture'",
            True,
        ),
        ("+    raise ImportError: libcudart.so.12: cannot open shared object file", False),
        ("++ nvcc -arch=sm_86 --note 'Unsupported gpu architecture compute_86' a.cu", False),
        ("+ sh -c 'nvcc a.cu || echo \"fatal: Unsupported gpu architecture sm_86\"'", False),
        ("+ echo error: Unsupported gpu architecture 'compute_86'", False),
        (
            "SKIPPED [1] t.py:3: could not import 'torch': libcudart.so.12: cannot open shared object file: No such",
            False,
        ),
    ],
)
def test_an_aside_hides_what_is_its_own(line: str, told: bool) -> None:
    assert bool(names(line)) is told


@pytest.mark.parametrize(
    ("prefix", "severity"),
    [
        ("", "error"),
        ("UserWarning: ", "warning"),
        ("/v/site-packages/a/b.py:7: RuntimeWarning: ", "warning"),
        ("WARNING | ops | ", "warning"),
        ("2024-05-02 09:12:01.101442: W external/xla/a.cc:9] ", "warning"),
        ("[W:onnxruntime:Default, a.cc:9 B] ", "warning"),
        ("E tensorflow/a.cc:9] ", "error"),
        ("clang: warning: ignored; error: ", "error"),
        ("clang: warning: ignored; fatal   : ", "error"),
        ("the warning above was one, ImportError: ", "error"),
    ],
)
def test_what_a_program_only_warns_of_is_no_error(prefix: str, severity: str) -> None:
    line = "libcudart.so.12: cannot open shared object file: No such file or directory\n"
    (match,) = observed(prefix + line).matches
    assert match.signature.severity == severity
    for text in (prefix + line + line, line + prefix + line):
        (match,) = observed(text).matches
        assert match.signature.severity == "error"


REFUSED = ["flag-of-another-machine"]
ASKED = (
    "Could not find any cuda.h matching version '11' in any subdirectory:\n"
    "        'include'\nof:\n        '/usr'\n"
)


def test_what_a_program_asks_about_next_is_no_failure() -> None:
    goes_on = ASKED + "Asking for detailed CUDA configuration...\n"
    assert names(ASKED) == ["toolkit-layout-unknown"]
    assert names(goes_on) == []
    assert names(goes_on + "\n" * 9 + ASKED) == ["toolkit-layout-unknown"]
    assert names(ASKED + "\n" * 60 + "Asking for detailed CUDA configuration...\n") == [
        "toolkit-layout-unknown"
    ]
    assert names("a.cc:1:10: fatal error: cuda.h: No such file or directory\n" + goes_on) == [
        "header-missing"
    ]


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("-----------\nCompiler for C supports arguments -mfpu=neon: NO ", []),
        ("==> Not available!", []),
        ("-----------\nCompiler for C supports arguments -mfpu=neon: YES ", REFUSED),
        ("ninja: error: loading 'build.ninja'", REFUSED),
    ],
)
def test_a_flag_that_was_only_tried_is_no_failure(end: str, told: list[str]) -> None:
    refused = "stderr:\ncc: error: unrecognized command-line option '-mfpu=neon'\n"
    assert names(refused + end + "\n") == told


@pytest.mark.parametrize(
    ("between", "told"), [(0, []), (6, []), (20, ["module-missing"])], ids=["next", "near", "far"]
)
def test_what_a_program_says_that_it_does_without_is_no_failure(
    between: int, told: list[str]
) -> None:
    without = "WARNING A matching Triton is not available, some optimizations will not be enabled\n"
    missing = "ModuleNotFoundError: No module named 'triton'\n"
    assert names(without + "\n" * between + missing) == told
    assert names(missing + without) == []


def test_where_a_package_lies_does_not_say_who_wanted_it() -> None:
    wanted = 'File "/v/site-packages/flax/linen/linear.py", line 30, in <module>\n'
    refused = "ImportError: cannot import name 'A' from 'jax' (/v/site-packages/jax/__init__.py)\n"
    assert observed(wanted + refused).matches[0].callers == ("jax", "flax")


@pytest.mark.parametrize(
    ("above", "callers"),
    [
        ("import numpy\n", ("numpy",)),
        (">>> import numpy as np\n", ("numpy",)),
        ("$ python3 -c 'import onnx; onnx.load()'\n", ("onnx",)),
        ("    import numpy\n", ()),
        ("import numpy_financial\n", ()),
        ("a.cc: In function 'llvm::T* tvm::codegen::Get(const string&)':\n", ("apache-tvm",)),
    ],
)
def test_what_is_imported_above_is_who_failed(above: str, callers: tuple[str, ...]) -> None:
    assert observed(above + "Illegal instruction (core dumped)\n").matches[0].callers == callers


@pytest.mark.parametrize(
    ("ends", "callers"), [("... error", ("flash-attn",)), ("... done", ())], ids=["error", "done"]
)
def test_what_pip_cannot_build_is_who_wanted_a_package(ends: str, callers: tuple[str, ...]) -> None:
    text = (
        "Collecting numpy\n  Using cached numpy-2.0.0.tar.gz (20 MB)\n"
        "Collecting flash-attn\n  Downloading flash_attn-1.0.7.tar.gz (2.0 MB)\n"
        f"  Installing build dependencies ... done\n  Getting requirements to build wheel {ends}\n"
        "      ModuleNotFoundError: No module named 'torch'\n"
    )
    assert observed(text).matches[0].callers == callers


@pytest.mark.parametrize(
    ("bazel", "name"),
    [("0.10.0", "bazel-compared-as-text"), ("0.5.3", "bazel-too-old")],
)
def test_a_release_is_higher_by_its_numbers(bazel: str, name: str) -> None:
    assert names(f"Current Bazel version is {bazel}, expected at least 0.5.4") == [name]


@pytest.mark.parametrize("release", ["17..0", "1.7." + "9" * 5000, "1.7.٣"])
def test_a_release_that_is_damaged_is_read_as_far_as_it_goes(release: str) -> None:
    line = f"satisfies the requirement scipy=={release} (from versions: 1.9.2, {release}, 1.10.0)"
    observed(f"ERROR: Could not find a version that {line}\n")
    observed(f"ERROR: Current Bazel version is {release}, expected at least {release}\n")


# A pattern that takes the cube of a line takes minutes, and is ended by the bound on a test.
@pytest.mark.long
@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["a", "1.", "lib.so", "a ", "a'b"])
def test_no_line_takes_a_pattern_long(piece: str) -> None:
    line = piece * (signatures.WINDOW // len(piece))
    patterns = [
        *(pattern.line for one in BOOK.signatures for pattern in one.lines),
        *(
            one.line
            for one in (*BOOK.witnesses, *BOOK.callers, *BOOK.consequences, *BOOK.recoveries)
        ),
        *BOOK.asides,
    ]
    for pattern in patterns:
        pattern.search(line)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (
            "Found cuDNN version 8600, but JAX was built against version 8906, which is newer.",
            {"cudnn": "8.6", "built": "8.9.6", "by": "JAX"},
        ),
        (
            "Found cuDNN version 90100, but JAX was built against version 90501, which is newer.",
            {"cudnn": "9.1", "built": "9.5.1", "by": "JAX"},
        ),
        (
            "Found CUDA version 11080, but JAX was built against version 12010, which is newer.",
            {"file": "CUDA", "cuda": "11.8", "built": "12.1", "by": "JAX"},
        ),
    ],
)
def test_numbers_of_headers_are_read_as_releases(line: str, values: dict[str, str]) -> None:
    (match,) = observed(line).matches
    assert match.values == values


def test_who_needs_something_may_stand_in_the_first_line() -> None:
    text = (
        "E external/xla/xla/stream_executor/cuda/cuda_dnn.cc:439]\n"
        "Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\n"
    )
    assert [match.callers for match in observed(text).matches] == [("jax",)]
