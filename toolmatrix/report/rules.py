"""The pages of the TM codes: what each means, why, an example, a remedy."""

from __future__ import annotations

from toolmatrix.documents import Annotated, Code
from toolmatrix.finding import SEVERITIES, code_pages
from toolmatrix.value import Document


class CodePage(Document):
    """The page of one code."""

    code: Code
    name: str
    severity: Annotated[str, SEVERITIES]
    what: str
    why: str
    example: str
    remedy: str
    since: str


def load_rules() -> dict[str, CodePage]:
    """All pages by code, in the order of the codes."""
    # A block of YAML ends with a newline, a sentence does not.
    return {
        code: CodePage(
            code=code, **{name: page[name].rstrip("\n") for name in CodePage._fields[1:]}
        )
        for code, page in sorted(code_pages().items())
    }
