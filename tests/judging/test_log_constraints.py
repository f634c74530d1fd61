"""Constraints of a log: words are added until an answer contradicts none, and what still does is no remedy."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmatrix.inspection.model import Seen
from toolmatrix.judging.log_constraints import of_log
from toolmatrix.logs.log import Fix

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAMS = ("tensorflow", "torch")
NEWEST = {"torch": "2.15.0", "torch-variant": "2.15.0+cu132@default/x86_64", "cuda": "13.2.2"} | {
    "python": "3.14",
    "driver": "580.65.06",
}


def kept(versions: Mapping[str, str], request: str, *, gpu: str = "", **answers: str) -> str:
    """The words that are left of a request, "" for none, by answers that obey `--with` and `answers` by option."""

    def solve(words: tuple[str, ...]) -> Fix | None:
        answer = dict(NEWEST)
        for option, value in pairwise(words):
            if option == "--with":
                name, _, release = value.partition("==")
                answer[name] = release
            if answers.get(option.strip("-")) == "none":
                return None
            if option == "--accelerator" and value == "rocm":
                answer = {"torch": "2.15.0", "rocm": "7.2", "python": answer["python"]}
        return Fix(request=words, answer=answer)

    seen = {name: Seen(version=text, seen_by="log", where="x:1") for name, text in versions.items()}
    fix = of_log(PROGRAMS, seen, gpu).apply(tuple(request.split()), {"cuda", "torch"}, solve)
    return " ".join(fix.request) if fix is not None else ""


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ({}, "torch"),
        ({"python": "3.10.12"}, "torch --with python==3.10"),
        ({"python": "3.14"}, "torch"),
        ({"driver": "570.133.07"}, "torch --with driver==570.133.07"),
        ({"driver": "590.1"}, "torch"),
        ({"torch": "2.5.1+rocm6.2"}, "torch --accelerator rocm"),
        (
            {"torch": "2.5.1+rocm6.2", "python": "3.12"},
            "torch --accelerator rocm --with python==3.12",
        ),
        ({"torch": "2.5.1+rocm6.2", "driver": "590.1"}, "torch"),
        ({"tensorflow": "2.10.0"}, "torch"),
    ],
)
def test_words_keep_what_an_answer_contradicts(versions: dict[str, str], words: str) -> None:
    assert kept(versions, "torch") == words


@pytest.mark.parametrize(
    ("versions", "request_", "words"),
    [
        # What the request says of itself stays.
        ({"python": "3.10"}, "torch --with python==3.12", "torch --with python==3.12"),
        ({"torch": "2.5.1+rocm6.2"}, "torch --accelerator cuda", ""),
        ({"torch": "2.5.1", "driver": "590.1"}, "tensorflow", ""),
        ({"tensorflow": "2.10.0"}, "tensorflow", "tensorflow"),
    ],
)
def test_a_request_that_no_word_saves_is_none(
    versions: dict[str, str], request_: str, words: str
) -> None:
    assert kept(versions, request_) == words


def test_an_answer_that_the_gpu_does_not_run_is_none() -> None:
    assert kept({}, "torch", gpu="6.1", device="none") == ""
    assert kept({}, "torch", gpu="6.1") == "torch"
    # The build of the log runs on its GPU, whatever else failed.
    assert kept({"torch": "2.15.0+cu132"}, "torch", gpu="6.1", device="none") == "torch"


@given(
    st.sampled_from(["", "3.8.1", "3.14"]),
    st.sampled_from(["", "470.1", "580.65.06", "600.1"]),
    st.sampled_from(["", "2.5.1+rocm6.2", "2.5.1+cu121"]),
)
def test_no_answer_contradicts_the_log(python: str, driver: str, torch: str) -> None:
    versions = {"python": python, "driver": driver, "torch": torch}
    words = kept({name: text for name, text in versions.items() if text}, "torch").split()
    if python and words:
        assert ("python==3.8" in words) is python.startswith("3.8")
    if driver and "rocm" not in words and words:
        assert (f"driver=={driver}" in words) is (driver == "470.1")
    if "rocm" in torch and not driver:
        assert "rocm" in words
