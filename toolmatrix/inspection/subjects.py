"""Subjects by their addresses, `SCHEME:PLACE`, each scheme with what reads it; and lists of subjects.

A list is a file of one a line, the images that a Kubernetes manifest or a compose file runs, or all tags of a
repository in a registry.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, NamedTuple

from toolmatrix.errors import NothingMatched, Position, ToolmatrixError, UsageError
from toolmatrix.images import engines, local, streams
from toolmatrix.images.layers import LayerReader
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import running, secrets
from toolmatrix.inspection.layers import LayerStore
from toolmatrix.inspection.model import SCHEMA, Inventory
from toolmatrix.inspection.running import ProgramProbe
from toolmatrix.opener import read_file

if TYPE_CHECKING:
    from yaml import MappingNode, Node

    from toolmatrix.images.image import ImageMetadata
    from toolmatrix.images.layers import Tree

    Ask = Callable[[Inventory], Sequence[ProgramProbe]]
    """Questions to programs, by what was read."""


# Bytes of an inventory's document; that of an image of 10 GB has a few million.
_LARGEST_DOCUMENT = 256 << 20
# Characters of a line in a list: Linux opens no longer path.
_LONGEST_LINE = 4096
_HELP = "`toolmatrix inventory SUBJECT --json` writes one"


class SubjectRequest(NamedTuple):
    """A requested subject: its address, its place within the scheme, and how it is to be read."""

    subject: str
    place: str
    platform: str
    directory: str
    stdin: IO[bytes] | None
    probes: Ask | None
    store: LayerStore | None

    @property
    def path(self) -> str:
        """The place as a path, relative to the directory of the request."""
        return os.path.join(self.directory, self.place)


class Scheme(NamedTuple):
    """A kind of subject: how it is written, what it is, what reads it, and its identity at a moment."""

    form: str
    what: str
    read: Callable[[SubjectRequest], Inventory]
    identity: Callable[[SubjectRequest], str] = lambda _: ""


def observe(
    subject: str,
    platform: str = "",
    directory: str = "",
    stdin: IO[bytes] | None = None,
    schemes: Mapping[str, Scheme] | None = None,
    probes: Ask | None = None,
    store: LayerStore | None = None,
) -> Inventory:
    """The inventory of a subject.

    `platform` picks from an index, paths are relative to `directory`, and `archive:-` reads `stdin`, by default that of
    this process; `schemes` are those of SCHEMES unless given. Programs are run for the `probes` of the inventory where
    that is possible, and what `store` has is neither read nor run again. Raises UsageError for an invalid address,
    SubjectError for what cannot be read, NothingMatched for another platform, and ToolMissing.
    """
    known = SCHEMES if schemes is None else schemes
    name, place = _split(subject, directory, known)
    inventory = secrets.hide_secrets(
        known[name].read(SubjectRequest(subject, place, platform, directory, stdin, probes, store))
    )
    # Variants aside: few configurations have theirs.
    if platform and inventory.platform.split("/")[:2] != platform.split("/")[:2]:
        raise NothingMatched(
            f"{subject} has another platform",
            expected=platform,
            found=inventory.platform or "no platform",
        )
    return inventory


def identity(subject: str, directory: str = "", schemes: Mapping[str, Scheme] | None = None) -> str:
    """The identity of a subject at this moment, without reading it: equal identities mean equal contents.

    Empty where that takes reading, such as for a directory or a machine, and for what cannot be reached.
    """
    known = SCHEMES if schemes is None else schemes
    try:
        name, place = _split(subject, directory, known)
        return known[name].identity(SubjectRequest(subject, place, "", directory, None, None, None))
    except ToolmatrixError:
        return ""


def is_named(subject: str, schemes: Mapping[str, Scheme]) -> bool:
    """Check whether a subject is written with its scheme: `SCHEME:PLACE`, or a scheme that has no place."""
    name, colon, place = subject.partition(":")
    return name in schemes and bool(colon and place) != (schemes[name].form == name)


def _split(subject: str, directory: str, schemes: Mapping[str, Scheme]) -> tuple[str, str]:
    if is_named(subject, schemes):
        name, _, place = subject.partition(":")
        return name, place
    # An existing path needs no scheme.
    path = os.path.join(directory, subject)
    for name, fits in _PATHS:
        if subject and fits(path):
            return name, subject
    raise UsageError(
        "this is not a subject",
        expected=f"a path, or one of {', '.join(f'`{kind.form}`' for kind in schemes.values())}",
        found=f"`{subject}`",
        help="an image of Docker's engine is `docker:NAME`",
    )


# The scheme of a path that is given without one, by what lies there; the first that fits.
_PATHS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("oci", lambda path: os.path.exists(os.path.join(path, "index.json"))),
    ("dir", os.path.isdir),
    ("inventory", lambda path: path.endswith(".json") and os.path.exists(path)),
    ("archive", lambda path: os.path.basename(path) == "-" or os.path.exists(path)),
)


def _observe_image(
    request: SubjectRequest,
    read: Callable[[LayerReader], tuple[ImageMetadata, Tree]],
    ask: Callable[[Inventory], Inventory] = lambda inventory: inventory,
) -> Inventory:
    from toolmatrix.inspection.observe import Look, observe

    image, tree = read(LayerReader(Look, Budget(request.subject), request.store))
    return observe(image, tree, ask)


def _observe_folder(
    read: Callable[[str, str, LayerReader], tuple[ImageMetadata, Tree]], request: SubjectRequest
) -> Inventory:
    return _observe_image(request, partial(read, request.path, request.platform))


def _file(request: SubjectRequest) -> str:
    return "" if request.place == "-" else streams.file_identity(request.path)


def _archive(request: SubjectRequest) -> Inventory:
    if request.place == "-":
        stream = request.stdin or sys.stdin.buffer
        return _observe_image(request, partial(local.read_archive, stream, request.platform))
    budget = Budget(request.subject)
    with local.opened(request.path, "an archive of an image", budget) as stream:
        return _observe_image(request, partial(local.read_archive, stream, request.platform))


def _engine(scheme: str, request: SubjectRequest) -> Inventory:
    image = engines.find(scheme, request.place, Budget(request.subject))

    def ask(inventory: Inventory) -> Inventory:
        probes = request.probes(inventory) if request.probes and image.engine.run else ()
        return running.ask_programs(image, inventory, probes, store=request.store)

    return _observe_image(request, partial(engines.read, image, request.platform), ask)


def _engine_identity(scheme: str, request: SubjectRequest) -> str:
    return engines.find(scheme, request.place, Budget(request.subject)).identity


# The client of registries is imported on use: urllib3 takes longer to import than most of the rest runs.
def _registry(request: SubjectRequest) -> Inventory:
    from toolmatrix.images import registry

    return _observe_image(request, partial(registry.read, request.place, request.platform))


def _registry_identity(request: SubjectRequest) -> str:
    from toolmatrix.images import registry

    return registry.identity(request.place, Budget(request.subject))


def _saved(request: SubjectRequest) -> Inventory:
    refusal = Budget(request.path).refusal
    try:
        data = read_file(request.path, _LARGEST_DOCUMENT)
    except (OSError, ValueError) as error:
        # A null byte in a path raises ValueError.
        reason = getattr(error, "strerror", None) or str(error)
        raise refusal("cannot read the inventory", "", reason) from None
    if data is None:
        raise refusal("the inventory is too large", f"at most {_LARGEST_DOCUMENT} bytes", "")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise refusal("the inventory is not JSON", f"`{SCHEMA}`", "", _HELP) from None
    schema = body.get("schema") if isinstance(body, dict) else None
    if schema != SCHEMA:
        reason = f"`{schema}`" if isinstance(schema, str) else "another document"
        raise refusal("this is not an inventory", f"`{SCHEMA}`", reason, _HELP)
    try:
        return Inventory.from_json(body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise refusal(
            "the inventory is incomplete or has an invalid value",
            f"a document of `{SCHEMA}`",
            f"{type(error).__name__} at {error}",
            _HELP,
        ) from None


def _host(request: SubjectRequest) -> Inventory:
    from toolmatrix.inspection import host, system

    return system.observe(host.HERE, os.path.abspath(request.directory or "."))


def _engine_scheme(name: str, what: str) -> Scheme:
    return Scheme(f"{name}:NAME", what, partial(_engine, name), partial(_engine_identity, name))


SCHEMES = {
    "docker": _engine_scheme("docker", "an image of Docker's engine"),
    "podman": _engine_scheme("podman", "an image of podman, Buildah or CRI-O"),
    "containerd": _engine_scheme(
        "containerd", "an image of containerd, such as on a Kubernetes node"
    ),
    "registry": Scheme(
        "registry://HOST/NAME:TAG",
        "an image in a registry, streamed without pulling it",
        _registry,
        _registry_identity,
    ),
    "archive": Scheme(
        "archive:FILE.tar",
        "the output of `docker save` or `podman save`; `-` is stdin",
        _archive,
        _file,
    ),
    "oci": Scheme(
        "oci:DIR",
        "a directory in the OCI image layout",
        partial(_observe_folder, local.read_layout),
        lambda request: local.layout_identity(request.path),
    ),
    "dir": Scheme(
        "dir:ROOT",
        "a directory as the root of a system, or what `skopeo copy` wrote to `dir:`",
        partial(_observe_folder, local.read_directory),
        lambda request: local.directory_identity(request.path),
    ),
    "venv": Scheme(
        "venv:ROOT",
        "a virtual environment or an environment of conda",
        partial(_observe_folder, local.read_directory),
        lambda request: local.directory_identity(request.path),
    ),
    "host": Scheme("host", "this machine", _host),
    "inventory": Scheme(
        "inventory:FILE.json", "the output of `toolmatrix inventory --json`", _saved, _file
    ),
}
"""The kinds of subjects, by their names in front of the first colon."""


_REGISTRY = "registry:"
_MANIFESTS = (".yaml", ".yml", ".json")
# A manifest without a file name, as from a pipe; no subject begins so.
_MANIFEST = re.compile(
    rb"^(?:\xef\xbb\xbf)?(?:\{|(?:apiVersion|kind|services)[ \t]*:)", re.MULTILINE
)
# Where a pod names images (Kubernetes API reference, PodSpec), and where a compose file does (compose specification).
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_SERVICES = "services"
# The roles of mappings under these keys.
_CONTAINER, _SERVICE = "container", "service"
_MERGE, _STRING = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:str"
# Keys of merged mappings in a file: aliases of aliases could make more than there is memory.
_MOST_MERGED = 1_000_000
_WRITE_OUT = "`docker compose config` and `helm template` fill in variables and includes"
# `${NAME:-default}` and `${NAME-default}`, as compose interpolates (compose specification, interpolation).
_VARIABLE = re.compile(r"\$\{[A-Za-z_]\w*:?-(?P<default>[^${}]*)\}")


def read_subjects(name: str, read: Callable[[], bytes]) -> list[str]:
    """The subjects that a list names: `registry://HOST/REPOSITORY[:PATTERN]`, or those in the file that `read` reads.

    Raises UsageError for an invalid list, and what reading a registry raises.
    """
    if name.startswith(_REGISTRY):
        from toolmatrix.images import registry

        return registry.tagged_subjects(name.removeprefix(_REGISTRY), Budget(name))
    data = read()
    if name.lower().endswith(_MANIFESTS) or _MANIFEST.search(data):
        return list(_images(name, data))
    return [subject for subject, _ in lines(name, data, "subjects")]


def lines(path: str, data: bytes, what: str) -> list[tuple[str, int]]:
    """The entries of a file, one a line, with their line numbers; raises UsageError where it is not text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = Position(path, data.count(b"\n", 0, error.start) + 1)
        reason = f"the byte 0x{data[error.start]:02x}, which is not UTF-8"
        raise UsageError(f"cannot read {what}", where=where, found=reason) from None
    # Only at its start is `#` a comment: it may be a part of a subject, as in `lock:A#x86`.
    stripped = [(line.strip(), number) for number, line in enumerate(text.splitlines(), 1)]
    for line, number in stripped:
        if len(line) > _LONGEST_LINE:
            expected = f"lines of at most {_LONGEST_LINE} characters"
            raise UsageError(f"cannot read {what}", where=Position(path, number), expected=expected)
    return [(line, number) for line, number in stripped if line and not line.startswith("#")]


def _images(path: str, data: bytes) -> Iterator[str]:
    import yaml

    try:
        # The loader in C is faster by ten times, and bounds nesting.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        documents = list(yaml.compose_all(data, loader))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = Position(path, mark.line + 1, mark.column + 1) if mark else Position(path)
        problem = getattr(error, "problem", None) or "no YAML"
        raise UsageError("the list of subjects is not YAML", where=where, found=problem) from None
    manifest = _Manifest(path)
    for document in documents:
        yield from (manifest.subject(node) for node in manifest.image_nodes(document))


class _Manifest:
    """A file of Kubernetes objects, or a compose file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.merged = 0

    def image_nodes(self, top: Node | None) -> Iterator[Node]:
        """The nodes of images, each once: an alias is the node that it refers to."""
        import yaml

        # The role of a node depends on its position, and an alias has several.
        visited: set[tuple[int, str]] = set()
        images: set[int] = set()
        todo = [(top, "")]
        while todo:
            node, role = todo.pop()
            if node is None or (id(node), role) in visited:
                continue
            visited.add((id(node), role))
            if isinstance(node, yaml.SequenceNode):
                todo += [(child, role) for child in reversed(node.value)]
            elif isinstance(node, yaml.MappingNode):
                fields = self._fields(node)
                if node is top:
                    self._check_include(fields)
                if role in (_CONTAINER, _SERVICE):
                    if role == _SERVICE:
                        self._check_extends(fields)
                    nodes = [image for _, image in fields.get("image", ())]
                    yield from (image for image in nodes if id(image) not in images)
                    images.update(map(id, nodes))
                # Custom objects have pods at any depth, under the same keys.
                todo += [
                    (child, _role(role, name, isinstance(child, yaml.MappingNode)))
                    for name in reversed(fields)
                    for _, child in reversed(fields[name])
                ]

    def _fields(self, top: MappingNode) -> dict[str, list[tuple[Node, Node]]]:
        """The keys and values of a mapping by their names, with those that it merges: own ones go before merged ones,
        and earlier of these before later (https://yaml.org/type/merge.html).
        """
        import yaml

        fields: dict[str, list[tuple[Node, Node]]] = {}
        visited: set[int] = set()
        todo: list[Node] = [top]
        while todo:
            node = todo.pop()
            if not isinstance(node, yaml.MappingNode) or id(node) in visited:
                continue
            visited.add(id(node))
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
                    where=self._position(node),
                    expected=f"at most {_MOST_MERGED} merged keys",
                    found="more than that",
                )
            for name, pairs in own.items():
                fields.setdefault(name, pairs)
            todo += reversed(merged)
        return fields

    def _check_include(self, fields: dict[str, list[tuple[Node, Node]]]) -> None:
        # Objects of Kubernetes name their kind; anything else with the key is a compose file.
        if "include" in fields and "apiVersion" not in fields:
            raise self._refusal(
                fields["include"][0][0],
                "the compose file uses services of other files",
                "a compose file without `include`",
            )

    def _check_extends(self, fields: dict[str, list[tuple[Node, Node]]]) -> None:
        if "extends" in fields and "image" not in fields and "build" not in fields:
            raise self._refusal(
                fields["extends"][0][0],
                "a service takes its image from another service",
                "a service with `image` or `build` of its own",
            )

    def subject(self, node: Node) -> str:
        import yaml

        from toolmatrix.images.registry import is_host

        # Without quotes `{{ .Values.image }}` is a mapping.
        image = ""
        if isinstance(node, yaml.ScalarNode) and node.tag == _STRING:
            image = _VARIABLE.sub(lambda match: match["default"], node.value)
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
        where = self._position(node)
        return UsageError(
            what, where=where, expected=expected, found=_kind_of_node(node), help=_WRITE_OUT
        )

    def _position(self, node: Node) -> Position:
        return Position(self.path, node.start_mark.line + 1, node.start_mark.column + 1)


def _role(role: str, name: str, mapping: bool) -> str:
    """The role of a value under a name, in a mapping of a role."""
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
