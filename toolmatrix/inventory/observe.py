"""An inventory out of an image's files: every observer asked in turn, and what they leave open told."""

from __future__ import annotations

from hashlib import sha256

from toolmatrix.inventory import (
    builds,
    flags,
    loader,
    machines,
    packages,
    programs,
    python,
    secrets,
    toolkits,
)
from toolmatrix.inventory.model import LOCK, Inventory
from toolmatrix.inventory.record import Record, View, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.images.image import Image
    from toolmatrix.images.tree import Tree
    from toolmatrix.inventory.look import Look

# Keys of an image's configuration and the features that they are.
_SETTINGS = {
    "User": "user",
    "Entrypoint": "entrypoint",
    "Cmd": "cmd",
    "WorkingDir": "workdir",
    "StopSignal": "stop-signal",
}
_MOST_TOLD = 20


def observe(image: Image, tree: Tree, look: Look) -> Inventory:
    """Everything that the files and the configuration of an image tell."""
    view = View(image, tree)
    record = Record(view)
    _configuration(view, record)
    packages.observe(view, record)
    toolkits.observe(view, record)
    defaults = programs.observe(view, record)
    sites = python.sites(view, defaults.get("python"))
    python.observe(view, record, sites)
    builds.observe(view, record)
    machines.observe(view, record, sites)
    flags.observe(view, record)
    sonames = loader.observe(view, record)
    toolkits.linked(record, sonames)
    _lock(view, record)
    _unread(view, record, look)
    machine = f"linux/{view.machine}" if view.machine else ""
    found = Inventory(
        subject=image.subject,
        platform=image.platform or machine,
        digest=image.digest,
        components=listed(record.components),
        features=listed(record.features),
        sonames=sonames,
        history=image.history,
        skipped=tuple(record.skipped),
        lock=tree.text(LOCK),
    )
    return secrets.hidden(found, secrets.instructions(image.config))


def _configuration(view: View, record: Record) -> None:
    labels = view.settings.get("Labels")
    for name, value in (labels if isinstance(labels, dict) else {}).items():
        record.feature(f"label:{name}", str(value), "configuration", f"Labels {name}")
    for name, value in view.env.items():
        record.feature(f"env:{name}", value, "configuration", f"Env {name}")
    for key, name in _SETTINGS.items():
        held = view.settings.get(key)
        words = held if isinstance(held, list) else [held] if held else []
        record.feature(name, " ".join(map(str, words)), "configuration", key)


def _lock(view: View, record: Record) -> None:
    """The digest of the lock inside the image, which is that of its text above the seal."""
    held = view.kept.get(LOCK)
    if held is not None:
        body = held.partition(b"\n# seal ")[0] + b"\n"
        record.feature("lock", f"sha256:{sha256(body).hexdigest()}", "lock", LOCK)


def _unread(view: View, record: Record, look: Look) -> None:
    """What was left out, or could not be read to its end."""
    for path in look.left_out[:_MOST_TOLD]:
        record.skip(path, "the files that are kept would be too large together")
    damaged = [(path, elf.damaged) for path, elf in view.elves.items() if elf.damaged]
    for path, why in damaged[:_MOST_TOLD]:
        record.skip(path, why)
    partial = [path for path, elf in view.elves.items() if elf.partial]
    if partial:
        reason = (
            "too large to be kept whole, so options and debug information in them were not read"
        )
        record.skip("large files", f"{len(partial)}, such as /{partial[0]}: {reason}")
    if len(damaged) > _MOST_TOLD:
        record.skip("damaged files", f"{len(damaged) - _MOST_TOLD} more")
