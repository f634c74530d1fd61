"""The matrix audited: what is covered, missing, old, contradictory, or not as an index of packages lists it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from os.path import basename, dirname

from toolmatrix.errors import MatrixError
from toolmatrix.factbase import evidence as words
from toolmatrix.factbase import yamlfile
from toolmatrix.factbase.compiled import bits, union
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.model import Claim, Matrix, Release
from toolmatrix.factbase.tables import UNKNOWN
from toolmatrix.factbase.versions import ABSENT
from toolmatrix.finding import Finding, InstallMethod, merge, union_of_fields
from toolmatrix.judging import sweep
from toolmatrix.judging.lints import cited, disputes
from toolmatrix.judging.sweep import ReleaseOutcome
from toolmatrix.resources import audit_path
from toolmatrix.solve.assemble import Assembly
from toolmatrix.solve.resolve import attempt
from toolmatrix.value import Document, NamedTuple, Value


class PublishedWheel(NamedTuple):
    """A release that has a wheel for a Python series and a machine."""

    release: str
    python: str
    machine: str


class Published(Value):
    """What an index lists of a package: its final releases, the oldest first, and the wheels of each."""

    releases: tuple[str, ...]
    wheels: tuple[PublishedWheel, ...] = ()


# What sources of a list of files say: `package numpy, final releases 1.13.0 to 2.5.5`.
_LISTING = re.compile(
    r"package ([\w.-]+), (?:final )?releases |packages ([\w.-]+(?:, [\w.-]+)*), each "
)


def packages(matrix: Matrix) -> dict[str, dict[str, list[str]]]:
    """Releases that were read in the list of files of a package, by component and by package."""
    by_component: dict[str, dict[str, list[str]]] = {}
    for (component, version), release in matrix.releases.items():
        at = _LISTING.match(matrix.sources[release.source].at)
        # A build is published with its release.
        if at and not matrix.components[component].variant_of:
            names = (at[1] or at[2]).split(", ")
            package = component if component in names else names[0]
            by_component.setdefault(component, {}).setdefault(package, []).append(version)
    return by_component


def releases(
    index: Index, own: Mapping[str, Collection[str]], package_lists: Mapping[str, Published]
) -> Iterator[Finding]:
    """Releases that the index lists and the matrix does not know, and the other way round.

    Those older than the oldest release that is known were left out on purpose: how many are known is what the floor of
    a family judges.
    """
    for component, published in package_lists.items():
        scale = index.scale(component)
        known = set(index.component(component).versions)
        # A package of many years has releases that no Python of today installs.
        first = next((at for at, release in enumerate(published.releases) if scale.bit(release)), 0)
        missing = tuple(release for release in published.releases[first:] if release not in known)
        # An unknown release makes no answer wrong; a withdrawn one makes answers that cannot be installed.
        if missing:
            yield Finding.of("TM322", component=component, unknown=missing)
        gone = tuple(name for name in own.get(component, ()) if name not in published.releases)
        if gone:
            yield Finding.of(
                "TM323",
                component=component,
                releases=gone,
                facts=tuple(f"{component}=={name}" for name in gone),
            )


def refused(index: Index, component: str, wheels: Iterable[PublishedWheel]) -> Iterator[Finding]:
    """Published wheels without an answer, refused for their own Pythons and machines.

    What refuses a wheel otherwise, as where no NumPy goes with its Python, is the fact that says why not.
    """
    refusals = [
        Finding.of(
            "TM324",
            component=component,
            releases=(wheel.release,),
            python=wheel.python,
            machine=wheel.machine,
            facts=facts,
        )
        for wheel in wheels
        if (facts := _own_tags(index, component, wheel))
    ]
    return iter(merge(refusals, "releases", "facts"))


def _own_tags(index: Index, component: str, wheel: PublishedWheel) -> tuple[str, ...]:
    bit = index.scale(component).bit(wheel.release)
    # An unknown release cannot be refused: `releases` reports it.
    if not bit or not index.scale("python").select(wheel.python):
        return ()
    # One way is enough: a wheel for CUDA is refused where nothing is to compute but the CPU.
    last: Finding | None = None
    for method in sweep.install_methods(index, component):
        if method.from_ != "wheel" or machine(index, method) != wheel.machine:
            continue
        python = ("python", wheel.python)
        outcome = attempt(index, sweep.request(index, (component, wheel.release), method, python))
        if not isinstance(outcome, Assembly):
            return ()
        last = last or sweep.refusal((component, wheel.release), method, outcome)
    # Wheels are those of a build where the component has several.
    own = (component, f"{component}-variant")
    grounds = last.grounds if last else ()
    if any(ground.subject not in own for ground in grounds):
        return ()
    return tuple(
        fact
        for ground in grounds
        if ground.component in ("python", "machine")
        for fact in ground.facts
    )


def machine(index: Index, method: InstallMethod) -> str:
    """The machine of the target of a way."""
    name: str = index.header["targets"][method.target]["context"].get("machine", "")
    return name


_TOOLKITS = {"cu": "cuda", "cuda": "cuda", "rocm": "rocm", "rocm-rel-": "rocm"}
"""The toolkit by what names of lines begin with."""
_LINE = re.compile(rf"({'|'.join(sorted(_TOOLKITS, reverse=True))})(\d+)")
_FIRST_MAJOR_YET_TO_COME = 20
"""`cu92` is of CUDA 9 and `cu126` of CUDA 12: no toolkit has a number as high as two digits would make of the first."""
_FILE = re.compile(r"[\w.+-]+\.(?:whl|tar\.gz|zip)\b")
_PURE = "-none-any.whl"
_RUNS_ANYWHERE = ("pure", "run-time")
"""Kinds of code that a source archive brings as well as a wheel does."""


def contradictions(matrix: Matrix, index: Index, packages: Mapping[str, str]) -> Iterator[Finding]:
    """Find every contradiction; `packages` are the components of packages that are called otherwise."""
    yield from merge(code_on_cpu(matrix, index), "releases", "facts")
    yield from unread_requirements(matrix, packages)
    for search in (without_wheel, old_toolkits, two_lines, pure_unread):
        yield from merge(search(matrix, index), "releases", "facts")
    yield from read_before(matrix)


def code_on_cpu(matrix: Matrix, index: Index) -> Iterator[Finding]:
    """Builds for the CPU that are said to have device code."""
    for claim in _of_builds(matrix, ("arch",), "limits"):
        for build in _build_values(matrix, index, claim):
            if build.attributes["accelerator"] == "none" and _archs(index, claim.selector):
                yield Finding.of(
                    "TM331",
                    component=matrix.components[build.component].variant_of,
                    releases=(build.attributes["release"],),
                    machine=build.attributes["machine"],
                    line=build.attributes["line"],
                    facts=(claim.id,),
                )


def unread_requirements(matrix: Matrix, packages: Mapping[str, str]) -> Iterator[Finding]:
    """Packages that releases require beside components, and that are one by now."""
    for read in matrix.requirements.values():
        for other in (read.node.fields or {})["others"].items or ():
            name = other.text or ""
            component = packages.get(name)
            if component in matrix.components and component != read.component:
                yield Finding.of(
                    "TM332",
                    component=read.component,
                    table=read.table,
                    package=name,
                    expected=f"a column about {component}",
                    where=other.where,
                )


def without_wheel(matrix: Matrix, index: Index) -> Iterator[Finding]:
    """Releases with compiled code and no wheel for a machine, which no fact refuses as a wheel there."""
    built = {
        (matrix.components[build.component].variant_of, build.attributes["release"])
        for build in matrix.releases.values()
        if matrix.components[build.component].variant_of
    }
    for (component, version), release in matrix.releases.items():
        files = _files(matrix, release)
        # Facts say already what the builds of a release are for, and an answer that it has an archive alone.
        is_known = (component, version) in built or "archive" in release.attributes
        if not files or is_known or not _is_compiled(matrix, index, component):
            continue
        bit = index.scale(component).bit(version)
        for machine in index.component("machine").versions:
            ours = any(
                file.endswith(".whl") and (machine in file or file.endswith(_PURE))
                for file in files
            )
            if not ours and not _refused(index, component, bit, machine):
                yield Finding.of(
                    "TM333",
                    component=component,
                    releases=(version,),
                    machine=machine,
                    facts=(f"{component}=={version}",),
                )


def _is_compiled(matrix: Matrix, index: Index, component: str) -> bool:
    code = index.header["components"][component].get("code", "")
    if code in _RUNS_ANYWHERE:
        return False
    known = matrix.components[component]
    return known.variants or bool(code and known.accelerators)


def _refused(index: Index, component: str, release: int, machine: str) -> bool:
    """Whether facts say that a release has no wheel for a machine, or that none is known."""
    context = {
        "from": index.scale("from").bit("wheel"),
        "machine": index.scale("machine").bit(machine),
    }
    facts = index.component(component)
    return any(
        not binding.allowed & bit
        and all(mask & context.get(name, 0) for name, mask in binding.conditions.items())
        for name, bit in context.items()
        for binding in facts.about(name, release)
    )


def old_toolkits(matrix: Matrix, index: Index) -> Iterator[Finding]:
    """Builds with code that no release of the toolkit which they were built with makes."""
    for claim in _of_builds(matrix, _TOOLKITS.values(), "requires"):
        toolkit = claim.component
        makes = union(
            _supported_archs(index, toolkit, bit)
            for bit in bits(index.scale(toolkit).select(claim.selector) & ~1)
        )
        for build in _build_values(matrix, index, claim):
            # Nothing is too old for a toolkit whose archs are unknown.
            newer = _archs(index, build.attributes["archs"]) & ~makes if makes else 0
            if newer:
                yield Finding.of(
                    "TM334",
                    component=matrix.components[build.component].variant_of,
                    releases=(build.attributes["release"],),
                    toolkit=toolkit,
                    archs=tuple(index.scale("arch").named(newer)),
                    actual=str(claim.selector),
                    facts=(claim.id,),
                )


def two_lines(matrix: Matrix, index: Index) -> Iterator[Finding]:
    """Builds under two lines in two files, and those whose line is not of the toolkit that was read inside."""
    same: dict[tuple[str, ...], list[Release]] = {}
    for build in matrix.releases.values():
        attributes = build.attributes
        # On another channel each line has an address of its own.
        if matrix.components[build.component].variant_of and (
            matrix.channels[attributes["channel"]].default
        ):
            identity = build.component, *(attributes.get(key, "") for key in _FILE_ATTRIBUTES)
            same.setdefault(identity, []).append(build)
    for several in same.values():
        if len({build.node.where.path for build in several}) > 1:
            yield _two_lines(matrix, several[0], several[1].attributes["line"], several[1])
    for claim in _of_builds(matrix, _TOOLKITS.values(), "requires"):
        inside = index.scale(claim.component).select(claim.selector)
        for build in _build_values(matrix, index, claim):
            named = _toolkit(build.attributes["line"], claim.component)
            if named and not inside & index.scale(claim.component).select(named):
                line = f"{claim.component} {claim.selector}"
                yield _two_lines(matrix, build, line).replace(facts=(claim.id,))


_FILE_ATTRIBUTES = ("release", "channel", "machine", "install", "abi")


def _two_lines(matrix: Matrix, build: Release, other: str, rival: Release | None = None) -> Finding:
    return Finding.of(
        "TM335",
        component=matrix.components[build.component].variant_of,
        releases=(build.attributes["release"],),
        machine=build.attributes["machine"],
        line=build.attributes["line"],
        actual=other,
        facts=tuple(f"{side.component}=={side.version}" for side in (rival, build) if side),
    )


def _toolkit(line: str, toolkit: str) -> str:
    """The major release of a toolkit that a line names: `cu126` is of 12; "" where it does not say."""
    match = _LINE.match(line)
    if match is None:
        return ABSENT if line == "cpu" else ""
    if _TOOLKITS[match[1]] != toolkit:
        return ABSENT
    first, two = match[2][:1], match[2][:2]
    return two if int(two) < _FIRST_MAJOR_YET_TO_COME else first


def pure_unread(matrix: Matrix, index: Index) -> Iterator[Finding]:
    """Releases whose device code is marked as unread although their wheels are pure Python."""
    for claim in matrix.claims.values():
        component, selector = claim.when[0]
        if (claim.component, claim.evidence) != ("device", UNKNOWN):
            continue
        scale = index.scale(component)
        for version in scale.named(scale.select(selector)):
            files = _files(matrix, matrix.releases[component, version])
            # A wheel for any machine may have libraries all the same, which another fact was read from.
            if (
                files
                and all(file.endswith(_PURE) for file in files)
                and not any(
                    binding.evidence != UNKNOWN
                    for toolkit in set(_TOOLKITS.values()) & matrix.components.keys()
                    for binding in index.component(component).about(toolkit, scale.bit(version))
                )
            ):
                yield Finding.of(
                    "TM336", component=component, releases=(version,), facts=(claim.id,)
                )


def read_before(matrix: Matrix) -> Iterator[Finding]:
    """Tables of releases that cite METADATA, and do not say whether it was read whole."""
    reported: set[str] = set()
    for (component, version), release in matrix.releases.items():
        row = matrix.rows.get(release.id)
        if (
            row is not None
            and row.table not in reported
            and row.table not in matrix.requirements
            and not matrix.components[component].variant_of
            and _METADATA.search(row.where)
        ):
            reported.add(row.table)
            yield Finding.of(
                "TM337",
                component=component,
                table=row.table,
                expected="`requirements-read:` in the table",
                facts=(f"{component}=={version}",),
            )


_METADATA = re.compile(r"\b(METADATA|Requires-Dist)\b|\.whl, sha256 ")


def _of_builds(matrix: Matrix, components: Iterable[str], kind: str) -> Iterator[Claim]:
    known = set(components)
    for claim in matrix.claims.values():
        about = claim.component in known and claim.kind == kind
        read = about and claim.evidence != words.UNKNOWN and claim.decides
        if read and matrix.components[claim.when[0][0]].variant_of:
            yield claim


def _build_values(matrix: Matrix, index: Index, claim: Claim) -> Iterator[Release]:
    component, selector = claim.when[0]
    scale = index.scale(component)
    for name in scale.named(scale.select(selector)):
        yield matrix.releases[component, name]


def _archs(index: Index, selector: str) -> int:
    # What goes with every arch has code for none.
    silent = selector in ("", "*", UNKNOWN)
    return 0 if silent else index.scale("arch").select(selector) & ~1


def _supported_archs(index: Index, toolkit: str, release: int) -> int:
    """The archs that a release of a toolkit makes code for, 0 where they are unknown."""
    archs = -1
    for binding in index.component(toolkit).about("arch", release):
        if binding.kind == "limits" and binding.evidence != UNKNOWN and not binding.conditions:
            archs &= binding.allowed
    return 0 if archs == -1 else archs & ~1


def _files(matrix: Matrix, release: Release) -> list[str]:
    """The files of a release that its row cites."""
    row = matrix.rows.get(release.id)
    return _FILE.findall(row.where) if row is not None else []


SCHEMA = "toolmatrix.audit/1"
HARVESTED = "harvested"
"""The directory of the files that harvesters write."""

AUDIT = yamlfile.NodeKind(
    noun="the rules of the audit",
    error=MatrixError,
    help="docs/audit.md describes matrix/audit.yaml",
    missing="check the path",
)


class AgeLimit(Value):
    """The days after which a kind of source counts as old, 0 for never; a source is of the kind that fits its `at`."""

    kind: str
    at: re.Pattern[str]
    days: int


class AuditRules(Value):
    """The rules of matrix/audit.yaml: how old readings may be, glibc of platforms, floors of families in percent."""

    ages: tuple[AgeLimit, ...]
    glibc: tuple[str, ...]
    floors: Mapping[str, int]

    def floor(self, component: str) -> int:
        """The share of the published releases of a component that has to be known, in percent."""
        return self.floors.get(component, self.floors["default"])

    def platform(self, machine: str, glibc: str) -> str:
        """The platform as uv names it: the newest whose glibc is not younger, the oldest where none is."""
        # Wheels for an older glibc run on a newer one and not the other way round: a name above that of the answer
        # would let uv take wheels that do not start there.
        fits = [name for name in self.glibc if not glibc or _numbers(name) <= _numbers(glibc)]
        return f"{machine}-manylinux_{(fits or self.glibc)[-1 if fits else 0].replace('.', '_')}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def rules(path: str = "") -> AuditRules:
    """Read the rules. Raises MatrixError."""
    root = yamlfile.read(path or audit_path(), of=AUDIT)
    keys = ("schema", "ages", "glibc", "floors")
    fields = root.only("the rules of the audit", keys, keys)
    fields["schema"].choice("schema", (SCHEMA,))
    ages = []
    for node in fields["ages"].sequence("ages"):
        own = node.only("an age", ("kind", "at", "days"), ("kind", "at", "days"))
        try:
            # Not `string`, which refuses an empty text: that is the pattern of any other source.
            pattern = re.compile(own["at"].text or "")
        except re.error as error:
            own["at"].fail(
                "a pattern cannot be read", expected="a regular expression", found=str(error)
            )
        ages.append(
            AgeLimit(kind=own["kind"].string("kind"), at=pattern, days=own["days"].integer("days"))
        )
    floors = {
        name: node.integer("a floor") for name, node in fields["floors"].mapping("floors").items()
    }
    if "default" not in floors:
        fields["floors"].fail("there is no default floor", expected="`default:`")
    glibc = tuple(node.string("glibc") for node in fields["glibc"].sequence("glibc"))
    return AuditRules(ages=tuple(ages), glibc=glibc, floors=floors)


def findings(
    matrix: Matrix,
    index: Index,
    families: Iterable[FamilyCoverage],
    rules: AuditRules,
    today: date,
    packages: Mapping[str, str],
) -> Iterator[Finding]:
    """Everything that can be found wrong without asking a source; `packages` are the components of packages."""
    yield from uncovered(families, rules)
    yield from aged(matrix, rules, today)
    yield from harvest_disputes(matrix, index)
    yield from contradictions(matrix, index, packages)


def uncovered(families: Iterable[FamilyCoverage], rules: AuditRules) -> Iterator[Finding]:
    """Components with fewer known releases than their floor requires."""
    for family in families:
        floor = rules.floor(family.component)
        if family.published and family.share < floor:
            yield Finding.of(
                "TM320",
                component=family.component,
                known=family.known,
                published=family.published,
                share=family.share,
                expected=f"at least {floor} %",
                actual=f"{family.share} %",
            )


def aged(matrix: Matrix, rules: AuditRules, today: date) -> Iterator[Finding]:
    """Sources that were read longer ago than their kind may be."""
    read = cited(matrix)
    for name, source in sorted(matrix.sources.items()):
        limit = next((age for age in rules.ages if age.at.search(source.at)), None)
        days = (today - date.fromisoformat(source.read)).days
        # That nothing is read in a source is a finding of `check`.
        if limit and limit.days and days > limit.days and name in read:
            yield Finding.of(
                "TM321",
                source=name,
                kind=limit.kind,
                days=days,
                expected=f"read in the last {limit.days} days",
                actual=source.read,
                facts=tuple(read[name]),
            )


def harvest_disputes(matrix: Matrix, index: Index) -> Iterator[Finding]:
    """Disputes between a table that a harvester wrote and a reviewed one."""
    files = {
        row.table: claim.node.where.path
        for claim in matrix.claims.values()
        for row in (matrix.rows[claim.row],)
    }
    for dispute in disputes(matrix, index):
        tables = dispute["rival"], dispute["deciding"]
        harvested = [name for name in tables if basename(dirname(files.get(name, ""))) == HARVESTED]
        # Disputes between two harvested or two reviewed tables are reported by `check`.
        if len(harvested) == 1:
            curated = next(name for name in tables if name not in harvested)
            yield Finding.of(
                "TM327",
                component=dispute.component,
                releases=dispute.releases,
                about=dispute["about"],
                harvested=harvested[0],
                curated=curated,
                facts=dispute.facts,
                where=dispute.where,
            )


OUTCOMES = ("answered", "refused", "unknown")
"""What came of asking for a release in one way."""
PUBLISHED = "published"
"""The data table of published releases: how many of each `component`, in how many `series`, and the `newest`."""


class FamilyCoverage(Document):
    """One component; `published` is None where the index was not read, and only a framework has targets."""

    component: str
    title: str
    known: int
    newest: str | None
    published: int | None
    newest_published: str | None
    variants: int
    # Ways by target and by what came of asking.
    targets: Mapping[str, Mapping[str, int]]
    # Facts and answers by evidence, the best first.
    facts: Mapping[str, int]
    answers: Mapping[str, int]

    @property
    def share(self) -> int:
        """The share of the published releases that is known, in percent; 100 where their number is unknown."""
        # More may be known than the index lists now, as of releases that are gone. Rounded down, so that 100 is all.
        return 100 * min(self.known, self.published) // self.published if self.published else 100


def family_coverage(
    matrix: Matrix,
    index: Index,
    outcomes: Iterable[ReleaseOutcome],
    published: Mapping[str, tuple[int, str]],
    names: Sequence[str] = (),
) -> Iterator[FamilyCoverage]:
    """Each component that people ask for, in the order of the matrix; `published` says how many and the newest."""
    by_component: dict[str, list[ReleaseOutcome]] = {}
    for outcome in outcomes:
        by_component.setdefault(outcome.component, []).append(outcome)
    facts: dict[str, list[str]] = {}
    for claim in matrix.claims.values():
        subject = matrix.components[claim.when[0][0]]
        facts.setdefault(subject.variant_of or subject.name, []).append(claim.evidence)
    for component in matrix.components.values():
        name = component.name
        if component.given or component.hidden or component.flag or component.variant_of:
            continue
        if names and name not in names:
            continue
        versions = index.component(name).versions
        count, latest = published.get(name, (None, None))
        own = by_component.get(name, ())
        yield FamilyCoverage(
            component=name,
            title=component.title,
            known=len(versions),
            newest=versions[-1] if versions else None,
            published=count,
            newest_published=latest,
            variants=_builds(matrix, index, name),
            targets=_by_target(own),
            facts=_count_evidence(facts.get(name, ())),
            answers=_count_evidence(evidence for outcome in own for evidence in outcome.evidence),
        )


def harvested_releases(matrix: Matrix) -> dict[str, tuple[int, str]]:
    """How many releases of a component the index listed when it was harvested, and the newest of them.

    Of a component with a release for each series so many series.
    """
    published: dict[str, tuple[int, str]] = {}
    for row in matrix.rows.values():
        if row.table == PUBLISHED:
            cells = dict(row.cells)
            # Of several packages of one component the one with most releases counts.
            name = cells["component"]
            kind = "series" if matrix.components[name].scheme == "series" else "releases"
            published[name] = max((int(cells[kind]), cells["newest"]), published.get(name, (0, "")))
    return published


def _builds(matrix: Matrix, index: Index, name: str) -> int:
    return sum(
        len(index.component(other.name).versions)
        for other in matrix.components.values()
        if other.variant_of == name
    )


def _by_target(outcomes: Iterable[ReleaseOutcome]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        groups = (
            outcome.answered,
            union_of_fields(outcome.refused, "ways"),
            union_of_fields(outcome.unread, "ways"),
        )
        for key, methods in zip(OUTCOMES, groups, strict=True):
            for method in methods:
                counts.setdefault(method.target, dict.fromkeys(OUTCOMES, 0))[key] += 1
    return counts


def _count_evidence(evidence: Iterable[str]) -> dict[str, int]:
    grades = list(evidence)
    return {grade: grades.count(grade) for grade in words.WORDS if grade in grades}
