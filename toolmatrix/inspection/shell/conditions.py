"""Conditions of scripts: `test`, `[[` and patterns, as far as texts and the files of the image decide them."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from toolmatrix.images.layers import DIRECTORY, FILE
from toolmatrix.inspection.shell.state import State
from toolmatrix.inspection.shell.syntax import UNKNOWN

if TYPE_CHECKING:
    from toolmatrix.inspection.record import View

# What exists only once a container runs.
_MOUNTED = ("/dev", "/proc", "/run", "/sys", "/var/run", "/.dockerenv")
# Characters of a text out of which a pattern is cut.
_LONGEST_CUT = 256
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "-eq": int.__eq__,
    "-ne": int.__ne__,
    "-lt": int.__lt__,
    "-le": int.__le__,
    "-gt": int.__gt__,
    "-ge": int.__ge__,
}


class Condition:
    """The conditions of `test` and `[[`, of texts each with the pattern that it is on the right of a comparison."""

    def __init__(self, view: View, state: State) -> None:
        self.view = view
        self.state = state

    def decide(self, pairs: Sequence[tuple[str, str]]) -> bool | None:
        """True or false, None where that is not known."""
        texts = [text for text, _ in pairs]
        # By POSIX the number of words decides: of three, `-a` in the middle may be a text.
        if len(pairs) > 3 or "&&" in texts or "||" in texts:
            for signs, winner in ((("||", "-o"), True), (("&&", "-a"), False)):
                place = next((n for n, text in enumerate(texts) if n and text in signs), 0)
                if place and "(" not in texts:
                    either = [self.decide(pairs[:place]), self.decide(pairs[place + 1 :])]
                    return winner if winner in either else None if None in either else not winner
        if len(pairs) > 1 and texts[0] == "!":
            inner = self.decide(pairs[1:])
            return None if inner is None else not inner
        if len(pairs) == 1:
            return is_filled(texts[0])
        if len(pairs) == 2:
            return self._unary(*texts)
        return (
            self._binary(texts[0], texts[1], pairs[2])
            if len(pairs) == 3
            else None
            if pairs
            else False
        )

    def _unary(self, sign: str, text: str) -> bool | None:
        if sign in ("-n", "-z"):
            filled = is_filled(text)
            return filled if sign == "-n" or filled is None else not filled
        if sign == "-v":
            return text in self.state.variables
        if UNKNOWN in text or sign == "-t":
            return None
        place = posixpath.normpath(posixpath.join(self.state.folder, text)) if text else ""
        entry = self.view.tree.entry(place, follow=sign not in ("-L", "-h")) if place else None
        if entry is None:
            volumes = self.view.settings.get("Volumes")
            changing = (*_MOUNTED, *(volumes if isinstance(volumes, dict) else ()))
            return None if f"{place}/".startswith(tuple(f"{path}/" for path in changing)) else False
        if sign in ("-e", "-r"):
            return True if sign == "-e" or self.view.is_open(place) else None
        kinds = {"-f": FILE, "-d": DIRECTORY}
        if sign in kinds:
            return entry.kind == kinds[sign]
        if sign == "-x" and entry.kind == FILE:
            return entry.is_program
        return bool(entry.size) if sign == "-s" and entry.kind == FILE else None

    def _binary(self, left: str, sign: str, right: tuple[str, str]) -> bool | None:
        if sign in ("=", "==", "!="):
            same = matches(left, right[1])
            return same if sign != "!=" or same is None else not same
        if sign in _COMPARISONS and left.isdecimal() and right[0].isdecimal():
            return _COMPARISONS[sign](int(left), int(right[0]))
        return None


def literal(text: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", text)


def is_filled(text: str) -> bool | None:
    return None if text and not text.strip(UNKNOWN) else bool(text)


def matches(text: str, pattern: str) -> bool | None:
    if pattern == "*":
        return True
    return None if UNKNOWN in text + pattern else fnmatch.fnmatchcase(text, pattern)


# A text without its beginning or its end that matches a pattern.
def cut(text: str, operator: str, pattern: str) -> str:
    if len(text) > _LONGEST_CUT or UNKNOWN in text + pattern:
        return UNKNOWN
    fits = re.compile(fnmatch.translate(pattern)).match
    lengths = range(len(text) + 1) if len(operator) == 1 else range(len(text), -1, -1)
    if operator[0] == "#":
        return next((text[count:] for count in lengths if fits(text[:count])), text)
    return next((text[: len(text) - c] for c in lengths if fits(text[len(text) - c :])), text)
