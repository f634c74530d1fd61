"""The contents of a lock: for each environment and target the chosen releases, their evidence and their facts.

It is enough to render and to validate without the matrix it came from. The version of toolmatrix is not in it: the same
request and the same matrix give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolmatrix.facts import evidence as words
from toolmatrix.value import Value

SCHEMA = "toolmatrix.lock/1"
DEFAULT = "default"
"""The environment of a request outside any `[environments.NAME]`."""

COMPILERS = ("gcc", "clang")
FLAGS = ("cflags", "cxxflags", "nvcc", "hipcc")
"""The fields of `LockedFlags` that compilers are called with."""

_OPERATORS = "=<>!~"


class Backed(Value):
    """Something chosen: its evidence, the ids of the facts behind it, and of those that say otherwise."""

    evidence: str
    facts: tuple[str, ...] = ()
    disputed: tuple[str, ...] = ()

    @staticmethod
    def joined(parts: Sequence[Backed]) -> Backed:
        """Several parts as one, which is known as well as the worst of them."""
        return Backed(
            evidence=words.weakest(entry.evidence for entry in parts),
            facts=tuple(dict.fromkeys(fact for entry in parts for fact in entry.facts)),
            disputed=tuple(dict.fromkeys(fact for entry in parts for fact in entry.disputed)),
        )


class LockedComponent(Backed):
    """A component at its version; of a floor (a driver) the lowest that will do.

    `kept`: an earlier lock made the request take this version, by itself it would take another. `inside` names the
    component whose build brings it: nothing else has to.
    """

    version: str
    floor: bool = False
    kept: bool = False
    inside: str = ""


class LockedVariant(Backed):
    """The build that is installed of a component, and what installs it: requirements, then arguments of pip."""

    build: str
    install: tuple[str, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """The arguments of pip beside the requirements: none for the index that it asks anyway."""
        return self.install[len(self.requirements) :]

    @property
    def requirements(self) -> tuple[str, ...]:
        """The words before the first option."""
        # Requirements never begin with a dash, and every option of `pip` does.
        first = next((index for index, word in enumerate(self.install) if word[:1] == "-"), None)
        return self.install[:first]


class LockedFlags(Value):
    """Compiler flags and variables of a target; `missing` are wishes that the chosen compiler cannot say."""

    cflags: tuple[str, ...] = ()
    cxxflags: tuple[str, ...] = ()
    nvcc: tuple[str, ...] = ()
    hipcc: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    missing: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()


class PackageQuestion(Value):
    """The question that a resolver of Python packages is asked for a target: what pip installs there, and where.

    `builds` are requirements of builds that lie elsewhere than on the user's index, and `options` the arguments of pip
    that say where; `python` is a series, and `platform` what uv calls one, such as `x86_64-manylinux_2_28`.
    """

    requirements: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    python: str
    platform: str


class LockedPackage(Value):
    """A Python package at its version, and the files of it that fit the target: name to SHA-256.

    `url` is the address of its one file where it is on no index.
    """

    version: str
    files: Mapping[str, str]
    url: str = ""

    @property
    def is_source(self) -> bool:
        """True if there is no wheel of it."""
        return not any(name.endswith(".whl") for name in self.files)


class LockedClosure(Value):
    """Every Python package that the answer for a target takes, by name, and the question that they answer.

    `builders` are the packages that build those of them of which there is a source archive alone.
    """

    asked: PackageQuestion
    packages: Mapping[str, LockedPackage]
    builders: Mapping[str, LockedPackage] = {}

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the packages that are built out of a source archive."""
        return tuple(name for name, package in sorted(self.packages.items()) if package.is_source)


class LockedTarget(Value):
    """The answer for one target. `archs` is what code is made for, `devices` what it runs on, by name.

    `variants` are the builds that are installed, by the component that they are of; `closure` has all Python packages
    where they were asked for.
    """

    accelerator: str
    from_: str
    platform: str
    evidence: str
    components: Mapping[str, LockedComponent]
    archs: Mapping[str, Backed] = {}
    devices: Mapping[str, Backed] = {}
    variants: Mapping[str, LockedVariant] = {}
    flags: LockedFlags = LockedFlags()
    closure: LockedClosure | None = None

    @property
    def compiles(self) -> bool:
        """True if it has a C compiler, which `flags.cflags` are for."""
        return any(name in self.components for name in COMPILERS)

    @property
    def chosen(self) -> dict[str, str]:
        """Component to version, as `--keep` ranks it. A floor follows from the rest and is not kept."""
        chosen = {name: row.version for name, row in self.components.items() if not row.floor}
        return chosen | {f"{name}-variant": row.build for name, row in self.variants.items()}


class LockedEnvironment(Value):
    """One request with its answers; `request` are the words that ask for it again."""

    request: tuple[str, ...]
    targets: Mapping[str, LockedTarget]

    @property
    def asked(self) -> dict[str, str]:
        """The components that the request names, by itself or by `--with`, with the words that name them."""
        texts: dict[str, str] = {}
        for word in self.request:
            # `--target=arm` names no component, `--with=gcc==9` does.
            option, text = "", word
            if word.startswith("--"):
                option, _, text = word.partition("=")
            if option in ("", "--with"):
                texts[_component(text)] = text
        return texts


class Lock(Value):
    """A whole lock: the matrix it was made from, and one environment or several.

    `render` are the options by which its directory was rendered, as words by their keys in a settings file.
    """

    matrix_digest: str
    matrix_date: str
    environments: Mapping[str, LockedEnvironment]
    render: Mapping[str, str | tuple[str, ...]] = {}

    def environment(self, name: str) -> LockedEnvironment | None:
        """The environment of that name, or the only one there is."""
        # A single environment need not be named.
        if name in self.environments:
            return self.environments[name]
        return next(iter(self.environments.values())) if len(self.environments) == 1 else None

    def names(self) -> tuple[tuple[str, str, str], ...]:
        """The names of the files of each answer: the target, after its environment where there are several."""
        alone = len(self.environments) == 1
        return tuple(
            (target if alone or name == DEFAULT else f"{name}-{target}", name, target)
            for name, environment in sorted(self.environments.items())
            for target in sorted(environment.targets)
        )

    @property
    def targets(self) -> Mapping[str, LockedTarget]:
        """The targets of the default environment."""
        environment = self.environment(DEFAULT)
        return environment.targets if environment is not None else {}

    @property
    def all_targets(self) -> dict[str, LockedTarget]:
        """The targets of every environment; of one name the last."""
        return {
            name: target
            for environment in self.environments.values()
            for name, target in environment.targets.items()
        }

    @property
    def requests(self) -> dict[str, tuple[str, ...]]:
        """The words that each of these targets answers."""
        return {
            name: environment.request
            for environment in self.environments.values()
            for name in environment.targets
        }


def _component(text: str) -> str:
    # Without `re`, whose import takes as long as reading the facts of an answer.
    ends = (position for position, sign in enumerate(text) if sign in _OPERATORS or sign.isspace())
    return text[: next(ends, len(text))].lower().replace("_", "-")


def environment(
    document: Mapping[str, Any], request: Sequence[str], kept: Iterable[tuple[str, str]] = ()
) -> LockedEnvironment:
    """An environment; `request` are its words, `kept` the (target, component) that an earlier lock decided."""
    decided = set(kept)
    return LockedEnvironment(
        request=tuple(request),
        targets={
            name: _target(name, body, document["request"], decided)
            for name, body in document["targets"].items()
        },
    )


def _target(
    name: str, body: Mapping[str, Any], request: Mapping[str, Any], kept: set[tuple[str, str]]
) -> LockedTarget:
    accelerators, flags = request["accelerator"], body["flags"]
    components = {
        component: LockedComponent(
            version=entry["floor"] if "floor" in entry else entry["version"],
            floor="floor" in entry,
            kept=(name, component) in kept,
            inside=entry.get("inside", ""),
            **_backing(entry),
        )
        for component, entry in body["components"].items()
    }
    archs, devices = _named(body["archs"]), _named(body["devices"])
    variants = {
        component: LockedVariant(
            build=entry["variant"]["build"],
            install=(*entry["variant"]["requirements"], *entry["variant"]["arguments"]),
            **_backing(entry["variant"]),
        )
        for component, entry in body["components"].items()
        if "variant" in entry
    }
    tables: list[Mapping[str, Backed]] = [components, archs, devices, variants]
    return LockedTarget(
        # `*` is what a request asks for on every target.
        accelerator=accelerators.get(name, accelerators.get("*", "")),
        from_=request["from"],
        platform=body["platform"],
        evidence=words.weakest(entry.evidence for table in tables for entry in table.values()),
        components=components,
        archs=archs,
        devices=devices,
        variants=variants,
        flags=LockedFlags(
            env=dict(flags["env"]),
            facts=tuple(dict.fromkeys(flags["facts"])),
            **{name: tuple(flags[name]) for name in (*FLAGS, "missing")},
        ),
    )


def _named(parts: Sequence[Mapping[str, Any]]) -> dict[str, Backed]:
    # Two devices may ask for the same codegen arch, each with its own facts.
    entries: dict[str, list[Backed]] = {}
    for entry in parts:
        entries.setdefault(entry["name"], []).append(Backed(**_backing(entry)))
    return {name: Backed.joined(same) for name, same in entries.items()}


def _backing(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "evidence": entry["evidence"],
        "facts": tuple(dict.fromkeys(entry["facts"])),
        "disputed": tuple(dict.fromkeys(rival["fact"] for rival in entry["disputed"])),
    }
