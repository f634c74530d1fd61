"""The releases that sentences of a README say its code is written for: `Tested with Python 3.8 and PyTorch >= 1.10`.

A name with a release counts at the beginning of an entry of a list, behind a word such as "requires" or "tested with",
behind a label such as "Environment:", or where a line is nothing but such names. A sentence that negates, that is about
a condition, an example or an alternative, and a section about news, results or other projects say nothing.
"""

from __future__ import annotations

import re

from toolmatrix.manifests.model import PIP, PYTHON, Item, Traced
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.manifests.model import FileText

FILES = re.compile(r"(?:readme|install|installation)\.(?:md|markdown)", re.IGNORECASE)
"""The names of the files whose sentences count."""
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_BESIDE = re.compile(
    r"\b(?:news|changes?|changelog|updates?|releases?|history|licen[cs]e|citations?|faq|results?|performance|zoo"
    r"|benchmarks?|acknowledge\w*|related|troubleshooting|issues?|migrat\w*|todo|roadmap)\b",
    re.IGNORECASE,
)
# Markup of Markdown and HTML; as many spaces replace it.
_MARKS = re.compile(r"\]\([^()\s]*\)|\]\[[^\]]*\]|<[^<>]*>|!\[[^\]]*\]|[*`_\[\]]|https?://\S+")
_ENTRY = re.compile(r"\s*(?:[-+*]|\d+[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.;!?])\s+(?=[A-Z(])")
# What follows is about what was named last.
_CLAUSE = re.compile(r",?\s+(?:for\s+)?(?:which|whose|where)\b", re.IGNORECASE)
_UNSURE = re.compile(
    r"\b(?:not|no|never|cannot|without|except|unless|if|when|whether|instead|than|before|after|older|earlier|deprecated"
    r"|dropp?(?:ed|s)?|removed|bugs?|issues?|errors?|fail\w*|breaks?|problems?|example|e\.g|may|might|could|alternatively"
    r"|other|observed|only|(?:pip|conda|mamba|uv)\s+\w+)\b|n['’]t\b|\d{4}-\d\d|\b(?:19|20)\d\d\b",
    re.IGNORECASE,
)
_VERB = (
    r"\b(?:requires?|required|requirements?|needs?|tested|developed|based|built|implemented|written|trained|run|runs|works?"
    r"|using|uses?|used|install|recommend(?:ed|s)?|rel(?:y|ies)|depends?|prerequisites?|dependenc(?:y|ies)|environments?)"
)
_FILLER = (
    r"(?:\s+(?:with|on|in|under|for|by|you|we|to|use|the|a|an|at|least|is|are|be|of|from|version|and|both"
    r"|conda))*"
)
_BEGINNING = re.compile(
    rf"^{_ENTRY.pattern}|{_VERB}{_FILLER}\s*:?\s+|^\s*(?=[A-Za-z])", re.IGNORECASE
)
_BETWEEN = re.compile(
    r"(?:\s*(?:[,;&+/]|\b(?:and|with|on|under|as\s+well\s+as)\b))*\s*", re.IGNORECASE
)
_LATER = r"\+(?![\w.+])|\s*\(?(?:or|and)\s+(?:higher|later|above|newer|greater|up)\b\)?"
_NAMED = re.compile(
    r"(?P<name>[A-Za-z][\w-]*)(?:\s+version)?(?:\s*(?P<sign>==|>=|<=|~=|[=<>≥≤])\s*|\s+)v?"
    rf"(?P<version>\d+(?:\.\d+)+)(?:\s*\+\s*(?:cu|cpu|rocm)[\d.]*)?(?P<later>{_LATER})?"
    # Of several releases none is the one: `1.1~1.7`, `3.7, 3.8`, `0.4.8/0.4.12`, `3.7 or 3.8`, `1.x`.
    r"(?![.\w]*[\w~]|\s*(?:[/~–—-]|to\b|or\b|through\b)\s*v?\d|\s*,\s*\d|\s*(?:x|rc|alpha|beta|dev|nightly)\b)",
    re.IGNORECASE,
)
# Letters before a release in which its subject is looked for.
_SUBJECT = 200
_BOUNDS = {"≥": ">=", "≤": "<=", "=": "=="}


class NamedRelease(Value):
    """A release that a sentence names: an item, whether a sign of comparison is there, and the words before it."""

    item: Item
    is_compared: bool
    subject: tuple[str, ...]


def named_releases(source: FileText) -> Iterator[NamedRelease]:
    """What the sentences of a text say, from its beginning to its end."""
    fence, beside = "", 0
    for line in source.lines():
        if mark := _FENCE.match(line.text):
            fence = "" if mark[1][:3] == fence else fence or mark[1][:3]
        elif heading := _HEADING.match(line.text):
            depth = len(heading[1])
            if not beside or depth <= beside:
                beside = depth if _BESIDE.search(heading[2]) else 0
        elif not fence and not beside and any(map(str.isdigit, line.text)):
            yield from _of_line(line)


def _of_line(line: Traced) -> Iterator[NamedRelease]:
    entry = _ENTRY.match(line.text)
    begin = entry.end() if entry else 0
    # Each letter keeps its place.
    plain = line.text[:begin] + _MARKS.sub(lambda mark: " " * len(mark[0]), line.text[begin:])
    start = 0
    for sentence in _SENTENCE.split(plain):
        start = plain.index(sentence, start)
        own = _CLAUSE.split(sentence)[0]
        if not _UNSURE.search(own):
            yield from _of_sentence(line, plain, start, start + len(own))
        start += len(sentence)


def _of_sentence(line: Traced, plain: str, start: int, end: int) -> Iterator[NamedRelease]:
    position = start
    while match := _BEGINNING.search(plain, position, end):
        position, behind = max(match.end(), position + 1), match.end()
        chain = []
        while named := _NAMED.match(plain, behind, end):
            chain.append(named)
            between = _BETWEEN.match(plain, named.end(), end)
            behind = between.end() if between else named.end()
        # At the beginning of a line one name may be the subject of a sentence.
        is_bare = not match[0].strip()
        if is_bare and (len(chain) < 2 or plain[behind:end].strip(" .;<>/")):
            continue
        subject = plain[max(start, match.start() - _SUBJECT) : match.start()] if chain else ""
        before = tuple(re.findall(r"[\w-]+", subject.lower()))
        for named in chain:
            yield _release(line, plain, named, before)
        position = max(position, behind if chain else 0)


def _release(
    line: Traced, plain: str, named: re.Match[str], before: tuple[str, ...]
) -> NamedRelease:
    name, version, sign = named["name"], named["version"], named["sign"] or ""
    sign = _BOUNDS.get(sign, sign)
    if named["later"]:
        specifier = f">={version}"
    elif sign and sign != "==":
        specifier = f"{sign}{version}"
    else:
        # `1.8` is a series, as people write it.
        specifier = f"=={version}" if version.count(".") > 1 else f"=={version}.*"
    # Without the marks in it.
    letters = [at for at in range(*named.span()) if plain[at] == line.text[at]]
    text = Traced(
        line.source, "".join(line.text[at] for at in letters), [line.at[at] for at in letters]
    ).strip()
    item = Item(
        kind=PYTHON if name.lower() == PYTHON else PIP,
        name=name,
        specifier=specifier,
        text=text,
        version=line.group(named, "version"),
        prose=True,
    )
    return NamedRelease(item=item, is_compared=bool(sign), subject=before)
