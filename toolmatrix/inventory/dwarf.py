"""Debug information: who compiled a file with which options, and whether `char` has a sign.

DWARF 5, section 5.1: the encoding of a base type; section 3.1.1: the producer of a compilation unit.
"""

from __future__ import annotations

from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_UNITS = 4
# Entries of a unit that are looked through for `char`.
_MOST_ENTRIES = 600
# DW_ATE_signed_char and DW_ATE_unsigned_char.
_CHAR = {6: "signed", 8: "unsigned"}


def read(elf: Any) -> tuple[list[bytes], str]:
    """The producers of the first units of a file, and the sign of `char` if one of them tells."""
    info = elf.get_dwarf_info(relocate_dwarf_sections=True)
    producers: dict[bytes, None] = {}
    char = ""
    for unit in islice(info.iter_CUs(), _MOST_UNITS):
        top = unit.get_top_DIE()
        held = top.attributes.get("DW_AT_producer")
        if held is not None and isinstance(held.value, bytes):
            producers[held.value] = None
        char = char or _char(unit)
    return list(producers), char


def _char(unit: Any) -> str:
    for entry in islice(unit.iter_DIEs(), _MOST_ENTRIES):
        if entry.tag == "DW_TAG_base_type":
            name = entry.attributes.get("DW_AT_name")
            encoding = entry.attributes.get("DW_AT_encoding")
            if name is not None and name.value == b"char" and encoding is not None:
                return _CHAR.get(encoding.value, "")
    return ""
