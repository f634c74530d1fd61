"""Keeps in the user's cache what a front page and its files say, so that a file on top costs its own reading alone.

An entry is named by the bytes that it was read from and by the program that read them; it holds the fields of the model
column by column. Places in files are left out: where an error needs one, the files are read.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any, TypeVar

from toolmatrix.errors import MatrixError
from toolmatrix.factbase import compile as compiling
from toolmatrix.factbase import load, minimums, model, store
from toolmatrix.factbase.model import Matrix
from toolmatrix.factbase.yamlfile import YamlNode
from toolmatrix.value import Value

_Key = TypeVar("_Key")
_Fact = TypeVar("_Fact")


def changed(below: Matrix, matrix: Matrix) -> set[str] | None:
    """The components of which something differs; None where that may be any."""
    # Names and their order, when a source was read, code and breaks count wherever they are named.
    if (
        [*below.components.items()] != [*matrix.components.items()]
        or any(matrix.sources[name] != source for name, source in below.sources.items())
        or below.code() != matrix.code()
        or minimums.breaks(below) != minimums.breaks(matrix)
    ):
        return None
    claims = _differences(below.claims, matrix.claims)
    released = {release.component for release in _differences(below.releases, matrix.releases)}
    components = {claim.when[0][0] for claim in claims} | released
    components |= {row.subject.partition(" ")[0] for row in _differences(below.rows, matrix.rows)}
    components |= {read.component for read in _differences(below.requirements, matrix.requirements)}
    # A build is of the day of its release.
    components |= {
        name for name, component in matrix.components.items() if component.variant_of in released
    }
    # Which devices run an arch is in claims of others.
    runs = bool(released & {"arch", "device"}) or any(
        (claim.kind, claim.component) == ("limits", "arch") for claim in claims
    )
    if released or runs:
        components |= {
            claim.when[0][0]
            for claim in matrix.claims.values()
            if (runs and (claim.by_device or claim.by_toolkit))
            or not released.isdisjoint((claim.component, *dict(claim.when)))
        }
    return components


def _differences(below: Mapping[_Key, _Fact], above: Mapping[_Key, _Fact]) -> list[_Fact]:
    # What was not replaced is the same object.
    return [
        fact
        for side, opposite in ((below, above), (above, below))
        for key, fact in side.items()
        if opposite.get(key) is not fact
    ]


_GROUPS: Mapping[str, type[Value]] = {
    "components": model.Component,
    "targets": model.Target,
    "rules": model.InheritanceRule,
    "sources": model.FactSource,
    "channels": model.Channel,
    "releases": model.Release,
    "rows": model.TableRow,
    "requirements": model.ReadRequirements,
    "claims": model.Claim,
}
_CHECK = hashlib.sha256().digest_size
# The place of all that comes from the cache.
_NOWHERE = YamlNode("", 0, 0)


def front(path: str, folder: str, program: str) -> tuple[model.Matrix, str] | None:
    """What a front page and its files say, with its digest; None where they have to be read for what is wrong."""
    try:
        files = load.files(path)
        name = _entry(folder, files, program)
        cached = _read(name)
        if cached is not None:
            return cached
        matrix = load.load([path])
        digest = compiling.digest(matrix)
        # Not where they changed meanwhile.
        if _entry(folder, files, program) == name:
            _write(name, matrix, digest)
    except (OSError, MatrixError):
        return None
    return matrix, digest


def _entry(folder: str, files: Iterable[str], program: str) -> str:
    # `marshal` is of one version of Python.
    text = hashlib.sha256(f"{program}\n{sys.version}\n".encode("utf-8", "surrogateescape"))
    for name in files:
        with open(name, "rb") as stream:
            text.update(hashlib.sha256(stream.read()).digest())
    return os.path.join(folder, f"model-{text.hexdigest()}")


def _read(path: str) -> tuple[model.Matrix, str] | None:
    try:
        with open(path, "rb") as stream:
            check, data = stream.read(_CHECK), stream.read()
    except OSError:
        return None
    if hashlib.sha256(data).digest() != check:
        return None
    matrix = model.Matrix()
    # Only what this program wrote.
    matrix.date, matrix.aliases, matrix.packages, digest, groups = marshal.loads(data)  # noqa: S302
    for name, kind in _GROUPS.items():
        keys, columns = groups[name]
        # All values of a field at once: to call a constructor fifty thousand times takes ten times as long.
        values = [*map(object.__new__, repeat(kind, len(keys)))]
        for field in kind._fields:
            set_field = getattr(kind, field).__set__
            deque(map(set_field, values, columns.get(field, repeat(_NOWHERE))), maxlen=0)
        setattr(matrix, name, dict(zip(keys, values, strict=True)))
    return matrix, digest


def _write(path: str, matrix: model.Matrix, digest: str) -> None:
    groups = {}
    for name, kind in _GROUPS.items():
        values = getattr(matrix, name)
        columns = {
            field: [_marshallable(getattr(value, field)) for value in values.values()]
            for field in kind._fields
            if field != "node"
        }
        groups[name] = [*map(_marshallable, values)], columns
    data = marshal.dumps((matrix.date, matrix.aliases, matrix.packages, digest, groups))
    store.keep_file(path, hashlib.sha256(data).digest() + data)


def _marshallable(value: Any) -> Any:
    # `marshal` takes no text that knows its place, and writes once what is one object.
    if isinstance(value, str):
        return sys.intern(str(value))
    if isinstance(value, tuple):
        return tuple(map(_marshallable, value))
    if isinstance(value, dict):
        return {_marshallable(key): _marshallable(entry) for key, entry in value.items()}
    return value
