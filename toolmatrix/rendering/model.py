"""The input of the renderers: for each target of a lock everything that its files need, decided and ready."""

from __future__ import annotations

from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from toolmatrix.lockfile.model import Lock, LockedClosure, LockedPackage, LockedTarget
    from toolmatrix.recipes.model import (
        ArchiveSnapshot,
        BuildStep,
        Compiler,
        Distro,
        Download,
        Effect,
        Probe,
        Recipe,
        Repository,
    )


TO_HOST = "-Xcompiler="
"""The beginning of what nvcc hands to the compiler of the host (NVIDIA, nvcc documentation, --compiler-options)."""
APART = ("package", "verify")
"""Stages of steps that need what was built, and not where."""


class Choices(Value):
    """Choices of a user about the files, which no fact decides.

    `dialect` is modern or classic; `syntax_line` is empty (none) or the reference to name; `stand_ins` are base images
    by the name that they replace; `options` are switched-on options of the recipe; `mirrors` are addresses by the
    beginnings that they replace, all ending with a slash; `fetched` is the folder beside the files out of which
    they take what they would fetch, empty where they fetch it; `snapshot` is the time at which the packages of the
    distribution were, as 20261120T000000Z, empty for the newest.
    """

    dialect: str = "modern"
    syntax_line: str = ""
    stand_ins: Mapping[str, str] = {}
    options: tuple[str, ...] = ()
    mirrors: Mapping[str, str] = {}
    fetched: str = ""
    snapshot: str = ""


class Runtime(Value):
    """The base of the last stage, by name (`base`) and with a stand-in (`from_`), and what it installs."""

    base: str
    from_: str
    packages: tuple[str, ...] = ()
    repositories: tuple[Repository, ...] = ()
    areas: tuple[str, ...] = ()


class UsedPackage(Value):
    """A package that pip installs for a component, and the release that is wanted of it, any where it is empty.

    `build` is the one that was chosen among several of the release, empty where one is for every accelerator.
    `archs` are the codegen archs that its files must hold code for, comma-separated; empty if it is not built here.
    """

    component: str
    package: str
    version: str
    build: str = ""
    archs: str = ""


class ImagePlan(Value):
    """One image to build: a target of the lock with what its recipe does there, values put in.

    `name` is the stem of its files, such as `x86`; `base` the reference that the lock names and `from_` the one its
    stages start from; `packages` are all packages of the distribution's manager in the order of their first mention;
    `runtime` is the last stage; `compiler` is what C is compiled with, where anything is; `probes` are pairs of
    component and probe, and `built` those of what is built; `wanted` was requested, and `left_out` is what of it is
    not in the image, as in an image of the tools alone; `effects` are those of its flags, and `options` those of the
    recipe that are switched on; `steps` are in the order of their stages, and those behind the build run where
    `carries` are alone, if any are; `env` holds in every stage,
    `device_env` are flags of nvcc and hipcc; `labels` stand on the last stage; `closure` are all Python packages,
    where the lock has those of `pip` and `builds`; `wheels` are those that a check which imports them uses;
    `mirrored` are pairs of a file and a line by which tools know mirrors; `snapshot` is the archive that packages
    come from, where it is one of a day; `stages` is what its check finds in a dry run of its driver;
    `variables` are the values that texts of recipes may name.
    """

    name: str
    target: str
    locked: LockedTarget
    recipe: Recipe
    base: str
    from_: str
    distro: Distro
    packages: tuple[str, ...]
    runtime: Runtime
    compiler: Compiler | None
    areas: tuple[str, ...]
    repositories: tuple[Repository, ...]
    downloads: tuple[Download, ...]
    run: tuple[str, ...]
    links: Mapping[str, str]
    pip: tuple[str, ...]
    builds: tuple[tuple[str, ...], ...]
    closure: LockedClosure | None
    installers: Mapping[str, LockedPackage]
    wheels: tuple[UsedPackage, ...]
    steps: tuple[BuildStep, ...]
    artifacts: tuple[str, ...]
    carries: tuple[str, ...]
    probes: tuple[tuple[str, Probe], ...]
    built: tuple[tuple[str, Probe], ...]
    wanted: tuple[str, ...]
    left_out: tuple[str, ...]
    effects: tuple[Effect, ...]
    options: tuple[str, ...]
    env: Mapping[str, str]
    device_env: Mapping[str, str]
    path: tuple[str, ...]
    labels: Mapping[str, str]
    variables: Mapping[str, str]
    mirrored: tuple[tuple[str, str], ...] = ()
    snapshot: ArchiveSnapshot | None = None
    stages: str = ""

    @property
    def stage_env(self) -> dict[str, str]:
        """`device_env` of stages: with build steps, which set archs themselves, only the flags for the host."""
        if not self.steps:
            return dict(self.device_env)
        by_name = {
            name: " ".join(flag for flag in text.split() if flag.startswith(TO_HOST))
            for name, text in self.device_env.items()
        }
        return {name: flags for name, flags in by_name.items() if flags}

    @property
    def building(self) -> tuple[BuildStep, ...]:
        """The steps that run where it is built."""
        return tuple(step for step in self.steps if step not in self.packaging)

    @property
    def packaging(self) -> tuple[BuildStep, ...]:
        """The steps that run in a stage of their own, without the tools that only the build needs."""
        return tuple(step for step in self.steps if self.carries and step.stage in APART)

    @property
    def links_libraries(self) -> bool:
        """Whether the runtime image takes over folders that its loader has to be configured for."""
        return any(path.startswith("/etc/ld.so.conf.d/") for path in self.artifacts)

    @property
    def all_downloads(self) -> tuple[Download, ...]:
        """Those of the tools and those of the steps."""
        return (*self.downloads, *(download for step in self.steps for download in step.downloads))


class Job(Value):
    """Everything of one `render`: the lock with its digest, the images, and the choices.

    `digest` is `sha256:...` of what the lock answers; `excluded` are pairs of a target and the reason why it has no
    image.
    """

    lock: Lock
    digest: str
    images: tuple[ImagePlan, ...]
    choices: Choices
    version: str
    excluded: tuple[tuple[str, str], ...] = ()


if TYPE_CHECKING:

    class Format(Protocol):
        """One output format: a module of `render` with these names."""

        SUMMARY: str

        def files(self, job: Job) -> dict[str, str]:
            """The texts of this format by path relative to the output directory."""
