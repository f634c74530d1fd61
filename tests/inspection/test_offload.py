"""Device code as real compilers put it into files: which archs it is for, however it is packed and cut."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import zlib
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.amount import sampled
from tests.compilation.real import nvcc, program
from tests.images import images
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import elf
from toolmatrix.inspection.observe import Look

if TYPE_CHECKING:
    from pathlib import Path

    from toolmatrix.inspection.elf import Elf

KERNEL = "__global__ void k(float *a) { a[0] = 1; }\n"


def looked(path: Path) -> Elf:
    """What is kept of a file."""
    data = path.read_bytes()
    found = Look(Budget("image.tar"))(path.name, len(data), io.BytesIO(data))
    assert isinstance(found, elf.Elf)
    return found


def archs(data: bytes, step: int = 1 << 20) -> tuple[set[str], set[str]]:
    """What a scan tells of bytes that come in pieces."""
    scan = elf.Scan()
    for start in range(0, len(data), step):
        scan.add(data[start : start + step])
    scan.finish()
    return scan.archs, scan.unread


def compiled(folder: Path, tool: str, source: str, *args: str) -> None:
    """Run a compiler on a source."""
    (folder / "k.cu").write_text(source)
    (folder / "k.hip").write_text(source)
    env = {**os.environ, "HIP_PLATFORM": "amd"}
    subprocess.run([tool, *args], cwd=folder, check=True, env=env)


# CUDA

CODES = [
    ("90", "sm_90"),
    ("90a", "sm_90a"),
    ("100f", "sm_100f"),
    ("100", "compute_100"),
    ("100a", "compute_100a"),
    ("90", "lto_90"),
]
TOLD = {"sm_90", "sm_90a", "sm_100f", "compute_100", "compute_100a"}
"""Code for the linker, `lto_90`, is for no device yet."""


@pytest.mark.process
@pytest.mark.parametrize("mode", sampled(["default", "none", "size"], every=3))
def test_archs_of_a_fat_binary_of_nvcc(tmp_path: Path, mode: str) -> None:
    codes = [f"-gencode=arch=compute_{arch},code={code}" for arch, code in CODES]
    args = [*codes, f"--compress-mode={mode}", "-fatbin", "k.cu", "-o", "k.fatbin"]
    compiled(tmp_path, nvcc(), KERNEL, *args)
    assert set(looked(tmp_path / "k.fatbin").device) == TOLD


@pytest.mark.process
@pytest.mark.parametrize("arch", sampled(["sm_90a", "sm_90", "sm_100f"], every=3))
def test_archs_of_objects_archives_and_cubins(tmp_path: Path, arch: str) -> None:
    flag = f"-arch={arch}"
    compiled(tmp_path, nvcc(), KERNEL, flag, "-rdc=true", "-c", "k.cu", "-o", "k.o")
    compiled(tmp_path, nvcc(), KERNEL, flag, "-cubin", "k.cu", "-o", "k.cubin")
    subprocess.run(["ar", "rcs", "libk.a", "k.o"], cwd=tmp_path, check=True)
    for name, machine in (("k.o", "amd64"), ("libk.a", ""), ("k.cubin", "cuda")):
        found = looked(tmp_path / name)
        assert arch in found.device
        assert found.machine in (machine, "arm64")


def header(abi: int, flags: int) -> bytes:
    """The header of a cubin without notes, as older tools write it."""
    head = bytearray(64)
    head[:9] = b"\x7fELF\x02\x01\x01\x33" + bytes([abi])
    struct.pack_into("<HH", head, 16, 2, 190)
    struct.pack_into("<I", head, 48, flags)
    return bytes(head)


@pytest.mark.parametrize(
    ("abi", "flags", "arch"),
    [(7, 0x560556, "sm_86"), (7, 0x5A0D5A, "sm_90a"), (8, 0x6006402, "sm_100")],
)
def test_the_header_of_a_cubin_tells_where_no_note_does(abi: int, flags: int, arch: str) -> None:
    data = header(abi, flags)
    assert elf.read(data, io.BytesIO(), len(data), None).device == (arch,)


def image(kind: int, arch: int, size: int, flags: int = 0) -> bytes:
    """An image of a fat binary."""
    return struct.pack("<HHIQIIHHIIIQ", kind, 257, 64, size, 0, 0, 0, 0, arch, 0, 0, flags).ljust(
        64 + size, b"\0"
    )


@pytest.mark.parametrize("step", [64, 4096, 1 << 20, 1 << 24])
def test_images_are_found_however_large_they_are_and_the_file_is_cut(step: int) -> None:
    size = (2 << 20) if step > 64 else 5000
    inside = image(2, 80, size) + image(2, 90, size, 1 << 20) + image(1, 90, 40)
    fatbin = elf.FATBIN + struct.pack("<HHQ", 1, 16, len(inside)) + inside
    data = b"x" * 1000 + fatbin + b"x" * 1000 + fatbin
    assert archs(data, step)[0] == {"sm_80", "sm_90a", "compute_90"}


def test_headers_beyond_reason_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elf, "_MOST_HEADERS", 10)
    inside = image(2, 80, 0) * 20
    data = elf.FATBIN + struct.pack("<HHQ", 1, 16, len(inside)) + inside
    assert archs(data) == ({"sm_80"}, {"there are more than 10 headers of device code"})


# HIP


@pytest.mark.large
@pytest.mark.process
def test_gfx_names_of_objects_and_code_objects_of_hipcc(tmp_path: Path) -> None:
    source = f"#include <hip/hip_runtime.h>\n{KERNEL}"
    gfx = ("--offload-arch=gfx90a:xnack+", "--offload-arch=gfx1030")
    compiled(tmp_path, program("hipcc"), source, *gfx, "-c", "k.hip", "-o", "k.o")
    assert looked(tmp_path / "k.o").device == ("gfx1030", "gfx90a:xnack+")
    alone = ("--cuda-device-only", "--no-gpu-bundle-output", "-c", "k.hip", "-o", "k.hsaco")
    compiled(tmp_path, program("hipcc"), source, gfx[0], *alone)
    found = looked(tmp_path / "k.hsaco")
    assert (found.machine, found.device) == ("amdgpu", ("gfx90a:xnack+",))


def bundle(*names: bytes) -> bytes:
    """A bundle of offloading code as clang lays it out."""
    parts = b"".join(struct.pack("<QQQ", 0, 0, len(name)) + name for name in names)
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names)) + parts


HOST = b"host-x86_64-unknown-linux--"
BUNDLE = bundle(HOST, b"hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", b"hip-amdgcn--gfx9-4-generic")
GFX = {"gfx90a:xnack+", "gfx9-4-generic"}


def compressed(version: int, method: int, packed: bytes, size: int) -> bytes:
    """A compressed bundle, as clang 18 (1), 19 (2) and 21 (3) write it; 2 was compared with clang 19's own."""
    sizes = {
        1: struct.pack("<I", size),
        2: struct.pack("<II", 24 + len(packed), size),
        3: struct.pack("<QQ", 32 + len(packed), size),
    }
    return b"CCOB" + struct.pack("<HH", version, method) + sizes[version] + b"hashhash" + packed


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("step", [64, 4096, 1 << 20])
def test_gfx_names_of_a_bundle_compressed_or_not(version: int, step: int) -> None:
    code = b"".join(number.to_bytes(4, "little") for number in range(50_000))
    plain = BUNDLE.ljust(4096, b"\0") + code
    assert archs(b"x" * 99 + plain, step)[0] == GFX
    for method, packed in ((0, zlib.compress(plain)), (1, zstandard.compress(plain))):
        data = b"x" * 99 + compressed(version, method, packed, len(plain)) + b"x" * 300_000
        assert archs(data, step) == (GFX, set())


def test_a_compressed_bundle_that_cannot_be_read_is_told() -> None:
    damaged = ({"a compressed bundle is damaged"},)
    assert archs(compressed(2, 0, b"no zlib", 9))[1:] == damaged
    assert archs(compressed(2, 1, b"no zstd", 9))[1:] == damaged


def test_what_could_not_be_told_is_a_skip() -> None:
    from toolmatrix.inspection.observe import observe

    look = Look(Budget("image.tar"))
    data = compressed(2, 0, b"no zlib", 9).ljust(64, b"\0")
    made = images.saved(images.image({"opt/k.hipfb": data}))
    inventory = observe(*images.from_archive(made, look=look))
    assert ("codegen", "/opt/k.hipfb: a compressed bundle is damaged") in {
        (one.what, one.reason) for one in inventory.skipped
    }


PIECES = [elf.FATBIN, image(2, 80, 9), bundle(b"gfx906"), b"CCOB\1\0\0\0", b"\1\0", BUNDLE[:60]]


@given(st.lists(st.sampled_from(PIECES) | st.binary()), st.sampled_from([7, 64, 1 << 20]))
def test_any_bytes_have_archs(pieces: list[bytes], step: int) -> None:
    data = b"".join(pieces)
    found = archs(data, step)[0]
    assert all(name.startswith(("sm_", "compute_", "gfx")) for name in found)
    assert found == archs(data)[0]
