"""What files of projects call components: images, packages, variables and features, as `names.yaml` has them."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import Any

from toolmatrix.resources import load_yaml, manifest_names_path
from toolmatrix.value import NamedTuple


@lru_cache(maxsize=1)
def _read() -> Mapping[str, Any]:
    catalog: Mapping[str, Any] = load_yaml(manifest_names_path())
    return catalog


@lru_cache(maxsize=1)
def _patterns() -> Mapping[str, Sequence[re.Pattern[str]]]:
    return {
        kind: [re.compile(entry[field]) for entry in _read()[kind]]
        for kind, field in (("images", "image"), ("system", "package"))
    }


def image(reference: str) -> re.Match[str] | None:
    """The match of an image by its tag, whose groups are components; the reference has no registry of the default."""
    return _matched("images", reference)


def contents(match: re.Match[str]) -> Mapping[str, str]:
    """The components that a tag names, each with its group in the match."""
    return {name.replace("_", "-"): name for name, value in match.groupdict().items() if value}


def _entry(reference: str) -> Mapping[str, Any]:
    """What is known of an image beside its tag; empty where no pattern matches it."""
    entries = zip(_patterns()["images"], _read()["images"], strict=True)
    return next((entry for pattern, entry in entries if pattern.fullmatch(reference)), {})


def packages_in(reference: str) -> Sequence[str] | None:
    """The packages of Python in an image beside those of its tag; None where nothing is known of it."""
    entry = _entry(reference)
    packages: Sequence[str] | None = entry.get("holds", ()) if entry else None
    return packages


def is_bare(reference: str) -> bool:
    """True for an image with nothing of Python but what its distribution installs."""
    return bool(_entry(reference).get("bare"))


def is_series(reference: str) -> bool:
    """True for an image that is a release of its component, whose releases are the tags."""
    return bool(_entry(reference).get("series"))


def alike(reference: str) -> str:
    """The name of an image with the same toolkit and libraries; that of the image itself where none is known."""
    entry = _entry(reference)
    return reference.replace(*entry["alike"]) if "alike" in entry else reference


def lacking(reference: str) -> frozenset[str]:
    """The libraries that are known not to be in an image."""
    return frozenset(
        component
        for entry in _read()["lacking"]
        if re.fullmatch(entry["image"], reference)
        for component in entry["components"]
    )


def system(package: str) -> re.Match[str] | None:
    """The match of a package of a distribution."""
    return _matched("system", package)


def _matched(kind: str, text: str) -> re.Match[str] | None:
    matches = (pattern.fullmatch(text) for pattern in _patterns()[kind])
    return next(filter(None, matches), None)


def brings_python(package: str) -> bool:
    """True for a package that brings the Python of its distribution."""
    return package.partition("=")[0] in _read()["python_packages"]


def brings_pip(package: str) -> bool:
    """True for a package that brings the pip of its distribution."""
    return package.partition("=")[0] in _read()["pip_packages"]


def python_of(distro: str) -> str:
    """The series that a distribution calls python3, empty where it is unknown."""
    series = {entry["distro"]: str(entry["python"]) for entry in _read()["pythons"]}
    return series.get(distro, "")


def is_managed(distro: str) -> bool:
    """Whether pip installs nothing for the Python of a distribution, as that is externally managed (PEP 668)."""
    return any(entry["distro"] == distro for entry in _read()["managed"])


def of_conda(package: str) -> str:
    """The component that a package of conda is of, empty where it is called as on the index."""
    components = {entry["package"]: str(entry["component"]) for entry in _read()["conda"]}
    return components.get(package, "")


def builds_of_conda(package: str, toolkit: str) -> Mapping[str, str]:
    """Versions of the toolkit that releases of a package of conda were built for; empty where that was not read."""
    return {
        entry["releases"]: entry["versions"]
        for entry in _read()["conda_builds"]["builds"]
        if (entry["package"], entry["toolkit"]) == (package, toolkit)
    }


def is_known_channel(name: str) -> bool:
    """Whether the packages of a channel of conda are those of the index under the same versions."""
    return _channel(name) in _read()["conda_channels"]["channels"]


def _channel(name: str) -> str:
    return re.sub(r"^[a-z]+://[^/]+/", "", name.strip()).partition("/")[0]


def made_as_wheels(component: str, image: str, channels: Sequence[str]) -> str:
    """The releases whose build in an image, or in the first channel of conda that has one, has the archs of its wheels.

    Empty where nothing says so.
    """
    named = [_channel(name) for name in channels]
    for entry in _read()["made_as_wheels"]:
        if entry["component"] == component and (
            re.fullmatch(entry.get("image", ""), image) if image else _is_first(entry, named)
        ):
            return str(entry["releases"])
    return ""


def _is_first(entry: Mapping[str, Any], channels: Sequence[str]) -> bool:
    # conda takes a package from the first channel that has it.
    makers = (entry["channel"], *entry["rivals"]) if "channel" in entry else ()
    return bool(makers) and next((name for name in channels if name in makers), "") == makers[0]


def first_of_conda(package: str) -> tuple[str, str]:
    """The first release of a package of conda and the day of that reading; both empty where it is not known."""
    for entry in _read()["conda"]:
        if entry["package"] == package and "since" in entry:
            return entry["since"], str(_read()["sources"][entry["source"]]["read"])
    return "", ""


@lru_cache(maxsize=1)
def variables() -> Mapping[str, Mapping[str, Any]]:
    """The variables that list codegen archs: how a word of theirs looks, and the archs that it names."""
    return {entry["name"]: entry for entry in _read()["variables"]}


def feature(name: str) -> Mapping[str, str]:
    """The components whose version the options of a feature set, by the option."""
    plain = re.sub(r"[:@][^/]*$", "", name)
    return {
        entry["option"]: entry["component"]
        for entry in _read()["features"]
        if plain.endswith("/" + entry["feature"])
    }


def family(component: str) -> tuple[str, bool]:
    """From which release on later ones of its major replace one, and whether earlier ones do; empty without one."""
    for entry in _read()["families"]:
        if entry["component"] == component:
            return entry["from"], entry.get("back", False)
    return "", False


def library_packages() -> Mapping[str, str]:
    """The packages of libraries that extras of frameworks bring, by component; `{cuda}` is the major of the toolkit."""
    packages_by_component: Mapping[str, str] = _read()["library_packages"]["packages"]
    return packages_by_component


def library(package: str) -> tuple[str, str]:
    """The component of a package with a library, and the major of the toolkit that it is for; both empty for others."""
    for component, name in library_packages().items():
        if match := re.fullmatch(name.format(cuda=r"(\d+)"), package):
            return component, match[1]
    return "", ""


def is_bundled(package: str, beside: Container[str]) -> bool:
    """True for a package of a library that one of some components requires at a release of its own."""
    entry = _read()["bundled_packages"]
    return entry["of"] in beside and re.fullmatch(entry["packages"], package) is not None


def wheels_alone() -> frozenset[str]:
    """Components that have wheels and no source distribution on the package index."""
    return frozenset(_read()["wheels_alone"]["packages"])


def may_be_at(package: str, address: str) -> bool:
    """False for a package that an index is not known to have, which is for some packages alone."""
    entry = _read()["index_packages"]
    if not re.fullmatch(entry["address"], address):
        return True
    return package in entry["packages"] or package.startswith(tuple(entry["families"]))


def backend_index(backend: str, package: str) -> str:
    """The only index from which uv takes a package with a backend for PyTorch; empty where it takes any."""
    entry = _read()["torch_backend"]
    address: str = entry["address"].format(backend=backend)
    named = package in entry["packages"] and re.fullmatch(entry["backend"], backend)
    return address if named else ""


class Stub(NamedTuple):
    """A package whose releases stop their installer, unless a variable is set; `instead` is the one that is meant.

    Without releases the index has no such package.
    """

    instead: str
    releases: Sequence[str]
    variable: str

    @property
    def reason(self) -> str:
        """Why it cannot be installed."""
        why = "its newest release only stops" if self.releases else "the index has no such package"
        return f"{why}, and {'names' if self.releases else 'what is meant is'} {self.instead}"

    def admitted(self, specifier: str) -> bool:
        """Whether a line takes one of its releases, as pip does not go on to another one where it stops."""
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        # Tables of projects have operators of their own.
        try:
            wanted = SpecifierSet(specifier)
        except InvalidSpecifier:
            return not self.releases
        return not self.releases or any(map(wanted.contains, self.releases))


def stub(package: str) -> Stub | None:
    """What is known of a package that stops its installer, None for any other."""
    for entry in _read()["stubs"]:
        if entry["package"] == package:
            return Stub(entry["instead"], entry["releases"], entry.get("unless", ""))
    return None


class SourceBuild(NamedTuple):
    """What a source distribution needs, or why it does not build, for some releases and Pythons."""

    releases: str
    python: str
    needs: str
    why: str
    unless: str


@lru_cache(maxsize=1)
def source_builds() -> Mapping[str, SourceBuild]:
    """The packages whose source distributions do not build by themselves."""
    builds = {}
    for entry in _read()["source_builds"]:
        fields = [entry.get(name, "") for name in SourceBuild._fields]
        builds[entry["package"]] = SourceBuild(*fields)
    return builds


def package_name(name: str) -> str:
    """The name of a package as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def importable(dotted: str) -> str:
    """The part of the dotted name of a module that determines its package."""
    name = dotted
    while "." in name and name not in _read()["modules"]["packages"]:
        name = name.rpartition(".")[0]
    return name


def providers(module: str, known: Container[str] = ()) -> Sequence[str]:
    """The packages that have a module, the most used first; nothing where none is known.

    One of the packages that are `known` has the module of its name.
    """
    modules = _read()["modules"]
    if module in modules["packages"]:
        packages_with: Sequence[str] = modules["packages"][module]
        return packages_with
    own = package_name(module)
    return (own,) if own in modules["alike"] or own in known else ()
