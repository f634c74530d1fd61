"""Definitions for Apptainer: the packages, downloads and steps of the Dockerfile as scripts, and the same check.

Apptainer begins a section at every line whose first word begins with `%`, a stage at every line that begins with
`bootstrap:`, and expands names in double braces (apptainer/apptainer, pkg/build/types/parser and
internal/pkg/build/args). So a definition is refused that holds more of these than its template.
"""

from __future__ import annotations

import re

from toolmatrix.errors import RenderError
from toolmatrix.rendering import common, dockerfile
from toolmatrix.rendering.model import ImagePlan, Job

SUMMARY = "an Apptainer definition for each image"

_SECTIONS = ("%files", "%post", "%environment", "%test", "%labels", "%runscript")
# The sections of a definition with one stage, and with two.
_STAGED = ("%post", "%files", *_SECTIONS)

_OPENS = re.compile(r"^(?:\s*(%\S*)|bootstrap:)", re.MULTILINE | re.IGNORECASE)
HADOLINT = re.compile(r"^# hadolint .*\n", re.MULTILINE)
"""Comments for hadolint, which the macros of the Dockerfile write into other scripts too."""


def files(job: Job) -> dict[str, str]:
    """`NAME.def` for each image; raises RenderError for a text that would open a section or name a variable."""
    # `# syntax=` speaks to BuildKit, which does not read this file.
    plain = job.replace(choices=job.choices.replace(syntax_line=""))
    return {common.file_name(image, ".def"): _definition(plain, image) for image in job.images}


def _definition(job: Job, image: ImagePlan) -> str:
    # Its parser takes the blanks off both ends of a label.
    for value in image.labels.values():
        if value != value.strip():
            raise RenderError(
                "a label cannot be written to an Apptainer definition",
                expected="a text without leading or trailing blanks",
                found=f"`{ascii(value)[1:-1]}`",
            )
    text = dockerfile.fill("apptainer.def.j2", job, image, modern=False)
    text = HADOLINT.sub("", text)
    wanted = _STAGED if image.artifacts else _SECTIONS
    if image.artifacts and image.closure:
        wanted = ("%files", *wanted)
    opened = [match[1] for match in _OPENS.finditer(text) if match[1]]
    stages = len(_OPENS.findall(text)) - len(opened)
    if tuple(opened) != wanted or stages != (2 if image.artifacts else 1) or "{{" in text:
        raise RenderError(
            "a line cannot be written to an Apptainer definition",
            expected="lines that begin neither with `%` nor with `bootstrap:`, and no `{{`",
            found=f"the recipe `{image.recipe.name}`",
            help="begin the line with another word",
        )
    return text
