"""What a recipe says. Every part holds `when`: conditions on the components of an answer, as in the facts.

Texts may name values of the answer in braces, such as `{python}`; `pick` puts them in.
"""

from __future__ import annotations

from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolmatrix.errors import Position

SCHEMA = "toolmatrix.recipe/1"

STAGES = ("fetch", "configure", "build", "package", "verify")
"""The stages of a recipe's steps, in the order in which they run."""


class Part(Value):
    """One statement of a recipe: when it holds, where it comes from (a source id), and where it stands."""

    when: tuple[tuple[str, str], ...] = ()
    source: str = ""
    at: Position | None = None


class Download(Part):
    """One file from the network; `sha256` by version of `of`, as far as it is known."""

    of: str
    url: str
    to: str
    sha256: Mapping[str, str] = {}
    mode: str = ""
    unpack: bool = False


class Repository(Part):
    """A package repository beyond those of the base image: its key, the key's fingerprint, and its line."""

    name: str
    key_url: str
    fingerprint: str
    uri: str
    suite: str
    components: tuple[str, ...] = ()


class Probe(Part):
    """How to see inside an image that a component is what was resolved.

    `run` prints the version somewhere; `match` says how much of it must agree: `exact`, `series` (as many numbers as
    the answer has) or `line` (the printed text holds the answer as a word).
    """

    run: tuple[str, ...]
    match: str = "series"


class Provision(Part):
    """One way to get a component into an image: packages, a download, a Python package, or the base image itself.

    `packages` are names for the manager of the distribution (apt, dnf); `pip` are requirements; `links` are commands
    to be found under another name; `path` and `env` are set for all that follows; `debconf` and the like have no place.
    """

    component: str
    packages: tuple[str, ...] = ()
    repositories: tuple[Repository, ...] = ()
    downloads: tuple[Download, ...] = ()
    pip: tuple[str, ...] = ()
    links: Mapping[str, str] = {}
    path: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    areas: tuple[str, ...] = ()
    probes: tuple[Probe, ...] = ()
    in_base: bool = False


class Step(Part):
    """Commands of one stage: lines of shell, each one command; `env` holds for these lines alone."""

    name: str
    stage: str
    run: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    packages: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()
    workdir: str = ""


class Source(Value):
    """Where a statement of a recipe comes from, as in the facts."""

    id: str
    title: str
    at: str
    read: str


class Option(Value):
    """A variant that a user can switch on, such as debug dumps: environment variables of the image."""

    name: str
    about: str
    env: Mapping[str, str]
    when: tuple[tuple[str, str], ...] = ()


class Recipe(Value):
    """One file of `recipes/`: what it builds, what it needs, and its steps.

    `builds` is a component, empty where nothing is built; `needs` are components the answer must hold; `assumes` are
    properties of the machine, such as `char: signed`; `artifacts` are the paths that the runtime image takes over.
    """

    name: str
    about: str
    builds: str = ""
    targets: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    assumes: Mapping[str, str] = {}
    resources: Mapping[str, str] = {}
    steps: tuple[Step, ...] = ()
    artifacts: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    sources: Mapping[str, Source] = {}
    path: str = ""
