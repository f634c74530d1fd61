"""The device code of a plan, of every fat binary, bundle and package, and findings about its archs.

An image is code for one arch: a cubin (`sm_NN`), PTX (`compute_NN`), LTO or tile intermediate, or an AMD code object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from toolmatrix.compilation.model import Plan
from toolmatrix.factbase import lookups
from toolmatrix.finding import Finding
from toolmatrix.judging import stage_facts as facts
from toolmatrix.judging.stage_facts import PTX, SASS
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.finding import Incompatibility
    from toolmatrix.judging.stages import PlanContext


CUBIN, PTX_TEXT, LTO, TILE, OPTIX, OBJECT = "cubin", "ptx", "lto", "tile", "optix", "object"
DEVICE_LINKS = ("nvlink", "device-link", "linker-wrapper")
"""Kinds of stages that link device code."""

_FIELD = re.compile(r"(?:^|,)(kind|sm|profile|arch)=([^,]+)")
# What fatbinary calls the kinds of `--image3`, and what the archs of that kind are called.
_KINDS = {
    "elf": (CUBIN, SASS),
    "ptx": (PTX_TEXT, PTX),
    "nvvm": (LTO, "lto_"),
    "tileir": (TILE, SASS),
}
# Device code that is a file of its own, by kind of stage and suffix of the file (empty: whatever it is called).
_LOOSE = {
    ("ptxas", ""): (CUBIN, SASS),
    ("tileiras", ""): (CUBIN, SASS),
    ("cicc", "ptx"): (PTX_TEXT, PTX),
    ("cicc", "ltoir"): (LTO, "lto_"),
    ("cicc", "optixir"): (OPTIX, "optix_"),
    ("device-link", ""): (OBJECT, ""),
}
_CONTAINED = re.compile(r"\.(o|obj|a|lib)$", re.IGNORECASE)


class DeviceImage(Value):
    """Code for one arch; `arch` as the tool calls it, `lto_NN` for LTO intermediate."""

    kind: str
    arch: str


class DevicePart(Value):
    """Code that is loaded as one: a device runs it by any one of its images. `stage` is the one that puts it together.

    `relocatable` code still wants a device link, `linked` comes out of one, and what is `loose` is a file of its own.
    """

    plan: int
    stage: int
    images: tuple[DeviceImage, ...]
    relocatable: bool = False
    linked: bool = False
    loose: bool = False

    def archs(self, kind: str) -> tuple[str, ...]:
        """The archs of the images of a kind, in the order of the plan."""
        return tuple(image.arch for image in self.images if image.kind == kind)


class DeviceCode(Value):
    """The device code of a plan. A device runs it that runs every part.

    `linked` are the relocatable parts that a device link took, `outside` the objects that are linked and not made.
    """

    parts: tuple[DevicePart, ...]
    linked: tuple[DevicePart, ...] = ()
    outside: tuple[str, ...] = ()


def device_codes(plans: Sequence[Plan]) -> list[DeviceCode]:
    """The code of each plan; what an earlier plan put into an object belongs to a plan that links it, too."""
    known: dict[str, list[DevicePart]] = {}
    codes_by_plan = []
    for number, plan in enumerate(plans):
        compiled = list(_read_parts(number, plan)) or list(_loose_files(number, plan))
        own = [part for part in compiled if not part.linked]
        wanted = _objects(plan)
        imported = [part for path in wanted for part in known.get(path, ())]
        links = [part for part in compiled if part.linked]
        parts = [*own, *dict.fromkeys(imported)]
        codes_by_plan.append(
            DeviceCode(
                parts=_link_parts(parts, links),
                linked=tuple(part for part in parts if part.relocatable and links),
                outside=tuple(path for path in wanted if path not in known),
            )
        )
        # An object of one invocation may be an input of the next, as in a build that compiles and links apart.
        for part in own:
            for path in _final_files(plan, part.stage):
                known.setdefault(path, []).append(part)
    return codes_by_plan


def _link_parts(parts: Sequence[DevicePart], links: Sequence[DevicePart]) -> tuple[DevicePart, ...]:
    apart = tuple(part for part in parts if not part.relocatable)
    loose = [part for part in parts if part.relocatable]
    if not loose or not links:
        return tuple(parts)
    # If no cubin fits when it is loaded, the driver links again from the PTX of every object, and fails where one has
    # none; LTO intermediate is not used for that (NVIDIA, nvcc, separate compilation, implicit JIT linking).
    first, *rest = [[image for image in part.images if image.kind == PTX_TEXT] for part in loose]
    shared = [image for image in first if all(image in other for other in rest)]
    cubins = [image for link in links for image in link.images]
    left = [*cubins, *shared] or [image for part in loose for image in part.images]
    joined = links[-1].replace(images=tuple(dict.fromkeys(left)), linked=False)
    return (*apart, joined)


def _read_parts(number: int, plan: Plan) -> Iterator[DevicePart]:
    rdc = any("-fgpu-rdc" in stage.argv for stage in plan.stages)
    unlinked = rdc and not any(stage.kind in DEVICE_LINKS for stage in plan.stages)
    for stage in plan.stages:
        read = _READERS.get(stage.kind)
        images = tuple(read(stage.argv)) if read else ()
        linked = "-link" in stage.argv and stage.kind == "fatbinary"
        if images or linked:
            yield DevicePart(
                plan=number,
                stage=stage.id,
                images=images,
                relocatable="--device-c" in stage.argv or unlinked,
                linked=linked,
            )


def _images(argv: Iterable[str]) -> Iterator[DeviceImage]:
    # `--image3=kind=elf,sm=90a,file=F`, `--image=profile=sm_20@compute_20,file=F`, `--image=file=F,arch=gfx90a`.
    for word in argv:
        head, _, rest = word.partition("=")
        if head not in ("--image", "--image3"):
            continue
        fields: dict[str, str] = dict(_FIELD.findall(rest))
        name = fields.get("profile", fields.get("arch", "")).partition("@")[0]
        if name:
            yield _named(name)
        elif fields.get("kind") in _KINDS and "sm" in fields:
            kind, prefix = _KINDS[fields["kind"]]
            yield DeviceImage(kind=kind, arch=prefix + fields["sm"])


def _bundled(argv: Iterable[str]) -> Iterator[DeviceImage]:
    # `-targets=host-x86_64-unknown-linux,hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+`.
    for word in argv:
        head, _, rest = word.lstrip("-").partition("=")
        for target in rest.split(",") if head == "targets" else ():
            _, system, name = target.partition("amdhsa-")
            if system:
                yield _named(name.removeprefix("unknown").removeprefix("-"))


def _named(name: str) -> DeviceImage:
    for kind, prefix in _KINDS.values():
        if name.startswith(prefix):
            return DeviceImage(kind=kind, arch=name)
    return DeviceImage(kind=OBJECT, arch=name)


_READERS = {"fatbinary": _images, "package": _images, "bundle": _bundled}


def _loose_files(number: int, plan: Plan) -> Iterator[DevicePart]:
    """Device code that is a file of its own: what no stage reads but to check it."""
    consumed = {path for stage in plan.stages if stage.outputs for path in stage.inputs}
    images: dict[DeviceImage, int] = {}
    for stage in plan.stages:
        for path in stage.outputs:
            suffix = path.rpartition(".")[2]
            form = _LOOSE.get((stage.kind, "")) or _LOOSE.get((stage.kind, suffix))
            if form and stage.arch and path not in consumed:
                kind, prefix = form
                bare = stage.arch.removeprefix(PTX).removeprefix(SASS)
                arch = prefix + bare if prefix else stage.arch
                images[DeviceImage(kind=kind, arch=arch)] = stage.id
    if images:
        # Of several files any one is loaded.
        yield DevicePart(plan=number, stage=max(images.values()), images=tuple(images), loose=True)


def _objects(plan: Plan) -> dict[str, None]:
    outputs = {path for stage in plan.stages for path in stage.outputs}
    links = [stage for stage in plan.stages if stage.kind in ("link", "nvlink", "linker-wrapper")]
    read = (path for stage in links for path in stage.inputs)
    return dict.fromkeys(path for path in read if path not in outputs and _CONTAINED.search(path))


def _final_files(plan: Plan, stage: int) -> Iterator[str]:
    """The files that a stage's output ends in."""
    reachable = {stage}
    # In order one pass is enough: an edge leads from an earlier stage to a later one.
    for before, later in sorted(plan.edges):
        if before in reachable:
            reachable.add(later)
    for candidate in plan.stages:
        if candidate.id in reachable:
            yield from candidate.outputs


# How nvcc and clang say that they do not take an arch, as their logs have it.
_REFUSALS = tuple(
    map(
        re.compile,
        (
            r"Value '((?:sm|compute|lto)_\w+)' is not defined for option",
            r"[Uu]nsupported (?:CUDA |HIP )?gpu architecture:? '?([\w:+-]+)'?",
            r"invalid target ID '([^']+)'; format",
            r"cannot find ROCm device library for ([^;\s]+);",
        ),
    )
)
# nvcc words this warning in two ways: with the archs by name, and with a bound.
_GOING = re.compile(r"architectures are deprecated")
_GOING_BELOW = re.compile(r"architectures prior to '<[^>]*>_(\d+)'")
_NATIVE = re.compile(r"Cannot find valid GPU for '-arch=native'")
_DEFAULTS = {"cuda": "cuda-default-archs", "clang": "hip-default-archs"}
# Options of nvcc, hipcc and clang that name an arch, or a file that may have such an option.
_ASKS = (
    *("-arch", "-gencode", "-code", "--gpu-architecture", "--generate-code", "--gpu-code"),
    *("--offload-arch", "--cuda-gpu-arch", "--amdgpu-target", "-optf", "--options-file", "@"),
)


def findings(context: PlanContext, parts: Sequence[DevicePart]) -> Iterator[Finding]:
    """Everything about what the toolkit takes, what was asked of it, and what the parts cover that the plan makes."""
    yield from refused(context)
    yield from deprecated(context)
    yield from default_archs(context)
    yield from part_findings(context, parts)


def refused(context: PlanContext) -> Iterator[Finding]:
    """Archs that the driver says it does not take, and those of the plan that its toolkit refuses by the facts."""
    # The driver's own word comes first: its line is the better place, and it may refuse what no fact names.
    reported: set[str] = set()
    for diagnostic in context.plan.diagnostics:
        for match in filter(None, (pattern.search(diagnostic.text) for pattern in _REFUSALS)):
            if match[1] not in reported:
                reported.add(match[1])
                ground = _ground(context, match[1])
                yield _refusal(context, match[1], diagnostic.stage, diagnostic.line, ground)
    for arch, stage in context.archs.items():
        ground = _ground(context, arch)
        if ground is not None and arch not in reported:
            reported.add(arch)
            yield _refusal(context, arch, stage.id, 0, ground)


def _ground(context: PlanContext, arch: str) -> Incompatibility | None:
    # What LLVM takes is in no table.
    name = facts.twin(context.index, arch)
    if context.toolkit.component != "cuda" or name not in context.index.component("arch").versions:
        return None
    return context.toolkit.refusal("arch", name, {})


def _refusal(
    context: PlanContext, arch: str, stage: int | None, line: int, ground: Incompatibility | None
) -> Finding:
    name = facts.twin(context.index, arch)
    table = "arch-toolkits" if facts.arch_number(name) else "rocm-gfx-first"
    row, cells = lookups.row(context.index, f"{table}/{facts.sass(name)}")
    known = name in context.index.component("arch").versions
    standing = facts.standing(context.plan.version, cells) if known else "unknown"
    first, rocm = cells.get("first-ran", ""), cells.get("rocm", "")
    # A ROCm that supports it says more than that this one does not.
    variant = "rocm" if rocm and known else standing or ("known" if first else "")
    finding = Finding.of(
        "TM201",
        variant,
        arch=arch,
        standing=standing,
        first=first,
        last=cells.get("last-ran", ""),
        rocm=rocm,
        grounds=() if ground is None else (ground.replace(clashing=(name,)),),
        actual=arch,
        facts=(*(ground.facts if ground else ()), *row),
    )
    return context.locate(finding, stage, line)


def deprecated(context: PlanContext) -> Iterator[Finding]:
    """Archs of the plan that the toolkit is about to drop: by its own warning in the log, or in a capture of it."""
    going = {
        arch: ""
        for diagnostic in context.plan.diagnostics
        for arch in _deprecated_in(diagnostic.text, context.archs)
    }
    # After the log, whose lines stay first, and in place of it where a fact says the same with a source.
    for row, cells in context.toolkit.rows("cuda-deprecated-archs"):
        going |= {arch: row for arch in cells["deprecated"].split() if arch in context.archs}
    if going:
        arch = next(iter(going))
        finding = Finding.of(
            "TM202",
            archs=tuple(name for name in context.archs if name in going),
            expected="an arch that is not deprecated",
            actual=arch,
            facts=tuple(dict.fromkeys(row for row in going.values() if row)),
        )
        yield context.locate(finding, context.archs[arch].id)


def _deprecated_in(text: str, names: Iterable[str]) -> list[str]:
    below = _GOING_BELOW.search(text)
    if below:
        return [name for name in names if 0 < facts.arch_number(name) < int(below[1])]
    return [name for name in names if _GOING.search(text) and f"'{name}'" in text]


def default_archs(context: PlanContext) -> Iterator[Finding]:
    """The default of the toolkit as the only arch: said by the driver, or known and not asked for, or perhaps so."""
    native = [line for line in context.plan.diagnostics if _NATIVE.search(line.text)]
    if not context.archs:
        return
    default_facts = defaults(context)
    requested = context.command is not None and any(map(asks, context.command))
    if not native and (requested or not default_facts):
        return
    # A log shows what was planned and not always what was requested.
    how = "native" if native else "perhaps" if context.command is None else "silent"
    arch, stage = next(iter(context.archs.items()))
    finding = Finding.of(
        "TM203",
        how,
        severity="info" if how == "perhaps" else "warning",
        arch=facts.sass(facts.twin(context.index, arch)),
        how=how,
        expected="a requested arch",
        actual=arch,
        facts=tuple(default_facts),
    )
    yield context.locate(finding, stage.id, native[0].line if native else 0)


def defaults(context: PlanContext) -> list[str]:
    """The facts by which the only arch of a plan is what its toolkit takes when none is named."""
    only = {facts.sass(facts.twin(context.index, arch)) for arch in context.archs}
    table = _DEFAULTS[context.toolkit.component]
    rows = [(row, cells["default"]) for row, cells in context.toolkit.rows(table)]
    return [row for row, default in rows if {default} == only]


def asks(word: str) -> bool:
    """True if a word of a command line asks for an arch, or may."""
    return word.startswith(_ASKS) and not word.startswith(
        ("-arch=native", "--gpu-architecture=native")
    )


def part_findings(context: PlanContext, parts: Sequence[DevicePart]) -> Iterator[Finding]:
    """The archs that the parts of a plan cover together; those that several have in common are said of the first."""
    checked: set[object] = set()
    for part in parts:
        # Code that is a file of its own has the one arch that was asked for.
        if part.plan == context.number and not part.loose and part.images not in checked:
            checked.add(part.images)
            yield from _ptx(context, part)
            yield from _duplicates(context, part)
            yield from _redundant_cubins(context, part)


def _ptx(context: PlanContext, part: DevicePart) -> Iterator[Finding]:
    cubins, texts = (tuple(dict.fromkeys(part.archs(kind))) for kind in (CUBIN, PTX_TEXT))
    # What ends in `a` or `f` is for one device or family alone (NVIDIA, feature sets of compilation targets).
    plain = [arch for arch in texts if not arch.endswith(("a", "f"))]
    # Tile code brings an intermediate that plays the part of PTX.
    if not cubins or part.archs(TILE):
        return
    newest = max(cubins, key=facts.arch_number)
    finding: Finding | None = None
    if not texts:
        archs = tuple(sorted(cubins, key=facts.arch_number))
        finding = Finding.of(
            "TM204",
            archs=archs,
            phrases=_number(archs[-1]),
            expected="PTX",
            actual=" ".join(cubins),
        )
    elif not plain:
        finding = Finding.of(
            "TM206",
            archs=texts,
            phrases=_number(texts[-1]),
            expected="plain PTX",
            actual=" ".join(texts),
        )
    elif max(map(facts.arch_number, plain)) < facts.arch_number(newest):
        best = max(plain, key=facts.arch_number)
        finding = Finding.of(
            "TM205",
            ptx=best,
            cubin=newest,
            phrases=_number(newest),
            expected=f"PTX of {newest}",
            actual=best,
        )
    if finding:
        yield context.locate(finding, part.stage)
    if len(plain) > 1 and {facts.sass(arch) for arch in texts} >= set(cubins):
        every = Finding.of(
            "TM209",
            archs=tuple(sorted(plain, key=facts.arch_number)),
            expected=max(plain, key=facts.arch_number),
            actual=" ".join(plain),
        )
        yield context.locate(every, part.stage)


def _number(arch: str) -> dict[str, str]:
    # PTX of an `a` or `f` target is for one device or family alone (NVIDIA, feature sets of compilation targets).
    return {"number": arch.rpartition("_")[2].rstrip("af")}


def _duplicates(context: PlanContext, part: DevicePart) -> Iterator[Finding]:
    twice = [image for image in dict.fromkeys(part.images) if part.images.count(image) > 1]
    if twice:
        finding = Finding.of(
            "TM207",
            archs=tuple(image.arch for image in twice if image.kind in (CUBIN, PTX_TEXT, OBJECT)),
            expected="each arch once",
            actual=" ".join(image.arch for image in part.images),
        )
        yield context.locate(finding, part.stage)


def _redundant_cubins(context: PlanContext, part: DevicePart) -> Iterator[Finding]:
    pairs: list[tuple[str, str]] = []
    rows: list[str] = []
    cubins = sorted(dict.fromkeys(part.archs(CUBIN)), key=facts.arch_number)
    for position, arch in enumerate(cubins):
        attributes = lookups.attributes(context.index, "arch", arch)
        if attributes.get("kind") != "cubin":
            continue
        for other in cubins[:position]:
            row = facts.runs(context.index, attributes["capability"], other)
            if row and lookups.attributes(context.index, "arch", other).get("kind") == "cubin":
                pairs.append((arch, other))
                rows += row
                break
    if pairs:
        covered = ", ".join(f"`{arch}` (`{other}`)" for arch, other in pairs)
        finding = Finding.of(
            "TM208",
            pairs=tuple(pairs),
            phrases={"covered": covered},
            expected="one cubin for each major version",
            actual=" ".join(cubins),
            facts=tuple(dict.fromkeys(rows)),
        )
        yield context.locate(finding, part.stage)
