"""`toolmatrix render`: what is written where, what is remembered, and every refusal with nothing written."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.rendering.jobs import FIXTURES
from toolmatrix.cli.main import main
from toolmatrix.command import COMMANDS
from toolmatrix.errors import OutputError
from toolmatrix.lockfile import lock_file
from toolmatrix.outputs import replace_files
from toolmatrix.rendering import formats
from toolmatrix.rendering.pinning import PINNED_BY

DEBIAN = ("gcc", "python", "--distro", "debian12", "--target", "x86,arm", "--accelerator", "none")


def names(folder: Path) -> list[str]:
    """The files of a directory."""
    return sorted(path.name for path in folder.iterdir())


def test_a_request_becomes_files(real: Cli, here: Path) -> None:
    outcome = real("render", *DEBIAN, "--format", "dockerfile,dockerignore", "--output", "out")
    written = [
        *(".dockerignore", "arm.Dockerfile", "arm.check.sh"),
        *("toolmatrix.lock", "x86.Dockerfile", "x86.check.sh"),
    ]
    assert outcome.code == 0
    assert outcome.out == "".join(f"wrote out/{name}\n" for name in written)
    assert outcome.err == (
        "unpinned: apt-get install gcc-12 g++-12 make python3.11 python3.11-dev python3.11-venv python3-distutils, "
        "debian:12, docker/dockerfile:1; `--strict` refuses these\nhint: `toolmatrix build out` builds them\n"
    )
    assert names(here / "out") == sorted(written)


def test_twice_gives_the_same_bytes(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "one")
    real("render", *DEBIAN, "--output", "two")
    one, two = here / "one", here / "two"
    texts = [
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in (one, two)
    ]
    assert texts[0] == texts[1]
    again = real("render", *DEBIAN, "--output", "one")
    assert {line.split()[0] for line in again.out.splitlines()} == {"unchanged"}


def test_a_lock_gives_what_its_request_gives(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "one")
    real("render", "--lock", "one/toolmatrix.lock", "--output", "two")
    assert (here / "one/x86.Dockerfile").read_text() == (here / "two/x86.Dockerfile").read_text()


def test_a_lock_alone_is_rendered_beside_itself(real: Cli, here: Path) -> None:
    real("lock", *DEBIAN, "--recipe", "toolchain")
    assert real("render", "--format", "dockerfile").code == 0
    assert {"arm.Dockerfile", "toolmatrix.lock", "x86.Dockerfile"} <= {*names(here)}
    assert real("render", "--check").out == ". is up to date: 5 files\n"
    (here / "of").mkdir()
    (here / "toolmatrix.lock").rename(here / "of" / "toolmatrix.lock")
    real("render", "--lock", "of/toolmatrix.lock")
    assert "x86.Dockerfile" in names(here / "of")


def test_a_directory_remembers_how_it_was_rendered(real: Cli, here: Path) -> None:
    base = ("--base", "debian:12=debian@sha256:" + "0" * 64)
    said = ("--dialect", "classic", "--format", "dockerfile", *base)
    real("render", *DEBIAN, *said, "--output", "out")
    before = (here / "out/arm.Dockerfile").read_text()
    assert real("render", "--check", "--output", "out").out == "out is up to date: 5 files\n"
    real("render", "--output", "out")
    assert (here / "out/arm.Dockerfile").read_text() == before
    assert "FROM debian@sha256:" in before


def test_a_directory_remembers_its_mirrors(real: Cli, here: Path) -> None:
    mirror = ("--mirror", "https://github.com=https://mirror.invalid/gh")
    said = ("render", "bazel==6.1.0", *DEBIAN, "--target", "x86", *mirror, "--output", "out")
    assert real(*said).code == 0
    assert real("render", "--check", "--output", "out").code == 0
    text = (here / "out/x86.Dockerfile").read_text()
    assert re.search(
        r"^ADD --link .* https://mirror.invalid/gh/bazelbuild/bazel/releases/", text, re.MULTILINE
    )
    assert "https://github.com" not in text


def test_a_directory_remembers_the_day_of_its_packages(real: Cli, here: Path) -> None:
    said = ("--snapshot", "2026-11-20", "--format", "dockerfile")
    assert real("render", *DEBIAN, *said, "--output", "out").code == 0
    assert lock_file.read("out/toolmatrix.lock").render["snapshot"] == "2026-11-20"
    before = (here / "out/x86.Dockerfile").read_text()
    assert "/archive/debian/20261120T000000Z/ bookworm main" in before
    assert real("render", "--output", "out").code == 0
    assert (here / "out/x86.Dockerfile").read_text() == before


@pytest.mark.parametrize(
    ("epoch", "code"), [("1795132800", 0), ("1795132799", 2), ("1795219200", 0)]
)
def test_packages_are_of_no_later_day_than_the_build(real: Cli, epoch: str, code: int) -> None:
    words = ("render", *DEBIAN, "--snapshot", "2026-11-20", "--format", "dockerfile", "--stdout")
    outcome = real(*words, SOURCE_DATE_EPOCH=epoch)
    assert outcome.code == code
    if code:
        assert outcome.err == (
            "error[TM901]: `--snapshot 2026-11-20` is later than today\n"
            "  expected: 2026-11-19 at the latest: the clock, or SOURCE_DATE_EPOCH where that is set\n"
            "  found: `2026-11-20`\n"
        )


def test_each_thing_that_nothing_pins_is_named(real: Cli) -> None:
    """However many they are: a text of an error that is long is cut in the middle."""
    words = ("torch==2.9.1", "--recipe", "pytorch", "--accelerator", "none", "--distro", "debian12")
    outcome = real("render", *words, "--snapshot", "2026-11-20", "--strict", "--stdout")
    assert outcome.code == 1
    assert outcome.err.splitlines() == [
        "error[TM603]: some inputs are not pinned",
        "  expected: images by digest, packages of a snapshot, files and Python packages by checksum, git by commit",
        "  found: x86: debian:12",
        "  found: x86: docker/dockerfile:1",
        "  found: x86: pip install numpy==2.3.5",
        "  found: x86: pip install -r requirements-build.txt -r requirements.txt",
        "  found: x86: pip install torch-*.whl",
        "help: " + "; ".join(PINNED_BY[kind] for kind in ("image", "frontend", "python", "step")),
    ]


@pytest.mark.parametrize(
    ("words", "pip", "distutils"),
    [
        (("tensorflow==2.6.5", "--from", "wheel", "--distro", "ubuntu20.04"), "25.0.1", 2),
        (("tensorflow==2.6.5", "--recipe", "tensorflow", "--distro", "ubuntu20.04"), "25.0.1", 2),
        (("tensorflow==1.15.5", "--from", "wheel", "--distro", "ubuntu18.04"), "24.0", 2),
        (("tensorflow==2.15", "--from", "wheel", "--distro", "debian12"), "", 2),
        (("tensorflow==2.16", "--from", "wheel", "--distro", "ubuntu24.04"), "", 0),
    ],
)
def test_an_installer_that_resolves_comes_first_and_all_of_python_runs(
    real: Cli, words: tuple[str, ...], pip: str, distutils: int
) -> None:
    cpu = ("--accelerator", "none", "--format", "dockerfile", "--stdout")
    text = real("render", *words, *cpu).out
    first = next(line for line in text.splitlines() if "pip install" in line)
    assert first.startswith(
        f"printf '%s\\n' 'pip=={pip} --hash=sha256:" if pip else "python -m pip"
    )
    installed = [line for line in text.splitlines() if "apt-get install" in line]
    assert sum("python3-distutils" in line for line in installed) == distutils
    assert len(installed) == 2


@pytest.mark.parametrize("way", [("--recipe", "tensorflow"), ("--from", "wheel")])
def test_what_a_requirement_of_a_package_requires_is_pinned_as_well(
    real: Cli, way: tuple[str, ...]
) -> None:
    asked = ("tensorflow==1.15.3", *way, "--accelerator", "none")
    text = real("render", *asked, "--format", "dockerfile", "--stdout").out
    assert " h5py==2.10.0" in text


# By release: the folder of the package, and the version of its bindings that no history tells (apache/tvm-ffi, tags).
TVM = {
    "0.21.0": ("/work/tvm/python", ""),
    "0.22.0": ("/work/tvm", ""),
    "0.23.0": ("/work/tvm", "0.1.8.post2+gc78e8b4e"),
    "0.24.0": ("/work/tvm", "0.1.11"),
    "0.25.0.post1": ("/work/tvm", "0.1.12+g59da4c0b"),
    "0.26.0": ("/work/tvm", "0.1.13.post2"),
}


@pytest.mark.parametrize("release", TVM)
def test_tvm_is_built_as_its_tree_wants(real: Cli, release: str) -> None:
    folder, bindings = TVM[release]
    asked = (f"apache-tvm=={release}", "--recipe", "tvm", "--accelerator", "none")
    text = real("render", *asked, "--format", "dockerfile", "--stdout").out
    before, _, step = text.partition(f"# build: {'wheel' if release < '0.22' else 'build'}\n")
    wheel, _, _ = step.partition("EOF\n\n")
    assert f"WORKDIR {folder}\n" in wheel
    assert ("cmake --build" in before) is (release < "0.22")
    # A build apart would take the newest of what it requires.
    assert "--no-build-isolation --no-deps" in wheel
    named = dict(re.findall(r"SETUPTOOLS_SCM_PRETEND_VERSION_FOR_(\w+)='?([^\s']+)", wheel))
    own = {"APACHE_TVM": release} if release >= "0.25" else {}
    assert named == own | ({"APACHE_TVM_FFI": bindings} if bindings else {})


@pytest.mark.parametrize(("release", "clang"), [("0.23.0", 22), ("0.24.0", 23), ("0.26.0", 23)])
def test_tvm_takes_no_llvm_that_it_does_not_compile_with(
    real: Cli, release: str, clang: int
) -> None:
    asked = ("--recipe", "tvm", "--accelerator", "none", "--json")
    refused = real("resolve", f"apache-tvm=={release}", f"clang=={clang}", *asked)
    assert refused.code == 1
    # Nor the newest of today where nobody asks: what the project itself builds with goes first.
    found = real("resolve", f"apache-tvm=={release}", *asked).json()["targets"]["x86"]
    assert found["components"]["clang"]["evidence"] == "tested"


def test_no_answer_is_told_whatever_format_was_asked_for(real: Cli) -> None:
    words = ("gcc", "python", "--distro", "rockylinux9", "--format", "dockerfile", "--stdout")
    outcome = real("render", *words)
    assert outcome.code == 1
    assert outcome.out.startswith("no\n\n1. hard  Because python can be installed only with")


def test_an_edit_by_hand_is_a_difference(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "out")
    file = here / "out/x86.Dockerfile"
    text = file.read_text()
    file.write_text(text.replace("gcc-12", "gcc-11", 1))
    outcome = real("render", "--check", "--output", "out")
    assert outcome.code == 1
    assert outcome.out.startswith("--- out/x86.Dockerfile\n+++ out/x86.Dockerfile\n@@")
    assert [line[0] for line in outcome.out.splitlines() if "install -y" in line] == ["-", "+"]
    assert re.fullmatch(
        r"1 of \d+ files would change; `toolmatrix render --force` updates them\n", outcome.err
    )
    (here / "out/x86.check.sh").unlink()
    assert "--- /dev/null\n+++ out/x86.check.sh\n" in real("render", "--check", "-o", "out").out
    real("render", "--output", "out", "--force")
    assert file.read_text() == text


EVERY_FILE = (
    *(".bazelrc", ".devcontainer/arm/devcontainer.json", ".dockerignore"),
    *(".github/workflows/toolmatrix.yml", "arm.Dockerfile", "arm.check.sh", "arm.def"),
    *("arm.constraints.txt", "arm.env.sh", "arm.environment.yml", "docker-bake.json"),
    *("toolmatrix.gitlab-ci.yml", "toolmatrix.lock", "arm.cdx.json", "arm.spack.yaml"),
)
FULL = ("numpy", *DEBIAN)
"""A request that every format has something to say of."""


def written(folder: Path) -> dict[str, bytes]:
    """The files of a directory with what they hold."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def every(cache: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Every file of a directory in which every format wrote something."""
    folder = tmp_path_factory.mktemp("every")
    made = main(
        ("render", *FULL, "--output", str(folder)),
        {"XDG_CACHE_HOME": cache},
        io.StringIO(),
        io.StringIO(),
        io.StringIO(),
    )
    assert made == 0
    assert set(EVERY_FILE) <= set(written(folder))
    return written(folder)


def restored(here: Path, every: dict[str, bytes]) -> Path:
    """The directory of every file, written again."""
    for name, data in every.items():
        path = here / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return here / "out"


@pytest.mark.parametrize("name", EVERY_FILE)
def test_a_file_that_was_edited_by_hand_is_kept(
    real: Cli, here: Path, every: dict[str, bytes], name: str
) -> None:
    out = restored(here, every)
    with (out / name).open("a") as file:
        file.write("\n")
    before = written(out)
    outcome = real("render", "--output", "out")
    assert (outcome.code, outcome.out) == (2, "")
    if name == "toolmatrix.lock":
        assert outcome.err.startswith("error[TM904]: the lock was edited after it was written\n")
    else:
        assert outcome.err == (
            "error[TM905]: an existing file was edited by hand since toolmatrix wrote it\n"
            f"  --> out/{name}\n"
            "help: `--check` shows the edit, `--force` drops it, a recipe of your own keeps it;"
            " nothing was written\n"
        )
    assert written(out) == before
    assert real("render", *FULL, "--output", "out").code == 2
    assert written(out) == before
    assert real("render", *FULL, "--output", "out", "--force").code == 0
    assert written(out) == every


@pytest.mark.parametrize("name", [name for name in EVERY_FILE if not name.endswith(".lock")])
def test_a_file_that_only_speaks_of_toolmatrix_is_kept(real: Cli, here: Path, name: str) -> None:
    file = here / "out" / name
    file.parent.mkdir(parents=True)
    mine = f"# Written by hand and not by toolmatrix, see file sha256:{64 * '0'}.\nFROM scratch\n"
    file.write_text(mine.replace(64 * "0", "none") if name == "arm.def" else mine)
    before = written(here / "out")
    outcome = real("render", *FULL, "--output", "out")
    assert (outcome.code, outcome.out) == (2, "")
    assert f"  --> out/{name}\n" in outcome.err
    assert outcome.err.count("error[") == 1
    assert written(here / "out") == before


def test_several_files_of_others_are_one_error(real: Cli, here: Path) -> None:
    (here / "out").mkdir()
    for name in ("arm.Dockerfile", "x86.Dockerfile", "toolmatrix.lock"):
        (here / "out" / name).write_text("# by hand, not by toolmatrix\n")
    outcome = real("render", *DEBIAN, "--output", "out")
    assert outcome.err == (
        "error[TM905]: an existing file was not written by toolmatrix\n"
        "  --> out/arm.Dockerfile\n"
        "  found: out/toolmatrix.lock, out/x86.Dockerfile\n"
        "help: name another directory with `--output`, or replace the file with `--force`; nothing was written\n"
    )
    assert len(names(here / "out")) == 3
    assert real("render", *DEBIAN, "--output", "out", "--force").code == 0


def test_a_lock_that_was_edited_by_hand_is_kept(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "out")
    lock = here / "out/toolmatrix.lock"
    lock.write_text(lock.read_text().replace("debian12", "debian11"))
    before = written(here / "out")
    outcome = real("render", *DEBIAN, "--output", "out")
    assert outcome.err.startswith(
        "error[TM905]: an existing file was edited by hand since toolmatrix wrote it\n"
        "  --> out/toolmatrix.lock\n"
    )
    assert written(here / "out") == before


def test_a_file_with_line_ends_that_git_converted_is_replaced(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "out")
    before = written(here / "out")
    file = here / "out/arm.Dockerfile"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert real("render", "--output", "out").code == 0
    assert written(here / "out") == before


def test_where_one_file_cannot_be_put_in_place_all_are_as_before(here: Path) -> None:
    (here / "a").write_text("mine")
    (here / "b.d").mkdir()
    with pytest.raises(OutputError):
        replace_files({"a": "new", "c": "new", "b.d": "new", "d": "new"})
    assert {path.name for path in here.iterdir()} == {"a", "b.d"}
    assert (here / "a").read_text() == "mine"


def test_options_of_an_earlier_render_stand_in_the_lock(real: Cli, here: Path) -> None:
    said = ("--dialect", "classic", "--format", "dockerfile", "--syntax-line", "off")
    real("render", *DEBIAN, *said, "--output", "out")
    assert (
        "\n[render]\n"
        'dialect = "classic"\n'
        'format = "dockerfile"\n'
        'recipe = "toolchain"\n'
        'syntax-line = "off"\n\n'
    ) in (here / "out/toolmatrix.lock").read_text()
    before = written(here / "out")
    for file in (here / "out").glob("*.Dockerfile"):
        file.unlink()
    real("render", "--output", "out")
    assert written(here / "out") == before
    real("render", "--lock", "out/toolmatrix.lock", "--output", "new")
    assert written(here / "new") == before
    real("render", "--output", "out", "--dialect", "modern")
    assert "dialect" not in (here / "out/toolmatrix.lock").read_text()


def test_a_lock_written_anew_keeps_how_its_directory_is_rendered(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--dialect", "classic", "--output", "out")
    path = here / "out/toolmatrix.lock"
    before = path.read_text()
    lock = ("lock", "--lock", "out/toolmatrix.lock")
    assert real(*lock).out == "unchanged out/toolmatrix.lock: 2 targets, 8 components\n"
    assert real(*lock, "--check").code == 0
    assert path.read_text() == before
    assert real(*lock, *DEBIAN, "--with", "python==3.11").code == 0
    assert 'dialect = "classic"' in path.read_text()
    digest = lock_file.digest(lock_file.read(str(path)))
    assert digest == lock_file.digest(lock_file.read(str(path)).replace(render={}))


def test_a_lock_of_elsewhere_is_rendered_as_its_directory_was(real: Cli, here: Path) -> None:
    real("lock", *DEBIAN, "--recipe", "toolchain")
    real("render", "--dialect", "classic", "--output", "out")
    before = written(here / "out")
    real("render", "--lock", "toolmatrix.lock", "--output", "out")
    assert written(here / "out") == before


def test_the_path_of_a_recipe_is_found_from_the_lock(real: Cli, here: Path) -> None:
    (here / "mine.yaml").write_text(
        "schema: toolmatrix.recipe/1\nname: mine\nabout: tools\nneeds: [base-image, distro]\n"
    )
    real("render", *DEBIAN, "--recipe", "mine.yaml", "--output", "out")
    assert '\nrecipe = "./../mine.yaml"\n' in (here / "out/toolmatrix.lock").read_text()
    assert real("render", "--check", "--output", "out").code == 0
    assert real("render", "--check", "--output", str(here / "out")).code == 0


@pytest.mark.parametrize(
    ("said", "name", "expected"),
    [
        ('dialect = "baroque"', "dialect", "one of modern, classic\n  found: `baroque`"),
        ('dialect = ["classic"]', "dialect", "a string"),
        ('output = "/"', "output", "a key known to this toolmatrix"),
    ],
)
def test_options_in_a_lock_that_nobody_knows_are_refused(
    real: Cli, here: Path, said: str, name: str, expected: str
) -> None:
    real("render", *DEBIAN, "--dialect", "classic", "--output", "out")
    reseal(here / "out/toolmatrix.lock", 'dialect = "classic"', said)
    outcome = real("render", "--output", "out")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        f"error[TM904]: the lock has an invalid `render.{name}`\n"
        "  --> out/toolmatrix.lock:9\n"
        f"  expected: {expected}\n"
        "help: use the toolmatrix version that wrote it, or write it again with `toolmatrix lock`\n"
    )


def reseal(path: Path, old: str, new: str) -> None:
    """Let a lock say something else under a seal that holds."""
    body = path.read_text().partition("# seal ")[0]
    assert old in body
    path.write_text(lock_file.sealed(body.replace(old, new)))


def test_stdout_takes_the_files_and_nothing_is_written(real: Cli, here: Path) -> None:
    outcome = real("render", *DEBIAN, "--format", "dockerignore", "--stdout")
    assert outcome.code == 0
    assert "!x86.check.sh\n" in outcome.out
    assert "==>" not in outcome.out
    several = real("render", *DEBIAN, "--format", "dockerfile", "--stdout").out
    assert several.startswith("==> arm.Dockerfile <==\n")
    assert names(here) == []


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ((), "# syntax=docker/dockerfile:1"),
        (("--syntax-line", "on"), "# syntax=docker/dockerfile:1"),
        (("--syntax-line", "off"), "# check=error=true"),
        (
            ("--syntax-line", "mirror.example.org/dockerfile:1"),
            "# syntax=mirror.example.org/dockerfile:1",
        ),
        (("--dialect", "classic"), "# toolchain for x86"),
        (("--dialect", "classic", "--syntax-line", "on"), "# syntax=docker/dockerfile:1"),
    ],
)
def test_the_first_line(real: Cli, here: Path, said: tuple[str, ...], first: str) -> None:
    real("render", *DEBIAN, *said, "--output", "out")
    assert (here / "out/x86.Dockerfile").read_text().startswith(first)


def test_a_target_without_an_answer_is_excluded_where_others_remain(real: Cli, here: Path) -> None:
    request = ("rocm==5.2.3", "gcc", "--distro", "debian12", "--accelerator", "rocm")
    outcome = real("render", *request, "--target", "amd,arm", "--output", "out")
    # It was named, and there is none: that others were written is no yes.
    assert outcome.code == 1
    assert outcome.err.startswith("excluded arm: it has no answer; `toolmatrix resolve rocm==5.2.3")
    assert (here / "out/amd.Dockerfile").exists()
    assert not (here / "out/arm.Dockerfile").exists()


@pytest.mark.parametrize(
    ("line", "code", "said", "installed"),
    [
        # Where nothing is known of a target it is named, with the code of that.
        (
            "vllm==0.33.0 --target x86,arm,amd",
            4,
            "excluded amd: no fact says",
            {"x86": "vllm==", "arm": "vllm=="},
        ),
        (
            "cudnn --target x86,amd",
            1,
            "excluded amd: it has no answer",
            {"x86": "FROM nvidia/cuda"},
        ),
        # As `resolve` means it: from source, where a recipe builds it.
        (
            "tensorflow==2.6.5",
            0,
            "note: the recipe `tensorflow` builds tensorflow from source; `--from wheel` installs",
            {"x86": "pip install tensorflow-*.whl"},
        ),
        (
            "jax",
            0,
            "note: no recipe builds jax from source, so wheels are inst",
            {"x86": "jax[cuda13]=="},
        ),
        ("jax --from source", 1, "error[TM604]: no recipe builds jax", {}),
        # No fact ties a Python to it, and without one pip would not run.
        ("wrapt", 0, "", {"x86": "pip install wrapt=="}),
        ("tensorflow==2.6.5 --recipe toolchain", 0, "", {"x86": "bazel"}),
    ],
)
def test_an_image_holds_what_was_requested(
    real: Cli, here: Path, line: str, code: int, said: str, installed: dict[str, str]
) -> None:
    outcome = real("render", *line.split(), "--format", "dockerfile", "--output", "out")
    assert outcome.code == code
    assert said in outcome.err
    found = {path.name: path.read_text() for path in here.glob("out/*.Dockerfile")}
    assert sorted(found) == [f"{target}.Dockerfile" for target in sorted(installed)]
    for target, text in installed.items():
        assert text in found[f"{target}.Dockerfile"]


def test_an_image_of_tools_says_what_it_leaves_out(real: Cli, here: Path) -> None:
    real("render", "tensorflow==2.6.5", "--recipe", "toolchain", "--output", "out")
    check = (here / "out/x86.check.sh").read_text()
    assert re.search(r"none tensorflow 'not here' 2\.6\.5 'to be built with these tools'", check)
    assert "%s not tried" in check


@pytest.mark.parametrize("line", ["numpy", "gcc", "transformers --from wheel", "flash-attn", "jax"])
def test_a_lock_without_a_recipe_can_be_rendered(real: Cli, here: Path, line: str) -> None:
    plain = real("resolve", *line.split(), "--json").json()["targets"]["x86"]["components"]
    assert real("lock", *line.split()).code == 0
    assert real("lock", *line.split(), "--check").code == 0
    assert real("render", "--output", "out").code == 0
    # What was requested is as new as it would be without an image.
    held = lock_file.read(str(here / "toolmatrix.lock")).targets["x86"].components
    name = line.split(maxsplit=1)[0]
    assert held[name].version == plain[name]["version"]


def test_a_lock_that_makes_no_image_says_so(real: Cli) -> None:
    assert (
        "`toolmatrix render` cannot make an image from this answer: x86: "
        in real("lock", "cuda").err
    )
    assert real("render", "--output", "out").code == 1


def test_a_refusal_is_printed_as_resolve_does(real: Cli, here: Path) -> None:
    request = ("tensorflow==2.6.5", "python==3.12", "--target", "x86")
    outcome = real("render", *request, "--output", "out")
    assert outcome.code == 1
    assert outcome.err.startswith("no answer, nothing was written\n")
    assert outcome.out.startswith("no")
    assert names(here) == []


def test_every_format_is_known_to_the_frame(real: Cli) -> None:
    assert COMMANDS["render"].all_formats == ("text", *formats.known())
    listed = real("render", "--list-formats").out.splitlines()
    assert [line.split()[0] for line in listed] == list(formats.known())


@pytest.mark.parametrize(
    ("old", "new", "place", "expected", "found"),
    [
        (
            '\ngcc = { version = "12"',
            '\ngcc = { version = "abc"',
            "components.gcc",
            "a release of gcc that the matrix knows",
            "abc",
        ),
        ("\ngcc = {", "\nicc = {", "components.icc", "a component of the matrix", "icc"),
        (
            'accelerator = "none"',
            'accelerator = "tpu"',
            "accelerator",
            "a release of accelerator that the matrix knows",
            "tpu",
        ),
        (
            'from = "source"',
            'from = "heaven"',
            "from",
            "a release of from that the matrix knows",
            "heaven",
        ),
        ("targets.arm", "targets.vax", "", "a target of the matrix", "vax"),
    ],
)
def test_a_resealed_lock_with_what_the_matrix_does_not_know_is_refused_with_its_line(
    real: Cli, here: Path, old: str, new: str, place: str, expected: str, found: str
) -> None:
    real("render", *DEBIAN, "--output", "out")
    lock = here / "out/toolmatrix.lock"
    reseal(lock, old, new)
    outcome = real("render", "--lock", "out/toolmatrix.lock", "--output", "new")
    keys = f"environments.default.targets.{'vax' if found == 'vax' else 'arm'}"
    line = place_of(lock.read_text(), keys, new if place else f"[{keys}]")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        f"error[TM904]: the lock has an invalid `{keys}{'.' if place else ''}{place}`\n"
        f"  --> out/toolmatrix.lock:{line}\n"
        f"  expected: {expected}\n"
        f"  found: `{found}`\n"
        "help: use the toolmatrix version that wrote it, or write it again with `toolmatrix lock`\n"
    )
    assert not (here / "new").exists()


HELD = (*DEBIAN, "--with", "base-image")


def of_another_matrix(real: Cli, here: Path, old: str = "", new: str = "") -> str:
    """A lock as an earlier matrix made it, which may have known what this one does not; what is said of it."""
    real("lock", *HELD)
    path = here / "toolmatrix.lock"
    held = lock_file.read("toolmatrix.lock")
    reseal(path, f'"{held.matrix_date}"', '"2025-01-02"')
    reseal(path, f'"{held.matrix_digest}"', '"sha256:0"')
    reseal(path, old, new)
    days = f"2025-01-02, this is {held.matrix_date}"
    return f"the lock was made with another matrix ({days}); `toolmatrix lock --check` shows the changes\n"


def test_a_lock_of_another_matrix_is_rendered_from_what_it_holds(real: Cli, here: Path) -> None:
    real("render", *HELD, "--output", "own", "--format", "dockerfile")
    said = of_another_matrix(real, here)
    outcome = real("render", "--output", "out", "--format", "dockerfile")
    assert outcome.code == 0
    assert outcome.err.startswith(f"{said}unpinned: ")
    ours, theirs = (
        (here / name / "arm.Dockerfile").read_text().splitlines() for name in ("own", "out")
    )
    # Only the lines that name lock, matrix and the file itself.
    moved = [(one, other) for one, other in zip(ours, theirs, strict=True) if one != other]
    assert all("sha256:" in line for pair in moved for line in pair)
    assert [one.split()[1] for one, _ in moved if one[0] == "#"] == ["lock", "matrix", "file"]


def test_what_this_matrix_does_not_know_of_it_is_said(real: Cli, here: Path) -> None:
    python = '\npython = { version = "3.11'
    said = of_another_matrix(real, here, f'{python}"', f'{python}.99"')
    outcome = real("render", "--output", "out", "--format", "env")
    assert outcome.code == 0
    assert outcome.err.startswith(f"{said}this matrix does not know python 3.11.99\n")


def test_what_no_matrix_could_know_is_refused_with_its_line(real: Cli, here: Path) -> None:
    gcc = "\ngcc = { version = "
    of_another_matrix(real, here, f'{gcc}"12"', f'{gcc}"$(id)"')
    outcome = real("render", "--output", "out")
    keys = "environments.default.targets.arm.components"
    line = place_of((here / "toolmatrix.lock").read_text(), keys, "gcc = {")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(
        f"error[TM904]: the lock has an invalid `{keys}.gcc`\n  --> toolmatrix.lock:{line}\n"
    )


def place_of(text: str, below: str, words: str) -> int:
    """The first line below a header that has these words."""
    start = text.index(f"[{below}]\n")
    return text[: text.index(words.strip(), start)].count("\n") + 1


def test_every_release_of_a_lock_is_looked_up(real: Cli, here: Path) -> None:
    """In any component another word than a release of it is an error with a line, never an internal one."""
    request = ("tensorflow==2.17.0", "cuda==12.4.1", "--distro", "ubuntu22.04", "--arch", "sm_86")
    real("render", *request, "--output", "out")
    text = (here / "out/toolmatrix.lock").read_text()
    said = re.findall(r'^[\w-]+ = \{ (?:version|floor) = "[^"]*"', text, re.MULTILINE)
    assert len(said) > 12
    for one in said:
        for word in ("abc", "", "99.9 || 1", "$(id)"):
            lock = here / "odd.lock"
            lock.write_text(text)
            reseal(lock, one, f'{one.partition(chr(34))[0]}"{word}"')
            outcome = real("render", "--lock", "odd.lock", "--output", "new")
            assert outcome.code == 2, (one, word)
            assert outcome.err.startswith("error[TM904]: the lock has an invalid `env")
            assert re.search(r"\n  --> odd\.lock:[1-9]\d*\n", outcome.err)
    assert not (here / "new").exists()


LOCK = ("--lock", str(FIXTURES / "debian.lock"))


@pytest.mark.parametrize(
    ("said", "code", "error"),
    [
        (DEBIAN, 2, "error[TM901]: no output directory\n"),
        ((*DEBIAN, "--stdout", "--check"), 2, "error[TM901]: `--stdout` and `--check` contradict"),
        (
            (*DEBIAN, "-o", "out", "--recipe", "none"),
            2,
            "error[TM601]: unknown recipe `none`\n",
        ),
        (
            (*DEBIAN, "-o", "out", "--recipe", "./none.yaml"),
            2,
            "error[TM601]: the recipe cannot be read\n",
        ),
        (
            (*DEBIAN, "-o", "out", "--base", "debian:12"),
            2,
            "error[TM901]: `--base debian:12` cannot be read\n",
        ),
        (
            (*DEBIAN, "-o", "out", "--base", "debian:12=scratch"),
            2,
            (
                "error[TM901]: `--base debian:12=scratch`: nothing can be installed in an image without a"
                " shell\n  expected: `--base IMAGE=STAND-IN`, the stand-in with the distribution of the"
                " image\n  found: `scratch`\n"
            ),
        ),
        (
            (*DEBIAN, "-o", "out", "--option", ""),
            2,
            (
                "error[TM901]: bad value for `--option`\n  expected: a value, as in `--option NAME`\n"
                "  found: nothing\n"
            ),
        ),
        (
            (*DEBIAN, "-o", "out", "--base", "debian:21=local/debian"),
            2,
            "error[TM901]: no file uses the base image `debian:21`\n",
        ),
        (
            (*DEBIAN, "-o", "out", "--base", "debian:12=a b"),
            2,
            "error[TM602]: a template cannot use this value\n",
        ),
        (
            (*DEBIAN, "-o", "out", "--syntax-line", "x\nRUN id"),
            2,
            "error[TM602]: a template cannot use this value\n",
        ),
        (
            (*DEBIAN, "-o", "out", "--option", "debug"),
            2,
            "error[TM602]: the recipe `toolchain` has no option `debug`\n",
        ),
        (
            (*DEBIAN, "-o", "out", "--snapshot", "20261120"),
            2,
            "error[TM901]: `--snapshot 20261120` is not a time\n",
        ),
        ((*DEBIAN, "-o", "out", "--strict"), 1, "error[TM603]: some inputs are not pinned"),
        (("-o", "out"), 2, "error[TM904]: there is no lock\n"),
        ((*DEBIAN, "-o", "out", "--format", "dockerfil"), 2, "error[TM901]: bad value for"),
        ((*DEBIAN, "-o", "out", "--format", "html"), 2, "error[TM901]: `render` has no format"),
        (("gccc", "-o", "out"), 3, "error[TM110]: unknown component `gccc`\n"),
    ],
)
def test_bad_input_is_one_error_and_nothing_is_written(
    real: Cli, here: Path, said: tuple[str, ...], code: int, error: str
) -> None:
    outcome = real("render", *said)
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith(error)
    assert outcome.err.count("error[") == 1
    assert names(here) == []


def test_a_lock_for_another_target_is_told(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "out")
    outcome = real("render", "--lock", "out/toolmatrix.lock", "--target", "amd", "--output", "new")
    assert outcome.code == 1
    assert outcome.err.startswith(
        "error[TM604]: the recipe `toolchain` cannot make an image from this lock"
    )
    assert "amd: the lock has no answer for it" in outcome.err
    assert not (here / "new").exists()


def test_an_edited_lock_is_refused(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "out")
    lock = here / "out/toolmatrix.lock"
    lock.write_text(lock.read_text().replace('version = "12"', 'version = "1.0; rm -rf /"'))
    outcome = real("render", "--lock", "out/toolmatrix.lock", "--output", "new")
    assert outcome.err.startswith("error[TM904]: the lock was edited after it was written\n")
    assert not (here / "new").exists()


def test_an_answer_is_one_in_which_packages_can_be_installed(real: Cli, here: Path) -> None:
    outcome = real("render", "numpy==1.24.4", "--recipe", "numpy", "--target", "x86", "-o", "out")
    assert outcome.code == 0
    assert "FROM ubuntu:" in (here / "out/x86.Dockerfile").read_text()


def test_what_somebody_else_wrote_is_not_replaced(real: Cli, here: Path) -> None:
    (here / "out").mkdir()
    (here / "out/x86.Dockerfile").write_text("FROM scratch\n")
    outcome = real("render", *DEBIAN, "--output", "out")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error[TM905]: an existing file was not written by toolmatrix\n")
    assert names(here / "out") == ["x86.Dockerfile"]
    assert (here / "out/x86.Dockerfile").read_text() == "FROM scratch\n"


def test_files_of_an_earlier_render_are_told(real: Cli, here: Path) -> None:
    real("render", *DEBIAN, "--output", "out")
    outcome = real("render", *DEBIAN[:4], "--target", "x86", "--output", "out")
    assert "left unchanged: arm.Dockerfile, arm.cdx.json, arm.check.sh" in outcome.err
    (here / "out/notes.env.sh").write_text("mine\n")
    assert "notes" not in real("render", "--output", "out").err


@pytest.mark.parametrize("blocked", ["out", "out/x86.Dockerfile"])
def test_a_place_that_cannot_be_written_is_told(real: Cli, here: Path, blocked: str) -> None:
    place = here / blocked
    place.parent.mkdir(exist_ok=True)
    if blocked == "out":
        place.write_text("a file")
    else:
        place.mkdir()
    outcome = real("render", *DEBIAN, "--output", "out")
    assert outcome.code == 2
    assert outcome.err.startswith("error[TM905]: cannot ")
    left = [path.name for path in here.rglob("*") if path.is_file()]
    assert left == (["out"] if blocked == "out" else [])
