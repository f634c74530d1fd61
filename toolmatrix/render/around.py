"""Shared parts of the formats around the Dockerfiles: the lines that open a file, YAML below them, names of images."""

from __future__ import annotations

import re

from toolmatrix.errors import RenderError
from toolmatrix.render import ours, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolmatrix.render.model import ImagePlan, Job


AGAIN = "toolmatrix render --lock toolmatrix.lock --output ."
"""The command that writes the files again, from the directory that they lie in; the lock there has its options."""

# What the name of a target in a bake file cannot hold (docs.docker.com, Bake file reference).
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")


def file_name(image: ImagePlan, ending: str) -> str:
    """The name of a file of an image; raises RenderError for an image whose name is more than a word."""
    return f"{quote.plain('release', image.name)}{ending}"


def requirement(text: str) -> str:
    """A requirement that pip takes (PEP 508); raises RenderError for another text."""
    from packaging.requirements import InvalidRequirement, Requirement

    plain = str(quote.plain("requirement", text))
    # The pattern takes some that pip does not, such as `numpy=1`.
    try:
        Requirement(plain)
    except InvalidRequirement as error:
        raise RenderError(
            "a requirement cannot be read", expected="one that pip takes", found=f"`{plain}`"
        ) from error
    return plain


def bake_name(name: str) -> str:
    """The name of the target of an image in a bake file."""
    return _NO_NAME.sub("_", quote.plain("release", name))


def targets(job: Job) -> dict[str, ImagePlan]:
    """The images by the name of their target in the bake file; raises RenderError where two would have one name."""
    found: dict[str, ImagePlan] = {}
    for image in job.images:
        name = bake_name(image.name)
        if name in found:
            raise RenderError(
                "two images would have one name in the bake file",
                expected="environments whose names differ in letters and digits",
                found=f"`{found[name].name}` and `{image.name}`",
            )
        found[name] = image
    return found


def lines(job: Job) -> tuple[str, ...]:
    """The lines that say who wrote a file, how to write it again, and the lock that it came from."""
    return (
        f"Written by toolmatrix {job.version}; what is edited by hand is kept. To write it again:",
        f"  {AGAIN}",
        f"lock    {job.digest}",
        f"matrix  {job.lock.matrix_date} {job.lock.matrix_digest}",
        # By the word `file` its digest finds its place.
        f"file    {ours.BLANK}",
    )


def excluded(job: Job) -> tuple[str, ...]:
    """A line for each target that has no image, with the reason."""
    return tuple(f"excluded {name}: {reason}" for name, reason in job.excluded)


def comment(texts: Iterable[str]) -> str:
    """Comment lines, as shell, YAML, Bazel and pip write them."""
    return "".join(f"# {quote.comment(text)}".rstrip() + "\n" for text in texts)


def as_yaml(texts: Iterable[str], data: Mapping[str, object]) -> str:
    """A YAML document below comment lines; keys stay in their order."""
    import yaml

    body: str = yaml.dump(data, Dumper=_dumper(), sort_keys=False, width=120, allow_unicode=False)
    return comment(texts) + "\n" + body


def _dumper() -> type:
    import yaml

    class Dumper(yaml.SafeDumper):
        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            # PyYAML writes a list as far to the left as its key, and people write it below.
            del indentless
            super().increase_indent(flow, indentless=False)

        def ignore_aliases(self, data: object) -> bool:
            # A list that stands in two places is written twice: people do not look up `*id001`.
            del data
            return True

    return Dumper
