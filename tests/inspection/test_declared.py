"""Observers read the files that they declare and no others, and what is kept of a layer is what they declare."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest

from tests.images import images
from tests.inspection.test_layers import packed
from tests.inspection.test_observe import TestLook, cache, dist, elf
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import observe, programs, system
from toolmatrix.inspection.record import Record, View

if TYPE_CHECKING:
    from types import ModuleType

    from toolmatrix.images.layers import Tree
    from toolmatrix.inspection.model import FilePattern

CUDNN = b"#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 2\n"
# A file of every pattern at least, with contents that an observer makes something of.
FILES = {
    "etc/os-release": b"ID=debian\nVERSION_ID=12\n",
    "etc/ld.so.cache": cache("/opt/lib/liba.so.1"),
    "etc/ld.so.preload": b"/opt/lib/libpre.so\n",
    "etc/bazel.bazelrc": b"build --copt=-mcrc32\n",
    "opt/lib/liba.so.1": elf(soname="liba.so.1"),
    "usr/bin/python3.11": elf(needed=["liba.so.1"]),
    "usr/bin/gcc": elf(versions=["12.2.0"]),
    "usr/bin/bazel": elf(),
    "usr/include/python3.11/patchlevel.h": b'#define PY_VERSION "3.11.2"\n',
    "usr/lib/python3.11/_sysconfigdata_a.py": b"build_time_vars = {'OPT': '-O2'}",
    "usr/lib/python3/dist-packages/a-1.dist-info/METADATA": dist("a", "1"),
    "usr/lib/python3/dist-packages/a-1.dist-info/RECORD": b"a/x.py,,\n",
    "usr/lib/python3/dist-packages/b-2.egg-info/PKG-INFO": dist("b", "2"),
    "usr/lib/python3/dist-packages/c-3.egg-info": dist("c", "3"),
    "usr/lib/python3/dist-packages/numpy/__config__.py": b'{"blas": {"name": "openblas"}}',
    "usr/lib/python3/dist-packages/numpy/core/include/numpy/_numpyconfig.h": (
        b"#define NPY_API_VERSION 0x00000011\n"
    ),
    "usr/lib/python3/dist-packages/torch/version.py": b"cuda = '11.8'\n",
    "usr/local/cuda-11.8/version.json": b'{"cuda": {"version": "11.8.0"}}',
    "usr/local/cuda-10.0/version.txt": b"CUDA Version 10.0.130\n",
    "usr/include/cudnn_version_v8.h": CUDNN,
    "usr/include/nccl.h": b"#define NCCL_MAJOR 2\n#define NCCL_MINOR 1\n#define NCCL_PATCH 0\n",
    "usr/include/NvInferVersion.h": b"#define NV_TENSORRT_MAJOR 8\n",
    "opt/rocm-5.7.0/.info/version": b"5.7.0-63\n",
    "opt/rocm-5.7.0/bin/hipcc": b"#!/bin/sh\n",
    "opt/rocm-5.7.0/bin/.hipVersion": (
        b"HIP_VERSION_MAJOR=5\nHIP_VERSION_MINOR=7\nHIP_VERSION_PATCH=1\n"
    ),
    "src/.bazelversion": b"5.3.0\n",
    "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n",
    "usr/lib/python3/dist-packages/z.egg": packed("z/__init__.py", b"__version__ = '1.0'\n"),
    "usr/lib/python3/dist-packages/a.pth": b"/opt/site\n",
    "usr/lib/python3/dist-packages/a/version.py": b"version = '1'\n",
    "usr/lib/python3/dist-packages/b-2.egg-info/top_level.txt": b"b\n",
    "usr/lib/python3/dist-packages/__editable___e_finder.py": b"MAPPING = {}\n",
    "usr/lib/python3.11/sitecustomize.py": b"import os\n",
    "opt/conda/conda-meta/numpy-1.26.4-py311_0.json": b"{}",
    "opt/venv/pyvenv.cfg": b"home = /usr/bin\n",
    "var/lib/dpkg/status": b"Package: gcc-12\nStatus: install ok installed\nVersion: 12.2.0-14\n",
    "var/lib/dpkg/info/gcc-12.list": b"/.\n/usr/bin/gcc\n",
    "lib/apk/db/installed": b"P:musl\nV:1.2.4-r2\n",
    "var/lib/rpm/Packages": b"x" * 99,
    "usr/share/toolmatrix/toolmatrix.lock": b"a = 1\n",
    # Nobody declares these.
    "etc/shadow": b"root:x:0:0\n",
    "usr/lib/python3/dist-packages/a/x.py": b"import b\n",
    "usr/lib/python3/dist-packages/a-1.dist-info/WHEEL": b"Wheel-Version: 1.0\n",
}
UNDECLARED = {"etc/shadow", *(one for one in FILES if one.endswith(("/x.py", "WHEEL")))}
ENV = ("PATH=/opt/rocm-5.7.0/bin:/usr/bin", "LD_LIBRARY_PATH=/opt/lib")


class Watched(View):
    """A view of files in which an observer may read what it declares, and everything else is refused."""

    def __init__(self, view: View, declared: tuple[FilePattern, ...]) -> None:
        super().__init__(view.image, view.tree)
        self.read: set[str] = set()
        fits = re.compile("|".join(f"(?:{one.pattern})" for one in map(plain, declared))).fullmatch
        self.contents = {path: data for path, data in self.contents.items() if fits(path)}
        self.databases = {path: held for path, held in self.databases.items() if fits(path)}
        whole: Tree = view.tree

        class Part(type(whole)):  # type: ignore[misc]
            """The tree, which gives the contents of declared files alone."""

            def content(self, path: str) -> bytes | None:
                found: bytes | None = super().content(path)
                real = self.real(path)
                assert found is None or fits(real or path), f"/{path} is read and not declared"
                return found

        self.tree = Part()
        self.tree.root = whole.root


def plain(declared: FilePattern) -> FilePattern:
    """A pattern without named groups, which may not stand twice in one."""
    return declared._replace(pattern=re.sub(r"\(\?P<\w+>", "(?:", declared.pattern))


def view(keeping: observe.Look) -> View:
    """The files above as they would be seen if these were kept."""
    made = images.image(FILES, Env=ENV)
    return View(*images.from_archive(images.saved(made), look=keeping))


class Everything(TestLook):
    """Keeps every file whole that is nothing better."""

    def __call__(self, path: str, size: int, stream: object) -> object:
        data = images.everything(path, size, stream)  # type: ignore[arg-type]
        made = io.BytesIO(data)
        return super().__call__(path, size, made) or data


def ran(observer: ModuleType, seen: View) -> Record:
    """What one observer puts in."""
    record = Record(seen)
    if observer.__name__.endswith("python"):
        observer.observe_imports(seen, record, [])
    else:
        observer.observe(seen, record)
    return record


@pytest.mark.parametrize(
    "observer", observe.OBSERVERS, ids=lambda one: one.__name__.rpartition(".")[2]
)
def test_an_observer_reads_nothing_that_it_does_not_declare(observer: ModuleType) -> None:
    """With all files kept it puts in what it does with its own alone."""
    whole = view(Everything(Budget("image.tar")))
    assert "etc/shadow" in whole.contents
    own = ran(observer, Watched(whole, observer.READS))
    full = ran(observer, whole)
    assert (own.components, own.features) == (full.components, full.features)
    assert own.skipped == full.skipped
    assert own.features or own.components


def test_what_is_kept_is_what_is_declared() -> None:
    seen = view(TestLook(Budget("image.tar")))
    held = {path for path, entry in seen.tree.files() if entry.content is not None}
    assert held == FILES.keys() - UNDECLARED


def test_every_pattern_has_a_file_above() -> None:
    unused = [
        one.pattern
        for one in observe.READS
        if not any(re.fullmatch(one.pattern, path) for path in FILES)
    ]
    assert unused == []


def test_one_pattern_says_which_of_many_matched() -> None:
    """A group inside one of them would count with theirs."""
    assert observe._KEEP.groups == len(observe.READS)
    assert observe._TELL.groups == len(programs.VERSION_TEXTS)


def test_what_is_read_of_a_running_machine_is_declared() -> None:
    """Its lists are of shell patterns, as directories of a machine are not walked."""
    # Modules are looked for by their names alone.
    sites = [
        f"/usr/lib/python3.11/{one}" for one in system._RECORDS if one[:2] != "*." or "/" in one
    ]
    for pattern in (*system._FILES, *sites):
        path = pattern.strip("/").replace("*", "a-1")
        assert observe._KEEP.fullmatch(path), pattern
