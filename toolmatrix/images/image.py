"""Documents of an image: index, manifest and configuration, read as data and checked against their digests.

Documents are those of https://github.com/opencontainers/image-spec and of `docker save` before version 25.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from threading import Event
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from toolmatrix.images.layers import Layer, LayerReader, Tree, check_digest
from toolmatrix.images.limits import LARGEST_DOCUMENT, MOST_LAYERS, Budget
from toolmatrix.images.streams import Closable, Hashed, Readable, Sized, first, section
from toolmatrix.processors import this_platform
from toolmatrix.value import Value

if TYPE_CHECKING:
    from concurrent.futures import Future

    Document = Mapping[str, Any]
    Fetch = Callable[["Descriptor"], Document]
    Open = Callable[["Descriptor"], Closable]
    Each = Callable[..., Iterable[Layer]]
    """Calls a function for each of some arguments, as `map` does."""

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_DEEPEST_INDEX = 4
# Layers that are fetched in parallel.
_AT_ONCE = 3
_MOST_MANIFESTS = 1000
_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
DOCUMENTS = (*_INDEXES, *_MANIFESTS)
"""Media types of indexes and manifests."""
_CONFIGS = (
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
)
_LAYERS = re.compile(
    r"application/vnd\.(oci\.image\.layer\.(nondistributable\.)?v1\.tar(\+gzip|\+zstd)?"
    r"|docker\.image\.rootfs\.(foreign\.)?diff\.tar(\.gzip|\.zstd)?)"
)
# An annotation of entries that are attestations of another entry, https://docs.docker.com/build/metadata/attestations/
_REFERENCE_TYPE = "vnd.docker.reference.type"


class ImageMetadata(Value):
    """An image apart from its files.

    `indexed` is its platform in the index, `platform` that in its configuration; `layers` are the diff ids from the
    bottom up, `history` pairs of a diff id and the instruction that made it.
    """

    subject: str
    digest: str = ""
    indexed: str = ""
    platform: str = ""
    config: Document = MappingProxyType({})
    layers: tuple[str, ...] = ()
    history: tuple[tuple[str, str], ...] = ()


class Descriptor(Value):
    """A reference to a blob in a document: digest, bytes as stored, and media type.

    In archives before OCI the digest is a path, and the size is not known (-1).
    """

    digest: str
    size: int = -1
    media: str = ""


class Manifest(Value):
    """Descriptors of the configuration and the layers of an image, the layers from the bottom up."""

    config: Descriptor
    layers: tuple[Descriptor, ...]


class IndexEntry(Value):
    """One image of an index: its platform if the index has it, else its manifest, which had to be read for that."""

    blob: Descriptor
    platform: str = ""
    manifest: Manifest | None = None


def digest_hex(digest: object, budget: Budget) -> str:
    """The hexadecimal part of a digest; raises SubjectError for an invalid one."""
    match = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if match is None:
        raise budget.refusal("a digest is invalid", "`sha256:` and 64 digits", f"{digest!r}")
    return match[1]


def read_document(stream: Readable, budget: Budget, *, digest: str = "") -> Any:
    """JSON out of a stream; raises SubjectError if it is too large, damaged, or does not have the given digest."""
    hashed = Hashed(stream)
    data = first(LARGEST_DOCUMENT + 1, hashed)
    if hashed.count > LARGEST_DOCUMENT:
        raise budget.excess("a document of the image is too large", f"{LARGEST_DOCUMENT >> 20} MiB")
    if digest:
        check_digest(digest, hashed.digest, budget)
    return parse(data, budget)


def parse(data: bytes, budget: Budget) -> Any:
    """JSON; raises SubjectError."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise budget.refusal(
            "a document of the image is damaged", "JSON", str(error)[:200]
        ) from None


def images_of_index(index: object, fetch: Fetch, budget: Budget) -> list[IndexEntry]:
    """The images of an index, nested ones too; attestations and other artifacts are none.

    `fetch` gives the document of a blob; a manifest whose platform is in the index is not fetched, as an index may
    name images that were not copied with it. Raises SubjectError for invalid entries.
    """
    by_digest: dict[str, IndexEntry] = {}
    todo = [(IndexEntry(blob=Descriptor(digest="")), 0)]
    for _ in range(_MOST_MANIFESTS):
        if not todo:
            return list(by_digest.values())
        entry, depth = todo.pop()
        if entry.platform and entry.blob.media in _MANIFESTS:
            by_digest.setdefault(entry.blob.digest, entry)
            continue
        document = fetch(entry.blob) if depth else index
        if kind(document, budget) == "manifest":
            image_manifest = manifest(document, budget)
            if image_manifest is not None:
                by_digest.setdefault(entry.blob.digest, entry.replace(manifest=image_manifest))
            continue
        if depth > _DEEPEST_INDEX:
            raise budget.excess("the index is nested too deeply", f"{_DEEPEST_INDEX} levels")
        # The stack is emptied from its end, so that images come in the order of the index.
        for child in reversed(_list(document, "manifests", budget)):
            if _is_image(child):
                platform = platform_of(child.get("platform")) or entry.platform
                blob = descriptor(child, budget)
                todo.append((IndexEntry(blob=blob, platform=platform), depth + 1))
    raise budget.excess("the index is too long", f"{_MOST_MANIFESTS} entries")


def kind(document: object, budget: Budget) -> str:
    """Check whether a document is an `index` or a `manifest`; raises SubjectError for anything else."""
    if isinstance(document, dict):
        media = document.get("mediaType", "")
        # Without a media type such a document was an index to one client and a manifest to another, CVE-2021-41190.
        if "manifests" in document and ("config" in document or "layers" in document):
            raise budget.refusal(
                "a document is ambiguous", "an index or a manifest", "the keys of both"
            )
        if media in _INDEXES or (not media and "manifests" in document):
            return "index"
        if media in _MANIFESTS or (not media and "config" in document):
            return "manifest"
        if document.get("schemaVersion") == 1:
            raise budget.refusal(
                "the manifest is of Docker's schema 1, which has no configuration",
                "a manifest of OCI or of Docker's schema 2",
                "`schemaVersion` 1",
                "push the image again with an engine from 2016 or later",
            )
        raise budget.refusal(
            "a media type is unknown", "an index or a manifest of an image", f"{media!r}"
        )
    raise budget.refusal("a document is not a manifest", "an object", type(document).__name__)


def _is_image(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    # BuildKit lists its attestations beside the images, as manifests for the platform unknown/unknown.
    notes = entry.get("annotations") or {}
    is_attestation = isinstance(notes, dict) and _REFERENCE_TYPE in notes
    return not is_attestation and platform_of(entry.get("platform")) != "unknown/unknown"


def manifest(document: object, budget: Budget) -> Manifest | None:
    """The manifest of an image, None for one of something else; raises SubjectError for an invalid manifest."""
    if kind(document, budget) != "manifest" or not isinstance(document, dict):
        raise budget.refusal("a document is not a manifest", "a manifest of an image", "an index")
    config = document.get("config")
    if not isinstance(config, dict):
        raise budget.refusal("a manifest has no configuration", "`config`", f"{config!r}"[:80])
    if config.get("mediaType", _CONFIGS[0]) not in _CONFIGS:
        return None
    layers = [descriptor(entry, budget) for entry in _list(document, "layers", budget)]
    odd = next((layer.media for layer in layers if not _LAYERS.fullmatch(layer.media)), None)
    if odd is not None:
        raise budget.refusal(
            "a media type is unknown", "a layer: tar, plain or gzip or zstd", f"{odd!r}"
        )
    return Manifest(config=descriptor(config, budget), layers=tuple(layers))


def descriptor(entry: object, budget: Budget) -> Descriptor:
    """The descriptor of a blob; raises SubjectError for an invalid one."""
    fields = entry if isinstance(entry, dict) else {}
    digest, size, media = (fields.get(key) for key in ("digest", "size", "mediaType"))
    digest_hex(digest, budget)
    # JSON's true is an int to isinstance.
    if type(size) is not int or size < 0:
        raise budget.refusal("a descriptor has no valid size", "`size` in bytes", f"{size!r}")
    return Descriptor(digest=str(digest), size=size, media=media if isinstance(media, str) else "")


def _list(document: Any, key: str, budget: Budget) -> list[Any]:
    entries = document.get(key)
    if not isinstance(entries, list):
        raise budget.refusal(f"`{key}` is missing", "a list", f"{entries!r}"[:80])
    return entries


def platform_of(platform: object) -> str:
    """A platform such as `linux/arm64/v8`, out of the object of an index or configuration; else empty."""
    if not isinstance(platform, dict):
        return ""
    parts = [platform.get(key) for key in ("os", "architecture", "variant")]
    return "/".join(part for part in parts if isinstance(part, str) and part)


def by_digests(
    index: object, blob: Open, platform: str, reader: LayerReader, *, by_name: bool = False
) -> tuple[ImageMetadata, Tree]:
    """An image whose blobs can be opened by digest; all that are opened are verified.

    A known layer is not read. Where blobs come `by_name` from elsewhere it need not even exist, and the others are read
    in parallel. Without a platform, the image for this machine is taken of several.
    """
    budget = reader.budget

    def fetch(descriptor: Descriptor) -> Any:
        with closing(blob(descriptor)) as stream:
            sized = Sized(stream, descriptor.size, budget)
            return read_document(sized, budget, digest=descriptor.digest)

    def known(descriptor: Descriptor) -> Layer | None:
        if by_name:
            return reader.known(descriptor.digest, descriptor.size)
        with closing(blob(descriptor)) as stream:
            stored = section(stream)
            # One of another size is read, and then refused.
            if stored is None or stored.left != descriptor.size:
                return None
            return reader.known(descriptor.digest, descriptor.size, lambda: stored)

    cancelled = Event()

    def layer(descriptor: Descriptor, _: str) -> Layer:
        reading = known(descriptor)
        if reading is None:
            with closing(blob(descriptor)) as stream:
                sized = Sized(stream, descriptor.size, budget)
                reading = reader.read(Hashed(Cancellable(sized, cancelled)))
            check_digest(descriptor.digest, reading.digest, budget)
        return reading

    entries = images_of_index(index, fetch, budget)
    each = side_by_side if by_name else map
    try:
        return assemble(entries, fetch, layer, platform or default_platform(entries), budget, each)
    finally:
        cancelled.set()


class Cancellable:
    """A stream that breaks off when an event says that the rest is not needed."""

    __slots__ = ("_event", "_stream")

    def __init__(self, stream: Readable, event: Event) -> None:
        self._stream = stream
        self._event = event

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end; raises EOFError where it breaks off."""
        if self._event.is_set():
            raise EOFError("the rest is not needed")
        return self._stream.read(size)


def side_by_side(call: Callable[..., Layer], *arguments: Sequence[object]) -> Iterator[Layer]:
    """The results of `map`, with some calls at a time; none begins after one that failed."""
    from concurrent.futures import ThreadPoolExecutor

    waiting = deque(zip(*arguments, strict=True))
    running: deque[Future[Layer]] = deque()
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        while waiting or running:
            while waiting and len(running) < _AT_ONCE:
                running.append(pool.submit(call, *waiting.popleft()))
            yield running.popleft().result()
    finally:
        # Do not wait for running calls: they end by themselves.
        pool.shutdown(wait=False, cancel_futures=True)


def default_platform(entries: Sequence[IndexEntry]) -> str:
    """The platform of this machine where an index lists several images."""
    return this_platform() if len(entries) > 1 else ""


def assemble(
    entries: Sequence[IndexEntry],
    fetch: Fetch,
    layer: Callable[[Descriptor, str], Layer],
    platform: str,
    budget: Budget,
    each: Each = map,
) -> tuple[ImageMetadata, Tree]:
    """The image of a platform with its files, out of the images of an index.

    `fetch` gives the document of a blob, `layer` the layer of a blob with this diff id by the configuration; layers are
    read from the bottom up, one after the other unless `each` calls it otherwise. Raises SubjectError where not exactly
    one image has the platform, or its layers do not match its configuration.
    """
    chosen = _chosen(entries, fetch, platform, budget)
    image_manifest = chosen.manifest or manifest(fetch(chosen.blob), budget)
    if image_manifest is None:
        raise budget.refusal("it contains no image", "a manifest of an image", "an artifact")
    config = fetch(image_manifest.config)
    diff_ids = _diff_ids(config, budget)
    if len(diff_ids) != len(image_manifest.layers):
        raise budget.refusal(
            "the manifest and the configuration differ in the number of layers",
            f"{len(diff_ids)} layers",
            f"{len(image_manifest.layers)}",
        )
    tree = Tree()
    layers = each(layer, image_manifest.layers, diff_ids)
    for diff_id, reading in zip(diff_ids, layers, strict=True):
        # Before the layer is applied, so that a replaced one has no effect.
        check_digest(diff_id, reading.diff_id, budget)
        tree.apply(reading, budget)
    # Builders may leave the history out, or squash layers and keep it: then steps and layers cannot be matched.
    steps = instructions(config, with_layer=True)
    image = ImageMetadata(
        subject=budget.subject,
        digest=chosen.blob.digest,
        indexed=chosen.platform,
        platform=platform_of(config),
        config=config,
        layers=tuple(diff_ids),
        history=tuple(zip(diff_ids, steps, strict=True)) if len(steps) == len(diff_ids) else (),
    )
    return image, tree


def _diff_ids(config: object, budget: Budget) -> list[str]:
    if not isinstance(config, dict):
        raise budget.refusal("the configuration is damaged", "an object", type(config).__name__)
    root = config.get("rootfs")
    diff_ids = root.get("diff_ids") if isinstance(root, dict) else None
    if not isinstance(diff_ids, list) or len(diff_ids) > MOST_LAYERS:
        raise budget.refusal(
            "the configuration names no layers",
            f"`rootfs.diff_ids`, at most {MOST_LAYERS}",
            f"{diff_ids!r}"[:80],
        )
    return list(map(str, diff_ids))


def _chosen(entries: Sequence[IndexEntry], fetch: Fetch, wanted: str, budget: Budget) -> IndexEntry:
    # Without a platform in the index an image has that of its configuration.
    by_platform = [(entry.platform or _own_platform(entry, fetch), entry) for entry in entries]
    fitting = [entry for platform, entry in by_platform if not wanted or _fits(platform, wanted)]
    if len(fitting) == 1:
        return fitting[0]
    platforms = ", ".join(sorted({platform or "unknown" for platform, _ in by_platform})) or "none"
    if not entries:
        raise budget.refusal("it contains no image", "a manifest of an image", "none")
    if not fitting:
        raise budget.refusal("there is no image for this platform", f"`{wanted}`", platforms)
    raise budget.refusal(
        "it contains several images",
        "one image, or one for each platform",
        f"{len(fitting)}: {platforms}",
        "choose one with `--platform`, or save a single image",
    )


def _own_platform(entry: IndexEntry, fetch: Fetch) -> str:
    return platform_of(fetch(entry.manifest.config)) if entry.manifest else ""


def _fits(platform: str, wanted: str) -> bool:
    # Without a variant any will do.
    mine, theirs = platform.split("/"), wanted.split("/")
    if mine[1:2] == theirs[1:2] == ["arm64"]:  # v8 is what arm64 means
        mine, theirs = ([field for field in fields if field != "v8"] for fields in (mine, theirs))
    return mine[: len(theirs)] == theirs


def instructions(config: Document, *, with_layer: bool) -> list[str]:
    """The instructions in the history of a configuration: those that made a layer, or those such as ARG and ENV."""
    return [
        str(step.get("created_by", ""))
        for step in objects(config.get("history"))
        if bool(step.get("empty_layer")) is not with_layer
    ]


def objects(value: object) -> list[dict[str, Any]]:
    """The objects in a list of a document; none where it is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
