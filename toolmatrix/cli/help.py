"""Help pages, derived from the commands and the options: examples first."""

from __future__ import annotations

from toolmatrix.cli.commands import COMMANDS
from toolmatrix.cli.options import COMMON, OPTIONS, REQUEST
from toolmatrix.errors import UsageError
from toolmatrix.report.terminal import columns, wrap
from toolmatrix.request.spelling import meant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolmatrix.cli.command import Command
    from toolmatrix.cli.context import Context
    from toolmatrix.cli.option import Option
    from toolmatrix.report.terminal import Terminal

# The codes of the classes of `toolmatrix.errors`, and those of `main`.
_EXIT_CODES = """\
0 yes or done; 1 the answer is no; 2 bad usage, configuration, matrix or lock; 3 nothing matched; \
4 cannot say; 5 an outside tool is missing or failed; 70 internal error; 130 interrupted"""

_SETTINGS = """\
Every option can be set by a variable (`TOOLMATRIX_MIN_EVIDENCE` for `--min-evidence`), in \
`toolmatrix.toml` or `[tool.toolmatrix]` of `pyproject.toml`, and in the user's `config.toml`, in this \
order; `toolmatrix config` shows what holds."""


def run(context: Context) -> int:
    """Print the page of a command, or of the program."""
    name = context.arguments[0] if context.arguments else ""
    if name and name not in COMMANDS:
        raise UsageError(
            f"unknown command `{name}`",
            help=meant(name, tuple(COMMANDS), "`toolmatrix help` lists the commands"),
        )
    context.write(page(COMMANDS.get(name), context.terminal))
    return 0


def page(command: Command | None, terminal: Terminal) -> str:
    """The help of one command, or that of the program."""
    lines = _program(terminal) if command is None else _command(command, terminal)
    return "\n".join(lines) + "\n"


def _program(terminal: Terminal) -> list[str]:
    # One of each of the commands that a reader needs first.
    first = [command.examples[0] for command in list(COMMANDS.values())[:4]]
    return [
        "toolmatrix: which versions of a machine-learning tool chain go together, and why",
        *_section("Examples", [f"  {example}" for example in first], terminal),
        *_section("Usage", ["  toolmatrix COMMAND [OPTIONS] [ARGUMENTS]"], terminal),
        *_section(
            "Commands",
            columns((f"  {command.name}", command.summary) for command in COMMANDS.values()),
            terminal,
        ),
        *_section("Options of every command", _options(COMMON, terminal, ()), terminal),
        *_section("Settings", wrap(_SETTINGS, terminal.width, indent="  "), terminal),
        *_section("Exit codes", wrap(_EXIT_CODES, terminal.width, indent="  "), terminal),
    ]


def _command(command: Command, terminal: Terminal) -> list[str]:
    usage = f"  toolmatrix {command.name} [OPTIONS] {command.usage}".rstrip()
    lines = [
        f"toolmatrix {command.name}: {command.summary}",
        *_section("Examples", [f"  {example}" for example in command.examples], terminal),
        *_section("Usage", [usage], terminal),
    ]
    if command.choices:
        lines += _section(command.usage, [f"  {', '.join(command.choices)}"], terminal)
    groups = [("Options", command.own), ("Request", REQUEST if command.request else ())]
    for title, names in [*groups, ("Options of every command", COMMON)]:
        if names:
            lines += _section(title, _options(names, terminal, command.forms), terminal)
    return lines


def _section(title: str, lines: list[str], terminal: Terminal) -> list[str]:
    return ["", terminal.style(title + ":", "bold"), *lines]


def _options(names: Iterable[str], terminal: Terminal, formats: tuple[str, ...]) -> list[str]:
    shown = [
        (f"  {_flags(OPTIONS[name], formats)}", _meaning(OPTIONS[name], formats)) for name in names
    ]
    # Flags that are longer than the column stand on a line of their own.
    left = min(max(len(flags) for flags, _ in shown), 30, terminal.width // 3) + 2
    lines: list[str] = []
    for flags, meaning in shown:
        head = flags.ljust(left) if len(flags) < left else ""
        if not head:
            lines.append(flags)
        lines += wrap(meaning, terminal.width, indent=" " * left, first=head or " " * left)
    return lines


def _flags(option: Option, formats: tuple[str, ...]) -> str:
    text = f"{', '.join(option.flags)} {option.metavar}".rstrip()
    return ", ".join((text, *option.short(_choices(option, formats))))


def _choices(option: Option, formats: tuple[str, ...]) -> tuple[str, ...]:
    return formats if option.name == "format" and formats else option.choices


def _meaning(option: Option, formats: tuple[str, ...]) -> str:
    choices = _choices(option, formats)
    text = option.help
    if choices:
        text += f": {', '.join(choices)}"
    if option.takes_value and option.kind == "text" and option.default:
        # A command that has no text prints its first form.
        default = formats[0] if option.name == "format" and formats else option.default
        text += f" [default: {default}]"
    return text
