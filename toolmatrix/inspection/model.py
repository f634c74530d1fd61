"""Observations of one subject: components with their versions, features, what could not be seen; and two compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from toolmatrix.documents import Annotated, Any, NonEmpty, NotRequired, TypedDict
from toolmatrix.value import Document, Value

if TYPE_CHECKING:
    from toolmatrix.images.streams import Readable

    _DocumentType = TypeVar("_DocumentType", bound=Document)

SCHEMA = "toolmatrix.inventory/1"
LOCK = "usr/share/toolmatrix/toolmatrix.lock"
"""The path at which a rendered Dockerfile puts the lock inside an image."""
DEFAULT_PLACE = "default place"
"""The witness of `foreign-arch` for a file that is taken without asking: on PATH, by the loader, by an import."""
GONE = "missing-files"
"""The feature that names packages of which no file is left."""
UNKEPT = "unkept-flag"
"""The beginning of features for flags that a variable promises and a file was compiled without."""
FOREIGN_PROGRAM = "foreign-program"
"""The feature of a program for another processor that no default search finds."""
NO_INTERPRETER = "missing-interpreter"
"""The beginning of features for interpreters that scripts on PATH ask for, and that are gone."""
BY_VARIABLE = "by-variable"
"""The feature of libraries that only LD_LIBRARY_PATH leads to."""
UNREACHED = "unreached"
"""The beginning of features for libraries that a program needs, and that lie where its loader does not look."""
OLDER = "older-library"
"""The beginning of features for libraries that lack a symbol version which a file asks them for."""
UNIMPORTED = "unimported"
"""The beginning of features for packages with a record that the image's Python does not import."""
CONTRADICTED = "contradicted"
"""The beginning of features for components whose witnesses disagree about what a program gets."""
BROKEN = "broken"
"""The beginning of features for packages that the image's Python finds and cannot load."""
INTERPRETER = "interpreter"
"""The feature with the Python that an image starts, with its options, and where it looks for modules first."""
IMPORTED = "imported"
"""The beginning of features for the way from the interpreter to a package of which there are several."""
STUB = "stub"
"""The beginning of features for stubs of the driver that the loader finds before the driver."""
OWN_DRIVER = "own-driver"
"""The beginning of features for libraries of the driver that are in the image."""
OTHER_SONAME = "other-soname"
"""The beginning of features for libraries whose soname has another number than the name by which they are needed."""
OTHER_PYTHON = "other-python"
"""The beginning of features for packages of which another name of Python imports another version."""
MODULE = "module"
"""The witness of a version that a module states itself."""
DRIVER = ("libcuda.so.", "libnvidia-", "libnvcuvid.so.")
"""Libraries that the NVIDIA container toolkit mounts from the host, by the component table of libnvidia-container."""
REST = "anything else"
"""The skip of a subject whose content is not complete, such as a lock."""
RAN = "ran"
"""The witness of what a program answered when it was run."""
RUNNING = "running "
"""The beginning of `Skipped.what` for a program that was read, and did not answer when it was run."""

WHICH = "which "
"""The beginning of `Skipped.what` for a component where reading cannot decide which one a user gets."""
WHICH_PACKAGES = f"{WHICH}Python packages"
"""`Skipped.what` where it is not known which directories Python imports from."""
EXPECTED, SUSPICIOUS = "expected", "suspicious"
ADDED, REMOVED, CHANGED = "added", "removed", "changed"


class HistoryEntry(TypedDict):
    """A layer, and the instruction that made it."""

    layer: str
    instruction: str


class InventoryDocument(TypedDict):
    """What `toolmatrix inventory --json` prints: what a subject holds, each value with every place it was seen at, the
    best witness first.
    """

    schema: Annotated[str, SCHEMA]
    subject: str
    platform: str | None
    digest: str | None
    components: dict[str, NonEmpty[Annotated[dict[str, Any], Seen]]]
    features: dict[str, NonEmpty[Annotated[dict[str, Any], Seen]]]
    sonames: list[Annotated[dict[str, Any], Soname]]
    history: list[HistoryEntry]
    skipped: list[Annotated[dict[str, Any], Skipped]]
    lock: NotRequired[str | None]


class FilePattern(NamedTuple):
    """Files that an observer reads: a pattern of their whole paths, and the bytes of each that are kept.

    `parse` makes something else of a file, out of its size and its contents. Observers list theirs as `READS`; nothing
    else of a layer is in memory when they look at it.
    """

    pattern: str
    size: int
    parse: Callable[[int, Readable], object] | None = None


class Seen(Document):
    """One sighting of a value.

    `seen_by` names the witness (`dpkg`, `dist-info`, `soname`, `elf`, `configuration`, `version file`, `ran`...),
    `where` the place in the subject (a path, a key of the configuration), `layer` the digest of the layer that brought
    it where that is known. `default`: it is what a user gets who just calls the program or imports the package.
    """

    version: str
    seen_by: str
    where: str
    layer: str = ""
    default: bool = False


class Soname(Document):
    """A shared library that a file needs, as the loader would look it up.

    `found` is the path that it gets, empty where it gets none; `others` are sonames of the same library under another
    major that are there instead.
    """

    name: str
    needed_by: tuple[str, ...]
    found: str = ""
    others: tuple[str, ...] = ()


class Skipped(Document):
    """Something that could not be seen, and why."""

    what: str
    reason: str


class Inventory(Value):
    """Everything observed of one subject.

    `subject` is the address as the user gave it; `platform` such as `linux/arm64`, by the configuration or the files.
    `components` are sightings by component, best witness first. `features` are properties by name, such as
    `char` (signed or unsigned), `crc32`, `arch`, `flag:-fsigned-char`, `label:NAME`, `env:NAME`, `user`, `entrypoint`,
    `codegen` (sm_ and gfx names inside ELF files), each with its sightings, `version` holding the value.
    """

    subject: str
    platform: str = ""
    digest: str = ""
    components: Mapping[str, tuple[Seen, ...]] = {}
    features: Mapping[str, tuple[Seen, ...]] = {}
    sonames: tuple[Soname, ...] = ()
    history: tuple[tuple[str, str], ...] = ()
    """Pairs of a layer's digest and the instruction that made it."""
    skipped: tuple[Skipped, ...] = ()
    lock: str = ""
    """The text of the lock that lies inside the image."""

    def to_json(self) -> InventoryDocument:
        """The document `toolmatrix.inventory/1`."""
        return {
            "schema": SCHEMA,
            "subject": self.subject,
            "platform": self.platform or None,
            "digest": self.digest or None,
            "components": _to_json(self.components),
            "features": _to_json(self.features),
            "sonames": [soname.to_json() for soname in self.sonames],
            "history": [
                {"layer": layer, "instruction": instruction} for layer, instruction in self.history
            ],
            "skipped": [skip.to_json() for skip in self.skipped],
            "lock": self.lock or None,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Inventory:
        """An inventory out of its document; raises KeyError, TypeError or AttributeError for another one."""
        return cls(
            subject=text(body["subject"]),
            platform=text(body.get("platform") or ""),
            digest=text(body.get("digest") or ""),
            components=_read_sightings(body["components"]),
            features=_read_sightings(body["features"]),
            sonames=tuple(_parse(Soname, entry) for entry in body["sonames"]),
            history=tuple(
                (text(step["layer"]), text(step["instruction"])) for step in body.get("history", ())
            ),
            skipped=tuple(_parse(Skipped, entry) for entry in body["skipped"]),
            lock=text(body.get("lock") or ""),
        )


class Held(Document):
    """The value of something on one side, several joined by commas, and where that was seen first."""

    value: str
    seen_by: str = ""
    where: str = ""


class Difference(Value):
    """Something that is not the same; `old` and `new` are None where that side has none of it.

    `unit` is what its values count, bytes or hertz, where they are numbers of those.
    """

    group: str
    kind: str
    name: str
    shown: str
    old: Held | None
    new: Held | None
    verdict: str
    why: str
    source: str = ""
    unit: str = ""

    @property
    def change(self) -> str:
        """The change that happened to it on the way from the first side to the second."""
        if self.old is None:
            return ADDED
        return REMOVED if self.new is None else CHANGED


class Unseen(Value):
    """Things of a kind that were not compared, because one side (0 or 1) does not know them."""

    group: str
    kind: str
    names: tuple[str, ...]
    side: int
    reason: str


class Comparison(Value):
    """Two subjects compared; `same` are group, name and value of what is the same."""

    sides: tuple[Inventory, Inventory]
    differences: tuple[Difference, ...]
    same: tuple[tuple[str, str, str], ...]
    unseen: tuple[Unseen, ...]

    def count(self, verdict: str) -> int:
        """The number of differences that have a verdict."""
        return sum(difference.verdict == verdict for difference in self.differences)


def _to_json(sightings: Mapping[str, tuple[Seen, ...]]) -> dict[str, list[dict[str, Any]]]:
    return {name: [seen.to_json() for seen in group] for name, group in sightings.items()}


def _read_sightings(body: Mapping[str, Any]) -> dict[str, tuple[Seen, ...]]:
    return {name: tuple(_parse(Seen, entry) for entry in entries) for name, entries in body.items()}


# Fields of later versions are passed over: within /1 fields are added. Those of this one have to be there, as the
# schema says, or a library that was not looked up would read as one that was not found.
def _parse(kind: type[_DocumentType], body: Mapping[str, Any]) -> _DocumentType:
    forms = kind.__annotations__.items()
    return kind(**{field: FORMS[form](body[field]) for field, form in forms})


def text(value: object) -> str:
    """A text out of JSON; raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"`{value}`, which is not text"[:200])
    return value


def texts(value: object) -> tuple[str, ...]:
    """Texts out of JSON; raises TypeError for anything but a list of them."""
    # A text is a sequence of texts as well.
    if not isinstance(value, list):
        raise TypeError(f"`{value}`, which is not a list"[:200])
    return tuple(map(text, value))


FORMS: dict[str, Callable[[Any], Any]] = {
    "bool": lambda value: value is True,
    "str": text,
    "tuple[str, ...]": texts,
}
"""Readers of fields, by their annotations."""
