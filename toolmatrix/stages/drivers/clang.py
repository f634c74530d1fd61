"""The dry run of clang and hipcc: `clang++ -###`, `hipcc -###`, and what `-v` prints of a real run.

hipcc calls clang, and leaves its own name only where it fails, is verbose or looks for a GPU. So a run is hipcc's if
one of its own lines is there, or an option that only hipcc adds; it is taken for hipcc's, and said to be, if HIP's
own header is included, or HIP's runtime is linked to objects of an earlier run. Everything else is clang's.

A run begins with its banner, or with a command out of nowhere. Lines of parallel runs are told apart only by the
temporary files that they read: clang's names have no process id.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from toolmatrix.stages import model
from toolmatrix.stages.drivers import base_name
from toolmatrix.stages.drivers.clang_tools import grammar_of, understand
from toolmatrix.stages.model import Diagnostic, Plan, Stage

# A word is quoted with `"`, `\` and `$` escaped, or, with -v, bare where it holds none of these and no blank
# (llvm::sys::printArg).
_WORD = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)("|\\?\Z)|([^ ]+)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

_LINE = re.compile(
    r"(?:[A-Z][\w()., +-]{0,60}? )?clang version (?P<banner>\d+(?:\.\d+)*)"
    r"|Apple LLVM version (?P<apple>\d+(?:\.\d+)*)"
    r"|Target: (?P<target>\S+)$"
    r"|Found HIP installation: .*, version (?P<hip>\d\S*)"
    r"|(?P<header>Thread model: |InstalledDir: |Build config: |Configuration file: |System configuration file"
    r"|User configuration file|Found candidate |Selected |Candidate multilib: |Found CUDA installation: "
    r"|\(in-process\)$|\(end of response file\)$)"
    r"|hipcc-cmd: (?P<command>.*)"
    r"|(?P<args>hipcc-args: )"
    r"|failed to execute:(?P<failed>.*)"
    r"|(?P<variable>(?:HIP|ROCM|HSA|DEVICE_LIB)_\w+)=(?P<value>.*)"
    r'|(?P<enumerator>File ".*rocm_agent_enumerator", line )'
    r"|(?P<response>Arguments passed via response file:$)"
    r'|(?P<listed># "[^"]*" - "[^"]*", inputs: \[|[|+ -]*\d+: (?:input|preprocessor|compiler|backend|linker), )'
)
_SEVERITY = re.compile(r"(?:^|[\s:])(?:fatal )?(error|warning|fatal)\s*:", re.IGNORECASE)
_SPEAKER = re.compile(r"[\w./\\+-]{1,200}: (?=(?:fatal )?(?:error|warning): )")
_AFTER_A_RUN = re.compile(
    r"failed with exit code|unable to execute|failed due to signal|interrupted"
)
_HIP_VERSION = re.compile(r"--hip-version=(\S+)")
_ROCM = re.compile(r"\broc-(\d[\d.]*)")
_TEMP = re.compile(r"-[0-9a-f]{6}(?:[./]|$)")
# A bundle, and the files that the driver writes by itself and puts it in, are called after the same thing.
_BUNDLE = re.compile(r"(.+?)(?:-[0-9a-f]{6})?\.(?:hipfb|fatbin)$")
_HOLDS_BUNDLE = re.compile(r"(.+?)(?:(?:-[0-9a-f]{6})?\.mcin$|\.\w+\.image\.wrapper)")

# What only hipcc passes to clang (hipcc's hipBin_amd.h).
_HIPCC_OPTIONS = frozenset(
    ("-amdgpu-early-inline-all=true", "-plugin-opt=-amdgpu-early-inline-all=true")
)
_INHERIT = {
    "link": "device-link",
    "device-link": "device-link",
    "device-compile": "device-compile",
    "assemble": "assemble",
}
_HIDDEN = (
    "clang-linker-wrapper links the device code itself: those stages are not in the log;"
    " the same command with `--dry-run` prints them once its inputs exist"
)
_LISTED = "the log lists phases or bindings, not commands: take it with `-###`"
_NO_GPU = "rocm_agent_enumerator failed, so hipcc could not tell which GPU is here"
_WRAPPER_HEADER = "__clang_hip_runtime_wrapper.h"
_RUNTIME = "-lamdhip64"


def split(text: str) -> tuple[list[str], bool]:
    """The words of a command as clang meant them, and whether the last one is whole."""
    # Nearly every command is quoted in one of two ways without an escape, and the pattern is slow.
    quotes = 0 if "\\" in text else text.count('"')
    if quotes and text[:1] == text[-1:] == '"':
        words = text[1:-1].split('" "')
        if quotes == 2 * len(words):
            return words, True
    elif quotes == 2 and text[:1] == '"':
        program, _, rest = text[1:].partition('"')
        return [program, *filter(None, rest.split(" "))], True
    words, whole = [], True
    for quoted, end, bare in _WORD.findall(text):
        words.append(bare or (_ESCAPED.sub(r"\1", quoted) if "\\" in quoted else quoted))
        whole = bool(bare) or end == '"'
    return words, whole


class _Invocation:
    def __init__(self) -> None:
        self.line = 0
        self.version = ""
        self.hip = ""
        self.named_hipcc = False
        self.looks_like_hipcc = False
        self.compiles_hip = False
        self.command = ""
        self.env: dict[str, str] = {}
        self.stages: list[Stage] = []
        self.arch_of: dict[str, str | None] = {}
        self.bundles: dict[str, str] = {}
        self.diagnostics: list[Diagnostic] = []

    def says(self, line: int, severity: str, text: str, stage: int | None = None) -> None:
        self.diagnostics.append(Diagnostic(line=line, severity=severity, text=text, stage=stage))

    def says_once(self, line: int, severity: str, text: str) -> None:
        if all(one.text != text for one in self.diagnostics):
            self.says(line, severity, text)

    def add(self, number: int, text: str, read: Stage) -> Stage:
        hidden = (self._behind(path) for path in read.inputs)
        inputs = (*read.inputs, *(path for path in hidden if path is not None))
        kind, arch = read.kind, read.arch
        archs = {self.arch_of[path] for path in inputs if path in self.arch_of}
        # What names no arch itself, as a linker may, has that of what it reads, if that is all for one.
        if arch is None and kind in _INHERIT and len(archs) == 1 and archs != {None}:
            kind, arch = _INHERIT[kind], archs.pop()
        stage = read.replace(
            id=len(self.stages), line=number, kind=kind, arch=arch, inputs=inputs, text=text
        )
        self._weigh(stage.argv)
        self.stages.append(stage)
        for path in stage.outputs:
            self.arch_of[path] = arch
            if (bundle := _BUNDLE.match(path)) is not None:
                self.bundles[bundle[1]] = path
        return stage

    def _behind(self, path: str) -> str | None:
        # The driver itself puts a bundle into some files, so that no command shows it.
        found = None if path in self.arch_of else _HOLDS_BUNDLE.match(path)
        return None if found is None else self.bundles.get(found[1])

    def note(self, stage: Stage, known: bool, whole: bool) -> None:
        program = stage.argv[0]
        for doubtful, text in (
            (not whole, "the command ends inside a quoted word: the log is cut here"),
            (not known, f"`{stage.tool}` is unknown: its files are those named in its arguments"),
            (
                base_name(program) == program,
                f"`{program}` was not found beside clang: it must be on PATH",
            ),
        ):
            if doubtful:
                self.says(stage.line, "warning", text, stage.id)
        if stage.kind == "linker-wrapper":
            self.says(stage.line, "note", _HIDDEN, stage.id)

    def _weigh(self, words: tuple[str, ...]) -> None:
        self.compiles_hip |= "hip" in words
        if not _HIPCC_OPTIONS.isdisjoint(words):
            self.named_hipcc = True
        elif _WRAPPER_HEADER in words or (_RUNTIME in words and not self.compiles_hip):
            self.looks_like_hipcc = True

    def plan(self) -> Plan:
        if self.looks_like_hipcc and not self.named_hipcc:
            self.says(
                0,
                "note",
                "treated as a run of hipcc, because HIP's own headers or runtime are used;"
                " `clang -x hip` prints the same",
            )
        stages = tuple(self.stages)
        return Plan(
            tool="hipcc" if self.named_hipcc or self.looks_like_hipcc else "clang",
            version=self.version,
            line=self.line,
            env=self.env,
            stages=stages,
            edges=model.stage_edges(stages),
            diagnostics=tuple(self.diagnostics),
            hip=self.hip,
        )


class ClangReader:
    """Reads the lines of `clang -###`, `hipcc -###` and their `-v`."""

    def __init__(self) -> None:
        self.found: list[_Invocation] = []
        # What was said before the banner of the invocation that it belongs to.
        self.next = _Invocation()
        self.writers: dict[str, _Invocation] = {}
        self.response: list[str] | None = None

    def read(self, number: int, line: str) -> bool:
        """Take a line if it is clang's or hipcc's."""
        text = line.strip()
        if self.response is not None:
            if text[:1] == '"':
                self.response.append(text)
                return True
            self._expand()
        if text[:1] == '"':
            return self._command(number, line, text)
        found = _LINE.match(text)
        if found is None or found.lastgroup is None:
            return False
        return _HANDLERS[found.lastgroup](self, number, found)

    def message(self, number: int, line: str) -> None:
        """Hear what a compiler or linker said between the commands."""
        found = _SEVERITY.search(line) if ":" in line else None
        if found is None:
            return
        invocation = self.found[-1] if self.found else self.next
        # hipcc names its command, and clang rejects its own words, before the banner.
        if self.next.command or (_rejects(line) and invocation.stages):
            invocation = self.next
        severity = "warning" if found[1].lower() == "warning" else "error"
        invocation.says(number, severity, line.strip())

    def plans(self) -> list[Plan]:
        """One plan for each invocation."""
        if self.response is not None:
            self._expand()
        if self.next.command:
            self._open(self.next.line)
        elif self.found:
            self.found[-1].diagnostics += self.next.diagnostics
        # `--version` prints a banner too.
        told = [one for one in self.found if one.stages or one.diagnostics or one.command]
        return [invocation.plan() for invocation in told or self.found]

    def _open(self, number: int) -> None:
        self.next.line = self.next.line or number
        self.found.append(self.next)
        self.next = _Invocation()

    def _command(self, number: int, line: str, text: str) -> bool:
        words, whole = split(text)
        open_here = self.found or self.next.version
        grammar = grammar_of(words)
        if len(words) == 1 or (grammar is None and not (open_here and line[:2] == ' "')):
            return False
        if self.next.version or not self.found:
            self._open(number)
        read = understand(words, grammar, self.writers)
        invocation = self._whose(read.inputs)
        stage = invocation.add(number, text, read)
        invocation.note(stage, grammar is not None, whole)
        self.writers |= dict.fromkeys(stage.outputs, invocation)
        return True

    def _whose(self, inputs: tuple[str, ...]) -> _Invocation:
        # Logs of parallel builds interleave, and a temporary file is read by the run alone that wrote it.
        if len(self.found) > 1:
            for path in inputs:
                if path in self.writers and _TEMP.search(path):
                    return self.writers[path]
        return self.found[-1]

    def _expand(self) -> None:
        last = self.found[-1]
        stage = last.stages.pop()
        given = " ".join(self.response or ())
        words = [word for word in stage.argv if word[:1] != "@"] + split(given)[0]
        read = understand(words, grammar_of(words), self.writers)
        outputs = last.add(stage.line, stage.text, read).outputs
        self.writers |= dict.fromkeys(outputs, last)
        self.response = None

    def _banner(self, number: int, found: re.Match[str]) -> bool:
        self.next.line = self.next.line or number
        self.next.version = found[found.lastgroup or 0]
        rocm = _ROCM.search(found.string)
        if rocm is not None:
            self.next.hip = rocm[1].rstrip(".")
        return True

    def _target(self, number: int, _found: re.Match[str]) -> bool:
        if self.next.version:
            self._open(number)
        return bool(self.found)

    def _hip(self, _number: int, found: re.Match[str]) -> bool:
        if self.found:
            self.found[-1].hip = found["hip"]
        return True

    def _header(self, _number: int, _found: re.Match[str]) -> bool:
        return bool(self.found or self.next.version)

    def _hipcc_command(self, number: int, found: re.Match[str]) -> bool:
        # Where hipcc calls nvcc, what follows is nvcc's.
        if "nvcc" in base_name(found["command"].split(" ", 1)[0]):
            self.next = _Invocation()
            return True
        # hipcc prints its command before clang's banner (as a script) or when all is done (as a program).
        late = self.found and not self.found[-1].command and not self.next.line
        invocation = self.found[-1] if late else self.next
        invocation.line = invocation.line or number
        invocation.command = found["command"]
        invocation.named_hipcc = True
        version = _HIP_VERSION.search(found["command"])
        if version is not None:
            invocation.hip = version[1]
        return True

    def _hipcc_arguments(self, number: int, _found: re.Match[str]) -> bool:
        self.next.line = self.next.line or number
        self.next.named_hipcc = True
        return True

    def _failed(self, number: int, found: re.Match[str]) -> bool:
        if self.found:
            self.found[-1].named_hipcc = True
            self.found[-1].says(number, "error", found.string)
        return bool(self.found)

    def _variable(self, number: int, found: re.Match[str]) -> bool:
        # A shell or make may show `HIP_PLATFORM=amd hipcc ...`; hipcc's own list begins with HIP_PATH.
        if found["variable"] != "HIP_PATH" and not self.next.env:
            return False
        self.next.line = self.next.line or number
        self.next.env[found["variable"]] = found["value"]
        return True

    def _enumerator(self, number: int, found: re.Match[str]) -> bool:
        self.next.says_once(number, "warning", _NO_GPU)
        return self._hipcc_arguments(number, found)

    def _response(self, _number: int, _found: re.Match[str]) -> bool:
        # The command itself, which was too long for the system, comes before the words of its file.
        if self.found and self.found[-1].stages:
            self.response = []
        return bool(self.found)

    def _listed(self, number: int, _found: re.Match[str]) -> bool:
        if self.next.version or not self.found:
            self._open(number)
        self.found[-1].says_once(number, "note", _LISTED)
        return True


def _rejects(line: str) -> bool:
    # A driver also speaks of what it ran, when that has failed.
    speaker = _SPEAKER.match(line.strip())
    if speaker is None or _AFTER_A_RUN.search(line):
        return False
    return "clang" in speaker[0] or "hipcc" in speaker[0]


_HANDLERS: dict[str, Callable[[ClangReader, int, re.Match[str]], bool]] = {
    "banner": ClangReader._banner,
    "apple": ClangReader._banner,
    "target": ClangReader._target,
    "hip": ClangReader._hip,
    "header": ClangReader._header,
    "command": ClangReader._hipcc_command,
    "args": ClangReader._hipcc_arguments,
    "failed": ClangReader._failed,
    "value": ClangReader._variable,
    "enumerator": ClangReader._enumerator,
    "response": ClangReader._response,
    "listed": ClangReader._listed,
}
