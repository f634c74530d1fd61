"""Packages of an answer that an installer would take in another release: facts bound them, and no metadata does."""

from __future__ import annotations

from toolmatrix.factbase.evidence import UNKNOWN
from toolmatrix.factbase.records import REFUSE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import Binding
    from toolmatrix.solve.resolve import Resolution


def kept(index: Index, resolution: Resolution, target: str) -> Iterator[str]:
    """Pins of the packages of an answer of which an installer takes a newer release that facts refuse."""
    from toolmatrix.report.variants import on_index

    pins = _Pins(index, resolution, target)
    components, wanted = index.header["components"], resolution.request.wanted
    for name, version in pins.chosen.items():
        head = components[name]
        apart = name in wanted or head["variants"] or head["framework"] or head["variant_of"]
        if not apart and head["scheme"] == "pep440" and on_index(index, name):
            newest = pins.newest(name)
            if newest and pins.refused(name, newest, stated=False):
                yield f"{name}=={version}"


class _Pins:
    def __init__(self, index: Index, resolution: Resolution, target: str) -> None:
        components = index.header["components"]
        self.index = index
        self.chosen = resolution.chosen(target)
        self.bits = {name: index.scale(name).bit(version) for name, version in self.chosen.items()}
        self._lists: dict[str, frozenset[str]] = {}
        # An installer is free to move every package but those that the command names.
        self.fixed = {
            name
            for name in self.bits
            if name in resolution.request.wanted
            or components[name]["variant_of"]
            or components[name]["scheme"] != "pep440"
        }

    def newest(self, name: str) -> int:
        """The release that an installer takes by metadata, as a bit; 0 where that is the one of the answer."""
        facts = self.index.component(name)
        left = self.index.scale(name).everything & -(self.bits[name] << 1) & ~facts.yanked
        while left:
            candidate = 1 << left.bit_length() - 1
            if not self.refused(name, candidate, stated=True):
                return candidate
            left ^= candidate
        return 0

    def refused(self, name: str, release: int, *, stated: bool) -> bool:
        """Whether metadata, or else any other fact, refuses a release of a package beside the rest."""
        return any(
            self._is_metadata(owner, binding) is stated
            for owner, binding in self._refusing(name, release, stated)
        )

    def _refusing(self, name: str, release: int, stated: bool) -> Iterator[tuple[str, Binding]]:
        for other in self.fixed if stated else self.bits:
            bit = self.bits[other]
            for owner, about, here, there in (
                (name, other, release, bit),
                (other, name, bit, release),
            ):
                for binding in self.index.component(owner).about(about, here):
                    if owner != about and self._binds(binding) and not binding.allowed & there:
                        yield owner, binding

    def _binds(self, binding: Binding) -> bool:
        # What was not chosen, such as the builds of another package, is absent.
        return (
            binding.kind in REFUSE
            and binding.evidence != UNKNOWN
            and all(self.bits.get(part, 1) & mask for part, mask in binding.conditions.items())
        )

    def _is_metadata(self, owner: str, binding: Binding) -> bool:
        """Whether a fact is what a package says of itself where its releases are listed, which installers read."""
        index = self.index
        lists = self._lists_of(index.header["components"][owner]["variant_of"] or owner)
        return any(index.claim(cite.record).source in lists for cite in index.cites(binding.cites))

    def _lists_of(self, name: str) -> frozenset[str]:
        if name not in self._lists:
            index = self.index
            releases = map(index.release, index.component(name).releases)
            self._lists[name] = frozenset(release.source for release in releases)
        return self._lists[name]
