"""What an image takes as it comes: each kind with what pins it, and whatever a built-in recipe fetches."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.rendering import hostile
from tests.rendering.jobs import index, job, lock
from toolmatrix.api.files import RenderOptions, render_lock, rules
from toolmatrix.errors import Unpinned
from toolmatrix.recipes import read as recipes
from toolmatrix.recipes.model import BuildStep, Download
from toolmatrix.rendering import pinning

DAY = "20261120T000000Z"
DIGEST = "@sha256:" + "0" * 64
BY_DIGEST = {"debian:12": "debian" + DIGEST}
SYNTAX = "docker/dockerfile:1" + DIGEST


def found(*lines: str, **choices: Any) -> list[tuple[str, str]]:
    """What an image of GCC and Python with one step takes as it comes."""
    held = job(
        lock("debian"),
        targets=("x86",),
        **{"stand_ins": BY_DIGEST, "syntax_line": SYNTAX, "snapshot": DAY, **choices},
    )
    (image,) = held.images
    step = BuildStep(name="a", stage="build", run=lines)
    image = image.replace(pip=(), steps=(step,) if lines else ())
    return [(one.kind, one.what) for one in pinning.unpinned(image, held.choices)]


def test_with_a_snapshot_and_digests_nothing_is_left() -> None:
    assert found() == []


def test_images_without_a_digest() -> None:
    assert found(stand_ins={}) == [("image", "debian:12")]
    assert found(syntax_line="docker/dockerfile:1") == [("frontend", "docker/dockerfile:1")]
    assert found(syntax_line="") == []


def test_packages_without_a_version_and_without_a_day() -> None:
    ((kind, what),) = found(snapshot="")
    assert kind == "package"
    assert what.startswith("apt-get install gcc-")
    assert "=" not in what
    assert found("apt-get update", "apt-get -y install zstd", snapshot="")[1:] == [
        ("package", "apt-get -y install zstd")
    ]
    assert found("apt-get -y install zstd") == []


def test_packages_with_a_version_are_pinned() -> None:
    held = job(lock("debian"), targets=("x86",))
    (image,) = held.images
    image = image.replace(packages=("libcudnn8=8.6.0.163-1+cuda11.*",))
    kinds = {one.kind for one in pinning.unpinned(image, held.choices)}
    assert "package" not in kinds


def test_what_no_snapshot_has() -> None:
    (rocky,) = job(lock("rocky"), targets=("x86",)).images
    said = {one.kind: one.what for one in pinning.unpinned(rocky, job(lock("rocky")).choices)}
    assert said["unkept"].startswith("dnf install ")
    held = job(lock("tensorflow"), targets=("amd",), snapshot=DAY)
    kept = {one.kind: one.what for one in pinning.unpinned(held.images[0], held.choices)}
    assert kept["unkept"] == "https://repo.radeon.com/rocm/apt/5.0.2 ubuntu"


def test_files_without_a_checksum() -> None:
    loose, pinned = (
        Download(url=f"https://example.org/{name}", to="/x", checksum=text)
        for name, text in (("loose", ""), ("pinned", "0" * 64))
    )
    held = job(lock("debian"), targets=("x86",), snapshot=DAY)
    image = held.images[0].replace(downloads=(loose, pinned))
    said = [one.what for one in pinning.unpinned(image, held.choices) if one.kind == "file"]
    assert said == ["https://example.org/loose"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("pip install six==1.16.0", "step"),
        ("python -m pip install -r requirements.txt", "step"),
        ("python -m pip download x", "step"),
        ("pip install --no-deps six", "step"),
        ("pip install --require-hashes -r requirements.txt", ""),
        ("pip install --no-index six*.whl", ""),
        # It builds what is there with what is there; with isolation it fetches what builds it.
        ("pip wheel --no-build-isolation --no-deps --wheel-dir /work/wheels .", ""),
        ("pip wheel --no-deps ./3rdparty .", "step"),
        ("pip wheel --no-build-isolation --no-deps six", "step"),
        ("python -m pip check", ""),
        ("git clone --depth 1 --branch v1.0 https://example.org/a.git a", "git"),
        ("git -C /work/a fetch origin main", "git"),
        (f"git -C /work/a fetch --depth 1 https://example.org/a.git {'a' * 40}", ""),
        ("git init --quiet /work/a", ""),
        ("curl -fsSLO https://example.org/a.tgz", "file"),
        ("wget https://example.org/a.tgz", "file"),
        ("make -j4", ""),
    ],
)
def test_commands_of_steps(line: str, kind: str) -> None:
    assert found(line) == ([(kind, line.removeprefix("python -m "))] if kind else [])


def test_what_is_looked_at_afterwards_is_pinned() -> None:
    clone = "git clone https://example.org/a.git a"
    assert found(clone, f"git -C a checkout {'b' * 40}") == []
    assert found(clone, "git -C a checkout v1") == [("git", clone)]
    fetch = "curl -fsSLO https://example.org/a.tgz"
    assert found(fetch, f"echo {'0' * 64}  a.tgz | sha256sum -c -") == []


def test_python_packages_without_a_closure() -> None:
    (image,) = job(lock("debian"), targets=("x86",)).images
    choices = job(lock("debian")).choices
    assert image.pip
    said = [one.what for one in pinning.unpinned(image, choices) if one.kind == "python"]
    assert said == ["pip install numpy==2.4.6"]
    packed = hostile.packaged(hostile.flagged("debian", "arm"), "arm", "wheel==1")
    held = job(packed, recipe=hostile.recipe(hostile.RECIPE), targets=("arm",))
    assert held.images[0].closure
    assert "python" not in {one.kind for one in pinning.unpinned(held.images[0], held.choices)}


FETCHES = re.compile(
    r"\b(pip3? (install|wheel|download)|git .*(clone|fetch|pull|submodule)|curl|wget|npm|npx|cargo|go get"
    r"|(apt|apt-get|dnf|yum) .*install|conda|gem|https?://)"
)
"""Whatever may fetch something; wider than what is named."""


@pytest.mark.parametrize("name", recipes.names())
def test_whatever_a_built_in_recipe_fetches_is_named(name: str) -> None:
    (image,) = job(lock("debian"), targets=("x86",)).images
    image = image.replace(pip=(), packages=(), from_="a" + DIGEST)
    image = image.replace(runtime=image.runtime.replace(from_="a" + DIGEST, packages=()))
    choices = job(lock("debian"), syntax_line="").choices
    for step in recipes.recipe(name, index()).steps:
        lines = [line for line in step.run if FETCHES.search(line)]
        one = image.replace(steps=(step.replace(downloads=()),))
        said = [loose.what for loose in pinning.unpinned(one, choices)]
        for line in lines:
            named = any(line.endswith(what) for what in said)
            pinned = any(word in line for word in ("--no-index", "--require-hashes"))
            alone = "--no-build-isolation --no-deps" in line
            assert named or pinned or alone or re.search(r"\b[0-9a-f]{40}\b", line), line


def test_a_refusal_says_what_pins_each_kind() -> None:
    options = RenderOptions(snapshot="2026-11-20", base=("debian:12=debian" + DIGEST,))
    held = lock("debian")
    with pytest.raises(Unpinned) as caught:
        render_lock(held, options, rules(index(), options), targets=("x86",), strict=True)
    assert caught.value.found == "x86: docker/dockerfile:1; x86: pip install numpy==2.4.6"
    assert caught.value.help == f"{pinning.PINNED_BY['frontend']}; {pinning.PINNED_BY['python']}"


def test_every_way_names_something_of_the_command_line_or_of_a_recipe() -> None:
    assert all(re.search(r"`--|`toolmatrix|recipe", way) for way in pinning.PINNED_BY.values())
