"""Findings about the archs of a plan: what its toolkit takes, and what nobody asked for."""

from __future__ import annotations

import re

from toolmatrix.codes.plans import ArchByDefault, ArchDeprecated, ArchRefused
from toolmatrix.judge import stage_facts as facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolmatrix.finding import Finding, Incompatibility
    from toolmatrix.judge.stages import PlanContext

# How nvcc and clang say that they do not take an arch, as their logs have it.
_REFUSALS = tuple(
    map(
        re.compile,
        (
            r"Value '((?:sm|compute|lto)_\w+)' is not defined for option",
            r"[Uu]nsupported (?:CUDA |HIP )?gpu architecture:? '?([\w:+-]+)'?",
            r"invalid target ID '([^']+)'; format",
            r"cannot find ROCm device library for ([^;\s]+);",
        ),
    )
)
# nvcc words this warning in two ways: with the archs by name, and with a bound.
_GOING = re.compile(r"architectures are deprecated")
_GOING_BELOW = re.compile(r"architectures prior to '<[^>]*>_(\d+)'")
_NATIVE = re.compile(r"Cannot find valid GPU for '-arch=native'")
_DEFAULTS = {"cuda": "cuda-default-archs", "clang": "hip-default-archs"}
# Options of nvcc, hipcc and clang that name an arch, or a file in which such an option may stand.
_ASKS = (
    *("-arch", "-gencode", "-code", "--gpu-architecture", "--generate-code", "--gpu-code"),
    *("--offload-arch", "--cuda-gpu-arch", "--amdgpu-target", "-optf", "--options-file", "@"),
)


def findings(context: PlanContext) -> Iterator[Finding]:
    """Everything about what the toolkit takes and what was asked of it."""
    yield from refused(context)
    yield from deprecated(context)
    yield from unasked(context)


def refused(context: PlanContext) -> Iterator[Finding]:
    """Archs that the driver says it does not take, and those of the plan that its toolkit refuses by the facts."""
    reported: set[str] = set()
    for said in context.plan.diagnostics:
        for match in filter(None, (pattern.search(said.text) for pattern in _REFUSALS)):
            if match[1] not in reported:
                reported.add(match[1])
                yield _refusal(context, match[1], said.stage, said.line, _ground(context, match[1]))
    for arch, stage in context.archs.items():
        ground = _ground(context, arch)
        if ground is not None and arch not in reported:
            reported.add(arch)
            yield _refusal(context, arch, stage.id, 0, ground)


def _ground(context: PlanContext, arch: str) -> Incompatibility | None:
    """The fact by which the CUDA toolkit does not take an arch; what LLVM takes is in no table."""
    name = facts.twin(context.index, arch)
    if context.toolkit.component != "cuda" or name not in context.index.component("arch").versions:
        return None
    return context.toolkit.refusal("arch", name, {})


def _refusal(
    context: PlanContext, arch: str, stage: int | None, line: int, ground: Incompatibility | None
) -> Finding:
    name = facts.twin(context.index, arch)
    table = "arch-toolkits" if facts.number(name) else "rocm-gfx-first"
    row, cells = facts.row(context.index, f"{table}/{facts.sass(name)}")
    known = name in context.index.component("arch").versions
    finding = ArchRefused(
        severity="error",
        arch=arch,
        standing=facts.standing(context.plan.version, cells) if known else "unknown",
        first=cells.get("first-ran", ""),
        last=cells.get("last-ran", ""),
        rocm=cells.get("rocm", ""),
        grounds=() if ground is None else (ground.replace(clashing=(name,)),),
        actual=arch,
        facts=(*(ground.facts if ground else ()), *row),
    )
    return context.placed(finding, stage, line)


def deprecated(context: PlanContext) -> Iterator[Finding]:
    """Archs of the plan that the toolkit is about to drop: by its own warning in the log, or in a capture of it."""
    going = {
        arch: "" for said in context.plan.diagnostics for arch in _going(said.text, context.archs)
    }
    # After the log, whose lines stay first, and in place of it where a fact tells the same with a source.
    for row, cells in context.toolkit.rows("cuda-deprecated-archs"):
        going |= {arch: row for arch in cells["deprecated"].split() if arch in context.archs}
    if going:
        arch = next(iter(going))
        finding = ArchDeprecated(
            severity="warning",
            archs=tuple(name for name in context.archs if name in going),
            expected="an arch that stays",
            actual=arch,
            facts=tuple(dict.fromkeys(row for row in going.values() if row)),
        )
        yield context.placed(finding, context.archs[arch].id)


def _going(text: str, names: Iterable[str]) -> list[str]:
    """The archs of a plan that a warning of nvcc speaks of."""
    below = _GOING_BELOW.search(text)
    if below:
        return [name for name in names if 0 < facts.number(name) < int(below[1])]
    return [name for name in names if _GOING.search(text) and f"'{name}'" in text]


def unasked(context: PlanContext) -> Iterator[Finding]:
    """The default of the toolkit as the only arch: said by the driver, or known and not asked for, or perhaps so."""
    said = [one for one in context.plan.diagnostics if _NATIVE.search(one.text)]
    if not context.archs:
        return
    held = defaults(context)
    asked = context.asked is not None and any(map(asks, context.asked))
    if not said and (asked or not held):
        return
    how = "native" if said else "perhaps" if context.asked is None else "silent"
    arch, stage = next(iter(context.archs.items()))
    finding = ArchByDefault(
        severity="info" if how == "perhaps" else "warning",
        arch=facts.sass(facts.twin(context.index, arch)),
        how=how,
        expected="an arch that was asked for",
        actual=arch,
        facts=tuple(held),
    )
    yield context.placed(finding, stage.id, said[0].line if said else 0)


def defaults(context: PlanContext) -> list[str]:
    """The facts by which the only arch of a plan is what its toolkit takes when none is named."""
    only = {facts.sass(facts.twin(context.index, arch)) for arch in context.archs}
    table = _DEFAULTS[context.toolkit.component]
    rows = [(row, cells["default"]) for row, cells in context.toolkit.rows(table)]
    return [row for row, default in rows if {default} == only]


def asks(word: str) -> bool:
    """True if a word of a command line asks for an arch, or may."""
    return word.startswith(_ASKS) and not word.startswith(
        ("-arch=native", "--gpu-architecture=native")
    )
