"""Judges the failures in a log: the components that do not go together, the facts, and the request that resolves.

Causes are ranked before what follows from them: an error before a warning, then by the place in the log.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from toolmatrix.errors import Position
from toolmatrix.factbase import lookups
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.records import ReportRecord
from toolmatrix.factbase.versions import Scale, SelectorError
from toolmatrix.finding import SEVERITIES, Incompatibility
from toolmatrix.judging import log_constraints
from toolmatrix.judging import stage_facts as facts
from toolmatrix.judging.log_constraints import Constraints
from toolmatrix.logs.log import Cause, Diagnosis, Fix, Involved, Match, ObservedLog
from toolmatrix.logs.signatures import BY_REPORT, Signature, SignatureCatalog, major, symptoms

Solve = Callable[[Sequence[str]], Fix | None]
"""Answers the words of a request, None where it does not resolve."""

# The reason of a failure may follow so many lines below it.
_HEADLINE = 50
_PLACEHOLDER = re.compile(r"\{(\w+)(?::(\d))?\}")
_PYTHON_TAG = re.compile(r"cp(\d)(\d+)")
# PyTorch writes `+cu117` for CUDA 11.7, JAX `+cuda11` for a major.
_CUDA_BUILD = re.compile(r"\+cu(?:da(\d\d)(?!\d)|(?=\d{2,3}(?:\D|$))(\d+)(\d))")


def diagnose(
    index: Index,
    catalog: SignatureCatalog,
    log: ObservedLog,
    locked: Mapping[str, str],
    solve: Solve,
    limit: int = 0,
) -> Diagnosis:
    """Judge every failure of a log; `locked` are releases of a lock, `limit` the most causes, 0 for all."""
    gpu = log_constraints.device_of(index, log.inventory.components.get("gpu", ()))
    judge = _Judge(index, catalog, locked, solve, gpu)
    matches = [match for match in log.matches if judge.holds(match)]
    ranked = sorted(_consequent(matches), key=_rank)
    reported = ranked[:limit] if limit else ranked
    return Diagnosis(
        subject=log.inventory.subject,
        lines=log.lines,
        causes=tuple(
            judge.cause(match, follows, log.inventory.subject) for match, follows in reported
        ),
        followed=log.followed if matches else None,
        following=log.following if matches else 0,
        left=len(ranked) - len(reported) + log.more,
        components={
            name: tuple(sighting.version for sighting in several)
            for name, several in log.inventory.components.items()
        },
    )


def _consequent(matches: Sequence[Match]) -> Iterator[tuple[Match, int]]:
    """Each failure with the line of the one that it follows from, 0 where it is a cause.

    What follows from a failure between the same two sides is the same failure, said again.
    """
    kept = {place: (match, 0) for place, match in enumerate(matches)}
    counted: dict[int, int] = {}
    for place, match in enumerate(matches):
        # A cause is above, or a little below where a program first prints what failed, then why.
        above = [
            (other.line, position)
            for position, other in enumerate(matches)
            if other.line < match.line + _HEADLINE
            and other.signature.name in match.signature.follows
        ]
        first = min(above, default=(0, place))[1]
        first = counted.get(first, first)
        if first == place:
            continue
        cause, follows = kept[first]
        if _is_said_again(cause, match):
            counted[place] = first
            kept[first] = cause.counting(kept.pop(place)[0]), follows
        else:
            kept[place] = kept[place][0], cause.line
    yield from kept.values()


def _is_said_again(cause: Match, match: Match) -> bool:
    """Check whether two failures have the same roles, and no callers that contradict each other."""
    roles = [
        [role.partition("|")[0] for role in failure.signature.between] for failure in (cause, match)
    ]
    callers = [failure.callers[:1] for failure in (cause, match)]
    return roles[0] == roles[1] and (not all(callers) or callers[0] == callers[1])


def _rank(failure: tuple[Match, int]) -> tuple[bool, int, int]:
    match, follows = failure
    return follows > 0, SEVERITIES.index(match.signature.severity), match.line


class _Judge:
    def __init__(
        self,
        index: Index,
        catalog: SignatureCatalog,
        locked: Mapping[str, str],
        solve: Solve,
        gpu: str,
    ) -> None:
        self.index = index
        self.catalog = catalog
        self.locked = locked
        self.solve = solve
        self.gpu = gpu
        self.solved: dict[tuple[str, ...], Fix | None] = {}
        self.symptoms = symptoms(index.reports())

    def holds(self, match: Match) -> bool:
        """Check whether the log shows the versions without which a line is no failure."""
        if match.signature.between == BY_REPORT:
            return self.report(match) is not None
        return not match.signature.when or _satisfies(match.signature.when, self.values(match))

    def report(self, match: Match) -> ReportRecord | None:
        """The field report that has the line of a failure, and whose sides the log names and does not contradict."""
        reports = [
            report
            for symptom in self.symptoms
            if symptom.pattern.search(match.text)
            for report in symptom.reports
            if self.is_possible(match, report.subject, report.releases)
            and self.is_possible(match, report.component, report.selector)
        ]
        # Who needed something is the nearest evidence, then a version, then the line itself.
        for name in match.callers:
            if called := [report for report in reports if report.subject == name]:
                return called[0]
        named = [
            report
            for report in reports
            if report.subject in match.seen or self.catalog.names(match.text, report.subject)
        ]
        return named[0] if len({report.subject for report in named}) == 1 else None

    def is_possible(self, match: Match, component: str, selector: str) -> bool:
        """Check that the log shows no release of a component, or one that a selector admits."""
        sighting = match.seen.get(component)
        return sighting is None or facts.admits(selector, sighting.version.partition("+")[0])

    def cause(self, match: Match, follows: int, subject: str) -> Cause:
        """A failure with all that is known about it."""
        values = self.values(match)
        # Before the case is chosen and the sentences are filled, which may name what a row gives.
        looked_up = self.rows(match.signature.rows, values)
        constraints = log_constraints.of_log(self.catalog.programs, match.seen, self.gpu)
        if constraints.vendor:
            values["vendor"] = constraints.vendor
        if self.is_intact(match.signature, values):
            values["intact"] = match.signature.intact
        signature = _case(match.signature, values)
        if signature.rows is not match.signature.rows:
            looked_up += self.rows(signature.rows, values)
        if report := self.report(match):
            signature = _with_report(signature, report)
        between = tuple(self.involved(role, match, values) for role in signature.between)
        ground, allowed = self.ground(between, match)
        # What follows from a cause is mended with it.
        fixes = () if follows else signature.fix
        fix = self.fix(fixes, values, between, constraints)
        named = [
            name
            for name in (_fill(template, values) for template in signature.facts)
            if name is not None and self.index.find(name) is not None
        ]
        cited = (*(ground.facts if ground else ()), *looked_up, *named)
        return Cause(
            code=signature.code,
            severity=signature.severity,
            component=between[0].component,
            grounds=() if ground is None else (ground,),
            expected=_fill(signature.expected, values) or "",
            actual=" and ".join(_describe(side) for side in between),
            facts=tuple(dict.fromkeys(cited)),
            where=Position(subject, match.line),
            signature=signature.name,
            relation=signature.relation,
            what=signature.what,
            between=between,
            text=match.text,
            count=match.count,
            do=_fill(signature.do, values) or _without(signature.do),
            source=signature.source,
            evidence=signature.evidence,
            fix=fix,
            instead=self.fix(
                () if follows else signature.instead, values, between, constraints, fix
            ),
            allowed=allowed,
            follows=follows,
        )

    def values(self, match: Match) -> dict[str, str]:
        """The values for the places of templates: groups, what was seen, and what follows from them."""
        values = {name.replace("-", "_"): sighting.version for name, sighting in match.seen.items()}
        values |= match.values
        if values.get("sm_major"):
            values["device"] = f"{values['sm_major']}.{values['sm_minor']}"
        elif not values.get("arch") and "device" not in values:
            values["device"] = self.gpu
        # A list of packages may leave out the build, which an environment report has.
        built = values.get("torch_cuda", "").replace(".", "")
        if built and values.get("torch") and "+" not in values["torch"]:
            values["torch"] += f"+cu{built}"
        values |= self.derived(values)
        file = match.values.get("file", "")
        library = self.catalog.part(file or match.values.get("symbol") or "")
        if library is not None:
            values |= {
                "library": library.component,
                "counts": library.counts or library.component,
                "part": library.counts,
                "major": major(file),
                "soname": file.partition(".so.")[2],
                "toolkit": _toolkit(file),
                "bring": library.providers(file),
            }
        elif file in self.index.header["components"]:
            values["library"] = file
        # A package that is named beside another one keeps its name, as does a component.
        lone = [name for name in ("other", "package") if values.get(name)]
        known = self.index.header["components"]
        if len(lone) == 1 and (lone == ["other"] or values["package"] not in known):
            values[lone[0]] = self.catalog.called(values[lone[0]]) or values[lone[0]]
        values["compiler"] = self.catalog.compiler(values.get("compiler", ""))
        if values.get("value") and values.get("cpu_flag"):
            values["cpu_flag"] = f"{values['cpu_flag'].rstrip('=')}={values['value']}"
        # A log names an arch or a capability, and templates may want the other.
        if values.get("arch"):
            plain = facts.sass(facts.twin(self.index, values["arch"]))
            capability = facts.arch_number(plain)
            values["sass"] = plain
            device = f"{capability // 10}.{capability % 10}" if capability else plain
            values.setdefault("device", device)
        elif re.fullmatch(r"\d+\.\d", values.get("device", "")):
            values["sass"] = facts.SASS + values["device"].replace(".", "")
        library_seen = match.seen.get(values.get("library", ""))
        values["library_version"] = library_seen.version if library_seen is not None else ""
        values["user"] = self.user(match, values)
        used = match.seen.get(values["user"])
        values["user_version"] = used.version if used is not None else ""
        return {name: value for name, value in values.items() if value}

    def derived(self, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """What the names of files and builds encode: the Python of a wheel, and the CUDA of a program."""
        if tag := _PYTHON_TAG.fullmatch(values.get("tag", "")):
            yield "built_python", f"{tag[1]}.{tag[2]}"
        matches = [_CUDA_BUILD.search(values.get(name, "")) for name in self.catalog.programs]
        builds = {".".join(filter(None, match.groups())) for match in matches if match}
        # Without such a name a program runs with the toolkit that the log shows.
        cuda = builds.pop() if len(builds) == 1 else values.get("cuda", "")
        if not builds and cuda:
            yield "program_cuda", cuda

    def user(self, match: Match, values: Mapping[str, str]) -> str:
        """The program that failed, where it is none of those that the failure is about."""
        others = {role.partition("|")[0] for role in match.signature.between}
        others |= {values.get(name, "") for name in ("library", "other", "package")}
        programs = [name for name in self.catalog.programs if name in match.seen]
        candidates = [name for name in programs if name not in others]
        called = [name for name in match.callers if name not in others]
        # Which of several programs in a log failed is unknown, unless the failure names its callers.
        return next(iter(called or (candidates if len(candidates) == 1 else ())), "")

    def involved(self, role: str, match: Match, values: Mapping[str, str]) -> Involved:
        """The side for a role of `between`."""
        role, _, default = role.partition("|")
        component, version, needed = role, "", ""
        if role == "library":
            needed = match.values.get("file") or match.values.get("symbol", "")
            component = values.get(role) or needed or role
        elif role in ("user", "package", "other", "compiler"):
            component = values.get(role, default) or role
            version = _named_version(role, values)
        else:
            version = values.get(role.replace("-", "_"), "")
        sighting = match.seen.get(component)
        if not version and sighting is not None:
            version = sighting.version
        return Involved(
            component=component,
            version=version,
            where=sighting.where if sighting is not None and sighting.version == version else "",
            needed=needed,
            wanted=self.locked.get(component, ""),
            bring=values.get("bring", "") if role == "library" else "",
        )

    def ground(
        self, between: Sequence[Involved], match: Match
    ) -> tuple[Incompatibility | None, tuple[str, tuple[str, ...]] | None]:
        """The hard fact by which two sides do not go together, and the releases of the first that the second allows."""
        known = self.index.header["components"]
        first, second = between[0], between[-1]
        if first.component not in known or second.component not in known or first is second:
            return None, None
        context = self.machine_context(match)
        incompatibility = None
        if first.version and second.version:
            incompatibility = self.refusal(first, second, context)
            scale = self.index.scale(second.component)
            releases = scale.named(lookups.mask_or_none(scale, self.version(second)))
            # A version that matches several releases clashes with none of them in particular.
            clashing = tuple(releases) if len(releases) == 1 else ()
            if incompatibility is not None and incompatibility.component == second.component:
                incompatibility = incompatibility.replace(clashing=clashing)
        # Names have no order, so that a list of those that go would advise nothing.
        if not second.version or known[first.component]["scheme"] == "names":
            return incompatibility, None
        every = self.index.scale(first.component).versions
        sides = ((name, first.replace(version=name)) for name in every)
        going = tuple(name for name, side in sides if self.refusal(side, second, context) is None)
        # A range that holds the release that failed here is none to look for another one in.
        failed = facts.releases(self.index, first.component, self.version(first))
        if failed and {*failed} <= {*going}:
            return incompatibility, None
        return incompatibility, (first.component, going) if 0 < len(going) < len(every) else None

    def refusal(
        self, left: Involved, right: Involved, context: Mapping[str, str]
    ) -> Incompatibility | None:
        """The hard fact of either side by which it does not go with the other."""
        for subject, object_ in ((left, right), (right, left)):
            releases = facts.releases(self.index, subject.component, self.version(subject))
            version = self.version(object_)
            ground = facts.refusal(
                self.index, subject.component, releases, object_.component, version, context
            )
            if ground is not None:
                return ground
        return None

    def version(self, side: Involved) -> str:
        """The version of a side as the matrix names it."""
        return facts.twin(self.index, side.version) if side.component == "arch" else side.version

    def machine_context(self, match: Match) -> dict[str, str]:
        """The machine that the log was written on: the one it names, or that of the first target."""
        machine = next(iter(self.index.header["targets"].values()))["context"]["machine"]
        sighting = match.seen.get("machine")
        machine = sighting.version if sighting else machine
        return {"machine": match.values.get("machine") or machine}

    def rows(self, rows: Sequence[Mapping[str, str]], values: dict[str, str]) -> tuple[str, ...]:
        """Look values up in columns of tables; a cell of the row that is found becomes a value of its own."""
        names = []
        for lookup in rows:
            kind = next(name for name in _FITS if name in lookup)
            value = lookup[kind]
            wanted = _fill(value if "{" in value else f"{{{value}}}", values)
            column, fits = lookup["column"], _FITS[kind]
            matches = [
                (_numbers(next(iter(cells.values()))), name, cells)
                for name, cells in lookups.rows(self.index, lookup["table"])
                if wanted is not None and fits(cells.get(column, ""), wanted)
            ]
            # The oldest release that has a value, the newest that has at most it.
            matches.sort(key=lambda row: row[0], reverse=kind == "most")
            if kind == "least":
                matches.sort(key=lambda row: _numbers(row[2][column]))
            for _, name, cells in matches[:1]:
                first = next(iter(cells.values()))
                values[lookup["gives"]] = cells.get(lookup.get("cell", ""), first)
                names.append(name)
        return tuple(names)

    def fix(
        self,
        templates: Sequence[str],
        values: Mapping[str, str],
        between: Sequence[Involved],
        constraints: Constraints,
        other: Fix | None = None,
    ) -> Fix | None:
        """The first request that resolves under the log's constraints and gives neither what failed nor `other`."""
        known = self.index.header["components"]
        failed = {side.component: side.version for side in between if side.component in known}
        for template in templates:
            filled = _fill(template, values)
            if filled is None:
                continue
            fix = constraints.apply(tuple(shlex.split(filled)), failed, self.answered)
            if fix is None or (other is not None and fix.answer == other.answer):
                continue
            if not _brings_library(fix.answer, values) or not _raises_driver(fix, values):
                continue
            # What a request names is meant to stay; the rest has to change somewhere.
            free = [
                name
                for name in failed
                if not filled.startswith(f"{name}==") and f" {name}==" not in filled
            ]
            if not free or not all(
                _same_release(fix.answer.get(name, ""), failed[name]) for name in failed
            ):
                return fix
        return None

    def answered(self, words: tuple[str, ...]) -> Fix | None:
        """The answer to a request."""
        # A log repeats its failures, and each solve takes tens of milliseconds.
        if words not in self.solved:
            self.solved[words] = self.solve(words)
        return self.solved[words]

    def is_intact(self, signature: Signature, values: Mapping[str, str]) -> bool:
        """Check whether the versions of the log satisfy the relation, so that another part than the sides failed."""
        filled = _fill(signature.intact, values) if signature.intact else None
        fix = self.answered(tuple(shlex.split(filled))) if filled else None
        return fix is not None and signature.between[0] in fix.answer


def _case(signature: Signature, values: Mapping[str, str]) -> Signature:
    """The signature as its first case has it that the values are of."""
    for case in signature.cases:
        if _satisfies(case.when, values):
            return signature.replace(**case.given)
    return signature


def _with_report(signature: Signature, report: ReportRecord) -> Signature:
    """The signature about the two sides of a field report, with the requests that keep one of them."""
    first, second = report.subject, report.component
    keeping = tuple(
        f"{kept}=={{{kept.replace('-', '_')}}} {other}"
        for kept, other in ((first, second), (second, first))
    )
    return signature.replace(
        between=(first, second),
        fix=(*keeping[:1], *signature.fix, *keeping[1:], f"{first} {second}"),
        facts=(*signature.facts, report.fact),
        source=report.source,
        evidence=report.evidence,
    )


def _satisfies(when: Mapping[str, str], values: Mapping[str, str]) -> bool:
    """Check that every value is known and within its selector."""
    return all(_within(values.get(name, ""), _fill(text, values)) for name, text in when.items())


def _within(value: str, selector: str | None) -> bool:
    if not value or selector is None:
        return False
    # A name, such as that of a machine, has no order.
    scheme = "versions" if value[0].isdigit() else "names"
    try:
        return bool(Scale(scheme, (value,)).select(selector))
    except SelectorError:
        return False


def _same_release(left: str, right: str) -> bool:
    # A log may name a release with fewer or more numbers than the matrix.
    short, long = sorted((left, right), key=len)
    return bool(short) and f"{long}.".startswith(f"{short}.")


def _fill(template: str, values: Mapping[str, str]) -> str | None:
    """A template with its places filled, None where one cannot be; `{cuda:2}` is cut to two numbers of the version."""
    for name, count in _PLACEHOLDER.findall(template):
        if not values.get(name):
            return None
        if count and not values[name][0].isdigit():
            return None

    def fill(match: re.Match[str]) -> str:
        value = values[match[1]]
        if not match[2]:
            return value
        # A local version such as `+cu121` is no number.
        return ".".join(value.partition("+")[0].split(".")[: int(match[2])])

    return _PLACEHOLDER.sub(fill, template)


def _without(template: str) -> str:
    # Text in brackets or between commas may go; a placeholder in the sentence itself becomes `...`.
    plain = re.sub(
        rf" ?\([^()]*{_PLACEHOLDER.pattern}[^()]*\)|, [^,;]*{_PLACEHOLDER.pattern}[^,;]*",
        "",
        template,
    )
    return _PLACEHOLDER.sub("...", plain)


def _brings_library(answer: Mapping[str, str], values: Mapping[str, str]) -> bool:
    """Check that an answer has the major of the library that was not found, or another release of what asked for it."""
    release, user = answer.get(values.get("counts", "")), values.get("user", "")
    if not release or not values.get("major") or "symbol" in values:
        return True
    used = values.get("user_version", "").partition("+")[0]
    changed = user in answer and not _same_release(answer[user], used)
    return changed or release.partition(".")[0] == values["major"]


def _raises_driver(fix: Fix, values: Mapping[str, str]) -> bool:
    """Check that a request for a driver gives a newer one than that of the log, which failed."""
    requested = any(re.match(r"driver\b", word) for word in _without_kept(fix.request))
    return not requested or _numbers(fix.answer.get("driver", "")) > _numbers(
        values.get("driver", "")
    )


def _without_kept(words: Sequence[str]) -> list[str]:
    kept = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "--with"]
    return [word for word in words if word not in kept]


def _named_version(role: str, values: Mapping[str, str]) -> str:
    """The version that a line gives a package, and the one that it found of another package."""
    installed = values.get("found") or values.get("pinned", "")
    if role == "other" and installed[:1].isdigit():
        return installed
    if role != "package":
        return ""
    # If a line names two packages, or a part of the machine, the requirement is about that one.
    spec = (
        ""
        if values.get("other") or values.get("virtual")
        else values.get("spec", "").removeprefix("==")
    )
    return spec or values.get("version", "")


def _toolkit(file: str) -> str:
    # A library of CUDA 10.0 ends in .so.10.0, and one of 10.1 to 10.2 in .so.10.
    soname = file.partition(".so.")[2]
    return soname if soname.count(".") == 1 else ""


def _describe(side: Involved) -> str:
    named = f"{side.component} {side.version}".strip()
    return named + (f" ({side.needed})" if side.needed not in ("", side.component) else "")


def _same(cell: str, value: str) -> bool:
    """Check a cell, or one of its several values, against a value, which may be of a shorter release."""
    return any(_same_value(part, value) for part in re.split(";? ", cell))


def _same_value(left: str, right: str) -> bool:
    # numpy's headers write the number of its C-API with leading zeros, and its message without.
    try:
        return int(left, 16) == int(right, 16)
    except ValueError:
        return _same_release(left, right)


def _is_inside(cell: str, value: str) -> bool:
    return f"{value}.".startswith(f"{cell}.")


def _at_most(cell: str, value: str) -> bool:
    return bool(cell) and _numbers(cell) <= _numbers(value)


def _at_least(cell: str, value: str) -> bool:
    return bool(cell) and _numbers(cell) >= _numbers(value)


# How a look-up compares a cell with its value.
_FITS = {"is": _same, "inside": _is_inside, "most": _at_most, "least": _at_least}


def _numbers(release: str) -> list[int]:
    # A log may have digits without end, of which Python makes no number.
    return [int(digits) for digits in re.findall(r"\d{1,9}", release)]
