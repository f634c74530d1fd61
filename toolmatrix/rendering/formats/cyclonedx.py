"""Bills of materials in CycloneDX 1.6: the future components of an image, each with its purl and its evidence.

Components that only the build needs, such as a compiler, have the scope `excluded`.

It is made before anything is built, and says so: releases are those of the lock, and dependencies of packages are not
in it. It has no date, and its serial number follows from the lock, so that the same lock makes the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from toolmatrix.errors import RenderError
from toolmatrix.rendering import common, quote

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from toolmatrix.lockfile.model import LockedComponent, LockedVariant
    from toolmatrix.rendering.model import ImagePlan, Job

    Part = dict[str, Any]

SUMMARY = "a bill of materials for each image, in CycloneDX"
SPECIFICATION = "1.6"
_INDEX = "--index-url"
# A part in front with a dot or a colon is a host, and a digest names one image for ever, as no tag does.
_REFERENCE = re.compile(
    r"(?:(?P<host>[^/]*[.:][^/]*|localhost)/)?(?P<path>[^:@]+)"
    r"(?::(?P<tag>[^@]+))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


def files(job: Job) -> dict[str, str]:
    """`NAME.cdx.json` for each image; raises RenderError for a value that has no place in a package URL."""
    return {
        common.file_name(image, ".cdx.json"): json.dumps(_bill(job, image), indent=2) + "\n"
        for image in job.images
    }


def _bill(job: Job, image: ImagePlan) -> Part:
    # The module brings a random generator and more, which no other format needs.
    from uuid import NAMESPACE_OID, uuid5

    root = f"image:{quote.plain('release', image.name)}"
    lock = quote.plain("digest", job.digest)
    components = [*_entries(image)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_OID, f'{lock} {image.name}')}",
        "version": 1,
        "metadata": {
            # It does not describe a built image.
            "lifecycles": [{"phase": "pre-build"}],
            "tools": {
                "components": [
                    {"type": "application", "name": "toolmatrix", "version": job.version}
                ]
            },
            "component": {
                "type": "container",
                "bom-ref": root,
                "name": f"{quote.plain('release', image.recipe.name)}-{image.name}",
            },
            "properties": _properties(_about(job, image)),
        },
        "components": components,
        "dependencies": [
            # Components with a scope were needed to build the image, which does not depend on them any more.
            {
                "ref": root,
                "dependsOn": [part["bom-ref"] for part in components if "scope" not in part],
            },
            *_brought_by_builds(image),
        ],
    }


def _about(job: Job, image: ImagePlan) -> Iterator[tuple[str, str]]:
    yield from (("written", line) for line in common.lines(job))
    yield "lock", job.digest
    yield "matrix", job.lock.matrix_digest
    yield "platform", image.locked.platform
    yield "evidence", image.locked.evidence
    there = _presence(image)
    for name, component in sorted(image.locked.components.items()):
        if component.floor:
            # It belongs to the machine on which the image runs.
            yield "host", f"{name} >={component.version}"
        elif name not in there:
            yield "not-in-image", f"{name} {component.version}"


def _presence(image: ImagePlan) -> dict[str, bool]:
    """The components that an image or its build holds: true for those that its last stage holds.

    They are those that the check of the image looks for, its base, and what is built or comes with a build.
    """
    stay = {name for name, probe in image.probes if probe.runtime or not image.artifacts}
    present = {"base-image": image.from_ == image.runtime.from_}
    present |= {name: name in stay for name, _ in image.probes}
    present |= dict.fromkeys((*(name for name, _ in image.built), *image.locked.variants), True)
    return {
        name: present.get(name, False) or present.get(component.inside, False)
        for name, component in sorted(image.locked.components.items())
        if not component.floor and (name in present or component.inside in present)
    }


def _entries(image: ImagePlan) -> Iterator[Part]:
    locked = image.locked
    builds = chain.from_iterable(build.requirements for build in locked.variants.values())
    requirements = map(_requirement, (*image.pip, *builds))
    packages = {canonicalize_name(package.name): package for package in requirements}
    for name, stays in _presence(image).items():
        component, build = locked.components[name], locked.variants.get(name)
        own = _requirement(build.requirements[0]) if build and build.requirements else None
        # Removed, so that the packages without a component are left.
        package = packages.pop(canonicalize_name(own.name if own else name), own)
        entry = {"bom-ref": str(quote.plain("release", name)), **_identity(image, name, package)}
        if not stays:
            entry["scope"] = "excluded"
        if build is not None and (index := _index(build.options)):
            entry["purl"] += f"?repository_url={index}"
        yield entry | {"properties": _properties(_evidence(name, component, build))}
    if image.runtime.from_ != image.from_:
        yield {"bom-ref": "runtime-image", **_image(image.runtime.from_), "properties": []}
    # Packages of pip that no component is called after, such as those that hold a library of CUDA.
    for name, package in sorted(packages.items()):
        yield {"bom-ref": f"pip:{name}", **_package(package), "properties": []}


def _index(options: Sequence[str]) -> str:
    """The index that a build is taken from instead of the one that pip asks anyway, as a purl has it."""
    from urllib.parse import quote as encoded

    index = options.index(_INDEX) + 1 if _INDEX in options else len(options)
    return encoded(quote.plain("url", options[index]), ":/") if index < len(options) else ""


def _identity(image: ImagePlan, name: str, package: Requirement | None) -> Part:
    component = image.locked.components[name]
    if name == "base-image":
        return _image(image.from_)
    if name == "distro":
        system = image.distro
        return _purl("operating-system", "generic", system.os, system.os_version)
    if package is not None:
        return _package(package, component.version)
    probes = [probe for built_name, probe in image.built if built_name == name]
    if any(probe.run[:1] == ("python",) for probe in probes):
        return _purl("library", "pypi", canonicalize_name(name), component.version)
    return _purl("application", "generic", name, component.version)


def _package(package: Requirement, version: str = "") -> Part:
    # A requirement that pins nothing else is `==`, or names an address.
    pinned = [specifier.version for specifier in package.specifier if specifier.operator == "=="]
    name = canonicalize_name(package.name)
    return _purl("library", "pypi", name, pinned[0] if pinned else version)


def _image(reference: str) -> Part:
    # A purl of type `oci` needs the digest of an image; one of `docker` may have a tag, and the hub is its default.
    match = _REFERENCE.fullmatch(quote.plain("reference", reference))
    if match is None:
        raise RenderError("an image reference cannot be read", found=f"`{reference}`")
    # `latest` is what Docker takes where a reference says neither.
    version = match["digest"] or match["tag"] or "latest"
    entry = _purl("container", "docker", match["path"], version)
    if match["host"]:
        entry["name"] = f"{match['host']}/{entry['name']}"
        entry["purl"] += f"?repository_url={match['host']}"
    return entry


def _purl(kind: str, scheme: str, name: str, version: str) -> Part:
    # Both refuse characters that are invalid in a name or a release; of the others only a plus has to be encoded.
    encoded = version.replace("+", "%2B")
    # A digest was read by the pattern of references; its colon has no place in a release.
    if version and not version.startswith("sha256:"):
        quote.plain("release", version)
    purl = f"pkg:{scheme}/{quote.plain('path', name)}" + (f"@{encoded}" if encoded else "")
    # Nightly builds are asked for by name alone.
    return {"type": kind, "name": name, **({"version": version} if version else {}), "purl": purl}


def _evidence(
    name: str, component: LockedComponent, build: LockedVariant | None
) -> Iterator[tuple[str, str]]:
    yield "component", name
    yield "evidence", component.evidence
    if build is not None:
        yield "build", build.build
        yield "install", " ".join(build.install)
    if component.inside:
        yield "inside", component.inside
    yield from (("fact", fact) for fact in component.facts)
    yield from (("disputed", fact) for fact in component.disputed)


def _brought_by_builds(image: ImagePlan) -> Iterator[Part]:
    """The components that come with the builds of an image, by the installed component."""
    by_build: dict[str, list[str]] = {}
    for name in _presence(image):
        inside = image.locked.components[name].inside
        if inside:
            by_build.setdefault(inside, []).append(name)
    return ({"ref": name, "dependsOn": names} for name, names in sorted(by_build.items()))


def _properties(pairs: Iterable[tuple[str, str]]) -> list[Part]:
    # CycloneDX asks for a namespace of its own in front of the names that a tool gives its properties.
    return [{"name": f"toolmatrix:{name}", "value": text} for name, text in pairs]


def _requirement(text: str) -> Requirement:
    from packaging.requirements import Requirement

    return Requirement(common.requirement(text))
