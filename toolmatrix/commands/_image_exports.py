"""Where the image of a build goes: into the engine, with fixed times into an archive, or to a registry.

Bake takes all of it as settings of a target (docs.docker.com, `docker buildx bake --set`); BuildKit gives the files of
layers and the image one time by `rewrite-timestamp` and SOURCE_DATE_EPOCH (moby/buildkit, build-repro).
"""

from __future__ import annotations

import json
import os.path
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from toolmatrix.api import Matrix
from toolmatrix.api.builds import Built
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix
from toolmatrix.errors import ConfigError, NothingMatched, Position, ToolMissing
from toolmatrix.factbase.index import Index
from toolmatrix.lockfile.model import Lock
from toolmatrix.rendering import pinning
from toolmatrix.value import Value

ARCHIVE = ".oci.tar"
_METADATA = ".metadata.json"
_EPOCH = "SOURCE_DATE_EPOCH"
_DIGEST = "containerimage.digest"
# The variable of our bake files that sets attestations for all builds.
_ATTEST = "ATTEST"


class BuildOptions(Value):
    """What is asked of all builds of a call, beside the words that the engine is given as they are."""

    matrix: Matrix = None
    targets: tuple[str, ...] = ()
    push: str = ""
    reproducible: bool = False
    sbom: str = ""
    provenance: str = ""
    builder: str = ""
    flags: tuple[str, ...] = ()

    @property
    def index(self) -> Index:
        """The index of the matrix, opened where something asks for it."""
        return open_matrix(self.matrix).index

    @property
    def needs_bake(self) -> str:
        """The first option that only bake can do; "" where none was given."""
        only_bake = ("push", "reproducible", "sbom", "provenance", "builder")
        return next((f"--{name}" for name in only_bake if getattr(self, name)), "")

    @property
    def builder_words(self) -> tuple[str, ...]:
        """The words that name the builder."""
        return ("--builder", self.builder) if self.builder else ()


class ImageExport(Value):
    """The export of one image: arguments for bake, its name, and the file with its digest."""

    words: tuple[str, ...] = ()
    image: str = ""
    metadata: str = ""


def environment() -> dict[str, str]:
    """The variables of an engine."""
    # Docker 20.10 uses BuildKit, which the classic dialect needs, only if told to. Plain progress is for the log.
    return {**caller().env, "DOCKER_BUILDKIT": "1", "BUILDKIT_PROGRESS": "plain"}


def call(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a program. Raises ToolMissing."""
    try:
        return subprocess.run(  # noqa: S603
            words,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment(),
        )
    except OSError as error:
        raise ToolMissing(f"`{words[0]}` cannot be run", found=error.strerror or "") from None


def output_of(*words: str) -> str:
    """The output of a program, empty if it failed. Raises ToolMissing."""
    ended = call(*words)
    return "" if ended.returncode else ended.stdout


def export(options: BuildOptions, folder: str, name: str, target: str, lock: Lock) -> ImageExport:
    """The export of an image, by its name and that of its target in the bake file.

    Raises ConfigError, and RenderError for a name that no image can have.
    """
    if not (options.push or options.reproducible):
        return ImageExport(words=tuple(_attested(options)))
    image, kind = "", f"type=oci,dest={name}{ARCHIVE}"
    settings = []
    if options.push:
        # Each image has its own tag, until an index joins them.
        image, kind = f"{_reference(options.push)}-{name}", "type=registry"
        settings.append(f"tags={image}")
    if options.reproducible:
        kind += ",rewrite-timestamp=true"
        settings.append(f"args.{_EPOCH}={epoch(caller().env, lock)}")
    settings.append(f"output={kind}")
    words = (word for setting in settings for word in ("--set", f"{target}.{setting}"))
    file = name + _METADATA
    return ImageExport(
        words=("--metadata-file", file, *words, *_attested(options)),
        image=image or os.path.join(folder, name + ARCHIVE),
        metadata=os.path.join(folder, file),
    )


def _reference(text: str) -> str:
    # Imported late, because help does not need the renderers.
    from toolmatrix.rendering import quote

    return quote.plain("reference", text)


def _attested(options: BuildOptions) -> Iterator[str]:
    """The words for a list of parts and for provenance: what was asked for, and both of what is pushed.

    Provenance has times, so that what is built twice with one digest has none unless it is asked for.
    """
    usual = options.push and not options.reproducible and _ATTEST not in caller().env
    if sbom := options.sbom or ("on" if usual else ""):
        value = {"on": "true", "off": "false"}.get(sbom)
        yield "--sbom=" + (value or f"generator={_reference(sbom)}")
    if provenance := options.provenance or ("max" if usual else ""):
        yield "--provenance=" + ("false" if provenance == "off" else f"mode={provenance}")


def epoch(env: Mapping[str, str], lock: Lock) -> int:
    """The time that an image gets: SOURCE_DATE_EPOCH, else that of its packages, else the day of its lock's matrix.

    Raises ConfigError, UsageError.
    """
    seconds = env.get(_EPOCH, "")
    if not seconds:
        return pinning.epoch(str(lock.render.get("snapshot", "")) or lock.matrix_date)
    if not seconds.isdecimal():
        expected = "seconds since 1970-01-01"
        raise ConfigError(f"`{_EPOCH}` is not a time", expected=expected, found=f"`{seconds}`")
    return int(seconds)


def refuse(option: str, folder: str = "") -> None:
    """Refuse an option that this engine, or a directory without a bake file, cannot do."""
    if folder:
        raise NothingMatched(
            f"`{option}` needs a bake file",
            where=Position(folder),
            help="`toolmatrix render` writes it unless `--format` leaves it out",
        )
    raise ToolMissing(
        f"`{option}` needs BuildKit through docker's plugin buildx",
        expected="`docker buildx version` to succeed",
        help="install the plugin (docs.docker.com/go/buildx)",
    )


def find_builder(builder: str, *flags: str) -> None:
    """Raises ToolMissing for a builder that buildx does not have; with `--bootstrap` for one that does not answer."""
    if builder and (ended := call("docker", "buildx", "inspect", *flags, builder)).returncode:
        raise ToolMissing(
            f"buildx has no builder `{builder}`" + (" that answers" if flags else ""),
            found=ended.stderr.strip().rpartition("\n")[2],
            help="`docker buildx ls` lists them; `docker buildx create --name NAME ADDRESS` makes one",
        )


def digest(path: str) -> str:
    """The digest of an image from bake's metadata file, which is removed; "" if there is none."""
    if not path:
        return ""
    try:
        with open(path, "rb") as file:
            digests = [target.get(_DIGEST, "") for target in json.load(file).values() if target]
        os.remove(path)
    except (OSError, ValueError, AttributeError, RecursionError):
        return ""
    return next((text for text in digests if isinstance(text, str)), "")


def join_index(options: BuildOptions, images: Sequence[tuple[Built, str]]) -> tuple[str, ...]:
    """Make one index of the images that were pushed, of each platform that of the first target; their names.

    `images` are builds with the names of their targets. Raises ToolMissing where the registry refuses.
    """
    name = options.push
    first = _by_platform(options.index, images)
    references = [f"{image.image}@{image.digest}" for image in first]
    ended = call(
        "docker",
        "buildx",
        "imagetools",
        "create",
        *options.builder_words,
        "--tag",
        name,
        *references,
    )
    if ended.returncode:
        raise ToolMissing(
            f"cannot make the index `{name}` from the pushed images",
            found=ended.stderr.strip().rpartition("\n")[2],
            help=f"`docker buildx imagetools create --tag {name} {' '.join(references)}` makes it",
        )
    return tuple(image.image for image in first)


def _by_platform(index: Index, images: Sequence[tuple[Built, str]]) -> list[Built]:
    # An index has one image per platform: that of AMD is not joined with that of x86.
    order = [*index.header["targets"]]
    by_platform: dict[str, Built] = {}
    for image, _ in sorted(images, key=lambda pair: order.index(pair[1])):
        by_platform.setdefault(image.platform, image)
    return list(by_platform.values())
