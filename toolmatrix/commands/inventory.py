"""`toolmatrix inventory`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from toolmatrix.api import PLAIN, Matrix, Path, Printed
from toolmatrix.api.requests import open_matrix
from toolmatrix.api.subjects import layer_store, piped_archive
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ALL, NO_RUN, NO_STORE, PLATFORM, STORE, STORE_SIZE
from toolmatrix.inspection.model import Inventory, Seen
from toolmatrix.judging import validation
from toolmatrix.report.terminal import Terminal, columns, plural, printable

# Features that are counted and not listed; `--json` has them, `--all` lists them.
_QUIET = ("cpu:", "dpkg:", "apk:", "conda:", "rpm:", "dist:", "soname:", "env:", "label:")
_LONGEST = 60


def text(inventory: Inventory, screen: Terminal, *, everything: bool = False) -> str:
    """The inventory on a terminal; nothing that a subject names reaches it raw."""
    head = [inventory.subject, inventory.platform, inventory.digest[:19]]
    lines = [printable("  ".join(field for field in head if field))]
    lines += _block("components", _components(inventory), screen)
    lines += _block("features", _features(inventory, everything=everything), screen)
    lines += _block("libraries that no file provides", _missing(inventory), screen)
    lines += _block("not inspected", ([gap.what, gap.reason] for gap in inventory.skipped), screen)
    missing = sum(not soname.found for soname in inventory.sonames)
    counts = (
        plural(len(inventory.components), "component"),
        plural(len(inventory.features), "feature"),
        f"{plural(len(inventory.sonames), 'library', 'libraries')} needed, {missing} missing",
    )
    return "\n".join([*lines, "", ", ".join(counts)]) + "\n"


def _block(title: str, rows: Iterable[list[str]], screen: Terminal) -> list[str]:
    lines = columns([[printable(cell) for cell in row] for row in rows])
    return ["", screen.style(title, "bold"), *(f"  {line}" for line in lines)] if lines else []


def _components(inventory: Inventory) -> Iterator[list[str]]:
    for name, several in inventory.components.items():
        for position, copy in enumerate(several):
            # What is there several times is named once.
            title = "" if position else name
            mark = "default" if copy.default else ""
            yield [title, copy.version, mark, copy.seen_by, copy.where]


def _features(inventory: Inventory, *, everything: bool) -> Iterator[list[str]]:
    for name, several in inventory.features.items():
        if everything or not name.startswith(_QUIET):
            # A library is in many places and says the same in each: the first one represents all.
            by_value: dict[str, list[Seen]] = {}
            for copy in several:
                by_value.setdefault(copy.version, []).append(copy)
            for first, *more in by_value.values():
                also = f"and {len(more)} more" if more else ""
                yield [name, first.version[:_LONGEST], first.seen_by, first.where, also]


def _missing(inventory: Inventory) -> Iterator[list[str]]:
    for soname in inventory.sonames:
        if not soname.found:
            there = f"found {', '.join(soname.others)}" if soname.others else ""
            yield [soname.name, f"needed by /{soname.needed_by[0]}", there]


class SubjectInventory(Inventory, Printed):
    """Everything observed of one subject; see `Inventory` for its fields."""

    layout = ("everything",)

    def text(self, screen: Terminal = PLAIN, *, everything: bool = False) -> str:
        """The lines that the command prints; `everything` lists the features that are only counted otherwise."""
        return text(self, screen, everything=everything)


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
