"""The machine that something has to run on: the fields of a request that describe it, as items of a manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolmatrix.factbase.index import Index
from toolmatrix.manifests.model import MACHINE, Item, Phrase
from toolmatrix.request import spelling
from toolmatrix.request.fields import Fields, settled
from toolmatrix.request.names import Names
from toolmatrix.request.read import codegen_accelerator, device_machines
from toolmatrix.solve.request import Ask
from toolmatrix.value import Value

DEVICE, DRIVER = "device", "driver"
_ROCM = "rocm"


class TargetMachine(Value):
    """A machine: `items` are what it has, `targets` those of the matrix that it may be; empty where any will do."""

    items: tuple[Item, ...] = ()
    targets: tuple[str, ...] = ()


ANY_MACHINE = TargetMachine()
"""No machine in particular."""


def target_machine(index: Index, fields: Fields) -> TargetMachine:
    """The machine that the fields of a request describe. Raises UsageError, NothingMatched."""
    fields = settled(fields, index)
    items = tuple(_items(Names(index), fields))
    devices = tuple(item.specifier for item in items if item.name == DEVICE)
    products = tuple(zip(devices, fields.device, strict=True))
    if fields.target or not devices:
        return TargetMachine(items=items, targets=fields.target)
    return TargetMachine(items=items, targets=device_targets(index, devices, products))


def device_targets(
    index: Index, devices: Sequence[str], products: Sequence[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """The targets that can have some devices, each of which may be named as a product."""
    names = Names(index)
    accelerator = codegen_accelerator(names, (), devices)
    machines, scale = device_machines(names, devices, products), names.scale("machine")
    return tuple(
        name
        for name, head in index.header["targets"].items()
        if machines & scale.bit(head["context"]["machine"])
        # ARM has no accelerator by default, and devices of CUDA may be there.
        and (accelerator == _ROCM) == (head["accelerator"] == _ROCM)
    )


def device_accelerator(index: Index, asks: Sequence[Ask]) -> str:
    """The accelerator of the devices and of the driver that a request names; empty where it names none."""
    devices = [ask.selector for ask in asks if ask.component == DEVICE]
    if devices:
        return codegen_accelerator(Names(index), (), devices)
    accelerators = (index.header["components"][ask.component]["accelerators"] for ask in asks)
    return next((name for names in accelerators for name in names), "")


def _items(names: Names, fields: Fields) -> Iterator[Item]:
    for word in fields.device:
        yield _item(DEVICE, spelling.device(names, word), "--device", word)
    if fields.distro:
        distro = spelling.distro(names, fields.distro)
        if not distro:
            raise spelling.no_distro(names, fields.distro)
        yield _item("distro", distro, "--distro", fields.distro)
    for word in fields.with_:
        for ask in names.asks(word, "with"):
            yield _item(ask.component, ask.selector, "--with", word)


def _item(component: str, selector: str, option: str, word: str) -> Item:
    text = Phrase(option, word).whole()
    return Item(kind=MACHINE, name=component, specifier=selector, text=text)
