"""The record of observers' sightings, and the view that they look at: an image with its files in one pass."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property

from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.layers import LEFT_OUT, Tree
from toolmatrix.inspection.dynamic import DEVICES
from toolmatrix.inspection.elf import Elf
from toolmatrix.inspection.model import WHICH, FilePattern, Seen, Skipped
from toolmatrix.inspection.rpm import Database

# The PATH of a container whose image sets none, as Docker and Podman have it.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NO_PROCESSORS = frozenset(("", *DEVICES.values()))
"""The architectures of files of device code."""
# Sightings of one value that are kept; a thousand files with the same value count as few.
_MOST_SIGHTINGS = 16


class View:
    """An image as observers see it: `env` of its configuration, `contents` of files, `elves` and `databases` by path.

    `left_out` are the paths of files that were too large to be kept.
    `machine` is the architecture of most ELF files, `own` are those that are made for it.
    """

    def __init__(self, image: ImageMetadata, tree: Tree) -> None:
        self.image = image
        self.tree = tree
        settings = image.config.get("config") or image.config.get("container_config")
        self.settings = settings if isinstance(settings, dict) else {}
        variables = self.settings.get("Env")
        entries = variables if isinstance(variables, list) else []
        pairs = [variable.partition("=") for variable in entries if isinstance(variable, str)]
        self.env = {name: value for name, _, value in pairs}
        self.contents: dict[str, bytes] = {}
        self.elves: dict[str, Elf] = {}
        self.databases: dict[str, Database] = {}
        self.layers: dict[str, str] = {}
        self.left_out: list[str] = []
        for path, entry in tree.files():
            if entry.content is None:
                continue
            if isinstance(entry.content, bytes):
                self.contents[path] = entry.content
            elif isinstance(entry.content, Elf):
                self.elves[path] = entry.content
            elif isinstance(entry.content, Database):
                self.databases[path] = entry.content
            elif entry.content == LEFT_OUT:
                self.left_out.append(path)
                continue
            self.layers[path] = entry.layer
        # Cross compilers and emulators have files for other processors; device code is for none.
        counts = Counter(elf.machine for elf in self.elves.values())
        machines = sorted(counts.keys() - NO_PROCESSORS)
        self.machine = max(machines, key=counts.__getitem__, default="")
        self.own = {path: elf for path, elf in self.elves.items() if elf.machine == self.machine}

    def files(self, declared: FilePattern) -> Iterator[tuple[re.Match[str], str]]:
        """The kept files of a pattern: the match of it on their paths, and their contents as text."""
        fits = re.compile(declared.pattern).fullmatch
        for path, data in self.contents.items():
            match = fits(path)
            if match:
                yield match, data.decode("utf-8", "replace")

    def folders(self, variable: str, default: str = "") -> list[str]:
        """The absolute directories of a variable such as PATH, as paths of the tree."""
        words = (self.env.get(variable) or default).split(":")
        return [folder.strip("/") for folder in words if folder.startswith("/")]

    def path(self) -> list[str]:
        """The directories of PATH."""
        return self.folders("PATH", _PATH)

    @cached_property
    def runnable(self) -> frozenset[str]:
        """The names of the programs that PATH leads to."""
        folders = filter(None, dict.fromkeys(map(self.tree.real, self.path())))
        paths = (
            (name, f"{folder}/{name}") for folder in folders for name in self.tree.names(folder)
        )
        entries = ((name, self.tree.entry(path)) for name, path in paths)
        return frozenset(name for name, entry in entries if entry is not None and entry.is_program)


class Record:
    """Sightings in the making; earlier ones are the better witnesses, and defaults come before others."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.components: dict[str, dict[Seen, None]] = {}
        self.features: dict[str, dict[Seen, None]] = {}
        self.skipped: dict[Skipped, None] = {}

    def component(
        self, name: str, version: str, seen_by: str, where: str, *, default: bool = False
    ) -> None:
        """Record a version of a component; nothing where there is none."""
        seen = Seen(version=version, seen_by=seen_by, where=where, default=default)
        self._add(self.components.setdefault(name, {}), seen)

    def feature(self, name: str, value: str, seen_by: str, where: str) -> None:
        """Record the value of a feature; nothing where there is none."""
        seen = Seen(version=value, seen_by=seen_by, where=where)
        self._add(self.features.setdefault(name, {}), seen)

    def hide(self, names: Iterable[str], reason: str) -> None:
        """Record that it is not known which version of some components a user gets."""
        for name in names:
            sightings = self.components.get(name, {})
            self.components[name] = {seen.replace(default=False): None for seen in sightings}
            self.skip(f"{WHICH}{name}", reason)

    def skip(self, what: str, reason: str) -> None:
        """Record what could not be seen."""
        self.skipped[Skipped(what=what, reason=reason)] = None

    def _add(self, sightings: dict[Seen, None], seen: Seen) -> None:
        key = (seen.version, seen.seen_by)
        alike = sum((known.version, known.seen_by) == key for known in sightings)
        if seen.version and alike < _MOST_SIGHTINGS:
            sightings[seen.replace(layer=self.view.layers.get(seen.where, ""))] = None


def sort_sightings(sightings: dict[str, dict[Seen, None]]) -> dict[str, tuple[Seen, ...]]:
    """Sightings by name, defaults first, else in the order of recording."""
    return {
        name: tuple(sorted(group, key=lambda sighting: not sighting.default))
        for name, group in sorted(sightings.items())
        if group
    }
