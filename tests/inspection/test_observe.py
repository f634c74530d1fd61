"""What files tell: components by their witnesses, defaults, libraries as the loader finds them, and options."""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.images import images
from tests.images.images import link
from tests.schemas import shipped
from toolmatrix.images.limits import Budget
from toolmatrix.inspection.dynamic import Dynamic
from toolmatrix.inspection.elf import Elf
from toolmatrix.inspection.observe import Look, observe
from toolmatrix.inspection.packages import stanzas

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Mapping
    from typing import Any

    from toolmatrix.images.streams import Readable
    from toolmatrix.inspection.model import Inventory

MARK = b"\x7fELF of a test "


def elf(machine: str = "amd64", **fields: Any) -> bytes:
    """A file that is read as an ELF file that says this."""
    return MARK + json.dumps({"machine": machine, **fields}).encode()


def cache(*paths: str) -> bytes:
    """What ldconfig writes where it finds these files, each under its own name, as `etc/ld.so.cache`."""
    head = struct.pack("<20sII20x", b"glibc-ld.so.cache1.1", len(paths), 0)
    place, table, texts = 48 + 24 * len(paths), b"", b""
    for path in paths:
        folder = path.rpartition("/")[0]
        start = place + len(texts)
        table += struct.pack("<iIIIQ", 0x303, start + len(folder) + 1, start, 0, 0)
        texts += f"{path}\0".encode()
    return head + table + texts


class TestLook(Look):
    """Reads what `elf` made, and all else as it is read."""

    __test__ = False

    def __call__(self, path: str, size: int, stream: Readable) -> object:
        """What to keep of a file."""
        data = images.everything(path, size, stream)
        if not data.startswith(MARK):
            return super().__call__(path, size, io.BytesIO(data))
        fields = json.loads(data[len(MARK) :])
        held: dict[str, Any] = {
            key: tuple(map(tuple, value)) if key in ("options", "gives", "asks") else value
            for key, value in fields.items()
        }
        dynamic = {key: held.pop(key) for key in Dynamic._fields if key in held}
        lists: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in dynamic.items()
        }
        return Elf(**held, dynamic=Dynamic(**lists))


def seen(*layers: Mapping[str, bytes | tarfile.TarInfo], **config: Any) -> Inventory:
    """The inventory of an image of these layers."""
    made = images.image(*layers, **config)
    look = TestLook(Budget("image.tar"))
    return observe(*images.from_archive(images.saved(made), look=look))


def told(inventory: Inventory, name: str) -> list[tuple[str, str, bool]]:
    """The sightings of a component."""
    return [(one.version, one.seen_by, one.default) for one in inventory.components.get(name, ())]


def valued(inventory: Inventory, name: str) -> list[str]:
    """The values of a feature."""
    return [one.version for one in inventory.features.get(name, ())]


def dist(name: str, version: str) -> bytes:
    """Metadata of a Python package."""
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nText".encode()


# Packages


def test_records_of_package_managers() -> None:
    inventory = seen(
        {
            "var/lib/dpkg/status": (
                b"Package: libc6\nStatus: install ok installed\nVersion: 2.36-9+deb12u9\n\n"
                b"Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n"
                b"Package: libcudnn8\nStatus: install ok installed\nVersion: 8.9.2.26-1+cuda12.1\n"
                b"Description: x\n Version: 9\n"
            ),
            "var/lib/dpkg/status.d/base": b"Package: base-files\nVersion: 12.4\n",
            "lib/apk/db/installed": b"P:musl\nV:1.2.4-r2\n\nP:zlib\nV:1.3-r0\n",
            "opt/conda/conda-meta/numpy-1.26.4-py311_0.json": b"{}",
        }
    )
    assert (told(inventory, "glibc"), told(inventory, "cudnn")) == (
        [("2.36", "dpkg", False)],
        [("8.9.2", "dpkg", False)],
    )
    packages = {name for name in inventory.features if name.startswith(("dpkg:", "apk:", "conda:"))}
    assert packages == {
        *("dpkg:libc6", "dpkg:libcudnn8", "dpkg:base-files"),
        *("apk:musl", "apk:zlib", "conda:numpy"),
    }


@given(st.text())
def test_any_text_has_stanzas(text: str) -> None:
    assert all(isinstance(one, dict) for one in stanzas(text.splitlines()))


# Python

PYTHON: Mapping[str, bytes | tarfile.TarInfo] = {
    "usr/bin/python3": link("python3.11"),
    "usr/bin/python3.11": elf(versions=["3.11.2", "14.0.0"]),
    "usr/local/lib/python3.11/dist-packages/numpy-1.26.4.dist-info/METADATA": dist(
        "numpy", "1.26.4"
    ),
    "usr/lib/python3/dist-packages/numpy-1.24.2.egg-info/PKG-INFO": dist("numpy", "1.24.2"),
    "usr/lib/python3/dist-packages/PyYAML-6.0.egg-info": dist("PyYAML", "6.0"),
}


def test_the_default_interpreter_and_what_it_imports() -> None:
    inventory = seen(PYTHON)
    assert told(inventory, "python") == [("3.11.2", "elf", True)]
    assert told(inventory, "numpy") == [
        ("1.26.4", "dist-info", True),
        ("1.24.2", "egg-info", False),
    ]
    assert told(inventory, "pyyaml") == [("6.0", "egg-info", True)]


def test_a_virtual_environment_on_the_path_comes_first() -> None:
    inventory = seen(
        PYTHON,
        {
            "opt/venv/bin/python3": link("/usr/bin/python3"),
            "opt/venv/pyvenv.cfg": b"include-system-site-packages = false\n",
            "opt/venv/lib/python3.11/site-packages/numpy-2.0.0.dist-info/METADATA": dist(
                "numpy", "2.0.0"
            ),
        },
        Env=["PATH=/opt/venv/bin:/usr/bin"],
    )
    assert told(inventory, "numpy")[0] == ("2.0.0", "dist-info", True)
    assert [default for *_, default in told(inventory, "numpy")] == [True, False, False]


def test_a_shared_interpreter_tells_its_version_in_its_library() -> None:
    inventory = seen(
        {
            "usr/local/bin/python3": link("python3.9"),
            "usr/local/bin/python3.9": elf(),
            "usr/local/lib/libpython3.9.so.1.0": elf(versions=["3.9.18"]),
        }
    )
    assert told(inventory, "python") == [("3.9.18", "beside it", True)]


@pytest.mark.parametrize(
    ("version", "component", "number"),
    [
        ("2.1.0+cu121", "cuda", "12.1"),
        ("1.9.0+cu102", "cuda", "10.2"),
        ("2.1.0+rocm5.6", "rocm", "5.6"),
    ],
)
def test_the_toolkit_of_torch(version: str, component: str, number: str) -> None:
    path = f"opt/lib/torch-{version}.dist-info/METADATA"
    inventory = seen({path: dist("torch", version)})
    assert told(inventory, component)[0][0] == number
    assert told(inventory, "torch") == [(version, "dist-info", False)]


# Compilers and toolkits


def test_alternatives_decide_which_gcc_is_the_default() -> None:
    inventory = seen(
        {
            "usr/bin/gcc": link("/etc/alternatives/gcc"),
            "etc/alternatives/gcc": link("/usr/bin/gcc-11"),
            "usr/bin/gcc-11": link("x86_64-linux-gnu-gcc-11"),
            "usr/bin/x86_64-linux-gnu-gcc-11": elf(versions=["11.4.0"]),
            "usr/bin/x86_64-linux-gnu-gcc-12": elf(versions=["12.3.0"]),
        }
    )
    assert told(inventory, "gcc") == [("11.4.0", "elf", True), ("12.3.0", "elf", False)]


def test_a_program_that_tells_nothing_is_a_skip() -> None:
    inventory = seen({"usr/bin/bazel": b"#!/bin/sh\n"})
    assert [(one.what, one.reason) for one in inventory.skipped][:1] == [
        (
            "which bazel",
            "/usr/bin/bazel is not a program itself; its version shows only when it is run",
        )
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"usr/bin/bazel": b"#!/bin/sh\n", "usr/bin/bazel-real": elf(versions=["6.4.0"])},
        {"usr/bin/bazel": elf(versions=["6.4.0"])},
        {"usr/bin/bazel": elf(), "src/.bazelversion": b"6.4.0\n"},
        {
            "usr/bin/bazel": b"#!/bin/sh\n",
            "var/lib/dpkg/status.d/b": b"Package: bazel-bootstrap\nVersion: 6.4.0+ds-9\n",
        },
    ],
)
def test_bazel_by_its_archive_its_package_or_what_bazelisk_is_told(files: dict[str, bytes]) -> None:
    assert {version for version, *_ in told(seen(files), "bazel")} == {"6.4.0"}


def test_bazelisk_is_told_by_a_variable() -> None:
    inventory = seen({"usr/bin/bazel": elf()}, Env=["USE_BAZEL_VERSION=7.1.0"])
    assert told(inventory, "bazel") == [("7.1.0", "configuration", True)]


@pytest.mark.parametrize(
    "program",
    [b"\x7fELF\2\1\1".ljust(2000, b"\0"), Path("/bin/true").read_bytes()],
    ids=["without sections", "with sections"],
)
def test_the_label_in_the_archive_behind_bazel(program: bytes) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        made.writestr("A-server.jar", b"PK" * 500)
        made.writestr("build-label.txt", "6.4.0")
    data = program + stream.getvalue()
    found = Look(Budget("image.tar"))("usr/bin/bazel-real", len(data), io.BytesIO(data))
    assert isinstance(found, Elf)
    assert found.versions == ("6.4.0",)


def test_clang_is_the_one_of_its_own_directory() -> None:
    inventory = seen(
        {
            "usr/bin/clang": link("../lib/llvm-19/bin/clang"),
            "usr/lib/llvm-19/bin/clang": elf(),
            "usr/lib/llvm-19/lib/clang/19/include/a.h": b"",
            "usr/lib/llvm-19/lib/libclang-cpp.so.19.1": elf(versions=["1.2.13", "19.1.7"]),
        }
    )
    assert told(inventory, "clang") == [("19.1.7", "beside it", True)]


@pytest.mark.parametrize(
    ("home", "path"),
    [("root/.pyenv/versions/3.11.7", "root/.pyenv/shims"), ("opt/conda", "opt/conda/bin")],
)
def test_pythons_of_pyenv_and_conda(home: str, path: str) -> None:
    files: dict[str, bytes | tarfile.TarInfo] = {
        f"{home}/bin/python3": link("python3.11"),
        f"{home}/bin/python3.11": elf(),
        f"{home}/include/python3.11/patchlevel.h": b'#define PY_VERSION "3.11.7"\n',
        f"{home}/lib/python3.11/site-packages/numpy-1.26.4.dist-info/METADATA": dist(
            "numpy", "1.26.4"
        ),
        "var/lib/dpkg/status.d/p": b"Package: python3.11-minimal\nVersion: 3.11.2-6\n",
    }
    inventory = seen(files, Env=[f"PATH=/{path}:/{home}/bin:/usr/bin"])
    assert told(inventory, "python") == [("3.11.7", "beside it", True)]
    assert told(inventory, "numpy")[0][2]


CUDNN = b"#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 2\n"
CUDA = b'{"cuda": {"name": "CUDA SDK", "version": "12.1.1"}, "cuda_nvcc": {"version": "12.1.105"}}'


def test_several_witnesses_of_cuda_and_what_is_in_use() -> None:
    inventory = seen(
        {
            "usr/local/cuda": link("cuda-12.1"),
            "usr/local/cuda-12.1/version.json": CUDA,
            "usr/local/cuda-12.1/bin/nvcc": elf(versions=["12.1.105"]),
            "usr/local/cuda-12.1/lib64/libcudart.so.12.1.105": elf(soname="libcudart.so.12"),
            "usr/include/cudnn_version.h": CUDNN,
            "usr/lib/libnccl.so.2.18.1": elf(soname="libnccl.so.2"),
            "opt/s/nvidia_cuda_runtime_cu11-11.8.89.dist-info/METADATA": dist(
                "nvidia-cuda-runtime-cu11", "11.8.89"
            ),
        },
        Env=["PATH=/usr/local/cuda/bin"],
    )
    assert told(inventory, "cuda") == [
        ("12.1.1", "version file", True),
        ("12.1", "directory", True),
        ("12.1", "nvcc", True),
        ("12.1", "soname", False),
        ("11.8", "wheel", False),
    ]
    assert told(inventory, "cudnn") == [("8.9.2", "header", False)]
    assert told(inventory, "nccl") == [("2.18.1", "soname", True)]


def test_rocm_by_its_file_and_its_link() -> None:
    inventory = seen(
        {"opt/rocm": link("rocm-5.7.0"), "opt/rocm-5.7.0/.info/version": b"5.7.0-63\n"}
    )
    assert told(inventory, "rocm") == [
        ("5.7.0", "version file", True),
        ("5.7.0", "directory", True),
    ]


def test_the_distribution_and_symbol_versions() -> None:
    inventory = seen(
        {
            "usr/lib/os-release": b'ID=ubuntu\nVERSION_ID="22.04"\n',
            "etc/os-release": link("../usr/lib/os-release"),
            "lib/libc.so.6": elf(soname="libc.so.6", gives=[["GLIBC", "2.35"]]),
            "lib/libstdc++.so.6.0.30": elf(
                soname="libstdc++.so.6", gives=[["CXXABI", "1.3.13"], ["GLIBCXX", "3.4.30"]]
            ),
        }
    )
    names = ("distro", "glibc", "libstdcxx")
    assert [told(inventory, name)[0][0] for name in names] == ["ubuntu22.04", "2.35", "3.4.30"]


# Libraries


def needs(*names: str, **fields: Any) -> bytes:
    """A program that needs libraries."""
    return elf(needed=list(names), **fields)


@pytest.mark.parametrize(
    ("files", "config", "found"),
    [
        ({"usr/lib/x86_64-linux-gnu/libx.so.1": elf()}, [], "usr/lib/x86_64-linux-gnu/libx.so.1"),
        ({"opt/x/libx.so.1": elf()}, ["LD_LIBRARY_PATH=/opt/x"], "opt/x/libx.so.1"),
        (
            {
                "etc/ld.so.cache": cache("/opt/y/libx.so.1"),
                "opt/y/libx.so.1": link("libx.so.1.2"),
                "opt/y/libx.so.1.2": elf(),
            },
            [],
            "opt/y/libx.so.1.2",
        ),
        ({"usr/lib/libx.so.1": elf("arm64"), "lib64/libx.so.1": elf()}, [], "lib64/libx.so.1"),
        (
            {"lib/ld-musl-x86_64.so.1": elf(), "usr/local/lib/libx.so.1": elf()},
            [],
            "usr/local/lib/libx.so.1",
        ),
        ({"usr/lib/libx.so.2": elf(soname="libx.so.2")}, [], ""),
    ],
)
def test_the_loader_finds_what_it_would(
    files: dict[str, bytes], config: list[str], found: str
) -> None:
    inventory = seen({"usr/bin/app": needs("libx.so.1"), **files}, Env=config)
    assert [(one.name, one.found) for one in inventory.sonames] == [("libx.so.1", found)]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"runpath": ["$ORIGIN/../lib"]}, "opt/app/lib/libx.so.1"),
        ({"rpath": ["${ORIGIN}/../lib"]}, "opt/app/lib/libx.so.1"),
        ({"rpath": ["/none"], "runpath": ["lib"]}, "usr/lib/libx.so.1"),
    ],
)
def test_search_paths_of_the_file_come_first(fields: dict[str, list[str]], found: str) -> None:
    libraries = {"opt/app/lib/libx.so.1": elf(), "usr/lib/libx.so.1": elf()}
    inventory = seen({"opt/app/bin/app": needs("libx.so.1", **fields), **libraries})
    assert [one.found for one in inventory.sonames] == [found]


def test_rpath_beats_the_variable_and_runpath_does_not() -> None:
    libraries = {"opt/own/libx.so.1": elf(), "opt/env/libx.so.1": elf()}
    for field, found in (("rpath", "opt/own/libx.so.1"), ("runpath", "opt/env/libx.so.1")):
        app = needs("libx.so.1", **{field: ["/opt/own"]})
        inventory = seen({"app": app, **libraries}, Env=["LD_LIBRARY_PATH=/opt/env"])
        assert [one.found for one in inventory.sonames] == [found]


def test_missing_is_told_from_another_major_and_from_out_of_reach() -> None:
    inventory = seen(
        {
            "usr/bin/app": needs("libcudart.so.11.0", "libgone.so.1", "libjvm.so"),
            "usr/lib/libcudart.so.12.1.105": elf(soname="libcudart.so.12"),
            "opt/jvm/libjvm.so": elf(),
        }
    )
    assert [(one.name, one.others) for one in inventory.sonames] == [
        ("libcudart.so.11.0", ("libcudart.so.12",)),
        ("libgone.so.1", ()),
    ]
    assert ("soname:libjvm.so") in {one.what for one in inventory.skipped}


def test_a_whiteout_takes_a_library_away() -> None:
    first = {"usr/bin/app": needs("libx.so.1"), "usr/lib/libx.so.1": elf()}
    assert not seen(first, {"usr/lib/.wh.libx.so.1": b""}).sonames[0].found


# Options, architecture, configuration


def test_options_of_files_configuration_and_bazelrc() -> None:
    inventory = seen(
        {
            "app": elf("arm64", options=[["-march=armv8-a+crc", "DW_AT_producer"]], char="signed"),
            "root/.bazelrc": b"build --copt=-fsigned-char --cxxopt='-O3' # --copt=-no\n",
        },
        Env=["CFLAGS=-O2 -fsigned-char", "CC=gcc -m64"],
        platform="linux/arm64",
    )
    flags = {name for name in inventory.features if name.startswith("flag:")}
    assert flags == {"flag:-march=armv8-a+crc", "flag:-fsigned-char", "flag:-O3", "flag:-O2"}
    assert (valued(inventory, "crc32"), valued(inventory, "char")) == (["yes"], ["signed"])


def test_debug_options_of_files_are_told_as_those_of_variables_are() -> None:
    options = [
        [name, "DW_AT_producer"] for name in ("-g", "-frecord-gcc-switches", "-gstatement-x")
    ]
    flags = {"flag:-g", "flag:-frecord-gcc-switches"}
    by_file = seen({"app": elf(options=options)})
    by_variable = seen({}, Env=["CFLAGS=-g -frecord-gcc-switches"])
    for inventory in (by_file, by_variable):
        assert {name for name in inventory.features if name.startswith("flag:")} == flags


def test_the_architecture_three_ways_and_foreign_files() -> None:
    files = {"a": elf(), "b": elf(), "c": elf("arm64", device=["sm_86"])}
    inventory = seen(files, platform="linux/arm64")
    assert valued(inventory, "arch") == ["arm64", "amd64"]
    assert [(one.version, one.seen_by) for one in inventory.features["foreign-arch"]] == [
        ("arm64", "elf")
    ]
    assert valued(inventory, "codegen") == ["sm_86"]


@pytest.mark.parametrize(
    ("path", "machine", "taken"),
    [
        ("usr/bin/tool", "arm64", True),
        ("usr/lib/x86_64-linux-gnu/libx.so.1", "arm64", True),
        ("opt/own/libx.so.1", "arm64", True),
        (
            "usr/local/lib/python3.11/dist-packages/a/b.cpython-311-aarch64-linux-gnu.so",
            "arm64",
            True,
        ),
        ("usr/local/lib/python3.11/dist-packages/a/b.abi3.so", "arm64", True),
        ("usr/local/lib/python3.11/dist-packages/a/linux-aarch64/libwasm.so", "arm64", False),
        ("usr/lib/i386-linux-gnu/libc.so.6", "386", False),
        ("lib/ld-linux.so.2", "386", False),
        ("usr/aarch64-linux-gnu/lib/libc.so.6", "arm64", False),
        ("usr/lib/aarch64-linux-gnu/libc.so.6", "arm64", False),
        ("usr/lib/firmware/a.elf", "machine 94", False),
        ("usr/lib/kernels.hsaco", "amdgpu", None),
        ("usr/lib/kernels.cubin", "cuda", None),
    ],
)
def test_a_file_for_another_processor_matters_where_it_is_taken(
    path: str, machine: str, taken: bool | None
) -> None:
    files = {
        **PYTHON,
        "etc/ld.so.cache": cache("/opt/own/libx.so"),
        "bin/sh": elf(),
        path: elf(machine),
    }
    found = seen(files).features.get("foreign-arch", ())
    wanted = [] if taken is None else ["default place" if taken else "elf"]
    assert [one.seen_by for one in found] == wanted


def test_the_configuration_is_features() -> None:
    inventory = seen(
        {}, Env=["A=1"], Labels={"l": "2"}, User="me", Entrypoint=["/a", "b"], Cmd=None
    )
    names = ("env:A", "label:l", "user", "entrypoint", "cmd")
    assert [valued(inventory, name) for name in names] == [["1"], ["2"], ["me"], ["/a b"], []]


def test_the_document_keeps_to_its_schema() -> None:
    document = seen(PYTHON, {"app": needs("libx.so.1")}, Labels={"a": "\x1b[31m"}).to_json()
    schema = shipped("inventory")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    assert document["sonames"]
    assert document["history"]


def test_the_order_of_files_does_not_matter() -> None:
    names = list(PYTHON)
    random.Random(1).shuffle(names)
    shuffled = seen({name: PYTHON[name] for name in names})
    assert shuffled.components.keys() == seen(PYTHON).components.keys()


KEPT = (
    *("var/lib/dpkg/status", "lib/apk/db/installed", "etc/ld.so.cache", "etc/os-release"),
    *("a/b-1.dist-info/METADATA", "usr/local/cuda/version.json", "x/torch/version.py"),
    *("root/.bazelrc", "opt/v/pyvenv.cfg", "x/.info/version", "x/cudnn_version.h", "bin/gcc"),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.dictionaries(st.sampled_from(KEPT), st.binary(max_size=300), max_size=4))
def test_any_contents_give_an_inventory(files: dict[str, bytes]) -> None:
    json.dumps(seen(files, Env=["PATH=/bin"]).to_json())


@pytest.mark.parametrize(
    "config",
    [
        {"Env": 3, "Labels": [1], "Cmd": 7},
        {"Env": [1, None, "x"], "Entrypoint": {"a": 1}},
        {"Env": ["CFLAGS='unclosed", "LD_LIBRARY_PATH=:::../..:/", "PATH="]},
    ],
)
def test_odd_configurations_give_an_inventory(config: dict[str, Any]) -> None:
    json.dumps(seen({"app": needs("libx.so", "../x", "/")}, **config).to_json())
