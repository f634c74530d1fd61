"""Defaults where a request is silent, and the targets that a codegen arch or device means."""

from __future__ import annotations

from toolmatrix.solve.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolmatrix.request.names import Names
    from toolmatrix.solve.request import Ask


def target(asks: Sequence[Ask], names: Names, codegen: str) -> tuple[str, ...]:
    """x86, unless all that is asked for computes on one accelerator that another target has, or the device does."""
    targets = names.index.header["targets"]
    first = next(iter(targets))
    wanted = [found for ask in asks if (found := _accelerators(ask, names))]
    # Where components have nothing in common there is no answer on any target: the first is as good to say why.
    shared = {codegen} if codegen else set.intersection(*wanted) if wanted else set()
    return (next((name for name, part in targets.items() if part["accelerator"] in shared), first),)


def accelerator(
    target: str, asks: Sequence[Ask], from_: str, names: Names, codegen: str = ""
) -> str:
    """The target's own accelerator, where something asked for has it; ROCm always on the target made for it.

    A build that is named brings its own, and a device asks for the one that it is.
    """
    if codegen and _takes(names, target, codegen):
        return codegen
    own: str = names.index.header["targets"][target]["accelerator"]
    for ask in asks:
        if names.components[ask.component]["variant_of"]:
            return _of_builds(ask, own, names)
    # Who names a target made for ROCm wants it, while on the others most things run without an accelerator.
    if own in ("none", "rocm") or any(_computes(ask, own, from_, names) for ask in asks):
        return own
    return "none"


def _takes(names: Names, target: str, accelerator: str) -> bool:
    """True if a target can have an accelerator."""
    bit = names.scale("target").bit(target)
    return all(
        binding.allowed & names.scale("accelerator").bit(accelerator)
        for binding in names.index.component("target").bindings
        if binding.component == "accelerator" and binding.mask & bit
    )


def _of_builds(ask: Ask, own: str, names: Names) -> str:
    """The accelerator of builds: the target's own if one computes on it, else that of the first that has one."""
    named = _accelerators(ask, names)
    first = next((name for name in names.scale("accelerator").versions if name in named), "none")
    return own if own in named else first


def _accelerators(ask: Ask, names: Names) -> set[str]:
    """The accelerators that something asked for computes on; of builds their own."""
    part = names.components[ask.component]
    if not part["variant_of"]:
        return set(part["accelerators"])
    scale = names.scale("accelerator")
    wanted = names.scale(ask.component).select(ask.selector)
    can = 0
    for binding in names.index.component(ask.component).bindings:
        if binding.component == "accelerator" and binding.mask & wanted:
            # That a build also runs without its accelerator is no reason to ask for none.
            can |= binding.allowed & ~scale.bit("none")
    return {*scale.named(can)} - {"none"}


def codegen(names: Names, archs: Sequence[str], devices: Sequence[str]) -> str:
    """The accelerator of codegen archs and devices, as the toolkit has it that makes their code; empty if not one."""
    found = set()
    for arch in archs:
        found |= _toolkits(names, names.scale("arch").bit(arch))
    for device in devices:
        part = names.index.component("device")
        bit = names.scale("device").bit(device)
        for binding in part.bindings:
            if binding.kind == "limits" and binding.component == "arch" and binding.mask & bit:
                found |= _toolkits(names, binding.allowed)
    return found.pop() if len(found) == 1 else ""


def _toolkits(names: Names, archs: int) -> set[str]:
    found: set[str] = set()
    for binding in names.index.component("arch").bindings:
        if binding.kind == "requires" and binding.mask & archs:
            found |= set(names.components[binding.component]["accelerators"])
    return found


def _computes(ask: Ask, accelerator: str, from_: str, names: Names) -> bool:
    """True if some release asked for computes on an accelerator: a wheel may not, where its source does."""
    if accelerator not in names.components[ask.component]["accelerators"]:
        return False
    return _admits(ask, "accelerator", accelerator, names, given={"from": from_})


def from_(asks: Sequence[Ask], names: Names) -> str:
    """Source, but for what there is as a wheel alone, and for a build that is named."""
    if any(names.components[ask.component]["variant_of"] for ask in asks):
        return "wheel"
    frameworks = [ask for ask in asks if names.components[ask.component]["framework"]]
    built = all(_admits(ask, "from", "source", names, given={}) for ask in frameworks)
    return "source" if built else "wheel"


def _admits(
    ask: Ask, component: str, release: str, names: Names, *, given: Mapping[str, str]
) -> bool:
    """True if some release asked for goes with a release of another component, as its own facts say."""
    left = names.scale(ask.component).select(ask.selector)
    wanted = names.scale(component).bit(release)
    for binding in names.index.component(ask.component).bindings:
        holds = all(
            name in given and mask & names.scale(name).bit(given[name])
            for name, mask in binding.conditions.items()
        )
        if binding.component == component and holds and not binding.allowed & wanted:
            left &= ~binding.mask
    return bool(left)


def apart(request: Request, names: Names) -> tuple[tuple[str, str], ...]:
    """Of several targets, those that cannot have a codegen arch or device which another one can."""
    from toolmatrix.solve.resolve import possible

    # Solving with the target alone asks the facts, which know more of a device than its accelerator.
    found = []
    asked: list[tuple[str, tuple[str, ...], tuple[str, ...]]]
    asked = [(name, (name,), ()) for name in request.archs]
    asked += [(name, (), (name,)) for name in request.devices]
    for name, archs, devices in asked:
        without = []
        for target in request.targets:
            asks = tuple(
                ask
                for ask in request.asks
                if ask.target == target and names.components[ask.component]["given"]
            )
            alone = Request(asks=asks, targets=(target,), archs=archs, devices=devices)
            if possible(names.index, alone) is None:
                without.append((target, name))
        if len(without) < len(request.targets):
            found += without
    return tuple(found)
