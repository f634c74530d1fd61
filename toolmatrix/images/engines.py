"""Images of the engines of this machine, each asked by its own program: read in its storage, else as it saves them.

Reading in place takes half of the processor time that saving does, and a tenth where the layers are known. Docker is
described at https://docs.docker.com/reference/cli/docker/, podman at https://docs.podman.io. containerd keeps blobs by
their digests as in an OCI layout (https://github.com/containerd/containerd, plugins/content/local); `ctr` reaches it by
the variables CONTAINERD_ADDRESS and CONTAINERD_NAMESPACE.
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from subprocess import CompletedProcess, Popen
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from toolmatrix.errors import Position, SubjectError, ToolMissing
from toolmatrix.images import archive, directory, names, storage
from toolmatrix.images.image import ImageMetadata, digest_hex
from toolmatrix.images.limits import Budget
from toolmatrix.images.names import this_platform
from toolmatrix.images.reader import LayerReader
from toolmatrix.images.tree import Tree

# Seconds for the answer to a question.
_ANSWER = 60
# Seconds without a byte after which an engine that saves is given up: Docker before version 25 writes the whole archive
# to its own disk before it sends the first.
_PATIENCE = 600
_LONGEST = 300
_HINTS = ("Run '", "See '")
_INDEXED = (1, 44)
"""The API of Docker 25, from which on a saved image has an index, whose digest is nowhere else."""
_CONTAINERD = "/run/containerd/containerd.sock"
# Of the columns REF, TYPE and DIGEST of `ctr images ls`.
_LISTED = re.compile(r"^(\S+) +\S+ +(sha256:\S+)", re.MULTILINE)
# Of the plugin's exports, as `ctr plugins ls --detailed` lists them.
_ROOT = re.compile(r"^\s+root\s+(/.*?)\s*$", re.MULTILINE)
_DISCARDED = (
    "containerd may discard what it unpacked (`discard_unpacked_layers`), and pulls one platform alone: "
    "`ctr content fetch --platform PLATFORM NAME` brings back what is missing"
)


class Failure(NamedTuple):
    """A failure of an engine's program: a pattern of what it says, what is wrong, and what helps."""

    pattern: str
    what: str
    help: str = ""


class Engine(NamedTuple):
    """An engine: its program, what has that, its failures, and how images are found, read in place, saved and run.

    One without words to save them is read in place alone; their programs are asked where there are words to run them.
    """

    program: str
    package: str
    failures: tuple[Failure, ...]
    find: Callable[[str, Budget], EngineImage]
    in_place: Callable[[EngineImage, str, LayerReader], tuple[ImageMetadata, Tree] | None]
    save: tuple[str, ...] = ()
    run: tuple[str, ...] = ()


class EngineImage(NamedTuple):
    """An image of an engine: its id, its name as no other image has it, and what the engine says of it."""

    engine: Engine
    subject: str
    id: str
    identity: str
    description: Mapping[str, Any]


def find(scheme: str, name: str, budget: Budget) -> EngineImage:
    """The image of a name.

    Raises SubjectError for what is no name, or that of no image or of several, and ToolMissing where no engine answers.
    """
    return ENGINES[scheme].find(names.image_name(name, budget), budget)


def read(image: EngineImage, platform: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    """The image with its files.

    Raises SubjectError for one that is not whole or of another platform, and ToolMissing where the engine fails.
    """
    # An id is that of one image, or of an index of several.
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
        known = _saved(image, platform, reader)
        reader.keep_image(key, known[0])
    return known


def run(
    engine: Engine, subject: str, *words: str, seconds: float = _PATIENCE
) -> CompletedProcess[str]:
    """Run the engine's program; raises ToolMissing where that cannot be done, or takes longer."""
    import subprocess

    try:
        return subprocess.run(  # noqa: S603 - a program from PATH, no shell, names that were checked
            [engine.program, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
            # A signal of the terminal is for the caller: a program that it ends leaves its work half done.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise ToolMissing(
            "no engine answers",
            where=Position(subject),
            found=f"nothing for {seconds:g} seconds",
            help="look into its log, and start it again",
        ) from None
    except OSError as error:
        raise _not_run(engine, subject, error) from None


def _not_run(engine: Engine, subject: str, error: OSError) -> ToolMissing:
    return ToolMissing(
        f"the program `{engine.program}` cannot be run",
        where=Position(subject),
        found=str(error.strerror),
        help=f"install {engine.package}, and have its program in PATH",
    )


def output(engine: Engine, subject: str, *words: str, seconds: float = _PATIENCE) -> str:
    """What the engine's program prints; raises ToolMissing where it fails."""
    ended = run(engine, subject, *words, seconds=seconds)
    if ended.returncode:
        raise failure(engine, subject, ended.stderr)
    return ended.stdout


def failure(engine: Engine, subject: str, text: str) -> ToolMissing:
    """The error for what the engine's program says as it fails."""
    # Docker's client ends with where its help is.
    lines = [one for one in text.splitlines() if one.strip() and not one.startswith(_HINTS)]
    kind = next(one for one in engine.failures if re.search(one.pattern, text))
    return ToolMissing(
        kind.what, where=Position(subject), found="".join(lines[-1:])[-_LONGEST:], help=kind.help
    )


def _saved(image: EngineImage, platform: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
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
                return archive.read(_Saved(child, errors, image), platform, reader)
            finally:
                child.kill()


class _Saved:
    def __init__(self, child: Popen[bytes], errors: IO[bytes], image: EngineImage) -> None:
        self._child = child
        self._errors = errors
        self._image = image
        self._pipe = child.stdout.fileno() if child.stdout else -1
        self._ready = select.poll()
        self._ready.register(self._pipe, select.POLLIN)

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end; raises ToolMissing where the program failed."""
        # Here, as what a program that failed has sent looks like a damaged archive.
        engine, subject = self._image.engine, self._image.subject
        if not self._ready.poll(_PATIENCE * 1000):
            raise failure(engine, subject, f"nothing for {_PATIENCE} seconds")
        data = os.read(self._pipe, size)
        if not data and self._child.wait():
            self._errors.seek(0)
            raise failure(engine, subject, self._errors.read().decode(errors="replace"))
        return data


def _docker(name: str, budget: Budget) -> EngineImage:
    ended = run(DOCKER, budget.subject, "image", "inspect", name, seconds=_ANSWER)
    # Names that the pattern lets through may still be none to the engine.
    if "invalid reference" in ended.stderr:
        raise budget.refusal("this is no name of an image", "", ended.stderr.strip())
    if "no such image" in ended.stderr.lower():
        format = "--format={{.Repository}}:{{.Tag}}"
        tags = output(DOCKER, budget.subject, "images", format, seconds=_ANSWER).split()
        raise budget.refusal(
            "the engine has no such image",
            names.near("docker", name, tags),
            f"`{name}`",
            "pull or build it; `docker images` lists those that are there",
        )
    if ended.returncode:
        raise failure(DOCKER, budget.subject, ended.stderr)
    (description,) = json.loads(ended.stdout)
    id = description["Id"]
    return EngineImage(DOCKER, budget.subject, id, id, description)


def _docker_in_place(
    image: EngineImage, platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree] | None:
    # What only an engine has that keeps its images with containerd (API 1.48).
    top = image.description.get("Descriptor")
    if top:
        format = "--format={{.Containerd.Address}}"
        address = output(DOCKER, image.subject, "info", format, seconds=_ANSWER).strip()
        return _read_content(top["digest"], platform, reader, address)
    format = "--format={{.Server.APIVersion}}"
    version = output(DOCKER, image.subject, "version", format, seconds=_ANSWER)
    if tuple(map(int, version.split("."))) >= _INDEXED:
        return None
    return storage.read(image.description, platform, reader)


def _podman(name: str, budget: Budget) -> EngineImage:
    by_id: dict[str, EngineImage] = {}
    by_name: dict[str, EngineImage] = {}
    words = ("images", "--all", "--no-trunc", "--format=json")
    for one in json.loads(output(PODMAN, budget.subject, *words, seconds=_ANSWER)):
        # One configuration may be that of several manifests.
        identity = f"podman {one['Id']} {one['Digest']}"
        by_id[one["Id"]] = image = EngineImage(PODMAN, budget.subject, one["Id"], identity, {})
        # What was pulled by its tag is asked for by its digest as well.
        for reference in (*(one.get("Names") or ()), *(one.get("RepoDigests") or ())):
            by_name.setdefault(reference, image)
    matches = names.find(name, by_name)
    start = name.removeprefix("sha256:")
    # Every id begins with nothing.
    if not matches and start:
        matches = {id: image for id, image in by_id.items() if id.startswith(start)}
    worded = {f"`podman:{one}`": image for one, image in matches.items()}
    return names.one_of(name, worded, names.near("podman", name, by_name), budget)


def _podman_in_place(
    image: EngineImage, platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree] | None:
    text = output(PODMAN, image.subject, "image", "inspect", image.id, seconds=_ANSWER)
    (description,) = json.loads(text)
    return storage.read(description, platform, reader)


def _containerd(name: str, budget: Budget) -> EngineImage:
    chosen = os.environ.get("CONTAINERD_NAMESPACE")
    spaces = [chosen] if chosen else _ctr(budget.subject, "namespaces", "ls", "-q").split()
    by_name: dict[str, dict[str, str]] = {}
    for space in spaces:
        images = _ctr(budget.subject, "--namespace", space, "images", "ls")
        for reference, digest in _LISTED.findall(images):
            by_name.setdefault(reference, {})[space] = digest
    # One image has one digest, in whatever namespaces.
    matches = {
        f"`containerd:{reference}` with CONTAINERD_NAMESPACE={space}": digest
        for reference, within in names.find(name, by_name).items()
        for space, digest in within.items()
    }
    if not matches and name.startswith("sha256:"):
        digest_hex(name, budget)
        matches = {name: name}
    id = names.one_of(name, matches, names.near("containerd", name, by_name), budget)
    return EngineImage(CONTAINERD, budget.subject, id, id, {})


def _containerd_in_place(
    image: EngineImage, platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree]:
    return _read_content(image.id, platform, reader)


def _read_content(
    digest: str, platform: str, reader: LayerReader, address: str = ""
) -> tuple[ImageMetadata, Tree]:
    asked = ("plugins", "ls", "--detailed", "id==content")
    subject = reader.budget.subject
    root = _ROOT.search(_ctr(subject, *asked, address=address))
    if root is None:
        raise ToolMissing(
            "containerd does not say where it keeps its content", where=Position(subject)
        )
    return directory.read_blobs(root[1], digest, platform, reader, _DISCARDED)


def _ctr(subject: str, *words: str, address: str = "") -> str:
    address = address or os.environ.get("CONTAINERD_ADDRESS") or _CONTAINERD
    try:
        # The program takes ten seconds, and knows no reason.
        with closing(socket.socket(socket.AF_UNIX)) as line:
            line.connect(address.removeprefix("unix://"))
    except OSError as error:
        raise ToolMissing(
            "containerd does not answer",
            where=Position(subject),
            found=f"{address}: {error.strerror or error}",
            help="start it, or name another with CONTAINERD_ADDRESS; users who may speak to it are root alone by "
            "default",
        ) from None
    return output(CONTAINERD, subject, "--address", address, *words, seconds=_ANSWER)


DOCKER = Engine(
    "docker",
    "docker (docs.docker.com/engine/install)",
    (
        Failure(
            "permission denied while trying to connect",
            "this user may not speak to the engine",
            "join the group of its socket (`docker`), or run the command as a user who may",
        ),
        Failure("Error response from daemon", "the engine refuses"),
        Failure(
            "[Cc]annot connect|[Ff]ailed to (connect|initialize)|during connect|unable to resolve",
            "no engine answers",
            "start it, or name another with DOCKER_HOST",
        ),
        Failure(
            "EOF|reset by peer|nothing for",
            "the engine ended on the way",
            "look into its log, and start it again",
        ),
        Failure("", "docker fails"),
    ),
    _docker,
    _docker_in_place,
    save=("save",),
    run=("run", "--detach"),
)
"""Docker's engine: the one that DOCKER_HOST names, or the context in force."""
PODMAN = Engine(
    "podman",
    "podman",
    (Failure("", "podman fails", "run the command as the user whose images these are"),),
    _podman,
    _podman_in_place,
    save=("save", "--quiet"),
)
"""Podman, with the images of Buildah and CRI-O, which keep theirs in the same storage."""
CONTAINERD = Engine(
    "ctr", "containerd", (Failure("", "containerd refuses"),), _containerd, _containerd_in_place
)
"""containerd, such as that of a node of Kubernetes."""
ENGINES = {"docker": DOCKER, "podman": PODMAN, "containerd": CONTAINERD}
"""The engines by the schemes of their subjects."""
