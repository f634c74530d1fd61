"""Images of wheels: what is rendered of them, and what their check says of a real environment."""

from __future__ import annotations

import base64
import hashlib
import shutil
import struct
import subprocess
import venv
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import toolmatrix
from tests.golden import assert_golden
from tests.rendering.jobs import index, job
from toolmatrix.api.locks import LockRequest, solve
from toolmatrix.errors import NoImage
from toolmatrix.harvest import families
from toolmatrix.lockfile.model import DEFAULT, Lock
from toolmatrix.recipes import read as recipes
from toolmatrix.rendering import common, dockerfile, formats, pinning
from toolmatrix.rendering.model import Job, UsedPackage
from toolmatrix.request import recipes as requests
from toolmatrix.request.fields import Fields, parse_arguments
from toolmatrix.request.read import read

PROGRAM = Path(__file__).parents[2] / "dockerfiles" / "wheels.py"


@cache
def answered(*words: str) -> Lock:
    """The lock of a request for wheels."""
    said = (*words, "--from=wheel", "--recipe=wheel")
    request = read(index(), Fields(**parse_arguments(said)))
    return solve(index(), {DEFAULT: LockRequest(request=request, words=said)})


def made(*words: str) -> Job:
    """The images of wheels of a request."""
    return job(answered(*words), recipe="wheel")


def file(*words: str) -> str:
    """The Dockerfile of the one image of a request."""
    return formats.known()["dockerfile"].files(made(*words))["x86.Dockerfile"]


# What a lock says of matrix and digest moves with every fact; goldens have what the recipe decides.
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("inside", ("torch==2.9.1", "--accelerator=cuda", "--distro=ubuntu24.04")),
        ("beside", ("tensorflow==2.13.0", "--distro=ubuntu22.04")),
        ("amd", ("torch==2.9.1", "--target=amd", "--distro=ubuntu24.04")),
        ("arm", ("onnxruntime==1.18.1", "--target=arm", "--distro=debian12")),
    ],
)
@pytest.mark.parametrize("dialect", dockerfile.DIALECTS)
def test_golden_images(name: str, words: tuple[str, ...], dialect: str) -> None:
    held = job(answered(*words), recipe="wheel", dialect=dialect)
    files = formats.known()["dockerfile"].files(held)
    ((_, text),) = ((path, text) for path, text in files.items() if path.endswith(".Dockerfile"))
    kept = [line for line in text.splitlines(keepends=True) if not _moves(line)]
    assert_golden(f"render/wheel/{dialect}/{name}.Dockerfile", "".join(kept))


def _moves(line: str) -> bool:
    return line.startswith(("# lock ", "# matrix ", "# file ")) or "lock.digest" in line


def test_the_tag_of_an_image_of_wheels_is_what_was_requested() -> None:
    tags = [common.tag(made(*words).images[0]) for words in (("torch==2.9.1",), ("vllm==0.11.0",))]
    assert tags == ["torch:2.9.1-x86", "vllm:0.11.0-x86"]


def test_nothing_that_compiles_is_installed() -> None:
    for words in (("torch==2.9.1",), ("tensorflow==2.13.0",), ("onnxruntime==1.18.1",)):
        text = file(*words)
        installed = [line for line in text.splitlines() if " install " in line]
        assert not any("-dev" in line or "gcc" in line for line in installed)
        assert made(*words).images[0].compiler is None


def test_a_toolkit_that_the_wheel_brings_is_not_there_twice() -> None:
    assert "\nFROM ubuntu:24.04 AS runtime\n" in file("torch==2.9.1", "--distro=ubuntu24.04")


def test_a_toolkit_beside_a_wheel_is_an_image_that_runs() -> None:
    text = file("tensorflow==2.13.0", "--distro=ubuntu22.04")
    froms = [line for line in text.splitlines() if line.startswith("FROM ")]
    assert froms == [
        "FROM nvidia/cuda:11.8.0-runtime-ubuntu22.04 AS toolchain",
        "FROM nvidia/cuda:11.8.0-runtime-ubuntu22.04 AS runtime",
    ]
    first, _, last = text.partition(froms[1])
    assert "libcudnn8=" in last
    assert "libcudnn8" not in first


def test_no_pip_is_left_and_nothing_that_an_answer_names_is_taken_away() -> None:
    assert "python -m pip uninstall --yes pip\n" in file("torch==2.9.1")
    used = UsedPackage(component="setuptools", package="setuptools", version="80.0")
    assert pinning.seeds(()) == ("setuptools", *pinning.seeds([used]))


def test_every_package_that_is_read_from_the_index_gets_into_an_image() -> None:
    recipe = recipes.recipe("wheel", index())
    offered = {part.component for part in recipe.provisions}
    assert any(part.harvested for part in recipe.provisions)
    components = index().header["components"]
    shown = {name for name in families.packages().values() if not components[name]["hidden"]}
    # That of the toolkit brings it in parts; one provision is for all packages that none names.
    assert {name for name in shown - offered if not components[name]["code"]} == {
        *("cuda", "cmake", "ninja", "pytorch-quantization", "llama-cpp-python"),
    }


def test_every_word_of_the_check_is_of_a_package() -> None:
    image = made("torch==2.9.1", "torchvision").images[0]
    words = [*pinning.check_arguments(image.wheels)]
    named = words[::6]
    assert named[:2] == ["torch", "torchvision"]
    assert words[2] == "2.9.1+cu128@default/x86_64"
    assert "torch.cuda" in words[4]
    assert words[named.index("torchvision") * 6 + 3] == ""
    # Of what is not built here nobody said which archs it has to hold.
    assert {*words[5::6]} == {""}


def test_an_operation_is_run_of_releases_that_it_is_for() -> None:
    for version, runs in (("1.5.2", False), ("1.18.1", True)):
        used = UsedPackage(component="onnxruntime", package="onnxruntime-gpu", version=version)
        assert bool([*pinning.check_arguments([used])][3]) is runs


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        (("torch==2.9.1", "--from=wheel"), "wheel"),
        # Known as wheels alone, or named by a build.
        (("vllm",), "wheel"),
        (("torch==2.9.1+cu126",), "wheel"),
        (("numpy==2.2.6", "gcc", "--from=wheel"), "toolchain"),
        (("numpy==2.2.6", "--from=source"), "toolchain"),
        # As `resolve` means it, what is built from source is built.
        (("tensorflow==2.6.5",), "tensorflow"),
        (("torch", "--from=source"), "pytorch"),
        (("flash-attn", "torch==2.5.1"), "extension"),
        # What no recipe builds comes as a wheel, unless it was to be built.
        (("jax",), "wheel"),
        (("torch", "torchvision"), "wheel"),
        (("transformers",), "wheel"),
        (("transformers", "gcc"), "toolchain"),
        (("jax", "--from=source"), ""),
        # What nothing brings is left for the solver to refuse.
        (("cmake",), "toolchain"),
    ],
)
def test_what_is_asked_for_decides_the_recipe(words: tuple[str, ...], taken: str) -> None:
    request = read(index(), Fields(**parse_arguments(words)))
    if not taken:
        with pytest.raises(NoImage, match="no recipe builds jax"):
            requests.of_request(request, index())
        return
    found = requests.of_request(request, index())
    assert found.recipe == taken
    # A lock says the same of what it holds.
    asked = [ask.component for ask in request.asks]
    from_ = found.from_ or next(ask.selector for ask in request.asks if ask.component == "from")
    wanted = requests.requested(words, index())
    assert requests.by_default(from_, wanted, asked, index()).recipe == taken


def test_a_lock_of_wheels_is_rendered_by_their_recipe_unless_one_is_named() -> None:
    held = answered("numpy==2.2.6", "--accelerator=none", "--distro=ubuntu24.04")
    opened = toolmatrix.open_matrix()
    for recipe, folder in ("", "/opt/venv /opt/venv"), ("toolchain", "python3.12-dev"):
        found = toolmatrix.render(held, format="dockerfile", matrix=opened, recipe=recipe)
        assert folder in found["x86.Dockerfile"]


def test_a_lock_that_was_asked_for_with_a_recipe_is_rendered_by_it() -> None:
    found = toolmatrix.render(extension(*EXTENSION), format="dockerfile")
    assert "--no-build-isolation" in found["x86.Dockerfile"]


def test_a_recipe_of_wheels_refuses_what_compiles_and_what_is_built() -> None:
    for words in (("numpy==2.2.6", "gcc", "--from=wheel"), ("torch==2.9.1", "--from=source")):
        found = toolmatrix.lock(*words[:-1], from_=words[-1].partition("=")[2], recipe="wheel")
        assert not found
        assert "recipe `wheel` does not support" in str(found)


def test_rocm_comes_beside_what_has_none_inside() -> None:
    words = ("--target=amd", "--distro=ubuntu24.04")
    plan = made("torch==2.9.1", *words).images[0]
    assert "rocm-hip-runtime" not in plan.runtime.packages
    plan = made("tensorflow==2.17.0", *words).images[0]
    assert {"rocm-hip-runtime", "rocm-ml-libraries"} <= {*plan.runtime.packages}
    assert not {*plan.packages} & {*plan.runtime.packages} - {"python3.12"}


def test_a_nightly_build_is_of_any_release() -> None:
    plan = made("mlc-llm", "--target=x86").images[0]
    assert {one.version for one in plan.wheels if one.component == "mlc-llm"} == {""}
    formats.files(made("mlc-llm", "--target=x86"), [*formats.known()])


def test_a_package_has_the_name_and_release_that_pip_installed() -> None:
    image = made("onnxruntime==1.18.1").images[0]
    assert ("onnxruntime", "onnxruntime-gpu", "1.18.1") in {
        (one.component, one.package, one.version) for one in image.wheels
    }
    image = made("cupy==13.6.0").images[0]
    assert [one.package for one in image.wheels if one.component == "cupy"] == ["cupy-cuda13x"]


EXTENSION = ("torch-scatter", "torch==2.12.1", "--arch=sm_80,sm_90")


def extension(*words: str) -> Lock:
    """The lock of a request for extensions."""
    said = (*words, "--recipe=extension")
    request = read(index(), Fields(**parse_arguments(said)))
    return solve(index(), {DEFAULT: LockRequest(request=request, words=said)})


@pytest.mark.parametrize("dialect", dockerfile.DIALECTS)
def test_golden_extension(dialect: str) -> None:
    held = job(extension(*EXTENSION), recipe="extension", dialect=dialect)
    text = formats.known()["dockerfile"].files(held)["x86.Dockerfile"]
    kept = [line for line in text.splitlines(keepends=True) if not _moves(line)]
    assert_golden(f"render/extension/{dialect}.Dockerfile", "".join(kept))


def test_an_extension_is_built_by_the_toolkit_of_its_torch_and_runs_without_it() -> None:
    held = extension(*EXTENSION)
    (plan,) = job(held, recipe="extension").images
    cuda = plan.locked.components["cuda"]
    assert cuda.inside
    assert plan.locked.variants["torch"].build == "2.12.1+cu130@default/x86_64"
    assert plan.from_ == f"nvidia/cuda:{cuda.version}-devel-ubuntu24.04"
    assert plan.runtime.from_ == "ubuntu:24.04"
    (build,) = [one for one in plan.steps if one.name == "build"]
    assert build.env["TORCH_CUDA_ARCH_LIST"] == "8.0;9.0"
    # The release of the toolkit is asked for where it compiles, and the archs of what was compiled where it runs.
    assert [part.run[0] for name, part in plan.probes if name == "cuda"] == ["nvcc"]
    wanted = {one.package: one.archs for one in plan.wheels}
    assert wanted == {"torch": "", "numpy": "", "torch-scatter": "sm_80,sm_90"}


def test_several_extensions_are_built_together_and_each_by_its_own_settings() -> None:
    words = ("flash-attn", "causal-conv1d", "torch==2.14.1", "--arch=sm_80")
    (plan,) = job(extension(*words), recipe="extension").images
    (build,) = [one for one in plan.steps if one.name == "build"]
    assert {*build.env} == {
        "CAUSAL_CONV1D_FORCE_BUILD",
        "CUDA_HOME",
        "FLASH_ATTENTION_FORCE_BUILD",
        "FLASH_ATTN_CUDA_ARCHS",
        "TORCH_CUDA_ARCH_LIST",
    }
    assert build.run[0].startswith('echo "causal-conv1d==')
    assert " flash-attn==" in build.run[0]
    assert plan.labels["org.opencontainers.image.version"] == ""


def test_an_extension_without_an_accelerator_is_built_for_the_cpu() -> None:
    (plan,) = job(extension("torch-scatter", "--target=arm"), recipe="extension").images
    assert plan.locked.accelerator == "none"
    assert plan.locked.variants["torch"].build.endswith("+cpu@default/aarch64")
    (build,) = [one for one in plan.steps if one.name == "build"]
    assert build.env == {}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(("numpy",), "the recipe `extension` builds causal-conv1d,", id="nothing"),
        pytest.param(
            ("causal-conv1d==1.7.0", "torch==2.12.1", "--arch=sm_86"),
            "does not go with arch sm_86 (only sm_75",
            id="archs-of-its-own",
        ),
        pytest.param(("torch-scatter", "--target=amd"), "it compiles with nvcc", id="rocm"),
        pytest.param(
            ("torch-scatter", "torch==2.12.1", "--accelerator=cuda", "--distro=debian12"),
            "cuda can be installed only with",
            id="no-toolkit",
        ),
        pytest.param(
            ("torch-scatter", "torch==2.12.1+cu130", "cuda==12.6.3"),
            "does not go with cuda 12.6.3 (only 13.0.2)",
            id="cuda",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_built(words: tuple[str, ...], why: str) -> None:
    asked = [word for word in words if not word.startswith("--")]
    named: dict[str, Any] = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
    found = toolmatrix.lock(*asked, recipe="extension", **named)
    assert not found
    assert why in " ".join(str(found).split())


# A real environment with packages that are made here.


def environment(folder: Path, packages: Mapping[str, Mapping[str, str]]) -> Path:
    """The Python of an environment with packages: by `NAME-VERSION` their files."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for name, files in packages.items():
        record = []
        for path, text in files.items():
            place = site / path
            place.parent.mkdir(parents=True, exist_ok=True)
            data = text.encode("latin-1")
            place.write_bytes(data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
            record.append(f"{path},sha256={digest.decode().rstrip('=')},{len(data)}\n")
        (site / f"{name}.dist-info").mkdir(exist_ok=True)
        (site / f"{name}.dist-info" / "RECORD").write_text("".join(record))
    return folder / "bin" / "python"


def told(
    tmp_path: Path,
    packages: Mapping[str, Mapping[str, str]],
    accelerator: str,
    floor: str,
    *words: str,
    archs: str = "",
) -> list[tuple[str, ...]]:
    """What the program of the check prints; of each package there are five words, and the archs of all."""
    python = environment(tmp_path / "venv", packages)
    said = [accelerator, floor]
    for place in range(0, len(words), 5):
        said += [*words[place : place + 5], archs]
    done = subprocess.run(
        [python, PROGRAM, *said], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr == ""
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def only(state: str, lines: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The lines of a state, without it and without how."""
    return [line[1:4] for line in lines if line[0] == state]


GOOD = {"frame_work-1.2+cpu": {"frame_work/__init__.py": "", "tests/__init__.py": "raise OSError"}}


@pytest.mark.process
def test_what_is_as_resolved_passes(tmp_path: Path) -> None:
    found = told(tmp_path, GOOD, "none", "", "frame-work", "1.2", "cpu", "import frame_work", "")
    assert only("no", found) == []
    assert only("yes", found) == [
        ("frame-work", "1.2+cpu", "1.2"),
        ("frame-work", "imported", "imported"),
        ("frame-work", "computed", "computed"),
        ("foreign", "none", "none"),
        ("folders", "one owner each", "one owner each"),
    ]
    assert only("untried", found) == []


@pytest.mark.process
@pytest.mark.parametrize(
    ("packages", "words", "wrong"),
    [
        pytest.param({}, ("one", "1.0", "cpu", "", ""), ("one", "nothing", "1.0"), id="absent"),
        pytest.param(
            {"one-1.1": {"one.py": ""}},
            ("one", "1.0", "cpu", "", ""),
            ("one", "1.1", "1.0"),
            id="other",
        ),
        pytest.param(
            {"one-1.0": {"one/__init__.py": "import lacking"}},
            ("one", "1.0", "cpu", "", ""),
            ("one", "ModuleNotFoundError: No module named 'lacking'", "imported"),
            id="import",
        ),
        pytest.param(
            {"one-1.0": {"one.py": ""}},
            ("one", "1.0", "cpu", "assert 1 + 1 == 3", ""),
            ("one", "AssertionError", "computed"),
            id="operation",
        ),
        pytest.param(
            {"one-1.0": {"one.py": ""}, "nvidia_cublas_cu12-12.8": {"nvidia/cublas.py": ""}},
            ("one", "1.0", "cpu", "", ""),
            ("foreign", "nvidia-cublas-cu12 12.8", "none"),
            id="cuda",
        ),
        pytest.param(
            {"one-1.0+rocm6.4": {"one.py": ""}},
            ("one", "1.0", "cpu", "", ""),
            ("foreign", "one 1.0+rocm6.4", "none"),
            id="rocm",
        ),
        pytest.param(
            {
                "one-1.0": {"one/__init__.py": "", "one/core.so": "a"},
                "one_rocm-1.0": {"one/__init__.py": "", "one/core.so": "b"},
            },
            ("one", "1.0", "cpu", "", ""),
            ("folders", "one and one-rocm", "one owner each"),
            id="two-owners",
        ),
    ],
)
def test_what_is_wrong_fails(
    tmp_path: Path,
    packages: Mapping[str, Mapping[str, str]],
    words: tuple[str, ...],
    wrong: tuple[str, ...],
) -> None:
    assert wrong in only("no", told(tmp_path, packages, "none", "", *words))


def fatbin(*images: tuple[int, int, int]) -> str:
    """Code for devices: of each image its kind, its arch and its flags."""
    header = struct.Struct("<HHIQIIHHIIIQ")
    body = b""
    for kind, arch, flags in images:
        body += header.pack(kind, 0, header.size, 4, 0, 0, 0, 0, arch, 0, 0, flags) + b"code"
    return (struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body).decode("latin-1")


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "state", "found"),
    [
        pytest.param(fatbin((2, 80, 0), (2, 90, 0)), "yes", "sm_80,sm_90", id="both"),
        pytest.param(fatbin((2, 80, 0)) + fatbin((2, 90, 0)), "yes", "sm_80,sm_90", id="two-parts"),
        pytest.param(fatbin((2, 80, 0), (1, 90, 0)), "no", "compute_90,sm_80", id="ptx"),
        pytest.param(fatbin((2, 80, 0), (2, 90, 1 << 20)), "no", "sm_80,sm_90a", id="specific"),
        pytest.param("nothing for a device", "no", "no code", id="none"),
        pytest.param(fatbin((2, 80, 0))[:40], "no", "no code", id="cut"),
    ],
)
def test_what_was_built_has_code_for_the_archs_of_the_answer(
    tmp_path: Path, code: str, state: str, found: str
) -> None:
    packages = {"one-1.0": {"one/__init__.py": "", "one/core.so": code}}
    words = ("one", "1.0", "", "", "")
    lines = told(tmp_path, packages, "none", "", *words, archs="sm_80,sm_90")
    assert ("one", found, "sm_80,sm_90") in only(state, lines)


@pytest.mark.process
@pytest.mark.parametrize(
    ("build", "requires", "foreign"),
    [
        pytest.param("", "nvidia_nccl.cu12>=2; platform_system == 'Linux'", (), id="one-build"),
        pytest.param(
            "1.0+cpu@index/x86_64", "nvidia-nccl-cu12", ("nvidia-nccl-cu12 2.28",), id="chosen"
        ),
        pytest.param(
            "", "nvidia-nccl-cu12; extra == 'gpu'", ("nvidia-nccl-cu12 2.28",), id="extra"
        ),
    ],
)
def test_what_the_only_build_of_a_package_requires_is_not_foreign(
    tmp_path: Path, build: str, requires: str, foreign: tuple[str, ...]
) -> None:
    packages = {
        "one-1.0": {
            "one.py": "",
            "one-1.0.dist-info/METADATA": f"Name: one\nRequires-Dist: numpy\nRequires-Dist: {requires}\n",
        },
        "nvidia_nccl_cu12-2.28": {"nvidia/nccl.py": ""},
    }
    found = told(tmp_path, packages, "none", "", "one", "1.0", build, "", "")
    assert only("no", found) == [("foreign", one, "none") for one in foreign]


@pytest.mark.process
def test_files_that_are_the_same_are_no_conflict(tmp_path: Path) -> None:
    packages = {
        "one-1.0": {"one/__init__.py": "", "one/a.py": "a = 1"},
        "one_more-1.0": {"one/__init__.py": "", "one/b.py": ""},
    }
    found = told(tmp_path, packages, "none", "", "one", "1.0", "", "", "")
    assert only("no", found) == []


@pytest.mark.process
@pytest.mark.skipif(Path("/dev/kfd").exists(), reason="there is such a device")
def test_what_was_not_tried_is_told(tmp_path: Path) -> None:
    packages = {"one-1.0": {"one.py": ""}, "empty-1.0": {}}
    words = ("one", "1.0", "", "", "", "empty", "1.0", "", "", "")
    found = told(tmp_path, packages, "rocm", "", *words)
    assert only("no", found) == []
    assert only("untried", found) == [
        ("empty", "no module", "a module"),
        ("operation", "none is known", "an operation"),
        ("folders", "no RECORD", "a RECORD"),
        ("device", "no /dev/kfd", "a device"),
    ]


@pytest.mark.process
@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="there is such a device")
def test_a_driver_that_a_host_lacks_is_no_fault_of_a_package(tmp_path: Path) -> None:
    lacking = "raise ImportError('libcuda.so.1: cannot open shared object file')"
    packages = {"one-1.0": {"one.py": lacking}}
    words = ("one", "1.0", "", "import one", "import one")
    found = told(tmp_path, packages, "cuda", "525.60.13", *words)
    assert only("no", found) == []
    untried = only("untried", found)
    assert (
        "one",
        "ImportError: libcuda.so.1: cannot open shared object file",
        "imported",
    ) in untried
    assert ("driver", "no driver here", ">=525.60.13") in untried
    # Where no device is wanted it is a fault.
    shutil.rmtree(tmp_path / "venv")
    assert only("no", told(tmp_path, packages, "none", "", *words))


@pytest.mark.process
def test_an_image_that_is_right_passes_its_whole_check(tmp_path: Path) -> None:
    held = made("protobuf==5.29.5", "--accelerator=none", "--distro=ubuntu24.04")
    protobuf = {"protobuf-5.29.5": {"google/protobuf/__init__.py": ""}}
    python = environment(tmp_path / "venv", protobuf)
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, body in {
        "uname": "echo x86_64",
        "sh": "echo 'ubuntu 24.04'",
        "python": f'[ "$1" = --version ] && echo "Python 3.12.3" && exit\nexec {python} "$@"',
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    script = tmp_path / "check.sh"
    script.write_text(dockerfile.check(held, held.images[0]))
    done = subprocess.run(
        [shutil.which("dash") or "/bin/sh", script, "runtime"],
        env={"PATH": f"{folder}:/usr/bin:/bin", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0), done.stdout
    assert done.stdout.endswith(
        "pass  protobuf   5.29.5         wanted 5.29.5         its METADATA\n"
        "pass  protobuf   imported       wanted imported       import google.protobuf\n"
        "none  operation  none is known  wanted an operation   protobuf\n"
        "pass  foreign    none           wanted none           1 distribution\n"
        "pass  folders    one owner each wanted one owner each 1 distribution\n"
        "7 checked, 0 failed, 1 not tried\n"
    )


def test_the_program_is_read_by_an_old_python() -> None:
    """Distributions of an image reach back to this one."""
    compile(PROGRAM.read_text(), str(PROGRAM), "exec", flags=0, dont_inherit=True)
    import ast

    ast.parse(PROGRAM.read_text(), feature_version=(3, 6))


@pytest.mark.process
def test_the_check_can_be_read_by_a_shell(tmp_path: Path) -> None:
    held = made("onnxruntime==1.18.1", "torch==2.9.1", "--accelerator=none")
    script = tmp_path / "check.sh"
    script.write_text(dockerfile.check(held, held.images[0]))
    subprocess.run([shutil.which("dash") or "/bin/sh", "-n", script], check=True)
