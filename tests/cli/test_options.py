"""Options: what each run makes of its arguments, and what it says of those it cannot use."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli
from toolmatrix.cli.parser import parse
from toolmatrix.command import COMMANDS, all_options
from toolmatrix.command.option import Option
from toolmatrix.command.options import COMMON, REQUEST, Options
from toolmatrix.errors import UsageError

OPTIONS = all_options()


def test_every_option_is_complete() -> None:
    for option in OPTIONS.values():
        assert option.help
        assert option.flags[-1].startswith("--")
        assert bool(option.metavar) == option.takes_value
        assert option.group in ("common", "request", "own")
        assert set(option.excludes) <= set(OPTIONS)


def test_a_flag_and_a_key_name_one_option() -> None:
    flags = [flag for one in OPTIONS.values() for flag in (*one.flags, *one.shorthand)]
    assert len(flags) == len(set(flags))
    assert len({one.key for one in OPTIONS.values()}) == len(OPTIONS)


def test_an_option_of_several_commands_has_one_flag_and_one_kind() -> None:
    # A setting is read once for all of them.
    for command in COMMANDS.values():
        for name, one in command.options.items():
            shared = OPTIONS[name]
            assert (one.flags, one.kind) == (shared.flags, shared.kind)
            assert one.cli_only or one.shape == shared.shape


def test_every_command_names_options_that_exist() -> None:
    for command in COMMANDS.values():
        assert set(command.options) <= set(OPTIONS)
        assert command.examples
        assert all(f"toolmatrix {command.name}" in one for one in command.examples)


@pytest.mark.parametrize(
    "example", [example for command in COMMANDS.values() for example in command.examples]
)
def test_every_example_parses(example: str) -> None:
    import shlex

    # What another program prints is piped into one.
    words = shlex.split(example.rpartition(" | ")[2].partition(" > ")[0])[1:]
    parsed = parse(words)
    assert parsed.command is COMMANDS[words[0]]


@pytest.mark.parametrize(
    "line",
    [
        "resolve a b --target x86,arm --with c -qq",
        "--target=x86 -qq resolve a --with=c --target arm b",
        "-q resolve --with c a -q --target x86 --target arm -- b",
    ],
)
def test_order_and_spelling_do_not_matter(line: str) -> None:
    parsed = parse(line.split())
    assert parsed.command is COMMANDS["resolve"]
    assert parsed.arguments == ["a", "b"]
    assert parsed.values == {"target": ("x86", "arm"), "with_": ("c",), "quiet": 2}


def test_two_dashes_end_the_options() -> None:
    assert parse(["resolve", "--", "--json", "--"]).arguments == ["--json", "--"]


def test_a_dash_is_an_argument_or_a_value() -> None:
    parsed = parse(["diff", "-", "b", "-o", "-", "-lx", "-m=y"])
    assert parsed.arguments == ["-", "b"]
    assert parsed.values == {"output": "-", "lock": "x", "matrix": ("y",)}


def test_specifiers_keep_their_commas() -> None:
    parsed = parse(["resolve", "a", "--with", "numpy>=1,<2", "--with", "gcc==9"])
    assert parsed.values["with_"] == ("numpy>=1,<2", "gcc==9")


def test_the_same_value_twice_is_no_contradiction() -> None:
    assert parse(["config", "--json", "--format", "json"]).values == {"format": "json"}


def test_options_are_frozen_and_typed_by_their_declaration() -> None:
    options = Options({}, COMMON | REQUEST)
    with pytest.raises(AttributeError, match="options are frozen"):
        options.depth = 3
    assert (options.target, options.depth, options.min_evidence) == ((), None, "unknown")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("reslove a", "error[TM901]: unknown command `reslove`\nhelp: did you mean `resolve`?\n"),
        (
            "zzz",
            (
                "error[TM901]: unknown command `zzz`\n"
                "help: `toolmatrix help` lists the commands; `toolmatrix search TEXT` finds names\n"
            ),
        ),
        (
            "tensorflow==2.6.5",
            (
                "error[TM901]: unknown command `tensorflow==2.6.5`\n"
                "help: did you mean `toolmatrix resolve 'tensorflow==2.6.5'`?\n"
            ),
        ),
        (
            "resolve a --tagret x86",
            "error[TM901]: unknown option `--tagret`\nhelp: did you mean `--target`?\n",
        ),
        (
            "resolve a -z",
            "error[TM901]: unknown option `-z`\nhelp: `toolmatrix help resolve` lists the options\n",
        ),
        (
            "resolve a --target",
            (
                "error[TM901]: option `--target` needs a value\n"
                "  expected: LIST\n  found: the end of the line\n"
            ),
        ),
        (
            "resolve a --target --json",
            (
                '{\n  "error": {\n    "code": "TM901",\n    "expected": "LIST",\n'
                '    "found": "`--json`",\n    "help": "",\n'
                '    "what": "option `--target` needs a value",\n    "where": null\n  },\n'
                '  "schema": "toolmatrix.error/1"\n}\n'
            ),
        ),
        (
            "resolve a --target x86,amr",
            (
                "error[TM901]: bad value for `--target`\n  expected: one of x86, arm, amd\n"
                "  found: `amr`\nhelp: did you mean `arm`?\n"
            ),
        ),
        (
            "resolve a --depth deep",
            (
                "error[TM901]: bad value for `--depth`\n"
                "  expected: a whole number, 0 or more\n  found: `deep`\n"
            ),
        ),
        (
            "resolve a --at 2026-13-01",
            (
                "error[TM901]: bad value for `--at`\n"
                "  expected: a date such as 2026-11-20\n  found: `2026-13-01`\n"
            ),
        ),
        (
            "resolve a --cpu=",
            "error[TM901]: bad value for `--cpu`\n  expected: a value, as in `--cpu NAME`\n  found: nothing\n",
        ),
        ("resolve a --all=yes", "error[TM901]: option `--all` takes no value\n  found: `yes`\n"),
        (
            "config --format text --format csv",
            "error[TM901]: `--format text` and `--format csv` contradict each other\n",
        ),
        ("config -q -v", "error[TM901]: `-q` and `-v` contradict each other\n"),
        (
            "config --no-color --color always",
            "error[TM901]: `--no-color` and `--color always` contradict each other\n",
        ),
        (
            "lock --check --upgrade numpy",
            "error[TM901]: `--upgrade numpy` and `--check` contradict each other\n",
        ),
        (
            "resolve a --rows b",
            (
                "error[TM901]: `resolve` has no option `--rows`\n"
                "help: it belongs to `matrix` and `config`\n"
            ),
        ),
        (
            "resolve a --format csv",
            "error[TM901]: `resolve` has no format `csv`\n  expected: one of text, json, md, html, svg\n",
        ),
        (
            "diff",
            (
                "error[TM901]: `diff` needs OLD [NEW]\n  found: no argument\n"
                "help: `toolmatrix help diff` shows examples\n"
            ),
        ),
        (
            "resolve",
            (
                "error[TM901]: `resolve` needs REQUEST...\n  found: no argument\n"
                "help: `toolmatrix help resolve` shows examples\n"
            ),
        ),
        (
            "config x",
            (
                "error[TM901]: `config` does not take `x`\n  expected: no argument\n"
                "help: `toolmatrix help config` shows examples\n"
            ),
        ),
        (
            "-C nowhere config",
            "error[TM901]: no directory `nowhere`\nhelp: `-C` names a directory\n",
        ),
        (
            "completion bsh",
            (
                "error[TM901]: no completion for `bsh`\n  expected: one of bash, zsh, fish\n"
                "help: did you mean `bash`?\n"
            ),
        ),
    ],
)
def test_bad_usage_is_answered_in_full(cli: Cli, line: str, message: str) -> None:
    outcome = cli(*line.split())
    assert outcome.code == 2
    assert outcome.out + outcome.err == message


def test_an_empty_list_is_no_value() -> None:
    with pytest.raises(UsageError, match="contradict"):
        parse(["resolve", "--prefer", "newest", "--prefer", "oldest"])
    assert parse(["resolve", "--target", ","]).values == {"target": ()}


def test_nothing_is_declared_of_an_option_that_nobody_reads() -> None:
    assert {key for one in OPTIONS.values() for key in vars(one)} <= vars(Option).keys() | {
        "flags",
        "help",
    }
