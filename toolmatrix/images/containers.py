"""Containers that ask one program each, bounded on every side, and removed when the asking ends, however it ends.

They carry the label `LABEL` with the process that started them, so that what a killed process left is known by the
next one, which removes it.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from toolmatrix.value import Value

if TYPE_CHECKING:
    from types import FrameType

    from toolmatrix.images.engine import Client


LABEL = "io.github.toolmatrix.asked-by"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LONGEST = 200
# Bytes that the engine's log takes at most for each that is printed, in lines of some length: each is framed.
_FRAMED = 16
NOT_THERE = "is not there"
_FORMAT = "exec format error"
_FOREIGN = "is made for another machine than the engine's, and nothing emulates it"
# What runc says of a program that does not start, and what that means.
_REFUSALS = (
    (_FORMAT, _FOREIGN),
    (r"executable file not found|no such file or directory", NOT_THERE),
    (r"permission denied", "may not be run"),
    (r"unable to find (user|group)", "cannot be run: the image has no such user or group"),
)


class ProgramBounds(Value):
    """Bounds of one program: seconds; bytes of memory, of /tmp and of what it prints; processes."""

    seconds: float = 30
    memory: int = 1 << 30
    scratch: int = 64 << 20
    output: int = 64 << 10
    processes: int = 256


class Started(Value):
    """A container, or the reason why there is none."""

    id: str = ""
    reason: str = ""


# No Exception: nothing on the way may take it for the failure of one program.
class _SignalCaught(BaseException):
    pass


# A signal is obeyed while a program is waited for, and kept until then: a request that is left half way might still
# make a container, after those that are there were removed.
class _Signals:
    def __init__(self) -> None:
        self.caught = 0
        self._handlers: dict[int, Any] = {}
        self._waiting = False

    def take(self) -> None:
        for number in _SIGNALS:
            # nohup ignores SIGHUP, and whoever started us so wants it to stay that way.
            if signal.getsignal(number) != signal.SIG_IGN:
                # Python lets only its main thread set handlers; another one leaves them as they are.
                with suppress(ValueError):
                    self._handlers[number] = signal.signal(number, self._keep)

    def give_back(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if self.caught:
            os.kill(os.getpid(), self.caught)

    def _keep(self, number: int, _frame: FrameType | None) -> None:
        self.caught = self.caught or number
        if self._waiting:
            self._waiting = False
            raise _SignalCaught

    def obey(self) -> None:
        if self.caught:
            raise _SignalCaught

    @contextmanager
    def obeyed(self) -> Iterator[None]:
        self._waiting = True
        try:
            self.obey()
            yield
        finally:
            self._waiting = False


@contextmanager
def opened(client: Client, image: Mapping[str, Any], bounds: ProgramBounds) -> Iterator[Containers]:
    """The containers of one image: at the end none is left, and a signal is obeyed after that."""
    _sweep(client)
    owner = _owner(os.getpid())
    signals = _Signals()
    try:
        signals.take()
        yield Containers(client=client, image=image, bounds=bounds, owner=owner, signals=signals)
    except _SignalCaught:
        pass
    finally:
        _remove(client, owner)
        signals.give_back()


class Containers(Value):
    """Programs of one image, each started in a container and waited for."""

    client: Client
    image: Mapping[str, Any]
    bounds: ProgramBounds
    owner: str
    signals: _Signals

    def start(self, run: Sequence[str]) -> Started:
        """Start a program by its arguments."""
        from docker.errors import APIError

        self.signals.obey()
        try:
            made = self.client.create_container(
                self.image["Id"],
                entrypoint=[run[0]],
                command=list(run[1:]),
                working_dir="/tmp",  # noqa: S108 - of the container, and empty
                labels={LABEL: self.owner},
                # A health check of the image would run other programs beside the one that is asked.
                healthcheck={"test": ["NONE"]},
                network_disabled=True,
                # The client's proxies may hold a password, and would be variables of the container.
                use_config_proxy=False,
                host_config=self._limits(),
            )
            self.client.start(made["Id"])
        except APIError as error:
            # A server error may be about the program; only where no ping is answered it is the engine's own end.
            if error.is_server_error() and not self.client.ping():
                raise
            return Started(reason=_refusal(str(error.explanation or error)))
        return Started(id=made["Id"])

    def _limits(self) -> Any:
        volumes = (self.image.get("Config") or {}).get("Volumes") or {}
        return self.client.create_host_config(
            network_mode="none",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            ipc_mode="none",
            mem_limit=self.bounds.memory,
            memswap_limit=self.bounds.memory,
            pids_limit=self.bounds.processes,
            # The engine would make a volume on its disk for each that the image declares.
            tmpfs=dict.fromkeys(volumes, "ro,size=4k")
            | {"/tmp": f"size={self.bounds.scratch},mode=1777"},  # noqa: S108
            log_config={
                "Type": "json-file",
                "Config": {"max-size": str(_FRAMED * self.bounds.output), "max-file": "1"},
            },
        )

    def end(self, container: Started, deadline: float) -> tuple[str, str]:
        """The output of a program, or the reason why that does not count; waits for it until the deadline."""
        if not container.id:
            return "", container.reason
        code = self._wait(container.id, max(deadline - time.monotonic(), 0.1))
        state = self.client.inspect_container(container.id)["State"]
        output = self._printed(container.id, stdout=True)
        reason = ""
        if state.get("OOMKilled"):
            reason = f"was killed for taking more than {self.bounds.memory >> 20} MiB of memory"
        elif code is None:
            reason = f"was still running after {self.bounds.seconds:g} seconds"
        elif len(output) > self.bounds.output:
            reason = f"printed more than {self.bounds.output} bytes"
        elif code:
            reason = _failure(code, self._printed(container.id, stdout=False) or output)
        self.client.remove_container(container.id, force=True, v=True)
        return output, reason

    def _wait(self, container: str, seconds: float) -> int | None:
        from docker.errors import APIError

        try:
            with self.signals.obeyed():
                return int(self.client.wait(container, timeout=seconds)["StatusCode"])
        except OSError:
            # The request timed out, unless the engine is gone, which the next one tells.
            with suppress(APIError):  # it ended meanwhile
                self.client.kill(container)
            return None

    def _printed(self, container: str, *, stdout: bool) -> str:
        printed = self.client.logs(container, stdout=stdout, stderr=not stdout)
        return bytes(printed).decode("utf-8", "replace")


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
    found = (reason for pattern, reason in _REFUSALS if re.search(pattern, message))
    return next(found, f"cannot be run: {message[-_LONGEST:]}")


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


def _sweep(client: Client) -> None:
    # Whether processes of other machines and namespaces are alive is not known: theirs are left alone.
    here = _owner(os.getpid()).split()[:2]
    for owner in {
        one["Labels"][LABEL] for one in client.containers(all=True, filters={"label": LABEL})
    }:
        words = owner.split()
        if words[:2] != here or len(words) != 4 or not words[2].isdigit():
            continue
        try:
            alive = _owner(int(words[2])) == owner
        except OSError:
            alive = False
        if not alive:
            _remove(client, owner)


def _remove(client: Client, owner: str) -> None:
    from docker.errors import DockerException

    # An engine that is gone has nothing left to remove.
    with suppress(DockerException, OSError):
        for one in client.containers(all=True, filters={"label": f"{LABEL}={owner}"}):
            with suppress(DockerException):
                client.remove_container(one["Id"], force=True, v=True)
