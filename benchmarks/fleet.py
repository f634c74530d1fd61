"""What a thousand archives of a few bases cost on the pool of one machine and on Dask, and fifty tags of a registry.

    python benchmarks/fleet.py [--archives N] [--tags N]

It needs Debian's docker-registry, apache2-utils and openssl, and `pip install 'toolmatrix[dask]'`; it runs offline.
Wall seconds, processor seconds and bytes that the processes read (rchar of /proc/PID/io) are of one run each.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from resolve import machine, tell

from tests.images import images, registries
from tests.judging.test_executors import cluster

ROOT = Path(__file__).resolve().parent.parent
BASES = 5
EXPECTED = ("--expect", "distro==debian12", "--expect", "numpy==1.26.4")
GZIP = f"{images.OCI}.layer.v1.tar+gzip"
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
# Bytes of programs in a base, and in what an image has of its own.
BASE, OWN = 3 << 20, 1 << 19


class Cost(NamedTuple):
    """What a run took, and how it ended."""

    wall: float
    processor: float
    read: int
    code: int

    def __str__(self) -> str:
        size = f"{self.read / 1e6:,.0f}"
        return f"{self.wall:8.1f} {self.processor:8.1f} {size:>10}  exit {self.code}"


def taken(roots: Iterable[int]) -> tuple[float, int]:
    """Processor seconds and bytes read by some processes, those below them and those that they have waited for."""
    parents, found = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        name = stat.parent.name
        with contextlib.suppress(OSError):
            # The name of a program, in brackets, may hold anything.
            numbers = stat.read_text().rpartition(") ")[2].split()
            read = (stat.parent / "io").read_text().split()[1]
            parents[name] = numbers[1]
            found[name] = sum(map(int, numbers[11:15])) / os.sysconf("SC_CLK_TCK"), int(read)
    ours = {*map(str, roots)}
    while more := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= more
    pairs = [pair for name, pair in found.items() if name in ours]
    return sum(cpu for cpu, _ in pairs), sum(read for _, read in pairs)


class Fleet:
    """A folder of images, and a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "DOCKER_CONFIG": str(folder),
        }

    def command(self, listed: str, *words: str) -> list[str]:
        """Our command over a list."""
        form = ("--format", "jsonl", "--output", "out.jsonl", "--no-progress")
        here = [sys.executable, "-m", "toolmatrix", "validate", "--all", listed]
        return [*here, *EXPECTED, *form, *words]

    def run(self, listed: str, *words: str, beside: Sequence[int] = ()) -> Cost:
        """One run, and what it and the processes `beside` took."""
        before = taken(beside)
        start = time.monotonic()
        process = subprocess.Popen(
            self.command(listed, *words), cwd=self.folder, env=self.env, stderr=subprocess.DEVNULL
        )
        # Until it is waited for its numbers are there, with those of all that it has waited for itself.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        wall = time.monotonic() - start
        after = taken([process.pid, *beside])
        code = process.wait()
        return Cost(wall, after[0] - before[0], after[1] - before[1], code)


@cache
def libraries(size: int, skip: int) -> dict[str, bytes]:
    """Libraries of this machine, of so many bytes together."""
    found: dict[str, bytes] = {}
    for path in sorted(LIBRARIES.glob("lib*.so.*"))[skip:]:
        if path.is_file() and not path.is_symlink() and path.stat().st_size < size:
            found[f"usr/lib/{path.name}"] = path.read_bytes()
        if sum(map(len, found.values())) > size:
            return found
    return found


packed = cache(images.gzipped)
"""Bases are packed once."""


def made(number: int) -> images.Made:
    """One image of the fleet: a base, which others have too, and a layer of its own."""
    base = number % BASES
    release = b"ID=debian\nVERSION_ID=12\n"
    numpy = f"Name: numpy\nVersion: {'1.26.4' if number % 3 else '2.0.0'}\n".encode()
    own = {
        "usr/lib/python3/dist-packages/numpy-1.dist-info/METADATA": numpy,
        "etc/number": str(number).encode(),
        **libraries(OWN, 7 * number % 90),
    }
    return images.image(
        {"etc/os-release": release, **libraries(BASE, 20 * base)},
        own,
        pack=packed,
        media=GZIP,
    )


def of_archives(fleet: Fleet, count: int) -> None:
    """The table of archives."""
    tell(f"writing {count} archives")
    names = [f"{number}.tar" for number in range(count)]
    for number, name in enumerate(names):
        (fleet.folder / name).write_bytes(images.tar(images.layout(made(number))))
    (fleet.folder / "list").write_text("\n".join(names))
    size = sum((fleet.folder / name).stat().st_size for name in names)
    print(f"\n{count} archives of {BASES} bases, {size / 1e6:,.0f} MB")
    print(f"{'':34}{'wall s':>8} {'CPU s':>8} {'MB read':>10}")

    show("pool, 2 jobs, without a store", fleet.run("list", "--jobs", "2", "--no-store"))
    show("pool, 2 jobs, cold store", fleet.run("list", "--jobs", "2", "--store", "one"))
    show("pool, 2 jobs, warm store", fleet.run("list", "--jobs", "2", "--store", "one"))
    with cluster(fleet.folder, fleet.env) as (address, _, workers):
        pids = [one.pid for one in workers]
        there = ("--executor", f"dask:{address}", "--jobs", "16")
        show(
            "Dask, 2 workers, without a store", fleet.run("list", *there, "--no-store", beside=pids)
        )
        show(
            "Dask, 2 workers, cold store", fleet.run("list", *there, "--store", "two", beside=pids)
        )
        show(
            "Dask, 2 workers, warm store", fleet.run("list", *there, "--store", "two", beside=pids)
        )
        killed(fleet, there, workers[0], count)


def killed(fleet: Fleet, there: Sequence[str], worker: subprocess.Popen[bytes], count: int) -> None:
    """A worker and then the client killed on the way, and the run taken up again."""
    kept = fleet.folder / "kept.jsonl"

    def told() -> list[str]:
        lines = kept.read_text().splitlines() if kept.exists() else []
        return [json.loads(line)["subject"] for line in lines if line.endswith("}")]

    words = fleet.command("list", *there, "--no-store", "--resume", str(kept))
    first = subprocess.Popen(words, cwd=fleet.folder, env=fleet.env, stderr=subprocess.DEVNULL)
    while len(told()) < count // 4:
        time.sleep(0.05)
    worker.kill()
    while len(told()) < count // 2:
        time.sleep(0.05)
    first.kill()
    first.wait()
    half = len(told())
    code = subprocess.run(
        words, check=False, cwd=fleet.folder, env=fleet.env, stderr=subprocess.DEVNULL
    ).returncode
    subjects = told()
    print(
        f"\na worker killed at {count // 4}, the client at {half}, and taken up again: "
        f"{len(subjects)} verdicts, {len({*subjects})} subjects, exit {code}"
    )


def of_registry(fleet: Fleet, count: int) -> None:
    """The table of tags in a registry with TLS and a password."""
    account = ("me", "password")
    place = fleet.folder / "registry"
    place.mkdir()
    with registries.running(place, account=account, tls=True) as found:
        tell(f"pushing {count} tags")
        for number in range(count):
            found.push(f"team/app:1.{number}", made(number))
        auth = base64.b64encode(":".join(account).encode()).decode()
        (fleet.folder / "config.json").write_text(
            json.dumps({"auths": {found.host: {"auth": auth}}})
        )
        fleet.env["SSL_CERT_FILE"] = found.certificate
        listed = f"registry://{found.host}/team/app"
        print(f"\n{count} tags of {BASES} bases in a registry, TLS and a password")
        print(f"{'':34}{'wall s':>8} {'CPU s':>8} {'MB read':>10}")
        for name, words in (
            ("without a store", ("--no-store",)),
            ("cold store", ("--store", "three")),
            ("warm store", ("--store", "three")),
            ("attached, first", ("--attach", "--store", "three")),
            ("attached, again", ("--attach", "--no-store")),
        ):
            show(name, fleet.run(listed, "--jobs", "2", *words))


def show(name: str, cost: Cost) -> None:
    """Print a row."""
    print(f"{name:34}{cost}", flush=True)


def main() -> None:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archives", type=int, default=1000)
    parser.add_argument("--tags", type=int, default=50)
    asked = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder))
        # The index is compiled once.
        subprocess.run(
            [sys.executable, "-m", "toolmatrix", "facts"],
            env=fleet.env,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        of_archives(fleet, asked.archives)
        of_registry(fleet, asked.tags)
    print(machine())


if __name__ == "__main__":
    main()
