"""The releases of components that sentences of READMEs name, where they are of one release each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import and_

from toolmatrix.errors import ManifestError
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.versions import SelectorError
from toolmatrix.manifests import files, prose
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import PYTHON, FileText, Item
from toolmatrix.request.names import Names

# Statements that are compared.
_MOST = 1000


def documented_releases(index: Index, folder: str) -> dict[str, Item]:
    """By component the narrowest statement about it, as an item with its name; none where two are of no one release."""
    heads, names = index.header["components"], Names(index)
    items: dict[str, list[Item]] = {}
    named = (release for source in _texts(folder) for release in prose.named_releases(source))
    for release in islice(named, _MOST):
        package = called.package_name(release.item.name)
        component = called.of_conda(package) or names.called(package)
        head = heads.get(component)
        # Without a sign of comparison a name may be a word of the language.
        is_clear = release.is_compared or release.item.kind == PYTHON
        if not head or not (is_clear or head["framework"] or head["accelerators"]):
            continue
        # What another package requires is no statement about this code.
        if not any(names.called(word) in heads for word in release.subject):
            items.setdefault(component, []).append(release.item.replace(name=component))
    narrowest = {component: _narrowest(index, component, own) for component, own in items.items()}
    return {component: item for component, item in narrowest.items() if item is not None}


def _texts(folder: str) -> Iterator[FileText]:
    """The READMEs and the instructions at the top and in the folder of documentation, as far as they can be read."""
    for path in (folder, os.path.join(folder, "docs")):
        for name in sorted(os.listdir(path)) if os.path.isdir(path) else ():
            if prose.FILES.fullmatch(name):
                try:
                    source = files.read_file(os.path.normpath(os.path.join(path, name)), folder)
                except ManifestError:
                    continue
                yield source


def _narrowest(index: Index, component: str, items: Sequence[Item]) -> Item | None:
    scale = index.scale(component)
    try:
        masks = [scale.select(item.specifier) for item in items]
    except SelectorError:
        return None
    both = reduce(and_, masks)
    return next(
        (item for item, mask in zip(items, masks, strict=True) if both and mask == both), None
    )
