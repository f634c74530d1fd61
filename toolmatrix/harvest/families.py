"""The families that harvesters write facts of (matrix/families.yaml), with the place of each word for errors."""

from __future__ import annotations

from toolmatrix.errors import MatrixError, NothingMatched
from toolmatrix.facts import pieces, yamlfile
from toolmatrix.resources import families_path
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date
    from typing import Any

    from toolmatrix.facts.yamlfile import YamlNode

SCHEMA = "toolmatrix.families/1"

# The modules of this package that read a kind of source.
KINDS = ("index",)

FAMILIES = yamlfile.NodeKind(
    noun="the file of families",
    error=MatrixError,
    help="docs/harvest.md describes the keys of each kind of family",
    missing="check the path",
)


class Family(Value):
    """One family: what it is called, the kind of its source, and the keys that this kind reads."""

    name: str
    kind: str
    about: str
    node: YamlNode

    @property
    def fields(self) -> Mapping[str, YamlNode]:
        """The keys of the family, each value with its place."""
        return self.node.fields or {}


class Errand(Value):
    """What a harvester is given besides its family."""

    # The component for each package of an index, by its normalized name (PEP 503).
    packages: Mapping[str, str]
    day: date
    # A path that is read in the place of the source itself, "" for none.
    place: str = ""
    # A directory for what was read and can never change; "" for none.
    cache: str = ""
    env: Mapping[str, str] = {}
    # Told how much of how much is read.
    progress: Callable[[int, int], None] = lambda _done, _total: None


def families(path: str = "") -> dict[str, Family]:
    """All families by name. Raises MatrixError."""
    path = path or families_path()
    root = yamlfile.read(path, of=FAMILIES)
    fields = root.only("the file of families", ("schema", "families"), ("schema", "families"))
    fields["schema"].choice("schema", (SCHEMA,))
    found = {}
    for name, node in fields["families"].mapping("families").items():
        keys = node.mapping(f"family `{name}`")
        for needed in ("kind", "about"):
            if needed not in keys:
                node.fail(f"family `{name}` has no `{needed}`", expected=f"`{needed}:`")
        found[name] = Family(
            name=name,
            kind=keys["kind"].choice("kind", KINDS),
            about=pieces.text(keys, "about"),
            node=node,
        )
    return found


def chosen(known: Mapping[str, Family], names: Sequence[str]) -> list[Family]:
    """The families that are named, all where none is. Raises NothingMatched."""
    for name in names:
        if name not in known:
            raise NothingMatched(
                f"there is no family `{name}`", expected="one of " + ", ".join(sorted(known))
            )
    return [known[name] for name in names] if names else list(known.values())


def harvest(family: Family, errand: Errand) -> dict[str, Any]:
    """The document of facts of one family. Raises ToolmatrixError."""
    name = f"toolmatrix.harvest.{family.kind}"
    module = __import__(name, fromlist=["harvest"])
    document: dict[str, Any] = module.harvest(family, errand)
    return document
