"""`toolmatrix build`: what it asks of which engine, and how it ends; the engines are scripts that note their words."""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Outcome

DEBIAN = ("gcc", "--distro", "debian12", "--target", "x86,arm", "--accelerator", "none")


@pytest.fixture
def out(real: Cli, here: Path) -> Path:
    """A directory with rendered files, without a bake file."""
    real("render", *DEBIAN, "--format", "dockerfile", "--output", "out")
    return here / "out"


def engine(here: Path, name: str, body: str = "") -> str:
    """A PATH on which there is one engine, which writes its words into `calls`."""
    folder = here / "bin"
    folder.mkdir(exist_ok=True)
    tool = folder / name
    tool.write_text(f'#!/bin/sh\necho "{name} $*" >>"{here}/calls"\n{body}\n')
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return str(folder)


def calls(here: Path) -> list[str]:
    """What the engine was called with, but for what asks what it has."""
    lines = (here / "calls").read_text().splitlines()
    return [line for line in lines if not line.endswith((" version", " --help"))]


NO_BUILDX = '[ "$1" = buildx ] && exit 1'


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("docker", f"{NO_BUILDX}; exit 0", "docker build"),
        ("docker", "", "docker build"),
        ("buildah", "", "buildah build"),
    ],
)
def test_each_dockerfile_is_built_for_its_platform(
    real: Cli, here: Path, out: Path, name: str, body: str, words: str
) -> None:
    outcome = real("build", "out", "--", "--no-cache", PATH=engine(here, name, body))
    assert outcome.code == 0
    assert calls(here) == [
        f"{words} --platform linux/{platform} --tag out:{target}"
        f" --file out/{target}.Dockerfile --no-cache out"
        for target, platform in (("arm", "arm64"), ("x86", "amd64"))
    ]
    assert outcome.err.endswith("2 of 2 built\n")
    assert out.is_dir()


@pytest.mark.process
def test_bake_builds_all_at_once_where_buildx_is(real: Cli, here: Path, out: Path) -> None:
    (out / "docker-bake.json").write_text("{}")
    path = engine(here, "docker", f'pwd >>"{here}/folders"')
    outcome = real("build", "out", "--target", "arm", PATH=path)
    assert outcome.code == 0
    assert calls(here) == ["docker buildx bake --file docker-bake.json arm"]
    # Bake takes paths of its file from where it runs, not from where the file lies.
    assert (here / "folders").read_text().splitlines()[-1] == str(out.resolve())


@pytest.mark.process
def test_one_target_of_several_environments_is_built_by_the_names_of_its_images(
    real: Cli, here: Path
) -> None:
    (here / "toolmatrix.toml").write_text(
        '[environments.a]\nrequest = ["gcc==12"]\n[environments."b.c"]\nrequest = ["gcc==12"]\n'
        'distro = "debian12"\n'
    )
    real("lock", "--distro", "debian12", "--target", "x86,arm", "--with", "base-image")
    assert real("render", "--output", "out").code == 0
    path = engine(here, "docker")
    assert real("build", "out", "--target", "arm", PATH=path).code == 0
    assert calls(here) == ["docker buildx bake --file docker-bake.json a-arm b_c-arm"]
    refused(
        real("build", "out", "--target", "amd", PATH=path),
        3,
        "error[TM110]: there is no Dockerfile of this lock\n",
    )


BUILDKIT_ALONE = f"{NO_BUILDX}\n" + '[ "$1" = build ] && exit 1'


@pytest.mark.process
def test_a_docker_that_needs_buildx_and_lacks_it_is_a_missing_tool(
    real: Cli, here: Path, out: Path
) -> None:
    outcome = real("build", str(out), PATH=engine(here, "docker", BUILDKIT_ALONE))
    refused(outcome, 5, "error[TM500]: this docker builds by its plugin buildx alone\n")
    assert calls(here) == []


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("docker"), reason="docker is not installed")
def test_an_engine_that_does_not_answer_is_a_missing_tool(real: Cli, here: Path, out: Path) -> None:
    """By the real client; one that lacks buildx is refused before it is asked."""
    host = f"unix://{here}/no.sock"
    outcome = real("build", str(out), PATH=os.environ["PATH"], DOCKER_HOST=host)
    assert (outcome.code, outcome.out) == (5, "")
    assert "error[TM500]: " in outcome.err


@pytest.mark.process
def test_a_builder_elsewhere_needs_no_engine_here(real: Cli, here: Path, out: Path) -> None:
    no_engine = 'if [ "$1" = version ]; then echo "Cannot connect" >&2; exit 1; fi'
    path = engine(here, "docker", no_engine)
    assert real("build", str(out), PATH=path).code == 0
    failing = f"{no_engine}\ncase $* in *Dockerfile*) exit 1 ;; esac"
    outcome = real("build", str(out), PATH=engine(here, "docker", failing))
    assert outcome.code == 5
    assert outcome.err.endswith(
        "error[TM500]: `docker` cannot reach its engine\n"
        "  found: Cannot connect\n"
        "help: start it, or name another: `docker context use`, DOCKER_HOST\n"
    )


@pytest.mark.process
def test_a_failed_build_is_told_and_the_others_go_on(real: Cli, here: Path, out: Path) -> None:
    body = f"{NO_BUILDX}\ncase $* in *arm*) echo no such base; exit 3 ;; esac"
    outcome = real("build", "out", PATH=engine(here, "docker", body))
    assert outcome.code == 1
    told = [line for line in outcome.err.splitlines() if not line.startswith("building ")]
    assert told[0].startswith("failed out:arm after ")
    assert told[0].endswith(" s, exit code 3")
    assert told[1].startswith("built out:x86 in ")
    assert told[2] == "1 of 2 built"
    assert out.is_dir()


@pytest.mark.process
def test_one_target_is_built_alone(real: Cli, here: Path, out: Path) -> None:
    real("build", "out", "--target", "x86", PATH=engine(here, "buildah"))
    assert len(calls(here)) == 1
    assert "out/x86.Dockerfile" in calls(here)[0]
    assert out.is_dir()


def refused(outcome: Outcome, code: int, error: str) -> None:
    """One error and nothing else."""
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith(error)


def test_without_an_engine_it_says_what_to_install(real: Cli, here: Path, out: Path) -> None:
    outcome = real("build", "out", PATH=os.devnull)
    refused(outcome, 5, "error[TM500]: nothing here can build images\n")
    assert "help: install docker" in outcome.err
    assert out.is_dir()
    assert here.is_dir()


@pytest.mark.process
def test_a_directory_without_a_lock_or_dockerfile_is_told(real: Cli, here: Path, out: Path) -> None:
    path = engine(here, "buildah")
    refused(real("build", ".", PATH=path), 2, "error[TM904]: there is no lock\n")
    for file in out.glob("*.Dockerfile"):
        file.unlink()
    refused(
        real("build", "out", PATH=path), 3, "error[TM110]: there is no Dockerfile of this lock\n"
    )
