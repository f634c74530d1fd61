"""Two hundred images side by side, killed in the middle and taken up again: none is lost, none is judged twice."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.images import images
from tests.judging.what_runs import numpy, python

pytestmark = pytest.mark.process

COUNT = 200
ROOT = Path(__file__).parent.parent.parent
RELEASE = b"ID=debian\nVERSION_ID=%s\n"
PROGRAMS = {f"usr/bin/{name}": (Path("/usr/bin") / name).read_bytes() for name in ("true", "env")}
EXPECTED = ("--expect", "distro==debian12", "--expect", "numpy==1.26.4")


def put(folder: Path) -> dict[str, str]:
    """Four images with programs of this machine in four forms, and what has to come of each."""
    made = {
        release + version: images.image(
            PROGRAMS,
            {"etc/os-release": RELEASE % release.encode(), **python(), **numpy(version)},
            pack=images.gzipped,
            media=f"{images.OCI}.layer.v1.tar+gzip",
        )
        for release, version in (("12", "1.26.4"), ("12", "2.0.0"), ("11", "1.26.4"))
    }
    good, numpy2, older = made.values()
    images.put(folder / "good", images.layout(good))
    (folder / "numpy.tar").write_bytes(images.tar(images.layout(numpy2)))
    (folder / "older.tar").write_bytes(images.tar(images.layout(older)))
    (folder / "cut.tar").write_bytes(images.tar(images.layout(good))[:20_000])
    return {"good": "yes", "numpy.tar": "no", "older.tar": "no", "cut.tar": "unknown"}


def tagged(folder: Path, kinds: Mapping[str, str]) -> dict[str, str]:
    """Many tags of few images, as links; the subject of each and its outcome."""
    wanted = {}
    for number in range(COUNT):
        kind = list(kinds)[number * 7 % len(kinds)]
        (folder / f"tag{number}").symlink_to(kind)
        wanted[f"tag{number}"] = kinds[kind]
    (folder / "images.txt").write_text("".join(f"{name}\n" for name in wanted))
    return wanted


IMPATIENT = (
    "-c",
    (
        "import runpy; from toolmatrix.cli import progress; progress.PATIENCE = 0;"
        "runpy.run_module('toolmatrix', run_name='__main__')"
    ),
)
"""Says from the start how far it is: what is left of the work may be done in less than half a second."""


def command(*words: str, program: Sequence[str] = ("-m", "toolmatrix")) -> list[str]:
    many = ("--all", "images.txt", "--jobs", "2", "--resume", "results.jsonl")
    return [sys.executable, *program, "validate", *many, *EXPECTED, *words]


def lines(folder: Path) -> list[bytes]:
    """What is kept so far, whole lines alone."""
    file = folder / "results.jsonl"
    return file.read_bytes().splitlines(keepends=True) if file.exists() else []


def alive(group: int) -> list[str]:
    """Processes of a group that have not ended."""
    listed = subprocess.run(
        ["ps", "-eo", "pgid=,stat=,args="], check=True, capture_output=True, text=True
    ).stdout
    rows = [line.split(maxsplit=2) for line in listed.splitlines()]
    return [row[2] for row in rows if row[0] == str(group) and not row[1].startswith("Z")]


def wait(until: float, what: str) -> None:
    assert time.monotonic() < until, what
    time.sleep(0.02)


def everything(screen: int) -> str:
    """All that was written to a terminal that nobody has open any longer: a single read gives what comes first."""
    read = []
    with contextlib.suppress(OSError), open(screen, "rb", buffering=0) as stream:
        while data := stream.read(1 << 16):
            read.append(data)
    return b"".join(read).decode()


def test_none_is_lost_and_none_comes_twice(tmp_path: Path, cache: str) -> None:
    wanted = tagged(tmp_path, put(tmp_path))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache, "TERM": "dumb"}
    patience = time.monotonic() + 300
    first = subprocess.Popen(
        command(), cwd=tmp_path, env=env, stderr=subprocess.PIPE, start_new_session=True
    )
    while len(lines(tmp_path)) < COUNT // 5:
        wait(patience, "too slow")
    first.send_signal(signal.SIGKILL)
    first.communicate()
    while left := alive(first.pid):
        wait(patience, f"still there: {left}")
    before = [line for line in lines(tmp_path) if line.endswith(b"\n")]
    assert COUNT // 5 <= len(before) < COUNT

    screen, terminal = pty.openpty()
    second = subprocess.Popen(
        command("--json", program=IMPATIENT),
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=terminal,
    )
    os.close(terminal)
    document = json.loads(second.communicate()[0])
    assert second.returncode == 1
    shown = everything(screen)

    assert {one["subject"]: one["outcome"] for one in document["subjects"]} == wanted
    assert document["summary"] == {"subjects": COUNT, **Counter(wanted.values())}
    kept = lines(tmp_path)
    assert kept[: len(before)] == before
    assert Counter(json.loads(line)["subject"] for line in kept) == Counter(
        dict.fromkeys(wanted, 1)
    )
    assert re.search(rf"validating \d+/{COUNT} subjects", shown), shown


@pytest.mark.long
@pytest.mark.usefixtures("heeds_sighup")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_at_any_moments_tells_each_once(
    number: signal.Signals, tmp_path: Path, cache: str
) -> None:
    wanted = tagged(tmp_path, put(tmp_path))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache}
    draw = random.Random(number)
    patience = time.monotonic() + 600
    for _ in range(12):
        running = subprocess.Popen(
            command("--store", "store", "--quiet", "--quiet"),
            cwd=tmp_path,
            env=env,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(draw.choice((0.5, 2)) * draw.random())
        running.send_signal(number)
        _, err = running.communicate()
        assert running.returncode in (1, 130, -number)
        # Before it hands over to the program the interpreter itself tells of Ctrl-C.
        assert err == b"" or (number == signal.SIGINT and b"TM900" not in err)
        while left := alive(running.pid):
            wait(patience, f"still there: {left}")
    last = subprocess.run(
        command("--store", "store", "--json"),
        cwd=tmp_path,
        env=env,
        capture_output=True,
        check=False,
    )
    found = json.loads(last.stdout)["subjects"]
    assert {one["subject"]: one["outcome"] for one in found} == wanted
    told = [json.loads(line)["subject"] for line in lines(tmp_path)]
    assert sorted(told) == sorted(wanted)
