"""Expectations of images and machines: those that follow from a lock, and those that a user writes down.

An expectation is a kind of thing, its name and what is wanted of it. A word such as `gcc==12.*` expects a component;
`arch==amd64`, `soname==libcudart.so.12`, `label==NAME`, `flag==-fsigned-char`, `feature==crc32`, `env==NAME` and
`codegen==sm_86` expect properties. Behind a property may stand the value that it must have: `label==NAME=VALUE`.
`char==signed` and `crc32==yes` expect features.

Versions are compared where a witness may be coarser than the question: `11.2` seen, `11.2.2` wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from toolmatrix.errors import Position, UsageError
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import ClaimRecord
from toolmatrix.factbase.versions import Scale, SelectorError, parse
from toolmatrix.finding import EVIDENCE, FAIL, PASS, SKIP, UNKNOWN, Verdict
from toolmatrix.inspection import python
from toolmatrix.inspection.model import Seen
from toolmatrix.judging import stage_facts
from toolmatrix.lockfile.model import LockedFlags, LockedTarget
from toolmatrix.recipes import read
from toolmatrix.request import recipes
from toolmatrix.value import Value

LABEL = "io.github.toolmatrix."
"""The beginning of the labels of rendered images."""
DIGEST = LABEL + "lock.digest"
COMPONENTS = LABEL + "components"
"""The label that lists, with blanks between them, the components that an image holds."""
BASE = "org.opencontainers.image.base.name"
"""The label that names the base image (OCI image specification, annotations)."""

MACHINE = "machine"
"""The kind of all checks of a machine."""
PROPERTIES = ("arch", "codegen", "env", "feature", "flag", "label", "soname")
# Longer ones first: `>=` begins with `>`.
_OPERATORS = ("==", "!=", "~=", ">=", "<=", ">", "<")
# Features that people expect by their own name: `char==signed`.
_FEATURES = ("char", "crc32")
_VALUED = ("env", "feature", "label")
_LITERAL = re.compile(r"\d+(?:\.\d+)*")
# A number that no series has reached.
_LAST = 999_999


class Expectation(Value):
    """One thing to be checked.

    `kind` is component, lock, machine or one of PROPERTIES; `wanted` is a selector of a component, or the value of a
    property, where nothing means that it only has to be there. `excused` says why it may be absent, where it may;
    what is `required` was requested, and may not. `variables` are those that must carry a flag, where they are set.
    """

    kind: str
    name: str
    wanted: str = ""
    evidence: str = ""
    facts: tuple[str, ...] = ()
    excused: str = ""
    required: bool = False
    variables: tuple[str, ...] = ()

    def verdict(
        self,
        outcome: str,
        sighting: Seen | None = None,
        code: str = "",
        *,
        found: str = "",
        reason: str = "",
        help: str = "",
        others: Iterable[Seen] = (),
    ) -> Verdict:
        """The verdict by a sighting, or about what nothing shows; `code` is that of what is wrong."""
        # A check that passes has none, and a skip or an unknown has that of its subject, whatever was looked at.
        machine = self.kind == MACHINE
        settled = {
            PASS: "",
            SKIP: "TM590" if machine else "TM490",
            UNKNOWN: "TM580" if machine else "TM480",
        }
        return Verdict(
            word=outcome,
            kind=self.kind,
            name=self.name,
            wanted=self.wanted.removeprefix("==")
            or ("" if self.kind in (MACHINE, EVIDENCE) else self.name),
            found=found or (sighting.version if sighting else ""),
            seen_by=sighting.seen_by if sighting else "",
            where=sighting.where if sighting else "",
            layer=sighting.layer if sighting else "",
            others=tuple((sighting.version, sighting.where) for sighting in others),
            code=settled.get(outcome, code),
            reason=reason,
            help="" if outcome == PASS else help,
            evidence=self.evidence,
            facts=self.facts,
        )


def parse_expectation(word: str, where: Position | None = None) -> Expectation:
    """The expectation that one word of a command or file states. Raises UsageError for any other word."""
    text = word.strip()
    name = re.split("[=!~<>]", text, maxsplit=1)[0]
    rest, name = text[len(name) :].strip(), name.strip().lower()
    operator = next((sign for sign in _OPERATORS if rest.startswith(sign)), "")
    value = rest[len(operator) :].strip()
    if not (name and operator and value):
        raise _unread(word, where, "`NAME==VALUE`, such as `python==3.11.2` or `arch==amd64`")
    if name in _FEATURES and operator == "==":
        return Expectation(kind="feature", name=name, wanted=value)
    if name not in PROPERTIES:
        if not _is_selector(rest):
            raise _unread(word, where, "a version after the operator")
        return Expectation(kind="component", name=re.sub("[-_.]+", "-", name), wanted=rest)
    if operator != "==":
        raise _unread(word, where, f"`{name}==VALUE`: a property has no order")
    if name == "arch":
        return Expectation(kind="arch", name="platform", wanted=value)
    named, equals, content = value.partition("=") if name in _VALUED else (value, "", "")
    if not named or (equals and not content):
        raise _unread(word, where, f"`{name}==NAME` or `{name}==NAME=VALUE`")
    return Expectation(kind=name, name=named, wanted=content)


def _unread(word: str, where: Position | None, expected: str) -> UsageError:
    return UsageError(
        "an expectation cannot be read", where=where, expected=expected, found=f"`{word}`"
    )


def _is_selector(text: str) -> bool:
    try:
        parse(text)
    except SelectorError:
        # A component without versions, such as a distribution, is compared by its name.
        return text.startswith("==")
    return True


def of_lock(
    index: Index, target: LockedTarget, digest: str, request: Sequence[str] = ()
) -> Iterator[Expectation]:
    """Everything that a target of the lock with that digest (`sha256:...`) promises of an image.

    `request` are the words that the target answers.
    """
    yield Expectation(kind="arch", name="platform", wanted=target.platform)
    required = _required(index, target, request)
    for name in required:
        # An answer without what was requested promises nothing of it, and is wrong all the same.
        if name not in target.components:
            yield Expectation(kind="component", name=name, wanted=">=0", required=True)
    framework = _framework(index, target)
    positions = {name: position for position, name in enumerate(index.header["components"])}
    for name in sorted(target.components, key=lambda name: positions.get(name, len(positions))):
        component = target.components[name]
        yield Expectation(
            kind="component",
            name=name,
            wanted=f">={component.version}" if component.floor else f"=={component.version}",
            evidence=component.evidence,
            facts=component.facts,
            excused=_excuse(index, target, framework, name),
            required=name in required,
        )
    for arch, backed in target.archs.items():
        yield Expectation(
            kind="codegen",
            name=arch,
            evidence=backed.evidence,
            facts=backed.facts,
            excused="no file in the image has device code",
        )
    if target.compiles:
        yield from _flags(target.flags)
    for name, value in target.flags.env.items():
        yield Expectation(kind="env", name=name, wanted=value)
    yield Expectation(kind="lock", name="lock", wanted=digest)
    yield Expectation(kind="label", name=DIGEST, wanted=digest)
    # Last, for it is about everything else that the image holds.
    yield Expectation(kind="soname", name="*")


def _required(index: Index, target: LockedTarget, request: Sequence[str]) -> set[str]:
    """What must be in an image of the target: what was requested, but for the tools and what they are to build."""
    components = target.components
    wanted = {*recipes.requested(request, index)}
    lacking = {name for name in wanted if name not in components}
    if target.from_ == "wheel":
        return {name for name in wanted if name in lacking or not components[name].floor}
    named = [word.partition("=")[2] for word in request if word.startswith("--recipe=")]
    built = [
        name
        for word in named
        if not read.is_path(word)
        for name in recipes.recipe(word, index).built(components)
    ]
    return lacking | (wanted & {*built})


def _flags(flags: LockedFlags) -> Iterator[Expectation]:
    carried = {"CFLAGS": flags.cflags, "CXXFLAGS": flags.cxxflags}
    for flag in dict.fromkeys((*flags.cflags, *flags.cxxflags)):
        yield Expectation(
            kind="flag",
            name=flag,
            # Rows about a flag have its name in their id: `char-flag-effects/-fsigned-char#machine`.
            facts=tuple(
                fact for fact in flags.facts if flag in fact.partition("/")[2].partition("#")[0]
            ),
            variables=tuple(name for name, several in carried.items() if flag in several),
        )


def _framework(index: Index, target: LockedTarget) -> str:
    known = index.header["components"]
    return next(
        (name for name in target.components if name in known and known[name]["framework"]), ""
    )


def _excuse(index: Index, target: LockedTarget, framework: str, name: str) -> str:
    """The reason why an image made from the lock may lack a component; empty where it may not."""
    if target.components[name].floor:
        return f"the {name} belongs to the machine, not to the image"
    if target.from_ != "source" or not framework:
        return ""
    if name == framework:
        return "it is built from source, so a build image need not contain it"
    # Nor need it hold what only the package of the framework requires: nothing is installed from that package.
    claims = index.known(target.components[name].facts)
    required = [
        isinstance(claim, ClaimRecord) and claim.kind == "requires" and claim.subject == framework
        for claim in claims
    ]
    only = bool(required) and all(required) and len(claims) == len(target.components[name].facts)
    return f"only the package of {framework} is known to require it" if only else ""


def compared(index: Index, expectation: Expectation, sighting: Seen) -> tuple[str, str]:
    """The verdict whether a sighting is what is wanted, and the reason where it is unknown."""
    name, wanted = expectation.name, expectation.wanted
    known = index.header["components"]
    if name in known and known[name]["scheme"] == "names":
        return _same_name(wanted, sighting.version), ""
    try:
        Scale("pep440", [_plain(sighting.version)])
    except SelectorError:
        return UNKNOWN, f"`{sighting.version}` is not a version"
    # Metadata of Python has the whole version (PEP 440 pads with zeros), so that nothing is coarse about it.
    finer = () if sighting.seen_by in python.RECORDS else _finer(wanted, sighting.version)
    if not finer and admits(wanted, sighting.version):
        return PASS, ""
    may_be = _releases(index, name, sighting.version) if name in known else ()
    fitting = [release for release in may_be if admits(wanted, release)]
    certain = may_be or finer
    if certain and all(admits(wanted, release) for release in certain):
        return PASS, ""
    # Some of what it may be fits and some does not: only a finer witness could decide.
    if fitting or (not may_be and admits(wanted, sighting.version, "series")):
        what = " or ".join(may_be[:3]) if may_be else f"any {sighting.version}.*"
        return UNKNOWN, f"{sighting.version} may be {what}"
    return FAIL, ""


def _finer(wanted: str, version: str) -> tuple[str, ...]:
    """Versions that a coarse sighting may be, where the wanted version has more numbers."""
    # The ends of its series and what is named between them: bounds judge all versions between two of these alike.
    named = _LITERAL.findall(wanted)
    plain = _plain(version)
    if all(literal.count(".") <= plain.count(".") for literal in named):
        return ()
    between = (literal for literal in named if literal.startswith(f"{plain}."))
    return (plain, f"{plain}.{_LAST}", *between)


def _same_name(wanted: str, version: str) -> str:
    # `docker.io/library/` is what Docker puts before a name without a registry.
    plain = version.partition("@")[0].removeprefix("docker.io/").removeprefix("library/")
    try:
        return PASS if Scale("names", [plain]).select(wanted) & 2 else FAIL
    except SelectorError:
        return UNKNOWN


def _plain(version: str) -> str:
    # The local part of a version says how it was built, not which release it is (PEP 440).
    return version.partition("+")[0]


def admits(selector: str, version: str, scheme: str = "pep440") -> bool:
    """True if a version is within a selector; by the scheme `series`, if a finer version of it could be."""
    try:
        return bool(Scale(scheme, [_plain(version)]).select(selector) & 2)
    except SelectorError:
        return False


def _releases(index: Index, name: str, version: str) -> tuple[str, ...]:
    """The known releases that a version may be: those that bring a tool of it, or those that it begins."""
    # The releases of a series cannot be distinguished.
    if index.header["components"][name]["scheme"] == "series":
        return ()
    scale = index.scale(name)
    # nvcc has numbers of its own (attribute `nvcc` of a release).
    return stage_facts.shipping(index, name, version) or tuple(
        scale.named(scale.select(f"=={_plain(version)}"))
    )
