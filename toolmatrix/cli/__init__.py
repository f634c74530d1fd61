"""The command line: a module or a function per command; the only place that reads argv, env and the terminal."""

from __future__ import annotations

import gc
import os
import sys

from toolmatrix.cli import interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

COLLECT_EVERY = 100_000
"""Objects made between two looks for garbage: an answer makes fewer, and leaves none that matters."""


def main_script() -> int:
    """Run the program on this process's arguments, environment and streams."""
    gc.set_threshold(COLLECT_EVERY)
    _open_closed()
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
    interrupts.heed()
    try:
        from toolmatrix import pack

        pack.use(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        code = main_script()
        interrupts.ignore()
    except BaseException as error:
        if not interrupts.are_behind(error):
            raise
        interrupts.end()
    pack.keep()
    if code <= 1:
        os._exit(code)
    interrupts.end_with(code)
    sys.exit(code)


def _open_closed() -> None:
    """Put a stream that fails in the place of each that was closed, before a file that is opened takes its number.

    What reads or writes it is told so, as by the tools of GNU (`stdopen` of gnulib); what does not is none the worse.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if number else os.O_WRONLY)
        if getattr(sys, name) is None:
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def _settle(stream: object) -> None:
    """Flush a stream; one whose reader is gone is pointed at nothing, so that the exit is quiet."""
    try:
        stream.flush()  # type: ignore[attr-defined]
    except (OSError, ValueError, AttributeError):
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[attr-defined]
        except (OSError, ValueError, AttributeError):
            return
