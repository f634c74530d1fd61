"""What `toolmatrix build --write` sees of each build besides how it ended: its log, its engine, and its image."""

from __future__ import annotations

import os.path

from toolmatrix.api import files, harvests, recorded, this_day
from toolmatrix.lock import lock_file
from toolmatrix.logs.log import Proof
from toolmatrix.outputs import os_errors_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolmatrix.api.builds import Built
    from toolmatrix.cli.context import Context
    from toolmatrix.harvest.runs import ImageBuild

    Asked = Callable[[tuple[str, ...]], str]
    """What a program printed, nothing where it failed."""

_LONGEST = 1 << 16
# By the store of containerd a size is that of the archives of the layers; by others, of their files.
_PACKED = "io.containerd.snapshotter"
_VERSIONS = {
    "docker": ("version", "--format", "{{.Server.Version}} on {{.Server.Arch}}"),
    "buildah": ("version", "--format", "{{.Version}} on {{.OsArch}}"),
}


def put(context: Context, seen: Iterable[tuple[Built, str]], asked: Asked, path: str) -> None:
    """Put builds into a file of facts and say which were left out; each with its engine."""
    rows: list[ImageBuild] = []
    for image, engine in seen:
        # What its log proved was written down when it was built, if it was asked for.
        made = "an earlier run built it" if image.kept else _row(context, image, engine, asked)
        if isinstance(made, str):
            context.say_after(f"{image.image} is not recorded: {made}")
        else:
            rows.append(made)
    if rows:
        file = recorded.put(rows, path)
        context.say_after(harvests.describe_changes(file).removesuffix("\n"))


def _row(context: Context, image: Built, engine: str, asked: Asked) -> ImageBuild | str:
    folder, file = os.path.split(image.file)
    proof = Proof()
    with os_errors_as("cannot read the log of a build", image.log), open(image.log, "rb") as log:
        while line := log.readline(_LONGEST):
            proof.read(line.decode("utf-8", "replace").rstrip())
    size = ""
    # buildah tells the size of an image in words alone.
    if engine == "docker" and not image.exit_code:
        size = asked(("docker", "image", "inspect", "--format", "{{.Size}}", image.image)).strip()
    seen = recorded.SeenBuild(
        folder=folder,
        name=file.removesuffix(".Dockerfile"),
        checked=proof.checked,
        missing=proof.missing,
        engine=f"{engine} {asked((engine, *_VERSIONS[engine])).strip()}",
        size=int(size) if size.isdecimal() else 0,
        packed=bool(size) and _PACKED in asked(("docker", "info", "--format", "{{.DriverStatus}}")),
        day=this_day(context.env).isoformat(),
    )
    return recorded.row(
        context.index(), lock_file.read(os.path.join(folder, files.LOCK)), image, seen
    )
