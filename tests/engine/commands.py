"""Command lines of this checkout's toolmatrix, run as they stand in the documentation."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from tests import matrix
from tests.engine import company
from tests.engine.docker import Engine

ROOT = Path(__file__).parent.parent.parent


def ran(
    engine: Engine, folder: Path, line: str, *, fails: bool = False, timeout: float = 1800
) -> str:
    """Run a command line; what it said, which must end as expected."""
    ended = tried(engine, folder, line, timeout)
    assert (ended.returncode != 0) is fails, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def tried(
    engine: Engine, folder: Path, line: str, timeout: float = 1800
) -> subprocess.CompletedProcess[str]:
    """Run a command line, wherever it ends; of a pipe each part may be one of this checkout's programs.

    A build that is not given flags of its own is told what it must know of this machine.
    """
    # What bases it made is kept for later runs, and the index of this run is shared with all of its tests.
    programs = {
        "toolmatrix": f"env XDG_CACHE_HOME={shlex.quote(matrix.folder())} {sys.executable} -m toolmatrix",
        "python": sys.executable,
    }
    parts = []
    if line.startswith("toolmatrix build ") and " -- " not in line:
        line = f"{line} -- {shlex.join(company.of_machine(engine, folder))}"
    for part in line.split(" | "):
        first, _, rest = part.partition(" ")
        parts.append(f"{programs.get(first, first)} {rest}")
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", " | ".join(parts)],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**engine.environment, "PYTHONPATH": str(ROOT)},
        timeout=timeout,
    )
