"""What `-ccc-print-bindings` prints: clang's own list of its jobs, and the shape of the graph they make.

It is the judge of the graph that is read from `-###`: the same driver says the same thing in other words. Temp names
differ from run to run and one job may be several commands, so the two are compared as trees: what a file is made by,
out of what.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from toolmatrix.compilation import Plan, Stage

Tree = tuple[object, ...]
"""A kind and the trees or sources that it is made of, sorted."""

_JOB = re.compile(r'# "([^"]*)" - "([^"]*)", inputs: \[(.*)\], outputs?: \[?(.*?)\]? ?$')
_QUOTED = re.compile(r'"([^"]*)"')
_DEVICE = ("amdgcn", "nvptx", "spirv")


class Job(NamedTuple):
    """One job: the triple it works for, clang's name of the tool, the files it reads and writes."""

    triple: str
    tool: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def jobs(text: str) -> list[Job]:
    """The jobs of a text, in order."""
    return [
        Job(found[1], found[2], *(tuple(_QUOTED.findall(found[part])) for part in (3, 4)))
        for line in text.splitlines()
        if (found := _JOB.match(line)) is not None
    ]


def kind(job: Job, made_of: list[Tree]) -> str:
    """The kind of stage that a job is."""
    device = job.triple.startswith(_DEVICE)
    if job.tool == "clang":
        return "device-compile" if device else "host-compile"
    if job.tool == "AMDGCN::Linker":
        # one tool links the code of one arch, and joins what it linked
        return "bundle" if {tree[0] for tree in made_of} == {"device-link"} else "device-link"
    return {
        "GNU::Linker": "link",
        "NVPTX::Assembler": "ptxas",
        "NVPTX::Linker": "fatbinary",
        "NVPTX::FatBinary": "fatbinary",
        "Offload::Packager": "package",
        "Offload::Linker": "linker-wrapper",
        "offload bundler": "unbundle" if len(job.outputs) > 1 else "bundle",
    }[job.tool]


def trees_of_jobs(found: list[Job]) -> list[Tree]:
    """What each job makes of which no other job reads anything."""
    made: dict[str, Tree] = {}
    ends: list[Tree] = []
    read = {path for job in found for path in job.inputs}
    for job in found:
        below = [made[path] for path in job.inputs if path in made]
        sources: list[Tree] = [(path,) for path in job.inputs if path not in made]
        tree: Tree = (kind(job, below), *sorted(below + sources, key=repr))
        made |= dict.fromkeys(job.outputs, tree)
        if read.isdisjoint(job.outputs):
            ends.append(tree)
    return sorted(ends, key=repr)


def trees_of_stages(plan: Plan) -> list[Tree]:
    """What each stage makes that no other waits for, with edges for files.

    Taking the device code out of a library of the toolkit, and putting a bundle in an object, are no jobs of their
    own: the first is left out, the second is the bundle.
    """
    made: list[Tree | None] = []
    before: dict[int, list[int]] = {stage.id: [] for stage in plan.stages}
    for one, other in plan.edges:
        before[other].append(one)
    for stage in plan.stages:
        below = [tree for one in before[stage.id] if (tree := made[one]) is not None]
        made.append(_tree(plan, stage, below))
    read = {one for one, _ in plan.edges}
    ends = [tree for at, tree in enumerate(made) if at not in read and tree is not None]
    return sorted(ends, key=repr)


def _tree(plan: Plan, stage: Stage, below: list[Tree]) -> Tree | None:
    if stage.kind == "unbundle" and not stage.inputs:
        return None
    if any(path.endswith(".mcin") for path in stage.inputs):
        return below[0]
    written = {path for one in plan.stages[: stage.id] for path in one.outputs}
    sources: list[Tree] = [(path,) for path in stage.inputs if path not in written]
    return (stage.kind, *sorted(below + sources, key=repr))
