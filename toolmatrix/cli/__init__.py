"""The command line: a module or a function per command; the only place that reads argv, env and the terminal."""

from __future__ import annotations

import gc
import os
import sys

from toolmatrix.cli import interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# Objects allocated between two garbage collections: an answer allocates fewer, and leaves little garbage.
COLLECT_EVERY = 100_000


def main_script() -> int:
    """Run the program on this process's arguments, environment and streams."""
    gc.set_threshold(COLLECT_EVERY)
    _open_closed()
    from toolmatrix.cli.main import main

    # A character that the terminal's encoding lacks is printed as an escape instead of failing.
    if (reconfigure := getattr(sys.stdout, "reconfigure", None)) is not None:
        reconfigure(errors="backslashreplace")
    code = main(sys.argv[1:], os.environ, sys.stdin, sys.stdout, sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        _settle(stream)
    return code


def script() -> NoReturn:
    """Run the program and end the process."""
    interrupts.heed()
    try:
        code = main_script()
        interrupts.ignore()
    except BaseException as error:
        if not interrupts.are_behind(error):
            raise
        interrupts.end()
    # After an answer there is nothing to clean up, and freeing all objects takes a tenth of a `resolve`.
    if code <= 1:
        os._exit(code)
    interrupts.end_with(code)
    sys.exit(code)


def _open_closed() -> None:
    # A file that is opened would get the descriptor of a closed stream, and with it what is printed. Open instead
    # a stream that fails, as GNU tools do (`stdopen` of gnulib): only code that uses it sees an error.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if number else os.O_WRONLY)
        if getattr(sys, name) is None:
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def _settle(stream: object) -> None:
    # Python flushes again at exit and would report a closed pipe, so redirect the stream to /dev/null.
    try:
        stream.flush()  # type: ignore[attr-defined]
    except (OSError, ValueError, AttributeError):
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[attr-defined]
        except (OSError, ValueError, AttributeError):
            return
