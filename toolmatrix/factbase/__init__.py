"""Facts: the model of a sourced statement about versions, its loading, checking and compiled index."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolmatrix.factbase.index import Index


def about(env: Mapping[str, str]) -> tuple[str, int, str]:
    """The date of the matrix in use, how many facts it holds, and the source of its update. Raises MatrixError."""
    from toolmatrix.factbase import store

    header = store.open_index((), env).header
    updated = store.installed_matrix(env)
    return header["date"], header["facts"], updated.source if updated else ""


def names(index: Index, kind: str, prefix: str) -> list[str]:
    """The names that a shell offers behind a prefix, in the order of the matrix.

    A kind is `target`, `component`, `release` (`component==version`), `fact` (ids of rows, and of the claims in a row
    once its `#` is typed), or a component, of which it is the releases.
    """
    candidates: Iterable[str] = ()
    if kind == "target":
        candidates = index.header["targets"]
    elif kind == "component":
        candidates = index.header["components"]
    elif kind == "release":
        # While the name of a component is typed, the releases of all those that it may be.
        wanted, typed, _ = prefix.partition("=")
        candidates = (
            f"{name}=={version}"
            for name in index.header["components"]
            if name == wanted or (not typed and name.startswith(wanted))
            for version in reversed(index.component(name).versions)
        )
    elif kind == "fact":
        candidates = (name for name in index.ids if "#" in prefix or "#" not in name)
    elif kind in index.header["components"]:
        candidates = reversed(index.component(kind).versions)
    return [name for name in candidates if name.startswith(prefix)]
