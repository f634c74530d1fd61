"""Shared parts of the formats around the Dockerfiles: the lines that open a file, YAML or TOML below them, names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from toolmatrix.errors import RenderError
from toolmatrix.lockfile import lock_file
from toolmatrix.rendering import quote
from toolmatrix.rendering.model import ImagePlan, Job

BLANK = "sha256:" + 64 * "0"
"""The placeholder of the digest, which templates write after the word `file`."""

_NAMED = re.compile(r"\bfile\W+(sha256:[0-9a-f]{64})\b")


def signed(text: str) -> str:
    """A rendered text with its digest."""
    from hashlib import sha256

    return _with(text, "sha256:" + sha256(text.encode("utf-8", "surrogateescape")).hexdigest())


def is_ours(text: str) -> bool:
    """True if a text names a digest of itself, as only rendered files do."""
    return _NAMED.search(text) is not None


def is_unchanged(text: str) -> bool:
    """True if a text is as it was written, whatever its line ends."""
    # git may have converted the line ends of a clone.
    plain = text.replace("\r\n", "\n")
    return is_ours(plain) and signed(_with(plain, BLANK)) == plain


def _with(text: str, digest: str) -> str:
    # Only the first, in the head of the file: others may come from a recipe.
    return _NAMED.sub(lambda match: match[0].replace(match[1], digest), text, count=1)


AGAIN = "toolmatrix render --lock toolmatrix.lock --output ."
"""The command that writes the files again, from the directory that they lie in; the lock there has its options."""

# What the names of packages, projects and objects elsewhere cannot hold.
_NO_LABEL = re.compile(r"[^a-z0-9]+")
# The number of digits of the lock's digest in a tag.
_SHORT = 12
# What the name of a target in a bake file cannot hold (docs.docker.com, Bake file reference).
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_NO_TAG = re.compile(r"[^A-Za-z0-9_.-]")


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
            "a requirement cannot be read", expected="one that pip accepts", found=f"`{plain}`"
        ) from error
    return plain


def requirements(image: ImagePlan) -> list[str]:
    """The Python packages of an image as requirements, builds of other indexes among them."""
    builds = chain.from_iterable(build.requirements for build in image.locked.variants.values())
    return [requirement(text) for text in dict.fromkeys((*builds, *image.pip))]


def pip_options(image: ImagePlan) -> list[str]:
    """The options of pip for builds of other indexes, once each."""
    builds = [build for build in image.locked.variants.values() if build.options]
    lines = (" ".join(quote.plain("word", word) for word in build.options) for build in builds)
    return [*dict.fromkeys(lines)]


def label(image: ImagePlan) -> str:
    """The recipe and the image as a name in small letters, digits and dashes, which every other tool takes."""
    plain = (quote.plain("release", word) for word in (image.recipe.name, image.name))
    return _NO_LABEL.sub("-", "-".join(plain).lower()).strip("-")


def bake_name(name: str) -> str:
    """The name of the target of an image in a bake file."""
    return _NO_NAME.sub("_", quote.plain("release", name))


def tag(image: ImagePlan, job: Job | None = None) -> str:
    """The name and tag of an image in the bake file; with a job the tag names its lock as well.

    The name is that of the recipe, or of the first requested component where the recipe installs any.
    """
    name, release = image.recipe.name, ""
    if image.recipe.runs and image.wanted:
        name = image.wanted[0]
        release = _NO_TAG.sub("_", image.locked.components[name].version) + "-"
    tag = f"{quote.plain('release', name)}:{release}{bake_name(image.name)}"
    lock = quote.plain("digest", job.digest).partition(":")[2][:_SHORT] if job else ""
    return f"{tag}-{lock}" if lock else tag


def targets(job: Job) -> dict[str, ImagePlan]:
    """The images by the name of their target in the bake file; raises RenderError where two would have one name."""
    images: dict[str, ImagePlan] = {}
    for image in job.images:
        name = bake_name(image.name)
        if name in images:
            raise RenderError(
                "two images would have the same name in the bake file",
                expected="environments whose names differ in letters and digits",
                found=f"`{images[name].name}` and `{image.name}`",
            )
        images[name] = image
    return images


def lines(job: Job) -> tuple[str, ...]:
    """The lines that say what wrote a file, how to write it again, and from which lock."""
    return (
        f"Written by toolmatrix {job.version}; it does not overwrite edited files. To regenerate:",
        f"  {AGAIN}",
        f"lock    {job.digest}",
        f"matrix  {job.lock.matrix_date} {job.lock.matrix_digest}",
        # The digest of the file is written after the word `file`.
        f"file    {BLANK}",
    )


def absent(image: ImagePlan) -> tuple[str, ...]:
    """A line for each component that only an image has, or a build with its tools, and no list of packages."""
    components = image.locked.components
    return tuple(
        f"{name} {components[name].version} is built from source and not in this file"
        for name in (*image.recipe.built(components), *image.left_out)
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


def as_toml(texts: Iterable[str], data: Mapping[str, object]) -> str:
    """A TOML document below comment lines; tables come after values, and values are on one line."""
    return comment(texts) + "\n" + "\n".join(_tables((), data))


def _tables(keys: tuple[str, ...], data: Mapping[str, object]) -> Iterator[str]:
    plain = {name: value for name, value in data.items() if not _is_table(value)}
    if plain:
        head = lock_file.header(keys) if keys else ""
        yield head + "".join(f"{lock_file.key(key)} = {_toml(plain[key])}\n" for key in plain)
    for name, value in data.items():
        if isinstance(value, dict) and name not in plain:
            yield from _tables((*keys, name), value)
        elif isinstance(value, list) and name not in plain:
            # One table of several has its name in two pairs of brackets.
            head = lock_file.header((*keys, name)).strip()
            for row in value:
                lines = "".join(f"{lock_file.key(key)} = {_toml(row[key])}\n" for key in row)
                yield f"[{head}]\n{lines}"


def _is_table(value: object) -> bool:
    if isinstance(value, Inline):
        return False
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_is_table, value)))


class Inline(dict[str, object]):
    """A table that TOML shall have on the line of its key."""


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{lock_file.key(key)} = {_toml(value[key])}' for key in value)} }}"
    if isinstance(value, list):
        several = "".join(f"    {_toml(element)},\n" for element in value)
        return f"[\n{several}]" if len(value) > 1 else f"[{', '.join(map(_toml, value))}]"
    return lock_file.string(str(value))


def _dumper() -> type:
    import yaml

    class Dumper(yaml.SafeDumper):
        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            # PyYAML writes a list as far to the left as its key, and people write it below.
            del indentless
            super().increase_indent(flow, indentless=False)

        def ignore_aliases(self, data: object) -> bool:
            # A list that occurs twice is written twice: people do not look up `*id001`.
            del data
            return True

    return Dumper
