"""Diagnoses: the pair, the facts and the fix of every known failure, in logs as long as real ones."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from tests.logs import captured as logs
from toolmatrix.factbase.store import open_index
from toolmatrix.judging.diagnose import diagnose
from toolmatrix.logs import log, signatures
from toolmatrix.logs.log import Fix
from toolmatrix.report.rules import load_rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.logs.log import Diagnosis

BOOK = signatures.load()


@pytest.fixture(scope="session")
def index(cache: str) -> Index:
    return open_index((), {"XDG_CACHE_HOME": cache})


def told(
    index: Index, text: str, locked: Mapping[str, str] | None = None, *resolving: str
) -> Diagnosis:
    """A diagnosis in which the requests `resolving` are the ones that resolve, all where there are none."""

    def solve(words: Sequence[str]) -> Fix | None:
        joined = " ".join(words)
        if resolving and joined not in resolving:
            return None
        return Fix(request=tuple(words), answer={"asked": joined})

    seen = log.observe(io.BytesIO(text.encode()), BOOK, "x.log")
    return diagnose(index, BOOK, seen, locked or {}, solve)


def pairs(found: Diagnosis) -> list[str]:
    return [cause.actual for cause in found.causes]


@pytest.mark.parametrize("entry", logs.failures(), ids=lambda entry: entry["source"])
def test_every_failure_names_its_pair_in_a_long_log(index: Index, entry: dict[str, Any]) -> None:
    noise = logs.noise(2000)
    text = [*noise[:900], *entry.get("above", ()), *noise[900:910], entry["line"], *noise[910:]]
    found = told(index, "\n".join(text) + "\n")
    assert pairs(found) == [" and ".join(entry["between"])]
    assert found.causes[0].signature == entry["signature"]


@pytest.mark.parametrize(("between", "line"), logs.reported())
def test_a_reported_line_names_its_components(
    index: Index, between: tuple[str, ...], line: str
) -> None:
    noise = logs.noise(20)
    (cause,) = told(index, "\n".join([*noise[:10], line, *noise[10:]]) + "\n").causes
    named = [side.component for side in cause.between]
    assert all(any(name.startswith(component) for name in named) for component in between), named


def test_all_failures_are_found_in_one_log_of_50000_lines(index: Index) -> None:
    entries = logs.failures()
    noise = logs.noise(50_000 - 2 * len(entries), seed=7)
    step = len(noise) // len(entries)
    text: list[str] = []
    placed = {}
    for number, entry in enumerate(entries):
        text += noise[number * step : (number + 1) * step]
        text.append(entry["line"])
        placed[len(text)] = entry["signature"]
    seen = log.observe(io.BytesIO(("\n".join(text) + "\n").encode()), BOOK, "x")
    assert {match.signature.name for match in seen.matches} == set(placed.values())
    assert all(placed[match.line] == match.signature.name for match in seen.matches)
    assert sum(match.count for match in seen.matches) == len(entries)
    assert diagnose(index, BOOK, seen, {}, lambda _: None).left == 0


def test_the_facts_say_what_would_go(index: Index) -> None:
    found = told(
        index,
        "FROM nvidia/cuda:11.0-devel\nnvcc fatal   : Unsupported gpu architecture 'compute_86'\n",
        {"cuda": "11.2.2"},
    )
    (cause,) = found.causes
    assert cause.code == "TM201"
    assert cause.grounds[0].subject == "cuda"
    assert "arch-toolkits/sm_86" in cause.facts
    assert cause.allowed is not None
    assert cause.allowed[0] == "cuda"
    assert "11.1.0" in cause.allowed[1]
    assert "11.0.3" not in cause.allowed[1]
    assert cause.between[0].wanted == "11.2.2"
    assert cause.fix is not None
    assert cause.fix.request == ("cuda", "--arch", "compute_86")


def test_a_fix_is_one_that_resolves(index: Index) -> None:
    text = "Successfully installed tensorflow-2.4.0\nRuntimeError: _ARRAY_API not found\n"
    assert told(index, text, None, "numpy<2").causes[0].fix is not None
    assert told(index, text, None, "something else").causes[0].fix is None


def test_an_older_interface_names_the_numpy_that_has_it(index: Index) -> None:
    text = (
        "RuntimeError: module compiled against API version 0x10 but this version of numpy is 0xf\n"
    )
    (cause,) = told(index, text).causes
    assert cause.expected == "numpy >= 1.23.0"
    assert cause.facts == ("numpy-abi/1.23.0",)


def test_no_gpu_follows_from_a_driver_that_is_too_old(index: Index) -> None:
    text = (
        "RuntimeError: No CUDA GPUs are available\n"
        "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).\n"
    )
    assert [cause.signature for cause in told(index, text).causes] == [
        "driver-too-old",
        "driver-not-there",
    ]


def test_a_local_version_that_an_index_lacks_is_no_matter_of_python(index: Index) -> None:
    text = (
        "ERROR: Could not find a version that satisfies the requirement torch==1.9.0+cu102 "
        "(from versions: 1.8.1, {}1.9.1)\n"
    )
    assert pairs(told(index, text.format("1.9.0, "))) == ["torch 1.9.0+cu102 and the index"]
    assert pairs(told(index, text.format(""))) == ["torch 1.9.0+cu102 and python"]


def test_causes_stand_before_what_follows(index: Index) -> None:
    text = (
        "make[1]: *** [sub] Error 1\n"
        "nvcc warning : The 'compute_35' and 'sm_35' architectures are deprecated\n"
        "a.cc:1:10: fatal error: cudnn.h: No such file or directory\n"
        "make: *** [all] Error 2\n"
        "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\n"
        "Failed to create CUDAExecutionProvider.\n"
        "ninja: build stopped: subcommand failed.\n"
    )
    found = told(index, text)
    assert [(cause.where and cause.where.line) for cause in found.causes] == [
        *(3, 5, 2),
        6,  # follows from the line above it
    ]
    assert (found.following, found.followed and found.followed.line) == (3, 1)


def test_a_log_of_consequences_alone_tells_nothing(index: Index) -> None:
    found = told(index, "make: *** [all] Error 2\n")
    assert (found.causes, found.followed, found.following) == ((), None, 0)


def test_what_follows_names_its_cause(index: Index) -> None:
    text = (
        "[E] Failed to load library libonnxruntime_providers_cuda.so with error: libcublas.so.11: "
        "cannot open shared object file: No such file or directory\n"
        "[W] Failed to create CUDAExecutionProvider.\n"
    )
    assert [cause.follows for cause in told(index, text).causes] == [0, 1]


HEADLINE = "ERROR: An error occurred during the fetch of repository 'local_config_cuda':"
NO_CUDNN = "Error in fail: Could not find any cudnn.h matching version '8' in any subdirectory:"
NEWER_NUMPY = (
    "RuntimeError: module compiled against API version 0xa but this version of numpy is 0x7"
)
OTHER_NUMPY = "ImportError: numpy.core.multiarray failed to import"


@pytest.mark.parametrize(
    ("lines", "signature", "count", "severity"),
    [
        # A headline stands above what it follows from.
        ([HEADLINE, NO_CUDNN], "toolkit-layout-unknown", 2, "error"),
        ([NEWER_NUMPY, OTHER_NUMPY], "numpy-abi-newer-headers", 2, "error"),
        (
            [
                "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:",
                "NotImplementedError: No operator found for `memory_efficient_attention_forward`",
            ],
            "xformers-of-another-torch",
            2,
            "error",
        ),
        (
            [
                "Loaded runtime CuDNN library: 8.5.0 but source was compiled with: 8.6.0.",
                "XlaRuntimeError: FAILED_PRECONDITION: DNN library initialization failed.",
            ],
            "cudnn-older-than-built",
            2,
            "error",
        ),
    ],
)
def test_what_follows_between_the_same_sides_is_the_same_failure(
    index: Index, lines: list[str], signature: str, count: int, severity: str
) -> None:
    (cause,) = told(index, "\n".join([*lines, ""])).causes
    assert (cause.signature, cause.count, cause.severity) == (signature, count, severity)


def test_what_follows_from_another_caller_is_a_failure_of_its_own(index: Index) -> None:
    called = 'File "/v/lib/python3.10/site-packages/{}/a.py", line 1, in <module>'
    text = "\n".join((called.format("h5py"), NEWER_NUMPY, called.format("cv2"), f"{OTHER_NUMPY}\n"))
    assert [cause.follows for cause in told(index, text).causes] == [0, 2]


def test_a_range_that_holds_what_failed_is_not_offered(index: Index) -> None:
    text = (
        "-- The CUDA compiler identification is NVIDIA {}\n"
        "/usr/include/c++/11/bits/std_function.h:435:145: error: parameter packs not expanded with ‘...’:\n"
    )
    (cause,) = told(index, text.format("11.5.119")).causes
    assert cause.actual == "cuda 11.5.119 and gcc 11"
    assert cause.allowed is None
    # One that the facts refuse with this GCC as well has releases beside it that go.
    (cause,) = told(index, text.format("11.0.194")).causes
    assert cause.allowed is not None
    assert "11.0.3" not in cause.allowed[1]


def test_a_way_out_changes_something(index: Index) -> None:
    text = (
        "FROM nvidia/cuda:11.5.2-devel\n"
        "/usr/include/c++/11/bits/std_function.h:4:1: error: parameter packs not expanded with ‘...’:\n"
    )

    def solve(words: Sequence[str]) -> Fix | None:
        joined = " ".join(words)
        gcc = "11" if joined == "cuda==11.5 gcc<11" else "10"
        return Fix(request=tuple(words), answer={"cuda": "11.5.2", "gcc": gcc})

    seen = log.observe(io.BytesIO(text.encode()), BOOK, "x.log")
    (cause,) = diagnose(index, BOOK, seen, {}, solve).causes
    assert cause.fix is not None
    assert cause.fix.request == ("cuda", "--with", "gcc==11")
    assert cause.instead is None


@pytest.mark.parametrize(
    ("above", "signatures"),
    [("-- Host: aarch64\n", ["char-compared"]), ("-- Host: x86_64\n", []), ("", [])],
)
def test_a_line_may_fail_on_one_machine_alone(
    index: Index, above: str, signatures: list[str]
) -> None:
    line = "a.c:5:7: warning: comparison is always false due to limited range of data type [-Wtype-limits]\n"
    found = told(index, above + line)
    assert [cause.signature for cause in found.causes] == signatures


@pytest.mark.parametrize(
    ("above", "expected", "evidence"),
    [
        ("", "-std=c++17", "reported"),
        ("gcc version 9.4.0\n", "-std=c++17", "reported"),
        ("gcc version 7.5.0\n", "gcc >= 9, and -std=c++17", "stated"),
    ],
)
def test_a_case_says_what_is_otherwise_for_a_version(
    index: Index, above: str, expected: str, evidence: str
) -> None:
    line = "error: #error C++17 or later compatible compiler is required to use PyTorch.\n"
    (cause,) = told(index, above + line).causes
    assert (cause.expected, cause.evidence) == (expected, evidence)


def test_every_fact_and_code_of_the_book_is_there(index: Index) -> None:
    ids, codes = index.ids, load_rules()
    named = [fact for one in BOOK.signatures for fact in one.facts if "{" not in fact]
    assert [fact for fact in named if fact not in ids] == []
    assert [one.code for one in BOOK.signatures if one.code not in codes] == []
