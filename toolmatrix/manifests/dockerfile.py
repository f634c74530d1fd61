"""Dockerfiles as BuildKit reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from toolmatrix.errors import ManifestError, Position
from toolmatrix.manifests import installers, names
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.installers import Word
from toolmatrix.manifests.managed import SystemPip
from toolmatrix.manifests.model import (
    IMAGE,
    PLATFORM,
    SYSTEM,
    FileText,
    Item,
    ManifestEnvironment,
    NotRead,
    ProjectManifest,
    Traced,
    check_count,
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
    position = 0
    while position < len(lines):
        first = position
        parts: list[Traced] = []
        while position < len(lines):
            line = lines[position]
            position += 1
            bare = line.text.lstrip()
            # Comments and empty lines go, also between the lines of one instruction.
            if not bare or bare.startswith("#"):
                if parts:
                    continue
                first = position
                continue
            continuation = continued.search(line.text)
            parts.append(line[: continuation.start()] if continuation else line)
            if not continuation:
                break
        if not parts:
            break
        whole = joined(parts, source).strip()
        # Docker takes an instruction in any case.
        keyword = re.split(r"\W", whole.text, maxsplit=1)[0].upper()
        rest = whole[len(keyword) :].strip()
        documents: list[Traced] = []
        if keyword in ("RUN", "COPY", "ADD"):
            position = _documents(source, lines, position, rest.text, documents)
        if keyword in WORDS:
            yield Instruction(word=keyword, line=first + 1, rest=rest, documents=tuple(documents))


def _escape(lines: list[Traced]) -> str:
    for line in lines:
        if match := _ESCAPE.match(line.text):
            return match[1]
        # Directives come before anything else.
        if not _DIRECTIVE.match(line.text):
            break
    return "\\"


def _documents(
    source: FileText, lines: list[Traced], position: int, text: str, documents: list[Traced]
) -> int:
    """Read the heredocs that a line opens; the place of the line behind them."""
    for mark in _HEREDOC.finditer(text):
        start = position
        while position < len(lines):
            line = lines[position].text
            position += 1
            if (line.lstrip("\t") if mark[1] else line) == mark[3]:
                break
        first, last = source.offset(start + 1, 1), source.offset(max(start, position - 1) + 1, 1)
        documents.append(source.whole()[first:last])
    return position


class _Stage:
    def __init__(self, name: str, before: _Stage | None, items: list[Item]) -> None:
        self.name = name
        # A stage hands on what ENV sets, and nothing of what ARG does.
        self.environment: dict[str, Word] = dict(before.environment) if before else {}
        self.arguments: dict[str, Word] = {}
        self.items = items
        self.system_pip: SystemPip = SystemPip(free=before is not None and before.system_pip.free)

    @property
    def variables(self) -> dict[str, Word]:
        """What a command sees: ENV comes before ARG."""
        return self.arguments | self.environment


def read(source: FileText, files: Files) -> ProjectManifest:
    """The stages of a Dockerfile as environments, each with what the stages it starts from ask for."""
    environments, unread = stages(source, files, {})
    return files.manifest("Dockerfile", source, environments, unread)


def stages(
    source: FileText, files: Files, arguments: Mapping[str, Word]
) -> tuple[list[ManifestEnvironment], list[NotRead]]:
    """The stages of a Dockerfile that is built with arguments, and what was not read of it."""
    reader = _Reader(source, files, arguments)
    return reader.read(), reader.unread


class _Reader:
    def __init__(self, source: FileText, files: Files, build_arguments: Mapping[str, Word]) -> None:
        self.source = source
        self.files = files
        self.build_arguments = build_arguments
        self.globals: dict[str, Word] = {}
        self.stages: list[_Stage] = []
        self.unread: list[NotRead] = []
        # Items that stages have of those that they start from.
        self.inherited = 0
        # `COPY requirements.txt /app/`.
        self.copied = installers.CopiedFiles()

    def read(self) -> list[ManifestEnvironment]:
        for count, instruction in enumerate(instructions(self.source)):
            self.apply(instruction)
            # A stage begins with what those before it set, and is found by its name among them.
            if count >= _MOST:
                raise ManifestError(
                    "the file has too many instructions",
                    where=Position(self.source.path, instruction.line),
                    expected=f"at most {_MOST:,}",
                )
            check_count(
                self.source.path, len(self.stages[-1].items) if self.stages else 0, self.inherited
            )
        return [
            ManifestEnvironment(name=stage.name, items=tuple(stage.items)) for stage in self.stages
        ]

    def apply(self, instruction: Instruction) -> None:
        if instruction.word == "FROM":
            self.start_stage(instruction)
        elif instruction.word == "ARG" and not self.stages:
            self.argument(instruction, self.globals, {})
        elif self.stages:
            stage = self.stages[-1]
            if instruction.word == "ARG":
                self.argument(instruction, stage.arguments, self.globals | stage.environment)
            elif instruction.word == "ENV":
                self.environment(instruction, stage)
            elif instruction.word == "RUN":
                self.run(instruction, stage)
            elif instruction.word == "COPY":
                self.copy(instruction, stage)
            if instruction.word in ("COPY", "ADD"):
                stage.system_pip.copy(instruction.rest.text)
            elif instruction.word == "SHELL":
                stage.system_pip.read_words(instruction.rest.text.split())

    def argument(
        self, instruction: Instruction, variables: dict[str, Word], outer: dict[str, Word]
    ) -> None:
        rest = instruction.rest
        pairs = {match[1]: rest.group(match, 2) for match in _PAIR.finditer(rest.text)}
        for match in re.finditer(r"(?:^|\s)([A-Za-z_]\w*)(?=\s|=|$)", rest.text):
            name = match[1]
            if name in self.build_arguments:
                # Its value is in another file: here is where it takes effect.
                value = self.build_arguments[name]
                at = [rest.at[match.start(1)]] * len(value.plain)
                variables[name] = value.replace(text=Traced(self.source, value.plain, at))
            elif name in pairs:
                default = _unquoted(pairs[name])
                variables[name] = installers.expand(default, outer | variables)
            elif name in outer:
                variables[name] = outer[name]

    def environment(self, instruction: Instruction, stage: _Stage) -> None:
        rest = instruction.rest
        pairs = [(match[1], rest.group(match, 2)) for match in _PAIR.finditer(rest.text)]
        first = rest.text.split(None, 1)
        # The older form, `ENV NAME value`, has no `=` in its first word.
        if len(first) == 2 and "=" not in first[0]:
            pairs = [(first[0], rest[len(first[0]) :].strip())]
        # All values of one instruction are read before any of them is set.
        values = {
            name: installers.expand(_unquoted(value), stage.variables) for name, value in pairs
        }
        stage.environment |= values
        stage.system_pip.set_variables(values)
        for name, value in values.items():
            stage.items += installers.variable(name, value, self.unread)

    def start_stage(self, instruction: Instruction) -> None:
        rest, platform = instruction.rest, None
        position = 0
        while option := _OPTION.match(rest.text, position):
            if option[0].startswith("--platform="):
                platform = installers.expand(rest.group(option, 1), self.globals)
            position = option.end()
        rest = rest[position:]
        words = rest.words()
        image = installers.expand(words[0], self.globals) if words else installers.Word(text=rest)
        name = words[2].text if len(words) == 3 and words[1].text.lower() == "as" else ""
        before = next((stage for stage in self.stages if stage.name == image.plain), None)
        index = len(self.stages)
        if before is None and image.plain.isdecimal() and int(image.plain) < index:
            before = self.stages[int(image.plain)]
        items: list[Item] = []
        if before is not None:
            items = list(before.items)
            self.inherited += len(items)
        elif image.unread:
            self.unread.append(installers.unknown_value(image))
        # `scratch` is empty.
        elif image.plain and image.plain != "scratch":
            items = [Item(kind=IMAGE, name=image.plain, specifier="", text=image.text)]
        if platform is not None and not platform.unread:
            items.append(Item(kind=PLATFORM, name=platform.plain, specifier="", text=platform.text))
        self.stages.append(_Stage(name or str(index), before, items))

    def run(self, instruction: Instruction, stage: _Stage) -> None:
        position = 0
        while option := _OPTION.match(instruction.rest.text, position):
            position = option.end()
        script = rest = instruction.rest[position:]
        # A list of words is run without a shell, so that no variable is put in.
        words = _list_words(rest)
        if words is not None:
            commands = [installers.ShellCommand(words=tuple(words), variables={})]
        elif instruction.documents and rest.text.lstrip().startswith("<<"):
            script = instruction.documents[0]
        if words is None:
            commands = list(installers.commands(script, stage.variables))
            stage.environment |= installers.configured(commands)
        stage.items += installers.installed(
            commands, self.files, self.unread, self.copied, stage.variables
        )
        stopped = [*stage.system_pip.stopped(commands, stage.variables, script)]
        # Without the package of the distribution it is unknown which pip runs.
        if any(item.kind == SYSTEM and names.brings_pip(item.name) for item in stage.items):
            stage.items += stopped

    def copy(self, instruction: Instruction, stage: _Stage) -> None:
        words = [word for word in instruction.rest.text.split() if not word.startswith("--")]
        # What comes out of another image is no file of the context.
        if "--from" in instruction.rest.text or len(words) < 2 or words[0].startswith(("[", "<<")):
            return
        target = words[-1]
        for name in words[:-1]:
            base = name.rstrip("/").rpartition("/")[2]
            if base == "pip.conf" or target.endswith("/pip.conf"):
                stage.environment["PIP_CONFIG_FILE"] = installers.Word(text=instruction.rest)
        self.copied.add(words[:-1], target)


def _unquoted(value: Traced) -> Traced:
    if len(value) >= 2 and value.text[0] == value.text[-1] and value.text[0] in "\"'":
        return value[1:-1]
    return value


def _list_words(text: Traced) -> list[Word] | None:
    """The words of a command in the form of a list of JSON, None for another command."""
    # What is no list of texts is a command that begins with a test.
    try:
        parsed = json.loads(text.text) if text.text.startswith("[") else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, list) or not all(isinstance(word, str) for word in parsed):
        return None
    return [
        installers.Word(text=text.group(match, 1))
        for match in re.finditer(r'"((?:\\.|[^"\\])*)"', text.text)
    ]
