"""Manual pages, derived from the same declarations as help; in the macros of man(7)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from toolmatrix import __version__
from toolmatrix.cli import topics
from toolmatrix.command import COMMANDS, GROUPS, Command
from toolmatrix.command.option import Option
from toolmatrix.command.options import COMMON
from toolmatrix.commands.help import TITLE, flags, meaning, sections, usage
from toolmatrix.report.terminal import wrap

# The name of a section that readers of manual pages know, by the topic.
_SECTIONS = {"exit-codes": "EXIT STATUS", "settings": "ENVIRONMENT"}
_WIDTH = 76
_CODE = re.compile(r"`([^`]+)`")


def pages(date: str) -> dict[str, str]:
    """The pages of the program and of every command by the names of their files; `date` is that of the matrix."""
    named = {f"{_name(command)}.1": page(command, date) for command in COMMANDS.values()}
    return {f"{_name(None)}.1": page(None, date), **named}


def page(command: Command | None, date: str) -> str:
    """The page of one command, or that of the program."""
    name = _name(command)
    lines = [
        f'.TH {_text(name.upper())} 1 {date} "toolmatrix {__version__}" "User Commands"',
        # Do not hyphenate or justify.
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{_text(name)} \\- {_text(command.summary if command else TITLE)}",
        ".SH SYNOPSIS",
        f".B {_text(usage(command) if command else 'toolmatrix COMMAND [OPTIONS] [ARGUMENTS]')}",
        *(_command(command) if command else _program()),
    ]
    return "\n".join(lines) + "\n"


def _name(command: Command | None) -> str:
    return f"toolmatrix-{command.name}" if command else "toolmatrix"


def _command(command: Command) -> Iterator[str]:
    if command.choices:
        yield from (".SH ARGUMENTS", _text(f"{command.usage}: {', '.join(command.choices)}"))
    for title, options in sections(command):
        if options:
            yield f".SH {title.upper()}"
            yield from _options(options, command)
    yield from _examples(command.examples)
    others = [other for other in COMMANDS.values() if other is not command]
    yield ".SH SEE ALSO"
    yield from _references((None, *others))


def _program() -> Iterator[str]:
    for title in GROUPS:
        yield f".SH {_text(title.upper())}"
        for command in COMMANDS.values():
            if command.group == title:
                yield from (".TP", f".BR {_text(_name(command))} (1)")
                yield from _lines(command.summary)
    yield ".SH COMMON OPTIONS"
    yield from _options(COMMON.values(), None)
    for name, topic in topics.load().items():
        yield f".SH {_SECTIONS.get(name) or name.upper()}"
        first, *more = topic.says
        yield from _lines(first)
        yield from _paragraphs(more)
        for left, right in topic.rows:
            yield from (".TP", _text(left), *_lines(right))
        yield from _paragraphs(topic.then)
    yield from _examples(command.examples[0] for command in COMMANDS.values())
    yield ".SH SEE ALSO"
    yield from _references(COMMANDS.values())


def _options(options: Iterable[Option], command: Command | None) -> Iterator[str]:
    for option in options:
        yield from (".TP", f".B {_text(flags(option, command))}")
        yield from _lines(meaning(option, command))
        if not option.cli_only:
            yield from (".br", _text(f"Variable: `{option.variable}`"))


def _paragraphs(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from (".PP", *_lines(text))


def _lines(text: str) -> list[str]:
    return [_guarded(line) for line in wrap(_text(text), _WIDTH)]


def _examples(lines: Iterable[str]) -> Iterator[str]:
    yield from (".SH EXAMPLES", ".EX", *map(_text, lines), ".EE")


def _references(commands: Iterable[Command | None]) -> Iterator[str]:
    names = [_text(_name(command)) for command in commands]
    for name in names:
        yield f".BR {name} (1)" + ("," if name != names[-1] else "")


def _text(text: str) -> str:
    # What roff reads as a sign of its own stands as the letter that is meant; `code` is bold, and a `-` can be copied.
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    plain = _CODE.sub(r"\\fB\1\\fR", plain).replace("`", "\\(ga").replace("~", "\\(ti")
    plain = plain.replace("^", "\\(ha").replace('"', "\\(dq")
    return _guarded(plain)


def _guarded(line: str) -> str:
    # A line that begins with these is a macro.
    return "\\&" + line if line.startswith((".", "'")) else line
