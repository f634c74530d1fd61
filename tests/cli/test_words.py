"""Words as people write them, in every place where they can stand: understood, or answered with the right form."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.conftest import Cli

ADDED = "`toolmatrix list` shows the components; `--matrix FILE` adds some of your own"


def request(cli: Cli, line: str, **env: str) -> dict[str, object]:
    """What an answer says was asked."""
    outcome = cli("resolve", *shlex.split(line), "--json", **env)
    assert outcome.code in (0, 4), (line, outcome)
    found: dict[str, object] = outcome.json()["request"]
    return found


@pytest.mark.parametrize(
    ("word", "component", "version"),
    [
        ("pytorch==2.6.0", "torch", "2.6.0"),
        ("PyTorch==2.6.0", "torch", "2.6.0"),
        ("libtorch==2.6.0", "torch", "2.6.0"),
        ("tf==2.15.0", "tensorflow", "2.15.0"),
        ("nvcc==12.4", "cuda", "12.4.1"),
        ("cudatoolkit==12.4", "cuda", "12.4.1"),
        ("cuda_toolkit==12.4", "cuda", "12.4.1"),
        ("onnxruntime-gpu==1.20.0", "onnxruntime", "1.20.0"),
        ("onnxruntime_gpu==1.20.0", "onnxruntime", "1.20.0"),
        ("torch==2.6.0+cu124", "torch", "2.6.0"),
        ("torch[cuda]==2.6.0", "torch", "2.6.0"),
        ("torch[gpu]==2.6.0", "torch", "2.6.0"),
        ("torch[cpu]==2.6.0", "torch", "2.6.0"),
        ("'tensorflow 2.6.5'", "tensorflow", "2.6.5"),
        ("'tensorflow == 2.6.5'", "tensorflow", "2.6.5"),
        ("tensorflow==v2.6.5", "tensorflow", "2.6.5"),
        ("tensorflow==latest", "tensorflow", "2.21.0"),
        ("tensorflow=latest", "tensorflow", "2.21.0"),
    ],
)
def test_names_of_components_in_a_request(
    real: Cli, word: str, component: str, version: str
) -> None:
    outcome = real("resolve", *shlex.split(word), "--json")
    (target,) = outcome.json()["targets"].values()
    assert target["components"][component]["version"] == version


@pytest.mark.parametrize(
    "line",
    [
        "why-not pytorch==2.6.0 --with nvcc==12.4",
        "explain nvcc tf==2.15",
        "explain tensorflow==2.6.5",
        "explain torch[cuda]==2.6.0",
        "explain cuda==11.2 tensorflow==2.6.5",
        "resolve pytorch==2.6.0 --align NVCC,tf --target x86,arm64",
        "matrix --rows PyTorch --cols python --where pytorch>=2.6",
        "matrix --rows nvcc",
    ],
)
def test_the_same_names_everywhere_else(real: Cli, line: str) -> None:
    assert real(*shlex.split(line)).code == 0


FORMS = {
    "tensorflow 2.6.5": "tensorflow==2.6.5",
    "tensorflow v2.6.5": "tensorflow==2.6.5",
    "tensorflow == 2.6.5": "tensorflow==2.6.5",
    "tensorflow== 2.6.5": "tensorflow==2.6.5",
    "tensorflow ==2.6.5 python": "tensorflow==2.6.5 python",
    "'torch>=2.0' '<2.3'": "torch>=2.0,<2.3",
    "tensorflow=2.6.5": "tensorflow==2.6.5",
    "tensorflow:2.6.5": "tensorflow==2.6.5",
    "tensorflow@2.6.5": "tensorflow==2.6.5",
    "tensorflow-2.6.5": "tensorflow==2.6.5",
    "tensorflow/2.6.5": "tensorflow==2.6.5",
    "tensorflow-v2.6.5": "tensorflow==2.6.5",
    "tf2.15": "tensorflow==2.15",
    "tensorflow@latest": "tensorflow",
    "tensorflow:latest": "tensorflow",
    "tensorflow:": "tensorflow",
    "tensorflow==2.6.5,python==3.9": "tensorflow==2.6.5 python==3.9",
    "tensorflow,torch": "tensorflow torch",
    "tensorflow==2.6.x": "tensorflow==2.6",
    "python3.11": "python==3.11",
    "python@3.11": "python==3.11",
    "py311": "python==3.11",
    "cp311": "python==3.11",
    "cuda12.4": "cuda==12.4",
    "cuda-12.4": "cuda==12.4",
    "cu124": "cuda==12.4` or `torch==2.6.0+cu124",
    "gcc-11": "gcc==11",
    "g++-11": "gcc==11",
    "libcudnn8": "cudnn==8",
    "rocm6.2": "rocm==6.2` or `torch==2.5.1+rocm6.2",
    "torch-cu124": "torch==2.6.0+cu124",
    "torch==2.6.0-cu124": "torch==2.6.0+cu124",
    "torch==2.6.0_cu124": "torch==2.6.0+cu124",
    "gpu": "--accelerator cuda",
    "cpu": "--accelerator none",
    "arm64": "--target arm",
    "x86_64": "--target x86",
    "riscv64": "--target riscv64",
    "jammy": "--distro ubuntu22.04",
    "ubuntu22.04": "--distro ubuntu22.04",
    "sm_86": "--arch sm_86",
    "h100": "--device h100",
    "rtx5090": "--device rtx5090",
    # As conda and the index call packages that are parts of a component, or join some.
    "pytorch-cuda=12.4": "torch --with cuda==12.4",
    "cuda-version==12.4": "cuda==12.4",
    "pytorch-gpu": "torch --accelerator cuda",
    "gcc_linux-64": "gcc",
    "nvidia-driver==550": "driver==550",
}


@pytest.mark.parametrize("line", FORMS)
def test_another_form_is_answered_with_the_right_one(real: Cli, line: str) -> None:
    outcome = real("resolve", *shlex.split(line))
    assert outcome.code in (2, 3)
    assert outcome.out == ""
    assert outcome.err.splitlines()[-1] == f"help: did you mean `{FORMS[line]}`?"


@pytest.mark.parametrize(
    "line", [one for one in FORMS if " " not in one and one != "tensorflow==2.6.x"]
)
def test_the_same_is_said_of_what_one_holds(real: Cli, line: str) -> None:
    outcome = real("resolve", "torch", "--with", line)
    assert outcome.err == real("resolve", line).err


ERRORS = {
    "resolve tensorflow@2.6.5": (
        "error[TM110]: unknown component `tensorflow@2.6.5`\n"
        "  found: `tensorflow@2.6.5`\n"
        "help: did you mean `tensorflow==2.6.5`?\n"
    ),
    "resolve tensorflow == 2.6.5": (
        "error[TM901]: `==` is not a component\n"
        "  expected: `name==version` in one word\n"
        "  found: `tensorflow == 2.6.5`\n"
        "help: did you mean `tensorflow==2.6.5`?\n"
    ),
    "resolve 2.6.5": (
        "error[TM901]: `2.6.5` is not a component\n"
        "  expected: `name==version` in one word\n"
        "  found: `2.6.5`\n"
        "help: did you mean `NAME==VERSION`?\n"
    ),
    "resolve torch latest": (
        "error[TM110]: unknown component `latest`\n"
        "  found: `latest`\n"
        "help: a component without a version means its newest release that fits\n"
    ),
    "resolve torch --align cuda==12.4": (
        "error[TM110]: unknown component `cuda==12.4`\n"
        "  found: `cuda==12.4`\n"
        "help: did you mean `cuda`?\n"
    ),
    "resolve blosc": (
        "error[TM110]: unknown component `blosc`\n"
        "  expected: perhaps `blis`, `black`, `tables`\n"
        "  found: `blosc`\n"
        f"help: {ADDED}, and `toolmatrix resolve blosc --online` a package of the index\n"
    ),
    "resolve torch==2.6.0+cu999": (
        "error[TM110]: the matrix knows no build of torch for `torch==2.6.0+cu999`\n"
        "  expected: one of the lines cpu, cu118, cu124, cu126, rocm6.1, rocm6.2.4\n"
        "  found: `torch==2.6.0+cu999`\n"
    ),
    "resolve torch[cuda12]==2.6.0": (
        "error[TM110]: the matrix knows no build of torch for `torch[cuda12]==2.6.0`\n"
        "  expected: one of the lines cpu, cu118, cu124, cu126, rocm6.1, rocm6.2.4, as in `torch==2.6.0+cu124`\n"
        "  found: `torch[cuda12]==2.6.0`\n"
    ),
    "resolve torch --arch h100": (
        "error[TM110]: `--arch h100`: unknown codegen arch\n"
        "  expected: a codegen arch\n"
        "  found: `h100`, which is a device\n"
        "help: did you mean `--device h100`?\n"
    ),
    "resolve torch --arch 8.6": (
        "error[TM110]: `--arch 8.6`: unknown codegen arch\n"
        "  expected: perhaps `sm_86`\n"
        "  found: `8.6`\n"
        "help: `--device 8.6` names the device that code runs on\n"
    ),
    "resolve torch --device 'AMD Radeon Graphics'": (
        "error[TM110]: `--device AMD Radeon Graphics`: unknown device\n"
        "  expected: perhaps `Radeon 780M Graphics`, `Radeon RX 460 Graphics`, `Radeon RX 470 Graphics`\n"
        "  found: `AMD Radeon Graphics`\n"
        "help: a compute capability (8.6), a gfx (gfx90a) or a product (RTX 3090, MI300X)\n"
    ),
    "resolve torch --device 'RTX 4000'": (
        "error[TM901]: `--device RTX 4000` names more than one device\n"
        "  expected: one of them\n"
        "  found: 12.0 (RTX PRO 4000 Blackwell), 7.5 (Quadro RTX 4000), 8.9 (RTX 4000 SFF Ada Generation)\n"
        "help: name the device\n"
    ),
    "resolve torch --distro mylinux9": (
        "error[TM110]: `--distro mylinux9`: unknown distro\n"
        "  expected: perhaps `almalinux9`, `ubi9`, `oraclelinux9`, `rockylinux9`\n"
        "  found: `mylinux9`\n"
        "help: `toolmatrix matrix --rows distro` lists them\n"
    ),
    "resolve torch --target gpu": (
        "error[TM901]: bad value for `--target`\n"
        "  expected: one of x86, arm, amd\n"
        "  found: `gpu`\n"
        "help: a target is a machine: `--target x86` or `arm`, with `--accelerator cuda`\n"
    ),
    "resolve torch --accelerator gpu": (
        "error[TM901]: bad value for `--accelerator`\n"
        "  expected: one of none, cuda, rocm\n"
        "  found: `gpu`\n"
        "help: `cuda` is for GPUs of NVIDIA, `rocm` for those of AMD\n"
    ),
    "resolve torch --cuda 12.4": (
        "error[TM901]: unknown option `--cuda`\nhelp: did you mean `--with cuda==12.4`?\n"
    ),
    "resolve torch --python=3.12": (
        "error[TM901]: `resolve` has no option `--python`\nhelp: did you mean `--with python==3.12`?\n"
    ),
    "matrix torch cuda": (
        "error[TM901]: `matrix` does not take `torch`\n"
        "  expected: no argument\n"
        "help: did you mean `toolmatrix matrix --rows torch --cols cuda`?\n"
    ),
    "matrix torch cuda python": (
        "error[TM901]: `matrix` does not take `torch`\n"
        "  expected: no argument\n"
        "help: `toolmatrix help matrix` shows examples\n"
    ),
    "resolve torch --gpu h100": (
        "error[TM901]: unknown option `--gpu`\nhelp: did you mean `--device h100`?\n"
    ),
    "resolve torch --cuda": (
        "error[TM901]: unknown option `--cuda`\nhelp: did you mean `--accelerator cuda`?\n"
    ),
    "resolve torch --aarch64": (
        "error[TM901]: unknown option `--aarch64`\nhelp: did you mean `--target arm`?\n"
    ),
    "resolve torch --tagret x86": (
        "error[TM901]: unknown option `--tagret`\nhelp: did you mean `--target`?\n"
    ),
    "resolve torch --distro nixos24.05": (
        "error[TM120]: `--distro nixos24.05`: no fact covers it\n"
        "  expected: a distribution, as `toolmatrix matrix --rows distro` lists\n"
        "  found: `nixos24.05`\n"
        "help: add facts of your own with `--matrix FILE`\n"
    ),
    "resolve torch --distro debian": (
        "error[TM110]: `--distro debian`: unknown distro\n"
        "  expected: perhaps `debian13`, `debian12`, `debian11`, `debian10`, `debian-sid`\n"
        "  found: `debian`\n"
        "help: `toolmatrix matrix --rows distro` lists them\n"
    ),
    "install torch": "error[TM901]: unknown command `install`\nhelp: did you mean `resolve`?\n",
    "version": "error[TM901]: unknown command `version`\nhelp: did you mean `--version`?\n",
    "render torch --recipe pytorhc": (
        "error[TM601]: unknown recipe `pytorhc`\n"
        "  expected: one of extension, gcc, hip, jaxlib, lightgbm, numpy, onnxruntime, pytorch, tensorflow, toolchain, "
        "tvm, wheel, or the path of a file\n"
        "  found: `pytorhc`\n"
        "help: did you mean `pytorch`?\n"
    ),
}


@pytest.mark.parametrize("line", ERRORS)
def test_errors_in_full(real: Cli, line: str) -> None:
    command = shlex.split(line)
    more = ("--output", "out") if command[0] == "render" else ()
    assert real(*command, *more).err == ERRORS[line]


MACHINES = ["riscv64", "RISC-V", "linux/riscv64", "ppc64le", "power", "s390x", "windows"]


@pytest.mark.parametrize("machine", MACHINES)
def test_machines_of_which_no_fact_speaks_are_unknown(real: Cli, machine: str) -> None:
    outcome = real("resolve", "torch", "--target", machine)
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err == (
        f"error[TM120]: `--target {machine}`: no fact covers it\n"
        "  expected: one of x86, arm, amd\n"
        f"  found: `{machine}`\n"
        "help: add facts of your own with `--matrix FILE`\n"
    )
    assert real("resolve", "torch", TOOLMATRIX_TARGET=machine).code == 4


WORDS = {
    "target": {
        **dict.fromkeys(("x86", "X86", "amd64", "x86_64", "x64", "linux/amd64"), "x86"),
        **dict.fromkeys(("aarch64", "ARM64", "linux/arm64"), "arm"),
        **dict.fromkeys(("rocm", "hip"), "amd"),
    },
    "accelerator": {"cpu": "none", "CUDA": "cuda", "nvidia": "cuda", "amd": "rocm", "hip": "rocm"},
    "from": {"pip": "wheel", "PyPI": "wheel", "uv": "wheel", "src": "source", "sdist": "source"},
    "distro": {
        **dict.fromkeys(
            ("ubuntu22.04", "ubuntu:22.04", "ubuntu-22.04", "ubuntu2204"), "ubuntu22.04"
        ),
        **dict.fromkeys(("jammy", "Ubuntu 22.04", "Ubuntu 22.04.3 LTS"), "ubuntu22.04"),
        **dict.fromkeys(("debian:12", "bookworm", "Debian GNU/Linux 12 (bookworm)"), "debian12"),
        **dict.fromkeys(("rocky9", "rockylinux:9.3", "Rocky Linux 9.3 (Blue Onyx)"), "rockylinux9"),
    },
    "prefer": {"latest": "newest", "lowest": "oldest"},
}
CASES = [(option, word, value) for option, words in WORDS.items() for word, value in words.items()]


@pytest.mark.parametrize(("option", "word", "value"), CASES)
def test_words_of_options_wherever_they_are_set(
    real: Cli, here: Path, option: str, word: str, value: str
) -> None:
    """By flag, by variable and in the settings file, each is as good as the other."""
    line = ["resolve", "numpy==1.26.4", "python", "--json"]
    wanted = real(*line, f"--{option}", value).json()["targets"]
    assert real(*line, f"--{option}", word).json()["targets"] == wanted
    assert real(*line, **{f"TOOLMATRIX_{option.upper()}": word}).json()["targets"] == wanted
    (here / "toolmatrix.toml").write_text(f'{option} = "{word}"\n')
    assert real(*line).json()["targets"] == wanted


def test_a_distribution_that_one_holds_is_read_like_that_of_the_option(real: Cli) -> None:
    line = ("resolve", "gcc", "--json")
    held = real(*line, "--with", "distro==jammy").json()["targets"]
    assert held == real(*line, "--distro", "ubuntu22.04").json()["targets"]


@pytest.mark.parametrize(
    "line",
    [
        "torch==2.5.1 rocm",
        "torch==2.5.1 --with rocm",
        "torch==2.5.1 --accelerator amd",
        "torch==2.5.1+rocm6.2",
        "torch[rocm]",
        "torch==2.5.1 --device MI300X",
    ],
)
def test_what_computes_on_rocm_alone_is_for_the_target_that_has_it(real: Cli, line: str) -> None:
    assert request(real, line)["targets"] == ["amd"]


@pytest.mark.parametrize("name", ["torch", "PyTorch", "libtorch", "pytorch"])
def test_a_recipe_is_found_by_its_component(real: Cli, name: str) -> None:
    line = ("render", "torch==2.6.0", "--stdout", "--format", "dockerfile", "--recipe")
    assert real(*line, name).out.replace(f"--recipe {name}", "--recipe pytorch") == (
        real(*line, "pytorch").out
    )


def test_whole_lines_of_tools_are_devices(real: Cli, here: Path) -> None:
    lines = {
        "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5c2a3a9e-66b5)": "8.0",
        "GPU[0]\t\t: Card Series: \t\tAMD Instinct MI300X OAM": "gfx942",
        "rtx5090": "12.0",
        "sm_120": "12.0",
    }
    for line, device in lines.items():
        for found in (
            real("resolve", "torch", "--device", line, "--json"),
            real("resolve", "torch", "--json", TOOLMATRIX_DEVICE=line),
        ):
            assert found.json()["request"]["devices"] == [device]
    (here / "toolmatrix.toml").write_text('device = "NVIDIA H100 80GB HBM3"\n')
    assert real("resolve", "torch", "--json").json()["request"]["devices"] == ["9.0"]


# Commands that a refusal prints resolve where it was printed, whatever is set there by files and variables.


class Place(NamedTuple):
    """A line that is refused, the variables and the files around it, and the targets of the ways out."""

    line: str
    files: dict[str, str]
    env: dict[str, str]
    targets: list[str]


PLACES = {
    "another target is set": Place(
        "resolve numpy==1.19.5 python==3.12 --target x86",
        {"toolmatrix.toml": 'target = "arm"\n'},
        {},
        ["x86"],
    ),
    "the target is set": Place(
        "resolve numpy==1.19.5 python==3.12", {}, {"TOOLMATRIX_TARGET": "aarch64"}, ["arm"]
    ),
    "evidence is set": Place(
        "resolve numpy==1.19.5 python==3.12",
        {"toolmatrix.toml": 'min-evidence = "artifact"\n'},
        {},
        ["x86"],
    ),
    "something is held": Place(
        "resolve tensorflow==2.6.5 --with python==3.12",
        {"toolmatrix.toml": 'with = ["numpy==1.19.5"]\n'},
        {},
        ["x86"],
    ),
    "an environment is named": Place(
        "resolve numpy==1.19.5 python==3.12 --environment port",
        {"toolmatrix.toml": '[environments.port]\ntarget = ["arm"]\n'},
        {},
        ["arm"],
    ),
    "a folder is named": Place(
        "resolve numpy==1.19.5 python==3.12 -C there",
        {"toolmatrix.toml": 'target = ["x86"]\n', "there/toolmatrix.toml": 'target = ["arm"]\n'},
        {},
        ["arm"],
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_ways_out_resolve_where_they_are_printed(real: Cli, here: Path, name: str) -> None:
    place = PLACES[name]
    for file, text in place.files.items():
        (here / file).parent.mkdir(exist_ok=True)
        (here / file).write_text(text)
    refused = real(*shlex.split(place.line), "--json", **place.env)
    assert refused.code == 1, refused
    repairs = refused.json()["repairs"]
    assert repairs
    for repair in repairs:
        again = real(*shlex.split(repair["command"])[1:], "--json", **place.env)
        assert again.code == 0, repair["command"]
        assert list(again.json()["targets"]) == place.targets
        # What is told beside an answer is looked for where it is asked for by itself.
        beside = {"skipped", "other_way", "fully_known"}
        answer = {key: part for key, part in again.json().items() if key not in beside}
        assert answer == repair["resolution"]
