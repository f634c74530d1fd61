"""Words of a command line as nvcc prints it: spaces separate, `"` groups, nothing else is quoted.

nvcc escapes `"` inside `"..."` and nothing else: `$`, backquote and backslash are printed raw. A backslash before
any other character is that backslash; where a word ends is nevertheless the shell's decision (nvcc passes the line
to `sh -c`), so of `\\\\` the second does not escape what follows.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_QUOTES = re.compile(r'\\(.?)|"', re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"\\]+|\\.?)*"?', re.DOTALL)
_REDIRECT = re.compile(r"(?:[12&]?>>?|<)(?!&)(.*)", re.DOTALL)
_DUPLICATE = re.compile(r"[12]?>&[12-]")
_PERHAPS = re.compile(r"[$`'\\;&|()<>*?~#]")
_EXPANDS = re.compile(r"\$[\w{(@*#?!$-]|`")
_SPECIAL = re.compile(r"['\\;&|()<>*?]|^[~#]")
_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}|%(\w+)%", re.ASCII)

_MOST = 1 << 16


class Lexicon(dict[str, str]):
    """Words with their quotes on and what they mean, remembered so that a word that comes again costs nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._odd: set[str] = set()

    def __missing__(self, word: str) -> str:
        """What a word means; ValueError if it is only the beginning of one."""
        if '"' in word or "\\" in word:
            if _goes_on(word):
                raise ValueError(word)
            means = plain(word)
        else:
            means = word
        if len(self) >= _MOST:
            self.clear()
            self._odd.clear()
        if _PERHAPS.search(word) and _shell_differs(word):
            self._odd.add(word)
        self[word] = means
        return means

    def split(self, text: str) -> tuple[list[str], list[str]]:
        """The words of a line with their quotes on, and what they mean; linear on any text."""
        if "\t" not in text:
            raw = [piece for piece in text.split(" ") if piece]
            try:
                return raw, list(map(self.__getitem__, raw))
            except ValueError:
                pass  # a blank within quotes
        raw = list(_joined(text))
        # Only the last word can be cut off, and the memory has no room for such ones.
        cut = len(raw) - 1 if raw and _goes_on(raw[-1]) else len(raw)
        return raw, [*map(self.__getitem__, raw[:cut]), *map(plain, raw[cut:])]

    def expanded(self, raw: Sequence[str]) -> list[str]:
        """The words, quotes on, of which a shell makes something else than nvcc meant."""
        return [] if self._odd.isdisjoint(raw) else [word for word in raw if word in self._odd]


def _joined(text: str) -> Iterator[str]:
    """The words of a line with their quotes on, whatever stands within the quotes."""
    held: list[str] = []
    quoted = False
    # A tab separates as a blank does, and stays where it is within quotes.
    for piece in text.replace("\t", " \t").split(" "):
        if not held:
            piece = piece.lstrip("\t")
            if not piece:
                continue
        if '"' in piece and not closed(piece):
            quoted = not quoted
        held.append(piece)
        if not quoted and not _escapes_blank(piece):
            yield " ".join(held).replace(" \t", "\t")
            held.clear()
    if held:
        yield " ".join(held).replace(" \t", "\t")


def plain(word: str) -> str:
    """What a word with its quotes on means."""
    inside = word[1:-1]
    if word[:1] == word[-1:] == '"' and '"' not in inside and "\\" not in inside:
        return inside
    return _QUOTES.sub(_unquoted, word)


def _unquoted(found: re.Match[str]) -> str:
    escaped = found[1]
    if escaped is None:
        return ""
    return '"' if escaped == '"' else found[0]


def closed(text: str) -> bool:
    """Whether every `"` of a text has its partner."""
    if "\\" not in text:
        return text.count('"') % 2 == 0
    return sum(found[0] == '"' for found in _QUOTES.finditer(text)) % 2 == 0


def _goes_on(word: str) -> bool:
    """Whether what follows the next blank belongs to a word."""
    return not closed(word) or _escapes_blank(word)


def _escapes_blank(word: str) -> bool:
    """Whether the blank after a word belongs to it, for a shell."""
    return word.endswith("\\") and (len(word) - len(word.rstrip("\\"))) % 2 == 1


def _shell_differs(word: str) -> bool:
    return _EXPANDS.search(word) is not None or _SPECIAL.search(_QUOTED.sub("", word)) is not None


def take_redirections(
    raw: Sequence[str], means: Sequence[str]
) -> tuple[list[str], list[str], list[str]]:
    """Of the words of a line what a program gets of them, and the names of files to read from and to write to."""
    rest: list[str] = []
    reads: list[str] = []
    writes: list[str] = []
    waiting = None
    for word, meant in zip(raw, means, strict=True):
        if waiting is not None:
            waiting.append(meant)
            waiting = None
        elif (redirect := _REDIRECT.fullmatch(word)) is not None:
            side = reads if word[0] == "<" else writes
            if redirect[1]:
                side.append(plain(redirect[1]))
            else:
                waiting = side
        elif not _DUPLICATE.fullmatch(word):
            rest.append(meant)
    return rest, reads, writes


def variables(word: str, env: Mapping[str, str]) -> str:
    """A word with the variables that the log itself set put in, `$NAME` as well as `%NAME%`."""
    if "$" not in word and "%" not in word:
        return word
    return _VARIABLE.sub(lambda found: env.get(found[found.lastindex or 0], found[0]), word)
