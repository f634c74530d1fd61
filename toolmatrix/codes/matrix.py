"""Findings about the matrix: of `toolmatrix check` by itself, and of `toolmatrix audit` beside its sources."""

from __future__ import annotations

from toolmatrix.finding import Finding
from toolmatrix.wording import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.finding import Words


class MatrixFinding(Finding):
    """A finding about the matrix, with the words that help to look at it."""

    @property
    def pin(self) -> str:
        """`tensorflow==2.6.5`, the newest of the releases."""
        return f"{self.component}=={self.releases[-1]}"

    @property
    def request_words(self) -> str:
        """`'tensorflow==2.6.5' --target arm --from wheel`, as a shell takes it."""
        # A request has one way, and the reason is the same in all: the first represents them.
        first = self.ways[0]
        accelerator = f" --accelerator {first.accelerator}" if first.accelerator else ""
        return f"'{self.pin}' --target {first.target} --from {first.from_}{accelerator}"

    @property
    def fact(self) -> str:
        """The first of the facts."""
        return self.facts[0]


class ExplainedRefusal(MatrixFinding):
    """Releases without an answer in some ways, for a recorded reason."""

    code = "TM104"
    text = "no answer for {named} {in_ways}"


class UnexplainedRefusal(MatrixFinding):
    """Releases without an answer and without a recorded reason."""

    code = "TM105"
    text = "no answer for {named} {in_ways}, and no short reason is recorded"
    advice = "`toolmatrix why-not {request_words}` shows the whole reason"


class Undecided(MatrixFinding):
    """Releases of which unknown facts decide whether they have an answer."""

    code = "TM120"
    text = "cannot say whether {named} has an answer {in_ways}"
    advice = "`toolmatrix resolve {request_words}` shows the answer and its facts"


class Disputed(MatrixFinding):
    """Two tables that disagree about a component; `rival` does not decide, `deciding` does, each with its evidence."""

    code = "TM301"
    text = (
        "sources disagree about {about} for {named}: "
        "{deciding} ({better}) decides over {rival} ({weaker})"
    )
    advice = "`toolmatrix facts '{fact}'` shows the claim that does not decide"
    about: str
    rival: str
    deciding: str
    weaker: str
    better: str

    def sentence(self, words: Words) -> str:
        # `actual` is set where the row was set aside by hand, and not outweighed.
        return super().sentence(words) + (", which is set aside" if self.actual else "")


class StaleMatrix(MatrixFinding):
    """A matrix that was last reviewed too many days ago."""

    code = "TM302"
    text = "the matrix was reviewed on {actual}, {days} days ago"
    advice = "install a newer toolmatrix, or add newer facts with `--matrix FILE`"
    days: int


class Unused(MatrixFinding):
    """A source, rule or file that nothing uses."""

    code = "TM304"
    text = "nothing uses the {kind} `{name}`"
    advice = "remove it, or name it in a fact"
    kind: str
    name: str


class Dangling(MatrixFinding):
    """A name of the front page that leads nowhere; `owner` is what names it."""

    code = "TM305"
    text = "{owner} names `{name}`, which does not exist"
    advice = "correct the name, or add what it names"
    owner: str
    name: str


class Unreachable(MatrixFinding):
    """Releases without an answer in any way at all."""

    code = "TM306"
    text = "no request has an answer with {named}, on any target, with any accelerator, from source or wheel"
    advice = "`toolmatrix why-not '{pin}'` shows the whole reason"


class ReadTooLate(MatrixFinding):
    """A source that was read on a day yet to come."""

    code = "TM307"
    text = "the source `{source}` was read on {actual}, which is in the future"
    advice = "correct the date"
    source: str


class StaleSource(MatrixFinding):
    """A source that was last read too many days ago."""

    code = "TM310"
    text = "{source} was read on {actual}, {days} days ago; {count} rest on it"
    advice = "read the source again and change the date, or the fact and the date"
    source: str
    days: int

    @property
    def count(self) -> str:
        """The number of facts that rest on the source."""
        return plural(len(self.facts), "fact")


class Anachronism(MatrixFinding):
    """A row that is said to have been tested with `version` of `tested`, which came out after its subject."""

    code = "TM311"
    text = (
        "a row claims that {named} was tested with {tested} {version}, "
        "which came out on {actual}, after {expected}"
    )
    advice = "`toolmatrix facts '{fact}'` shows the row; correct a date, or the evidence of the row"
    tested: str
    version: str


class UnnamedToolkit(MatrixFinding):
    """A toolkit that is in the answer for releases, and that no fact of theirs names."""

    code = "TM312"
    text = "no fact of {component} names the {toolkit} in the answer for {named} {in_ways}: "
    advice = "add a fact that names it, or see with `toolmatrix explain` where it comes from"
    toolkit: str
    versions: tuple[str, ...]

    def sentence(self, words: Words) -> str:
        by = f"only because of {self.actual}" if self.actual else "by chance"
        chosen = words.named(self.toolkit, self.versions)
        return f"{super().sentence(words)}{chosen} was chosen {by}"


class Missing(MatrixFinding):
    """A gap in the facts; its subclasses are the kinds of gaps."""

    code = "TM313"
    advice = "add the missing value with its source, or an entry with evidence `unknown`"
    kind = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The kind of what is missing, then the values of its fields."""
        # Names order the findings of one code, and three kinds share this one.
        return self.kind, *super().names


class MissingBuild(Missing):
    """Releases that are offered for a machine as wheel, without a build for it."""

    kind = "machine"
    text = "{some} is offered for {machine} as wheel, but no build for that machine is known"
    machine: str


class MissingToolkit(Missing):
    """Builds for an accelerator of which no fact says which toolkit they need."""

    kind = "toolkit"
    text = (
        "no fact says which toolkit the {accelerator} builds of {some} for {machine} "
        "on the channel `{channel}` need"
    )
    machine: str
    channel: str
    accelerator: str


class MissingCell(Missing):
    """Rows of a table without a cell that other rows about the same accelerator have."""

    kind = "cell"
    text = "{table} has no {about} for {some}, but has one for other rows{others}"
    about: str
    table: str
    accelerator: str

    @property
    def others(self) -> str:
        """The rows that have the cell."""
        # Those for the same accelerator, where the table has one: a row for the CPU lacks no toolkit.
        known = {"": "", "none": " without an accelerator"}
        return known.get(self.accelerator, f" with {self.accelerator}")


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
    text = "the index lists {component} {unknown}, which the matrix does not know"
    advice = "run `toolmatrix harvest {component}`, or add them with their source"
    unknown: tuple[str, ...]


class WithdrawnRelease(MatrixFinding):
    """Releases that the matrix has from the index, and that are not there any more."""

    code = "TM323"
    text = "the index no longer lists {named}, which was read there"
    advice = "check the index; `yanked: true` keeps a release but never chooses it"


class RefusedWheel(MatrixFinding):
    """Published wheels that the matrix refuses, although the refusing fact is about their own tags."""

    code = "TM324"
    text = "the index has wheels of {named} for Python {python} on {machine}, but the matrix refuses them"
    advice = "`toolmatrix why-not '{pin}' --from wheel --with python=={python}` shows the reason"
    python: str
    machine: str


class UnresolvedPins(MatrixFinding):
    """An answer from wheels that a resolver of Python packages refuses."""

    code = "TM325"
    text = "{resolver} does not resolve the answer for {named} {in_ways}: {actual}"
    advice = "`toolmatrix resolve {request_words} --json` shows the pins"
    resolver: str


class ValueNotThere(MatrixFinding):
    """A fact whose value is not in the file that its source names."""

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
    advice = "`toolmatrix resolve '{pin}' python=={python} --from wheel --accelerator none` shows the pins"
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
    """A package that releases require and that is a component, without a fact about it."""

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
    """Releases whose device code counts as unread although their wheels are pure Python."""

    code = "TM336"
    text = "the device code of {some} counts as unread, but its wheels are pure Python"
    advice = "limit the statement to releases with compiled code"


class ReadBefore(MatrixFinding):
    """A table that cites METADATA and does not say whether all of it was read."""

    code = "TM337"
    text = "{table} cites METADATA, but does not record the other requirements of its releases"
    advice = "run `toolmatrix harvest` to read them; in a curated table, add `requirements-read`"
    table: str
