"""The compile that a lock expects: the release of the driver, codegen archs, the host compiler and its options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from toolmatrix.compilation.drivers.dry_run import FAMILIES, names_archs
from toolmatrix.value import Value

# The value of an option: without it `-march=armv8-a` is `-march`, and `-funsigned-char` is `-fchar`.
_VALUE = re.compile(r"=.*|(?<=^-f)no-|(?<=^-f)(?:un)?signed-")
# GCC counts its series by the first number from 5 on, by two before.
_SINGLE = 5


class Expected(Value):
    """The compile that one target of a lock expects.

    `words` are options of the driver, `host_words` those of the host compiler. Without an accelerator `component`,
    `release` and `family` are empty.
    """

    target: str
    accelerator: str
    platform: str
    component: str = ""
    release: str = ""
    family: str = ""
    archs: tuple[str, ...] = ()
    compiler: tuple[str, str] = ("", "")
    words: tuple[str, ...] = ()
    host_words: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


def lock_words(wanted: Expected, typed: Sequence[str], *, here: bool) -> list[str]:
    """The words of a lock that its driver gets in addition to the typed ones, which win where they differ.

    Words for the host compiler are left out where `here` is not the machine that they are for.
    """
    words = [] if names_archs(typed) else [word for word in wanted.words if names_archs([word])]
    others = [word for word in wanted.words if not names_archs([word])]
    passes = wanted.family == FAMILIES["nvcc"].name
    topics = set(map(topic, typed))
    words += [word for word in others if topic(word) not in topics]
    for word in wanted.host_words if here else ():
        if topic(word) not in topics:
            words += ["-Xcompiler", word] if passes else [word]
    return words


def contradicted(wanted: Expected, typed: Iterable[str]) -> list[tuple[str, str]]:
    """The words of a lock that what was typed contradicts: (word of the lock, what was typed)."""
    by_topic = {topic(word): word for word in typed if word.startswith("-")}
    return [
        (word, by_topic[topic(word)])
        for word in (*wanted.words, *wanted.host_words)
        if not names_archs([word]) and by_topic.get(topic(word), word) != word
    ]


def topic(word: str) -> str:
    """An option without its value."""
    return _VALUE.sub("", word)


def same_series(compiler: str, version: str, other: str) -> bool:
    """Whether two versions of a compiler are of one series: of GCC from 5 on, and of Clang, the first number."""
    first, second = version.split("."), other.split(".")
    whole = compiler != "gcc" or not first[0].isdecimal() or int(first[0]) >= _SINGLE
    return first[: 1 if whole else 2] == second[: 1 if whole else 2]
