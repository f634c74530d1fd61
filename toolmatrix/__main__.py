"""`python -m toolmatrix`."""

from __future__ import annotations

from toolmatrix.cli import script

if __name__ == "__main__":
    script()
