"""One subject never stops the others: each has its seconds, its processor time and its memory, whatever the jobs."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.amount import sampled
from tests.images import images

pytestmark = pytest.mark.process

ROOT = Path(__file__).parent.parent.parent
RELEASE = b"ID=debian\nVERSION_ID=12\n"
GOOD = images.image({"etc/os-release": RELEASE})
EXPECTED = ("--expect", "distro==debian12")


def never_ends(path: Path) -> None:
    """A pipe that nobody writes to."""
    os.mkfifo(path)


def takes_long(path: Path) -> None:
    """An archive with a file of 64 GiB of zeros, of which the disk holds nothing."""
    info = tarfile.TarInfo("0/layer.tar")
    info.size = 64 << 30
    inside = tarfile.TarInfo("zeros")
    inside.size = info.size - 1024
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + inside.tobuf(tarfile.GNU_FORMAT))
    os.truncate(path, info.size + 1024)


def takes_memory(path: Path) -> None:
    """An archive with a list of packages that is all one field."""
    status = b"Package: a\nVersion: 1\nStatus: install ok installed\n" * 600_000
    made = images.image({"etc/os-release": RELEASE, "var/lib/dpkg/status": status[: 31 << 20]})
    path.write_bytes(images.tar(images.saved(made)))


def put(folder: Path, make: Callable[[Path], None]) -> None:
    """A list of three subjects, of which the middle one is odd."""
    for name in ("first.tar", "last.tar"):
        (folder / name).write_bytes(images.tar(images.saved(GOOD)))
    make(folder / "odd.tar")
    (folder / "list").write_text("archive:first.tar\narchive:odd.tar\narchive:last.tar\n")


def environment(cache: str) -> dict[str, str]:
    # On a machine with other work a line of progress comes after ten seconds.
    own = {"TOOLMATRIX_NO_PROGRESS": "1", "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache}
    return {**os.environ, **own}


def ran(folder: Path, cache: str, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """A run of the program; nothing of it may be left when it ends."""
    started = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "toolmatrix", "validate", *words, *EXPECTED],
        cwd=folder,
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **more,
    )
    out, err = started.communicate(timeout=300)
    with pytest.raises(ProcessLookupError):
        os.killpg(started.pid, 0)
    return subprocess.CompletedProcess(words, started.returncode, out, err)


@pytest.mark.parametrize("jobs", sampled(["2", "1"], every=2))
@pytest.mark.parametrize(
    ("make", "bound", "reason"),
    [
        (never_ends, ("--timeout", "3"), "it takes longer than 3 seconds"),
        (takes_long, ("--cpu-time", "1"), "it takes more than 1 second of processor time"),
        (
            takes_memory,
            ("--memory", "128"),
            "it takes more than 128 MiB of memory, or more than the system has",
        ),
    ],
)
def test_a_subject_that_takes_too_much_is_unknown_by_the_bound_and_the_others_are_judged(
    make: Callable[[Path], None],
    bound: tuple[str, str],
    reason: str,
    jobs: str,
    tmp_path: Path,
    cache: str,
) -> None:
    put(tmp_path, make)
    many = ran(tmp_path, cache, "--all", "list", "--json", "--jobs", jobs, *bound)
    assert many.stderr == ""
    found = json.loads(many.stdout)["subjects"]
    assert [(one["subject"], one["outcome"]) for one in found] == [
        ("archive:first.tar", "yes"),
        ("archive:odd.tar", "unknown"),
        ("archive:last.tar", "yes"),
    ]
    (told,) = found[1]["verdicts"]
    assert (told["code"], told["reason"]) == ("TM908", reason)
    assert told["help"] == f"raise the limit with `{bound[0]}`"
    assert many.returncode == 4


def test_a_single_subject_that_takes_too_long_is_unknown_as_well(
    tmp_path: Path, cache: str
) -> None:
    never_ends(tmp_path / "odd.tar")
    run = ran(tmp_path, cache, "archive:odd.tar", "--timeout", "2")
    assert (run.returncode, run.stderr) == (4, "")
    assert run.stdout == (
        "archive:odd.tar\n"
        "unknown  subject      it takes longer than 2 seconds  TM908\n"
        "1 checked, 1 unknown\n"
        "\n"
        "help: subject: raise the limit with `--timeout`\n"
    )


def test_what_the_process_holds_before_is_not_what_a_subject_takes(
    tmp_path: Path, cache: str
) -> None:
    (tmp_path / "good.tar").write_bytes(images.tar(images.saved(GOOD)))
    words = ["validate", "archive:good.tar", *EXPECTED, "--memory", "128"]
    script = f"""if True:
        import os, sys
        from toolmatrix.cli.main import main
        held = bytearray(256 << 20)
        sys.exit(main({words}, os.environ, sys.stdin, sys.stdout, sys.stderr))
    """
    run = subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        cwd=tmp_path,
        env=environment(cache),
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_what_the_system_does_not_give_is_a_bound_and_no_defect(tmp_path: Path, cache: str) -> None:
    takes_memory(tmp_path / "odd.tar")

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (128 << 20, 128 << 20))

    run = ran(tmp_path, cache, "archive:odd.tar", preexec_fn=little)
    assert run.returncode == 4
    assert "it takes more than 2048 MiB of memory, or more than the system has  TM908" in run.stdout
    seen = subprocess.run(
        [sys.executable, "-m", "toolmatrix", "inventory", "archive:odd.tar"],
        check=False,
        cwd=tmp_path,
        env=environment(cache),
        capture_output=True,
        text=True,
        preexec_fn=little,
    )
    assert (seen.returncode, seen.stdout) == (4, "")
    assert seen.stderr == (
        "error[TM908]: out of memory\n"
        "help: raise the limit (`ulimit -a`), or use a machine with more memory\n"
    )


@pytest.mark.long
def test_the_processor_time_of_workers_is_counted_where_they_were_started(
    tmp_path: Path, cache: str
) -> None:
    put(tmp_path, takes_long)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran(tmp_path, cache, "--all", "list", "--jobs", "2", "--cpu-time", "1")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert used >= 1


@pytest.mark.usefixtures("heeds_sighup")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("jobs", sampled(["2", "1"], every=2))
def test_a_run_that_is_ended_leaves_no_worker_and_no_word(
    number: int, jobs: str, tmp_path: Path, cache: str
) -> None:
    started = begun(tmp_path, cache, "--jobs", jobs)
    os.kill(started.pid, number)
    _, err = started.communicate(timeout=60)
    said = b"interrupted\n" if number == signal.SIGINT else b""
    assert (started.returncode, err) == (130 if number == signal.SIGINT else -number, said)
    end = time.monotonic() + 30
    while True:
        try:
            os.killpg(started.pid, 0)
        except ProcessLookupError:
            break
        assert time.monotonic() < end, "a worker is left"
        time.sleep(0.05)


def begun(folder: Path, cache: str, *words: str) -> subprocess.Popen[bytes]:
    """A run that has judged the first of three subjects, and waits for the second for ever."""
    put(folder, never_ends)
    started = subprocess.Popen(
        [
            *(sys.executable, "-m", "toolmatrix", "validate", "--all", "list"),
            *("--format", "jsonl", *words, *EXPECTED),
        ],
        cwd=folder,
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert started.stdout is not None
    assert b"first.tar" in started.stdout.readline()
    return started


def again(folder: Path, cache: str) -> None:
    """The second subject can be read now: each is judged, and the first was not judged again."""
    (folder / "odd.tar").unlink()
    (folder / "odd.tar").symlink_to("last.tar")
    run = ran(folder, cache, "--all", "list", "--resume", "kept", "--json")
    found = json.loads(run.stdout)["subjects"]
    assert [one["outcome"] for one in found] == ["yes", "yes", "yes"]
    told = [json.loads(line) for line in (folder / "kept").read_text().splitlines()]
    settled = [one["subject"] for one in told if one["outcome"] == "yes"]
    assert sorted(settled) == [f"archive:{name}.tar" for name in ("first", "last", "odd")]


@pytest.mark.long
@pytest.mark.usefixtures("heeds_sighup")
@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (
            signal.SIGKILL,
            "the system killed the process that read it, probably because memory ran out",
        ),
        (signal.SIGTERM, "the process that read it was terminated from outside, found SIGTERM"),
        (signal.SIGHUP, "the process that read it was terminated from outside, found SIGHUP"),
    ],
)
def test_a_worker_that_is_killed_costs_its_subject_alone_and_that_once(
    number: int, reason: str, tmp_path: Path, cache: str
) -> None:
    started = begun(tmp_path, cache, "--resume", "kept")
    os.kill(worker_of(started), number)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, err) == (4, b"")
    told = [json.loads(line) for line in out.splitlines()]
    assert [one["subject"] for one in told] == ["archive:odd.tar", "archive:last.tar"]
    (one,) = told[0]["verdicts"]
    assert (one["code"], one["reason"]) == ("TM908", reason)
    again(tmp_path, cache)


@pytest.mark.usefixtures("heeds_sighup")
def test_a_signal_while_workers_end_is_heeded_once_they_have(tmp_path: Path, cache: str) -> None:
    started = begun(tmp_path, cache, "--resume", "kept")
    worker = worker_of(started)
    stop(worker)
    os.kill(started.pid, signal.SIGINT)
    # It tells the worker to end, which that one hears when it runs again, and waits.
    while not is_pending(worker, signal.SIGTERM):
        time.sleep(0.05)
    os.kill(started.pid, signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        started.wait(1)
    os.kill(worker, signal.SIGCONT)
    _, err = started.communicate(timeout=60)
    assert (started.returncode, err) == (-signal.SIGTERM, b"")


def worker_of(started: subprocess.Popen[bytes]) -> int:
    """The number of its only child."""
    return int(Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text())


def stop(process: int) -> None:
    """Stop a process: before it has stopped a signal may still end it."""
    os.kill(process, signal.SIGSTOP)
    while Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)


def is_pending(process: int, number: signal.Signals) -> bool:
    """True where a process was sent a signal that it has not heard yet (proc(5), `ShdPnd`)."""
    status = Path(f"/proc/{process}/status").read_text()
    mask = next(line for line in status.splitlines() if line.startswith("ShdPnd:")).split()[1]
    return bool(int(mask, 16) >> (number - 1) & 1)


@pytest.mark.long
def test_a_file_of_results_is_of_one_run_at_a_time(tmp_path: Path, cache: str) -> None:
    started = begun(tmp_path, cache, "--resume", "kept")
    held = (tmp_path / "kept").read_bytes()
    second = ran(tmp_path, cache, "--all", "list", "--resume", "kept")
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr == (
        "error[TM905]: cannot save the results\n"
        "  --> kept\n"
        "  found: another run is writing to it\n"
        "help: wait for it, or give each run its own file: `toolmatrix merge` joins them\n"
    )
    assert (tmp_path / "kept").read_bytes() == held
    # Its workers end a moment later, and keep nobody out.
    started.kill()
    started.communicate()
    again(tmp_path, cache)


def test_standard_input_reaches_the_one_who_reads_it(tmp_path: Path, cache: str) -> None:
    (tmp_path / "image.tar").write_bytes(images.tar(images.saved(GOOD)))
    with (tmp_path / "image.tar").open("rb") as piped:
        run = ran(tmp_path, cache, "archive:-", stdin=piped)
    assert (run.returncode, run.stderr) == (0, "")
