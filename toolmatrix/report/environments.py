"""An environment for a repository: what is installed by which commands, what of its files had to change, and why."""

from __future__ import annotations

import re

from toolmatrix.documents import Annotated, FilePlace, MatrixHead, TypedDict
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import PIP
from toolmatrix.report import claims, cores, remarks, terminal, variants
from toolmatrix.report.answer import head
from toolmatrix.report.findings import COLOURS, FindingHead
from toolmatrix.report.terminal import printable
from toolmatrix.request.manifests import TOOLKIT
from toolmatrix.solve.resolve import Unsatisfiable
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.report.refusal import ConflictDocument
    from toolmatrix.report.remarks import UnreadEntry
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.request.cases import CaseLine, RepositoryCase
    from toolmatrix.request.relaxing import CaseAnswer, Relaxation
    from toolmatrix.solve.grounds import Core, CoreLine
    from toolmatrix.solve.resolve import Resolution

SCHEMA = "toolmatrix.environment/1"
GUARD = "toolmatrix-constraints.txt"
"""The name of a file of constraints."""
TOOLS = ("uv", "pip")
# So many lines of a reason are printed; a document has all.
_MOST = 3
_EXTRAS = re.compile(r"\[[^\]]*\]")
_NAME = re.compile(r"[\w.-]+")
_PACKAGE = re.compile(r"[\w.-]+(\[[^\]]*\])?")
_IMPORTED = "the code imports {}, and no file says which release it is written for"


class CaseLineEntry(TypedDict):
    """A line of a file that was taken, and the release that it gets; `reported` where it is an import or a sentence."""

    text: str
    component: str
    version: str | None
    reported: bool
    where: FilePlace


class UnreadLineEntry(TypedDict):
    """A line of a file that was not read, and why."""

    text: str
    why: str
    where: FilePlace


class TargetPins(TypedDict):
    """What is chosen for a target, and by tool the commands that create it."""

    versions: dict[str, str]
    pins: list[str]
    commands: dict[str, list[str]]
    system: list[str]


class EnvironmentDocument(TypedDict):
    """What `toolmatrix env --json` prints: the versions of the first target by component (null without an answer) and
    all targets, the lines of files that were taken, what had to change, what was passed on unchecked or not read, the
    folders of the repository that compile code with torch, and what no fact decides.
    """

    schema: Annotated[str, SCHEMA]
    matrix: MatrixHead
    outcome: Annotated[str, "yes", "no", "unknown"]
    request: list[str]
    files: list[str]
    locks: list[str]
    environment: dict[str, str] | None
    targets: dict[str, TargetPins]
    lines: list[CaseLineEntry]
    findings: list[FindingHead]
    unchecked: list[str]
    conda: list[str]
    compiled: list[str]
    unread: list[UnreadLineEntry]
    undecided: list[str]
    conflict: ConflictDocument | None


class EnvironmentPlan(Value):
    """What is installed on a target: builds by their requirements and indexes, and packages of the default index.

    `system` is what the builds load of a toolkit without bringing it.
    """

    target: str
    python: str
    versions: dict[str, str]
    builds: tuple[variants.Variant, ...]
    packages: tuple[str, ...]
    unchecked: tuple[str, ...]
    conda: tuple[str, ...]
    system: tuple[str, ...]
    machine: str

    @property
    def pins(self) -> list[str]:
        """The packages with their releases, as constraints: without extras, local versions or addresses."""
        pins = []
        for build in self.builds:
            for requirement in build.requirement.split():
                name, pinned, _ = requirement.partition("@" if "@" in requirement else "==")
                # What a build needs beside itself has releases of its own.
                own = f"{name.partition('[')[0]}=={build.release}"
                pins.append(own if pinned else requirement)
        packages = (_EXTRAS.sub("", text) for text in self.packages)
        return [*dict.fromkeys([*pins, *packages])]

    @property
    def compiled(self) -> list[str]:
        """The requirements that are compiled with what was installed before them."""
        return [text for text in (*self.packages, *self.unchecked) if _builds_beside(text)]

    def commands(self, tool: str, guard: str = "") -> list[str]:
        """The commands that create it with uv, or with pip."""
        constraint = f" --constraint {guard}" if guard else ""
        create = {
            "uv": [f"uv venv --python {self.python}"],
            "pip": [f"python{self.python} -m venv .venv", ". .venv/bin/activate"],
        }
        compiled = self.compiled
        besides = [text for text in (*self.packages, *self.unchecked) if text not in compiled]
        installs = variants.installs(self.builds, tool, besides, compiled)
        return [*create[tool], *(f"{install}{constraint}" for install in installs)]


def _builds_beside(requirement: str) -> bool:
    """True for a requirement whose source distribution imports what is installed before it."""
    name = _NAME.match(requirement)
    build = called.source_builds().get(called.package_name(name[0])) if name else None
    return build is not None and bool(build.needs)


def environment(
    index: Index,
    resolution: Resolution,
    target: str,
    case: RepositoryCase,
    apart: Sequence[CaseLine],
    open_lines: Mapping[str, str],
) -> EnvironmentPlan:
    """The environment of a target of an answer; lines that were set apart are installed as they are written.

    `open_lines` are the ranges of components that no file pins.
    """
    components, chosen = index.header["components"], resolution.chosen(target)
    named = {line.component: line.package for line in case.lines}
    extras = _extras(case.lines)
    order = [*dict.fromkeys([*named, *chosen])]
    builds = sorted(
        (
            variants.with_extras(build, chosen)
            for build in variants.of(index, resolution.targets[target])
        ),
        key=lambda build: order.index(build.component),
    )
    pinned = {build.component for build in builds}
    bounded = {*index.packages().values()} - {*called.wheels_alone(), *TOOLKIT}
    unchecked = (*(line.requirement for line in apart), *case.unchecked)
    ranges = _ranges(index, chosen, case, open_lines) if unchecked else {}
    packages = [
        named.get(name, name) + extras.get(name, "") + ranges.get(name, f"=={version}")
        for name, version in chosen.items()
        if name not in pinned
        # pip takes the newest of what no metadata bounds, as NumPy for an older torch.
        and (name in named or name in bounded)
        and variants.on_index(index, name)
    ]
    carried = variants.carried(index, resolution, target)
    return EnvironmentPlan(
        target=target,
        machine=index.header["targets"][target]["context"]["machine"],
        conda=case.conda,
        system=tuple(
            f"{name} {chosen[name]}"
            for name in ("cuda", "cudnn", "rocm")
            if name in chosen and builds and name not in carried
        ),
        python=chosen.get("python", ""),
        versions={name: v for name, v in chosen.items() if not components[name]["variant_of"]},
        builds=tuple(builds),
        packages=(*packages, *variants.bounds(index, resolution, target)),
        unchecked=unchecked,
    )


def _ranges(
    index: Index, chosen: Mapping[str, str], case: RepositoryCase, open_lines: Mapping[str, str]
) -> dict[str, str]:
    """By component the releases that go with what was not checked: it may require earlier ones of what nothing pins."""
    components, ranges = index.header["components"], {}
    kept = {name for name, _ in case.keep} | {line.component for line in case.lines}
    for name, version in chosen.items():
        # What computes on an accelerator goes with a toolkit, which its requirements do not say.
        computes = components[name]["framework"] or components[name]["accelerators"]
        if not computes and (name in open_lines or name not in kept):
            clauses = open_lines.get(name, "").split(",")
            clauses = [clause for clause in clauses if clause and not clause.startswith("<")]
            ranges[name] = ",".join([*clauses, f"<={version}"])
    return ranges


def _extras(lines: Sequence[CaseLine]) -> dict[str, str]:
    """By component the extras that lines ask for, as pip writes them."""
    names: dict[str, set[str]] = {}
    for line in lines:
        names.setdefault(line.component, set()).update(line.part.item.extras)
    return {name: f"[{','.join(sorted(extras))}]" for name, extras in names.items() if extras}


class CaseReport:
    """The answer to a case as text and as a document."""

    def __init__(
        self, index: Index, case: RepositoryCase, answer: CaseAnswer, at: str = ""
    ) -> None:
        self.index = index
        self.at = at
        self.case = case
        self.answer = answer
        self.resolution = None if isinstance(answer.outcome, Unsatisfiable) else answer.outcome

    @property
    def outcome(self) -> str:
        """yes where facts support the answer, unknown where they do not decide, no where there is none."""
        if self.resolution is None:
            outside = isinstance(self.answer.outcome, Unsatisfiable) and self.answer.outcome.outside
            return "unknown" if outside else "no"
        # An index that was not read may have builds of what was changed.
        unread = any(relaxation.line.part.open for relaxation in self.answer.relaxed)
        is_open = unread or bool(self.apart()) or any(line.open for line in self.case.lines)
        is_open = is_open or bool(self.imported())
        return "yes" if self.resolution.known and not is_open else "unknown"

    def imported(self) -> list[CaseLine]:
        """The lines about frameworks that the code imports, or about all if no file asks for packages.

        What is compiled against one that a file names, as torchvision is, has the release that goes with it.
        """
        heads = self.index.header["components"]
        named = {line.component for line in self.case.lines if not line.part.item.imported}
        frameworks = {name for name in named if heads[name]["framework"]}
        return [
            line
            for line in self.case.lines
            if line.component not in named
            and (heads[line.component]["framework"] or not self.case.files)
            and frameworks.isdisjoint(heads[line.component]["against"])
        ]

    def apart(self) -> list[CaseLine]:
        """The lines for the CPU alone that were solved without the rest, and are not known to go with it."""
        return [
            relaxation.line
            for relaxation in self.answer.relaxed
            if not relaxation.asks and not relaxation.line.asks[0].option
        ]

    def ranges(self) -> dict[str, str]:
        """By component, what its lines say of a package that none of them pins, and that did not have to change."""
        changed = {relaxation.line.component for relaxation in self.answer.relaxed}
        changed |= {name for name, _ in self.case.keep}
        texts: dict[str, list[str]] = {}
        for line in self.case.lines:
            item = line.part.item
            says = item.specifier.replace(" ", "").removeprefix("*") if item.kind == PIP else "=="
            texts.setdefault(line.component, []).append(says)
        return {
            name: ",".join(filter(None, dict.fromkeys(says)))
            for name, says in texts.items()
            if name not in changed and not any("==" in text for text in says)
        }

    def environments(self) -> list[EnvironmentPlan]:
        """The environment of each target, none without an answer."""
        resolution = self.resolution
        if resolution is None:
            return []
        return [
            environment(self.index, resolution, target, self.case, self.apart(), self.ranges())
            for target in resolution.targets
        ]

    def version(self, component: str) -> str | None:
        """The release of a component on the first target."""
        first = next(iter(self.resolution.targets), "") if self.resolution else ""
        return self.resolution.chosen(first).get(component) if self.resolution else None

    def release(self, line: CaseLine) -> str:
        """The release that a line gets, with the package that has it where the line names another."""
        version = self.version(line.component) or "-"
        builds = self.environments()[0].builds if self.resolution else ()
        for build in builds:
            name = _PACKAGE.match(build.requirement)
            if build.component == line.component and name and line.part.item.kind == PIP:
                written = f"{line.package}[{','.join(sorted(line.part.item.extras))}]"
                if name[0] not in (line.package, written):
                    return f"{version} as {name[0]}"
        return version

    def local(self, component: str) -> str:
        """The release of a component with the line of its build on the first target, "" without builds."""
        builds = self.environments()[0].builds if self.resolution else ()
        return next((build.local for build in builds if build.component == component), "")

    def findings(self) -> list[FindingHead]:
        """What had to change, each with its reason and its place; without an answer what is in conflict."""
        if isinstance(self.answer.outcome, Unsatisfiable):
            return [self.conflict(core) for core in self.answer.outcome.cores]
        return [self.finding(relaxation) for relaxation in self.changes()]

    def changes(self) -> list[Relaxation]:
        """The lines that had to change."""
        return [relaxation for relaxation in self.answer.relaxed if not relaxation.outside]

    def conflict(self, core: Core) -> FindingHead:
        """Lines that have no answer, however wide they are made."""
        behind = {(ask.component, ask.selector) for ask in core.asks}
        wide = {id(relaxation.line): relaxation.asks for relaxation in self.answer.relaxed}
        lines = [
            line
            for line in self.case.lines
            if any((a.component, a.selector) in behind for a in wide.get(id(line), line.asks))
        ]
        words = terminal.listing([line.text for line in lines])
        grounds = [part.ground for part in core.lines if part.ground]
        return {
            "code": "TM101",
            "severity": "error",
            "component": lines[0].component if lines else None,
            "expected": None,
            "actual": words or None,
            "where": lines[0].where.to_json() if lines else None,
            "text": f"no release works here for {words}" if words else "the options have no answer",
            "because": [cores.sentence(self.index, part) for part in core.lines],
            "help": "",
            "facts": [*dict.fromkeys(fact for ground in grounds for fact in ground.facts)],
        }

    def finding(self, relaxation: Relaxation) -> FindingHead:
        """A line that had to change."""
        line, version = relaxation.line, self.version(relaxation.line.component)
        code = "TM120" if line.open else "TM108" if line.refusal else "TM106"
        changed = f"{line.component}=={version}" if relaxation.asks and version else ""
        local = self.local(line.component)
        # The same release from another index.
        if changed and local and f"=={version}" in line.part.asks[0].selector:
            changed = f"{line.component}=={local}"
        instead = changed or ("not checked with the rest" if line in self.apart() else "left out")
        reasons = [cores.sentence(self.index, part) for part in self.reasons(relaxation)]
        facts = [
            fact for part in self.reasons(relaxation) if part.ground for fact in part.ground.facts
        ]
        help_ = f"write `{line.package}=={version}`" if changed else ""
        if line.is_use:
            help_ = "change the code there, or what is asked for in its place"
        return {
            "code": code,
            "severity": "warning",
            "component": line.component,
            "expected": changed or None,
            "actual": line.text,
            "where": line.where.to_json(),
            "text": f"{line.text} -> {instead}",
            "because": [*([line.refusal] if line.refusal else []), *reasons],
            "help": help_,
            "facts": [*dict.fromkeys(facts)],
        }

    def reasons(self, relaxation: Relaxation) -> list[CoreLine]:
        """The lines of a conflict beside the one that gave way, and beside defaults; what was requested for first."""
        line, components = relaxation.line, self.index.header["components"]
        parts = relaxation.core.lines if relaxation.core else ()
        own = {ask.text for ask in (*line.asks, *line.free)}
        requested = [
            part
            for part in parts
            if part.ask
            and not part.ask.implied
            and part.ask.option != "from"
            and part.ask.text not in own
        ]
        # That a wheel is one of several builds is no reason.
        grounds = [
            part
            for part in parts
            if part.ground
            and part.ground.kind != "needs"
            and components[part.ground.subject]["variant_of"] != part.ground.component
        ]

        def rank(part: CoreLine) -> tuple[bool, bool]:
            """What is about the line comes first, and what excludes builds for something else last."""
            ground = part.ground
            if ground is None:
                return True, True
            about = (ground.subject, components[ground.subject]["variant_of"])
            return line.component not in about, ground.component in ("accelerator", "machine")

        # A machine says more than the lines beside.
        requested.sort(key=lambda part: bool(part.ask and part.ask.option in ("", "with")))
        return [*requested, *sorted(grounds, key=rank)]

    def document(self, conflict: ConflictDocument | None) -> EnvironmentDocument:
        """Everything as JSON values."""
        case, environments = self.case, self.environments()
        return {
            "schema": SCHEMA,
            "matrix": head(self.index),
            "outcome": self.outcome,
            "request": list(self.answer.outcome.request.arguments()),
            "files": list(case.files),
            "locks": list(case.locks),
            "environment": environments[0].versions if environments else None,
            "targets": {
                entry.target: {
                    "versions": entry.versions,
                    "pins": entry.pins,
                    "system": list(entry.system),
                    "commands": {tool: entry.commands(tool) for tool in TOOLS},
                }
                for entry in environments
            },
            "lines": [
                {
                    "text": line.text,
                    "component": line.component,
                    "version": self.version(line.component),
                    "reported": line.is_reported,
                    "where": line.where.to_json(),
                }
                for line in case.lines
            ],
            "findings": self.findings(),
            "unchecked": [
                *(r.line.requirement for r in self.answer.relaxed if r.outside),
                *case.unchecked,
            ],
            "conda": list(case.conda),
            "compiled": list(case.compiled),
            "unread": [
                {"text": entry.text.text, "why": entry.why, "where": entry.where.to_json()}
                for entry in case.unread
            ],
            "undecided": self.unread_facts(),
            "conflict": conflict,
        }

    def text(
        self, screen: Terminal, refusal: str = "", further: Sequence[str] = (), guard: str = ""
    ) -> str:
        """The answer in words, and `further` of it; `refusal` is laid out in place of an environment."""
        notes = claims.Notes(self.index)
        blocks = [self.headline(entry, screen) for entry in self.environments()]
        changes = self.changes() if self.resolution else ()
        blocks += [self.change(relaxation, notes, screen) for relaxation in changes]
        blocks += [[line for text in (*self.doubts(), *further) for line in screen.wrap(text)]]
        for entry in self.environments():
            title = (
                f"to create it on {entry.target}"
                if len(self.environments()) > 1
                else "to create it"
            )
            blocks.append([title, *(f"  {command}" for command in entry.commands("uv", guard))])
            if entry.system:
                blocks.append(
                    [
                        f"no wheel brings {terminal.listing(entry.system)}: the machine must have them"
                    ]
                )
        blocks += [self.compiled(), self.lines(), *self.rest(screen), notes.lines(screen.width)]
        return f"{refusal}\n" * bool(refusal) + terminal.blocks(blocks)

    def headline(self, entry: EnvironmentPlan, screen: Terminal) -> list[str]:
        """What an environment is, in a sentence."""
        parts = [f"{build.component} {build.local}" for build in entry.builds]
        known = {"python": "Python"}
        # Without a build nothing computes on a toolkit.
        known |= {"cuda": "CUDA", "rocm": "ROCm", "driver": "driver >="} if entry.builds else {}
        parts += [
            f"{title}{'' if title.endswith('=') else ' '}{entry.versions[name]}"
            for name, title in known.items()
            if name in entry.versions
        ]
        request = self.answer.outcome.request
        devices = "".join(f" for {request.named(device)}" for device in request.devices)
        verdict = screen.style(self.outcome, self.outcome)
        changes = len(self.changes())
        # A day that was not named is that of the newest pin.
        then = f" as of {request.at}, the day of the newest pin" if request.at != self.at else ""
        changed = f" with {terminal.plural(changes, 'change')}" if changes else ""
        return screen.wrap(
            f"{verdict}{changed}: {', '.join(parts)} on {entry.target}{devices}{then}"
        )

    def change(self, relaxation: Relaxation, notes: claims.Notes, screen: Terminal) -> list[str]:
        """A line that had to change, with its reason."""
        finding = self.finding(relaxation)
        mark = screen.style(f"{finding['severity']}[{finding['code']}]", COLOURS["warning"])
        lines = [f"{mark}: {printable(finding['text'])}", f"  --> {relaxation.line.where}"]
        parts = self.reasons(relaxation)
        reasons = [
            cores.sentence(self.index, part)
            + (f" ({part.ground.evidence}) {notes.cite(part.ground.facts)}" if part.ground else "")
            for part in parts[:_MOST]
        ]
        reasons += [f"and {len(parts) - _MOST} more (--json)"] if len(parts) > _MOST else []
        for reason in [relaxation.line.refusal] * bool(relaxation.line.refusal) + reasons:
            lines += screen.wrap(printable(reason), "    | ", "    |   ")
        return lines

    def unread_facts(self) -> list[str]:
        """What an answer rests on that no fact decides."""
        return [*self.unsaid_releases(), *(entry["text"] for entry in self.unread_entries())]

    def doubts(self) -> list[str]:
        """The same in fewer sentences."""
        return [*self.unsaid_releases(), *remarks.summarized(self.unread_entries())]

    def unread_entries(self) -> Sequence[UnreadEntry]:
        """What the facts leave open, none without an answer."""
        return remarks.unread(self.resolution) if self.resolution else ()

    def unsaid_releases(self) -> list[str]:
        """A sentence about what the code alone names."""
        imported = [line.package for line in self.imported()] if self.resolution else []
        return [_IMPORTED.format(terminal.listing(imported))] if imported else []

    def newer(self) -> list[str]:
        """The newer releases that were left out, as no fact supports them, and why."""
        newer, resolution = self.answer.newer, self.resolution
        if newer is None or resolution is None:
            return []
        target, heads = newer.request.targets[0], self.index.header["components"]
        before, wanted = resolution.chosen(target), {line.component for line in self.case.lines}
        others = [
            f"{name} {version}"
            for name, version in newer.chosen(target).items()
            if name in wanted and before.get(name) != version and not heads[name]["variant_of"]
        ]
        why = remarks.unread(newer)[0]["text"]
        return [f"no fact supports {terminal.listing(others)} here: {why}"] if others else []

    def compiled(self) -> list[str]:
        """How the code of the repository itself is compiled, where it is."""
        folders = self.case.compiled if self.resolution else ()
        if not folders:
            return []
        paths = [folder if folder == "." else f"./{folder}" for folder in folders]
        command = "uv pip install --no-build-isolation --no-deps"
        cuda = self.version("cuda")
        toolkit = f" and nvcc of CUDA {cuda}" if cuda else ""
        return [
            f"then compile the code of the repository, which takes a host compiler{toolkit}",
            *(f"  {command} {printable(path)}" for path in paths),
        ]

    def lines(self) -> list[str]:
        """The lines that were taken, with the releases that they get."""
        rows = [
            (
                f"import {printable(line.text)}"
                if line.part.item.imported and not line.is_use
                else printable(line.text),
                self.release(line),
                printable(str(line.where)),
                "reported" if line.is_reported else "",
            )
            for line in self.case.lines
        ]
        return (
            ["taken from the files", *(f"  {row}" for row in terminal.columns(rows))]
            if rows
            else []
        )

    def rest(self, screen: Terminal) -> Iterator[list[str]]:
        """What was passed on unchecked, and what was not read."""
        case = self.case
        earlier = [r.line.package for r in self.answer.relaxed if r.outside]
        for title, texts in (
            ("not checked: releases before those that are known may go with the rest", earlier),
            ("not checked: the matrix has no facts about them", case.unchecked),
            ("not checked, and left to conda", case.conda),
        ):
            if texts:
                words = ", ".join(map(printable, texts))
                yield [title, *screen.wrap(words, "  ", "  ")]
        unread = [
            f"  {entry.where}  {printable(entry.text.text)}: {entry.why}" for entry in case.unread
        ]
        unread += [f"  {error.where}  {error.what}" for error in case.errors]
        yield ["not read", *unread] if unread else []
        if case.locks:
            yield [f"preferred: the releases in {terminal.listing([*map(printable, case.locks)])}"]
