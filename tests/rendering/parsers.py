"""What each format says, as trees of text: read by real parsers where there are any, so that a text which got out of
its place shows as another tree.

What a shell, Docker, Bake, GitHub or GitLab would put a value into, split at or match files with is marked with ACTIVE,
so that a text which is taken as it is does not compare equal to one that does something.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import dockerfile
import yaml
from packaging.requirements import Requirement

from toolmatrix import toml
from toolmatrix.errors import LockError

ACTIVE = "\ue000"
"""Stands in front of what does something; no text of a test holds it."""

Tree = Any


class Broken(Exception):
    """A text that its parser does not take."""


# Shell


# Of the scripts of a file all but one are as before when one text changes.
@lru_cache(maxsize=4096)
def shell(text: str) -> list[str]:
    """The words, operators and comments of a script, quotes taken off (POSIX, Shell Command Language, 2.2 and 2.3)."""
    found: list[str] = []
    word: list[str] | None = None
    place = 0
    while place < len(text):
        letter = text[place]
        if letter.isspace() or letter in ";&|<>()":
            if word is not None:
                found.append("".join(word))
                word = None
            if letter not in " \t":
                found.append(ACTIVE + letter)
            place += 1
        elif letter == "#" and word is None:
            end = text.find("\n", place)
            end = len(text) if end < 0 else end
            found.append(text[place:end])
            place = end
        else:
            word = [] if word is None else word
            place = _piece(text, place, word)
    if word is not None:
        found.append("".join(word))
    return found


def _piece(text: str, place: int, word: list[str]) -> int:
    """Take one letter or one pair of quotes into a word; the place behind it."""
    letter = text[place]
    if letter == "\\":
        word.append("" if text[place + 1 : place + 2] == "\n" else text[place + 1 : place + 2])
        return place + 2
    if letter == "'":
        end = text.find("'", place + 1)
        if end < 0:
            raise Broken("a quote is left open")
        word.append(text[place + 1 : end])
        return end + 1
    if letter == '"':
        return _double(text, place + 1, word)
    word.append(ACTIVE + letter if letter in "$`*?[]{}~!" else letter)
    return place + 1


def _double(text: str, place: int, word: list[str]) -> int:
    while place < len(text):
        letter, after = text[place], text[place + 1 : place + 2]
        if letter == '"':
            return place + 1
        if letter == "\\" and after in ("$", "`", '"', "\\", "\n"):
            word.append("" if after == "\n" else after)
            place += 2
            continue
        word.append(ACTIVE + letter if letter in "$`" else letter)
        place += 1
    raise Broken("a quote is left open")


def comments(text: str) -> list[str]:
    """The lines that are comments in every format that has any."""
    return [line for line in text.split("\n") if line.lstrip().startswith("#")]


# Dockerfiles, by the parser of BuildKit


def of_dockerfile(text: str, script: Callable[[str], Tree] = shell) -> Tree:
    """Each instruction: its name, flags, words, and the scripts in it, read by `script`."""
    try:
        parsed = dockerfile.parse_string(text)
    except dockerfile.GoParseError as error:
        raise Broken(str(error)) from None
    return [
        (
            one.cmd,
            one.json,
            [flag.split(",") for flag in one.flags],
            [_docker(one.cmd, value, script) for value in one.value]
            if not one.json
            else list(one.value),
            [(held.name, script(held.content)) for held in one.heredocs],
        )
        for one in parsed
    ] + comments(text)


def _docker(command: str, value: str, script: Callable[[str], Tree]) -> Tree:
    """A word of an instruction: Docker puts variables in and takes quotes off, and RUN is a shell's."""
    if command == "RUN":
        return script(value)
    if value.startswith('"'):
        held: list[str] = []
        if _double(value, 1, held) != len(value):
            raise Broken("more than one word")
        return "".join(held).replace(ACTIVE + "`", "`")
    return marked(value, r"[$'\"\\]" if "://" in value else r"[$'\"\\*?\[]")


def directives(text: str) -> list[str]:
    """Lines at the top by which a Dockerfile speaks to its parser (docs.docker.com, Dockerfile reference)."""
    found = []
    for line in text.split("\n"):
        if not re.match(r"#\s*[A-Za-z][A-Za-z0-9]*\s*=", line):
            break
        found.append(line)
    return found


# Apptainer, as pkg/build/types/parser of apptainer/apptainer reads


def of_apptainer(text: str, script: Callable[[str], Tree] = shell) -> Tree:
    """Each stage: its header, and its sections with what follows their name; scripts are read by `script`."""
    if "{{" in text:
        raise Broken("a name in double braces")
    starts = [
        found.start() for found in re.finditer(r"^bootstrap:", text, re.IGNORECASE | re.MULTILINE)
    ]
    parts = [
        text[here:there] for here, there in zip([0, *starts], [*starts, len(text)], strict=True)
    ]
    return [_stage(part, script) for part in parts]


def _stage(text: str, script: Callable[[str], Tree]) -> Tree:
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line in text.split("\n"):
        if line.split()[:1] and line.split()[0].startswith("%"):
            sections.append((line, []))
        else:
            sections[-1][1].append(line)
    return [(name, _section(name, lines, script)) for name, lines in sections]


def _section(name: str, lines: list[str], script: Callable[[str], Tree]) -> Tree:
    kept = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    if name == "":
        return [_pair(line.partition("#")[0], ":") for line in kept]
    if name.startswith("%labels"):
        return [_pair(line, " ") for line in kept]
    if name.startswith("%files"):
        return [line.split() for line in kept]
    return script("\n".join(lines))


def _pair(line: str, between: str) -> tuple[str, str]:
    name, _, value = line.partition(between)
    return name.strip(), value.strip()


# The others


def of_json(text: str, active: str) -> Tree:
    """JSON, in whose texts a pattern is put in by whoever reads it."""
    return marked(json.loads(text), active)


def of_yaml(text: str, active: str) -> Tree:
    """YAML and its comments."""
    try:
        read = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Broken(str(error)) from None
    return [marked(read, active), comments(text)]


def marked(tree: Tree, active: str) -> Tree:
    """A tree whose texts have marks where something would be put in."""
    if isinstance(tree, str):
        return re.sub(f"({active})", ACTIVE + r"\1", tree)
    if isinstance(tree, list):
        return [marked(part, active) for part in tree]
    if isinstance(tree, dict):
        return {marked(name, active): marked(part, active) for name, part in tree.items()}
    return tree


def of_toml(text: str) -> Tree:
    """TOML and its comments."""
    return [toml.parse(text, "", LockError, "it"), comments(text)]


def of_script(text: str, script: Callable[[str], Tree] = shell) -> Tree:
    """A script with commands of a recipe in it."""
    return script(text)


def of_bazelrc(text: str) -> Tree:
    """The words of each line (Bazel, bazelrc files: quotes and backslashes as in a shell)."""
    if re.search(r"\\$", text, re.MULTILINE):
        raise Broken("a line that goes on")
    return [words for line in text.split("\n") if (words := shlex.split(line, comments=True))]


def of_constraints(text: str) -> Tree:
    """Requirements, and comments."""
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    if any("${" in line for line in lines):
        raise Broken("a variable")
    return [[str(Requirement(line)) for line in lines], comments(text)]


def of_requirements(text: str) -> Tree:
    """Options, and requirements with their hashes, a logical line each, and comments."""
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    found: list[Any] = []
    for line in "\n".join(lines).replace(" \\\n", " ").split("\n"):
        if "${" in line:
            raise Broken("a variable")
        wanted, _, hashes = line.partition(" --hash=")
        if line.startswith("--"):
            found.append(line.split(" "))
        else:
            found.append([str(Requirement(wanted)), hashes.split(" --hash=")])
    return [found, comments(text)]


def of_ignore(text: str) -> Tree:
    """The patterns of a .dockerignore, and comments."""
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    return [lines, comments(text)]


def of_bake(text: str) -> Tree:
    """A bake file; its comment is taken as it is."""
    read = json.loads(text)
    return [read.pop("//"), marked(read, r"\$\{|%\{")]


PARSERS: Mapping[str, Callable[..., Tree]] = {
    ".Dockerfile": of_dockerfile,
    ".check.sh": shell,
    ".env.sh": shell,
    ".spack.yaml": lambda text: of_yaml(text, r"\$"),
    # Nothing in it is put into anything: a text is a text.
    ".cdx.json": json.loads,
    ".def": of_apptainer,
    "docker-bake.json": of_bake,
    "install.sh": of_script,
    "pyproject.toml": of_toml,
    "pixi.toml": of_toml,
    ".kubernetes.yaml": lambda text: of_yaml(text, r"\$\("),
    "devcontainer-feature.json": lambda text: of_json(text, r"[$\"\\\\]"),
    "devcontainer.json": lambda text: of_json(text, r"\$\{"),
    "toolmatrix.yml": lambda text: of_yaml(text, r"\$\{\{"),
    ".gitlab-ci.yml": lambda text: of_yaml(text, r"\$"),
    ".environment.yml": lambda text: of_yaml(text, r"\$\{"),
    ".constraints.txt": of_constraints,
    ".requirements.txt": of_requirements,
    ".bazelrc": of_bazelrc,
    ".dockerignore": of_ignore,
}
"""The parser of each file by the end of its name."""


SCRIPTED = (".Dockerfile", ".def", "install.sh")
"""Files with commands of a recipe in them."""


# A harmless text of one length, and a text that another file holds, make the same file again.
@lru_cache(maxsize=256)
def parse(path: str, text: str, script: Callable[[str], Tree] = shell) -> Tree:
    """The tree of a file; commands of a recipe are read by `script`."""
    parser: Callable[..., Tree] = next(one for end, one in PARSERS.items() if path.endswith(end))
    return parser(text, script) if path.endswith(SCRIPTED) else parser(text)


def put(tree: Tree, old: str, new: str) -> Tree:
    """A tree with one text in the place of another."""
    if isinstance(tree, str):
        return tree.replace(old, new)
    if isinstance(tree, (list, tuple)):
        return type(tree)(put(part, old, new) for part in tree)
    if isinstance(tree, dict):
        return {put(name, old, new): put(part, old, new) for name, part in tree.items()}
    return tree


def texts(tree: Tree) -> Iterator[str]:
    """Every text of a tree."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for name, part in tree.items():
            yield from texts(name)
            yield from texts(part)
    elif isinstance(tree, (list, tuple)):
        for part in tree:
            yield from texts(part)
