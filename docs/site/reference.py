"""The pages of the reference, each made from what declares it: commands, options, formats, codes; components, families.

Paths are those of the site, below `reference/`. Nothing of this is kept as a file.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

import toolmatrix
from toolmatrix.command import COMMANDS, all_options, every_format, meanings
from toolmatrix.commands.help import flags, meaning, sections, usage
from toolmatrix.factbase import pieces
from toolmatrix.harvest.families import families
from toolmatrix.rendering import formats
from toolmatrix.report.rules import load_rules
from toolmatrix.report.terminal import Terminal
from toolmatrix.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.command import Command
    from toolmatrix.command.option import Option
    from toolmatrix.harvest.families import Family

WIDTH = 100
# Releases of a component on its page; `toolmatrix show NAME --all` has the others.
NEWEST = 60
# What files of facts of a family are called.
_FACTS = "matrix/harvested/{}.yaml"


class Section(NamedTuple):
    """A part of the reference: its title, what it is about, and its pages by name: title, line of a list, text."""

    title: str
    about: str
    pages: Mapping[str, tuple[str, str, str]]


def files() -> Iterator[tuple[str, str]]:
    """Every page of the reference by path: its text in Markdown."""
    for folder, made in SECTIONS.items():
        section = made()
        rows = [[f"[{title}]({name}.md)", line] for name, (title, line, _) in section.pages.items()]
        head = (section.title.lower(), "what it is")
        index = _blocks(f"# {section.title}", section.about, _table(head, rows))
        yield f"reference/{folder}/index.md", index
        for name, (title, line, text) in section.pages.items():
            yield f"reference/{folder}/{name}.md", _blocks(f"# {title}", line, text)


# What the program declares


def _commands() -> Section:
    about = "In groups, as `toolmatrix help` lists them."
    return Section(
        "Commands",
        about,
        {one.name: (one.name, _said(one.summary), _command(one)) for one in COMMANDS.values()},
    )


def _command(command: Command) -> str:
    parts = [
        f"Group: {command.group}.",
        _code("text", [usage(command)]),
        "## Examples",
        _code("sh", command.examples),
    ]
    for title, options in sections(command):
        rows = [[_option_link(one, command), _said(meaning(one, command))] for one in options]
        parts += [f"## {title}", _table(("option", "what it does"), rows)] if rows else []
    forms = ", ".join(f"[`{form}`](../formats/{form}.md)" for form in command.all_formats)
    return _blocks(*parts, "## Formats", forms)


def _option_link(option: Option, command: Command) -> str:
    return f"[`{flags(option, command)}`](../options/{option.key}.md)"


def _options() -> Section:
    about = "By flag, variable or key of a settings file; [settings](../../settings.md) says which wins."
    return Section(
        "Options",
        about,
        {
            option.key: (f"`{option.flags[-1]}`", _said(option.help), _option(option))
            for option in all_options().values()
        },
    )


def _option(option: Option) -> str:
    takers = [one for one in COMMANDS.values() if option.name in one.options]
    links = ", ".join(f"[`{one.name}`](../commands/{one.name}.md)" for one in takers)
    every = "every command" if len(takers) == len(COMMANDS) else links
    words = () if option.name == "format" else option.choices
    told = {
        "flags": " ".join(f"`{flag}`" for flag in (*option.flags, *option.shorthand)),
        "value": f"`{option.metavar}`" if option.takes_value else "none",
        "words": ", ".join(f"`{word}`" for word in words),
        "default": _quoted(option.show(option.default)),
        "variable": "" if option.cli_only else f"`{option.variable}`",
        "key of a settings file": f"`{option.key}`" if option.configurable else "",
        "not with": ", ".join(f"`{all_options()[name].flags[-1]}`" for name in option.excludes),
        "commands": every,
        **{
            f"for `{name}`": _said(text)
            for text, names in meanings(option).items()
            for name in names
            if text != option.help
        },
    }
    return _facts(told)


def _formats() -> Section:
    known = formats.known()
    pages = {}
    for name in every_format():
        takers = [one for one in COMMANDS.values() if name in one.all_formats]
        line = (
            known[name].SUMMARY if name in known else f"written by {plural(len(takers), 'command')}"
        )
        links = ", ".join(f"[`{one.name}`](../commands/{one.name}.md)" for one in takers)
        text = _blocks(
            f"Commands: {links}",
            _code("sh", [f"toolmatrix {takers[0].name} ... --format {name}"]),
        )
        pages[name] = f"`{name}`", _said(line), text
    return Section("Formats", "What `--format` takes, by command.", pages)


def _codes() -> Section:
    about = "Each finding and each error has one; `toolmatrix rule CODE` prints its page without a network."
    pages = {}
    for code, rule in load_rules().items():
        text = _blocks(
            f"{rule.severity}, since {rule.since}",
            _said(rule.what),
            "## Why",
            _said(rule.why),
            "## Example",
            _code("text", rule.example.splitlines()),
            "## Remedy",
            _said(rule.remedy),
        )
        pages[code] = code, _said(rule.name), text
    return Section("Codes", about, pages)


# What the matrix holds


def _components() -> Section:
    held = toolmatrix.components(everything=True).to_json()
    harvested: dict[str, list[str]] = {}
    for family in families().values():
        for component in dict.fromkeys(_packages(family).values()):
            harvested.setdefault(component, []).append(family.name)
    about = f"As of the matrix of {held['matrix']['date']}: `toolmatrix list` prints the same."
    pages = {}
    for group in held["groups"]:
        for entry in group["components"]:
            newest = f"newest {entry['newest']}" if entry["newest"] else ""
            builds = plural(entry["builds"], "build") if entry["builds"] else ""
            line = [entry["title"], plural(entry["releases"], "release"), builds, newest]
            told = ", ".join(filter(None, line))
            name = entry["component"]
            pages[name] = (
                name,
                _said(told),
                _component(entry, group["group"], harvested.get(name, ())),
            )
    return Section("Components", about, pages)


def _component(entry: Mapping[str, Any], group: str, harvested: Iterable[str]) -> str:
    name = entry["component"]
    shown = toolmatrix.show(name)
    held = shown.to_json()
    told = {
        "group": group,
        "also called": ", ".join(f"`{one}`" for one in entry["aliases"]),
        "computes on": ", ".join(held["accelerators"]),
        "families": ", ".join(f"[{one}](../families/{one}.md)" for one in harvested),
    }
    rows = [
        [one["release"], one["date"], str(one["builds"] or ""), one["evidence"]]
        for one in held["releases"][:NEWEST]
    ]
    left = len(held["releases"]) - len(rows)
    words = ["toolmatrix", "show", name]
    screen = shown.text(Terminal(width=WIDTH)).rstrip("\n").split("\n")
    return _blocks(
        _facts(told),
        "## At a glance",
        _code("console", [f"$ {shlex.join(words)}", *screen]),
        "## Releases",
        _table(("release", "date", "builds", "evidence"), rows),
        f"{left} more: `{shlex.join([*words, '--all'])}`" if left else "",
    )


def _families() -> Section:
    about = "What is harvested, each into one file of facts; [harvest](../../harvest.md) describes the keys."
    components = toolmatrix.open_matrix().index.header["components"]
    pages = {}
    for name, family in families().items():
        parts = [
            _facts({"kind": f"`{family.kind}`", "facts": f"`{_FACTS.format(name)}`"}),
            "Read anew:",
            _code("sh", [f"toolmatrix harvest {name} --check"]),
        ]
        rows = [
            [f"`{package}`", f"[{part}](../components/{part}.md)" if part in components else ""]
            for package, part in _packages(family).items()
        ]
        parts += ["## Packages", _table(("package", "component"), rows)] if rows else []
        pages[name] = name, _said(family.about), _blocks(*parts)
    return Section("Families", about, pages)


def _packages(family: Family) -> dict[str, str]:
    """The packages of an index that a family reads, each with its component."""
    if "packages" not in family.fields or family.fields["packages"].items is not None:
        return {}
    return {
        package: node.text or pieces.text(node.fields or {}, "component", package)
        for package, node in pieces.entries(family.fields, "packages").items()
    }


# Markdown


def _blocks(*parts: str) -> str:
    return "\n\n".join(filter(None, parts)) + "\n"


def _facts(told: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {text}" for name, text in told.items() if text)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body))


def _code(tag: str, lines: Iterable[str]) -> str:
    text = "\n".join(lines)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{tag}\n{text}\n{fence}"


def _quoted(text: str) -> str:
    return f"`{text}`" if text not in ("", "false", "0") else ""


def _said(text: str) -> str:
    """A text of the program, in which nothing but `code` is a sign of Markdown."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return re.sub(r"([`\\*_\[\]<>#])", r"\\\1", text)
    return "`".join(
        part if at % 2 else re.sub(r"([\\*_\[\]<>#])", r"\\\1", part)
        for at, part in enumerate(parts)
    )


SECTIONS: Mapping[str, Callable[[], Section]] = {
    "commands": _commands,
    "options": _options,
    "formats": _formats,
    "codes": _codes,
    "components": _components,
    "families": _families,
}
"""What makes each section, by the name of its folder."""
