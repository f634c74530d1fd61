"""The seal of a lock: comment lines at its end, by which an edit or a cut is seen and its line named.

The lines above the seal are the body. The first line of the seal has the SHA-256 of the body, the
others four hexadecimal digits for each line of the body, sixteen to a row:

    # seal sha256:9f86d081...
    # seal 1: 1a2b 3c4d ...
    # seal 17: 5e6f ...

The digest says whether anything was changed, the marks say where. A mark is the CRC-CCITT of its
line, which tells any two lines apart that differ in two adjacent bytes or fewer; other changes it
may miss once in 65536, and then a later line is named.
"""

from __future__ import annotations

from binascii import crc_hqx

_START = "# seal "
_PER_ROW = 16


class Broken(Exception):
    """A text that is not as it was sealed: `how` is `cut`, `edited` or `unsealed`, `line` counts from 1."""

    def __init__(self, how: str, line: int) -> None:
        super().__init__(how, line)
        self.how = how
        self.line = line


def digest(body: str) -> str:
    """`sha256:...` of a body."""
    from hashlib import sha256

    return "sha256:" + sha256(body.encode()).hexdigest()


def seal(body: str) -> str:
    """The body, which ends with a newline, and the seal below it."""
    return body + _joined(_rows(body))


def _rows(body: str) -> list[str]:
    marks = [_mark(line) for line in body.split("\n")[:-1]]
    rows = [_START + digest(body)]
    return rows + [
        f"{_START}{place + 1}: {' '.join(marks[place : place + _PER_ROW])}"
        for place in range(0, len(marks), _PER_ROW)
    ]


def _joined(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def _mark(line: str) -> str:
    return f"{crc_hqx(line.encode(), 0xFFFF):04x}"


def check(text: str) -> str:
    """The digest of the body; raises Broken with the first line that was changed."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    first = next((place for place, line in enumerate(lines) if line.startswith(_START)), None)
    if first is None:
        raise Broken("unsealed", max(len(lines), 1))
    body = _joined(lines[:first])
    expected = _rows(body)
    whole = body + _joined(expected)
    if text == whole:
        return expected[0][len(_START) :]
    if whole.startswith(text):
        raise Broken("cut", len(lines))
    if lines[first] == expected[0]:
        raise Broken("edited", first + 1 + _first_difference(lines[first:], expected))
    raise Broken("edited", _edited(lines[:first], _marks(lines[first:])))


def _first_difference(found: list[str], expected: list[str]) -> int:
    pairs = zip(found, expected, strict=False)
    shorter = min(len(found), len(expected))
    return next((place for place, (one, other) in enumerate(pairs) if one != other), shorter)


def _edited(body: list[str], marks: dict[int, str]) -> int:
    """The first line that is not what its mark says, else the line that has none, else the seal itself."""
    for number, line in enumerate(body, 1):
        if number in marks and marks[number] != _mark(line):
            return number
    whole = bool(marks) and max(marks) == len(marks)
    return len(marks) + 1 if whole and len(marks) < len(body) else len(body) + 1


def _marks(rows: list[str]) -> dict[int, str]:
    """The marks that can be read, by the number of their line."""
    found = {}
    for row in rows:
        number, colon, marks = row[len(_START) :].partition(": ")
        if colon and number.isascii() and number.isdigit() and len(number) < len("1000000"):
            found.update(dict(enumerate(marks.split(" "), int(number))))
    return found
