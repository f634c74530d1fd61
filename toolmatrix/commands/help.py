"""Help pages, derived from the commands and the options: examples first; `-h` is short, `--help` long."""

from __future__ import annotations

from toolmatrix.command import COMMANDS, GROUPS, command
from toolmatrix.command.option import option
from toolmatrix.command.options import COMMON
from toolmatrix.errors import UsageError
from toolmatrix.report.terminal import columns, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolmatrix.cli.context import Context
    from toolmatrix.cli.topics import Topic
    from toolmatrix.command import Command
    from toolmatrix.command.option import Option
    from toolmatrix.report.terminal import Terminal

TITLE = "which versions of a machine-learning tool chain go together, and why"
# The name that lists the topics.
_TOPICS = "topics"
# Columns of the left side of a list, at most.
_LEFT = 30


@command(
    group="About this program",
    order=5,
    usage="[COMMAND|TOPIC]",
    completer="command",
    formats=("text",),
    examples=(
        "toolmatrix help",
        "toolmatrix help resolve",
        "toolmatrix help topics",
        "toolmatrix help --man resolve > toolmatrix-resolve.1",
    ),
    own={
        "man": option("--man", kind="flag", cli_only=True, help="Write a manual page for `man -l`"),
    },
)
def run(context: Context) -> int:
    """Show help for the program, a command or a topic.

    Print the page of a command, of a topic, or of the program; as a manual page with `--man`.
    """
    name = context.arguments[0] if context.arguments else ""
    if context.options.man:
        from toolmatrix.commands import _man

        context.write(_man.page(_command_of(name), context.index().header["date"]))
    elif not name or name in COMMANDS:
        context.write(page(COMMANDS.get(name), context.terminal))
    else:
        context.write("\n".join(_topic_lines(name, context.terminal)) + "\n")
    return 0


def _command_of(name: str) -> Command | None:
    if name and name not in COMMANDS:
        raise UsageError(
            f"no manual page for `{name}`",
            expected="a command, or nothing for the program",
            help="`toolmatrix help` lists the commands",
        )
    return COMMANDS.get(name)


def _topic_lines(name: str, terminal: Terminal) -> list[str]:
    from toolmatrix.cli import topics

    known = topics.load()
    if name == _TOPICS:
        rows = [(f"  {topic}", entry.title) for topic, entry in known.items()]
        return ["`toolmatrix help TOPIC` shows one of these topics:", "", *columns(rows)]
    if name not in known:
        from toolmatrix.request.spelling import suggestion

        otherwise = "`toolmatrix help` lists the commands, `toolmatrix help topics` the topics"
        help = suggestion(name, (*COMMANDS, *known, _TOPICS), otherwise)
        raise UsageError(f"unknown command or topic `{name}`", help=help)
    return [f"{name}: {known[name].title}", *_topic(known[name], terminal)]


def _topic(topic: Topic, terminal: Terminal) -> Iterator[str]:
    for text in topic.says:
        yield from ("", *wrap(text, terminal.width))
    yield ""
    rows = [(f"  {left.replace('`', '')}", _without_quotes(right)) for left, right in topic.rows]
    yield from _two_columns(rows, terminal)
    for text in topic.then:
        yield from ("", *wrap(text, terminal.width))
    yield from ("", f"More: docs/{topic.page}")


def _without_quotes(text: str) -> str:
    # A list of single words needs no quotes.
    alone = all(name[:1] == name[-1:] == "`" for name in text.split(", "))
    return text.replace("`", "") if alone else text


def page(command: Command | None, terminal: Terminal, *, brief: bool = False) -> str:
    """The help of one command, or of the program; `brief` without the shared options."""
    lines = _program(terminal, brief) if command is None else _command(command, terminal, brief)
    return "\n".join(lines) + "\n"


def _program(terminal: Terminal, brief: bool) -> list[str]:
    # An example of each of the first commands.
    commands = COMMANDS.values()
    first = [command.examples[0] for command in commands[:4]]
    width = max(len(command.name) for command in commands) + 4
    lines = [
        f"toolmatrix: {TITLE}",
        *_section("Examples", [f"  {example}" for example in first], terminal),
        *_section("Usage", ["  toolmatrix COMMAND [OPTIONS] [ARGUMENTS]"], terminal),
    ]
    for title in GROUPS:
        rows = [
            f"{f'  {command.name}':{width}}{command.summary}"
            for command in commands
            if command.group == title
        ]
        lines += _section(title, rows, terminal)
    if brief:
        hint = "`toolmatrix --help` also shows common options, settings, exit codes and topics"
        return [*lines, "", *wrap(hint, terminal.width)]
    from toolmatrix.cli import topics

    known = topics.load()
    settings = known["settings"]
    codes = "; ".join(f"{code} {text}" for code, text in topics.EXIT_CODES.items())
    return [
        *lines,
        *_section("Common options", _options(COMMON.values(), terminal, None), terminal),
        *_section("Settings", wrap(settings.says[0], terminal.width, indent="  "), terminal),
        *_section("Exit codes", wrap(codes, terminal.width, indent="  "), terminal),
        *_section(
            "Topics (`toolmatrix help TOPIC`)",
            columns((f"  {name}", topic.title) for name, topic in known.items()),
            terminal,
        ),
    ]


def _command(command: Command, terminal: Terminal, brief: bool) -> list[str]:
    lines = [
        f"toolmatrix {command.name}: {command.summary}",
        *_section("Examples", [f"  {example}" for example in command.examples], terminal),
        *_section("Usage", [f"  {usage(command)}"], terminal),
    ]
    if command.choices:
        lines += _section(command.usage, [f"  {', '.join(command.choices)}"], terminal)
    groups = sections(command)
    for title, options in groups[:1] if brief else groups:
        if options:
            lines += _section(title, _options(options, terminal, command, brief=brief), terminal)
    if brief:
        lines += _section("Formats (`--format`)", [f"  {', '.join(command.all_formats)}"], terminal)
        others = ", ".join(option.flags[-1] for _, options in groups[1:] for option in options)
        more = f"`toolmatrix {command.name} --help` also explains: {others}"
    else:
        more = "Exit codes and more: `toolmatrix help topics`"
    return [*lines, "", *wrap(more, terminal.width)]


def sections(command: Command) -> list[tuple[str, list[Option]]]:
    """The options of a command: its own, those of a request, and those of every command."""
    shared = [("Request", command.request_options), ("Common options", COMMON)]
    return [
        ("Options", [*command.own.values()]),
        *(
            (title, [option for name, option in options.items() if name not in command.own])
            for title, options in shared
        ),
    ]


def usage(command: Command) -> str:
    """The usage of a command."""
    return f"toolmatrix {command.name} [OPTIONS] {command.usage}".rstrip()


def _section(title: str, lines: list[str], terminal: Terminal) -> list[str]:
    return ["", terminal.style(title + ":", "bold"), *lines]


def _options(
    options: Iterable[Option], terminal: Terminal, command: Command | None, *, brief: bool = False
) -> list[str]:
    rows = []
    for declared in options:
        text = meaning(declared, command)
        # The brief help has no room for variables.
        if not (brief or declared.cli_only or command is None):
            text += f" [{declared.variable}]"
        rows.append((f"  {flags(declared, command)}", text))
    return _two_columns(rows, terminal)


def _two_columns(rows: list[tuple[str, str]], terminal: Terminal) -> list[str]:
    """Pairs in two columns; a longer left text is on a line of its own."""
    left = min(max(len(head) for head, _ in rows), _LEFT, terminal.width // 3) + 2
    lines: list[str] = []
    for head, text in rows:
        first = head.ljust(left) if len(head) < left else ""
        if not first:
            lines.append(head)
        lines += wrap(text, terminal.width, indent=" " * left, first=first or " " * left)
    return lines


def flags(option: Option, command: Command | None) -> str:
    """The flags of an option for a command; without one, those that all commands have."""
    text = f"{', '.join(option.flags)} {option.metavar}".rstrip()
    return ", ".join((text, *option.short(_choices(option, command))))


def _choices(option: Option, command: Command | None) -> tuple[str, ...]:
    if option.name != "format":
        return option.choices
    # No command has the formats of all commands.
    return command.all_formats if command else ("text", "json")


def meaning(option: Option, command: Command | None) -> str:
    """The help text of an option with its choices for a command and its default."""
    choices = _choices(option, command)
    text = option.help
    if option.name == "format" and command is None:
        return f"{text}, such as {', '.join(choices)}; `toolmatrix help formats` lists the formats of each command"
    if choices:
        text += f": {', '.join(choices)}"
    if option.takes_value and option.kind == "text" and option.default:
        # A command that has no text prints its first form.
        default = choices[0] if option.name == "format" and choices else option.default
        text += f" [default: {default}]"
    return text
