"""Differences between two sets of "component = value", and between two locks.

`compare` knows nothing of locks: it compares any two mappings.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolmatrix.documents import Evidence, Literal
from toolmatrix.lock.model import FLAGS, Backed, Lock, LockedFlags, LockedPackage, LockedTarget
from toolmatrix.value import Document, Value


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
