"""Dockerfiles: stages with what they start from, set and install; ARG and ENV are put in as BuildKit does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from toolmatrix.errors import ManifestError, Position
from toolmatrix.manifests import installers
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.installers import Word
from toolmatrix.manifests.model import (
    IMAGE,
    PLATFORM,
    Asked,
    FileText,
    Item,
    NotRead,
    ProjectManifest,
    Traced,
    check_number,
    joined,
)
from toolmatrix.value import Value

WORDS = frozenset(
    [
        "ADD",
        "ARG",
        "CMD",
        "COPY",
        "ENTRYPOINT",
        "ENV",
        "EXPOSE",
        "FROM",
        "HEALTHCHECK",
        "LABEL",
        "MAINTAINER",
        "ONBUILD",
        "RUN",
        "SHELL",
        "STOPSIGNAL",
        "USER",
        "VOLUME",
        "WORKDIR",
    ]
)
"""The instructions of Docker."""
# Instructions of a file.
_MOST = 5_000
_ESCAPE = re.compile(r"#\s*escape\s*=\s*([\\`])\s*$", re.IGNORECASE)
_DIRECTIVE = re.compile(r"#\s*\w+\s*=")
_HEREDOC = re.compile(r"<<(-?)([\"']?)([A-Za-z_]\w*)\2")
_PAIR = re.compile(r"(?<![\w.-])([\w.-]+)=((?:\"(?:\\.|[^\"\\])*\"|'[^']*'|\\.|[^\s\"'])*)")
_OPTION = re.compile(r"--[\w-]+(?:=(\S*))?\s+")


class Instruction(Value):
    """One instruction: its word in capitals, the line it begins on, and the rest without continuations.

    `documents` are the heredocs behind it.
    """

    word: str
    line: int
    rest: Traced
    documents: tuple[Traced, ...] = ()


def instructions(source: FileText) -> Iterator[Instruction]:
    """The instructions of a Dockerfile; lines that begin with no word that Docker knows are passed over."""
    lines = list(source.lines())
    escape = _escape(lines)
    continued = re.compile(re.escape(escape) + r"[ \t]*$")
    place = 0
    while place < len(lines):
        first = place
        parts: list[Traced] = []
        while place < len(lines):
            line = lines[place]
            place += 1
            bare = line.text.lstrip()
            # Comments and empty lines go, also between the lines of one instruction.
            if not bare or bare.startswith("#"):
                if parts:
                    continue
                first = place
                continue
            found = continued.search(line.text)
            parts.append(line[: found.start()] if found else line)
            if not found:
                break
        if not parts:
            break
        whole = joined(parts, source).strip()
        # It matches nothing as well.
        found_word = re.match(r"\w*", whole.text)
        # Docker takes an instruction in whatever case.
        word = found_word[0].upper() if found_word else ""
        rest = whole[len(word) :].strip()
        documents: list[Traced] = []
        if word in ("RUN", "COPY", "ADD"):
            place = _documents(source, lines, place, rest.text, documents)
        if word in WORDS:
            yield Instruction(word=word, line=first + 1, rest=rest, documents=tuple(documents))


def _escape(lines: list[Traced]) -> str:
    for line in lines:
        if found := _ESCAPE.match(line.text):
            return found[1]
        # Directives stand before anything else.
        if not _DIRECTIVE.match(line.text):
            break
    return "\\"


def _documents(
    source: FileText, lines: list[Traced], place: int, text: str, found: list[Traced]
) -> int:
    """Read the heredocs that a line opens; the place of the line behind them."""
    for mark in _HEREDOC.finditer(text):
        start = place
        while place < len(lines):
            line = lines[place].text
            place += 1
            if (line.lstrip("\t") if mark[1] else line) == mark[3]:
                break
        first, last = source.offset(start + 1, 1), source.offset(max(start, place - 1) + 1, 1)
        found.append(source.whole()[first:last])
    return place


class _Stage:
    def __init__(self, name: str, before: _Stage | None, items: list[Item]) -> None:
        self.name = name
        # A stage hands on what ENV sets, and nothing of what ARG does.
        self.environment: dict[str, Word] = dict(before.environment) if before else {}
        self.arguments: dict[str, Word] = {}
        self.items = items

    @property
    def variables(self) -> dict[str, Word]:
        """What a command sees: ENV comes before ARG."""
        return self.arguments | self.environment


def read(source: FileText, files: Files) -> ProjectManifest:
    """The stages of a Dockerfile as environments, each with what the stages it starts from ask for."""
    return _Reader(source, files).read()


class _Reader:
    def __init__(self, source: FileText, files: Files) -> None:
        self.source = source
        self.files = files
        self.globals: dict[str, Word] = {}
        self.stages: list[_Stage] = []
        self.unread: list[NotRead] = []
        # Items that stages have of those that they start from.
        self.taken = 0
        # What lies in the image under a name that the context has: `COPY requirements.txt /app/`.
        self.copied: dict[str, str] = {}

    def read(self) -> ProjectManifest:
        for number, one in enumerate(instructions(self.source)):
            self.take(one)
            # A stage begins with what those before it set, and is found by its name among them.
            if number >= _MOST:
                raise ManifestError(
                    "the file has too many instructions",
                    where=Position(self.source.path, one.line),
                    expected=f"at most {_MOST:,}",
                )
            check_number(
                self.source.path, len(self.stages[-1].items) if self.stages else 0, self.taken
            )
        environments = [
            Asked(name=stage.name, items=tuple(stage.items)) for stage in self.stages if stage.items
        ]
        return ProjectManifest(
            kind="Dockerfile",
            environments=tuple(environments),
            unread=tuple(self.unread),
            sources=(self.source, *self.files.opened),
        )

    def take(self, one: Instruction) -> None:
        if one.word == "FROM":
            self.start(one)
        elif one.word == "ARG" and not self.stages:
            self.argument(one, self.globals, {})
        elif self.stages:
            stage = self.stages[-1]
            if one.word == "ARG":
                self.argument(one, stage.arguments, self.globals | stage.environment)
            elif one.word == "ENV":
                self.environment(one, stage)
            elif one.word == "RUN":
                self.run(one, stage)
            elif one.word == "COPY":
                self.copy(one)

    def argument(
        self, one: Instruction, variables: dict[str, Word], outer: dict[str, Word]
    ) -> None:
        pairs = {found[1]: one.rest.group(found, 2) for found in _PAIR.finditer(one.rest.text)}
        for name in re.findall(r"(?:^|\s)([A-Za-z_]\w*)(?=\s|=|$)", one.rest.text):
            if name in pairs:
                value = _unquoted(pairs[name])
                variables[name] = installers.expanded(value, outer | variables)
            elif name in outer:
                variables[name] = outer[name]

    def environment(self, one: Instruction, stage: _Stage) -> None:
        pairs = [(found[1], one.rest.group(found, 2)) for found in _PAIR.finditer(one.rest.text)]
        first = one.rest.text.split(None, 1)
        # The older form, `ENV NAME value`, has no `=` in its first word.
        if len(first) == 2 and "=" not in first[0]:
            pairs = [(first[0], one.rest[len(first[0]) :].strip())]
        # All values of one instruction are read before any of them is set.
        values = {
            name: installers.expanded(_unquoted(value), stage.variables) for name, value in pairs
        }
        stage.environment |= values
        for name, value in values.items():
            stage.items += installers.variable(name, value, self.unread)

    def start(self, one: Instruction) -> None:
        rest, platform = one.rest, None
        place = 0
        while found := _OPTION.match(rest.text, place):
            if found[0].startswith("--platform="):
                platform = installers.expanded(rest.group(found, 1), self.globals)
            place = found.end()
        rest = rest[place:]
        words = rest.words()
        image = installers.expanded(words[0], self.globals) if words else installers.Word(text=rest)
        name = words[2].text if len(words) == 3 and words[1].text.lower() == "as" else ""
        before = next((stage for stage in self.stages if stage.name == image.plain), None)
        number = len(self.stages)
        if before is None and image.plain.isdecimal() and int(image.plain) < number:
            before = self.stages[int(image.plain)]
        items: list[Item] = []
        if before is not None:
            items = list(before.items)
            self.taken += len(items)
        elif image.unread:
            self.unread.append(NotRead(text=image.text, why=f"{image.unread} is unknown"))
        # `scratch` is empty.
        elif image.plain and image.plain != "scratch":
            items = [Item(kind=IMAGE, name=image.plain, specifier="", text=image.text)]
        if platform is not None and not platform.unread:
            items.append(Item(kind=PLATFORM, name=platform.plain, specifier="", text=platform.text))
        self.stages.append(_Stage(name or str(number), before, items))

    def run(self, one: Instruction, stage: _Stage) -> None:
        place = 0
        while found := _OPTION.match(one.rest.text, place):
            place = found.end()
        script = rest = one.rest[place:]
        # A list of words is run without a shell, so that no variable is put in.
        if _is_list(rest.text):
            words = _listed(rest)
            stage.items += installers.installed(
                [installers.ShellCommand(words=tuple(words), variables={})],
                self.files,
                self.unread,
                self.copied,
                stage.variables,
            )
            return
        if one.documents and rest.text.lstrip().startswith("<<"):
            script = one.documents[0]
        found_commands = list(installers.commands(script, stage.variables))
        stage.items += installers.installed(
            found_commands, self.files, self.unread, self.copied, stage.variables
        )

    def copy(self, one: Instruction) -> None:
        words = [word for word in one.rest.text.split() if not word.startswith("--")]
        # What comes out of another image is no file of the context.
        if "--from" in one.rest.text or len(words) < 2 or words[0].startswith(("[", "<<")):
            return
        target = words[-1]
        for name in words[:-1]:
            base = name.rstrip("/").rpartition("/")[2]
            is_folder = target.endswith(("/", ".")) or len(words) > 2
            self.copied[base if is_folder else target.rpartition("/")[2]] = name


def _unquoted(value: Traced) -> Traced:
    if len(value) >= 2 and value.text[0] == value.text[-1] and value.text[0] in "\"'":
        return value[1:-1]
    return value


def _is_list(text: str) -> bool:
    # What is no list of texts is a command that begins with a test.
    try:
        found = json.loads(text) if text.startswith("[") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(found, list) and all(isinstance(one, str) for one in found)


def _listed(text: Traced) -> list[Word]:
    """The words of a command in the form of a list of JSON."""
    return [
        installers.Word(text=text.group(found, 1))
        for found in re.finditer(r'"((?:\\.|[^"\\])*)"', text.text)
    ]
