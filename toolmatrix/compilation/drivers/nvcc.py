"""Reads the lines of `nvcc --dryrun` and `nvcc -v`, of any number of runs at once, into the plan of each run.

The words of a stage are what its program gets: redirections are inputs and outputs instead, a response file that the
log shows is replaced by its contents, and variables of the log in the path of the program are expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from toolmatrix.compilation import model
from toolmatrix.compilation.drivers import base_name, nvcc_commands
from toolmatrix.compilation.drivers.nvcc_commands import (
    FROM_TOOLKIT,
    READ_ENDINGS,
    SOURCES,
    Draft,
    is_compiler,
    is_known,
    is_tool,
)
from toolmatrix.compilation.model import Depfile, Diagnostic, Plan, Stage
from toolmatrix.lines import MARK

TEMP = "tmpxft_"
_VERSION = re.compile(r'-D"?__CUDACC_VER_(MAJOR|MINOR|BUILD)__=(\d{1,6})')
_VERSION_FIELDS = ("MAJOR", "MINOR", "BUILD")
_TOOLKIT_PATH = re.compile(r"(?i)cuda.{0,40}?[-/\\v](\d{1,2}\.\d{1,2}(?:\.\d{1,3})?)(?=[/\\]|$)")
_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
_SLASHES = re.compile(r"[/\\]+")
_SYSTEM = ("/usr/lib/", "/usr/lib64/", "/usr/lib32/", "/lib/", "/lib64/")
# Kinds of stages that make code for a virtual arch, or what such code is made of.
_VIRTUAL = frozenset({"cicc", "cudafe", "preprocess"})


def plan(run: NvccRun) -> Plan:
    """The plan that the commands of one run make together; changes its drafts."""
    drafts, env = run.drafts, run.env
    # Each step uses the results of those before.
    _unify_spelling(drafts)
    _drop_toolkit_files(drafts, env)
    _classify_ambiguous(drafts)
    _add_included(drafts)
    _name_archs(drafts)
    stages = [
        Stage(
            id=index,
            line=draft.line,
            kind=draft.kind,
            tool=draft.tool,
            arch=draft.arch,
            inputs=tuple(dict.fromkeys(draft.reads)),
            outputs=tuple(dict.fromkeys(draft.writes)),
            argv=tuple(draft.words),
            text=draft.text,
        )
        for index, draft in enumerate(drafts)
    ]
    diagnostics = (*run.diagnostics, *_suspicions(drafts), *_truncation(drafts, run.diagnostics))
    return Plan(
        tool="nvcc",
        version=_version(drafts, env),
        line=run.line,
        env=env,
        stages=tuple(stages),
        edges=model.stage_edges(stages),
        diagnostics=tuple(sorted(diagnostics, key=lambda diagnostic: diagnostic.line)),
        removed=tuple(run.removed),
        depfiles=tuple(_depfiles(drafts, run.depfiles)),
    )


def _depfiles(drafts: Sequence[Draft], written: Iterable[tuple[str, int]]) -> Iterable[Depfile]:
    # nvcc makes such a file from what was preprocessed since the one before.
    begin = 0
    for path, end in written:
        read = tuple(n for n in range(begin, end) if drafts[n].kind == "preprocess")
        begin = end
        if read:
            yield Depfile(path=path, stages=read)


def _version(drafts: Sequence[Draft], env: Mapping[str, str]) -> str:
    """The release in the defines of a command, or else in the path of the toolkit; else empty."""
    for draft in drafts:
        # Contents of a response file are only in the words.
        text = " ".join(draft.words) if "@" in draft.text else draft.text
        if "__CUDACC_VER_MAJOR__" in text:
            fields = dict(_VERSION.findall(text))
            return ".".join(fields[field] for field in _VERSION_FIELDS if field in fields)
    # The variable of a hostile log may be megabytes long.
    named = _TOOLKIT_PATH.search(env.get("_HERE_", "")[:1000])
    return named[1] if named else ""


def normalized(path: str) -> str:
    """The common form of all spellings of a path of Windows."""
    return _SLASHES.sub("/", path).lower()


def _unify_spelling(drafts: Sequence[Draft]) -> None:
    """Give each file of Windows one name, the first printed: `C:/x` is `C:\\x`, and letters have no case."""
    if not any(_DRIVE.match(path) for draft in drafts for path in (*draft.reads, *draft.writes)):
        return
    first: dict[str, str] = {}

    def named(path: str) -> str:
        return first.setdefault(normalized(path), path)

    for draft in drafts:
        for field in ("reads", "writes", "loose", "named"):
            setattr(draft, field, [named(path) for path in getattr(draft, field)])
        for field in ("front", "stub", "module"):
            path = getattr(draft, field)
            setattr(draft, field, path and named(path))


def _drop_toolkit_files(drafts: Sequence[Draft], env: Mapping[str, str]) -> None:
    here = env.get("_HERE_", "")
    roots = {here[: -len(base_name(here))][:-1], env.get("TOP", ""), env.get("CUDA_ROOT", "")}
    # nvcc may be installed for the whole system, where not everything is a toolkit.
    roots -= {"", "/", "/usr", "/usr/local"}
    own = (*_SYSTEM, *(f"{root}{slash}" for root in roots for slash in "/\\"))
    foreign = {
        path
        for draft in drafts
        for path in draft.reads
        if path.endswith(".stub") or (path.startswith(own) and FROM_TOOLKIT.search(path))
    }
    if foreign:
        # What the plan writes itself is its own, wherever it lies.
        foreign.difference_update(*(draft.writes for draft in drafts))
        for draft in drafts:
            draft.reads = [path for path in draft.reads if path not in foreign]


def _classify_ambiguous(drafts: Sequence[Draft]) -> None:
    """Decide by the rest of the plan whether ambiguous files are read or written."""
    if not any(draft.loose or draft.named for draft in drafts):
        return
    keep_folders = _keep_folders(drafts)
    written: dict[str, int] = {}
    last: dict[str, int] = {}
    for index, draft in enumerate(drafts):
        for path in draft.writes:
            written.setdefault(path, index)
        last.update(dict.fromkeys((*draft.reads, *draft.loose, *draft.named), index))
    for index, draft in enumerate(drafts):
        named = set(draft.named)
        for path in (*draft.loose, *draft.named):
            awaited = last.get(path, index) > index
            handed_on = awaited or (path not in named and not path.endswith(READ_ENDINGS))
            # Only a file of nvcc's own counts as written: another may have existed before.
            ours = (TEMP in path or _folder(path) in keep_folders) and not path.endswith(SOURCES)
            if written.get(path, index) < index:
                draft.reads.append(path)
            elif ours and handed_on:
                draft.writes.append(path)
                written.setdefault(path, index)
            elif path not in named:
                draft.reads.append(path)


def _keep_folders(drafts: Iterable[Draft]) -> set[str]:
    # A folder that contains only files that stages pass on is one that `--keep-dir` names.
    written: set[str] = set()
    handed: set[str] = set()
    there: set[str] = set()
    for draft in drafts:
        for path in draft.reads:
            (handed if path in written else there).add(_folder(path))
        written.update(draft.writes)
    return handed - there - {""}


def _folder(path: str) -> str:
    return path[: len(path) - len(base_name(path))]


def _add_included(drafts: Sequence[Draft]) -> None:
    """Add the stub that cudafe++'s output includes, and the images that the stub includes, to what is read."""
    fronts = {draft.front: draft for draft in drafts if draft.front is not None}
    stubs = {draft.stub: draft for draft in drafts}
    written = dict.fromkeys(path for draft in drafts for path in draft.writes)
    # The name of a temp file is the only one of its kind, wherever it lies.
    temps = {base_name(path): path for path in written if TEMP in path}

    def included(path: str, name: str) -> str:
        beside = _folder(path) + name
        if beside in written:
            return beside
        return name if name in written else temps.get(base_name(name), beside)

    for draft in drafts:
        for front in [path for path in draft.reads if path in fronts]:
            for name in fronts[front].includes:
                stub = included(front, name)
                draft.reads.append(stub)
                if stub in stubs:
                    draft.reads += [included(stub, image) for image in stubs[stub].includes]


def _name_archs(drafts: Sequence[Draft]) -> None:
    # What comes before a compile for the device has the arch of the compile: __CUDA_ARCH__ has no letters.
    wanted: dict[str, str | None] = {}
    fronts = {draft.front for draft in drafts}
    for draft in reversed(drafts):
        if draft.arch is None and (draft.kind == "preprocess" or draft.tool == "cudafe"):
            readers = [wanted[path] for path in draft.writes if path in wanted]
            draft.arch = next(filter(None, readers), None)
            if not readers and fronts.isdisjoint(draft.reads):
                draft.arch = draft.named_arch()
        arch = draft.arch if draft.kind in _VIRTUAL else None
        for path in draft.reads:
            if path != draft.module:
                wanted[path] = arch or wanted.get(path)


def _suspicions(drafts: Sequence[Draft]) -> Iterable[Diagnostic]:
    """Stages of a plan that are not understood, or show that the log is incomplete."""
    written: set[str] = set()
    whole = True
    for index, draft in enumerate(drafts):
        doubts = {}
        if not is_known(draft):
            text = f"`{draft.tool}` is unknown: its files are those named in its arguments"
            doubts[text] = "note"
        elif not draft.reads and not draft.writes:
            doubts[f"the command of `{draft.tool}` names no file: it may be cut off"] = "warning"
        missing = [path for path in draft.reads if TEMP in path and path not in written]
        # An incomplete log lacks many files; the first is reported.
        if whole and missing:
            text = f"nothing in the log writes `{missing[0]}`: a part of the log is missing"
            doubts[text] = "warning"
            whole = False
        for text, severity in doubts.items():
            yield Diagnostic(line=draft.line, severity=severity, text=text, stage=index)
        written.update(draft.writes)


def _truncation(drafts: Sequence[Draft], diagnostics: Iterable[Diagnostic]) -> Iterable[Diagnostic]:
    # A plan that makes only temp files is truncated, unless there is another explanation.
    writes = [path for draft in drafts for path in draft.writes]
    if (
        writes
        and all(TEMP in path for path in writes)
        and not any(diagnostic.stage is None for diagnostic in diagnostics)
    ):
        text = "all outputs are temp files: the end of the log may be missing"
        yield Diagnostic(line=drafts[-1].line, severity="warning", text=text)


_REMOVES = frozenset({"rm", "erase", "del"})
_RESOURCES = re.compile(r"resource file (.*?): *\[(.*)", re.DOTALL)
_DEPENDENCIES = "-- Filter Dependencies --"
_MESSAGE = re.compile(r"(?:nvcc )?(fatal|error|warning|info)\s+: ?(.*)", re.DOTALL)
_FAILED = re.compile(r"# --error (0x[0-9a-fA-F]{1,8}) --")
_COMPLAINT = re.compile(
    r"\b(?:(fatal error|error|warning|fatal)\b ?(?:#[\w-]+)? ?:|No such file|command not found)"
)
_RACE = re.compile(r"Could not open input file .*_std(?:out|err)")
_VARIABLE = re.compile(r"[A-Za-z_][\w().]*")
# The batch file from which nvcc takes the environment of Microsoft's compiler, and prints it.
_SETS_UP = re.compile(r'(?i)(?:call )?"?[a-z]:[^"]*\b(?:vcvars\w*|vsdevcmd|setenv)\.(?:bat|cmd)\b')
# Files that no stage reads.
_NOWHERE = frozenset({"/dev/null", "NUL", "nul"})
_SEVERITY = {"fatal": "error", "fatal error": "error", "info": "note", None: "error"}
# Characters that are kept of a message and of a process id: a hostile log may have megabytes of either.
_LONGEST_MESSAGE = 2000
_LONGEST_PID = 16
# The number that a run gives a temp file, and the name of the source behind it.
_NUMBERED = re.compile(r"tmpxft_[0-9a-fA-F]+_[0-9a-fA-F]+-([0-9a-fA-F]+)_([^.]*)")
# Variables that a run prints once, before any that it prints twice.
_FIRST = frozenset({"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "_NVVM_BRANCH_", "_SPACE_"})


def pid_of(text: str) -> str | None:
    """The process id in the name of the temp file that a text names first."""
    begin = text.find(TEMP) + len(TEMP)
    return text[begin : text.find("_", begin)][:_LONGEST_PID] if begin >= len(TEMP) else None


class NvccRun:
    """One run of nvcc as far as it has been read."""

    def __init__(self, line: int, env: dict[str, str]) -> None:
        self.line = line
        self.env = env
        self.drafts: list[Draft] = []
        self.diagnostics: list[Diagnostic] = []
        self.removed: dict[str, None] = {}
        self.resources: dict[str, Sequence[str]] = {}
        # Skipped commands of a run are reported once.
        self.lost_mark = False
        # Where nvcc writes dependencies, and how many commands come before.
        self.depfiles: list[tuple[str, int]] = []
        self._numbers: dict[str, str] = {}
        self._counted = 0

    def windows(self) -> bool:
        """Check whether this run was on Windows, where another shell reads the lines."""
        return "_WIN_PLATFORM_" in self.env or self.env.get("_HERE_", "")[1:2] == ":"

    def report(self, line: int, severity: str, text: str, *, here: bool = True) -> None:
        """Add a diagnostic on the latest stage, or on the run as a whole."""
        stage = len(self.drafts) - 1 if here and self.drafts else None
        self.diagnostics.append(Diagnostic(line=line, severity=severity, text=text, stage=stage))

    def cannot_write(self, paths: Iterable[str]) -> bool:
        """Check whether temp files are those of another run with the same pid."""
        # A run numbers its own, and uses no number twice.
        for draft in self.drafts[self._counted :]:
            self._numbers.update(_NUMBERED.findall(" ".join(draft.writes)))
        self._counted = len(self.drafts)
        return any(
            self._numbers.get(temp_number, stem) != stem
            for temp_number, stem in _NUMBERED.findall(" ".join(paths))
        )


class NvccRuns:
    """The runs of a log, in the order in which they begin."""

    def __init__(self) -> None:
        self.all: list[NvccRun] = []
        self.latest: NvccRun | None = None
        # Runs that have only printed their variables; they share these, as the lines may be mixed.
        self.waiting: dict[NvccRun, None] = {}
        # Whether the variables to come, up to the first of a run or a command, are those of a host compiler.
        self.foreign = False
        self._counts: dict[str, int] = {}
        self._by_pid: dict[str, NvccRun] = {}
        self._writer: dict[str, NvccRun] = {}

    def begin(self, line: int, env: dict[str, str] | None = None) -> NvccRun:
        """A new run that begins at this line."""
        run = NvccRun(line, {} if env is None else env)
        self.all.append(run)
        self.latest = run
        return run

    def variable(self, line: int, name: str, value: str) -> NvccRun | None:
        """The run, begun by this line or before, that prints a variable; None for one of a host compiler's."""
        if not self.waiting and self.latest and self.latest.windows():
            self.foreign |= name not in self.latest.env
        self.foreign &= name not in _FIRST
        if self.foreign:
            return None
        if not self.waiting:
            self._counts = {}
        if name in _FIRST:
            self._counts[name] = self._counts.get(name, 0) + 1
        # Runs of one make print their variables through each other: one more of a name is one more run.
        if not self.waiting or self._counts.get(name, 0) > len(self.waiting):
            env = next(reversed(self.waiting)).env if self.waiting else {}
            self.waiting[self.begin(line, env)] = None
        run = next(reversed(self.waiting))
        run.env[name] = value
        return run

    def named(self, pid: str | None) -> NvccRun | None:
        """The latest run of a pid."""
        return self._by_pid.get(pid) if pid else None

    def of(
        self,
        line: int,
        pid: str | None,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
        *,
        removes: str = "",
    ) -> NvccRun:
        """The run that a command belongs to: by its pid, by the files it reads, or the latest one."""
        run = self.named(pid)
        if run is not None and self.waiting and self._is_another(run, writes, removes):
            run = None
        if run is None and not pid:
            # `nvcc -clean` only removes files, and none of these is a temp file with its pid.
            cleans = removes and self.latest and self.latest.removed and not self.latest.drafts
            run = self.latest if cleans else self.writer(reads)
            if run is None and not self.waiting:
                run = self.latest
        if run is None:
            run = next(iter(self.waiting), None) or self.begin(line)
        self.resume(run)
        if pid:
            self._by_pid[pid] = run
        return run

    def _is_another(self, run: NvccRun, writes: Sequence[str], removes: str) -> bool:
        # Where each run has a container of its own, pids come again.
        if removes:
            return removes in run.removed or run.cannot_write([removes])
        again = bool(writes) and all(self._writer.get(path) is run for path in writes)
        return again or run.cannot_write(writes)

    def resume(self, run: NvccRun) -> None:
        """Make a run the latest one: it has continued, or given up, after its variables."""
        self.foreign = False
        self.latest = run
        if run in self.waiting:
            del self.waiting[run]
            self._counts = {name: count - 1 for name, count in self._counts.items()}

    def writer(self, paths: Iterable[str]) -> NvccRun | None:
        """The run that wrote the first of some files that any wrote."""
        return next((self._writer[path] for path in paths if path in self._writer), None)

    def add(self, run: NvccRun, draft: Draft) -> None:
        """Add a command to a run."""
        run.drafts.append(draft)
        for path in draft.writes:
            self._writer[path] = run
        self.latest = run


class NvccReader:
    """Reads the lines of nvcc; other lines are messages."""

    def __init__(self) -> None:
        self._runs = NvccRuns()
        self._early: list[tuple[int, str, str]] = []
        self._lexicon = nvcc_commands.Lexicon()

    def read(self, number: int, line: str) -> bool:
        """Take a line if it is nvcc's."""
        if line.startswith(MARK):
            return self._marked(number, line[len(MARK) :])
        text = line.strip(" ")
        if text.startswith("# --error "):
            return self._failed(number, text)
        if text.startswith(("nvcc ", "fatal ")):
            return self._driver_message(number, text)
        return self._unmarked(number, line)

    def message(self, number: int, line: str) -> None:
        """Record a message between the commands."""
        if TEMP in line:
            self._report_lost_mark(number, line)
        match = _COMPLAINT.search(line[:_LONGEST_MESSAGE])
        if match is not None and self._runs.latest is not None:
            severity = _SEVERITY.get(match[1], match[1])
            self._runs.latest.report(number, severity, line.strip()[:_LONGEST_MESSAGE])

    def _report_lost_mark(self, number: int, line: str) -> None:
        run = self._runs.named(pid_of(line))
        program = line.partition(" ")[0].strip('"')
        if run is not None and not run.lost_mark and (is_tool(program) or is_compiler(program)):
            run.lost_mark = True
            why = "commands without the mark `#$` are skipped, from this one on: a part of the log is missing"
            run.report(number, "warning", why, here=False)

    def plans(self) -> list[Plan]:
        """One plan for each run, in the order in which they begin."""
        if self._early:
            self._report_early(self._runs.latest or self._runs.begin(self._early[0][0]))
        return [
            plan(run)
            for run in self._runs.all
            # Other programs mark lines as nvcc does.
            if run.env
            or run.diagnostics
            or run.removed
            or any(is_known(draft) or TEMP in draft.text for draft in run.drafts)
        ]

    def _marked(self, number: int, text: str) -> bool:
        first, _, rest = text.partition(" ")
        name, assigned, _ = first.partition("=")
        if assigned and (name.isidentifier() or _VARIABLE.fullmatch(name)):
            run = self._runs.variable(number, name, text[len(name) + 1 :])
            if self._early and run:
                self._report_early(run)
        elif first in _REMOVES:
            self._remove(number, rest.rstrip())
        elif text.startswith(_DEPENDENCIES):
            self._dependencies(number, text)
        elif text.startswith("resource file "):
            self._resource(number, text)
        elif first == "nvcc" and self._driver_message(number, text):
            # Some releases mark their own messages.
            pass
        elif _SETS_UP.match(text):
            self._runs.foreign = True
        elif text and not text.isspace():
            self._command(number, text.rstrip())
        else:
            return False
        return True

    def _remove(self, number: int, path: str) -> None:
        path = nvcc_commands.plain(path)
        run = self._runs.of(number, pid_of(path), [path], removes=path)
        if path:
            run.removed[path] = None

    def _dependencies(self, number: int, text: str) -> None:
        run = self._runs.latest or self._runs.begin(number)
        target = nvcc_commands.plain(text[len(_DEPENDENCIES) :].strip(" >"))
        run.depfiles.append((target, len(run.drafts)))
        where = f"to `{target}`" if target else "to its standard output"
        run.report(number, "note", f"nvcc itself writes the dependencies {where}", here=False)

    def _report_early(self, run: NvccRun) -> None:
        for number, severity, text in self._early:
            run.report(number, severity, text, here=False)
        self._early = []

    def _failed(self, number: int, line: str) -> bool:
        match = _FAILED.match(line)
        if match is None or self._runs.latest is None:
            return False
        code = int(match[1], 16)
        self._runs.latest.report(number, "error", f"the command failed with exit code {code}")
        return True

    def _driver_message(self, number: int, line: str) -> bool:
        match = _MESSAGE.fullmatch(line)
        if match is None:
            return False
        severity = _SEVERITY.get(match[1], match[1])
        text = f"nvcc: {match[2].strip()}"[:_LONGEST_MESSAGE]
        run = self._runs.named(pid_of(line))
        if run is None and match[1] == "fatal":
            # A run that gives up before its first command has only printed its variables.
            latest = self._runs.latest
            run = latest if latest in self._runs.waiting else self._runs.begin(number)
            self._runs.resume(run)
            self._report_early(run)
        # nvcc warns of its own words before it prints the first variable of a run.
        if run is None:
            self._early.append((number, severity, text))
            return True
        run.report(number, severity, text, here=False)
        if _RACE.search(text):
            why = "its threads race in a dry run: their commands are missing here"
            run.report(number, "note", why, here=False)
        return True

    def _resource(self, number: int, text: str) -> None:
        match = _RESOURCES.fullmatch(text)
        if match is not None:
            run = self._runs.of(number, pid_of(text))
            content = match[2].rstrip().removesuffix("]")
            name = normalized(nvcc_commands.plain(match[1]))
            _, run.resources[f"@{name}"] = self._lexicon.split(content)

    def _command(self, number: int, text: str) -> None:
        pid = pid_of(text)
        run = None if self._runs.waiting else self._runs.named(pid)
        likely = run or next(iter(self._runs.waiting), self._runs.latest)
        draft, raw = self._draft(number, text, likely)
        if run is None:
            run = self._runs.of(number, pid, draft.reads, draft.writes)
        self._runs.add(run, draft)
        self._check_words(run, draft, raw)

    def _draft(self, number: int, text: str, run: NvccRun | None) -> tuple[Draft, Sequence[str]]:
        """A command read by itself, and its words with their quotes on."""
        unquoted = _without_outer_quotes(nvcc_commands.without_messages(text))
        raw, plain = self._lexicon.split(unquoted)
        reads: list[str] = []
        writes: list[str] = []
        if ">" in text or "<" in text:
            plain, reads, writes = nvcc_commands.take_redirections(raw, plain)
            writes = [path for path in writes if path not in _NOWHERE]
        if run is not None and run.resources:
            resources = run.resources
            plain = [
                expanded for word in plain for expanded in resources.pop(normalized(word), (word,))
            ]
        if not plain:
            return Draft(number, text, (), ""), raw
        if run is not None:
            plain[0] = nvcc_commands.variables(plain[0], run.env)
        return nvcc_commands.draft(number, text, plain, reads, writes), raw

    def _check_words(self, run: NvccRun, draft: Draft, raw: Sequence[str]) -> None:
        if raw and not nvcc_commands.closed(raw[-1]):
            run.report(draft.line, "warning", 'a `"` is not closed: the command is cut off')
        for word in () if run.windows() else self._lexicon.expanded(raw[1:]):
            run.report(draft.line, "warning", f"the shell that nvcc calls will expand `{word}`")

    def _unmarked(self, number: int, line: str) -> bool:
        # A command that a person or make ran belongs to the plan if it goes on with what the only run of nvcc wrote.
        if len(self._runs.all) != 1 or " -o " not in line or line[:1].isspace():
            return False
        if not is_compiler(line.partition(" ")[0]):
            return False
        draft, _ = self._draft(number, line.rstrip(), None)
        run = self._runs.writer(draft.reads)
        if run is None or draft.kind != "link":
            return False
        self._runs.add(run, draft)
        run.report(number, "note", "not a command of nvcc, but it reads what this run writes")
        return True


def _without_outer_quotes(text: str) -> str:
    # On Windows nvcc quotes some lines as a whole once more, for `cmd /c`, which takes these quotes off.
    if text.startswith('""') and text.endswith('"') and text[2:3] not in ("", " "):
        return text[1:-1]
    return text
