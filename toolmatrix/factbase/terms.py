"""Names that are no components, as people write them: GPU generations, variables, flags, symbols."""

from __future__ import annotations

import re

from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import Term


def plain(text: str) -> str:
    """A name without the dashes and underscores around it; those inside it, blanks and capitals make no difference."""
    return re.sub(r"[-_\s]+", "-", text.lower()).strip("-")


def named(index: Index, text: str) -> list[Term]:
    """The terms of that name."""
    wanted = plain(text)
    return [
        term
        for term in index.terms()
        if any(plain(name) == wanted for name in (term.name, *term.also))
    ]
