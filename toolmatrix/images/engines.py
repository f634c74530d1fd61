"""The engines of this machine, each through its own program: their images, and containers that run programs of one.

Images are read in the storage, else from what the engine saves: reading in place takes half of the processor time of
saving, and a tenth where the layers are known. Docker is described at https://docs.docker.com/reference/cli/docker/,
podman at https://docs.podman.io. containerd keeps blobs by their digests as in an OCI layout
(https://github.com/containerd/containerd, plugins/content/local); `ctr` reaches it by the variables CONTAINERD_ADDRESS
and CONTAINERD_NAMESPACE.

Containers have bounds on everything, and are always removed in the end. They carry the label `LABEL` with the process
that started them, so that a later process can remove what a killed one left.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from subprocess import CompletedProcess, Popen
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from toolmatrix.errors import Position, SubjectError, ToolMissing
from toolmatrix.images import local, names
from toolmatrix.images.image import ImageMetadata, digest_hex
from toolmatrix.images.layers import LayerReader, Tree
from toolmatrix.images.limits import Budget
from toolmatrix.processors import this_platform
from toolmatrix.value import Value

# Seconds for one command.
_ANSWER = 60
# Seconds without a byte after which saving is given up: Docker before version 25 writes the whole archive
# to its own disk before it sends the first.
_PATIENCE = 600
_LONGEST_MESSAGE = 300
_HINTS = ("Run '", "See '")
_INDEXED = (1, 44)
"""The API of Docker 25: from it on, a saved image has an index, and its digest is only there."""
_CONTAINERD = "/run/containerd/containerd.sock"
# Of the columns REF, TYPE and DIGEST of `ctr images ls`.
_IMAGE_LINE = re.compile(r"^(\S+) +\S+ +(sha256:\S+)", re.MULTILINE)
# Of the plugin's exports, as `ctr plugins ls --detailed` lists them.
_ROOT = re.compile(r"^\s+root\s+(/.*?)\s*$", re.MULTILINE)
_DISCARDED = (
    "containerd may discard unpacked layers (`discard_unpacked_layers`) and pulls only one platform: "
    "`ctr content fetch --platform PLATFORM NAME` fetches what is missing"
)


class Failure(NamedTuple):
    """A failure of an engine's program: a pattern of its message, the problem, and the remedy."""

    pattern: str
    what: str
    help: str = ""


class Engine(NamedTuple):
    """An engine: its program and package, its failures, and how images are found, read in place, saved and run.

    Without arguments for `save` images are only read in place; without arguments for `run` their programs are not run.
    """

    program: str
    package: str
    failures: tuple[Failure, ...]
    find: Callable[[str, Budget], EngineImage]
    in_place: Callable[[EngineImage, str, LayerReader], tuple[ImageMetadata, Tree] | None]
    save: tuple[str, ...] = ()
    run: tuple[str, ...] = ()


class EngineImage(NamedTuple):
    """An image of an engine: its id, a name that no other image has, and the engine's description."""

    engine: Engine
    subject: str
    id: str
    identity: str
    description: Mapping[str, Any]


def find(scheme: str, name: str, budget: Budget) -> EngineImage:
    """The image of a name.

    Raises SubjectError for an invalid name and for one of no image or of several, ToolMissing without an engine.
    """
    return ENGINES[scheme].find(names.image_name(name, budget), budget)


def read(image: EngineImage, platform: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    """The image with its files.

    Raises SubjectError for an incomplete one or another platform, and ToolMissing where the engine fails.
    """
    # An id belongs to one image, or to an index of several.
    key = f"{image.identity} {platform or this_platform()}"
    known = reader.image(key)
    if known is None:
        try:
            known = image.engine.in_place(image, platform, reader.trying())
        except (SubjectError, ToolMissing):
            # Reading what the engine saves shows whether the image is at fault, and how.
            if not image.engine.save:
                raise
    if known is None:
        known = _read_saved(image, platform, reader)
        reader.keep_image(key, known[0])
    return known


def run(
    engine: Engine, subject: str, *arguments: str, seconds: float = _PATIENCE
) -> CompletedProcess[str]:
    """Run the engine's program; raises ToolMissing where that fails or takes longer."""
    import subprocess

    try:
        return subprocess.run(  # noqa: S603 - a program from PATH, no shell, names that were checked
            [engine.program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
            # Signals of the terminal are for the caller: they would end the program in the middle of its work.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise ToolMissing(
            "no engine answers",
            where=Position(subject),
            found=f"nothing for {seconds:g} seconds",
            help="check its log, then restart it",
        ) from None
    except OSError as error:
        raise _not_run(engine, subject, error) from None


def _not_run(engine: Engine, subject: str, error: OSError) -> ToolMissing:
    return ToolMissing(
        f"the program `{engine.program}` cannot be run",
        where=Position(subject),
        found=str(error.strerror),
        help=f"install {engine.package} and put its program on PATH",
    )


def output(engine: Engine, subject: str, *arguments: str, seconds: float = _PATIENCE) -> str:
    """The output of the engine's program; raises ToolMissing where it fails."""
    completed = run(engine, subject, *arguments, seconds=seconds)
    if completed.returncode:
        raise failure(engine, subject, completed.stderr)
    return completed.stdout


def failure(engine: Engine, subject: str, text: str) -> ToolMissing:
    """The error for the message of the engine's program that failed."""
    # Docker's client ends with a pointer to its help.
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_HINTS)]
    kind = next(candidate for candidate in engine.failures if re.search(candidate.pattern, text))
    return ToolMissing(
        kind.what,
        where=Position(subject),
        found="".join(lines[-1:])[-_LONGEST_MESSAGE:],
        help=kind.help,
    )


def _read_saved(
    image: EngineImage, platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree]:
    import subprocess

    with TemporaryFile() as errors:
        try:
            child = subprocess.Popen(  # noqa: S603 - a program from PATH, no shell, an id of the engine's
                [image.engine.program, *image.engine.save, image.id],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise _not_run(image.engine, image.subject, error) from None
        with child:
            try:
                return local.read_archive(_SaveStream(child, errors, image), platform, reader)
            finally:
                child.kill()


class _SaveStream:
    def __init__(self, child: Popen[bytes], errors: IO[bytes], image: EngineImage) -> None:
        self._child = child
        self._errors = errors
        self._image = image
        self._pipe = child.stdout.fileno() if child.stdout else -1
        self._ready = select.poll()
        self._ready.register(self._pipe, select.POLLIN)

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end; raises ToolMissing where the program failed."""
        # Checked here, as the output of a program that failed looks like a damaged archive.
        engine, subject = self._image.engine, self._image.subject
        if not self._ready.poll(_PATIENCE * 1000):
            raise failure(engine, subject, f"nothing for {_PATIENCE} seconds")
        data = os.read(self._pipe, size)
        if not data and self._child.wait():
            self._errors.seek(0)
            raise failure(engine, subject, self._errors.read().decode(errors="replace"))
        return data


def _docker(name: str, budget: Budget) -> EngineImage:
    completed = run(DOCKER, budget.subject, "image", "inspect", name, seconds=_ANSWER)
    # The engine may reject names that match the pattern.
    if "invalid reference" in completed.stderr:
        raise budget.refusal("this is not a valid image name", "", completed.stderr.strip())
    if "no such image" in completed.stderr.lower():
        format = "--format={{.Repository}}:{{.Tag}}"
        tags = output(DOCKER, budget.subject, "images", format, seconds=_ANSWER).split()
        raise budget.refusal(
            "the engine has no such image",
            names.nearest("docker", name, tags),
            f"`{name}`",
            "pull or build it; `docker images` lists what is there",
        )
    if completed.returncode:
        raise failure(DOCKER, budget.subject, completed.stderr)
    (description,) = json.loads(completed.stdout)
    id = description["Id"]
    return EngineImage(DOCKER, budget.subject, id, id, description)


def _docker_in_place(
    image: EngineImage, platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree] | None:
    # Only an engine that keeps its images with containerd has this (API 1.48).
    top = image.description.get("Descriptor")
    if top:
        format = "--format={{.Containerd.Address}}"
        address = output(DOCKER, image.subject, "info", format, seconds=_ANSWER).strip()
        return _read_content(top["digest"], platform, reader, address)
    format = "--format={{.Server.APIVersion}}"
    version = output(DOCKER, image.subject, "version", format, seconds=_ANSWER)
    if tuple(map(int, version.split("."))) >= _INDEXED:
        return None
    return local.read_storage(image.description, platform, reader)


def _podman(name: str, budget: Budget) -> EngineImage:
    by_id: dict[str, EngineImage] = {}
    by_name: dict[str, EngineImage] = {}
    arguments = ("images", "--all", "--no-trunc", "--format=json")
    for entry in json.loads(output(PODMAN, budget.subject, *arguments, seconds=_ANSWER)):
        # Several manifests may have one configuration.
        identity = f"podman {entry['Id']} {entry['Digest']}"
        by_id[entry["Id"]] = image = EngineImage(PODMAN, budget.subject, entry["Id"], identity, {})
        # An image that was pulled by tag can be named by digest as well.
        for reference in (*(entry.get("Names") or ()), *(entry.get("RepoDigests") or ())):
            by_name.setdefault(reference, image)
    matches = names.find(name, by_name)
    start = name.removeprefix("sha256:")
    # Every id begins with the empty text.
    if not matches and start:
        matches = {id: image for id, image in by_id.items() if id.startswith(start)}
    candidates = {f"`podman:{reference}`": image for reference, image in matches.items()}
    return names.only_image(name, candidates, names.nearest("podman", name, by_name), budget)


def _podman_in_place(
    image: EngineImage, platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree] | None:
    text = output(PODMAN, image.subject, "image", "inspect", image.id, seconds=_ANSWER)
    (description,) = json.loads(text)
    return local.read_storage(description, platform, reader)


def _containerd(name: str, budget: Budget) -> EngineImage:
    chosen = os.environ.get("CONTAINERD_NAMESPACE")
    spaces = [chosen] if chosen else _ctr(budget.subject, "namespaces", "ls", "-q").split()
    by_name: dict[str, dict[str, str]] = {}
    for space in spaces:
        images = _ctr(budget.subject, "--namespace", space, "images", "ls")
        for reference, digest in _IMAGE_LINE.findall(images):
            by_name.setdefault(reference, {})[space] = digest
    # One image has one digest, in whatever namespaces.
    matches = {
        f"`containerd:{reference}` with CONTAINERD_NAMESPACE={space}": digest
        for reference, digests in names.find(name, by_name).items()
        for space, digest in digests.items()
    }
    if not matches and name.startswith("sha256:"):
        digest_hex(name, budget)
        matches = {name: name}
    id = names.only_image(name, matches, names.nearest("containerd", name, by_name), budget)
    return EngineImage(CONTAINERD, budget.subject, id, id, {})


def _read_content(
    digest: str, platform: str, reader: LayerReader, address: str = ""
) -> tuple[ImageMetadata, Tree]:
    query = ("plugins", "ls", "--detailed", "id==content")
    subject = reader.budget.subject
    root = _ROOT.search(_ctr(subject, *query, address=address))
    if root is None:
        raise ToolMissing(
            "containerd does not report its content directory", where=Position(subject)
        )
    return local.read_blobs(root[1], digest, platform, reader, _DISCARDED)


def _ctr(subject: str, *arguments: str, address: str = "") -> str:
    address = address or os.environ.get("CONTAINERD_ADDRESS") or _CONTAINERD
    try:
        # The program would take ten seconds and give no reason.
        with closing(socket.socket(socket.AF_UNIX)) as connection:
            connection.connect(address.removeprefix("unix://"))
    except OSError as error:
        raise ToolMissing(
            "containerd does not answer",
            where=Position(subject),
            found=f"{address}: {error.strerror or error}",
            help="start it, or set CONTAINERD_ADDRESS to another; only root may access it by "
            "default",
        ) from None
    return output(CONTAINERD, subject, "--address", address, *arguments, seconds=_ANSWER)


DOCKER = Engine(
    "docker",
    "docker (docs.docker.com/engine/install)",
    (
        Failure(
            "permission denied while trying to connect",
            "this user may not access the engine",
            "join the group of its socket (`docker`), or run the command as a user with access",
        ),
        Failure("Error response from daemon", "the engine refuses"),
        Failure(
            "[Cc]annot connect|[Ff]ailed to (connect|initialize)|during connect|unable to resolve",
            "no engine answers",
            "start it, or set DOCKER_HOST to another",
        ),
        Failure(
            "EOF|reset by peer|nothing for",
            "the engine stopped answering",
            "check its log, then restart it",
        ),
        Failure("", "docker fails"),
    ),
    _docker,
    _docker_in_place,
    save=("save",),
    run=("run", "--detach"),
)
"""Docker's engine, by DOCKER_HOST or the current context."""
PODMAN = Engine(
    "podman",
    "podman",
    (Failure("", "podman fails", "run the command as the user who owns the images"),),
    _podman,
    _podman_in_place,
    save=("save", "--quiet"),
)
"""Podman, with the images of Buildah and CRI-O, which keep theirs in the same storage."""
CONTAINERD = Engine(
    "ctr",
    "containerd",
    (Failure("", "containerd refuses"),),
    _containerd,
    lambda image, platform, reader: _read_content(image.id, platform, reader),
)
"""containerd, such as on a Kubernetes node."""
ENGINES = {"docker": DOCKER, "podman": PODMAN, "containerd": CONTAINERD}
"""The engines by the schemes of their subjects."""

LABEL = "io.github.toolmatrix.asked-by"
# The last one ends a worker after its time limit.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
# Seconds until a signal takes effect.
_SOON = 0.2
_LONGEST = 200
# Bytes in the engine's log for each printed byte at most: every line has a frame.
_FRAMED = 16
NOT_THERE = "is not there"
_FORMAT = "exec format error"
_FOREIGN = "is built for another architecture than the engine's, without an emulator for it"
# How the engine's message about a program that it cannot start begins, unlike those of its client.
_REFUSED = re.compile(r"Error response from daemon: (.*)")
# Messages of runc about programs that do not start, and their meanings.
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
    """Bounds of one program: seconds; bytes of memory, of /tmp and of output; processes."""

    seconds: float = 30
    memory: int = 1 << 30
    scratch: int = 64 << 20
    output: int = 64 << 10
    processes: int = 256


# Not an Exception, so that it is not handled as the failure of one program.
class _SignalCaught(BaseException):
    pass


# Signals that came meanwhile. They take effect between two commands and while waiting for a program: an interrupted
# command might still make a container after the others were removed.
@contextmanager
def _signals() -> Iterator[list[int]]:
    caught: list[int] = []
    handlers: dict[int, Any] = {}
    for signum in _SIGNALS:
        # Under nohup SIGHUP is ignored and has to stay so.
        if signal.getsignal(signum) != signal.SIG_IGN:
            # Only the main thread may set handlers.
            with suppress(ValueError):
                handlers[signum] = signal.signal(
                    signum, lambda caught_signal, _: caught.append(caught_signal)
                )
    try:
        yield caught
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if caught:
            os.kill(os.getpid(), caught[0])


@contextmanager
def opened_containers(image: EngineImage, bounds: ProgramBounds) -> Iterator[Containers]:
    """The containers of one image: at the end all are removed, and then signals take effect."""
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
        """The output of each program, given by its arguments, or the reason why that does not count."""
        # All are started before waiting for the first, so that they share one deadline.
        started = [self._start(*program) for program in programs]
        ids = [id for id, _ in started if id]
        answers = iter(self._answers(ids) if ids else ())
        return [next(answers) if id else ("", reason) for id, reason in started]

    # The id of a container, or the reason why there is none.
    def _start(self, name: str, *arguments: str) -> tuple[str, str]:
        self._obey()
        engine, subject, id = self.image.engine, self.image.subject, self.image.id
        command = (*engine.run, *self._options(), f"--entrypoint={name}", id, *arguments)
        completed = run(engine, subject, *command)
        if not completed.returncode:
            return completed.stdout.strip(), ""
        refusal = _REFUSED.search(completed.stderr)
        if refusal is None:
            raise failure(engine, subject, completed.stderr)
        return "", _refusal(refusal[1])

    def _options(self) -> list[str]:
        config = self.image.description.get("Config") or {}
        variables = dict(variable.partition("=")[::2] for variable in config.get("Env") or ())
        # The engine would make a volume on disk for each declared one.
        folders = dict.fromkeys(config.get("Volumes") or {}, "ro,size=4k")
        folders["/tmp"] = f"size={self.bounds.scratch},mode=1777"  # noqa: S108 - of the container, and empty
        return [
            f"--label={LABEL}={self.owner}",
            "--workdir=/tmp",
            "--pull=never",
            # Otherwise the client takes DOCKER_DEFAULT_PLATFORM.
            "--platform=",
            # A health check of the image would run other programs beside this one.
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
            # The client's proxies may contain a password, and would be variables of the container.
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
        command = ("inspect", "--type=container", "--format={{json .State}}", *ids)
        states = [json.loads(line) for line in _output(self.image, *command).splitlines()]
        answers = [self._answer(id, state) for id, state in zip(ids, states, strict=True)]
        # Ended containers use no resources, and are removed together in the end.
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
        printed = run(self.image.engine, self.image.subject, "logs", id)
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
    """The last line of a program's output that is not blank, cut to the length to print."""
    lines = reversed(printed.split("\n"))
    return next((line.strip() for line in lines if line.strip()), "")[:_LONGEST]


def _refusal(message: str) -> str:
    reasons = (reason for pattern, reason in _REFUSALS if re.search(pattern, message))
    return next(reasons, f"cannot be run: {message[-_LONGEST:]}")


# A name that no other process will ever have: boot, namespace, number, and start time, as numbers are reused.
def _owner(process: int) -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
        # Field 22 of proc(5), counted from behind the name, which may have blanks and parentheses.
        fields = file.read().rpartition(")")[2].split()
    # A zombie has ended as well.
    if fields[0] in "ZX":
        raise ProcessLookupError(process)
    return f"{boot} {os.readlink('/proc/self/ns/pid')} {process} {fields[19]}"


def _sweep(image: EngineImage) -> None:
    # Containers of other machines and namespaces stay: it is not known whether their processes are alive.
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


def _output(image: EngineImage, *arguments: str) -> str:
    return output(image.engine, image.subject, *arguments)
