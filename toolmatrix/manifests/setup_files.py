"""`setup.py` and `setup.cfg`: what they require, read as text.

`setup.py` is parsed and never run. Followed are names bound to literals, lists put together, tables of requirements,
and files of requirements that an expression names, as setup.py reads them in many ways. The rest is not read.
"""

from __future__ import annotations

import ast
import posixpath
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from toolmatrix.errors import ManifestError, Position
from toolmatrix.manifests import requirements
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.model import (
    EXCERPT,
    LONGEST_VALUE,
    MOST,
    PYTHON,
    FileText,
    Item,
    ManifestEnvironment,
    NotRead,
    ProjectManifest,
    Traced,
    bounded,
    check_count,
    joined,
)
from toolmatrix.manifests.requirements import PackageIndexes

# Expressions in expressions, parts of a call that are looked at for the name of a file, and names that are tried.
_DEEPEST, _MOST_WALKED, _MOST_NAMED = 40, 100, 20
_DEEPEST_PATH, _LONGEST_PATH = 5, 200
_NAMING = (ast.Constant, ast.Call, ast.BinOp)
_LIST = re.compile(r"[^\s\"']+\.(?:txt|in)")
_NAME = re.compile(r"[A-Za-z][\w.-]*")
_NO_PACKAGES = frozenset(("git", "http", "https"))
_RUN_TIME = "an expression whose value is known at run time"
_CONDITION = "a condition decides whether it is required"
_COPIES = frozenset(("list", "set", "sorted", "tuple", "str", "dict"))
_SIGN = re.compile("[=:]")
_ADDS = frozenset(("append", "extend", "update"))
_REMOVES = frozenset(("remove", "pop", "discard", "clear"))
_SPLITS = frozenset(("split", "splitlines"))


class Requires:
    """What a project requires: the Python, packages, and those of its extras."""

    def __init__(self, path: str, files: Files, unread: list[NotRead]) -> None:
        self.path = path
        self.files = files
        self.unread = unread
        self.lists: dict[str, tuple[Item, ...]] = {}
        self.count = 0
        self.base: list[Item] = []
        self.extras: dict[str, list[Item]] = {}

    def python(self, text: Traced) -> None:
        """The Pythons that it supports."""
        python = Item(kind=PYTHON, name="python", specifier=text.text, text=text, version=text)
        self.base.append(python)

    def read(self, texts: Iterable[Traced], extra: str = "") -> None:
        """Requirements of all, or of an extra, whose name may have a marker behind it: `test:python_version<"3"`."""
        name, _, marker = extra.partition(":")
        applies = requirements.marked(marker) if marker else True
        lines = [*texts] if applies else []
        if isinstance(applies, str):
            self.unread += [NotRead(text=line, why=applies) for line in lines]
        else:
            self.add(requirements.several(lines, self.unread, PackageIndexes()), name)

    def read_file(self, name: str, text: Traced, extra: str = "") -> None:
        """The requirements of a file of the project, which a text names."""
        source = self.files.beside(name)
        if source is None:
            self.unread.append(NotRead(text=text, why="not a file of the project"))
        else:
            self.add_file(source, extra)

    def add_file(self, source: FileText, extra: str) -> None:
        """All requirements of a file."""
        if source.path not in self.lists:
            items = requirements.read_requirements(source, self.files, self.unread)
            self.lists[source.path] = items
        self.add(self.lists[source.path], extra)

    def add(self, items: Sequence[Item], extra: str) -> None:
        """Packages that all need, or an extra."""
        self.count += len(items)
        check_count(self.path, 0, self.count)
        (self.extras.setdefault(extra, []) if extra else self.base).extend(items)

    def environments(self) -> Iterator[ManifestEnvironment]:
        """What all need, and each extra together with it."""
        yield ManifestEnvironment(name="", items=tuple(self.base))
        for name, items in self.extras.items():
            if items:
                yield ManifestEnvironment(name=name, items=(*self.base, *items))


def read_configuration(source: FileText, files: Files) -> ProjectManifest:
    """The requirements of a `setup.cfg`."""
    return _manifest("setup.cfg", source, files, of_configuration)


def _manifest(
    kind: str, source: FileText, files: Files, read: Callable[[FileText, Requires], None]
) -> ProjectManifest:
    requires = Requires(source.path, files, [])
    read(source, requires)
    environments = bounded(source.path, requires.environments())
    return files.manifest(kind, source, environments, requires.unread)


def of_configuration(source: FileText, requires: Requires) -> None:
    """Read a `setup.cfg`."""
    section, key = "", ""
    values: dict[tuple[str, str], list[Traced]] = {}
    for line in source.lines():
        text = line.strip()
        # A line that is indented belongs to the key before it.
        if not text or text.text[0] in "#;":
            continue
        if line.text[0].isspace() and key:
            values[section, key].append(text)
        elif match := re.match(r"\[([^\]]*)\]", text.text):
            section, key = match[1].strip().replace(" ", ""), ""
        elif sign := _SIGN.search(text.text):
            key = text.text[: sign.start()].strip()
            key = key.replace("-", "_").lower() if section == "options" else key
            value = text[sign.end() :].strip()
            values[section, key] = [value] if value else []
    for (section, key), lines in values.items():
        extra = key if section == "options.extras_require" else ""
        if (section, key) == ("options", "python_requires") and lines:
            requires.python(lines[0])
        elif (section, key) == ("options", "install_requires") or extra:
            _configured(lines, extra, requires)


def _configured(lines: list[Traced], extra: str, requires: Requires) -> None:
    if lines and lines[0].text.startswith("file:"):
        names = ",".join((lines[0].text[5:], *(line.text for line in lines[1:]))).split(",")
        for name in filter(None, map(str.strip, names)):
            requires.read_file(name, lines[0], extra)
    else:
        requires.read(lines, extra)


def read_script(source: FileText, files: Files) -> ProjectManifest:
    """The requirements of a `setup.py`. Raises ManifestError."""
    return _manifest("setup.py", source, files, of_script)


def of_script(source: FileText, requires: Requires) -> None:
    """Read a `setup.py`. Raises ManifestError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # The parser counts bytes: of ASCII alone these are letters, and nothing else asks for a package.
            tree = ast.parse(re.sub(r"[^\x00-\x7f]", "_", source.text))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise ManifestError(
            "the file is not Python",
            where=Position(source.path, line) if line else Position(source.path),
            expected="a script that this Python can parse",
        ) from None
    _Script(source, requires).read(tree)


def read_beside(requires: Requires) -> bool:
    """Read the `setup.cfg` and the `setup.py` beside a project; False where there is none of them."""
    sources = [requires.files.beside(name) for name in ("setup.cfg", "setup.py")]
    for source, read in zip(sources, (of_configuration, of_script), strict=True):
        if source is not None:
            read(source, requires)
    return any(sources)


class _Script:
    """The names of a script with their values, as far as they are followed.

    A value is a text, a list, a table, a file of requirements, or not read.
    """

    def __init__(self, source: FileText, requires: Requires) -> None:
        self.source = source
        self.requires = requires
        self.values: dict[str, object] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.calls = 0
        # The nodes of a function that may name a file.
        self.naming: dict[str, list[ast.AST]] = {}

    def read(self, tree: ast.Module) -> None:
        self.statements(tree.body)
        # `def main(): setup(...)`
        for function in [] if self.calls else list(self.functions.values()):
            if any(map(_is_setup, ast.walk(function))):
                self.statements(function.body)

    def statements(
        self, statements: Iterable[ast.stmt], *, unsure: bool = False, deep: int = 0
    ) -> None:
        """Follow statements in their order; `unsure` where a condition decides whether they run."""
        for statement in statements if deep < _DEEPEST else ():
            if isinstance(statement, ast.FunctionDef):
                self.functions[statement.name] = statement
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
                targets = (
                    statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                )
                if statement.value is not None:
                    self.assign(targets, statement.value, unsure=unsure)
            elif isinstance(statement, ast.AugAssign):
                self.extend(statement.target, statement.value, unsure=unsure)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                self.call(statement.value, unsure=unsure)
            elif isinstance(statement, ast.With):
                for item in statement.items:
                    if isinstance(item.optional_vars, ast.Name):
                        self.values[item.optional_vars.id] = self.value(item.context_expr)
                self.statements(statement.body, unsure=unsure, deep=deep + 1)
            elif isinstance(statement, ast.Try):
                self.statements(statement.body, unsure=unsure, deep=deep + 1)
            elif isinstance(statement, ast.If):
                first = statement.test.left if isinstance(statement.test, ast.Compare) else None
                always = isinstance(first, ast.Name) and first.id == "__name__"
                self.statements(statement.body, unsure=unsure or not always, deep=deep + 1)
                self.statements(statement.orelse, unsure=True, deep=deep + 1)
            elif isinstance(statement, ast.For):
                each, unknown = self.value(statement.iter), True
                if isinstance(each, FileText) and isinstance(statement.target, ast.Name):
                    self.values[statement.target.id], unknown = each, unsure
                self.statements(statement.body, unsure=unknown, deep=deep + 1)

    def assign(self, targets: Iterable[ast.expr], node: ast.expr, *, unsure: bool) -> None:
        value = self.unfollowed(node, _CONDITION) if unsure else self.value(node)
        for target in targets:
            if isinstance(target, ast.Name):
                self.values[target.id] = value
            elif isinstance(target, ast.Subscript):
                table, key = self.value(target.value), self.value(target.slice)
                if isinstance(table, dict) and isinstance(key, Traced):
                    table[key.text] = value

    def extend(
        self, target: ast.expr, node: ast.expr, *, unsure: bool, single: bool = False
    ) -> None:
        """Add to a list or a table that a name has."""
        known = self.value(target)
        value = self.unfollowed(node, _CONDITION) if unsure else self.value(node)
        if isinstance(known, list) and self.source.visit(1):
            if single or not isinstance(value, list):
                known.append(value)
            elif self.source.visit(len(value)):
                known += list(value)
        elif isinstance(known, dict) and isinstance(value, dict) and self.source.visit(len(value)):
            known |= value
        elif isinstance(known, Traced) and isinstance(target, ast.Name):
            self.values[target.id] = self.unfollowed(target)

    def call(self, node: ast.Call, *, unsure: bool) -> None:
        if _is_setup(node):
            self.setup(node, unsure=unsure)
        elif isinstance(node.func, ast.Attribute) and node.args and node.func.attr in _ADDS:
            single = node.func.attr == "append"
            self.extend(node.func.value, node.args[0], unsure=unsure, single=single)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _REMOVES:
            self.assign([node.func.value], node, unsure=unsure)

    def setup(self, node: ast.Call, *, unsure: bool) -> None:
        """The arguments of the call that makes the project."""
        self.calls += 1
        arguments: dict[str, object] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg:
                arguments[keyword.arg] = value
            elif isinstance(value, dict):
                arguments |= value
        python = arguments.get("python_requires")
        if isinstance(python, Traced) and python and not unsure:
            self.requires.python(python)
        self.require(arguments.get("install_requires"), "")
        extras = arguments.get("extras_require")
        if isinstance(extras, dict):
            for name, value in extras.items():
                self.require(value, name)
        else:
            self.require(extras, "")

    def require(self, value: object, extra: str, deep: int = 0) -> None:
        """What the value of an argument requires."""
        if isinstance(value, FileText):
            self.requires.add_file(value, extra)
        elif isinstance(value, Traced):
            # One text may be several lines.
            self.requires.read(_lines(value), extra)
        elif isinstance(value, NotRead):
            self.requires.unread.append(value)
        elif isinstance(value, list) and deep < 3:
            for element in value if self.source.visit(len(value)) else ():
                self.require(element, extra, deep + 1)

    def unfollowed(self, node: ast.expr, why: str = _RUN_TIME) -> NotRead:
        """An expression whose value only running it would give."""
        at = self.place(node)
        text = self.source.whole()[at : at + EXCERPT]
        return NotRead(text=text.partition("\n")[0], why=why)

    def place(self, node: ast.expr) -> int:
        return self.source.offset(node.lineno, node.col_offset + 1)

    def value(self, node: ast.expr, deep: int = 0) -> object:
        """The value of an expression."""
        if deep > _DEEPEST or not self.source.visit(1):
            return self.unfollowed(node)
        if isinstance(node, ast.Constant):
            return self.literal(node) if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            return self.values[node.id] if node.id in self.values else self.unfollowed(node)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return list(chain.from_iterable(self.elements(child, deep) for child in node.elts))
        if isinstance(node, ast.Dict):
            return self.table(node, deep)
        if isinstance(node, ast.JoinedStr):
            parts = [
                self.value(
                    child.value if isinstance(child, ast.FormattedValue) else child, deep + 1
                )
                for child in node.values
            ]
            return self.text(node, parts)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.sum(node, deep)
        if isinstance(node, ast.Subscript):
            table, key = self.value(node.value, deep + 1), self.value(node.slice, deep + 1)
            entry = (
                table.get(key.text) if isinstance(table, dict) and isinstance(key, Traced) else None
            )
            return self.unfollowed(node) if entry is None else entry
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            return self.comprehension(node, deep)
        if isinstance(node, ast.DictComp):
            return self.by_name(node)
        if isinstance(node, ast.Call):
            return self.result(node, deep)
        return self.unfollowed(node)

    def literal(self, node: ast.Constant) -> Traced:
        at, text = self.place(node), str(node.value)
        # Behind a prefix and up to three quotes; where it has escapes only its beginning has a place.
        start = self.source.text.find(text, at, at + len(text) + 4)
        if start >= 0:
            return self.source.whole()[start : start + len(text)]
        return Traced(self.source, text, [at] * len(text))

    def elements(self, node: ast.expr, deep: int) -> Sequence[object]:
        if isinstance(node, ast.Starred):
            value = self.value(node.value, deep + 1)
            return value if isinstance(value, list) and self.source.visit(len(value)) else [value]
        return [self.value(node, deep + 1)]

    def table(self, node: ast.Dict, deep: int) -> dict[str, object]:
        entries: dict[str, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            known = self.value(value, deep + 1)
            name = self.value(key, deep + 1) if key else None
            if isinstance(name, Traced):
                entries[name.text] = known
            elif key is None and isinstance(known, dict) and self.source.visit(len(known)):
                entries |= known
        return entries

    def text(self, node: ast.expr, parts: Sequence[object]) -> object:
        texts = [part for part in parts if isinstance(part, Traced)]
        letters = sum(map(len, texts))
        if len(texts) < len(parts) or letters > LONGEST_VALUE or not self.source.visit(letters):
            return self.unfollowed(node)
        return joined(texts, self.source)

    def sum(self, node: ast.BinOp, deep: int) -> object:
        # A chain of sums leans to the left.
        terms: list[ast.expr] = [node.right]
        first: ast.expr = node.left
        while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add):
            terms.append(first.right)
            first = first.left
        values = [self.value(term, deep + 1) for term in (first, *reversed(terms))]
        if all(isinstance(value, Traced) for value in values):
            return self.text(node, values)
        lists = [value if isinstance(value, list) else [value] for value in values]
        count = sum(map(len, lists))
        if count > MOST or not self.source.visit(count):
            return self.unfollowed(node)
        return list(chain(*lists))

    def comprehension(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, deep: int
    ) -> object:
        """A list made of another one, whose elements it only cleans; of a table by names, its entries."""
        generator = node.generators[0]
        values = self.value(generator.iter, deep + 1)
        names = (
            child.value
            for test in generator.ifs
            for child in ast.walk(test)
            if isinstance(child, ast.Constant)
        )
        filtered = any(
            isinstance(name, str) and _NAME.fullmatch(name) and name not in _NO_PACKAGES
            for name in names
        )
        if len(node.generators) > 1 or filtered:
            return self.unfollowed(node)
        if isinstance(values, FileText):
            return values
        if isinstance(node.elt, ast.Subscript) and isinstance(values, list):
            table = self.value(node.elt.value, deep + 1)
            keys = (value.text for value in values if isinstance(value, Traced))
            if isinstance(table, dict):
                return [table.get(key) or self.unfollowed(node) for key in keys]
        element = node.elt
        while isinstance(element, ast.Call) and isinstance(element.func, ast.Attribute):
            element = element.func.value
        clean = isinstance(element, ast.Name) and isinstance(values, list)
        return values if clean else self.unfollowed(node)

    def by_name(self, node: ast.DictComp) -> object:
        """A table of requirements by the names of their packages, as projects make it of a list."""
        lists = (
            self.values.get(child.id) for child in ast.walk(node) if isinstance(child, ast.Name)
        )
        for values in lists:
            if isinstance(values, list) and self.source.visit(len(values)):
                texts = [value for value in values if isinstance(value, Traced)]
                return {re.split(r"[\s!=<>~;@]", text.text, maxsplit=1)[0]: text for text in texts}
        return self.unfollowed(node)

    def result(self, node: ast.Call, deep: int) -> object:
        """What a call gives: a file of requirements that it names, a copy, lines of a text, or entries of a table."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if isinstance(node.func, ast.Attribute):
            of = self.value(node.func.value, deep + 1)
            if isinstance(of, FileText):
                return of
            if isinstance(of, Traced) and method in _SPLITS:
                return list(_lines(of))
            if isinstance(of, (Traced, list, dict)) and method in ("strip", "copy", "values"):
                return list(of.values()) if isinstance(of, dict) and method == "values" else of
        if name == "dict" and not node.args:
            pairs = [
                (keyword.arg, self.value(keyword.value, deep + 1)) for keyword in node.keywords
            ]
            return {key: value for key, value in pairs if key}
        if name in _COPIES and len(node.args) == 1:
            value = self.value(node.args[0], deep + 1)
            return (
                list(value) if isinstance(value, list) and self.source.visit(len(value)) else value
            )
        for path in self.paths(node, name):
            source = self.requires.files.beside(path)
            if source is not None:
                return source
        function = self.functions.get(name)
        vararg = function.args.vararg if function else None
        last = function.body[0] if function else None
        # `def deps_list(*names): return [deps[name] for name in names]`
        if vararg is None or not isinstance(last, ast.Return) or last.value is None:
            return self.unfollowed(node)
        before = self.values.get(vararg.arg)
        self.values[vararg.arg] = [self.value(argument, deep + 1) for argument in node.args]
        value = self.value(last.value, deep + 1)
        self.values[vararg.arg] = before
        return value

    def paths(self, node: ast.Call, name: str) -> list[str]:
        """The names of files that a call has among its arguments, and those that its function names."""
        paths = [self.path(child, {}) for child in islice(ast.walk(node), _MOST_WALKED)]
        function = self.functions.get(name)
        if function is not None:
            if name not in self.naming:
                nodes = (child for child in ast.walk(function) if isinstance(child, _NAMING))
                self.naming[name] = [*islice(nodes, _MOST_WALKED)]
            parameters, defaults = function.args.args[:_MOST_NAMED], function.args.defaults
            usual = zip(reversed(function.args.args), reversed(defaults), strict=False)
            pairs = [*islice(usual, _MOST_NAMED), *zip(parameters, node.args, strict=False)]
            names = {parameter.arg: self.path(value, {}) for parameter, value in pairs}
            paths += [self.path(child, names) for child in self.naming[name]]
        return [*dict.fromkeys(path for path in paths if _LIST.fullmatch(path))][:_MOST_NAMED]

    def path(self, node: ast.AST, names: Mapping[str, str], deep: int = 0) -> str:
        """The path that an expression puts together, without the parts that are unknown, such as its own folder."""
        path = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            path = node.value
        elif isinstance(node, ast.Name):
            value = self.values.get(node.id)
            path = names.get(node.id) or (value.text if isinstance(value, Traced) else "")
        parts: Sequence[ast.expr] = ()
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Add)):
            parts = node.left, node.right
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parts = node.args[:_MOST_NAMED] if node.func.attr in ("join", "joinpath") else ()
        if parts and deep < _DEEPEST_PATH:
            paths = [self.path(part, names, deep + 1) for part in parts]
            path = posixpath.join("", *filter(None, paths))
        # What is put behind its own folder begins with a slash.
        return path.lstrip("/") if len(path) < _LONGEST_PATH else ""


def _is_setup(node: ast.AST) -> bool:
    """Whether it is the call that makes a project."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    return (
        function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    ) == "setup"


def _lines(text: Traced) -> Iterator[Traced]:
    position = 0
    for line in text.text.split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            yield text[position : position + len(line)].strip()
        position += len(line) + 1
