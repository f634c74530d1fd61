"""A request as it is written, one field for each option, and the words that options take.

Nothing here is looked up but the names of targets, accelerators and ways to get a framework, which the matrix declares.
"""

from __future__ import annotations

from toolmatrix.errors import UsageError
from toolmatrix.factbase import names
from toolmatrix.factbase.evidence import UNKNOWN, WORDS
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from toolmatrix.errors import Position, ToolmatrixError
    from toolmatrix.factbase.index import Index

HOST, STDIN = "host", "-"
"""Words in the place of devices: those of this machine, and of one whose description is piped in."""
PREFERENCES = ("newest", "oldest", "best-evidence")


def is_paste(word: str) -> bool:
    """True if a word in the place of a device is a file with what was printed on a machine."""
    # The name of a file has a dot before letters, and a compute capability one before a digit.
    _, dot, ending = word.rpartition(".")
    return word == STDIN or "/" in word or bool(dot and ending[:1].isalpha())


def is_machine(word: str) -> bool:
    """True if a word in the place of a device is a machine, which has devices."""
    return word == HOST or is_paste(word)


class BadValue(UsageError):
    """A value that an option does not take; `about` adds where it was."""

    def __init__(self, expected: str, found: str, help: str = "", name: str = "") -> None:
        super().__init__(f"bad value for `{name}`", expected=expected, found=found, help=help)
        self.name = name

    def about(
        self, kind: type[ToolmatrixError], subject: str, where: Position | None = None
    ) -> ToolmatrixError:
        """The error for the option or key that it was meant for, and where it stood."""
        return kind(
            f"bad value for {subject}",
            where=where,
            expected=self.expected,
            found=self.found,
            help=self.help,
        )


DECLARED = ("target", "from_", "accelerator")
"""The options whose words the front page of the matrix declares."""


class Fields(Value):
    """A request as written: the words for wanted components, and each option by its name."""

    wanted: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    from_: str = ""
    accelerator: str = ""
    arch: tuple[str, ...] = ()
    device: tuple[str, ...] = ()
    cpu: str = ""
    distro: str = ""
    with_: tuple[str, ...] = ()
    prefer: str = "best-evidence"
    align: tuple[str, ...] = ()
    at: str = ""
    min_evidence: str = UNKNOWN
    recipe: str = ""

    def arguments(self) -> tuple[str, ...]:
        """The words for wanted components, then one `--option=value` for each option that is not at its default."""
        arguments = list(self.wanted)
        for name in OPTIONS:
            value = getattr(self, name)
            if value != _DEFAULTS[name]:
                several = (value,) if isinstance(value, str) else value
                # A comma in `--with` joins bounds of one component, so that each of them takes its own option.
                several = several if name == "with_" else (",".join(several),)
                arguments += [f"{flag(name)}={text}" for text in several]
        return tuple(arguments)


_DEFAULTS: Mapping[str, Any] = Fields._defaults
OPTIONS = tuple(name for name in Fields._fields if name != "wanted")
# Fields of several words; the others take one.
_LISTS = tuple(name for name in OPTIONS if isinstance(_DEFAULTS[name], tuple))


def flag(name: str) -> str:
    """The long flag of a field."""
    return "--" + name.rstrip("_").replace("_", "-")


def parse_arguments(words: Iterable[str]) -> dict[str, Any]:
    """The fields that words set: `name==1.2`, `--option value` or `--option=value`. Raises UsageError."""
    flags = {flag(name): name for name in OPTIONS}
    values: dict[str, Any] = {"wanted": ()}
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if not word.startswith("--"):
            values["wanted"] += (word,)
            continue
        if option not in flags:
            raise UsageError(f"`{option}` is not an option of a request", expected=", ".join(flags))
        name, value = flags[option], value if equals else next(rest, "")
        if not value:
            raise BadValue("a value", "nothing", name=option)
        if name in _LISTS:
            # A comma in `--with` joins bounds: `numpy>=1.19,<2`.
            several = (value,) if name == "with_" else value.split(",")
            values[name] = (*values.get(name, ()), *filter(None, map(str.strip, several)))
        elif values.setdefault(name, value) != value:
            raise UsageError(
                f"`{option} {values[name]}` and `{option} {value}` contradict each other"
            )
    return values


def settled(fields: Fields, index: Index) -> Fields:
    """The fields with the words that the matrix and the options know for those that were written.

    Raises BadValue with the name of the field, and CannotSay for a word that no fact covers.
    """
    changes: dict[str, Any] = {}
    for name in (*DECLARED, "prefer", "min_evidence"):
        value = getattr(fields, name)
        # Most fields of most requests are left out, and then there is no word to look up.
        if value == _DEFAULTS[name]:
            continue
        words = known(index, name)
        changes[name] = (
            tuple(pick(name, word, words) for word in value)
            if name in _LISTS
            else pick(name, value, words)
        )
    if fields.at and not is_date(fields.at):
        raise BadValue("a date such as 2026-11-20", f"`{fields.at}`", name="at")
    return fields.replace(**changes) if changes else fields


def pick(name: str, text: str, known: Sequence[str]) -> str:
    """The one of the words of an option that is meant. Raises BadValue, and CannotSay for one that is unheard of."""
    # Synonyms and `difflib` are loaded for a word that is not written as the matrix has it, which is rare.
    if text in known:
        return text
    from toolmatrix.request import spelling

    return spelling.pick(name, text, known)


def known(index: Index, name: str) -> Sequence[str]:
    """The words that an option takes, of which the matrix may declare some."""
    if name in DECLARED:
        return names(index, name.rstrip("_"), "")
    return {"prefer": PREFERENCES, "min_evidence": WORDS}[name]


def is_date(text: str) -> bool:
    """True if a text is a day such as 2026-11-20."""
    from datetime import date

    # From Python 3.11 on it reads 20261120 as well, which would not compare with the dates of releases.
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
