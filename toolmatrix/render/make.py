"""From a lock and a recipe to the input of the renderers: one ImagePlan for each target that can have one.

A target without an answer, without a step, or with a component that nothing can install is excluded, with the reason.
Raises RenderError for an invalid value of the lock, NoImage where every target is excluded, and RecipeError where a
text names a value that the answer does not have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from toolmatrix.errors import CannotSay, NoImage, RenderError, ToolMissing
from toolmatrix.facts import variants
from toolmatrix.facts.index import Index
from toolmatrix.facts.records import RowRecord
from toolmatrix.lock.model import LockedPackage, PackageQuestion
from toolmatrix.recipes.model import APT, STAGES, Download
from toolmatrix.recipes.pick import Picker, merged_steps
from toolmatrix.render import answer, mirrors, python_packages
from toolmatrix.render.model import ImagePlan, Job, Runtime
from toolmatrix.request import compiles, recipes
from toolmatrix.wording import listing

if TYPE_CHECKING:
    from toolmatrix.lock.model import Lock, LockedClosure, LockedTarget
    from toolmatrix.recipes.model import (
        ArchiveSnapshot,
        Book,
        BuildStep,
        Compiler,
        Distro,
        Effect,
        Installer,
        Probe,
        Provision,
        Recipe,
        RecipeOption,
    )
    from toolmatrix.render.model import Choices, UsedPackage
    from toolmatrix.stages.model import Stage

    T = TypeVar("T")

# Added to the flags of the lock: the compiler then records its flags in each binary.
_RECORD = "-frecord-gcc-switches"

# The programs of a build that names no compiler; /usr/local/bin comes before /usr/bin on PATH.
_CC, _CXX = "/usr/local/bin/cc", "/usr/local/bin/c++"
# By which variable each driver takes flags behind those of its command line (NVIDIA, nvcc documentation, nvcc
# environment variables; ROCm, hipcc documentation, environment variables).
_DEVICE_ENV = {"NVCC_APPEND_FLAGS": "nvcc", "HIPCC_COMPILE_FLAGS_APPEND": "hipcc"}


class _Excluded(Exception):
    """Why a target has no image."""


class Rules:
    """The rules beside the lock: the recipe, the provisions, the matrix, and the user's choices."""

    def __init__(self, recipe: Recipe, book: Book, index: Index, choices: Choices) -> None:
        self.recipe = recipe
        self.index = index
        self.choices = choices
        self.distros = (*recipe.distros, *book.distros)
        self.compilers = (*recipe.compilers, *book.compilers)
        self.provisions = (*recipe.provisions, *book.provisions)
        self.effects = (*recipe.effects, *book.effects)
        self.mirrors = (*recipe.mirrors, *book.mirrors)
        self.snapshots = (*recipe.snapshots, *book.snapshots)
        self.installers = (*recipe.installers, *book.installers)
        self.schemes = {
            name: component["scheme"] for name, component in index.header["components"].items()
        }

    def is_harvested(self, component: str, version: str) -> bool:
        """Whether a release was read from the package index for a request."""
        component_record = self.index.component(component)
        if version not in component_record.versions:
            return False
        release = component_record.releases[component_record.versions.index(version)]
        return "harvested" in self.index.release(release).attributes

    def cell(self, row: str, column: str) -> str:
        """A cell of a row of the matrix, or nothing."""
        record = self.index.find(row)
        return dict(record.cells).get(column, "") if isinstance(record, RowRecord) else ""


def job(
    lock: Lock,
    digest: str,
    rules: Rules,
    *,
    targets: Sequence[str] = (),
    version: str = "",
) -> Job:
    """Everything of one run; `targets` are those wanted, all of the lock where none is named."""
    images: list[ImagePlan] = []
    known = {target for _, _, target in lock.names()}
    excluded = [
        (target, "the lock has no answer for it") for target in targets if target not in known
    ]
    for name, environment, target in lock.names():
        if targets and target not in targets:
            continue
        answered = lock.environments[environment]
        wanted = recipes.requested(answered.request, rules.index)
        try:
            images.append(_image(name, target, answered.targets[target], wanted, rules, digest))
        except _Excluded as reason:
            excluded.append((name, str(reason)))
    if not images:
        raise NoImage(
            f"the recipe `{rules.recipe.name}` cannot make an image from this lock",
            found="; ".join(f"{name}: {reason}" for name, reason in excluded) or "no target",
            help="`toolmatrix lock --recipe NAME` makes an answer that the recipe can build an image from",
        )
    return Job(
        lock=lock,
        digest=digest,
        images=tuple(images),
        choices=rules.choices,
        version=version,
        excluded=tuple(excluded),
    )


def question(
    target: str, locked: LockedTarget, rules: Rules, platform: str, packages: Collection[str]
) -> PackageQuestion:
    """The Python packages that an answer installs in a target: builds, what pip brings, and what else is on the index.

    `packages` are components that the index has by the same name: one that nothing installs yet is pinned all the same.
    Raises RenderError for an invalid value.
    """
    values = answer.values(target, locked)
    picker = Picker(answer.releases(target, locked), rules.schemes, values)
    distro = picker.first(rules.distros)
    if distro:
        picker = Picker(picker.answer, rules.schemes, {**values, **answer.of_distro(distro)})
    offered = dict(_offered(locked, rules, picker, distro))
    own = _question(locked, [provision for provision in offered.values() if provision])
    besides = {
        f"{name}=={locked.components[name].version}"
        for name, provision in offered.items()
        if provision is None and name in packages and name not in locked.variants
    }
    wanted = tuple(sorted({*own.requirements, *besides}))
    return own.replace(requirements=wanted, platform=platform)


def _question(locked: LockedTarget, provisions: Sequence[Provision]) -> PackageQuestion:
    elsewhere = [build for build in locked.variants.values() if build.options]
    here = [build for build in locked.variants.values() if not build.options]
    # Two builds of one index name it once.
    options = dict.fromkeys(build.options for build in elsewhere)
    python = locked.components.get("python")
    return PackageQuestion(
        # In an order that no matrix decides.
        requirements=tuple(
            sorted(
                {
                    *_pip(locked, provisions),
                    *(requirement for build in here for requirement in build.requirements),
                }
            )
        ),
        builds=tuple(
            sorted(requirement for build in elsewhere for requirement in build.requirements)
        ),
        options=tuple(option for several in options for option in several),
        python=python.version if python else "",
        platform="",
    )


def _pip(locked: LockedTarget, provisions: Sequence[Provision]) -> tuple[str, ...]:
    return _merged(_packages(provision, locked) for provision in provisions)


def _closure(locked: LockedTarget, provisions: Sequence[Provision]) -> LockedClosure | None:
    # The provisions of another recipe may want other packages than those that were locked.
    question = locked.closure and locked.closure.asked.replace(platform="")
    return locked.closure if question == _question(locked, provisions) else None


def _installers(pip: Installer | None, closure: LockedClosure | None) -> dict[str, LockedPackage]:
    # Installed first: a pip that resolves, and the packages that build the sources of the lock.
    packages = dict(closure.builders) if closure else {}
    if pip:
        wheel = f"pip-{pip.version}-py3-none-any.whl"
        packages["pip"] = LockedPackage(version=pip.version, files={wheel: pip.sha256})
    return packages


def _image(
    name: str, target: str, locked: LockedTarget, wanted: tuple[str, ...], rules: Rules, digest: str
) -> ImagePlan:
    recipe = rules.recipe
    _check_needs(target, locked, recipe)
    distro, picker = _distro_and_picker(target, locked, rules)
    # First, so that a recipe which knows why it cannot build an answer is the one to say so.
    for refusal in picker.all(recipe.refuses):
        raise _Excluded(refusal.because)
    provisions = tuple(_provisions(locked, rules, picker, distro))
    steps = _steps(locked, rules, picker)
    first, last = _bases(locked, provisions, steps, rules)
    if recipe.runs:
        provisions = tuple(_running(provisions, recipe))
    probes = tuple(_probes(provisions, locked))
    compiler = picker.first(rules.compilers)
    pip, closure = _pip(locked, provisions), _closure(locked, provisions)
    downloads = chain.from_iterable(provision.downloads for provision in provisions)
    builds = dict.fromkeys(build.install for build in locked.variants.values() if build.options)
    used = tuple(python_packages.used(locked, recipe, provisions))
    plan = ImagePlan(
        name=name,
        target=target,
        locked=locked,
        recipe=recipe,
        base=first.base,
        from_=first.from_,
        distro=distro,
        packages=_system_packages(provisions, steps, compiler, closure),
        runtime=last,
        compiler=compiler,
        areas=_merged(provision.areas for provision in provisions),
        repositories=_merged(provision.repositories for provision in provisions),
        downloads=tuple(_pinned(download, locked, rules) for download in downloads),
        run=_merged(provision.run for provision in provisions),
        links=_links(provisions, compiler),
        pip=pip,
        builds=tuple(builds),
        closure=closure,
        installers=_installers(picker.first(rules.installers), closure),
        wheels=used,
        steps=steps,
        artifacts=picker.texts(recipe.artifacts),
        carries=picker.texts(recipe.carries),
        probes=probes,
        built=tuple(_built(locked, recipe, picker)),
        wanted=wanted,
        left_out=tuple(_left_out(locked, wanted, recipe, provisions)),
        effects=_effects(locked, rules, picker) if compiler else (),
        env=_env(locked, provisions, _options(recipe, picker, rules.choices), compiler),
        device_env=_device_env(locked),
        # As if each provision in turn had put its folders in front of PATH.
        path=_merged(provision.path for provision in reversed(provisions)),
        labels=image_labels(target, locked, recipe, last, digest, checked(used, probes, recipe)),
        snapshot=_snapshot(locked, rules, picker),
        variables=picker.values,
        stages=plan_stages(locked, probes, rules.index),
    )
    return mirrors.applied(plan, rules.choices, picker.all(rules.mirrors))


def _system_packages(
    provisions: Sequence[Provision],
    steps: Sequence[BuildStep],
    compiler: Compiler | None,
    closure: LockedClosure | None,
) -> tuple[str, ...]:
    parts: Sequence[Provision | BuildStep] = (*provisions, *steps)
    # A compiler that stays behind, where sources of the lock are built and the answer has none.
    needs_compiler = closure and closure.sources and not compiler
    building = [provision.building for provision in provisions] if needs_compiler else []
    return _merged((*(part.packages for part in parts), *building))


def _left_out(
    locked: LockedTarget, wanted: Sequence[str], recipe: Recipe, provisions: Sequence[Provision]
) -> Iterator[str]:
    """The requested components that are not in the image, which only an image of tools may leave out."""
    installed = {provision.component for provision in provisions if provision.brings} | {
        *recipe.built(locked.components)
    }
    pip = next((provision.component for provision in provisions if provision.pip), "")
    if pip and "python" not in locked.components:
        raise _Excluded(f"the answer has no python, which installs {pip}: `--with python`")
    for name in wanted:
        component = locked.components.get(name)
        if component is None:
            raise _Excluded(f"the answer has no {name}, which was requested")
        if name in installed or component.inside or component.floor:
            continue
        if recipe.builds or recipe.runs:
            raise _Excluded(
                f"the recipe `{recipe.name}` does not install {name}, which was requested"
            )
        yield name


def _distro_and_picker(target: str, locked: LockedTarget, rules: Rules) -> tuple[Distro, Picker]:
    picker = Picker(answer.releases(target, locked), rules.schemes, answer.values(target, locked))
    distro = picker.first(rules.distros)
    if distro is None:
        where = locked.components["distro"].version
        raise _Excluded(f"there is no known way to install packages in {where}")
    built_names = rules.recipe.built(locked.components)
    built = " ".join(f"{name}=={picker.values[name]}" for name in built_names)
    values = {**picker.values, **answer.of_distro(distro), **({"built": built} if built else {})}
    return distro, Picker(picker.answer, rules.schemes, values)


def _snapshot(locked: LockedTarget, rules: Rules, picker: Picker) -> ArchiveSnapshot | None:
    day = rules.choices.snapshot
    if not day:
        return None
    where = locked.components["distro"].version
    snapshot = picker.first(rules.snapshots, snapshot=day)
    if snapshot is None:
        raise _Excluded(f"there is no snapshot of the packages of {where}")
    if day < snapshot.since.replace("-", ""):
        raise _Excluded(f"snapshots of the packages of {where} start at {snapshot.since}")
    return snapshot


def _bases(
    locked: LockedTarget, provisions: Sequence[Provision], steps: Sequence[BuildStep], rules: Rules
) -> tuple[Runtime, Runtime]:
    # What the first and the last stage start from.
    base = answer.plain_value("reference", locked.components["base-image"].version)
    first = last = Runtime(base=base, from_=rules.choices.stand_ins.get(base, base))
    if rules.recipe.artifacts or rules.recipe.runs:
        last = _runtime(base, provisions, steps, rules.choices)
    return (last if rules.recipe.runs else first), last


def _runtime(
    base: str, provisions: Sequence[Provision], steps: Sequence[BuildStep], choices: Choices
) -> Runtime:
    named = next(
        (provision.runtime_base for provision in provisions if provision.runtime_base), base
    )
    # A runtime image knows no repository but those that its own packages come from.
    bringing = [provision for provision in provisions if provision.runtime]
    parts: Sequence[Provision | BuildStep] = (*provisions, *steps)
    return Runtime(
        base=answer.plain_value("reference", named),
        from_=choices.stand_ins.get(named, named),
        packages=_merged(part.runtime for part in parts),
        repositories=_merged(provision.repositories for provision in bringing),
        areas=_merged(provision.areas for provision in bringing),
    )


def _running(provisions: Iterable[Provision], recipe: Recipe) -> Iterator[Provision]:
    # Built-in provisions are reduced to what is needed at run time.
    own = {provision.at for provision in recipe.provisions}
    for provision in provisions:
        probes = tuple(probe for probe in provision.probes if probe.runtime)
        bare = provision.replace(packages=(), repositories=(), areas=(), probes=probes)
        yield provision if provision.at in own else bare


def _check_needs(target: str, locked: LockedTarget, recipe: Recipe) -> None:
    if recipe.targets and target not in recipe.targets:
        raise _Excluded(f"the recipe `{recipe.name}` is made for {', '.join(recipe.targets)}")
    # No recipe has to say that it starts from an image and installs packages.
    known = {*locked.components, *map(variants.name, locked.variants)}
    wanted = [("base-image",), ("distro",), recipe.builds, *((need,) for need in recipe.needs)]
    for several in wanted:
        if several and not known & {*several}:
            named = listing(several, "or")
            raise _Excluded(f"the answer has no {named}, which the recipe `{recipe.name}` needs")


def _provisions(
    locked: LockedTarget, rules: Rules, picker: Picker, distro: Distro
) -> Iterator[Provision]:
    for name, provision in _offered(locked, rules, picker, distro):
        if provision is None:
            version, where = locked.components[name].version, locked.components["distro"].version
            raise _Excluded(f"there is no known way to install {name} {version} in {where}")
        yield provision


def _offered(
    locked: LockedTarget, rules: Rules, picker: Picker, distro: Distro | None
) -> Iterator[tuple[str, Provision | None]]:
    # In the order of the matrix, which does not depend on the lock; unknown components come last.
    known = [name for name in rules.index.header["components"] if name in locked.components]
    for name in (*known, *sorted({*locked.components} - {*known})):
        # What is `inside` came with a wheel.
        inside = locked.components[name].inside and name not in rules.recipe.tools
        if inside or name in rules.recipe.builds:
            continue
        offered = [provision for provision in rules.provisions if provision.component == name]
        version = locked.components[name].version
        if not offered and name in known and rules.is_harvested(name, version):
            offered = [
                provision.replace(component=name)
                for provision in rules.provisions
                if provision.harvested
            ]
        offered = [
            provision for provision in offered if distro is None or _readable(provision, distro)
        ]
        package, release = _package(name, version, locked)
        chosen = picker.first(offered, component=package, version=release)
        if chosen and package != name:
            chosen = chosen.replace(
                probes=tuple(probe.replace(wanted=release) for probe in chosen.probes)
            )
        yield name, chosen


def _with_version(component: str, probe: Probe, locked: LockedTarget) -> tuple[str, Probe]:
    return component, probe.replace(wanted=probe.wanted or locked.components[component].version)


def _probes(provisions: Iterable[Provision], locked: LockedTarget) -> Iterator[tuple[str, Probe]]:
    for provision in provisions:
        for probe in provision.probes:
            yield _with_version(provision.component, probe, locked)


def _built(locked: LockedTarget, recipe: Recipe, picker: Picker) -> Iterator[tuple[str, Probe]]:
    for name in recipe.built(locked.components):
        version = locked.components[name].version
        for probe in picker.all(recipe.probes, component=name, version=version):
            yield _with_version(name, probe, locked)


def _package(name: str, version: str, locked: LockedTarget) -> tuple[str, str]:
    # A build may be published as another package, as onnxruntime-gpu is: the check of an image has to look for the
    # package that pip installed.
    build = locked.variants.get(name)
    if build is None or not build.requirements:
        return name, version
    package, _, release = build.requirements[0].partition("==")
    plain = package.partition("[")[0]
    return (plain, release) if plain != name and release else (name, version)


def _packages(provision: Provision, locked: LockedTarget) -> tuple[str, ...]:
    # An index holds for a whole command of pip: a build that comes from one of its own has a command of its own, and
    # all that is not locked as a build comes by the provision.
    build = locked.variants.get(provision.component)
    if build is None or not provision.pip:
        return provision.pip
    return () if build.options else build.requirements


def _steps(locked: LockedTarget, rules: Rules, picker: Picker) -> tuple[BuildStep, ...]:
    recipe = rules.recipe
    # Of one stage the steps stay in the order of the recipe: sorting is stable.
    steps = merged_steps(
        sorted(picker.all(recipe.steps), key=lambda step: STAGES.index(step.stage))
    )
    if recipe.steps and not steps:
        raise _Excluded(f"no step of the recipe `{recipe.name}` applies to this answer")
    return tuple(
        step.replace(
            downloads=tuple(_pinned(download, locked, rules) for download in step.downloads)
        )
        for step in steps
    )


def _readable(provision: Provision, distro: Distro) -> bool:
    # Templates write repositories and areas for apt alone.
    return distro.manager == APT or not (provision.repositories or provision.areas)


def _options(recipe: Recipe, picker: Picker, choices: Choices) -> tuple[RecipeOption, ...]:
    known = {option.name for option in recipe.options}
    for name in choices.options:
        if name not in known:
            raise RenderError(
                f"the recipe `{recipe.name}` has no option `{name}`",
                expected="one of " + ", ".join(sorted(known)) if known else "no option",
                found=f"`--option {name}`",
            )
    # An option that does not hold for this target is known and does nothing.
    return picker.all(option for option in recipe.options if option.name in choices.options)


def _pinned(download: Download, locked: LockedTarget, rules: Rules) -> Download:
    # From here on `checksum` is the sum itself and no longer the id of a row; empty if unknown.
    if download.checksum:
        return download.replace(checksum=rules.cell(download.checksum, "sha256"))
    version = locked.components[download.of].version if download.of in locked.components else ""
    return download.replace(checksum=download.sha256.get(version, ""))


def _effects(locked: LockedTarget, rules: Rules, picker: Picker) -> tuple[Effect, ...]:
    return tuple(
        effect
        for effect in picker.all(rules.effects)
        if any(fnmatchcase(flag, effect.flag) for flag in locked.flags.cflags)
    )


def _links(provisions: Iterable[Provision], compiler: Compiler | None) -> dict[str, str]:
    links = {_CC: compiler.cc, _CXX: compiler.cxx} if compiler else {}
    return links | {name: to for provision in provisions for name, to in provision.links.items()}


def _env(
    locked: LockedTarget,
    provisions: Iterable[Provision],
    options: Iterable[RecipeOption],
    compiler: Compiler | None,
) -> dict[str, str]:
    # The later wins: an option over a provision, and what was resolved over both.
    env = {name: text for provision in provisions for name, text in provision.env.items()}
    env |= {name: text for option in options for name, text in option.env.items()}
    for name, flags in (("CFLAGS", locked.flags.cflags), ("CXXFLAGS", locked.flags.cxxflags)):
        # The check compiles by these variables, so an image without a compiler must not have them.
        if flags and compiler:
            env[name] = " ".join((*flags, _RECORD))
    return env | dict(locked.flags.env)


def _device_env(locked: LockedTarget) -> dict[str, str]:
    flags_by_name = {
        name: " ".join(getattr(locked.flags, tool)) for name, tool in _DEVICE_ENV.items()
    }
    return {name: flags for name, flags in flags_by_name.items() if flags}


def _merged(groups: Iterable[Iterable[T]]) -> tuple[T, ...]:
    # A dictionary keeps its keys in the order of their first mention.
    return tuple(dict.fromkeys(chain.from_iterable(groups)))


# Names of labels that are not the OCI's own begin with a domain turned round (OCI image specification, annotations).
_LABEL = "io.github.toolmatrix."


def image_labels(
    target: str,
    locked: LockedTarget,
    recipe: Recipe,
    last: Runtime,
    digest: str,
    checked_components: Iterable[str],
) -> dict[str, str]:
    """The labels by name; `checked_components` are those that the check of the last image looks for."""
    # Labels are inherited from the base image, so empty ones are set too.
    versions = [locked.components[name].version for name in recipe.built(locked.components)]
    version = versions[0] if len(versions) == 1 else ""
    labels = {
        "org.opencontainers.image.title": f"{recipe.name} for {target}",
        "org.opencontainers.image.description": recipe.about,
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.base.name": last.base,
        "org.opencontainers.image.base.digest": last.from_.partition("@")[2],
        _LABEL + "components": " ".join(_present(locked, recipe, last, checked_components)),
        _LABEL + "lock.digest": digest,
        _LABEL + "target": target,
    }
    floors = {
        f"{_LABEL}{name}.floor": component.version
        for name, component in sorted(locked.components.items())
        if component.floor
    }
    return labels | floors


def checked(
    used: Iterable[UsedPackage], probes: Iterable[tuple[str, Probe]], recipe: Recipe
) -> set[str]:
    """The components that the check of the last image looks for."""
    components = {name for name, probe in probes if probe.runtime or not recipe.artifacts}
    return components | {package.component for package in used}


def _present(
    locked: LockedTarget, recipe: Recipe, last: Runtime, checked_components: Iterable[str]
) -> list[str]:
    # `toolmatrix validate` looks for these in the image, so only checked components are promised.
    base = locked.components["base-image"].version
    starts = {"base-image"} if last.base == base else set()
    return sorted({*checked_components} | starts | {*recipe.built(locked.components)})


_SOURCES = {"nvcc": "probe.cu", "hipcc": "probe.hip"}
# Stages that make device code are always compared, stages that join it only where the order is certain.
_MAKING = ("cicc", "ptxas", "device-compile")
_JOINING = ("fatbinary", "device-link", "bundle")


def plan_stages(locked: LockedTarget, probes: Iterable[tuple[str, Probe]], index: Index) -> str:
    """The stages that the check of an image expects in a dry run, comma-separated; empty without a driver or facts."""
    expected = compiles.expected("", locked)
    # An image for ROCm shows its release by a file, and has hipcc where the lock has flags for it.
    runs = any(probe.run[0] == "nvcc" for _, probe in probes) or bool(locked.flags.hipcc)
    if not (expected.family and runs):
        return ""
    try:
        plan, order = compiles.plan_from_facts(
            index, expected, ["-c", *expected.words], [_SOURCES[expected.family]]
        )
    except (CannotSay, ToolMissing):
        return ""
    words = {word for stage in plan.stages if (word := _compared(stage, sure=order.sure))} | set(
        _compiler(*expected.compiler, expected.family)
    )
    return ",".join(sorted(words))


def _compared(stage: Stage, *, sure: bool) -> str:
    if stage.kind in _MAKING or (sure and stage.kind in _JOINING):
        # Features of a target are no part of its name there.
        return f"{stage.tool} {(stage.arch or '').partition(':')[0]}".rstrip()
    return stage.tool if sure and stage.tool == "cudafe++" else ""


def _compiler(name: str, version: str, family: str) -> Iterator[str]:
    # nvcc takes the gcc of PATH, which is that of the lock; which the check knows by its major version.
    if name == "gcc" and family == "nvcc" and (match := re.match(r"\d+", version)):
        yield f"gcc {match[0]}"
