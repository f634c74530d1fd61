"""Compose files and development containers: images, Dockerfiles that they build, and what they add to them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from toolmatrix.manifests import dockerfile, installers, names, requirements
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.installers import Word
from toolmatrix.manifests.model import (
    IMAGE,
    PLATFORM,
    FileText,
    Item,
    ManifestEnvironment,
    NotRead,
    ProjectManifest,
    Traced,
)
from toolmatrix.manifests.requirements import Marked

_FOLDER = ".devcontainer"
_COMMANDS = ("onCreateCommand", "updateContentCommand", "postCreateCommand")
Fields = Mapping[str, tuple[Traced, Marked]]


def read_compose(source: FileText, files: Files) -> ProjectManifest:
    """The services of a compose file as environments. Raises ManifestError."""
    unread: list[NotRead] = []
    environments = [
        ManifestEnvironment(name=name, items=tuple(_service(service.fields(), files, unread)))
        for name, (_, service) in requirements.parse(source).get("services").fields().items()
    ]
    return files.manifest("compose file", source, environments, unread)


def _service(fields: Fields, files: Files, unread: list[NotRead]) -> Iterator[Item]:
    # The image is then what the build is called.
    if "build" in fields:
        key, build = fields["build"]
        context = _plain(build.text() or build.get("context").text(), ".")
        name = _plain(build.get("dockerfile").text(), "Dockerfile")
        path = os.path.join(context, name)
        inline = build.get("dockerfile_inline").node is not None
        yield from _built(key, build, "" if inline else path, context, files, unread)
    elif "image" in fields:
        yield from image(fields["image"][1].text(), unread)
    platform = fields["platform"][1].text() if "platform" in fields else None
    if platform and "$" not in platform.text:
        yield Item(kind=PLATFORM, name=platform.text, specifier="", text=platform)
    if "environment" in fields:
        for variable, content in _pairs(fields["environment"][1]):
            yield from installers.variable(variable, installers.expand(content, {}), unread)


def image(
    text: Traced | None, unread: list[NotRead], variables: Mapping[str, Word] | None = None
) -> Iterator[Item]:
    """An image that a file names, with its variables by their values or defaults."""
    word = installers.expand(text, variables or {}) if text else None
    if word and word.unread:
        unread.append(installers.unknown_value(word))
    elif word:
        yield Item(kind=IMAGE, name=word.plain, specifier="", text=word.text)


def _pairs(table: Marked) -> Iterator[tuple[str, Traced]]:
    """Names with values, as a mapping or as a list of `NAME=value`."""
    for name, (_, value) in table.fields().items():
        text = value.text()
        if text is not None:
            yield name, text
    for entry in requirements.texts(table.items()):
        variable, equals, text = entry.partition("=")
        if equals:
            yield variable.text, text


def _plain(text: Traced | None, default: str) -> str:
    """A path with its variables by their defaults; one that is unknown leads to no file."""
    return installers.expand(text, {}).plain if text else default


def _built(
    key: Traced, build: Marked, path: str, context: str, files: Files, unread: list[NotRead]
) -> list[Item]:
    """What the stage asks for that is built of a Dockerfile with a context, arguments and a target."""
    source = files.beside(path)
    if source is None:
        unread.append(NotRead(text=key, why="its Dockerfile is not a file of the project"))
        return []
    arguments = {name: installers.expand(value, {}) for name, value in _pairs(build.get("args"))}
    stages, more = dockerfile.stages(source, files.within(context), arguments)
    unread += more
    target = build.get("target").text()
    if target:
        name = _plain(target, "")
        stages = [stage for stage in stages if stage.name == name]
    if not stages:
        unread.append(NotRead(text=target or key, why="the Dockerfile has no such stage"))
    return list(stages[-1].items) if stages else []


def read_devcontainer(source: FileText, files: Files) -> ProjectManifest:
    """A development container as one environment. Raises ManifestError."""
    unread: list[NotRead] = []
    items = tuple(_items(requirements.parse_json(source), files, unread))
    return files.manifest(
        "devcontainer", source, [ManifestEnvironment(name="", items=items)], unread
    )


def _items(root: Marked, files: Files, unread: list[NotRead]) -> Iterator[Item]:
    fields = root.fields()
    yield from image(root.get("image").text(), unread)
    # Before `build` there were two fields of the same meaning.
    for key in ("build", "dockerFile"):
        if key in fields:
            build = root.get("build")
            own = root if key == "dockerFile" else build
            name = _plain(own.get(key if own is root else "dockerfile").text(), "Dockerfile")
            context = _plain(own.get("context").text(), os.path.dirname(name))
            yield from _built(fields[key][0], build, name, context, files, unread)
            break
    if "dockerComposeFile" in fields:
        yield from _composed(*fields["dockerComposeFile"], root, files, unread)
    for name, (_, options) in root.get("features").fields().items():
        for option, component in names.feature(name).items():
            version = options.get(option).text()
            # `latest`, `lts` and `none` name no release.
            if version is not None and version.text[:1].isdigit():
                yield Item(
                    kind=component,
                    name=component,
                    specifier=f"=={version.text}",
                    text=version,
                    version=version,
                )
    for where in ("containerEnv", "remoteEnv"):
        for name, text in _pairs(root.get(where)):
            yield from installers.variable(name, installers.expand(text, {}), unread)
    # They run in the folder that is opened, which has that of the container in it.
    folders = files.folder.split("/")
    deep = len(folders) - folders.index(_FOLDER) if _FOLDER in folders else 0
    opened = files.within("../" * deep or ".")
    for key in _COMMANDS:
        script = root.get(key)
        for text in requirements.texts(
            [script, *(command for _, command in script.fields().values())]
        ):
            yield from installers.installed([*installers.commands(text, {})], opened, unread)


def _composed(
    key: Traced, paths: Marked, root: Marked, files: Files, unread: list[NotRead]
) -> Iterator[Item]:
    """The service of compose files that a development container is; a later file changes what an earlier one has."""
    name = _plain(root.get("service").text(), "")
    service: dict[str, tuple[Traced, Marked]] = {}
    folder = ""
    for path in requirements.texts([paths, *paths.items()]):
        source = files.beside(path.text)
        if source is None:
            unread.append(NotRead(text=key, why="not a file of the project"))
            return
        folder = folder or os.path.dirname(path.text) or "."
        service |= requirements.parse(source).get("services").get(name).fields()
    yield from _service(service, files.within(folder), unread)
