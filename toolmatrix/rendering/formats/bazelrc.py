"""Compiler flags of the answer as options of Bazel, one configuration for each image: `bazel build --config=arm`.

Bazel's command-line reference describes `--copt` and `--host_copt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolmatrix.errors import RenderError
from toolmatrix.rendering import common, mirrors, quote
from toolmatrix.rendering.model import ImagePlan, Job

SUMMARY = "compiler flags as Bazel configurations, for images that have any"

_HOST_ENV = "host_action_env"
# Characters without a meaning of their own in a bazelrc (Bazel, bazelrc files).
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+=, -]*", re.ASCII)


def files(job: Job) -> dict[str, str]:
    """The file `.bazelrc`, if an image has flags; raises RenderError for a value with letters that Bazel reads."""
    options = [line for image in job.images for line in _lines(image)]
    if not options:
        return {}
    use = "bazel build --config=NAME, where NAME is an image; `import` this file from an existing .bazelrc"
    return {".bazelrc": common.comment((*common.lines(job), "", use)) + "\n".join(options) + "\n"}


def _lines(image: ImagePlan) -> Iterator[str]:
    # A `copt` holds for C and C++: the same flags are said once.
    c, cxx = (image.env.get(name, "").split() for name in ("CFLAGS", "CXXFLAGS"))
    named = {"copt": c} if c == cxx else {"conlyopt": c, "cxxopt": cxx}
    for option, flags in named.items():
        for flag in flags:
            # Tools that the build makes for itself run on the same machine as its products.
            for prefix in ("", "host_"):
                yield _line(image.name, f"--{prefix}{option}={quote.plain('flag', flag)}")
    bazel = image.locked.components.get("bazel")
    options = ["action_env"]
    # An option that a Bazel does not know ends every command: where none was resolved it may be an old one.
    if bazel and mirrors.bazel(_HOST_ENV, bazel.version):
        options.append(_HOST_ENV)
    for name, text in sorted(image.locked.flags.env.items()):
        for option in options:
            yield _line(image.name, f"--{option}={quote.plain('name', name)}={text}")


def _line(config: str, option: str) -> str:
    if not _PLAIN.fullmatch(option):
        raise RenderError(
            "a value cannot be written to a .bazelrc",
            expected="characters that need no quoting in Bazel",
            found=f"`{ascii(option)[1:-1]}`",
            help="correct the lock or the recipe that it comes from",
        )
    quoted = f'"{option}"' if " " in option else option
    return f"build:{quote.plain('release', config)} {quoted}"
