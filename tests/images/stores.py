"""Real stores of images on this machine: podman's, and containerd's as long as it runs, both below one folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.engine import docker

# How long containerd may take until it answers.
_SECONDS = 30
_PACKAGES = {"podman": "podman", "containerd": "containerd", "ctr": "containerd"}


class Store(NamedTuple):
    """A store, the program that fills it, and the variables by which this and any other reader finds it."""

    program: str
    environment: dict[str, str]

    def done(self, *words: str, given: bytes = b"") -> str:
        """What its program printed; raises AssertionError where it failed."""
        ended = self.run(*words, given=given)
        assert ended.returncode == 0, ended.stderr.decode()
        return ended.stdout.decode()

    def run(self, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run its program, wherever it ends."""
        return subprocess.run(
            [self.program, *words],
            check=False,
            capture_output=True,
            input=given,
            env={**os.environ, **self.environment},
        )


def program(folder: Path, name: str, script: str) -> None:
    """A program of a name that stands for that of an engine."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def needed(*programs: str) -> None:
    """Skip a test whose programs are not there, or fail it with CI set."""
    lacking = sorted({_PACKAGES[one] for one in programs if not shutil.which(one)})
    if os.geteuid() != 0:
        lacking.append("a user who is root")
    if lacking:
        docker.unable(f"a real store needs {', '.join(lacking)}")


@contextlib.contextmanager
def podman(folder: Path, driver: str) -> Iterator[Store]:
    """The storage of podman below a folder, by its own configuration."""
    needed("podman")
    conf = folder / "storage.conf"
    conf.write_text(
        f'[storage]\ndriver = "{driver}"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
    )
    try:
        yield Store("podman", {"CONTAINERS_STORAGE_CONF": str(conf)})
    finally:
        # Where it ended early it leaves a directory mounted on itself.
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            if (place := line.split()[4]).startswith(str(folder)):
                subprocess.run(["umount", place], check=True)


@contextlib.contextmanager
def containerd(folder: Path) -> Iterator[Store]:
    """containerd with everything that it keeps below a folder."""
    needed("containerd", "ctr")
    address = folder / "socket"
    config = folder / "config.toml"
    # What speaks to Kubernetes wants a network, and images are imported without unpacking them.
    config.write_text(
        f'version = 2\nroot = "{folder}/root"\nstate = "{folder}/state"\n'
        f'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\naddress = "{address}"\n'
    )
    found = Store("ctr", {"CONTAINERD_ADDRESS": str(address)})
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(["containerd", "--config", str(config)], stdout=log, stderr=log)
        try:
            end = time.monotonic() + _SECONDS
            while not address.exists() or found.run("namespaces", "ls").returncode:
                said = (folder / "log").read_text(errors="replace")[-2000:]
                assert daemon.poll() is None, said
                assert time.monotonic() < end, said
                time.sleep(0.05)
            yield found
        finally:
            daemon.terminate()
            daemon.wait(_SECONDS)
