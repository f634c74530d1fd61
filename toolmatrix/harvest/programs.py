"""Programs that harvesters ask: run with a list of arguments, bounded in time and in what they print."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence

from toolmatrix.errors import ToolMissing
from toolmatrix.stages.drivers.dry_run import end_group, start_group
from toolmatrix.value import Value

PATIENCE: float = 20
"""Seconds that one question may take."""
LONGEST = 4 << 20
"""Bytes that one answer may have."""


class ProgramOutput(Value):
    """How a program ended, and all that it printed."""

    status: int
    text: str


def ask(
    argv: Sequence[str],
    folder: str = "",
    env: Mapping[str, str] = os.environ,
    patience: float | None = None,
) -> ProgramOutput:
    """What a program says, stderr among it; it gets no input and speaks English.

    Raises ToolMissing where it cannot be started, takes longer than `patience` seconds or prints more than `LONGEST`.
    """
    patience = PATIENCE if patience is None else patience
    name = os.path.basename(argv[0])
    try:
        child = start_group(argv, {**env, "LC_ALL": "C"}, folder or None)
    except OSError as error:
        raise ToolMissing(
            f"`{name}` cannot be started", found=f"{argv[0]}: {error.strerror}"
        ) from None
    # Not `communicate`, which keeps whatever comes. A plain read knows no time, so a timer ends the program and all
    # that it started, any of which would hold the pipe open.
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
            # A program may close its output and go on.
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
