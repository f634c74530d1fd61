"""Runs as whole transcripts (command, stdout, stderr, exit code), in the forms in which people read them."""

from __future__ import annotations

import io
import re
import shlex
from typing import NamedTuple

from tests.cli.conftest import Ascii, Cli, Outcome, Tty
from tests.golden import assert_golden


class Form(NamedTuple):
    """Who reads: the stream, the variables, and options at the end of the line."""

    screen: type[io.StringIO] = io.StringIO
    env: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()


FORMS = {
    "plain": Form(),
    "tty": Form(Tty, (("TERM", "xterm"),)),
    "no-color": Form(Tty, (("TERM", "xterm"), ("NO_COLOR", "1"))),
    "ascii": Form(Ascii),
    "narrow": Form(env=(("COLUMNS", "60"),)),
    "json": Form(options=("--json",)),
    "quiet": Form(options=("-q",)),
    "silent": Form(options=("-qq",)),
}

DIGEST = re.compile(r'("digest": )"[^"]*"')
_SHORT_DIGEST = re.compile(r"\bsha256:[0-9a-f]{12}\b")
# Of the built-in matrix, whose day moves with every reading; small ones keep theirs.
_DAY = re.compile(r'("date": )"(?!2026-01-02)[^"]*"(?=,\s+"digest")')


def read(cli: Cli, line: str, form: str = "plain") -> Outcome:
    """What a line prints to a reader."""
    screen, env, options = FORMS[form]
    return cli(*shlex.split(line), *options, screen=screen, **dict(env))


def check(cli: Cli, name: str, line: str, form: str = "plain") -> Outcome:
    """That the transcript of a line is the golden file of its command, name and form."""
    outcome = read(cli, line, form)
    command, options = line.partition(" ")[0], " ".join(FORMS[form].options)
    text = f"$ toolmatrix {line} {options}".rstrip() + f"\n{outcome.out}"
    if outcome.err:
        text += f"(stderr)\n{outcome.err}"
    assert "Traceback" not in text
    assert "internal error" not in text
    text += f"(exit {outcome.code})\n"
    if command == "news":
        text = _SHORT_DIGEST.sub("sha256:...", text)
    assert_golden(
        f"{command}/{name}-{form}.txt", DIGEST.sub(r'\1"..."', _DAY.sub(r'\1"..."', text))
    )
    return outcome


def check_without(cli: Cli, line: str) -> None:
    """That colour, width and talk are all that the forms without a golden file of their own leave out."""
    plain = read(cli, line)
    assert read(cli, line, "no-color") == plain
    assert read(cli, line, "quiet") == plain._replace(
        err="" if plain.out else plain.err,
    )
    assert read(cli, line, "silent").out == ""
    assert read(cli, line, "silent").code == plain.code
    assert "\x1b" not in plain.out + plain.err
