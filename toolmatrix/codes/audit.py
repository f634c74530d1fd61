"""Findings of `toolmatrix audit`: what is missing, stale or no longer so beside the sources of the matrix."""

from __future__ import annotations

from toolmatrix.codes.matrix import MatrixFinding


class BelowFloor(MatrixFinding):
    """A component of which too few of the published releases are known."""

    code = "TM320"
    text = "{component}: {known} of {published} published releases are known, {share} %"
    advice = "run `toolmatrix harvest` to read the others; matrix/audit.yaml sets the floor"
    known: int
    published: int
    share: int


class AgedReading(MatrixFinding):
    """A source that was read longer ago than sources of its kind may be."""

    code = "TM321"
    text = "{source} ({kind}) was read on {actual}, {days} days ago"
    advice = "run `toolmatrix harvest` for harvested sources; read the others by hand"
    source: str
    kind: str
    days: int


class UnknownRelease(MatrixFinding):
    """Releases that the index lists and the matrix does not know."""

    code = "TM322"
    text = "the index lists {component} {listed}, which the matrix does not know"
    advice = "run `toolmatrix harvest {component}`, or add them with their source"
    listed: tuple[str, ...]


class WithdrawnRelease(MatrixFinding):
    """Releases that the matrix has from the index, and that are not there any more."""

    code = "TM323"
    text = "the index no longer lists {named}, which was read there"
    advice = "check the index; `yanked: true` keeps a release but never chooses it"


class RefusedWheel(MatrixFinding):
    """Published wheels that the matrix refuses, although what refuses them speaks of their own tags."""

    code = "TM324"
    text = "the index has wheels of {named} for Python {python} on {machine}, but the matrix refuses them"
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
    text = "{actual} does not contain `{value}`"
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
        "{named} fails with {dependency} {fails}, which its requirements allow, "
        "in code of {culprit}: {actual}"
    )
    advice = "use `--write FILE` to write the bound as a fact"
    dependency: str
    fails: str
    culprit: str


class UntriedAnswer(MatrixFinding):
    """An answer from wheels of which this machine cannot say whether it can be used."""

    code = "TM330"
    text = (
        "the answer for {named} {in_ways} with Python {python}{newer} could not be tried: {actual}"
    )
    advice = "run it on another machine"
    python: str
    # ` and numpy 2.0.0` where it is the answer with a newer package.
    newer: str = ""


class DeviceCodeOnCpu(MatrixFinding):
    """Builds that hold code for devices, and are listed as builds for the CPU."""

    code = "TM331"
    text = "{some} for {machine} is listed as a build for the CPU ({line}) but has device code"
    advice = "`toolmatrix facts '{fact}'` shows the reading of the build; correct its line"
    machine: str
    line: str


class UnreadRequirement(MatrixFinding):
    """A package that releases require and that is a component, of which no fact of theirs speaks."""

    code = "TM332"
    text = "releases in {table} require the component {package}, but the table has no column for it"
    advice = "run `toolmatrix harvest` to read it; in a curated table, add a column"
    table: str
    package: str


class WheelWithoutFile(MatrixFinding):
    """Releases that have no wheel for a machine, and that are answered with as wheels there."""

    code = "TM333"
    text = "{some} has no wheel for {machine}, and no fact refuses it as a wheel there"
    advice = "limit its machine as a wheel, or limit `from` if it has no wheels"
    machine: str


class OldToolkit(MatrixFinding):
    """Builds with code for archs that the toolkit which they were built with does not make."""

    code = "TM334"
    text = "{some} was built with {toolkit} {actual} but has code for {archs}, which it does not support"
    advice = "`toolmatrix facts '{fact}'` shows the toolkit; correct the one that was read wrongly"
    toolkit: str
    archs: tuple[str, ...]


class TwoLines(MatrixFinding):
    """Builds whose line is another one in another place."""

    code = "TM335"
    text = (
        "the build of {some} for {machine} has the line {line} in one place and {actual} in another"
    )
    advice = "`toolmatrix facts '{fact}'` shows one of the two; open the file and correct the other"
    machine: str
    line: str


class PureUnread(MatrixFinding):
    """Releases of which nobody read the code for devices, and whose wheels are Python alone."""

    code = "TM336"
    text = "the device code of {some} counts as unread, but its wheels are pure Python"
    advice = "limit the statement to releases with compiled code"


class ReadBefore(MatrixFinding):
    """A table that cites METADATA and does not say whether all of it was read."""

    code = "TM337"
    text = "{table} cites METADATA, but does not record the other requirements of its releases"
    advice = "run `toolmatrix harvest` to read them; in a curated table, add `requirements-read`"
    table: str
