"""Random requests over the real matrix: what is wanted, where it runs, and what somebody has already.

A request is drawn from its number and the seed alone, so that it can be drawn again by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from toolmatrix.factbase.evidence import UNKNOWN, WORDS
from toolmatrix.factbase.index import Index
from toolmatrix.request.fields import Fields

Item = TypeVar("Item")

DAYS = ("2019-06-01", "2021-03-15", "2022-11-01", "2024-02-29", "2025-07-04", "2026-05-01")
"""Days for `--at`: before, between and after most releases of the matrix."""
_NEIGHBOURS = 0.7


class Draw:
    """Draws requests of one matrix."""

    def __init__(self, index: Index, seed: int) -> None:
        self.index = index
        self.seed = seed
        heads = index.header["components"]
        self.shown = [
            name
            for name, head in heads.items()
            if not (head["given"] or head["hidden"] or head["flag"] or head["variant_of"])
            and name not in ("arch", "device", "distro")
            and index.component(name).versions
        ]
        self.frameworks = [name for name in self.shown if heads[name]["framework"]]
        self.products = [product.name for product in index.products()]
        self._partners: dict[str, list[str]] = {}

    def request(self, number: int) -> Fields:
        """The request of this number."""
        draw = Random(f"{self.seed}/{number}")
        names = self.names(draw)
        cut = draw.randint(1, len(names))
        targets = self.targets(draw)
        return Fields(
            wanted=tuple(self.selector(draw, name) for name in names[:cut]),
            with_=tuple(self.selector(draw, name) for name in names[cut:]),
            target=targets,
            from_=_some(draw, 0.5, ("source", "wheel"), ""),
            accelerator=_some(draw, 0.2, self.index.component("accelerator").versions, ""),
            arch=_several(draw, 0.12, self.index.component("arch").versions),
            device=_several(draw, 0.15, (*self.index.component("device").versions, *self.products)),
            distro=_some(draw, 0.12, self.index.component("distro").versions, ""),
            align=(draw.choice(["python", "gcc", *names]),)
            if len(targets) > 1 and draw.random() < 0.3
            else (),
            prefer=_some(draw, 0.06, ("newest", "oldest"), "best-evidence"),
            at=_some(draw, 0.1, DAYS, ""),
            min_evidence=_some(draw, 0.15, WORDS[1:-1], UNKNOWN),
        )

    def names(self, draw: Random) -> list[str]:
        """One to four components, most of which some fact joins with the first."""
        first = draw.choice(self.frameworks if draw.random() < 0.5 else self.shown)
        found = [first]
        for _ in range(draw.choice((0, 1, 1, 2, 2, 3))):
            near = draw.random() < _NEIGHBOURS
            others = [name for name in self.partners(first) if name not in found] if near else []
            others = others or [name for name in self.shown if name not in found]
            found.append(draw.choice(others))
        return found

    def partners(self, name: str) -> list[str]:
        """The shown components of which facts about one speak."""
        if name not in self._partners:
            part = self.index.component(name)
            told = {one for group in part.binding_groups for one in group.named}
            told |= {one for group in part.row_groups for one in group.components}
            self._partners[name] = [one for one in self.shown if one in told and one != name]
        return self._partners[name]

    def selector(self, draw: Random, name: str) -> str:
        """A component with a pin, a series, a bound or nothing."""
        head, versions = (
            self.index.header["components"][name],
            self.index.component(name).versions,
        )
        # The newer half goes together more often, and an answer has more laws to keep than a refusal.
        version = draw.choice(versions[draw.choice((0, len(versions) // 2)) :])
        way = draw.random()
        if way < 0.45:
            return name
        if head["scheme"] == "names" or way < 0.65:
            return f"{name}=={version}"
        if way < 0.75:
            parts = version.split(".")
            return f"{name}=={'.'.join(parts[:2])}" if len(parts) > 2 else f"{name}=={version}"
        if way < 0.92:
            return f"{name}{draw.choice(('>=', '<=', '<', '>'))}{version}"
        other = draw.choice(versions)
        first, last = sorted((version, other), key=list(versions).index)
        return f"{name}>={first},<={last}"

    def targets(self, draw: Random) -> tuple[str, ...]:
        """No target, one, or several."""
        every = list(self.index.header["targets"])
        way = draw.random()
        if way < 0.45:
            return ()
        count = 1 if way < 0.78 else draw.choice((2, 2, 3))
        return tuple(draw.sample(every, min(count, len(every))))


def _some(draw: Random, chance: float, values: Sequence[Item], otherwise: Item) -> Item:
    return draw.choice(values) if draw.random() < chance else otherwise


def _several(draw: Random, chance: float, values: Sequence[str]) -> tuple[str, ...]:
    if draw.random() >= chance:
        return ()
    return tuple(draw.sample(values, min(draw.choice((1, 1, 1, 2)), len(values))))
