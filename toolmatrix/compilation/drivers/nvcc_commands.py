"""Command lines that nvcc prints: their words, and what the programs that it calls do with the files on them.

Spaces separate words, `"` groups, nothing else is quoted: nvcc escapes `"` inside `"..."` and nothing else, and `$`,
backquote and backslash are printed raw. A backslash before any other character is that backslash; where a word ends is
nevertheless the shell's decision (nvcc passes the line to `sh -c`), so of `\\\\` the second does not escape what
follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from toolmatrix.compilation.drivers import base_name, roles_of

_QUOTES = re.compile(r'\\(.?)|"', re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"\\]+|\\.?)*"?', re.DOTALL)
_REDIRECT = re.compile(r"(?:[12&]?>>?|<)(?!&)(.*)", re.DOTALL)
_DUPLICATE = re.compile(r"[12]?>&[12-]")
# Words that mean the same to nvcc and to a shell, whatever it is.
_SIMPLE = re.compile(r'[^"\\$`\';&|()<>*?~#]+|"([^"\\$`]+)"')
_EXPANDS = re.compile(r"\$[\w{(@*#?!$-]|`")
_SPECIAL = re.compile(r"['\\;&|()<>*?]|^[~#]")
_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}|%(\w+)%", re.ASCII)

_MESSAGES = re.compile(r"""\s*[12]?>\s*"?[^\s"]*tmpxft_[^\s"]*_std(?:out|err)"?(?=\s|$)""")

_MOST = 1 << 16
_LONGEST_PATH = 4096


class Lexicon:
    """Caches the meaning of quoted words, so that a repeated word costs nothing."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._odd: set[str] = set()

    def split(self, text: str) -> tuple[list[str], list[str]]:
        """The words of a line with their quotes on, and what they mean; linear on any text."""
        # A log without repeated words must not fill the memory.
        if len(self._known) >= _MOST:
            self._known.clear()
            self._odd.clear()
        raw: list[str] = []
        means: list[str] = []
        pieces: list[str] = []
        quoted = False
        known = self._known
        # A tab separates as a blank does, and stays where it is within quotes.
        for piece in text.replace("\t", " \t").split(" "):
            if not pieces:
                meaning = known.get(piece)
                if meaning is not None:
                    raw.append(piece)
                    means.append(meaning)
                    continue
                piece = piece.lstrip("\t")
                if not piece:
                    continue
            if '"' in piece and not closed(piece):
                quoted = not quoted
            # Where a word ends is the shell's decision: an odd number of backslashes escapes the blank behind them.
            if quoted or (len(piece) - len(piece.rstrip("\\"))) % 2:
                pieces.append(piece)
                continue
            if pieces:
                piece = " ".join([*pieces, piece]).replace(" \t", "\t")
                pieces.clear()
            raw.append(piece)
            means.append(self._learn(piece))
        if pieces:
            raw.append(" ".join(pieces).replace(" \t", "\t"))
            means.append(plain(raw[-1]))
        return raw, means

    def expanded(self, raw: Sequence[str]) -> list[str]:
        """The words, quotes on, that a shell understands differently from nvcc."""
        return [] if self._odd.isdisjoint(raw) else [word for word in raw if word in self._odd]

    def _learn(self, word: str) -> str:
        simple = _SIMPLE.fullmatch(word)
        if simple is None:
            means = plain(word)
            if _shell_differs(word):
                self._odd.add(word)
        else:
            means = simple[1] or word
        self._known[word] = means
        return means


def without_messages(text: str) -> str:
    """A command without the redirection of its messages to files, which threads of nvcc use."""
    return _MESSAGES.sub("", text) if "_std" in text else text


def plain(word: str) -> str:
    """The meaning of a word with its quotes on."""
    inside = word[1:-1]
    # Nearly all quoted words hold neither, and `sub` is slow.
    if word[:1] == word[-1:] == '"' and '"' not in inside and "\\" not in inside:
        return inside
    return _QUOTES.sub(_unquoted, word)


def _unquoted(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped is None:
        return ""
    return '"' if escaped == '"' else match[0]


def closed(text: str) -> bool:
    """Check that every `"` of a text has its partner."""
    # Only a backslash can make a quote mean itself, and few texts hold one.
    if "\\" not in text:
        return text.count('"') % 2 == 0
    return sum(match[0] == '"' for match in _QUOTES.finditer(text)) % 2 == 0


def _shell_differs(word: str) -> bool:
    if _DUPLICATE.fullmatch(word):
        return False
    # nvcc means redirections as the shell takes them.
    redirect = _REDIRECT.fullmatch(word)
    word = redirect[1] if redirect else word
    return _EXPANDS.search(word) is not None or _SPECIAL.search(_QUOTED.sub("", word)) is not None


def take_redirections(
    raw: Sequence[str], means: Sequence[str]
) -> tuple[list[str], list[str], list[str]]:
    """The words that a program gets, and the files of its redirections: those read and those written."""
    rest: list[str] = []
    reads: list[str] = []
    writes: list[str] = []
    waiting = None
    for word, meaning in zip(raw, means, strict=True):
        if waiting is not None:
            waiting.append(meaning)
            waiting = None
        elif (redirect := _REDIRECT.fullmatch(word)) is not None:
            side = reads if word[0] == "<" else writes
            if redirect[1]:
                side.append(plain(redirect[1]))
            else:
                waiting = side
        elif not _DUPLICATE.fullmatch(word):
            rest.append(meaning)
    return rest, reads, writes


def variables(word: str, env: Mapping[str, str]) -> str:
    """A word with the log's own variables expanded, `$NAME` as well as `%NAME%`."""
    if "$" not in word and "%" not in word:
        return word

    def value(match: re.Match[str]) -> str:
        set_to = env.get(match[match.lastindex or 0], match[0])
        # Without a bound a short line could grow to gigabytes.
        return set_to if len(set_to) <= _LONGEST_PATH else match[0]

    return _VARIABLE.sub(value, word)


_CICC = roles_of(
    write="-o -olto --gen_c_file_name --gen_device_file_name --tile_bc_file_name",
    stub="--stub_file_name",
    include="--include_file_name --include_alt_file_name",
    module="--module_id_file_name",
    arch="--nv_arch -arch -arch=",
    skip="--orig_src_file_name --orig_src_path_name --compiler_bindir --sdk_dir -nvvmir-library --diag_suppress"
    " -maxreg -split-compile",
)
_PTXAS = roles_of(
    write="-o --output-file --output-file=", arch="-arch -arch= --gpu-name --gpu-name="
)
_FATBINARY = roles_of(
    write="--create --create= -create= --embedded-fatbin --embedded-fatbin= -embedded-fatbin=",
    image=" ".join(
        f"{dashes}image{version}{end}"
        for dashes in ("-", "--")
        for version in ("", "2", "3")
        for end in ("", "=")
    ),
    skip="--key --ident --cmdline --cicc-cmdline",
)
_NVLINK = roles_of(
    write="-o --output-file --output-file= --register-link-binaries --register-link-binaries=",
    arch="-arch -arch= --arch --arch=",
    skip="--host-ccbin -L -l -nvvmpath -nvvmpath=",
)
# The kind of each program's stages, and what the value of each option is, from what nvcc prints: an option that ends
# with `=` has it in the same word, `skip` is neither a file nor of interest.
_PROGRAMS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "cicc": ("cicc", _CICC),
    "cudafe": ("cudafe", _CICC),
    # It only names the stub that its output includes; the device compile writes it.
    "cudafe++": (
        "cudafe",
        _CICC | roles_of(front="--gen_c_file_name", include="--stub_file_name"),
    ),
    "filehash": ("hash", roles_of(skip="-s")),
    "ptxas": ("ptxas", _PTXAS),
    "tileiras": ("tileiras", _PTXAS),
    "fatbinary": ("fatbinary", _FATBINARY),
    "nvlink": ("nvlink", _NVLINK),
    "nvprune": ("other", roles_of(write="-o", skip="-gencode --generate-code -arch")),
}
# The names for any host compiler and any archiver.
_CC, _AR = "cc", "ar"
_HOST_OPTIONS = roles_of(
    write="-o -MF",
    define="-D",
    skip="-U -I -L -l -x -include -imacros -FI -isystem -iquote -idirafter -isysroot --sysroot -B -MT -MQ -T -u -z"
    " -arch -target -framework -rpath -Xlinker -Xassembler -Xpreprocessor -Xclang --param",
)
# Words that neither name files nor are followed by one; further ones are remembered by tool.
_FLAGS = frozenset(
    roles_of(
        flag="-64 -O0 -cuda -dlto -fast-math -g -generate-line-info -link -lto -m32 -m64 -report-arch -show-src -tused"
        " -v -w --allow-no-device-code --allow_managed --c --c++11 --c++14 --c++17 --c++20 --c++23 --clang"
        " --compile-only --concat --cuda --debug_mode --device-c --device-hidden-visibility --display_error_number"
        " --dont-merge-basicblocks --emit-optix-ir --enable-tile --gen_div_approx_ftz --gen_module_id_file"
        " --generate-line-info --m32 --m64 --no-version-ident --no_remove_unneeded_entities --parse_templates"
        " --promote_warnings --relaxed_constexpr --return-at-end --shared --simt-only --static-host-stub"
        " --tile-only --unsigned_chars --warning-as-error"
    )
)

_MICROSOFT_OUTPUT = re.compile(r"[-/](Fo|Fe|Fi|OUT:|out:):?(.+)", re.DOTALL)
_LINK_STUB = frozenset({"FATBINFILE", "REGISTERLINKBINARYFILE"})
_GENERATES = "--gen_module_id_file"
_IDLE: dict[str, set[str]] = {name: set(_FLAGS) for name in (*_PROGRAMS, _CC)}
_IDLE_MOST = 1 << 13
# Uses of a host compiler; of two, `max` picks `preprocess`.
_USES = {
    **dict.fromkeys(("-E", "-EP", "-P", "-M", "-MM", "/E", "/EP", "/P"), "preprocess"),
    **dict.fromkeys(("-c", "-S", "/c", "Fo"), "host-compile"),
}
_MICROSOFT = ("cl.", "clang-cl", "icx-cl", "link.", "lib.")

_COMPILER = re.compile(
    r"(?:[\w.]+-)*(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|clang-cl|cl|icc|icpc|icx|icpx|xlc|xlc\+\+|xlC|"
    r"pgcc|pgc\+\+|pgCC|nvc|nvc\+\+|armclang|armclang\+\+|qcc|q\+\+|cpp)(?:-?\d+(?:\.\d+)*)?(?:_r)?"
)
_ARCHIVER = re.compile(r"(?:[\w.]+-)*(?:ar|gcc-ar|llvm-ar|lib|libtool)(?:-?\d+(?:\.\d+)*)?")
_WRAPPERS = frozenset({"ccache", "sccache", "distcc", "icecc", "buildcache"})
# Definitions that nvcc hands to a host compiler, which may have any name.
_HOST_SIGNS = frozenset({"-D__CUDACC__", "-D__NVCC__", "-DCUDA_DOUBLE_MATH_FUNCTIONS"})
_PROGRAM_NAME = re.compile(r"`[^`]*-print-prog-name=([^\s`]+)`")
_OUTPUTS = frozenset({"-o", "--output", "--output-file", "-out", "--out"})
# The operation of `ar` that adds members to an archive; others read it.
_FILLS = re.compile(r"-?(?!\w*[tpx])[a-zA-Z]*[rq][a-zA-Z]*")
# Options whose value is part of the word.
_JOINED = ("-I", "-L", "-l", "-D", "-U")
_SUFFIX = re.compile(r"\.[A-Za-z][\w+]{0,11}\Z")
# Roles whose value is an attribute of a draft.
_ATTRIBUTES = frozenset({"arch", "stub", "front", "module"})
_IMAGE_END = re.compile(r",(?:profile|kind|sm)=")

# Endings of source files.
SOURCES = (".cu", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".cuh")

# Endings of files that the programs of nvcc pass on.
READ_ENDINGS = (
    *(".i", ".ii", ".gpu", ".ptx", ".cubin", ".ltoir", ".bc", ".tilebc", ".fatbin"),
    *(".o", ".obj", ".a", ".lib", ".so"),
)

# Endings of files that come with a toolkit or a system.
FROM_TOOLKIT = re.compile(r"\.(?:stub|bc|h|hpp|cuh|a|so|lib|o|obj)(?:\.\d+)*\Z")


class Draft:
    """One command as read so far; files that it reads without naming them are not known yet."""

    kind = "other"
    arch: str | None = None
    # The arch of __CUDA_ARCH__, and the letter after it, from other definitions.
    host_arch: str | None = None
    host_letter = ""
    # The output of cudafe++ for the host compiler.
    front: str | None = None
    stub: str | None = None
    module: str | None = None

    def __init__(self, line: int, text: str, words: Sequence[str], tool: str) -> None:
        self.line = line
        self.text = text
        self.words = words
        self.tool = tool
        self.reads: list[str] = []
        self.writes: list[str] = []
        # Names of files that what this command writes includes.
        self.includes: list[str] = []
        # Files after an unknown option: the rest of the plan decides whether it reads or writes them.
        self.loose: list[str] = []
        # Files that such an option names after a `=`: they count only if the rest of the plan knows them.
        self.named: list[str] = []

    def named_arch(self) -> str | None:
        """The arch from definitions, if there is one."""
        return self.host_arch and self.host_arch + self.host_letter


@lru_cache(256)
def _program(path: str) -> tuple[str, str]:
    """A program's base name, and the name under which it is known here."""
    named = _PROGRAM_NAME.search(path)
    tool = base_name(named[1] if named else path)
    name = tool[:-4].lower() if tool[-4:].lower() == ".exe" else tool
    if _COMPILER.fullmatch(name):
        name = _CC
    elif _ARCHIVER.fullmatch(name):
        name = _AR
    return tool, name


def draft(
    line: int,
    text: str,
    words: Sequence[str],
    reads: Iterable[str] = (),
    writes: Iterable[str] = (),
) -> Draft:
    """A draft of one command from its own words and its redirections, `reads` and `writes`."""
    at = 0
    tool, name = _program(words[0])
    # `ccache g++ ...` runs g++.
    while name in _WRAPPERS and at + 1 < len(words):
        at += 1
        tool, name = _program(words[at])
    command = Draft(line, text, words, tool)
    rest = words[at + 1 :]
    if name in _PROGRAMS:
        command.kind, options = _PROGRAMS[name]
        _sort(command, rest, options, _IDLE[name])
    elif name == _AR:
        _archive(command, rest)
    elif name == _CC or not _HOST_SIGNS.isdisjoint(rest):
        _host(command, rest)
    else:
        _unknown(command, words[at], rest)
    command.reads += reads
    command.writes += writes
    if command.kind == "link" and any(path.endswith((".i", ".ii")) for path in command.writes):
        # The words that say so are in a response file.
        command.kind = "preprocess"
    return command


def is_compiler(program: str) -> bool:
    """Check whether a program is a host compiler, by its name."""
    return _program(program)[1] == _CC


def is_tool(program: str) -> bool:
    """Check whether a program is one of nvcc's own, by its name."""
    return _program(program)[1] in _PROGRAMS


def is_known(draft: Draft) -> bool:
    """Check whether it is known what a command does, even one of kind `other`."""
    return draft.kind != "other" or draft.tool in _PROGRAMS


def names_file(word: str) -> bool:
    """Check whether a word looks like the name of a file."""
    if "/" in word or "\\" in word:
        return not word.endswith(("/", "\\"))
    return _SUFFIX.search(word) is not None


def _sort(draft: Draft, rest: Sequence[str], options: Mapping[str, str], idle: set[str]) -> None:
    words = iter(rest)
    after_unknown = False
    for word in words:
        unknown, after_unknown = after_unknown, False
        if word in idle:
            continue
        role = options.get(word)
        if role is not None:
            _take(draft, role, next(words, ""))
        elif word.startswith(_JOINED):
            _remember(idle, word)
        elif word[:1] != "-":
            if names_file(word):
                (draft.loose if unknown else draft.reads).append(word)
        elif "=" not in word:
            after_unknown = True
        else:
            name, _, value = word.partition("=")
            role = options.get(name + "=")
            if role is not None:
                _take(draft, role, value)
            elif names_file(value):
                draft.named.append(value)
            else:
                _remember(idle, word)
    # The same option names the file to the stage that writes it and to those that read it.
    if draft.module is not None:
        generates = _GENERATES in rest
        (draft.writes if generates else draft.reads).append(draft.module)


def _remember(idle: set[str], word: str) -> None:
    # Most words of a log name no file; a log of many units must not grow this without bound.
    if len(idle) < _IDLE_MOST:
        idle.add(word)


def _take(draft: Draft, role: str, value: str) -> None:
    if role in _ATTRIBUTES:
        setattr(draft, role, value)
    if role in ("stub", "front") or (role == "write" and value):
        draft.writes.append(value)
    elif role == "include":
        draft.includes.append(value)
    elif role == "image":
        # `kind=elf,sm=NN,file=X`, `profile=sm_NN,file=X` and the same with the file in front.
        if value.startswith("file="):
            draft.reads.append(_IMAGE_END.split(value[5:], maxsplit=1)[0])
        elif (named := value.partition(",file="))[1]:
            draft.reads.append(named[2])


def _host(draft: Draft, rest: Sequence[str]) -> None:
    microsoft = draft.tool.lower().startswith(_MICROSOFT)
    uses: list[str] = []
    idle = _IDLE[_CC]
    words = iter(rest)
    for word in words:
        if word in idle:
            continue
        role = _HOST_OPTIONS.get(word)
        if role is not None:
            value = next(words, "")
            if role == "define":
                _define(draft, value)
            else:
                _take(draft, role, value)
        elif word[:2] == "-D":
            if not _define(draft, word[2:]):
                _remember(idle, word)
        elif word in _USES:
            uses.append(_USES[word])
        elif microsoft and (output := _MICROSOFT_OUTPUT.fullmatch(word)) is not None:
            draft.writes.append(output[2])
            uses += _USES.get(output[1], "").split()
        elif word[:1] == "-":
            _remember(idle, word)
        elif not (microsoft and word[:1] == "/"):
            draft.reads.append(word.removeprefix("@"))
    draft.kind = max(uses, default="link")


def _define(draft: Draft, value: str) -> bool:
    """Take a definition that names an arch or a file, if it is one."""
    name, _, value = value.partition("=")
    if name == "__CUDA_ARCH__" and value.isdigit():
        draft.host_arch = f"compute_{value[:-1]}"
    elif name.startswith("__CUDA_ARCH_FEAT_SM"):
        draft.host_letter = "a"
    elif name == "__CUDA_ARCH_FAMILY_SPECIFIC__":
        draft.host_letter = draft.host_letter or "f"
    elif name in _LINK_STUB:
        draft.reads.append(value.strip('"'))
    else:
        return False
    return True


def _archive(draft: Draft, rest: Sequence[str]) -> None:
    # `ar cr libk.a a.o b.o` names what to do, the archive, the members; others name the archive by an option.
    draft.kind = "link"
    fills = bool(rest) and _FILLS.fullmatch(rest[0]) is not None
    words = iter(rest[1:] if fills else rest)
    for word in words:
        if (output := _MICROSOFT_OUTPUT.fullmatch(word)) is not None:
            draft.writes.append(output[2])
        elif word == "-o":
            _take(draft, "write", next(words, ""))
        elif word[:1] != "-" and (fills or names_file(word[1:])):
            draft.reads.append(word)
    if fills and not draft.writes:
        draft.writes, draft.reads = draft.reads[:1], draft.reads[1:]


def _unknown(draft: Draft, program: str, rest: Sequence[str]) -> None:
    draft.named.append(program.removeprefix("./"))
    words = iter(rest)
    for word in words:
        option, joined, value = word.partition("=") if word[:1] == "-" else ("", "", word)
        if option in _OUTPUTS:
            _take(draft, "write", value if joined else next(words, ""))
        elif names_file(value):
            draft.loose.append(value)
