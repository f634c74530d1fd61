"""How frameworks get there where a request does not say: built from source, or as the wheels that are published.

One rule for every command. What there is one way alone comes that way, and so does a build that is named. Who names a
build tool or a codegen arch builds. Who names a device or a driver asks what runs, and who names a package that stands
on a framework installs both: these get wheels where the frameworks have some for the target. All others build.
"""

from __future__ import annotations

from toolmatrix.facts.evidence import UNKNOWN
from toolmatrix.solve.preferences import limiting, limits, stands_on_framework

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.request.fields import Fields
    from toolmatrix.request.names import Names
    from toolmatrix.solve.request import Ask


def default(
    asks: Sequence[Ask],
    names: Names,
    fields: Fields,
    targets: Sequence[str],
    devices: Sequence[str],
    computing: Callable[[str, str], str],
) -> str:
    """The way of a request; `computing` is the accelerator of a target by the way."""
    if fields.recipe:
        from toolmatrix.request import recipes

        # A build that is named then is one to build against.
        if recipes.recipe(fields.recipe, names.index).builds:
            return "source"
    # What is held counts like what is wanted: which of the two a part is has no say in how it gets there.
    named = [(ask, names.components[ask.component]) for ask in asks if ask.option != "recipe"]
    # A tool that somebody names is to build with, and a driver to run on.
    ways = {part["way"] for _, part in named}
    if any(part["variant_of"] for _, part in named):
        return "wheel"
    if not all(admits(ask, "from", "source", names, {}) for ask, _ in named):
        return "wheel"
    if fields.arch or "source" in ways:
        return "source"
    frameworks = [ask for ask, part in named if part["framework"]]
    standing = any(
        not part["framework"] and stands_on_framework(names.index, ask.component)
        for ask, part in named
    )
    runs = bool(frameworks) and (bool(fields.device) or "wheel" in ways)
    if not standing and not runs:
        return "source"
    # One framework without a wheel is built, and the others with it: wheels bring toolkits of their own.
    published = all(
        _published(ask, target, names, devices, computing)
        for ask in frameworks
        for target in targets
    )
    return "wheel" if published else "source"


def _published(
    ask: Ask,
    target: str,
    names: Names,
    devices: Sequence[str],
    computing: Callable[[str, str], str],
) -> bool:
    """True if wheels of what is asked for compute on a target as a build would, and hold code for the devices."""
    computes = computing(target, "wheel")
    given = {
        "from": "wheel",
        "machine": names.index.header["targets"][target]["context"]["machine"],
        "accelerator": computes,
    }
    facts = names.index.component(ask.component)
    wheel = names.scale("from").bit("wheel")
    spoken = any(
        group.conditions.get("from", 0) & wheel
        and group.component in given
        and group.evidence != UNKNOWN
        for group in facts.binding_groups
    )
    # Where no fact speaks of wheels, nobody knows of any.
    if not spoken or computes != computing(target, "source"):
        return False
    left = _left(names, ask.component, names.scale(ask.component).select(ask.selector), given)
    builds, held = _made(names, ask.component, left, given)
    if not builds or not devices or not left:
        return bool(left)
    return bool(running(names.index, builds, held, devices))


def published(
    names: Names, component: str, release: str, given: Mapping[str, str]
) -> tuple[str, int]:
    """The component of the builds of a component, and those of a release that go with what is given, as a mask."""
    return _made(names, component, names.scale(component).bit(release), given)


def _made(names: Names, component: str, left: int, given: Mapping[str, str]) -> tuple[str, int]:
    builds = names.index.builds_of(component)
    held = 0
    for binding in names.index.component(builds).about(component, -1) if builds else ():
        held |= binding.mask if binding.allowed & left else 0
    return builds, _left(names, builds, held, given) if builds else 0


def running(index: Index, builds: str, left: int, devices: Sequence[str]) -> int:
    """Of some builds those that are known to hold code which every device runs."""
    for device in devices:
        itself = index.scale("device").bit(device)
        fit = 0
        # Of a framework it is known for which archs its builds are, of others for which devices.
        for about, runs in ("arch", limits(index, "device", "arch", itself)), ("device", itself):
            for mask, allowed in limiting(index, builds, about):
                fit |= mask if allowed & runs & ~1 else 0
        left &= fit
    return left


def _left(names: Names, component: str, left: int, given: Mapping[str, str]) -> int:
    """The releases of a component that go with all that is given, by its own facts."""
    for about in given:
        left = _fitting(names, component, left, about, given)
    return left


def _fitting(names: Names, component: str, left: int, about: str, given: Mapping[str, str]) -> int:
    # Its own facts alone are asked, which takes no solving: this runs before every answer.
    wanted = names.scale(about).bit(given[about])
    for binding in names.index.component(component).about(about, left):
        holds = all(
            name in given and mask & names.scale(name).bit(given[name])
            for name, mask in binding.conditions.items()
        )
        if holds and not binding.allowed & wanted:
            left &= ~binding.mask
    return left


def admits(ask: Ask, component: str, release: str, names: Names, given: Mapping[str, str]) -> bool:
    """True if some release that a line admits goes with one of a component where others are given."""
    left = names.scale(ask.component).select(ask.selector)
    # What is given is a condition here: whether it can be is another question.
    return bool(_fitting(names, ask.component, left, component, {**given, component: release}))
