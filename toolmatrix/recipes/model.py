"""The parts of a recipe. Every part has `when`: conditions on the components of an answer, as in the facts.

Texts may name values of the answer in braces, such as `{python}` (see `fields`); `pick` fills them in. docs/recipes.md
describes each part.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from toolmatrix.errors import Position
from toolmatrix.value import Value

RECIPE = "toolmatrix.recipe/1"
PROVISIONS = "toolmatrix.provisions/1"

STAGES = ("fetch", "configure", "build", "package", "verify")
"""The stages of a recipe's steps, in the order in which they run."""

MATCHES = ("series", "minor", "exact")
APT = "apt"
MANAGERS = (APT, "dnf")


class Part(Value):
    """One statement of a recipe: when it holds, its source (an id), and its position in the file."""

    when: tuple[tuple[str, str], ...] = ()
    source: str = ""
    at: Position | None = None


class Download(Part):
    """One file from the network.

    `sha256` has its checksum by version of `of`; else `checksum` is the id of the row of the matrix that has it. With
    `unpack` it is a tar archive whose single folder becomes `to`.
    """

    of: str = ""
    url: str
    to: str
    sha256: Mapping[str, str] = {}
    checksum: str = ""
    mode: str = ""
    unpack: bool = False


class Repository(Part):
    """A package repository beyond those of the base image: its key, the key's fingerprint, and its line.

    Its packages are preferred to those of the distribution.
    """

    name: str
    key_url: str
    fingerprint: str
    uri: str
    suite: str
    components: tuple[str, ...] = ()
    origin: str = ""


class Probe(Part):
    """How to see inside an image that a component is what was resolved.

    `run` prints the version behind the text `after`, or first of all numbers; `match` says how much of it must agree:
    `exact`, `minor` (two numbers), or `series` (as many numbers as the answer has). `wanted` defaults to the version
    itself. The runtime image is checked only by probes with `runtime`.
    """

    run: tuple[str, ...]
    after: str = ""
    wanted: str = ""
    match: str = "series"
    runtime: bool = False


class Provision(Part):
    """One way to get a component into an image: packages, a download, a Python package, or the base image itself.

    `packages` are names for the manager of the distribution (apt, dnf), and `runtime` those of the runtime image;
    `areas` are parts of the distribution's archive to be switched on; `pip` are requirements; `run` are commands once
    the packages are there; `building` are packages by which Python packages are built from their sources where nothing
    else brings a compiler; `links` are names under which files are found as well; `path` and `env` are set for all
    that follows. Where the runtime image starts from another image, `runtime_base` names it. `because` is the reason
    why a component is in no image at all. A `harvested` one also applies to releases read from the package index.
    """

    component: str
    packages: tuple[str, ...] = ()
    runtime: tuple[str, ...] = ()
    building: tuple[str, ...] = ()
    repositories: tuple[Repository, ...] = ()
    areas: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()
    pip: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    links: Mapping[str, str] = {}
    path: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    probes: tuple[Probe, ...] = ()
    in_base: bool = False
    harvested: bool = False
    runtime_base: str = ""
    because: str = ""

    @property
    def brings(self) -> bool:
        """Whether it brings the component into an image."""
        contents = (self.packages, self.runtime, self.downloads, self.pip, self.run)
        return self.in_base or bool(self.runtime_base) or any(contents)


class Distro(Part):
    """A distribution as an image sees it: its package manager, names, and the day its support ends."""

    family: str
    manager: str
    codename: str = ""
    os: str
    os_version: str
    ends: str = ""


class Compiler(Part):
    """A compiler of C and C++ in an image: the programs that `cc` and `c++` call."""

    cc: str
    cxx: str


class Effect(Part):
    """An effect of a compiler flag that a preprocessor can see: `holds` is the condition of an `#if`."""

    flag: str
    name: str
    expected: str
    otherwise: str
    holds: str


class MirrorSetting(Part):
    """How a tool of an image learns of mirrors: a file, its first line, and a line for each of them.

    With a `package` it applies only to images that have it installed.
    In a line `<old>` and `<new>` are addresses, `<old_pattern>` the first without its scheme as a regular expression of
    Java, and `<new_place>` the second without its scheme, unless it differs. `folder` is the line where files are taken
    out of a folder, and names it as `<folder>`.
    """

    to: str
    package: str = ""
    head: str = ""
    each: str = ""
    folder: str = ""


class ArchiveSnapshot(Part):
    """The archive of a distribution as it was at a time, which texts name as `{snapshot}`.

    `lines` are those of sources of apt, in the place of the files that it `replaces`; `origin` is what their Release
    files say; there is none from before `since`. `options` are lines of the configuration of apt.
    """

    lines: tuple[str, ...]
    origin: str
    replaces: tuple[str, ...] = ()
    since: str = ""
    options: tuple[str, ...] = ()


class Installer(Part):
    """A release of pip and the SHA-256 of its wheel, for images whose own pip does not resolve."""

    version: str
    sha256: str


class BuildStep(Part):
    """Commands of one stage: lines of shell, each one command; `env` holds for these lines alone.

    `packages` are those of the image that builds, `runtime` what the result needs in the runtime image.
    """

    name: str
    stage: str
    run: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    packages: tuple[str, ...] = ()
    runtime: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()
    workdir: str = ""


class Refusal(Part):
    """Answers that a recipe cannot build: the target is left out, with `because` as the reason."""

    because: str


class Source(Value):
    """The source of a statement of a recipe, as in the facts."""

    id: str
    title: str
    at: str
    read: str


class RecipeOption(Part):
    """A variant that a user can switch on, such as debug dumps or a part of what is built.

    `env` are variables of the image, and `words` go to the steps as `{option_words}`. `takes` is the kind of its
    `{value}`, if it has one. One with `because` is known and refused.
    """

    name: str
    about: str
    env: Mapping[str, str] = {}
    words: tuple[str, ...] = ()
    takes: str = ""
    because: str = ""


OPTION = "option"
"""In conditions of steps it names the options that are switched on."""


class Book(Value):
    """One file: distributions, compilers, provisions, flags, mirrors, snapshots and installers, and their sources."""

    distros: tuple[Distro, ...] = ()
    compilers: tuple[Compiler, ...] = ()
    provisions: tuple[Provision, ...] = ()
    effects: tuple[Effect, ...] = ()
    mirrors: tuple[MirrorSetting, ...] = ()
    snapshots: tuple[ArchiveSnapshot, ...] = ()
    installers: tuple[Installer, ...] = ()
    sources: Mapping[str, Source] = {}
    path: str = ""


class Recipe(Book):
    """One recipe: the components that it builds and needs, and its steps. Its own provisions come before all others.

    `builds` are components, of which it builds those that the answer holds; `needs` are components the answer must
    hold, and `tools` those that building takes even where a wheel has its own inside; `artifacts` are the paths that
    the runtime image takes over, and without them there is none; `carries` are those that package and verify take over
    from where it was built, and without them they run there; `probes` see in the last image what was built. One that
    `imports` has a check that imports and uses the Python packages; one that `runs` does so too, and compiles nothing:
    it starts from runtime images, and takes of the built-in provisions what is there at run time.
    """

    name: str
    about: str
    builds: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    steps: tuple[BuildStep, ...] = ()
    artifacts: tuple[str, ...] = ()
    carries: tuple[str, ...] = ()
    probes: tuple[Probe, ...] = ()
    refuses: tuple[Refusal, ...] = ()
    options: tuple[RecipeOption, ...] = ()
    imports: bool = False
    runs: bool = False

    def built(self, components: Container[str]) -> tuple[str, ...]:
        """The components of an answer that it builds."""
        return tuple(name for name in self.builds if name in components)
