"""Every row of a vendor's table comes back when it is asked for, or the answer disputes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from tests.amount import part
from tests.factbase import vendor_tables
from tests.factbase.vendor_tables import Row, apart, ask, copied, rows

# PyTorch's table lists a Python for which the release has no wheel; its files decide.
DISPUTED = {"torch-release-md/2.13", "torch-release-python/2.14"}
# On these a toolkit takes a compiler whose packages nobody read.
UNTOLD = {
    "distro==centos7",
    "distro==sles15",
    "distro==opensuse15",
    "distro==azurelinux3",
}
# No image of CUDA packages it.
UNPACKAGED = {"clang==22"}
# Of NumPy no release that TensorFlow takes takes it: a table that begins with it is refused by the files.
GONE = {"python==3.3"}
# They were built in images of CUDA 10, which were deleted; how else that toolkit came beside them no source says.
IMAGE_DELETED = {
    *("onnxruntime==1.6.0", "onnxruntime==1.4.0", "onnxruntime==1.1.2"),
    *("apache-tvm==0.6.0", "apache-tvm==0.6.1", "apache-tvm==0.7.0"),
}
# AMD names the ROCm that it was tested with; with which compiler no source says.
WITHOUT_COMPILER = {"dgl==2.4.0"}
# Its page has cuDNN 8.1 with CUDA 10.2, and its images, which are tested, have CUDA 11.1.
OTHER_TOOLKIT = {"tensorrt==7.2.3.4"}
SETTLED = UNPACKAGED | IMAGE_DELETED | WITHOUT_COMPILER | OTHER_TOOLKIT
# What images of 2018 held and no release of the matrix is called.
LACKING = {
    ("ngc-tensorrt", "18.10"): "cuDNN 7.4.0",
    ("ngc-mxnet", "18.06"): "TensorRT 4.0.1",
    **{("torch", f"1.{minor}"): "PyTorch before 1.12" for minor in (8, 9, 10, 11)},
    ("torch", "1.10.1"): "PyTorch before 1.12",
    ("torch", "1.15"): "PyTorch 1.15, which there never was",
    **{
        ("onnxruntime", few): "ONNX Runtime before 1.7" for few in ("1.0-1.1", "1.2-1.4", "1.5-1.6")
    },
}


@pytest.fixture(scope="module", name="printed")
def _printed() -> list[Row]:
    """Every row of the matrix that a vendor prints."""
    return list(rows())


@pytest.fixture(scope="module", name="by_hand")
def _by_hand() -> list[Row]:
    """Every row that was copied apart from the matrix."""
    return list(copied())


@pytest.fixture(autouse=True)
def _one_index(_opened_once: None) -> None:
    """Questions share one index."""


def found(asked: Iterable[Row]) -> dict[str, str]:
    """What does not come back, by row: `disputed`, or what was asked and answered instead."""
    index = vendor_tables.index()
    other = {}
    for row in asked:
        outcome = ask(index, row)
        if outcome.verdict != "holds" and SETTLED.isdisjoint(outcome.asked.split()):
            differs = outcome.verdict == "differs"
            other[row.id] = f"{outcome.asked}\n{outcome.found}" if differs else outcome.verdict
    return other


def known(row: Row) -> bool:
    """Whether the matrix has a name for all that a copied row prints."""
    return (row.subject, row.release) not in LACKING


def test_every_vendor_has_rows(printed: list[Row], by_hand: list[Row]) -> None:
    subjects = Counter(row.subject for row in printed)
    few = {
        subject: subjects[subject]
        for subject, floor in (
            ("tensorflow", 50),
            ("torch", 60),
            ("onnxruntime", 10),
            ("tensorrt", 90),
            ("cudnn", 35),
            ("rocm", 100),
            ("apache-tvm", 25),
            ("ngc-tritonserver-trtllm", 28),
        )
        if subjects[subject] < floor
    }
    assert few == {}
    assert len(by_hand) > 550


def test_rows_of_the_matrix_come_back(printed: list[Row]) -> None:
    assert found(printed[::6]) == {row.id: "disputed" for row in printed[::6] if row.id in DISPUTED}


def test_copied_rows_come_back(by_hand: list[Row]) -> None:
    assert found(filter(known, by_hand[::12])) == {}


@pytest.mark.long
def test_all_rows_of_the_matrix_come_back(printed: list[Row]) -> None:
    assert found(printed) == dict.fromkeys(DISPUTED, "disputed")


@pytest.mark.long
def test_all_copied_rows_come_back(by_hand: list[Row]) -> None:
    assert found(filter(known, by_hand)) == {}


@pytest.mark.long
@pytest.mark.sweep
def test_each_value_of_a_row_comes_back(printed: list[Row]) -> None:
    index = vendor_tables.index()
    asked = [one for row in part(printed, 4) for one in apart(index, row)]
    outcomes = [ask(index, one) for one in asked]
    differing = [one.asked for one in outcomes if one.verdict == "differs"]
    assert [
        words for words in differing if (UNTOLD | GONE | SETTLED).isdisjoint(words.split())
    ] == []
    # Pythons of which a release has no wheel, and systems that a later row takes back.
    disputed = Counter(one.verdict for one in outcomes)["disputed"]
    assert disputed < len(asked) / 25
