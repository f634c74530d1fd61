"""Lock files of conda-lock and pixi, and lists of explicit URLs: exact packages by environment and platform."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from toolmatrix.manifests import requirements
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.model import (
    CONDA,
    PIP,
    PLATFORM,
    FileText,
    Item,
    ManifestEnvironment,
    ProjectManifest,
    Traced,
    bounded,
)
from toolmatrix.manifests.requirements import Marked

# The platforms of conda that facts are about.
_PLATFORMS = {"linux-64": "linux/amd64", "linux-aarch64": "linux/arm64"}
_CONDA = re.compile(r"(?P<name>[^/]+)-(?P<version>[^-/]+)-[^-/]+\.(?:conda|tar\.bz2)")
_PYPI = re.compile(r"(?P<name>[^/]+?)-(?P<version>\d[^-/]*?)(?:-[^/]*\.whl|\.tar\.gz|\.zip)")


def _item(kind: str, name: str, version: str, text: Traced, address: str = "") -> Item:
    """A package with its exact version; only one with a local version says where it is from."""
    return Item(
        kind=kind,
        name=name,
        specifier=f"=={version}",
        text=Traced(text.source, f"{name}=={version}", [text.at[0]] * (len(name + version) + 2)),
        indexes=(address,) if kind == PIP and "+" in version else (),
        command=kind,
    )


def _of_address(kind: str, text: Traced) -> Iterator[Item]:
    """The package that the name of a file at the end of an address has."""
    name = unquote(re.sub(r"[#?].*", "", text.text).rpartition("/")[2])
    match = (_CONDA if kind == CONDA else _PYPI).fullmatch(name)
    if match:
        yield _item(kind, match["name"], match["version"], text, text.text)


def _on(platform: Traced) -> Item:
    return Item(kind=PLATFORM, name=_PLATFORMS[platform.text], specifier="", text=platform)


def read_explicit(source: FileText, files: Files) -> ProjectManifest:
    """A list of URLs behind `@EXPLICIT`, as conda writes it."""
    lines = (line.strip() for line in source.lines() if "://" in line.text)
    items = tuple(item for line in lines for item in _of_address(CONDA, line))
    environments = bounded(source.path, [ManifestEnvironment(name="", items=items)])
    return files.manifest("conda lock", source, environments, ())


def read_pixi(source: FileText, files: Files) -> ProjectManifest:
    """A `pixi.lock`. Raises ManifestError."""
    environments = bounded(source.path, _of_pixi(requirements.parse(source)))
    return files.manifest("pixi.lock", source, environments, ())


def _of_pixi(root: Marked) -> Iterator[ManifestEnvironment]:
    for name, (_, environment) in root.get("environments").fields().items():
        for platform, (key, packages) in environment.get("packages").fields().items():
            if platform in _PLATFORMS:
                items = [_on(key)]
                for entry in packages.items():
                    for kind, (_, value) in entry.fields().items():
                        text = value.text() if kind in (CONDA, "pypi") else None
                        items += _of_address(CONDA if kind == CONDA else PIP, text) if text else ()
                yield ManifestEnvironment(name=f"{name} {platform}", items=tuple(items))


def read_conda_lock(source: FileText, files: Files) -> ProjectManifest:
    """A `conda-lock.yml`. Raises ManifestError."""
    environments = bounded(source.path, _of_conda_lock(requirements.parse(source)))
    return files.manifest("conda-lock", source, environments, ())


def _of_conda_lock(root: Marked) -> Iterator[ManifestEnvironment]:
    by_platform: dict[str, dict[str, list[Item]]] = {}
    for entry in root.get("package").items():
        fields = {key: text for key, (_, value) in entry.fields().items() if (text := value.text())}
        name, version, platform = (fields.get(key) for key in ("name", "version", "platform"))
        if not name or not version or not platform or platform.text not in _PLATFORMS:
            continue
        kind = PIP if _plain(fields.get("manager")) == PIP else CONDA
        item = _item(kind, name.text, version.text, name, _plain(fields.get("url")))
        categories = by_platform.setdefault(platform.text, {"main": [_on(platform)]})
        categories.setdefault(_plain(fields.get("category")) or "main", []).append(item)
    for platform_name, categories in by_platform.items():
        for category, items in categories.items():
            base: Iterable[Item] = () if category == "main" else categories["main"]
            title = platform_name if category == "main" else f"{platform_name} {category}"
            yield ManifestEnvironment(name=title, items=(*base, *items))


def _plain(text: Traced | None) -> str:
    return text.text if text else ""
