"""Real images: the commands of docs/dockerfiles.md build them, and each proves what was resolved.

They take minutes and need root, Docker's engine, mmdebstrap and qemu-user-static; `tests/run` installs them on Debian.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.engine import docker
from tests.engine.commands import ROOT, ran
from toolmatrix.lock import read, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.engine.docker import Engine

pytestmark = [pytest.mark.process, pytest.mark.slow]

PAGE = ROOT / "docs" / "dockerfiles.md"
SECTION = "## Building without a registry"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)

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
        digest = write.digest(read.read(str(self.folder / "toolmatrix.lock")))
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
    """The commands of the page, run as they stand there."""
    folder = tmp_path_factory.mktemp("builds")
    said = "".join(ran(engine, folder, line) for line in _commands())
    yield Built(engine, folder, said)
    _remove(engine, folder)


def _commands() -> list[str]:
    section = PAGE.read_text().split(SECTION, 1)[1].split("\n## ", 1)[0]
    text = "".join(BLOCK.findall(section)).replace("\\\n", " ")
    return [line for line in text.splitlines() if line]


def _remove(engine: Engine, folder: Path) -> None:
    """Remove what was built; layers in the build cache are the engine's own affair."""
    digest = write.digest(read.read(str(folder / "toolmatrix.lock")))
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
    assert lock == (built.folder / "toolmatrix.lock").read_text()


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
    lock = read.read(str(built.folder / "toolmatrix.lock"))
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
