"""`Pipfile` and `pixi.toml`: tables of packages by kind and environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolmatrix import toml
from toolmatrix.errors import ManifestError
from toolmatrix.manifests import requirements
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.model import (
    CONDA,
    PIP,
    PYTHON,
    FileText,
    Item,
    ManifestEnvironment,
    NotRead,
    ProjectManifest,
    Traced,
    bounded,
)
from toolmatrix.manifests.toml_texts import TomlTexts, table, tables

Table = Mapping[str, Any]
_LINUX = ("", "target.linux.", "target.linux-64.")


class _Packages:
    """The packages of a TOML file, by the tables that they are in."""

    def __init__(self, source: FileText) -> None:
        self.body: Table = toml.parse(source.text, source.path, ManifestError, "the file")
        self.texts = TomlTexts(source)
        self.indexes: dict[str, str] = {}
        self.unread: list[NotRead] = []

    def table(self, path: str) -> Table:
        """A table by its name, from whose head on the places of its strings are looked for."""
        self.texts.section(path)
        current = self.body
        for key in path.split("."):
            current = table(current.get(key))
        return current

    def packages(self, kind: str, path: str, indexes: Sequence[str] = ()) -> Iterator[Item]:
        """The packages of a table: each a version, or a table with more; `indexes` are looked in for all."""
        for name, entry in self.table(path).items():
            if not isinstance(entry, (str, dict)):
                continue
            fields = {"version": entry} if isinstance(entry, str) else table(entry)
            version = str(fields.get("version", "*"))
            at = self.texts.of(version if "version" in fields else "")
            # The next of the same version is behind it.
            self.texts.position = at.at[-1] if at.span else self.texts.position
            marker = fields.get("markers")
            applies = requirements.marked(str(marker)) if marker else True
            if {"git", "path", "file", "url"} & fields.keys():
                applies = "its source is not an index"
            whole = name if version == "*" else f"{name} {version}"
            text = Traced(at.source, whole, [at.at[0] if at else self.texts.position] * len(whole))
            if isinstance(applies, str):
                self.unread.append(NotRead(text=text, why=applies))
            elif applies:
                index = str(fields.get("index", ""))
                index = self.indexes.get(index, index)
                extras = fields.get("extras")
                yield Item(
                    kind=kind,
                    name=name,
                    specifier=_specifier(kind, version),
                    text=text,
                    version=at if at.span else None,
                    extras=tuple(map(str, extras)) if isinstance(extras, list) else (),
                    indexes=(index,) if index else tuple(indexes),
                    alone=bool(index),
                    command=kind,
                )


def _specifier(kind: str, version: str) -> str:
    if version == "*":
        return ""
    return requirements.conda_selector(version.replace(" ", "")) if kind == CONDA else version


def read_pipfile(source: FileText, files: Files) -> ProjectManifest:
    """A `Pipfile`: its packages, and those for development with them. Raises ManifestError."""
    reader = _Packages(source)
    own = [str(origin.get("url", "")) for origin in tables(reader.body.get("source"))]
    names = [str(origin.get("name")) for origin in tables(reader.body.get("source"))]
    # The first source takes the place of the default index.
    reader.indexes = {**dict(zip(names, own, strict=True)), names[0]: ""} if names else {}
    requires = reader.table("requires")
    version = requires.get("python_version", requires.get("python_full_version"))
    base: list[Item] = []
    if isinstance(version, str):
        text = reader.texts.of(version)
        base.append(
            Item(kind=PYTHON, name="python", specifier=f"=={version}", text=text, version=text)
        )
    base += reader.packages(PIP, "packages", own[1:])
    dev = [*reader.packages(PIP, "dev-packages", own[1:])]
    environments = [ManifestEnvironment(name="", items=tuple(base))]
    environments += [ManifestEnvironment(name="dev", items=(*base, *dev))] if dev else []
    return files.manifest("Pipfile", source, bounded(source.path, environments), reader.unread)


def read_pixi(source: FileText, files: Files) -> ProjectManifest:
    """A `pixi.toml`: each environment with the packages of its features for Linux. Raises ManifestError."""
    reader = _Packages(source)
    features = {
        name: [*_of_feature(reader, name)] for name in ("", *table(reader.body.get("feature")))
    }
    wanted: dict[str, tuple[str, ...]] = {"default": ("",)}
    for name, entry in reader.table("environments").items():
        fields = {"features": entry} if isinstance(entry, list) else table(entry)
        named = fields.get("features")
        own = tuple(map(str, named)) if isinstance(named, list) else ()
        wanted[name] = own if fields.get("no-default-feature") else ("", *own)
    environments = bounded(
        source.path,
        (
            ManifestEnvironment(
                name=name,
                items=tuple(item for feature in own for item in features.get(feature, ())),
            )
            for name, own in wanted.items()
        ),
    )
    return files.manifest("pixi", source, environments, reader.unread)


def _of_feature(reader: _Packages, name: str) -> Iterator[Item]:
    """The packages of a feature, or of all environments; those of one platform take the place of the others."""
    head = f"feature.{name}." if name else ""
    options = reader.table(f"{head}pypi-options")
    more = options.get("extra-index-urls")
    indexes = [
        str(address)
        for address in (options.get("index-url"), *(more if isinstance(more, list) else ()))
        if address
    ]
    packages: dict[tuple[str, str], Item] = {}
    for target in _LINUX:
        for kind, key in ((CONDA, "dependencies"), (PIP, "pypi-dependencies")):
            for item in reader.packages(kind, f"{head}{target}{key}", indexes):
                packages[kind, item.name] = item
    yield from packages.values()
