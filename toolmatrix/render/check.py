"""The check of an image: POSIX shell rendered from the lock, which needs nothing of toolmatrix inside the image."""

from __future__ import annotations

from toolmatrix.render import ours, templates
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolmatrix.lock.model import LockedTarget
    from toolmatrix.recipes.model import Probe
    from toolmatrix.render.model import ImagePlan, Job

FOLDER = "/usr/share/toolmatrix"
"""Where the lock and the check lie inside an image."""

# So many letters of a name are given a column.
_LONGEST = 24


class Row(Value):
    """One comparison of the script."""

    component: str
    wanted: str
    match: str
    after: str
    run: tuple[str, ...]
    runtime: bool


def script(job: Job, image: ImagePlan) -> str:
    """The text of the script."""
    rows, built = tuple(_rows(image, image.probes)), tuple(_rows(image, image.built))
    names = ["machine", *(row.component for row in (*rows, *built))]
    return templates.render(
        "check.sh.j2",
        job=job,
        image=image,
        blank=ours.BLANK,
        probes=rows,
        built=built,
        drivers=tuple(_drivers(image.locked)),
        width=str(min(max(map(len, names)), _LONGEST)),
    )


class Driver(Value):
    """A driver that makes code for devices: the archs that its objects must hold, and its words with their flags."""

    name: str
    wanted: str
    words: tuple[str, ...]


def _drivers(held: LockedTarget) -> Iterator[Driver]:
    for name, driver, flags in (
        ("sm", "nvcc", held.flags.nvcc),
        ("gfx", "hipcc", held.flags.hipcc),
    ):
        archs = (arch for arch in held.archs if arch.startswith("gfx") is (name == "gfx"))
        if flags:
            yield Driver(name=name, wanted=",".join(sorted(archs)), words=(driver, *flags))


def _rows(image: ImagePlan, probes: Iterable[tuple[str, Probe]]) -> Iterator[Row]:
    for component, probe in probes:
        version = image.locked.components[component].version
        yield Row(
            component=component,
            wanted=probe.wanted or version,
            match=probe.match,
            after=probe.after,
            run=probe.run,
            runtime=probe.runtime,
        )
