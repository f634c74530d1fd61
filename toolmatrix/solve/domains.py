"""What can be chosen before any fact speaks: no release that was withdrawn, and none from after the day of `--at`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.solve.assemble import Reached


def domains(reached: Reached) -> list[int]:
    """The candidates of each variable, as masks."""
    request = reached.request
    found = [(2 << variable.count) - 1 for variable in reached.variables]
    for target, component, releases in request.policies:
        if target in request.targets:
            number = reached.by_name[target, component][0].number
            # A policy that cannot be had leaves the component absent.
            found[number] = 1 | reached.mask(component, " ".join(releases))
    named: dict[str, set[str]] = {}
    for ask in request.asks:
        named.setdefault(ask.component, set()).update(ask.selector.lstrip("=").split())
    wanted = _wanted(reached)
    # Who asks for what only withdrawn releases are, such as a point release of a series that has ended, wants these.
    for (_, component), allowed in reached.asked.items():
        wanted.setdefault(component, []).append(allowed)
    for variable in reached.variables:
        part = reached.component(variable.component)
        # Withdrawn releases are dropped, and those that were not out on the day of `--at`.
        later = 0
        for place, date in enumerate(part.dates if request.at else ()):
            later |= 2 << place if date > request.at else 0
        dropped = part.yanked
        if not dropped | later:
            continue
        for allowed in wanted.get(variable.component, ()):
            # Nobody has to find what a build brings, and pip takes what is pinned (PEP 592): where only withdrawn
            # releases will do, they are taken.
            if not allowed & ~dropped & ~1:
                dropped &= ~allowed
        dropped |= later
        # Who names a withdrawn release gets it, as pip does with `==` (PEP 592).
        exactly = named.get(variable.component)
        if not exactly or exactly.isdisjoint(reached.scale(variable.component).named(dropped)):
            found[variable.number] &= ~dropped
    return found


def _wanted(reached: Reached) -> dict[str, list[int]]:
    """By component with withdrawn releases, those that builds bring, and those that something pins."""
    parts = {name: reached.component(name) for _, name in reached.by_name}
    # Of most components nothing was withdrawn, and nobody has to know what pins them.
    found: dict[str, list[int]] = {name: [] for name, part in parts.items() if part.yanked}
    for part in parts.values():
        for group in part.binding_groups:
            if group.component in found and group.kind == "requires":
                found[group.component] += [
                    allowed
                    for mask, allowed in zip(group.masks, group.alloweds, strict=True)
                    if not allowed & allowed - 1 or mask & part.brings
                ]
    return found
