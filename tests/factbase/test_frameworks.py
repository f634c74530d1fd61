"""What the matrix says of frameworks: the answers that people expect, from source and by a wheel."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import toolmatrix
from tests import matrix
from toolmatrix.api.answers import Resolved
from toolmatrix.cli.main import main
from toolmatrix.factbase import lookups, pieces
from toolmatrix.factbase.evidence import UNKNOWN
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.versions import Scale
from toolmatrix.finding import InstallMethod
from toolmatrix.harvest import families
from toolmatrix.judging import coverage, sweep
from toolmatrix.solve.resolve import possible

FROM_SOURCE = [
    (
        "torch",
        "2.6.0",
        "x86",
        {"cuda": "12.4", "cudnn": "9.1", "base-image": "nvidia/cuda:12.4.1*"},
    ),
    ("torch", "2.6.0", "arm", {"gcc": "11", "distro": "ubuntu22.04", "cuda": "absent"}),
    ("torch", "2.6.0", "amd", {"rocm": "6.2.4", "cuda": "absent"}),
    # As their wheels were compiled, and not the newest compiler that nothing refuses.
    ("torch", "2.9.1", "x86", {"gcc": "13"}),
    ("torch", "2.7.1", "arm", {"gcc": "11"}),
    ("onnxruntime", "1.31.1", "arm", {"gcc": "14", "cuda": "absent"}),
    ("onnxruntime", "1.20.1", "arm", {"gcc": "12"}),
    # As the page has it: the tree names 0.29.1, and takes both.
    ("tensorflow", "2.1.0", "x86", {"bazel": "0.27.1"}),
    ("torch", "2.2.2", "x86", {"cuda": "11.8", "cudnn": "8.7", "numpy": "<2", "gcc": "9"}),
    (
        "jaxlib",
        "0.6.2",
        "x86",
        {"cuda": "12.8.0", "cudnn": "9.8", "bazel": "7.4.1", "gcc": "absent"},
    ),
    ("jax", "0.4.29", "x86", {"jaxlib": "0.4.29", "bazel": "6.5.0"}),
    ("jax", "0.8.3", "x86", {"jaxlib": ">=0.8.2,<=0.8.3", "python": ">=3.11", "numpy": ">=2.0"}),
    ("jax", "0.12.0", "arm", {"jaxlib": "===0.12.0"}),
    ("jaxlib", "0.8.0", "arm", {"clang": "18", "bazel": "7.4.1"}),
    ("jaxlib", "0.6.2", "amd", {"rocm": "6.*", "clang": "18"}),
    ("onnxruntime", "1.22.0", "x86", {"cuda": "12.8", "cudnn": "9"}),
    ("apache-tvm", "0.19.0", "x86", {"cuda": "12.4", "clang": "15", "distro": "ubuntu22.04"}),
    ("lightgbm", "4.6.0", "x86", {"cuda": "absent", "python": ">=3.7", "numpy": ">=1.17"}),
    ("xgboost", "3.2.0", "x86", {"cuda": ">=12.9", "gcc": ">=9", "python": ">=3.10"}),
]
BY_WHEEL = [
    ("torch", "2.6.0", "x86", {"cuda": "12.4", "cudnn": "9.1", "python": "3.9-3.13"}),
    ("torch", "1.13.1", "x86", {"cuda": "11.7", "cudnn": "8.5", "python": "3.7-3.11"}),
    ("apache-tvm", "0.26.0", "arm", {"gcc": "absent", "clang": "absent"}),
    ("lightgbm", "4.7.0", "arm", {"gcc": "absent", "scipy": "*", "python": ">=3.10"}),
]
REFUSED = [
    ("jaxlib", "0.6.2", "x86", "its wheel is for the CPU, CUDA comes as a plugin"),
    ("apache-tvm", "0.19.0", "arm", "there was no wheel"),
    ("lightgbm", "3.3.5", "amd", "its wheels compute on CPUs"),
    ("lightgbm", "3.1.1", "arm", "there was no wheel"),
]


@pytest.fixture(scope="module")
def index() -> Index:
    """The built-in matrix."""
    return matrix.index()


def resolved(index: Index, component: str, version: str, target: str, from_: str) -> dict[str, str]:
    """The releases of the answer by component, or nothing where there is none."""
    way = InstallMethod(target=target, from_=from_)
    found = possible(index, sweep.request(index, (component, version), way))
    if found is None:
        return {}
    return {choice.component: choice.version for choice in found.targets[target]}


def unlike(index: Index, found: dict[str, str], wanted: dict[str, str]) -> dict[str, str]:
    """What an answer holds that it should not, of the components that are looked at."""
    schemes = {name: part["scheme"] for name, part in index.header["components"].items()}
    wrong = {}
    for component, selector in wanted.items():
        held = (found[component],) if component in found else ()
        scale = Scale(schemes[component], held)
        if not scale.select(selector) & (scale.everything or 1):
            wrong[component] = found.get(component, "absent")
    return wrong


@pytest.mark.parametrize(("component", "version", "target", "wanted"), FROM_SOURCE)
def test_a_build_gets_what_its_makers_build_with(
    component: str, version: str, target: str, wanted: dict[str, str], index: Index
) -> None:
    found = resolved(index, component, version, target, "source")
    assert found
    assert unlike(index, found, wanted) == {}


@pytest.mark.parametrize(("component", "version", "target", "wanted"), BY_WHEEL)
def test_a_wheel_gets_what_it_was_built_with(
    component: str, version: str, target: str, wanted: dict[str, str], index: Index
) -> None:
    found = resolved(index, component, version, target, "wheel")
    assert found
    assert unlike(index, found, wanted) == {}


@pytest.mark.parametrize(("component", "version", "target", "reason"), REFUSED)
def test_a_wheel_that_does_not_fit_is_refused(
    component: str, version: str, target: str, reason: str, index: Index
) -> None:
    assert resolved(index, component, version, target, "wheel") == {}, reason


def test_the_comparison_can_fail(index: Index) -> None:
    assert unlike(index, {"cuda": "12.4.1"}, {"cuda": "11.8", "gcc": "9"}) == {
        "cuda": "12.4.1",
        "gcc": "absent",
    }


# torch 2.6.0 is published with the old C++ ABI (cu118, cu124) and with the new one (cu126). Wheels of flash-attn 2.8
# were compiled beside the latter, whatever their names say (flash-attention, issue 1783).
EXTENSIONS = [
    ("2.6.0+cu124", "8.9", "flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"),
    ("2.6.0+cu126", "8.9", "flash_attn-2.8.3+cu12torch2.6cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"),
    ("2.6.0+cu118", "8.0", "flash_attn-2.7.3+cu11torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"),
    ("2.8.0+cu128", "12.0", "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"),
]  # fmt: skip


@pytest.mark.parametrize(("torch", "device", "file"), EXTENSIONS)
def test_an_extension_is_the_file_for_this_torch_and_its_abi(
    torch: str, device: str, file: str
) -> None:
    found = toolmatrix.resolve(
        "flash-attn", f"torch=={torch}", from_="wheel", device=device, with_="python==3.11"
    )
    assert isinstance(found, Resolved)
    told = found.to_json()["targets"]["x86"]["components"]["flash-attn"]["variant"]
    assert told["requirements"][0].rpartition("/")[2] == file


def test_a_wheel_whose_name_says_the_wrong_abi_is_not_offered() -> None:
    assert not toolmatrix.resolve(
        "flash-attn==2.8.2", "torch==2.6.0+cu124", from_="wheel", with_="python==3.11"
    )


# What is asked for on a distribution: yes where its vendor or an image says so, and never no where nobody speaks.


YES, CANNOT_SAY = 0, 4
ASKED = {
    # The lists of AMD name RHEL 8 and 9, SLES 15 and Oracle Linux 8; Rocky Linux 9 from 7.0 on, RHEL 10 from 7.0.2 on.
    "rocm==6.2 --distro ubi8": YES,
    "rocm==6.2 --distro ubi9": YES,
    "rocm==6.2 --distro ubi10": CANNOT_SAY,
    "rocm==7.1 --distro ubi10": YES,
    "rocm==6.2 --distro sles15": YES,
    "rocm==6.2 --distro oraclelinux8": YES,
    "rocm==6.2 --distro rockylinux9": CANNOT_SAY,
    "rocm==7.1 --distro rockylinux9": YES,
    "rocm==6.1.2 --distro centos7": YES,
    # The newest of a series is asked about, and the list of CentOS 7 was read for 6.1.2.
    "rocm==6.1 --distro centos7": CANNOT_SAY,
    "rocm==6.2 --distro centos7": CANNOT_SAY,
    "rocm==6.2 --distro manylinux1": CANNOT_SAY,
    # NVIDIA has images of these; of SLES and Azure Linux nobody read which compilers they package.
    "cuda==12.4 --distro ubi8": YES,
    "cuda==12.4 --distro ubi9": YES,
    "cuda==13.1.0 --distro ubi10": YES,
    "cuda==13.1.0 --distro amazonlinux2023": YES,
    "cuda==12.8.1 --distro oraclelinux8": YES,
    "cuda==13.1.0 --distro azurelinux3": CANNOT_SAY,
    "cuda==12.4 --distro sles15": CANNOT_SAY,
    # Recipes are made for some distributions, and that is no limit of what they build.
    "torch==2.7.1 --target amd --distro ubi9": YES,
    "torch==2.7.1 --distro ubi9": YES,
    "torch==2.7.1 --distro ubi9 --accelerator none": YES,
    # No image is known to build it, and its wheels go with the glibc.
    "torch==2.7.1 --distro almalinux9": YES,
    "torch==2.7.1 --distro almalinux9 --from source": CANNOT_SAY,
    # No fact says which GCC builds it there.
    "tensorflow==2.18.0 --target amd --distro ubi9": CANNOT_SAY,
    # manylinux_2_28, and a glibc that nobody read.
    "torch==2.7.1 --from wheel --distro almalinux9": YES,
    "torch==2.7.1 --from wheel --distro sles15": CANNOT_SAY,
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_a_distribution_is_good_for(cache: str, asked: str) -> None:
    out, err = StringIO(), StringIO()
    line = ["resolve", *asked.split()]
    assert main(line, {"XDG_CACHE_HOME": cache}, StringIO(), out, err) == ASKED[asked], (
        out.getvalue() + err.getvalue()
    )


def test_what_was_let_go_does_not_speak_for_what_was_chosen(cache: str) -> None:
    out = StringIO()
    line = ["resolve", "torch==2.7.1", "--from", "source"]
    line += ["--distro", "almalinux9", "--accelerator", "none"]
    assert main(line, {"XDG_CACHE_HOME": cache}, StringIO(), out, StringIO()) == CANNOT_SAY
    assert "allows distro almalinux9" not in out.getvalue()


def test_every_distribution_has_an_image_that_holds_nothing_else() -> None:
    """Where there is none, every answer that needs an image is a no, for want of its name."""
    index = matrix.index()
    plain = {
        cells["distro"]
        for table in ("plain-images", "manylinux-images")
        for _, cells in lookups.rows(index, table)
    }
    assert plain
    assert {*index.component("distro").versions} - plain == set()


def test_what_a_part_that_is_known_admits_is_tied_to_the_request(cache: str) -> None:
    """The distribution of a build is one that its images are known for: a fact names it."""
    out = StringIO()
    line = ["resolve", "apache-tvm==0.9.0", "--target", "arm"]
    assert main(line, {"XDG_CACHE_HOME": cache}, StringIO(), out, StringIO()) == YES
    assert "weakest evidence: derived" in out.getvalue()


# What the matrix says of packages of the index: what they pin, how they get there, and what nobody read.


ANSWERS = [
    # Pins of METADATA, the toolkit of the torch that is pinned, and companions of the day.
    (
        "vllm==0.8.5",
        {
            "from": "wheel",
            "torch": "2.6.0",
            "cuda": "12.4",
            "xformers": "0.0.29.post2",
            "transformers": "4.51",
            "protobuf": "<5",
            "numba": "0.61.2",
        },
    ),
    ("vllm==0.6.3", {"from": "wheel", "torch": "2.4.0", "torchvision": "0.19.0", "cuda": "12.1"}),
    ("xformers==0.0.27", {"from": "wheel", "torch": "2.3.1", "cuda": "12.1"}),
    # A package stands for a CUDA by its name.
    ("cupy==12.3.0", {"from": "wheel", "cuda": "12", "numpy": ">=1.20,<1.29"}),
    ("flax", {"from": "wheel", "cuda": "absent"}),
    ("numba==0.60.0", {"llvmlite": "0.43.*", "numpy": ">=1.22,<2.1"}),
    ("torch==2.6.0 transformers", {"from": "wheel", "cuda": "12.4"}),
]


def components(found: Any) -> dict[str, str]:
    """The releases of an answer on its only target, and the way in which they get there."""
    document = found.to_json()
    (target,) = document["targets"].values()
    held = {
        name: part["version"] for name, part in target["components"].items() if "version" in part
    }
    return {**held, "from": document["request"]["from"]}


@pytest.mark.parametrize(("request_", "wanted"), ANSWERS)
def test_packages_get_what_they_pin(request_: str, wanted: dict[str, str]) -> None:
    found = components(toolmatrix.resolve(*request_.split(), matrix=None))
    schemes = {name: part["scheme"] for name, part in matrix.index().header["components"].items()}
    for name, selector in wanted.items():
        version = found.get(name, "absent")
        if name == "from" or selector == "absent":
            assert version == selector
        else:
            assert Scale(schemes[name], [version]).select(selector), (name, version)


@pytest.mark.parametrize(
    ("release", "told"),
    [
        (
            "0.55.2",
            [
                "not covered: numba 0.55.2 also requires setuptools<82 (not components of the matrix)"
            ],
        ),
        ("0.56.4", []),
    ],
)
def test_what_fails_with_a_package_that_is_no_component_says_so(
    release: str, told: list[str]
) -> None:
    found = toolmatrix.resolve(f"numba=={release}", from_="wheel")
    assert isinstance(found, Resolved)
    caveats = found.to_json()["caveats"]
    assert [one["text"] for one in caveats if one["kind"] == "not-covered"] == told


@pytest.mark.parametrize(
    ("wanted", "driver", "device", "exit_code"),
    [
        ("cuda==13.0", "535.54.03", "H100", 1),
        ("cuda==13.0 cuda-compat", "535.54.03", "H100", 0),
        ("cuda==13.0 cuda-compat", "535.54.03", "A100", 0),
        # The page names kinds of GPUs, which a capability does not tell, and not which RTX cards it means.
        *(("cuda==13.0 cuda-compat", "535.54.03", name, 0) for name in ("T4", "L4", "A10G", "8.0")),
        ("cuda==13.0 cuda-compat", "535.54.03", "GeForce RTX 4090", 1),
        *(("cuda==13.0 cuda-compat", "535.54.03", name, 4) for name in ("RTX A6000", "8.9")),
        ("cuda==13.0 cuda-compat", "535.54.03", "L4,GeForce RTX 4090", 4),
        # It is for no newer CUDA, and for no driver that is as new as itself.
        ("cuda==13.1 cuda-compat==13.0", "535.54.03", "H100", 1),
        ("cuda==13.0 cuda-compat==13.0", "580.65.06", "H100", 1),
    ],
)
def test_forward_compatibility_lowers_the_floor_of_the_driver(
    wanted: str, driver: str, device: str, exit_code: int
) -> None:
    held = f"driver=={driver}"
    found = toolmatrix.resolve(*wanted.split(), with_=held, device=device.split(","))
    assert found.exit_code == exit_code


@pytest.mark.parametrize(
    ("wanted", "options", "exit_code", "version", "command"),
    [
        ("vllm", {"accelerator": "none"}, 0, "0.31.0", "/v0.31.0/vllm-0.31.0+cpu-cp38-abi3-"),
        # Its wheel of the default index does not start without a GPU; its release page was not read.
        ("vllm==0.33.0", {"accelerator": "none"}, 4, "0.33.0", ""),
        ("vllm", {"with_": "driver==570.124.06"}, 0, "0.30.0", "/v0.30.0/vllm-0.30.0+cu129-"),
        ("torch", {"device": "Jetson Orin"}, 0, "2.8.0", "https://pypi.jetson-ai-lab.io/jp6/cu126"),
    ],
)
def test_builds_of_other_channels_are_those_that_public_records_name(
    wanted: str, options: dict[str, str], exit_code: int, version: str, command: str
) -> None:
    found = toolmatrix.resolve(wanted, from_="wheel", **options)  # type: ignore[arg-type]
    assert isinstance(found, Resolved)
    assert found.exit_code == exit_code
    (target,) = found.to_json()["targets"].values()
    assert target["components"][wanted.partition("==")[0]]["version"] == version
    assert command in str(target)
    if "accelerator" in options:
        assert "flashinfer-python" not in target["components"]


@pytest.mark.parametrize("options", [{"accelerator": "none"}, {"device": "MI300X"}])
def test_wheels_of_sglang_are_for_cuda(options: dict[str, str]) -> None:
    """Others come from source or as images, of releases that were not read."""
    found = toolmatrix.resolve("sglang", from_="wheel", **options)  # type: ignore[arg-type]
    assert found.exit_code == CANNOT_SAY


def test_code_that_nobody_read_is_neither_a_yes_nor_a_no() -> None:
    for request in ("open3d==0.17.0", "open3d==0.18.0"):
        assert toolmatrix.resolve(request).exit_code == 0
        assert toolmatrix.resolve(request, device="9.0").exit_code == 4


def test_every_family_has_its_file_and_its_components(tmp_path: Path) -> None:
    assert tmp_path.is_dir()
    known = matrix.index().header["components"]
    assert set(families.packages().values()) <= set(known)


# What the matrix says of the code in packages, held against what it says of the same packages elsewhere.


WITHOUT = {
    "cuda": "cuda-toolkit names packages, and holds none of the toolkit",
    "cmake": "a program, which its package holds for every Python",
    "ninja": "a program, which its package holds for every Python",
    "pytorch-quantization": "its wheels are on another index, and were not opened",
    "tensorrt-llm": "its wheels are on another index, and were not opened",
    "llama-cpp-python": "a source archive alone, which compiles llama.cpp where it is installed",
}
"""Components of packages of the index whose code no row describes, each with the reason."""
READ_OTHERWISE = {
    "auto-gptq": "up to 0.4.1 its kernels are compiled where it is installed",
    "autoawq": "up to 0.1.8 its wheels held kernels, and later ones hold none",
    "gptqmodel": "up to 6.0.3 its archive compiled kernels where it was built, and later ones compile them at run time",
    "llama-cpp-python": "its archive compiles llama.cpp where it is installed",
    "sgl-kernel": "the archs of some wheels were not read, that of the newest were",
}
"""Packages whose device code nobody read, for some of their releases, though the row is about the newest."""
TOO_LARGE = {
    "simpleitk",
    *("nvidia-cuda-cupti-cu11", "nvidia-cuda-cupti-cu12", "nvidia-cufile-cu12"),
    *("nvidia-cusparselt-cu12", "nvidia-nvshmem-cu12"),
}
"""Packages with a library that was too large to be read, or that is a part of the toolkit."""
WITHOUT_DEVICE_CODE = {"cuda-bindings", "cuda-python", "torch-tensorrt"}
"""Packages with an accelerator and binaries that hold no code for it."""


def kinds() -> dict[str, str]:
    """The kind of code of each component that has a row."""
    known = matrix.index().header["components"]
    return {name: head["code"] for name, head in known.items() if head["code"]}


def named(*wanted: str) -> list[str]:
    """The components whose code is of these kinds."""
    return [name for name, kind in kinds().items() if kind in wanted]


def devices(component: str) -> set[str]:
    """How well it is known which devices a component or its builds have code for."""
    index = matrix.index()
    known = index.header["components"]
    builds = [name for name, head in known.items() if head["variant_of"] == component]
    return {
        cite.evidence
        for name in (component, *builds)
        for binding in index.component(name).bindings
        if binding.component in ("arch", "device")
        for cite in index.cites(binding.cites)
    }


def unread() -> set[str]:
    """The components of packages whose device code families say that nobody read."""
    return {
        pieces.text(fields, "component", package)
        for family in families.families().values()
        if family.kind == "index"
        for package, node in pieces.entries(family.fields, "packages").items()
        if pieces.text(fields := node.fields or {}, "device-code") == "unread"
    }


def test_every_package_of_the_index_says_what_code_it_holds() -> None:
    assert set(families.packages().values()) - set(kinds()) <= set(WITHOUT)


def test_only_devices_of_unopened_code_are_unread() -> None:
    assert unread() - set(named("unopened")) <= set(READ_OTHERWISE)
    assert unread() & set(named("unopened"))


def test_few_builds_of_recent_years_are_unopened() -> None:
    found = {one.kind: one for one in coverage.code_coverage(matrix.index(), "2023-01-01")}
    unopened = found["unopened"]
    assert unopened.builds <= 0.05 * sum(one.builds for one in found.values())
    # Of DALI 1.36 to 1.43 the package index has no wheel; RAPIDS says what those that it lacks were built for.
    assert "nvidia-dali" in unopened.partly
    assert "cuml" not in {*unopened.partly, *unopened.components}


def test_pure_code_is_for_no_device() -> None:
    assert {name for name in named("pure") if devices(name)} <= set(READ_OTHERWISE)


def test_archs_of_opened_code_are_facts() -> None:
    known = matrix.index().header["components"]
    computing = {name for name in named("opened") if known[name]["accelerators"]}
    assert {name for name in named("opened") if devices(name) - {UNKNOWN}} == (
        computing - WITHOUT_DEVICE_CODE
    )


@pytest.mark.parametrize("kind", ["unopened", "run-time"])
def test_code_for_devices_is_in_what_computes_on_them(kind: str) -> None:
    known = matrix.index().header["components"]
    without = {name for name in named(kind) if not known[name]["accelerators"]}
    assert without <= (TOO_LARGE if kind == "unopened" else set())


def test_an_extension_of_a_framework_is_bound_to_it() -> None:
    known = matrix.index().header["components"]
    assert {name for name, head in known.items() if "torch" in head["against"]} >= {
        *("torchvision", "torchaudio", "flash-attn", "xformers", "vllm", "torchao", "sgl-kernel"),
    }
    assert [name for name in named("pure") if known[name]["against"]] == []
