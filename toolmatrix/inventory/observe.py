"""An inventory out of an image's files: every observer asked in turn, and what they leave open.

A file for another processor is nothing wrong in itself: cross compilers, emulators, firmware and test data are such.
It is wrong where a program or library is taken without anybody asking which it is: on PATH, where the loader looks,
and among the extension modules of the default Python. There its witness is `DEFAULT_PLACE`, elsewhere `elf`.
"""

from __future__ import annotations

import re
from hashlib import sha256

from toolmatrix.images.platforms import processor
from toolmatrix.inventory import flags, loader, packages, programs, python, secrets, toolkits
from toolmatrix.inventory.model import (
    DEFAULT_PLACE,
    FOREIGN_PROGRAM,
    LOCK,
    FilePattern,
    Inventory,
)
from toolmatrix.inventory.record import NO_PROCESSORS, Record, View, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolmatrix.images.image import ImageMetadata
    from toolmatrix.images.tree import Tree
    from toolmatrix.inventory.elf import Elf
    from toolmatrix.inventory.look import Look

OBSERVERS = (packages, toolkits, programs, python, flags, loader)
"""Those that read files, each with the patterns of them in its `READS`."""
READS = (
    FilePattern(re.escape(LOCK), 8 << 20),
    *(declared for observer in OBSERVERS for declared in observer.READS),
)
"""The patterns of all files that are read out of an image, one's own first."""
# How extension modules are called, PEP 3149 and PEP 384.
_EXTENSION = re.compile(r".*\.(cpython-[^/]+|abi3)\.so")
# Keys of an image's configuration and the features that they are.
_SETTINGS = {
    "User": "user",
    "Entrypoint": "entrypoint",
    "Cmd": "cmd",
    "WorkingDir": "workdir",
    "StopSignal": "stop-signal",
}
# An image may hold a thousand damaged files, which nobody reads one by one.
_MOST_LISTED = 20


def observe(image: ImageMetadata, tree: Tree, look: Look) -> Inventory:
    """Everything that the files and the configuration of an image tell."""
    view = View(image, tree)
    record = Record(view)
    _configuration(view, record)
    # Programs look up their versions among the packages, and Python its directories by the program: the order matters,
    # also as the first witness counts as the better one.
    packages.observe(view, record)
    toolkits.observe(view, record)
    defaults = programs.observe(view, record)
    sites = python.sites(view, defaults.get("python"))
    python.observe(view, record, sites)
    _architecture(view, record, sites)
    flags.observe(view, record)
    sonames = loader.observe(view, record)
    toolkits.linked(record, sonames)
    _lock(view, record)
    _unread(view, record, look)
    machine = f"linux/{view.machine}" if view.machine else ""
    found = Inventory(
        subject=image.subject,
        platform=image.platform or machine,
        digest=image.digest,
        components=listed(record.components),
        features=listed(record.features),
        sonames=sonames,
        history=image.history,
        skipped=tuple(record.skipped),
        lock=tree.text(LOCK),
    )
    return secrets.hidden(found, secrets.instructions(image.config))


def _configuration(view: View, record: Record) -> None:
    labels = view.settings.get("Labels")
    for name, value in (labels if isinstance(labels, dict) else {}).items():
        record.feature(f"label:{name}", str(value), "configuration", f"Labels {name}")
    for name, value in view.env.items():
        record.feature(f"env:{name}", value, "configuration", f"Env {name}")
    for key, name in _SETTINGS.items():
        held = view.settings.get(key)
        words = held if isinstance(held, list) else [held] if held else []
        record.feature(name, " ".join(map(str, words)), "configuration", key)


def _architecture(view: View, record: Record, sites: Iterable[str]) -> None:
    """Put in the architecture three ways, and files of another than most; `sites` are where Python imports from."""
    image = view.image
    for platform, seen_by in ((image.indexed, "index"), (image.platform, "configuration")):
        record.feature("arch", "/".join(platform.split("/")[1:2]), seen_by, platform)
    count = sum(elf.machine == view.machine for elf in view.elves.values())
    record.feature("arch", view.machine, "elf", f"{count} of {len(view.elves)} ELF files")
    folders = {view.tree.real(one) for one in (*view.path(), *loader.library_path(view).folders)}
    below = tuple(f"{site}/" for site in sites)
    for path, elf in view.elves.items():
        if elf.machine == view.machine or elf.machine in NO_PROCESSORS:
            continue
        is_taken = path.rpartition("/")[0] in folders or (
            path.startswith(below) and _EXTENSION.fullmatch(path) is not None
        )
        runs = processor(view.machine).also_runs == elf.machine
        seen_by = DEFAULT_PLACE if is_taken and not runs else "elf"
        record.feature("foreign-arch", elf.machine, seen_by, path)
        if not is_taken and not runs and _is_program(view, path, elf):
            record.feature(FOREIGN_PROGRAM, elf.machine, seen_by, path)


def _is_program(view: View, path: str, elf: Elf) -> bool:
    """Check whether a file can be started: it asks for a loader, or may be run and is no library."""
    entry = view.tree.entry(path)
    may_run = entry is not None and bool(entry.mode & 0o111)
    is_library = bool(elf.dynamic.soname) or ".so" in path.rpartition("/")[2]
    return bool(elf.dynamic.interpreter) or (may_run and not is_library)


def _lock(view: View, record: Record) -> None:
    """The digest of the lock inside the image, which is that of its text above the seal."""
    held = view.kept.get(LOCK)
    if held is not None:
        body = held.partition(b"\n# seal ")[0] + b"\n"
        record.feature("lock", f"sha256:{sha256(body).hexdigest()}", "lock", LOCK)


def _unread(view: View, record: Record, look: Look) -> None:
    """Skip files that were left out, or could not be read to their end."""
    for path in look.left_out[:_MOST_LISTED]:
        record.skip(path, "the files that are kept would be too large together")
    damaged = [(path, elf.damaged) for path, elf in view.elves.items() if elf.damaged]
    for path, why in damaged[:_MOST_LISTED]:
        record.skip(path, why)
    partial = [path for path, elf in view.elves.items() if elf.partial]
    if partial:
        reason = (
            "too large to be kept whole, so options and debug information in them were not read"
        )
        record.skip("large files", f"{len(partial)}, such as /{partial[0]}: {reason}")
    if len(damaged) > _MOST_LISTED:
        record.skip("damaged files", f"{len(damaged) - _MOST_LISTED} more")
