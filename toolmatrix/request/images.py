"""Images that a file names: whether they can be pulled, and which near ones can."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolmatrix.factbase import pulling
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import ImageRecord
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import Item
from toolmatrix.value import Value

_SYSTEM = ("distro", "codename")
# The address of a recipe is written with the components of the image.
_FIELD = re.compile(r"\{(\w+)\}")
# What a file that installs packages of a distribution has, and where these are named to come from.
_INSTALLS = re.compile(r"\b(?:apt|apt-get|yum|dnf)\b[^\n]*\b(?:install|update)\b")
_HOST = re.compile(r"\b[a-z]+(?:\.[a-z]+)+\b")
# So many near images are named.
_NEAR = 3


class NamedImage(Value):
    """An image that a file names, with what lists say of it; `near` are others that can be pulled, nearest first."""

    item: Item
    name: str
    availability: pulling.Availability
    near: tuple[str, ...] = ()

    @property
    def recipe(self) -> str:
        """The address of the recipe of a deleted image, empty where that is unknown."""
        match = called.image(self.name)
        groups = match.groupdict() if match else {}
        return _FIELD.sub(lambda field: groups.get(field[1]) or "", self.availability.recipe)

    @property
    def installs(self) -> bool:
        """True if its file installs packages of the distribution, and names none of the mirrors in the notes."""
        text = self.item.text.source.text
        hosts = [host for note in self.availability.notes for host in _HOST.findall(note.note)]
        return bool(_INSTALLS.search(text)) and not any(host in text for host in hosts)

    @property
    def moves(self) -> bool:
        """True if the nearest has another major release, with which the rest of a file may not go."""
        return any(_release(self.name)[:1] != _release(image)[:1] for image in self.near[:1])


def named_image(index: Index, item: Item, name: str) -> NamedImage | None:
    """What lists say of an image, None where they are silent; one by its digest is not that of its tag."""
    if "@" in item.name:
        return None
    records = index.images()
    known = pulling.availability(records, name)
    if not known.pulls:
        return None
    near = _nearest(records, name) if known.pulls == "no" else ()
    return NamedImage(item=item, name=name, availability=known, near=near)


def tagged_versions(index: Index, match: re.Match[str], group: str) -> Sequence[str]:
    """The versions of one component that images have which are called the same but for it."""
    before, after = match.string[: match.start(group)], match.string[match.end(group) :]
    if called.is_series(match.string):
        return index.component(group.replace("_", "-")).versions
    return [
        tag[len(before) : len(tag) - len(after)]
        for tag in index.component(pulling.BASE).versions
        if tag.startswith(before) and tag.endswith(after) and len(tag) > len(before + after)
    ]


def _nearest(records: Sequence[ImageRecord], name: str) -> tuple[str, ...]:
    """Images of the same repository that can be pulled: those with the same contents but for a release come first."""
    own = called.image(name)
    if own is None:
        return ()
    repository = name.partition(":")[0] + ":"
    known = {
        other: pulling.availability(records, other)
        for other in pulling.references(records, repository)
    }
    fit = (other for other, each in known.items() if each.pulls == "yes" and not each.notes)
    matches = ((other, called.image(other)) for other in fit)
    distances = {
        other: _distance(own, match)
        for other, match in matches
        if match and _kind(match) == _kind(own)
    }
    return tuple(sorted(distances, key=distances.__getitem__)[:_NEAR])


def with_library(index: Index, name: str, library: str, releases: int) -> tuple[str, ...]:
    """The images nearest to one that have some release of a library which it does not have."""
    own, records = called.image(name), index.images()
    if own is None:
        return ()
    known, facts = index.scale(pulling.BASE), index.component(pulling.BASE)
    distances = {}
    for other in dict.fromkeys(pulling.references(records, name.partition(":")[0] + ":")):
        match, alike = called.image(other), called.alike(other)
        if match is None or alike not in known.versions or _purpose(other) != _purpose(name):
            continue
        about = facts.about(library, known.bit(alike))
        if any(binding.allowed & ~1 & releases for binding in about):
            # A release before it may lack what the rest of the file uses, and another one of the toolkit.
            distances[other] = _distance(own, match)
    return tuple(sorted(distances, key=distances.__getitem__)[:_NEAR])


def _purpose(name: str) -> bool:
    """Whether an image has what compiles."""
    return "-devel" in name


def _kind(match: re.Match[str]) -> str:
    """An image without its releases: `nvidia/cuda:-cudnn-devel` of 12.4.1-cudnn-devel-ubuntu22.04."""
    text = match[0]
    for start, end in sorted(map(match.span, _groups(match)), reverse=True):
        text = text[:start] + text[end:]
    return text.rstrip("-")


def _groups(match: re.Match[str]) -> Iterator[str]:
    yield from (name for name, value in match.groupdict().items() if value)


def _distance(own: re.Match[str], other: re.Match[str]) -> tuple[object, ...]:
    mine, theirs = own.groupdict(), other.groupdict()
    first, second = _release(own[0]), _release(other[0])
    moved = [name for name in _SYSTEM if mine.get(name) not in (None, theirs.get(name))]
    older = second < first
    steps: Sequence[int] = [-number for number in second] if older else second
    lacking = any(mine.get(name) and not theirs.get(name) for name in _SYSTEM)
    # The same series goes before the same system, and a newer release before an older one, which may lack what is used.
    return first[:2] != second[:2], lacking, bool(moved), first[:1] != second[:1], older, steps


def _release(image: str) -> list[int]:
    """The numbers of the release that an image is made of, such as that of CUDA."""
    match = called.image(image)
    names = match.re.groupindex if match else ()
    main = next((name for name in names if name not in _SYSTEM), "")
    version = match[main] if match and main else ""
    return [int(number) for number in re.findall(r"\d+", version)]
