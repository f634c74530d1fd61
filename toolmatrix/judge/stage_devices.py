"""Devices and the code of a plan: run by a cubin, by PTX that the driver compiles when it is loaded, or not at all.

The rules are facts: the tables device-runs and gfx-device-runs say which archs a device runs (same major and an equal
or lower minor, `a` exactly, `f` within its family, PTX forward, Tegra apart; an AMD device its own processor and the
generic ones that list it).
"""

from __future__ import annotations

from toolmatrix.codes.plans import CannotTell, RunsByCode, RunsByPtx, RunsNot
from toolmatrix.facts import lookups
from toolmatrix.judge import stage_facts as facts
from toolmatrix.judge.stage_images import CUBIN, LTO, OBJECT, OPTIX, PTX_TEXT, TILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.codes.plans import DeviceFinding
    from toolmatrix.facts.index import Index
    from toolmatrix.judge.stage_images import DeviceCode, DeviceImage, DevicePart

SEVERITIES: dict[type[DeviceFinding], str] = {
    RunsNot: "error",
    CannotTell: "warning",
    RunsByPtx: "info",
    RunsByCode: "info",
}
"""How a device takes code, worst first."""

_ORDER = (CUBIN, OBJECT, PTX_TEXT)
# Why code of a kind is not loaded as it is.
_UNLOADED = {LTO: "link", TILE: "tile", OPTIX: "optix"}
# Why no other device takes a cubin of a kind.
_TIED = {"specific-cubin": "own", "family-cubin": "family"}


def answer(index: Index, device: str, code: DeviceCode) -> DeviceFinding | None:
    """The finding about the code of one plan: that about its worst part; None where there is no code at all."""
    # Nobody can say what a device runs that is in no table.
    if device.partition(":")[0] not in index.component("device").versions:
        return _finding(CannotTell, device, why=((device, "device"),))
    held = [of_part(index, device, part) for part in code.parts]
    # Objects that no plan here makes may hold code for it.
    if not held and code.outside:
        return _finding(CannotTell, device, why=[(path, "outside") for path in code.outside])
    return worst(held)


def worst(held: Sequence[DeviceFinding]) -> DeviceFinding | None:
    """The finding that decides for several that must all hold."""
    # All parts are loaded, so that the worst of them decides.
    return min(held, key=rank, default=None)


def rank(finding: DeviceFinding) -> int:
    """The place of a finding, 0 for the worst."""
    return list(SEVERITIES).index(type(finding))


def of_part(index: Index, device: str, part: DevicePart) -> DeviceFinding:
    """The finding about code of which one image is enough."""
    name, _, features = device.partition(":")
    # A loader prefers code that needs no compiling, and of it the newest that fits.
    images = sorted(
        dict.fromkeys(part.images),
        key=lambda image: (
            image.kind in _ORDER and -_ORDER.index(image.kind),
            facts.number(image.arch),
        ),
        reverse=True,
    )
    why: list[tuple[str, str]] = []
    unsure = False
    for image in images:
        found = facts.runs(index, name, image.arch) if image.kind in _ORDER else ()
        if found and not _clash(image.arch, features):
            runs = RunsByPtx if image.kind == PTX_TEXT else RunsByCode
            return _finding(runs, device, part, image=image.arch, facts=found)
        why.append((image.arch, reason(index, name, image)))
        unsure = unsure or why[-1][1] in ("tile", "unknown")
    known = facts.about_device(index, name)
    return _finding(CannotTell if unsure else RunsNot, device, part, why=why, facts=known)


def _finding(
    code: type[DeviceFinding],
    device: str,
    part: DevicePart | None = None,
    *,
    image: str = "",
    why: Sequence[tuple[str, str]] = (),
    facts: tuple[str, ...] = (),
) -> DeviceFinding:
    return code(
        severity=SEVERITIES[code],
        device=device,
        image=image,
        why=tuple(why),
        plan=part.plan if part else None,
        stage=part.stage if part else None,
        expected="relocatable" if part and part.relocatable else "",
        actual=image or " ".join(name for name, _ in why),
        facts=facts,
    )


def _clash(arch: str, features: str) -> bool:
    # A target ID runs where each feature that it names has the same sign or none is told (Clang, target IDs).
    held = {word[:-1]: word[-1:] for word in features.split(":") if word}
    return any(held.get(word[:-1], word[-1:]) != word[-1:] for word in arch.split(":")[1:] if word)


def reason(index: Index, device: str, image: DeviceImage) -> str:
    """The reason why a device does not take an image, as a word."""
    if image.kind in _UNLOADED:
        return _UNLOADED[image.kind]
    name = facts.twin(index, image.arch)
    if name not in index.component("arch").versions:
        return "unknown"
    held = lookups.attributes(index, "arch", name)
    if facts.runs(index, device, image.arch):
        return "features"
    kind, made_for = held.get("kind", ""), held.get("capability", "")
    if not made_for or "." not in device:
        return "other"
    # Before versions are compared: an `a` target is for one device, an `f` target for one family, whatever the minor.
    if kind in _TIED:
        return _TIED[kind]
    if image.kind == PTX_TEXT:
        return "newer"
    if _pair(made_for)[0] != _pair(device)[0]:
        return "major"
    return "minor" if _pair(made_for) > _pair(device) else "tegra"


def _pair(capability: str) -> tuple[int, ...]:
    return tuple(map(int, capability.split(".")))


def driver(index: Index, releases: Sequence[str]) -> tuple[str, str]:
    """The oldest driver that came with the minor series of a toolkit, and the fact: it reads the PTX of that series."""
    series = {".".join(name.split(".")[:2]) for name in releases}
    for row, cells in sorted(lookups.rows(index, "cuda-drivers")):
        if ".".join(cells["cuda"].split(".")[:2]) in series and cells.get("toolkit-driver"):
            return cells["toolkit-driver"], row
    return "", ""
