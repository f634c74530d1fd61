"""Facts of images that were built: with what, where, how large, and what their own check said at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolmatrix.facts.model import BUILDS
from toolmatrix.harvest import run_tables
from toolmatrix.value import Value

ABOUT = "Images that were built, and those that were not because an address was missing."

# Each narrows its row to what was built; the rest tells of it, and nothing here binds or ranks an answer.
_WHERE = ("machine", "from", "accelerator", "distro", "python")
_TOLD = (
    *("build", "beside", "recipe", "base", "missing", "check", "seconds", "size", "engine", "lock"),
    "day",
)


class ImageBuild(Value):
    """One image: what it was built of and came to, as a row of facts has it.

    `release` is that of `component`, which was asked for first; `build` is the variant that was installed, if any, and
    `beside` are the other components of the lock; `check` is what the check said, or `missing` the address that was not
    to be had. `seconds` are of a build of which some layers may have been there before; `size` is in bytes, 0 where the
    engine does not say, and `packed` by the archives of its layers.
    """

    component: str
    release: str
    where: Mapping[str, str]
    beside: Mapping[str, str]
    recipe: str
    base: str
    engine: str
    lock: str
    day: str
    seconds: float
    build: str = ""
    check: str = ""
    missing: str = ""
    size: int = 0
    packed: bool = False

    @property
    def id(self) -> str:
        """The id of its row."""
        way = "/".join(self.where[name] for name in _WHERE if name in self.where)
        return f"{self.component}-builds/{self.release}/{way}"


def document(path: str, builds: Iterable[ImageBuild]) -> dict[str, Any]:
    """The facts with those that a file has already: of one way to build a release the newest build stays."""
    tables = run_tables.tables(path)
    for one in builds:
        table = run_tables.table(tables, f"{one.component}-builds", _head(one.component))
        # Files of an earlier release do not say it.
        table["lists"] = BUILDS
        others = {row["id"]: row for row in table["rows"]}
        # That an address is missing says where it was built, and nothing against one that was built elsewhere.
        if not (one.missing and others.get(one.id, {}).get("check")):
            run_tables.put(table, _row(one))
    return run_tables.document(
        tables,
        _keys,
        title="toolmatrix, images that were built",
        at="builds of {} as each row names them, by `toolmatrix build --write`",
    )


def _head(name: str) -> dict[str, Any]:
    return {
        "about": f"{name}: images that were built, and what their check said",
        "source": f"built-{name}",
        "where": "the log of each build",
        "evidence": "ran",
        "key": name,
        "lists": BUILDS,
        "columns": {
            **{one: {"as": "when"} for one in _WHERE},
            **{one: {"as": "attribute"} for one in _TOLD},
        },
    }


def _row(one: ImageBuild) -> dict[str, Any]:
    told = {
        "build": one.build,
        "beside": "; ".join(f"{name} {release}" for name, release in sorted(one.beside.items())),
        "recipe": one.recipe,
        "base": one.base,
        "missing": one.missing,
        "check": one.check,
        "seconds": f"{one.seconds:.0f}" if one.check else "",
        "size": _size(one) if one.size else "",
        "engine": one.engine,
        "lock": one.lock,
        "day": one.day,
    }
    return {
        "id": one.id,
        # Exactly this one: `1.2` would be 1.2.1 as well.
        one.component: f"==={one.release}",
        **one.where,
        **{name: text for name, text in told.items() if text},
    }


def _size(one: ImageBuild) -> str:
    return f"{one.size / 1e6:.0f} MB" + (" packed" if one.packed else "")


def _keys(row: Mapping[str, Any], subject: str) -> list[str]:
    return [key for key in ("id", subject, *_WHERE, *_TOLD) if key in row]
