"""Whether a matrix has what a lock made from it says: its targets, components, releases, codegen archs and builds."""

from __future__ import annotations

from toolmatrix.facts.versions import SelectorError, key
from toolmatrix.lock import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.facts.index import Index
    from toolmatrix.lock.model import Lock, LockedTarget

    Said = tuple[tuple[str, ...], str, str]


def check(lock: Lock, path: str, index: Index) -> None:
    """Raises LockError, with the line, for the first thing that the matrix does not know."""
    for name, environment, target in lock.names():
        del name
        keys = ("environments", environment, "targets", target)
        if target not in index.header["targets"]:
            raise read.odd(path, keys, "a target of the matrix", f"`{target}`")
        held = lock.environments[environment].targets[target]
        for below, component, release in _said(held):
            if component not in index.header["components"]:
                raise read.odd(path, (*keys, *below), "a component of the matrix", f"`{component}`")
            if release not in index.component(component).versions:
                expected = f"a release of {component} that the matrix knows"
                raise read.odd(path, (*keys, *below), expected, f"`{release}`")
        for floor, part in held.components.items():
            if part.floor and not _is_version(part.version):
                below = (*keys, "components", floor)
                raise read.odd(path, below, "a version", f"`{part.version}`")


def _said(held: LockedTarget) -> Iterator[Said]:
    """What a target says of a component, and where it says so."""
    yield ("accelerator",), "accelerator", held.accelerator
    yield ("from",), "from", held.from_
    for name, part in held.components.items():
        if not part.floor:
            yield ("components", name), name, part.version
    for name, build in held.variants.items():
        yield ("variants", name), f"{name}-variant", build.build
    for table, component, names in (
        ("archs", "arch", held.archs),
        ("devices", "device", held.devices),
    ):
        for name in names:
            yield (table, name), component, name


def _is_version(text: str) -> bool:
    try:
        key(text)
    except SelectorError:
        return False
    return True
