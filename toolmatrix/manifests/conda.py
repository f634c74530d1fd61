"""Environments of conda: specifications of packages, and `environment.yml`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolmatrix.manifests import markers, requirements
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.model import CONDA, Asked, Item, NotRead, ProjectManifest, too_long
from toolmatrix.manifests.requirements import PackageIndexes
from toolmatrix.manifests.source_text import FileText, Traced

# `channel/subdir::name version build`, `name=version=build`, `name>=1,<2`, `name[version=1]` (conda, MatchSpec).
_SPEC = re.compile(
    r"(?:[^\s:]+::)?(?P<name>[A-Za-z0-9_][\w.-]*)"
    r"(?:\s*(?P<version>[=<>!~]+\s*[^\s\[=]+(?:,\s*[<>=!~]+\s*[^\s\[=]+)*|(?<=\s)[\d*][^\s\[]*))?"
    r"(?P<build>=[^\s=]*|\s+\S+)?$",
    re.ASCII,
)


def spec(text: Traced, unread: list[NotRead]) -> Iterator[Item]:
    """One specification of a package as an item."""
    text = text.strip()
    if (longer := too_long(text)) is not None:
        unread.append(longer)
        return
    found = _SPEC.match(text.text)
    # Of a file or an address the name need not tell what is in it.
    if found is None or text.text.startswith((".", "/")) or "://" in text.text:
        unread.append(NotRead(text=text, why="not a package specification that conda accepts"))
        return
    said = text.group(found, "version") if found["version"] else None
    yield Item(
        kind=CONDA,
        name=found["name"].lower(),
        specifier=selector(re.sub(r"\s", "", said.text)) if said else "",
        text=text,
        version=said,
    )


def selector(text: str) -> str:
    """The versions of a specification of conda, as PEP 440 writes them: `=1.2` is any of that series."""
    return " | ".join(
        ",".join(_clause(part.strip()) for part in alternative.split(",") if part.strip())
        for alternative in text.split("|")
    )


def _clause(part: str) -> str:
    if part.startswith("==") or part[:1] in "<>!~":
        # conda takes `>=1.2.*` for `>=1.2`, and PEP 440 refuses it.
        return part.removesuffix(".*") if part[:1] in "<>" else part
    version = part.lstrip("=")
    if version == "*":
        return "*"
    if part.startswith("="):
        return f"=={version.removesuffix('*').removesuffix('.')}.*"
    return f"=={version}"


def read(source: FileText, files: Files) -> ProjectManifest:
    """An `environment.yml` as one environment. Raises ManifestError."""
    unread: list[NotRead] = []
    root = markers.parse(source)
    items: list[Item] = []
    for one in root.get("dependencies").items():
        text = one.text()
        if text is not None:
            items += spec(text, unread)
            continue
        # A table among the packages is the list for pip, whose lines are those of a requirements file.
        held = [line for line in (part.text() for part in one.get("pip").items()) if line]
        items += (found.replace(command="pip") for found in _pip(held, files, unread, source))
    return ProjectManifest(
        kind="conda environment",
        environments=(Asked(name="", items=tuple(items)),) if items else (),
        unread=tuple(unread),
        sources=(source, *files.opened),
    )


def _pip(
    lines: list[Traced], files: Files, unread: list[NotRead], source: FileText
) -> Iterator[Item]:
    indexes, kept = PackageIndexes(), []
    for line in lines:
        found = re.match(r"(--?[\w-]+)[=\s]+(\S+)", line.text)
        if found and found[1] in requirements.INDEXES:
            indexes = indexes.with_option(found[1], found[2])
        elif found and found[1] in ("-r", "--requirement", "-c"):
            beside = files.beside(found[2], source.path)
            if beside is None:
                unread.append(NotRead(text=line, why="a file that is not beside it"))
            else:
                yield from requirements.read_requirements(
                    beside, files, unread, bounds=found[1] == "-c"
                )
        elif line.text.startswith("-"):
            unread.append(
                NotRead(text=line, why="an option of pip, or what it installs from an address")
            )
        else:
            kept.append(line)
    yield from requirements.several(kept, unread, indexes)
