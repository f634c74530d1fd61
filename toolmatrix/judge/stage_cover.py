"""Findings about what the images of a plan cover together: PTX for later devices, and archs that others cover."""

from __future__ import annotations

from toolmatrix.codes.plans import ArchCovered, ArchTwice, EveryPtx, NoPtx, OldPtx, TiedPtx
from toolmatrix.judge import stage_facts as facts
from toolmatrix.judge.stage_images import CUBIN, OBJECT, PTX_TEXT, TILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolmatrix.finding import Finding
    from toolmatrix.judge.stage_images import DevicePart
    from toolmatrix.judge.stages import PlanContext


def findings(context: PlanContext, parts: Sequence[DevicePart]) -> Iterator[Finding]:
    """Everything about the parts that this plan makes; what several parts have in common is said of the first.

    Code that is a file of its own has the one arch that was asked for, and tile code brings an intermediate of its own.
    """
    seen: set[object] = set()
    for part in parts:
        if part.plan == context.number and not part.loose and part.images not in seen:
            seen.add(part.images)
            yield from _ptx(context, part)
            yield from _twice(context, part)
            yield from _covered(context, part)


def _ptx(context: PlanContext, part: DevicePart) -> Iterator[Finding]:
    cubins, texts = (tuple(dict.fromkeys(part.archs(kind))) for kind in (CUBIN, PTX_TEXT))
    plain = [arch for arch in texts if not _tied(arch)]
    # Tile code brings an intermediate that plays the part of PTX.
    if not cubins or part.archs(TILE):
        return
    newest = max(cubins, key=facts.number)
    finding: Finding | None = None
    if not texts:
        finding = NoPtx(
            severity="warning",
            archs=tuple(sorted(cubins, key=facts.number)),
            expected="PTX",
            actual=" ".join(cubins),
        )
    elif not plain:
        finding = TiedPtx(
            severity="warning", archs=texts, expected="plain PTX", actual=" ".join(texts)
        )
    elif max(map(facts.number, plain)) < facts.number(newest):
        best = max(plain, key=facts.number)
        finding = OldPtx(
            severity="info", ptx=best, cubin=newest, expected=f"PTX of {newest}", actual=best
        )
    if finding:
        yield context.placed(finding, part.stage)
    if len(plain) > 1 and {facts.sass(arch) for arch in texts} >= set(cubins):
        every = EveryPtx(
            severity="info",
            archs=tuple(sorted(plain, key=facts.number)),
            expected=max(plain, key=facts.number),
            actual=" ".join(plain),
        )
        yield context.placed(every, part.stage)


def _tied(arch: str) -> bool:
    """True if code is made for one device or family alone (NVIDIA, feature sets of compilation targets)."""
    return facts.sass(arch)[-1:] in ("a", "f")


def _twice(context: PlanContext, part: DevicePart) -> Iterator[Finding]:
    twice = [image for image in dict.fromkeys(part.images) if part.images.count(image) > 1]
    if twice:
        finding = ArchTwice(
            severity="warning",
            archs=tuple(image.arch for image in twice if image.kind in (CUBIN, PTX_TEXT, OBJECT)),
            expected="each arch once",
            actual=" ".join(image.arch for image in part.images),
        )
        yield context.placed(finding, part.stage)


def _covered(context: PlanContext, part: DevicePart) -> Iterator[Finding]:
    """Archs whose devices run code for an older one."""
    pairs: list[tuple[str, str]] = []
    found: list[str] = []
    cubins = sorted(dict.fromkeys(part.archs(CUBIN)), key=facts.number)
    for place, arch in enumerate(cubins):
        held = facts.attributes(context.index, "arch", arch)
        if held.get("kind") != "cubin":
            continue
        for other in cubins[:place]:
            row = facts.runs(context.index, held["capability"], other)
            if row and facts.attributes(context.index, "arch", other).get("kind") == "cubin":
                pairs.append((arch, other))
                found += row
                break
    if pairs:
        finding = ArchCovered(
            severity="info",
            pairs=tuple(pairs),
            expected="one cubin for each major version",
            actual=" ".join(cubins),
            facts=tuple(dict.fromkeys(found)),
        )
        yield context.placed(finding, part.stage)
