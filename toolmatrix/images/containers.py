"""Containers that ask programs of an image, bounded on every side, and removed when the asking ends, however it ends.

They carry the label `LABEL` with the process that started them, so that what a killed process left is known by the
next one, which removes it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from toolmatrix.errors import ToolMissing
from toolmatrix.images import engines
from toolmatrix.images.engines import EngineImage
from toolmatrix.value import Value

LABEL = "io.github.toolmatrix.asked-by"
# The last one ends a worker whose time is over.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
# Seconds after which a signal is obeyed.
_SOON = 0.2
_LONGEST = 200
# Bytes that the engine's log takes at most for each that is printed, in lines of some length: each is framed.
_FRAMED = 16
NOT_THERE = "is not there"
_FORMAT = "exec format error"
_FOREIGN = "is made for another machine than the engine's, and nothing emulates it"
# What the engine says of a program that it cannot start begins so; what its client says for itself does not.
_REFUSED = re.compile(r"Error response from daemon: (.*)")
# What runc says of a program that does not start, and what that means.
_REFUSALS = (
    (_FORMAT, _FOREIGN),
    (r"executable file not found|no such file or directory", NOT_THERE),
    (r"permission denied", "may not be run"),
    (r"unable to find (user|group)", "cannot be run: the image has no such user or group"),
)
_PROXIES = [
    case(f"{kind}_proxy")
    for kind in ("http", "https", "ftp", "all", "no")
    for case in (str.lower, str.upper)
]


class ProgramBounds(Value):
    """Bounds of one program: seconds; bytes of memory, of /tmp and of what it prints; processes."""

    seconds: float = 30
    memory: int = 1 << 30
    scratch: int = 64 << 20
    output: int = 64 << 10
    processes: int = 256


# No Exception: nothing on the way may take it for the failure of one program.
class _SignalCaught(BaseException):
    pass


# Signals that came meanwhile: they are obeyed between two commands and while a program is waited for, as a command
# that is left half way might still make a container after those that are there were removed.
@contextmanager
def _signals() -> Iterator[list[int]]:
    caught: list[int] = []
    handlers: dict[int, Any] = {}
    for one in _SIGNALS:
        # nohup ignores SIGHUP, and whoever started us so wants it to stay that way.
        if signal.getsignal(one) != signal.SIG_IGN:
            # Python lets only its main thread set handlers; another one leaves them as they are.
            with suppress(ValueError):
                handlers[one] = signal.signal(one, lambda number, _: caught.append(number))
    try:
        yield caught
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if caught:
            os.kill(os.getpid(), caught[0])


@contextmanager
def opened(image: EngineImage, bounds: ProgramBounds) -> Iterator[Containers]:
    """The containers of one image: at the end none is left, and a signal is obeyed after that."""
    _sweep(image)
    owner = _owner(os.getpid())
    with _signals() as caught:
        try:
            yield Containers(image=image, bounds=bounds, owner=owner, caught=caught)
        except _SignalCaught:
            pass
        finally:
            _remove(image, owner)


class Containers(Value):
    """Programs of one image, some at once, each in a container."""

    image: EngineImage
    bounds: ProgramBounds
    owner: str
    caught: list[int]

    def run(self, programs: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
        """Of each program, which is given by its arguments, the output, or the reason why that does not count."""
        # All are started before the first is waited for, so they share one deadline instead of adding theirs up.
        started = [self._start(*one) for one in programs]
        ids = [id for id, _ in started if id]
        answers = iter(self._answers(ids) if ids else ())
        return [next(answers) if id else ("", reason) for id, reason in started]

    # The id of a container, or the reason why there is none.
    def _start(self, name: str, *arguments: str) -> tuple[str, str]:
        self._obey()
        engine, subject, id = self.image.engine, self.image.subject, self.image.id
        words = (*engine.run, *self._options(), f"--entrypoint={name}", id, *arguments)
        ended = engines.run(engine, subject, *words)
        if not ended.returncode:
            return ended.stdout.strip(), ""
        refused = _REFUSED.search(ended.stderr)
        if refused is None:
            raise engines.failure(engine, subject, ended.stderr)
        return "", _refusal(refused[1])

    def _options(self) -> list[str]:
        config = self.image.description.get("Config") or {}
        variables = dict(one.partition("=")[::2] for one in config.get("Env") or ())
        # The engine would make a volume on its disk for each that the image declares.
        folders = dict.fromkeys(config.get("Volumes") or {}, "ro,size=4k")
        folders["/tmp"] = f"size={self.bounds.scratch},mode=1777"  # noqa: S108 - of the container, and empty
        return [
            f"--label={LABEL}={self.owner}",
            "--workdir=/tmp",
            "--pull=never",
            # Else the client takes that of DOCKER_DEFAULT_PLATFORM.
            "--platform=",
            # A health check of the image would run other programs beside the one that is asked.
            "--no-healthcheck",
            "--network=none",
            "--read-only",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            "--ipc=none",
            f"--memory={self.bounds.memory}",
            f"--memory-swap={self.bounds.memory}",
            f"--pids-limit={self.bounds.processes}",
            *(f"--tmpfs={path}:{options}" for path, options in folders.items()),
            # The client's proxies may hold a password, and would be variables of the container.
            *(f"--env={name}={variables.get(name, '')}" for name in _PROXIES),
            "--log-driver=json-file",
            f"--log-opt=max-size={_FRAMED * self.bounds.output}",
            "--log-opt=max-file=1",
        ]

    def _obey(self) -> None:
        if self.caught:
            raise _SignalCaught

    def _answers(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        self._wait(ids)
        words = ("inspect", "--type=container", "--format={{json .State}}", *ids)
        states = [json.loads(line) for line in _output(self.image, *words).splitlines()]
        answers = [self._answer(*one) for one in zip(ids, states, strict=True)]
        # Those that ended take nothing any more, and are removed at the end all at once.
        running = [id for id, state in zip(ids, states, strict=True) if state["Running"]]
        if running:
            _output(self.image, "rm", "--force", "--volumes", *running)
        return answers

    def _wait(self, ids: Sequence[str]) -> None:
        import subprocess

        deadline = time.monotonic() + self.bounds.seconds
        with subprocess.Popen(  # noqa: S603 - a program from PATH, no shell, ids of the engine's
            [self.image.engine.program, "wait", *ids],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as child:
            try:
                while child.poll() is None and time.monotonic() < deadline:
                    self._obey()
                    with suppress(subprocess.TimeoutExpired):
                        child.wait(_SOON)
            finally:
                child.kill()

    def _answer(self, id: str, state: dict[str, Any]) -> tuple[str, str]:
        printed = engines.run(self.image.engine, self.image.subject, "logs", id)
        reason = ""
        if state["OOMKilled"]:
            reason = f"was killed for taking more than {self.bounds.memory >> 20} MiB of memory"
        elif state["Running"]:
            reason = f"was still running after {self.bounds.seconds:g} seconds"
        elif len(printed.stdout) > self.bounds.output:
            reason = f"printed more than {self.bounds.output} bytes"
        elif state["ExitCode"]:
            reason = _failure(state["ExitCode"], printed.stderr or printed.stdout)
        return printed.stdout, reason


def _failure(code: int, printed: str) -> str:
    if _FORMAT in printed:
        return _FOREIGN
    last = last_line(printed)
    return f"ended with {code}: {last}" if last else f"ended with {code}"


def last_line(printed: str) -> str:
    """The last line of a program's output that is not blank, as far as it is shown."""
    lines = reversed(printed.split("\n"))
    return next((line.strip() for line in lines if line.strip()), "")[:_LONGEST]


def _refusal(message: str) -> str:
    reasons = (reason for pattern, reason in _REFUSALS if re.search(pattern, message))
    return next(reasons, f"cannot be run: {message[-_LONGEST:]}")


# A process as no other will ever be called: machine and boot, namespace, number, and when it started. Numbers are
# given anew after a while, and after a restart.
def _owner(process: int) -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
        # Field 22 of proc(5), counted from behind the name, which may hold blanks and parentheses.
        fields = file.read().rpartition(")")[2].split()
    # One that nobody has waited for has ended as well.
    if fields[0] in "ZX":
        raise ProcessLookupError(process)
    return f"{boot} {os.readlink('/proc/self/ns/pid')} {process} {fields[19]}"


def _sweep(image: EngineImage) -> None:
    # Whether processes of other machines and namespaces are alive is not known: theirs are left alone.
    here = _owner(os.getpid()).split()[:2]
    format = f'--format={{{{.Label "{LABEL}"}}}}'
    for owner in {*_output(image, "ps", "--all", f"--filter=label={LABEL}", format).splitlines()}:
        parts = owner.split()
        if parts[:2] != here or len(parts) != 4 or not parts[2].isdigit():
            continue
        try:
            alive = _owner(int(parts[2])) == owner
        except OSError:
            alive = False
        if not alive:
            _remove(image, owner)


def _remove(image: EngineImage, owner: str) -> None:
    # An engine that is gone has nothing left to remove.
    with suppress(ToolMissing):
        ids = _output(image, "ps", "--all", "--quiet", f"--filter=label={LABEL}={owner}").split()
        if ids:
            _output(image, "rm", "--force", "--volumes", *ids)


def _output(image: EngineImage, *words: str) -> str:
    return engines.output(image.engine, image.subject, *words)
