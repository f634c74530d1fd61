"""Reads a request as the command line does."""

from __future__ import annotations

from collections.abc import Sequence

from toolmatrix.factbase.index import Index
from toolmatrix.request.read import RequestContext
from toolmatrix.solve.request import Request


def ask(index: Index, words: Sequence[str]) -> Request:
    """The request that `toolmatrix resolve WORDS` makes."""
    return RequestContext(index=index).read(words)
