"""Findings about the pip of a distribution whose Python is externally managed (PEP 668)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolmatrix.codes.manifests import ExternallyManaged
from toolmatrix.factbase.pulling import BASE
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import CONDA, IMAGE, PYTHON, SYSTEM, SYSTEM_PIP, Item
from toolmatrix.request.judgement import RequestedPart, finding_fields
from toolmatrix.request.manifests import plain
from toolmatrix.solve.request import Ask


def stopped(
    items: Sequence[Item], parts: Sequence[RequestedPart], environment: str
) -> Iterator[tuple[ExternallyManaged, tuple[RequestedPart, ...]]]:
    """What stops pip in an environment: the commands, and the image that has the mark."""
    images = [item for item in items if item.kind == IMAGE]
    commands = [item for item in items if item.kind == SYSTEM_PIP]
    distros = [part.asks[0].selector for part in parts if part.component == "distro"]
    if not commands or len(images) != 1 or len(distros) != 1:
        return
    (image,), (distro,) = images, distros
    own = called.python_of(distro)
    matches = filter(None, (called.system(item.name) for item in items if item.kind == SYSTEM))
    series = {match.groupdict().get("python") for match in matches} - {None, own}
    # Another Python may be the one of pip.
    others = series or any(item.kind in (CONDA, PYTHON) for item in items)
    if others or not called.is_managed(distro) or not called.is_bare(plain(image.name)):
        return
    # A command for another series, such as `python3.11 -m pip`, is one for another Python.
    own_pip = [item for item in commands if item.python in ("", own)]
    if not own_pip:
        return
    about = (*own_pip, image)
    named = tuple(
        RequestedPart(
            component=BASE,
            asks=(Ask(component=BASE, selector=image.name, text=item.text.text),),
            text=item.text.text,
            item=item,
        )
        for item in about
    )
    finding = ExternallyManaged(
        **finding_fields(named, environment), severity="error", distro=distro
    )
    yield finding, named
