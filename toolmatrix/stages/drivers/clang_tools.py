"""The programs that clang calls: what each does, for which arch, and which files its words name.

A program is described by a `Grammar`; what the words of its options mean is data. Options are looked up without
their dashes, because the tools of LLVM take one or two; `-o file` and `-o=file` are the same.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence

from toolmatrix.stages.drivers import base_name, roles_of
from toolmatrix.stages.model import Stage
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

    Its place in the plan and in the log, and its text, are left to who adds it to a plan.
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
    for at in _telling(words, grammar):
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


def _telling(words: Sequence[str], grammar: Grammar) -> list[int]:
    # A command line has a hundred words, and nine in ten do not matter here.
    told = grammar.words
    if grammar.rest == ("skip",):
        return [
            at
            for at, word in enumerate(words)
            if word in told or ("=" in word and word.partition("=")[0] in told)
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
