"""For which processor an image is: by its index, its configuration and its files; and files that are for another one.

A file for another processor is nothing wrong in itself: cross compilers, emulators, firmware and test data are such.
It is wrong where a program or library is taken without anybody asking which it is: on PATH, where the loader looks,
and among the extension modules of the default Python. There its witness is `DEFAULT_PLACE`, elsewhere `elf`.
"""

from __future__ import annotations

import re

from toolmatrix.inventory import library_path
from toolmatrix.inventory.model import DEFAULT_PLACE
from toolmatrix.inventory.record import NO_PROCESSORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolmatrix.inventory.elf import Elf
    from toolmatrix.inventory.record import Record, View

# What a processor runs beside its own: AMD64 manual volume 2, compatibility mode; Arm ARM, AArch32 at EL0.
_ALSO_RUN = {"amd64": "386", "arm64": "arm"}
# How extension modules are called, PEP 3149 and PEP 384.
_EXTENSION = re.compile(r".*\.(cpython-[^/]+|abi3)\.so")

FOREIGN_PROGRAM = "foreign-program"
"""The feature of a program for another processor that lies where nobody takes it unasked."""


def observe(view: View, record: Record, sites: Iterable[str]) -> None:
    """Put in the architecture three ways, and files of another than most; `sites` are where Python imports from."""
    image = view.image
    for platform, seen_by in ((image.indexed, "index"), (image.platform, "configuration")):
        record.feature("arch", "/".join(platform.split("/")[1:2]), seen_by, platform)
    count = sum(elf.machine == view.machine for elf in view.elves.values())
    record.feature("arch", view.machine, "elf", f"{count} of {len(view.elves)} ELF files")
    folders = {view.tree.real(one) for one in (*view.path(), *library_path.of(view).folders)}
    below = tuple(f"{site}/" for site in sites)
    for path, elf in view.elves.items():
        if elf.machine == view.machine or elf.machine in NO_PROCESSORS:
            continue
        is_taken = path.rpartition("/")[0] in folders or (
            path.startswith(below) and _EXTENSION.fullmatch(path) is not None
        )
        runs = _ALSO_RUN.get(view.machine) == elf.machine
        seen_by = DEFAULT_PLACE if is_taken and not runs else "elf"
        record.feature("foreign-arch", elf.machine, seen_by, path)
        if not is_taken and not runs and _is_program(view, path, elf):
            record.feature(FOREIGN_PROGRAM, elf.machine, seen_by, path)


def _is_program(view: View, path: str, elf: Elf) -> bool:
    """Whether a file can be started: it asks for a loader, or may be run and is no library."""
    entry = view.tree.entry(path)
    may_run = entry is not None and bool(entry.mode & 0o111)
    is_library = bool(elf.dynamic.soname) or ".so" in path.rpartition("/")[2]
    return bool(elf.dynamic.interpreter) or (may_run and not is_library)
