"""Reads a request as the command line does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolmatrix.request.read import RequestContext

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.solve.request import Request


def ask(index: Index, words: Sequence[str]) -> Request:
    """The request that `toolmatrix resolve WORDS` makes."""
    return RequestContext(index=index).read(words)
