"""What an image compiles with, and what its check asks a compiler: each recipe, for each target, with each compiler."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from tests.rendering.jobs import job
from toolmatrix.cli.main import main
from toolmatrix.errors import NoImage
from toolmatrix.lockfile import lock_file
from toolmatrix.lockfile.model import Lock
from toolmatrix.rendering import formats

REQUESTS = [
    ("toolchain", "python"),
    ("toolchain", "gcc python"),
    ("toolchain", "clang python"),
    ("toolchain", "gcc clang python"),
    ("toolchain", "numpy==2.0.2 --from wheel"),
    ("toolchain", "onnxruntime==1.18.1 --from wheel"),
    ("tensorflow", "tensorflow==2.12.0 --with gcc"),
    ("tensorflow", "tensorflow==2.16.1 --with clang"),
    ("pytorch", "torch==2.3.1 --with gcc"),
    ("pytorch", "torch==2.3.1 --with clang"),
    ("jaxlib", "jaxlib==0.4.13 --with gcc"),
    ("jaxlib", "jaxlib==0.4.30 --with clang"),
    ("onnxruntime", "onnxruntime==1.17.3 --with gcc"),
    ("onnxruntime", "onnxruntime==1.17.3 --with clang"),
    ("tvm", "apache-tvm==0.19.0"),
    ("numpy", "numpy==1.26.4 --with gcc"),
    ("gcc", "gcc==13"),
    ("hip", "rocm==6.0.2 python"),
]
TARGETS = {"x86": "none", "arm": "none", "amd": "rocm"}


def answer(
    cache: str, folder: Path, recipe: str, request: str, target: str, accelerator: str
) -> Lock | None:
    """The lock of a request, or nothing where it has no answer."""
    path = str(folder / "x.lock")
    words = ("lock", *request.split(), "--with", "base-image", "--distro", "ubuntu22.04")
    said = (*words, "--target", target, "--accelerator", accelerator, "--lock", path)
    # No distribution has to package what a recipe builds.
    if recipe == "gcc":
        said += "--recipe", recipe
    errors = io.StringIO()
    code = main(said, {"XDG_CACHE_HOME": cache}, io.StringIO(), io.StringIO(), errors)
    assert code in (0, 1), errors.getvalue()
    return None if code else lock_file.read(path)


@pytest.mark.parametrize(("target", "accelerator"), TARGETS.items())
@pytest.mark.parametrize(("recipe", "request_"), REQUESTS)
def test_a_check_asks_of_a_compiler_what_the_image_has(
    cache: str, tmp_path: Path, recipe: str, request_: str, target: str, accelerator: str
) -> None:
    lock = answer(cache, tmp_path, recipe, request_, target, accelerator)
    if lock is None:
        return
    held = lock.targets[target]
    try:
        texts = formats.known()["dockerfile"].files(job(lock, recipe=recipe, targets=(target,)))
    except NoImage:
        assert target == "amd" or recipe == "hip"
        return
    script, file = texts[f"{target}.check.sh"], texts[f"{target}.Dockerfile"]
    tools = file.partition("\nFROM toolchain AS build\n")[0]
    linked = dict(re.findall(r"^ln -sf (\S+) (/usr/local/bin/c(?:c|\+\+))$", tools, re.MULTILINE))
    has = {
        name: held.components[name].version for name in ("gcc", "clang") if name in held.components
    }
    if recipe == "gcc":
        expected = ["/usr/bin/g++", "/usr/bin/gcc"]
    elif "gcc" in has:
        expected = [f"/usr/bin/g++-{has['gcc']}", f"/usr/bin/gcc-{has['gcc']}"]
    elif "clang" in has:
        expected = [f"/usr/bin/clang++-{has['clang']}", f"/usr/bin/clang-{has['clang']}"]
    else:
        expected = []
    assert sorted(linked) == sorted(expected)
    installed = f" {' '.join(re.findall(r' install -y .*', tools))} "
    for program in expected:
        package = program.rpartition("/")[2].replace("clang++", "clang")
        assert f" {package} " in installed
    said = {
        flag
        for flags in re.findall(r"^    effect .*$", script, re.MULTILINE)
        for flag in flags.split()
    }
    wanted = target == "arm" and bool(expected)
    assert ("-fsigned-char" in said) is wanted
    assert (' CFLAGS="' in tools) is wanted
    assert ("    setting CFLAGS " in script) is wanted
    assert ("\n    compare gcc " in script) is ("gcc" in has)
    assert ("\n    compare clang " in script) is ("clang" in has)


def test_the_gate_sees_each_kind_of_image(cache: str, tmp_path: Path) -> None:
    """At least these have an answer, so that the test above is about something."""
    kinds = set()
    for recipe, request in REQUESTS[:6]:
        lock = answer(cache, tmp_path, recipe, request, "arm", "none")
        assert lock is not None, (recipe, request)
        held = lock.targets["arm"]
        kinds.add(
            (bool(held.flags.cflags), *(name in held.components for name in ("gcc", "clang")))
        )
    assert kinds == {
        *((True, False, False), (False, False, False), (True, True, False)),
        *((True, False, True), (True, True, True)),
    }
