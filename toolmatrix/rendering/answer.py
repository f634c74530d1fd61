"""The values of one answer that conditions and texts may use, each checked against its pattern.

A lock is read from a file and its contents end up in scripts, so everything that does not look like a release, a flag,
an arch or an image reference is refused here. Raises RenderError.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolmatrix.errors import RenderError
from toolmatrix.factbase import variants
from toolmatrix.lockfile.model import LockedTarget
from toolmatrix.recipes.fields import MACHINES
from toolmatrix.recipes.model import Distro
from toolmatrix.rendering import quote

# Of all components these alone have slashes and colons in their releases.
_NAMED = {"base-image": "reference"}

# The last digit is the minor number of the capability, however many there are: sm_120a is 12.0a.
_CUDA = re.compile(r"(sm|compute)_(\d+)(\d[a-z]?)")


def plain_value(kind: str, text: str) -> str:
    """A value of the lock, checked against the pattern of its kind."""
    return str(quote.plain(kind, text))


def machine(locked: LockedTarget) -> str:
    """The machine of a target as the kernel calls it."""
    _, _, wanted = locked.platform.partition("/")
    for name, spelled in MACHINES.items():
        if spelled["debian_arch"] == wanted:
            return name
    raise RenderError(
        "unknown platform",
        expected=" or ".join(f"linux/{names['debian_arch']}" for names in MACHINES.values()),
        found=f"`{locked.platform}`",
    )


def releases(target: str, locked: LockedTarget) -> dict[str, tuple[str, ...]]:
    """The releases of each component in the answer, the given ones among them."""
    return {
        **{name: (component.version,) for name, component in locked.components.items()},
        **{variants.name(name): (build.build,) for name, build in locked.variants.items()},
        "arch": tuple(locked.archs),
        "device": tuple(locked.devices),
        "target": (target,),
        "machine": (machine(locked),),
        "accelerator": (locked.accelerator,),
        "from": (locked.from_,),
        # Choices of a CPU and of char: only the flags say how the compiler spells them.
        "cpu-flag": locked.flags.cxxflags,
    }


def values(target: str, locked: LockedTarget) -> dict[str, str]:
    """The values that texts of recipes may name; see `recipes.variables`."""
    flags = locked.flags
    # One by one: they are joined below, and a blank inside one would make it two.
    for flag in (*flags.cflags, *flags.cxxflags, *flags.nvcc, *flags.hipcc):
        plain_value("flag", flag)
    for arch in (*locked.archs, *locked.devices):
        plain_value("word", arch)
    for name in flags.env:
        plain_value("name", name)
    texts = {
        name: plain_value(_NAMED.get(name, "release"), component.version)
        for name, component in locked.components.items()
    }
    texts |= {
        "target": plain_value("release", target),
        "accelerator": plain_value("release", locked.accelerator),
        "from": plain_value("release", locked.from_),
        "machine": machine(locked),
        "cflags": " ".join(flags.cflags),
        "cxxflags": " ".join(flags.cxxflags),
        "nvcc_flags": " ".join(flags.nvcc),
        "hipcc_flags": " ".join(flags.hipcc),
    }
    return {**texts, **MACHINES[machine(locked)], **_archs(locked.archs)}


def _archs(archs: Iterable[str]) -> dict[str, str]:
    # A name is left out where there is no arch of its kind: a step that needs one then fails by that name.
    gfx = [arch for arch in archs if arch.startswith("gfx")]
    values = {"archs_gfx": ",".join(gfx), "archs_hip": ";".join(gfx)} if gfx else {}
    cuda = [match for arch in archs if (match := _CUDA.fullmatch(arch))]
    if not cuda:
        return values
    real, virtual = (
        [f"{match[2]}.{match[3]}" for match in cuda if match[1] == side]
        for side in ("sm", "compute")
    )
    return values | {
        "archs_sm": ",".join(match[0] for match in cuda),
        "archs_cuda": ",".join(dict.fromkeys((*real, *virtual))),
        "archs_torch": ";".join((*real, *(f"{capability}+PTX" for capability in virtual))),
        "archs_numbers": ";".join(
            capability.replace(".", "") for capability in dict.fromkeys((*real, *virtual))
        ),
        "archs_cmake": ";".join(
            f"{capability.replace('.', '')}-{side}"
            for side, group in (("real", real), ("virtual", virtual))
            for capability in group
        ),
    }


def of_distro(distro: Distro) -> dict[str, str]:
    """The values that the distribution decides."""
    names = ("family", "codename", "os", "os_version")
    return {name: text for name in names if (text := getattr(distro, name))}
