"""The command line: one file per command; the only place that reads argv, env and the terminal."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

COLLECT_EVERY = 100_000
"""Objects made between two looks for garbage: an answer makes fewer, and leaves none that matters."""


def main_script() -> int:
    """Run the program on this process's arguments, environment and streams."""
    gc.set_threshold(COLLECT_EVERY)
    from toolmatrix.cli.main import main

    if (reconfigure := getattr(sys.stdout, "reconfigure", None)) is not None:
        reconfigure(errors="backslashreplace")
    code = main(sys.argv[1:], os.environ, sys.stdin, sys.stdout, sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        _settle(stream)
    return code


def script() -> NoReturn:
    """Run the program and end the process.

    Once there is an answer nothing is left to put away, and freeing all objects one by one is a tenth of a `resolve`.
    """
    from toolmatrix import pack

    pack.use(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = main_script()
    pack.keep()
    if code <= 1:
        os._exit(code)
    sys.exit(code)


def _settle(stream: object) -> None:
    """Flush a stream; one whose reader is gone is pointed at nothing, so that the exit is quiet."""
    try:
        stream.flush()  # type: ignore[attr-defined]
    except (OSError, ValueError, AttributeError):
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[attr-defined]
        except (OSError, ValueError, AttributeError):
            return
