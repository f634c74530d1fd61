"""Versions compared where a witness may be coarser than the question: `11.2` seen, `11.2.2` wanted."""

from __future__ import annotations

import re

from toolmatrix.facts.versions import Scale, SelectorError
from toolmatrix.finding import FAIL, PASS, UNKNOWN
from toolmatrix.inventory import python
from toolmatrix.judge import stage_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.facts.index import Index
    from toolmatrix.inventory.model import Seen
    from toolmatrix.judge.expectations import Expectation

_LITERAL = re.compile(r"\d+(?:\.\d+)*")
# A number that no series has reached.
_LAST = 999_999


def compared(index: Index, expectation: Expectation, seen: Seen) -> tuple[str, str]:
    """The verdict whether a sighting is what is wanted, and the reason where it is unknown."""
    name, wanted = expectation.name, expectation.wanted
    known = index.header["components"]
    if name in known and known[name]["scheme"] == "names":
        return _same_name(wanted, seen.version), ""
    try:
        Scale("pep440", [_plain(seen.version)])
    except SelectorError:
        return UNKNOWN, f"`{seen.version}` is not a version"
    # Metadata of Python has the whole version (PEP 440 pads with zeros), so that nothing is coarse about it.
    finer = () if seen.seen_by in python.RECORDS else _finer(wanted, seen.version)
    if not finer and admits(wanted, seen.version):
        return PASS, ""
    may_be = _releases(index, name, seen.version) if name in known else ()
    fitting = [one for one in may_be if admits(wanted, one)]
    certain = may_be or finer
    if certain and all(admits(wanted, one) for one in certain):
        return PASS, ""
    # Some of what it may be fits and some does not: only a finer witness could decide.
    if fitting or (not may_be and admits(wanted, seen.version, "series")):
        what = " or ".join(may_be[:3]) if may_be else f"any {seen.version}.*"
        return UNKNOWN, f"{seen.version} may be {what}"
    return FAIL, ""


def _finer(wanted: str, version: str) -> tuple[str, ...]:
    """Versions that a coarse witness may stand for, where what is wanted has more numbers: the ends of its series, and
    every version between them that is named. A package of Python has no more numbers than its record says."""
    named = _LITERAL.findall(wanted)
    plain = _plain(version)
    if all(one.count(".") <= plain.count(".") for one in named):
        return ()
    return (plain, f"{plain}.{_LAST}", *(one for one in named if one.startswith(f"{plain}.")))


def _same_name(wanted: str, version: str) -> str:
    """Names are compared as they are; an image's may carry Docker's own registry and a digest."""
    # `docker.io/library/` is what Docker puts before a name without a registry.
    plain = version.partition("@")[0].removeprefix("docker.io/").removeprefix("library/")
    try:
        return PASS if Scale("names", [plain]).select(wanted) & 2 else FAIL
    except SelectorError:
        return UNKNOWN


def _plain(version: str) -> str:
    """A version without its local part (PEP 440), which says how it was built."""
    return version.partition("+")[0]


def admits(selector: str, version: str, scheme: str = "pep440") -> bool:
    """True if a version is within a selector; by the scheme `series`, if a finer version of it could be."""
    try:
        return bool(Scale(scheme, [_plain(version)]).select(selector) & 2)
    except SelectorError:
        return False


def _releases(index: Index, name: str, version: str) -> tuple[str, ...]:
    """The known releases that a version may be: those that bring a tool of it, or those that it begins.

    nvcc has numbers of its own (attribute `nvcc` of a release). The releases of a series cannot be told apart.
    """
    if index.header["components"][name]["scheme"] == "series":
        return ()
    scale = index.scale(name)
    return stage_facts.shipping(index, name, version) or tuple(
        scale.named(scale.select(f"=={_plain(version)}"))
    )
