"""`toolmatrix _complete KIND PREFIX`: the names that the completion scripts offer."""

from __future__ import annotations

import os

from toolmatrix.errors import ToolmatrixError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolmatrix.facts.index import Index

KINDS = (
    *("target", "accelerator", "from", "component", "release", "fact"),
    *("arch", "device", "distro", "code", "only"),
)


def candidates(words: Sequence[str], index: Callable[[], Index]) -> list[str]:
    """The names of a kind that begin with a prefix."""
    kind, prefix = [*words, "", ""][:2]
    if kind == "code":
        from toolmatrix.report.rules import load_rules

        return [code for code in load_rules() if code.startswith(prefix.upper())]
    if kind == "only":
        return [name for name in _parts(index) if name.startswith(prefix)]
    if kind not in KINDS:
        return []
    # Only the last part of a list such as `sm_80,sm_86` is being typed.
    done, comma, last = prefix.rpartition(",") if kind != "release" else ("", "", prefix)
    # A shell asks while somebody types: whatever is missing or wrong means that there are no names.
    try:
        from toolmatrix.facts import names

        return [done + comma + name for name in names(index(), kind, last)]
    except (ImportError, ToolmatrixError):
        return []


def _parts(index: Callable[[], Index]) -> Iterator[str]:
    # What `--only` takes depends on the command, which a shell does not tell: the names of all.
    from toolmatrix import resources
    from toolmatrix.facts import names
    from toolmatrix.judge import machine

    yield from names(index(), "arch", "")
    yield from machine.CHECKS
    for folder, _, files in os.walk(os.path.join(resources.matrix_root(), "matrix", "curated")):
        for name in sorted(files):
            yield os.path.relpath(os.path.join(folder, name), resources.matrix_root())
