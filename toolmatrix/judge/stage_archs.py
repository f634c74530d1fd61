"""Findings about the archs of a plan: those its toolkit takes, those nobody asked for, and what its images cover."""

from __future__ import annotations

import re

from toolmatrix.codes import plans as codes
from toolmatrix.facts import lookups
from toolmatrix.judge import stage_facts as facts
from toolmatrix.judge.stage_images import CUBIN, OBJECT, PTX_TEXT, TILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolmatrix.finding import Finding, Incompatibility
    from toolmatrix.judge.stage_images import DevicePart
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


def findings(context: PlanContext, parts: Sequence[DevicePart]) -> Iterator[Finding]:
    """Everything about what the toolkit takes, what was asked of it, and what the parts cover that the plan makes."""
    yield from refused(context)
    yield from deprecated(context)
    yield from unasked(context)
    yield from covered(context, parts)


def refused(context: PlanContext) -> Iterator[Finding]:
    """Archs that the driver says it does not take, and those of the plan that its toolkit refuses by the facts."""
    # The driver's own word comes first: its line is the better place, and it may refuse what no fact names.
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
    # What LLVM takes is in no table.
    name = facts.twin(context.index, arch)
    if context.toolkit.component != "cuda" or name not in context.index.component("arch").versions:
        return None
    return context.toolkit.refusal("arch", name, {})


def _refusal(
    context: PlanContext, arch: str, stage: int | None, line: int, ground: Incompatibility | None
) -> Finding:
    name = facts.twin(context.index, arch)
    table = "arch-toolkits" if facts.number(name) else "rocm-gfx-first"
    row, cells = lookups.row(context.index, f"{table}/{facts.sass(name)}")
    known = name in context.index.component("arch").versions
    finding = codes.ArchRefused(
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
        finding = codes.ArchDeprecated(
            severity="warning",
            archs=tuple(name for name in context.archs if name in going),
            expected="an arch that stays",
            actual=arch,
            facts=tuple(dict.fromkeys(row for row in going.values() if row)),
        )
        yield context.placed(finding, context.archs[arch].id)


def _going(text: str, names: Iterable[str]) -> list[str]:
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
    # A log tells what was planned and not always what was asked for.
    how = "native" if said else "perhaps" if context.asked is None else "silent"
    arch, stage = next(iter(context.archs.items()))
    finding = codes.ArchByDefault(
        severity="info" if how == "perhaps" else "warning",
        arch=facts.sass(facts.twin(context.index, arch)),
        how=how,
        expected="a requested arch",
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


def covered(context: PlanContext, parts: Sequence[DevicePart]) -> Iterator[Finding]:
    """The archs that the parts of a plan cover together; those that several have in common are said of the first."""
    seen: set[object] = set()
    for part in parts:
        # Code that is a file of its own has the one arch that was asked for.
        if part.plan == context.number and not part.loose and part.images not in seen:
            seen.add(part.images)
            yield from _ptx(context, part)
            yield from _twice(context, part)
            yield from _covered(context, part)


def _ptx(context: PlanContext, part: DevicePart) -> Iterator[Finding]:
    cubins, texts = (tuple(dict.fromkeys(part.archs(kind))) for kind in (CUBIN, PTX_TEXT))
    # What ends in `a` or `f` is for one device or family alone (NVIDIA, feature sets of compilation targets).
    plain = [arch for arch in texts if not arch.endswith(("a", "f"))]
    # Tile code brings an intermediate that plays the part of PTX.
    if not cubins or part.archs(TILE):
        return
    newest = max(cubins, key=facts.number)
    finding: Finding | None = None
    if not texts:
        finding = codes.NoPtx(
            severity="warning",
            archs=tuple(sorted(cubins, key=facts.number)),
            expected="PTX",
            actual=" ".join(cubins),
        )
    elif not plain:
        finding = codes.TiedPtx(
            severity="warning", archs=texts, expected="plain PTX", actual=" ".join(texts)
        )
    elif max(map(facts.number, plain)) < facts.number(newest):
        best = max(plain, key=facts.number)
        finding = codes.OldPtx(
            severity="info", ptx=best, cubin=newest, expected=f"PTX of {newest}", actual=best
        )
    if finding:
        yield context.placed(finding, part.stage)
    if len(plain) > 1 and {facts.sass(arch) for arch in texts} >= set(cubins):
        every = codes.EveryPtx(
            severity="info",
            archs=tuple(sorted(plain, key=facts.number)),
            expected=max(plain, key=facts.number),
            actual=" ".join(plain),
        )
        yield context.placed(every, part.stage)


def _twice(context: PlanContext, part: DevicePart) -> Iterator[Finding]:
    twice = [image for image in dict.fromkeys(part.images) if part.images.count(image) > 1]
    if twice:
        finding = codes.ArchTwice(
            severity="warning",
            archs=tuple(image.arch for image in twice if image.kind in (CUBIN, PTX_TEXT, OBJECT)),
            expected="each arch once",
            actual=" ".join(image.arch for image in part.images),
        )
        yield context.placed(finding, part.stage)


def _covered(context: PlanContext, part: DevicePart) -> Iterator[Finding]:
    pairs: list[tuple[str, str]] = []
    found: list[str] = []
    cubins = sorted(dict.fromkeys(part.archs(CUBIN)), key=facts.number)
    for place, arch in enumerate(cubins):
        held = lookups.attributes(context.index, "arch", arch)
        if held.get("kind") != "cubin":
            continue
        for other in cubins[:place]:
            row = facts.runs(context.index, held["capability"], other)
            if row and lookups.attributes(context.index, "arch", other).get("kind") == "cubin":
                pairs.append((arch, other))
                found += row
                break
    if pairs:
        finding = codes.ArchCovered(
            severity="info",
            pairs=tuple(pairs),
            expected="one cubin for each major version",
            actual=" ".join(cubins),
            facts=tuple(dict.fromkeys(found)),
        )
        yield context.placed(finding, part.stage)
