"""Compose files: each service with its image, platform and variables."""

from __future__ import annotations

from collections.abc import Iterator

from toolmatrix.manifests import installers, markers, shell
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.markers import Marked
from toolmatrix.manifests.model import IMAGE, PLATFORM, Asked, Item, NotRead, ProjectManifest
from toolmatrix.manifests.source_text import FileText, Traced


def read(source: FileText, files: Files) -> ProjectManifest:
    """The services of a compose file as environments. Raises ManifestError."""
    unread: list[NotRead] = []
    found = []
    for name, (key, service) in markers.parse(source).get("services").fields().items():
        items = tuple(_service(key, service, unread))
        if items:
            found.append(Asked(name=name, items=items))
    return ProjectManifest(
        kind="compose file",
        environments=tuple(found),
        unread=tuple(unread),
        sources=(source, *files.opened),
    )


def _service(key: Traced, service: Marked, unread: list[NotRead]) -> Iterator[Item]:
    image, build = service.get("image").text(), service.get("build")
    if build.node is not None:
        # The image is then what the build is called.
        # Its Dockerfile may need arguments that stand here: which file and context is for its user to say.
        unread.append(NotRead(text=key, why="it is built: judge its Dockerfile"))
    elif image:
        word = shell.expanded(image, {})
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
    for one in markers.texts(environment.items()):
        name, equals, value = one.partition("=")
        pairs += [(name.text, value)] if equals else []
    for variable, said in pairs:
        if said is not None:
            yield from installers.variable(variable, shell.expanded(said, {}), unread)
