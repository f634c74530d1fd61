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
from typing import TypeVar

from toolmatrix.compilation.model import Stage
from toolmatrix.errors import CannotSay, NoImage, RenderError, ToolMissing
from toolmatrix.factbase import lookups, pulling, variants
from toolmatrix.factbase.index import Index
from toolmatrix.lockfile.model import (
    Lock,
    LockedClosure,
    LockedPackage,
    LockedTarget,
    LockedVariant,
    PackageQuestion,
)
from toolmatrix.recipes.model import (
    APT,
    OPTION,
    OPTION_VALUES,
    STAGES,
    ArchiveSnapshot,
    Book,
    BuildStep,
    Compiler,
    Download,
    Effect,
    Installer,
    Probe,
    Provision,
    Recipe,
)
from toolmatrix.recipes.read import Picker, merged_steps
from toolmatrix.rendering import answer, mirrors, pinning
from toolmatrix.rendering.model import Choices, ImagePlan, Job, Runtime, UsedPackage
from toolmatrix.request import compiles, recipes
from toolmatrix.wording import listing

T = TypeVar("T")

# Added to the flags of the lock: the compiler then records its flags in each binary.
_RECORD = "-frecord-gcc-switches"

# The programs of a build that names no compiler; /usr/local/bin comes before /usr/bin on PATH.
_CC, _CXX = "/usr/local/bin/cc", "/usr/local/bin/c++"
# By which variable each driver takes flags behind those of its command line (NVIDIA, nvcc documentation, nvcc
# environment variables; ROCm, hipcc documentation, environment variables).
_DEVICE_ENV = {"NVCC_APPEND_FLAGS": "nvcc", "HIPCC_COMPILE_FLAGS_APPEND": "hipcc"}

# Names of labels that are not the OCI's own begin with a domain turned round (OCI image specification, annotations).
_LABEL = "io.github.toolmatrix."


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
        # Behind `=` is the value of an option that takes one.
        self.options = {
            name.replace("_", "-"): value
            for name, _, value in (word.partition("=") for word in choices.options)
        }

    def check_options(self) -> None:
        """Refuse options that the recipe does not have or cannot build, and values that they do not take."""
        known = {option.name: option for option in self.recipe.options}
        for name, value in self.options.items():
            option, word = known.get(name), f"`--option {name}{value and '='}{value}`"
            if option is None:
                raise RenderError(
                    f"the recipe `{self.recipe.name}` has no option `{name}`",
                    expected="one of " + ", ".join(sorted(known)) if known else "no option",
                    found=word,
                )
            pattern, expected = OPTION_VALUES.get(option.takes, ("", "no value"))
            if not re.fullmatch(pattern, value):
                raise RenderError(
                    f"the option `{name}` takes {'another' if option.takes else 'no'} value",
                    expected=f"`--option {name}=VALUE`, with {expected}" if pattern else expected,
                    found=word,
                )
            if option.because:
                raise RenderError(
                    f"the recipe `{self.recipe.name}` cannot build with `{name}`: {option.because}",
                    found=word,
                )


def job(
    lock: Lock,
    digest: str,
    rules: Rules,
    *,
    targets: Sequence[str] = (),
    version: str = "",
) -> Job:
    """Everything of one run; `targets` are those wanted, all of the lock where none is named."""
    rules.check_options()
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
    _check_used(rules, images)
    return Job(
        lock=lock,
        digest=digest,
        images=tuple(images),
        choices=rules.choices,
        version=version,
        excluded=tuple(excluded),
    )


def _check_used(rules: Rules, images: Sequence[ImagePlan]) -> None:
    """Refuse an option that no image can have."""
    for name in rules.options:
        # One that some target has is meant for that target.
        if not any(name in image.options for image in images):
            parts = (option.when for option in rules.recipe.options if option.name == name)
            conditions = [" and ".join(" ".join(pair) for pair in when) for when in parts]
            releases = dict.fromkeys(
                f"{built} {image.locked.components[built].version}"
                for image in images
                for built in rules.recipe.built(image.locked.components)
            )
            raise RenderError(
                f"the recipe `{rules.recipe.name}` does not have the option `{name}` for this answer",
                expected=listing(conditions, "or"),
                found=", ".join(releases) or f"`--option {name}`",
            )


def offered_options(lock: Lock, rules: Rules) -> set[str]:
    """The options of the recipe that some target of a lock can have."""
    pickers = [
        _Target(target, lock.environments[environment].targets[target], rules).picker
        for _, environment, target in lock.names()
    ]
    return {
        option.name
        for option in rules.recipe.options
        if not option.because and any(picker.holds(option) for picker in pickers)
    }


def question(
    target: str, locked: LockedTarget, rules: Rules, platform: str, packages: Collection[str]
) -> PackageQuestion:
    """The Python packages that an answer installs in a target: builds, what pip brings, and what else is on the index.

    `packages` are components that the index has by the same name: one that nothing installs yet is pinned all the same.
    Raises RenderError for an invalid value.
    """
    answered = _Target(target, locked, rules)
    offered = dict(answered.offered())
    own = answered.question([provision for provision in offered.values() if provision])
    besides = {
        f"{name}=={locked.components[name].version}"
        for name, provision in offered.items()
        if provision is None and name in packages and name not in locked.variants
    }
    wanted = tuple(sorted({*own.requirements, *besides}))
    return own.replace(requirements=wanted, platform=platform)


def _image(
    name: str, target: str, locked: LockedTarget, wanted: tuple[str, ...], rules: Rules, digest: str
) -> ImagePlan:
    recipe = rules.recipe
    _check_needs(target, locked, recipe)
    answered = _Target(target, locked, rules)
    picker, distro = answered.picker, answered.distro
    if distro is None:
        raise _Excluded(f"there is no known way to install packages in {answered.system}")
    # First, so that a recipe which knows why it cannot build an answer is the one to say so.
    for refusal in picker.all(recipe.refuses):
        raise _Excluded(refusal.because)
    provisions = tuple(answered.provisions())
    steps = answered.steps()
    first, last = answered.bases(provisions, steps)
    provisions = tuple(_needed_at_run_time(provisions, recipe) if recipe.runs else provisions)
    probes = tuple(answered.probes(provisions))
    compiler = picker.first(rules.compilers)
    closure = answered.closure(provisions)
    used = tuple(pinning.used_packages(locked, recipe, provisions))
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
        downloads=answered.downloads(provisions),
        run=_merged(provision.run for provision in provisions),
        links=_links(provisions, compiler),
        pip=answered.pip(provisions),
        builds=tuple(dict.fromkeys(build.install for build in answered.channel_builds)),
        closure=closure,
        installers=_installers(picker.first(rules.installers), closure),
        wheels=used,
        steps=steps,
        artifacts=picker.texts(recipe.artifacts),
        carries=picker.texts(recipe.carries),
        probes=probes,
        built=tuple(answered.built()),
        wanted=wanted,
        left_out=tuple(_left_out(locked, wanted, recipe, provisions)),
        effects=answered.effects() if compiler else (),
        options=tuple(option.name for option in answered.options),
        env=answered.env(provisions, compiler),
        device_env=_device_env(locked),
        # As if each provision in turn had put its folders in front of PATH.
        path=_merged(provision.path for provision in reversed(provisions)),
        labels=answered.labels(last, digest, used, probes),
        snapshot=answered.snapshot(),
        variables=picker.values,
        stages=plan_stages(locked, probes, rules.index),
    )
    return mirrors.with_mirrors(plan, rules.choices, picker.all(rules.mirrors))


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


class _Target:
    """The answer for one target under the rules."""

    def __init__(self, name: str, locked: LockedTarget, rules: Rules) -> None:
        self.name = name
        self.locked = locked
        self.rules = rules
        values = answer.values(name, locked)
        releases = answer.releases(name, locked)
        self.distro = Picker(releases, rules.schemes, values).first(rules.distros)
        if self.distro:
            values |= answer.of_distro(self.distro)
        if built := rules.recipe.built(locked.components):
            values["built"] = " ".join(f"{name}=={values[name]}" for name in built)
        picker = Picker(releases, rules.schemes, values)
        self.options = tuple(
            picker.fill(option, value=rules.options[option.name])
            for option in rules.recipe.options
            if option.name in rules.options and picker.holds(option)
        )
        self.picker = picker._replace(
            answer={**releases, OPTION: tuple(option.name for option in self.options)},
            values={
                **values,
                "option_words": " ".join(_merged(option.words for option in self.options)),
            },
        )

    @property
    def system(self) -> str:
        """The release of the distribution."""
        return self.locked.components["distro"].version

    @property
    def channel_builds(self) -> list[LockedVariant]:
        """The builds that do not come from pip's own index."""
        return [build for build in self.locked.variants.values() if build.options]

    def offered(self) -> Iterator[tuple[str, Provision | None]]:
        """Each component to install, with its provision if there is one."""
        rules, components = self.rules, self.locked.components
        # In the order of the matrix, which does not depend on the lock; unknown components come last.
        known = [name for name in rules.index.header["components"] if name in components]
        for name in (*known, *sorted({*components} - {*known})):
            # What is `inside` came with a wheel.
            inside = components[name].inside and name not in rules.recipe.tools
            if inside or name in rules.recipe.builds:
                continue
            offered = [provision for provision in rules.provisions if provision.component == name]
            version = components[name].version
            if not offered and name in known:
                # It was read from the package index for a request.
                harvested = "harvested" in lookups.attributes(rules.index, name, version)
                package = rules.index.header["components"][name]["code"]
                several = (
                    rules.provisions if harvested else rules.recipe.provisions if package else ()
                )
                offered = [part.replace(component=name) for part in several if part.harvested]
            package, release = self._package(name)
            chosen = self.picker.first(
                filter(self._usable, offered), component=package, version=release
            )
            if chosen and package != name:
                probes = tuple(probe.replace(wanted=release) for probe in chosen.probes)
                chosen = chosen.replace(probes=probes)
            yield name, chosen

    def _usable(self, provision: Provision) -> bool:
        # Templates write repositories and areas for apt alone.
        by_apt = self.distro is None or self.distro.manager == APT
        return by_apt or not (provision.repositories or provision.areas)

    def _package(self, name: str) -> tuple[str, str]:
        # A build may be published as another package, as onnxruntime-gpu is: the check of an image has to look for the
        # package that pip installed.
        version, build = self.locked.components[name].version, self.locked.variants.get(name)
        if build is None or not build.requirements:
            return name, version
        package, _, release = build.requirements[0].partition("==")
        plain = package.partition("[")[0]
        return (plain, release) if plain != name and release else (name, version)

    def provisions(self) -> Iterator[Provision]:
        """The provisions of all components to install; raises _Excluded for one without."""
        for name, provision in self.offered():
            if provision is None:
                release = f"{name} {self.locked.components[name].version}"
                raise _Excluded(f"there is no known way to install {release} in {self.system}")
            yield provision

    def steps(self) -> tuple[BuildStep, ...]:
        """The steps of the recipe that apply; raises _Excluded if none does."""
        recipe = self.rules.recipe
        # Of one stage the steps stay in the order of the recipe: sorting is stable.
        ordered = sorted(self.picker.all(recipe.steps), key=lambda step: STAGES.index(step.stage))
        steps = merged_steps(ordered)
        if recipe.steps and not steps:
            raise _Excluded(f"no step of the recipe `{recipe.name}` applies to this answer")
        return tuple(
            step.replace(downloads=tuple(map(self.pinned, step.downloads))) for step in steps
        )

    def pinned(self, download: Download) -> Download:
        """A download with its checksum itself, no longer the id of a row; empty if unknown."""
        if download.checksum:
            _, cells = lookups.row(self.rules.index, download.checksum)
            return download.replace(checksum=cells.get("sha256", ""))
        component = self.locked.components.get(download.of)
        checksum = download.sha256.get(component.version if component else "", "")
        return download.replace(checksum=checksum)

    def downloads(self, provisions: Iterable[Provision]) -> tuple[Download, ...]:
        """The downloads of provisions."""
        parts = chain.from_iterable(provision.downloads for provision in provisions)
        return tuple(map(self.pinned, parts))

    def bases(
        self, provisions: Sequence[Provision], steps: Sequence[BuildStep]
    ) -> tuple[Runtime, Runtime]:
        """The bases of the first and the last stage."""
        recipe = self.rules.recipe
        base = answer.plain_value("reference", self.locked.components["base-image"].version)
        first = last = Runtime(base=base, from_=self.there(base))
        if recipe.artifacts or recipe.runs:
            named = next(filter(None, (provision.runtime_base for provision in provisions)), base)
            # A runtime image knows no repository but those that its own packages come from.
            bringing = [provision for provision in provisions if provision.runtime]
            parts: Sequence[Provision | BuildStep] = (*provisions, *steps)
            last = Runtime(
                base=answer.plain_value("reference", named),
                from_=self.there(named),
                packages=_merged(part.runtime for part in parts),
                repositories=_merged(provision.repositories for provision in bringing),
                areas=_merged(provision.areas for provision in bringing),
            )
        return (last if recipe.runs else first), last

    def there(self, image: str) -> str:
        """An image, or what stands in for it; raises _Excluded for one that cannot be pulled."""
        stand_in = self.rules.choices.stand_ins.get(image, "")
        known = pulling.availability(self.rules.index.images(), image)
        if not stand_in and known.pulls == "no":
            raise _Excluded(
                f"{image} is not among its tags as of {known.since} ({known.facts[0]}), "
                f"and cannot be pulled: `--base {image}=COPY` names a copy"
            )
        return stand_in or image

    def probes(self, provisions: Iterable[Provision]) -> Iterator[tuple[str, Probe]]:
        """The probes of provisions by component."""
        for provision in provisions:
            for probe in provision.probes:
                yield self._probe(provision.component, probe)

    def built(self) -> Iterator[tuple[str, Probe]]:
        """The probes of the components that the recipe builds."""
        recipe, components = self.rules.recipe, self.locked.components
        for name in recipe.built(components):
            version = components[name].version
            for probe in self.picker.all(recipe.probes, component=name, version=version):
                yield self._probe(name, probe)

    def _probe(self, component: str, probe: Probe) -> tuple[str, Probe]:
        wanted = probe.wanted or self.locked.components[component].version
        return component, probe.replace(wanted=wanted)

    def pip(self, provisions: Iterable[Provision]) -> tuple[str, ...]:
        """The requirements that pip installs from its own index."""
        return _merged(map(self._requirements, provisions))

    def _requirements(self, provision: Provision) -> tuple[str, ...]:
        # An index holds for a whole command of pip: a build that comes from one of its own has a command of its own,
        # and all that is not locked as a build comes by the provision.
        build = self.locked.variants.get(provision.component)
        if build is None or not provision.pip:
            return provision.pip
        return () if build.options else build.requirements

    def question(self, provisions: Sequence[Provision]) -> PackageQuestion:
        """All Python packages of provisions and builds."""
        elsewhere = self.channel_builds
        here = [build for build in self.locked.variants.values() if not build.options]
        python = self.locked.components.get("python")
        requirements = {*self.pip(provisions), *_merged(build.requirements for build in here)}
        return PackageQuestion(
            # In an order that no matrix decides.
            requirements=tuple(sorted(requirements)),
            builds=tuple(sorted(chain.from_iterable(build.requirements for build in elsewhere))),
            # Two builds of one index name it once.
            options=tuple(chain.from_iterable(dict.fromkeys(build.options for build in elsewhere))),
            python=python.version if python else "",
            platform="",
        )

    def closure(self, provisions: Sequence[Provision]) -> LockedClosure | None:
        """The locked packages, unless the provisions of another recipe want others."""
        closure = self.locked.closure
        locked_question = closure and closure.asked.replace(platform="")
        return closure if locked_question == self.question(provisions) else None

    def effects(self) -> tuple[Effect, ...]:
        """The effects of the flags of the answer."""
        return tuple(
            effect
            for effect in self.picker.all(self.rules.effects)
            if any(fnmatchcase(flag, effect.flag) for flag in self.locked.flags.cflags)
        )

    def env(self, provisions: Sequence[Provision], compiler: Compiler | None) -> dict[str, str]:
        """The variables of an image."""
        # The later wins: an option over a provision, and what was resolved over both.
        env = {name: text for provision in provisions for name, text in provision.env.items()}
        for option in self.options:
            for name, text in option.env.items():
                # Options that set flags of one variable go together.
                flags = text.startswith("-") and env.get(name, "").split()
                env[name] = " ".join(dict.fromkeys((*flags, *text.split()))) if flags else text
        own = self.locked.flags
        for name, words in (("CFLAGS", own.cflags), ("CXXFLAGS", own.cxxflags)):
            # The check compiles by these variables, so an image without a compiler must not have them.
            if words and compiler:
                env[name] = " ".join((*words, _RECORD))
        return env | dict(own.env)

    def snapshot(self) -> ArchiveSnapshot | None:
        """The snapshot of the distribution, if one is wanted; raises _Excluded if there is none."""
        day = self.rules.choices.snapshot
        if not day:
            return None
        snapshot = self.picker.first(self.rules.snapshots, snapshot=day)
        if snapshot is None:
            raise _Excluded(f"there is no snapshot of the packages of {self.system}")
        if day < snapshot.since.replace("-", ""):
            raise _Excluded(f"snapshots of the packages of {self.system} start at {snapshot.since}")
        return snapshot

    def labels(
        self,
        last: Runtime,
        digest: str,
        used: Iterable[UsedPackage],
        probes: Iterable[tuple[str, Probe]],
    ) -> dict[str, str]:
        """The labels of the last image by name."""
        recipe, components = self.rules.recipe, self.locked.components
        built = recipe.built(components)
        version = components[built[0]].version if len(built) == 1 else ""
        # `toolmatrix validate` looks for these in the image, so only checked components are promised.
        present = {name for name, probe in probes if probe.runtime or not recipe.artifacts}
        present |= {*built, *(package.component for package in used)}
        if last.base == components["base-image"].version:
            present.add("base-image")
        labels = {
            "org.opencontainers.image.title": f"{recipe.name} for {self.name}",
            "org.opencontainers.image.description": recipe.about,
            # Labels are inherited from the base image, so empty ones are set too.
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.base.name": last.base,
            "org.opencontainers.image.base.digest": last.from_.partition("@")[2],
            _LABEL + "components": " ".join(sorted(present)),
            _LABEL + "lock.digest": digest,
            _LABEL + "target": self.name,
        }
        floors = {
            f"{_LABEL}{name}.floor": component.version
            for name, component in sorted(components.items())
            if component.floor
        }
        return labels | floors


def _installers(pip: Installer | None, closure: LockedClosure | None) -> dict[str, LockedPackage]:
    # Installed first: a pip that resolves, and the packages that build the sources of the lock.
    packages = dict(closure.builders) if closure else {}
    if pip:
        wheel = f"pip-{pip.version}-py3-none-any.whl"
        packages["pip"] = LockedPackage(version=pip.version, files={wheel: pip.sha256})
    return packages


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
    installed = {provision.component for provision in provisions if provision.brings}
    installed.update(recipe.built(locked.components))
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


def _needed_at_run_time(provisions: Iterable[Provision], recipe: Recipe) -> Iterator[Provision]:
    # Built-in provisions are reduced to what is needed at run time.
    own = {provision.at for provision in recipe.provisions}
    for provision in provisions:
        probes = tuple(probe for probe in provision.probes if probe.runtime)
        bare = provision.replace(packages=(), repositories=(), areas=(), probes=probes)
        yield provision if provision.at in own else bare


def _links(provisions: Iterable[Provision], compiler: Compiler | None) -> dict[str, str]:
    links = {_CC: compiler.cc, _CXX: compiler.cxx} if compiler else {}
    return links | {name: to for provision in provisions for name, to in provision.links.items()}


def _device_env(locked: LockedTarget) -> dict[str, str]:
    by_name = {name: getattr(locked.flags, tool) for name, tool in _DEVICE_ENV.items()}
    return {name: " ".join(flags) for name, flags in by_name.items() if flags}


def _merged(groups: Iterable[Iterable[T]]) -> tuple[T, ...]:
    # A dictionary keeps its keys in the order of their first mention.
    return tuple(dict.fromkeys(chain.from_iterable(groups)))


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
