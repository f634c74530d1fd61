"""Small shared libraries around the parts of real ones that tell their version, see fixtures/library-versions.yaml."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from toolmatrix.inspection import dynamic

if TYPE_CHECKING:
    from collections.abc import Mapping

CAPTURED = yaml.safe_load(
    Path(__file__).parents[1].joinpath("fixtures/library-versions.yaml").read_text()
)["libraries"]
_MACHINES = {"amd64": 62, "arm64": 183}
# Where the tables of a made library lie in memory, behind every captured part.
_TABLES = 0x1000000


def captured(text: str) -> dict[str, Any]:
    """The captured library of a wheel whose name and platform hold a text."""
    (found,) = [one for one in CAPTURED if text in one["wheel"]]
    return dict(found)


def library(
    soname: str,
    machine: str = "amd64",
    symbol: str = "nothing",
    parts: Mapping[int, str] = {0x2000: "00"},
    **_: object,
) -> bytes:
    """A library that gives one symbol, the first of the parts, each of which lies at its own address."""
    pieces = {address: bytes.fromhex(text.replace(" ", "")) for address, text in parts.items()}
    start, size = next((address, len(data)) for address, data in pieces.items())
    strings = f"\0{soname}\0{symbol}\0".encode()
    symbols = bytes(24) + struct.pack("<IBBHQQ", len(soname) + 2, 18, 0, 1, start, size)
    hashes = struct.pack("<4IQII", 1, 1, 1, 0, 2**64 - 1, 1, dynamic.gnu_hash(symbol) | 1)
    count = len(pieces) + 2
    place = 64 + 56 * count
    tables: dict[int, int] = {}
    data = b""
    for tag, table in ((5, strings), (6, symbols), (0x6FFFFEF5, hashes)):
        tables[tag] = _TABLES + len(data)
        data += table.ljust((len(table) + 15) & ~15, b"\0")
    own = len(data)
    data += struct.pack("<2Q", 14, 1)
    data += b"".join(struct.pack("<2Q", tag, address) for tag, address in tables.items())
    data += bytes(16)
    headers = [struct.pack("<2I6Q", 1, 6, place, _TABLES, _TABLES, len(data), len(data), 16)]
    headers.append(struct.pack("<2I6Q", 2, 6, place + own, _TABLES + own, 0, len(data) - own, 0, 8))
    for address, piece in pieces.items():
        offset = place + len(data)
        headers.append(
            struct.pack("<2I6Q", 1, 5, offset, address, address, len(piece), len(piece), 16)
        )
        data += piece
    head = struct.pack(
        "<4s5B7xHHI3QI6H",
        *(
            b"\x7fELF",
            2,
            1,
            1,
            0,
            0,
            3,
            _MACHINES[machine],
            1,
            0,
            64,
            0,
            0,
            64,
            56,
            count,
            64,
            0,
            0,
        ),
    )
    return head + b"".join(headers) + data
