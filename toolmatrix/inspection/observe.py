"""An inventory out of an image's files: what is kept of them as they pass, and every observer in turn.

A file for another processor is not wrong in itself: cross compilers, emulators, firmware and test data have such.
It is wrong where a program or library is taken by default: on PATH, where the loader looks,
and among the extension modules of the default Python. There its witness is `DEFAULT_PLACE`, elsewhere `elf`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from hashlib import sha256

from toolmatrix.images.image import ImageMetadata, instructions
from toolmatrix.images.layers import LEFT_OUT, Tree
from toolmatrix.images.limits import Budget
from toolmatrix.images.streams import Readable, first
from toolmatrix.inspection import (
    flags,
    loader,
    packages,
    programs,
    python,
    scripts,
    secrets,
    toolkits,
)
from toolmatrix.inspection.elf import BUNDLE, COMPRESSED, FATBIN, MAGIC, Elf, read_code
from toolmatrix.inspection.elf import read as read_elf
from toolmatrix.inspection.model import (
    DEFAULT_PLACE,
    FOREIGN_PROGRAM,
    LOCK,
    FilePattern,
    Inventory,
)
from toolmatrix.inspection.record import NO_PROCESSORS, Record, View, sort_sightings
from toolmatrix.processors import processor

OBSERVERS = (packages, toolkits, programs, python, flags, loader)
"""Those that read files, each with the patterns of them in its `READS`."""
_DECLARED = (declared for observer in OBSERVERS for declared in observer.READS)
# Two observers may read the same files.
READS = tuple(dict.fromkeys((FilePattern(re.escape(LOCK), 8 << 20), *_DECLARED)))
"""The patterns of all files that are read out of an image, one's own first."""
# How extension modules are called, PEP 3149 and PEP 384.
_EXTENSION = re.compile(r".*\.(cpython-[^/]+|abi3)\.so")
# Keys of an image's configuration and their features.
_SETTINGS = {
    "User": "user",
    "Entrypoint": "entrypoint",
    "Cmd": "cmd",
    "WorkingDir": "workdir",
    "StopSignal": "stop-signal",
}
# An image may have a thousand damaged files, too many to list.
_MOST_SKIPS = 20
# Archives of objects (ar), and what compilers keep beside them: device code is found in files that are not ELF as well.
_CODE = (b"!<arch>\n", FATBIN, BUNDLE, COMPRESSED)
# Debug information takes most of the time of a file, and after the first files it repeats itself.
_MOST_DEBUG = 200
# A group that captures; in one pattern made of many the groups of each would shift the numbers of the others.
_CAPTURING = re.compile(r"(?<!\\)\((?:\?P<\w+>|(?!\?))")


def _either(patterns: Iterable[str]) -> re.Pattern[str]:
    # `lastindex` of it counts from 1 which of several matched. Layers hold hundreds of thousands of names: one pattern
    # rejects a name in microseconds, thirty in turn do not.
    return re.compile("|".join(f"({_CAPTURING.sub('(?:', pattern)})" for pattern in patterns))


_KEEP = _either(declared.pattern for declared in READS)
_TELL = _either(name for name, _ in programs.VERSION_TEXTS)


class Look:
    """Looks at the files of one layer, independent of others; see `layer.read_layer`."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.debug = 0

    def __call__(self, path: str, size: int, stream: Readable) -> object:
        """The part of a file that is kept: its bytes, an Elf, what a pattern's `parse` made of it, or None."""
        match = _KEEP.fullmatch(path)
        if match is not None and match.lastindex is not None:
            declared = READS[match.lastindex - 1]
            if declared.parse is not None:
                return declared.parse(size, stream)
            size = min(size, declared.size)
            if self.budget.reserve(size):
                return first(size, stream)
            return LEFT_OUT
        head = first(64, stream)
        if scripts.is_script(path, size, head):
            return scripts.read(head, stream, self.budget)
        # An ELF header has 52 bytes or 64; nothing shorter holds device code either.
        if size < 64:
            return None
        if not head.startswith(MAGIC):
            return read_code(head, stream) if head.startswith(_CODE) else None
        program = _TELL.fullmatch(path.rpartition("/")[2])
        group = program.lastindex if program is not None else None
        pattern = programs.VERSION_TEXTS[group - 1][1] if group else None
        elf = read_elf(head, stream, size, pattern, debug=self.debug < _MOST_DEBUG)
        self.debug += bool(elf.options)
        return elf


class Glance(Look):
    """Looks at the files of a running machine: of compiled ones at the libraries of toolkits alone."""

    def __call__(self, path: str, size: int, stream: Readable) -> object:
        """The part of a file that is kept; None without reading it for most."""
        name = path.rpartition("/")[2]
        is_kept = _KEEP.fullmatch(path) or _TELL.fullmatch(name) or toolkits.component_of(name)
        return super().__call__(path, size, stream) if is_kept else None


def observe(
    image: ImageMetadata,
    tree: Tree,
    ask: Callable[[Inventory], Inventory] = lambda inventory: inventory,
) -> Inventory:
    """Everything in the files and the configuration of an image, with the answers of its programs to `ask`."""
    view = View(image, tree)
    record = Record(view)
    _configuration(view, record)
    # Programs look up their versions among the packages, and Python its directories by the program: the order matters,
    # also as the first witness counts as the better one.
    packages.observe(view, record)
    toolkits.observe(view, record)
    defaults = programs.observe(view, record)
    paths = python.import_paths(view, record, defaults.get("python"))
    python.observe_imports(view, record, paths)
    sites = [view.tree.real(folder.path) for folder in paths[0].folders] if paths else []
    _architecture(view, record, sites)
    flags.observe(view, record)
    sonames = loader.observe(view, record)
    scripts.observe(view, record, defaults)
    toolkits.record_linked(record, sonames)
    toolkits.record_taken(view, record, sonames, [site for site in sites if site])
    lock = view.contents.get(LOCK)
    if lock is not None:
        # The seal does not cover itself.
        digest = sha256(lock.partition(b"\n# seal ")[0] + b"\n").hexdigest()
        record.feature("lock", f"sha256:{digest}", "lock", LOCK)
    _unread(view, record)
    machine = f"linux/{view.machine}" if view.machine else ""
    inventory = Inventory(
        subject=image.subject,
        platform=image.platform or machine,
        digest=image.digest,
        components=sort_sightings(record.components),
        features=sort_sightings(record.features),
        sonames=sonames,
        history=image.history,
        skipped=tuple(record.skipped),
        lock=tree.text(LOCK),
    )
    # A program may print the value of a variable, so secrets are taken out of its answers as well.
    return secrets.hide_secrets(ask(inventory), instructions(image.config, with_layer=False))


def _configuration(view: View, record: Record) -> None:
    labels = view.settings.get("Labels")
    for name, value in (labels if isinstance(labels, dict) else {}).items():
        record.feature(f"label:{name}", str(value), "configuration", f"Labels {name}")
    for name, value in view.env.items():
        record.feature(f"env:{name}", value, "configuration", f"Env {name}")
    for key, name in _SETTINGS.items():
        setting = view.settings.get(key)
        values = setting if isinstance(setting, list) else [setting] if setting else []
        record.feature(name, " ".join(map(str, values)), "configuration", key)


def _architecture(view: View, record: Record, sites: Iterable[str | None]) -> None:
    image = view.image
    for platform, seen_by in ((image.indexed, "index"), (image.platform, "configuration")):
        record.feature("arch", "/".join(platform.split("/")[1:2]), seen_by, platform)
    counted = f"{len(view.own)} of {len(view.elves)} ELF files"
    record.feature("arch", view.machine, "elf", counted)
    folders = {*map(view.tree.real, (*view.path(), *loader.library_path(view).folders))}
    below = tuple(f"{site}/" for site in sites if site)
    for path, elf in view.elves.items():
        if path in view.own or elf.machine in NO_PROCESSORS:
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
    # Debian keeps what it cross-compiles against in /usr/aarch64-linux-gnu, and the C library may be run.
    if processor(elf.machine).multiarch in path.split("/"):
        return False
    # Libraries may be marked as programs, and a program that is linked statically asks for no loader.
    entry = view.tree.entry(path)
    may_run = entry is not None and bool(entry.mode & 0o111)
    is_library = bool(elf.dynamic.soname) or ".so" in path.rpartition("/")[2]
    return bool(elf.dynamic.interpreter) or (may_run and not is_library)


def _unread(view: View, record: Record) -> None:
    for path in view.left_out[:_MOST_SKIPS]:
        record.skip(path, "the files to keep are too large together")
    damaged = [(path, elf.damaged) for path, elf in view.elves.items() if elf.damaged]
    for path, why in damaged[:_MOST_SKIPS]:
        record.skip(path, why)
    partial = [path for path, elf in view.elves.items() if elf.partial]
    if partial:
        reason = "too large to read whole, so their options and debug information were skipped"
        record.skip("large files", f"{len(partial)}, such as /{partial[0]}: {reason}")
    if len(damaged) > _MOST_SKIPS:
        record.skip("damaged files", f"{len(damaged) - _MOST_SKIPS} more")
