"""Running a replay: side by side, measured, and with nothing left behind when it fails or is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.compilation.plans import plan, stage
from toolmatrix.compilation.cost import urgency
from toolmatrix.compilation.execute import run
from toolmatrix.compilation.replay import Replay, replay
from toolmatrix.errors import ToolMissing

ROOT = Path(__file__).parent.parent.parent


def ready(*texts: str, chained: bool = False) -> Replay:
    """A replay of some commands, each writing a file of its number, side by side or one after another."""
    stages = [
        stage(
            id, [f"w/{id - 1}"] if chained and id else [], [f"w/{id}"], text=f"{text}\n: > w/{id}"
        )
        for id, text in enumerate(texts)
    ]
    return replay(plan(*stages), work="w")


def alive(mark: str) -> list[int]:
    """Processes that have a word on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in words:
                found.append(int(entry.name))
    return found


def gone(mark: str) -> bool:
    """Whether no process has a word on its command line; one that was just ended may take a moment to go."""
    end = time.monotonic() + 30
    while alive(mark) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(mark)


def test_what_most_others_wait_for_is_most_urgent() -> None:
    made = replay(
        plan(stage(0, [], ["a"]), stage(1, [], ["b"]), stage(2, ["b"], ["c"]), stage(3, ["c"])),
        work="w",
    )
    assert urgency(made.steps) == {0: 1, 1: 3, 2: 2, 3: 1}
    assert urgency(made.steps, {0: 9.0, 3: 0.5}) == {0: 9.0, 1: 0.5, 2: 0.5, 3: 0.5}


@pytest.mark.process
def test_each_step_is_measured(tmp_path: Path) -> None:
    busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; printf 12345 > out; echo said >&2"
    made = replay(plan(stage(0, [], ["out"], text=busy)), work="w")
    done = run(made, jobs=3, cwd=tmp_path)
    (timing,) = done.timings
    assert timing.cpu > 0
    assert timing.wall > 0
    assert timing.peak > 0
    assert timing.size == 5
    assert timing.said == "said\n"
    assert done.jobs == 3
    assert done.cores >= 1
    assert done.wall >= timing.wall
    assert done.to_json()["timings"][0]["stage"] == 0


@pytest.mark.process
def test_steps_that_do_not_wait_for_each_other_run_at_once(tmp_path: Path) -> None:
    # Each waits until the other has begun: one after another they would never end.
    meet = "touch {0}; while [ ! -e {1} ]; do sleep 0.01; done"
    made = ready(meet.format("a", "b"), meet.format("b", "a"))
    done = run(made, jobs=2, cwd=tmp_path)
    assert [timing.stage for timing in done.timings] == [0, 1]


@pytest.mark.process
def test_no_more_run_at_once_than_asked(tmp_path: Path) -> None:
    alone = "mkdir lock; sleep 0.02; rmdir lock"
    run(ready(*[alone] * 5), jobs=1, cwd=tmp_path)


@pytest.mark.process
def test_the_environment_of_the_plan_is_set(tmp_path: Path) -> None:
    made = replay(
        plan(stage(0, [], ["out"], text='echo "$CICC_PATH" > out'), env={"CICC_PATH": "/opt/x y"}),
        work="w",
    )
    run(made, jobs=1, cwd=tmp_path)
    assert (tmp_path / "out").read_text() == "/opt/x y\n"


@pytest.mark.process
def test_a_failure_names_the_stage_shows_what_it_said_and_stops_the_others(tmp_path: Path) -> None:
    mark = f"61.{os.getpid()}"
    made = ready(
        f"sleep {mark}", "while [ ! -e go ]; do sleep 0.01; touch go; done; echo no >&2; exit 4"
    )
    with pytest.raises(ToolMissing) as error:
        run(made, jobs=2, cwd=tmp_path)
    assert error.value.what == "stage 2 (other) failed with exit code 4"
    assert error.value.found == "no"
    assert gone(mark)


@pytest.mark.process
def test_nothing_starts_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing):
        run(ready("exit 1", "touch late", chained=True), jobs=2, cwd=tmp_path)
    assert not (tmp_path / "late").exists()


@pytest.mark.process
def test_a_step_that_a_signal_ends_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing) as error:
        run(ready("kill -9 $$"), jobs=1, cwd=tmp_path)
    assert error.value.what == "stage 1 (other) was killed by signal 9"


@pytest.mark.process
def test_what_a_part_needs_is_looked_for_first(tmp_path: Path) -> None:
    whole = plan(stage(0, [], ["w/a"], kind="cicc"), stage(1, ["w/a"], ["out"], kind="ptxas"))
    with pytest.raises(ToolMissing) as error:
        run(replay(whole, work="w", since="ptxas"), jobs=1, cwd=tmp_path)
    assert error.value.what == "w/a is needed, but does not exist"
    run(replay(whole, work="w", until="cicc"), jobs=1, cwd=tmp_path)
    run(replay(whole, work="w", since="ptxas"), jobs=1, cwd=tmp_path)
    assert (tmp_path / "out").exists()


@pytest.mark.process
def test_an_interrupt_leaves_no_process_behind(tmp_path: Path) -> None:
    mark = f"62.{os.getpid()}"
    program = f"""
from pathlib import Path
from tests.compilation.test_execute import ready
from toolmatrix.compilation.execute import run
run(ready("touch on; sleep {mark} & sleep {mark}; wait"), jobs=1, cwd=Path({str(tmp_path)!r}))
"""
    child = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.PIPE)
    end = time.monotonic() + 60
    while len(alive(mark)) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    assert len(alive(mark)) == 2
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert said.rstrip().endswith(b"KeyboardInterrupt")
    assert gone(mark)
