"""Words that ask for one of several builds: `torch==2.6.0+cu124`, `jax[cuda12]`, `onnxruntime-gpu==1.20.0`.

Raises NothingMatched, naming what there is.
"""

from __future__ import annotations

from toolmatrix.errors import NothingMatched
from toolmatrix.facts.versions import Scale
from toolmatrix.solve.request import Ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from toolmatrix.facts.records import ComponentFacts
    from toolmatrix.request.names import Names

# What people write as an extra where they mean an accelerator.
_ACCELERATORS = {"cpu": "none", "gpu": "cuda", "cuda": "cuda", "rocm": "rocm"}


def asks(names: Names, package: str, selector: str, text: str, option: str) -> list[Ask]:
    """The component and the builds of it that a package, its extras or a local version name; nothing if none does."""
    base, _, rest = package.partition("[")
    plain = base.replace("_", "-")
    extras = [extra.strip() for extra in rest.rstrip("]").split(",") if extra.strip()]
    release, plus, line = selector.partition("+")
    component = names.component(base, release)
    # `onnxruntime-gpu` is the package of some builds of `onnxruntime`.
    told = component != plain and plain in names.index.header["packages"]
    if not (extras or plus or told):
        return []
    variant = names.index.builds_of(component)
    if not variant:
        raise NothingMatched(
            f"the matrix knows no builds of {component} apart",
            expected=f"`{component}{release}`",
            found=f"`{text}`",
        )
    part = names.index.component(variant)
    wanted = names.listed(component, release or "*")
    own = found = _of(part, component, names.check(component, wanted, text))
    if told:
        found &= _installed(part, lambda known: known.partition("[")[0] == plain)
    for extra in extras:
        found &= _extra(names, part, extra)
    # The name of a build is `2.6.0+cu124@default/x86_64`, of which people write no more than the line.
    if plus:
        found &= names.scale(variant).select(f"*+{line}@*")
    if not found:
        raise NothingMatched(
            f"the matrix knows no build of {component} that `{text}` names",
            expected=_known(part, own, component, plus),
            found=f"`{text}`",
        )
    listed = " ".join(names.scale(variant).named(found))
    return [
        Ask(component=component, selector=wanted, text=text, option=option),
        Ask(component=variant, selector=listed, text=text, option=option),
    ]


def _installed(part: ComponentFacts, fits: Callable[[str], bool]) -> int:
    found = 0
    for package, mask in part.packages.items():
        if fits(package):
            found |= mask
    return found


def _extra(names: Names, part: ComponentFacts, extra: str) -> int:
    # The name of an extra tells what it brings, or else the accelerator it is called after does.
    found = _installed(part, lambda known: extra in known.partition("[")[2].rstrip("]").split(","))
    accelerator = _ACCELERATORS.get(extra, "")
    if found or not accelerator:
        return found
    bit, none = (names.scale("accelerator").bit(name) for name in (accelerator, "none"))
    for binding in part.about("accelerator", -1):
        # A build for CUDA also runs without one: it is that of no accelerator only where it can have no other.
        if binding.kind == "limits" and binding.allowed & ~1 & ~none == bit & ~none:
            found |= binding.mask
    return found


def _of(part: ComponentFacts, component: str, releases: int) -> int:
    # Bit 0 of a mask is the absence of a component, and no build.
    found: int = (2 << len(part.versions)) - 2
    for binding in part.about(component, -1):
        # Which release a build is of is a claim like any other, without conditions.
        if not binding.conditions and not binding.allowed & releases:
            found &= ~binding.mask
    return found


def _known(part: ComponentFacts, own: int, component: str, by_line: str) -> str:
    packages = [name for name, mask in part.packages.items() if mask & own]
    if not by_line and packages != [component]:
        return "one of " + ", ".join(packages)
    names = Scale("names", part.versions).named(own)
    lines = dict.fromkeys(name.partition("+")[2].partition("@")[0] for name in names)
    if by_line or not names:
        return "one of the lines " + ", ".join(lines)
    return (
        f"one of the lines {', '.join(lines)}, as in `{component}=={names[-1].partition('@')[0]}`"
    )
