"""The questions that an assistant can ask: their arguments, declared as options are, and their answers as documents.

Nothing here knows how they are carried; `toolmatrix.commands.mcp` does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import toolmatrix
from toolmatrix import resources
from toolmatrix.api import PLAIN, Outcome
from toolmatrix.api.caller import Caller, call_for
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.cli.main import as_toolmatrix_error, error_text
from toolmatrix.command import COMMANDS
from toolmatrix.command.option import Option, toml_kind
from toolmatrix.errors import ToolmatrixError, UsageError
from toolmatrix.manifests import files
from toolmatrix.recipes import read as recipes
from toolmatrix.report.terminal import plural
from toolmatrix.request import fields, names
from toolmatrix.request.fields import BadValue
from toolmatrix.value import Value

# Limits: characters of a word, words of a list, and characters of a log; a longer log is passed by its path.
LONGEST_WORD = names.LONGEST
MOST_WORDS = 100
LONGEST_LOG = 1 << 20
LONGEST_ANSWER = 1 << 20
"""Characters of an answer, as text and as a document; no ordinary question has a tenth of them."""

OF_REQUEST = (*fields.OPTIONS, "keep")
# The options that take a path beside other words.
_PATHS = {"recipe": recipes.is_path, "device": fields.is_paste}
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


class SessionDefaults(Value):
    """Defaults for every call: the matrix, options by name, the directory of relative paths, and roots of the client.

    Without roots the directory alone bounds what is read.
    """

    matrix: OpenMatrix
    options: Mapping[str, Any] = {}
    directory: str = ""
    roots: tuple[str, ...] | None = None

    def path(self, text: str) -> str:
        """A path from an argument, ready to be opened. Raises UsageError for one that leads out of the directory."""
        root = os.path.realpath(self.directory or os.curdir)
        path = os.path.join(self.directory, text)
        try:
            # A server that was started without a folder runs in `/`.
            may_read = root != os.sep and files.is_inside(path, root)
            if may_read and self.roots is not None:
                may_read = any(files.is_inside(path, folder) for folder in self.roots)
        except ValueError:
            may_read = False
        if may_read:
            return path
        of_client = "" if self.roots is None else ", and in a root that the client lists"
        raise UsageError(
            "the tools may not read this file",
            expected=f"a path in {root}, also after following links{of_client}"
            if root != os.sep
            else "no path",
            found=f"`{text}`",
            help="start `toolmatrix mcp -C FOLDER` for another folder",
        )


class _Positional(Value):
    """A positional argument of a tool."""

    help: str
    several: bool = False
    needed: bool = True
    # It is a path, unless it has a line break in it.
    text: bool = False
    # It is a path.
    path: bool = False

    @property
    def counts(self) -> range:
        return range(int(self.needed), MOST_WORDS + 1 if self.several else 2)

    @property
    def longest(self) -> int:
        return LONGEST_LOG if self.text else LONGEST_WORD

    def words(self, name: str, value: Any, defaults: SessionDefaults) -> list[str]:
        """The positional arguments in a value. Raises UsageError."""
        arguments = _bounded(name, value if isinstance(value, list) else [value], self.longest)
        right = all(isinstance(word, str) for word in arguments)
        if not right or len(arguments) not in self.counts:
            raise _wrong(name, BadValue(self.help, toml_kind(value) if arguments else "nothing"))
        return [
            defaults.path(word) if self.path or (self.text and "\n" not in word) else word
            for word in arguments
        ]


class Tool(Value):
    """A question: the function of `toolmatrix` that answers it, what it takes, and the documents that it may give."""

    name: str
    about: str
    first: Mapping[str, _Positional]
    takes: tuple[str, ...] = ()
    documents: tuple[str, ...]

    @property
    def options(self) -> dict[str, Option]:
        """The options of the command that it takes as well, by name."""
        options = COMMANDS[self.name.replace("_", "-")].options
        return {name: options[name] for name in self.takes}

    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        shapes: dict[str, Any] = {}
        for name, first in self.first.items():
            shapes[name] = _shape("list" if first.several else "text", first.longest)
            shapes[name]["description"] = first.help
        for option in self.options.values():
            shape = shapes[option.key] = _shape(option.kind, LONGEST_WORD)
            shape["description"] = option.help
            if option.choices:
                shape["enum"] = list(option.choices)
        return {
            "$schema": _DRAFT,
            "type": "object",
            "properties": shapes,
            "required": [name for name, first in self.first.items() if first.needed],
            "additionalProperties": False,
        }

    def output_schema(self) -> dict[str, Any]:
        """The JSON Schema of the documents."""
        schemas = {
            name: resources.load_json(resources.schema_path(name)) for name in self.documents
        }
        # An `$id` of its own lets each schema keep its definitions.
        return {
            "$schema": _DRAFT,
            "type": "object",
            "anyOf": [{"$ref": f"#/$defs/{name}"} for name in schemas],
            "$defs": {
                name: {"$id": f"{name}.schema.json", **schema} for name, schema in schemas.items()
            },
        }

    def ask(self, arguments: Mapping[str, Any], defaults: SessionDefaults) -> Outcome:
        """The answer. Raises ToolmatrixError."""
        by_key = {option.key: option for option in self.options.values()}
        unknown = [name for name in arguments if name not in self.first and name not in by_key]
        if unknown:
            raise UsageError(
                f"`{self.name}` takes no `{unknown[0]}`",
                expected=", ".join((*self.first, *by_key)),
                found=f"`{unknown[0]}`",
            )
        # Treat null as absent: some clients send every argument.
        values = {name: value for name, value in arguments.items() if value is not None}
        words = [
            word
            for name, first in self.first.items()
            for word in first.words(name, values.pop(name, []), defaults)
        ]
        options = {name: defaults.options[name] for name in self.takes if name in defaults.options}
        for key, value in values.items():
            option = by_key[key]
            try:
                accepted = option.accept(_bounded(key, value))
            except BadValue as bad:
                raise _wrong(key, bad) from None
            is_path = (lambda _: True) if option.shape == "path" else _PATHS.get(key)
            if is_path and isinstance(accepted, str):
                accepted = defaults.path(accepted) if is_path(accepted) else accepted
            elif is_path:
                accepted = [defaults.path(word) if is_path(word) else word for word in accepted]
            options[option.name] = accepted
        answer: Outcome = getattr(toolmatrix, self.name)(*words, matrix=defaults.matrix, **options)
        return answer


class ToolReply(Value):
    """The reply to an assistant: the text that the command prints, and its document."""

    text: str
    document: Mapping[str, Any]
    failed: bool = False


def call_tool(name: str, arguments: Mapping[str, Any], defaults: SessionDefaults) -> ToolReply:
    """The reply of a tool, or an error as a reply; raises nothing."""
    if name not in TOOLS:
        return failure(UsageError(f"unknown tool `{name}`", expected=", ".join(TOOLS)))
    try:
        # Called as from Python: notes and settings belong to the server, not to an answer.
        answer = call_for(Caller(), TOOLS[name].ask, arguments, defaults)
        return _sendable(ToolReply(text=answer.text(), document=answer.to_json()))
    except Exception as raised:  # noqa: BLE001 - a defect of one answer must not end the others
        return failure(raised)


def _sendable(reply: ToolReply) -> ToolReply:
    if max(len(reply.text), len(json.dumps(reply.document))) > LONGEST_ANSWER:
        raise UsageError(
            "the answer is too long",
            expected=f"at most {LONGEST_ANSWER} characters",
            help="ask for less: with `limit`, or fewer targets",
        )
    return reply


def failure(raised: Exception) -> ToolReply:
    """An error as a reply."""
    error = as_toolmatrix_error(raised)
    # Report only the position in a file: its content may be private.
    if error.where is not None:
        error.found, error.each = "", ()
    return ToolReply(text=error_text(error, PLAIN), document=error.to_json(), failed=True)


def _shape(kind: str, longest: int) -> dict[str, Any]:
    text = {"type": "string", "maxLength": longest}
    shapes: dict[str, dict[str, Any]] = {
        "text": text,
        "list": {"type": "array", "items": text, "maxItems": MOST_WORDS},
        "flag": {"type": "boolean"},
        "number": {"type": "integer", "minimum": 0},
    }
    return shapes[kind]


def _bounded(name: str, value: Any, longest: int = LONGEST_WORD) -> Any:
    words = value if isinstance(value, list) else [value]
    letters = max((len(word) for word in words if isinstance(word, str)), default=0)
    if len(words) > MOST_WORDS or letters > longest:
        raise UsageError(
            f"`{name}` is too long",
            expected=f"at most {longest} characters, and {MOST_WORDS} words in a list",
            found=f"{plural(letters, 'character')} in {plural(len(words), 'word')}",
        )
    return value


def _wrong(name: str, bad: BadValue) -> ToolmatrixError:
    return bad.about(UsageError, f"`{name}`")


_COMPONENT = _Positional(help="a component, or one of its releases: `cuda`, `torch==2.7.1`")
_WANTED = _Positional(
    help="the request: components with or without versions: `torch`, `tensorflow==2.6.5`, `cuda>=12,<13`",
    several=True,
)

_ALL = (
    Tool(
        name="resolve",
        about="Find versions of a machine-learning tool chain that work together (framework, Python, compiler, CUDA, "
        "ROCm, cuDNN, flags), with the command that installs them and the evidence and source of each; or explain why "
        "none do.",
        first={"request": _WANTED},
        takes=OF_REQUEST,
        documents=("resolution", "conflict"),
    ),
    Tool(
        name="env",
        about="Find an environment for a repository: versions that work together for what its files ask for, the "
        "commands that create it, and the lines that had to change, each with its reason. Nothing in it is run.",
        first={
            "repo": _Positional(
                help="the path of the repository, or of one of its files", path=True
            )
        },
        takes=OF_REQUEST,
        documents=("environment",),
    ),
    Tool(
        name="why_not",
        about="Show what forbids a combination of versions, and changes that allow it, each of them solved; or that "
        "nothing forbids it.",
        first={"request": _WANTED},
        takes=OF_REQUEST,
        documents=("resolution", "conflict"),
    ),
    Tool(
        name="explain",
        about="Explain why an answer has this version of a component, and which versions were refused.",
        first={"name": _COMPONENT, "request": _WANTED.replace(needed=False)},
        takes=("invert", *OF_REQUEST),
        documents=("explanation", "conflict"),
    ),
    Tool(
        name="show",
        about="Show a component: its releases with their dates, its builds and its facts.",
        first={"subject": _COMPONENT},
        takes=("at",),
        documents=("component",),
    ),
    Tool(
        name="news",
        about="List what changed for components since a day or an earlier matrix: new releases with what they need, "
        "and facts that were read, changed or removed.",
        first={"name": _COMPONENT.replace(several=True, needed=False)},
        takes=("since",),
        documents=("news",),
    ),
    Tool(
        name="diagnose",
        about="Find known failures in the log of a build or a program, with the facts behind them and the remedies.",
        first={"log": _Positional(help="the path of the log, or its lines", text=True)},
        takes=("lock", "limit"),
        documents=("findings",),
    ),
)
TOOLS: dict[str, Tool] = {tool.name: tool for tool in _ALL}
