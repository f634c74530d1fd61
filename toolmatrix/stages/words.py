"""Words of a command line as nvcc prints it: spaces separate, `"` groups, nothing else is quoted.

nvcc escapes `"` inside `"..."` and nothing else: `$`, backquote and backslash are printed raw. A backslash before
any other character is that backslash; where a word ends is nevertheless the shell's decision (nvcc passes the line
to `sh -c`), so of `\\\\` the second does not escape what follows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_QUOTES = re.compile(r'\\(.?)|"', re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"\\]+|\\.?)*"?', re.DOTALL)
_REDIRECT = re.compile(r"(?:[12&]?>>?|<)(?!&)(.*)", re.DOTALL)
_DUPLICATE = re.compile(r"[12]?>&[12-]")
# Words that mean the same to nvcc and to a shell, whatever it is.
_SIMPLE = re.compile(r'[^"\\$`\';&|()<>*?~#]+|"([^"\\$`]+)"')
_EXPANDS = re.compile(r"\$[\w{(@*#?!$-]|`")
_SPECIAL = re.compile(r"['\\;&|()<>*?]|^[~#]")
_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}|%(\w+)%", re.ASCII)

_MESSAGES = re.compile(r"""\s*[12]?>\s*"?[^\s"]*tmpxft_[^\s"]*_std(?:out|err)"?(?=\s|$)""")

_MOST = 1 << 16
_LONGEST_PATH = 4096


class Lexicon:
    """Remembers words with their quotes on and what they mean, so that a word that comes again costs nothing."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._odd: set[str] = set()

    def split(self, text: str) -> tuple[list[str], list[str]]:
        """The words of a line with their quotes on, and what they mean; linear on any text."""
        # A log that never says a word twice must not fill the memory.
        if len(self._known) >= _MOST:
            self._known.clear()
            self._odd.clear()
        raw: list[str] = []
        means: list[str] = []
        held: list[str] = []
        quoted = False
        known = self._known
        # A tab separates as a blank does, and stays where it is within quotes.
        for piece in text.replace("\t", " \t").split(" "):
            if not held:
                meant = known.get(piece)
                if meant is not None:
                    raw.append(piece)
                    means.append(meant)
                    continue
                piece = piece.lstrip("\t")
                if not piece:
                    continue
            if '"' in piece and not closed(piece):
                quoted = not quoted
            # Where a word ends is the shell's decision: an odd number of backslashes escapes the blank behind them.
            if quoted or (len(piece) - len(piece.rstrip("\\"))) % 2:
                held.append(piece)
                continue
            if held:
                piece = " ".join([*held, piece]).replace(" \t", "\t")
                held.clear()
            raw.append(piece)
            means.append(self._learn(piece))
        if held:
            raw.append(" ".join(held).replace(" \t", "\t"))
            means.append(plain(raw[-1]))
        return raw, means

    def expanded(self, raw: Sequence[str]) -> list[str]:
        """The words, quotes on, of which a shell makes something else than nvcc meant."""
        return [] if self._odd.isdisjoint(raw) else [word for word in raw if word in self._odd]

    def _learn(self, word: str) -> str:
        simple = _SIMPLE.fullmatch(word)
        if simple is None:
            means = plain(word)
            if _shell_differs(word):
                self._odd.add(word)
        else:
            means = simple[1] or word
        self._known[word] = means
        return means


def without_messages(text: str) -> str:
    """A command that says what it has to say, also where a thread of nvcc collects that in files."""
    return _MESSAGES.sub("", text) if "_std" in text else text


def plain(word: str) -> str:
    """The meaning of a word with its quotes on."""
    inside = word[1:-1]
    # Nearly all quoted words hold neither, and `sub` is slow.
    if word[:1] == word[-1:] == '"' and '"' not in inside and "\\" not in inside:
        return inside
    return _QUOTES.sub(_unquoted, word)


def _unquoted(found: re.Match[str]) -> str:
    escaped = found[1]
    if escaped is None:
        return ""
    return '"' if escaped == '"' else found[0]


def closed(text: str) -> bool:
    """Check that every `"` of a text has its partner."""
    # Only a backslash can make a quote mean itself, and few texts hold one.
    if "\\" not in text:
        return text.count('"') % 2 == 0
    return sum(found[0] == '"' for found in _QUOTES.finditer(text)) % 2 == 0


def _shell_differs(word: str) -> bool:
    if _DUPLICATE.fullmatch(word):
        return False
    # nvcc means redirections as the shell takes them.
    redirect = _REDIRECT.fullmatch(word)
    word = redirect[1] if redirect else word
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

    def value(found: re.Match[str]) -> str:
        set_to = env.get(found[found.lastindex or 0], found[0])
        # Without a bound a short line could grow to gigabytes.
        return set_to if len(set_to) <= _LONGEST_PATH else found[0]

    return _VARIABLE.sub(value, word)
