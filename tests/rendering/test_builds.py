"""Real images: the commands of docs/dockerfiles.md build them, and each proves what was resolved.

They take minutes and need root, Docker's engine, mmdebstrap and qemu-user-static; `./tests/run --builds` installs them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.engine import company, docker
from tests.engine.commands import ROOT, ran
from tests.engine.docker import Engine
from toolmatrix.harvest import runs
from toolmatrix.inspection import elf
from toolmatrix.lockfile import lock_file

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(7200)]

PAGE = ROOT / "docs" / "dockerfiles.md"
SECTIONS = {
    "tools": "## Building without a registry",
    "numpy": "### A package from its source",
    "tensorflow": "### TensorFlow 1 on the distribution of its time",
    "cuda": "### A CUDA toolchain",
    "extension": "### An extension of PyTorch",
}
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# How many seconds a command may take on a machine that has much else to do.
_LONGEST = 3600

_RUN = ("docker", "run", "--rm", "--interactive", "--network=none")

CHAR = """
#include <stdio.h>
#ifdef __ARM_FEATURE_CRC32
#include <arm_acle.h>
#endif
int main(void) {
    char c = -1;
#ifdef __ARM_FEATURE_CRC32
    unsigned crc = __crc32b(0, 1);
#else
    unsigned crc = 0;
#endif
    printf("%s %s\\n", c < 0 ? "signed" : "unsigned", crc ? "crc32" : "none");
    return 0;
}
"""
KERNEL = """
#include <hip/hip_runtime.h>
__global__ void add(float *x, float y) { x[threadIdx.x] += y; }
"""
CODE_OBJECT = re.compile(rb"amdgcn-amd-amdhsa-[a-z]*-(gfx[0-9a-f]+)")


class Built(NamedTuple):
    """What the commands of the page left: the engine, the directories, and what the last command said."""

    engine: Engine
    folder: Path
    said: str

    def image(self, target: str) -> str:
        """The image of a target, found by its labels alone."""
        digest = lock_file.digest(lock_file.read(str(self.folder / "toolmatrix.lock")))
        labels = (f"lock.digest={digest}", f"target={target}")
        filters = [f"--filter=label=io.github.toolmatrix.{label}" for label in labels]
        found = self.engine.done("images", "--quiet", "--no-trunc", *filters).split()
        assert found, f"no image of {target} for {digest}\n{self.said}"
        return found[0]

    def shell(self, target: str, script: str, *files: str) -> str:
        """What a script prints inside the image; `files` come on its standard input, one after the other."""
        ended = subprocess.run(
            [*_RUN, self.image(target), "sh", "-euc", script],
            check=False,
            capture_output=True,
            input="".join(files).encode(),
            env=dict(self.engine.environment),
            timeout=600,
        )
        assert ended.returncode == 0, ended.stderr.decode()
        return ended.stdout.decode("latin-1")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with docker.needed(*docker.PACKAGES) as found:
        yield found


@pytest.fixture(scope="module")
def built(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """The images of the tools."""
    yield from _built(engine, tmp_path_factory.mktemp("builds"), SECTIONS["tools"])


@pytest.fixture(scope="module")
def numpy(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """The image of NumPy from its source."""
    yield from _built(engine, tmp_path_factory.mktemp("numpy"), SECTIONS["numpy"])


@pytest.fixture(scope="module")
def tensorflow(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """The image of TensorFlow 1."""
    yield from _built(engine, tmp_path_factory.mktemp("tensorflow"), SECTIONS["tensorflow"])


@pytest.fixture(scope="module")
def cuda(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """The image of a CUDA toolchain."""
    yield from _built(engine, tmp_path_factory.mktemp("cuda"), SECTIONS["cuda"])


@pytest.fixture(scope="module")
def extension(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """The image of an extension of PyTorch."""
    # Its kernels take a quarter of an hour on two cores that do nothing else, beside all other images.
    if os.environ.get("CI"):
        pytest.skip("takes longer than CI has; `./tests/run --builds` without CI builds it")
    yield from _built(engine, tmp_path_factory.mktemp("extension"), SECTIONS["extension"])


def _built(engine: Engine, folder: Path, section: str) -> Iterator[Built]:
    """The commands of a section, run as they stand there."""
    said = "".join(ran(engine, folder, line, timeout=_LONGEST) for line in _commands(section))
    yield Built(engine, folder, said)
    _remove(engine, folder)


def _commands(section: str) -> list[str]:
    text = re.split(r"\n##+ ", PAGE.read_text().split(section + "\n", 1)[1], maxsplit=1)[0]
    return [line for block in BLOCK.findall(text) for line in block.splitlines() if line]


def _remove(engine: Engine, folder: Path) -> None:
    """Remove what was built; layers in the build cache are the engine's own affair."""
    digest = lock_file.digest(lock_file.read(str(folder / "toolmatrix.lock")))
    label = f"label=io.github.toolmatrix.lock.digest={digest}"
    found = engine.done("images", "--quiet", "--filter", label).split()
    if found:
        engine.done("rmi", "--force", *found)


@pytest.mark.parametrize("target", ["x86", "arm", "amd"])
def test_what_was_installed_is_what_was_resolved(built: Built, target: str) -> None:
    said = built.shell(target, f"sh /usr/share/toolmatrix/{target}.check.sh")
    assert re.search(r"^[1-9]\d* checked, 0 failed$", said, re.MULTILINE)
    assert "FAIL" not in said
    lock = built.shell(target, "cat /usr/share/toolmatrix/toolmatrix.lock")
    folder = built.folder / ("out-arm" if target == "arm" else "out")
    assert lock == (folder / "toolmatrix.lock").read_text()


def test_the_arm_image_is_one_of_arm(built: Built) -> None:
    assert built.shell("arm", "uname -m").strip() == "aarch64"


def test_flags_of_the_lock_make_char_signed_and_crc32_available_on_arm(built: Built) -> None:
    build = "cat > t.c; cc {} t.c -o t; ./t"
    assert built.shell("arm", build.format("$CFLAGS"), CHAR).split() == ["signed", "crc32"]
    assert built.shell("arm", build.format(""), CHAR).split() == ["unsigned", "none"]


def test_a_binary_of_the_arm_image_tells_its_own_flags(built: Built) -> None:
    record = "cat > t.c; cc $CFLAGS t.c -o t; readelf --string-dump=.GCC.command.line t"
    said = built.shell("arm", record, CHAR)
    assert "-fsigned-char" in said
    assert "+crc" in said


def test_hipcc_makes_code_for_the_resolved_arch_and_no_other(built: Built) -> None:
    lock = lock_file.read(str(built.folder / "toolmatrix.lock"))
    held = lock.targets["amd"]
    script = f"cat > k.hip; hipcc {' '.join(held.flags.hipcc)} -c k.hip -o k.o; cat k.o"
    made = built.shell("amd", script, KERNEL).encode("latin-1")
    assert {arch.decode() for arch in CODE_OBJECT.findall(made)} == set(held.archs)


MUTATIONS = [
    pytest.param(
        "out/x86.Dockerfile", "-12", "-11", r"gcc: expected 12, found 11\.", id="compiler"
    ),
    pytest.param(
        "out/x86.check.sh", " 3.11 ", " 3.10 ", r"python: expected 3\.10, found 3\.11\.", id="check"
    ),
    pytest.param(
        "out-arm/arm.Dockerfile",
        "-fsigned-char ",
        "",
        r"CFLAGS: expected -fsigned-char, found -march=",
        id="flag",
    ),
]


@pytest.mark.parametrize(("path", "old", "new", "sentence"), MUTATIONS)
def test_another_pin_in_a_file_ends_the_build(
    built: Built, path: str, old: str, new: str, sentence: str
) -> None:
    file = built.folder / path
    text = file.read_text()
    assert old in text
    build = f"toolmatrix build --target {file.name.partition('.')[0]} {file.parent.name}"
    try:
        file.write_text(text.replace(old, new))
        said = ran(built.engine, built.folder, build, fails=True)
    finally:
        file.write_text(text)
    assert re.search(sentence, said), said


SEEN = """
import importlib.metadata, json, numpy, pathlib
held = importlib.metadata.distribution("numpy")
tags = [line.split()[1] for line in held.read_text("WHEEL").splitlines() if line.startswith("Tag: ")]
brought = [one.name for one in pathlib.Path(numpy.__file__).parent.parent.glob("numpy*libs")]
made = numpy.show_config("dicts")["Compilers"]["c"]
print(json.dumps([numpy.__version__, tags, brought, made["name"], made["version"]]))
"""


def test_numpy_was_built_from_its_source_by_the_resolved_compiler(numpy: Built) -> None:
    held = lock_file.read(str(numpy.folder / "toolmatrix.lock")).targets["x86"].components
    said = numpy.shell("x86", 'python -c "$(cat)"', SEEN)
    version, tags, brought, compiler, by = json.loads(said)
    assert version == held["numpy"].version
    assert compiler == "gcc"
    assert by.split(".")[0] == held["gcc"].version
    # A wheel of the index is made for manylinux and brings libraries.
    assert [tag.split("-", 2)[2] for tag in tags] == ["linux_x86_64"]
    assert brought == []


def test_the_build_of_numpy_is_written_down_as_one_from_its_source(numpy: Built) -> None:
    row = _row(numpy)
    told = {name: row.get(name, "") for name in ("numpy", "machine", "from", "distro", "recipe")}
    assert told == {
        "numpy": "===1.26.4",
        "machine": "x86_64",
        "from": "source",
        "distro": "debian12",
        "recipe": "numpy",
    }
    assert re.fullmatch(r"[1-9]\d* checked, 0 failed", row["check"])
    assert re.fullmatch(r"\d+ MB( packed)?", row["size"])
    assert "gcc 12" in row["beside"]


def test_the_runtime_image_of_numpy_has_no_compiler_and_passes_its_check(numpy: Built) -> None:
    said = numpy.shell("x86", "sh /usr/share/toolmatrix/x86.check.sh runtime; command -v gcc || :")
    assert re.search(r"^[1-9]\d* checked, 0 failed$", said, re.MULTILINE)
    assert said.endswith("failed\n")


def _row(built: Built) -> dict[str, str]:
    (table,) = runs.read_tables(str(built.folder / "builds.yaml")).values()
    (row,) = table["rows"]
    return {name: str(text) for name, text in row.items()}


def _archs(code: str) -> set[str]:
    scan = elf.Scan()
    scan.add(code.encode("latin-1"))
    scan.finish()
    assert not scan.unread
    return scan.archs


def test_nvcc_makes_code_for_the_archs_of_the_lock_without_being_told(cuda: Built) -> None:
    held = lock_file.read(str(cuda.folder / "toolmatrix.lock")).targets["x86"]
    kernel = KERNEL.replace("#include <hip/hip_runtime.h>\n", "")
    made = cuda.shell("x86", "cd /tmp; cat > k.cu; nvcc -c k.cu -o k.o; cat k.o", kernel)
    assert _archs(made) == set(held.archs)
    row = _row(cuda)
    told = {name: row.get(name, "") for name in ("cuda", "accelerator", "distro", "recipe")}
    assert told == {
        "cuda": f"==={held.components['cuda'].version}",
        "accelerator": "cuda",
        "distro": "ubuntu24.04",
        "recipe": "toolchain",
    }
    assert re.fullmatch(r"[1-9]\d* checked, 0 failed", row["check"])


# Python 3.7 has no importlib.metadata.
INSTALLED = """
import json, pkg_resources, wrapt._wrappers
held = pkg_resources.working_set
print(json.dumps({one.project_name.lower().replace("_", "-"): one.version for one in held}))
"""


def test_an_old_release_is_installed_by_a_pip_that_resolves_and_its_sources_are_built(
    tensorflow: Built,
) -> None:
    held = lock_file.read(str(tensorflow.folder / "toolmatrix.lock")).targets["x86"]
    assert held.closure is not None
    assert held.closure.sources == ("gast", "wrapt")
    assert {"setuptools", "wheel"} <= held.closure.builders.keys()
    assert all(one.files for one in held.closure.packages.values())
    named = {name: one.version for name, one in held.closure.packages.items()}
    # wrapt does without its own C where no compiler was.
    assert json.loads(tensorflow.shell("x86", 'python -c "$(cat)"', INSTALLED)) == named
    said = tensorflow.shell("x86", "sh /usr/share/toolmatrix/x86.check.sh; command -v gcc || :")
    assert re.search(r"^pass  tensorflow +computed ", said, re.MULTILINE)
    assert re.search(r"^[1-9]\d* checked, 0 failed, 1 not tried\n\Z", said, re.MULTILINE)
    row = _row(tensorflow)
    assert (row["tensorflow"], row["distro"]) == ("===1.15.5", "ubuntu18.04")


INSIDE = """
import importlib.metadata, json, pathlib, sys, torch, torch_scatter
held = importlib.metadata.distribution("torch-scatter")
tags = [line.split()[1] for line in held.read_text("WHEEL").splitlines() if line.startswith("Tag: ")]
print(json.dumps([held.version, torch.__version__, torch.version.cuda, tags]))
"""


def test_an_extension_is_built_from_its_source_against_the_wheel_of_torch(extension: Built) -> None:
    held = lock_file.read(str(extension.folder / "toolmatrix.lock")).targets["x86"]
    version, torch, toolkit, tags = json.loads(extension.shell("x86", 'python -c "$(cat)"', INSIDE))
    assert version == held.components["torch-scatter"].version
    assert torch.partition("+")[0] == held.components["torch"].version
    assert held.components["cuda"].version.startswith(f"{toolkit}.")
    # A wheel of an index would be made for manylinux.
    assert [tag.split("-", 2)[2] for tag in tags] == ["linux_x86_64"]
    code = "cat /opt/venv/lib/python3*/site-packages/torch_scatter/_scatter_cuda.so"
    assert _archs(extension.shell("x86", code)) == set(held.archs)
    # A GPU is not there, and the check says so.
    said = extension.shell(
        "x86", "sh /usr/share/toolmatrix/x86.check.sh runtime; command -v nvcc || :"
    )
    assert re.search(r"^none  device +no /dev/nvidia0 ", said, re.MULTILINE)
    assert re.search(r"^[1-9]\d* checked, 0 failed, [1-9] not tried$", said, re.MULTILINE)
    assert said.endswith("not tried\n")


def test_the_build_of_an_extension_names_what_it_was_built_against(extension: Built) -> None:
    row = _row(extension)
    told = {name: row.get(name, "") for name in ("torch-scatter", "from", "accelerator", "recipe")}
    assert told == {
        "torch-scatter": "===2.1.2",
        "from": "source",
        "accelerator": "cuda",
        "recipe": "extension",
    }
    assert {"cuda 13.0.2", "torch 2.12.1"} <= set(row["beside"].split("; "))


WITHOUT_GCC = [
    pytest.param(
        *("numpy==2.0.2 python", "arm", "arm64"),
        "python -c 'import numpy; print(numpy.__version__)'; command -v cc || echo none",
        r"2\.0\.2\nnone\n",
        id="wheels",
    ),
    pytest.param(
        *("clang==14", "x86", "amd64"),
        "cat > t.c; cc t.c -o t && ./t; cp t.c t.cc; c++ t.cc -o t && ./t; c++ --version | head -n 1",
        r"signed none\nsigned none\nDebian clang version 14\..*\n",
        id="clang",
    ),
]
"""A request, its target, and what a script prints in the image that it becomes."""


@pytest.mark.parametrize(("request_", "target", "arch", "script", "prints"), WITHOUT_GCC)
def test_an_image_without_gcc_is_built_and_passes_its_check(
    engine: Engine,
    tmp_path: Path,
    request_: str,
    target: str,
    arch: str,
    script: str,
    prints: str,
) -> None:
    ran(engine, tmp_path, f"python -m tests.engine bookworm {arch}")
    base = f"--base debian:12=local/debian:bookworm-{arch}"
    ran(
        engine,
        tmp_path,
        f"toolmatrix render {request_} --accelerator none --distro debian12 --target {target}"
        f" --dialect classic {base} --output out",
    )
    said = ran(engine, tmp_path, "toolmatrix build out", timeout=_LONGEST)
    made = Built(engine, tmp_path / "out", said)
    try:
        assert re.fullmatch(prints, made.shell(target, f"cd /tmp; {script}", CHAR))
        checked = made.shell(target, f"sh /usr/share/toolmatrix/{target}.check.sh")
        assert re.search(r"^[1-9]\d* checked, 0 failed(, 0 not tried)?$", checked, re.MULTILINE)
    finally:
        _remove(engine, tmp_path / "out")


def test_pip_asks_the_mirror_that_a_build_is_given(engine: Engine, tmp_path: Path) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text("[global]\nindex-url = https://mirror.invalid/simple\nretries = 0\n")
    ran(engine, tmp_path, "python -m tests.engine bookworm amd64")
    render = "toolmatrix render numpy==2.0.2 gcc python --distro debian12 --target x86 --output out"
    base = "--base debian:12=local/debian:bookworm-amd64"
    ran(engine, tmp_path, f"{render} --dialect classic {base}")
    flags = shlex.join(company.flags(engine, {"pip": settings}, {}))
    said = ran(engine, tmp_path, f"toolmatrix build out -- {flags}", fails=True)
    assert "mirror.invalid" in said


SWAPPED = [
    pytest.param("numpy==2.0.2", "numpy==2.0.1", "numpy==2.0.1", id="pin"),
    pytest.param("--hash=sha256:", "--hash=sha256:0000", "numpy==2.0.2", id="file"),
]


@pytest.mark.parametrize(("old", "new", "named"), SWAPPED)
def test_a_changed_pin_or_a_swapped_file_ends_the_build_by_name(
    engine: Engine, tmp_path: Path, old: str, new: str, named: str
) -> None:
    ran(engine, tmp_path, "python -m tests.engine bookworm amd64")
    ran(
        engine,
        tmp_path,
        "toolmatrix lock numpy==2.0.2 python==3.11 base-image --accelerator none --distro debian12"
        " --target x86 --packages",
    )
    base = "--base debian:12=local/debian:bookworm-amd64"
    ran(engine, tmp_path, f"toolmatrix render --dialect classic {base} --output out")
    file = tmp_path / "out" / "x86.requirements.txt"
    # Digits of a hash are as many as before.
    swapped = re.sub(
        re.escape(old) + ("[0-9a-f]{4}" if "hash" in old else ""), new, file.read_text()
    )
    assert swapped != file.read_text()
    file.write_text(swapped)
    said = ran(engine, tmp_path, "toolmatrix build out", fails=True)
    assert "THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE" in said
    assert re.search(rf"{re.escape(named)} .*:\n.*Expected sha256 ", said), said
    assert "0 of 1 image built" in said
