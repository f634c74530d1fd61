"""The device `host`: the devices and the driver of the machine that this runs on, in the place of their names."""

from __future__ import annotations

from toolmatrix.errors import NothingMatched
from toolmatrix.request.fields import HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.request.fields import Fields


def on_host(index: Index, fields: Fields, also: Sequence[str] = ()) -> Fields:
    """The fields with what this machine has, where they name it as a device; `also` are components to keep beside.

    What the fields name themselves stays. Raises NothingMatched for a machine without a device.
    """
    if HOST not in fields.device:
        return fields
    from toolmatrix.images.names import MACHINES
    from toolmatrix.inspection import host
    from toolmatrix.request.machine import DRIVER, device_targets
    from toolmatrix.request.names import Names
    from toolmatrix.request.spelling import device

    inventory, names = host.observe(host.HERE), Names(index)
    devices = [
        sighting.version
        for feature in ("device", "product")
        for sighting in inventory.features.get(feature, ())
    ]
    if not devices:
        raise NothingMatched(
            "this machine has no device that a driver shows",
            expected="a GPU that nvidia-smi or rocminfo lists",
            found="none",
            help="name the device that is meant, such as `--device 'RTX 3090'`",
        )
    named = {names.split(word)[0] for word in fields.with_}
    present = [
        f"{name}=={sightings[0].version}"
        for name, sightings in inventory.components.items()
        if name in (DRIVER, *also) and name not in named
    ]
    words = dict.fromkeys((*(word for word in fields.device if word != HOST), *devices))
    # A device may be in machines of several kinds, and this one is of one.
    here = [
        target
        for target in device_targets(index, [device(names, word) for word in words])
        if f"linux/{MACHINES[index.header['targets'][target]['context']['machine']]}"
        == inventory.platform
    ]
    return fields.replace(
        device=tuple(words),
        with_=(*fields.with_, *present),
        target=fields.target or tuple(here[:1]),
    )
