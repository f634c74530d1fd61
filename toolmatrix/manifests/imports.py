"""The modules that the code of a project imports from elsewhere. The code is parsed, and never run."""

from __future__ import annotations

import ast
import os
import re
import sys
from itertools import islice

from toolmatrix.errors import ManifestError
from toolmatrix.manifests import files
from toolmatrix.manifests import names as called
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolmatrix.manifests.model import FileText, Traced

# Files that are opened.
_MOST = 5000
_FOREIGN = frozenset(("node_modules", "site-packages", "__pycache__", "venv", "build", "dist"))
_BUILDING = frozenset(("setup.py", "conftest.py"))
_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")
_ABSENT = frozenset(("ImportError", "ModuleNotFoundError", "Exception"))
_LINE = re.compile(r"^([ \t]*)(?:from[ \t]+([A-Za-z_][\w.]*)|import[ \t]+([^\n#;]+))", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_][\w.]*")


class SourceImports(Value):
    """The modules that code imports from elsewhere, each with the place that names it first.

    Without the `needed` ones a file cannot be loaded. Where an import is caught, is in a function or under a condition,
    or beside the packages of a project, the code goes on without it, and it is `optional`.
    """

    needed: Mapping[str, Traced]
    optional: Mapping[str, Traced]
    unparsed: tuple[str, ...]


def source_imports(folder: str) -> SourceImports:
    """The modules that the files of a folder import, without those of the standard library and its own.

    What builds and tests it does not count, as its requirements do not.
    """
    paths = [*islice(_sources(folder), _MOST)]
    reader = _Reader(folder, [os.path.relpath(path, folder) for path in paths])
    for path in paths:
        reader.read(path)
    return SourceImports(
        needed=dict(sorted(reader.needed.items())),
        optional={
            name: place
            for name, place in sorted(reader.optional.items())
            if name not in reader.needed
        },
        unparsed=tuple(reader.unparsed),
    )


def _sources(folder: str) -> Iterator[str]:
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _FOREIGN and name[:1] != "." and not files.LEFT_OUT.fullmatch(name)
        )
        own = (name for name in sorted(names) if name.endswith(".py") and name not in _BUILDING)
        paths = (os.path.join(directory, name) for name in own)
        yield from (p for p in paths if os.path.isfile(p) and files.is_inside(p, folder))


class _Reader:
    def __init__(self, folder: str, paths: Iterable[str]) -> None:
        self.folder = folder
        split = [path.removesuffix(".py").split(os.sep) for path in paths]
        packages = {"/".join(parts[:-1]) for parts in split if parts[-1] == "__init__"}
        self.packages = packages - {""}
        self.own = {
            part
            for parts in split
            for at, part in enumerate(parts)
            # What is in a package is imported by the name of the package.
            if "/".join(parts[:at]) not in packages
        }
        # Programs change the path of Python: of what no package is known to have, each name may be one of its own.
        self.parts = {part for parts in split for part in parts}
        is_project = any(os.path.isfile(os.path.join(folder, name)) for name in _PROJECT)
        roots = {name for name in packages if name.removeprefix("src/").count("/") == 0}
        self.roots = tuple(f"{name}/" for name in roots - {""}) if is_project else ()
        self.needed: dict[str, Traced] = {}
        self.optional: dict[str, Traced] = {}
        self.unparsed: list[str] = []
        self.dispensable = {name for package in self.packages for name in self.caught(package)}

    def caught(self, package: str) -> Iterator[str]:
        """The modules of a package that it goes on without, as it catches the error where it imports them."""
        try:
            text = files.read_file(os.path.join(self.folder, package, "__init__.py")).text
            tree = ast.parse(text if "ImportError" in text else "")
        except (ManifestError, SyntaxError, ValueError, RecursionError, MemoryError):
            return
        optional_by: dict[str, bool] = {}
        for dotted, _, optional in _imports(tree, beside=False, is_module=True):
            # One dot, or the name of the package itself.
            own = f"{package.removeprefix('src/').replace('/', '.')}."
            name = dotted.removeprefix(own if dotted.startswith(own) else ".").partition(".")[0]
            optional_by[name] = optional_by.get(name, True) and optional
        yield from (
            f"{package}/{name}.py" for name, optional in optional_by.items() if name and optional
        )

    def is_foreign(self, name: str) -> bool:
        """True for a module of neither the project nor the standard library."""
        top = name.partition(".")[0]
        own = self.own if called.providers(name) else self.parts
        return top not in own and top not in sys.stdlib_module_names

    def read(self, path: str) -> None:
        """Add what a file imports."""
        try:
            source = files.read_file(path)
        except ManifestError:
            self.unparsed.append(os.path.relpath(path, self.folder))
            return
        relative = os.path.relpath(path, self.folder).replace(os.sep, "/")
        beside = bool(self.roots) and not relative.startswith(self.roots)
        beside = beside or relative in self.dispensable
        lines = [*_lines(source.text, beside)]
        # Most files import what others do; one that adds nothing need not be parsed.
        if not any(self.is_new(called.importable(dotted), optional) for dotted, optional in lines):
            return
        try:
            # A module of a package is imported; only a demo starts it.
            is_module = relative.rpartition("/")[0] in self.packages
            imported = [*_imports(ast.parse(source.text), beside=beside, is_module=is_module)]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            # Code for Python 2, or a template.
            self.unparsed.append(relative)
            imported = [(dotted, 0, optional) for dotted, optional in lines if optional == beside]
        for dotted, line, optional in imported:
            if dotted.startswith("."):
                continue
            name = called.importable(dotted)
            if self.is_new(name, optional):
                modules = self.optional if optional else self.needed
                modules[name] = _place(source, line, name)

    def is_new(self, name: str, optional: bool) -> bool:
        """True for a foreign module of which no import before says as much."""
        known = name in self.needed or (optional and name in self.optional)
        return not known and self.is_foreign(name)


def _lines(text: str, beside: bool) -> Iterator[tuple[str, bool]]:
    """The modules that lines of a file seem to import, and whether the code may go on without them."""
    for indent, origin, names in _LINE.findall(text):
        for name in [origin] if origin else names.split(","):
            if match := _NAME.match(name.strip()):
                yield match[0], beside or bool(indent)


def _place(source: FileText, line: int, name: str) -> Traced:
    """The name of a module in the first line from there on that imports it."""
    whole = source.whole()
    match = re.compile(rf"\b{re.escape(name.partition('.')[0])}\b").search(
        source.text, source.offset(line, 1) if line else 0
    )
    return whole.group(match, 0) if match else whole[:0]


def _imports(tree: ast.AST, *, beside: bool, is_module: bool) -> Iterator[tuple[str, int, bool]]:
    """The modules of a file, the line of each, and whether the code goes on without them.

    A relative import has a dot before its name. A file is a program too, unless it is a module of a package.
    """
    left: list[tuple[ast.AST, bool]] = [(tree, beside)]
    while left:
        node, optional = left.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno, optional) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                origin = "." * node.level + (f"{node.module}." if node.module else "")
                yield f"{origin}{alias.name}", node.lineno, optional
        elif isinstance(node, ast.If):
            condition = ast.dump(node.test)
            # What is for type checkers never runs, and the program itself is what is started.
            if "TYPE_CHECKING" not in condition:
                inside = optional or is_module or "__main__" not in condition
                left += [(child, inside) for child in node.body]
                left += [(child, inside) for child in node.orelse]
            else:
                left += [(child, optional) for child in node.orelse]
        elif isinstance(node, ast.Try):
            caught = optional or any(map(_catches, node.handlers))
            left += [(child, caught) for child in node.body]
            left += [(child, True) for handler in node.handlers for child in handler.body]
            left += [(child, optional) for child in (*node.orelse, *node.finalbody)]
        else:
            lazy = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            left += [(child, optional or lazy) for child in ast.iter_child_nodes(node)]


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(n, ast.Name) and n.id in _ABSENT for n in ast.walk(handler.type))
