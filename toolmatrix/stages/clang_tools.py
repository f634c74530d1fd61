"""The programs that clang calls: what each does, for which arch, and which files its words name.

A program is described by a `_Grammar`; what the words of its options mean is data. Options are looked up without
their dashes, because the tools of LLVM take one or two; `-o file` and `-o=file` are the same.
"""

from __future__ import annotations

import re

from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence


class Command(Value):
    """What one command line does, in the words of `Stage`; `known` tells whether its program is."""

    kind: str
    tool: str
    arch: str | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    known: bool = True


class _Grammar(Value):
    """How a program's words are read.

    `options` gives the role of the word after an option, or behind its `=`; `flags` the kind of stage that a word
    makes of it; `rest` the roles of the words that are no options, the last for all that follow.
    """

    kind: str
    options: Mapping[str, str]
    flags: Mapping[str, str] = {}
    rest: tuple[str, ...] = ("read",)
    join: str = "="


def _roles(**roles: str) -> dict[str, str]:
    """A table from option to role out of one from role to options."""
    return {option: role for role, options in roles.items() for option in options.split()}


_MODES = {"E": "preprocess", "Eonly": "preprocess", "M": "preprocess", "MM": "preprocess"}

_CC1 = _Grammar(
    kind="compile",
    options=_roles(
        triple="triple",
        cpu="target-cpu",
        features="target-feature",
        language="x",
        read="fcuda-include-gpubinary fembed-offload-object include-pch fopenmp-host-ir-file-path fthinlto-index"
        " fprofile-instrument-use-path fprofile-sample-use",
        write="o dependency-file split-dwarf-output serialize-diagnostic-file opt-record-file",
        skip="D U I include mllvm main-file-name mlink-builtin-bitcode mlink-bitcode-file aux-triple dumpdir",
    ),
    flags=_MODES,
    rest=("skip",),
)
_CC1AS = _Grammar(
    kind="assemble",
    options=_roles(
        triple="triple",
        cpu="target-cpu",
        features="target-feature",
        write="o split-dwarf-output",
        skip="main-file-name filetype I mllvm mrelocation-model resource-dir dwarf-debug-producer dwarf-debug-flags"
        " fdebug-compilation-dir target-abi output-asm-variant defsym x",
    ),
)
_DRIVER = _Grammar(
    kind="link",
    options=_roles(
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
_LINK = _Grammar(
    kind="link",
    options=_roles(
        again="plugin-opt",
        cpu="mcpu",
        features="mattr",
        read="T script version-script dynamic-list just-symbols",
        write="o output out Map map out-implib implib dependency-file",
        skip="flavor m L l rpath rpath-link z dynamic-linker soname h plugin e entry u y Y F f A mllvm arch"
        " syslibroot lto_library framework sysroot defsym G exclude-libs",
    ),
)
_BUNDLER = _Grammar(
    kind="bundle",
    options=_roles(
        targets="targets", read="input", reads="inputs", write="output", writes="outputs"
    ),
    flags={"unbundle": "unbundle"},
)
_PACKAGER = _Grammar(kind="package", options=_roles(write="o", image="image"))
_LLVM = _Grammar(
    kind="assemble",
    options=_roles(
        triple="triple mtriple",
        cpu="mcpu march",
        features="mattr",
        write="o",
        skip="filetype mllvm I",
    ),
)
_NVIDIA = _Grammar(
    kind="ptxas",
    options=_roles(
        cpu="gpu-name arch",
        write="o output-file create embedded-fatbin",
        image="image image3",
        skip="maxrregcount opt-level machine L l library-path library cicc-cmdline ident id-suffix",
    ),
)

_GRAMMARS: Mapping[str, _Grammar] = {
    name: grammar
    for names, grammar in (
        ("-cc1", _CC1),
        ("-cc1as", _CC1AS),
        ("clang clang++ clang-cl clang-cpp amdclang amdclang++ gcc g++ cc c++", _DRIVER),
        ("ld ld.lld ld.gold ld.bfd ld64.lld gold lld mold collect2", _LINK),
        ("lld-link link", _LINK.replace(join=":")),
        ("clang-linker-wrapper", _LINK.replace(kind="linker-wrapper")),
        ("clang-offload-bundler", _BUNDLER),
        ("clang-offload-packager llvm-offload-binary", _PACKAGER),
        ("ptxas", _NVIDIA),
        ("nvlink clang-nvlink-wrapper", _NVIDIA.replace(kind="nvlink")),
        ("fatbinary", _NVIDIA.replace(kind="fatbinary", rest=("skip",))),
        ("llvm-mc as", _LLVM),
        ("opt llc llvm-spirv", _LLVM.replace(kind="device-compile")),
        ("llvm-link spirv-link", _LLVM.replace(kind="device-link")),
        ("ar llvm-ar", _Grammar(kind="link", options={}, rest=("skip", "write", "read"))),
    )
    for name in names.split()
}
_UNKNOWN = _Grammar(kind="other", options=_roles(write="o output out output-file"), rest=("named",))

_FOR_DEVICE = {"compile": "device-compile", "link": "device-link"}
_FOR_HOST = {"compile": "host-compile"}
_DEVICE = re.compile(r"amdgcn|nvptx|spirv|r600|gfx\d|sm_\d")
_ARCH_OF_TRIPLE = {"spirv64-amd-amdhsa": "amdgcnspirv"}
# The features that are part of a target id (LLVM, AMDGPUUsage, "Target ID"); others only tune the code.
_TARGET_ID = ("sramecc", "xnack")

_TOOL = re.compile(r"[^/\\]*$")
_VERSION = re.compile(r"-\d[\d.]*$")
_CROSS = re.compile(r"(?:\w+-){2,3}(ld|ar|as|gcc|g\+\+)$")
_FIELDS = re.compile(r",(?=[\w-]+=)")
_FILE = re.compile(r"[^=]*[/\\][^=]*|[^=]*\.[A-Za-z]\w*")
_LIBRARY = re.compile(r".*\.(?:o|obj|a|so[.\d]*|lib|dylib|tbd)$")
_SYSTEM = re.compile(
    r"(?:/usr(?:/local)?)?/lib\w*/|/opt/rocm|.*/lib/(?:clang|gcc)/"
    r"|(?:.*/)?(?:\w?crt[1in]|crt(?:begin|end|fastmath)\w*)\.o$"
)
_NO_FILE = frozenset(("-", "/dev/null", "NUL", ""))


def tool_of(program: str) -> str:
    """The base name of a program, without Windows' `.exe`."""
    found = _TOOL.search(program)
    name = found.group() if found else program
    return name[:-4] if name[-4:].lower() == ".exe" else name


def _grammar(tool: str, words: Sequence[str]) -> _Grammar | None:
    """How to read a command line; None for a program that is not known."""
    if len(words) > 1 and words[1] in ("-cc1", "-cc1as"):
        return _GRAMMARS[words[1]]
    return _GRAMMARS.get(_CROSS.sub(r"\1", _VERSION.sub("", tool)))


def is_known(words: Sequence[str]) -> bool:
    """Whether a command line runs a program that clang is known to call."""
    return bool(words) and _grammar(tool_of(words[0]), words) is not None


def understand(words: Sequence[str], written: Container[str] = ()) -> Command:
    """What a command line does; `written` are the files that earlier ones wrote, at least one word is given."""
    tool = tool_of(words[0])
    grammar = _grammar(tool, words)
    kind, roles = _scan(words, grammar or _UNKNOWN)
    triple = "".join(roles.get("triple", [])[-1:])
    arch = _arch(triple, roles)
    device = _DEVICE.match(triple or arch or "") is not None
    if kind in ("compile", "link") and roles.get("language", [""])[-1].startswith("assembler"):
        kind = "assemble"
    reads = roles.get("read", []) + [
        word for word in roles.get("named", ()) if _FILE.fullmatch(word)
    ]
    return Command(
        kind=(_FOR_DEVICE if device else _FOR_HOST).get(kind, kind),
        tool=tool,
        arch=arch if device else None,
        inputs=_unique(path for path in reads if path in written or not _is_system(path)),
        outputs=_unique(roles.get("write", [])),
        known=grammar is not None,
    )


def _scan(words: Sequence[str], grammar: _Grammar) -> tuple[str, dict[str, list[str]]]:
    """The kind of a command line and the words of each role, in order."""
    kind, options, flags = grammar.kind, grammar.options, grammar.flags
    roles: dict[str, list[str]] = {}
    rest = list(grammar.rest)
    role: str | None = None
    for word in words[1:]:
        dashed = word[:1] == "-"
        if role is not None and not (role == "source" and dashed):
            role = _take(roles, role, word, options)
            continue
        role = None
        if not dashed:
            if word[:1] == "@":
                _take(roles, "read", word[1:], options)
            else:
                _take(roles, rest.pop(0) if len(rest) > 1 else rest[0], word, options)
            continue
        key = word.lstrip("-")
        role = options.get(key)
        if role is not None:
            continue
        if key in flags:
            kind = flags[key]
        elif grammar.join in key:
            key, _, value = key.partition(grammar.join)
            _take(roles, options.get(key, "skip"), value, options)
    return kind, roles


def _take(
    roles: dict[str, list[str]], role: str, word: str, options: Mapping[str, str]
) -> str | None:
    """Put a word where its role says; the role of the word after it, if it has one."""
    if role == "skip":
        return None
    if role == "again":
        key, _, value = word.lstrip("-").partition("=")
        _take(roles, options.get(key, "skip"), value, {})
    elif role in ("reads", "writes"):
        roles.setdefault(role[:-1], []).extend(word.split(","))
    elif role == "image":
        fields = dict(field.partition("=")[::2] for field in _FIELDS.split(word))
        roles.setdefault("read", []).append(fields.get("file", ""))
    elif role == "source":
        roles.setdefault("read", []).append(word)
    else:
        roles.setdefault(role, []).append(word)
    return "source" if role == "language" else None


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
    """Whether a path is a library or an object that comes with the toolkit or the system."""
    if not _LIBRARY.match(path):
        return False
    from posixpath import normpath

    # clang prints /usr/bin/../lib/gcc
    return _SYSTEM.match(normpath(path) if ".." in path else path) is not None


def _unique(paths: Iterable[str]) -> tuple[str, ...]:
    """The files among some words, each once, in order."""
    return tuple(dict.fromkeys(path for path in paths if path not in _NO_FILE))
