"""This process: the processors that it may use, and work without the cyclic collector."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager


def processors() -> int:
    """How many there are, of which a container or a batch system may give a process fewer than the machine has."""
    # macOS has no affinity; `os.process_cpu_count` is there from Python 3.13 on.
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the collector from going through all that is made inside, again and again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
