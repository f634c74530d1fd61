"""Versions and selectors: the one small language in which facts and requests say which releases they mean.

A selector is alternatives (separated by spaces or bars), each one or more clauses joined by commas:
`*`, `11.2`, `==11.2`, `>=11.2,<12`, `~=1.19.2`, `!=4.21.0`, `==3.9.*`, `3.6-3.9`, `sm_80 sm_86`, `absent`.
Order and operators are those of PEP 440, with one addition that is said wherever it matters: `11.2` and `==11.2` also
admit the finer releases 11.2.x. docs/facts.md has the table.

The subset of PEP 440 read here is a release with at most one of the suffixes a, b, rc, dev, post; tests hold it against
`packaging`, which is not imported because that takes 61 ms, more than a whole `resolve`; nor is `re`, which takes as
long as reading the facts of an answer.
"""

from __future__ import annotations

from itertools import compress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Key = tuple[tuple[int, ...], int, int]
"""(numbers as written, phase, number of the suffix); phase is 0 for a final release, 1 for post, below 0 for pre."""

ABSENT = "absent"
_PHASE = {"dev": -4, "a": -3, "b": -2, "rc": -1, "c": -1, "post": 1}
_DIGITS = "0123456789"
# So many digits a number may have: no release has more, and reading longer ones takes time.
_LONGEST = 18
_OPERATORS = ("===", "==", "!=", "~=", ">=", "<=", ">", "<")


class SelectorError(ValueError):
    """A selector or version that cannot be read; the text says which part and why."""


def key(version: str) -> Key:
    """The sort key of a version. Raises SelectorError for text that is not a version."""
    # Nearly all versions are plain numbers, which need nothing of what suffixes do.
    if len(version) <= _LONGEST and version.isascii():
        plain = version.split(".")
        if all(map(str.isdecimal, plain)):
            return tuple(map(int, plain)), 0, 0
    text = version.strip().lower()
    text = text[1:] if text[:1] == "v" else text
    suffix = text.lstrip(_DIGITS + ".")
    release = text[: len(text) - len(suffix)]
    phase, count, read = 0, 0, True
    if suffix:
        # One separator may stand before a suffix, and one behind its word: `1.0-rc.1`.
        release, suffix = (
            release.removesuffix("."),
            suffix[suffix[0] in "-_" and release[-1:] != "." :],
        )
        word = suffix.rstrip(_DIGITS)
        digits = suffix[len(word) :]
        phase = _PHASE.get(word[:-1] if word.endswith((".", "-", "_")) else word, 0)
        read = phase != 0 and len(digits) <= _LONGEST
        count = int(digits or 0) if read else 0
    numbers = release.split(".")
    if not (read and all(0 < len(number) <= _LONGEST for number in numbers)):
        raise SelectorError(f"`{version}` is not a version")
    return tuple(map(int, numbers)), phase, count


def order(version: Key) -> Key:
    """The key to sort by: trailing zeros do not count, 1.0 equals 1 (PEP 440, zero padding)."""
    numbers, phase, count = version
    end = len(numbers)
    while end > 1 and numbers[end - 1] == 0:
        end -= 1
    return numbers[:end], phase, count


class Clause:
    """One comparison: an operator (`==`, `>=`, ..., `any`, `absent`, `name`) and its version or name."""

    __slots__ = ("operator", "text", "version")

    def __init__(self, operator: str, text: str, version: Key | None) -> None:
        self.operator = operator
        self.text = text
        self.version = version

    def __str__(self) -> str:
        return f"{'' if self.operator in ('name', 'any', 'absent') else self.operator}{self.text}"


Selector = tuple[tuple[Clause, ...], ...]


def parse(text: str, *, names: bool = False) -> Selector:
    """Read a selector; with `names` its words are names without order. Raises SelectorError."""
    words: list[str] = []
    for alternative in text.split("|"):
        start = len(words)
        for word in alternative.split():
            # Blanks separate alternatives, but for those around a comma or behind an operator: `>= 11.2, < 12`.
            if len(words) > start and (word[0] == "," or words[-1].endswith((",", *_OPERATORS))):
                words[-1] += word
            else:
                words.append(word)
    if not words:
        raise SelectorError("an empty selector admits nothing")
    return tuple(tuple(_clauses(word, names)) for word in words)


def _clauses(word: str, names: bool) -> Iterator[Clause]:
    first, dash, last = word.partition("-")
    # Names may have dashes, as `nvidia/cuda:11.2.2-devel` has, and are no ranges.
    if dash and not names and _is_range_end(first) and _is_range_end(last):
        yield Clause(">=", first, key(first))
        yield Clause("upto", last, key(last))
        return
    for comparison in word.split(","):
        operator = next((sign for sign in _OPERATORS if comparison.startswith(sign)), "")
        if len(comparison) == len(operator):
            raise SelectorError(f"`{word}` has an empty part between commas")
        yield _clause(operator, comparison[len(operator) :], names)


def _is_range_end(text: str) -> bool:
    # An end of a range: a digit, then letters, digits and dots.
    return text[:1].isdecimal() and text.replace(".", "").replace("_", "").isalnum()


def _clause(operator: str, text: str, names: bool) -> Clause:
    if text == "*" and operator in ("", "=="):
        return Clause("any", text, None)
    if text == ABSENT and not operator:
        return Clause("absent", text, None)
    if names:
        if operator not in ("", "==", "!="):
            raise SelectorError(f"names have no order: `{operator}{text}` cannot be compared")
        return Clause("!=" if operator == "!=" else "name", text, None)
    if operator in ("==", "!=", "") and text.endswith(".*"):
        version = key(text[:-2])
        if version[1]:
            raise SelectorError(f"`{text}`: only numbers may stand before `.*` (PEP 440)")
        return Clause(operator or "==", text, version)
    version = key(text)
    if operator == "~=" and len(version[0]) < 2:
        raise SelectorError(f"`~={text}` needs at least two numbers (PEP 440)")
    return Clause(operator or "==", text, version)


class Scale:
    """The releases of one component, ascending, with the scheme that says how they are compared.

    Bit 0 of every mask is "absent", bit i is release i-1.
    """

    __slots__ = ("_keys", "_masks", "_parsed", "_positions", "_selected", "scheme", "versions")

    def __init__(self, scheme: str, versions: Sequence[str], *, known: bool = False) -> None:
        """`known` says that the releases are versions, so that they need not be read before they are compared."""
        self.scheme = scheme
        self.versions = tuple(versions)
        self._keys: list[tuple[Key, Key]] = []
        self._positions = {version: position for position, version in enumerate(self.versions)}
        self._selected: dict[str, int] = {}
        self._masks: dict[tuple[str, str], int] = {}
        self._parsed: dict[str, Selector] = {}
        if not known and scheme != "names":
            self._read()

    @property
    def everything(self) -> int:
        """The mask of all releases (without absent)."""
        return (2 << len(self.versions)) - 2

    def parse(self, text: str) -> Selector:
        """Read a selector as this component's scheme wants it."""
        if text not in self._parsed:
            self._parsed[text] = parse(text, names=self.scheme == "names")
        return self._parsed[text]

    def bit(self, version: str) -> int:
        """The mask of one release, 0 if it is unknown."""
        position = self._positions.get(version)
        return 0 if position is None else 2 << position

    def named(self, mask: int) -> list[str]:
        """The releases in a mask."""
        bits = f"{(mask & self.everything) >> 1:b}"
        return [*compress(self.versions, map(int, reversed(bits)))]

    def exact(self, version: str) -> str:
        """The selector of a release without those that are finer; names have none."""
        return version if self.scheme == "names" else f"==={version}"

    def mask(self, selector: Selector) -> int:
        """The mask of the releases a selector admits (bit 0 for `absent`)."""
        whole = 0
        for alternative in selector:
            admitted = self.everything | 1
            for clause in alternative:
                admitted &= self._clause_mask(clause)
            whole |= admitted
        return whole

    def select(self, text: str) -> int:
        """`mask` of the text of a selector, read once."""
        if text not in self._selected:
            self._selected[text] = self.mask(self.parse(text))
        return self._selected[text]

    def _clause_mask(self, clause: Clause) -> int:
        if clause.operator == "any":
            return self.everything
        if clause.operator == "absent":
            return 1
        if self.scheme == "names":
            return self._named(clause)
        # Thousands of selectors share a few clauses.
        name = clause.operator, clause.text
        if name not in self._masks:
            self._masks[name] = self._compared(clause)
        return self._masks[name]

    def _compared(self, clause: Clause) -> int:
        admits = _series_admits if self.scheme == "series" else _admits
        wanted = clause.version or key(clause.text)
        limit = order(wanted)
        mask = 0
        for position, (version, rank) in enumerate(self._read()):
            if admits(clause, wanted, limit, version, rank):
                mask |= 2 << position
        return mask

    def _read(self) -> list[tuple[Key, Key]]:
        # Only when a clause compares: most selectors of an answer name releases, or any.
        if not self._keys:
            keys = [key(version) for version in self.versions]
            self._keys = [(version, order(version)) for version in keys]
        return self._keys

    def _named(self, clause: Clause) -> int:
        mask = self.bit(clause.text)
        if "*" in clause.text:
            # Few facts have names with a star, and `re` takes as long to import as an answer's facts to read.
            import re

            pattern = re.compile(".*".join(map(re.escape, clause.text.split("*"))))
            for position, name in enumerate(self.versions):
                if pattern.fullmatch(name):
                    mask |= 2 << position
        return self.everything & ~mask if clause.operator == "!=" else mask


def _starts_with(version: Key, prefix: tuple[int, ...]) -> bool:
    # What is not written is zero (PEP 440).
    numbers = version[0]
    return (numbers + (0,) * (len(prefix) - len(numbers)))[: len(prefix)] == prefix


def _is_equal(clause: Clause, wanted: Key, limit: Key, version: Key, rank: Key) -> bool:
    """`==`: equal with zero padding, or a finer release of the one named (but no pre-release of it)."""
    if clause.text.endswith(".*"):
        return _starts_with(version, wanted[0])
    if limit == rank:
        return True
    # What is finer than a pre-release would be another pre-release: `2.0rc1` names itself alone.
    finer = len(version[0]) > len(wanted[0]) and wanted[1] == 0
    return finer and rank > limit and _starts_with(version, wanted[0])


def _admits(clause: Clause, wanted: Key, limit: Key, version: Key, rank: Key) -> bool:
    # The clause is about `wanted`, which sorts as `limit`, and the version sorts as `rank`.
    operator = clause.operator
    if operator == "===":
        return rank == limit
    if operator == "==":
        return _is_equal(clause, wanted, limit, version, rank)
    if operator == "!=":
        return not _is_equal(clause, wanted, limit, version, rank)
    if operator == "upto":
        return rank <= limit or _is_equal(clause, wanted, limit, version, rank)
    if operator == "~=":
        return rank >= limit and _starts_with(version, wanted[0][:-1])
    if operator == ">=":
        return rank >= limit
    if operator == "<=":
        return rank <= limit
    # `>1.0` does not admit 1.0.post1, nor `<1.0` any 1.0rc1 (PEP 440, exclusive ordered comparison).
    same_release = rank[0] == limit[0]
    if operator == ">":
        return rank > limit and not (same_release and wanted[1] == 0 and version[1] > 0)
    return rank < limit and not (same_release and wanted[1] == 0 and version[1] < 0)


def _series_admits(clause: Clause, wanted: Key, limit: Key, version: Key, rank: Key) -> bool:
    # A series represents its point releases: it is admitted if one of them could be.
    operator = clause.operator
    numbers = version[0]
    inside = wanted[0][: len(numbers)] == numbers
    above = order((wanted[0][: len(numbers)], 0, 0))
    if operator in ("==", "==="):
        return inside or _starts_with(version, wanted[0])
    if operator == "!=":
        return not (inside and len(wanted[0]) <= len(numbers)) and not (
            len(wanted[0]) < len(numbers) and _starts_with(version, wanted[0])
        )
    if operator == "~=":
        return rank >= above and _starts_with(version, wanted[0][:-1][: len(numbers)])
    if operator in ("upto", "<="):
        return rank <= limit or _starts_with(version, wanted[0])
    if operator == "<":
        return rank < limit and not _starts_with(version, wanted[0])
    if operator == ">=":
        return rank >= above
    if len(wanted[0]) > len(numbers):
        return rank >= above
    return rank > above and not _starts_with(version, wanted[0])


def sort(scheme: str, versions: dict[str, int]) -> list[str]:
    """Release names in ascending order of preference: by version, or by (rank, name) for the scheme `names`.

    Raises SelectorError for a name that is no version.
    """
    if scheme == "names":
        return sorted(versions, key=lambda name: (versions[name], name))
    # By the text as well, as 1.0 and 1.0.0 sort alike and the result must not depend on the order of files.
    return sorted(versions, key=lambda version: (order(key(version)), version))
