"""`toolmatrix inventory`."""

from __future__ import annotations

import os

from toolmatrix.api import PLAIN, Printed
from toolmatrix.api.requests import open_matrix
from toolmatrix.api.subjects import layer_store, piped_archive
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ALL, NO_RUN, NO_STORE, PLATFORM, STORE, STORE_SIZE
from toolmatrix.inspection.model import Inventory
from toolmatrix.judging import validation
from toolmatrix.report import inventory as report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.api import Matrix, Path
    from toolmatrix.report.terminal import Terminal


class SubjectInventory(Inventory, Printed):
    """Everything observed of one subject; see `Inventory` for its fields."""

    layout = ("everything",)

    def text(self, screen: Terminal = PLAIN, *, everything: bool = False) -> str:
        """The lines that the command prints; `everything` lists the features that are only counted otherwise."""
        return report.text(self, screen, everything=everything)


@command(
    group="Inspect files, images and machines",
    order=5,
    usage="SUBJECT",
    completer="file",
    does="reading",
    formats=PRINTED,
    examples=(
        "toolmatrix inventory archive:image.tar",
        "toolmatrix inventory docker:app:latest --no-run",
        "toolmatrix inventory archive:app.tar --json",
        "toolmatrix inventory oci:layout --platform linux/arm64",
    ),
    own={"no_run": NO_RUN, "everything": ALL, "no_store": NO_STORE},
)
def inventory(
    subject: str,
    *,
    platform: str = PLATFORM,
    directory: Path = "",
    run: bool = True,
    store: Path | None = STORE,
    store_size: int = STORE_SIZE,
    matrix: Matrix = None,
) -> SubjectInventory:
    """List what an image or a directory contains.

    It is named as `docker:NAME`, `registry://HOST/NAME:TAG`, `archive:FILE`, `oci:DIR`, `dir:ROOT`, `host`...;
    `platform` picks an image from an index, such as `linux/arm64`, and paths are relative to `directory`. With `run`
    the programs of an image of Docker's engine are asked for their versions, in a container without a network. `store`
    is where readings of layers are kept, a folder of at most `store_size` MiB or a URL of fsspec, by default in the
    user's cache; None for nowhere. Raises SubjectError for what cannot be read, UsageError for what is not a subject,
    NothingMatched for another platform, ToolMissing without an engine.
    """
    observed = validation.observe(
        subject,
        platform,
        os.fspath(directory),
        piped_archive(),
        # Only running programs needs the matrix.
        (lambda _: validation.probes_of(open_matrix(matrix).index)) if run else None,
        layer_store(store, store_size),
    )
    return SubjectInventory(**{field: getattr(observed, field) for field in observed._fields})
