"""Processors that this process may use."""

from __future__ import annotations

import os


def processors() -> int:
    """How many there are, of which a container or a batch system may give a process fewer than the machine has."""
    # macOS has no affinity; `os.process_cpu_count` is there from Python 3.13 on.
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
