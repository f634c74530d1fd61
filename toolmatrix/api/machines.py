"""Machines in the place of devices: `host`, and files with what nvidia-smi or an environment report printed on one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolmatrix.api.caller import caller
from toolmatrix.errors import NothingMatched, UsageError
from toolmatrix.factbase.index import Index
from toolmatrix.request.fields import HOST, STDIN, Fields, is_machine
from toolmatrix.value import Value


class SeenMachine(Value):
    """What was seen of a machine: its devices, selectors by component, and its architecture as kernels call it."""

    devices: tuple[str, ...]
    selectors: Mapping[str, str]
    machine: str = ""


def on_machine(index: Index, fields: Fields, also: Sequence[str] = ()) -> Fields:
    """The fields with the devices and the driver of each machine that they name as a device.

    `also` are components to keep beside. What the fields name themselves is not replaced. Raises NothingMatched for a
    machine without a device, UsageError and ManifestError for a file that describes none.
    """
    if not any(map(is_machine, fields.device)):
        return fields
    from toolmatrix.request.machine import DRIVER, device_targets
    from toolmatrix.request.names import Names
    from toolmatrix.request.spelling import device

    names = Names(index)
    named = {names.split(word)[0] for word in fields.with_}
    devices: list[str] = []
    present: list[str] = []
    machines = set()
    for word in fields.device:
        if not is_machine(word):
            devices.append(word)
            continue
        machine = _this_machine() if word == HOST else _pasted_machine(word)
        devices += machine.devices
        machines.add(machine.machine)
        present += [
            f"{name}{selector}"
            for name, selector in machine.selectors.items()
            if name in (DRIVER, *also) and name not in named
        ]
    # A device may be in machines of several kinds, and each of these is of one.
    targets = [
        target
        for target in device_targets(index, [device(names, word) for word in devices])
        if index.header["targets"][target]["context"]["machine"] in machines
    ]
    return fields.replace(
        device=tuple(dict.fromkeys(devices)),
        with_=(*fields.with_, *present),
        target=fields.target or tuple(targets[:1]),
    )


def _this_machine() -> SeenMachine:
    from toolmatrix.inspection import host
    from toolmatrix.processors import processor

    inventory = host.observe(host.HERE)
    devices = [
        sighting.version
        for feature in ("device", "product")
        for sighting in inventory.features.get(feature, ())
    ]
    if not devices:
        raise _no_device(
            "this machine has no device that a driver shows",
            expected="a GPU that nvidia-smi or rocminfo lists",
            found="none",
        )
    return SeenMachine(
        devices=tuple(devices),
        selectors={
            name: f"=={sightings[0].version}" for name, sightings in inventory.components.items()
        },
        machine=processor(inventory.platform.removeprefix("linux/")).kernel,
    )


def _no_device(what: str, expected: str, found: str) -> NothingMatched:
    help = "name the device that is meant, such as `--device 'RTX 3090'`"
    return NothingMatched(what, expected=expected, found=found, help=help)


def _pasted_machine(word: str) -> SeenMachine:
    from toolmatrix.manifests import files, pastes, read
    from toolmatrix.manifests.model import MACHINE, PLATFORM, PYTHON
    from toolmatrix.processors import architecture, processor

    if word == STDIN:
        source = files.decode(caller().piped("a machine", files.LARGEST + 1), read.STDIN)
    else:
        path = caller().path(word)
        source = files.read_file(path, files.root_of(path))
    environments = pastes.read(source, files.Files("", None, source.root)).environments
    if len(environments) > 1:
        raise UsageError(
            f"{source.path} describes several machines",
            expected="what was printed on one",
            found=", ".join(environment.name for environment in environments),
        )
    items = [item for environment in environments for item in environment.items]
    devices = [item.specifier[2:] for item in items if item.name == "device"]
    if not devices:
        raise _no_device(
            f"{source.path} names no device",
            expected="what nvidia-smi, rocm-smi, rocminfo or an environment report prints",
            found="none of their lines with a GPU",
        )
    machines = [
        processor(architecture(item.name)).kernel for item in items if item.kind == PLATFORM
    ]
    # Tools that list devices alone do not say which machine they are in.
    return SeenMachine(
        devices=tuple(devices),
        selectors={item.name: item.specifier for item in items if item.kind in (MACHINE, PYTHON)},
        machine=next(iter(machines), ""),
    )
