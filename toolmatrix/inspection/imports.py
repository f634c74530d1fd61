"""The import path of a Python in an image: `sys.path` as the interpreter makes it when it starts, with its origins.

"Initialization of the sys.path module search path" of Python's documentation, Modules/getpath.py and Lib/site.py of
CPython, and what Debian (dist-packages) and Fedora (/usr/local) changed in the latter. Lines of `.pth` files that are
code, and `sitecustomize`, are not run: known ones and simple ones are understood, others make the path unknown.
"""

from __future__ import annotations

import ast
import posixpath
import re
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache

from toolmatrix.inspection.entry import Start
from toolmatrix.inspection.model import FilePattern
from toolmatrix.inspection.programs import SETTINGS
from toolmatrix.inspection.record import View
from toolmatrix.resources import load_yaml, of_package
from toolmatrix.value import Value

_PTH = FilePattern(r".*\.pth", 64 << 10)
_VENV = FilePattern(r".*/pyvenv\.cfg", 64 << 10)
_CUSTOMIZE = FilePattern(r".*/(?:site|user)customize\.py", 64 << 10)
_FINDER = FilePattern(r".*/(?:__editable___[^/]+_finder|_editable_impl_[^/]+)\.py", 256 << 10)
READS = (_PTH, _VENV, _CUSTOMIZE, _FINDER)

# Lines that change what is found of no other package: the shim of setuptools for distutils, the patch of virtualenv
# for the same, coverage in subprocesses, namespace packages of old setuptools, and the frame of easy-install.pth.
_HARMLESS = re.compile(
    r"import os; var = 'SETUPTOOLS_USE_DISTUTILS'; .*_distutils_hack'\)\.add_shim\(\);?"
    r"|import _virtualenv|import coverage; coverage\.process_startup\(\)"
    r"|import sys; exec\('try:\\n\\timport coverage.*"
    r"|import sys, types, os;.*sys\.modules\.setdefault\(.*"
)
_INSTALLED_FIRST = re.compile(r"import sys; sys\.__plen = len\(sys\.path\);?")
_INSTALLED_LAST = re.compile(r"import sys; ?new ?= ?sys\.path\[sys\.__plen:\];.*__egginsert.*")
_EDITABLE = re.compile(r"import (__editable___\w+_finder); \1\.install\(\);?")
# The same by the package editables, of hatchling and pdm-backend, which has to be there.
_REDIRECTED = re.compile(r"import (_editable_impl_\w+);?")
_REDIRECTION = re.compile(r"^F\.map_module\('([\w.]+)', '([^'\\\n]+)'\)$", re.MULTILINE)
_REDIRECTOR = "editables/redirector.py"
# The path files that a record lists.
_RECORDED = re.compile(rb"^([^/,\n]+\.pth),", re.MULTILINE)
# Words of code that may change where packages are found.
_PATHS = re.compile(r"sys\.path|addsitedir|__path__|meta_path|path_hooks|PYTHONPATH")
# The hook of Debian's crash reporter.
_HOOKS = ("apport_python_hook",)
_MODULES = ("os", "site", "sys", *_HOOKS)
# The variable of wrappers of Nix, which list in it what is in the environment of the wrapper as well.
_NIX = "NIX_PYTHONPATH"
_MOST_FOLDERS = 1000
# Directories whose path files count, each of which may add another.
_MOST_SITES = 50
# Characters of a variable that a chain shows.
_LONGEST_ORIGIN = 200
STANDARD = "standard library"
"""The origin of the directories that come with the interpreter."""


class Folder(Value):
    """A place of an import path: the absolute path, and what put it there."""

    path: str
    origin: str


class ImportPath(Value):
    """The import path of one interpreter.

    `name` is how it is started, `prefix` its environment, `series` such as 3.11. `mapping` are packages and their
    directories that a finder of an editable install adds behind all folders. `unknown` says why the rest of the path
    is not known, `unclear` is a script that may start another interpreter, which nothing does where it `is_alone`.
    `is_musl`: its C library. `is_threaded`: it has no global lock.
    """

    name: str
    prefix: str
    series: str
    folders: tuple[Folder, ...]
    mapping: tuple[tuple[str, str], ...] = ()
    unknown: str = ""
    unclear: str = ""
    is_alone: bool = False
    is_musl: bool = False
    is_threaded: bool = False


def import_path(view: View, start: Start, version: str) -> ImportPath:
    """The import path of an interpreter of this version."""
    return _Site(view, start, ".".join(version.split(".")[:2])).run()


def prefix_of(view: View, called: str, series: str) -> str:
    """The directory of the standard library's interpreter, by its landmark; else the one above its program."""
    real = view.tree.real(called) or called
    folder = real.rpartition("/")[0]
    while folder:
        if any(view.tree.entry(f"{folder}/{lib}/python{series}/os.py") for lib in ("lib", "lib64")):
            return folder
        folder = folder.rpartition("/")[0]
    return real.rpartition("/")[0].rpartition("/")[0]


def given_path(view: View, name: str, version: str, folders: Sequence[str]) -> ImportPath:
    """The import path of an interpreter that printed it, with what finders of editable installs add behind it."""
    series = ".".join(version.split(".")[:2])
    library = next((folder for folder in folders if folder.endswith(f"/python{series}")), "")
    mapping: dict[str, str] = {}
    for folder in folders:
        for file in view.tree.names(folder):
            line = view.tree.text(f"{folder}/{file}").strip() if file.endswith(".pth") else ""
            mapping |= _redirected(view, folder, line) or {}
    return ImportPath(
        name=name,
        prefix=posixpath.dirname(posixpath.dirname(library)),
        series=series,
        folders=tuple(
            Folder(
                path=folder,
                origin=STANDARD
                if folder.startswith(library) and library and "-packages" not in folder
                else folder,
            )
            for folder in folders
        ),
        mapping=tuple(mapping.items()),
    )


class _Site:
    def __init__(self, view: View, start: Start, series: str) -> None:
        self.view = view
        self.start = start
        self.series = series
        ignores = "E" in start.options or "I" in start.options
        self.env = {} if ignores else start.env
        self.folders: dict[str, Folder] = {}
        self.sites: set[str] = set()
        self.recorded: dict[str, Container[str]] = {}
        # A directory that code puts first goes before others.
        self.inserted: list[Folder] = []
        self.eggs: list[Folder] = []
        self.mapping: dict[str, str] = {}
        self.unknown = start.unknown
        self.settings = self._settings()

    def run(self) -> ImportPath:
        """The whole path."""
        base = self._base()
        value = self.env.get("PYTHONPATH", "")
        origin = f"PYTHONPATH={value}"[:_LONGEST_ORIGIN]
        for folder in self.view.elements("PYTHONPATH", value):
            self._add(posixpath.join(self.start.folder or self.view.folder, folder), origin)
        for path in self._library(base):
            self._add(path, STANDARD)
        if "S" not in self.start.options:
            self._site(base)
        first = self.start.first
        is_first = self.start.is_whole or not self._is_safe()
        own = [] if not is_first else [Folder(path=first, origin=f"{first}, where it starts")]
        if own and not self._is_clear(first):
            self._doubt(first)
        real = self.view.tree.real(self.start.called) or ""
        interpreter = self.view.elves.get(real)
        loader = interpreter.dynamic.interpreter if interpreter is not None else ""
        return ImportPath(
            name=self.start.words,
            prefix=self.settings.get("prefix") or base,
            series=self.series,
            folders=(*own, *self.inserted, *self.eggs, *self.folders.values()),
            mapping=tuple(self.mapping.items()),
            unknown=self.unknown,
            unclear=self.start.unclear,
            is_alone=self.start.is_alone,
            is_musl="ld-musl" in loader,
            is_threaded=real.endswith("t"),
        )

    # Whether this Python has a change.
    def _has(self, change: str) -> bool:
        return _number(self.series) >= _number(_changes()[change]["since"])

    # Whether the directory of the script, or the working directory, is left out.
    def _is_safe(self) -> bool:
        by_variable = bool(self.env.get("PYTHONSAFEPATH")) and self._has("safe-path")
        return by_variable or "I" in self.start.options or "P" in self.start.options

    # The settings of a virtual environment, and its prefix; nothing outside of one.
    def _settings(self) -> dict[str, str]:
        folder = self.start.called.rpartition("/")[0]
        for place in (folder, folder.rpartition("/")[0]):
            text = self.view.tree.text(f"{place}/{SETTINGS}")
            if text:
                pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
                settings = {key.strip().lower(): value.strip() for key, _, value in pairs}
                return {**settings, "prefix": f"/{folder.rpartition('/')[0]}"}
        return {}

    # The prefix of the interpreter that has the standard library.
    def _base(self) -> str:
        if self.env.get("PYTHONHOME"):
            return self.env["PYTHONHOME"].partition(":")[0]
        home = self.settings.get("home", "")
        called = f"{home}/{self.start.called.rpartition('/')[2]}".strip("/") if home else ""
        if not called or self.view.tree.entry(called) is None:
            called = f"{home}/python{self.series}".strip("/") if home else self.start.called
        return f"/{prefix_of(self.view, called, self.series)}"

    # The name of the directory of libraries that the interpreter was built with, sys.platlibdir.
    def _lib(self, base: str) -> str:
        has = self.view.tree.entry
        landmark = f"python{self.series}/os.py"
        return (
            "lib64"
            if has(f"{base}/lib64/{landmark}") and not has(f"{base}/lib/{landmark}")
            else "lib"
        )

    def _library(self, base: str) -> Iterator[str]:
        lib = self._lib(base)
        folder = f"{base}/{lib}/python{self.series}"
        yield f"{base}/{lib}/python{self.series.replace('.', '')}.zip"
        yield folder
        execution = self.env.get("PYTHONHOME", "").partition(":")[2] or base
        yield f"{execution}/{lib}/python{self.series}/lib-dynload"

    def _site(self, base: str) -> None:
        prefixes, with_user = [base], True
        own = self.settings.get("prefix")
        if own:
            shared = self.settings.get("include-system-site-packages", "true").lower() == "true"
            self._add_sites([own], is_own=True)
            prefixes, with_user = [own, *(prefixes if shared else ())], shared
        no_user = "s" in self.start.options or "I" in self.start.options
        with_user = with_user and not no_user and not self.env.get("PYTHONNOUSERSITE")
        if with_user:
            user = self.start.env.get("PYTHONUSERBASE") or f"{self._home()}/.local"
            self._add_site(f"{user}/lib/python{self.series}/site-packages", "user site")
        self._add_sites(prefixes, is_own=bool(own))
        self._customize("sitecustomize")
        if with_user:
            self._customize("usercustomize")

    def _home(self) -> str:
        return (self.start.env.get("HOME") or self.view.home).rstrip("/")

    def _add_sites(self, prefixes: Iterable[str], *, is_own: bool) -> None:
        debian, fedora = self._distribution()
        for prefix in prefixes:
            lib = f"{prefix}/lib/python{self.series}"
            is_system = prefix == "/usr"
            folders = []
            if is_system and fedora and not is_own:
                local = f"/usr/local/{{}}/python{self.series}/site-packages"
                folders += [local.format("lib64"), local.format("lib")]
            if not debian:
                own = self._lib(self._base())
                folders += [
                    f"{prefix}/{name}/python{self.series}/site-packages"
                    for name in dict.fromkeys((own, "lib"))
                ]
            else:
                folders += [f"{lib}/site-packages"] if is_own else []
                folders += [f"{prefix}/local/lib/python{self.series}/dist-packages"]
                folders += [f"{prefix}/lib/python3/dist-packages", f"{lib}/dist-packages"]
            for folder in folders:
                self._add_site(folder, folder)

    # Whether the module `site` of the base is that of Debian or of Fedora.
    def _distribution(self) -> tuple[bool, bool]:
        names = self.view.tree.names
        if self._base() != "/usr":
            return False, False
        debian = (
            "usr/lib/python3/dist-packages",
            f"usr/local/lib/python{self.series}/dist-packages",
        )
        fedora = ("var/lib/rpm", "usr/lib/sysimage/rpm")
        is_debian = any(map(names, (*debian, "var/lib/dpkg")))
        return is_debian, not is_debian and any(map(names, fedora))

    def _add_site(self, folder: str, origin: str) -> None:
        entry = self.view.tree.entry(folder)
        if entry is None or entry.kind != "directory" or not self.view.is_open(folder):
            return
        # Path files may add the directory that they are in.
        if folder in self.sites:
            return
        if len(self.sites) >= _MOST_SITES:
            self._doubt(origin)
            return
        self.sites.add(folder)
        self._add(folder, origin)
        for name in self.view.tree.names(folder):
            if name.endswith(".pth"):
                self._pth(folder, name)

    def _pth(self, folder: str, name: str) -> None:
        path = f"{folder}/{name}"
        data = self.view.tree.content(path)
        if data is None:
            entry = self.view.tree.entry(path)
            if entry is not None and entry.size:
                self._doubt(f"{path} was not read")
            return
        begin = len(self.folders)
        for line in data.decode("utf-8-sig", "replace").splitlines():
            if line.startswith("#") or not line.strip():
                continue
            if line.startswith(("import ", "import\t")):
                if _INSTALLED_FIRST.fullmatch(line.strip()):
                    begin = len(self.folders)
                elif _INSTALLED_LAST.fullmatch(line.strip()):
                    added = list(self.folders.items())[begin:]
                    self.eggs += [place for _, place in added]
                    self.folders = dict(list(self.folders.items())[:begin])
                else:
                    self._line(folder, name, line.strip())
                continue
            target = posixpath.normpath(posixpath.join(folder, line.rstrip()))
            if self.view.tree.entry(target) is not None:
                self._add(target, path)

    # A line of code of a `.pth` file.
    def _line(self, folder: str, name: str, line: str) -> None:
        if _HARMLESS.fullmatch(line):
            return
        redirected = _redirected(self.view, folder, line)
        if redirected is not None:
            self.mapping |= redirected
            return
        # Code that came with a package is its own affair, as long as it names nothing of the path.
        if _PATHS.search(line) or name not in self._recorded(folder):
            self._evaluate(line, f"{folder}/{name}")

    # The path files in a directory that came with packages.
    def _recorded(self, folder: str) -> Container[str]:
        if folder not in self.recorded:
            records = self.view.tree.glob(f"{folder}/*.dist-info/RECORD")
            self.recorded[folder] = {
                name.decode("utf-8", "replace")
                for path in records
                for name in _RECORDED.findall(self.view.tree.content(path) or b"")
            }
        return self.recorded[folder]

    def _customize(self, module: str) -> None:
        for place in (*self.inserted, *self.eggs, *self.folders.values()):
            if self.view.tree.names(f"{place.path}/{module}"):
                self._doubt(f"{place.path}/{module}")
                return
            path = f"{place.path}/{module}.py"
            entry = self.view.tree.entry(path)
            if entry is not None:
                text = self.view.tree.text(path)
                if not text and entry.size:
                    self._doubt(path)
                # Its wrapper also has the environment that the variable lists.
                elif not (_NIX in text and self.view.tree.names("nix/store")):
                    self._evaluate(text, path)
                return

    # Run what is simple of code at the start: constants that are put on the path.
    def _evaluate(self, text: str, where: str) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                body = ast.parse(text).body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            # Python reports the error and goes on.
            return
        for statement in _flat(body):
            change = _change(statement)
            if change is None:
                self._doubt(where)
                return
            method, path = change
            if method == "insert":
                self._insert(path, where)
            elif method == "append":
                self._add(path, where)
            elif method == "addsitedir":
                self._add_site(path, where)

    def _doubt(self, where: str) -> None:
        self.unknown = self.unknown or where

    # Whether the modules of an archive are known; of a directory they are.
    def _is_clear(self, path: str) -> bool:
        archive = self.view.archive(path)
        return not archive.is_partial and not (
            archive.is_implied and self._has("implied-directory")
        )

    def _insert(self, path: str, origin: str) -> None:
        if len(self.inserted) >= _MOST_FOLDERS:
            self._doubt(origin)
        else:
            self.inserted.insert(0, Folder(path=path, origin=origin))

    def _add(self, path: str, origin: str) -> None:
        # `site` compares paths as they are written, not where their links lead.
        path = posixpath.normpath(path)
        path = f"/{path.lstrip('/')}"
        if len(self.folders) + len(self.eggs) >= _MOST_FOLDERS:
            self._doubt(origin)
        elif not self._is_clear(path):
            self._doubt(path)
        else:
            self.folders.setdefault(path, Folder(path=path, origin=origin))


# Changes of what is on the import path, each with the first Python that has it: read once for all starts of an image.
@cache
def _changes() -> Mapping[str, Mapping[str, str]]:
    changes: Mapping[str, Mapping[str, str]] = load_yaml(of_package("inspection", "pythons.yaml"))
    return changes


def _number(series: str) -> tuple[int, ...]:
    return tuple(map(int, series.split("."))) if series else ()


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.Try):
            yield from _flat((*statement.body, *statement.orelse))
            handled = [step for handler in statement.handlers for step in handler.body]
            yield from _flat((*handled, *statement.finalbody))
        else:
            yield statement


# What a statement does to the path: a method and its directory, two empty texts where nothing; None where that is
# unknown.
def _change(statement: ast.stmt) -> tuple[str, str] | None:
    if isinstance(statement, ast.Pass):
        return "", ""
    if isinstance(statement, ast.Import):
        known = all(alias.name in _MODULES and not alias.asname for alias in statement.names)
        return ("", "") if known else None
    if not isinstance(statement, ast.Expr):
        return None
    value = statement.value
    if isinstance(value, ast.Constant):
        return "", ""
    if not isinstance(value, ast.Call) or value.keywords:
        return None
    method = _dotted(value.func)
    constants = [node.value for node in value.args if isinstance(node, ast.Constant)]
    if method in {f"{hook}.install" for hook in _HOOKS}:
        return "", ""
    path = constants[-1] if constants and len(constants) == len(value.args) else None
    if isinstance(path, str) and path.startswith("/"):
        if method == "sys.path.insert" and constants[:-1] == [0]:
            return "insert", path
        if method in ("sys.path.append", "site.addsitedir") and len(constants) == 1:
            return method.rpartition(".")[2], path
    return None


def _dotted(node: ast.expr) -> str:
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


# The packages and modules that a line of a `.pth` file adds by a finder, with their places; None for other lines.
def _redirected(view: View, folder: str, line: str) -> dict[str, str] | None:
    if match := _EDITABLE.fullmatch(line):
        return _mapping(view.tree.text(f"{folder}/{match[1]}.py"))
    match = _REDIRECTED.fullmatch(line)
    if match is None or view.tree.entry(f"{folder}/{_REDIRECTOR}") is None:
        return None
    pairs = _REDIRECTION.findall(view.tree.text(f"{folder}/{match[1]}.py"))
    return {name: path.removesuffix(".py").removesuffix("/__init__") for name, path in pairs}


def _mapping(text: str) -> dict[str, str]:
    match = re.search(r"^MAPPING(?:: [^=\n]+)? = (\{.*\})$", text, re.MULTILINE)
    try:
        mapping = ast.literal_eval(match[1]) if match else {}
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return {}
    return {
        name: path
        for name, path in mapping.items()
        if isinstance(name, str) and isinstance(path, str)
    }
