"""Lists of subjects: files of one a line, the images that a Kubernetes manifest or a compose file runs, and all tags of
a repository in a registry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from toolmatrix.errors import Position, UsageError
from toolmatrix.images.limits import Budget

if TYPE_CHECKING:
    from yaml import MappingNode, Node

_REGISTRY = "registry:"
_MANIFESTS = (".yaml", ".yml", ".json")
# What comes through a pipe has no name; no subject begins so.
_MANIFEST = re.compile(
    rb"^(?:\xef\xbb\xbf)?(?:\{|(?:apiVersion|kind|services)[ \t]*:)", re.MULTILINE
)
# Where a pod names images (Kubernetes API reference, PodSpec), and where a compose file does (compose specification).
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_SERVICES = "services"
# What a mapping under these keys is for.
_CONTAINER, _SERVICE = "container", "service"
_MERGE, _STRING = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:str"
# Keys of merged mappings in a file: aliases of aliases could make more than there is memory.
_MOST_MERGED = 1_000_000
_HELP = "`docker compose config` and `helm template` write what they stand for"
# `${NAME:-default}` and `${NAME-default}`, as compose interpolates (compose specification, interpolation).
_VARIABLE = re.compile(r"\$\{[A-Za-z_]\w*:?-(?P<default>[^${}]*)\}")


def read_subjects(name: str, read: Callable[[], bytes]) -> list[str]:
    """The subjects that a list names: `registry://HOST/REPOSITORY[:PATTERN]`, or what `read` gives of a file.

    Raises UsageError for what is no list, and what reading a registry raises.
    """
    if name.startswith(_REGISTRY):
        from toolmatrix.images import registry

        return registry.tagged(name.removeprefix(_REGISTRY), Budget(name))
    data = read()
    if name.lower().endswith(_MANIFESTS) or _MANIFEST.search(data):
        return list(_images(name, data))
    return [word for word, _ in lines(name, data, "subjects")]


def lines(path: str, data: bytes, what: str) -> list[tuple[str, int]]:
    """The words of a file, one a line, with the numbers of their lines; raises UsageError for what is no text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = Position(path, data.count(b"\n", 0, error.start) + 1)
        found = f"the byte 0x{data[error.start]:02x}, which is not UTF-8"
        raise UsageError(f"cannot read {what}", where=where, found=found) from None
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
        raise UsageError("the list of subjects is not YAML", where=where, found=found) from None
    manifest = _Manifest(path)
    for document in documents:
        yield from (manifest.subject(node) for node in manifest.named(document))


class _Manifest:
    """A file of Kubernetes objects, or a compose file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.merged = 0

    def named(self, top: Node | None) -> Iterator[Node]:
        """The nodes of images, each once: an alias is the node that it stands for."""
        import yaml

        # What a node is for depends on where it stands, and an alias stands in several places.
        seen: set[tuple[int, str]] = set()
        images: set[int] = set()
        left = [(top, "")]
        while left:
            node, role = left.pop()
            if node is None or (id(node), role) in seen:
                continue
            seen.add((id(node), role))
            if isinstance(node, yaml.SequenceNode):
                left += [(child, role) for child in reversed(node.value)]
            elif isinstance(node, yaml.MappingNode):
                fields = self._fields(node)
                if node is top:
                    self._check_include(fields)
                if role in (_CONTAINER, _SERVICE):
                    if role == _SERVICE:
                        self._check_extends(fields)
                    found = [image for _, image in fields.get("image", ())]
                    yield from (image for image in found if id(image) not in images)
                    images.update(map(id, found))
                # Objects of one's own kind hold pods at any depth, under the same keys.
                left += [
                    (child, _role(role, name, isinstance(child, yaml.MappingNode)))
                    for name in reversed(fields)
                    for _, child in reversed(fields[name])
                ]

    def _fields(self, top: MappingNode) -> dict[str, list[tuple[Node, Node]]]:
        """The keys and values of a mapping by their names, with what it merges: its own go before merged ones,
        and the first of these before the others (https://yaml.org/type/merge.html).
        """
        import yaml

        found: dict[str, list[tuple[Node, Node]]] = {}
        seen: set[int] = set()
        left: list[Node] = [top]
        while left:
            node = left.pop()
            if not isinstance(node, yaml.MappingNode) or id(node) in seen:
                continue
            seen.add(id(node))
            own: dict[str, list[tuple[Node, Node]]] = {}
            merged: list[Node] = []
            for key, value in node.value:
                if key.tag == _MERGE:
                    merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
                else:
                    name = key.value if isinstance(key, yaml.ScalarNode) else ""
                    own.setdefault(name, []).append((key, value))
            self.merged += len(merged) + (len(own) if node is not top else 0)
            if self.merged > _MOST_MERGED:
                raise UsageError(
                    "the list of subjects merges too much",
                    where=self._place(node),
                    expected=f"at most {_MOST_MERGED} merged keys",
                    found="more than that",
                )
            for name, pairs in own.items():
                found.setdefault(name, pairs)
            left += reversed(merged)
        return found

    def _check_include(self, fields: dict[str, list[tuple[Node, Node]]]) -> None:
        # Objects of Kubernetes name their kind; what else has the key is a compose file.
        if "include" in fields and "apiVersion" not in fields:
            raise self._refusal(
                fields["include"][0][0],
                "the compose file uses services of other files",
                "a file that has its services itself",
            )

    def _check_extends(self, fields: dict[str, list[tuple[Node, Node]]]) -> None:
        if "extends" in fields and "image" not in fields and "build" not in fields:
            raise self._refusal(
                fields["extends"][0][0],
                "a service has the image of another one",
                "a service with `image` or `build` of its own",
            )

    def subject(self, node: Node) -> str:
        import yaml

        from toolmatrix.images.registry import is_host

        # Without quotes `{{ .Values.image }}` is a mapping.
        image = ""
        if isinstance(node, yaml.ScalarNode) and node.tag == _STRING:
            image = _VARIABLE.sub(lambda found: found["default"], node.value)
        if not image or "$" in image or "{{" in image:
            raise self._refusal(
                node,
                "the name of an image has a variable without a value",
                "names of images, or `${NAME:-DEFAULT}`",
            )
        # Engines take a name without a host for one of Docker Hub.
        first, slash, _ = image.partition("/")
        return f"registry://{image if slash and is_host(first) else f'docker.io/{image}'}"

    def _refusal(self, node: Node, what: str, expected: str) -> UsageError:
        where = self._place(node)
        return UsageError(
            what, where=where, expected=expected, found=_kind_of_node(node), help=_HELP
        )

    def _place(self, node: Node) -> Position:
        return Position(self.path, node.start_mark.line + 1, node.start_mark.column + 1)


def _role(role: str, name: str, mapping: bool) -> str:
    """What a value under a name is for, in a mapping that is for `role` itself."""
    if role == _SERVICES and mapping:
        return _SERVICE
    if name in _CONTAINERS:
        return _CONTAINER
    return _SERVICES if name == _SERVICES else ""


def _kind_of_node(node: Node) -> str:
    import yaml

    if isinstance(node, yaml.ScalarNode):
        return f"`{node.value}`" if node.value else "nothing"
    return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"
