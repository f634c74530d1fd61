"""Names that CI services and package channels have for things in rendered files: `outside.yaml`, with its sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from toolmatrix.errors import RenderError
from toolmatrix.facts.versions import Scale
from toolmatrix.resources import outside_path
from toolmatrix.value import Value

if TYPE_CHECKING:
    from toolmatrix.lock.model import LockedTarget

    _Kind = TypeVar("_Kind", "Conda", "Spack")


class Action(Value):
    """An action of GitHub at one commit, with the tag that people know it by."""

    uses: str
    commit: str
    tag: str
    source: str


class Devices(Value):
    """How Kubernetes knows the GPUs of an accelerator: as a resource, and by labels of a node, "" where none is known.

    `driver` and `device` are the beginnings of labels for the numbers of the driver's release and of the GPU.
    """

    resource: str
    driver: str = ""
    device: str = ""
    source: str


class Conda(Value):
    """How a component is packaged by conda-forge; `note` says what is lacking there."""

    component: str
    when: str = "*"
    scheme: str = "pep440"
    packages: Sequence[str] = ()
    note: str = ""
    source: str


class Spack(Value):
    """How a component is packaged by Spack; `at` is where, below the folder that the source names.

    `gpu` are the accelerators that it has a variant for; a `compiled` package takes the compiler of the answer.
    """

    component: str
    when: str = "*"
    scheme: str = "pep440"
    package: str = ""
    gpu: Sequence[str] = ()
    compiled: bool = False
    note: str = ""
    source: str
    at: str


def runner(service: str, platform: str) -> str:
    """The name that a service has for machines of a platform; raises RenderError for an unknown platform."""
    known = _read()["runners"]
    if platform not in known:
        raise RenderError(
            f"no known {service} runner for this platform",
            expected=" or ".join(known),
            found=f"`{ascii(platform)[1:-1]}`",
        )
    return next(
        str(machine["label"]) for machine in known[platform] if machine["service"] == service
    )


def action(name: str) -> Action:
    """An action by the name that the formats know it by."""
    return Action(**_read()["actions"][name])


def devices(accelerator: str) -> Devices | None:
    """The GPUs of an accelerator, if it has any."""
    entry = _read()["devices"].get(accelerator)
    return Devices(**entry) if entry else None


def engine() -> tuple[str, str]:
    """The images of Docker's client and of its engine as a service."""
    entry = _read()["engine"]
    return entry["cli"], entry["service"]


def conda(locked: LockedTarget) -> Iterator[tuple[str, str, Conda]]:
    """The components and releases of an answer that conda-forge has anything for, each with its packaging."""
    return _packaged(Conda, "conda", locked)


def spack(locked: LockedTarget) -> Iterator[tuple[str, str, Spack]]:
    """The components and releases of an answer that Spack has anything for, each with its packaging."""
    return _packaged(Spack, "spack", locked)


def notes(packaged: Iterable[tuple[str, str, Conda | Spack]]) -> Iterator[str]:
    """A line for each component that a channel lacks, wholly or in part."""
    return (f"{name} {version}: {entry.note}" for name, version, entry in packaged if entry.note)


def bazel(option: str, version: str) -> bool:
    """True if a Bazel of that release is known to take an option that earlier ones refuse."""
    return any(
        Scale("pep440", (version,)).select(entry["when"])
        for entry in _read()["bazel"]
        if entry["option"] == option
    )


def _packaged(
    kind: type[_Kind], channel: str, locked: LockedTarget
) -> Iterator[tuple[str, str, _Kind]]:
    entries = [kind(**entry) for entry in _read()[channel]]
    for name, component in sorted(locked.components.items()):
        for entry in (entry for entry in entries if entry.component == name):
            if Scale(entry.scheme, (component.version,)).select(entry.when):
                yield name, component.version, entry
                break


@lru_cache(maxsize=1)
def _read() -> Mapping[str, Any]:
    import yaml

    with open(outside_path(), encoding="utf-8") as file:
        tables: Mapping[str, Any] = yaml.safe_load(file)
    return tables
