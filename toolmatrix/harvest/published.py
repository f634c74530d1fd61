"""The number of final releases of each component on the package index, and the newest: the base of coverage."""

from __future__ import annotations

from typing import Any

from toolmatrix.factbase import pieces
from toolmatrix.harvest import families, project
from toolmatrix.harvest.families import Family, HarvestContext

COLUMNS = ("component", "package", "releases", "series", "newest")
"""The columns of the data table `published`."""


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """The data table `published`, a row for each package of a component. Raises ToolmatrixError."""
    own = pieces.entries(family.only((), ("packages",)), "packages")
    packages = {
        **context.packages,
        **{name: node.string("a component") for name, node in own.items()},
    }
    urls = families.index_urls(context)
    known = context.components or frozenset()
    pairs = sorted((owner, name) for name, owner in packages.items() if owner in known)
    published = families.run_parallel(
        lambda pair: project.releases(context.session, urls, pair[1]), pairs, context.progress
    )
    rows = []
    for (component, package), releases in zip(pairs, published, strict=True):
        # Components that are known by series, such as 3.31, have one release for each.
        series = {tuple(release.version.split(".")[:2]) for release in releases}
        newest = releases[0].version
        rows.append([component, package, str(len(releases)), str(len(series)), newest])
    return {
        "sources": {
            "package-index": {
                "title": "Python package index: file lists",
                "at": f"packages {pairs[0][1]} to {pairs[-1][1]}, as the rows name them",
                "read": context.day.isoformat(),
            }
        },
        "data": [
            {
                "id": family.name,
                "about": "final releases on the package index",
                "source": "package-index",
                "where": "file list of each package",
                "evidence": "artifact",
                "columns": list(COLUMNS),
                "rows": rows,
            }
        ],
    }
