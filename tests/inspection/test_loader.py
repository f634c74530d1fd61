"""What our reading finds for a library, held against the loader itself in a directory of its own."""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.compilation.real import program
from tests.images import images
from tests.inspection.test_observe import elf, needs, seen
from toolmatrix.images import local
from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.layers import LayerReader
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import dynamic
from toolmatrix.inspection.loader import LibrarySearch, library_path
from toolmatrix.inspection.observe import Look
from toolmatrix.inspection.record import View

if TYPE_CHECKING:
    import tarfile
    from typing import Any

    from toolmatrix.inspection.model import Inventory

NAMES = ("liba.so.1", "libb.so.1", "libc0.so.1")
NEEDS = {
    "app": ("liba.so.1", "libc0.so.1"),
    "liba.so.1": ("libb.so.1",),
    "libb.so.1": ("libc0.so.1",),
}
APP = "opt/app/bin/app"
FOLDERS = (
    *("{lib}", "usr/{lib}", "lib", "usr/lib", "lib64", "opt/one", "opt/two", "opt/app/lib"),
    *("usr/{lib}/glibc-hwcaps/x86-64-v2", "opt/x86_64", "opt/{lib}"),
)
PATHS = (
    "",
    "/opt/one",
    "$ORIGIN/../lib",
    "/none:${ORIGIN}/../../opt/two",
    "/opt/$LIB",
    "/opt/$PLATFORM",
)


class Root(NamedTuple):
    """A root to be made: where libraries lie, the paths in the app and liba, and what is configured."""

    places: tuple[frozenset[str], ...]
    app: str
    liba: str
    old: bool
    variable: str
    conf: str


roots = st.builds(
    Root,
    places=st.tuples(*(st.frozensets(st.sampled_from(FOLDERS), max_size=2) for _ in NAMES)),
    app=st.sampled_from(PATHS),
    liba=st.sampled_from(PATHS),
    old=st.booleans(),
    variable=st.sampled_from(["", "/opt/two", ":/opt/one", "opt/two", "/none;/opt/app/lib"]),
    conf=st.sampled_from(
        ["", "/opt/two # here", "include ld.so.conf.d/*.conf", "/opt/one\n/opt/two\n"]
    ),
)


class Linker:
    """Makes programs and libraries that need what `NEEDS` says, each once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[tuple[str, str, bool], Path] = {}
        for name in reversed(NAMES):
            shutil.copy(self(name), folder / name)

    def __call__(self, name: str, rpath: str = "", *, old: bool = False) -> Path:
        """A file with these search paths, by old tags (RPATH) or new ones (RUNPATH)."""
        key = (name, rpath, old)
        if key not in self.made:
            self.made[key] = self.folder / f"{len(self.made)}.made"
            tags = "--disable-new-dtags" if old else "--enable-new-dtags"
            flags = [f"-Wl,-rpath,{rpath}", f"-Wl,{tags}"] if rpath else []
            kind = ["-e", "main"] if name == "app" else ["-shared", f"-Wl,-soname,{name}"]
            needed = [f"-l:{one}" for one in NEEDS.get(name, ())]
            source = "int main(void) { return 0; }" if name == "app" else "int f;"
            args = [
                "gcc",
                "-nostdlib",
                "-fPIC",
                *kind,
                *flags,
                "-xc",
                "-",
                "-o",
                str(self.made[key]),
            ]
            more = ["-L.", "-Wl,--no-as-needed", "-Wl,--unresolved-symbols=ignore-all", *needed]
            subprocess.run([*args, *more], cwd=self.folder, input=source, text=True, check=True)
        return self.made[key]


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Linker:
    """One for all roots."""
    program("g++")  # whose package brings gcc
    return Linker(tmp_path_factory.mktemp("link"))


def make(root: Path, one: Root, lib: str, link: Linker) -> None:
    """A directory as a root, with the loader of this machine and its cache."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    made = {name: link(name) for name in NAMES} | {
        "liba.so.1": link("liba.so.1", one.liba, old=one.old)
    }
    files = {
        f"{place}/{name}": made[name]
        for name, held in zip(NAMES, one.places, strict=True)
        for place in held
    }
    loader = Path(os.path.realpath(interpreter()))
    files |= {APP: link("app", one.app, old=one.old), interpreter()[1:]: loader}
    files[f"usr/{lib}/there"] = files[f"{lib}/there"] = made["libb.so.1"]
    for name, path in files.items():
        target = root / name.format(lib=lib)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    (root / "etc/ld.so.conf.d").mkdir(parents=True)
    (root / "etc/ld.so.conf.d/a.conf").write_text("/opt/one\n")
    (root / "etc/ld.so.conf").write_text(one.conf)
    subprocess.run([shutil.which("ldconfig") or "/sbin/ldconfig", "-r", str(root)], check=True)


@cache
def interpreter() -> str:
    """The loader of this machine."""
    with Path("/usr/bin/true").open("rb") as file:
        return dynamic.read(file).interpreter


@cache
def calls_it_as_the_kernel_does() -> bool:
    """Whether `$PLATFORM` is what the kernel calls this processor: glibc calls some x86 ones `haswell`."""
    words = [interpreter(), "--list-diagnostics"]
    said = subprocess.run(words, check=False, capture_output=True, text=True).stdout
    found = re.search(r'^dl_platform="(.*)"$', said, re.MULTILINE)
    return found is None or found[1] == os.uname().machine


TRACE = """
import json, os, sys
os.chroot(sys.argv[1])
os.chdir("/")
os.execve(sys.argv[2], [sys.argv[2]], json.loads(sys.argv[3]))
"""


def by_loader(root: Path, variable: str) -> dict[str, str]:
    """What the loader finds for each library, empty where it finds none."""
    inside = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
    env = {
        "LD_TRACE_LOADED_OBJECTS": "1",
        "LD_ORIGIN_PATH": f"/{APP.rpartition('/')[0]}",  # which is asked of /proc otherwise
        **({"LD_LIBRARY_PATH": variable} if variable else {}),
    }
    args = [*inside, sys.executable, "-c", TRACE, str(root), f"/{APP}", json.dumps(env)]
    done = subprocess.run(args, check=True, capture_output=True, text=True)
    pairs = [line.split(" => ") for line in done.stdout.splitlines() if " => " in line]
    return {
        name.strip(): ""
        if "not found" in found
        else posixpath.normpath(found.split(" (")[0]).strip("/")
        for name, found in reversed(
            pairs
        )  # the first that asks decides, though a later one may find it
    }


def by_reading(root: Path, variable: str) -> dict[str, str]:
    """The same by reading, in the order in which the loader goes."""
    _, tree = local.read_root(str(root), LayerReader(Look, Budget("root")))
    config = {"config": {"Env": [f"LD_LIBRARY_PATH={variable}"] if variable else []}}
    view = View(ImageMetadata(subject="root", config=config), tree)
    search = LibrarySearch(view, library_path(view))
    found: dict[str, str] = {}
    todo = [APP]
    while todo:
        path = todo.pop(0)
        for name in search.files[path].needed:
            if name not in found:
                found[name] = search.find(name, path, search.files[path])
                todo += filter(None, [found[name]])
    return found


@pytest.mark.process
@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(one=roots)
def test_the_loader_finds_the_same(tmp_path: Path, linker: Linker, one: Root) -> None:
    assume("$PLATFORM" not in one.app + one.liba or calls_it_as_the_kernel_does())
    root = tmp_path / "root"
    triple = subprocess.run(["gcc", "-print-multiarch"], check=True, capture_output=True, text=True)
    make(root, one, f"lib/{triple.stdout.strip()}", linker)
    real, ours = by_loader(root, one.variable), by_reading(root, one.variable)
    assert {name: bool(path) for name, path in ours.items()} == {
        name: bool(path) for name, path in real.items()
    }
    for name, path in real.items():
        if "glibc-hwcaps" not in path and not one.old:
            assert ours[name] == path


def find(inventory: Inventory) -> dict[str, str]:
    """What is found for each soname."""
    return {one.name: one.found for one in inventory.sonames}


def test_the_loader_of_a_program_is_needed_like_a_library() -> None:
    files: dict[str, bytes | tarfile.TarInfo] = {
        "usr/bin/app": needs("libx.so.1", interpreter="/lib64/ld-linux-x86-64.so.2"),
        "usr/lib/libx.so.1": elf(),
    }
    assert find(seen(files)) == {
        "libx.so.1": "usr/lib/libx.so.1",
        "/lib64/ld-linux-x86-64.so.2": "",
    }
    files |= {"lib64": images.link("usr/lib"), "usr/lib/ld-linux-x86-64.so.2": elf()}
    assert all(find(seen(files)).values())


GLIBC = "/lib64/ld-linux-x86-64.so.2"
TRIPLE = "lib/x86_64-linux-gnu"


@pytest.mark.parametrize(
    ("at", "soname"), [(GLIBC, "ld-linux-x86-64.so.2"), (GLIBC, ""), ("/opt/ld.so", GLIBC[7:])]
)
def test_the_loader_of_a_program_is_loaded_before_a_library_needs_it(at: str, soname: str) -> None:
    # What a base `scratch` holds of `ldd`: the directory of the loader is none that it searches.
    files = {
        "usr/bin/app": needs("libc.so.6", interpreter=at),
        f"{TRIPLE}/libc.so.6": needs("ld-linux-x86-64.so.2", interpreter=at),
        at[1:]: elf(soname=soname),
    }
    inventory = seen(files)
    assert find(inventory) == {
        "libc.so.6": f"{TRIPLE}/libc.so.6",
        "ld-linux-x86-64.so.2": at[1:],
        at: at[1:],
    }
    assert not [one for one in inventory.skipped if one.what.startswith("soname")]
    assert not [name for name in inventory.features if name.startswith("unreached")]


def test_a_loader_that_no_program_asks_for_or_that_is_gone_is_not_loaded() -> None:
    files = {
        "usr/bin/app": needs("libc.so.6", interpreter=GLIBC),
        f"{TRIPLE}/libc.so.6": needs("ld-linux-x86-64.so.2", interpreter=GLIBC),
    }
    gone = {"libc.so.6": f"{TRIPLE}/libc.so.6", "ld-linux-x86-64.so.2": "", GLIBC: ""}
    assert find(seen(files)) == gone
    # One without a slash, or one for another processor, is none either.
    assert find(seen({**files, GLIBC[1:]: elf("arm64"), "app": needs(interpreter="ld.so")})) == {
        **gone,
        "ld.so": "",
    }
    assert "soname:ld-linux-x86-64.so.2" in {
        one.what for one in seen({**files, "opt/ld-linux-x86-64.so.2": elf()}).skipped
    }


def test_a_loader_of_musl_in_any_place_is_loaded_too() -> None:
    loader = "opt/musl/ld-musl-x86_64.so.1"
    files = {
        "bin/app": needs("libx.so.1", "libc.so", interpreter=f"/{loader}"),
        "usr/lib/libx.so.1": needs("libc.so", "ld-musl-x86_64.so.1"),
        loader: elf(soname="libc.so"),
    }
    assert find(seen(files)) == {
        "libx.so.1": "usr/lib/libx.so.1",
        **dict.fromkeys(("libc.so", "ld-musl-x86_64.so.1", f"/{loader}"), loader),
    }


def test_musl_has_the_libraries_of_libc_itself() -> None:
    files = {"bin/app": needs("libm.so.6", "libx.so.1"), "lib/ld-musl-x86_64.so.1": elf()}
    assert find(seen(files)) == {"libm.so.6": "lib/ld-musl-x86_64.so.1", "libx.so.1": ""}
    paths = {"etc/ld-musl-x86_64.path": b"/opt/a:/opt/b\n/opt/c\n", "opt/c/libx.so.1": elf()}
    assert find(seen({**files, **paths}))["libx.so.1"] == "opt/c/libx.so.1"


@pytest.mark.parametrize("name", ["libcuda.so.1", "libnvidia-ml.so.1"])
def test_stubs_are_no_libraries(name: str) -> None:
    files = {"app": needs(name), f"usr/local/cuda/lib64/stubs/{name}": elf(soname=name)}
    inventory = seen(files, Env=["LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs"])
    assert find(inventory) == {name: ""}
    assert f"soname:{name}" not in inventory.features


def test_what_is_preloaded_is_needed_and_there_for_all() -> None:
    files = {
        "etc/ld.so.preload": b"/opt/libp.so\n",
        "opt/libp.so": elf(soname="libx.so.1"),
        "app": needs("libx.so.1"),
    }
    inventory = seen(files, Env=["LD_PRELOAD=libgone.so"])
    assert find(inventory) == {
        "/opt/libp.so": "opt/libp.so",
        "libgone.so": "",
        "libx.so.1": "opt/libp.so",
    }
    assert inventory.sonames[-2].needed_by == ("Env LD_PRELOAD",)


def test_rpath_reaches_what_is_loaded_below_and_runpath_does_not() -> None:
    files: dict[str, Any] = {
        "usr/lib/liba.so.1": needs("libb.so.1"),
        "usr/lib/libb.so.1": needs("libx.so.1"),
        "opt/libx.so.1": elf(),
    }
    for field, found in (("rpath", "opt/libx.so.1"), ("runpath", None)):
        app = needs("liba.so.1", **{field: ["/opt"]})
        assert find(seen({"app": app, **files})).get("libx.so.1") == found


def test_torch_loads_the_libraries_of_other_wheels_first() -> None:
    site = "opt/lib/python3.11/site-packages"
    files: dict[str, bytes | tarfile.TarInfo] = {
        f"{site}/torch/lib/libtorch_cuda.so": needs("libcudart.so.12"),
        f"{site}/nvidia/cuda_runtime/lib/libcudart.so.12": elf(soname="libcudart.so.12"),
    }
    assert find(seen(files)) == {
        "libcudart.so.12": f"{site}/nvidia/cuda_runtime/lib/libcudart.so.12"
    }


def test_origin_in_the_variable_is_that_of_the_program() -> None:
    files = {"opt/bin/app": needs("libx.so.1"), "opt/lib/libx.so.1": elf()}
    inventory = seen(files, Env=["LD_LIBRARY_PATH=$ORIGIN/../lib"])
    assert find(inventory) == {"libx.so.1": "opt/lib/libx.so.1"}
