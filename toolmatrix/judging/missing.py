"""Findings about what a file names and is not there: releases, images, and mirrors of packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolmatrix.codes.manifests import (
    ImageGone,
    ManifestFinding,
    MirrorsGone,
    NoLocalVersion,
    NoSuchRelease,
)
from toolmatrix.factbase import pulling
from toolmatrix.request.images import NamedImage
from toolmatrix.request.judgement import MissingRelease, RequestedPart, finding_fields
from toolmatrix.solve.request import Ask


def releases(
    missing: Iterable[MissingRelease], environment: str
) -> Iterator[tuple[ManifestFinding, RequestedPart]]:
    """Releases that the index does not have, each with the part that names it."""
    for each in missing:
        fields = finding_fields((each.part,), environment) | {
            "severity": "error",
            "release": each.release,
        }
        finding: ManifestFinding = NoLocalVersion(**fields, options=each.options)
        if each.near:
            fields |= {"near": each.near, "instead": f"{each.reason} (read {each.read})"}
            finding = NoSuchRelease(**fields)
        yield finding, each.part


def images(
    named: Iterable[NamedImage], environment: str
) -> Iterator[tuple[ManifestFinding, RequestedPart]]:
    """Images that cannot be pulled, and those in which packages of their distribution cannot be installed."""
    for image in named:
        item, availability = image.item, image.availability
        ask = Ask(component=pulling.BASE, selector=image.name, text=item.name)
        part = RequestedPart(
            component=pulling.BASE, asks=(ask,), text=item.name, item=item, version=item.text
        )
        fields = finding_fields((part,), environment) | {"image": image.name}
        if availability.pulls == "no":
            gone = ImageGone(
                **fields,
                severity="error",
                facts=availability.facts,
                since=availability.since,
                near=image.near,
                moves=image.moves,
                recipe=image.recipe,
            )
            yield gone, part
        for record in availability.notes if image.installs else ():
            facts = (record.fact,)
            yield MirrorsGone(**fields, severity="warning", facts=facts, why=record.note), part
