"""Images of wheels: what is rendered of them, and what their check says of a real environment."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import venv
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import toolmatrix
from tests.golden import assert_golden
from tests.render.jobs import index, job
from toolmatrix.api.locks import LockRequest, solved
from toolmatrix.harvest import families
from toolmatrix.lock.model import DEFAULT
from toolmatrix.recipes import read as recipes
from toolmatrix.render import dockerfile, formats, wheels
from toolmatrix.render.model import UsedPackage
from toolmatrix.request import recipes as requests
from toolmatrix.request.fields import Fields, given
from toolmatrix.request.read import read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolmatrix.lock.model import Lock
    from toolmatrix.render.model import Job

PROGRAM = Path(__file__).parents[2] / "dockerfiles" / "wheels.py"


@cache
def answered(*words: str) -> Lock:
    """The lock of a request for wheels."""
    said = (*words, "--from=wheel", "--recipe=wheel")
    request = read(index(), Fields(**given(said)))
    return solved(index(), {DEFAULT: LockRequest(request=request, words=said)})


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
    assert wheels.seeds(()) == ("setuptools", *wheels.seeds([used]))


def test_every_package_that_is_read_from_the_index_gets_into_an_image() -> None:
    offered = {part.component for part in recipes.recipe("wheel", index()).provisions}
    components = index().header["components"]
    shown = {name for name in families.packages().values() if not components[name]["hidden"]}
    # That of the toolkit brings it in parts.
    assert shown - offered == {"cuda"}


def test_every_word_of_the_check_is_of_a_package() -> None:
    image = made("torch==2.9.1", "torchvision").images[0]
    words = [*wheels.words(image.wheels)]
    named = words[::4]
    assert named[:2] == ["torch", "torchvision"]
    assert "torch.cuda" in words[3]
    assert words[named.index("torchvision") * 4 + 2] == ""


def test_an_operation_is_run_of_releases_that_it_is_for() -> None:
    for version, runs in (("1.15.5", False), ("2.13.0", True)):
        used = UsedPackage(component="tensorflow-gpu", package="tensorflow-gpu", version=version)
        assert bool([*wheels.words([used])][2]) is runs


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        (("torch==2.9.1", "--from=wheel"), "wheel"),
        # Known as wheels alone, or named by a build.
        (("vllm",), "wheel"),
        (("torch==2.9.1+cu126",), "wheel"),
        (("numpy==2.2.6", "gcc", "--from=wheel"), "toolchain"),
        (("numpy==2.2.6", "--from=source"), "toolchain"),
    ],
)
def test_what_is_asked_for_decides_the_recipe(words: tuple[str, ...], taken: str) -> None:
    asks = read(index(), Fields(**given(words))).asks
    froms = [ask.selector for ask in asks if ask.component == "from"]
    assert requests.by_default(froms, [ask.component for ask in asks], index()) == taken


def test_a_lock_of_wheels_is_rendered_by_their_recipe_unless_one_is_named() -> None:
    held = answered("numpy==2.2.6", "--accelerator=none", "--distro=ubuntu24.04")
    opened = toolmatrix.open_matrix()
    for recipe, folder in ("", "/opt/venv /opt/venv"), ("toolchain", "python3.12-dev"):
        found = toolmatrix.render(held, format="dockerfile", matrix=opened, recipe=recipe)
        assert folder in found["x86.Dockerfile"]


def test_a_recipe_of_wheels_refuses_what_compiles_and_what_is_built() -> None:
    for words in (("numpy==2.2.6", "gcc", "--from=wheel"), ("torch==2.9.1", "--from=source")):
        found = toolmatrix.lock(*words[:-1], from_=words[-1].partition("=")[2], recipe="wheel")
        assert not found
        assert "recipe `wheel` builds nothing with" in str(found)


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
            place.write_text(text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
            record.append(f"{path},sha256={digest.decode().rstrip('=')},{len(text)}\n")
        (site / f"{name}.dist-info").mkdir()
        (site / f"{name}.dist-info" / "RECORD").write_text("".join(record))
    return folder / "bin" / "python"


def told(
    tmp_path: Path, packages: Mapping[str, Mapping[str, str]], *words: str
) -> list[tuple[str, ...]]:
    """What the program of the check prints."""
    python = environment(tmp_path / "venv", packages)
    done = subprocess.run(
        [python, PROGRAM, *words], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr == ""
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def only(state: str, lines: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The lines of a state, without it and without how."""
    return [line[1:4] for line in lines if line[0] == state]


GOOD = {"frame_work-1.2+cpu": {"frame_work/__init__.py": "", "tests/__init__.py": "raise OSError"}}


@pytest.mark.process
def test_what_is_as_resolved_passes(tmp_path: Path) -> None:
    found = told(tmp_path, GOOD, "none", "", "frame-work", "1.2", "import frame_work", "")
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
        pytest.param({}, ("one", "1.0", "", ""), ("one", "nothing", "1.0"), id="absent"),
        pytest.param(
            {"one-1.1": {"one.py": ""}}, ("one", "1.0", "", ""), ("one", "1.1", "1.0"), id="other"
        ),
        pytest.param(
            {"one-1.0": {"one/__init__.py": "import lacking"}},
            ("one", "1.0", "", ""),
            ("one", "ModuleNotFoundError: No module named 'lacking'", "imported"),
            id="import",
        ),
        pytest.param(
            {"one-1.0": {"one.py": ""}},
            ("one", "1.0", "assert 1 + 1 == 3", ""),
            ("one", "AssertionError", "computed"),
            id="operation",
        ),
        pytest.param(
            {"one-1.0": {"one.py": ""}, "nvidia_cublas_cu12-12.8": {"nvidia/cublas.py": ""}},
            ("one", "1.0", "", ""),
            ("foreign", "nvidia-cublas-cu12 12.8", "none"),
            id="cuda",
        ),
        pytest.param(
            {"one-1.0+rocm6.4": {"one.py": ""}},
            ("one", "1.0", "", ""),
            ("foreign", "one 1.0+rocm6.4", "none"),
            id="rocm",
        ),
        pytest.param(
            {
                "one-1.0": {"one/__init__.py": "", "one/core.so": "a"},
                "one_rocm-1.0": {"one/__init__.py": "", "one/core.so": "b"},
            },
            ("one", "1.0", "", ""),
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


@pytest.mark.process
def test_files_that_are_the_same_are_no_conflict(tmp_path: Path) -> None:
    packages = {
        "one-1.0": {"one/__init__.py": "", "one/a.py": "a = 1"},
        "one_more-1.0": {"one/__init__.py": "", "one/b.py": ""},
    }
    found = told(tmp_path, packages, "none", "", "one", "1.0", "", "")
    assert only("no", found) == []


@pytest.mark.process
@pytest.mark.skipif(Path("/dev/kfd").exists(), reason="there is such a device")
def test_what_was_not_tried_is_told(tmp_path: Path) -> None:
    packages = {"one-1.0": {"one.py": ""}, "empty-1.0": {}}
    words = ("one", "1.0", "", "", "empty", "1.0", "", "")
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
    words = ("one", "1.0", "import one", "import one")
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
    held = made("numpy==2.2.6", "--accelerator=none", "--distro=ubuntu24.04")
    numpy = {"numpy-2.2.6": {"numpy/__init__.py": ""}}
    python = environment(tmp_path / "venv", numpy)
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
        "pass  numpy      2.2.6          wanted 2.2.6          its METADATA\n"
        "pass  numpy      imported       wanted imported       import numpy\n"
        "none  operation  none is known  wanted an operation   numpy\n"
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
