"""`python -m toolmatrix`."""

from __future__ import annotations

import sys

from toolmatrix.cli import main_script

if __name__ == "__main__":
    sys.exit(main_script())
