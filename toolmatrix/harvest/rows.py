"""What harvesters of builds share: cells that a family says, and rows of builds that are alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from toolmatrix.facts import versions
from toolmatrix.facts.versions import Scale
from toolmatrix.value import Value

if TYPE_CHECKING:
    from toolmatrix.facts.yamlfile import YamlNode


class Build(Value):
    """One published build: what tells it from others, and its cells by column."""

    release: str
    line: str
    channel: str
    machine: str
    cells: Mapping[str, Any]


class Known(Value):
    """Cells that a family says of some of its builds: those of `releases`, and of lines that fit a pattern."""

    releases: str
    line: str
    cells: Mapping[str, Any]


def plain(node: YamlNode) -> Any:
    """A value of a family as it goes into a fact file: text, lists and mappings."""
    if node.fields is not None:
        return {name: plain(part) for name, part in node.fields.items()}
    if node.items is not None:
        return [plain(part) for part in node.items]
    return node.text or ""


def known(nodes: Iterable[YamlNode]) -> list[Known]:
    """The cells under `known:` of a family. Raises MatrixError."""
    found = []
    for node in nodes:
        cells = {name: plain(part) for name, part in node.mapping("cells of builds").items()}
        found.append(
            Known(
                releases=cells.pop("releases", "*"),
                line=cells.pop("lines", "*"),
                cells=cells,
            )
        )
    return found


def completed(builds: Iterable[Build], said: Sequence[Known]) -> list[Build]:
    """The builds with what a family says of them, which stands before what their names tell; of that the first."""
    found = list(builds)
    scale = Scale("pep440", in_order(one.release for one in found))
    masks = [scale.select(one.releases) for one in said]
    for place, build in enumerate(found):
        bit = scale.bit(build.release)
        cells: dict[str, Any] = {}
        for one, mask in zip(said, masks, strict=True):
            if mask & bit and fnmatchcase(build.line, one.line):
                cells = {**one.cells, **cells}
        found[place] = build.replace(cells={**build.cells, **cells})
    return found


def in_order(releases: Iterable[str]) -> list[str]:
    """Releases without repetitions, the oldest first."""
    return versions.sort("pep440", dict.fromkeys(releases, 0))


def rows(table: str, key: str, builds: Iterable[Build]) -> list[dict[str, Any]]:
    """The rows of a table of variants: releases whose builds for a line are alike share one, named by the first."""
    alike: dict[tuple[str, ...], list[Build]] = {}
    for build in builds:
        # By `repr`, as a cell may be a mapping.
        name = build.line, build.channel, build.machine, repr(sorted(build.cells.items()))
        alike.setdefault(name, []).append(build)
    found = []
    for group in alike.values():
        releases = in_order(one.release for one in group)
        first = group[0]
        # By the oldest release, so that a row keeps its name when a later one joins it and is not taken for lost.
        identity = f"{table}/{releases[0]}+{first.line}@{first.channel}/{first.machine}"
        found.append(
            {
                "id": identity,
                key: " ".join(releases),
                "line": first.line,
                "channel": first.channel,
                "machine": first.machine,
                **first.cells,
            }
        )
    return sorted(found, key=lambda row: _place(row, key))


def _place(row: Mapping[str, Any], key: str) -> tuple[Any, ...]:
    # The newest release first, as in tables that people write.
    first = versions.key(row[key].split()[0])
    numbers = tuple(-number for number in first[0])
    return numbers, row[key], row["line"], row["machine"]


def pythons(tags: Iterable[str]) -> str:
    """Python tags of wheels (`cp39`, `cp310`) as a selector: `3.9-3.10`, or one by one where some are left out."""
    minors = sorted({int(tag.removeprefix("cp3")) for tag in tags})
    if len(minors) > 1 and minors == [*range(minors[0], minors[-1] + 1)]:
        return f"3.{minors[0]}-3.{minors[-1]}"
    return " ".join(f"3.{minor}" for minor in minors)


def line_order(line: str) -> tuple[tuple[int, str], ...]:
    """A sort key of lines: CUDA 11.8 before 12 (`cu118`, `cu12`), torch 2.9 before 2.10."""
    import re

    # As numbers 118 would come behind 12: the digits of `cu` are compared as text.
    parts = re.findall(r"(cu\d+|\D+)|(\d+)", line)
    return tuple((int(number or -1), word) for word, number in parts)
