"""Where findings stand in the files of a matrix: the claim, release or key that each is about."""

from __future__ import annotations

import os

from toolmatrix import resources
from toolmatrix.errors import Position

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolmatrix.facts.model import Matrix
    from toolmatrix.finding import Finding


def located(findings: Iterable[Finding], matrix: Matrix, files: Sequence[str]) -> Iterator[Finding]:
    """The findings, each with the best place known: its own, its first fact's, or that of a name it is about."""
    keys: dict[str, Position] | None = None
    for finding in findings:
        where = finding.where or _fact(finding, matrix)
        if where is None:
            keys = _keys(files) if keys is None else keys
            where = next((keys[name] for name in _words(finding) if name in keys), None)
        yield finding.replace(where=shortened(where or Position(files[0])))


def shortened(where: Position) -> Position:
    """A place in the built-in matrix as people know it, `matrix/...`; another as it is."""
    root = os.path.join(resources.matrix_root(), "")
    return Position(os.path.normpath(where.path).removeprefix(root), where.line, where.column)


def _fact(finding: Finding, matrix: Matrix) -> Position | None:
    for fact in finding.facts[:1]:
        if fact in matrix.claims:
            return matrix.claims[fact].node.where
        component, _, version = fact.partition("==")
        if (component, version) in matrix.releases:
            return matrix.releases[component, version].node.where
    return None


def _words(finding: Finding) -> list[str]:
    """Names that may be keys: `target arm` is the key `arm`."""
    return [word for name in finding.names for word in (name, *name.split())]


def _keys(files: Sequence[str]) -> dict[str, Position]:
    """The keys of sources, rules, targets and components."""
    from toolmatrix.facts import yamlfile

    found: dict[str, Position] = {}
    for path in files:
        fields = yamlfile.read(path).fields or {}
        for name in ("sources", "rules", "targets", "components"):
            if name in fields:
                found = fields[name].keys | found
    return found
