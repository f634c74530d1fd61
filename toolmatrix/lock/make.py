"""From an answer (a document `toolmatrix.resolution/1`) to what a lock holds of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolmatrix.facts import evidence as words
from toolmatrix.lock.model import (
    FLAGS,
    Backed,
    LockedComponent,
    LockedEnvironment,
    LockedFlags,
    LockedTarget,
    LockedVariant,
)


def environment(
    document: Mapping[str, Any], request: Sequence[str], kept: Iterable[tuple[str, str]] = ()
) -> LockedEnvironment:
    """An environment; `request` are its words, `kept` the (target, component) that an earlier lock decided."""
    held = set(kept)
    return LockedEnvironment(
        request=tuple(request),
        targets={
            name: _target(name, body, document["request"], held)
            for name, body in document["targets"].items()
        },
    )


def _target(
    name: str, body: Mapping[str, Any], request: Mapping[str, Any], kept: set[tuple[str, str]]
) -> LockedTarget:
    accelerators, flags = request["accelerator"], body["flags"]
    components = {
        component: LockedComponent(
            version=part["floor"] if "floor" in part else part["version"],
            floor="floor" in part,
            kept=(name, component) in kept,
            inside=part.get("inside", ""),
            **_backing(part),
        )
        for component, part in body["components"].items()
    }
    archs, devices = _named(body["archs"]), _named(body["devices"])
    variants = {
        component: LockedVariant(
            build=part["variant"]["build"],
            install=(*part["variant"]["requirements"], *part["variant"]["arguments"]),
            **_backing(part["variant"]),
        )
        for component, part in body["components"].items()
        if "variant" in part
    }
    tables: list[Mapping[str, Backed]] = [components, archs, devices, variants]
    return LockedTarget(
        # `*` is what a request asks for on every target.
        accelerator=accelerators.get(name, accelerators.get("*", "")),
        from_=request["from"],
        platform=body["platform"],
        evidence=words.weakest(part.evidence for held in tables for part in held.values()),
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
    found: dict[str, list[Backed]] = {}
    for part in parts:
        found.setdefault(part["name"], []).append(Backed(**_backing(part)))
    return {name: Backed.joined(same) for name, same in found.items()}


def _backing(part: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "evidence": part["evidence"],
        "facts": tuple(dict.fromkeys(part["facts"])),
        "disputed": tuple(dict.fromkeys(rival["fact"] for rival in part["disputed"])),
    }
