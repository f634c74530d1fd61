"""The Python packages of an image as requirements of pip, each with the SHA-256 of its files.

A file names no lock and no matrix: it is part of what a build is cached by, and packages that are the same shall not be
installed again because something else in a lock moved.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolmatrix.lock.model import LockedClosure, LockedPackage
from toolmatrix.render import common, folder, marker, quote
from toolmatrix.render.model import ImagePlan

# In a file of requirements the index of a maker stands beside the user's own: hashes say which of their files is meant.
_BESIDE = {"--index-url": "--extra-index-url", "-i": "--extra-index-url"}


def files(image: ImagePlan, fetched: str = "") -> dict[str, str]:
    """`NAME.requirements.txt` with its text, where the lock holds the packages; raises RenderError.

    Packages that are taken out of a folder, `fetched`, are named by their versions alone.
    """
    return {name(image): _text(image, image.closure, fetched)} if image.closure else {}


def name(image: ImagePlan) -> str:
    """The name of the file of an image."""
    return common.file_name(image, ".requirements.txt")


def _text(image: ImagePlan, closure: LockedClosure, fetched: str) -> str:
    taken = f"--no-index --find-links {fetched}/{folder.wheels(image)} " if fetched else ""
    about = (
        f"Python packages for Python {closure.asked.python} on {closure.asked.platform}.",
        "Written by toolmatrix; what is edited by hand is kept. To write it again:",
        f"  {common.AGAIN}",
        f"file    {marker.BLANK}",
        "",
        f"pip install {taken}--require-hashes --no-deps --requirement {name(image)}",
    )
    lines = [*_options(() if fetched else closure.asked.options), "--only-binary :all:"]
    if closure.sources:
        lines.append(f"--no-binary {','.join(closure.sources)}")
    packages = closure.packages
    lines += [
        _line(one, packages[one].replace(url="") if fetched else packages[one])
        for one in sorted(packages)
    ]
    return common.comment(about) + "".join(f"{line}\n" for line in lines)


def first(image: ImagePlan) -> tuple[str, ...]:
    """Requirements of what installs the others: each a line with its hashes."""
    return tuple(_line(one, part, " ") for one, part in sorted(image.installers.items()))


def _options(words: tuple[str, ...]) -> Iterator[str]:
    # An option and its value; more of them stand on lines of their own.
    said = ""
    for word in words:
        if word.startswith("-") and said:
            yield said
            said = ""
        said = f"{said} {quote.plain('word', _BESIDE.get(word, word))}".strip()
    if said:
        yield said


def _line(name: str, package: LockedPackage, between: str = " \\\n    ") -> str:
    wanted = common.requirement(
        f"{name}@{package.url}" if package.url else f"{name}=={package.version}"
    )
    digests = sorted({quote.plain("sha256", one) for one in package.files.values()})
    return between.join((wanted, *(f"--hash=sha256:{one}" for one in digests)))
