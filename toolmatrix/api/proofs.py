"""A proof of an environment: it is created, and imports all that the code of a repository imports.

The code is parsed and never run; what is imported are packages of others.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import time

from toolmatrix.documents import Amount, Annotated, TypedDict
from toolmatrix.errors import ToolMissing, UsageError
from toolmatrix.harvest import programs
from toolmatrix.harvest.resolver import Uv
from toolmatrix.manifests.imports import source_imports
from toolmatrix.report.terminal import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from toolmatrix.report.environments import EnvironmentPlan
    from toolmatrix.request.cases import RepositoryCase

SCHEMA = "toolmatrix.proof/1"
FILE = "toolmatrix-proof.json"
"""The name of the file of a proof."""
# Seconds for a command that installs, and for one import.
_INSTALL, _IMPORT = 1800, 300
# Letters of an output that are kept.
_LONGEST = 2000
# By the name of a module: a line of Python that prints the version, and what it computes on.
_PROBES = {
    "torch": "import torch as m; a = 'rocm' if m.version.hip else 'cuda' if m.version.cuda else 'none'",
    "tensorflow": "import tensorflow as m; a = 'cuda' if m.test.is_built_with_cuda() else"
    " 'rocm' if m.test.is_built_with_rocm() else 'none'",
    "jax": "import jax as m; b = m.default_backend(); a = {'gpu': 'cuda'}.get(b, '')",
}


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


def prove(
    plan: EnvironmentPlan,
    repository: str,
    case: RepositoryCase,
    packages: Container[str],
    folder: str,
    env: Mapping[str, str],
) -> ProofDocument:
    """Create an environment in a folder, and import there what a repository imports.

    `packages` are those known to the matrix. Modules that the case does not need may be missing. Raises ToolMissing
    without uv, UsageError for another machine.
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
    modules = source_imports(root, packages)
    if all(step["passed"] for step in steps):
        for name in (*modules.needed, *modules.apart, *modules.optional):
            # Away from the repository, whose own modules would come first.
            words = [python, "-I", "-c", f"import {name}"]
            kind = "import" if case.needs(name, modules) else "optional"
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
