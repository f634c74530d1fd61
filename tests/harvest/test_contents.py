"""What members of a wheel tell, by rules: each way of reading, with what real wheels say, the traps, and lies."""

from __future__ import annotations

import io
import struct
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from toolmatrix.errors import HarvestRefused, MatrixError
from toolmatrix.factbase import yamlfile
from toolmatrix.harvest import wheels
from toolmatrix.harvest.wheels import WheelCell

STEP = 64 << 10


class LocalWheel:
    """A wheel in memory; `streamed` are the bytes that were taken out of each member."""

    def __init__(self, members: Mapping[str, bytes], name: str = "a-1.0-py3-none-any.whl") -> None:
        self.name = name
        self.streamed: dict[str, int] = {}
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, data in members.items():
                archive.writestr(member, data)
        self._archive = zipfile.ZipFile(held)

    def names(self) -> list[str]:
        return self._archive.namelist()

    def size(self, name: str) -> int:
        return self._archive.getinfo(name).file_size

    def read(self, name: str, limit: int) -> bytes:
        assert self.size(name) <= limit
        return self._archive.read(name)

    def stream(self, name: str) -> Iterator[bytes]:
        with self._archive.open(name) as member:
            while piece := member.read(STEP):
                self.streamed[name] = self.streamed.get(name, 0) + len(piece)
                yield piece


def rules(*said: dict[str, Any]) -> list[wheels.Rule]:
    node = yamlfile.parse(yaml.safe_dump(list(said)).encode(), "families.yaml")
    return wheels.rules(node.sequence("rules"))


def told(members: Mapping[str, bytes | str], **rule: Any) -> WheelCell | None:
    """What one rule reads out of a wheel with these members."""
    data = {name: one.encode() if isinstance(one, str) else one for name, one in members.items()}
    return wheels.read_cells(LocalWheel(data), rules({"cell": "x", **rule})).get("x")


def text(members: Mapping[str, bytes | str], **rule: Any) -> str:
    found = told(members, **rule)
    return found.text if found else ""


def fatbin(*images: tuple[int, int]) -> bytes:
    """A fat binary with images of so many bytes: kind (1 PTX, 2 machine code) and arch."""
    body = b"".join(
        struct.pack("<HHIQIIHHIIIQ", kind, 0x101, 48, 16, 0, 0, 0, 0, arch, 0, 0, 0) + bytes(16)
        for kind, arch in images
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


# As the files of torch 2.6.0, TensorFlow 2.6.0 and 2.17.0, xFormers 0.0.27 and onnxruntime-gpu 1.31.1 stand.
TORCH = """from typing import Optional

__version__ = '2.6.0+cu124'
debug = False
cuda: Optional[str] = '12.4'
hip: Optional[str] = None
"""
TENSORFLOW = """import collections

build_info = collections.OrderedDict([('cpu_compiler', '/usr/bin/gcc-5'),
  ('cuda_compute_capabilities', ['sm_60', 'sm_70', 'compute_90']), ('cuda_version', '12.3'),
  ('cudnn_version', '8'), ('is_cuda_build', True)])
"""
XFORMERS = """{"version": {"cuda": 1201, "hip": null, "torch": "2.3.1+cu121", "flash": "v2.5.7"},
"env": {"TORCH_CUDA_ARCH_LIST": "6.0+PTX 7.0 7.5 8.0+PTX 9.0a", "NVCC_FLAGS": null}}"""
CMAKE = 'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")'
CUDA_NUMBER = {"json": "version.cuda", "match": "^(1[0-9])0?([0-9]+)$", "form": r"\1.\2"}
ORT = "package_name = 'onnxruntime-gpu'\n__version__ = '1.31.1'\ncuda_version = '13.0'\n"


@pytest.mark.parametrize(
    ("member", "held", "rule", "expected"),
    [
        ("torch/version.py", TORCH, {"assigned": "cuda"}, "12.4"),
        ("torch/version.py", TORCH, {"assigned": "hip"}, ""),
        ("capi/build_and_package_info.py", ORT, {"assigned": "cuda_version"}, "13.0"),
        ("tensorflow/build_info.py", TENSORFLOW, {"assigned": "build_info.cuda_version"}, "12.3"),
        (
            "tensorflow/build_info.py",
            TENSORFLOW,
            {"assigned": "build_info.cuda_compute_capabilities", "form": "tensorflow-archs"},
            "sm_60 sm_70 sm_90 compute_90",
        ),
        ("tensorflow/build_info.py", TENSORFLOW, {"assigned": "build_info.rocm_version"}, ""),
        ("xformers/cpp_lib.json", XFORMERS, {"json": "version.torch", "match": "^[0-9.]+"}, "2.3.1"),
        ("xformers/cpp_lib.json", XFORMERS, CUDA_NUMBER, "12.1"),
        ("xformers/cpp_lib.json", XFORMERS, {"json": "version.hip"}, ""),
        (
            "xformers/cpp_lib.json",
            XFORMERS,
            {"json": "env.TORCH_CUDA_ARCH_LIST", "form": "torch-archs"},
            "sm_60 compute_60 sm_70 sm_75 sm_80 compute_80 sm_90a",
        ),
        ("TorchConfig.cmake", CMAKE, {"text": "CXX11_ABI=([01])", "match": "0", "form": "false"}, "false"),
        ("TorchConfig.cmake", CMAKE, {"text": "CXX11_ABI=([01])", "match": "1", "form": "true"}, ""),
    ],
)  # fmt: skip
def test_text_members_tell_values(
    member: str, held: str, rule: dict[str, Any], expected: str
) -> None:
    assert text({member: held, "other.py": "cuda = '9.9'"}, member=member, **rule) == expected


def test_names_of_members_tell_toolkits_in_one_pass() -> None:
    names = ["libbitsandbytes_cuda118.so", "libbitsandbytes_cuda130.so", "libbitsandbytes_cpu.so"]
    members = {f"bitsandbytes/{name}": b"" for name in names}
    rule = {"names": r"libbitsandbytes_cuda([0-9][0-9])([0-9])\.so$", "form": r"\1.\2"}
    assert text(members, **rule) == "11.8 13.0"


def test_of_rules_for_one_cell_the_first_that_finds_something_tells() -> None:
    wheel = LocalWheel({"new.py": b"cuda = '13.0'", "old.py": b"cuda = '11.8'"})
    said = [
        {"cell": "cuda", "member": name, "assigned": "cuda"}
        for name in ("gone.py", "new.py", "old.py")
    ]
    assert wheels.read_cells(wheel, rules(*said))["cuda"].text == "13.0"


ARCHS = b"sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"
LIST = "((?:(?:sm|compute)_[0-9]{2,3}[af]? )+(?:sm|compute)_[0-9]{2,3}[af]?)\\x00"


# In torch 2.8.0 no NUL stands before the list.
@pytest.mark.parametrize("before", [b"\0", b"flags"])
@pytest.mark.parametrize("place", [0, STEP - 20, 5 * STEP - 1])
def test_a_text_in_a_library_is_found_wherever_a_piece_ends(before: bytes, place: int) -> None:
    data = b"\1" * place + before + ARCHS + b"\0" + b"\1" * STEP
    assert text({"libtorch_python.so": data}, member="*.so", text=LIST) == ARCHS.decode()


def test_reading_stops_where_the_text_was_found() -> None:
    wheel = LocalWheel({"big.so": bytes(STEP) + ARCHS + b"\0" + bytes(100 * STEP)})
    found = wheels.read_cells(wheel, rules({"cell": "x", "member": "big.so", "text": LIST}))
    assert found["x"].text == ARCHS.decode()
    assert wheel.streamed["big.so"] <= 2 * STEP


def test_a_text_beyond_the_budget_is_not_found() -> None:
    data = bytes(wheels.MEBIBYTE + STEP) + ARCHS + b"\0"
    assert text({"big.so": data}, member="big.so", text=LIST, mebibytes=1) == ""
    assert text({"big.so": data}, member="big.so", text=LIST, mebibytes=2) == ARCHS.decode()


def test_device_code_read_to_the_end_is_all_there_is() -> None:
    data = bytes(1000) + fatbin((2, 80), (2, 90), (1, 90)) + bytes(1000)
    assert told({"a/_C.so": data}, member="*.so", archs="device") == WheelCell(
        text="sm_80 sm_90 compute_90", members=("a/_C.so",)
    )


def test_an_early_stop_gives_a_lower_bound() -> None:
    # As in vLLM: most kernels are for all archs, one far behind is for a new device alone.
    data = fatbin((2, 80), (2, 90)) + bytes(2 * wheels.MEBIBYTE) + fatbin((2, 120))
    found = told({"_moe_C.so": data}, member="*.so", archs="device", mebibytes=1)
    assert found is not None
    assert (found.text, found.partly) == ("sm_80 sm_90", True)


def test_of_several_libraries_one_that_was_not_read_whole_leaves_the_answer_open() -> None:
    members = {"a.so": fatbin((2, 80)), "b.so": fatbin((2, 90)) + bytes(2 * wheels.MEBIBYTE)}
    found = told(members, member="*.so", archs="device", mebibytes=1)
    assert found == WheelCell(text="sm_80 sm_90", members=("a.so", "b.so"), partly=True)


def test_a_library_without_device_code_tells_nothing() -> None:
    assert told({"a.so": bytes(1000)}, member="*.so", archs="device") is None


@pytest.mark.process
def test_libraries_tell_what_they_need_and_were_compiled_with(tmp_path: Path) -> None:
    (tmp_path / "rt.c").write_text("int cudaMalloc(void) { return 0; }")
    source = "int cudaMalloc(void);\ndouble f(double x) { return cudaMalloc() + pow(x, x); }"
    (tmp_path / "c.c").write_text(f"#include <math.h>\n{source}")
    shared = ["-shared", "-fPIC"]
    for words in (
        [*shared, "rt.c", "-Wl,-soname,libcudart.so.12", "-o", "libcudart.so.12"],
        [*shared, "c.c", "libcudart.so.12", "-lm", "-o", "_C.abi3.so"],
    ):
        subprocess.run(["gcc", *words], cwd=tmp_path, check=True)
    members = {"pkg/_C.abi3.so": (tmp_path / "_C.abi3.so").read_bytes()}
    assert text(members, member="*.so", needed=r"libcudart\.so\.([0-9]+)") == "12"
    assert text(members, member="*.so", needed=r"libcublas\.so\.([0-9]+)") == ""
    assert text(members, member="*.so", wants="GLIBC").startswith("2.")
    # It names the compilers of what was linked in as well: the C library's start files have their own.
    version = subprocess.run(
        ["gcc", "-dumpfullversion"], check=True, capture_output=True, text=True
    ).stdout
    found = text(members, member="*.so", compilers=r"GCC: \([^)]*\) ([0-9.]+)")
    assert version.strip() in found.split()


def test_a_library_above_the_budget_is_not_read() -> None:
    data = b"\x7fELF" + bytes(wheels.MEBIBYTE)
    assert told({"a.so": data}, member="*.so", needed="lib", mebibytes=1) is None


HOSTILE = [
    ({"v.py": "import os\ncuda = os.system('true')\n"}, {"member": "v.py", "assigned": "cuda"}, "ValueError"),
    ({"v.py": "cuda = " + "(" * 100_000}, {"member": "v.py", "assigned": "cuda"}, ""),
    ({"v.py": "cuda = '12.4\n"}, {"member": "v.py", "assigned": "cuda"}, "SyntaxError"),
    ({"v.py": "cuda = '12.4\\n  - {id: x}'\n"}, {"member": "v.py", "assigned": "cuda"}, r"'12.4\n  - {id: x}'"),
    ({"v.py": f"cuda = '{'1' * 1000}'\n"}, {"member": "v.py", "assigned": "cuda"}, f"'{'1' * 80}'"),
    ({"v.py": "#" * (wheels.LARGEST_TEXT + 1)}, {"member": "v.py", "assigned": "cuda"}, "1048577 bytes"),
    ({"v.json": "[" * 100_000}, {"member": "v.json", "json": "a.b"}, ""),
    ({"v.json": "{'a': 1}"}, {"member": "v.json", "json": "a"}, ""),
    ({"a.so": b"#!/bin/sh\n"}, {"member": "a.so", "needed": "lib"}, "a.so begins with b'#!/b'"),
    ({"a.so": b"\x7fELF" + b"\xff" * 200}, {"member": "a.so", "needed": "lib"}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("members", "rule", "found"), HOSTILE, ids=map(str, range(len(HOSTILE))))
def test_a_member_that_lies_is_one_clear_error(
    members: dict[str, str], rule: dict[str, str], found: str
) -> None:
    with pytest.raises(
        HarvestRefused, match="does not have `x` in the form that its family describes"
    ) as caught:
        told(members, **rule)
    assert found in caught.value.found
    assert str(caught.value.where) == f"a-1.0-py3-none-any.whl:{rule['member']}"
    assert caught.value.help.startswith("the rule is at families.yaml:1")


@pytest.mark.parametrize(
    "rule",
    [
        {"member": "a.py"},
        {"assigned": "cuda"},
        {"names": "x", "member": "y"},
        {"member": "a", "json": "a", "text": "b"},
    ],
)
def test_a_rule_says_one_thing_that_is_read(rule: dict[str, str]) -> None:
    with pytest.raises(MatrixError, match="a rule does not say what it reads"):
        rules({"cell": "x", **rule})


@pytest.mark.parametrize(
    "rule",
    [
        {"names": "("},
        {"names": "a(b)", "form": r"\2"},
        {"member": "a", "json": "a", "match": "["},
        {"member": "a", "json": "a", "match": "(a)", "form": r"\1.\2"},
    ],
)
def test_a_pattern_is_judged_before_a_wheel_is_read(rule: dict[str, str]) -> None:
    with pytest.raises(MatrixError, match="a pattern cannot be read"):
        rules({"cell": "x", **rule})
