"""Docker's engine for tests: the one that runs is used, else one is started for as long as it is needed.

What a test builds is named below `PREFIX` and removed at the end.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

_LOCK = "toolmatrix-docker.lock"
# How long an engine may take to answer.
_SECONDS = 60

PACKAGES = {
    "docker": "docker.io",
    "dockerd": "docker.io",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "qemu-aarch64-static": "qemu-user-static",
}
"""What a machine needs to make base images and build from them: program and Debian package."""


class EngineFailed(Exception):
    """No engine can be had here; the text says why."""


class Engine(NamedTuple):
    """An engine that answers, and the variables by which its client reaches it."""

    environment: Mapping[str, str]

    def run(self, *words: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        """Run `docker` with these words, wherever it ends."""
        return subprocess.run(
            [_which("docker", self.environment), *words],
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=dict(self.environment),
        )

    def done(self, *words: str, timeout: float = 600) -> str:
        """What `docker` printed; raises EngineFailed where it did not succeed."""
        ended = self.run(*words, timeout=timeout)
        if ended.returncode:
            raise EngineFailed(f"docker {' '.join(words)}: {ended.stderr.strip()}")
        return ended.stdout

    def load(self, archive: bytes) -> None:
        """Give it an image."""
        subprocess.run(
            [_which("docker", self.environment), "load", "--quiet"],
            check=True,
            capture_output=True,
            input=archive,
            env=dict(self.environment),
        )

    @property
    def host(self) -> str:
        """Its address."""
        return self.environment.get("DOCKER_HOST", "unix:///var/run/docker.sock")

    @property
    def version(self) -> tuple[int, ...]:
        """The release of the engine, its first two numbers."""
        text = self.done("version", "--format", "{{.Server.Version}}")
        return tuple(int(number) for number in text.split(".")[:2])

    @property
    def modern(self) -> bool:
        """Whether it reads the modern dialect: heredocs came into the engine's own frontend with 23.0."""
        return self.version >= (23, 0) and not self.run("buildx", "version").returncode


@contextlib.contextmanager
def needed(*tools: str) -> Iterator[Engine]:
    """An engine, and these tools of `PACKAGES`, for tests that are skipped without, or fail with CI set."""
    lacking = missing("docker", "dockerd", *tools)
    if lacking:
        unable(f"a real engine needs {', '.join(lacking)}")
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(engine())
        except EngineFailed as error:
            unable(str(error))
        yield found


def unable(why: str) -> NoReturn:
    """Skip a test whose real part is not there, or fail it with CI set."""
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def missing(*tools: str) -> list[str]:
    """The Debian packages that this machine lacks for real builds, or what else stands in the way."""
    lacking = dict.fromkeys(PACKAGES[tool] for tool in tools or PACKAGES if not _which(tool))
    if os.geteuid() != 0:
        return [*lacking, "a user who is root"]
    return list(lacking)


@contextlib.contextmanager
def running() -> Iterator[Engine]:
    """The engine that runs; raises EngineFailed where none does."""
    with tempfile.TemporaryDirectory(prefix="toolmatrix-docker-") as folder:
        found = _client(Path(folder), os.environ)
        found.done("version")
        yield found


@contextlib.contextmanager
def engine() -> Iterator[Engine]:
    """The engine that runs, or one that is started; raises EngineFailed."""
    with tempfile.TemporaryDirectory(prefix="toolmatrix-docker-") as folder:
        found = _client(Path(folder), os.environ)
        if found.run("version").returncode == 0:
            yield found
            return
        with _started(Path(folder), found) as own:
            yield own


@contextlib.contextmanager
def own() -> Iterator[tuple[Engine, int]]:
    """An engine beside the one that may run, and its process id: for tests that end it.

    Its bridge is its own. With `--bridge=none` it would delete that of the other engine.
    """
    name = f"tmx{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="toolmatrix-docker-") as folder:
        client = _client(Path(folder), os.environ)
        for words in (("add", name, "type", "bridge"), ("set", name, "up")):
            subprocess.run([_which("ip"), "link", *words], check=True)
        address = f"172.31.{os.getpid() % 256}.1/24"
        try:
            subprocess.run([_which("ip"), "address", "add", address, "dev", name], check=True)
            alone = (f"--bridge={name}", "--iptables=false", "--ip6tables=false")
            with _started(Path(folder), client, *alone) as found:
                yield found, int((Path(folder) / "pid").read_text())
        finally:
            _tidy(folder)
            subprocess.run([_which("ip"), "link", "delete", name], check=True)


def _tidy(folder: str) -> None:
    """End what a killed engine left below its folder: containers, what holds them, and mounts."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            mounts = (process / "mountinfo").read_text().splitlines()
            inside = any(" / / " in line and folder in line for line in mounts)
            if inside or folder in (process / "cmdline").read_text():
                os.kill(int(process.name), signal.SIGKILL)
    end = time.monotonic() + _SECONDS
    while places := [place for place in _mounts() if place.startswith(folder)]:
        for place in reversed(places):
            subprocess.run(["umount", place], check=False, capture_output=True)
        if time.monotonic() > end:
            raise EngineFailed(f"still mounted: {', '.join(places)}")
        time.sleep(0.1)


def _mounts() -> list[str]:
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


@contextlib.contextmanager
def _started(folder: Path, client: Engine, *options: str) -> Iterator[Engine]:
    """Docker's engine with everything it keeps below `folder`.

    Without options those that run side by side share a bridge and rules of the kernel, which one at a time makes.
    """
    socket = f"unix://{folder}/socket"
    kept = {"--data-root": "data", "--exec-root": "run", "--pidfile": "pid"}
    words = [f"{option}={folder / name}" for option, name in kept.items()]
    own = Engine({**client.environment, "DOCKER_HOST": socket})
    with contextlib.ExitStack() as stack:
        with (folder.parent / _LOCK).open("w") as alone, (folder / "log").open("wb") as log:
            fcntl.flock(alone, fcntl.LOCK_EX)
            daemon = subprocess.Popen(
                [_which("dockerd"), f"--host={socket}", *words, *options],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            stack.callback(daemon.wait, _SECONDS)
            stack.callback(daemon.terminate)
            _await(own, daemon, folder / "log")
        yield own


def _await(own: Engine, daemon: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _SECONDS
    while own.run("version").returncode:
        if daemon.poll() is not None or time.monotonic() > end:
            said = "\n".join(log.read_text(errors="replace").splitlines()[-8:])
            raise EngineFailed(f"dockerd does not answer:\n{said}")
        time.sleep(0.2)


def _client(folder: Path, given: Mapping[str, str]) -> Engine:
    """A client with the variables of this process, and with a `docker` in front that can use BuildKit.

    From 23.0 the client leaves BuildKit to its plugin buildx (Docker engine release notes, 23.0); without the plugin an
    older one from another folder of PATH is taken.
    """
    for place in given.get("PATH", "").split(os.pathsep):
        program = shutil.which("docker", path=place)
        if program and _builds(program):
            (folder / "bin").mkdir()
            (folder / "bin" / "docker").symlink_to(program)
            path = f"{folder}/bin{os.pathsep}{given['PATH']}"
            return Engine({**given, "PATH": path, "DOCKER_BUILDKIT": "1"})
    raise EngineFailed(
        "no docker here can use BuildKit: install docker.io, or docker-buildx beside it"
    )


def _builds(program: str) -> bool:
    text = _said(program, "--version")
    numbers = text.removeprefix("Docker version ").split(".")
    old = numbers[0].isdigit() and int(numbers[0]) < 23
    return old or bool(_said(program, "buildx", "version"))


def _said(*words: str) -> str:
    """What a program printed, or nothing where it failed."""
    ended = subprocess.run(words, check=False, capture_output=True, text=True)
    return "" if ended.returncode else ended.stdout


def _which(tool: str, environment: Mapping[str, str] = os.environ) -> str:
    """Where a program is, or nothing; those for the administrator lie beside PATH for some users."""
    return shutil.which(tool, path=f"{environment.get('PATH', '')}:/usr/sbin:/sbin") or ""
