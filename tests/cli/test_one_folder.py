"""Packages that fill one folder: pip installs both, and the later one wins file by file."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from tests.amount import sampled
from tests.cli.conftest import Cli

FOLDER = {
    "tensorflow": "2.10.1",
    "tensorflow-cpu": "2.10.1",
    "tensorflow-gpu": "2.10.1",
    "tensorflow-rocm": "2.10.1.540",
    "tensorflow-aarch64": "2.10.1",
    "tensorflow-cpu-aws": "2.10.1",
}
"""Packages with a folder `tensorflow`, each at a release that has it."""
EMPTY = ("tensorflow", "tensorflow-cpu-aws")
"""The first has no folder on arm at that release, and requires the second."""

PUBLISHED_AS = ("tensorflow", "tensorflow-rocm")
"""The build of the first for ROCm is the second: one package, by two names."""


@pytest.mark.parametrize("from_", ["wheel", "source"])
@pytest.mark.parametrize(
    "pair",
    sampled(
        [(pair,) for pair in combinations(FOLDER, 2) if pair not in (EMPTY, PUBLISHED_AS)], every=12
    ),
    ids=" ".join,
)
def test_two_packages_of_one_folder_have_no_answer(
    real: Cli, pair: tuple[str, str], from_: str
) -> None:
    wanted = [f"{name}=={FOLDER[name]}" for name in pair]
    for target in ("x86", "arm", "amd"):
        for accelerator in ("none", "cuda", "rocm"):
            where = ("--target", target, "--accelerator", accelerator, "--from", from_)
            outcome = real("resolve", *wanted, *where, "--json")
            assert outcome.code == 1, (wanted, where)


@pytest.mark.parametrize(
    ("pair", "options"),
    [
        (("tensorflow==2.15.1", "tensorflow-cpu==2.15.1"), ("--accelerator", "none")),
        (("tensorflow==2.6.5", "tensorflow-gpu==2.6.5"), ()),
    ],
    ids=lambda one: one[1] if len(one) > 1 else "",
)
def test_the_reason_is_the_folder(
    real: Cli, pair: tuple[str, str], options: tuple[str, ...]
) -> None:
    outcome = real("resolve", *pair, "--from", "wheel", *options)
    name, _, version = pair[1].partition("==")
    assert outcome.out.startswith(
        "no\n\n"
        f"1. hard  Because {name} {version} excludes tensorflow (artifact) [1]\n"
        f"         and you require {pair[0]}\n"
        f"         and you require {pair[1]},\n"
        "         there is no answer.  TM101\n"
    )


def test_an_empty_package_goes_with_the_one_that_it_requires(real: Cli) -> None:
    where = ("--from", "wheel", "--target", "arm", "--json")
    for request in (("tensorflow==2.10.1",), ("tensorflow==2.15.1", "tensorflow-cpu-aws")):
        outcome = real("resolve", *request, *where)
        assert outcome.code == 0
        held = outcome.json()["targets"]["arm"]["components"]
        assert {"tensorflow", "tensorflow-cpu-aws"} <= set(held)
    assert real("resolve", "tensorflow==2.16.1", "tensorflow-cpu-aws", *where).code == 1


@pytest.mark.parametrize(
    ("request_", "package", "release"),
    [
        ("tensorflow==2.6.0 --target amd", "tensorflow-rocm", "2.6.4"),
        ("onnxruntime==1.18.1 --accelerator cuda", "onnxruntime-gpu", "1.18.1"),
    ],
)
def test_an_image_is_asked_for_the_package_that_it_was_given(
    real: Cli, request_: str, package: str, release: str
) -> None:
    said = ("--from", "wheel", "--format", "dockerfile", "--stdout")
    text = real("render", *request_.split(), *said).out
    name = request_.partition("=")[0]
    assert re.findall(rf" ({name}[\w-]*(?:\[[\w,]*\])?==\S+)", text) == [f"{package}=={release}"]
    # The first program of the check is that of the package.
    assert re.findall(rf" ({name}\S*) (\S+) \S+ '", text) == [(package, release)]
