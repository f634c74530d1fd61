"""The images of `what_runs` made real: what reading says of each, and what its own program imports when it is run.

`python -m tests.judging.real_images [WORD...]` makes every image, or those whose names have one of the words, in a
temporary folder, with interpreters, a C library and a compiled module of this machine in the place of the invented
ones, starts its command in a chroot as its user, and prints a line for each and the counts. It needs root and a C
compiler. Images are left out whose start needs what this machine lacks, such as conda or musl.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.inspection.installs import ASK
from tests.inspection.test_observe import MARK
from tests.judging.what_runs import DEBIAN, RIGHT, WRONG, Image
from toolmatrix.factbase.store import open_index
from toolmatrix.finding import FAIL, PASS, UNKNOWN
from toolmatrix.images import local
from toolmatrix.images.layers import LayerReader
from toolmatrix.images.limits import Budget
from toolmatrix.inspection.observe import Look, observe
from toolmatrix.judging import images
from toolmatrix.judging.expectations import parse_expectation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolmatrix.factbase.index import Index
    from toolmatrix.finding import Verdict

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PYTHON = re.compile(r"(.*)/bin/python(?:(\d\.\d+)t?)?")
# The file by which an interpreter knows its library.
_LANDMARK = re.compile(r"(.*/lib)/python(\d\.\d+)/os\.py")
# Directories of the library that no image here needs.
_LEFT = (
    *("test", "idlelib", "tkinter", "lib2to3", "ensurepip", "turtledemo"),
    *("sitecustomize.py", "*-packages", "config-*"),
)
# The modules that images want, by the names of their packages.
_MODULES = {"a.b": "a.b", "zope.interface": "zope.interface"}
# Whatever an interpreter was started with, it is asked when it ends; programs such as uv read what it prints.
_HOOK = f"""
def _ask():
    import contextlib, sys
    with contextlib.redirect_stdout(sys.stderr):
        exec({ASK!r}, {{}})
import atexit
atexit.register(_ask)
"""
_EXTENSION = """\
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_multiarch_umath", 0, -1, 0};
PyMODINIT_FUNC PyInit__multiarch_umath(void) { return PyModule_Create(&module); }
"""
_ENTER = """
import json, os, sys, warnings
root, folder, user, words, env = json.loads(sys.argv[1])
os.chroot(root)
os.chdir(folder)
if user:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
os.execvpe(words[0], words, env)
"""
_USER = 1000
_OF_FEDORA = ("var/lib/rpm", "usr/lib/sysimage/rpm")
# Programs of which images have no more than the name.
_STANDS_FOR_MORE = ("conda", "pixi", "supervisord")
# Programs that are those of this machine.
_TAKEN = ("timeout", "tini", "uv", "gosu", "dumb-init")
# Programs that scripts of images start.
_OF_SCRIPTS = ("cat", "dirname", "id", "ls", "readlink")
# Where the processor is in an ELF file, and the number of ARM.
_MACHINE, _ARM = 18, b"\xb7\0"


class NotReal(Exception):
    """This machine lacks what an image needs."""


class Outcome(NamedTuple):
    """What came of an image: whether the verdict is right, what the interpreter said, and the verdict."""

    word: str
    real: str
    verdict: Verdict | None

    def __str__(self) -> str:
        verdict = self.verdict
        said = (verdict.word, verdict.found, verdict.code, verdict.reason) if verdict else ()
        return " | ".join(filter(None, (self.real, " ".join(filter(None, said)))))


class Workshop:
    """A temporary folder with the parts of which images are made."""

    def __init__(self, root: Path, index: Index) -> None:
        self.root = root
        self.index = index

    @cached_property
    def extension(self) -> bytes:
        """A compiled module, for every release of Python."""
        source, made = self.root / "module.c", self.root / "module.so"
        source.write_text(_EXTENSION)
        include = f"{sys.base_prefix}/include/python{sys.version_info[0]}.{sys.version_info[1]}"
        command = ("cc", "-shared", "-fPIC", "-DPy_LIMITED_API=0x03070000", f"-I{include}")
        subprocess.run([*command, str(source), "-o", str(made)], check=True)
        return made.read_bytes()

    @cache  # noqa: B019 - one workshop lives as long as the program
    def interpreter(self, series: str, *, of_system: bool) -> tuple[Path, Path]:
        """An interpreter of a series, and its library, in which the hook is."""
        beside = glob.glob(f"{os.path.dirname(sys.base_prefix)}/{series}.*/bin/python{series}")
        called = (
            ["/usr/bin"] if of_system else [f"{sys.base_prefix}/bin", *map(os.path.dirname, beside)]
        )
        programs = (Path(os.path.realpath(f"{folder}/python{series}")) for folder in called)
        parts = ((path, path.parent.parent / f"lib/python{series}") for path in programs)
        program, library = next((pair for pair in parts if pair[1].is_dir()), (None, Path()))
        if program is None:
            raise NotReal(f"there is no Python {series} here")
        target = self.root / f"library-{series}-{of_system}"
        ignore = shutil.ignore_patterns("__pycache__", *_LEFT)
        shutil.copytree(library, target, ignore=ignore, symlinks=False)
        with (target / "encodings/__init__.py").open("a") as file:
            file.write(_HOOK)
        return program, target

    @cache  # noqa: B019
    def libraries(self, program: str) -> tuple[str, ...]:
        """What a program of this machine loads, its loader included."""
        said = subprocess.run(["ldd", program], check=False, capture_output=True, text=True).stdout
        return tuple(re.findall(r"(?:=> |^\s+)(/\S+)", said, re.MULTILINE))

    @cache  # noqa: B019
    def part(self, source: str) -> Path:
        """A file of this machine without its symbols, which would only be read again and again."""
        made = self.root / f"part{len(list(self.root.glob('part*')))}"
        shutil.copy(os.path.realpath(source), made)
        subprocess.run(["strip", "-s", str(made)], check=False, capture_output=True)
        return made

    def make(self, image: Image) -> Path:
        """The tree of an image."""
        if any(path.startswith(_OF_FEDORA) for path in image.files):
            raise NotReal("there is no Python of Fedora here")
        root = self.root / "image"
        shutil.rmtree(root, ignore_errors=True)
        of_system = any(path.startswith((DEBIAN, "var/lib/dpkg")) for path in image.files)
        for path, data in image.files.items():
            if isinstance(data, bytes) and data.startswith(MARK):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                self._compiled(root, path, json.loads(data[len(MARK) :]), of_system=of_system)
        for path, data in image.files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(data, tarfile.TarInfo):
                target.symlink_to(data.linkname)
            elif data.startswith(MARK):
                continue
            elif match := _LANDMARK.fullmatch(path):
                _, library = self.interpreter(
                    match[2], of_system=of_system and match[1] == "usr/lib"
                )
                shutil.copytree(library, target.parent, copy_function=os.link, dirs_exist_ok=True)
            else:
                target.write_bytes(data)
                target.chmod(0o755 if "bin" in target.parts or data.startswith(b"#!") else 0o644)
        for path, data in image.files.items():
            if isinstance(data, tarfile.TarInfo) and _LANDMARK.fullmatch(path):
                self._link_library(root, path, os.path.dirname(data.linkname))
        started = os.path.basename(next(iter(_command(image)), ""))
        taken = ["bin/sh", "usr/bin/env", *(["bin/bash"] if "bin/bash" in image.files else ())]
        taken += [f"usr/bin/{name}" for name in _OF_SCRIPTS]
        for path in (*taken, *([f"usr/bin/{started}"] if started in _TAKEN else ())):
            beside = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
            called = shutil.which(os.path.basename(path), path=beside)
            if called is None:
                raise NotReal(f"there is no {path} here")
            self._take(root, called, path)
        for name in ("dev", "tmp"):
            (root / name).mkdir(exist_ok=True)
        # gosu looks whether it is setuid.
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/exe").symlink_to("/bin/sh")
        os.mknod(root / "dev/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        for path, (mode, owner) in image.modes.items():
            os.chown(root / path, owner, owner)
            (root / path).chmod(mode)
        return root

    # The library of an environment of links, such as that of Nix.
    @staticmethod
    def _link_library(root: Path, landmark: str, library: str) -> None:
        folder = (root / landmark).parent
        for name in os.listdir(root / library.strip("/")):
            if not (folder / name).is_symlink() and not (folder / name).exists():
                (folder / name).symlink_to(f"{library}/{name}")

    def _compiled(self, root: Path, path: str, says: Mapping[str, Any], *, of_system: bool) -> None:
        match = _PYTHON.fullmatch(path)
        name = path.rpartition("/")[2]
        if match is None:
            if "ld-musl" in name or (says["machine"] != "amd64" and ".so" not in name):
                raise NotReal(f"there is no {name} here")
            if ".cpython-" in name:
                data = self.extension
                data = (
                    data
                    if says["machine"] == "amd64"
                    else data[:_MACHINE] + _ARM + data[_MACHINE + 2 :]
                )
                (root / path).write_bytes(data)
            return
        series = match[2] or "3.11"
        program, _ = self.interpreter(series, of_system=of_system and match[1] == "usr")
        self._take(root, str(program), path)

    # A program of this machine with what it loads.
    def _take(self, root: Path, program: str, path: str) -> None:
        modules = glob.glob(f"{self.root}/library-*/lib-dynload/zlib.*") if path != "bin/sh" else []
        needed = dict.fromkeys(one for file in (program, *modules) for one in self.libraries(file))
        for source, place in ((program, path), *((one, "") for one in needed)):
            target = root / (place or f"lib/x86_64-linux-gnu/{os.path.basename(source)}")
            if not place and "/ld-linux" in source:
                target = root / source.strip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.is_symlink() and not target.exists():
                os.link(self.part(source), target)

    def run(self, root: Path, image: Image, ask: str) -> dict[str, Any]:
        """What the program of an image says, or else a bare `python3` in its place."""
        env = dict(pair.split("=", 1) for pair in image.config.get("Env", ()))
        # uv would look for the C library by programs that are not in the image.
        env = {"PATH": _PATH, "HOME": "/root", "UV_LIBC": "gnu", **env, "ASK": ask}
        folder = image.config.get("WorkingDir") or "/"
        (root / folder.strip("/")).mkdir(parents=True, exist_ok=True)
        user = _USER if image.config.get("User") not in (None, "", "root", "0") else 0
        if user:
            env["HOME"] = next((text for text in env.values() if text == "/home/app"), "")
            env["HOME"] = env["HOME"] or ("/home/app" if (root / "etc/passwd").exists() else "/")
        own = _command(image)
        if own and os.path.basename(own[0]) in _STANDS_FOR_MORE:
            raise NotReal(f"there is no {own[0]} here")
        for words in filter(None, (own, ["python3"])):
            entered = json.dumps([str(root), folder, user, words, env])
            done = subprocess.run(
                [sys.executable, "-c", _ENTER, entered],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            said = [line for line in done.stderr.splitlines() if line.startswith('{"path":')]
            if said:
                return dict(json.loads(said[-1]))
            if (words == own and len(own) > 1) or "/" in words[0]:
                raise NotReal(f"{words[0]} does not run here: {done.stderr.strip()[-80:]}")
        return {"error": "no Python starts"}

    def outcome(self, image: Image) -> Outcome:
        """Make an image, run it and read it."""
        (expected,) = image.expected
        name, _, wanted = expected.partition("==")
        module = _MODULES.get(name, name)
        try:
            root = self.make(image)
            said = self.run(root, image, f"{name}:{module}")
        except NotReal as error:
            return Outcome("not run", str(error), None)
        metadata, tree = local.read_root(str(root), LayerReader(Look, Budget("image")))
        inventory = observe(metadata.replace(config={"config": dict(image.config)}), tree)
        found = images.judge(inventory, [parse_expectation(expected)], self.index)
        verdict = next(one for one in found if one.kind == "component" and one.wanted)
        return _compared(said, wanted, verdict)


def _command(image: Image) -> list[str]:
    return [*(image.config.get("Entrypoint") or ()), *(image.config.get("Cmd") or ())]


def _compared(said: Mapping[str, Any], wanted: str, verdict: Verdict) -> Outcome:
    stated, recorded = said.get("stated"), said.get("record")
    records = said.get("records", ())
    is_own = stated is not None or str(said.get("file") or "").startswith(f"{said.get('site')}/")
    version = str(stated or (recorded if is_own else "") or "")
    torn = len(records) > 1 or bool(stated and recorded and stated != recorded)
    is_right = "error" not in said and version == wanted and not torn
    words = (
        {PASS: "right", FAIL: "FALSE ALARM"} if is_right else {PASS: "FALSE PASS", FAIL: "right"}
    )
    text = str(said.get("error") or version or "no version")
    text += f", record {recorded}" if recorded and recorded != version else ""
    return Outcome({**words, UNKNOWN: "unknown"}.get(verdict.word, "SKIPPED"), text, verdict)


def real_images() -> Iterator[tuple[str, Image]]:
    """The images that ask for one package of Python."""
    for kind, group in (("wrong", WRONG), ("right", RIGHT)):
        for name, image in group.items():
            if len(image.expected) == 1 and image.expected[0].startswith(("numpy==", *_MODULES)):
                yield f"{kind}: {name}", image


def main(words: list[str]) -> int:
    """Print the table; returns 1 where reading and the run differ."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder), open_index((), os.environ))
        for name, image in real_images():
            if words and not any(word in name for word in words):
                continue
            outcome = workshop.outcome(image)
            counts[outcome.word] += 1
            print(f"{outcome.word:11} {name:64} {outcome}", flush=True)  # noqa: T201
    print(", ".join(f"{count} {word}" for word, count in counts.items()))  # noqa: T201
    return int(bool({*counts} & {"FALSE PASS", "FALSE ALARM"}))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
