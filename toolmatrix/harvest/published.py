"""How many final releases of each component the package index lists, and which is the newest: what coverage is of."""

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
    asked = sorted((owner, name) for name, owner in packages.items() if owner in known)
    rows = []
    with ThreadPoolExecutor(THREADS) as workers:
        # It gives answers back in the order of the questions, whichever came first: rows have to stand as they did.
        listed = workers.map(lambda one: project.releases(context.session, urls, one[1]), asked)
        for done, ((component, package), found) in enumerate(zip(asked, listed, strict=True), 1):
            # What is known by its series, such as 3.31, has one release for all of it.
            series = {tuple(one.version.split(".")[:2]) for one in found}
            rows.append([component, package, str(len(found)), str(len(series)), found[0].version])
            context.progress(done, len(asked))
    return {
        "sources": {
            "package-index": {
                "title": "Python package index: file lists",
                "at": f"packages {asked[0][1]} to {asked[-1][1]}, as the rows name them",
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
