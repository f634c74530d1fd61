"""Test the tests: change one place of a module at a time and see whether its own tests notice.

    pip install -e '.[test,mutants]'
    python -m tests.mutants toolmatrix/solve/repair.py --sample 100 --seed 1 --jobs 2

Without a module every module listed in modules.yaml is sampled. Each survivor is printed with its place, the source
that stands there and the source that no test noticed. Exits with 1 where fewer are killed than `--bar` says, with 2
where the tests fail by themselves.

The mutants are made and run by mutmut, in a copy: it imports the tests once and forks a process for each mutant,
runs only the tests that call the changed function, and takes 0.2 s for what costs 2 s with a fresh interpreter.
cosmic-ray changes the working tree in place and starts pytest anew each time. Added here is what mutmut does
not do: a seeded sample, four further operators (`operators.py`), known equivalents with their reasons, and a bar.
mutmut leaves out module constants, decorated functions, docstrings and annotations.

A mutant that runs into its time limit counts as killed and is counted apart: a loop that does not end is noticed.
"""

from __future__ import annotations

import argparse
import ast
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
MODULES = Path(__file__).with_name("modules.yaml")
CONFIGURATION = """
[tool.mutmut]
source_paths = ["toolmatrix/"]
only_mutate = ["{module}"]
also_copy = {copied}
pytest_add_cli_args = ["-p", "no:cacheprovider"]
pytest_add_cli_args_test_selection = {tests}
use_git_change_detection = false
timeout_multiplier = 5.0
timeout_constant = 1.0
"""


class Mutant(NamedTuple):
    """One changed place: `old` and `new` are the lines that differ, `status` is mutmut's word for its end."""

    line: int
    old: str
    new: str
    status: str


class Equivalent(NamedTuple):
    """A change of a module that no test can notice, and the reason."""

    module: str
    old: str
    new: str
    reason: str


def equivalents() -> list[Equivalent]:
    """The known equivalents of every module."""
    return [Equivalent(**one) for one in yaml.safe_load(MODULES.read_text())["equivalent"]]


def own_tests(module: str) -> list[str]:
    """The test files of a module: those that modules.yaml lists, else those that import it."""
    listed: dict[str, list[str]] = yaml.safe_load(MODULES.read_text())["tests"]
    if module in listed:
        return listed[module]
    package, _, name = module.removesuffix(".py").replace("/", ".").rpartition(".")
    imports = (
        f"from {package} import {name}",
        f"from {package}.{name} import",
        f"import {package}.{name}",
    )
    return [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if any(words in path.read_text() for words in imports)
    ]


def copy(folder: Path, module: str, tests: Sequence[str]) -> None:
    """Copy what git knows and does not ignore, with a configuration for mutmut at the end of pyproject.toml."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    names = [name for name in listing.stdout.split("\0") if (ROOT / name).is_file()]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    copied = sorted({name.partition("/")[0] for name in names} - {"toolmatrix", "tests"})
    with (folder / "pyproject.toml").open("a") as file:
        file.write(
            CONFIGURATION.format(
                module=module, copied=json.dumps(copied), tests=json.dumps([*tests])
            )
        )


def run(module: str, options: argparse.Namespace) -> list[Mutant]:
    """The sampled mutants of a module; ends the program where its tests fail unchanged."""
    tests = options.tests or own_tests(module)
    if not tests:
        sys.exit(f"no test file imports {module}: name some by --tests")
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        copy(folder, module, tests)
        words = [module, options.sample, options.seed, options.jobs]
        ended = subprocess.run(
            [sys.executable, "-m", "tests.mutants.worker", *map(str, words)],
            cwd=folder, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        results = folder / "results.json"
        if ended.returncode or not results.exists():
            sys.stderr.write(ended.stdout[-8000:])
            sys.exit(2)
        source = (ROOT / module).read_text()
        return [
            placed(source, name, status, diff)
            for name, status, diff in json.loads(results.read_text())
        ]


def placed(source: str, name: str, status: str, diff: str) -> Mutant:
    """A mutant with its line, from mutmut's name and its diff, which counts from the head of the function."""
    *classes, function = name.rpartition("__mutmut_")[0].rpartition(".x")[2].strip("_ǁ").split("ǁ")
    found = next(
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name.strip("_") == function.strip("_")
        and (not classes or node.col_offset)
    )  # fmt: skip
    changed = [line for line in diff.split("\n") if not line.startswith(("---", "+++"))]
    old = [line[1:].strip() for line in changed if line.startswith("-")]
    new = [line[1:].strip() for line in changed if line.startswith("+")]
    heads = [line for line in changed if line.startswith("@@")]
    guess = found.lineno + (int(heads[0].split()[1].split(",")[0][1:]) + 2 if heads else 0)
    lines = source.split("\n")
    same = [
        place
        for place in range(found.lineno, (found.end_lineno or 0) + 1)
        if old and lines[place - 1].strip() == old[0]
    ]
    line = min(same, key=lambda place: abs(place - guess), default=found.lineno)
    return Mutant(line, "\n".join(old), "\n".join(new), status)


def report(module: str, mutants: Sequence[Mutant], bar: float) -> Iterator[str | bool]:
    """The lines to print for a module, and at last whether its tests reach the bar."""
    known = {(one.old, one.new): one.reason for one in equivalents() if one.module == module}
    stands = {line.strip() for line in (ROOT / module).read_text().split("\n")}
    for old in dict.fromkeys(old for old, _ in known if not set(old.split("\n")) <= stands):
        yield f"{module}: an equivalent is listed for what no longer stands there: {old}"
    survivors = [one for one in mutants if one.status in ("survived", "no tests")]
    same = [one for one in survivors if (one.old, one.new) in known]
    for one in sorted(set(survivors) - set(same)):
        yield f"{module}:{one.line}: {one.status}"
        yield from (f"  - {line}" for line in one.old.split("\n"))
        yield from (f"  + {line}" for line in one.new.split("\n"))
    for one in sorted(set(same)):
        yield f"{module}:{one.line}: equivalent: {known[one.old, one.new]}"
        yield from (f"  + {line}" for line in one.new.split("\n"))
    total = len(mutants) - len(same)
    killed = len(mutants) - len(survivors)
    slow = sum(one.status == "timeout" for one in mutants)
    percent = 100 * killed / total if total else 100.0
    yield (
        f"{module}: {killed} of {total} killed ({percent:.1f} %), {slow} of these by the time limit;"
        f" {len(same)} equivalent"
    )
    yield percent >= bar


def main() -> int:
    """Sample the modules that the arguments name."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "modules", nargs="*", metavar="MODULE", help="a path such as toolmatrix/solve/repair.py"
    )
    parser.add_argument(
        "--sample", type=int, default=100, help="how many mutants of a module (0: all; %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="which of them (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once (%(default)s)")
    parser.add_argument(
        "--bar", type=float, default=90.0, help="percent that have to be killed (%(default)s)"
    )
    parser.add_argument(
        "--tests", nargs="+", metavar="FILE", help="test files to run instead of the module's own"
    )
    options = parser.parse_args()
    if find_spec("mutmut") is None:
        sys.exit("mutmut is not installed: pip install -e '.[test,mutants]'")
    reached = True
    for module in options.modules or yaml.safe_load(MODULES.read_text())["tests"]:
        *lines, good = report(module, run(module, options), options.bar)
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        reached = reached and bool(good)
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
