"""Words of a command line as nvcc prints it: spaces separate, `"` groups, nothing else is quoted.

nvcc escapes `"` inside `"..."` and nothing else: `$`, backquote and backslash are printed raw. A backslash before
any other character is that backslash; where a word ends is nevertheless the shell's decision (nvcc passes the line
to `sh -c`), so of `\\\\` the second does not escape what follows.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# No alternative can fail once it was chosen, so there is nothing to go back to: linear on any text.
_RAW = re.compile(r'(?:[^ \t"\\]+|\\.?|"(?:[^"\\]+|\\.?)*"?)+', re.DOTALL)
_QUOTES = re.compile(r'\\(.)|"', re.DOTALL)
_REDIRECT = re.compile(r"(?:[12&]?>>?|<)(?!&)(.*)", re.DOTALL)
_DUPLICATE = re.compile(r"[12]?>&[12-]")
_EXPANDS = re.compile(r"\$[\w{(@*#?!$-]|`")
_SPECIAL = re.compile(r"['\\;&|()<>*?~#]")
_QUOTED = re.compile(r'"(?:[^"\\]+|\\.?)*"?', re.DOTALL)
_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}|%(\w+)%", re.ASCII)


def raw(text: str) -> Sequence[str]:
    """The words of a line with their quotes still on."""
    if "\\" not in text and "\t" not in text:
        found = [word for word in text.split(" ") if word]
        if all(word.count('"') % 2 == 0 for word in found if '"' in word):
            return found
    return _RAW.findall(text)


def plain(word: str) -> str:
    """What a word with its quotes on means."""
    if '"' not in word and "\\" not in word:
        return word
    inside = word[1:-1]
    if word[0] == word[-1] == '"' and '"' not in inside and "\\" not in inside:
        return inside
    return _QUOTES.sub(_unquoted, word)


def _unquoted(found: re.Match[str]) -> str:
    escaped = found[1]
    if escaped is None:
        return ""
    return '"' if escaped == '"' else found[0]


def balanced(text: str) -> bool:
    """Whether every `"` of a line is closed."""
    if "\\" not in text:
        return text.count('"') % 2 == 0
    return sum(found[0] == '"' for found in _QUOTES.finditer(text)) % 2 == 0


def take_redirections(found: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Raw words without redirections, and the plain names of the files that those read and write."""
    rest: list[str] = []
    reads: list[str] = []
    writes: list[str] = []
    waiting = None
    for word in found:
        if waiting is not None:
            waiting.append(plain(word))
            waiting = None
        elif (redirect := _REDIRECT.fullmatch(word)) is not None:
            side = reads if word[0] == "<" else writes
            if redirect[1]:
                side.append(plain(redirect[1]))
            else:
                waiting = side
        elif not _DUPLICATE.fullmatch(word):
            rest.append(word)
    return rest, reads, writes


def expanded_by_shell(found: Iterable[str]) -> list[str]:
    """Raw words of which a shell makes something else than nvcc meant."""
    return [
        word
        for word in found
        if _EXPANDS.search(word) or _SPECIAL.search(_QUOTED.sub("", word) if '"' in word else word)
    ]


def variables(word: str, env: dict[str, str]) -> str:
    """A word with the variables that the log itself set put in, `$NAME` as well as `%NAME%`."""
    if "$" not in word and "%" not in word:
        return word
    return _VARIABLE.sub(
        lambda found: env.get(found[1] or found[2] or found[3], found[0]),
        word,
    )


def may_expand(text: str) -> bool:
    """Whether anything in a line is worth asking `expanded_by_shell` about; quick."""
    return _ANY.search(text) is not None


_ANY = re.compile(r"[$`'\\;&|()<>*?~#]")
