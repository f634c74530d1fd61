"""The contents of a lock: for each environment and target the chosen releases, their evidence and their facts.

It is enough to render and to validate without the matrix it came from. The version of toolmatrix is not in it: the same
request and the same matrix give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolmatrix.documents import Evidence, Literal
from toolmatrix.factbase import evidence as words
from toolmatrix.value import Document, Value

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
    def answers(self) -> list[LockedTarget]:
        """The answer for each target of each environment."""
        return [
            target
            for environment in self.environments.values()
            for target in environment.targets.values()
        ]

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


class LockedValue(Document):
    """The value of a component on one side, and what is behind it."""

    value: str
    evidence: Evidence | Literal[""] = ""
    facts: tuple[str, ...] = ()
    disputed: tuple[str, ...] = ()


class ValueChange(Value):
    """One component that differs; `kind` is `added`, `removed`, `changed`, or `moved` where only the facts differ."""

    component: str
    old: LockedValue | None
    new: LockedValue | None
    environment: str = ""
    target: str = ""

    @property
    def kind(self) -> str:
        if self.old is None:
            return "added"
        if self.new is None:
            return "removed"
        return "changed" if self.old.value != self.new.value else "moved"


class Differences(Value):
    """Everything that differs, and (environment, target, component, value) of what does not."""

    changes: tuple[ValueChange, ...]
    same: tuple[tuple[str, str, str, str], ...]

    def count(self, kind: str) -> int:
        return sum(1 for change in self.changes if change.kind == kind)

    @property
    def any(self) -> bool:
        """True if a value differs; facts that moved below the same values are no difference."""
        return any(change.kind != "moved" for change in self.changes)


def compare(
    old: Mapping[str, LockedValue],
    new: Mapping[str, LockedValue],
    environment: str = "",
    target: str = "",
) -> Differences:
    """Compare two mappings; the order is that of the names."""
    changes = []
    same = []
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        location = {"environment": environment, "target": target}
        if before != after:
            changes.append(ValueChange(component=name, old=before, new=after, **location))
        # A value with other facts behind it has moved, but still counts as the same.
        if before and after and before.value == after.value:
            same.append((environment, target, name, after.value))
    return Differences(changes=tuple(changes), same=tuple(same))


def locks(old: Lock, new: Lock) -> Differences:
    """Compare two locks, each environment and target with the one of the same name."""
    changes: list[ValueChange] = []
    same: list[tuple[str, str, str, str]] = []
    for name in sorted({*old.environments, *new.environments}):
        sides = [
            side.environments[name].targets if name in side.environments else {}
            for side in (old, new)
        ]
        for target in sorted({*sides[0], *sides[1]}):
            before, after = _compared_values(sides[0].get(target), sides[1].get(target))
            differences = compare(before, after, name, target)
            changes += differences.changes
            same += differences.same
    return Differences(changes=tuple(changes), same=tuple(same))


def _compared_values(
    old: LockedTarget | None, new: LockedTarget | None
) -> tuple[dict[str, LockedValue], dict[str, LockedValue]]:
    # Of settings and flags only those that differ: a list of flags that are the same says nothing about components.
    before, after = components(old), components(new)
    # The settings of a target that came or went say nothing that its components do not.
    if old and new:
        was = _settings(old) | packages(old, new)
        is_ = _settings(new) | packages(new, old)
        before |= {name: value for name, value in was.items() if is_.get(name) != value}
        after |= {name: value for name, value in is_.items() if was.get(name) != value}
    return before, after


def own_flags(flags: LockedFlags, others: LockedFlags) -> dict[str, list[str]]:
    """The compiler flags that only the first has, each with the lists that contain it."""
    lists: dict[str, list[str]] = {}
    for name in FLAGS:
        for flag in getattr(flags, name):
            if flag not in getattr(others, name):
                lists.setdefault(flag, []).append(name)
    return lists


def components(target: LockedTarget | None) -> dict[str, LockedValue]:
    """The components of a target, its codegen archs and devices as one component each."""
    if target is None:
        return {}
    values = {
        name: _value(f">={component.version}" if component.floor else component.version, component)
        for name, component in target.components.items()
    }
    for name, build in target.variants.items():
        values[f"{name} build"] = _value(build.build, build)
    for name, parts in (("arch", target.archs), ("device", target.devices)):
        if parts:
            names = sorted(parts)
            values[name] = _value(", ".join(names), Backed.joined([parts[key] for key in names]))
    return values


def packages(target: LockedTarget, other: LockedTarget) -> dict[str, LockedValue]:
    """The Python packages of a target beside those of another: how many where that has none, else each."""
    if target.closure is None:
        return {}
    ours = target.closure.packages
    if other.closure is None:
        return {"packages": LockedValue(value=f"{len(ours)} with their files")}
    theirs = other.closure.packages
    return {
        f"{name} package": LockedValue(
            value=" ".join((package.version, *_own_files(package, theirs.get(name))))
        )
        for name, package in ours.items()
        # A component whose release changed has a line of its own.
        if not (name in target.components and name in theirs)
        or theirs[name].version == package.version
    }


def _own_files(package: LockedPackage, other: LockedPackage | None) -> list[str]:
    # Only files that changed within one release do not show in its version.
    if other is None or other.version != package.version:
        return []
    return [
        f"{name} sha256:{digest}"
        for name, digest in sorted(package.files.items())
        if other.files.get(name) != digest
    ]


def _value(value: str, behind: Backed) -> LockedValue:
    return LockedValue(
        value=value, evidence=behind.evidence, facts=behind.facts, disputed=behind.disputed
    )


def _settings(target: LockedTarget) -> dict[str, LockedValue]:
    flags = target.flags
    settings = {
        "accelerator": target.accelerator,
        "from": target.from_,
        "platform": target.platform,
        **{name: " ".join(getattr(flags, name)) for name in FLAGS},
        **{f"env {name}": value for name, value in flags.env.items()},
        "unsupported flags": ", ".join(flags.missing),
    }
    return {name: LockedValue(value=value) for name, value in settings.items() if value}
