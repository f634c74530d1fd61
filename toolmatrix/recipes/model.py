"""The parts of a recipe. Every part has `when`: conditions on the components of an answer, as in the facts.

Texts may name values of the answer in braces, such as `{python}` (see `fields`); `pick` fills them in. docs/recipes.md
describes each part.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Annotated

from toolmatrix.errors import Position
from toolmatrix.value import Value

RECIPE = "toolmatrix.recipe/1"
PROVISIONS = "toolmatrix.provisions/1"

STAGES = ("fetch", "configure", "build", "package", "verify")
"""The stages of a recipe's steps, in the order in which they run."""

MATCHES = ("series", "minor", "exact")
APT = "apt"
MANAGERS = (APT, "dnf")

OPTION_VALUES: Mapping[str, tuple[str, str]] = {
    "level": (r"[0-9]", "a digit"),
    "modules": (
        r"[A-Za-z0-9_]+=[0-9](,[A-Za-z0-9_]+=[0-9])*",
        "`MODULE=LEVEL`, several with commas",
    ),
}
"""By what an option takes the pattern of its value, and what is expected."""
OPTION_EXAMPLES: Mapping[str, str] = {"level": "1", "modules": "executor=1"}
"""A value of each kind."""

# Texts by their shapes, see `TEXTS` of `fields`. A text without a shape is no key of a file.
Before = Annotated[str, "before"]
ComponentName = Annotated[str, "component"]
Condition = Annotated[str, "condition"]
Date = Annotated[str, "date"]
Fingerprint = Annotated[str, "fingerprint"]
Flag = Annotated[str, "flag"]
Id = Annotated[str, "id"]
Line = Annotated[str, "line"]
Mode = Annotated[str, "mode"]
Name = Annotated[str, "name"]
Package = Annotated[str, "package"]
Path = Annotated[str, "path"]
Requirement = Annotated[str, "requirement"]
Sha256 = Annotated[str, "sha256"]
Shell = Annotated[str, "shell"]
Suite = Annotated[str, "suite"]
Text = Annotated[str, "value"]
Url = Annotated[str, "url"]
Variable = Annotated[str, "variable"]
Word = Annotated[str, "word"]


class RecipeEntry(Value):
    """A mapping of a file, which messages call by its noun.

    A `conditional` one must have conditions. A `sourced` one needs a source, its inner parts do not. A list under the
    key `spread` gives one part for each of its items.
    """

    noun = "the recipe"
    conditional = False
    sourced = False
    spread = ""


class Part(RecipeEntry):
    """One statement of a recipe: when it holds, its source (an id), and its position in the file."""

    sourced = True

    when: tuple[tuple[str, str], ...] = ()
    source: str = ""
    at: Position | None = None


class Download(Part):
    """One file from the network.

    `sha256` has its checksum by version of `of`; else `checksum` is the id of the row of the matrix that has it. With
    `unpack` it is a tar archive whose single folder becomes `to`.
    """

    noun = "a download"
    sourced = False

    of: ComponentName = ""
    url: Url
    to: Path
    sha256: Mapping[Word, Sha256] = {}
    checksum: Id = ""
    mode: Mode = ""
    unpack: bool = False


class Repository(Part):
    """A package repository beyond those of the base image: its key, the key's fingerprint, and its line.

    Its packages are preferred to those of the distribution.
    """

    noun = "a repository"
    sourced = False

    name: Name
    key_url: Url
    fingerprint: Fingerprint
    uri: Url
    suite: Suite
    components: tuple[Word, ...] = ()
    origin: Word = ""


class Probe(Part):
    """How to see inside an image that a component is what was resolved.

    `run` prints the version behind the text `after`, or first of all numbers; `match` says how much of it must agree:
    `exact`, `minor` (two numbers), or `series` (as many numbers as the answer has). `wanted` defaults to the version
    itself. The runtime image is checked only by probes with `runtime`.
    """

    noun = "a probe"
    sourced = False

    run: tuple[Line, ...]
    after: Before = ""
    wanted: Word = ""
    match: Annotated[str, MATCHES] = "series"
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

    noun = "a provision"
    spread = "component"

    component: ComponentName
    packages: tuple[Package, ...] = ()
    runtime: tuple[Package, ...] = ()
    building: tuple[Package, ...] = ()
    repositories: tuple[Repository, ...] = ()
    areas: tuple[Name, ...] = ()
    downloads: tuple[Download, ...] = ()
    pip: tuple[Requirement, ...] = ()
    run: tuple[Shell, ...] = ()
    links: Mapping[Path, Path] = {}
    path: tuple[Path, ...] = ()
    env: Mapping[Variable, Text] = {}
    probes: tuple[Probe, ...] = ()
    in_base: bool = False
    harvested: bool = False
    runtime_base: Text = ""
    because: Line = ""

    @property
    def brings(self) -> bool:
        """Whether it brings the component into an image."""
        contents = (self.packages, self.runtime, self.downloads, self.pip, self.run)
        return self.in_base or bool(self.runtime_base) or any(contents)


class Distro(Part):
    """A distribution as an image sees it: its package manager, names, and the day its support ends."""

    noun = "a distribution"
    conditional = True

    family: Name
    manager: Annotated[str, MANAGERS]
    codename: Word = ""
    os: Word
    os_version: Word
    ends: Date = ""


class Compiler(Part):
    """A compiler of C and C++ in an image: the programs that `cc` and `c++` call."""

    noun = "a compiler"

    cc: Path
    cxx: Path


class Effect(Part):
    """An effect of a compiler flag that a preprocessor can see: `holds` is the condition of an `#if`."""

    noun = "an effect"

    flag: Flag
    name: Name
    expected: Word
    otherwise: Word
    holds: Condition


class MirrorSetting(Part):
    """How a tool of an image learns of mirrors: a file, its first line, and a line for each of them.

    With a `package` it applies only to images that have it installed.
    In a line `<old>` and `<new>` are addresses, `<old_pattern>` the first without its scheme as a regular expression of
    Java, and `<new_place>` the second without its scheme, unless it differs. `folder` is the line where files are taken
    out of a folder, and names it as `<folder>`.
    """

    noun = "the setting of a mirror"

    to: Path
    package: Package = ""
    head: Line = ""
    each: Line = ""
    folder: Line = ""


class ArchiveSnapshot(Part):
    """The archive of a distribution as it was at a time, which texts name as `{snapshot}`.

    `lines` are those of sources of apt, in the place of the files that it `replaces`; `origin` is what their Release
    files say; there is none from before `since`. `options` are lines of the configuration of apt.
    """

    noun = "a snapshot"
    conditional = True

    lines: tuple[Line, ...]
    origin: Word
    replaces: tuple[Path, ...] = ()
    since: Date = ""
    options: tuple[Line, ...] = ()


class Installer(Part):
    """A release of pip and the SHA-256 of its wheel, for images whose own pip does not resolve."""

    noun = "an installer"
    conditional = True

    version: Word
    sha256: Sha256


class BuildStep(Part):
    """Commands of one stage: lines of shell, each one command; `env` holds for these lines alone.

    `packages` are those of the image that builds, `runtime` what the result needs in the runtime image.
    """

    noun = "a step"

    name: Name
    stage: Annotated[str, STAGES]
    run: tuple[Shell, ...] = ()
    env: Mapping[Variable, Text] = {}
    packages: tuple[Package, ...] = ()
    runtime: tuple[Package, ...] = ()
    downloads: tuple[Download, ...] = ()
    workdir: Path = ""


class Refusal(Part):
    """Answers that a recipe cannot build: the target is left out, with `because` as the reason."""

    noun = "a refusal"
    conditional = True

    because: Line


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

    noun = "an option"

    name: Name
    about: Line
    env: Mapping[Variable, Text] = {}
    words: tuple[Word, ...] = ()
    takes: Annotated[str, OPTION_VALUES] = ""
    because: Line = ""


OPTION = "option"
"""In conditions of steps it names the options that are switched on."""


class Book(RecipeEntry):
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

    name: Name
    about: Line
    builds: tuple[ComponentName, ...] = ()
    targets: tuple[Name, ...] = ()
    needs: tuple[ComponentName, ...] = ()
    tools: tuple[ComponentName, ...] = ()
    steps: tuple[BuildStep, ...] = ()
    artifacts: tuple[Path, ...] = ()
    carries: tuple[Path, ...] = ()
    probes: tuple[Probe, ...] = ()
    refuses: tuple[Refusal, ...] = ()
    options: tuple[RecipeOption, ...] = ()
    imports: bool = False
    runs: bool = False

    def built(self, components: Container[str]) -> tuple[str, ...]:
        """The components of an answer that it builds."""
        return tuple(name for name in self.builds if name in components)
