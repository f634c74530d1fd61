"""Contents that are kept as a layer passes: all of the few files that observers declare, and what an ELF file says."""

from __future__ import annotations

import re

from toolmatrix.images import streams
from toolmatrix.inventory import dynamic, elf, observe, offload, programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolmatrix.images.limits import Budget
    from toolmatrix.images.streams import Readable

# Archives of objects (ar), and what compilers keep beside them: device code is found in files that are not ELF as well.
_CODE = (b"!<arch>\n", offload.FATBIN, offload.BUNDLE, offload.COMPRESSED)

# Debug information takes most of the time of a file, and after the first ones it repeats what they reported.
_MOST_DEBUG = 200

# A group that captures; in one pattern made of many the groups of each would shift the numbers of the others.
_CAPTURING = re.compile(r"(?<!\\)\((?:\?P<\w+>|(?!\?))")


def _either(patterns: Iterable[str]) -> re.Pattern[str]:
    """One pattern whose `lastindex` counts from 1 which of several matched.

    Layers hold hundreds of thousands of names: one pattern rejects a name in microseconds, thirty in turn do not.
    """
    return re.compile("|".join(f"({_CAPTURING.sub('(?:', one)})" for one in patterns))


_DECLARED = tuple(dict.fromkeys(observe.READS))
_KEEP = _either(one.pattern for one in _DECLARED)
_TEXTS = programs.VERSION_TEXTS
_TELL = _either(name for name, _ in _TEXTS)


class Look:
    """Looks at the files of one subject; see `layer.read_layer`."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.debug = 0
        self.left_out: list[str] = []

    def __call__(self, path: str, size: int, stream: Readable) -> object:
        """The part of a file that is kept: its bytes, an Elf, what a pattern's `parse` made of it, or None."""
        kept = _KEEP.fullmatch(path)
        if kept is not None and kept.lastindex is not None:
            declared = _DECLARED[kept.lastindex - 1]
            if declared.parse is not None:
                return declared.parse(size, stream)
            return self._whole(path, min(size, declared.size), stream)
        # An ELF header has 52 bytes or 64; nothing shorter holds device code either.
        if size < 64:
            return None
        head = stream.read(64)
        if not head.startswith(dynamic.MAGIC):
            return elf.read_code(head, stream) if head.startswith(_CODE) else None
        named = _TELL.fullmatch(path.rpartition("/")[2])
        pattern = _TEXTS[named.lastindex - 1][1] if named is not None and named.lastindex else None
        found = elf.read(head, stream, size, pattern, debug=self.debug < _MOST_DEBUG)
        self.debug += bool(found.options)
        return found

    def _whole(self, path: str, size: int, stream: Readable) -> bytes | None:
        if not self.budget.can_hold(size):
            self.left_out.append(path)
            return None
        return streams.first(size, stream)
