"""Programs and libraries made by a compiler: which files the model of the loader takes, and which the loader takes.

`python -m tests.inspection.real_libraries [WORD...]` makes every root, or those whose names have one of the words, in a
temporary folder, asks the loader in a chroot, and prints a line for each and the counts. It needs gcc.
"""

from __future__ import annotations

import json
import os
import posixpath
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.inspection.test_loader import TRACE, interpreter
from toolmatrix.images import local
from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.layers import LayerReader
from toolmatrix.images.limits import Budget
from toolmatrix.inspection.dynamic import Dynamic
from toolmatrix.inspection.loader import LibrarySearch, library_path
from toolmatrix.inspection.observe import Look
from toolmatrix.inspection.record import View

APP = "opt/app/bin/app"
_LIB = "usr/lib/x86_64-linux-gnu"
_OLD, _NEW = "-Wl,--disable-new-dtags", "-Wl,--enable-new-dtags"


class File(NamedTuple):
    """A library, or the program, with what it needs by the names in the files, and options of the linker."""

    path: str
    needed: tuple[str, ...] = ()
    soname: str = ""
    options: tuple[str, ...] = ()


class Root(NamedTuple):
    """The files of a root; `env` are variables, `texts` files and `links` links, made before ldconfig runs.

    `after` are commands for a shell in the root, run behind it.
    """

    files: tuple[File, ...]
    env: Mapping[str, str] = {}
    texts: Mapping[str, str] = {}
    links: Mapping[str, str] = {}
    after: str = ""


def _app(*options: str, needed: tuple[str, ...] = ("libx.so.1",)) -> File:
    return File(APP, needed, options=options)


def _rpath(path: str, tags: str) -> tuple[str, str]:
    return f"-Wl,-rpath,{path}", tags


def _x(folder: str, *options: str, needed: tuple[str, ...] = ()) -> File:
    return File(f"{folder}/libx.so.1", needed, options=options)


_CONF = {"etc/ld.so.conf": "/opt/one\n/opt/two\n"}
_TWO = (_app(), _x("opt/one"), _x("opt/two"))
_OF_PATH = {"LD_LIBRARY_PATH": "/opt/two"}

ROOTS: dict[str, Root] = {
    "directory of the system": Root((_app(), _x(_LIB))),
    "nowhere": Root((_app(), _x("opt/one"))),
    "variable before the system": Root((_app(), _x(_LIB), _x("opt/two")), _OF_PATH),
    "RPATH before the variable": Root((_app(*_rpath("/opt/one", _OLD)), *_TWO[1:]), _OF_PATH),
    "variable before RUNPATH": Root((_app(*_rpath("/opt/one", _NEW)), *_TWO[1:]), _OF_PATH),
    "RUNPATH before ld.so.conf": Root((_app(*_rpath("/opt/two", _NEW)), *_TWO[1:]), texts=_CONF),
    "RUNPATH by the program's place": Root(
        (_app(*_rpath("$ORIGIN/../lib", _NEW)), _x("opt/app/lib"), _x(_LIB))
    ),
    "RPATH for what a library needs": Root(
        (
            _app(*_rpath("/opt/one", _OLD), needed=("liba.so.1",)),
            File("opt/one/liba.so.1", ("libx.so.1",)),
            _x("opt/one"),
        )
    ),
    "RUNPATH not for what a library needs": Root(
        (
            _app(*_rpath("/opt/one", _NEW), needed=("liba.so.1",)),
            File("opt/one/liba.so.1", ("libx.so.1",)),
            _x("opt/one"),
        )
    ),
    "order of ld.so.conf": Root(_TWO, texts={"etc/ld.so.conf": "/opt/two\n/opt/one\n"}),
    "files of ld.so.conf.d": Root(
        _TWO,
        texts={
            "etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n",
            "etc/ld.so.conf.d/b.conf": "/opt/one\n",
            "etc/ld.so.conf.d/a.conf": "/opt/two\n",
        },
    ),
    "ld.so.conf before the system": Root((_app(), _x(_LIB), _x("opt/one")), texts=_CONF),
    "ld.so.conf without ldconfig": Root(
        (_app(), _x("opt/one")), texts=_CONF, after="rm etc/ld.so.cache"
    ),
    "ld.so.conf that came after ldconfig": Root(
        (_app(), _x("opt/one")), after="echo /opt/one > etc/ld.so.conf"
    ),
    "directory that ld.so.conf had once": Root(
        (_app(), _x("opt/one")), texts=_CONF, after="rm etc/ld.so.conf"
    ),
    "file removed after ldconfig": Root(_TWO, texts=_CONF, after="rm opt/one/libx.so.1"),
    "file removed after ldconfig, another one of the system": Root(
        (_app(), _x("opt/one"), _x(_LIB)), texts=_CONF, after="rm opt/one/libx.so.1"
    ),
    "another file name than its soname": Root(
        (_app(), File("opt/one/liby.so.5", soname="libx.so.1")), texts=_CONF
    ),
    "another file name than its soname, and no link": Root(
        (_app(), File("opt/one/liby.so.5", soname="libx.so.1")),
        texts=_CONF,
        after="rm opt/one/libx.so.1",
    ),
    "another soname than its file name": Root(
        (_app(), File("opt/one/libx.so.1", soname="libx.so.2")), {"LD_LIBRARY_PATH": "/opt/one"}
    ),
    "another soname than its file name, by ld.so.conf": Root(
        (_app(), File("opt/one/libx.so.1", soname="libx.so.2")), texts=_CONF
    ),
    "preloaded": Root((*_TWO, _x(_LIB)), {"LD_PRELOAD": "/opt/two/libx.so.1"}),
    "preloaded under another name": Root(
        (_app(), File("opt/two/liby.so", soname="libx.so.1"), _x(_LIB)),
        {"LD_PRELOAD": "/opt/two/liby.so"},
    ),
    "preloaded by name": Root((*_TWO, _x(_LIB)), {**_OF_PATH, "LD_PRELOAD": "libx.so.1"}),
    "preloaded by the file": Root(
        (*_TWO, _x(_LIB)), texts={"etc/ld.so.preload": "/opt/one/libx.so.1\n"}
    ),
    "variant for this processor": Root((_app(), _x(_LIB), _x(f"{_LIB}/glibc-hwcaps/x86-64-v2"))),
    "variant for this processor alone": Root((_app(), _x(f"{_LIB}/glibc-hwcaps/x86-64-v2"))),
    "variant on the variable": Root(
        (_app(), _x("opt/two"), _x("opt/two/glibc-hwcaps/x86-64-v2")), _OF_PATH
    ),
    "variant for a processor to come": Root(
        (_app(), _x(_LIB), _x(f"{_LIB}/glibc-hwcaps/x86-64-v9"))
    ),
    "directory of the program by $LIB": Root(
        (_app(*_rpath("/opt/$LIB", _NEW)), _x("opt/lib/x86_64-linux-gnu"))
    ),
    "no directories of the system": Root((_app("-Wl,-z,nodefaultlib"), _x(_LIB))),
    "path in the program": Root(
        (
            _app(needed=("/opt/one/libx.so.1",)),
            File("opt/one/libx.so.1", soname="/opt/one/libx.so.1"),
        )
    ),
    "empty file first": Root((_app(), _x(_LIB)), _OF_PATH, texts={"opt/two/libx.so.1": ""}),
    "text first": Root(
        (_app(), _x(_LIB)), _OF_PATH, texts={"opt/two/libx.so.1": "version https://git-lfs\n" * 9}
    ),
    "directory first": Root((_app(), _x(_LIB), File("opt/two/libx.so.1/y.so")), _OF_PATH),
    "broken link first": Root((_app(), _x(_LIB)), _OF_PATH, links={"opt/two/libx.so.1": "gone"}),
    "file for ARM first": Root(
        (_app(), _x(_LIB), _x("opt/two")),
        _OF_PATH,
        after="printf '\\267\\0' | dd of=opt/two/libx.so.1 bs=1 seek=18 conv=notrunc 2> /dev/null",
    ),
    "cut off": Root((_app(), _x(_LIB)), after=f"truncate -s 5000 {_LIB}/libx.so.1"),
    "cut off first": Root(
        (_app(), _x(_LIB), _x("opt/two")), _OF_PATH, after="truncate -s 5000 opt/two/libx.so.1"
    ),
    "relative directory of the variable": Root(
        (_app(), _x("work/lib")), {"LD_LIBRARY_PATH": "work/lib"}
    ),
    "library by another of its directory": Root(
        (
            _app(needed=("liba.so.1",)),
            File("opt/two/liba.so.1", ("libx.so.1",), options=_rpath("$ORIGIN", _NEW)),
            _x("opt/two"),
            _x(_LIB),
        ),
        _OF_PATH,
    ),
    "library that another has loaded": Root(
        (
            _app(*_rpath("/opt/one", _NEW), needed=("libx.so.1", "liba.so.1")),
            File(f"{_LIB}/liba.so.1", ("libx.so.1",)),
            _x("opt/one"),
        )
    ),
}


class Workshop:
    """A folder in which roots are made, each file linked once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[File, Path] = {}

    def linked(self, file: File) -> Path:
        """The file out of the linker; what it needs is there by name alone."""
        if file not in self.made:
            target = self.folder / f"{len(self.made)}.made"
            stubs = self.folder / "stubs"
            stubs.mkdir(exist_ok=True)
            for name in file.needed:
                stub = stubs / name.replace("/", "-")
                self._link(["-shared", f"-Wl,-soname,{name}"], "int f;", stub)
            is_app = file.path == APP
            kind = ["-e", "main"] if is_app else ["-shared"]
            soname = file.soname or file.path.rpartition("/")[2]
            kind += [] if is_app else [f"-Wl,-soname,{soname}"]
            needed = [str(stubs / name.replace("/", "-")) for name in file.needed]
            source = "int main(void) { return 0; }" if is_app else "int f;"
            self._link([*kind, *file.options], source, target, *needed)
            self.made[file] = target
        return self.made[file]

    @staticmethod
    def _link(options: list[str], source: str, target: Path, *needed: str) -> None:
        common = ["gcc", "-nostdlib", "-fPIC", *options, "-xc", "-", "-xnone"]
        more = ["-Wl,--no-as-needed", *needed, "-o", str(target)]
        subprocess.run([*common, *more], input=source, text=True, check=True)

    def make(self, root: Root) -> Path:
        """The directory of a root."""
        place = self.folder.resolve() / "root"
        shutil.rmtree(place, ignore_errors=True)
        for file in root.files:
            (place / file.path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.linked(file), place / file.path)
        loader = place / interpreter()[1:]
        for folder in (loader.parent, place / _LIB, place / "etc"):
            folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(interpreter()), loader)
        # By it the model knows what `$LIB` is.
        shutil.copy(self.linked(File("there")), place / _LIB / "there")
        for path, text in root.texts.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
        for path, target in root.links.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).symlink_to(target)
        ldconfig = shutil.which("ldconfig") or "/sbin/ldconfig"
        subprocess.run([ldconfig, "-r", str(place)], check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["sh", "-ec", root.after], cwd=place, check=True)
        return place


def by_loader(place: Path, root: Root) -> tuple[dict[str, str], str]:
    """The files that the loader takes by the names that are needed, empty where it finds none; and why it stops."""
    env = {
        "LD_TRACE_LOADED_OBJECTS": "1",
        "LD_ORIGIN_PATH": f"/{APP.rpartition('/')[0]}",  # which is asked of /proc otherwise
        **root.env,
    }
    inside = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
    words = [*inside, sys.executable, "-c", TRACE, str(place), f"/{APP}", json.dumps(env)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    found: dict[str, str] = {}
    for line in done.stdout.splitlines():
        name, arrow, path = line.strip().partition(" => ")
        if "=>" not in line:
            # What is asked for by its path.
            name, _, path = name.partition(" (")[0], arrow, name
        if not name.startswith(("linux-", interpreter())):
            path = "" if "not found" in path else posixpath.normpath(path.partition(" (")[0])
            # Links lead to the file that the model names.
            found.setdefault(
                name,
                os.path.relpath((place / path.strip("/")).resolve(), place.resolve())
                if path
                else "",
            )
    return found, done.stderr.strip()


def by_reading(place: Path, root: Root) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The same by reading, in the order in which the loader goes; and by file what newer processors take."""
    _, tree = local.read_root(str(place), LayerReader(Look, Budget("root")))
    config = {"config": {"Env": [f"{name}={value}" for name, value in root.env.items()]}}
    view = View(ImageMetadata(subject="root", config=config), tree)
    search = LibrarySearch(view, library_path(view))
    found = dict(search.loaded) | {
        name: search.find(name, "", Dynamic()) for name, _ in search.preloaded
    }
    todo, seen = [APP, *dict.fromkeys(search.loaded.values())], set[str]()
    while todo:
        path = todo.pop(0)
        if path in seen:
            continue
        seen.add(path)
        for name in search.files[path].needed:
            if name not in found:
                found[name] = search.find(name, path, search.files[path])
            todo += filter(None, [found[name]])
    return found, search.alternatives


def compared(place: Path, root: Root) -> tuple[str, str, str]:
    """Whether the model is right, what the loader takes, and where the model differs."""
    (real, stops), (mine, others) = by_loader(place, root), by_reading(place, root)
    wanted = {name for file in root.files for name in file.needed}
    runs = not stops and all(real.get(name) for name in wanted & {*real}) and bool(real)
    passes = all(mine.values())
    differs = [
        f"{name}: {mine.get(name)} for {path}"
        for name, path in real.items()
        if runs and path not in (mine.get(name), *others.get(mine.get(name, ""), ()))
    ]
    words = {(False, True): "FALSE PASS", (True, False): "FALSE ALARM"}
    word = words.get((runs, passes), "DIFFERS" if differs else "right")
    said = stops or ", ".join(f"{name} {path or 'none'}" for name, path in real.items())
    return word, said, "; ".join(differs) or str(mine if word != "right" else "")


def main(words: list[str]) -> int:
    """Print the table; returns 1 where the model and the loader differ."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder))
        for name, root in ROOTS.items():
            if words and not any(word in name for word in words):
                continue
            word, said, differs = compared(workshop.make(root), root)
            counts[word] += 1
            print(f"{word:11} {name:56} {said} {differs}", flush=True)  # noqa: T201
    print(", ".join(f"{count} {word}" for word, count in counts.items()))  # noqa: T201
    return int(counts.keys() != {"right"})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
