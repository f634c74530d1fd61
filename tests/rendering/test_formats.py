"""The formats around the Dockerfiles: whole outputs, and what the tools that read them say."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.golden import assert_golden
from tests.rendering import hostile, parsers
from tests.rendering.jobs import LOCKS, job, lock
from toolmatrix.errors import RenderError
from toolmatrix.lockfile.model import Lock, LockedComponent
from toolmatrix.rendering import common, formats, mirrors
from toolmatrix.rendering.model import Job
from toolmatrix.resources import of_package

BESIDE = Path(sys.executable).parent
AROUND = tuple(name for name in formats.known() if name != "dockerfile")
BUILDX = (
    "/usr/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins",
    os.path.expanduser("~/.docker/cli-plugins"),
)


def made(name: str, held: Job) -> dict[str, str]:
    """The files of one format."""
    return formats.known()[name].files(held)


def full(target: str = "arm", extra: str = "") -> Job:
    """A job of a recipe with everything, and flags of every kind."""
    recipe = hostile.recipe(hostile.RECIPE + extra)
    return job(hostile.flagged("debian", target), recipe=recipe, targets=(target,))


def renamed(held: Lock, *names: str) -> Lock:
    """A lock with one environment for each name."""
    environment = held.environments["default"]
    return held.replace(environments=dict.fromkeys(names, environment))


def words(text: str) -> list[str]:
    """The lines of a file that are no comments."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("name", LOCKS)
def test_golden_files(name: str) -> None:
    held = job(lock(name))
    for form in AROUND:
        for path, text in made(form, held).items():
            # A feature has the check of its image, which is written elsewhere.
            if path.endswith(".check.sh"):
                continue
            assert_golden(f"render/{name}/around/{path}", text)


def test_every_format_says_what_it_is() -> None:
    assert list(formats.known()) == sorted(formats.known())
    for form in formats.known().values():
        assert not form.SUMMARY.endswith(".")


@pytest.mark.parametrize("name", AROUND)
def test_every_file_with_comments_names_the_lock_and_the_command(name: str) -> None:
    held = full()
    for path, text in made(name, held).items():
        assert held.digest in text
        if not path.endswith((".check.sh", ".json")) or path == "docker-bake.json":
            assert common.AGAIN in text
            assert "Written by toolmatrix 0; it does not overwrite edited files" in text
        assert text.endswith("\n")
        assert not text.endswith("\n\n")


@pytest.mark.parametrize("name", formats.known())
def test_every_file_of_every_format_tells_an_edit_by_hand(name: str) -> None:
    held = full()
    assert formats.files(held, [name]).keys() == made(name, held).keys()
    for text in formats.files(held, [name]).values():
        assert common.is_unchanged(text)
        assert common.is_unchanged(text.replace("\n", "\r\n"))
        for edited in (text + "\n", text[:-2], text.replace("toolmatrix", "toolmatriX", 1)):
            assert common.is_ours(edited)
            assert not common.is_unchanged(edited)


@pytest.mark.parametrize("name", AROUND)
def test_the_dialect_is_the_dockerfiles_alone(name: str) -> None:
    both = [job(lock("tensorflow"), dialect=dialect) for dialect in ("modern", "classic")]
    assert made(name, both[0]) == made(name, both[1])


def test_formats_without_anything_to_say_write_nothing() -> None:
    held = job(lock("tensorflow"), targets=("x86",))
    assert {name for name in AROUND if not made(name, held)} == {
        *("bazelrc", "env", "requirements")
    }
    bare = held.replace(
        images=tuple(
            image.replace(
                pip=(),
                locked=image.locked.replace(
                    components={
                        name: part
                        for name, part in image.locked.components.items()
                        if name != "python"
                    }
                ),
            )
            for image in held.images
        )
    )
    assert not made("constraints", bare)
    assert not made("conda", bare)


# Bake


def bake(held: Job) -> Any:
    return json.loads(made("bake", held)["docker-bake.json"])


BAKED = [*((name, "toolchain") for name in LOCKS), ("tensorflow", "tensorflow")]
"""A lock and a recipe: the tools alone, and one whose runtime image starts from another base."""


@pytest.mark.parametrize(("name", "recipe"), BAKED)
def test_the_bake_file_has_the_shape_of_one(name: str, recipe: str) -> None:
    schema = json.loads((Path(__file__).parent / "bake.schema.json").read_text())
    jsonschema.validate(bake(job(lock(name), recipe=recipe)), schema)


def test_the_bake_file_has_a_target_for_each_image() -> None:
    read = bake(job(lock("tensorflow")))
    assert read["group"]["default"]["targets"] == ["amd", "arm", "x86"] == list(read["target"])
    assert read["target"]["arm"]["platforms"] == ["linux/arm64"]
    assert read["target"]["arm"]["dockerfile"] == "arm.Dockerfile"
    assert read["target"]["arm"]["attest"][0].startswith("type=provenance,mode=max,")


def test_names_of_environments_become_names_of_targets() -> None:
    held = job(renamed(lock("debian"), "py3.9", "py3.10"), targets=("x86",))
    assert list(bake(held)["target"]) == ["py3_10-x86", "py3_9-x86"]
    matrix = yaml.safe_load(made("github", held)[".github/workflows/toolmatrix.yml"])
    cells = matrix["jobs"]["image"]["strategy"]["matrix"]["include"]
    assert [cell["image"] for cell in cells] == ["py3_10-x86", "py3_9-x86"]


def test_environments_that_would_share_a_target_are_refused() -> None:
    held = job(renamed(lock("debian"), "py3.9", "py3_9"), targets=("x86",))
    with pytest.raises(RenderError) as refused:
        made("bake", held)
    error = refused.value
    assert (error.what, error.expected, error.found) == (
        "two images would have the same name in the bake file",
        "environments whose names differ in letters and digits",
        "`py3.9-x86` and `py3_9-x86`",
    )


def buildx() -> str:
    """The program of buildx, if it is here: Debian's releases up to bookworm do not package it."""
    places = (os.path.join(folder, "docker-buildx") for folder in BUILDX)
    return shutil.which("docker-buildx") or next(
        (path for path in places if os.path.exists(path)), ""
    )


@pytest.mark.process
@pytest.mark.skipif(
    not buildx(),
    reason="docker-buildx is not installed, which Debian has from 13 on; the schema stands in for it",
)
@pytest.mark.parametrize(("name", "recipe"), BAKED)
def test_buildx_reads_the_bake_file(name: str, recipe: str, tmp_path: Path) -> None:
    held = job(lock(name), recipe=recipe)
    (tmp_path / "docker-bake.json").write_text(made("bake", held)["docker-bake.json"])
    images = {image.name: image for image in held.images}
    for given in (
        {},
        {
            "CACHE": "r/c",
            "ATTEST": "true",
            "PREFIX": "r/t/",
            "BASE_X86": "docker-image://b",
            "RUNTIME_X86": "docker-image://r",
        },
    ):
        told = subprocess.run(
            [buildx(), "bake", "--print"],
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], **given},
            capture_output=True,
            text=True,
            check=True,
        )
        read = json.loads(told.stdout)
        assert set(read["target"]) == set(images)
        for target, part in read["target"].items():
            assert part["platforms"] == [images[target].locked.platform]
            assert part["tags"][0] == f"{given.get('PREFIX', '')}{recipe}:{target}"
            assert ("cache-from" in part) == ("CACHE" in given)
            assert [one.get("disabled", False) for one in part["attest"]] == [
                "CACHE" not in given
            ] * 2
            image = images[target]
            bases = {image.runtime.from_: "docker-image://r"} | {image.from_: "docker-image://b"}
            assert part.get("contexts") == (bases if target == "x86" and given else None)


# CI services


@pytest.mark.process
@pytest.mark.parametrize("name", LOCKS)
@pytest.mark.parametrize(
    ("form", "schema"), [("github", "vendor.github-workflows"), ("gitlab", "vendor.gitlab-ci")]
)
def test_ci_files_have_their_shape(name: str, form: str, schema: str, tmp_path: Path) -> None:
    for path, text in made(form, job(lock(name))).items():
        (tmp_path / os.path.basename(path)).write_text(text)
        told = subprocess.run(
            [BESIDE / "check-jsonschema", "--builtin-schema", schema, os.path.basename(path)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (told.returncode, told.stderr) == (0, ""), told.stdout


@pytest.mark.process
@pytest.mark.parametrize("name", LOCKS)
def test_actionlint_finds_nothing(name: str, tmp_path: Path) -> None:
    (text,) = made("github", job(lock(name))).values()
    (tmp_path / "toolmatrix.yml").write_text(text)
    told = subprocess.run(
        [BESIDE / "actionlint", "-no-color", "toolmatrix.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.stdout + told.stderr, told.returncode) == ("", 0)


def test_actions_are_named_by_commit_with_their_tag_behind() -> None:
    (text,) = made("github", full()).values()
    uses = [line.strip() for line in text.splitlines() if "uses:" in line]
    wanted = [mirrors.action(name) for name in ("checkout", "buildx")]
    assert uses == [f"- uses: {one.uses}@{one.commit} # {one.tag}" for one in wanted]
    assert all(len(one.commit) == 40 for one in wanted)


@pytest.mark.parametrize(("form", "key"), [("github", "runner"), ("gitlab", "RUNNER")])
def test_each_image_gets_a_machine_of_its_platform(form: str, key: str) -> None:
    (text,) = made(form, job(lock("tensorflow"))).values()
    found = [
        part[key]
        for part in _dicts(yaml.safe_load(text))
        if key in part and {"image", "IMAGE"} & set(part)
    ]
    assert [("arm" in label) for label in found] == [False, True, False]


def _dicts(tree: Any) -> list[dict[str, Any]]:
    if isinstance(tree, dict):
        return [tree, *(one for part in tree.values() for one in _dicts(part))]
    return [one for part in tree for one in _dicts(part)] if isinstance(tree, list) else []


@pytest.mark.parametrize("form", ["bake", "github", "gitlab"])
def test_excluded_images_are_named_with_the_reason(form: str) -> None:
    held = full().replace(excluded=(("amd", "the lock has no answer for amd"),))
    (text,) = made(form, held).values()
    assert "excluded amd: the lock has no answer for amd" in text


def test_a_platform_without_a_machine_is_refused() -> None:
    with pytest.raises(RenderError) as refused:
        mirrors.runner("github", "linux/s390x")
    assert (refused.value.what, refused.value.expected, refused.value.found) == (
        "no known github runner for this platform",
        "linux/amd64 or linux/arm64",
        "`linux/s390x`",
    )


# Flags


def test_flags_of_the_lock_become_options_of_bazel() -> None:
    (text,) = made("bazelrc", job(lock("tensorflow"))).values()
    lines = [shlex.split(line, comments=True) for line in words(text)]
    flags = ["-fsigned-char", "-march=armv8-a+crc", "-frecord-gcc-switches"]
    wanted = [["build:arm", f"--{host}copt={flag}"] for flag in flags for host in ("", "host_")]
    assert lines == wanted


def test_flags_of_c_and_cxx_that_differ_are_told_apart() -> None:
    (text,) = made("bazelrc", full()).values()
    said = {words_[1] for line in words(text) if (words_ := shlex.split(line))}
    assert {"--conlyopt=-O2", "--cxxopt=-std=gnu++17", "--host_cxxopt=-std=gnu++17"} <= said
    assert "--action_env=CUDAHOSTCXX=g++-7" in said
    assert not any(word.startswith("--copt") for word in said)


@pytest.mark.parametrize(("bazel", "known"), [("6.1.0", True), ("3.7.2", False), ("", False)])
def test_an_option_is_given_to_a_bazel_that_is_known_to_take_it(bazel: str, known: bool) -> None:
    held = full()
    (image,) = held.images
    parts = {name: part for name, part in image.locked.components.items() if name != "bazel"}
    if bazel:
        parts["bazel"] = LockedComponent(evidence="stated", version=bazel)
    locked = image.locked.replace(components=parts)
    (text,) = made("bazelrc", held.replace(images=(image.replace(locked=locked),))).values()
    assert ("--host_action_env=CUDAHOSTCXX=g++-7" in text) is known


@pytest.mark.process
@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_shell_reads_the_flags(shell: str, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    (text,) = made("env", full()).values()
    (tmp_path / "arm.env.sh").write_text(text)
    told = subprocess.run(
        [shell, "-c", ". ./arm.env.sh; env"],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {
        "CFLAGS=-fsigned-char -O2 -frecord-gcc-switches",
        "CXXFLAGS=-fsigned-char -std=gnu++17 -frecord-gcc-switches",
        "NVCC_APPEND_FLAGS=-lineinfo",
        "HIPCC_COMPILE_FLAGS_APPEND=-fgpu-rdc",
        "CUDAHOSTCXX=g++-7",
    } <= set(told.stdout.splitlines())


# Python


def test_constraints_hold_the_python_packages_and_what_is_built() -> None:
    files = made("constraints", job(lock("tensorflow"), targets=("x86",)))
    lines = words(files["x86.constraints.txt"])
    assert "numpy==1.19.5" in lines
    assert lines == sorted(lines)
    image = full().images[0]
    held = full().replace(images=(image.replace(pip=("h5py[all]==3.1.0",)),))
    version = image.locked.components["numpy"].version if "numpy" in image.locked.components else ""
    built = [f"numpy=={version}"] if version else []
    assert words(made("constraints", held)["arm.constraints.txt"]) == ["h5py==3.1.0", *built]


@pytest.mark.parametrize("recipe", ["tensorflow", "toolchain"])
@pytest.mark.parametrize("form", ["conda", "pixi", "uv"])
def test_what_is_built_from_source_is_missed_in_a_list_of_packages(form: str, recipe: str) -> None:
    files = formats.known()[form].files(job(lock("tensorflow"), recipe=recipe, targets=("x86",)))
    (text,) = files.values()
    assert "# tensorflow 2.6.5 is built from source and not in this file\n" in text


def test_conda_takes_its_own_packages_and_the_rest_by_pip() -> None:
    (text,) = made("conda", job(lock("tensorflow"), targets=("x86",))).values()
    wanted = yaml.safe_load(text)["dependencies"]
    assert {"bazel=3.7.2", "gcc=7", "gxx=7", "python=3.9", "pip", "cudatoolkit=11.2.2"} <= set(
        wanted[:-1]
    )
    assert "numpy==1.19.5" in wanted[-1]["pip"]
    assert "# cuda 11.2.2: conda-forge has its libraries alone and no nvcc" in text.splitlines()


# Apptainer and development containers


@pytest.mark.parametrize("extra", ["", hostile.ARTIFACTS])
def test_a_definition_has_the_sections_of_one(extra: str) -> None:
    (text,) = made("apptainer", full(extra=extra)).values()
    _, *stages = parsers.of_apptainer(text)
    assert [dict(stage[0][1])["Stage"] for stage in stages] == (
        ["build", "runtime"] if extra else ["toolchain"]
    )
    names = [[name.split()[0] for name, _ in stage[1:]] for stage in stages]
    last = ["%files", "%post", "%environment", "%test", "%labels", "%runscript"]
    assert names == ([["%post"], ["%files", *last]] if extra else [last])


def test_a_definition_does_what_the_dockerfile_does() -> None:
    (text,) = made("apptainer", full()).values()
    ((_, *sections),) = [stage for stage in parsers.of_apptainer(text) if len(stage) > 1]
    scripts = {name.split()[0]: body for name, body in sections}
    post = scripts["%post"]
    for word in ("gcc-12", "https://example.org/tool", "hello", "all", "JOBS=2", "/work/source"):
        assert word in post
    assert scripts["%test"][:2] == ["sh", "/usr/share/toolmatrix/arm.check.sh"]
    labels = dict(scripts["%labels"])
    assert labels["io.github.toolmatrix.lock.digest"] == full().digest


@pytest.mark.parametrize("line", ["%post", "  %labels x", "bootstrap: docker", "echo {{ x }}"])
def test_a_line_that_apptainer_would_obey_is_refused(line: str) -> None:
    image = full().images[0]
    with pytest.raises(RenderError):
        made("apptainer", full().replace(images=(image.replace(run=(line,)),)))


def test_development_containers_have_a_gpu_where_they_can() -> None:
    files = made("devcontainer", job(lock("tensorflow")))
    read = {path.split("/")[1]: json.loads(text) for path, text in files.items()}
    assert {name for name, part in read.items() if "hostRequirements" in part} == {"amd", "x86"}
    assert read["arm"]["build"]["options"] == ["--platform=linux/arm64"]


def test_the_user_of_a_development_container_is_one_of_the_image() -> None:
    held = full()
    (container,) = made("devcontainer", held).values()
    user = json.loads(container)["remoteUser"]
    assert f"--shell /bin/bash {user}\n" in made("dockerfile", held)["arm.Dockerfile"]


def test_the_builder_gets_what_the_dockerfiles_copy() -> None:
    held = job(lock("tensorflow"))
    sent = {
        line[1:] for line in words(made("dockerignore", held)[".dockerignore"]) if line[0] == "!"
    }
    copied = {
        word
        for text in made("dockerfile", held).values()
        for line in text.splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
        if not word.startswith("--")
    }
    assert copied <= sent
    assert sent - copied <= {"toolmatrix.lock"}


# What others call things


def test_every_name_of_another_has_a_source() -> None:
    read = yaml.safe_load(Path(of_package("rendering", "outside.yaml")).read_text())
    rows = [part for part in _dicts(read) if "source" in part]
    assert {row["source"] for row in rows} == set(read["sources"])
    for source in read["sources"].values():
        assert set(source) == {"title", "at", "read"}
    assert all("source" in one for runners in read["runners"].values() for one in runners)
    assert all(
        "source" in one
        for one in [
            *read["actions"].values(),
            *read["devices"].values(),
            *(entry for part in ("bazel", "conda", "spack") for entry in read[part]),
            read["engine"],
        ]
    )
