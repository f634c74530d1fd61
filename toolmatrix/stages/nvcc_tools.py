"""What each program that nvcc calls does with the files on its command line."""

from __future__ import annotations

import re
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# What an option's value is. `-` is neither a file nor of interest.
WRITE, ARCH, SKIP = "write", "arch", "-"
STUB, INCLUDE, FRONT, MODULE, IMAGE = "stub", "include", "front", "module", "image"

_CICC = {
    "-o": WRITE,
    "-olto": WRITE,
    "--gen_c_file_name": WRITE,
    "--gen_device_file_name": WRITE,
    "--tile_bc_file_name": WRITE,
    "--stub_file_name": STUB,
    "--include_file_name": INCLUDE,
    "--include_alt_file_name": INCLUDE,
    "--module_id_file_name": MODULE,
    "--nv_arch": ARCH,
    "-arch": ARCH,
    "-arch=": ARCH,
    "--orig_src_file_name": SKIP,
    "--orig_src_path_name": SKIP,
    "--compiler_bindir": SKIP,
    "-nvvmir-library": SKIP,
    "--diag_suppress": SKIP,
    "-maxreg": SKIP,
    "-split-compile": SKIP,
}
_OPTIONS: dict[str, Mapping[str, str]] = {
    "cicc": _CICC,
    "cudafe": _CICC,
    # It only names the stub that its output includes; who compiles for the device writes it.
    "cudafe++": _CICC | {"--gen_c_file_name": FRONT, "--stub_file_name": INCLUDE},
    "filehash": {"-s": SKIP},
    "ptxas": {
        "-o": WRITE,
        "--output-file": WRITE,
        "--output-file=": WRITE,
        "-arch": ARCH,
        "-arch=": ARCH,
        "--gpu-name": ARCH,
        "--gpu-name=": ARCH,
    },
    "fatbinary": {
        "--create": WRITE,
        "--create=": WRITE,
        "-create=": WRITE,
        "--embedded-fatbin": WRITE,
        "--embedded-fatbin=": WRITE,
        "-embedded-fatbin=": WRITE,
        "--key": SKIP,
        "--ident": SKIP,
        "--cmdline": SKIP,
        "--cicc-cmdline": SKIP,
    }
    | {
        f"{dashes}image{number}{end}": IMAGE
        for dashes in ("-", "--")
        for number in ("", "2", "3")
        for end in ("", "=")
    },
    "nvlink": {
        "-o": WRITE,
        "--output-file": WRITE,
        "--output-file=": WRITE,
        "--register-link-binaries": WRITE,
        "--register-link-binaries=": WRITE,
        "-arch": ARCH,
        "-arch=": ARCH,
        "--arch": ARCH,
        "--arch=": ARCH,
        "--host-ccbin": SKIP,
        "-L": SKIP,
        "-l": SKIP,
        "-nvvmpath": SKIP,
        "-nvvmpath=": SKIP,
    },
    "nvprune": {"-o": WRITE, "-gencode": SKIP, "--generate-code": SKIP, "-arch": SKIP},
}
_OPTIONS["tileiras"] = _OPTIONS["ptxas"]
_KINDS = {
    "cicc": "cicc",
    "cudafe": "cudafe",
    "cudafe++": "cudafe",
    "filehash": "hash",
    "ptxas": "ptxas",
    "tileiras": "tileiras",
    "fatbinary": "fatbinary",
    "nvlink": "nvlink",
    "nvprune": "other",
}
_CC, _AR = "cc", "ar"
"""Under these names any host compiler and any archiver is known."""
_HOST = {
    "-o": WRITE,
    "-MF": WRITE,
    "-D": SKIP,
    "-U": SKIP,
    "-I": SKIP,
    "-L": SKIP,
    "-l": SKIP,
    "-x": SKIP,
    "-include": SKIP,
    "-imacros": SKIP,
    "-FI": SKIP,
    "-isystem": SKIP,
    "-iquote": SKIP,
    "-idirafter": SKIP,
    "-isysroot": SKIP,
    "--sysroot": SKIP,
    "-B": SKIP,
    "-MT": SKIP,
    "-MQ": SKIP,
    "-T": SKIP,
    "-u": SKIP,
    "-z": SKIP,
    "-arch": SKIP,
    "-target": SKIP,
    "-framework": SKIP,
    "-rpath": SKIP,
    "-Xlinker": SKIP,
    "-Xassembler": SKIP,
    "-Xpreprocessor": SKIP,
    "-Xclang": SKIP,
    "--param": SKIP,
}
_MICROSOFT_OUTPUT = re.compile(r"[-/](Fo|Fe|Fi|OUT:|out:):?(.+)", re.DOTALL)
_LINK_STUB = frozenset({"-DFATBINFILE", "-DREGISTERLINKBINARYFILE"})
_GENERATES = "--gen_module_id_file"
# Words that say nothing of files and are followed by none; those that are met are remembered, tool by tool.
_FLAGS = frozenset(
    {
        _GENERATES,
        "-64",
        "-O0",
        "-cuda",
        "-dlto",
        "-fast-math",
        "-g",
        "-generate-line-info",
        "-link",
        "-lto",
        "-m32",
        "-m64",
        "-report-arch",
        "-show-src",
        "-tused",
        "-v",
        "-w",
        "--allow-no-device-code",
        "--allow_managed",
        "--c",
        "--c++11",
        "--c++14",
        "--c++17",
        "--c++20",
        "--c++23",
        "--clang",
        "--compile-only",
        "--concat",
        "--cuda",
        "--debug_mode",
        "--device-c",
        "--device-hidden-visibility",
        "--display_error_number",
        "--dont-merge-basicblocks",
        "--emit-optix-ir",
        "--enable-tile",
        "--gen_div_approx_ftz",
        "--generate-line-info",
        "--m32",
        "--m64",
        "--no-version-ident",
        "--no_remove_unneeded_entities",
        "--parse_templates",
        "--promote_warnings",
        "--relaxed_constexpr",
        "--return-at-end",
        "--shared",
        "--simt-only",
        "--static-host-stub",
        "--tile-only",
        "--unsigned_chars",
        "--warning-as-error",
    }
)
_IDLE: dict[str, set[str]] = {name: set(_FLAGS) for name in (*_KINDS, _CC)}
_IDLE_MOST = 1 << 13
_PREPROCESSES = frozenset({"-E", "-EP", "-P", "-M", "-MM", "/E", "/EP", "/P"})
_COMPILES = frozenset({"-c", "-S", "/c"})
_MICROSOFT = ("cl.", "clang-cl", "icx-cl", "link.", "lib.")

_COMPILER = re.compile(
    r"(?:[\w.]+-)*(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|clang-cl|cl|icc|icpc|icx|icpx|xlc|xlc\+\+|xlC|"
    r"pgcc|pgc\+\+|pgCC|nvc|nvc\+\+|armclang|armclang\+\+|qcc|q\+\+|cpp)(?:-?\d+(?:\.\d+)*)?(?:_r)?"
)
_ARCHIVER = re.compile(r"(?:[\w.]+-)*(?:ar|gcc-ar|llvm-ar|lib|libtool)(?:-?\d+(?:\.\d+)*)?")
_WRAPPERS = frozenset({"ccache", "sccache", "distcc", "icecc", "buildcache"})
_HOST_SIGNS = frozenset({"-D__CUDACC__", "-D__NVCC__", "-DCUDA_DOUBLE_MATH_FUNCTIONS"})
_PROGRAM_NAME = re.compile(r"`[^`]*-print-prog-name=([^\s`]+)`")
_OUTPUTS = frozenset({"-o", "--output", "--output-file", "-out", "--out"})
_SUFFIX = re.compile(r"\.[A-Za-z][\w+]{0,11}\Z")
_IMAGE_FILE = re.compile(r"(?:.*?,)??file=(.*?)(?:,(?:profile|kind|sm)=.*)?", re.DOTALL)

SOURCES = (".cu", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".cuh")
"""Endings of what a person writes."""

READ_ENDINGS = (
    ".i",
    ".ii",
    ".gpu",
    ".ptx",
    ".cubin",
    ".ltoir",
    ".bc",
    ".tilebc",
    ".fatbin",
    ".o",
    ".obj",
    ".a",
    ".lib",
    ".so",
)
"""Endings of what the programs of nvcc read of each other."""

FROM_TOOLKIT = re.compile(r"\.(?:stub|bc|h|hpp|cuh|a|so|lib|o|obj)(?:\.\d+)*\Z")
"""Endings of what a toolkit or a system brings along."""


class Draft:
    """One command as read so far; what it reads without naming it is not known yet."""

    __slots__ = (
        "arch",
        "front",
        "host_arch",
        "includes",
        "kind",
        "line",
        "loose",
        "module",
        "named",
        "reads",
        "stub",
        "text",
        "tool",
        "words",
        "writes",
    )

    def __init__(self, line: int, text: str, words: Sequence[str], tool: str) -> None:
        self.line = line
        self.text = text
        self.words = words
        self.tool = tool
        self.kind = "other"
        self.arch: str | None = None
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.loose: list[str] = []
        """Files that follow an option which is not known: the rest of the plan tells if it reads or writes them."""
        self.named: list[str] = []
        """Files that such an option names after a `=`: they count only if the rest of the plan knows them."""
        self.includes: list[str] = []
        """Names of files that what this command writes includes."""
        self.front: str | None = None
        self.stub: str | None = None
        self.module: str | None = None
        self.host_arch: str | None = None
        """The arch that __CUDA_ARCH__ names, without the letter that may follow."""


def base_name(program: str) -> str:
    """The last part of a program's path, on any system."""
    named = _PROGRAM_NAME.search(program)
    path = named[1] if named else program
    return path[max(path.rfind("/"), path.rfind("\\")) + 1 :]


@lru_cache(256)
def _program(path: str) -> tuple[str, str]:
    """A program's base name, and the name under which it is known here."""
    tool = base_name(path)
    name = tool[:-4].lower() if tool[-4:].lower() == ".exe" else tool
    if _COMPILER.fullmatch(name):
        name = _CC
    elif _ARCHIVER.fullmatch(name):
        name = _AR
    return tool, name


def draft(line: int, text: str, words: Sequence[str]) -> Draft:
    """What one command does, as far as its own words tell."""
    at = 0
    tool, name = _program(words[0])
    while name in _WRAPPERS and at + 1 < len(words):
        at += 1
        tool, name = _program(words[at])
    found = Draft(line, text, words, tool)
    rest = words[at + 1 :]
    if name in _KINDS:
        found.kind = _KINDS[name]
        _sort(found, rest, _OPTIONS[name], _IDLE[name])
    elif name == _AR:
        _archive(found, rest)
    elif name == _CC or not _HOST_SIGNS.isdisjoint(rest):
        _host(found, rest)
    else:
        _unknown(found, words[at], rest)
    return found


def is_compiler(program: str) -> bool:
    """Whether a program is a host compiler, by its name."""
    return _program(program)[1] == _CC


def is_known(found: Draft) -> bool:
    """Whether it is known what a command of kind `other` does."""
    return found.kind != "other" or found.tool in _KINDS


def names_file(word: str) -> bool:
    """Whether a word looks like the name of a file."""
    return "/" in word or "\\" in word or _SUFFIX.search(word) is not None


def _sort(found: Draft, rest: Sequence[str], options: Mapping[str, str], idle: set[str]) -> None:
    words = iter(rest)
    unknown = False
    for word in words:
        if word in idle:
            continue
        role = options.get(word)
        if role is not None:
            _ROLES[role](found, next(words, ""))
            unknown = False
        elif word[:1] != "-":
            if names_file(word):
                (found.loose if unknown else found.reads).append(word)
            unknown = False
        elif "=" not in word:
            unknown = True
        else:
            name, _, value = word.partition("=")
            role = options.get(name + "=")
            if role is not None:
                _ROLES[role](found, value)
            elif names_file(value):
                found.named.append(value)
            else:
                _remember(idle, word)
    if found.module is not None:
        generates = _GENERATES in rest
        (found.writes if generates else found.reads).append(found.module)


def _remember(idle: set[str], word: str) -> None:
    """Remember that a word says nothing of files."""
    if len(idle) < _IDLE_MOST:
        idle.add(word)


def _image(found: Draft, value: str) -> None:
    if (image := _IMAGE_FILE.fullmatch(value)) is not None:
        found.reads.append(image[1])


def _stub(found: Draft, value: str) -> None:
    found.stub = value
    found.writes.append(value)


def _front(found: Draft, value: str) -> None:
    found.front = value
    found.writes.append(value)


_ROLES: dict[str, Callable[[Draft, str], None]] = {
    WRITE: lambda found, value: found.writes.append(value),
    ARCH: lambda found, value: setattr(found, "arch", value),
    SKIP: lambda _found, _value: None,
    STUB: _stub,
    FRONT: _front,
    INCLUDE: lambda found, value: found.includes.append(value),
    MODULE: lambda found, value: setattr(found, "module", value),
    IMAGE: _image,
}


def _host(found: Draft, rest: Sequence[str]) -> None:
    microsoft = found.tool.lower().startswith(_MICROSOFT)
    found.kind = "link"
    idle = _IDLE[_CC]
    words = iter(rest)
    for word in words:
        if word in idle:
            continue
        role = _HOST.get(word)
        if role is not None:
            value = next(words, "")
            if role is WRITE:
                found.writes.append(value)
            elif word == "-D":
                _define(found, f"-D{value}")
        elif word[:2] == "-D":
            if word[:14] == "-D__CUDA_ARCH_" or "FILE=" in word:
                _define(found, word)
            else:
                _remember(idle, word)
        elif word in _PREPROCESSES:
            found.kind = "preprocess"
        elif word in _COMPILES:
            if found.kind == "link":
                found.kind = "host-compile"
        elif microsoft and (output := _MICROSOFT_OUTPUT.fullmatch(word)) is not None:
            found.writes.append(output[2])
            if output[1] == "Fo" and found.kind == "link":
                found.kind = "host-compile"
        elif word[:1] == "-":
            _remember(idle, word)
        elif not (microsoft and word[:1] == "/"):
            found.reads.append(word)


def _define(found: Draft, word: str) -> None:
    name, _, value = word.partition("=")
    if name == "-D__CUDA_ARCH__" and value.isdigit():
        found.host_arch = f"compute_{value[:-1]}"
    elif name in _LINK_STUB:
        found.reads.append(value.strip('"'))


def _archive(found: Draft, rest: Sequence[str]) -> None:
    found.kind = "link"
    files: list[str] = []
    for word in rest:
        if (output := _MICROSOFT_OUTPUT.fullmatch(word)) is not None:
            found.writes.append(output[2])
        elif not word.startswith(("-", "/")) or names_file(word[1:]):
            files.append(word)
    if not found.writes:
        # `ar cr libk.a a.o b.o`: what to do, the archive, the members.
        files = files[1:] if files and not names_file(files[0]) else files
        found.writes += files[:1]
        files = files[1:]
    found.reads += files


def _unknown(found: Draft, program: str, rest: Sequence[str]) -> None:
    found.named.append(program.removeprefix("./"))
    words = iter(rest)
    for word in words:
        option, joined, value = word.partition("=") if word[:1] == "-" else ("", "", word)
        if option in _OUTPUTS:
            found.writes.append(value if joined else next(words, ""))
        elif names_file(value):
            found.loose.append(value)
