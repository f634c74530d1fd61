"""What each program that nvcc calls does with the files on its command line."""

from __future__ import annotations

import re

from toolmatrix.stages import words as wording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# What an option's value is. `-` is neither a file nor of interest.
READ, WRITE, ARCH, SKIP = "read", "write", "arch", "-"
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
_HOST_JOINED = re.compile(r"[-/](Fo|Fe|Fi|OUT:|out:)(.+)", re.DOTALL)
_LINK_STUB = re.compile(r"-D(?:FATBINFILE|REGISTERLINKBINARYFILE)=(.*)", re.DOTALL)
_PREPROCESSES = frozenset({"-E", "-EP", "-P", "-M", "-MM", "/E", "/EP", "/P"})
_COMPILES = frozenset({"-c", "-S", "/c"})
_MICROSOFT = frozenset({"cl", "clang-cl", "link", "lib"})

_COMPILER = re.compile(
    r"(?:[\w.]+-)*(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|clang-cl|cl|icc|icpc|icx|icpx|xlc|xlc\+\+|xlC|"
    r"pgcc|pgc\+\+|pgCC|nvc|nvc\+\+|armclang|armclang\+\+|qcc|q\+\+|cpp)(?:-?\d+(?:\.\d+)*)?(?:_r)?"
)
_ARCHIVER = re.compile(r"(?:[\w.]+-)*(?:ar|gcc-ar|llvm-ar|lib|libtool)(?:-?\d+(?:\.\d+)*)?")
_WRAPPERS = frozenset({"ccache", "sccache", "distcc", "icecc", "buildcache"})
_HOST_SIGNS = frozenset({"-D__CUDACC__", "-D__NVCC__", "-DCUDA_DOUBLE_MATH_FUNCTIONS"})
_PROGRAM_NAME = re.compile(r"`[^`]*-print-prog-name=([^\s`]+)`")
_SUFFIX = re.compile(r"\.[A-Za-z][\w+]{0,11}\Z")
_IMAGE_FILE = re.compile(r"(?:.*?,)??file=(.*?)(?:,(?:profile|kind|sm)=.*)?", re.DOTALL)

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
        """Files of which only the rest of the plan can tell whether they are read or written."""
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


def known_name(tool: str) -> str:
    """The name under which a program is known here."""
    return tool[:-4].lower() if tool[-4:].lower() == ".exe" else tool


def draft(line: int, text: str, words: Sequence[str]) -> Draft:
    """What one command does, as far as its own words tell."""
    at = 0
    while at + 1 < len(words) and known_name(base_name(words[at])) in _WRAPPERS:
        at += 1
    tool = base_name(words[at]) if words else ""
    found = Draft(line, text, words, tool)
    name = known_name(tool)
    rest = words[at + 1 :]
    if name in _KINDS:
        found.kind = _KINDS[name]
        _sort(found, rest, _OPTIONS[name])
    elif _ARCHIVER.fullmatch(name):
        _archive(found, rest)
    elif _COMPILER.fullmatch(name) or not _HOST_SIGNS.isdisjoint(rest):
        _host(found, rest)
    else:
        _unknown(found, words[at], rest)
    return found


def is_compiler(tool: str) -> bool:
    """Whether a program's base name is that of a host compiler."""
    return _COMPILER.fullmatch(known_name(tool)) is not None


def is_known(found: Draft) -> bool:
    """Whether it is known what a command of kind `other` does."""
    return found.kind != "other" or known_name(found.tool) in _KINDS


def names_file(word: str) -> bool:
    """Whether a word looks like the name of a file."""
    return "/" in word or "\\" in word or _SUFFIX.search(word) is not None


def _sort(found: Draft, rest: Sequence[str], options: Mapping[str, str]) -> None:
    words = iter(rest)
    unknown = False
    for word in words:
        if not word.startswith("-"):
            if names_file(word):
                (found.loose if unknown else found.reads).append(word)
            unknown = False
            continue
        role = options.get(word)
        if role is not None:
            _file(found, role, next(words, ""))
            unknown = False
            continue
        name, joined, value = word.partition("=")
        unknown = not joined
        role = options.get(name + "=") if joined else None
        if role is not None:
            _file(found, role, value)
        elif value and names_file(value):
            found.loose.append(value)
    if found.module is not None:
        generates = "--gen_module_id_file" in rest
        (found.writes if generates else found.reads).append(found.module)


def _file(found: Draft, role: str, value: str) -> None:
    if value:
        _ROLES[role](found, value)


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
    READ: lambda found, value: found.reads.append(value),
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
    microsoft = known_name(found.tool) in _MICROSOFT
    found.kind = "link"
    words = iter(rest)
    for word in words:
        role = _HOST.get(word)
        if role is not None:
            value = next(words, "")
            if role is WRITE:
                found.writes.append(value)
            elif word == "-D":
                _define(found, f"-D{value}")
        elif word.startswith("-D"):
            _define(found, word)
        elif word in _PREPROCESSES:
            found.kind = "preprocess"
        elif word in _COMPILES:
            if found.kind == "link":
                found.kind = "host-compile"
        elif microsoft and (output := _HOST_JOINED.fullmatch(word)) is not None:
            found.writes.append(output[2])
        elif not word.startswith("-") and not (microsoft and word.startswith("/")):
            found.reads.append(word)


def _define(found: Draft, word: str) -> None:
    if word.startswith("-D__CUDA_ARCH"):
        name, _, value = word.partition("=")
        if name == "-D__CUDA_ARCH__" and value.isdigit():
            found.host_arch = f"compute_{value[:-1]}"
    elif (read := _LINK_STUB.fullmatch(word)) is not None:
        found.reads.append(read[1].strip('"'))


def _archive(found: Draft, rest: Sequence[str]) -> None:
    found.kind = "link"
    files: list[str] = []
    for word in rest:
        if (output := _HOST_JOINED.fullmatch(word)) is not None:
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
    found.loose.append(program.removeprefix("./"))
    words = iter(rest)
    for word in words:
        if word in ("-o", "--output", "--output-file", "-out"):
            found.writes.append(next(words, ""))
            continue
        name, joined, value = word.partition("=")
        if word.startswith("-"):
            if joined and name in ("-o", "--output", "--output-file", "-out"):
                found.writes.append(value)
            elif value and names_file(value):
                found.loose.append(value)
        elif names_file(word):
            found.loose.append(word)


def program_words(found: Sequence[str], env: dict[str, str]) -> list[str]:
    """Plain words out of raw ones, the program's path with the log's variables put in."""
    plain = [wording.plain(word) for word in found]
    if plain:
        plain[0] = wording.variables(plain[0], env)
    return plain
