"""The number of final releases of each component on the package index, and the newest: the base of coverage."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from toolmatrix.harvest import families, project
from toolmatrix.harvest.families import Family, HarvestContext
from toolmatrix.harvest.index import THREADS

COLUMNS = ("component", "package", "releases", "series", "newest")
"""The columns of the data table `published`."""


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """The data table `published`, a row for each package of a component. Raises ToolmatrixError."""
    fields = family.node.only(f"family `{family.name}`", ("kind", "about", "packages"))
    own = fields["packages"].mapping("packages") if "packages" in fields else {}
    packages = {
        **context.packages,
        **{name: node.string("a component") for name, node in own.items()},
    }
    where = families.indexes(context.env)
    urls = (context.place,) if context.place else where.urls
    context.session.trust(where.certificates, where.proxy)
    known = context.components or frozenset()
    pairs = sorted((owner, name) for name, owner in packages.items() if owner in known)
    rows = []
    with ThreadPoolExecutor(THREADS) as workers:
        # `map` keeps the order, so rows do not depend on which answer comes first.
        published = workers.map(
            lambda pair: project.releases(context.session, urls, pair[1]), pairs
        )
        for done, ((component, package), releases) in enumerate(
            zip(pairs, published, strict=True), 1
        ):
            # Components that are known by series, such as 3.31, have one release for each.
            series = {tuple(release.version.split(".")[:2]) for release in releases}
            rows.append(
                [component, package, str(len(releases)), str(len(series)), releases[0].version]
            )
            context.progress(done, len(pairs))
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
