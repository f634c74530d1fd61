"""Shell scripts, recipes of a Makefile, and the command lines in code blocks of a README."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from toolmatrix.manifests import installers, names, requirements
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.installers import ShellCommand, Word
from toolmatrix.manifests.model import (
    IMAGE,
    FileText,
    Item,
    ManifestEnvironment,
    NotRead,
    ProjectManifest,
    Traced,
    bounded,
    joined,
)

MOST_VARIABLES = 200
"""Variables of a file; each of its scripts begins with all of them."""
_FUNCTION = re.compile(
    r"(?:function\s+[\w-]+(?:\s*\(\s*\))?|[\w-]+\s*\(\s*\))(?:\s*\{)?(?P<rest>.*)"
)
_HEREDOC = re.compile(r"(?<!<)<<(?!<)-?\s*[\"']?([A-Za-z_]\w*)")
_INSTALLS = re.compile(r"\b(?:pip|conda|mamba|uv|apt|apt-get|dnf|yum)\b")
_FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w+-]*)")
_DOCUMENTATION = frozenset(("doc", "docs"))
_LANGUAGES = frozenset(("", "bash", "sh", "shell", "zsh", "console", "shell-session", "terminal"))
_PROMPT = re.compile(r"\s*(?:\([\w.-]+\)\s*)?[$%>]\s+")
_ASSIGNED = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*(?:\?|::?|\+)?=\s*(?P<value>.*)$")
_MAKE_VARIABLE = re.compile(r"\$\(([A-Za-z_]\w*)\)|\$\$|\$[@<^*?]")
_CLONE = re.compile(r"(?:.*/)?([\w.-]+?)(?:\.git)?/?")


class ShellSession:
    """What commands install one after the other, in the folders that they go to."""

    def __init__(self, files: Files, unread: list[NotRead]) -> None:
        self.start = self.files = files
        self.unread = unread
        self.cloned: list[str] = []

    def run(self, script: Traced, variables: Mapping[str, Word] | None = None) -> Iterator[Item]:
        """What a script installs."""
        known = dict(variables or {})
        for command in installers.commands(script, known):
            known |= installers.configured([command])
            yield from self.command(command, known)

    def command(self, command: ShellCommand, variables: Mapping[str, Word]) -> Iterator[Item]:
        """What one command installs."""
        plain = [word.plain for word in command.words]
        if plain[:2] == ["git", "clone"]:
            addresses = [word for word in plain[2:] if "/" in word and not word.startswith("-")]
            match = _CLONE.fullmatch(addresses[0]) if addresses else None
            named = plain[-1] if addresses and plain[-1] != addresses[0] else ""
            self.cloned.append(named or (match[1] if match else ""))
        elif plain[:1] == ["cd"]:
            self.enter(plain[1] if len(plain) > 1 else "~")
        elif plain[1:2] == ["env"] and {"create", "update"} & set(plain[2:3]):
            yield from self.environment(command.words[3:])
        else:
            yield from installers.installed([command], self.files, self.unread, None, variables)

    def environment(self, words: Sequence[Word]) -> Iterator[Item]:
        """What `conda env create -f FILE` installs."""
        for option, word in zip_longest(words, words[1:]):
            name, equals, _ = option.plain.partition("=")
            file = option.text[len(name) + 1 :] if equals else word.text if word else None
            if name not in ("-f", "--file") or file is None:
                continue
            source = self.files.beside(file.text)
            if source is None:
                self.unread.append(NotRead(text=file, why="not a file of the project"))
                continue
            manifest = requirements.conda_environment(source, self.files)
            self.unread += manifest.unread
            for environment in manifest.environments:
                yield from environment.items

    def enter(self, folder: str) -> None:
        """Go to a folder; what is cloned first is taken for the project itself, and its folder for where it begins."""
        if folder.rstrip("/") in self.cloned[:1]:
            self.files = self.start
        elif os.path.isdir(os.path.join(self.files.folder, folder)):
            self.files = self.files.within(folder)
        else:
            # Nothing of another project is here.
            self.files = self.files.out_of_reach()


def _begins(command: ShellCommand) -> bool:
    """Whether a command makes an environment, in which nothing is of those before it."""
    plain = [word.plain for word in command.words[:3]]
    conda = plain[:1] in (["conda"], ["mamba"], ["micromamba"]) and "create" in plain[1:]
    return (
        conda
        or plain[:2] == ["uv", "venv"]
        or plain[1:] == ["-m", "venv"]
        or plain[:1] == ["virtualenv"]
    )


def read_script(source: FileText, files: Files) -> ProjectManifest:
    """A shell script as one environment, or as those that it makes."""
    unread: list[NotRead] = []
    session = ShellSession(files, unread)
    groups: list[list[Item]] = [[]]
    for command in installers.commands(joined([*_followed(source, unread)], source), {}):
        items = [*session.command(command, {})]
        if _begins(command) and groups[-1]:
            groups.append([])
        groups[-1] += items
    return files.manifest("shell script", source, _by_line(source, groups), unread)


def _by_line(source: FileText, groups: Sequence[Sequence[Item]]) -> Sequence[ManifestEnvironment]:
    """Groups of packages as environments, which their first lines tell apart."""
    filled = [items for items in groups if items]
    return bounded(
        source.path,
        (
            ManifestEnvironment(
                name=f"line {items[0].where.line}" if len(groups) > 1 else "", items=tuple(items)
            )
            for items in filled
        ),
    )


def _followed(source: FileText, unread: list[NotRead]) -> Iterator[Traced]:
    """The lines of a script outside of functions, of which it is unknown whether they are called, and of heredocs."""
    function: Traced | None = None
    end = closing = ""
    for line in source.lines():
        text = line.text.strip()
        if function is not None or end:
            if _INSTALLS.search(text) and function:
                why = "whether this function is called is not known"
                unread.append(NotRead(text=function.strip(), why=why))
                # It is reported once.
                function = function[:0]
            if (text == end) if function is None else line.text.rstrip() == closing:
                function, end = None, ""
        elif (match := _FUNCTION.match(text)) and (not match["rest"] or text.endswith("}")):
            closing = line.text[: len(line.text) - len(line.text.lstrip())] + "}"
            function = line if not match["rest"] else None
        else:
            here = _HEREDOC.search(text)
            end = here[1] if here else ""
            yield from (line, _newline(source, line))


def _newline(source: FileText, line: Traced) -> Traced:
    return Traced(source, "\n", [line.at[-1] + 1 if line else 0])


def read_makefile(source: FileText, files: Files) -> ProjectManifest:
    """Each recipe of a Makefile as an environment, with the variables that the file sets."""
    unread: list[NotRead] = []
    variables: dict[str, Word] = {}
    recipes: dict[str, list[Traced]] = {}
    target = ""
    for line in source.lines():
        if line.text.startswith("\t"):
            lines = recipes.setdefault(target, [])
            goes_on = len(lines) > 1 and lines[-2].text.endswith("\\")
            lines += (_recipe(line[1:], prefixed=not goes_on), _newline(source, line))
        elif match := _ASSIGNED.match(line.text):
            value = _recipe(line.group(match, "value"))
            if len(variables) < MOST_VARIABLES:
                variables[match["name"]] = installers.expand(value, variables)
        elif ":" in line.text and line.text[0] not in "# ":
            target = line.text.partition(":")[0].strip()
    environments = (
        ManifestEnvironment(
            name=name,
            items=tuple(ShellSession(files, unread).run(joined(lines, source), variables)),
        )
        for name, lines in recipes.items()
    )
    kept = bounded(source.path, (environment for environment in environments if environment.items))
    return files.manifest("Makefile", source, kept, unread)


def _recipe(line: Traced, *, prefixed: bool = False) -> Traced:
    """A line as the shell has it: variables of make as those of the shell."""
    start = len(line.text) - len(line.text.lstrip("@-+ ")) if prefixed else 0
    parts, position = [], start
    for match in _MAKE_VARIABLE.finditer(line.text, start):
        parts.append(line[position : match.start()])
        text = f"${{{match[1]}}}" if match[1] else "$" if match[0] == "$$" else "${MAKE}"
        at = line.at[match.start()]
        parts.append(Traced(line.source, text, [at] * len(text)))
        position = match.end()
    return joined([*parts, line[position:]], line.source)


def read_markdown(source: FileText, files: Files) -> ProjectManifest:
    """Each code block with commands as an environment; where one installs a package twice, as several.

    A text has alternatives, which no mark separates from steps: only what one block installs goes together.
    """
    unread: list[NotRead] = []
    # A page of documentation is about the project above it.
    if os.path.basename(files.folder) in _DOCUMENTATION:
        files = files.within("..")
    session = ShellSession(files, unread)
    alternatives: list[list[Item]] = []
    for block in _blocks(source):
        session.files = files
        alternatives.append([])
        named: set[tuple[str, str]] = set()
        for command in installers.commands(block, {}):
            images = [*_images(command)]
            items = [*session.command(command, {})]
            # A file of requirements may name again what is there.
            own = {(item.kind, item.name.lower()) for item in items if item.text.source is source}
            if named & own or (_begins(command) and alternatives[-1]):
                alternatives.append([])
                named = set()
            named |= own
            alternatives[-1] += items
            alternatives += [images, []] if images else []
    return files.manifest("README", source, _by_line(source, [*alternatives, []]), unread)


def _images(command: ShellCommand) -> Iterator[Item]:
    """The image that a container is made from, if its name is one that says what is in it."""
    words = command.words
    if [word.plain for word in words[:2]] in (["docker", "run"], ["docker", "pull"]):
        for word in words[2:]:
            if not word.unread and names.image(word.plain):
                yield Item(kind=IMAGE, name=word.plain, specifier="", text=word.text)
                return


def _blocks(source: FileText) -> Iterator[Traced]:
    """The scripts of a text: its fenced blocks of a shell, without prompts and what was printed."""
    fence, lines, shell = "", list[Traced](), False
    for line in source.lines():
        match = _FENCE.match(line.text)
        if not fence and match:
            fence, lines = match["fence"], []
            shell = match["language"].lower() in _LANGUAGES
        elif fence and line.text.strip() == fence[0] * len(line.text.strip()) and match:
            if shell:
                yield joined([*_commands(lines, source)], source)
            fence = ""
        elif fence and shell:
            lines.append(line)


def _commands(lines: Iterable[Traced], source: FileText) -> Iterator[Traced]:
    prompted = [(line, _PROMPT.match(line.text)) for line in lines]
    with_prompts = any(prompt for _, prompt in prompted)
    goes_on = False
    for line, prompt in prompted:
        # Between prompts is what was printed.
        if prompt or goes_on or not with_prompts:
            goes_on = line.text.endswith("\\")
            yield line[prompt.end() :] if prompt else line
            yield _newline(source, line)
