"""Ctrl-C at any time: one word, exit code 130, and never a traceback."""

from __future__ import annotations

# `signal` imports `enum`, which takes longer than all else here; this is the part that is compiled in.
import _signal  # type: ignore[import-not-found]
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# As shells report a program that SIGINT ended.
CODE = 130
INTERRUPTED = "interrupted\n"
# Seconds until an interrupt that could not be raised is repeated: by then the callback has returned.
_SOON = 0.001


def heed() -> None:
    """Repeat an interrupt that arrives where nothing can be raised, as in a callback of an import."""
    # It stays a KeyboardInterrupt, so that the command cleans up.
    sys.unraisablehook = _again


def _again(unraisable: sys.UnraisableHookArgs) -> None:
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _signal.signal(_signal.SIGALRM, _signal.default_int_handler)
        _signal.setitimer(_signal.ITIMER_REAL, _SOON)
    else:
        sys.__unraisablehook__(unraisable)


def are_behind(error: BaseException | None) -> bool:
    """True for an interrupt, or what Python made of one."""
    # Up to Python 3.11 an error in `__set_name__` comes out as a RuntimeError with the error behind it.
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def ignore() -> None:
    """Ignore interrupts once there is an answer."""
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


def end() -> NoReturn:
    """End an interrupted process that has nothing to clean up."""
    ignore()
    try:
        os.write(2, INTERRUPTED.encode())
    finally:
        os._exit(CODE)


def end_with(code: int) -> None:
    """Let an interrupt end the process with the exit code that it ends with anyway."""
    # After an interrupt in code run by `exec`, as by `namedtuple`, Python kills itself at exit by the
    # signal, unless other code was run by `exec` since.
    exec("")  # noqa: S102 - nothing
    _signal.signal(_signal.SIGINT, lambda *_: os._exit(code))
