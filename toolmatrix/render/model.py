"""What the renderers are handed: for each target of a lock everything that its files need, decided and ready."""

from __future__ import annotations

from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from toolmatrix.lock.model import Lock, LockedTarget
    from toolmatrix.recipes.model import Download, Probe, Provision, Recipe, Repository, Step


class Choices(Value):
    """What a user chooses about the files and no fact decides.

    `dialect` is modern or classic; `syntax_line` is empty (none) or the reference to name; `stand_ins` are base images
    by the name that they replace; `options` are switched-on options of the recipe.
    """

    dialect: str = "modern"
    syntax_line: str = ""
    stand_ins: Mapping[str, str] = {}
    options: tuple[str, ...] = ()


class Image(Value):
    """One image to build: a target of the lock with what its recipe does there, values put in.

    `name` is the stem of its files, such as `x86`; `base` the reference its stages start from, `runtime_base` that of
    the last stage; `packages` are all packages of the distribution's `manager` in the order of their first mention;
    `probes` are pairs of component and probe; `unpinned` are URLs without a known checksum; `variables` are the values
    that texts of recipes may name.
    """

    name: str
    target: str
    platform: str
    locked: LockedTarget
    recipe: Recipe
    base: str
    runtime_base: str
    family: str
    manager: str
    provisions: tuple[Provision, ...]
    packages: tuple[str, ...]
    repositories: tuple[Repository, ...]
    downloads: tuple[Download, ...]
    steps: tuple[Step, ...]
    probes: tuple[tuple[str, Probe], ...]
    env: Mapping[str, str]
    path: tuple[str, ...]
    unpinned: tuple[str, ...]
    variables: Mapping[str, str]


class Job(Value):
    """Everything of one `render`: the lock with its text and digest, the recipe, the images, and the choices.

    `digest` is `sha256:...` of the lock's text; `command` is what makes the files again; `excluded` are pairs of a
    target and the reason why it has no image.
    """

    lock: Lock
    lock_text: str
    digest: str
    recipe: Recipe
    images: tuple[Image, ...]
    choices: Choices
    command: str
    version: str
    excluded: tuple[tuple[str, str], ...] = ()


if TYPE_CHECKING:

    class Format(Protocol):
        """One output format: a module of `render` with these names."""

        NAME: str
        SUMMARY: str

        def files(self, job: Job) -> dict[str, str]:
            """The texts of this format by path relative to the output directory."""
