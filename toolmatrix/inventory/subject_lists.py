"""Lists of subjects: files of one a line, the images that a Kubernetes manifest or a compose file runs, and all tags of
a repository in a registry.
"""

from __future__ import annotations

import re

from toolmatrix.errors import Position, UsageError
from toolmatrix.images.limits import Budget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from yaml import MappingNode, Node, ScalarNode

_REGISTRY = "registry:"
_MANIFESTS = (".yaml", ".yml")
# Where a pod names images (Kubernetes API reference, PodSpec), and where a compose file does (compose specification).
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_SERVICES = "services"
# `${NAME:-default}` and `${NAME-default}`, as compose interpolates (compose specification, interpolation).
_VARIABLE = re.compile(r"\$\{[A-Za-z_]\w*:?-(?P<default>[^${}]*)\}")


def listed(name: str, read: Callable[[], bytes]) -> list[str]:
    """The subjects that a list names: `registry://HOST/REPOSITORY[:PATTERN]`, or what `read` gives of a file.

    Raises UsageError for what is no list, and what reading a registry raises.
    """
    if name.startswith(_REGISTRY):
        from toolmatrix.images import registry

        return registry.tagged(name.removeprefix(_REGISTRY), Budget(name))
    if name.endswith(_MANIFESTS):
        return list(_images(name, read()))
    return [word for word, _ in lines(name, read(), "subjects")]


def lines(path: str, data: bytes, what: str) -> list[tuple[str, int]]:
    """The words of a file, one a line, with the numbers of their lines; raises UsageError for what is no text."""
    try:
        text = data.decode("utf-8-sig")
    except ValueError as error:
        raise UsageError(f"cannot read {what}", where=Position(path), found=str(error)) from None
    # Only at its start is `#` a comment: it may be a part of a subject, as in `lock:A#x86`.
    words = [(line.strip(), number) for number, line in enumerate(text.splitlines(), 1)]
    return [(word, number) for word, number in words if word and not word.startswith("#")]


def _images(path: str, data: bytes) -> Iterator[str]:
    import yaml

    try:
        documents = list(yaml.compose_all(data, yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = Position(path, mark.line + 1, mark.column + 1) if mark else Position(path)
        found = getattr(error, "problem", None) or "no YAML"
        raise UsageError("the list of subjects is no YAML", where=where, found=found) from None
    for document in documents:
        yield from (_subject(path, node) for node in _named(document))


def _named(top: Node | None) -> Iterator[ScalarNode]:
    """The nodes of images, each once: an alias is the node that it stands for."""
    import yaml

    seen: set[int] = set()
    left = [(top, "")]
    while left:
        node, key = left.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            left += [(child, key) for child in reversed(node.value)]
        elif isinstance(node, yaml.MappingNode):
            if key in _CONTAINERS:
                yield from _image_of(node)
            elif key == _SERVICES:
                for _, service in node.value:
                    if isinstance(service, yaml.MappingNode):
                        yield from _image_of(service)
            # Objects of one's own kind hold pods at any depth, under the same keys.
            left += [(child, str(name.value)) for name, child in reversed(node.value)]


def _image_of(node: MappingNode) -> Iterator[ScalarNode]:
    import yaml

    yield from (
        value
        for key, value in node.value
        if key.value == "image" and isinstance(value, yaml.ScalarNode) and value.value
    )


def _subject(path: str, node: ScalarNode) -> str:
    from toolmatrix.images.registry import is_host

    image = _VARIABLE.sub(lambda found: found["default"], node.value)
    mark = node.start_mark
    if "$" in image or "{{" in image:
        raise UsageError(
            "the name of an image has a variable without a value",
            where=Position(path, mark.line + 1, mark.column + 1),
            expected="names of images, or `${NAME:-DEFAULT}`",
            found=f"`{node.value}`",
            help="`docker compose config` and `helm template` write what they stand for",
        )
    # Engines take a name without a host for one of Docker Hub.
    first, slash, _ = image.partition("/")
    return f"registry://{image if slash and is_host(first) else f'docker.io/{image}'}"
