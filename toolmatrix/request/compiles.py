"""What a lock says about a compile, and which of its targets some sources are for."""

from __future__ import annotations

from collections.abc import Sequence

from toolmatrix.errors import UsageError
from toolmatrix.lock.model import COMPILERS, Lock, LockedTarget
from toolmatrix.stages.expected import Expected

# By accelerator: the component that the driver comes with, and the driver.
_DRIVERS = {"cuda": ("cuda", "nvcc"), "rocm": ("rocm", "hipcc")}


def expected(name: str, locked: LockedTarget) -> Expected:
    """What a target of a lock says about a compile."""
    component, family = _DRIVERS.get(locked.accelerator, ("", ""))
    parts = locked.components
    compiler = next((one for one in COMPILERS if one in parts), "")
    toolkit = parts.get(component)
    if toolkit and toolkit.inside:
        # What a wheel brings has no driver.
        toolkit = None
    flags = locked.flags
    return Expected(
        target=name,
        accelerator=locked.accelerator,
        platform=locked.platform,
        component=component if toolkit else "",
        release=toolkit.version if toolkit else "",
        family=family if toolkit else "",
        archs=tuple(locked.archs),
        compiler=(compiler, parts[compiler].version) if compiler else ("", ""),
        words={"nvcc": flags.nvcc, "hipcc": flags.hipcc}.get(family, ()),
        host_words=flags.cxxflags,
        env=flags.env,
    )


def chosen(lock: Lock, targets: Sequence[str], sources: Sequence[str], platform: str) -> Expected:
    """What a lock says for sources on a platform, for one of `targets` where some are named. Raises UsageError."""
    answers = [
        expected(name, target) for name, target in lock.held.items() if name in (targets or (name,))
    ]
    hip = any(source.endswith(".hip") for source in sources)
    fitting = [one for one in answers if one.accelerator == ("rocm" if hip else "cuda")]
    # hipcc compiles what is written for CUDA, and nvcc nothing that is written for HIP.
    fitting = fitting or [one for one in answers if not (hip and one.family == "nvcc")]
    # Of several that fit, the one that would run here.
    if len(fitting) > 1:
        fitting = [one for one in fitting if one.platform == platform] or fitting
    if len(fitting) == 1:
        return fitting[0]
    raise UsageError(
        "the lock has several targets"
        if fitting
        else "the lock has no target for HIP"
        if answers
        else "the lock has no such target",
        expected="one of " + ", ".join(sorted(lock.held)),
        found=", ".join(targets) or ", ".join(one.target for one in fitting),
        help="name one with `--target`",
    )
