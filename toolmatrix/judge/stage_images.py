"""The device code of a plan: the images of every fat binary, bundle and package, and what they make together.

An image is code for one arch: a cubin (`sm_NN`), PTX (`compute_NN`), LTO or tile intermediate, or an AMD code object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from toolmatrix.judge.stage_facts import PTX, SASS
from toolmatrix.stages.model import Plan
from toolmatrix.value import Value

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


def codes(plans: Sequence[Plan]) -> list[DeviceCode]:
    """The code of each plan; what an earlier plan put into an object belongs to a plan that links it, too."""
    known: dict[str, list[DevicePart]] = {}
    found = []
    for number, plan in enumerate(plans):
        held = list(_contained(number, plan)) or list(_loose(number, plan))
        own = [part for part in held if not part.linked]
        wanted = _objects(plan)
        brought = [part for path in wanted for part in known.get(path, ())]
        links = [part for part in held if part.linked]
        parts = [*own, *dict.fromkeys(brought)]
        found.append(
            DeviceCode(
                parts=_joined(parts, links),
                linked=tuple(part for part in parts if part.relocatable and links),
                outside=tuple(path for path in wanted if path not in known),
            )
        )
        # An object of one invocation may be an input of the next, as in a build that compiles and links apart.
        for part in own:
            for path in _ends(plan, part.stage):
                known.setdefault(path, []).append(part)
    return found


def _joined(parts: Sequence[DevicePart], links: Sequence[DevicePart]) -> tuple[DevicePart, ...]:
    apart = tuple(part for part in parts if not part.relocatable)
    loose = [part for part in parts if part.relocatable]
    if not loose or not links:
        return tuple(parts)
    # If no cubin fits when it is loaded, the driver links anew from the PTX of every object, and fails where one has
    # none; LTO intermediate is not used for that (NVIDIA, nvcc, separate compilation, implicit JIT linking).
    first, *rest = [[image for image in part.images if image.kind == PTX_TEXT] for part in loose]
    shared = [image for image in first if all(image in other for other in rest)]
    cubins = [image for link in links for image in link.images]
    left = [*cubins, *shared] or [image for part in loose for image in part.images]
    joined = links[-1].replace(images=tuple(dict.fromkeys(left)), linked=False)
    return (*apart, joined)


def _contained(number: int, plan: Plan) -> Iterator[DevicePart]:
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


def _loose(number: int, plan: Plan) -> Iterator[DevicePart]:
    """Device code that is a file of its own: what no stage reads but to check it."""
    consumed = {path for stage in plan.stages if stage.outputs for path in stage.inputs}
    images: dict[DeviceImage, int] = {}
    for stage in plan.stages:
        for path in stage.outputs:
            suffix = path.rpartition(".")[2]
            made = _LOOSE.get((stage.kind, "")) or _LOOSE.get((stage.kind, suffix))
            if made and stage.arch and path not in consumed:
                kind, prefix = made
                bare = stage.arch.removeprefix(PTX).removeprefix(SASS)
                arch = prefix + bare if prefix else stage.arch
                images[DeviceImage(kind=kind, arch=arch)] = stage.id
    if images:
        # Of several files any one is loaded.
        yield DevicePart(plan=number, stage=max(images.values()), images=tuple(images), loose=True)


def _objects(plan: Plan) -> dict[str, None]:
    made = {path for stage in plan.stages for path in stage.outputs}
    links = [stage for stage in plan.stages if stage.kind in ("link", "nvlink", "linker-wrapper")]
    read = (path for stage in links for path in stage.inputs)
    return dict.fromkeys(path for path in read if path not in made and _CONTAINED.search(path))


def _ends(plan: Plan, stage: int) -> Iterator[str]:
    """The files that a stage's output ends in."""
    reached = {stage}
    # In order one pass is enough: an edge leads from an earlier stage to a later one.
    for before, later in sorted(plan.edges):
        if before in reached:
            reached.add(later)
    for one in plan.stages:
        if one.id in reached:
            yield from one.outputs
