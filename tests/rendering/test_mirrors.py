"""What an image fetches, at the mirrors that a user names: every address of every file, and what tools are told."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.rendering import hostile
from tests.rendering.jobs import index, job, lock
from toolmatrix.api.files import RenderOptions, render_lock, rules
from toolmatrix.errors import RenderError, UsageError
from toolmatrix.rendering import formats, mirrors
from toolmatrix.rendering.model import Job

OLD = ("https://example.org", "https://github.com/", "https://repo.example.org/index")
MIRRORS = mirrors.parsed(f"{old}=https://mirror.invalid/{n}" for n, old in enumerate(OLD))
ADDRESS = re.compile(r"https?://[^\s'\"]+")


def full(**choices: object) -> Job:
    """One of everything that is fetched: of a recipe, of tools, and Python packages at an index and an address."""
    recipe = hostile.recipe(hostile.RECIPE.replace("run: [make all]", f"run: [{CLONE}]"))
    held = hostile.packaged(hostile.flagged("debian", "arm"), "arm", "wheel==1")
    made = job(held, recipe=recipe, targets=("arm",), **choices)
    part = made.images[0]
    assert part.closure is not None
    asked = part.closure.asked.replace(
        options=("--index-url", "https://repo.example.org/index/cpu")
    )
    closure = part.closure.replace(asked=asked)
    image = mirrors.with_mirrors(
        part.replace(closure=closure, packages=(*part.packages, "git")),
        made.choices,
        rules(index(), RenderOptions()).mirrors,
    )
    return made.replace(images=(image,))


CLONE = "git clone https://github.com/one/two.git"


@pytest.mark.parametrize(
    ("dialect", "name"),
    [
        ("modern", "dockerfile"),
        ("classic", "dockerfile"),
        ("modern", "apptainer"),
        ("modern", "requirements"),
    ],
)
def test_no_file_fetches_from_what_has_a_mirror(dialect: str, name: str) -> None:
    before = "".join(formats.known()[name].files(full(dialect=dialect)).values())
    after = "".join(formats.known()[name].files(full(dialect=dialect, mirrors=MIRRORS)).values())
    named = [one for old in OLD for one in ADDRESS.findall(before) if one.startswith(old)]
    assert named
    told = re.compile(r"^.*(insteadOf|rewrite ).*$", re.MULTILINE)
    left = [one for one in ADDRESS.findall(told.sub("", after)) if one.startswith(OLD)]
    assert left == []
    assert after.count("https://mirror.invalid/") >= len(named)


def test_what_apt_prefers_is_known_by_the_host_of_the_mirror() -> None:
    image = full(mirrors=MIRRORS).images[0]
    assert [one.origin for one in image.repositories] == ["mirror.invalid"]
    assert [one.uri for one in image.repositories] == ["https://mirror.invalid/0/deb"]


def test_the_longest_beginning_wins_and_a_name_that_goes_on_is_another() -> None:
    held = mirrors.parsed(["https://a.org=https://m.org/all", "https://a.org/b=https://m.org/b/"])
    said = {
        "https://a.org/c/d": "https://m.org/all/c/d",
        "https://a.org/b/d": "https://m.org/b/d",
        "https://a.org/bc": "https://m.org/all/bc",
        "https://a.org.evil/b": "https://a.org.evil/b",
        "http://a.org/b": "http://a.org/b",
    }
    assert {url: mirrors.mirrored(url, held) for url in said} == said


@pytest.mark.parametrize("text", ["https://a.org", "=https://a.org", "https://a.org="])
def test_half_a_mirror_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        mirrors.parsed([text])


@pytest.mark.parametrize(
    "text", ["a.org=https://b.org", "https://a.org=file:///srv", "https://u:p@a.org=https://b"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(RenderError) as caught:
        mirrors.parsed([text])
    assert caught.value.expected == "an address"


def test_a_mirror_of_nothing_is_refused_where_all_addresses_are_known() -> None:
    options = RenderOptions(mirror=("https://githu.com=https://mirror.invalid",))
    held = lock("rocky")
    with pytest.raises(UsageError) as caught:
        render_lock(held, options, rules(index(), options))
    assert str(caught.value) == "no address of these files begins with `https://githu.com/`"


def test_bazel_is_told_from_the_release_that_takes_it_on() -> None:
    image = job(lock("debian"), targets=("x86",), mirrors=MIRRORS).images[0]
    assert image.locked.components["bazel"].version == "4.2.3"
    assert (
        "/etc/bazel.downloader",
        "rewrite github[.]com/(.*) mirror.invalid/1/$1",
    ) in image.mirrored
    older = job(lock("tensorflow"), targets=("x86",), mirrors=MIRRORS).images[0]
    assert older.locked.components["bazel"].version == "3.7.2"
    assert older.mirrored == ()


@pytest.mark.parametrize("dialect", ["modern", "classic"])
def test_bazel_looks_for_archives_in_the_folder_where_it_builds(dialect: str) -> None:
    held = lock("tensorflow")
    options: dict[str, Any] = {"dialect": dialect, "targets": ("x86",)}
    built = job(held, recipe="tensorflow", fetched="near", **options)
    (image,) = built.images
    assert image.mirrored == (("/etc/bazel.bazelrc", "build --distdir=/mnt/distdir"),)
    text = formats.known()["dockerfile"].files(built)["x86.Dockerfile"]
    mount = "--mount=type=bind,source=near/distdir,target=/mnt/distdir"
    (run,) = (one for one in text.split("\n\n") if "bazel build" in one)
    assert mount in run
    assert text.index("/etc/bazel.bazelrc") < text.index(mount)
    # What only holds tools, and what fetches as it likes.
    assert job(held, fetched="near", **options).images[0].mirrored == ()
    fetching = job(held, recipe="tensorflow", **options)
    assert "distdir" not in formats.known()["dockerfile"].files(fetching)["x86.Dockerfile"]


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_git_asks_the_mirror(tmp_path: Path) -> None:
    image = full(mirrors=MIRRORS).images[0]
    lines = [line for file, line in image.mirrored if file == "/etc/gitconfig"]
    (tmp_path / "config").write_text("".join(f"{line}\n" for line in lines))
    subprocess.run(["git", "init", "--quiet", tmp_path / "here"], check=True)
    words = ("git", "-C", tmp_path / "here", "ls-remote", "--get-url", "https://github.com/one/two")
    said = subprocess.run(
        words,
        env={"GIT_CONFIG_GLOBAL": f"{tmp_path}/config", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "https://mirror.invalid/1/one/two\n"
