"""The shapes of a recipe's values: for each kind of text the pattern it must have once its values are put in.

A value in braces counts as one digit here; what an answer puts there is held to its own pattern by the renderer.
"""

from __future__ import annotations

import re

from toolmatrix.recipes import shell, variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SHAPES: Mapping[str, tuple[re.Pattern[str], str]] = {
    name: (re.compile(pattern, re.ASCII), expected)
    for name, pattern, expected in (
        ("name", r"[a-z][a-z0-9_-]*", "a name such as `bazel-dist`"),
        ("component", r"[a-z0-9][a-z0-9._-]*", "the name of a component"),
        (
            "package",
            r"[a-z0-9][a-zA-Z0-9+._:~=-]*\*?",
            "the name of a package, perhaps with a version; `*` ends one that may go on",
        ),
        (
            "requirement",
            r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[a-z0-9,-]+\])?([=<>!~]=?[A-Za-z0-9.*+!_-]+(,[=<>!~]=?[A-Za-z0-9.*+!_-]+)*)?",
            "a requirement of pip such as `numpy=={numpy}`",
        ),
        (
            "url",
            r"https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~+%@=&?,-]*)*",
            "an address (http or https)",
        ),
        ("path", r"/[A-Za-z0-9._+@/-]*[A-Za-z0-9._+@-]", "an absolute path"),
        ("mode", r"0[0-7]{3}", "a mode such as `0755`"),
        ("sha256", r"[0-9a-f]{64}", "64 hexadecimal digits"),
        ("fingerprint", r"[0-9A-F]{40}", "40 hexadecimal digits in capitals"),
        ("word", r"[A-Za-z0-9][A-Za-z0-9._+-]*", "one word"),
        ("variable", r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable"),
        ("flag", r"-[A-Za-z0-9*?=+_.-]+", "a compiler flag; `*` stands for anything"),
        (
            "condition",
            r"[A-Za-z0-9_()!&|<>= ]+",
            "a condition of the preprocessor",
        ),
        ("id", r"[a-z0-9][A-Za-z0-9._/-]*", "the id of a row of the matrix"),
        ("line", r"[^\x00-\x1f\x7f]+", "text on one line"),
        ("value", r"[^\x00-\x1f\x7f\\]*", "text on one line without a backslash"),
        ("before", r'[A-Za-z0-9 ":=_@-]*', "letters, digits, blanks and a little punctuation"),
        ("date", r"\d{4}-\d\d-\d\d", "YYYY-MM-DD"),
    )
}

_ONE = "0"


def fault(shape: str, text: str) -> tuple[str, str]:
    """What was expected and found where a text does not have its shape, or twice nothing."""
    if shape == "shell":
        found = shell.fault(text)
        return ("one command of shell on one line", found) if found else ("", "")
    pattern, expected = SHAPES[shape]
    return ("", "") if pattern.fullmatch(variables.NAMED.sub(_ONE, text)) else (expected, "")
