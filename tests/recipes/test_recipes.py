"""Laws of the built-in recipes: what stands in them, and the steps that every release gets on every target."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.amount import sampled
from toolmatrix.errors import RecipeError
from toolmatrix.factbase.index import Index
from toolmatrix.finding import InstallMethod
from toolmatrix.judging import sweep
from toolmatrix.lockfile.model import LockedTarget, environment
from toolmatrix.recipes import fields, model, read
from toolmatrix.recipes.model import Book, BuildStep, Part, Recipe
from toolmatrix.recipes.read import Picker, merged_steps
from toolmatrix.rendering import answer as values
from toolmatrix.report import answer
from toolmatrix.resources import recipes_root
from toolmatrix.solve.resolve import possible

Answering = Callable[[str, str, str, str], LockedTarget | None]

PAGE = Path(__file__).parent.parent.parent / "docs" / "recipes.md"
NAMES = read.names()
FRAMEWORKS = ("tensorflow", "torch", "jaxlib", "onnxruntime", "apache-tvm")
ONCE = ("source", "build", "install", "import")
"""Names of steps that every build of a framework has: whatever the release, one of each."""


@pytest.fixture(scope="module")
def recipes(index: Index) -> dict[str, Recipe]:
    """The built-in recipes by name."""
    return {name: read.recipe(name, index) for name in NAMES}


@pytest.fixture(scope="module")
def book(index: Index) -> Book:
    """The built-in provisions."""
    return read.provisions(index)


@pytest.fixture(scope="module")
def answering(index: Index) -> Answering:
    """`answering(component, version, target, arch)`: what is locked for a build from source, or nothing."""

    def answered(component: str, version: str, target: str, arch: str = "") -> LockedTarget | None:
        way = InstallMethod(target=target, from_="source")
        request = sweep.request(index, (component, version), way)
        found = possible(index, request.replace(archs=(arch,) if arch else ()))
        if found is None:
            return None
        return environment(answer.document(index, found), ()).targets[target]

    return answered


def picker(index: Index, book: Book, target: str, held: LockedTarget) -> Picker:
    """What picks the parts that hold for an answer."""
    components = index.header["components"]
    schemes = {name: part["scheme"] for name, part in components.items()}
    one = Picker(values.releases(target, held), schemes, values.values(target, held))
    distro = one.first(book.distros)
    more = values.of_distro(distro) if distro is not None else {}
    return Picker(one.answer, schemes, {**one.values, **more})


def alone(index: Index, **held: str) -> Picker:
    """What picks the parts that hold where an answer has these releases and no others."""
    schemes = {name: part["scheme"] for name, part in index.header["components"].items()}
    return Picker({name: (version,) for name, version in held.items()}, schemes, held)


def parts(value: object) -> Iterator[Part]:
    """Every statement of a recipe, at any depth."""
    if isinstance(value, model.Part):
        yield value
    if isinstance(value, tuple):
        for item in value:
            yield from parts(item)
    elif isinstance(value, (model.Part, model.Book)):
        for field in value._fields:
            yield from parts(getattr(value, field))


# What stands in a file


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_called_as_its_file_and_says_where_it_is_from(
    name: str, recipes: dict[str, Recipe]
) -> None:
    recipe = recipes[name]
    assert recipe.name == name
    used = {part.source for part in parts(recipe) if part.source}
    assert used == set(recipe.sources), "a source that nothing uses, or none at all"


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_single_commands(name: str, recipes: dict[str, Recipe]) -> None:
    faults = {
        line: fields.shell_fault(line)
        for step in recipes[name].steps
        for line in step.run
        if fields.shell_fault(line)
    }
    assert faults == {}


@pytest.mark.parametrize("name", NAMES)
def test_checksums_are_those_of_releases(
    name: str, recipes: dict[str, Recipe], index: Index
) -> None:
    for part in parts(recipes[name]):
        if not isinstance(part, model.Download) or not part.sha256:
            continue
        known = index.component(part.of).versions
        assert set(part.sha256) <= set(known), part.url
        twice = [sha for sha, count in Counter(part.sha256.values()).items() if count > 1]
        same = [[one for one in part.sha256 if part.sha256[one] == sha] for sha in twice]
        assert same in ([], [["2.15.0", "2.15.0.post1"]]), "two releases are not one archive"


@pytest.mark.parametrize("name", NAMES)
def test_files_are_not_wider_than_a_page(name: str) -> None:
    path = recipes_root() + f"/{name}.yaml"
    with open(path, encoding="utf-8") as file:
        wide = [line for line in file if len(line.rstrip("\n")) > 260]
    assert wide == []


def test_the_page_names_every_recipe() -> None:
    with open(PAGE, encoding="utf-8") as file:
        rows = re.findall(r"^\| `([a-z0-9-]+)` \|", file.read(), re.MULTILINE)
    assert set(NAMES) <= set(rows)


def test_every_framework_that_can_be_built_has_a_recipe(recipes: dict[str, Recipe]) -> None:
    assert {name for recipe in recipes.values() for name in recipe.builds} >= set(FRAMEWORKS)


# What every release gets


def steps(
    recipe: Recipe, index: Index, book: Book, target: str, held: LockedTarget
) -> tuple[BuildStep, ...]:
    """The steps of an answer before neighbours are joined; two values of a variable are refused on the way."""
    found = picker(index, book, target, held).all(recipe.steps)
    assert merged_steps(sorted(found, key=lambda step: model.STAGES.index(step.stage)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("target", sampled(["x86", "arm", "amd"], every=3))
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_release_has_the_steps_it_needs_and_no_two_for_one_thing(
    framework: str,
    target: str,
    recipes: dict[str, Recipe],
    index: Index,
    book: Book,
    answering: Answering,
) -> None:
    (recipe,) = [one for one in recipes.values() if one.builds == (framework,)]
    answered = 0
    for version in index.component(framework).versions:
        held = answering(framework, version, target, "")
        if held is None:
            continue
        answered += 1
        assert set(recipe.needs) <= set(held.components), version
        found = steps(recipe, index, book, target, held)
        names = Counter(step.name for step in found)
        assert [name for name, count in names.items() if count > 1] == [], version
        assert [name for name in ONCE if names[name] != 1] == [], version
        assert {step.stage for step in found} == set(model.STAGES), version
        fetched = [one for step in found for one in step.downloads]
        cloned = [line for step in found for line in step.run if line.startswith("git clone ")]
        assert len(fetched) + len(cloned) == 1, version
    assert answered > 5


@pytest.mark.parametrize("name", ["tensorflow", "pytorch", "jaxlib", "onnxruntime", "tvm"])
def test_tools_of_a_build_are_not_installed_beside_what_was_built(
    name: str, recipes: dict[str, Recipe]
) -> None:
    recipe = recipes[name]
    assert recipe.carries == ("/work/wheels",)
    apart = [step for step in recipe.steps if step.stage in ("package", "verify")]
    assert {step.workdir for step in apart} == {"/work/wheels", "/work"}
    installed = [line for step in apart for line in step.run if "pip install" in line]
    assert installed
    assert all(re.fullmatch(r"python -m pip install \S+\.whl", line) for line in installed)
    made = {line for step in recipe.steps if step not in apart for line in step.run}
    assert any("/work/wheels" in line for line in made)


def test_hip_ships_without_its_sources_and_build_trees(recipes: dict[str, Recipe]) -> None:
    recipe = recipes["hip"]
    assert recipe.carries == ("/opt/hip",)
    apart = [step for step in recipe.steps if step.stage in ("package", "verify")]
    assert {step.name for step in apart} == {"version", "kernel"}
    assert {step.workdir for step in apart} == {"/work"}


def test_every_series_of_gcc_has_one_archive(recipes: dict[str, Recipe], index: Index) -> None:
    for release in index.component("gcc").versions:
        found = alone(index, gcc=release, distro="debian12").all(recipes["gcc"].steps)
        assert {step.stage for step in found} == set(model.STAGES), release
        assert len([file for step in found for file in step.downloads]) == 1, release
        assert max(Counter(step.name for step in found).values()) == 1, release


def test_every_release_of_numpy_that_is_not_refused_has_one_checksum(
    recipes: dict[str, Recipe], index: Index
) -> None:
    checksums = []
    for release in index.component("numpy").versions:
        picked = alone(index, numpy=release)
        if picked.all(recipes["numpy"].refuses):
            continue
        found = picked.all(recipes["numpy"].steps)
        checksum, wheel, install, verify = merged_steps(found)[0].env, *found[1:]
        assert [wheel.name, install.name, verify.name] == ["wheel", "install", "import"], release
        assert len(checksum["SHA256"]) == 64, release
        checksums.append(checksum["SHA256"])
    assert len({*checksums}) == len(checksums) > 50


def test_every_release_of_lightgbm_that_is_not_refused_has_one_checksum(
    recipes: dict[str, Recipe], index: Index
) -> None:
    recipe, checksums = recipes["lightgbm"], []
    archs = {"arch": "sm_80", "archs_cmake": "80-real"}
    for release in index.component("lightgbm").versions:
        for accelerator, given in (("none", {}), ("cuda", {}), ("cuda", archs)):
            picked = alone(index, lightgbm=release, accelerator=accelerator, **given)
            if picked.all(recipe.refuses):
                continue
            found = picked.all(recipe.steps)
            checksum, wheel, install, verify = merged_steps(found)[0].env, *found[1:]
            assert [wheel.name, install.name, verify.name] == ["wheel", "install", "train"], release
            assert ("USE_CUDA" in wheel.run[1]) is (accelerator == "cuda")
            assert ("CMAKE_CUDA_ARCHITECTURES=80-real" in wheel.run[1]) is bool(given)
            checksums.append(checksum["SHA256"])
    # The eight of 4.0 to 4.7: all without and with CUDA, the last with archs of one's own.
    assert len(checksums) == 8 + 8 + 1
    assert len({*checksums}) == 8


@pytest.mark.parametrize("version", ["5.6.1", "5.7.1", "6.0.2", "6.1.2", "6.4.3", "7.1.1"])
def test_hip_is_built_of_runtime_headers_and_hipcc(
    version: str, recipes: dict[str, Recipe], index: Index
) -> None:
    found = alone(index, rocm=version, distro="ubuntu22.04").all(recipes["hip"].steps)
    folders = {file.to for step in found for file in step.downloads}
    own = version < "6.1"
    assert folders == {"/work/clr", "/work/hip"} | ({"/work/hipcc"} if own else set())
    assert [step.name for step in found].count("configure") == 1
    assert ("hipcc" in {step.name for step in found}) is own


def test_hip_says_nothing_of_releases_that_it_does_not_cover(
    recipes: dict[str, Recipe], index: Index
) -> None:
    for version in ("5.5.1", "7.2.0"):
        assert alone(index, rocm=version).all(recipes["hip"].steps) == ()


# What ./configure of TensorFlow is told

ALWAYS = {
    "PYTHON_BIN_PATH": "/opt/venv/bin/python",
    "USE_DEFAULT_PYTHON_LIB_PATH": "1",
    "TF_ENABLE_XLA": "1",
    "TF_DOWNLOAD_CLANG": "0",
    "TF_SET_ANDROID_WORKSPACE": "0",
    "CC_OPT_FLAGS": "-Wno-sign-compare",
}
CONFIGURED = {
    ("1.15.5", "x86", "sm_75"): {
        "TF_NEED_MPI": "0",
        "TF_NEED_OPENCL_SYCL": "0",
        "TF_NEED_TENSORRT": "0",
        "TF_NEED_CUDA": "1",
        "TF_NEED_ROCM": "0",
        "TF_CUDA_CLANG": "0",
        "TF_CUDA_VERSION": "10.0",
        "TF_CUDNN_VERSION": "7.4",
        "TF_CUDA_PATHS": "/usr/local/cuda,/usr,/opt/cudnn",
        "TF_CUDA_COMPUTE_CAPABILITIES": "7.5",
        "GCC_HOST_COMPILER_PATH": "/usr/bin/gcc-7",
    },
    ("2.6.5", "x86", ""): {
        "TF_NEED_TENSORRT": "0",
        "TF_NEED_CUDA": "1",
        "TF_NEED_ROCM": "0",
        "TF_CUDA_CLANG": "0",
        "TF_CUDA_VERSION": "11.2",
        "TF_CUDNN_VERSION": "8.1",
        "TF_CUDA_PATHS": "/usr/local/cuda,/usr,/opt/cudnn",
        "GCC_HOST_COMPILER_PATH": "/usr/bin/gcc-7",
    },
    ("2.6.5", "arm", ""): {"TF_NEED_CUDA": "0", "TF_NEED_ROCM": "0"},
    ("2.6.5", "amd", "gfx90a"): {
        "TF_NEED_CUDA": "0",
        "TF_NEED_ROCM": "1",
        "TF_ROCM_AMDGPU_TARGETS": "gfx90a",
    },
    ("2.13.0", "arm", ""): {
        "TF_NEED_CUDA": "0",
        "TF_NEED_ROCM": "0",
        "TF_NEED_CLANG": "1",
        "CLANG_COMPILER_PATH": "/usr/bin/clang-16",
    },
    ("2.18.0", "x86", "sm_90"): {
        "TF_NEED_CUDA": "1",
        "TF_NEED_ROCM": "0",
        "TF_PYTHON_VERSION": "3.12",
        "HERMETIC_CUDA_VERSION": "12.5.1",
        "HERMETIC_CUDNN_VERSION": "9.3.0",
        "HERMETIC_CUDA_COMPUTE_CAPABILITIES": "9.0",
        "TF_CUDA_CLANG": "1",
        "CLANG_CUDA_COMPILER_PATH": "/usr/bin/clang-17",
        "TF_NEED_CLANG": "1",
        "CLANG_COMPILER_PATH": "/usr/bin/clang-17",
    },
}


@pytest.mark.parametrize(("case", "expected"), CONFIGURED.items(), ids=str)
def test_configure_gets_its_answers(
    case: tuple[str, str, str],
    expected: dict[str, str],
    recipes: dict[str, Recipe],
    index: Index,
    book: Book,
    answering: Answering,
) -> None:
    version, target, arch = case
    held = answering("tensorflow", version, target, arch)
    assert held is not None
    done = merged_steps(steps(recipes["tensorflow"], index, book, target, held))
    (configure,) = [step for step in done if "./configure" in step.run]
    assert configure.env == {**ALWAYS, **expected}


@pytest.mark.parametrize(
    ("version", "target", "lines"),
    [
        ("1.15.5", "x86", ["--config=cuda"]),
        ("2.6.5", "x86", ["--config=v2"]),
        ("2.6.5", "amd", ["--config=v2", "--config=rocm"]),
        (
            *("2.18.0", "x86"),
            [
                *("--config=v2", "--config=cuda_wheel"),
                *("--repo_env=TF_PYTHON_VERSION=3.12", "--repo_env=WHEEL_NAME=tensorflow"),
            ],
        ),
    ],
)
def test_lines_of_bazelrc(
    version: str,
    target: str,
    lines: list[str],
    recipes: dict[str, Recipe],
    index: Index,
    book: Book,
    answering: Answering,
) -> None:
    held = answering("tensorflow", version, target, "")
    assert held is not None
    found = steps(recipes["tensorflow"], index, book, target, held)
    written = [line for step in found for line in step.run if ".tf_configure.bazelrc" in line]
    assert [line.partition("build ")[2].partition("'")[0] for line in written] == lines


@pytest.mark.parametrize(
    ("version", "made"),
    [("2.16.1", "pip_package:build_pip_package"), ("2.17.0", "pip_package:wheel")],
)
def test_the_target_of_the_package_changed_its_name(
    version: str,
    made: str,
    recipes: dict[str, Recipe],
    index: Index,
    book: Book,
    answering: Answering,
) -> None:
    held = answering("tensorflow", version, "arm", "")
    assert held is not None
    found = steps(recipes["tensorflow"], index, book, "arm", held)
    (build,) = [step for step in found if step.name == "build"]
    assert build.run[0].endswith(made)


def test_arm_flags_reach_what_does_not_read_variables(
    recipes: dict[str, Recipe], index: Index, book: Book, answering: Answering
) -> None:
    for name, component, version in (
        ("tensorflow", "tensorflow", "2.6.5"),
        ("jaxlib", "jaxlib", "0.6.2"),
    ):
        held = answering(component, version, "arm", "")
        assert held is not None
        found = steps(recipes[name], index, book, "arm", held)
        flags = [step.env["FLAGS"] for step in found if "FLAGS" in step.env]
        assert flags == ["-fsigned-char -march=armv8-a+crc -frecord-gcc-switches"]


def test_options_say_what_xla_dumps(recipes: dict[str, Recipe]) -> None:
    for name in ("tensorflow", "jaxlib"):
        # Of several with one name the first is that of the newest releases.
        options = {option.name: option.env for option in reversed(recipes[name].options)}
        assert options["xla-dump"]["XLA_FLAGS"].startswith("--xla_dump_to=")


def test_settings_hold_for_the_next_commands_alone() -> None:
    def step(name: str, *run: str, **env: str) -> BuildStep:
        return model.BuildStep(name=name, stage="build", run=run, env=env)

    done = merged_steps(
        [step("one", A="1"), step("two", B="2"), step("three", "make", C="3"), step("four", "test")]
    )
    assert [(one.name, one.env) for one in done] == [
        ("three", {"A": "1", "B": "2", "C": "3"}),
        ("four", {}),
    ]


def test_neighbours_without_variables_are_joined() -> None:
    def step(name: str, run: str, workdir: str = "") -> BuildStep:
        return model.BuildStep(name=name, stage="build", run=(run,), workdir=workdir)

    done = merged_steps([step("one", "a"), step("two", "b"), step("three", "c", "/work")])
    assert [(one.name, one.run) for one in done] == [("one, two", ("a", "b")), ("three", ("c",))]


def test_two_values_of_a_variable_are_refused() -> None:
    def step(name: str, *run: str, **env: str) -> BuildStep:
        return model.BuildStep(name=name, stage="build", run=run, env=env)

    with pytest.raises(RecipeError, match="two steps of build set A"):
        merged_steps([step("one", A="1"), step("two", "make", A="2")])


@pytest.mark.parametrize(
    ("distro", "clang", "whole", "polly"),
    [
        ("debian12", "14", True, True),
        # llvm-config of these names libraries of Polly, which no package has.
        ("debian12", "15", False, False),
        ("debian12", "16", True, True),
        ("debian11", "13", True, False),
        ("ubuntu22.04", "13", True, False),
        ("ubuntu22.04", "14", False, False),
        ("ubuntu22.04", "15", False, False),
        ("ubuntu22.04", "16", True, True),
        ("ubuntu24.04", "15", True, True),
    ],
)
def test_llvm_is_linked_whole_into_tvm_where_its_parts_are_packaged(
    distro: str, clang: str, whole: bool, polly: bool, recipes: dict[str, Recipe], index: Index
) -> None:
    picked = alone(
        index,
        distro=distro,
        clang=clang,
        accelerator="none",
        python="3.11",
        **{"apache-tvm": "0.19.0"},
    )
    found = picked.all(recipes["tvm"].steps)
    (linked,) = [step for step in found if step.name == "config-llvm"]
    assert ("--link-static" in linked.run[0]) is whole
    assert linked.runtime == (() if whole else (f"libllvm{clang}",))
    packages = {name for step in found for name in step.packages}
    assert (f"libpolly-{clang}-dev" in packages) is polly
    assert any("libxml2" in name for step in found for name in step.runtime)
