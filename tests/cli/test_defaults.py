"""What is filled in where a request is silent, and what of a request goes to which target, on the built-in matrix."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def answer(cli: Cli, line: str) -> dict[str, Any]:
    outcome = cli("resolve", *shlex.split(line), "--json")
    assert outcome.code == 0, outcome.out + outcome.err
    return outcome.json()


@pytest.mark.parametrize(
    ("line", "from_", "accelerator"),
    [
        ("tensorflow==2.6.5", "source", {"x86": "cuda"}),
        ("tensorflow==1.14.0 --from wheel", "wheel", {"x86": "cuda"}),
        ("tensorflow==2.6.5 --from wheel", "wheel", {"x86": "cuda"}),
        ("tensorflow-cpu==2.10.0", "wheel", {"x86": "none"}),
        ("tensorflow-rocm==2.14.0.600", "wheel", {"amd": "rocm"}),
        ("tensorflow==2.6.5 --target arm", "source", {"arm": "none"}),
    ],
)
def test_defaults_follow_what_there_is(
    real: Cli, line: str, from_: str, accelerator: dict[str, str]
) -> None:
    request = answer(real, line)["request"]
    assert (request["from"], request["accelerator"]) == (from_, accelerator)


def test_a_codegen_arch_goes_to_the_target_that_can_make_it(real: Cli) -> None:
    targets = answer(real, "tensorflow==2.6.5 --target x86,amd,arm --arch sm_80,gfx90a")["targets"]
    made = {name: [arch["name"] for arch in part["archs"]] for name, part in targets.items()}
    assert made == {"x86": ["sm_80"], "amd": ["gfx90a"], "arm": []}


def test_an_arch_of_another_vendor_is_refused(real: Cli) -> None:
    outcome = real("resolve", "tensorflow==2.6.5", "--target", "amd", "--arch", "sm_80")
    assert outcome.code == 1
    assert "arch sm_80 requires cuda" in " ".join(outcome.out.split())


def test_a_python_past_its_end_is_taken_when_asked_for(real: Cli) -> None:
    line = "tensorflow==2.0.0 --accelerator none"
    python = answer(real, line)["targets"]["x86"]["components"]["python"]["version"]
    asked = answer(real, f"{line} python==2.7")["targets"]["x86"]["components"]["python"]["version"]
    assert (python, asked) == ("3.7", "2.7")


def test_a_driver_that_nobody_listed_is_as_good_as_the_one_below(real: Cli) -> None:
    driver = answer(real, "tensorflow==2.6.5 --with driver==471.11")["targets"]["x86"]["components"]
    assert driver["cuda"]["version"] == "11.2.2"
    outcome = real("resolve", "tensorflow==2.6.5", "cuda==11.2.2", "--with", "driver==418.40")
    assert outcome.code == 1


def test_a_release_after_the_day_of_at_is_told_as_such(real: Cli) -> None:
    outcome = real("resolve", "tensorflow==2.6.5", "--at", "2020-01-01")
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith(
        "error[TM303]: `tensorflow==2.6.5` was not yet released on 2020-01-01\n"
    )


def test_what_was_out_before_the_first_known_release_nobody_says(real: Cli) -> None:
    """torch 1.8 was out on that day; the matrix begins with 1.12."""
    outcome = real("resolve", "torch", "--at", "2021-06-01")
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err.startswith("error[TM121]: the matrix knows torch from 1.12.0 on")
    # All its releases are known.
    assert real("resolve", "vllm", "--at", "2022-01-01").code == 3


def test_a_cpu_of_another_machine_is_refused(real: Cli) -> None:
    outcome = real("resolve", "tensorflow==2.6.5", "--target", "arm", "--cpu", "zen3")
    assert (outcome.code, outcome.out) == (2, "")
    assert "`--cpu zen3` is not a CPU of aarch64" in outcome.err


def test_clang_may_come_from_another_repository_than_the_distribution(real: Cli) -> None:
    parts = answer(real, "tensorflow==2.15.0")["targets"]["x86"]["components"]
    assert parts["base-image"]["version"].startswith("nvidia/cuda:12.2.2-")
    assert any(fact.startswith("apt-llvm-org/") for fact in parts["clang"]["facts"])


def test_what_only_an_image_carries_is_not_brought_in(real: Cli) -> None:
    parts = answer(real, "cuda==11.2")["targets"]["x86"]["components"]
    assert "cudnn" not in parts
    assert parts["base-image"]["version"] == "nvidia/cuda:11.2.2-devel-ubuntu20.04"
    asked = answer(real, "cuda==11.2 cudnn")["targets"]["x86"]["components"]
    assert "cudnn8" in asked["base-image"]["version"]


@pytest.mark.parametrize("name", ["cuda", "cudnn", "nccl"])
def test_what_one_target_alone_has_is_aligned_with_nothing(real: Cli, name: str) -> None:
    line = "tensorflow==2.6.5 --target x86,arm"
    found = answer(real, f"{line} --align {name}")
    assert found["targets"] == answer(real, line)["targets"]
    assert found["request"]["align"] == [name]
    lacking = "x86 and arm" if name == "nccl" else "arm"
    assert [one["text"] for one in found["caveats"]] == [
        f"--align {name}: the answer has none on {lacking}"
    ]


def test_what_every_target_has_is_aligned_without_a_word(real: Cli) -> None:
    line = "tensorflow==2.6.5 --target x86,arm --accelerator cuda --align cuda"
    found = answer(real, line)
    assert found["caveats"] == []
    versions = [part["components"]["cuda"]["version"] for part in found["targets"].values()]
    assert versions[0] == versions[1]
    alone = answer(real, "tensorflow==2.6.5 --align cuda")
    assert alone["caveats"] == []
