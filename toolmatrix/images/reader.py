"""The reader of a subject's layers: each is read once, and not at all where a store has what reading it gave."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from toolmatrix.images.layer import Layer, check_digest, damaged, read_layer
from toolmatrix.images.limits import Budget
from toolmatrix.images.streams import BLOCK, Hashed, exhaust
from toolmatrix.images.tree import Tree

if TYPE_CHECKING:
    from toolmatrix.images.image import ImageMetadata
    from toolmatrix.images.layer import Look
    from toolmatrix.images.streams import Readable

    class Layers(Protocol):
        """What keeps the readings of layers."""

        def layer(self, digest: str) -> Layer | None:
            """The layer that is of this digest, packed or unpacked; None where nothing is kept of it."""

        def keep(self, layer: Layer) -> None:
            """Keep the reading of a layer, under both of its digests."""

        def image(self, name: str) -> ImageMetadata | None:
            """What an image says of itself; None where it is not known."""

        def keep_image(self, name: str, image: ImageMetadata) -> None:
            """Keep what an image says of itself under a name that no other image will have."""


class LayerReader:
    """Reads layers within the budget of one subject; `look` makes what looks at the files of one of them."""

    def __init__(
        self, look: Callable[[Budget], Look], budget: Budget, store: Layers | None = None
    ) -> None:
        self.look = look
        self.budget = budget
        self.store = store
        self.lock = Lock()

    def trying(self) -> LayerReader:
        """A reader for what may come to nothing: what that counts does not count here."""
        return LayerReader(self.look, Budget(self.budget.subject), self.store)

    def known(
        self, digest: str, size: int = -1, blob: Callable[[], Readable] | None = None
    ) -> Layer | None:
        """The layer of a digest, of so many bytes if they are promised, that the store has.

        Whoever loads or pulls an image compares its layers with their digests, so one that is known need not be opened;
        a small `blob` is compared all the same, as that costs nothing.
        """
        found = self._held(digest)
        if found is None or size not in (-1, found.packed):
            return None
        if blob is not None and found.packed <= BLOCK and self._digest(blob()) != digest:
            return None
        self._take(found)
        return found

    def _digest(self, blob: Readable) -> str:
        stream = Hashed(blob)
        try:
            exhaust(stream)
        except OSError as error:
            raise damaged(self.budget, error) from None
        return stream.digest

    def passing(self, digest: str, blob: Hashed) -> Layer:
        """The layer in a blob that will not come again, of a digest if that is promised; raises SubjectError."""
        found = self._held(digest) if digest else None
        if found is None:
            return self.read(blob)
        exhaust(blob)
        check_digest(digest, blob.digest, self.budget)
        self._take(found)
        return found

    def image(self, name: str) -> tuple[ImageMetadata, Tree] | None:
        """The image of a name with its files, if it and all of its layers are known; raises SubjectError."""
        found = self.store.image(name) if self.store is not None else None
        if found is None:
            return None
        layers = [one for one in map(self._held, found.layers) if one is not None]
        if len(layers) != len(found.layers):
            return None
        tree = Tree()
        for one in layers:
            self._take(one)
            tree.apply(one, self.budget)
        return found.replace(subject=self.budget.subject), tree

    def keep_image(self, name: str, image: ImageMetadata) -> None:
        """Keep what an image says of itself under a name that no other image will have."""
        if self.store is not None:
            self.store.keep_image(name, image)

    def _take(self, layer: Layer) -> None:
        # Layers of a registry are read side by side.
        with self.lock:
            self.budget.take(layer)

    def _held(self, digest: str) -> Layer | None:
        return self.store.layer(digest) if self.store is not None else None

    def read(self, packed: Hashed) -> Layer:
        """The layer in a blob; raises SubjectError for what is no sound layer."""
        budget = self.budget.layer()
        found = read_layer(packed, budget, self.look(budget))
        if self.store is not None:
            self.store.keep(found)
        self._take(found)
        return found
