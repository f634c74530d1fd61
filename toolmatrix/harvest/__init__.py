"""Facts read at their sources: each module reads one kind of source, and each family one file of facts.

A family is data (matrix/families.yaml); its `kind` names the module that reads it, which has the function
`harvest(family, context)` and returns the document of a fact file (docs/facts.md).
"""

from __future__ import annotations

from toolmatrix.errors import ToolMissing


def missing(package: str) -> ToolMissing:
    """The error for a missing library that reading an index needs."""
    return ToolMissing(
        f"`{package}` is not installed",
        expected="the libraries of the extra `harvest`",
        help="pip install 'toolmatrix[harvest]'",
    )
