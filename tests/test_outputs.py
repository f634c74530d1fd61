"""Files written beside their places: what a killed process left is removed by the next, and nothing else."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolmatrix.outputs import replace_file

# No process has such a number: Linux counts to 4194304 at most (proc(5), kernel/pid_max).
GONE = 4194305


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    left = [f"a.json.{GONE}.part", f"a.json.{os.getpid()}.part"]
    others = [f"a.json.{os.getppid()}.part", f"b.json.{GONE}.part", "a.json.x.part", "a.json.part"]
    for name in (*left, *others):
        (tmp_path / name).touch()
    os.mkfifo(tmp_path / f"a.json.{GONE + 1}.part")
    replace_file(str(tmp_path / "a.json"), "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["a.json", f"a.json.{GONE + 1}.part", *others]
    )


def test_what_is_being_written_stays(tmp_path: Path) -> None:
    part = tmp_path / f"a.json.{GONE}.part"
    with part.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        replace_file(str(tmp_path / "a.json"), "text")
    assert part.exists()


@pytest.mark.process
def test_a_kill_leaves_nothing_after_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    code = (
        "import itertools, sys; from toolmatrix.outputs import replace_file;"
        "replace_file(sys.argv[1], itertools.repeat('x' * 99))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], env={"PYTHONPATH": os.pathsep.join(sys.path)}
    )
    while not list(tmp_path.iterdir()):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    replace_file(str(path), "text")
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]
