"""Images of podman, Buildah and CRI-O out of their storage in place, else what the program `podman` saves.

Places and names of files are those of https://github.com/containers/storage: `types/options.go` for where a storage is,
`images.go`, `layers.go` and `store.go` for images.json, layers.json and what stands beside them.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from string import Template
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from toolmatrix import toml
from toolmatrix.errors import ConfigError, Position, SubjectError, ToolMissing
from toolmatrix.images import archive, names, unpacked
from toolmatrix.images.directory import opened
from toolmatrix.images.image import ImageMetadata, read_document
from toolmatrix.images.limits import MOST_LAYERS, Budget
from toolmatrix.images.names import this_platform
from toolmatrix.images.reader import LayerReader
from toolmatrix.images.tree import Tree
from toolmatrix.images.unpacked import UnpackedLayer

if TYPE_CHECKING:
    from subprocess import Popen


_PROGRAM = "podman"
_SYSTEM = ("/etc/containers/storage.conf", "/usr/share/containers/storage.conf")
# Where a driver has the files of a layer; with vfs those of the layers below are among them.
_FILES = {"overlay": "overlay/{}/diff", "vfs": "vfs/dir/{}"}
_MANIFEST = "manifest"


class Storage(NamedTuple):
    """A storage of images: its driver, and the directories that have some, those that are written first."""

    driver: str
    roots: tuple[str, ...]

    def listed(self, what: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The entries of images.json or layers.json with the directory that each is of, as far as they can be read."""
        for root in self.roots:
            path = os.path.join(root, f"{self.driver}-{what}", f"{what}.json")
            # One that is not there yet, or is for others, leaves the images of the others.
            try:
                with open(path, "rb") as file:
                    held = json.load(file)
            except (OSError, ValueError, RecursionError):
                continue
            for one in held:
                if isinstance(one, dict) and isinstance(one.get("id"), str):
                    yield root, one


class StoredImage(NamedTuple):
    """An image of a storage: its id, the directory that has it, its highest layer, and the digest of its manifest."""

    id: str
    root: str
    layer: str
    digest: str


def read(name: str, platform: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    """The image of a name or an id.

    Raises SubjectError for one that is not there or not whole, ConfigError for a damaged storage.conf, and ToolMissing
    where the storage is not to be read by this user or in this way, and `podman` does not save the image either.
    """
    held = storage()
    found = find(name, held, reader.budget)
    if found is None:
        return _saved(names.image_name(name, reader.budget), platform, reader)
    key = f"{identity(found)} {platform or this_platform()}"
    known = reader.image(key)
    if known is None:
        try:
            return _in_place(found, held, platform, reader)
        except SubjectError:
            # What podman saves tells whether the image is at fault.
            if shutil.which(_PROGRAM) is None:
                raise
        known = _saved(found.id, platform, reader)
        reader.keep_image(key, known[0])
    return known


def identity(image: StoredImage) -> str:
    """What no other image has: one configuration may be that of several manifests."""
    return f"{_PROGRAM} {image.id} {image.digest}"


def storage() -> Storage:
    """The storage of this user, by the variables and files that podman asks; raises ConfigError."""
    user = os.geteuid()
    own = os.environ.get("CONTAINERS_STORAGE_CONF")
    home = os.environ.get("XDG_CONFIG_HOME") or (user and os.path.expanduser("~/.config"))
    if own is None and home:
        own = os.path.join(str(home), "containers", "storage.conf")
    path = next((one for one in (own, *_SYSTEM) if one and os.path.exists(one)), "")
    table = _table(path)
    default = "/var/lib/containers/storage"
    if user:
        data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
        default = table.get("rootless_storage_path") or os.path.join(data, "containers", "storage")
    # Places in the system's file are those of root alone.
    places = table if path == own or not user else {}
    options = places.get("options")
    more = options.get("additionalimagestores") if isinstance(options, dict) else None
    # Where images have a place of their own, those from before are still found in the other one.
    given = [places.get("imagestore"), places.get("graphroot") or default]
    given += more if isinstance(more, list) else []
    variables = {**os.environ, "UID": str(user)}
    roots = [Template(str(one)).safe_substitute(variables) for one in given if one]
    driver = os.environ.get("STORAGE_DRIVER") or table.get("driver") or _driver(roots)
    # Its former name, which podman still takes.
    return Storage("overlay" if driver == "overlay2" else str(driver), tuple(roots))


def _table(path: str) -> dict[str, Any]:
    if not path:
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError) as error:
        raise ConfigError(
            "cannot read the configuration of podman's storage",
            where=Position(path),
            found=str(error),
        ) from None
    table = toml.parse(text, path, ConfigError, "the configuration of podman's storage")
    found = table.get("storage")
    return found if isinstance(found, dict) else {}


def _driver(roots: list[str]) -> str:
    # Without one in the configuration that which was there first stays.
    used = (one for one in _FILES for root in roots if os.path.isdir(f"{root}/{one}-images"))
    return next(used, next(iter(_FILES)))


def find(name: str, held: Storage, budget: Budget) -> StoredImage | None:
    """The image of a name or an id; None where no image can be seen, so that podman alone would know.

    Raises SubjectError for a name of nothing, and of several images.
    """
    name = names.image_name(name, budget)
    ids: dict[str, StoredImage] = {}
    called: dict[str, StoredImage] = {}
    with _as_written(budget):
        for root, one in held.listed("images"):
            digest = one.get("big-data-digests", {}).get(_MANIFEST) or one.get("digest", "")
            image = ids.setdefault(
                one["id"], StoredImage(one["id"], root, one.get("layer", ""), digest)
            )
            # What was pulled by its tag is asked for by its digest as well.
            for known in one.get("names", ()):
                called.setdefault(known, image)
                called.setdefault(f"{names.repository(known)}@{digest}", image)
    # An empty storage may be the wrong one, such as where podman speaks to a machine of its own.
    if not ids:
        return None
    found = names.find(name, called)
    start = name.removeprefix("sha256:")
    # Every id begins with nothing.
    if not found and start:
        found = {id: image for id, image in ids.items() if id.startswith(start)}
    worded = {f"`{_PROGRAM}:{one}`": image for one, image in found.items()}
    return names.one_of(name, worded, names.near(_PROGRAM, name, called), budget)


@contextmanager
def _as_written(budget: Budget) -> Iterator[None]:
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise budget.refusal(
            "the storage of podman cannot be read in place",
            "what its drivers overlay and vfs write",
            f"{type(error).__name__}: {error}",
            f"have the program `{_PROGRAM}` in PATH",
        ) from None


def _in_place(
    image: StoredImage, held: Storage, platform: str, reader: LayerReader
) -> tuple[ImageMetadata, Tree]:
    budget = reader.budget
    folder = os.path.join(image.root, f"{held.driver}-images", image.id)

    def document(name: str, digest: str) -> Any:
        with closing(opened(os.path.join(folder, _file(name)), name, budget)) as stream:
            return read_document(stream, budget, digest=digest)

    with _as_written(budget):
        files = _FILES[held.driver]
        config = document(_MANIFEST, image.digest)["config"]["digest"]
        kept = {one["id"]: (root, one) for root, one in held.listed("layers")}
        layers: list[UnpackedLayer] = []
        name = image.layer
        # A layer names the one below it; what goes round in circles ends at the bound.
        while name and len(layers) <= MOST_LAYERS:
            root, layer = kept[name]
            lines = os.path.join(root, f"{held.driver}-layers", f"{name}.tar-split.gz")
            layers.insert(0, UnpackedLayer(lines, os.path.join(root, files.format(name))))
            name = layer.get("parent", "")
        return unpacked.read(document(config, config), image.digest, layers, platform, reader)


def _file(name: str) -> str:
    # Of letters, digits and dots files are called themselves.
    plain = name.replace(".", "").isalnum() and name.islower()
    return name if plain else "=" + base64.b64encode(name.encode()).decode()


def _saved(name: str, platform: str, reader: LayerReader) -> tuple[ImageMetadata, Tree]:
    import subprocess

    subject = reader.budget.subject
    with TemporaryFile() as said:
        try:
            child = subprocess.Popen(  # noqa: S603 - a program from PATH, no shell, a name that was checked
                [_PROGRAM, "save", "--quiet", "--", name],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
            )
        except OSError as error:
            raise ToolMissing(
                f"the program `{_PROGRAM}` cannot be run",
                where=Position(subject),
                expected="it, or a storage of its images that this user may read",
                found=str(error.strerror),
                help="install podman, or run as the user whose images these are",
            ) from None
        # Closing the pipe ends what it would still write.
        with child:
            return archive.read(_Saved(child, said, subject), platform, reader)


class _Saved:
    def __init__(self, child: Popen[bytes], said: IO[bytes], subject: str) -> None:
        self._child = child
        self._said = said
        self._subject = subject

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, none at the end; raises ToolMissing where the program failed."""
        data = self._child.stdout.read(size) if self._child.stdout else b""
        # Here, as what a program that failed has sent looks like a damaged archive.
        if not data and self._child.wait():
            self._said.seek(0)
            lines = self._said.read().decode(errors="replace").strip().splitlines()
            raise ToolMissing(
                "podman cannot save the image",
                where=Position(self._subject),
                found=lines[-1] if lines else f"status {self._child.returncode}",
            )
        return data
