"""The Dockerfile of an image and the check inside it, from the templates: layout is theirs, `make` decided the rest.

The check is POSIX shell rendered from the lock, which needs nothing of toolmatrix inside the image.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from toolmatrix import resources
from toolmatrix.errors import Position, RenderError
from toolmatrix.rendering import common, mirrors, pinning, quote
from toolmatrix.rendering.model import ImagePlan, Job

DIALECTS = ("modern", "classic")
SYNTAX = "docker/dockerfile:1"
"""The default of `# syntax=` (docs.docker.com, Dockerfile reference)."""

EMPTY = "scratch"
"""The name of no image in `FROM` (docs.docker.com, Dockerfile reference)."""

FOLDER = "/usr/share/toolmatrix"
"""The folder of the lock and the check inside an image."""

# More than one empty line, as parts that wrote nothing leave them.
_BLANKS = re.compile(r"\n{3,}")

# A company's certificates and pip settings, if the build gets any; they leave no trace in the image.
_SECRETS = {
    name: f"type=secret,id={name},target={target},mode=0444"
    for name, target in (
        ("ca", "/etc/ssl/certs/ca-certificates.crt"),
        ("pip", "/etc/pip.conf"),
    )
}

# What images must share to share the caches of their builds.
_PER_CACHE = ("distro", "debian_arch")

# Packages by which the classic dialect downloads; the modern one lets the builder do it.
_FETCHING = ("ca-certificates", "curl")

_EPOCH = "SOURCE_DATE_EPOCH"
# A longer name of a component pushes its line to the right, and not the column of all lines.
_LONGEST = 24


def text(job: Job, image: ImagePlan) -> str:
    """The text of the file."""
    return fill("Dockerfile.j2", job, image, modern=job.choices.dialect == DIALECTS[0])


def fill(template: str, job: Job, image: ImagePlan, *, modern: bool, **more: object) -> str:
    """The text of a template that builds an image."""
    fetched, snapshot = job.choices.fetched, job.choices.snapshot
    fetching = _FETCHING if image.all_downloads and not (modern or fetched) else ()
    rendered = render(
        template,
        job=job,
        image=image,
        modern=modern,
        packages=tuple(dict.fromkeys((*image.packages, *fetching))),
        manager=image.distro.manager,
        components=_columns(image),
        caches="-".join(quote.plain("release", image.variables[name]) for name in _PER_CACHE),
        debian_arch=image.variables["debian_arch"],
        secrets=_SECRETS,
        check=check_name(image),
        requirements=pinning.requirements_name(image),
        installers=pinning.installer_requirements(image),
        seeds=pinning.seeds(image.wheels, image.closure),
        folder=FOLDER,
        fetched=fetched,
        local_path=mirrors.local_path,
        archives=mirrors.has_archives(image) and f"{fetched}/{mirrors.ARCHIVES}",
        distdir=mirrors.DISTDIR,
        wheels=f"{fetched}/{mirrors.wheel_folder(image)}",
        # Files of a build get the time of its packages, unless another is set.
        epoch=f"{_EPOCH}={pinning.epoch(snapshot)}" if snapshot else _EPOCH,
        again=common.AGAIN,
        blank=common.BLANK,
        **more,
    )
    return _BLANKS.sub("\n\n", rendered)


def _columns(image: ImagePlan) -> list[str]:
    rows = [
        (name, (">=" if component.floor else "") + component.version, component.evidence)
        for name, component in sorted(image.locked.components.items())
    ]
    names, versions = (max(len(row[column]) for row in rows) for column in (0, 1))
    return [f"{name:{names}}  {version:{versions}}  {evidence}" for name, version, evidence in rows]


def check(job: Job, image: ImagePlan) -> str:
    """The text of the check."""
    names = ["machine", *(name for name, _ in (*image.probes, *image.built))]
    names += [name for package in image.wheels for name in (package.package, "operation")]
    floor = image.locked.components.get("driver")
    return render(
        "check.sh.j2",
        job=job,
        image=image,
        blank=common.BLANK,
        drivers=tuple(_drivers(image)),
        wheels=tuple(pinning.check_arguments(image.wheels)),
        floor=floor.version if floor else "",
        width=str(min(max(map(len, names)), _LONGEST)),
    )


def _drivers(image: ImagePlan) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    # The check runs these words where the image does not set the flags, and sorts the result.
    locked, flags = image.locked, image.locked.flags
    if image.stages:
        rocm = locked.accelerator == "rocm"
        words = ("hipcc", *flags.hipcc) if rocm else ("nvcc", *flags.nvcc)
        yield "stages", image.stages, words
    if flags.nvcc:
        archs = sorted(arch for arch in locked.archs if not arch.startswith("gfx"))
        yield "sm", ",".join(archs), ("nvcc", *flags.nvcc)
    if flags.hipcc:
        archs = sorted(arch for arch in locked.archs if arch.startswith("gfx"))
        yield "gfx", ",".join(archs), ("hipcc", *flags.hipcc)


def name(image: ImagePlan) -> str:
    """The name of the Dockerfile of an image."""
    return common.file_name(image, ".Dockerfile")


def check_name(image: ImagePlan) -> str:
    """The name of the check of an image."""
    return common.file_name(image, ".check.sh")


# Jinja calls this with every value that a template writes, and not with the template's own text.
def _quoted(value: object) -> object:
    if isinstance(value, quote.Quoted):
        return value
    raise RenderError(
        "a template writes an unquoted value",
        expected="a quoting filter, such as `| sh`",
        found=f"`{value!a}`",
    )


@lru_cache(maxsize=1)
def environment(root: str) -> SandboxedEnvironment:
    """The templates below `root`. Autoescape makes what macros give count as quoted."""
    templates = SandboxedEnvironment(
        loader=FileSystemLoader(root),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_quoted,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # None of Jinja's own but what may be done with values before they are quoted: `safe` would mark any as quoted.
    plain = {name: templates.filters[name] for name in ("dictsort", "join")}
    templates.filters = {**plain, **quote.filters()}
    return templates


def render(name: str, **values: object) -> str:
    """The text of a template; raises RenderError with the file and line of what is wrong in it."""
    root = resources.templates_root()
    try:
        return environment(root).get_template(name).render(**values)
    # Only errors of syntax have a line, and only these and those of a missing file a name.
    except TemplateError as error:
        raise RenderError(
            "a template cannot be used",
            where=Position(
                f"{root}/{getattr(error, 'name', None) or name}", getattr(error, "lineno", 0) or 0
            ),
            found=error.message or type(error).__name__,
        ) from None
