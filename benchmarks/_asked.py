"""Reads a request as the command line does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from toolmatrix.cli import ask as asking
from toolmatrix.cli.commands import COMMANDS
from toolmatrix.cli.parser import parse
from toolmatrix.cli.prepare import make_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.solve.request import Request


def ask(index: Index, words: Sequence[str]) -> Request:
    """The request that `toolmatrix resolve WORDS` makes."""
    parsed = parse(["resolve", *words])
    context = make_context(parsed, COMMANDS["resolve"], {}, sys.stdin, sys.stdout, sys.stderr)
    return asking.build(context, index)
