"""Findings about packages whose newest releases only say that the package has another name, and stop the installer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolmatrix.codes.manifests import StubPackage
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import PIP, Item
from toolmatrix.request.judgement import RequestedPart, finding_fields
from toolmatrix.solve.request import Ask


def stubs(
    items: Sequence[Item], environment: str
) -> Iterator[tuple[StubPackage, tuple[RequestedPart, ...]]]:
    """The packages of an environment that stop their installer."""
    texts = {item.text.source.path: item.text.source.text for item in items}
    for item in items:
        name = called.package_name(item.name)
        stub = called.stub(name)
        # Another index may have a package of that name.
        if stub is None or item.kind != PIP or item.bounds or item.indexes or item.installed:
            continue
        allowed = stub.variable and any(stub.variable in text for text in texts.values())
        if allowed or not stub.admitted(item.specifier):
            continue
        text = item.text.text
        ask = Ask(component=name, selector=item.specifier or "*", text=text)
        part = RequestedPart(component=name, asks=(ask,), text=text, item=item)
        finding = StubPackage(
            **finding_fields((part,), environment),
            severity="error",
            instead=stub.instead,
            why=stub.reason,
        )
        yield finding, (part,)
