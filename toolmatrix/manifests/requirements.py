"""Requirements of pip (PEP 508, Requirements File Format), and of conda: specifications and `environment.yml`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from toolmatrix.errors import ManifestError, Position
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.model import (
    CHANNEL,
    CONDA,
    LONGEST,
    PIP,
    FileText,
    Item,
    ManifestEnvironment,
    NotRead,
    ProjectManifest,
    Traced,
    joined,
    too_long,
)
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from packaging.markers import Marker


_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# A file of a project has a handful; more is no such file, and walking it would take the stack.
_DEEPEST = 40


class Marked:
    """A value, or nothing: what is not there has no items and no text."""

    __slots__ = ("node", "source")

    def __init__(self, source: FileText, node: yaml.Node | None) -> None:
        self.source = source
        self.node = node

    def fields(self, deep: int = 0) -> dict[str, tuple[Traced, Marked]]:
        """The keys of a mapping with their places, and the values; those of merged mappings behind its own."""
        entries: dict[str, tuple[Traced, Marked]] = {}
        if not isinstance(self.node, yaml.MappingNode) or deep > _DEEPEST:
            return entries
        self._visit()
        merged: list[Marked] = []
        for key, value in self.node.value:
            name = Marked(self.source, key).text()
            if name is None:
                continue
            marked = Marked(self.source, value)
            if name.text == "<<":
                merged += marked.items() if isinstance(value, yaml.SequenceNode) else [marked]
            else:
                # Of a repeated key the last one counts, as in most readers.
                entries[key.value] = name, marked
        for marked in merged:
            for called, field in marked.fields(deep + 1).items():
                entries.setdefault(called, field)
        return entries

    def get(self, name: str) -> Marked:
        """The value of a key."""
        entry = self.fields().get(name)
        return entry[1] if entry else Marked(self.source, None)

    def items(self) -> list[Marked]:
        """The items of a list; of anything else none."""
        if not isinstance(self.node, yaml.SequenceNode):
            return []
        self._visit()
        return [Marked(self.source, node) for node in self.node.value]

    def _visit(self) -> None:
        if self.node is not None and not self.source.visit(1 + len(self.node.value)):
            raise ManifestError(
                "the file expands to too many values",
                where=Position(self.source.path, self.node.start_mark.line + 1),
                expected="fewer aliases, or fewer merged mappings",
            )

    def text(self) -> Traced | None:
        """A scalar as text with its place; None for anything else, and for null."""
        node = self.node
        if not isinstance(node, yaml.ScalarNode) or node.tag.endswith(":null"):
            return None
        start, end = node.start_mark.index, node.end_mark.index
        raw = self.source.whole()[start:end].strip()
        # The quotes are no part of the value.
        if node.style in ("'", '"'):
            raw = raw[1:-1]
        if raw.text == node.value:
            return raw
        if node.style == "|" and (block := _literal(raw, node.value)):
            return block
        # Escapes or folded lines: the text differs from the source, so only its beginning has a position.
        return Traced(self.source, node.value, [start] * len(node.value))


def _literal(raw: Traced, value: str) -> Traced | None:
    """The value of a literal block, whose lines are those of the source without their indentation."""
    lines, at = raw.text.split("\n")[1:], raw.text.find("\n") + 1
    indent = next((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), 0)
    positions: list[int] = []
    for line, own in zip(lines, value.split("\n"), strict=False):
        if line[indent:] != own:
            return None
        positions += raw.at[at + indent : at + len(line)]
        at += len(line) + 1
        positions.append(raw.at[min(at, len(raw)) - 1])
    return (
        Traced(raw.source, value, positions[: len(value)]) if len(positions) >= len(value) else None
    )


def parse(source: FileText, text: str = "") -> Marked:
    """A file of YAML; `text` is what is parsed in its place, letter for letter as long. Raises ManifestError."""
    try:
        node = yaml.compose(text or source.text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = (
            Position(source.path, mark.line + 1, mark.column + 1) if mark else Position(source.path)
        )
        raise ManifestError(
            "the file is not YAML",
            where=where,
            expected="YAML",
            found=getattr(error, "problem", None) or "a syntax error",
        ) from None
    except RecursionError:
        raise ManifestError("the file is nested too deeply", where=Position(source.path)) from None
    return Marked(source, node)


_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|\t', re.DOTALL)


def parse_json(source: FileText) -> Marked:
    """A file of JSON, which may have comments and trailing commas. Raises ManifestError."""

    # JSON is YAML but for comments and tabs, which become as many blanks.
    def blank(match: re.Match[str]) -> str:
        token = match[0]
        return token if token[0] == '"' else re.sub(r"[^\n]", " ", token)

    text = _STRING.sub(blank, source.text)
    return parse(source, text or " ")


def texts(items: list[Marked]) -> Iterator[Traced]:
    """Those of some values that are text."""
    return (text for text in (item.text() for item in items) if text is not None)


_REQUIREMENT = re.compile(
    r"\s*(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[(?P<extras>[^\]]*)\])?\s*"
    r"\(?(?P<spec>[^;@()]*?)\)?\s*(?P<rest>[;@].*)?$",
    re.ASCII | re.DOTALL,
)
# Options that the line of one package may have behind it: hashes, settings of its build, and where it comes from.
_OWN_OPTIONS = re.compile(r"(?<=\S)\s+-{1,2}[A-Za-z].*$", re.DOTALL)
_ADDRESS = re.compile(r"\s(?P<option>--?[\w-]+?)(?:=|\s+|(?<=\s-[if]))(?P<address>[\w+.-]+:\S+)")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_WHEEL = re.compile(r"(?<![^/\s])[^/\s]+\.whl(?=$|[#?])")
_PYTHON = re.compile(r"cp(\d)(\d+)$")
_INDEX = {
    "-i": True,
    "--index-url": True,
    "--extra-index-url": False,
    "-f": False,
    "--find-links": False,
}
# So many addresses are kept.
_MOST = 100
INDEXES = frozenset(_INDEX)
"""The options that name an address where packages are looked for."""
# What a marker says of the platform is asked for one.
_LINUX = {
    "os_name": "posix",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
    "extra": "",
}


class PackageIndexes(Value):
    """Addresses of indexes, and whether the first takes the place of the default one."""

    addresses: tuple[str, ...] = ()
    alone: bool = False

    def with_option(self, option: str, address: str) -> PackageIndexes:
        """The same with one more."""
        alone = self.alone or _INDEX[option]
        # Whether a package may come from elsewhere than the default is known by then.
        more = (address,) if len(self.addresses) < _MOST else ()
        return PackageIndexes(addresses=(*self.addresses, *more), alone=alone)


def requirement(text: Traced, indexes: PackageIndexes, python: str = "") -> Item | NotRead | None:
    """One requirement as an item; None where a marker leaves it out of Linux, NotRead for what cannot be known."""
    from packaging.requirements import InvalidRequirement, Requirement

    text = text.strip()
    own = _OWN_OPTIONS.search(text.text)
    if own:
        for match in _ADDRESS.finditer(own[0]):
            if match["option"] in INDEXES:
                indexes = indexes.with_option(match["option"], match["address"])
        text = text[: own.start()]
    address, semicolon, condition = text.partition(";")
    wheel = _WHEEL.search(address.text.rstrip())
    if wheel:
        applies = marked(condition.text, python) if semicolon else True
        if applies is not True:
            return NotRead(text=text, why=applies) if applies else None
        return _wheel(address.strip(), text.group(wheel, 0))
    if (longer := too_long(text)) is not None:
        return longer
    # pip takes a path or an address as well, which names no version.
    if text.text.startswith((".", "git+")) or "/" in address.text:
        return NotRead(text=text, why="a URL or a path")
    parts = _REQUIREMENT.match(text.text)
    try:
        read = Requirement(text.text)
    except InvalidRequirement:
        read = None
    if parts is None or read is None:
        return NotRead(text=text, why="not a requirement that pip accepts")
    if read.marker is not None:
        applies = _holds(read.marker, python)
        if applies is not True:
            return NotRead(text=text, why=applies) if applies else None
    version = text.group(parts, "spec").strip()
    core = text[: parts.start("rest")].strip() if parts["rest"] else text
    return Item(
        kind=PIP,
        name=read.name,
        specifier=str(read.specifier),
        text=core,
        version=version or None,
        extras=tuple(sorted(read.extras)),
        indexes=indexes.addresses,
        alone=indexes.alone,
        python=python,
    )


def marked(condition: str, python: str = "") -> bool | str:
    """What a marker says of Linux and a Python, if one is known: True, False, or why that is unknown."""
    from packaging.markers import InvalidMarker, Marker

    if len(condition) > LONGEST:
        return f"its marker has more than {LONGEST:,} characters"
    try:
        return _holds(Marker(condition.strip()), python)
    except InvalidMarker:
        return "its marker cannot be read"


def _holds(marker: Marker, python: str) -> bool | str:
    """True or False where Linux and a Python, if one is known, decide it; else why it is unknown."""
    from packaging.markers import UndefinedEnvironmentName

    words = str(marker)
    # Which of two lines holds is not guessed: a file is for several Pythons.
    about_python = "python_version" in words or "python_full_version" in words
    if about_python and not python:
        return "its marker depends on Python"
    python = python or "3"
    environment = _LINUX | {"python_version": python, "python_full_version": f"{python}.0"}
    try:
        return marker.evaluate(environment)
    except (UndefinedEnvironmentName, ValueError):
        return "its marker cannot be read"


def _wheel(text: Traced, name: Traced) -> Item | NotRead:
    from urllib.parse import unquote

    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        package, _, _, tags = parse_wheel_filename(unquote(name.text))
    except InvalidWheelFilename:
        return NotRead(text=text, why="a URL that names no wheel")
    series = {f"{match[1]}.{match[2]}" for tag in tags if (match := _PYTHON.match(tag.interpreter))}
    # A wheel of the stable ABI is for that Python and all later ones.
    stable = any(tag.abi == "abi3" for tag in tags)
    # A local version as it is written: each spelling may be a build of its own.
    version = unquote(name.text).split("-")[1]
    return Item(
        kind=PIP,
        name=str(package),
        specifier=f"=={version}",
        text=text,
        indexes=(text.text,),
        python=next(iter(series)) if len(series) == 1 and not stable else "",
    )


class _Lines:
    def __init__(self, files: Files, unread: list[NotRead], python: str) -> None:
        self.files = files
        self.unread = unread
        self.python = python
        self.indexes = PackageIndexes()
        self.texts: list[tuple[Traced, bool]] = []
        self.visited: set[str] = set()

    def read(self, source: FileText, *, bounds: bool = False) -> None:
        """The requirements of a file and of those it names; options hold for all of them, wherever they are."""
        # Files may name each other.
        if source.path in self.visited:
            return
        self.visited.add(source.path)
        for line in _logical(source):
            text = line.strip()
            if text.text.startswith("-"):
                self.option(source, text, bounds=bounds)
            elif text:
                self.texts.append((text, bounds))

    def option(self, source: FileText, text: Traced, *, bounds: bool) -> None:
        name, value = _option(text)
        if name in INDEXES and value:
            self.indexes = self.indexes.with_option(name, value.text)
        elif name in ("-r", "--requirement", "-c", "--constraint") and value:
            beside = self.files.beside(value.text, source.path)
            if beside is None:
                self.unread.append(NotRead(text=text, why="not a file of the project"))
            else:
                # What a constraint names is one as well.
                self.read(beside, bounds=bounds or name in ("-c", "--constraint"))
        elif name in ("-e", "--editable"):
            self.unread.append(NotRead(text=text, why="a URL or a path"))

    def items(self, *, overrides: bool) -> Iterator[Item]:
        # A constraint installs nothing: it bounds what something else asks for.
        for text, bounds in self.texts:
            item = self.item(text)
            if item:
                yield item.replace(bounds=bounds, overrides=overrides)

    def item(self, text: Traced) -> Item | None:
        if "${" in text.text:
            self.unread.append(NotRead(text=text, why="an environment variable"))
            return None
        item = requirement(text, self.indexes, self.python)
        if isinstance(item, NotRead):
            self.unread.append(item)
            return None
        return item


def _option(text: Traced) -> tuple[str, Traced | None]:
    long = re.match(r"(--?[\w-]+?)(?:[=\s]\s*|$)(.*)$", text.text)
    short = re.match(r"(-[a-z])\s*(\S.*)$", text.text)
    if short and not text.text.startswith("--"):
        return short[1], text.group(short, 2).strip()
    if long is None:
        return "", None
    return long[1], text.group(long, 2).strip("'\" \t") or None


def _logical(source: FileText) -> Iterator[Traced]:
    """The lines of a file, those that a backslash continues put together, without comments."""
    parts: list[Traced] = []
    for line in source.lines():
        if line.text.endswith("\\") and not line.text.lstrip().startswith("#"):
            parts.append(line[:-1])
            continue
        comment = _COMMENT.search(line.text)
        parts.append(line[: comment.start()] if comment else line)
        yield joined(parts, source)
        parts = []
    if parts:
        yield joined(parts, source)


def read_requirements(
    source: FileText,
    files: Files,
    unread: list[NotRead],
    python: str = "",
    *,
    bounds: bool = False,
    overrides: bool = False,
) -> tuple[Item, ...]:
    """All that a file of requirements asks for, and those that it names."""
    lines = _Lines(files, unread, python)
    lines.read(source, bounds=bounds)
    return tuple(lines.items(overrides=overrides))


def requirements_file(source: FileText, files: Files) -> ProjectManifest:
    """A file of requirements as one environment."""
    unread: list[NotRead] = []
    items = read_requirements(source, files, unread)
    return files.manifest(
        "requirements", source, [ManifestEnvironment(name="", items=items)], unread
    )


def several(texts: Sequence[Traced], unread: list[NotRead], indexes: PackageIndexes) -> list[Item]:
    """Requirements from a list of another file."""
    items = [requirement(text, indexes) for text in texts]
    unread += [item for item in items if isinstance(item, NotRead)]
    return [item for item in items if isinstance(item, Item)]


# `channel/subdir::name version build`, `name=version=build`, `name>=1,<2`, `name[version=1]` (conda, MatchSpec).
_SPEC = re.compile(
    r"(?:[^\s:]+::)?(?P<name>[A-Za-z0-9_][\w.-]*)"
    r"(?:\s*(?P<version>[=<>!~]+\s*[^\s\[=]+(?:,\s*[<>=!~]+\s*[^\s\[=]+)*|(?<=\s)[\d*][^\s\[]*))?"
    r"(?P<build>=[^\s=]*|\s+\S+)?$",
    re.ASCII,
)


def conda_spec(text: Traced, unread: list[NotRead]) -> Iterator[Item]:
    """One specification of a package as an item."""
    text = text.strip()
    if (longer := too_long(text)) is not None:
        unread.append(longer)
        return
    match = _SPEC.match(text.text)
    # The name of a file or a URL need not say what is in it.
    if match is None or text.text.startswith((".", "/")) or "://" in text.text:
        unread.append(NotRead(text=text, why="not a package specification that conda accepts"))
        return
    version = text.group(match, "version") if match["version"] else None
    yield Item(
        kind=CONDA,
        name=match["name"].lower(),
        specifier=conda_selector(re.sub(r"\s", "", version.text)) if version else "",
        text=text,
        version=version,
    )


def conda_selector(text: str) -> str:
    """The versions of a specification of conda, as PEP 440 writes them: `=1.2` is any of that series."""
    return " | ".join(
        ",".join(_clause(part.strip()) for part in alternative.split(",") if part.strip())
        for alternative in text.split("|")
    )


def _clause(part: str) -> str:
    if part.startswith("==") or part[:1] in "<>!~":
        # conda takes `>=1.2.*` for `>=1.2`, and PEP 440 refuses it.
        return part.removesuffix(".*") if part[:1] in "<>" else part
    version = part.lstrip("=")
    if version == "*":
        return "*"
    if part.startswith("="):
        return f"=={version.removesuffix('*').removesuffix('.')}.*"
    return f"=={version}"


def conda_environment(source: FileText, files: Files) -> ProjectManifest:
    """An `environment.yml` as one environment. Raises ManifestError."""
    unread: list[NotRead] = []
    root = parse(source)
    channels = (entry.text() for entry in root.get("channels").items())
    items = [
        Item(kind=CHANNEL, name=name.text, specifier="", text=name)
        for name in channels
        if name is not None
    ]
    for entry in root.get("dependencies").items():
        text = entry.text()
        if text is not None:
            items += conda_spec(text, unread)
            continue
        # A table among the packages is the list for pip, whose lines are those of a requirements file.
        lines = [line for line in (item.text() for item in entry.get("pip").items()) if line]
        items += (item.replace(command="pip") for item in pip_lines(lines, files, unread, source))
    environment = ManifestEnvironment(name="", items=tuple(items))
    return files.manifest("conda environment", source, [environment], unread)


def pip_lines(
    lines: list[Traced], files: Files, unread: list[NotRead], source: FileText
) -> Iterator[Item]:
    """What a list of lines for pip asks for; options hold for those behind them."""
    indexes, requirements = PackageIndexes(), []
    for line in lines:
        option = re.match(r"(--?[\w-]+)[=\s]+(\S+)", line.text)
        if option and option[1] in INDEXES:
            indexes = indexes.with_option(option[1], option[2])
        elif option and option[1] in ("-r", "--requirement", "-c"):
            beside = files.beside(option[2], source.path)
            if beside is None:
                unread.append(NotRead(text=line, why="not a file of the project"))
            else:
                yield from read_requirements(beside, files, unread, bounds=option[1] == "-c")
        elif line.text.startswith("-"):
            unread.append(NotRead(text=line, why="an option of pip or a URL"))
        else:
            requirements.append(line)
    yield from several(requirements, unread, indexes)
