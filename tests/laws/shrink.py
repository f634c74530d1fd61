"""A smaller request that still breaks a law: words are dropped while it does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.laws import laws
from tests.laws.ask import Asker
from tests.laws.laws import Broken
from toolmatrix.request.fields import Fields

_TRIES = 80


def smallest(asker: Asker, found: Broken) -> Broken:
    """What is left when no further word can go."""
    tries = _TRIES
    while tries > 0:
        for smaller in _smaller(found.fields):
            tries -= 1
            again = next(laws.broken(asker, smaller, (found.law,)), None)
            if again is not None:
                found = again
                break
        else:
            break
    return found


def _smaller(fields: Fields) -> Iterator[Fields]:
    for name in Fields._fields:
        value, default = getattr(fields, name), Fields._defaults[name]
        if value == default:
            continue
        if isinstance(value, tuple):
            for place in range(len(value)):
                rest = (*value[:place], *value[place + 1 :])
                if rest or name != "wanted":
                    yield fields.replace(**{name: rest})
        else:
            yield fields.replace(**{name: default})
    for name in ("wanted", "with_"):
        value = getattr(fields, name)
        for place, word in enumerate(value):
            plain = re.split("[=<>]", word)[0]
            if plain != word:
                yield fields.replace(**{name: (*value[:place], plain, *value[place + 1 :])})
