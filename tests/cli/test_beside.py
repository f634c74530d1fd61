"""What stands beside an answer: how a framework gets there by default, what was skipped, and what is fully known."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from tests.cli.conftest import Cli

WAYS = {
    "tensorflow==2.6.5": "source",
    "tensorflow==2.6.5 --device 8.6": "wheel",
    "tensorflow==2.6.5 --with driver==535": "wheel",
    # Who names a build tool or an arch builds.
    "tensorflow==2.6.5 --device 8.6 --with gcc==7": "source",
    "tensorflow==2.6.5 --device 8.6 --arch sm_80": "source",
    "tensorflow bazel==6.5.0 --with driver==535": "source",
    # No wheel computes on it: TensorFlow's for ARM have no CUDA, and torch 1.13 has no code for Blackwell.
    "tensorflow --device GB10": "source",
    "torch==1.13.1 --device 'RTX 5090'": "source",
    "torch --device GB10": "wheel",
    "torch --device MI300X": "wheel",
    # Of what is built on torch it is known for which devices its wheels are, not for which archs.
    "torch torchvision --device H100": "wheel",
    "torchaudio --device A100": "wheel",
    # No source says that there are wheels of MindSpore for GPUs.
    "mindspore --device H100": "source",
    # Of these, facts know wheels alone.
    "opencv-python==4.9.0.80 numpy": "wheel",
    "scikit-learn==1.2.2": "wheel",
    "lightgbm numpy": "source",
    # Packages that stand on a framework, or go with some releases of it, are installed with it.
    "transformers torch==2.8.0": "wheel",
    "deepspeed torch==2.8.0": "wheel",
    "deepspeed --with torch==2.8.0": "wheel",
    "peft==0.3.0 apache-tvm==0.14.0": "source",
    "peft==0.3.0 --with apache-tvm==0.14.0": "source",
}
"""A question without `--from`, and how the framework gets there."""
SKIPPED = {
    "vllm --with driver==535": ("vllm", "they need driver >=580.65.06"),
    "torch --with python==3.8": ("torch", "they need python 3.9-3.15"),
    "tensorflow --with cuda==11.2": ("tensorflow", "no source joins them with cuda==11.2"),
    # Torch is in an extra of its METADATA alone.
    "diffusers torch==2.4.0 --from wheel": (
        "diffusers",
        "they came out after torch 2.4.0 and do not declare it; see --prefer newest",
    ),
    # Compiled code that no fact joins with a later Python is no fact that refuses it.
    "python mindspore==2.0.0": ("python", "no fact says that they go with mindspore 2.0.0"),
    # The release pages have no wheel of 2.8.3.post1 and post2.
    "flash-attn --from wheel": ("flash-attn", "no fact says that they go with accelerator cuda"),
}
"""A question, the component that is not at its newest release, and why."""
PINNED = {
    # Its METADATA admits every Transformers since 4.56, of which those from 5.20 on have no use for this torch.
    "trl torch==2.5.1": "transformers==",
    # Nothing that METADATA says keeps NumPy 2 from code compiled for NumPy 1.
    "sentence-transformers torch==2.0.1": "numpy==1.",
    "tensorflow==2.10.0 --from wheel": "numpy==1.",
    # DGL has a list of wheels for each torch and CUDA, and the newest has none for 2.4.1.
    "dgl torch==2.4.0 --from wheel": "https://data.dgl.ai/wheels/torch-2.4/",
    # So has PyG.
    "torch-scatter torch==2.4.0 --from wheel": "https://data.pyg.org/whl/torch-2.4.0+cu121.html",
    # OpenMMLab has a list of wheels for each torch and CUDA.
    "mmcv==2.1.0 torch==2.1.2 --from wheel": "https://download.openmmlab.com/mmcv/dist/cu121/torch2.1/",
    # Its builds on PyTorch's own index, each with the line of its torch.
    "xformers torch==2.7.1 --device RTX_5090": "https://download.pytorch.org/whl/cu128",
    "dgl torch==2.3.1 --with cuda==11.8 --from wheel": "https://data.dgl.ai/wheels/torch-2.3/cu118/repo.html",
}
"""A question, and what the install commands of its answer have beside the packages that it names."""


def _document(cli: Cli, command: str, line: str) -> dict[str, Any]:
    document: dict[str, Any] = cli(command, *shlex.split(line), "--json").json()
    return document


@pytest.mark.parametrize("line", PINNED)
def test_commands_install_what_the_answer_has(real: Cli, line: str) -> None:
    commands = [
        row for row in real("resolve", *shlex.split(line)).out.splitlines() if " pip " in row
    ]
    assert any(PINNED[line] in command for command in commands), commands


def test_a_build_that_needs_a_gpu_is_refused_without_one(real: Cli) -> None:
    assert real("resolve", "vllm==0.8.5", "--accelerator", "none", "--from", "wheel").code == 1


def test_a_build_for_nothing_says_so(real: Cli) -> None:
    for line, known in (("cupy==13.0.0", False), ("torch", True), ("torch torchvision", True)):
        document = _document(real, "resolve", f"{line} --accelerator none --from wheel")
        kinds = [caveat["kind"] for caveat in document["caveats"]]
        assert ("needless-build" not in kinds) is known, line


@pytest.mark.parametrize("line", WAYS)
def test_the_default_way_is_one_rule_for_every_command(real: Cli, line: str) -> None:
    for command in ("resolve", "why-not"):
        assert _document(real, command, line)["request"]["from"] == WAYS[line], command


@pytest.mark.parametrize("line", SKIPPED)
def test_newer_releases_that_were_not_taken_are_one_line(real: Cli, line: str) -> None:
    component, why = SKIPPED[line]
    (skipped,) = _document(real, "resolve", line)["skipped"]
    assert (skipped["component"], skipped["why"]) == (component, why)
    text = " ".join(real("resolve", *shlex.split(line)).out.split())
    assert f"skipped {component} {skipped['range']}: {why}" in text


def test_what_holds_the_newest_skips_nothing(real: Cli) -> None:
    for line in ("tensorflow", "torch==2.8.0", "numpy", "vllm --device H100"):
        assert _document(real, "resolve", line)["skipped"] == [], line


def test_of_many_components_explain_says_why_one_is_older(real: Cli) -> None:
    many = "torch torchvision triton numpy scipy keras jax flax optax"
    assert _document(real, "resolve", f"{many} --with python==3.10")["skipped"] == []
    assert _document(real, "resolve", "torch --with python==3.10")["skipped"] != []


def test_what_is_built_names_the_wheel_of_the_same_release(real: Cli) -> None:
    other = _document(real, "resolve", "tensorflow==2.6.5")["other_way"]
    assert other["build"]["name"] == "2.6.5+cu112"
    assert other["install"]["pip"] == ["pip install tensorflow==2.6.5"]


def test_no_wheel_is_named_that_gives_up_what_stands_beside_it(real: Cli) -> None:
    assert "other_way" not in _document(real, "resolve", "torch==2.8.0 cuda==11.8")


def test_what_is_installed_names_the_command_that_builds_it(real: Cli) -> None:
    other = _document(real, "resolve", "torch --device H100")["other_way"]
    words = shlex.split(other["command"])
    assert words[0] == "toolmatrix"
    assert real(*words[1:], "--json").json()["request"]["from"] == "source"


def test_who_says_the_way_is_told_of_no_other(real: Cli) -> None:
    for way in ("source", "wheel"):
        assert "other_way" not in _document(real, "resolve", f"tensorflow==2.6.5 --from {way}")


def test_what_is_fully_known_runs_as_printed(real: Cli) -> None:
    """The newest release stays the answer, and the one of which everything is known is offered."""
    known = _document(real, "resolve", "sglang --device V100")["fully_known"]
    outcome = real(*shlex.split(known["command"])[1:], "--json")
    assert outcome.code == 0
    target = outcome.json()["targets"]["x86"]
    assert target["components"]["sglang"]["version"] == known["release"]
    assert "fully_known" not in _document(real, "resolve", "tensorflow==2.6.5")


def test_a_plan_of_a_mix_answers_by_target(real: Cli) -> None:
    """A board with a CPU has a target of its own; a target that is named holds for all."""
    mixed = real("plan", "--device", "GB10,H100", "--json").json()
    assert {(plan["target"], *plan["archs"]) for plan in mixed["plans"]} == {
        ("arm", "sm_121"),
        ("x86", "sm_90"),
    }
    assert "on arm, one per device" in real("plan", "--device", "GB10,H100").out
    named = real("plan", "--device", "GB10,H100", "--target", "arm", "--json").json()
    assert all("target" not in plan for plan in named["plans"])
    assert ["sm_90", "sm_121"] in [plan["archs"] for plan in named["plans"]]


IMPLIED = {"GB10": "arm", "Jetson Orin": "arm", "GH200": "arm", "MI300X": "amd", "H100": "x86"}


@pytest.mark.parametrize("device", IMPLIED)
@pytest.mark.parametrize("command", ["resolve", "why-not"])
def test_a_device_implies_its_target(real: Cli, command: str, device: str) -> None:
    document = real(command, "torch", "--device", device, "--json").json()
    assert document["request"]["targets"] == [IMPLIED[device]]


# What is asked for, the targets and devices that follow, and whether there is CUDA on the last target.
BOARDS: dict[str, tuple[list[str], list[str], bool]] = {
    "jetpack==6.2": (["arm"], [], True),
    "jetpack==6.2 cuda==12.6": (["arm"], ["8.7"], True),
    "torch --with jetpack==6.2": (["arm"], ["8.7"], True),
    "torch --with jetpack==5.1.2": (["arm"], ["7.2", "8.7"], True),
    "torch --with jetpack==7.0": (["arm"], ["11.0"], True),
    "torch --with l4t==36.4.3": (["arm"], ["8.7"], True),
    "torch --with jetpack": (["arm"], ["8.7", "11.0"], True),
    # What is named is not put beside itself or in the place of what follows.
    "torch --with jetpack==7.2 --device 'Jetson Thor'": (["arm"], ["11.0"], True),
    "torch --with jetpack==6.2 --arch sm_87": (["arm"], [], True),
    "torch --with jetpack==6.2 --accelerator none": (["arm"], [], False),
    "torch --with jetpack==6.2 --target x86,arm": (["x86", "arm"], [], False),
    "torch --with vllm": (["x86"], [], True),
}


@pytest.mark.parametrize("line", BOARDS)
def test_a_system_of_boards_implies_their_devices(real: Cli, line: str) -> None:
    document = _document(real, "resolve", line)
    request = document["request"]
    target = document["targets"][request["targets"][-1]]
    found = request["targets"], request["devices"], "cuda" in target["components"]
    assert found == BOARDS[line]


def test_a_device_that_follows_is_no_requirement_in_a_refusal(real: Cli) -> None:
    document = _document(real, "resolve", "torch==2.9.1 --with jetpack==6.2 --from wheel")
    lines = [line for core in document["cores"] for line in core["lines"]]
    (device,) = (line for line in lines if line["text"].startswith("--device"))
    assert (device["text"], device["default"]) == ("--device 8.7 is the default", True)


def test_a_toolkit_for_servers_is_not_known_to_run_on_a_jetson_of_another(real: Cli) -> None:
    """JetPack 4 brings CUDA 10 of its own, which is none of the toolkits that are published for Arm."""
    assert real(*shlex.split("resolve jetpack==4.6.1")).code == 0
    assert real(*shlex.split("resolve torch --with jetpack==4.6.1")).code == 4
