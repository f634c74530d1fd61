"""Findings about what a file names and is not there: releases, images, and mirrors of packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from toolmatrix.codes.manifests import (
    ImageGone,
    ManifestFinding,
    MirrorsGone,
    NeverBuilt,
    NoLocalVersion,
    NoSuchRelease,
)
from toolmatrix.factbase import pulling
from toolmatrix.factbase.index import Index
from toolmatrix.judging.joins import as_wheel
from toolmatrix.manifests.model import IMAGE, Item
from toolmatrix.request.images import NamedImage
from toolmatrix.request.judgement import MissingRelease, RequestedPart, finding_fields, has_answer
from toolmatrix.request.manifests import plain
from toolmatrix.solve.request import Ask, Request


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


def unbuilt(
    index: Index,
    parts: Sequence[RequestedPart],
    items: Sequence[Item],
    request: Callable[[Sequence[RequestedPart], str, str, str], Request],
    environment: str,
) -> Iterator[tuple[ManifestFinding, RequestedPart]]:
    """Images of a framework that is compiled as its wheels are, and of a toolkit for which there is no wheel."""
    target = next(iter(index.header["targets"]))

    def has_wheel(accelerator: str, *wanted: RequestedPart) -> bool:
        # A build for the processor has no toolkit, so the accelerator is no default.
        alone = request(wanted, target, "wheel", accelerator)
        asks = tuple(ask.replace(implied=False) for ask in alone.asks)
        return has_answer(index, alone.replace(asks=asks))

    for part in parts:
        image = plain(part.item.name) if part.item.kind == IMAGE else ""
        is_listed = not image or pulling.availability(index.images(), image).pulls
        wheel = () if is_listed else as_wheel(part, parts, items)
        for toolkit in wheel[1:]:
            own = toolkit.component
            # Of a release without any wheel that is known it says nothing.
            if not has_wheel(own, wheel[0]) or has_wheel(own, wheel[0], toolkit):
                continue
            fields = finding_fields((part,), environment) | {
                "severity": "warning",
                "image": part.item.name,
            }
            release, version = (each.text.partition(" of ")[0] for each in (part, toolkit))
            yield NeverBuilt(**fields, release=release, toolkit=version), part
