"""`toolmatrix config`: every setting with its value and where it came from."""

from __future__ import annotations

from toolmatrix.cli.context import Context
from toolmatrix.cli.prepare import Origin, unknown_variables
from toolmatrix.command import command
from toolmatrix.documents import Annotated, Literal, TypedDict
from toolmatrix.report.terminal import columns


class OriginPlace(TypedDict):
    """A line of a file."""

    path: str
    line: int | None


class OriginEntry(TypedDict):
    """Where the value of an option comes from."""

    kind: Annotated[
        str, "flag", "variable", "environment table", "project file", "user file", "default"
    ]
    name: str
    where: OriginPlace | None


class ConfigOption(TypedDict):
    """The value of an option, and where it comes from."""

    value: str | int | bool | list[str] | None
    origin: OriginEntry


class ConfigDocument(TypedDict):
    """What `toolmatrix config --json` prints."""

    schema: Literal["toolmatrix.config/1"]
    options: dict[str, ConfigOption]
    request: list[str]
    environments: list[str]
    files: list[str]


@command(
    group="About this program",
    order=3,
    request=True,
    examples=("toolmatrix config", "toolmatrix config --json"),
    environments=True,
    settings=True,
)
def run(context: Context) -> int:
    """Show every setting with its value and origin.

    Print the settings that apply to a command.
    """
    # A variable with a misspelt name sets nothing, and only this command warns of it.
    for name in unknown_variables(context.env):
        context.say(f"warning: `{name}` is not a variable that toolmatrix reads")
    if context.options.format == "json":
        context.write_json(_document(context))
    else:
        context.write("\n".join(_lines(context)) + "\n")
    return 0


def _lines(context: Context) -> list[str]:
    rows = [
        (
            context.command.options[name].key,
            context.command.options[name].show(context.options[name]) or "-",
            str(origin),
        )
        for name, origin in _visible(context).items()
    ]
    rows.append(("request", " ".join(context.configured_request) or "-", _request_origin(context)))
    lines = columns(rows)
    lines += [f"environment {name}" for name in context.environments]
    return lines + [f"read {file.path}" for file in context.settings.files]


def _request_origin(context: Context) -> str:
    for file in context.settings.files:
        if file.top.request:
            return str(file.position("request"))
    return "default"


def _visible(context: Context) -> dict[str, Origin]:
    options, origins = context.command.options, context.origins
    return {name: origins[name] for name in sorted(origins) if not options[name].cli_only}


def _document(context: Context) -> ConfigDocument:
    options: dict[str, ConfigOption] = {
        context.command.options[name].key: {
            "value": context.options[name],
            "origin": _origin(origin),
        }
        for name, origin in _visible(context).items()
    }
    return {
        "schema": "toolmatrix.config/1",
        "options": options,
        "request": list(context.configured_request),
        "environments": sorted(context.environments),
        "files": [file.path for file in context.settings.files],
    }


def _origin(origin: Origin) -> OriginEntry:
    where = origin.where
    return {
        "kind": origin.kind,
        "name": origin.name,
        "where": {"path": where.path, "line": where.line or None} if where else None,
    }
