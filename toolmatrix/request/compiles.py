"""What is known of a compile before it runs: what a lock says about it, and facts about its driver."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolmatrix.compilation import known
from toolmatrix.compilation.expected import Expected
from toolmatrix.compilation.known import Order
from toolmatrix.compilation.model import Plan
from toolmatrix.errors import CannotSay, UsageError
from toolmatrix.factbase import lookups
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.versions import SelectorError, key, order
from toolmatrix.lockfile.model import COMPILERS, Lock, LockedTarget
from toolmatrix.value import Value

# By accelerator: the component that the driver comes with, and the driver.
_DRIVERS = {"cuda": ("cuda", "nvcc"), "rocm": ("rocm", "hipcc")}


def expected(name: str, locked: LockedTarget) -> Expected:
    """What a target of a lock says about a compile."""
    component, family = _DRIVERS.get(locked.accelerator, ("", ""))
    components = locked.components
    compiler = next((candidate for candidate in COMPILERS if candidate in components), "")
    toolkit = components.get(component)
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
        compiler=(compiler, components[compiler].version) if compiler else ("", ""),
        words={"nvcc": flags.nvcc, "hipcc": flags.hipcc}.get(family, ()),
        host_words=flags.cxxflags,
        env=flags.env,
    )


def chosen(lock: Lock, targets: Sequence[str], sources: Sequence[str], platform: str) -> Expected:
    """What a lock says for sources on a platform, for one of `targets` where some are named. Raises UsageError."""
    answers = [
        expected(name, target)
        for name, target in lock.all_targets.items()
        if name in (targets or (name,))
    ]
    hip = any(source.endswith(".hip") for source in sources)
    fitting = [answer for answer in answers if answer.accelerator == ("rocm" if hip else "cuda")]
    # hipcc compiles what is written for CUDA, and nvcc nothing that is written for HIP.
    fitting = fitting or [answer for answer in answers if not (hip and answer.family == "nvcc")]
    # Of several that fit, the one that would run here.
    if len(fitting) > 1:
        fitting = [answer for answer in fitting if answer.platform == platform] or fitting
    if len(fitting) == 1:
        return fitting[0]
    raise UsageError(
        "the lock has several targets"
        if fitting
        else "the lock has no target for HIP"
        if answers
        else "the lock has no such target",
        expected="one of " + ", ".join(sorted(lock.all_targets)),
        found=", ".join(targets) or ", ".join(answer.target for answer in fitting),
        help="name one with `--target`",
    )


_ORDERS = {"cuda": "nvcc-stages", "rocm": "hipcc-stages"}
_DEFAULTS = {"cuda": "cuda-default-archs"}
# The kind and the series of a host compiler, by the end of its name: `aarch64-linux-gnu-g++-12`, `clang++-15`.
_NAMED = re.compile(r"(?:^|-)(?P<kind>g\+\+|gcc|clang)(?:\+\+)?-(?P<version>\d+(?:\.\d+)*)$")
_KINDS = {"g++": "gcc", "gcc": "gcc", "clang": "clang"}


class KnownOrder(Value):
    """An order of stages for a release: the captured release it is of, its fact, and whether the next one differs.

    `sure` is an order that was captured of the release, or of one on each side of it.
    """

    order: Order
    captured: str
    fact: str
    differs: str = ""
    sure: bool = False


def driver_version(index: Index, component: str, release: str) -> str:
    """The version that the driver of a release prints as its own; empty where no fact says so."""
    if component == "cuda":
        return lookups.attributes(index, component, release).get("nvcc", "")
    scale = index.scale(component)
    mask = lookups.mask_or_none(scale, release)
    for binding in index.component(component).about("hip", mask):
        names = index.scale("hip").named(binding.allowed & ~1)
        if len(names) == 1:
            return names[0]
    return ""


def stage_order(index: Index, component: str, release: str) -> KnownOrder | None:
    """The order of stages by the nearest captured release, of its major or else below; None where none is as old."""
    below, above = _neighbours(index, _ORDERS[component], component, release)
    captures = [capture for capture in (below, above) if capture]
    major = release.partition(".")[0]
    same = [capture for capture in captures if capture.release.partition(".")[0] == major]
    nearest = same[0] if same else below
    if nearest is None:
        return None
    cells = nearest.cells
    others = [capture for capture in captures if capture.cells["compile"] != cells["compile"]]
    return KnownOrder(
        order=Order(compile=cells["compile"], link=cells["link"], images=cells.get("images", "")),
        captured=nearest.release,
        fact=nearest.fact,
        # What was captured decides for itself.
        differs=others[0].release if others and nearest.release != release else "",
        sure=nearest.release == release or (below is not None and above is not None and not others),
    )


def default_arch(index: Index, component: str, release: str) -> tuple[str, str]:
    """The arch that a driver makes code for when none is named, and its fact; both empty where no fact says so."""
    if component not in _DEFAULTS:
        return "", ""
    below, above = _neighbours(index, _DEFAULTS[component], component, release)
    if below is None:
        return "", ""
    # Between two captures that agree the default has not changed.
    agree = above is not None and above.cells["default"] == below.cells["default"]
    known = agree or below.release == release
    return (below.cells["default"], below.fact) if known else ("", "")


def plan_from_facts(
    index: Index, expected: Expected, words: Sequence[str], sources: Sequence[str]
) -> tuple[Plan, KnownOrder]:
    """The plan of the driver of an answer for some words, from facts alone.

    Raises CannotSay where no fact says what such a driver does, ToolMissing for a word that only a driver knows.
    """
    of = (index, expected.component, expected.release)
    named = f"{expected.component} {expected.release}"
    order = stage_order(*of)
    if order is None:
        raise CannotSay(
            f"no {expected.family} of {named} on this machine, and no capture of a release that old",
            help="name a driver with `--driver`, or read a saved log with --from-log",
        )
    command = known.parse_command_words(words)
    if not command.codes:
        default, _ = default_arch(*of)
        if not default:
            raise CannotSay(
                f"the answer names no arch, and the default arch of {named} is unknown",
                help="name one: `--arch sm_NN`",
            )
        command = known.parse_command_words(words, [default])
    match = _NAMED.search(command.ccbin)
    named_host = (_KINDS[match["kind"]], match["version"]) if match else ("", "")
    # Where no fact says what a driver calls itself, its minor series is known.
    version = driver_version(*of) or ".".join(expected.release.split(".")[:2])
    hip = expected.family == "hipcc"
    plan = known.plan(
        *(expected.family, "" if hip else version, order.order, command, sources),
        named_host if command.ccbin else expected.compiler,
        hip=version if hip else "",
    )
    return plan, order


class _Captured(Value):
    release: str
    fact: str
    cells: Mapping[str, str]


def _neighbours(
    index: Index, table: str, component: str, release: str
) -> tuple[_Captured | None, _Captured | None]:
    """The rows of a table about the nearest release that is not newer, and about the nearest that is."""
    captures = {
        captured: _Captured(release=captured, fact=name, cells=cells)
        for name, cells in lookups.rows(index, table)
        for captured in cells[component].split()
    }
    older = [captured for captured in captures if _order_key(captured) <= _order_key(release)]
    newer = [captured for captured in captures if captured not in older]
    below = max(older, key=_order_key, default="")
    above = min(newer, key=_order_key, default="")
    return captures.get(below), captures.get(above)


def _order_key(release: str) -> Any:
    try:
        return order(key(release))
    except SelectorError:
        return order(key("0"))
