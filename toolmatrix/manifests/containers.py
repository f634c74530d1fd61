"""`compose.yaml` and `devcontainer.json`: the images of containers, their variables and features."""

from __future__ import annotations

from collections.abc import Iterator

from toolmatrix.manifests import installers, markers, names
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.markers import Marked
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


def read_compose(source: FileText, files: Files) -> ProjectManifest:
    """The services of a compose file as environments. Raises ManifestError."""
    unread: list[NotRead] = []
    environments = []
    for name, (key, service) in markers.parse(source).get("services").fields().items():
        environments.append(
            ManifestEnvironment(name=name, items=tuple(_service(key, service, unread)))
        )
    return files.manifest("compose file", source, environments, unread)


def _service(key: Traced, service: Marked, unread: list[NotRead]) -> Iterator[Item]:
    image, build = service.get("image").text(), service.get("build")
    if build.node is not None:
        # The image is then what the build is called.
        # Its Dockerfile may need arguments from here: which file and context, the user has to name.
        unread.append(NotRead(text=key, why="it is built: judge its Dockerfile"))
    elif image:
        word = installers.expand(image, {})
        if word.unread:
            unread.append(NotRead(text=image, why=f"{word.unread} is unknown"))
        else:
            yield Item(kind=IMAGE, name=word.plain, specifier="", text=word.text)
    platform = service.get("platform").text()
    if platform and "$" not in platform.text:
        yield Item(kind=PLATFORM, name=platform.text, specifier="", text=platform)
    yield from _variables(service.get("environment"), unread)


def _variables(environment: Marked, unread: list[NotRead]) -> Iterator[Item]:
    pairs = [(name, value.text()) for name, (_, value) in environment.fields().items()]
    for entry in markers.texts(environment.items()):
        name, equals, value = entry.partition("=")
        pairs += [(name.text, value)] if equals else []
    for variable, content in pairs:
        if content is not None:
            yield from installers.variable(variable, installers.expand(content, {}), unread)


def read_devcontainer(source: FileText, files: Files) -> ProjectManifest:
    """A development container as one environment. Raises ManifestError."""
    unread: list[NotRead] = []
    items = tuple(_items(markers.parse_json(source), unread))
    return files.manifest(
        "devcontainer", source, [ManifestEnvironment(name="", items=items)], unread
    )


def _items(root: Marked, unread: list[NotRead]) -> Iterator[Item]:
    image = root.get("image").text()
    if image:
        yield Item(kind=IMAGE, name=image.text, specifier="", text=image)
    for key in ("build", "dockerFile", "dockerComposeFile"):
        field = root.fields().get(key)
        if field:
            unread.append(NotRead(text=field[0], why="it is built: judge that file"))
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
        for name, (_, value) in root.get(where).fields().items():
            text = value.text()
            if text is not None:
                yield from installers.variable(name, installers.expand(text, {}), unread)
