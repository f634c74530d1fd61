"""Findings about the matrix itself (`toolmatrix check`): answers, sources, dates and what is missing."""

from __future__ import annotations

from toolmatrix.finding import Finding
from toolmatrix.wording import few, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.finding import Words

# Releases of a framework may be dozens, and a sentence with all of them fills a page.
_FEW = 12


def _asked(finding: Finding, *, way: bool = True) -> str:
    """`'tensorflow==2.6.5' --target arm --from wheel`, as a shell takes it: the newest release in the first way."""
    words = f"'{finding.component}=={finding.releases[-1]}'"
    for first in finding.ways[:1] if way else ():
        words += f" --target {first.target} --from {first.from_}"
        words += f" --accelerator {first.accelerator}" if first.accelerator else ""
    return words


class ExplainedRefusal(Finding):
    """Releases without an answer in some ways, for a recorded reason."""

    code = "TM104"

    def sentence(self, words: Words) -> str:
        return f"no answer for {words.named(self.component, self.releases)} {words.ways(self.ways)}"


class UnexplainedRefusal(ExplainedRefusal):
    """Releases without an answer and without a reason that would explain it to anybody."""

    code = "TM105"

    def sentence(self, words: Words) -> str:
        return f"{super().sentence(words)}, and no short reason is recorded"

    def help(self) -> str:
        return f"`toolmatrix why-not {_asked(self)}` shows the whole reason"


class Undecided(Finding):
    """Releases of which unknown facts decide whether they have an answer."""

    code = "TM120"

    def sentence(self, words: Words) -> str:
        named = words.named(self.component, self.releases)
        return f"cannot say whether {named} has an answer {words.ways(self.ways)}"

    def help(self) -> str:
        return f"`toolmatrix resolve {_asked(self)}` shows the answer and what it rests on"


class Unreachable(Finding):
    """Releases without an answer in any way at all."""

    code = "TM306"

    def sentence(self, words: Words) -> str:
        named = words.named(self.component, self.releases)
        return f"nobody can reach {named}: no target, accelerator or way has an answer"

    def help(self) -> str:
        return f"`toolmatrix why-not {_asked(self, way=False)}` shows the whole reason"


class Disputed(Finding):
    """Two tables that disagree about a component; `rival` does not decide, `deciding` does, each with its evidence."""

    code = "TM301"
    about: str
    rival: str
    deciding: str
    weaker: str
    better: str

    def sentence(self, words: Words) -> str:
        why = " as the other is set aside" if self.actual else ""
        return (
            f"sources disagree about {self.about} for {words.named(self.component, self.releases)}: {self.rival} "
            f"({self.weaker}) says otherwise than {self.deciding} ({self.better}), which decides{why}"
        )

    def help(self) -> str:
        return f"`toolmatrix facts '{self.facts[0]}'` shows the claim that does not decide"


class StaleMatrix(Finding):
    """A matrix that was last reviewed too many days ago."""

    code = "TM302"
    advice = "install a newer toolmatrix, or add newer facts with `--matrix FILE`"
    days: int

    def sentence(self, _words: Words) -> str:
        return f"the matrix was reviewed on {self.actual}, {self.days} days ago"


class Unused(Finding):
    """A source, rule or file that nothing uses."""

    code = "TM304"
    advice = "remove it, or let a fact name it"
    kind: str
    name: str

    def sentence(self, _words: Words) -> str:
        return f"nothing uses the {self.kind} `{self.name}`"


class Dangling(Finding):
    """A name of the front page that leads nowhere; `owner` is what names it."""

    code = "TM305"
    advice = "correct the name, or add what it names"
    owner: str
    name: str

    def sentence(self, _words: Words) -> str:
        return f"{self.owner} names `{self.name}`, which is not there"


class ReadTooLate(Finding):
    """A source that was read on a day yet to come."""

    code = "TM307"
    advice = "correct the date"
    source: str

    def sentence(self, _words: Words) -> str:
        return f"the source `{self.source}` was read on {self.actual}, which is yet to come"


class StaleSource(Finding):
    """A source that was last read too many days ago."""

    code = "TM310"
    advice = "read the source again and change the date, or the fact and the date"
    source: str
    days: int

    def sentence(self, _words: Words) -> str:
        rest = f"{plural(len(self.facts), 'fact')} rest on it"
        return f"{self.source} was read on {self.actual}, {self.days} days ago; {rest}"


class Anachronism(Finding):
    """A row that is said to have been tested with `version` of `tested`, which came out after its subject."""

    code = "TM311"
    tested: str
    version: str

    def sentence(self, words: Words) -> str:
        return (
            f"a row about {words.named(self.component, self.releases)} is said to have been tested with {self.tested} "
            f"{self.version}, which came out on {self.actual}, after {self.expected}"
        )

    def help(self) -> str:
        fact = self.facts[0]
        return (
            f"`toolmatrix facts '{fact}'` shows the row; correct a date, or what the row is worth"
        )


class UnnamedToolkit(Finding):
    """A toolkit that is in the answer for releases, and that no fact of theirs names."""

    code = "TM312"
    advice = (
        "enter the fact that names it, or `toolmatrix explain` the answer to see where it is from"
    )
    toolkit: str
    versions: tuple[str, ...]

    def sentence(self, words: Words) -> str:
        by = f"by facts of {self.actual} alone" if self.actual else "by chance"
        return (
            f"no fact of {self.component} names the {self.toolkit} in the answer for "
            f"{words.named(self.component, self.releases)} {words.ways(self.ways)}: "
            f"{words.named(self.toolkit, self.versions)} is there {by}"
        )


class Missing(Finding):
    """What is not there where it should be; its subclasses say what."""

    code = "TM313"
    advice = "add what is missing with its source, or that nobody can say, with evidence `unknown`"
    kind = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The kind of what is missing, then the values of its fields."""
        return self.kind, *super().names


class MissingBuild(Missing):
    """Releases that are offered for a machine as wheel, without a build for it."""

    kind = "machine"
    machine: str

    def sentence(self, words: Words) -> str:
        named = few(words.named(self.component, self.releases), _FEW)
        return (
            f"{named} is offered for {self.machine} as wheel, and no build of it for that is known"
        )


class MissingToolkit(Missing):
    """Builds for an accelerator of which no fact says which toolkit they need."""

    kind = "toolkit"
    machine: str
    channel: str
    accelerator: str

    def sentence(self, words: Words) -> str:
        named = few(words.named(self.component, self.releases), _FEW)
        return (
            f"no fact says which toolkit the {self.accelerator} builds of {named} for {self.machine} "
            f"on the channel `{self.channel}` need"
        )


class MissingCell(Missing):
    """Rows of a table without a cell that other rows about the same accelerator have."""

    kind = "cell"
    about: str
    table: str
    accelerator: str

    def sentence(self, words: Words) -> str:
        named = few(words.named(self.component, self.releases), _FEW)
        others = {"": "", "none": " without an accelerator"}.get(
            self.accelerator, f" with {self.accelerator}"
        )
        return f"{self.table} does not say which {self.about} goes with {named}, and does for other rows{others}"
