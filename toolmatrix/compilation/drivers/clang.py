"""The dry run of clang and hipcc: `clang++ -###`, `hipcc -###`, and what `-v` prints of a real run.

hipcc calls clang, and prints its own name only if it fails, is verbose or looks for a GPU. So a run is hipcc's if it
has one of these lines, or an option that only hipcc adds; it is treated as hipcc's, with a note, if HIP's own header is
included, or HIP's runtime is linked to objects of an earlier run. Everything else is clang's.

A run begins with its banner, or with a command without one. Lines of parallel runs are distinguished only by the
temporary files that they read: clang's names have no process id.

Each program that clang calls is described by a `Grammar`; its options are data. Options are
looked up without their dashes, because the tools of LLVM take one or two; `-o file` and `-o=file` are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from toolmatrix.compilation import model
from toolmatrix.compilation.drivers import base_name, roles_of
from toolmatrix.compilation.model import Diagnostic, Plan, Stage
from toolmatrix.value import Value


class Grammar(Value):
    """How a program's words are read.

    `options` gives the role of the word after an option, or behind its `=`; `flags` the kind of stage that a word
    makes of it; `rest` the roles of the words that are no options, the last for all that follow; `values` the role of
    what stands behind the `=` of any other option.
    """

    kind: str
    options: Mapping[str, str]
    flags: Mapping[str, str] = {}
    rest: tuple[str, ...] = ("read",)
    values: str = "skip"
    # The options and flags with one dash and with two, as they are printed: looking words up as they stand is faster.
    words: frozenset[str] = frozenset()


_MODES = {"E": "preprocess", "Eonly": "preprocess", "M": "preprocess", "MM": "preprocess"}

_CC1 = Grammar(
    kind="compile",
    options=roles_of(
        triple="triple",
        cpu="target-cpu",
        features="target-feature",
        language="x",
        read="fcuda-include-gpubinary fembed-offload-object include-pch fopenmp-host-ir-file-path fthinlto-index"
        " fprofile-instrument-use-path fprofile-sample-use",
        write="o dependency-file split-dwarf-output serialize-diagnostic-file opt-record-file",
    ),
    flags=_MODES,
    rest=("skip",),
)
_CC1AS = Grammar(
    kind="assemble",
    options=roles_of(
        triple="triple",
        cpu="target-cpu",
        features="target-feature",
        write="o split-dwarf-output",
        skip="main-file-name filetype I mllvm mrelocation-model resource-dir dwarf-debug-producer dwarf-debug-flags"
        " fdebug-compilation-dir target-abi output-asm-variant defsym x",
    ),
)
_DRIVER = Grammar(
    kind="link",
    options=roles_of(
        triple="target",
        cpu="mcpu march offload-arch",
        language="x",
        read="T include-pch",
        write="o MF",
        skip="D U I L l include isystem idirafter iquote Xlinker Xclang Xassembler mllvm MT MQ framework arch"
        " resource-dir",
    ),
    flags=_MODES | {"c": "compile", "S": "compile", "fsyntax-only": "compile"},
)
_LINK = Grammar(
    kind="link",
    options=roles_of(
        again="plugin-opt",
        cpu="mcpu",
        features="mattr",
        read="T script version-script dynamic-list just-symbols",
        write="o output out Map map out-implib implib dependency-file",
        skip="flavor m L l rpath rpath-link z dynamic-linker soname h plugin e entry u y Y F f A mllvm arch"
        " syslibroot lto_library framework sysroot defsym G exclude-libs",
    ),
)
_BUNDLER = Grammar(
    kind="bundle",
    options=roles_of(
        targets="targets", read="input", reads="inputs", write="output", writes="outputs"
    ),
    flags={"unbundle": "unbundle"},
)
_PACKAGER = Grammar(kind="package", options=roles_of(write="o", image="image"))
_LLVM = Grammar(
    kind="assemble",
    options=roles_of(
        triple="triple mtriple",
        cpu="mcpu march",
        features="mattr",
        write="o",
        skip="filetype mllvm I",
    ),
)
_NVIDIA = Grammar(
    kind="ptxas",
    options=roles_of(
        cpu="gpu-name arch",
        write="o output-file create embedded-fatbin",
        image="image image3",
        skip="maxrregcount opt-level machine L l library-path library cicc-cmdline ident id-suffix",
    ),
)

_OTHER = Grammar(
    kind="other",
    options=roles_of(write="o output out output-file"),
    rest=("named",),
    values="named",
)
_UNKNOWN = "?"

_GRAMMARS: Mapping[str, Grammar] = {
    name: grammar.replace(
        words=frozenset(
            dashes + key for key in (*grammar.options, *grammar.flags) for dashes in ("-", "--")
        )
    )
    for names, grammar in (
        ("-cc1", _CC1),
        ("-cc1as", _CC1AS),
        ("clang clang++ clang-cl clang-cpp amdclang amdclang++ gcc g++ cc c++", _DRIVER),
        ("ld ld.lld ld.gold ld.bfd ld64.lld lld-link link gold lld mold collect2", _LINK),
        ("clang-linker-wrapper", _LINK.replace(kind="linker-wrapper")),
        ("clang-offload-bundler", _BUNDLER),
        ("clang-offload-packager llvm-offload-binary", _PACKAGER),
        ("ptxas", _NVIDIA),
        ("nvlink clang-nvlink-wrapper", _NVIDIA.replace(kind="nvlink")),
        ("fatbinary", _NVIDIA.replace(kind="fatbinary", rest=("skip",))),
        ("llvm-mc as", _LLVM),
        ("opt llc llvm-spirv", _LLVM.replace(kind="device-compile")),
        ("llvm-link spirv-link", _LLVM.replace(kind="device-link")),
        ("ar llvm-ar", Grammar(kind="link", options={}, rest=("skip", "write", "read"))),
        (_UNKNOWN, _OTHER),
    )
    for name in names.split()
}
_FOR_DEVICE = {"compile": "device-compile", "link": "device-link"}
_FOR_HOST = {"compile": "host-compile"}
_DEVICE = re.compile(r"amdgcn|nvptx|spirv|r600|gfx\d|sm_\d")
_ARCH_OF_TRIPLE = {"spirv64-amd-amdhsa": "amdgcnspirv"}
# The features that are part of a target id (LLVM, AMDGPUUsage, "Target ID"); others only tune the code.
_TARGET_ID = ("sramecc", "xnack")

_WINDOWS = re.compile(r"\.exe\Z", re.IGNORECASE)
_VERSION = re.compile(r"-\d[\d.]*$")
_CROSS = re.compile(r"(?:\w+-){2,3}(ld|ar|as|gcc|g\+\+)$")
_FIELDS = re.compile(r",(?=[\w-]+=)")
_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,11}\Z")
_LIBRARY = re.compile(r".*\.(?:o|obj|a|so[.\d]*|lib|dylib|tbd)$")
_SYSTEM = re.compile(
    r"(?:/usr(?:/local)?)?/lib\w*/|/opt/rocm|.*/lib/(?:clang|gcc)/"
    r"|(?:.*/)?(?:\w{0,3}crt[12in]|crt(?:begin|end|fastmath)\w*)\.o$|[^/]+\.lib$"
)
_NO_FILE = frozenset(("-", "/dev/null", "NUL", ""))


def grammar_of(words: Sequence[str]) -> Grammar | None:
    """How to read a command line of at least one word; None for a program that is not known."""
    if len(words) > 1 and words[1] in ("-cc1", "-cc1as"):
        return _GRAMMARS[words[1]]
    name = base_name(words[0])
    if name not in _GRAMMARS:
        name = _CROSS.sub(r"\1", _VERSION.sub("", _WINDOWS.sub("", name)))
    return _GRAMMARS.get(name)


def understand(
    words: Sequence[str], grammar: Grammar | None, written: Container[str] = ()
) -> Stage:
    """A stage of a command line of at least one word; `written` are the files that earlier ones wrote.

    Its id, line and text are set by the caller.
    """
    kind, roles = _scan(words, grammar or _GRAMMARS[_UNKNOWN])
    triple = "".join(roles.get("triple", [])[-1:])
    arch = _arch(triple, roles)
    device = _DEVICE.match(triple or arch or "") is not None
    if kind in ("compile", "link") and roles.get("language", [""])[-1].startswith("assembler"):
        kind = "assemble"
    reads = roles.get("read", []) + [
        word for word in roles.get("named", ()) if word in written or _SUFFIX.search(word)
    ]
    return Stage(
        id=0,
        line=0,
        kind=(_FOR_DEVICE if device else _FOR_HOST).get(kind, kind),
        tool=base_name(words[0]),
        arch=arch if device else None,
        inputs=_unique(path for path in reads if path in written or not _is_system(path)),
        outputs=_unique(roles.get("write", [])),
        argv=tuple(words),
        text="",
    )


def _scan(words: Sequence[str], grammar: Grammar) -> tuple[str, dict[str, list[str]]]:
    kind, options = grammar.kind, grammar.options
    roles: dict[str, list[str]] = {}
    rest = list(grammar.rest)
    end = 1
    for at in _relevant_positions(words, grammar):
        if at < end:
            continue
        word = words[at]
        key = word.lstrip("-")
        end = at + 1
        if word[:1] == "@":
            _take(roles, "read", word[1:], options)
        elif word == key:
            _take(roles, rest.pop(0) if len(rest) > 1 else rest[0], word, options)
        elif key in options:
            end = at + 2
            for value in words[at + 1 : end]:
                _take(roles, options[key], value, options)
            # clang prints a source right behind its language.
            if options[key] == "language" and words[end : end + 1] and words[end][:1] != "-":
                _take(roles, "read", words[end], options)
                end += 1
        elif key in grammar.flags:
            kind = grammar.flags[key]
        else:
            # Windows joins an option and its value by `:`.
            mark = ":" if ":" in key.partition("=")[0] else "="
            key, _, value = key.partition(mark)
            _take(roles, options.get(key, grammar.values), value, options)
    return kind, roles


def _relevant_positions(words: Sequence[str], grammar: Grammar) -> list[int]:
    # A command line has a hundred words, and nine in ten are irrelevant.
    known = grammar.words
    if grammar.rest == ("skip",):
        return [
            at
            for at, word in enumerate(words)
            if word in known or ("=" in word and word.partition("=")[0] in known)
        ]
    return list(range(1, len(words)))


def _take(roles: dict[str, list[str]], role: str, word: str, options: Mapping[str, str]) -> None:
    if role == "again":
        key, _, value = word.lstrip("-").partition("=")
        _take(roles, options.get(key, "skip"), value, {})
    elif role in ("reads", "writes"):
        roles.setdefault(role[:-1], []).extend(word.split(","))
    elif role == "image":
        fields = dict(field.partition("=")[::2] for field in _FIELDS.split(word))
        roles.setdefault("read", []).append(fields.get("file", ""))
    elif role != "skip":
        roles.setdefault(role, []).append(word)


def _arch(triple: str, roles: Mapping[str, list[str]]) -> str | None:
    """The arch that code is made for, with the features of its target id; None where the words name none."""
    targets = [target for word in roles.get("targets", ()) for target in word.split(",")]
    if targets:
        name = targets[0].partition("-amdhsa-")[2].lstrip("-").removeprefix("unknown-")
        return name or None if len(targets) == 1 else None
    if not roles.get("cpu"):
        return _ARCH_OF_TRIPLE.get(triple)
    signs = {
        feature[1:]: feature[0]
        for word in roles.get("features", ())
        for feature in word.split(",")
        if feature[:1] in ("+", "-")
    }
    on = [f"{name}{signs[name]}" for name in _TARGET_ID if name in signs]
    return ":".join([roles["cpu"][-1], *on])


def _is_system(path: str) -> bool:
    if not _LIBRARY.match(path):
        return False
    from posixpath import normpath

    plain = path.replace("\\", "/")
    # clang prints /usr/bin/../lib/gcc.
    return _SYSTEM.match(normpath(plain) if ".." in plain else plain) is not None


def _unique(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in paths if path not in _NO_FILE))


# A word is quoted with `"`, `\` and `$` escaped, or, with -v, bare where it holds none of these and no blank
# (llvm::sys::printArg).
_WORD = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)("|\\?\Z)|([^ ]+)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

# The last group of a line is the name of its handler.
_LINE = re.compile(
    r"(?:(?:[A-Z][\w()., +-]{0,60}? )?clang|Apple LLVM) version (?P<banner>\d+(?:\.\d+)*)"
    r"|Target: (?P<target>\S+)$"
    r"|Found HIP installation: .*, version (?P<hip>\d\S*)"
    r"|(?P<header>Thread model: |InstalledDir: |Build config: |Configuration file: |System configuration file"
    r"|User configuration file|Found candidate |Selected |Candidate multilib: |Found CUDA installation: "
    r"|\(in-process\)$|\(end of response file\)$)"
    r"|hipcc-cmd: (?P<hipcc_command>.*)"
    r"|(?P<hipcc_arguments>hipcc-args: )"
    r"|failed to execute:(?P<failed>.*)"
    r"|(?P<name>(?:HIP|ROCM|HSA|DEVICE_LIB)_\w+)=(?P<variable>.*)"
    r'|(?P<enumerator>File ".*rocm_agent_enumerator", line )'
    r"|(?P<response>Arguments passed via response file:$)"
    r'|(?P<phases># "[^"]*" - "[^"]*", inputs: \[|[|+ -]*\d+: (?:input|preprocessor|compiler|backend|linker), )'
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
_PHASES_ONLY = "the log lists phases or bindings, not commands: take it with `-###`"
_NO_GPU = "rocm_agent_enumerator failed, so hipcc could not detect the GPU"
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

    def report(self, line: int, severity: str, text: str, stage: int | None = None) -> None:
        self.diagnostics.append(Diagnostic(line=line, severity=severity, text=text, stage=stage))

    def report_once(self, line: int, severity: str, text: str) -> None:
        if all(diagnostic.text != text for diagnostic in self.diagnostics):
            self.report(line, severity, text)

    def add(self, number: int, text: str, read: Stage) -> Stage:
        hidden = (self._hidden_bundle(path) for path in read.inputs)
        inputs = (*read.inputs, *(path for path in hidden if path is not None))
        kind, arch = read.kind, read.arch
        archs = {self.arch_of[path] for path in inputs if path in self.arch_of}
        # A stage that names no arch, as a linker may, has that of its inputs, if they share one.
        if arch is None and kind in _INHERIT and len(archs) == 1 and archs != {None}:
            kind, arch = _INHERIT[kind], archs.pop()
        stage = read.replace(
            id=len(self.stages), line=number, kind=kind, arch=arch, inputs=inputs, text=text
        )
        self._detect_hipcc(stage.argv)
        self.stages.append(stage)
        for path in stage.outputs:
            self.arch_of[path] = arch
            if (bundle := _BUNDLE.match(path)) is not None:
                self.bundles[bundle[1]] = path
        return stage

    def _hidden_bundle(self, path: str) -> str | None:
        # The driver itself embeds a bundle in some files, which no command shows.
        match = None if path in self.arch_of else _HOLDS_BUNDLE.match(path)
        return None if match is None else self.bundles.get(match[1])

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
                self.report(stage.line, "warning", text, stage.id)
        if stage.kind == "linker-wrapper":
            self.report(stage.line, "note", _HIDDEN, stage.id)

    def _detect_hipcc(self, words: tuple[str, ...]) -> None:
        self.compiles_hip |= "hip" in words
        if not _HIPCC_OPTIONS.isdisjoint(words):
            self.named_hipcc = True
        elif _WRAPPER_HEADER in words or (_RUNTIME in words and not self.compiles_hip):
            self.looks_like_hipcc = True

    def plan(self) -> Plan:
        if self.looks_like_hipcc and not self.named_hipcc:
            self.report(
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
        self.invocations: list[_Invocation] = []
        # The invocation to come: its messages precede its banner.
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
        match = _LINE.match(text)
        if match is None or match.lastgroup is None:
            return False
        handler: Callable[[int, re.Match[str]], bool] = getattr(self, f"_{match.lastgroup}")
        return handler(number, match)

    def message(self, number: int, line: str) -> None:
        """Record a message of a compiler or linker between the commands."""
        match = _SEVERITY.search(line) if ":" in line else None
        if match is None:
            return
        invocation = self.invocations[-1] if self.invocations else self.next
        # hipcc names its command, and clang rejects its own words, before the banner.
        if self.next.command or (_rejects(line) and invocation.stages):
            invocation = self.next
        severity = "warning" if match[1].lower() == "warning" else "error"
        invocation.report(number, severity, line.strip())

    def plans(self) -> list[Plan]:
        """One plan for each invocation."""
        if self.response is not None:
            self._expand()
        if self.next.command:
            self._open(self.next.line)
        elif self.invocations:
            self.invocations[-1].diagnostics += self.next.diagnostics
        # `--version` prints a banner too.
        meaningful = [
            invocation
            for invocation in self.invocations
            if invocation.stages or invocation.diagnostics or invocation.command
        ]
        return [invocation.plan() for invocation in meaningful or self.invocations]

    def _open(self, number: int) -> None:
        self.next.line = self.next.line or number
        self.invocations.append(self.next)
        self.next = _Invocation()

    def _command(self, number: int, line: str, text: str) -> bool:
        words, whole = split(text)
        open_here = self.invocations or self.next.version
        grammar = grammar_of(words)
        if len(words) == 1 or (grammar is None and not (open_here and line[:2] == ' "')):
            return False
        if self.next.version or not self.invocations:
            self._open(number)
        read = understand(words, grammar, self.writers)
        invocation = self._invocation_reading(read.inputs)
        stage = invocation.add(number, text, read)
        invocation.note(stage, grammar is not None, whole)
        self.writers |= dict.fromkeys(stage.outputs, invocation)
        return True

    def _invocation_reading(self, inputs: tuple[str, ...]) -> _Invocation:
        # Logs of parallel builds interleave, and a temporary file is read by the run alone that wrote it.
        if len(self.invocations) > 1:
            for path in inputs:
                if path in self.writers and _TEMP.search(path):
                    return self.writers[path]
        return self.invocations[-1]

    def _expand(self) -> None:
        last = self.invocations[-1]
        stage = last.stages.pop()
        response = " ".join(self.response or ())
        words = [word for word in stage.argv if word[:1] != "@"] + split(response)[0]
        read = understand(words, grammar_of(words), self.writers)
        outputs = last.add(stage.line, stage.text, read).outputs
        self.writers |= dict.fromkeys(outputs, last)
        self.response = None

    def _banner(self, number: int, match: re.Match[str]) -> bool:
        self.next.line = self.next.line or number
        self.next.version = match["banner"]
        rocm = _ROCM.search(match.string)
        if rocm is not None:
            self.next.hip = rocm[1].rstrip(".")
        return True

    def _target(self, number: int, _match: re.Match[str]) -> bool:
        if self.next.version:
            self._open(number)
        return bool(self.invocations)

    def _hip(self, _number: int, match: re.Match[str]) -> bool:
        if self.invocations:
            self.invocations[-1].hip = match["hip"]
        return True

    def _header(self, _number: int, _match: re.Match[str]) -> bool:
        return bool(self.invocations or self.next.version)

    def _hipcc_command(self, number: int, match: re.Match[str]) -> bool:
        # Where hipcc calls nvcc, what follows is nvcc's.
        if "nvcc" in base_name(match["hipcc_command"].split(" ", 1)[0]):
            self.next = _Invocation()
            return True
        # hipcc prints its command before clang's banner (as a script) or when all is done (as a program).
        late = self.invocations and not self.invocations[-1].command and not self.next.line
        invocation = self.invocations[-1] if late else self.next
        invocation.line = invocation.line or number
        invocation.command = match["hipcc_command"]
        invocation.named_hipcc = True
        version = _HIP_VERSION.search(match["hipcc_command"])
        if version is not None:
            invocation.hip = version[1]
        return True

    def _hipcc_arguments(self, number: int, _match: re.Match[str]) -> bool:
        self.next.line = self.next.line or number
        self.next.named_hipcc = True
        return True

    def _failed(self, number: int, match: re.Match[str]) -> bool:
        if self.invocations:
            self.invocations[-1].named_hipcc = True
            self.invocations[-1].report(number, "error", match.string)
        return bool(self.invocations)

    def _variable(self, number: int, match: re.Match[str]) -> bool:
        # A shell or make may show `HIP_PLATFORM=amd hipcc ...`; hipcc's own list begins with HIP_PATH.
        if match["name"] != "HIP_PATH" and not self.next.env:
            return False
        self.next.line = self.next.line or number
        self.next.env[match["name"]] = match["variable"]
        return True

    def _enumerator(self, number: int, match: re.Match[str]) -> bool:
        self.next.report_once(number, "warning", _NO_GPU)
        return self._hipcc_arguments(number, match)

    def _response(self, _number: int, _match: re.Match[str]) -> bool:
        # The command itself, which was too long for the system, comes before the words of its file.
        if self.invocations and self.invocations[-1].stages:
            self.response = []
        return bool(self.invocations)

    def _phases(self, number: int, _match: re.Match[str]) -> bool:
        if self.next.version or not self.invocations:
            self._open(number)
        self.invocations[-1].report_once(number, "note", _PHASES_ONLY)
        return True


def _rejects(line: str) -> bool:
    # A driver also reports programs that failed.
    speaker = _SPEAKER.match(line.strip())
    if speaker is None or _AFTER_A_RUN.search(line):
        return False
    return "clang" in speaker[0] or "hipcc" in speaker[0]
