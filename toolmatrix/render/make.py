"""From a lock and a recipe to what the renderers are handed: one Image for each target that can have one.

A target without an answer, without a step, or with a component that nothing brings into an image is excluded, with the
reason. Raises RenderError for a value of the lock that does not look like what it is, NoImage where every target is
excluded, and RecipeError where a text names a value that the answer does not have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

from toolmatrix.errors import CannotSay, NoImage, RenderError, ToolMissing
from toolmatrix.facts import variants
from toolmatrix.facts.index import Index
from toolmatrix.facts.records import RowRecord
from toolmatrix.lock.model import LockedPackage, PackageQuestion
from toolmatrix.recipes.model import APT, STAGES, Download
from toolmatrix.recipes.pick import Picker, settled
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

# Beside flags of the lock: the compiler writes them into what it makes, so that a binary tells its own flags.
_RECORD = "-frecord-gcc-switches"

# What a build calls that asks for no compiler by name; /usr/local/bin comes before /usr/bin on PATH.
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
        self.schemes = {name: part["scheme"] for name, part in index.header["components"].items()}

    def is_harvested(self, component: str, version: str) -> bool:
        """Whether a release was read from the package index for a request."""
        part = self.index.component(component)
        if version not in part.versions:
            return False
        number = part.releases[part.versions.index(version)]
        return "harvested" in self.index.release(number).attributes

    def cell(self, row: str, column: str) -> str:
        """A cell of a row of the matrix, or nothing."""
        found = self.index.find(row)
        return dict(found.cells).get(column, "") if isinstance(found, RowRecord) else ""


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
    excluded = [(one, "the lock has no answer for it") for one in targets if one not in known]
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
    target: str, held: LockedTarget, rules: Rules, platform: str, packages: Collection[str]
) -> PackageQuestion:
    """The Python packages that an answer installs in a target: builds, what pip brings, and what else is on the index.

    `packages` are components that the index has by the same name: one that nothing brings into an image yet is pinned
    all the same. Raises RenderError for a value that does not look like what it is.
    """
    values = answer.values(target, held)
    picker = Picker(answer.releases(target, held), rules.schemes, values)
    distro = picker.first(rules.distros)
    if distro:
        picker = Picker(picker.answer, rules.schemes, {**values, **answer.of_distro(distro)})
    offered = dict(_offered(held, rules, picker, distro))
    found = _question(held, [part for part in offered.values() if part])
    besides = {
        f"{name}=={held.components[name].version}"
        for name, part in offered.items()
        if part is None and name in packages and name not in held.variants
    }
    wanted = tuple(sorted({*found.requirements, *besides}))
    return found.replace(requirements=wanted, platform=platform)


def _question(held: LockedTarget, provisions: Sequence[Provision]) -> PackageQuestion:
    elsewhere = [build for build in held.variants.values() if build.options]
    here = [build for build in held.variants.values() if not build.options]
    # Two builds of one index name it once.
    options = _once(build.options for build in elsewhere)
    python = held.components.get("python")
    return PackageQuestion(
        # In an order that no matrix decides.
        requirements=tuple(
            sorted({*_pip(held, provisions), *(one for part in here for one in part.requirements)})
        ),
        builds=tuple(sorted(word for build in elsewhere for word in build.requirements)),
        options=tuple(word for several in options for word in several),
        python=python.version if python else "",
        platform="",
    )


def _pip(held: LockedTarget, provisions: Sequence[Provision]) -> tuple[str, ...]:
    return _once(word for part in provisions for word in _packages(part, held))


def _closure(held: LockedTarget, provisions: Sequence[Provision]) -> LockedClosure | None:
    # The provisions of a recipe of somebody's own may want other packages than those that were asked for.
    asked = held.closure and held.closure.asked.replace(platform="")
    return held.closure if asked == _question(held, provisions) else None


def _installers(pip: Installer | None, closure: LockedClosure | None) -> dict[str, LockedPackage]:
    # What is there before anything else: an installer that resolves, and what builds the sources of the lock.
    found = dict(closure.builders) if closure else {}
    if pip:
        wheel = f"pip-{pip.version}-py3-none-any.whl"
        found["pip"] = LockedPackage(version=pip.version, files={wheel: pip.sha256})
    return found


def _building(provisions: Iterable[Provision], closure: LockedClosure | None) -> Iterator[str]:
    # A compiler that stays behind, where sources of the lock are built and the answer has none.
    if closure and closure.sources:
        yield from (word for part in provisions for word in part.building)


def _image(
    name: str, target: str, held: LockedTarget, wanted: tuple[str, ...], rules: Rules, digest: str
) -> ImagePlan:
    recipe = rules.recipe
    _needed(target, held, recipe)
    distro, picker = _placed(target, held, rules)
    # First, so that a recipe which knows why it cannot build an answer is the one to say so.
    for refusal in picker.all(recipe.refuses):
        raise _Excluded(refusal.because)
    provisions = tuple(_provisions(held, rules, picker, distro))
    steps = _steps(held, rules, picker)
    first, last = _bases(held, provisions, steps, rules)
    if recipe.runs:
        provisions = tuple(_running(provisions, recipe))
    probes = tuple(_probed(part.component, one, held) for part in provisions for one in part.probes)
    compiler = picker.first(rules.compilers)
    pip, closure = _pip(held, provisions), _closure(held, provisions)
    building = () if compiler else _building(provisions, closure)
    used = tuple(python_packages.used(held, recipe, provisions))
    installer = picker.first(rules.installers)
    plan = ImagePlan(
        name=name,
        target=target,
        locked=held,
        recipe=recipe,
        base=first.base,
        from_=first.from_,
        distro=distro,
        packages=_once((*_apt(provisions, steps), *building)),
        runtime=last,
        compiler=compiler,
        areas=_once(word for part in provisions for word in part.areas),
        repositories=_once(one for part in provisions for one in part.repositories),
        downloads=tuple(_pinned(one, held, rules) for part in provisions for one in part.downloads),
        run=_once(line for part in provisions for line in part.run),
        links=_links(provisions, compiler),
        pip=pip,
        builds=_once(tuple(build.install) for build in held.variants.values() if build.options),
        closure=closure,
        installers=_installers(installer, closure),
        wheels=used,
        steps=steps,
        artifacts=picker.texts(recipe.artifacts),
        carries=picker.texts(recipe.carries),
        probes=probes,
        built=tuple(_built(held, recipe, picker)),
        wanted=wanted,
        left_out=tuple(_left_out(held, wanted, recipe, provisions)),
        effects=_effects(held, rules, picker) if compiler else (),
        env=_env(held, provisions, _options(recipe, picker, rules.choices), compiler),
        device_env=_device_env(held),
        # As if each provision in turn had put its folders in front of PATH.
        path=_once(folder for part in reversed(provisions) for folder in part.path),
        labels=image_labels(target, held, recipe, last, digest, checked(used, probes, recipe)),
        snapshot=_snapshot(held, rules, picker),
        variables=picker.values,
        stages=plan_stages(held, probes, rules.index),
    )
    return mirrors.applied(plan, rules.choices, picker.all(rules.mirrors))


def _apt(provisions: Sequence[Provision], steps: Sequence[BuildStep]) -> Iterator[str]:
    parts: Sequence[Provision | BuildStep] = (*provisions, *steps)
    for part in parts:
        yield from part.packages


def _left_out(
    held: LockedTarget, wanted: Sequence[str], recipe: Recipe, provisions: Sequence[Provision]
) -> Iterator[str]:
    """What is requested and not in the image. Only an image of tools may leave out what is built with them."""
    brought = {part.component for part in provisions if part.brings} | {
        *recipe.built(held.components)
    }
    pip = next((part.component for part in provisions if part.pip), "")
    if pip and "python" not in held.components:
        raise _Excluded(f"the answer has no python, which installs {pip}: `--with python`")
    for name in wanted:
        part = held.components.get(name)
        if part is None:
            raise _Excluded(f"the answer has no {name}, which was requested")
        if name in brought or part.inside or part.floor:
            continue
        if recipe.builds or recipe.runs:
            raise _Excluded(
                f"the recipe `{recipe.name}` does not install {name}, which was requested"
            )
        yield name


def _placed(target: str, held: LockedTarget, rules: Rules) -> tuple[Distro, Picker]:
    picker = Picker(answer.releases(target, held), rules.schemes, answer.values(target, held))
    distro = picker.first(rules.distros)
    if distro is None:
        where = held.components["distro"].version
        raise _Excluded(f"there is no known way to install packages in {where}")
    made = rules.recipe.built(held.components)
    built = " ".join(f"{name}=={picker.values[name]}" for name in made)
    values = {**picker.values, **answer.of_distro(distro), **({"built": built} if built else {})}
    return distro, Picker(picker.answer, rules.schemes, values)


def _snapshot(held: LockedTarget, rules: Rules, picker: Picker) -> ArchiveSnapshot | None:
    day = rules.choices.snapshot
    if not day:
        return None
    where = held.components["distro"].version
    found = picker.first(rules.snapshots, snapshot=day)
    if found is None:
        raise _Excluded(f"there is no snapshot of the packages of {where}")
    if day < found.since.replace("-", ""):
        raise _Excluded(f"snapshots of the packages of {where} start at {found.since}")
    return found


def _bases(
    held: LockedTarget, provisions: Sequence[Provision], steps: Sequence[BuildStep], rules: Rules
) -> tuple[Runtime, Runtime]:
    # What the first and the last stage start from.
    base = answer.plain_value("reference", held.components["base-image"].version)
    first = last = Runtime(base=base, from_=rules.choices.stand_ins.get(base, base))
    if rules.recipe.artifacts or rules.recipe.runs:
        last = _runtime(base, provisions, steps, rules.choices)
    return (last if rules.recipe.runs else first), last


def _runtime(
    base: str, provisions: Sequence[Provision], steps: Sequence[BuildStep], choices: Choices
) -> Runtime:
    named = next((part.runtime_base for part in provisions if part.runtime_base), base)
    # A runtime image knows no repository but those that its own packages come from.
    bringing = [part for part in provisions if part.runtime]
    parts: Sequence[Provision | BuildStep] = (*provisions, *steps)
    return Runtime(
        base=answer.plain_value("reference", named),
        from_=choices.stand_ins.get(named, named),
        packages=_once(word for part in parts for word in part.runtime),
        repositories=_once(one for part in bringing for one in part.repositories),
        areas=_once(word for part in bringing for word in part.areas),
    )


def _running(provisions: Iterable[Provision], recipe: Recipe) -> Iterator[Provision]:
    # Of what the built-in provisions bring only that is left which is there at run time as well.
    own = {part.at for part in recipe.provisions}
    for part in provisions:
        probes = tuple(one for one in part.probes if one.runtime)
        bare = part.replace(packages=(), repositories=(), areas=(), probes=probes)
        yield part if part.at in own else bare


def _needed(target: str, held: LockedTarget, recipe: Recipe) -> None:
    if recipe.targets and target not in recipe.targets:
        raise _Excluded(f"the recipe `{recipe.name}` is made for {', '.join(recipe.targets)}")
    # No recipe has to say that it starts from an image and installs packages.
    known = {*held.components, *map(variants.name, held.variants)}
    wanted = [("base-image",), ("distro",), recipe.builds, *((need,) for need in recipe.needs)]
    for several in wanted:
        if several and not known & {*several}:
            named = listing(several, "or")
            raise _Excluded(f"the answer has no {named}, which the recipe `{recipe.name}` needs")


def _provisions(
    held: LockedTarget, rules: Rules, picker: Picker, distro: Distro
) -> Iterator[Provision]:
    for name, found in _offered(held, rules, picker, distro):
        if found is None:
            version, where = held.components[name].version, held.components["distro"].version
            raise _Excluded(f"there is no known way to install {name} {version} in {where}")
        yield found


def _offered(
    held: LockedTarget, rules: Rules, picker: Picker, distro: Distro | None
) -> Iterator[tuple[str, Provision | None]]:
    # The order of the matrix is the same for every lock, whoever wrote it; what it does not know comes last.
    known = [name for name in rules.index.header["components"] if name in held.components]
    for name in (*known, *sorted({*held.components} - {*known})):
        # What is `inside` came with a wheel.
        inside = held.components[name].inside and name not in rules.recipe.tools
        if inside or name in rules.recipe.builds:
            continue
        offered = [part for part in rules.provisions if part.component == name]
        version = held.components[name].version
        if not offered and name in known and rules.is_harvested(name, version):
            offered = [part.replace(component=name) for part in rules.provisions if part.harvested]
        offered = [part for part in offered if distro is None or _readable(part, distro)]
        package, release = _package(name, version, held)
        found = picker.first(offered, component=package, version=release)
        if found and package != name:
            found = found.replace(probes=tuple(one.replace(wanted=release) for one in found.probes))
        yield name, found


def _probed(component: str, probe: Probe, held: LockedTarget) -> tuple[str, Probe]:
    return component, probe.replace(wanted=probe.wanted or held.components[component].version)


def _built(held: LockedTarget, recipe: Recipe, picker: Picker) -> Iterator[tuple[str, Probe]]:
    for name in recipe.built(held.components):
        version = held.components[name].version
        for probe in picker.all(recipe.probes, component=name, version=version):
            yield _probed(name, probe, held)


def _package(name: str, version: str, held: LockedTarget) -> tuple[str, str]:
    # A build may be published as another package, as onnxruntime-gpu is: the check of an image asks for what pip
    # installed, and not for a name that nothing has.
    build = held.variants.get(name)
    if build is None or not build.requirements:
        return name, version
    package, _, release = build.requirements[0].partition("==")
    plain = package.partition("[")[0]
    return (plain, release) if plain != name and release else (name, version)


def _packages(part: Provision, held: LockedTarget) -> tuple[str, ...]:
    # An index holds for a whole command of pip: a build that comes from one of its own has a command of its own, and
    # all that is not locked as a build comes by the provision.
    build = held.variants.get(part.component)
    if build is None or not part.pip:
        return part.pip
    return () if build.options else build.requirements


def _steps(held: LockedTarget, rules: Rules, picker: Picker) -> tuple[BuildStep, ...]:
    recipe = rules.recipe
    # Of one stage the steps stay in the order of the recipe: sorting is stable.
    steps = settled(sorted(picker.all(recipe.steps), key=lambda step: STAGES.index(step.stage)))
    if recipe.steps and not steps:
        raise _Excluded(f"no step of the recipe `{recipe.name}` applies to this answer")
    return tuple(
        step.replace(downloads=tuple(_pinned(one, held, rules) for one in step.downloads))
        for step in steps
    )


def _readable(part: Provision, distro: Distro) -> bool:
    # Templates write repositories and areas for apt alone.
    return distro.manager == APT or not (part.repositories or part.areas)


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


def _pinned(download: Download, held: LockedTarget, rules: Rules) -> Download:
    # From here on `checksum` is the sum itself and no longer the id of a row; empty, where nobody knows it.
    if download.checksum:
        return download.replace(checksum=rules.cell(download.checksum, "sha256"))
    version = held.components[download.of].version if download.of in held.components else ""
    return download.replace(checksum=download.sha256.get(version, ""))


def _effects(held: LockedTarget, rules: Rules, picker: Picker) -> tuple[Effect, ...]:
    return tuple(
        effect
        for effect in picker.all(rules.effects)
        if any(fnmatchcase(flag, effect.flag) for flag in held.flags.cflags)
    )


def _links(provisions: Iterable[Provision], compiler: Compiler | None) -> dict[str, str]:
    links = {_CC: compiler.cc, _CXX: compiler.cxx} if compiler else {}
    return links | {name: to for part in provisions for name, to in part.links.items()}


def _env(
    held: LockedTarget,
    provisions: Iterable[Provision],
    options: Iterable[RecipeOption],
    compiler: Compiler | None,
) -> dict[str, str]:
    # The later wins: an option over a provision, and what was resolved over both.
    env = {name: text for part in provisions for name, text in part.env.items()}
    env |= {name: text for part in options for name, text in part.env.items()}
    for name, flags in (("CFLAGS", held.flags.cflags), ("CXXFLAGS", held.flags.cxxflags)):
        # The check compiles by these variables, so an image without a compiler must not have them.
        if flags and compiler:
            env[name] = " ".join((*flags, _RECORD))
    return env | dict(held.flags.env)


def _device_env(held: LockedTarget) -> dict[str, str]:
    said = {name: " ".join(getattr(held.flags, tool)) for name, tool in _DEVICE_ENV.items()}
    return {name: flags for name, flags in said.items() if flags}


def _once(found: Iterable[T]) -> tuple[T, ...]:
    # A dictionary keeps its keys in the order of their first mention.
    return tuple(dict.fromkeys(found))


# Names of labels that are not the OCI's own begin with a domain turned round (OCI image specification, annotations).
_LABEL = "io.github.toolmatrix."


def image_labels(
    target: str,
    held: LockedTarget,
    recipe: Recipe,
    last: Runtime,
    digest: str,
    asked: Iterable[str],
) -> dict[str, str]:
    """The labels by name; `asked` are the components that the check of the last image asks for."""
    # A label of the base image that is not set anew would speak for this one, so an empty one is set as well.
    made = [held.components[name].version for name in recipe.built(held.components)]
    version = made[0] if len(made) == 1 else ""
    labels = {
        "org.opencontainers.image.title": f"{recipe.name} for {target}",
        "org.opencontainers.image.description": recipe.about,
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.base.name": last.base,
        "org.opencontainers.image.base.digest": last.from_.partition("@")[2],
        _LABEL + "components": " ".join(_present(held, recipe, last, asked)),
        _LABEL + "lock.digest": digest,
        _LABEL + "target": target,
    }
    floors = {
        f"{_LABEL}{name}.floor": part.version
        for name, part in sorted(held.components.items())
        if part.floor
    }
    return labels | floors


def checked(
    used: Iterable[UsedPackage], probes: Iterable[tuple[str, Probe]], recipe: Recipe
) -> set[str]:
    """The components that the check of the last image asks for."""
    asked = {name for name, probe in probes if probe.runtime or not recipe.artifacts}
    return asked | {one.component for one in used}


def _present(held: LockedTarget, recipe: Recipe, last: Runtime, seen: Iterable[str]) -> list[str]:
    # `toolmatrix validate` looks for these in the image: what the check does not ask for is not promised.
    base = held.components["base-image"].version
    starts = {"base-image"} if last.base == base else set()
    return sorted({*seen} | starts | {*recipe.built(held.components)})


_SOURCES = {"nvcc": "probe.cu", "hipcc": "probe.hip"}
# What makes device code is compared whatever the order is, and what joins it only where that is sure.
_MAKING = ("cicc", "ptxas", "device-compile")
_JOINING = ("fatbinary", "device-link", "bundle")


def plan_stages(locked: LockedTarget, probes: Iterable[tuple[str, Probe]], index: Index) -> str:
    """What the check of an image finds in a dry run of its driver, comma between; empty without a driver or facts."""
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
    found = {word for stage in plan.stages if (word := _compared(stage, sure=order.sure))} | set(
        _compiler(*expected.compiler, expected.family)
    )
    return ",".join(sorted(found))


def _compared(stage: Stage, *, sure: bool) -> str:
    if stage.kind in _MAKING or (sure and stage.kind in _JOINING):
        # Features of a target are no part of its name there.
        return f"{stage.tool} {(stage.arch or '').partition(':')[0]}".rstrip()
    return stage.tool if sure and stage.tool == "cudafe++" else ""


def _compiler(name: str, version: str, family: str) -> Iterator[str]:
    # nvcc takes the gcc of PATH, which is that of the lock; which the check knows by its major version.
    if name == "gcc" and family == "nvcc" and (found := re.match(r"\d+", version)):
        yield f"gcc {found[0]}"
