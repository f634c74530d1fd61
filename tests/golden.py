"""Whole outputs kept as files; `UPDATE_GOLDEN=1 ./tests/run -k golden` updates them, and git shows what moved."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
VARIABLE = "UPDATE_GOLDEN"


def assert_golden(name: str, text: str) -> None:
    """That `text` is the file `name` of tests/golden, byte for byte."""
    path = FOLDER / name
    if os.environ.get(VARIABLE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    assert path.is_file(), f"no golden file {name}; {VARIABLE}=1 writes it"
    held = path.read_bytes().decode()
    if text != held:
        moved = "\n".join(
            difflib.unified_diff(held.splitlines(), text.splitlines(), name, "now", lineterm="")
        )
        raise AssertionError(f"{moved}\n{VARIABLE}=1 ./tests/run -k golden writes it anew")
