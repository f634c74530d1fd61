"""Findings about what the images of a plan cover together: PTX for later devices, and archs that others cover."""

from __future__ import annotations

from toolmatrix.judge import stage_facts as facts
from toolmatrix.judge.stage_images import CUBIN, OBJECT, PTX_TEXT, TILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolmatrix.finding import Finding
    from toolmatrix.judge.stage_images import Part
    from toolmatrix.judge.stage_setting import Setting

NO_PTX, OLD_PTX, TIED_PTX, TWICE, COVERED, EVERY_PTX = (
    *("TM204", "TM205", "TM206", "TM207", "TM208", "TM209"),
)


def findings(setting: Setting, parts: Sequence[Part]) -> Iterator[Finding]:
    """Everything about the parts that this plan makes; what several parts have in common is said of the first.

    Code that is a file of its own has the one arch that was asked for, and tile code brings an intermediate of its own.
    """
    seen: set[object] = set()
    for part in parts:
        if part.plan == setting.number and not part.loose and part.images not in seen:
            seen.add(part.images)
            yield from _ptx(setting, part)
            yield from _twice(setting, part)
            yield from _covered(setting, part)


def _ptx(setting: Setting, part: Part) -> Iterator[Finding]:
    cubins, texts = (tuple(dict.fromkeys(part.archs(kind))) for kind in (CUBIN, PTX_TEXT))
    plain = [arch for arch in texts if not _tied(arch)]
    if not cubins or part.archs(TILE):
        return
    newest = max(cubins, key=facts.number)
    if not texts:
        yield setting.finding(
            NO_PTX,
            "warning",
            part.stage,
            names=tuple(sorted(cubins, key=facts.number)),
            expected="PTX",
            actual=" ".join(cubins),
        )
    elif not plain:
        yield setting.finding(
            TIED_PTX,
            "warning",
            part.stage,
            names=texts,
            expected="plain PTX",
            actual=" ".join(texts),
        )
    elif max(map(facts.number, plain)) < facts.number(newest):
        yield setting.finding(
            OLD_PTX,
            "info",
            part.stage,
            names=(max(plain, key=facts.number), newest),
            expected=f"PTX of {newest}",
            actual=max(plain, key=facts.number),
        )
    if len(plain) > 1 and {facts.sass(arch) for arch in texts} >= set(cubins):
        yield setting.finding(
            EVERY_PTX,
            "info",
            part.stage,
            names=tuple(sorted(plain, key=facts.number)),
            expected=max(plain, key=facts.number),
            actual=" ".join(plain),
        )


def _tied(arch: str) -> bool:
    """Whether code is made for one device or family alone (NVIDIA, feature sets of compilation targets)."""
    return facts.sass(arch)[-1:] in ("a", "f")


def _twice(setting: Setting, part: Part) -> Iterator[Finding]:
    twice = [image for image in dict.fromkeys(part.images) if part.images.count(image) > 1]
    if twice:
        yield setting.finding(
            TWICE,
            "warning",
            part.stage,
            names=tuple(image.arch for image in twice if image.kind in (CUBIN, PTX_TEXT, OBJECT)),
            expected="each arch once",
            actual=" ".join(image.arch for image in part.images),
        )


def _covered(setting: Setting, part: Part) -> Iterator[Finding]:
    """`names`: an arch and the oldest other one whose code its devices run, then the next two."""
    pairs: list[str] = []
    found: list[str] = []
    cubins = sorted(dict.fromkeys(part.archs(CUBIN)), key=facts.number)
    for place, arch in enumerate(cubins):
        held = facts.attributes(setting.index, "arch", arch)
        if held.get("kind") != "cubin":
            continue
        for other in cubins[:place]:
            row = facts.runs(setting.index, held["capability"], other)
            if row and facts.attributes(setting.index, "arch", other).get("kind") == "cubin":
                pairs += [arch, other]
                found += row
                break
    if pairs:
        yield setting.finding(
            COVERED,
            "info",
            part.stage,
            names=tuple(pairs),
            expected="one cubin for each major version",
            actual=" ".join(cubins),
            facts=tuple(dict.fromkeys(found)),
        )
