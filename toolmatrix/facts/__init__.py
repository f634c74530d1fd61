"""Facts: the model of a sourced statement about versions, its loading, checking and compiled index."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolmatrix.facts.index import Index


def about(env: Mapping[str, str] | None = None) -> tuple[str, int]:
    """The date of the built-in matrix and how many facts it holds. Raises MatrixError."""
    header = _built_in(env).header
    return header["date"], header["facts"]


def names(kind: str, prefix: str) -> list[str]:
    """What a shell offers behind a prefix: components, releases (`component==version`), facts (ids of rows, and of the
    claims in a row once its `#` is typed), codegen archs, devices or distros of the built-in matrix; nothing for
    another kind. Raises MatrixError.
    """
    index = _built_in(None)
    found: Iterable[str] = ()
    if kind == "component":
        found = index.header["components"]
    elif kind == "release":
        found = _releases(index, prefix)
    elif kind == "fact":
        found = (name for name in index.section("ids") if "#" in prefix or "#" not in name)
    elif kind in ("arch", "device", "distro"):
        found = (
            reversed(index.section("c:" + kind)["versions"])
            if kind in index.header["components"]
            else ()
        )
    return [name for name in found if name.startswith(prefix)]


def _built_in(env: Mapping[str, str] | None) -> Index:
    import os

    from toolmatrix.facts.store import open_index

    return open_index((), os.environ if env is None else env)


def _releases(index: Index, prefix: str) -> Iterable[str]:
    """The releases of the component that is typed, newest first; while its name is typed, all of those it may be."""
    wanted, typed, _ = prefix.partition("=")
    for name in index.header["components"]:
        if name == wanted or (not typed and name.startswith(wanted)):
            for version in reversed(index.section("c:" + name)["versions"]):
                yield f"{name}=={version}"
