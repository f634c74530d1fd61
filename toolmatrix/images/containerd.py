"""Images of containerd, out of its content store in place.

Blobs lie there by their digests as in an OCI layout (https://github.com/containerd/containerd, plugins/content/local).
Names are in its database, so its program `ctr` is asked for them, and for the place; it reaches containerd by the
variables CONTAINERD_ADDRESS and CONTAINERD_NAMESPACE.
"""

from __future__ import annotations

import os
import re
import socket
from contextlib import closing

from toolmatrix.errors import Position, ToolMissing
from toolmatrix.images import directory, image, names
from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.limits import Budget
from toolmatrix.images.reader import LayerReader
from toolmatrix.images.tree import Tree

_SCHEME = "containerd"
_ADDRESS = "/run/containerd/containerd.sock"
_PROGRAM = "ctr"
# Seconds for an answer of the program.
_PATIENCE = 60
# Of the columns REF, TYPE and DIGEST of `ctr images ls`.
_LISTED = re.compile(r"^(\S+) +\S+ +(sha256:\S+)", re.MULTILINE)
# Of the plugin's exports, as `ctr plugins ls --detailed` lists them.
_ROOT = re.compile(r"^\s+root\s+(/.*?)\s*$", re.MULTILINE)
_DISCARDED = (
    "containerd may discard what it unpacked (`discard_unpacked_layers`), and pulls one platform alone: "
    "`ctr content fetch --platform PLATFORM NAME` brings back what is missing"
)


def read(name: str, platform: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    """The image of a name, in full or its end, or of a digest.

    Raises SubjectError for one that is not there, or not whole, and ToolMissing where containerd does not answer.
    """
    return read_digest(find(name, reader.budget), platform, reader)


def find(name: str, budget: Budget) -> str:
    """The digest of a manifest or an index by its name, in the namespace asked for, else in any.

    Raises SubjectError for a name of nothing, and of several images, and ToolMissing.
    """
    name = names.image_name(name, budget)
    chosen = os.environ.get("CONTAINERD_NAMESPACE")
    spaces = [chosen] if chosen else _ctr_output(budget.subject, "namespaces", "ls", "-q").split()
    held: dict[str, dict[str, str]] = {}
    for space in spaces:
        listed = _ctr_output(budget.subject, "--namespace", space, "images", "ls")
        for reference, digest in _LISTED.findall(listed):
            held.setdefault(reference, {})[space] = digest
    # One image has one digest, in whatever namespaces.
    found = {
        f"`{_SCHEME}:{reference}` with CONTAINERD_NAMESPACE={space}": digest
        for reference, within in names.find(name, held).items()
        for space, digest in within.items()
    }
    if not found and name.startswith("sha256:"):
        image.digest_hex(name, budget)
        return name
    return names.one_of(name, found, names.near(_SCHEME, name, held), budget)


def read_digest(
    digest: str, platform: str, reader: LayerReader, address: str = ""
) -> tuple[ImageMetadata, Tree]:
    """The image of a digest; raises SubjectError for one that is not whole, and ToolMissing."""
    asked = ("plugins", "ls", "--detailed", "id==content")
    subject = reader.budget.subject
    root = _ROOT.search(_ctr_output(subject, *asked, address=address))
    if root is None:
        raise ToolMissing("containerd tells no place of its contents", where=Position(subject))
    return directory.read_blobs(root[1], digest, platform, reader, _DISCARDED)


def _ctr_output(subject: str, *words: str, address: str = "") -> str:
    import subprocess

    address = address or os.environ.get("CONTAINERD_ADDRESS") or _ADDRESS
    try:
        # The program takes ten seconds, and knows no reason.
        with closing(socket.socket(socket.AF_UNIX)) as line:
            line.connect(address.removeprefix("unix://"))
        ended = subprocess.run(  # noqa: S603 - a program from PATH, no shell, its words are of this module
            [_PROGRAM, "--address", address, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolMissing(
            "containerd does not answer",
            where=Position(subject),
            found=f"{address}: {getattr(error, 'strerror', None) or error}",
            help=f"start it and have its program `{_PROGRAM}` in PATH, or name another with CONTAINERD_ADDRESS; "
            "users who may speak to it are root alone by default",
        ) from None
    if ended.returncode:
        raise ToolMissing(
            "containerd refuses", where=Position(subject), found=ended.stderr.strip()[-300:]
        )
    return ended.stdout
