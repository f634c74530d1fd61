"""A target of a lock as an inventory; and all subjects that can be named, locks among them."""

from __future__ import annotations

import os

from toolmatrix.errors import LockError, NothingMatched, UsageError
from toolmatrix.images import streams
from toolmatrix.inventory import subjects
from toolmatrix.inventory.model import LOCK, REST, Inventory, Seen, Skipped
from toolmatrix.inventory.subjects import SCHEMES as OBSERVED
from toolmatrix.inventory.subjects import Scheme, SubjectRequest
from toolmatrix.lock import read, write
from toolmatrix.opener import opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import IO

    from toolmatrix.inventory.layers import LayerStore
    from toolmatrix.inventory.subjects import Ask
    from toolmatrix.lock.model import Lock, LockedTarget

_LISTS = ("cflags", "cxxflags", "nvcc", "hipcc")
_SEEN = "lock"
# Bytes from which a lock and an archive can be told apart.
_HEAD = 1024
# How files begin that gzip, zstd, bzip2 and xz packed.
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")


def observe(
    subject: str,
    platform: str = "",
    directory: str = "",
    stdin: IO[bytes] | None = None,
    probes: Ask | None = None,
    store: LayerStore | None = None,
) -> Inventory:
    """The inventory of a subject, as `subjects.observe`, of a lock as well. Raises what that raises, and LockError."""
    found = subjects.observe(subject, platform, directory, stdin, SCHEMES, probes, store)
    try:
        digest = write.digest(embedded(found))
    except LockError:
        return found
    # By the digest of its answers, as in labels: how a directory is rendered changes none of them.
    held = tuple(one.replace(version=digest) for one in found.features.get(_SEEN, ()))
    return found.replace(features={**found.features, _SEEN: held})


def embedded(inventory: Inventory) -> Lock:
    """The lock inside an image. Raises LockError where there is none, or one that was edited."""
    if not inventory.lock:
        raise LockError(
            "it contains no lock",
            expected=f"/{LOCK}, as in a rendered image",
            help="name a lock with `--lock FILE`, or requirements with `--expect python==3.11.*`",
        )
    return read.parse(inventory.lock.encode(), "/" + LOCK)


def identity(subject: str, directory: str = "") -> str:
    """The identity of a subject at this moment, as `subjects.identity`, of a lock as well."""
    return subjects.identity(subject, directory, SCHEMES)


def is_subject(text: str, path: str) -> bool:
    """True if a word names a subject, by its scheme or because what lies at `path` is neither text nor a lock."""
    if subjects.is_named(text, SCHEMES) or os.path.isdir(path):
        return True
    try:
        with opened(path) as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    # A lock is TOML: it begins with neither a brace nor the mark of a compressor, and has no byte 0.
    return b"\0" in head or head.lstrip().startswith(b"{") or head.startswith(_PACKED)


def inventory(target: LockedTarget, name: str, subject: str = "") -> Inventory:
    """A target as an inventory: its components, flags, variables, codegen archs and devices."""
    flags = target.flags
    features: dict[str, tuple[Seen, ...]] = {
        f"flag:{flag}": (_seen(flag, f"{name} {kind}"),)
        # Reversed, so that of a flag in several lists the first one is named: a later value of a key wins.
        for kind in reversed(_LISTS)
        for flag in getattr(flags, kind)
    }
    features |= {f"env:{key}": (_seen(value, f"{name} env"),) for key, value in flags.env.items()}
    features |= {"codegen": _names(target.archs, name), "device": _names(target.devices, name)}
    return Inventory(
        subject=subject,
        platform=target.platform,
        components={
            component: (_seen(f">={part.version}" if part.floor else part.version, name),)
            for component, part in sorted(target.components.items())
        },
        features={feature: several for feature, several in sorted(features.items()) if several},
        skipped=(Skipped(what=REST, reason="a lock has nothing else"),),
    )


def _names(held: Iterable[str], name: str) -> tuple[Seen, ...]:
    return tuple(_seen(one, name) for one in sorted(held))


def _seen(value: str, where: str) -> Seen:
    return Seen(version=value, seen_by=_SEEN, where=where, default=True)


def _read(asked: SubjectRequest) -> Inventory:
    path, wanted = _place(asked)
    held = read.read(os.path.join(asked.directory, path)).held
    if wanted and wanted not in held:
        raise NothingMatched(
            f"{path} has no target `{wanted}`", expected=", ".join(held), found=f"`{wanted}`"
        )
    fitting = [
        name
        for name, part in held.items()
        if name == wanted or (not wanted and asked.platform in ("", part.platform))
    ]
    if len(fitting) != 1:
        raise UsageError(
            "a lock is compared for one target",
            expected=" or ".join(f"`lock:{path}#{name}`" for name in fitting or held),
            found=f"`{asked.subject}`",
        )
    return inventory(held[fitting[0]], fitting[0], asked.subject)


def _identity(asked: SubjectRequest) -> str:
    return streams.file_identity(os.path.join(asked.directory, _place(asked)[0]))


def _place(asked: SubjectRequest) -> tuple[str, str]:
    # The last `#` is the one before a target: a path may have others.
    path, sharp, target = asked.place.rpartition("#")
    return (path, target) if sharp else (target, "")


SCHEMES = OBSERVED | {"lock": Scheme("lock:FILE#TARGET", "one target of a lock", _read, _identity)}
"""The kinds of subjects, by what stands in front of the first colon."""
