"""The fewest codegen archs that some devices run, by facts about what runs where; nothing is known of archs here.

Machine code runs on the devices that facts limit to it; PTX, which the driver compiles when it is first loaded, on
those that facts let it. Covers are minimal and exact: every smaller set leaves a device without code.
"""

from __future__ import annotations

from toolmatrix.solve.flags import PTX
from toolmatrix.solve.preferences import limits
from toolmatrix.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolmatrix.facts.index import Index

EXACT, COMPATIBLE, COMPILED = HOW = "exact", "compatible", "ptx"
"""How a device runs a cover: code made for it, machine code for another that it runs, or PTX."""


class Runs(NamedTuple):
    """The archs whose code a device runs, as masks: machine code with what is made for the device itself, and PTX."""

    device: str
    machine: int
    exact: int
    ptx: int

    def best(self, archs: int) -> tuple[int, str]:
        """The arch of a cover whose code the device runs, and how; 0 and nothing if none does."""
        for found, how in (
            (archs & self.exact, EXACT),
            (archs & self.machine, COMPATIBLE),
            (archs & self.ptx, COMPILED),
        ):
            if found:
                return highest(found), how
        return 0, ""


def runs(index: Index, device: str) -> Runs | None:
    """What a device runs; None where no fact says."""
    found = limits(index, "device", "arch", index.scale("device").bit(device))
    # -1 is every arch, those included that the matrix does not know: no fact limits the device.
    if found < 0:
        return None
    names = index.component("arch").versions
    ptx = sum(2 << place for place, name in enumerate(names) if name.startswith(PTX))
    # Bit 0 would be that there is no arch at all.
    machine = found & ~ptx & ~1
    # Code for the device itself ranks above what it runs besides.
    return Runs(device, machine, highest(machine), found & ptx)


def highest(mask: int) -> int:
    """The bit of the highest rank in a mask; 0 for none."""
    return 1 << mask.bit_length() - 1 if mask else 0


def exact(devices: Sequence[Runs], known: int) -> int | None:
    """The archs made for each device itself; None where one of them is not known."""
    found = 0
    for device in devices:
        if not device.exact & known:
            return None
        found |= device.exact
    return found


def fewest(devices: Sequence[Runs], known: int, *, machine: bool) -> int | None:
    """The fewest of the known archs that all devices run; None where one of them runs none.

    With `machine` each device that can have machine code gets some. Of equally many the archs are taken of which more
    devices run machine code, then code made for themselves, then those of higher rank.
    """
    options = []
    for device in devices:
        native, any_code = device.machine & known, (device.machine | device.ptx) & known
        if not any_code:
            return None
        # A device that no known arch is machine code for is not left out of a plan: PTX may serve it.
        options.append(native if machine and native else any_code)
    found = 0
    # Devices that share no arch have nothing to do with each other.
    for group in _apart(options):
        own = [devices[place] for place in group]
        wanted = [options[place] for place in group]
        # By growing counts: a smallest set that meets each of several sets has no quick way to it, and all that are as
        # small have to be compared. Devices of a group share archs, so that few are enough.
        count = 1
        while not (covers := [*_covers(wanted, count)]):
            count += 1
        found |= max(covers, key=lambda cover: _worth(own, cover))
    return found


def _apart(options: Sequence[int]) -> list[list[int]]:
    groups: list[tuple[int, list[int]]] = []
    for place, mask in enumerate(options):
        joined, places = mask, [place]
        rest = []
        # One device may join groups that had nothing in common until then.
        for other, held in groups:
            if other & joined:
                joined |= other
                places += held
            else:
                rest.append((other, held))
        groups = [*rest, (joined, places)]
    return [sorted(places) for _, places in groups]


def _covers(options: Sequence[int], count: int, chosen: int = 0, refused: int = 0) -> Iterator[int]:
    """Every set of at most so many archs more that has one of each option, once."""
    left = [mask & ~refused for mask in options if not mask & chosen]
    if not left:
        yield chosen
        return
    if not count:
        return
    # The device with the fewest ways decides; a way that was tried is not tried again below the others.
    ways = min(left, key=int.bit_count)
    while ways:
        bit = ways & -ways
        ways ^= bit
        yield from _covers(options, count - 1, chosen | bit, refused)
        refused |= bit


def _worth(devices: Sequence[Runs], cover: int) -> tuple[int, int, int]:
    how = [device.best(cover)[1] for device in devices]
    return len(how) - how.count(COMPILED), how.count(EXACT), cover
