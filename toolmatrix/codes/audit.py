"""Findings of `toolmatrix audit`: what is missing, stale or no longer so beside the sources of the matrix."""

from __future__ import annotations

from toolmatrix.codes.matrix import MatrixFinding


class BelowFloor(MatrixFinding):
    """A component of which too few of the published releases are known."""

    code = "TM320"
    text = "{component}: {known} of {published} published releases are known, {share} %"
    advice = "`toolmatrix harvest` reads the others; matrix/audit.yaml holds the floor"
    known: int
    published: int
    share: int


class AgedReading(MatrixFinding):
    """A source that was read longer ago than sources of its kind may be."""

    code = "TM321"
    text = "{source} ({kind}) was read on {actual}, {days} days ago"
    advice = "`toolmatrix harvest` reads what it wrote again; read the others by hand"
    source: str
    kind: str
    days: int


class UnknownRelease(MatrixFinding):
    """Releases that the index lists and the matrix does not know."""

    code = "TM322"
    text = "the index lists {component} {listed}, which the matrix does not know"
    advice = "`toolmatrix harvest {component}`, or add them with their source"
    listed: tuple[str, ...]


class WithdrawnRelease(MatrixFinding):
    """Releases that the matrix has from the index, and that are not there any more."""

    code = "TM323"
    text = "the index does not list {named} any more, which was read there"
    advice = "look at the index; `yanked: true` keeps a release that is not to be chosen"


class RefusedWheel(MatrixFinding):
    """Published wheels that the matrix refuses, although what refuses them speaks of their own tags."""

    code = "TM324"
    text = "the index has wheels of {named} for Python {python} on {machine}, and the answer is no"
    advice = "`toolmatrix why-not '{asked}' --from wheel --with python=={python}` shows the reason"
    python: str
    machine: str


class UnresolvedPins(MatrixFinding):
    """An answer from wheels that a resolver of Python packages refuses."""

    code = "TM325"
    text = "{resolver} does not resolve the answer for {named} {in_ways}: {actual}"
    advice = "`toolmatrix resolve {asked_in_way} --json` shows the pins"
    resolver: str


class ValueNotThere(MatrixFinding):
    """A fact whose value does not stand in the file that its source names."""

    code = "TM326"
    text = "`{value}` does not stand in {actual}"
    advice = "`toolmatrix facts '{fact}'` shows the fact; correct it, or its source"
    value: str


class HarvestedOtherwise(MatrixFinding):
    """A harvested table and a curated one that disagree."""

    code = "TM327"
    text = "{harvested} (harvested) and {curated} (curated) disagree about {about} for {named}"
    advice = "`toolmatrix facts '{fact}'` shows the claim that does not decide"
    harvested: str
    curated: str
    about: str


class UnimportableAnswer(MatrixFinding):
    """An answer from wheels whose packages, installed as it says, cannot be imported and used."""

    code = "TM328"
    text = "the answer for {named} {in_ways} with Python {python} cannot be used: {actual}"
    advice = "`toolmatrix resolve '{asked}' python=={python} --from wheel --accelerator none` shows the pins"
    python: str


class BreakingDependency(MatrixFinding):
    """A release that fails with a newer one of a package that its requirements let through."""

    code = "TM329"
    text = (
        "{named} fails with {dependency} {fails}, which its requirements let through, "
        "in code of {culprit}: {actual}"
    )
    advice = "`--write FILE` writes the bound as a fact"
    dependency: str
    fails: str
    culprit: str


class UntriedAnswer(MatrixFinding):
    """An answer from wheels of which this machine cannot say whether it can be used."""

    code = "TM330"
    text = (
        "the answer for {named} {in_ways} with Python {python}{newer} could not be tried: {actual}"
    )
    advice = "run it on a machine that can"
    python: str
    # ` and numpy 2.0.0` where it is the answer with a newer package.
    newer: str = ""


class DeviceCodeOnCpu(MatrixFinding):
    """Builds that hold code for devices, and are listed as builds for the CPU."""

    code = "TM331"
    text = (
        "{some} for {machine} is listed as a build for the CPU ({line}) and holds code for devices"
    )
    advice = "`toolmatrix facts '{fact}'` shows what was read inside; correct the line of the build"
    machine: str
    line: str


class UnreadRequirement(MatrixFinding):
    """A package that releases require and that is a component, of which no fact of theirs speaks."""

    code = "TM332"
    text = "releases in {table} require {package}, which is a component, and no column speaks of it"
    advice = "`toolmatrix harvest` reads it; in a table by hand, add a column"
    table: str
    package: str


class WheelWithoutFile(MatrixFinding):
    """Releases that have no wheel for a machine, and that are answered with as wheels there."""

    code = "TM333"
    text = "no file of {some} is a wheel for {machine}, and no fact refuses it as one"
    advice = "limit its machine where it is a wheel, or `from` where it has none"
    machine: str


class OldToolkit(MatrixFinding):
    """Builds with code for archs that the toolkit which they were built with does not make."""

    code = "TM334"
    text = "{some} was built with {toolkit} {actual} and holds code for {archs}, which that does not make"
    advice = "`toolmatrix facts '{fact}'` shows the toolkit; one of the two was read wrongly"
    toolkit: str
    archs: tuple[str, ...]


class TwoLines(MatrixFinding):
    """Builds whose line is another one in another place."""

    code = "TM335"
    text = "the build of {some} for {machine} is of the line {line} in one place and of {actual} in another"
    advice = "`toolmatrix facts '{fact}'` shows one of the two; open the file and correct the other"
    machine: str
    line: str


class PureUnread(MatrixFinding):
    """Releases of which nobody read the code for devices, and whose wheels are Python alone."""

    code = "TM336"
    text = "the code for devices in {some} counts as unread, and its wheels are Python alone"
    advice = "limit the statement to releases with compiled code"


class ReadBefore(MatrixFinding):
    """A table that cites METADATA and does not say whether all of it was read."""

    code = "TM337"
    text = "{table} cites METADATA, and does not say what else its releases require"
    advice = "`toolmatrix harvest` reads it; in a table by hand, add `requirements-read`"
    table: str
