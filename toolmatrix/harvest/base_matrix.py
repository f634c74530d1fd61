"""What a harvest needs of the matrix that it writes to, even if some files of the matrix are damaged or missing."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolmatrix.errors import MatrixError
from toolmatrix.factbase import load, variants, versions
from toolmatrix.factbase.index import Index
from toolmatrix.value import Value

if TYPE_CHECKING:
    Lines = dict[tuple[str, str], tuple[str, str]]
    """The line and the accelerator of each build on the default channel, by release and machine."""


class BaseMatrix(Value):
    """The components of a matrix, its Pythons and the lines of builds; `damage` has the errors of unreadable files."""

    components: frozenset[str]
    # The oldest first.
    pythons: tuple[str, ...]
    lines: Mapping[str, Lines]
    damage: tuple[MatrixError, ...] = ()


def read(index: Callable[[], Index], paths: Sequence[str], matched: Collection[str]) -> BaseMatrix:
    """The base of the matrix at these paths, with the lines of the builds of the `matched` components.

    The file that a harvest is about to rewrite may be the one that breaks the matrix. So damaged files, and files that
    depend on them, are left out, and the matrix is not checked. Raises the MatrixError of `index` if that fails too.
    """
    try:
        return _of_index(index(), matched)
    except MatrixError as error:
        return _of_files(paths, matched, error)


def _of_index(index: Index, matched: Iterable[str]) -> BaseMatrix:
    components = index.header["components"]
    return BaseMatrix(
        components=frozenset(components),
        pythons=tuple(index.component("python").versions),
        lines={
            name: _lines(
                [
                    index.release(release).attributes
                    for release in index.component(variants.name(name)).releases
                ],
                {channel for channel in index.channels() if index.channel(channel).default},
            )
            for name in matched
            if variants.name(name) in components
        },
    )


def _of_files(paths: Sequence[str], matched: Iterable[str], error: MatrixError) -> BaseMatrix:
    damage = {
        name: MatrixError("a listed file is missing", found=name)
        for path in paths
        for name in load.files(path)
        if not os.path.exists(name)
    }
    known = {name for path in paths for name in load.files(path)[1:]}
    while True:
        try:
            matrix = load.load(paths, left_out=damage)
            break
        except MatrixError as failure:
            damaged = failure.where.path if failure.where else ""
            if damaged not in known or damaged in damage:
                raise error from None
            damage[damaged] = failure
    component_versions: dict[str, list[str]] = {}
    builds: dict[str, list[Mapping[str, str]]] = {}
    for (component, version), release in matrix.releases.items():
        component_versions.setdefault(component, []).append(version)
        builds.setdefault(component, []).append(release.attributes)
    if "python" not in component_versions:
        raise error
    default = {name for name, channel in matrix.channels.items() if channel.default}
    return BaseMatrix(
        components=frozenset(matrix.components),
        pythons=tuple(
            versions.sort(
                matrix.components["python"].scheme, dict.fromkeys(component_versions["python"], 0)
            )
        ),
        lines={
            name: _lines(builds.get(variants.name(name), ()), default)
            for name in matched
            if variants.name(name) in matrix.components
        },
        # If two files contradict each other, both were loaded.
        damage=tuple(damage.values()) or (error,),
    )


def _lines(builds: Iterable[Mapping[str, str]], default: Collection[str]) -> Lines:
    lines: Lines = {}
    for build in builds:
        key = build["release"], build["machine"]
        # Prefer the build with an accelerator: one without has to be requested.
        if build["channel"] in default and lines.get(key, ("", "none"))[1] == "none":
            lines[key] = build["line"], build["accelerator"]
    return lines
