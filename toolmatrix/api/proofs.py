"""A proof of an environment: it is created, and imports all that the code of a repository imports.

The code is parsed and never run; what is imported are packages of others.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import shlex
import sys
import time

from toolmatrix.documents import Amount, Annotated, TypedDict
from toolmatrix.errors import ToolMissing, UsageError
from toolmatrix.harvest import programs
from toolmatrix.harvest.resolver import Uv
from toolmatrix.manifests.files import LARGEST, is_inside
from toolmatrix.report.terminal import printable
from toolmatrix.request.cases import LEFT_OUT
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.report.environments import EnvironmentPlan

SCHEMA = "toolmatrix.proof/1"
FILE = "toolmatrix-proof.json"
"""The name of the file of a proof."""
# Seconds for a command that installs, and for one import.
_INSTALL, _IMPORT = 1800, 300
# Files that are parsed, and letters of an output that are kept.
_MOST, _LONGEST = 5000, 2000
_FOREIGN = frozenset(("node_modules", "site-packages", "__pycache__", "venv", "build", "dist"))
_BUILDING = frozenset(("setup.py", "conftest.py"))
_ABSENT = frozenset(("ImportError", "ModuleNotFoundError", "Exception"))
# By the name of a module: a line of Python that prints the version, and what it computes on.
_PROBES = {
    "torch": "import torch as m; a = 'rocm' if m.version.hip else 'cuda' if m.version.cuda else 'none'",
    "tensorflow": "import tensorflow as m; a = 'cuda' if m.test.is_built_with_cuda() else"
    " 'rocm' if m.test.is_built_with_rocm() else 'none'",
    "jax": "import jax as m; b = m.default_backend(); a = {'gpu': 'cuda'}.get(b, '')",
}


class SourceImports(Value):
    """The modules that code imports from elsewhere: `needed`, and `optional` where a lack of it is caught."""

    needed: tuple[str, ...]
    optional: tuple[str, ...]
    unparsed: tuple[str, ...]


class ProofStep(TypedDict):
    """One step: a command, an import, or a check of a version, and how long it took."""

    kind: Annotated[str, "command", "import", "optional", "version"]
    name: str
    passed: bool
    seconds: Amount
    output: str


class ProofDocument(TypedDict):
    """What `toolmatrix env --prove` writes: each step with its outcome; `passed` where all but optional ones passed."""

    schema: Annotated[str, SCHEMA]
    passed: bool
    machine: str
    versions: dict[str, str]
    steps: list[ProofStep]
    unparsed: list[str]


def source_imports(folder: str) -> SourceImports:
    """The top-level modules that the files of a folder import, without those of the standard library and its own.

    What builds and tests it does not count, as its requirements do not.
    """
    needed: set[str] = set()
    optional: set[str] = set()
    unparsed: list[str] = []
    own: set[str] = set()
    for number, path in enumerate(_sources(folder)):
        if number >= _MOST:
            break
        parts = os.path.relpath(path, folder).removesuffix(".py").split(os.sep)
        # A file is imported by its name from beside it, and by the folders that it is in.
        own |= {*parts}
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read(LARGEST))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            unparsed.append(os.path.relpath(path, folder))
            continue
        for name, caught in _imports(tree):
            (optional if caught else needed).add(name)
    foreign = own | sys.stdlib_module_names
    return SourceImports(
        needed=tuple(sorted(needed - foreign)),
        optional=tuple(sorted(optional - needed - foreign)),
        unparsed=tuple(unparsed),
    )


def _sources(folder: str) -> Iterator[str]:
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _FOREIGN and name[:1] != "." and not LEFT_OUT.fullmatch(name)
        )
        own = (name for name in sorted(names) if name.endswith(".py") and name not in _BUILDING)
        paths = (os.path.join(directory, name) for name in own)
        yield from (path for path in paths if os.path.isfile(path) and is_inside(path, folder))


def _imports(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """The modules of a file, and whether the code goes on without them."""
    left: list[tuple[ast.AST, bool]] = [(tree, False)]
    while left:
        node, caught = left.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], caught) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0], caught
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            left += [(child, caught) for child in node.orelse]
        elif isinstance(node, ast.Try):
            inside = caught or any(map(_catches, node.handlers))
            left += [(child, inside) for child in node.body]
            left += [(child, True) for handler in node.handlers for child in handler.body]
            left += [(child, caught) for child in (*node.orelse, *node.finalbody)]
        else:
            left += [(child, caught) for child in ast.iter_child_nodes(node)]


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(n, ast.Name) and n.id in _ABSENT for n in ast.walk(handler.type))


def prove(
    plan: EnvironmentPlan, repository: str, folder: str, env: Mapping[str, str]
) -> ProofDocument:
    """Create an environment in a folder, and import there what a repository imports.

    Raises ToolMissing without uv, UsageError for another machine.
    """
    if plan.machine != platform.machine():
        raise UsageError(
            "an environment is proven on a machine of its own kind",
            expected=plan.machine,
            found=platform.machine(),
        )
    uv = Uv(env, "--prove")
    root = repository if os.path.isdir(repository) else os.path.dirname(repository) or "."
    python = os.path.join(folder, "bin", "python")
    variables = {**env, "VIRTUAL_ENV": folder}
    steps: list[ProofStep] = []
    for command in plan.commands("uv"):
        words = [uv.program, *shlex.split(command)[1:]]
        if words[1] == "venv":
            words.append(folder)
        steps.append(_step("command", command, words, root, variables, _INSTALL))
        if not steps[-1]["passed"]:
            break
    modules = source_imports(root)
    if all(step["passed"] for step in steps):
        for kind, names in (("import", modules.needed), ("optional", modules.optional)):
            for name in names:
                # Away from the repository, whose own modules would come first.
                words = [python, "-I", "-c", f"import {name}"]
                steps.append(_step(kind, name, words, folder, variables, _IMPORT))
        steps += _versions(plan, python, folder, variables)
    return {
        "schema": SCHEMA,
        "passed": all(step["passed"] for step in steps if step["kind"] != "optional"),
        "machine": plan.machine,
        "versions": plan.versions,
        "steps": steps,
        "unparsed": list(modules.unparsed),
    }


def _step(
    kind: str, name: str, words: Sequence[str], folder: str, env: Mapping[str, str], patience: float
) -> ProofStep:
    start = time.monotonic()
    try:
        done = programs.ask(words, folder, env, patience)
        passed, output = done.status == 0, done.text
    except ToolMissing as error:
        passed, output = False, f"{error}: {error.expected or error.found}"
    return {
        "kind": kind,
        "name": name,
        "passed": passed,
        "seconds": round(time.monotonic() - start, 1),
        "output": "" if passed and kind != "version" else output.strip()[-_LONGEST:],
    }


def _versions(
    plan: EnvironmentPlan, python: str, folder: str, env: Mapping[str, str]
) -> Iterator[ProofStep]:
    """Whether frameworks report the release and the accelerator that were promised."""
    accelerators = {build.component: build.accelerator for build in plan.builds}
    for component, release in plan.versions.items():
        probe = _PROBES.get(component.removesuffix("-cpu").removesuffix("-gpu"))
        if not probe:
            continue
        report = f"{probe}; import json; print(json.dumps([m.__version__, a]))"
        words = [python, "-I", "-c", report]
        step = _step("version", component, words, folder, env, _IMPORT)
        if step["passed"]:
            version, accelerator = json.loads(step["output"].splitlines()[-1])
            # What needs a device to be seen is no statement on a machine without one.
            fits = accelerator in ("", accelerators.get(component, "none"))
            step["passed"] = version.partition("+")[0] == release and fits
            step["output"] = f"{version} {accelerator}".strip()
        yield step


def proof_text(proof: ProofDocument) -> str:
    """A proof in lines: each step with its outcome and its seconds, failures with the end of their output."""
    lines = []
    for step in proof["steps"]:
        outcome = "pass" if step["passed"] else "skip" if step["kind"] == "optional" else "FAIL"
        seconds = f"{step['seconds']:.1f} s"
        lines.append(f"{outcome}  {seconds:>8}  {step['kind']:<8}  {printable(step['name'])}")
        if step["output"] and outcome != "skip":
            last = step["output"].splitlines()[-1]
            lines[-1] += f": {printable(last)}"
    total = sum(step["seconds"] for step in proof["steps"])
    lines.append(f"{'proven' if proof['passed'] else 'not proven'} in {total:.1f} s")
    return "\n".join(lines) + "\n"
