"""A finding: one judged difference, with a code, a place and the facts behind it.

The pages of rules.yaml are its codes, each with the templates of its sentence and its help; judges make findings,
`report` lays them out. A verdict is what came of one check of an image or a machine, whether it found something or not.
"""

from __future__ import annotations

from functools import cache

from toolmatrix.documents import Annotated, Code, Count, TypedDict
from toolmatrix.resources import load_yaml, rules_path
from toolmatrix.value import Value
from toolmatrix.wording import few, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Protocol, TypeVar

    from typing_extensions import Self

    from toolmatrix.errors import Position

    AnyFinding = TypeVar("AnyFinding", bound="Finding")

UNDECIDED = "TM120"
"""The code of what no fact decides."""
SEVERITIES = ("error", "warning", "info")
VERDICTS = "toolmatrix.verdicts/1"
"""The schema of what came of all checks of a subject."""

# Releases of a framework may be dozens, and a sentence with all of them fills a page.
_FEW = 12


class VerdictsLock(TypedDict):
    """The lock that a subject was checked against."""

    path: str
    digest: str
    target: str


class VerdictPlace(TypedDict):
    """Where it was seen, and what brought it there."""

    path: str | None
    layer: str | None
    instruction: str | None


class OtherVersion(TypedDict):
    """Another version that is there."""

    version: str
    where: str


class VerdictEntry(TypedDict):
    """What came of a check."""

    verdict: Annotated[str, WORDS]
    kind: str
    name: str
    code: Code | None
    severity: Annotated[str, SEVERITIES] | None
    expected: str | None
    actual: str | None
    seen_by: str | None
    reason: str | None
    help: str | None
    evidence: str | None
    where: VerdictPlace
    others: list[OtherVersion]
    facts: list[str]


class VerdictsDocument(TypedDict):
    """What `toolmatrix validate --json` and `toolmatrix doctor --json` print of one subject, and each line of
    `--format jsonl`. `lock` is what it was checked against, null for expectations and facts; `checked` counts
    what was not skipped; `others` are further versions that were found.
    """

    schema: Annotated[str, VERDICTS]
    subject: str
    platform: str | None
    digest: str | None
    outcome: Annotated[str, OUTCOMES]
    lock: VerdictsLock | None
    summary: Annotated[dict[str, Count], "pass", "warn", "fail", "skip", "unknown", "checked"]
    verdicts: list[VerdictEntry]


class InstallMethod(Value):
    """One way to get a framework: its target, whether it is built or installed, and its accelerator.

    Without an accelerator it means every requested one.
    """

    target: str
    from_: str
    accelerator: str = ""


class Incompatibility(Value):
    """One line of a reason: a pair of components that facts do not let go together.

    `kind` is requires, limits, needs, evidence or touching, or of one component alone withdrawn, later or unneeded;
    `releases` are those of the subject that matter; `clashing` are the releases of `component` that the other lines
    leave and this one excludes; `conditions` are further components that must be within the given releases.
    """

    kind: str
    subject: str
    releases: tuple[str, ...]
    component: str
    values: tuple[str, ...]
    clashing: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    facts: tuple[str, ...] = ()
    evidence: str = ""
    source: str = ""


if TYPE_CHECKING:

    class Words(Protocol):
        """Words for releases and ways, in the order of the matrix that a sentence is about."""

        def named(self, component: str, releases: Sequence[str]) -> str:
            """`tensorflow 2.6.0-2.6.5`, or the component alone where all of its releases are meant."""

        def ways(self, ways: Sequence[InstallMethod]) -> str:
            """`on arm as wheel`."""


class Finding(Value):
    """One judged difference.

    `text` and `advice` are the templates of its sentence and its help. Its `values`, which it is about besides, have a
    place in them, as `phrases` and any of its attributes have, and in the sentence `{named}`, the component with its
    releases, `{some}`, the same with a few of them, and `{in_ways}`.

    `plan` and `stage` count from 0: the invocation of a driver in a log, and the stage of it.
    """

    code: str
    text: str = ""
    advice: str = ""
    values: tuple[tuple[str, Any], ...] = ()
    phrases: tuple[tuple[str, str], ...] = ()
    severity: str
    component: str = ""
    releases: tuple[str, ...] = ()
    ways: tuple[InstallMethod, ...] = ()
    grounds: tuple[Incompatibility, ...] = ()
    expected: str = ""
    actual: str = ""
    facts: tuple[str, ...] = ()
    where: Position | None = None
    plan: int | None = None
    stage: int | None = None

    @classmethod
    def of(
        cls, code: str, variant: str = "", *, phrases: Mapping[str, str] = {}, **fields: Any
    ) -> Self:
        """The finding of a code, whose page has its templates, in that `variant`, and its severity unless it is given.

        What is no field of a finding is one of its values.
        """
        page = code_pages()[code]
        own = tuple(name for name in fields if name not in cls._fields)
        values = tuple((name, fields.pop(name)) for name in own)
        return cls(
            code=code,
            text=_template(page.get("text", ""), variant),
            advice=_template(page.get("help", ""), variant),
            values=values,
            phrases=tuple(phrases.items()),
            **({"severity": page["severity"]} | fields),
        )

    def __getitem__(self, name: str) -> Any:
        return dict(self.values)[name]

    @property
    def names(self) -> tuple[str, ...]:
        """What it is about besides: the fields of its class, then its values, one after the other."""
        own = [getattr(self, field) for field in self._fields if field not in Finding._fields]
        return tuple(_flatten([*own, *(value for _, value in self.values)]))

    @property
    def fact(self) -> str:
        """The first of the facts."""
        return self.facts[0]

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
    def toolkit(self) -> str:
        """`cuda 13.0.1 to 13.0.3`: its component and releases, where these are the toolkit of a plan."""
        # A driver prints its version, which several releases may ship.
        ends = self.releases[:1] + self.releases[1:][-1:]
        return f"{self.component} {' to '.join(ends)}" if ends else "this toolkit"

    def sentence(self, words: Words) -> str:
        """The sentence that says what was found."""
        return self.text.format_map(_TemplateFields(self, words))

    def help(self) -> str:
        """The sentence that says what to do next; empty where there is nothing to do."""
        return self.advice.format_map(_TemplateFields(self))


@cache
def code_pages() -> dict[str, dict[str, Any]]:
    """The pages of the codes in rules.yaml."""
    pages: dict[str, dict[str, Any]] = load_yaml(rules_path())
    return pages


def _template(text: str | Mapping[str, str], variant: str) -> str:
    return text if isinstance(text, str) else text[variant if variant in text else "otherwise"]


def union_of_fields(values: Iterable[Value], field: str) -> tuple[Any, ...]:
    """Everything that a field of several values holds, each once."""
    return tuple(dict.fromkeys(entry for value in values for entry in getattr(value, field)))


def merge(findings: Iterable[AnyFinding], *fields: str) -> list[AnyFinding]:
    """Findings that differ in some of their lists alone as one, whose lists hold everything."""
    same: dict[Finding, list[AnyFinding]] = {}
    for finding in findings:
        same.setdefault(finding.replace(**dict.fromkeys(fields, ())), []).append(finding)
    return [
        alike[0].replace(**{field: union_of_fields(alike, field) for field in fields})
        for alike in same.values()
    ]


# Values are computed on access: most templates use one of them, and naming releases takes time.
class _TemplateFields(dict[str, str]):
    def __init__(self, finding: Finding, words: Words | None = None) -> None:
        super().__init__()
        self.finding = finding
        self.words = words

    def __missing__(self, field: str) -> str:
        finding = self.finding
        if self.words is not None and field in ("named", "some"):
            named = self.words.named(finding.component, finding.releases)
            return named if field == "named" else few(named, _FEW)
        if self.words is not None and field == "in_ways":
            return self.words.ways(finding.ways)
        # Templates are part of the program; values are never parsed as templates.
        own = {**dict(finding.values), **dict(finding.phrases)}
        value = own[field] if field in own else getattr(finding, field)
        return quoted(value) if isinstance(value, tuple) else str(value)


def _flatten(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, tuple):
            yield from _flatten(value)
        else:
            yield str(value)


PASS, WARN, FAIL, SKIP, UNKNOWN = "pass", "warn", "FAIL", "skip", "unknown"
WORDS = (PASS, WARN, FAIL, SKIP, UNKNOWN)
OUTCOMES = {"yes": 0, "no": 1, "unknown": 4}
"""The answers about a subject as a whole, with the exit code of each."""
EVIDENCE = "evidence"
"""The kind of a verdict that is reported beside the checks: it holds no promise, so that nothing passes by it."""
SEVERITY_OF = {FAIL: "error", UNKNOWN: "warning", WARN: "warning", SKIP: "info"}
# Fields of a verdict that its document has under the same name.
PLAIN = ("kind", "name", "seen_by", "help", "evidence", "reason", "code")


class Verdict(Value):
    """The outcome of one check: `word` is pass, warn, FAIL, skip or unknown.

    `wanted` and `found` are versions or values. `seen_by` and `where` are the witness that decided and its place,
    `layer` the digest of the layer that brought it, `made_by` the instruction that made that; `others` are pairs of
    another version that is present and its place. `reason` says in a few words why a check was skipped or cannot be
    decided, `help` what to do. A check that passed has no `code`.
    """

    word: str
    kind: str
    name: str
    wanted: str = ""
    found: str = ""
    seen_by: str = ""
    where: str = ""
    layer: str = ""
    made_by: str = ""
    others: tuple[tuple[str, str], ...] = ()
    code: str = ""
    reason: str = ""
    help: str = ""
    evidence: str = ""
    facts: tuple[str, ...] = ()

    def to_json(self) -> VerdictEntry:
        """The verdict as the document of its subject holds it."""
        return {
            "verdict": self.word,
            "kind": self.kind,
            "name": self.name,
            "seen_by": self.seen_by or None,
            "help": self.help or None,
            "evidence": self.evidence or None,
            "reason": self.reason or None,
            "code": self.code or None,
            "severity": SEVERITY_OF.get(self.word),
            "expected": self.wanted or None,
            "actual": self.found or None,
            "where": {
                "path": self.where or None,
                "layer": self.layer or None,
                "instruction": self.made_by or None,
            },
            "others": [{"version": version, "where": where} for version, where in self.others],
            "facts": list(self.facts),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Verdict:
        """What `to_json` wrote; raises KeyError, TypeError, ValueError or AttributeError for what it did not."""
        where = body["where"]
        return cls(
            word=WORDS[WORDS.index(body["verdict"])],
            wanted=_checked_text(body["expected"]),
            found=_checked_text(body["actual"]),
            where=_checked_text(where["path"]),
            layer=_checked_text(where["layer"]),
            made_by=_checked_text(where["instruction"]),
            others=tuple(
                (_checked_text(other["version"]), _checked_text(other["where"]))
                for other in body["others"]
            ),
            facts=tuple(map(_checked_text, body["facts"])),
            **{name: _checked_text(body[name]) for name in PLAIN},
        )


def _checked_text(value: object) -> str:
    # Documents come from files and registries, where others may have written them.
    if not isinstance(value, (str, type(None))):
        raise TypeError(value)
    return value or ""


def outcome(verdicts: Iterable[Verdict]) -> str:
    """`yes` when what was checked holds, `no` when something is wrong, `unknown` when that cannot be said."""
    checks = tuple(verdicts)
    if any(verdict.word == FAIL for verdict in checks):
        return "no"
    # Warnings beside the checks say nothing about what was promised.
    words = {verdict.word for verdict in checks if verdict.kind != EVIDENCE}
    # With skips alone nothing was checked: that is no yes.
    return "unknown" if UNKNOWN in words or not words & {PASS, WARN} else "yes"


class Judged(Value):
    """One subject with its verdicts, and what it was checked against: a lock (path, digest, target) or expectations.

    `not_attached` is why the verdicts could not be put beside an image in its registry; it is of one run, and in no
    document.
    """

    subject: str
    verdicts: tuple[Verdict, ...]
    platform: str = ""
    digest: str = ""
    lock: str = ""
    lock_digest: str = ""
    target: str = ""
    not_attached: str = ""

    @property
    def outcome(self) -> str:
        """yes, no or unknown."""
        return outcome(self.verdicts)

    @property
    def exit_code(self) -> int:
        """0, 1 or 4."""
        return OUTCOMES[self.outcome]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Judged:
        """What `to_json` wrote; raises KeyError, TypeError, ValueError or AttributeError for what it did not."""
        lock = body["lock"] or {"path": "", "digest": "", "target": ""}
        return cls(
            subject=_checked_text(body["subject"]),
            platform=_checked_text(body["platform"]),
            digest=_checked_text(body["digest"]),
            lock=_checked_text(lock["path"]),
            lock_digest=_checked_text(lock["digest"]),
            target=_checked_text(lock["target"]),
            verdicts=tuple(map(Verdict.from_json, body["verdicts"])),
        )

    def summary(self) -> dict[str, int]:
        """The number of checks by word; `checked` are those that were not skipped."""
        words = [verdict.word for verdict in self.verdicts]
        counts = {word.lower(): words.count(word) for word in WORDS}
        return counts | {"checked": len(words) - counts[SKIP]}

    def to_json(self) -> VerdictsDocument:
        """The document `toolmatrix.verdicts/1`."""
        lock: VerdictsLock = {"path": self.lock, "digest": self.lock_digest, "target": self.target}
        return {
            "schema": VERDICTS,
            "subject": self.subject,
            "platform": self.platform or None,
            "digest": self.digest or None,
            "lock": lock if self.lock else None,
            "outcome": self.outcome,
            "summary": self.summary(),
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }
