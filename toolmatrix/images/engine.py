"""Docker's engine: reached where its own client reaches it, its images streamed, each of its failures one error.

https://docs.docker.com/reference/api/engine/ describes the interface, the Python package `docker` speaks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from toolmatrix.errors import Position, SubjectError, ToolMissing
from toolmatrix.http import causes
from toolmatrix.images import archive, containerd, names, storage
from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.limits import Budget
from toolmatrix.images.names import this_platform
from toolmatrix.images.reader import LayerReader
from toolmatrix.images.tree import Tree

if TYPE_CHECKING:
    Client = Any
    """A connection to an engine, a docker.APIClient."""

# Seconds without a byte after which an engine is given up: before version 25 it writes the whole archive to its own
# disk before it sends the first.
_PATIENCE = 600
# Seconds in which one that is well says who it is.
_FIRST_ANSWER = 30
_CHUNK = 1 << 20
_DRIVER = "overlay2"
_INDEXED = (1, 44)
"""The API of version 25, from which on what is saved has an index, whose digest nothing else tells."""
# What is wrong, and what helps.
_FORBIDDEN = (
    "this user may not speak to the engine",
    "join the group of its socket (`docker`), or run the command as a user who may",
)
_STOPPED = ("no engine answers", "start it, or name another with DOCKER_HOST")
_ENDED = ("the engine ended on the way", "look into its log, and start it again")


def read(
    client: Client, image: Mapping[str, Any], platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree]:
    """An image of the engine, out of its storage where that may be read, else out of what it saves, if it is not known.

    Raises ToolMissing where the engine ends on the way, and SubjectError for an image of another platform.
    """
    subject = reader.budget.subject
    # An id stands for one image, or for an index of some.
    name = f"{image['Id']} {platform or this_platform()}"
    found = reader.image(name) or _in_place(client, image, platform, reader)
    if found is None:
        with failures(subject):
            stream = _Saved(client.get_image(image["Id"], _CHUNK), subject)
            found = archive.read(stream, platform, reader)
        reader.keep_image(name, found[0])
    return found


def _in_place(
    client: Client, image: Mapping[str, Any], platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree] | None:
    # What only an engine has that keeps its images with containerd (API 1.48).
    top = image.get("Descriptor")
    if not top and (image.get("GraphDriver") or {}).get("Name") != _DRIVER:
        return None
    with failures(reader.budget.subject):
        about = client.info()
        version = client.version(api_version=False)["ApiVersion"]
    if top:
        address = (about.get("Containerd") or {}).get("Address", "")
        # What the engine saves tells whether the image is at fault, and how.
        with suppress(SubjectError, ToolMissing):
            return containerd.read_digest(top["digest"], platform, reader.trying(), address)
        return None
    if tuple(map(int, version.split("."))) >= _INDEXED:
        return None
    return storage.read(about["DockerRootDir"], image["Id"], platform, reader)


@contextmanager
def connected(subject: str) -> Iterator[Client]:
    """The engine that DOCKER_HOST names, or the context in force; raises ToolMissing."""
    import docker

    with failures(subject, _STOPPED):
        try:
            # Else the package speaks ssh by paramiko, one more dependency, and not by the ssh that the user has set up.
            client = docker.from_env(version="auto", timeout=_FIRST_ANSWER, use_ssh_client=True).api
            client.timeout = _PATIENCE
        except (KeyError, TypeError) as error:
            raise OSError(f"the context in force is damaged: {error!r}") from None
    with closing(client):
        yield client


@contextmanager
def failures(subject: str, otherwise: tuple[str, str] = _ENDED) -> Iterator[None]:
    """Make every failure of the engine a ToolMissing with the reason, and with these words where it knows no better."""
    from docker.errors import APIError, DockerException

    try:
        yield
    except APIError as error:
        raise ToolMissing(
            "the engine refuses", where=Position(subject), found=str(error.explanation or error)
        ) from None
    except (DockerException, OSError) as error:  # what `requests` raises is an OSError
        reasons = causes(error)
        forbidden = any(isinstance(one, PermissionError) for one in reasons)
        what, help = _FORBIDDEN if forbidden else otherwise
        found = getattr(reasons[-1], "strerror", None) or str(reasons[-1])
        raise ToolMissing(what, where=Position(subject), found=found, help=help) from None


def find(client: Client, name: str, subject: str) -> dict[str, Any]:
    """The engine's description of the image `NAME` or `//NAME`; raises SubjectError where it has none of this name."""
    from docker.errors import APIError, NotFound

    budget = Budget(subject)
    name = names.image_name(name, budget)
    try:
        held: dict[str, Any] = client.inspect_image(name)
    except NotFound:
        tags = [tag for one in client.images() for tag in one.get("RepoTags") or ()]
        raise budget.refusal(
            "the engine has no such image",
            names.near("docker", name, tags),
            f"`{name}`",
            "pull or build it; `docker images` lists those that are there",
        ) from None
    except APIError as error:
        if error.is_server_error():
            raise
        # Names that the pattern lets through may still be none to the engine.
        raise budget.refusal("this is no name of an image", "", str(error.explanation)) from None
    return held


# The chunks that the engine sends are larger than what is read at once.
class _Saved:
    def __init__(self, chunks: Iterator[bytes], subject: str) -> None:
        self._chunks = chunks
        self._subject = subject
        self._chunk = memoryview(b"")

    def read(self, size: int, /) -> bytes:
        while not self._chunk:
            # Here, as whoever reads an archive takes an OSError for damage of it.
            with failures(self._subject):
                chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._chunk = memoryview(chunk)
        data, self._chunk = self._chunk[:size], self._chunk[size:]
        return bytes(data)
