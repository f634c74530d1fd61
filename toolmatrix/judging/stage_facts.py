"""Facts about the toolkit of a plan, its archs and the devices: rows and bindings by name.

Look-ups are cached, for a long log asks the same of the same index a thousand times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from toolmatrix.factbase import evidence as words
from toolmatrix.factbase.compiled import union
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.lookups import mask_or_none, rows
from toolmatrix.factbase.records import FAILS, JOINS_NONE, Binding, ClaimRecord
from toolmatrix.factbase.versions import Scale, SelectorError, key, order
from toolmatrix.finding import Incompatibility, union_of_fields

PTX, SASS = "compute_", "sm_"
"""What the names of NVIDIA's codegen archs begin with: the virtual side, and the real one."""


class Toolkit:
    """The releases of one component that a tool's version may be, and what the matrix says about them."""

    def __init__(self, index: Index, component: str, version: str) -> None:
        self.index = index
        self.component = component
        self.releases = releases(index, component, version)
        self.version = version

    def refusal(
        self, component: str, version: str, context: Mapping[str, str]
    ) -> Incompatibility | None:
        """The reason why no release takes `version` of a component; None if one does, or no fact says so."""
        return refusal(self.index, self.component, self.releases, component, version, context)

    def rivals(self, component: str, version: str) -> tuple[str, ...]:
        """The facts that are set aside or outweighed and would let `version` of a component pass."""
        mask = mask_of(self.index.scale(self.component), self.releases)
        wanted = mask_or_none(self.index.scale(component), version)
        disputes = self.index.component(self.component).disputes
        return tuple(
            self.index.claim(dispute.rival).id
            for dispute in disputes
            if dispute.component == component and dispute.mask & mask and dispute.allowed & wanted
        )

    def rows(self, table: str) -> list[tuple[str, dict[str, str]]]:
        """The rows of a table about these releases: (id, cells)."""
        scale = self.index.scale(self.component)
        wanted = mask_of(scale, self.releases)
        return [
            (name, cells)
            for name, cells in rows(self.index, table)
            if self.component in cells and mask_or_none(scale, cells[self.component]) & wanted
        ]


@lru_cache(maxsize=64)
def releases(index: Index, component: str, version: str) -> tuple[str, ...]:
    """The releases a tool's own version may be: those that ship it, that release, or its minor series."""
    if component not in index.header["components"] or not version:
        return ()
    # The compiler counts its own builds: only the releases that ship it show which release it is, and nvcc 13.0.88 came
    # with 13.0.1, 13.0.2 and 13.0.3.
    shipped = shipping(index, component, version)
    if shipped:
        return shipped
    scale = index.scale(component)
    minor = ".".join(version.split(".")[:2])
    # A scheme without patch releases takes neither the version nor `==11.2.*`, but the series by its name.
    mask = (
        mask_or_none(scale, version)
        or mask_or_none(scale, f"=={minor}.*")
        or mask_or_none(scale, minor)
    )
    return tuple(scale.named(mask))


def shipping(index: Index, component: str, version: str) -> tuple[str, ...]:
    """The releases that ship an nvcc of this version, by their attribute `nvcc`."""
    facts = index.component(component)
    return tuple(
        release
        for release, record in zip(facts.versions, facts.releases, strict=True)
        if index.release(record).attributes.get("nvcc") == version
    )


def mask_of(scale: Scale, names: Sequence[str]) -> int:
    """The mask of some releases."""
    return union(map(scale.bit, names))


def refusal(
    index: Index,
    subject: str,
    releases: Sequence[str],
    component: str,
    version: str,
    context: Mapping[str, str],
) -> Incompatibility | None:
    """The hard fact by which none of some `releases` of `subject` goes with `version`, None where one may.

    `context` are the releases of other components; what is not in it is absent, as in a request.
    """
    components = index.header["components"]
    if not releases or subject not in components or component not in components:
        return None
    scale = index.scale(subject)
    bits = map(scale.bit, releases)
    refusals = (_refused(index, subject, bit, component, version, context) for bit in bits)
    # One release that goes with it is enough: which of them is installed is unknown.
    grounds = [ground for ground in refusals if ground is not None]
    if len(grounds) < len(releases):
        return None
    facts = union_of_fields(grounds, "facts")
    weakest = words.weakest(ground.evidence for ground in grounds)
    return grounds[0].replace(releases=tuple(releases), facts=facts, evidence=weakest)


def _refused(
    index: Index, subject: str, bit: int, component: str, version: str, context: Mapping[str, str]
) -> Incompatibility | None:
    wanted = mask_or_none(index.scale(component), version)
    for binding in index.component(subject).about(component, bit):
        # A need says that something has to be there, and of no release that it may not.
        if binding.kind == "needs":
            continue
        if not all(_holds(index, name, mask, context) for name, mask in binding.conditions.items()):
            continue
        records = cited(index, binding, bit)
        # A release that the matrix does not know may pass by the selectors alone, or where one cannot be read.
        # Not so one that fails: whether it is among these is known for known releases alone.
        may_pass = binding.kind == FAILS or any(
            admits(record.selector, version) for record in records
        )
        if not records or (wanted & binding.allowed if wanted else may_pass):
            continue
        return Incompatibility(
            kind=FAILS if binding.kind == FAILS else "limits",
            subject=subject,
            releases=(),
            component=component,
            values=tuple(dict.fromkeys(record.selector for record in records)),
            facts=tuple(record.id for record in records),
            evidence=binding.evidence,
        )
    return None


def cited(index: Index, binding: Binding, mask: int) -> list[ClaimRecord]:
    """The claims behind a binding that are about any subject release in a mask."""
    return [index.claim(cite.record) for cite in index.cites(binding.cites) if cite.touches(mask)]


def admits(selector: str, version: str) -> bool:
    """True if a selector admits a version that need not be in the matrix, or one of them cannot be read."""
    try:
        return bool(Scale("series", (version,)).select(selector))
    except SelectorError:
        return True


def _holds(index: Index, component: str, mask: int, context: Mapping[str, str]) -> bool:
    # Bit 0 of a mask means "absent".
    if component not in context:
        return bool(mask & 1)
    return bool(mask & mask_or_none(index.scale(component), context[component]))


def twin(index: Index, arch: str) -> str:
    """The name under which the matrix holds an arch: features of a target ID left out, `compute_90a` as `sm_90a`."""
    plain = arch.partition(":")[0]
    known = index.component("arch").versions
    # PTX of an `a` or `f` target goes exactly where its cubin goes (NVIDIA, Blackwell compatibility guide), so the
    # matrix has the cubin alone.
    if plain not in known and plain.startswith(PTX):
        plain = SASS + plain.removeprefix(PTX)
    return plain


def sass(arch: str) -> str:
    """The real arch of the same number as a virtual one: `sm_80` for `compute_80`; another as it is."""
    return SASS + arch.removeprefix(PTX) if arch.startswith(PTX) else arch


def arch_number(arch: str) -> int:
    """The number in the name of one of NVIDIA's archs, 0 for another."""
    digits = sass(arch).removeprefix(SASS).rstrip("af")
    return int(digits) if digits.isdecimal() and arch != digits else 0


def standing(version: str, cells: Mapping[str, str]) -> str:
    """The place of a compiler among those that were asked for an arch: `dropped` behind the last that took it, `new`
    before the first that did, else nothing. `cells` are a row of the table arch-toolkits.
    """
    try:
        own = order(key(version))
        if "refused-after" in cells and order(key(cells["last-ran"])) < own:
            return "dropped"
        if "refused-before" in cells and own < order(key(cells["first-ran"])):
            return "new"
    except SelectorError:
        # A plan may have no version, which says nothing of its place.
        pass
    return ""


@lru_cache(maxsize=4096)
def runs(index: Index, device: str, arch: str) -> tuple[str, ...]:
    """The facts by which a device runs code for an arch; none where it does not, or where that is unknown."""
    return about_device(index, device, mask_or_none(index.scale("arch"), twin(index, arch)))


def about_device(index: Index, device: str, archs: int = -1) -> tuple[str, ...]:
    """The facts that say which archs a device runs, or that it runs one of some archs."""
    bit = index.scale("device").bit(device)
    return tuple(
        claim.id
        for binding in index.component("device").about("arch", bit)
        if binding.kind not in JOINS_NONE and binding.allowed & archs
        for claim in cited(index, binding, bit)
    )
