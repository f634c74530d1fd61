"""`toolmatrix completion SHELL`: scripts derived from the tables of the parser, and the names that they ask for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from toolmatrix.cli.context import Context
from toolmatrix.command import COMMANDS, Command, all_options, command, meanings
from toolmatrix.command.option import Option
from toolmatrix.command.options import COMMON
from toolmatrix.errors import ToolmatrixError, UsageError
from toolmatrix.factbase.index import Index
from toolmatrix.request.spelling import suggestion

KINDS = (
    *("target", "accelerator", "from", "component", "release", "fact"),
    *("arch", "device", "distro", "code", "only"),
)


def candidates(words: Sequence[str], index: Callable[[], Index]) -> list[str]:
    """The names of a kind that begin with a prefix: what `toolmatrix _complete KIND PREFIX` prints."""
    kind, prefix = [*words, "", ""][:2]
    if kind == "code":
        from toolmatrix.report.rules import load_rules

        return [code for code in load_rules() if code.startswith(prefix.upper())]
    if kind == "only":
        return [name for name in _parts(index) if name.startswith(prefix)]
    if kind not in KINDS:
        return []
    # Only the last part of a list such as `sm_80,sm_86` is being typed.
    done, comma, last = prefix.rpartition(",") if kind != "release" else ("", "", prefix)
    # A shell calls it while the user types, so any error means no names.
    try:
        from toolmatrix.factbase import names

        return [done + comma + name for name in names(index(), kind, last)]
    except (ImportError, ToolmatrixError):
        return []


def _parts(index: Callable[[], Index]) -> Iterator[str]:
    # `--only` depends on the command, which a shell does not pass: offer the names of all.
    from toolmatrix import resources
    from toolmatrix.factbase import names
    from toolmatrix.judging import machine

    yield from names(index(), "arch", "")
    yield from machine.CHECKS
    for folder, _, files in os.walk(os.path.join(resources.matrix_root(), "matrix", "curated")):
        for name in sorted(files):
            yield os.path.relpath(os.path.join(folder, name), resources.matrix_root())


@command(
    group="About this program",
    order=4,
    usage="SHELL",
    completer="choices",
    choices=("bash", "zsh", "fish"),
    formats=("text",),
    examples=(
        "toolmatrix completion bash > ~/.local/share/bash-completion/completions/toolmatrix",
        "toolmatrix completion fish > ~/.config/fish/completions/toolmatrix.fish",
        "toolmatrix completion zsh > ~/.zfunc/_toolmatrix",
    ),
)
def run(context: Context) -> int:
    """Print a shell completion script.

    Print the script of one shell.
    """
    shell = context.arguments[0]
    writers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    if shell not in writers:
        raise UsageError(
            f"no completion for `{shell}`",
            expected="one of " + ", ".join(writers),
            help=suggestion(shell, tuple(writers)),
        )
    context.write("\n".join(writers[shell]()) + "\n")
    return 0


# The `json` of `--json` is a format that not every command has.
def _flags(option: Option, command: Command | None = None) -> tuple[str, ...]:
    return (*option.flags, *option.short(_choices(option, command)))


def _choices(option: Option, command: Command | None = None) -> tuple[str, ...]:
    return command.all_formats if command and option.name == "format" else option.choices


def _words(command: Command) -> tuple[str, ...]:
    return {"command": tuple(COMMANDS), "choices": command.choices}.get(command.completer, ())


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


_BASH_HEAD = """\
# bash completion of toolmatrix; made by `toolmatrix completion bash`
_toolmatrix_words() {
    COMPREPLY=($(compgen -W "$1" -- "$word"))
}

_toolmatrix_list() {
    # Only the last part of a list such as `x86,arm` is being typed.
    local done="${word%"${word##*,}"}"
    COMPREPLY=($(compgen -P "$done" -W "$1" -- "${word##*,}"))
}

_toolmatrix_names() {
    COMPREPLY=($(compgen -W "$(toolmatrix _complete "$1" "$word" 2>/dev/null)" -- "$word"))
}

_toolmatrix_value() {
    case "$1" in"""

_BASH_MIDDLE = """\
        *) return 1 ;;
    esac
}

_toolmatrix_rest() {
    local command="" index
    for ((index = 1; index < COMP_CWORD; index++)); do
        case "${COMP_WORDS[index]}" in"""

_BASH_TAIL = """\
_toolmatrix() {
    # `=` and `:` break words in bash: `name==1.2` is put together again here.
    local line="${COMP_LINE:0:COMP_POINT}" breaks
    local word="${line##*[[:space:]]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
    COMPREPLY=()
    if [[ "$word" == --*=* ]]; then
        previous="${word%%=*}"
        word="${word#*=}"
    fi
    _toolmatrix_value "$previous" || _toolmatrix_rest
    # Give back only what follows the last `=` or `:`, for bash keeps what stands before it.
    breaks="${word%"${word##*[=:]}"}"
    if [[ -n "$breaks" && "$COMP_WORDBREAKS" == *"${breaks: -1}"* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"$breaks"}")
    fi
}
complete -o default -F _toolmatrix toolmatrix"""


def _bash() -> list[str]:
    lines = [
        _BASH_HEAD,
        *(
            f"        {'|'.join(option.flags)}) {_bash_value(option)} ;;"
            for option in all_options().values()
            if option.takes_value
        ),
        _BASH_MIDDLE,
        f'            {"|".join(COMMANDS)}) command="${{COMP_WORDS[index]}}"; break ;;',
        "        esac",
        "    done",
        '    if [[ "$word" == -* ]]; then',
        '        case "$command" in',
    ]
    for subcommand in (*COMMANDS.values(), None):
        options = subcommand.options if subcommand else COMMON
        flags = " ".join(flag for option in options.values() for flag in _flags(option, subcommand))
        lines.append(
            f"            {subcommand.name if subcommand else '*'}) {_bash_words(flags)} ;;"
        )
    lines += ["        esac", "        return", "    fi", '    case "$command" in']
    lines += [
        f"        {command.name}) {_bash_argument(command)} ;;" for command in COMMANDS.values()
    ]
    lines.append(f"        *) {_bash_words(' '.join(COMMANDS))} ;;")
    return [*lines, "    esac", "}", "", _BASH_TAIL]


def _bash_words(words: str) -> str:
    return f"_toolmatrix_words {_quoted(words)}"


def _bash_value(option: Option) -> str:
    if option.choices:
        command = "_toolmatrix_list" if option.kind == "list" else "_toolmatrix_words"
        return f"{command} {_quoted(' '.join(option.choices))}"
    return _bash_names(option.completer)


def _bash_argument(command: Command) -> str:
    words = _words(command)
    return _bash_words(" ".join(words)) if words else _bash_names(command.completer)


def _bash_names(completer: str) -> str:
    if completer in KINDS:
        return f"_toolmatrix_names {completer}"
    files = {"file": "-f", "dir": "-d"}.get(completer)
    return f'COMPREPLY=($(compgen {files} -- "$word"))' if files else ":"


_ZSH_HEAD = """\
#compdef toolmatrix
# zsh completion of toolmatrix; made by `toolmatrix completion zsh`
_toolmatrix_names() {
    local -a names
    names=(${(f)"$(toolmatrix _complete "$1" "$PREFIX" 2>/dev/null)"})
    compadd -a names
}

_toolmatrix() {
    local context state state_descr line
    typeset -A opt_args
    local -a commands
    commands=("""

_ZSH_MIDDLE = """\
    )
    local command="" word
    for word in ${words[2,CURRENT-1]}; do
        if (( ${commands[(I)${word}:*]} )); then
            command=$word
            break
        fi
    done
    case "$command" in"""

_ZSH_TAIL = """\
    esac
}

if [[ "$funcstack[1]" == _toolmatrix ]]; then
    _toolmatrix "$@"
else
    compdef _toolmatrix toolmatrix
fi"""


def _zsh() -> list[str]:
    lines = [_ZSH_HEAD]
    lines += [
        f"        {_quoted(f'{command.name}:{command.summary}')}" for command in COMMANDS.values()
    ]
    lines.append(_ZSH_MIDDLE)
    for subcommand in COMMANDS.values():
        lines.append(f"        {subcommand.name})")
        lines.append("            _arguments -s -S \\")
        for option in subcommand.options.values():
            lines += [f"                {spec} \\" for spec in _zsh_option(option, subcommand)]
        lines.append(f"                {_zsh_argument(subcommand)}")
        lines.append("            ;;")
    lines += ["        *)", "            _describe command commands", "            ;;"]
    return [*lines, _ZSH_TAIL]


def _zsh_option(option: Option, command: Command) -> list[str]:
    # In a spec of `_arguments` the text is in brackets, and colons separate its parts (zshcompsys(1)).
    text = option.help.replace("[", "(").replace("]", ")").replace(":", ",")
    star = "*" if option.kind in ("list", "count") else ""
    specs = []
    for flag in _flags(option, command):
        takes = option.takes_value and flag not in option.shorthand
        mark = "=" if takes and flag.startswith("--") else "+" if takes else ""
        action = _zsh_action(_choices(option, command), option.completer)
        value = f":{option.metavar}:{action}" if takes else ""
        specs.append(_quoted(f"{star}{flag}{mark}[{text}]{value}"))
    return specs


def _zsh_action(words: tuple[str, ...], completer: str) -> str:
    if words:
        return f"({' '.join(words)})"
    # The blank in front keeps zsh from adding words of its own to the call (zshcompsys(1)).
    if completer in KINDS:
        return f" _toolmatrix_names {completer}"
    return {"file": "_files", "dir": "_files -/"}.get(completer, " ")


def _zsh_argument(command: Command) -> str:
    action = _zsh_action(_words(command), command.completer)
    # The first word that is no option is the command itself.
    usage = command.usage.replace("[", "").replace("]", "") or "argument"
    return f"{_quoted(f'1: :({command.name})')} {_quoted(f'*:{usage}:{action}')}"


def _fish() -> list[str]:
    names = " ".join(COMMANDS)
    lines = [
        "# fish completion of toolmatrix; made by `toolmatrix completion fish`",
        "complete -c toolmatrix -f",
    ]
    lines += [
        f"complete -c toolmatrix -n {_quoted(f'not __fish_seen_subcommand_from {names}')}"
        f" -a {command.name} -d {_quoted(command.summary)}"
        for command in COMMANDS.values()
    ]
    for subcommand in COMMANDS.values():
        condition = _quoted(f"__fish_seen_subcommand_from {subcommand.name}")
        if argument := _fish_argument(subcommand):
            lines.append(f"complete -c toolmatrix -n {condition} {argument}")
    for option in all_options().values():
        for text, takers in meanings(option).items():
            condition = " -n " + _quoted("__fish_seen_subcommand_from " + " ".join(takers))
            condition = "" if option.group == "common" else condition
            lines += [
                f"complete -c toolmatrix{condition}{rest}" for rest in _fish_option(option, text)
            ]
    return lines


def _fish_option(option: Option, meaning: str) -> list[str]:
    text = f" -d {_quoted(meaning)}"
    flags = "".join(
        f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}" for flag in option.flags
    )
    lines = [flags + (_fish_value(option) if option.takes_value else "") + text]
    return lines + [f" -l {flag[2:]}{text}" for flag in option.shorthand]


def _fish_value(option: Option) -> str:
    if option.choices:
        return f" -x -a {_quoted(' '.join(option.choices))}"
    if option.completer in KINDS:
        return " -x -a " + _fish_names(option.completer)
    return {"file": " -r -F", "dir": " -x -a '(__fish_complete_directories)'"}.get(
        option.completer, " -x"
    )


def _fish_names(kind: str) -> str:
    return _quoted(f"(toolmatrix _complete {kind} (commandline -ct) 2>/dev/null)")


def _fish_argument(command: Command) -> str:
    if command.completer in KINDS:
        return "-a " + _fish_names(command.completer)
    words = _words(command)
    files = "-F" if command.completer == "file" else ""
    return f"-a {_quoted(' '.join(words))}" if words else files
