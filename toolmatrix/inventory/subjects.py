"""Subjects by their addresses: `SCHEME:PLACE`, each scheme with what reads it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, NamedTuple

from toolmatrix.errors import NothingMatched, ToolmatrixError, UsageError
from toolmatrix.images import streams
from toolmatrix.images.limits import Budget
from toolmatrix.inventory import secrets
from toolmatrix.inventory.layers import LayerStore
from toolmatrix.inventory.model import Inventory
from toolmatrix.inventory.running import ProgramProbe
from toolmatrix.opener import opened

if TYPE_CHECKING:
    from toolmatrix.images.image import ImageMetadata
    from toolmatrix.images.layers import LayerReader, Tree

    Ask = Callable[[Inventory], Sequence[ProgramProbe]]
    """Questions to programs, by what was read."""


# Bytes of an inventory's document; that of an image of 10 GB has a few million.
_LARGEST_DOCUMENT = 256 << 20
_HELP = "`toolmatrix inventory SUBJECT --json` writes one"


class SubjectRequest(NamedTuple):
    """A subject that is asked for: its address, its place within the scheme, and how it is to be read."""

    subject: str
    place: str
    platform: str
    directory: str
    stdin: IO[bytes] | None
    probes: Ask | None
    store: LayerStore | None

    @property
    def path(self) -> str:
        """The place as a path, relative to the directory asked for."""
        return os.path.join(self.directory, self.place)


class Scheme(NamedTuple):
    """A kind of subject: how it is written, what it is, what reads it, and what tells two of one name apart."""

    form: str
    what: str
    read: Callable[[SubjectRequest], Inventory]
    identity: Callable[[SubjectRequest], str] = lambda _: ""


def observe(
    subject: str,
    platform: str = "",
    directory: str = "",
    stdin: IO[bytes] | None = None,
    schemes: Mapping[str, Scheme] | None = None,
    probes: Ask | None = None,
    store: LayerStore | None = None,
) -> Inventory:
    """The inventory of a subject.

    `platform` picks from an index, paths are relative to `directory`, and `archive:-` reads `stdin`, by default that of
    this process; `schemes` are those of SCHEMES unless given. Programs of what can be run are asked what `probes` makes
    of what was read, and what `store` has is neither read nor asked again. Raises UsageError for what is no address,
    SubjectError for what cannot be read, NothingMatched for another platform, and ToolMissing.
    """
    known = SCHEMES if schemes is None else schemes
    name, place = _parted(subject, directory, known)
    found = secrets.hidden(
        known[name].read(SubjectRequest(subject, place, platform, directory, stdin, probes, store))
    )
    # Variants aside: few configurations tell theirs.
    if platform and found.platform.split("/")[:2] != platform.split("/")[:2]:
        raise NothingMatched(
            f"{subject} has another platform",
            expected=platform,
            found=found.platform or "no platform",
        )
    return found


def identity(subject: str, directory: str = "", schemes: Mapping[str, Scheme] | None = None) -> str:
    """The identity of a subject at this moment, without reading it: two that have the same hold the same.

    Empty for what only reading could tell, such as a directory or a machine, and for what cannot be reached.
    """
    known = SCHEMES if schemes is None else schemes
    try:
        name, place = _parted(subject, directory, known)
        return known[name].identity(SubjectRequest(subject, place, "", directory, None, None, None))
    except ToolmatrixError:
        return ""


def is_named(subject: str, schemes: Mapping[str, Scheme]) -> bool:
    """Check whether a subject is written with its scheme: `SCHEME:PLACE`, or a scheme that has no place."""
    name, colon, place = subject.partition(":")
    return name in schemes and bool(colon and place) != (schemes[name].form == name)


def _parted(subject: str, directory: str, schemes: Mapping[str, Scheme]) -> tuple[str, str]:
    if is_named(subject, schemes):
        name, _, place = subject.partition(":")
        return name, place
    # What is there as a path needs no scheme.
    path = os.path.join(directory, subject)
    for name, fits in _PATHS:
        if subject and fits(path):
            return name, subject
    raise UsageError(
        "this is not a subject",
        expected="a path, or one of " + ", ".join(f"`{one.form}`" for one in schemes.values()),
        found=f"`{subject}`",
        help="an image of Docker's engine is `docker:NAME`",
    )


# The scheme of a path that is given without one, by what lies there; the first that fits.
_PATHS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("oci", lambda path: os.path.exists(os.path.join(path, "index.json"))),
    ("dir", os.path.isdir),
    ("inventory", lambda path: path.endswith(".json") and os.path.exists(path)),
    ("archive", lambda path: os.path.basename(path) == "-" or os.path.exists(path)),
)


def _seen(
    asked: SubjectRequest,
    read: Callable[[SubjectRequest, LayerReader], tuple[ImageMetadata, Tree]],
    ask: Callable[[Inventory], Inventory] = lambda found: found,
) -> Inventory:
    from toolmatrix.images.layers import LayerReader
    from toolmatrix.inventory.observe import Look, observe

    image, tree = read(asked, LayerReader(Look, Budget(asked.subject), asked.store))
    return observe(image, tree, ask)


def _file(asked: SubjectRequest) -> str:
    return "" if asked.place == "-" else streams.file_identity(asked.path)


# Each scheme imports its reader when it is used: urllib3 takes longer to import than most of the rest runs.
def _archive(asked: SubjectRequest, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    from toolmatrix.images import local

    if asked.place == "-":
        return local.read_archive(asked.stdin or sys.stdin.buffer, asked.platform, reader)
    with local.opened(asked.path, "an archive of an image", reader.budget) as stream:
        return local.read_archive(stream, asked.platform, reader)


def _layout(asked: SubjectRequest, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    from toolmatrix.images import local

    return local.read_layout(asked.path, asked.platform, reader)


def _layout_identity(asked: SubjectRequest) -> str:
    from toolmatrix.images import local

    return local.layout_identity(asked.path)


def _directory(asked: SubjectRequest, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    from toolmatrix.images import local

    return local.read_directory(asked.path, asked.platform, reader)


def _directory_identity(asked: SubjectRequest) -> str:
    from toolmatrix.images import local

    return local.directory_identity(asked.path)


def _engine(scheme: str, asked: SubjectRequest) -> Inventory:
    from toolmatrix.images import engines
    from toolmatrix.inventory import running

    image = engines.find(scheme, asked.place, Budget(asked.subject))

    def ask(inventory: Inventory) -> Inventory:
        probes = asked.probes(inventory) if asked.probes and image.engine.run else ()
        return running.ask_programs(image, inventory, probes, store=asked.store)

    return _seen(asked, lambda _, reader: engines.read(image, asked.platform, reader), ask)


def _engine_identity(scheme: str, asked: SubjectRequest) -> str:
    from toolmatrix.images import engines

    return engines.find(scheme, asked.place, Budget(asked.subject)).identity


def _registry(asked: SubjectRequest, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    from toolmatrix.images import registry

    return registry.read(asked.place, asked.platform, reader)


def _registered(asked: SubjectRequest) -> str:
    from toolmatrix.images import registry

    return registry.identity(asked.place, Budget(asked.subject))


def _saved(asked: SubjectRequest) -> Inventory:
    refusal = Budget(asked.path).refusal
    try:
        with opened(asked.path) as file:
            data = file.read(_LARGEST_DOCUMENT + 1)
    except (OSError, ValueError) as error:
        # A path that holds a byte 0 is no error of the system.
        found = getattr(error, "strerror", None) or str(error)
        raise refusal("cannot read the inventory", "", found) from None
    if len(data) > _LARGEST_DOCUMENT:
        raise refusal("the inventory is too large", f"at most {_LARGEST_DOCUMENT} bytes", "")
    import json

    from toolmatrix.inventory.model import SCHEMA, Inventory

    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise refusal("the inventory is not JSON", f"`{SCHEMA}`", "", _HELP) from None
    schema = body.get("schema") if isinstance(body, dict) else None
    if schema != SCHEMA:
        found = f"`{schema}`" if isinstance(schema, str) else "another document"
        raise refusal("this is not an inventory", f"`{SCHEMA}`", found, _HELP)
    try:
        return Inventory.from_json(body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise refusal(
            "the inventory is incomplete or has an invalid value",
            f"what `{SCHEMA}` describes",
            f"{type(error).__name__} at {error}",
            _HELP,
        ) from None


def _host(asked: SubjectRequest) -> Inventory:
    from toolmatrix.inventory import host, system

    return system.observe(host.HERE, os.path.abspath(asked.directory or "."))


SCHEMES = {
    "docker": Scheme(
        "docker:NAME",
        "an image of Docker's engine",
        partial(_engine, "docker"),
        partial(_engine_identity, "docker"),
    ),
    "podman": Scheme(
        "podman:NAME",
        "an image of podman, Buildah or CRI-O",
        partial(_engine, "podman"),
        partial(_engine_identity, "podman"),
    ),
    "containerd": Scheme(
        "containerd:NAME",
        "an image of containerd, such as that of a node of Kubernetes",
        partial(_engine, "containerd"),
        partial(_engine_identity, "containerd"),
    ),
    "registry": Scheme(
        "registry://HOST/NAME:TAG",
        "an image in a registry, read as it comes",
        lambda asked: _seen(asked, _registry),
        _registered,
    ),
    "archive": Scheme(
        "archive:FILE.tar",
        "the output of `docker save` or `podman save`; `-` is stdin",
        lambda asked: _seen(asked, _archive),
        _file,
    ),
    "oci": Scheme(
        "oci:DIR",
        "a directory in the OCI image layout",
        lambda asked: _seen(asked, _layout),
        _layout_identity,
    ),
    "dir": Scheme(
        "dir:ROOT",
        "a directory as the root of a system, or what `skopeo copy` wrote to `dir:`",
        lambda asked: _seen(asked, _directory),
        _directory_identity,
    ),
    "host": Scheme("host", "this machine", _host),
    "inventory": Scheme(
        "inventory:FILE.json", "the output of `toolmatrix inventory --json`", _saved, _file
    ),
}
"""The kinds of subjects, by what stands in front of the first colon."""
