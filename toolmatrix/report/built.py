"""Images that were really built of a release: what is told of them beside an answer, or at a glance.

A build says of itself that it was made, with these versions on this distribution, and nothing of any other.
"""

from __future__ import annotations

from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.facts.records import BuildRecord
    from toolmatrix.solve.resolve import Resolution

# Where one of these differs it is another image, of which a build says nothing; those below may differ and are told.
_SAME = ("machine", "from", "accelerator")
_TOLD = ("distro", "python")


class BuiltImage(Value):
    """A build beside an answer: its day, its words, whether it is what the answer says, and its fact."""

    component: str
    day: str
    text: str
    same: bool
    build: BuildRecord


def of(index: Index, resolution: Resolution, target: str) -> list[BuiltImage]:
    """The builds of what was asked for on a target: those that are what the answer says, or else those near it."""
    chosen = resolution.chosen(target)
    said = {
        ask.component: ask.selector for ask in resolution.request.asks if ask.target in ("", target)
    }
    found = []
    for name in resolution.request.wanted:
        builds = index.builds(name, chosen[name]) if name in chosen else []
        near = [
            _beside(name, build, chosen)
            for build in builds
            if "check" in build.cells
            and all(build.cells.get(one, said.get(one)) == said.get(one) for one in _SAME)
            # Of one release there are builds for several toolkits, and each is another thing to install.
            and build.cells.get("build", "") == chosen.get(f"{name}-variant", "")
        ]
        found += [one for one in near if one.same] or near
    return found


def _beside(component: str, build: BuildRecord, chosen: Mapping[str, str]) -> BuiltImage:
    other = {
        name: chosen[name]
        for name in _TOLD
        if name in chosen and build.cells.get(name) != chosen[name]
    }
    text = f"on {_with(build.cells)} by recipe {build.cells['recipe']}"
    if other:
        text += f", not on {_with(other)}" if "distro" in other else f", not with {_with(other)}"
    return BuiltImage(
        component=component, day=build.cells["day"], text=text, same=not other, build=build
    )


def _with(cells: Mapping[str, str]) -> str:
    distro, python = cells.get("distro", ""), cells.get("python", "")
    return " with ".join(filter(None, (distro, python and f"python {python}")))


def documents(builds: list[BuiltImage]) -> list[dict[str, Any]]:
    """Builds beside an answer as JSON values."""
    return [
        {
            "fact": one.build.fact,
            "date": one.day,
            "same": one.same,
            "text": one.text,
            **{name: one.build.cells.get(name, "") for name in _TOLD},
        }
        for one in builds
    ]


def row(told: Mapping[str, str]) -> list[str]:
    """The columns of a build at a glance, by the cells of its row."""
    way = [told.get(name, "") for name in (*_SAME, *_TOLD)]
    ended = told["check"] if "check" in told else f"missing: {told['missing']}"
    return [*way, told["day"], told.get("size", ""), ended]
