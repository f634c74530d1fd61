"""The files of `toolmatrix env --write` and `--guard`, in the hands of the tools that they are for."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import toolmatrix
from tests.harvest import shop
from tests.images import hostile as servers
from tests.images.hostile import Reply
from toolmatrix import toml
from toolmatrix.errors import LockError, RenderError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Cli
    from tests.images.hostile import Server
    from toolmatrix.report.environments import EnvironmentPlan

BESIDE = Path(sys.executable).parent
SERIES = ".".join(platform.python_version_tuple()[:2])
CHANNEL = "https://download.pytorch.org/whl"
REQUIREMENTS = "torch==2.7.0\nnumpy<2.3\nourpackage\ngit+https://example.org/a.git#egg=a\n"
DEVICE = "RTX 5090"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with requirements."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "requirements.txt").write_text(REQUIREMENTS)
    return folder


@pytest.fixture
def server() -> Iterator[Server]:
    """An index and the channels of a vendor."""
    with servers.running() as found:
        yield found


def stock(server: Server, path: str, name: str, version: str, requires: list[str]) -> None:
    """Put a wheel on the default index, or on a channel by its path."""
    wheel = shop.installable(name, version, {}, requires)
    if not path:
        shop.stock(server, name, [wheel])
        return
    server.answers[f"{path}/{name}/"] = Reply(
        headers={"Content-Type": shop.JSON}, body=shop.page(name, [wheel])
    )
    server.answers[f"/files/{wheel.name}"] = lambda request: shop.honest(request, wheel.data)


def uv(server: Server, folder: Path, *words: str) -> str:
    """What uv says, which ends well."""
    run = subprocess.run(
        [BESIDE / "uv", *words],
        cwd=folder,
        env={
            "HOME": str(folder),
            "PATH": f"{BESIDE}:{os.environ['PATH']}",
            "UV_DEFAULT_INDEX": f"{server.url}/simple",
            "UV_NO_CACHE": "1",
            "UV_PYTHON": sys.executable,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout + run.stderr


def stock_all(server: Server, plans: dict[str, EnvironmentPlan]) -> None:
    """The packages of some environments, each build where it is published."""
    for plan in plans.values():
        for build in plan.builds:
            url = next((word for word in build.arguments if word.startswith(CHANNEL)), "")
            requires = ["rocm-runtime"] if build.accelerator == "rocm" else []
            version = build.local if url else build.release
            stock(server, url.removeprefix(CHANNEL), build.component, version, requires)
            if requires:
                stock(server, url.removeprefix(CHANNEL), "rocm-runtime", "1.0", [])
        for package in plan.packages:
            name, version = re.split("[<=]=", package)
            stock(server, "", name, version, [])
    stock(server, "", "ourpackage", "0.8", [])


@pytest.mark.process
def test_uv_locks_one_project_for_all_targets(server: Server, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch\nnumpy\nourpackage\n")
    answer = toolmatrix.env(tmp_path, target=("x86", "amd", "arm"), with_=f"python=={SERIES}")
    text = answer.file("uv")
    cpu = toolmatrix.env(tmp_path, accelerator="none", with_=f"python=={SERIES}").plans["x86"]
    stock_all(server, {**answer.plans, "cpu": cpu})
    (tmp_path / "pyproject.toml").write_text(text.replace(CHANNEL, server.url))
    uv(server, tmp_path, "lock")
    lock = toml.parse((tmp_path / "uv.lock").read_text(), "uv.lock", LockError, "it")
    plans = {**answer.plans, "cpu": cpu}
    wanted = {name: _torch(plan) for name, plan in plans.items()}
    assert {p["version"] for p in lock["package"] if p["name"] == "torch"} == {*wanted.values()}
    here = {"x86_64": ("x86", "amd", "cpu"), "aarch64": ("arm",)}[platform.machine()]
    for name in here:
        run = uv(server, tmp_path, "sync", "--dry-run", "--locked", "--extra", name)
        assert f"+ torch=={wanted[name]}\n" in run
        assert ("rocm-runtime" in run) == (name == "amd")


def _torch(plan: EnvironmentPlan) -> str:
    build = next(build for build in plan.builds if build.component == "torch")
    return build.local if build.arguments else build.release


def test_a_project_of_uv_for_one_target(repository: Path) -> None:
    text = toolmatrix.env(repository, device=DEVICE, with_="python==3.11").file("uv")
    project: dict[str, Any] = toml.parse(text, "", LockError, "it")
    assert project["project"]["dependencies"] == [
        *("torch==2.7.0", "numpy<=2.2.6", "ourpackage"),
        "a @ git+https://example.org/a.git",
    ]
    assert project["tool"]["uv"]["sources"] == {"torch": {"index": "channel-1"}}
    assert project["tool"]["uv"]["index"] == [
        {"name": "channel-1", "url": f"{CHANNEL}/cu128", "explicit": True}
    ]


def test_what_only_a_page_has_is_searched_there_by_uv(tmp_path: Path) -> None:
    # The page has the jaxlib that jax requires, and no jax; without a bound pip takes a cuDNN that it does not load.
    (tmp_path / "requirements.txt").write_text("jax[cuda12_pip]==0.4.13\n")
    answer = toolmatrix.env(tmp_path, device="RTX 4090")
    assert answer.ok
    project: dict[str, Any] = toml.parse(answer.file("uv"), "", LockError, "it")
    wanted = ["jax[cuda12_pip]==0.4.13", "nvidia-cudnn-cu12<9"]
    assert project["project"]["dependencies"][:2] == wanted
    page = "https://storage.googleapis.com/jax-releases/jax_cuda_releases.html"
    assert project["tool"]["uv"]["find-links"] == [page]
    assert not {"sources", "index"} & project["tool"]["uv"].keys()
    assert f"--find-links {page}" in answer.file("pip")
    pins = [line for line in answer.constraints().splitlines() if line[:1] != "#"]
    assert pins[:2] == ["jax==0.4.13", "nvidia-cudnn-cu12<9"]


def test_what_a_build_imports_is_there_while_it_is_built(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.4.0\nflash-attn==1.0.9\n")
    answer = toolmatrix.env(tmp_path, device="T4", with_="python==3.11")
    project: dict[str, Any] = toml.parse(answer.file("uv"), "", LockError, "it")
    assert project["tool"]["uv"]["extra-build-dependencies"] == {"flash-attn": ["torch==2.4.0"]}
    assert answer.plans["x86"].commands("uv")[-2:] == [
        "uv pip install torch==2.4.0 setuptools wheel",
        "uv pip install flash-attn==1.0.9 --no-build-isolation",
    ]


WRITTEN = {
    "pip": [
        *(f"--extra-index-url {CHANNEL}/cu128", "torch==2.7.0", "numpy<=2.2.6", "ourpackage"),
        "git+https://example.org/a.git#egg=a",
    ]
}


def test_requirements_and_conda_have_the_index(repository: Path) -> None:
    answer = toolmatrix.env(repository, device=DEVICE, with_="python==3.11")
    lines = [line for line in answer.file("pip").splitlines() if line and line[0] != "#"]
    assert lines == WRITTEN["pip"]
    conda = yaml.safe_load(answer.file("conda"))
    assert conda["dependencies"] == ["python=3.11", "pip", {"pip": WRITTEN["pip"]}]


def test_packages_of_conda_stay_there(tmp_path: Path) -> None:
    text = "dependencies:\n  - python=3.10\n  - ffmpeg=4.4\n  - pytorch=2.1.0\n  - pip\n"
    (tmp_path / "environment.yml").write_text(text)
    answer = toolmatrix.env(tmp_path)
    conda = yaml.safe_load(answer.file("conda"))
    assert conda["dependencies"][:3] == ["python=3.10", "pip", "ffmpeg=4.4"]
    pixi: dict[str, Any] = toml.parse(answer.file("pixi"), "", LockError, "it")
    assert pixi["dependencies"] == {"python": "3.10.*", "ffmpeg": "4.4.*"}
    assert pixi["pypi-dependencies"]["torch"] == {"version": "==2.1.0"}
    assert pixi["system-requirements"] == {"cuda": "12"}


def test_a_dockerfile_is_that_of_render(repository: Path) -> None:
    text = toolmatrix.env(repository, with_="python==3.11").file("docker")
    assert "torch==2.7.0" in text
    assert "FROM " in text


def test_one_target_for_a_file_of_pip(repository: Path) -> None:
    answer = toolmatrix.env(repository, target="x86,arm")
    with pytest.raises(RenderError, match="a file of pip is for one target"):
        answer.file("pip")


@pytest.mark.process
def test_pylock_has_files_and_hashes(server: Server, tmp_path: Path, cli: Cli) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "requirements.txt").write_text("torch\nnumpy\nourpackage\n")
    stock_all(server, toolmatrix.env(folder).plans)
    path = f"{BESIDE}:{os.environ['PATH']}"
    index = {"UV_DEFAULT_INDEX": f"{server.url}/simple", "UV_NO_CACHE": "1", "PATH": path}
    run = cli("env", str(folder), "--write", "pylock", **index)
    lock: dict[str, Any] = toml.parse(run.out, "", LockError, "it")
    assert lock["lock-version"] == "1.0"
    names = {package["name"] for package in lock["packages"]}
    assert {"torch", "numpy", "ourpackage"} <= names
    assert all(wheel["hashes"] for p in lock["packages"] for wheel in p["wheels"])


def test_a_guard_keeps_the_pins(real: Cli, here: Path) -> None:
    (here / "requirements.txt").write_text(REQUIREMENTS)
    run = real("env", "--guard", "--device", DEVICE, "--with", "python==3.11")
    assert (here / "toolmatrix-constraints.txt").read_text().splitlines()[1:] == [
        "torch==2.7.0",
        "numpy<=2.2.6",
    ]
    assert "PIP_CONSTRAINT=$PWD/toolmatrix-constraints.txt" in run.err
    assert "--constraint toolmatrix-constraints.txt" in run.out


def test_a_folder_may_be_named_by_an_option(real: Cli, here: Path) -> None:
    (here / "inside").mkdir()
    (here / "inside" / "requirements.txt").write_text("torch==2.7.0\n")
    run = real("env", "-C", "inside", "--guard", "--write", "pip")
    assert "torch==2.7.0" in run.out
    assert (here / "inside" / "toolmatrix-constraints.txt").exists()


def test_a_file_is_printed_in_the_place_of_the_answer(real: Cli, here: Path) -> None:
    (here / "requirements.txt").write_text(REQUIREMENTS)
    run = real("env", "--write", "pip", "--output", "fixed.txt", "--device", DEVICE)
    assert (run.code, run.out) == (0, "")
    assert "torch==2.7.0" in (here / "fixed.txt").read_text()
    (here / "requirements.txt").write_text("tensorflow==2.10.0\n")
    assert real("env", "--write", "pip", "--device", DEVICE).code == 1
    assert real("env", "--write", "poetry").code == 2


@pytest.mark.parametrize(
    ("wanted", "device", "bound"),
    [
        ("jax[cuda12]==0.12.0.1", "GTX 1080", "nvidia-cudnn-cu12<=9.10.2.21"),
        ("tensorflow[and-cuda]==2.21.0", "V100", "nvidia-cudnn-cu12<=9.3.0.75"),
        ("tensorflow[and-cuda]==2.21.0", "H100", ""),
        # A pin of METADATA needs no bound.
        ("torch==2.9.1", "V100", ""),
    ],
)
def test_a_library_is_no_newer_than_what_runs_on_the_device(
    wanted: str, device: str, bound: str, here: Path
) -> None:
    (here / "requirements.txt").write_text(wanted)
    (plan,) = toolmatrix.env(here, device=device).plans.values()
    assert [pin for pin in plan.pins if "cudnn" in pin] == [bound] * bool(bound)
    text = toolmatrix.resolve(wanted, device=device, from_="wheel").text()
    assert ("cudnn-cu" in text.partition("\n\n")[0]) == bool(bound)


CODE = {
    "own/core.py": "import os, numpy.linalg\nfrom own import x\nif TYPE_CHECKING:\n    import typed\n"
    "try:\n    import apex\nexcept ImportError:\n    import fallback\n",
    "own/__init__.py": "from . import core, y\nimport ourpackage\n",
    "own/broken.py": "def f(:\n",
    "own/alone.py": "import ourextra\n",
    "tests/test_own.py": "import pytest\n",
    "setup.py": "import setuptools\n",
    ".venv/lib/other.py": "import other\n",
}


def code(folder: Path) -> Path:
    """A repository with code."""
    for name, text in CODE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_proof_has_to_be_allowed(real: Cli, here: Path) -> None:
    (here / "requirements.txt").write_text(REQUIREMENTS)
    run = real("env", "--prove")
    assert run.code == 2
    assert "`--prove` installs and imports packages of others" in run.err


@pytest.mark.process
def test_a_proof_installs_and_imports(server: Server, cli: Cli, here: Path) -> None:
    code(here)
    (here / "requirements.txt").write_text("numpy\nourpackage\n")
    (version,) = toolmatrix.env(here, with_=f"python=={SERIES}").plans.values()
    members = {"numpy/__init__.py": b"", "numpy/linalg.py": b""}
    release = version.versions["numpy"]
    shop.stock(server, "numpy", [shop.installable("numpy", release, members)])
    shop.stock(server, "ourpackage", [shop.installable("ourpackage", "0.8", {})])
    index = {
        "UV_DEFAULT_INDEX": f"{server.url}/simple",
        "UV_NO_CACHE": "1",
        "PATH": f"{BESIDE}:{os.environ['PATH']}",
    }
    if version.machine != platform.machine():
        pytest.skip("no target is for this machine")
    run = cli("env", "--with", f"python=={SERIES}", "--prove", "--yes", **index)
    proof = json.loads((here / "toolmatrix-proof.json").read_text())
    steps = {(step["kind"], step["name"]): step["passed"] for step in proof["steps"]}
    # The wheel of ourpackage here has no module.
    assert steps["import", "numpy"]
    assert not steps["import", "ourpackage"]
    assert not steps["optional", "apex"]
    assert not steps["optional", "ourextra"]
    assert (run.code, proof["passed"]) == (1, False)
    assert "FAIL" in run.out
    assert "not proven in" in run.out
