"""The layout of the house: who may import whom, how long things get, and no versions in the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import house
from toolmatrix.cli import topics
from toolmatrix.command import COMMANDS, all_options, meanings
from toolmatrix.report.rules import load_rules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "toolmatrix"
MODULES = sorted(PACKAGE.rglob("*.py"))

LONGEST_MODULE = 700  # where it is one thing
LONGEST_FUNCTION = 60
# What was reached; they may rise and must not fall.
COMMENTED = 0.038
DOCUMENTED = 0.9

# Arrows point down only, and never sideways to another part of the same floor.
FLOORS = (
    {"__main__"},
    {"commands"},
    {"cli"},
    {"command"},
    {"api"},
    {"rendering", "judging", "report", "harvest"},
    {"logs", "request"},
    {"solve", "compilation", "inspection", "lockfile", "recipes"},
    {"factbase", "images", "manifests"},
    {"codes"},
    {"finding"},
    {"document_store", "http", "resources", "lines", "outputs", "pack", "toml"}
    | {"further_errors"},
    {"errors", "opener", "process", "processors", "value", "wording", "__init__"},
    {"documents"},
)

# Modules that may import what stands above them, with the reason.
MAY_LOOK_UP = {
    "toolmatrix/__init__.py": "the front door: it hands on functions of `api`, imported when they are asked for",
    "toolmatrix/cli/main.py": "`--help` and completion are those of the commands `help` and `completion`",
    "toolmatrix/errors.py": "it hands on the failures of files, tools and services, made when one is asked for",
}

VERSION = re.compile(r"\d+\.\d+(\.\d+)*")
ARCH = re.compile(r"(?<![a-z0-9])(sm_|compute_)\d|(?<![a-z0-9])gfx\d")

# Idioms of this house that no user shall have to learn: words with many meanings, and sentences about "what" or "who".
IDIOMS = re.compile(
    r"\b(nobody|whoever|vouch\w*|tells?|told|anew|called so|speaks? (of|for)|(is|are|was|were) held"
    r"|stands? (for|in|beside|there)|lets? through|of which|otherwise than)\b"
    r"|(^|[.;:] )(what|who|that which) ",
    re.IGNORECASE,
)

# Constants that look like a component's version or arch and are none, with the reason.
NOT_A_COMPONENT = {
    ("toolmatrix/__init__.py", "0.3.0"): "the package's own version",
    ("toolmatrix/report/annotations.py", "2.1.0"): "the version of SARIF",
    ("toolmatrix/rendering/formats/cyclonedx.py", "1.6"): "the version of CycloneDX",
}


class Import(NamedTuple):
    """One import of a module of this package."""

    line: int
    target: str


def part(path: Path) -> str:
    """The part of the house that a module belongs to: its package, or itself."""
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def floor(name: str) -> int:
    """The floor of a part, the top one being 0."""
    return next(number for number, parts in enumerate(FLOORS) if name in parts)


def imports(path: Path) -> Iterator[Import]:
    """The parts of the house that a module imports, absolutely or relatively."""
    for line, name in house.imports(read(path, PACKAGE), types=True):
        top, _, rest = name.partition(".")
        if top == PACKAGE.name:
            target = rest.partition(".")[0]
            known = any(target in parts for parts in FLOORS)
            yield Import(line, target if known else "__init__")


def shown(path: Path) -> str:
    """A module as the messages name it."""
    return path.relative_to(ROOT).as_posix()


def docstrings(path: Path) -> set[int]:
    """Ids of the constants that are docstrings or stand alone like one."""
    return {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}


@cache
def read(path: Path, package: Path) -> house.Module:
    """A module, read once."""
    return house.Module(path, package)


def nodes(path: Path) -> list[ast.AST]:
    """The nodes of a module."""
    return read(path, PACKAGE if PACKAGE in path.parents else path.parent).nodes


def read_once() -> list[house.Module]:
    """The modules of the package."""
    return [read(path, PACKAGE) for path in MODULES]


def test_every_part_of_the_house_has_a_floor() -> None:
    known = set().union(*FLOORS)
    assert {part(path) for path in MODULES} <= known


def test_imports_point_down() -> None:
    wrong = [
        f"{shown(path)}:{line} imports {target}"
        for path in MODULES
        for line, target in imports(path)
        if target != part(path) and floor(target) <= floor(part(path))
        if shown(path) not in MAY_LOOK_UP
    ]
    assert wrong == []


def test_every_module_can_be_imported() -> None:
    """A name that a module has for types alone is found by type checkers, and by nobody else."""
    for path in MODULES:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        # The last is no module of the package: it runs in other environments.
        if path.stem not in ("__main__", "isolated"):
            assert import_module(name).__name__ == name


def test_modules_and_functions_stay_short() -> None:
    measured = read_once()
    long = [
        f"{one.inside} has {len(one.lines)} lines"
        for one in measured
        if len(one.lines) > LONGEST_MODULE
    ]
    long += [
        f"{one.module.inside}:{one.line} {one.name} has {one.length} lines"
        for one in house.functions(measured)
        if one.length > LONGEST_FUNCTION
    ]
    assert long == []


def test_the_code_says_why_and_what_once() -> None:
    """Comments say why; docstrings of what is public say what; no lines stand twice."""
    measured = read_once()
    # The fields of a document have docstrings, where there is something to say.
    lines = sum(len(one.lines) - len(one.declaration_lines) for one in measured)
    assert sum(len(one.comment_lines) for one in measured) >= COMMENTED * lines
    named: list[house.Function | house.Class] = [
        *house.functions(measured),
        *house.classes(measured),
    ]
    public = [one for one in named if not one.name.startswith("_")]
    assert sum(one.documented for one in public) >= DOCUMENTED * len(public)
    repeated = house.repetitions(measured)
    assert repeated == [], "\n".join(map(str, repeated))


def test_no_class_name_stands_twice() -> None:
    """A name that two rooms use for two things is read wrong in one of them; `_Names` are their module's own."""
    found: dict[str, list[str]] = {}
    for one in house.classes(read_once()):
        if not one.name.startswith("_"):
            found.setdefault(one.name, []).append(f"{one.module.inside}:{one.line}")
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


# None of these says what a value is or what happens: each had several meanings here.
IDIOM = frozenset(
    "around asked brought drawn errand footing found given held hits judged laid listed made meant misfit one"  # noqa: SIM905
    " reached said seen sheaf sheaves shown surroundings taken told way ways".split()
)

# Names that documents, stored results and errors have, by module.
PUBLIC_NAMES = {
    "errors.py": "found",
    "harvest/source_tree.py": "FOUND",
    "http.py": "found",
    "inspection/record.py": "seen",
    "report/partners.py": "said way ways",
    "codes/manifests.py": "asked",
    "commands/harvest.py": "asked",
    "commands/judge.py": "asked",
    "commands/plan.py": "asked",
    "commands/search.py": "found hits",
    "commands/upgrade.py": "held asked",
    "api/news.py": "listed",
    "api/trials.py": "way",
    "cli/tools.py": "found",
    "compilation/execute.py": "said",
    "compilation/replay.py": "asked",
    "compilation/verify.py": "given",
    "factbase/layout.py": "given way",
    "factbase/model.py": "given way",
    "factbase/records.py": "given way",
    "finding.py": "Judged found ways",
    "harvest/environments.py": "said",
    "images/layers.py": "held",
    "inspection/layers.py": "held",
    "inspection/model.py": "Seen Held found shown seen",
    "judging/validation.py": "judged",
    "lockfile/model.py": "asked",
    "logs/log.py": "seen",
    "logs/signatures.py": "given",
    "report/findings.py": "ways",
    "report/imports.py": "said",
    "report/port.py": "held",
    "report/remarks.py": "one",
    "request/judgement.py": "judged",
    "request/upgrades.py": "held asked",
}


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The names that a module gives to definitions, arguments, variables and attributes, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg) and node.arg != "found":
            # What an error found beside what it expected.
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def test_names_are_those_that_the_field_knows() -> None:
    idioms = [
        f"{module.inside}:{line} {name}"
        for module in read_once()
        for line, name in identifiers(module.tree)
        if name.strip("_").lower() in IDIOM
        and name not in PUBLIC_NAMES.get(module.inside.as_posix(), "").split()
    ]
    assert idioms == []


@pytest.mark.parametrize("text", ["told = 1", "def held(): ...", "def f(asked): ...", "a._one = 2"])
def test_the_search_for_names_finds_them(text: str) -> None:
    assert [name.strip("_") for _, name in identifiers(ast.parse(text))][-1] in IDIOM


def version_literals(path: Path) -> Iterator[str]:
    """Constants of a module that look like a version or an arch of some component.

    A sentence decides nothing, so what has a blank in it may show an example.
    """
    skipped = docstrings(path)
    for node in nodes(path):
        if not isinstance(node, ast.Constant) or id(node) in skipped:
            continue
        value = node.value
        found = isinstance(value, float) and 1 <= value < 100
        if isinstance(value, str) and not re.search(r"\s", value):
            found = bool(VERSION.fullmatch(value) or ARCH.search(value))
        if found and (shown(path), str(value)) not in NOT_A_COMPONENT:
            yield f"{shown(path)}:{node.lineno} {value!r}"


def test_no_version_of_a_component_stands_in_the_code() -> None:
    assert [found for path in MODULES for found in version_literals(path)] == []


def test_the_search_for_versions_finds_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    module = tmp_path / "module.py"
    module.write_text('"""1.2"""\nA = "11.2"\nB = 3.9\nC = "sm_86,"\nD = 0.5\nE = "a 1.2"\n')
    assert list(version_literals(module)) == [
        "module.py:2 '11.2'",
        "module.py:3 3.9",
        "module.py:4 'sm_86,'",
    ]


def test_the_search_for_imports_finds_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path / "toolmatrix")
    module = tmp_path / "toolmatrix" / "solve" / "module.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "import os\n"
        "import toolmatrix.report.terminal\n"
        "from toolmatrix import factbase, __version__\n"
        "from . import engine\n"
        "from ..errors import CannotSay\n"
        "def later():\n"
        "    from toolmatrix.cli.main import main\n"
    )
    assert list(imports(module)) == [
        (2, "report"),
        (3, "factbase"),
        (3, "__init__"),
        (4, "solve"),
        (5, "errors"),
        (7, "cli"),
    ]


def user_texts() -> Iterator[tuple[str, str]]:
    """The texts of options, commands, topics, codes and their pages, each with its place."""
    for option in all_options().values():
        for text in meanings(option):
            yield option.flags[-1], text
    for command in COMMANDS.values():
        yield command.name, command.summary
    for name, topic in topics.load().items():
        for text in (topic.title, *topic.head, *topic.says, *topic.then, *chain(*topic.rows)):
            yield name, text
    for page in load_rules().values():
        for text in (page.name, page.what, page.why, page.remedy):
            yield page.code, text
    for path in (PACKAGE / "codes").glob("*.py"):
        left = docstrings(path)
        for node in nodes(path):
            if isinstance(node, ast.Constant) and id(node) not in left:
                yield shown(path), str(node.value)


def test_texts_for_users_have_no_idioms_of_the_house() -> None:
    assert [found for found in user_texts() if IDIOMS.search(found[1])] == []


@pytest.mark.parametrize(
    "text",
    ["do not go on; nobody can say", "what is called so", "a row stands for others", "it is held"],
)
def test_the_search_for_idioms_finds_them(text: str) -> None:
    assert IDIOMS.search(text)
    assert not IDIOMS.search(
        "Take the release that has a wheel: the index does not list what is new"
    )


def test_commands_open_the_matrix_in_one_way() -> None:
    """By `context.index()`, which knows where a matrix that is piped in lies."""
    commands = sorted({*(PACKAGE / "cli").glob("*.py")} - {PACKAGE / "cli" / "context.py"})
    wrong = [
        f"{shown(path)}:{line}"
        for path in commands
        for line, name in house.imports(read(path, PACKAGE), types=True)
        if name.startswith("toolmatrix.factbase.store.")
    ]
    assert wrong == []


def test_the_package_imports_what_it_depends_on_and_nothing_else() -> None:
    """Packages by the names they are imported under; a dependency that no module imports is none."""
    called = {
        "yaml": "pyyaml",
        "elftools": "pyelftools",
        "debian": "python-debian",
        "pypi_simple": "pypi-simple",
        "typing_extensions": "",
    }
    found = set()
    for path in MODULES:
        for node in nodes(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module]
            found |= {name.partition(".")[0] for name in names}
    outside = found - {*sys.stdlib_module_names, "toolmatrix"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lists = [
        extras[name]
        for name in extras.keys() - {"test", "mutants", "nvcc", "consumers", "docs", "bench"}
    ]
    wanted = {
        re.split(r"[^\w-]", line)[0] for part in (project["dependencies"], *lists) for line in part
    }
    assert {called.get(name, name) for name in outside} - {""} | {"tomli"} == wanted


def test_every_data_file_has_its_place() -> None:
    from toolmatrix import resources

    assert (Path(resources.matrix_root()) / "matrix.yaml").is_file()
    assert Path(resources.rules_path()).is_file()
    assert Path(resources.schema_path("error")).is_file()


# What hands out records of the index: calls of these names, and attributes that hold lists of records.
RECORD_CALLS = {
    *("cites", "claim", "component", "entry", "record", "release", "row", "section", "source"),
    *("channel", "products", "sources", "statement"),
}
RECORD_LISTS = {"bindings", "disputed", "disputes", "row_groups"}
# Where arrays of the file become records.
READS_THE_INDEX = PACKAGE / "factbase" / "index.py"


def is_index_data(node: ast.AST | None, names: set[str]) -> bool:
    """Whether an expression is a record of the index or a list of them, as far as names of calls and attributes tell.

    A receiver that is called `index`, or ends in it, tells `index.record()` from a `record()` of something else.
    """
    if isinstance(node, ast.IfExp):
        return is_index_data(node.body, names) or is_index_data(node.orelse, names)
    if isinstance(node, ast.Subscript):
        return is_index_data(node.value, names)
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Attribute):
        return node.attr in RECORD_LISTS
    called = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(called, ast.Attribute)
        and called.attr in RECORD_CALLS
        and ast.unparse(called.value).endswith(("index", "assembly"))
    )


def by_position(path: Path) -> list[str]:
    """Where a module reads index data by position: a literal number, or names for the parts of a record."""
    found = []
    for scope in nodes(path):
        if not isinstance(scope, ast.FunctionDef):
            continue
        names: set[str] = set()
        for node in ast.walk(scope):
            pairs: list[tuple[ast.AST, ast.AST | None]] = []
            if isinstance(node, (ast.For, ast.comprehension)):
                pairs = [(node.target, node.iter)]
            elif isinstance(node, (ast.Assign, ast.NamedExpr)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                pairs = [(target, node.value) for target in targets]
            for target, value in pairs:
                if is_index_data(value, names):
                    names |= {target.id} if isinstance(target, ast.Name) else set()
                    if isinstance(target, (ast.Tuple, ast.List)):
                        found.append(f"{shown(path)}:{target.lineno} {ast.unparse(target)}")
            if isinstance(node, ast.Subscript) and is_index_data(node.value, names):
                place = node.slice.operand if isinstance(node.slice, ast.UnaryOp) else node.slice
                if isinstance(place, ast.Constant) and isinstance(place.value, int):
                    found.append(f"{shown(path)}:{node.lineno} {ast.unparse(node)}")
    return sorted(set(found))


def test_records_of_the_index_are_read_by_name() -> None:
    paths = [path for path in MODULES if path != READS_THE_INDEX]
    assert [wrong for path in paths for wrong in by_position(path)] == []


def test_the_search_for_positions_finds_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    module = tmp_path / "module.py"
    module.write_text(
        "def read(index, part, other):\n"
        "    for kind, mask, *_ in index.component('cuda').bindings:\n"
        "        pass\n"
        "    for binding in part.bindings:\n"
        "        binding[3], binding.mask, other[0]\n"
        "    record = index.record(7)\n"
        "    record[0], index.cites(3)[-1]\n"
        "    return [rival for rival, _, _ in part.disputed]\n"
    )
    assert by_position(module) == [
        "module.py:2 (kind, mask, *_)",
        "module.py:5 binding[3]",
        "module.py:7 index.cites(3)[-1]",
        "module.py:7 record[0]",
        "module.py:8 (rival, _, _)",
    ]


def small(folder: Path, **texts: str) -> list[house.Module]:
    """The modules of a package made of some texts."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return house.modules(folder)


def test_what_is_measured_of_a_function(tmp_path: Path) -> None:
    of = small(
        tmp_path,
        a="""def f(x: int, *y: int) -> int:
    "One."
    # Why.
    def inside(z):
        return z if z else 1
    if x and y or not x:
        return 1
    try:
        return sum(one for one in y if one)
    except ValueError:
        return 2
    finally:
        pass

class C:
    # type: ignore
    def g(self) -> None: ...
""",
    )
    found = {one.name: one for one in house.functions(of)}
    shown = {
        name: (one.length, one.complexity, one.annotated, one.documented)
        for name, one in found.items()
    }
    assert shown == {
        "f": (13, 8, True, True),
        "inside": (2, 2, False, False),
        "g": (1, 1, True, False),
    }
    assert [(one.name, one.length) for one in house.classes(of)] == [("C", 3)]
    assert (of[0].docstring_lines, of[0].comment_lines, of[0].blank_lines) == ({2}, {3}, 1)


def test_equal_lines_are_found_wherever_they_stand(tmp_path: Path) -> None:
    same = "".join(f"call({number})\n" for number in range(4))
    of = small(
        tmp_path,
        a=f"import os\n{same}only = 1\n",
        b=f"import os\nother = 1\n# why\n{same}",
        c="call(0)\ncall(1)\n",
    )
    assert house.repetitions(of, 3) == [("a.py:2", "b.py:4", 4)]
    assert house.repetitions(of, 5) == []


def test_the_depth_of_a_room_is_its_longest_chain(tmp_path: Path) -> None:
    name = tmp_path.name
    of = small(
        tmp_path,
        a=f"from {name} import b",
        b=f"def f():\n    from {name}.c import x",
        c=f"if TYPE_CHECKING:\n    from {name} import a",
        d="import a",
    )
    assert house.depth(of) == 3


@pytest.mark.process
def test_actionlint_finds_nothing_in_the_workflow() -> None:
    program = Path(sys.executable).with_name("actionlint")
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert workflows
    found = subprocess.run(
        [program, "-no-color", *workflows], capture_output=True, text=True, check=False
    )
    assert (found.stdout, found.stderr, found.returncode) == ("", "", 0)


def test_ci_runs_on_the_oldest_and_the_newest_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = project["requires-python"].removeprefix(">=")
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    found = re.findall(r'python: \["([\d.]+)", "([\d.]+)"\]', text)
    assert found == [(oldest, "3.14")]
