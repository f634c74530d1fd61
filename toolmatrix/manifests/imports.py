"""The modules that the code of a project imports from elsewhere. The code is parsed, and never run."""

from __future__ import annotations

import ast
import os
import re
import sys
from functools import lru_cache, partial
from itertools import islice

from toolmatrix.errors import ManifestError
from toolmatrix.manifests import files
from toolmatrix.manifests import names as called
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping

    from toolmatrix.manifests.model import FileText, Traced

# Files that are opened.
_MOST = 5000
_FOREIGN = frozenset(("node_modules", "site-packages", "__pycache__", "venv", "build", "dist"))
_BUILDING = frozenset(("setup.py", "conftest.py"))
_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")
# What makes a folder of a repository an environment of its own.
_OWN = re.compile(
    r"pyproject\.toml|setup\.(?:py|cfg)|.*requirements?.*\.txt|(?:environment|env|conda).*\.ya?ml|.*dockerfile.*",
    re.IGNORECASE,
)
_NEEDED, _APART, _OPTIONAL = range(3)
"""How much code depends on a module, the most first: the places of the modules in `_Reader.modules`."""
_ABSENT = frozenset(("ImportError", "ModuleNotFoundError", "Exception"))
_LACKING = _ABSENT | {"AttributeError"}
# Conditions under which code runs with some releases alone: `TORCH_1_13`, `six.PY3`, `is_torch_greater_or_equal(...)`.
_BRANCHES = re.compile(r"version|hasattr|TYPE_CHECKING|greater|[a-z_]\w*\d", re.IGNORECASE)
_LINE = re.compile(r"^([ \t]*)(?:from[ \t]+([A-Za-z_][\w.]*)|import[ \t]+([^\n#;]+))", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_][\w.]*")
# `from .a import (b, c)`, `import a.b as c`: what is imported as soon as a file is.
_OUTER = re.compile(
    r"^(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]{0,2000}\)|[^\n#;(]+)|import[ \t]+([^\n#;]+))",
    re.MULTILINE,
)

# `import a.b as c, d`, `from a.b import (c as d, e)`, wherever it is.
_ALIASED = re.compile(
    r"^[ \t]*(?:from[ \t]+([A-Za-z_][\w.]*)[ \t]+import[ \t]*(\([^)]{0,2000}\)|[^\n#;(]+)|import[ \t]+([^\n#;]+))",
    re.MULTILINE,
)
_AS = re.compile(r"\s*([A-Za-z_][\w.]*)(?:\s+as\s+(\w+))?")
_MEMBER = re.compile(r"(?<![\w.])([A-Za-z_]\w*)((?:\.\w+)+)")


class SourceImports(Value):
    """The modules that code imports from elsewhere, each with the place that names it first.

    Without the `needed` ones a file cannot be loaded. Those `apart` are needed by files alone that nothing leads to: by
    modules of a project that neither its packages nor its programs at the top import, and by code in a folder with
    requirements of its own. Where an import is caught, is in a function or under a condition, or beside the packages of
    a project, the code goes on without it, and it is `optional`. `uses` are the names of interest that code uses which
    is not apart, unless it expects that they may be missing or defines them itself.
    """

    needed: Mapping[str, Traced]
    apart: Mapping[str, Traced]
    optional: Mapping[str, Traced]
    unparsed: tuple[str, ...]
    uses: Mapping[str, Traced]


def source_imports(
    folder: str, packages: Container[str], names: Collection[str] = ()
) -> SourceImports:
    """The modules that the files of a folder import, without those of the standard library and its own.

    What builds and tests it does not count, as its requirements do not. `packages` are those that are known to the
    matrix, and `names` of modules and their members those of interest, as `torch._six`.
    """
    paths = [*islice(_sources(folder), _MOST)]
    relative = [os.path.relpath(path, folder) for path in paths]
    reader = _Reader(folder, relative, packages, frozenset(names))
    for path in paths:
        reader.read(path)
    needed, apart, optional = (dict(sorted(modules.items())) for modules in reader.modules)
    return SourceImports(
        needed=needed,
        apart={name: place for name, place in apart.items() if name not in needed},
        optional={
            name: place
            for name, place in optional.items()
            if name not in needed and name not in apart
        },
        unparsed=tuple(reader.unparsed),
        uses={name: reader.uses[name] for name in sorted(reader.uses.keys() - reader.defined)},
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
    def __init__(
        self,
        folder: str,
        paths: Iterable[str],
        known: Container[str],
        of_interest: frozenset[str],
    ) -> None:
        self.folder = folder
        self.known = known
        self.of_interest = of_interest
        self.uses: dict[str, Traced] = {}
        self.defined: set[str] = set()
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
        self.modules: tuple[dict[str, Traced], ...] = ({}, {}, {})
        self.unparsed: list[str] = []
        self.dispensable = {name for package in self.packages for name in self.caught(package)}
        names = [path.replace(os.sep, "/") for path in paths]
        self.apart = {*self.environments_apart(names)}
        if is_project:
            self.apart |= {*names} - self.led_to(names)

    def environments_apart(self, names: Iterable[str]) -> Iterator[str]:
        """The files in folders with requirements of their own, where the top has some too."""
        if not self.has_own(""):
            return
        apart: dict[str, bool] = {"": False, "src": False}
        for name in names:
            parts = name.split("/")[:-1]
            for depth in range(len(parts)):
                folder = "/".join(parts[: depth + 1])
                if folder not in apart:
                    apart[folder] = apart["/".join(parts[:depth])] or self.has_own(folder)
            if apart["/".join(parts)]:
                yield name

    def has_own(self, folder: str) -> bool:
        """True for a folder that says what is installed for its code; a package says it for that of its project."""
        names = os.listdir(os.path.join(self.folder, folder))
        return "__init__.py" not in names and any(map(_OWN.fullmatch, names))

    def led_to(self, names: Iterable[str]) -> set[str]:
        """The files that are loaded with a package of the repository, or with a program at its top."""
        by_module: dict[str, list[str]] = {}
        for name in names:
            parts = name.removesuffix(".py").removesuffix("/__init__").split("/")
            # Programs change the path of Python: a module may be called from any folder above it.
            for at in range(len(parts)):
                by_module.setdefault(".".join(parts[at:]), []).append(name)
        left = [n for n in names if "/" not in n or n.endswith(("/__init__.py", "/__main__.py"))]
        loaded = {*left}
        while left:
            name = left.pop()
            try:
                text = files.read_file(os.path.join(self.folder, name)).text
            except ManifestError:
                continue
            for module in _outer(text, name):
                new = {*by_module.get(module, ())} - loaded
                loaded |= new
                left += new
        return loaded

    def caught(self, package: str) -> Iterator[str]:
        """The modules of a package that it goes on without, as it catches the error where it imports them."""
        try:
            text = files.read_file(os.path.join(self.folder, package, "__init__.py")).text
        except ManifestError:
            return
        read = partial(_imports, beside=False, is_module=True)
        optional_by: dict[str, bool] = {}
        for dotted, _, optional in _of_tree(text if "ImportError" in text else "", read) or ():
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
        return top not in sys.stdlib_module_names and not self.is_own(top)

    def is_own(self, top: str) -> bool:
        """True for a module of the project."""
        return top in (self.own if called.providers(top, self.known) else self.parts)

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
        of_file = _APART if relative in self.apart else _NEEDED
        if of_file == _NEEDED and not beside and _mentions(source.text, self.of_interest):
            self.read_uses(source)
        # Most files import what others do; one that adds nothing need not be parsed.
        if not any(
            self.is_new(called.importable(dotted), _OPTIONAL if optional else of_file)
            for dotted, optional in lines
        ):
            return
        # A module of a package is imported; only a demo starts it.
        is_module = relative.rpartition("/")[0] in self.packages
        imported = _of_tree(source.text, partial(_imports, beside=beside, is_module=is_module))
        if imported is None:
            # Code for Python 2, or a template.
            self.unparsed.append(relative)
            imported = [(dotted, 0, optional) for dotted, optional in lines if optional == beside]
        for dotted, line, optional in imported:
            if dotted.startswith("."):
                continue
            name, weight = called.importable(dotted), _OPTIONAL if optional else of_file
            if self.is_new(name, weight):
                self.modules[weight][name] = _place(source, line, name)

    def read_uses(self, source: FileText) -> None:
        """Add the names of interest that a file uses, and those that it defines."""
        for dotted, line, is_definition in _of_tree(source.text, _names) or ():
            for name in _prefixes(dotted):
                if name not in self.of_interest or self.is_own(name.partition(".")[0]):
                    continue
                if is_definition:
                    self.defined.add(name)
                elif name not in self.uses:
                    last = name.rpartition(".")[2]
                    self.uses[name] = _match(
                        source, line, rf"(?<![\w.])(?:\w+\.)*{re.escape(last)}\b"
                    )

    def is_new(self, name: str, weight: int) -> bool:
        """True for a foreign module of which no import before says as much."""
        known = any(name in modules for modules in self.modules[: weight + 1])
        return not known and self.is_foreign(name)


def _of_tree(
    text: str, read: Callable[[ast.AST], Iterable[tuple[str, int, bool]]]
) -> list[tuple[str, int, bool]] | None:
    """What is read of the tree of a file; None for code that cannot be parsed, or is nested too deeply."""
    try:
        return [*read(_parse(text))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


# A file is read for what it imports and for what it uses.
@lru_cache(maxsize=1)
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


def _lines(text: str, beside: bool) -> Iterator[tuple[str, bool]]:
    """The modules that lines of a file seem to import, and whether the code may go on without them."""
    for indent, origin, names in _LINE.findall(text):
        for name in [origin] if origin else names.split(","):
            if match := _NAME.match(name.strip()):
                yield match[0], beside or bool(indent)


def _outer(text: str, path: str) -> Iterator[str]:
    """The modules that a file imports as soon as it is loaded, and what may be one: a name imported from a package."""
    folders = path.split("/")[:-1]
    for origin, members, names in _OUTER.findall(text):
        if names:
            yield from (
                match[0] for name in names.split(",") if (match := _NAME.match(name.strip()))
            )
            continue
        base = origin.lstrip(".")
        if level := len(origin) - len(base):
            base = ".".join([*folders[: len(folders) - level + 1], *filter(None, [base])])
        yield base
        yield from (f"{base}.{name}" for name in re.findall(r"\w+", members))


def _mentions(text: str, names: Collection[str]) -> bool:
    """True for code that seems to use one of the names, by the lines that import and by what is behind a dot."""
    if not names:
        return False
    aliases: dict[str, str] = {}
    dotted: list[str] = []
    for origin, member, alias in _bound(text):
        whole = f"{origin}.{member}" if member else origin
        aliases[alias or member or origin.partition(".")[0]] = (
            whole if alias or member else origin.partition(".")[0]
        )
        dotted.append(whole)
    for base, rest in _MEMBER.findall(text):
        if base in aliases:
            dotted.append(f"{aliases[base]}{rest}")
    return any(name in names for whole in dotted for name in _prefixes(whole))


def _bound(text: str) -> Iterator[tuple[str, str, str]]:
    """What lines that import bind: a module, its member if any, and the name that it gets if it gets another."""
    for origin, members, modules in _ALIASED.findall(text):
        for word in (members or modules).strip("()").split(","):
            if match := _AS.match(word):
                yield (origin, match[1], match[2]) if origin else (match[1], "", match[2])


def _prefixes(dotted: str) -> Iterator[str]:
    """A dotted name and those of what contains it."""
    while dotted:
        yield dotted
        dotted = dotted.rpartition(".")[0]


def _names(tree: ast.AST) -> Iterator[tuple[str, int, bool]]:
    """The names of other modules and their members that code uses, with their lines, and whether it defines them.

    Left out is what runs under a condition about releases, and what is caught where it is missing.
    """
    aliases: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                aliases.setdefault(alias.asname or top, set()).add(
                    alias.name if alias.asname else top
                )
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                aliases.setdefault(alias.asname or alias.name, set()).add(
                    f"{node.module}.{alias.name}"
                )
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno, False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if not node.level:
                members = (f"{node.module}.{alias.name}" for alias in node.names)
                yield from ((member, node.lineno, False) for member in members)
        elif isinstance(node, ast.Attribute):
            base, rest = _chain(node)
            modules = aliases.get(base.id, set()) if isinstance(base, ast.Name) else set()
            # What is bound twice is one of two modules.
            if len(modules) == 1:
                is_definition = isinstance(node.ctx, ast.Store)
                yield ".".join((*modules, *rest)), node.lineno, is_definition
            left.append(base)
        elif isinstance(node, ast.Try) and any(_catches(h, _LACKING) for h in node.handlers):
            left += [*node.orelse, *node.finalbody]
        elif not isinstance(node, (ast.If, ast.IfExp)) or not _BRANCHES.search(
            ast.unparse(node.test)
        ):
            left += ast.iter_child_nodes(node)


def _chain(node: ast.expr) -> tuple[ast.expr, list[str]]:
    """What attributes are of, and their names in order."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return node, names[::-1]


def _place(source: FileText, line: int, name: str) -> Traced:
    """The name of a module in the first line from there on that imports it."""
    return _match(source, line, rf"\b{re.escape(name.partition('.')[0])}\b")


def _match(source: FileText, line: int, pattern: str) -> Traced:
    """The first match of a pattern from a line on, the first of the file if there is no line."""
    whole = source.whole()
    match = re.compile(pattern).search(source.text, source.offset(line, 1) if line else 0)
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


def _catches(handler: ast.ExceptHandler, errors: Collection[str] = _ABSENT) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(n, ast.Name) and n.id in errors for n in ast.walk(handler.type))
