"""Measure the house: how large its rooms are, how long, branched and documented its functions, and what is there twice.

    python -m tests.house [FOLDER]

prints the measurements of a package, this one's unless another folder is named. `tests/test_house.py` sets the bounds.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parent.parent / "toolmatrix"

LONG_FILE = 300
LONG_FUNCTION = 60
BRANCHED = 10
REPEATED = 6
"""So many equal lines make a repetition: fewer are what any two functions of one style share."""

Def = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """One file of a package: its text, its tree, and the room that it lies in."""

    def __init__(self, path: Path, package: Path) -> None:
        self.inside = path.relative_to(package)
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.package = package.name

    @property
    def room(self) -> str:
        """The folder in the package, a dot for the package itself."""
        return self.inside.parent.as_posix()

    @property
    def name(self) -> str:
        """The name that imports it."""
        parts = (self.package, *self.inside.with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return self.text.split("\n")[:-1]

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """The nodes of the tree, from the top down."""
        return list(ast.walk(self.tree))

    @cached_property
    def functions(self) -> list[Function]:
        """The functions, those inside others as well."""
        return [_function(self, node) for node in self.nodes if isinstance(node, Def)]

    @cached_property
    def docstring_lines(self) -> set[int]:
        """Numbers of the lines that docstrings take, of attributes as well."""
        found: set[int] = set()
        for node in self.nodes:
            if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
                continue
            if isinstance(node.value.value, str):
                found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return found

    @cached_property
    def declaration_lines(self) -> set[int]:
        """Numbers of the lines of classes that hold nothing but fields, as those of documents do."""
        found: set[int] = set()
        for node in self.nodes:
            if isinstance(node, ast.ClassDef) and all(map(_declares, node.body)):
                found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return found

    @cached_property
    def comment_lines(self) -> set[int]:
        """Numbers of the lines that hold nothing but a comment; a directive to a tool is none."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return {
            token.start[0]
            for token in tokens
            if token.type == tokenize.COMMENT
            and token.line.strip().startswith("#")
            and not token.string.startswith(("# type:", "# noqa", "# fmt:", "#!"))
        }

    @cached_property
    def import_lines(self) -> set[int]:
        """Numbers of the lines that import."""
        found: set[int] = set()
        for node in self.nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return found

    @property
    def blank_lines(self) -> int:
        """How many lines are empty."""
        return sum(not line.strip() for line in self.lines)


class Function(NamedTuple):
    """One function or method, `length` lines long, with decorators left out as its `line` leaves them out."""

    module: Module
    name: str
    line: int
    length: int
    complexity: int
    annotated: bool
    documented: bool


class Class(NamedTuple):
    """One class and how many lines it has."""

    module: Module
    name: str
    line: int
    length: int
    documented: bool


class Repetition(NamedTuple):
    """Equal lines at two places of a package."""

    first: str
    second: str
    length: int


def _declares(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def modules(package: Path = PACKAGE) -> list[Module]:
    """The modules of a package in the order of their paths."""
    return [Module(path, package) for path in sorted(package.rglob("*.py"))]


def _length(node: Def | ast.ClassDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def functions(of: Iterable[Module]) -> Iterator[Function]:
    """Every function of some modules, those inside others as well."""
    for module in of:
        yield from module.functions


def _function(module: Module, node: Def) -> Function:
    return Function(
        module,
        node.name,
        node.lineno,
        _length(node),
        complexity(node),
        _annotated(node),
        ast.get_docstring(node) is not None,
    )


def classes(of: Iterable[Module]) -> Iterator[Class]:
    """Every class of some modules."""
    for module in of:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                documented = ast.get_docstring(node) is not None
                yield Class(module, node.name, node.lineno, _length(node), documented)


def _annotated(node: Def) -> bool:
    given = node.args
    rest = [one for one in (given.vararg, given.kwarg) if one]
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *rest]
    return node.returns is not None and all(
        one.annotation or one.arg in ("self", "cls", "mcls") for one in named
    )


def complexity(node: Def) -> int:
    """McCabe's number as lizard counts it: 1 and the branches, `and`, `or` and comprehensions included.

    What a function inside does counts for that function.
    """
    return 1 + sum(map(_branches, _own(node)))


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, without those of functions inside."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, Def):
            yield from _own(child)


def _branches(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    if isinstance(node, ast.Try):
        return len(node.handlers) + bool(node.finalbody)
    loops = (ast.For, ast.AsyncFor, ast.While)
    return isinstance(node, (ast.If, ast.IfExp, ast.match_case, *loops))


class _Line(NamedTuple):
    """One line of code, without its indent, and where it stands."""

    text: str
    place: str


def repetitions(of: Iterable[Module], least: int = REPEATED) -> list[Repetition]:
    """The places of some modules where so many lines of code or more are equal, each beside the first of its kind.

    Blank lines, comments, docstrings and imports do not count, nor does how far a line is indented.
    """
    lines = list(_code(of))
    first: dict[tuple[str, ...], int] = {}
    found = []
    for place in range(len(lines) - least + 1):
        window = tuple(one.text for one in lines[place : place + least])
        before = first.setdefault(window, place)
        # A run that began a line earlier is one already found.
        if before == place or lines[before - 1].text == lines[place - 1].text:
            continue
        length = least
        while lines[before + length].text == lines[place + length].text:
            length += 1
        found.append(Repetition(lines[before].place, lines[place].place, length))
    return found


def _code(of: Iterable[Module]) -> Iterator[_Line]:
    for module in of:
        skipped = module.docstring_lines | module.comment_lines | module.import_lines
        path = module.inside.as_posix()
        # Equal to no line, so that no run goes on from one module into the next.
        yield _Line(f"# {path}", path)
        for number, line in enumerate(module.lines, 1):
            if line.strip() and number not in skipped:
                yield _Line(line.strip(), f"{path}:{number}")
    yield _Line("# the end", "")


def imports(module: Module, *, types: bool = False) -> Iterator[tuple[int, str]]:
    """Line and full name of what a module imports when it runs; with `types` also of what type checkers alone see."""
    package = module.name.split(".")
    if module.inside.name != "__init__.py":
        package.pop()
    for node in module.nodes if types else _running(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one without those under `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        yield child
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield from _running(child)


def depth(of: Sequence[Module]) -> int:
    """How many modules of a room import one another in the longest chain."""
    names = {module.name: module for module in of}
    uses = {
        name: {
            known
            for _, target in imports(module)
            for known in (target, target.rpartition(".")[0])
            if known in names and known != name
        }
        for name, module in names.items()
    }
    known: dict[str, int] = {}

    def chain(name: str, above: frozenset[str]) -> int:
        if name not in known:
            below = uses[name] - above  # a circle is not followed
            known[name] = 1 + max((chain(one, above | {name}) for one in below), default=0)
        return known[name]

    return max((chain(name, frozenset({name})) for name in names), default=0)


def part(number: float, whole: float) -> str:
    """A share in per cent."""
    return f"{100 * number / whole:.1f} %" if whole else "-"


def _spread(numbers: Iterable[int], high: float = 0.95) -> str:
    """Median, 95th percentile and largest of some numbers."""
    held = sorted(numbers) or [0]
    return f"{held[len(held) // 2]} / {held[int(len(held) * high)]} / {held[-1]}"


def measurements(of: Sequence[Module]) -> Iterator[tuple[str, str]]:
    """Every measurement of a package with its name."""
    sizes = [len(module.lines) for module in of]
    lines = sum(sizes)
    yield "files / lines", f"{len(of)} / {lines}"
    yield (
        f"median file, > {LONG_FILE}, max",
        f"{sorted(sizes)[len(of) // 2]}, {sum(size > LONG_FILE for size in sizes)}, {max(sizes)}",
    )
    held = list(functions(of))
    yield "functions: median / p95 / max", _spread(one.length for one in held)
    yield f"functions > {LONG_FUNCTION} lines", str(sum(one.length > LONG_FUNCTION for one in held))
    yield "longest class", str(max((one.length for one in classes(of)), default=0))
    yield "annotated", part(sum(one.annotated for one in held), len(held))
    named: list[Function | Class] = [*held, *classes(of)]
    public = [one for one in named if not one.name.startswith("_")]
    private = [one for one in named if one.name.startswith("_") and not one.name.endswith("__")]
    yield (
        "docstrings of public / private",
        " / ".join(
            part(sum(one.documented for one in kind), len(kind)) for kind in (public, private)
        ),
    )
    yield (
        "docstring / comment / blank lines",
        " / ".join(
            part(count, lines)
            for count in (
                sum(len(module.docstring_lines) for module in of),
                sum(len(module.comment_lines) for module in of),
                sum(module.blank_lines for module in of),
            )
        ),
    )
    branches = [one.complexity for one in held]
    mean = sum(branches) / len(branches)
    yield "complexity: mean; median / p95 / max", f"{mean:.1f}; {_spread(branches)}"
    yield f"complexity > {BRANCHED}", part(sum(one > BRANCHED for one in branches), len(branches))
    yield f"repetitions of {REPEATED} lines or more", str(len(repetitions(of)))


def rooms(of: Iterable[Module]) -> dict[str, list[Module]]:
    """The modules by the room that they lie in."""
    found: dict[str, list[Module]] = {}
    for module in of:
        found.setdefault(module.room, []).append(module)
    return dict(sorted(found.items()))


def main() -> None:
    """Print what was measured as two tables of Markdown."""
    parser = argparse.ArgumentParser(description="Measure a package, and print it as Markdown.")
    parser.add_argument("package", nargs="?", type=Path, default=PACKAGE, help="its folder")
    package = parser.parse_args().package.resolve()
    of = modules(package)
    if not of:
        parser.error(f"no modules below {package}")
    print(f"| {package.name} | |\n|---|---|")
    for name, value in measurements(of):
        print(f"| {name} | {value} |")
    print(
        "\n| room | files | lines | functions: median / p95 / max | imports deep |\n|---|---|---|---|---|"
    )
    for room, held in rooms(of).items():
        lines = sum(len(module.lines) for module in held)
        spread = _spread(one.length for one in functions(held))
        print(f"| {room} | {len(held)} | {lines} | {spread} | {depth(held)} |")


if __name__ == "__main__":
    main()
