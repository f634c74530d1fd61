"""Quoting, one function for each place where a value can stand; each refuses what cannot be quoted there.

Every function gives `Quoted`, and the templates take nothing else: a value that was not quoted for its place does not
get into a file. Raises RenderError.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from markupsafe import Markup

from toolmatrix.errors import RenderError
from toolmatrix.recipes import fields

# The one mark that Jinja keeps on what its own macros and joins make of marked texts.
Quoted = Markup
"""Text that is ready for its place."""

PATTERNS: Mapping[str, tuple[re.Pattern[str], str]] = {
    name: (re.compile(pattern, re.ASCII), expected)
    for name, pattern, expected in (
        ("release", r"[A-Za-z0-9][A-Za-z0-9._+-]*", "a release"),
        ("numbers", r"[0-9]{1,9}(\.[0-9]{1,9})*", "numbers with dots between"),
        (
            "reference",
            r"[a-z0-9][A-Za-z0-9._-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9._-]*)?(@sha256:[0-9a-f]{64})?",
            "an image reference such as `debian:12`",
        ),
        ("flag", r"--?[A-Za-z0-9][A-Za-z0-9_=+.,:/-]*", "a compiler flag"),
        ("arch", r"[a-z][a-z0-9_-]*(:[a-z0-9]+[+-])*", "a codegen arch"),
        ("path", r"/?[A-Za-z0-9._+@-]+(/[A-Za-z0-9._+@-]+)*", "a path of plain letters"),
        ("word", r"[A-Za-z0-9_./:@%+=,-]+", "one word of plain letters"),
        ("label", r"[A-Za-z0-9][A-Za-z0-9._/-]*", "the name of a label"),
        ("mode", r"0[0-7]{3}", "a mode such as `0755`"),
        ("name", r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable"),
        ("url", r"https?://[A-Za-z0-9.:-]+(/[A-Za-z0-9._~+%@=&?,-]*)*", "an address"),
        ("sha256", r"[0-9a-f]{64}", "a checksum"),
        ("digest", r"sha256:[0-9a-f]{64}", "a digest"),
        ("condition", r"[A-Za-z0-9_()!&|<>= ]+", "a condition of the preprocessor"),
        ("requirement", fields.TEXTS["requirement"][0].pattern, "a requirement of pip"),
    )
}
"""Patterns of values that are written without quotes, by kind."""


def plain(kind: str, text: str) -> Quoted:
    """A value that needs no quotes because it matches the pattern of its kind."""
    pattern, expected = PATTERNS[kind]
    if not pattern.fullmatch(_text(text)):
        raise _refusal(text, expected)
    return Quoted(text)


def sh(text: str) -> Quoted:
    """One word of shell, inside a script or a RUN instruction."""
    _check_line(text, "a word of shell")
    # Docker joins a line that ends with a backslash with the next one, whatever quotes a shell would see.
    if "<<" in text or text.endswith("\\"):
        raise _refusal(text, "a word of shell without `<<` that does not end with a backslash")
    return Quoted(shlex.quote(text))


def programs(texts: Iterable[str]) -> Quoted:
    """Words of shell in a script; each may have several lines."""
    lines = [*texts]
    for text in lines:
        for line in _text(text).split("\n"):
            _check_line(line, "a line of a program")
    return Quoted(" ".join(shlex.quote(text) for text in lines))


def words(texts: Iterable[str]) -> Quoted:
    """Several words of shell."""
    return Quoted(" ".join(sh(text) for text in texts))


def value(text: str) -> Quoted:
    """The value of an ENV, ARG or LABEL: in double quotes, without expansion by Docker."""
    _check_line(text, "a value of an instruction")
    if "\\" in text:
        raise _refusal(text, "a value without a backslash")
    # Docker puts variables in between double quotes as well.
    escaped = text.replace('"', '\\"').replace("$", "\\$")
    return Quoted(f'"{escaped}"')


def comment(text: str) -> Quoted:
    """The rest of a comment line; a backslash at its end would take the next line into it in files of Bazel."""
    _check_line(text, "one line")
    if text.endswith("\\"):
        raise _refusal(text, "a comment that does not end with a backslash")
    return Quoted(text)


def line(text: str) -> Quoted:
    """A line of shell out of a recipe; refuses the same as `recipes.fields.shell_fault`."""
    fault = fields.shell_fault(text)
    if fault:
        raise _refusal(text, f"one command on one line: {fault}")
    return Quoted(text)


def in_double(text: str) -> Quoted:
    """Text between double quotes of shell."""
    _check_line(text, "text between quotes")
    if set(text) & set('"\\$`'):
        raise _refusal(text, 'text without `"`, `$`, backslash and backtick')
    return Quoted(text)


def sed_argument(text: str) -> Quoted:
    """A word of shell that a pattern of sed between slashes takes as it is."""
    if set(text) & set("'\\/*[]^$.&"):
        raise _refusal(text, "text without special characters of a sed pattern")
    return sh(text)


def layout(text: str, condition: object = True) -> Quoted:
    """Punctuation that a template writes itself if `condition` holds, such as the backslash of a continued line."""
    if text.strip(" ;\\\n") not in ("", "<<EOF", "set -eux"):
        raise _refusal(text, "blanks, semicolons, backslashes and line breaks")
    return Quoted(text if condition else "")


def as_json(data: object) -> Quoted:
    """A JSON value on one line; it is YAML as well."""
    # YAML 1.1 breaks lines at U+0085, U+2028 and U+2029, so nothing beyond ASCII stands as it is.
    return Quoted(json.dumps(data, ensure_ascii=True))


def _check_line(text: str, what: str) -> None:
    # Line breaks of every kind are not printable, nor are letters that turn the direction of a line, nor half of a pair
    # of UTF-16, which no file can hold.
    if not _text(text).isprintable():
        raise _refusal(text, f"{what}: printable, on one line")


def _text(value: object) -> str:
    # What a template misspells arrives here as jinja2's Undefined.
    if not isinstance(value, str):
        raise _refusal(type(value).__name__, "a text")
    return value


def _refusal(text: str, expected: str) -> RenderError:
    return RenderError(
        "a template cannot use this value",
        expected=expected,
        found=f"`{ascii(text)[1:-1]}`",
        help="correct the lock, the recipe or the option that it comes from",
    )


def filters() -> dict[str, Callable[..., Quoted]]:
    """The filters of the templates, by name."""
    by_kind = {kind: partial(plain, kind) for kind in PATTERNS}
    quoting = (sh, words, programs, value, comment, line, in_double, sed_argument, layout)
    return {**by_kind, **{function.__name__: function for function in quoting}, "json": as_json}
