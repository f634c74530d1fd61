"""Findings about the matrix itself (`toolmatrix check`): answers, sources, dates and what is missing."""

from __future__ import annotations

from toolmatrix.finding import Finding
from toolmatrix.wording import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.finding import Words


class MatrixFinding(Finding):
    """A finding about the matrix, with the words that help to look at it."""

    @property
    def asked(self) -> str:
        """`tensorflow==2.6.5`, the newest of the releases."""
        return f"{self.component}=={self.releases[-1]}"

    @property
    def asked_in_way(self) -> str:
        """`'tensorflow==2.6.5' --target arm --from wheel`, as a shell takes it."""
        # A request has one way, and the reason is the same in all: the first stands for them.
        first = self.ways[0]
        accelerator = f" --accelerator {first.accelerator}" if first.accelerator else ""
        return f"'{self.asked}' --target {first.target} --from {first.from_}{accelerator}"

    @property
    def fact(self) -> str:
        """The first of the facts."""
        return self.facts[0]


class ExplainedRefusal(MatrixFinding):
    """Releases without an answer in some ways, for a recorded reason."""

    code = "TM104"
    text = "no answer for {named} {in_ways}"


class UnexplainedRefusal(MatrixFinding):
    """Releases without an answer and without a reason that would explain it to anybody."""

    code = "TM105"
    text = "no answer for {named} {in_ways}, and no short reason is recorded"
    advice = "`toolmatrix why-not {asked_in_way}` shows the whole reason"


class Undecided(MatrixFinding):
    """Releases of which unknown facts decide whether they have an answer."""

    code = "TM120"
    text = "cannot say whether {named} has an answer {in_ways}"
    advice = "`toolmatrix resolve {asked_in_way}` shows the answer and its facts"


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
    advice = "`toolmatrix why-not '{asked}'` shows the whole reason"


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
        # Those about the same accelerator, where the table tells one: a row for the CPU lacks no toolkit.
        known = {"": "", "none": " without an accelerator"}
        return known.get(self.accelerator, f" with {self.accelerator}")
