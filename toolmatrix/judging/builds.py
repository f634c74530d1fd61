"""Findings about source distributions that do not build where a file installs them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolmatrix.codes.manifests import BuiltBySource, DoesNotBuild
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.lookups import attributes
from toolmatrix.judging.installs import Installation
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import IMAGE, PIP
from toolmatrix.request.judgement import (
    ManifestRefusal,
    RequestedPart,
    RequestedParts,
    finding_fields,
)

# Kinds of files that say all that is installed before: a list may be installed behind another command.
_ALL_COMMANDS = frozenset(
    (
        "Dockerfile",
        "GitHub workflow",
        "GitLab pipeline",
        "cog.yaml",
        "compose file",
        "conda environment",
        "devcontainer",
    )
)
_SHARED = re.compile(
    r"no.build.isolation|extra-build-dependencies|dependency-metadata", re.IGNORECASE
)


def unbuildable(
    run: Installation, parts: RequestedParts, kind: str, refusals: Sequence[ManifestRefusal]
) -> Iterator[tuple[ManifestRefusal | None, DoesNotBuild, tuple[RequestedPart, ...]]]:
    """Each finding with its parts, and the warning about a missing wheel in whose place it comes, if there is one."""
    for refusal in refusals:
        finding, about = refusal.finding, refusal.parts
        subjects = [part.component for part in about] + [each.subject for each in finding.grounds]
        for name in dict.fromkeys(subjects if isinstance(finding, BuiltBySource) else ()):
            if why := _without_wheel(run.index, name, about):
                first = [part for part in about if part.component not in (name, "python")]
                own = [part for part in about if part.component == name] or first
                about = (*own, *(part for part in about if part not in own))
                later = _later(run.index, name)
                finding = _finding(parts, about, why, later, "error").replace(package=name)
                yield refusal, finding, about
                break
    for part in parts.parts:
        build = called.source_builds().get(part.component)
        item = part.item
        if build is None or item.kind != PIP or item.bounds or item.indexes or item.installed:
            continue
        if build.python or not _admits(run.index, part, build.releases):
            continue
        if build.needs:
            text, advice, severity = _needs(run, part, build.needs, kind)
        else:
            allowed = build.unless and re.search(build.unless, item.text.source.text)
            stops = not allowed and _without_wheels(run.index, part)
            text = build.why if stops else ""
            advice, severity = _later(run.index, part.component), "error"
        if text:
            yield None, _finding(parts, (part,), text, advice, severity), (part,)


def _without_wheel(index: Index, name: str, parts: Sequence[RequestedPart]) -> str:
    """Why the source distribution of a package without a wheel does not build; empty where it may."""
    build = called.source_builds().get(name)
    own = [part for part in parts if part.component == name]
    # What requires it leaves no other release, else it would have a wheel.
    if (
        build is None
        or build.needs
        or not all(_admits(index, part, build.releases) for part in own)
    ):
        return ""
    pythons = [part for part in parts if part.component == "python"]
    named = not build.python or any(_admits(index, part, build.python) for part in pythons)
    text = parts[0].item.text.source.text
    return "" if not named or (build.unless and re.search(build.unless, text)) else build.why


def _without_wheels(index: Index, part: RequestedPart) -> bool:
    """True if the index has no wheel of any release that a part leaves."""
    releases = index.scale(part.component).named(
        index.scale(part.component).select(part.asks[0].selector)
    )
    return all(
        attributes(index, part.component, release).get("archive") == "source"
        for release in releases
    )


def _later(index: Index, name: str) -> str:
    """The first release that builds, or has a wheel, as a help."""
    scale = index.scale(name)
    fails = scale.select(called.source_builds()[name].releases)
    after = next(iter(scale.named(-1 << fails.bit_length())), "")
    return f"take {name} {after} or later" if after else "take another release"


def _admits(index: Index, part: RequestedPart, selector: str) -> bool:
    """True if a part leaves no release but those of a selector."""
    scale = index.scale(part.component)
    left = scale.select(part.asks[0].selector)
    return not selector or not left & ~scale.select(selector)


def _needs(run: Installation, part: RequestedPart, needed: str, kind: str) -> tuple[str, str, str]:
    """What a build lacks of what it imports, what helps, and the severity of that; empty where it lacks nothing."""
    command = run.commands.get(part.component)
    text = part.item.text.source.text
    named = needed in run.installed and run.installed[needed].named
    isolated = f"the build imports {needed}, which an isolated one does not have"
    share = "name it in no-build-isolation-package of uv, or build it where all is installed"
    # Tools that install projects isolate builds, and make those that they do not isolate last.
    if kind == "pyproject":
        return ("", "", "") if _SHARED.search(text) else (isolated, share, "warning")
    beside = command and any(other.component == needed for other in command.parts)
    if command is None or (run.opaque and not beside):
        return "", "", ""
    if needed not in command.before:
        # What requires it takes it along, behind the build.
        if kind not in _ALL_COMMANDS and not named:
            return "", "", ""
        why = f"the build imports {needed}, which no command before installs"
        advice = f"install {needed} by a command before, and this with --no-build-isolation"
        return why, advice, "error" if kind in _ALL_COMMANDS else "warning"
    # The pip of an image is as old as the image.
    if _SHARED.search(text) or command.before[needed].part.item.kind == IMAGE:
        return "", "", ""
    return (
        isolated,
        "add --no-build-isolation, without which pip from 25.3 on and uv isolate it",
        "warning",
    )


def _finding(
    parts: RequestedParts, about: Sequence[RequestedPart], why: str, advice: str, severity: str
) -> DoesNotBuild:
    return DoesNotBuild(
        **finding_fields(about, parts.name),
        severity=severity,
        package=about[0].component,
        why=why,
        instead=advice,
    )
