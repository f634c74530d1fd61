"""Findings about libraries that installed packages look for on the system, and that their image does not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from toolmatrix.codes.manifests import LibraryMissing, ManifestFinding, NewestUnfit
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import Binding
from toolmatrix.judging.effects import fitting
from toolmatrix.judging.installs import Installation, Installed
from toolmatrix.judging.toolkits import LOADABLE, is_beside, widened
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import IMAGE, PIP, Item, NotRead
from toolmatrix.request.images import with_library
from toolmatrix.request.judgement import (
    RUNTIME,
    ManifestRefusal,
    RequestedPart,
    RequestedParts,
    finding_fields,
)
from toolmatrix.request.manifests import plain
from toolmatrix.solve.parts import union

_CUDA = "cuda"

NamedFinding = tuple[ManifestFinding, tuple[RequestedPart, ...]]


class Loading:
    """What the packages of an environment load in the end, beside what its image has.

    `complete`: all that its file does was read. `unknown` is what cannot be said where packages are unknown.
    """

    def __init__(self, run: Installation, parts: RequestedParts, *, complete: bool) -> None:
        self.run = run
        self.index: Index = run.index
        self.parts = parts
        self.complete = complete and not run.unknown and not run.opaque
        self.unknown: list[NotRead] = []
        self.images = [item for item in parts.items if item.kind == IMAGE]
        self.on_device = any(part.component in RUNTIME for part in parts.parts)

    @cached_property
    def there(self) -> dict[str, RequestedPart]:
        """The libraries beside the packages, each with all releases that may take its place."""
        parts = self.parts.parts
        return {
            part.component: widened(self.index, part)
            for part in parts
            if part.component in LOADABLE
        }

    def findings(self, refusals: Iterable[ManifestRefusal]) -> Iterator[NamedFinding]:
        """The libraries that are missing, or of another release; `refusals` are known."""
        refused = [{part.component for part in refusal.parts} for refusal in refusals]
        if len(self.images) != 1:
            return
        for component, own in self.run.installed.items():
            loads = self.loads(component, own) if own.release and own.part.item.kind == PIP else {}
            names = {component, own.part.component}
            clashing = [
                library
                for library, bindings in loads.items()
                if library in self.there and not self.fits(library, bindings)
            ]
            if any(names & known and known & LOADABLE for known in refused):
                continue
            if clashing:
                yield self.unfit(component, own, clashing, loads)
            else:
                yield from self.missing(component, own, loads)

    def loads(self, component: str, own: Installed) -> dict[str, list[Binding]]:
        """The libraries that all builds for CUDA of a package look for beside them, with the facts."""
        loads = {}
        for library in sorted(LOADABLE):
            bindings = [*self.about(component, library, own.builds or own.release)]
            # Another package may bring what one looks for, and a build for the processor looks for nothing.
            elsewhere = any(self.brings(name, library) for name in self.run.installed)
            if bindings and not elsewhere and all(is_beside(self.index, each) for each in bindings):
                loads[library] = bindings
        return loads

    def about(self, component: str, library: str, mask: int) -> Iterator[Binding]:
        """The facts about a library of some builds of a package, or of its releases where it has none."""
        builds = self.index.builds_of(component) if self.run.installed[component].builds else ""
        machine = self.run.wheels["machine"]
        for binding in self.index.component(builds or component).about(library, mask):
            if machine & binding.conditions.get("machine", machine):
                yield binding

    def brings(self, component: str, library: str) -> bool:
        """True if some build that is installed of a package brings a library."""
        own = self.run.installed[component]
        bindings = self.about(component, library, own.builds) if own.builds else ()
        return any(not is_beside(self.index, each) for each in bindings)

    def fits(self, library: str, bindings: Iterable[Binding]) -> bool:
        selector = self.there[library].asks[0].selector
        return bool(
            union(each.allowed for each in bindings) & self.index.scale(library).select(selector)
        )

    def unfit(
        self, component: str, own: Installed, clashing: list[str], loads: dict[str, list[Binding]]
    ) -> NamedFinding:
        """Libraries of another release than today's release of a package looks for."""
        parts = (own.part, *(self.original(library) for library in clashing))
        within = union(self.releases(component, library) for library in clashing)
        pins, none = fitting(self.run, component, ~within)
        return NewestUnfit(
            **finding_fields(parts, self.parts.name, component),
            # Whatever release is taken, it looks for others.
            severity="error" if none else "warning",
            grounds=tuple(
                self.run.ground(
                    component, loads[library][0], own.release, self.mask(library), own.builds
                )
                for library in clashing
            ),
            facts=self.facts([loads[library][0] for library in clashing], own),
            new=self.run.name(component, own.release),
            others=tuple(part.text.partition(" of ")[0] for part in parts[1:]),
            line=f"line {own.part.item.where.line}",
            pins=pins,
            today=self.run.today,
        ), parts

    def original(self, library: str) -> RequestedPart:
        return next(part for part in self.parts.parts if part.component == library)

    def mask(self, library: str) -> int:
        return self.index.scale(library).select(self.original(library).asks[0].selector)

    def releases(self, component: str, library: str) -> int:
        """The releases of a package that look for other releases of a library."""
        builds = self.run.installed[component].builds
        unfit = [
            each for each in self.about(component, library, -1) if not self.fits(library, [each])
        ]
        if not builds:
            return union(each.mask for each in unfit)
        of = self.index.component(self.index.builds_of(component)).about(component, -1)
        masks = union(each.mask for each in unfit)
        return union(each.allowed for each in of if each.mask & masks)

    def missing(
        self, component: str, own: Installed, loads: dict[str, list[Binding]]
    ) -> Iterator[NamedFinding]:
        """A library that the image does not have, and nothing else is known to bring."""
        image, wanted = self.images[0], self.on_device or _CUDA in self.there
        lacking = called.lacking(plain(image.name))
        absent = [name for name in loads if name in lacking and name not in self.there]
        if not absent or not wanted or self.mentions(absent[0], image):
            return
        if not self.complete:
            why = f"it has no {absent[0]}, and {component} loads that; an unknown package may bring it"
            self.unknown.append(NotRead(text=image.text, why=why, decides=True))
            return
        beside = [part for part in self.parts.parts if part.item is image]
        parts = (own.part, *(beside[:1] if _CUDA in self.there else ()))
        # Who begins with a toolkit wants to compute on it.
        toolkit = _CUDA in self.there
        yield (
            LibraryMissing(
                **finding_fields(parts, self.parts.name, component),
                severity="error" if toolkit else "warning",
                code="TM106" if toolkit else "TM115",
                facts=self.facts(loads[absent[0]], own),
                package=f"{component} {self.run.name(component, own.release)}",
                libraries=tuple(absent),
                image=plain(image.name),
                near=tuple(
                    with_library(
                        self.index,
                        plain(image.name),
                        absent[0],
                        union(b.allowed for b in loads[absent[0]]),
                    )
                    if toolkit
                    else ()
                ),
            ),
            parts,
        )

    def mentions(self, library: str, image: Item) -> bool:
        """True if anything but its image names a library in a file, so that it may be installed there."""
        source = image.text.source
        return any(
            library in line.lower() and "from " not in line.lower()
            for line in source.text.split("\n")
        )

    def facts(self, bindings: Iterable[Binding], own: Installed) -> tuple[str, ...]:
        cites = [
            cite
            for binding in bindings
            for cite in self.index.cites(binding.cites)
            if cite.touches(own.builds or own.release)
        ]
        return tuple(dict.fromkeys(self.index.claim(cite.record).id for cite in cites))[:4]
