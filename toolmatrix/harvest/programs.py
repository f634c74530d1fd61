"""Runs the programs that harvesters need, with limits for time and output."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence

from toolmatrix.compilation.drivers.dry_run import end_group, start_group
from toolmatrix.errors import ToolMissing
from toolmatrix.value import Value

PATIENCE: float = 20
"""Seconds that a program may run."""
LONGEST = 4 << 20
"""Bytes that a program may print."""


class ProgramOutput(Value):
    """The exit status of a program, and its output."""

    status: int
    text: str


def ask(
    argv: Sequence[str],
    folder: str = "",
    env: Mapping[str, str] = os.environ,
    patience: float | None = None,
) -> ProgramOutput:
    """The output of a program, stderr included; it gets no input and the C locale.

    Raises ToolMissing if it cannot be started, runs longer than `patience` seconds or prints more than `LONGEST`.
    """
    patience = PATIENCE if patience is None else patience
    name = os.path.basename(argv[0])
    try:
        child = start_group(argv, {**env, "LC_ALL": "C"}, folder or None)
    except OSError as error:
        raise ToolMissing(
            f"`{name}` cannot be started", found=f"{argv[0]}: {error.strerror}"
        ) from None
    # Not `communicate`, which has no limit of size. `read` has no timeout, so a timer ends the program and its
    # children, any of which would keep the pipe open.
    late = threading.Event()

    def end() -> None:
        late.set()
        end_group(child)

    timer = threading.Timer(patience, end)
    timer.start()
    with child:
        try:
            data = child.stdout.read(LONGEST + 1) if child.stdout else b""
            if len(data) > LONGEST:
                end_group(child)
            # A program may close its output and keep running.
            child.wait()
        except BaseException:
            end_group(child)
            raise
        finally:
            timer.cancel()
    if late.is_set() or len(data) > LONGEST:
        bound = f"{patience:g} seconds" if late.is_set() else f"{LONGEST >> 20} MiB"
        raise ToolMissing(f"`{name}` did not finish", expected=f"an answer within {bound}")
    return ProgramOutput(status=child.returncode, text=data.decode("utf-8", "replace"))
