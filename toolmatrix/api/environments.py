"""Files that create an environment: of uv, pip, conda and pixi, and constraints that keep it as it is.

A file of uv is for all environments at once: each is an extra, and extras exclude one another.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from toolmatrix.errors import RenderError
from toolmatrix.manifests.names import package_name, source_builds
from toolmatrix.processors import platform_of
from toolmatrix.rendering import common, mirrors
from toolmatrix.rendering.formats.uv import EVERY
from toolmatrix.report.variants import NOT_ISOLATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from toolmatrix.report.environments import EnvironmentPlan

_NAME = "environment"
_INDEXES, _PAGES = ("--index-url", "-i", "--extra-index-url"), ("--find-links", "-f")
_ADDRESS = re.compile(r"(?P<url>(?:[a-z]+\+)?[a-z]+://[^\s#]+)(?:#.*?\begg=(?P<name>[\w.-]+).*)?$")


class PlanRequirement(NamedTuple):
    """A requirement as the standard has it (PEP 508), and the index that it comes from instead of the default one."""

    name: str
    text: str
    url: str = ""
    flat: bool = False


def requirements(
    plan: EnvironmentPlan, foreign: Collection[tuple[str, str]] = ()
) -> Iterator[PlanRequirement]:
    """All that pip installs in an environment: builds with their indexes, then packages of the default one.

    Of the default index `foreign` builds, pairs of a component and a local version, are excluded.
    """
    for build in plan.builds:
        option, url = _index(build.arguments)
        others = "" if url else "".join(f",!={v}" for c, v in foreign if c == build.component)
        for text in build.requirement.split():
            yield PlanRequirement(_name(text), _spaced(text) + others, url, option in _PAGES)
    for text in (*plan.packages, *plan.unchecked):
        address = _ADDRESS.match(text)
        if address is None:
            yield PlanRequirement(_name(text), _spaced(text))
        elif address["name"]:
            yield PlanRequirement(address["name"], f"{address['name']} @ {address['url']}")


def _foreign(plan: EnvironmentPlan, plans: Mapping[str, EnvironmentPlan]) -> list[tuple[str, str]]:
    """The builds of other environments whose index is asked for every package."""
    others = (other for other in plans.values() if other is not plan)
    return [
        (build.component, build.local)
        for other in others
        for build in other.builds
        for option, url in (_index(build.arguments),)
        if url and (_shares(other) or option in _PAGES)
    ]


def _shares(plan: EnvironmentPlan) -> bool:
    """True where what builds require is on their own index alone, as for ROCm."""
    return any(build.accelerator == "rocm" for build in plan.builds)


def nameless(plan: EnvironmentPlan) -> list[str]:
    """What is installed from an address that names no package, which these files cannot have."""
    addresses = ((text, _ADDRESS.match(text)) for text in plan.unchecked)
    return [text for text, address in addresses if address and not address["name"]]


def _index(arguments: Sequence[str]) -> tuple[str, str]:
    pairs = pairwise(arguments)
    known = (*_INDEXES, *_PAGES)
    return next(((option, url) for option, url in pairs if option in known), ("", ""))


def _name(text: str) -> str:
    match = re.match(r"[\w.-]*\w", text)
    return match[0] if match else ""


def _spaced(text: str) -> str:
    # A file by its address: blanks before and behind the mark (PEP 508).
    return re.sub(r"^([\w.-]+(?:\[[^\]]*\])?)@(?=\S+:)", r"\1 @ ", text)


def _head(plans: Mapping[str, EnvironmentPlan], command: str) -> list[str]:
    left = [text for plan in plans.values() for text in nameless(plan)]
    lines = [f"left out, as its address names no package: {text}" for text in dict.fromkeys(left)]
    return ["Written by toolmatrix env.", *lines, "", command]


def constraints(plan: EnvironmentPlan) -> str:
    """The pins of an environment, which later installations are to keep."""
    return common.comment(("Written by toolmatrix env.",)) + "".join(
        f"{pin}\n" for pin in plan.pins
    )


def uv(plans: Mapping[str, EnvironmentPlan]) -> str:
    """A project of uv: one environment, or several as extras that exclude one another."""
    wanted = {name: [*requirements(plan, _foreign(plan, plans))] for name, plan in plans.items()}
    several = len(plans) > 1
    everywhere = set.intersection(*map(set, wanted.values()))
    # A build comes from its own index in its own extra alone.
    everywhere = {entry for entry in everywhere if not (several and entry.url)}
    first = next(iter(wanted.values()))
    pythons = {plan.python for plan in plans.values()}
    if len(pythons) > 1:
        raise RenderError(
            "a project of uv has one Python",
            expected="`--align python`, or `--with python==...`",
            found=", ".join(sorted(pythons)),
        )
    project: dict[str, object] = {
        "name": _NAME,
        "version": "0",
        "requires-python": f"=={pythons.pop()}.*",
        "dependencies": [entry.text for entry in first if entry in everywhere],
    }
    if several:
        project["optional-dependencies"] = {
            name: [
                f"{entry.text}{' ' if '@' in entry.text else ''}; {_marker(plans[name])}"
                for entry in entries
                if entry not in everywhere
            ]
            for name, entries in wanted.items()
        }
    markers = dict.fromkeys(map(_marker, plans.values()))
    beside = dict(sorted(entry for plan in plans.values() for entry in _built_beside(plan)))
    tables = {
        "package": False,
        "environments": list(markers),
        **({"conflicts": [[common.Inline(extra=name) for name in plans]]} if several else {}),
        **({"index-strategy": EVERY} if any(map(_shares, plans.values())) else {}),
        **({"extra-build-dependencies": beside} if beside else {}),
        **_sources(plans, wanted),
    }
    extra = f" --extra {next(iter(plans))}" if several else ""
    head = _head(plans, f"uv sync{extra}, in the directory of this file")
    return common.as_toml(head, {"project": project, "tool": {"uv": tables}})


def _built_beside(plan: EnvironmentPlan) -> Iterator[tuple[str, list[str]]]:
    """What is compiled with packages of the environment, and these: uv locks before anything is installed.

    https://docs.astral.sh/uv/concepts/projects/config/#augmenting-build-dependencies
    """
    known = source_builds()
    needed = {_name(text): [known[package_name(_name(text))].needs] for text in plan.compiled}
    for build in plan.builds:
        if NOT_ISOLATED in build.arguments:
            needed |= {_name(text): [*build.extras] for text in build.requirement.split()}
    for name, others in needed.items():
        yield name, [pin for pin in plan.pins if _name(pin) in others]


def _marker(plan: EnvironmentPlan) -> str:
    return f"sys_platform == 'linux' and platform_machine == '{plan.machine}'"


def _sources(
    plans: Mapping[str, EnvironmentPlan], wanted: Mapping[str, Sequence[PlanRequirement]]
) -> dict[str, object]:
    by_url: dict[str, tuple[str, bool]] = {}
    sources: dict[str, list[object]] = {}
    # A page may have no more than what these packages require: it is searched beside the indexes.
    pages = [e.url for entries in wanted.values() for e in entries if e.flat]
    linked = {"find-links": [*dict.fromkeys(pages)]} if pages else {}
    for extra, entries in wanted.items():
        for entry in entries:
            if not entry.url or entry.flat:
                continue
            name = f"channel-{len(by_url) + 1}"
            index = by_url.setdefault(entry.url, (name, _shares(plans[extra])))
            source = {"index": index[0], **({"extra": extra} if len(plans) > 1 else {})}
            sources.setdefault(entry.name, []).append(common.Inline(source))
    if not by_url:
        return {**linked}
    return {
        **linked,
        "sources": {
            package: named[0] if len(named) == 1 else named for package, named in sources.items()
        },
        "index": [
            {
                "name": name,
                "url": url,
                **({} if shared else {"explicit": True}),
            }
            for url, (name, shared) in by_url.items()
        ],
    }


def pip(plans: Mapping[str, EnvironmentPlan]) -> str:
    """Requirements of pip with the indexes of the builds."""
    plan = only(plans, "pip")
    head = _head({}, f"python{plan.python} -m pip install -r requirements.txt")
    return "\n".join([common.comment(head), *_pip_lines(plan)]) + "\n"


def _pip_lines(plan: EnvironmentPlan) -> list[str]:
    options = dict.fromkeys(
        f"{'--find-links' if option in _PAGES else '--extra-index-url'} {url}"
        for build in plan.builds
        for option, url in (_index(build.arguments),)
        if url
    )
    builds = [_spaced(text) for build in plan.builds for text in build.requirement.split()]
    return [*options, *builds, *plan.packages, *plan.unchecked]


def conda(plans: Mapping[str, EnvironmentPlan]) -> str:
    """An environment of conda: its Python and what only conda has, and the packages by pip."""
    plan = only(plans, "conda")
    return common.as_yaml(
        _head({}, "conda env create --file environment.yml"),
        {
            "name": _NAME,
            "channels": ["conda-forge", "nodefaults"],
            "dependencies": [
                *(f"python={plan.python}", "pip"),
                *_of_conda(plan),
                {"pip": _pip_lines(plan)},
            ],
        },
    )


def _of_conda(plan: EnvironmentPlan) -> list[str]:
    """What only conda has, without the installer of the rest."""
    return [text for text in plan.conda if _name(text) != "pip"]


def pixi(plans: Mapping[str, EnvironmentPlan]) -> str:
    """A workspace of pixi: its Python and what only conda has, and the packages from their indexes."""
    from packaging.requirements import Requirement

    plan = only(plans, "pixi")
    cuda = plan.versions.get("cuda", "") if plan.builds else ""
    packages: dict[str, object] = {}
    for entry in requirements(plan):
        parsed = Requirement(entry.text)
        fields: dict[str, object] = (
            {"url": parsed.url} if parsed.url else {"version": str(parsed.specifier) or "*"}
        )
        fields |= {"extras": sorted(parsed.extras)} if parsed.extras else {}
        fields |= {"index": entry.url} if entry.url and not entry.flat else {}
        packages[parsed.name] = common.Inline(fields)
    conda_packages = {
        _name(text): f"{version.strip('=').partition('=')[0]}.*" if version else "*"
        for text in _of_conda(plan)
        for version in (text[len(_name(text)) :].strip(),)
        if not version or version.startswith("=")
    }
    pages = [common.Inline(url=e.url) for e in requirements(plan) if e.flat]
    return common.as_toml(
        _head(plans, "pixi install, in the directory of this file"),
        {
            "workspace": {
                "name": _NAME,
                "channels": ["conda-forge"],
                "platforms": [mirrors.runner("conda", platform_of(plan.machine))],
            },
            **({"system-requirements": {"cuda": cuda.partition(".")[0]}} if cuda else {}),
            "dependencies": {"python": f"{plan.python}.*", **conda_packages},
            "pypi-dependencies": packages,
            **({"pypi-options": {"find-links": pages[:1]}} if pages else {}),
        },
    )


def only(plans: Mapping[str, EnvironmentPlan], form: str) -> EnvironmentPlan:
    """The one environment that a file can be for. Raises RenderError for several."""
    if len(plans) > 1:
        raise RenderError(
            f"a file of {form} is for one target",
            expected="one `--target`, or `--write uv`",
            found=", ".join(plans),
        )
    return next(iter(plans.values()))


FORMS: Mapping[str, Callable[[Mapping[str, EnvironmentPlan]], str]] = {
    "uv": uv,
    "pip": pip,
    "conda": conda,
    "pixi": pixi,
}
"""What writes a file, by the tool that reads it."""
