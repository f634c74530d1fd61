"""From an answer (a document `toolmatrix.resolution/1`) to what a lock holds of it."""

from __future__ import annotations

from toolmatrix.facts import evidence as words
from toolmatrix.lock.model import (
    Backed,
    LockedComponent,
    LockedEnvironment,
    LockedFlags,
    LockedTarget,
    LockedVariant,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

_LISTS = ("cflags", "cxxflags", "nvcc", "hipcc", "missing")


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
    accelerators = request["accelerator"]
    components = {
        component: LockedComponent(
            version=part["floor"] if "floor" in part else part["version"],
            floor="floor" in part,
            kept=(name, component) in kept,
            inside=part.get("inside", ""),
            **_backing([part]),
        )
        for component, part in body["components"].items()
    }
    archs, devices = _named(body["archs"]), _named(body["devices"])
    variants = {
        component: LockedVariant(
            build=part["variant"]["build"],
            install=(*part["variant"]["requirements"], *part["variant"]["arguments"]),
            **_backing([part["variant"]]),
        )
        for component, part in body["components"].items()
        if "variant" in part
    }
    named: list[Mapping[str, Backed]] = [components, archs, devices, variants]
    parts = [part for held in named for part in held.values()]
    return LockedTarget(
        accelerator=accelerators.get(name, accelerators.get("*", "")),
        from_=request["from"],
        platform=body["platform"],
        evidence=_weakest(part.evidence for part in parts),
        components=components,
        archs=archs,
        devices=devices,
        variants=variants,
        flags=_flags(body["flags"]),
    )


def _named(parts: Sequence[Mapping[str, Any]]) -> dict[str, Backed]:
    """Codegen archs or devices by name; two devices may ask for the same arch."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for part in parts:
        found.setdefault(part["name"], []).append(part)
    return {name: Backed(**_backing(same)) for name, same in found.items()}


def _backing(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "evidence": _weakest(part["evidence"] for part in parts),
        "facts": tuple(dict.fromkeys(fact for part in parts for fact in part["facts"])),
        "disputed": tuple(
            dict.fromkeys(rival["fact"] for part in parts for rival in part["disputed"])
        ),
    }


def _weakest(found: Iterable[str]) -> str:
    weakest = words.WORDS[0]
    for word in found:
        weakest = words.weaker(weakest, word)
    return weakest


def _flags(body: Mapping[str, Any]) -> LockedFlags:
    return LockedFlags(
        env=dict(body["env"]),
        facts=tuple(dict.fromkeys(body["facts"])),
        **{name: tuple(body[name]) for name in _LISTS},
    )
