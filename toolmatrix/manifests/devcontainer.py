"""`devcontainer.json`: the image, the features that install a Python or a toolkit, and variables."""

from __future__ import annotations

from collections.abc import Iterator

from toolmatrix.manifests import installers, markers, names, shell
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.markers import Marked
from toolmatrix.manifests.model import IMAGE, Asked, Item, NotRead, ProjectManifest
from toolmatrix.manifests.source_text import FileText


def read(source: FileText, files: Files) -> ProjectManifest:
    """A development container as one environment. Raises ManifestError."""
    unread: list[NotRead] = []
    items = tuple(_items(markers.parse_json(source), unread))
    return ProjectManifest(
        kind="devcontainer",
        environments=(Asked(name="", items=items),) if items else (),
        unread=tuple(unread),
        sources=(source, *files.opened),
    )


def _items(root: Marked, unread: list[NotRead]) -> Iterator[Item]:
    image = root.get("image").text()
    if image:
        yield Item(kind=IMAGE, name=image.text, specifier="", text=image)
    for key in ("build", "dockerFile", "dockerComposeFile"):
        held = root.fields().get(key)
        if held:
            unread.append(NotRead(text=held[0], why="it is built: judge that file"))
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
                yield from installers.variable(name, shell.expanded(text, {}), unread)
