"""Limits of reading an image: bounds that no honest image reaches, and the amounts used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolmatrix.errors import Position, SubjectError

if TYPE_CHECKING:
    from toolmatrix.images.layers import Layer

MOST_ENTRIES = 1_000_000
"""Files, directories and links of all layers."""
LONGEST_NAME = 4096
"""Bytes of a path, PATH_MAX of Linux."""
DEEPEST = 256
"""Directories above a file."""
MOST_LAYERS = 1024
MOST_SEARCHED = 1000
"""Directories, files and patterns in the configuration of a loader; images have some ten."""
MOST_BYTES = 256 << 30
"""Bytes of all layers, unpacked."""
LARGEST_DOCUMENT = 16 << 20
"""Bytes of a manifest or a configuration."""
MOST_IN_MEMORY = 192 << 20
"""Bytes of file contents in memory; files of one layer beyond that are left out, and more in all layers refused."""
MOST_PADDING = 16 << 20
"""Bytes of zeros after the end of an archive; tar pads to a record, 10 KiB by default."""
# Deflate packs 1032 bytes into one at most and zstd many more; a small layer of zeros is honest at any ratio.
SUSPICIOUS_RATIO = 400
"""Unpacked bytes per packed byte, from which on a layer of this size is a bomb."""
SUSPICIOUS_SIZE = 1 << 30


class Budget:
    """Amounts that reading one subject has used so far; every method raises SubjectError beyond a bound."""

    __slots__ = ("entries", "in_memory", "subject", "unpacked")

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.entries = 0
        self.in_memory = 0
        self.unpacked = 0

    def enter(self, name: str) -> None:
        """Count one entry of an archive or directory."""
        self.entries += 1
        self._check()
        if len(name) > LONGEST_NAME or name.count("/") > DEEPEST:
            raise self.refusal(
                "a file name is too long or too deep",
                f"at most {LONGEST_NAME} bytes and {DEEPEST} directories",
                f"{len(name)} bytes, {name.count('/')} directories: `{name[:60]}...`",
            )

    def _check(self) -> None:
        if self.entries > MOST_ENTRIES:
            raise self.excess("too many files", f"{MOST_ENTRIES} entries in all layers")
        if self.unpacked > MOST_BYTES:
            raise self.excess("the layers are too large", f"{MOST_BYTES >> 30} GiB unpacked")
        if self.in_memory > MOST_IN_MEMORY:
            limit = f"{MOST_IN_MEMORY >> 20} MiB"
            raise self.excess("the files to keep from all layers are too large", limit)

    def unpack(self, count: int, total: int, packed: int) -> None:
        """Count unpacked bytes of a layer, `total` so far, from `packed` bytes."""
        self.unpacked += count
        self._check()
        if total > SUSPICIOUS_SIZE and total > SUSPICIOUS_RATIO * packed:
            raise self.refusal(
                "a layer unpacks to too many bytes",
                f"at most {SUSPICIOUS_RATIO} unpacked bytes per packed byte",
                f"{total} bytes from {packed}",
            )

    def reserve(self, size: int) -> bool:
        """Check whether so many more bytes fit in memory, and count them if so."""
        if self.in_memory + size > MOST_IN_MEMORY:
            return False
        self.in_memory += size
        return True

    def take(self, layer: Layer) -> None:
        """Count a layer and what is kept of it."""
        self.entries += layer.count
        self.in_memory += layer.held
        self.unpacked += layer.size
        self._check()

    def excess(self, what: str, limit: str) -> SubjectError:
        """The error for more than a limit."""
        return self.refusal(what, f"at most {limit}", "more than that")

    def refusal(self, what: str, expected: str, found: str, help: str = "") -> SubjectError:
        """The error for a problem in this subject."""
        return SubjectError(
            what, where=Position(self.subject), expected=expected, found=found, help=help
        )
