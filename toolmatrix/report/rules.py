"""The pages of the TM codes: what each means, why, an example, a remedy."""

from __future__ import annotations

from toolmatrix.resources import load_yaml, rules_path
from toolmatrix.value import Value


class CodePage(Value):
    """The page of one code."""

    code: str
    name: str
    severity: str
    what: str
    why: str
    example: str
    remedy: str
    since: str


def load_rules() -> dict[str, CodePage]:
    """All pages by code, in the order of the codes."""
    pages = load_yaml(rules_path())
    rules = {code: CodePage(code=code, **_texts(page)) for code, page in pages.items()}
    return dict(sorted(rules.items()))


def _texts(page: dict[str, str]) -> dict[str, str]:
    return {name: text.rstrip("\n") for name, text in page.items()}
