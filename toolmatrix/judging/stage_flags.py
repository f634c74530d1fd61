"""Findings about the words of a plan: host compiler, programs, sources, environment, flags that fight.

Nothing here knows a version: limits come from the matrix, the rest from what the words of nvcc and clang mean.
"""

from __future__ import annotations

import posixpath
import re

from toolmatrix.finding import Finding
from toolmatrix.judging.stage_archs import DEVICE_LINKS, LTO
from toolmatrix.judging.stage_facts import admits
from toolmatrix.wording import listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.compilation.model import Plan, Stage
    from toolmatrix.finding import Incompatibility
    from toolmatrix.judging.stage_archs import DeviceCode
    from toolmatrix.judging.stages import PlanContext

# What nvcc passes to cudafe++ about the host compiler: the number of its own macros, such as 120200 for GCC 12.2.0.
_HOST = re.compile(r"--(clang|gnu|microsoft)_version=(\d{4,6})$")
# Digits of a version that has two for the minor and two for the patch release.
_PACKED = 5
# What `-allow-unsupported-compiler` becomes in the words of the preprocessor; crt/host_config.h looks at it.
_UNCHECKED = "-D__NV_NO_HOST_COMPILER_CHECK=1"
_COMPILERS = {"clang": "clang", "microsoft": "msvc", "gnu": "gcc"}
# How clang says it; nvcc plans for a file that is not there as for any other.
_MISSING = re.compile(r"no such file or directory: '([^']*)'")
_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:[/\\]")
# nvcc.profile adds to these variables, whatever the caller has set them to.
_LEAKING = (
    *("INCLUDES", "SYSTEM_INCLUDES", "LIBRARIES"),
    *("PTXAS_FLAGS", "CUDAFE_FLAGS", "OPENCC_FLAGS"),
)
ADDED = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
"""What nvcc puts before and behind the words of its command line (NVIDIA, nvcc, environment variables)."""
# Variables in which nvcc.profile keeps the places of the toolkit.
_ROOTS = ("TOP", "_HERE_", "_THERE_", "CUDA_ROOT")
_PATH_OPTION = re.compile(r"-(?:isystem|I|L)|[-/]LIBPATH:")
# The short form of a name in a FAT file system: six letters, `~` and a number.
_SHORTENED = re.compile(r"(\w{1,6})~\d+")
# Where distributions put a toolkit, and where a compiler looks anyway.
_SYSTEM = ("/usr/lib", "/usr/include")
# `-lcudart`, `-lcudadevrt` and the like, which nvcc writes by itself.
_OWN_LIBRARY = re.compile(r"-lcuda\w*$")
_WORDS = re.compile(r'(?:[^\s"]|"[^"]*")+')
# Expansions of sh(1) that happen between double quotes, too.
_EXPANDED = re.compile(r"`|\$[\w({?!@*#$-]")
_NO_NAME = re.compile(r"[/\\$%`]")
# What a program's name holds that cannot be sought without a place to look from, or not at all.
_UNLOCATED = re.compile(r"[\\$%`]|^[^/]+/")
_PREPARING = ("preprocess", "cudafe", "hash")
# What nvcc calls the files that it throws away, unless an option keeps them.
_TEMP = re.compile(r"(?:^|[/\\])tmpxft_[^/\\]*$")


def findings(context: PlanContext, code: DeviceCode) -> Iterator[Finding]:
    """Everything about the words of one plan."""
    for judge in (host_compiler, programs, sources, leaks, shell, lineinfo, idle):
        yield from judge(context)
    yield from device_link(context, code)
    yield from lto(context, code)


def host_compiler(context: PlanContext) -> Iterator[Finding]:
    """The host compiler that the front end was called with, checked against the limits of the toolkit."""
    host = host_of(context.plan)
    if host is None or context.toolkit.component != "cuda":
        return
    compiler, version, stage = host
    ground, limits, facts, rivals = _limits(context, compiler, version)
    if not limits:
        return
    off = any(_UNCHECKED in stage.argv for stage in context.plan.stages)
    how = "disputed" if rivals else "unchecked" if off else ""
    finding = Finding.of(
        "TM210",
        how,
        severity={"": "error", "unchecked": "warning", "disputed": "info"}[how],
        compiler=compiler,
        version=version,
        how=how,
        grounds=ground,
        expected=f"{compiler} {' | '.join(limits)}",
        actual=f"{compiler} {version}",
        facts=(*facts, *rivals),
    )
    yield context.locate(finding, stage.id)


def host_of(plan: Plan) -> tuple[str, str, Stage] | None:
    """The host compiler of a plan, its version, and the first stage that was given it."""
    by_kind = {
        match[1]: (match[2], stage)
        for stage in reversed(plan.stages)
        for match in filter(None, map(_HOST.match, stage.argv))
    }
    # clang defines the macros of GCC as well, so that it is asked first.
    kind = next((name for name in _COMPILERS if name in by_kind), None)
    if kind is None:
        return None
    packed, stage = by_kind[kind]
    return _COMPILERS[kind], _unpacked(packed), stage


def _unpacked(packed: str) -> str:
    """12.2.0 for 120200."""
    # Microsoft's number is used as it is (`_MSC_VER`).
    if len(packed) < _PACKED:
        return packed
    return f"{int(packed[:-4])}.{int(packed[-4:-2])}.{int(packed[-2:])}"


_Limits = tuple[tuple["Incompatibility", ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _limits(context: PlanContext, compiler: str, version: str) -> _Limits:
    # The hard fact, the limits as selectors, the facts, and those that would let the compiler pass.
    if compiler == "msvc":
        rows = context.toolkit.rows("cuda-msvc")
        barred = rows and not any(admits(cells["msvc"], version) for _, cells in rows)
        limits = dict.fromkeys(cells["msvc"] for _, cells in rows) if barred else {}
        return (), tuple(limits), tuple(row for row, _ in rows), ()
    ground = context.toolkit.refusal(compiler, version, {"machine": machine(context.plan)})
    if ground is None:
        return (), (), (), ()
    return (ground,), ground.values, ground.facts, context.toolkit.rivals(compiler, version)


def machine(plan: Plan) -> str:
    """The machine that the host code is made for, as the matrix calls it."""
    words = [word for stage in plan.stages for word in stage.argv if word.startswith("-cpu-arch=")]
    text = " ".join((plan.env.get("_TARGET_DIR_", ""), *words)).lower()
    return "aarch64" if "aarch64" in text or "sbsa" in text else "x86_64"


def programs(context: PlanContext) -> Iterator[Finding]:
    """Programs that clang names without a place, since it found them nowhere, and those that are not here."""
    bare: dict[str, Stage] = {}
    for stage in context.plan.stages:
        sought = _NO_NAME if context.here is None else _UNLOCATED
        if stage.argv and not sought.search(stage.argv[0]):
            bare.setdefault(stage.argv[0], stage)
    nvcc = context.plan.tool == "nvcc"
    for program, stage in bare.items():
        if context.here and not context.here.has_program(program, context.plan.env.get("PATH", "")):
            severity = "error"
        elif not context.here and not nvcc:
            severity = "warning"
        else:
            continue
        finding = Finding.of(
            "TM211", severity=severity, program=program, expected="a program that is found"
        )
        yield context.locate(finding, stage.id)


# By the end of its name; whatever else a driver is given it takes for a source.
_INPUTS = {
    "object": (".o", ".obj"),
    "library": (".a", ".lib", ".so"),
    "device code": (".ptx", ".cubin", ".fatbin", ".bc"),
}


def sources(context: PlanContext) -> Iterator[Finding]:
    """Files that are not there; of a plan made here each file that the command line names is looked for."""
    missing: dict[str, tuple[int | None, int]] = {}
    # nvcc leaves the full name of a source relative, clang says so, and either may exit with 0.
    for stage in context.plan.stages:
        pairs = zip(stage.argv, stage.argv[1:], strict=False)
        for path in (word for option, word in pairs if option == "--orig_src_path_name"):
            if not _ABSOLUTE.match(path):
                missing.setdefault(path, (stage.id, 0))
    for diagnostic in context.plan.diagnostics:
        for path in _MISSING.findall(diagnostic.text):
            missing.setdefault(path, (None, diagnostic.line))
    if context.here is not None:
        for stage in context.plan.stages:
            for path in stage.inputs:
                if path in (context.command or ()) and not context.here.has_file(path):
                    missing.setdefault(path, (stage.id, 0))
    for path, position in missing.items():
        kinds = (kind for kind, ends in _INPUTS.items() if path.endswith(ends))
        phrases = {"kind": next(kinds, "source")}
        finding = Finding.of("TM212", path=path, phrases=phrases, actual=path)
        yield context.locate(finding, *position)


def leaks(context: PlanContext) -> Iterator[Finding]:
    """Variables of the caller that nvcc takes for its own, with the words that are not of its profile."""
    env = context.plan.env
    roots = [env[name] for name in _ROOTS if env.get(name)]
    for name in _LEAKING if roots else ():
        foreign = [word for word in _split(env.get(name, "")) if not _own(word, roots)]
        if foreign:
            reader = next(
                (stage.id for stage in context.plan.stages if set(foreign) & set(stage.argv)), None
            )
            finding = Finding.of(
                "TM213", variable=name, foreign=tuple(foreign), actual=env[name].strip()
            )
            yield context.locate(finding, reader)
    for name in ADDED:
        if env.get(name, "").strip('" '):
            added = Finding.of(
                "TM213", "documented", severity="info", variable=name, actual=env[name]
            )
            yield context.locate(added, None)


def _split(value: str) -> list[str]:
    return [word.replace('"', "") for word in _WORDS.findall(value)]


def _own(word: str, roots: list[str]) -> bool:
    # nvcc's profile names places in the toolkit and of the system, and libraries of its own.
    option = _PATH_OPTION.match(word)
    path = word[option.end() :] if option else word
    if not path or _OWN_LIBRARY.match(word):
        return True
    if path.startswith(tuple(roots)) or path.startswith(_SYSTEM):
        return True
    home = _parts(roots[0] if roots[0].endswith("..") else posixpath.join(roots[0], ".."))
    parts = _parts(path)
    return len(parts) >= len(home) and all(map(_same, home, parts))


def _parts(path: str) -> list[str]:
    return posixpath.normpath(path.replace("\\", "/")).split("/")


def _same(long: str, part: str) -> bool:
    # On Windows nvcc may write a part of a path in its short form: `PROGRA~1` is `Program Files`.
    shortened = _SHORTENED.fullmatch(part)
    if shortened is None:
        return part == long
    return long.replace(" ", "").upper().startswith(shortened[1].upper())


def shell(context: PlanContext) -> Iterator[Finding]:
    """Words that the shell expands before a program sees them: nvcc quotes `"` alone and hands the line to `sh -c`."""
    # On Windows nvcc starts programs without a shell.
    if context.plan.tool != "nvcc" or "\\" in context.plan.env.get("_HERE_", ""):
        return
    expanded: dict[str, Stage] = {}
    for stage in context.plan.stages:
        for word in stage.argv[1:]:
            if _EXPANDED.search(word):
                expanded.setdefault(word, stage)
    for word, stage in expanded.items():
        finding = Finding.of("TM214", word=word, actual=word)
        yield context.locate(finding, stage.id)


def lineinfo(context: PlanContext) -> Iterator[Finding]:
    """`-G` beside `-lineinfo`: the former switches off what the latter asks for."""
    for stage in context.plan.stages:
        if stage.kind == "ptxas" and {"-g", "--generate-line-info"} <= set(stage.argv):
            yield context.locate(Finding.of("TM215", options=("-G", "-lineinfo")), stage.id)
            return


def device_link(context: PlanContext, code: DeviceCode) -> Iterator[Finding]:
    """Relocatable device code that is linked without a device link: the host link then misses its registration."""
    stages = context.plan.stages
    link = next((stage for stage in stages if stage.kind == "link"), None)
    device = any(stage.kind in DEVICE_LINKS for stage in stages)
    if link is not None and not device and any(part.relocatable for part in code.parts):
        finding = Finding.of("TM216", expected="a device link before the link")
        yield context.locate(finding, link.id)


def lto(context: PlanContext, code: DeviceCode) -> Iterator[Finding]:
    """Link-time optimization in one half alone."""
    links = [stage for stage in context.plan.stages if stage.kind == "nvlink"]
    compiled = [part for part in code.linked if part.archs(LTO)]
    wanted = [stage for stage in links if {"-dlto", "-lto"} & set(stage.argv)]
    if compiled and links and not wanted:
        # nvlink refuses intermediate alone ("LTO objects found, use -dlto"), and leaves it unused beside other code.
        alone = any({image.kind for image in part.images} == {LTO} for part in compiled)
        finding = Finding.of(
            "TM217",
            "compile",
            severity="error" if alone else "warning",
            half="compile",
            expected="-dlto",
        )
        yield context.locate(finding, links[0].id)
    # At link time alone it finds nothing to work on (nvcc --help, -dlto).
    if code.linked and wanted and not compiled and not code.outside:
        yield context.locate(Finding.of("TM217", "link", half="link"), wanted[0].id)


def idle(context: PlanContext) -> Iterator[Finding]:
    """Preparing stages that only write temp files from which nothing comes; none where preparing is all there is."""
    stages = context.plan.stages
    if all(stage.kind in _PREPARING for stage in stages):
        return
    useful = {stage.id for stage in stages if not _passing(stage)}
    # Backwards, so that one pass is enough: an edge leads from an earlier stage to a later one.
    for before, after in sorted(context.plan.edges, reverse=True):
        if after in useful:
            useful.add(before)
    lost = [stage for stage in stages if stage.id not in useful]
    if lost:
        tools = tuple(dict.fromkeys(stage.tool for stage in lost))
        finding = Finding.of(
            "TM218",
            "one" if len(lost) == 1 else "",
            tools=tools,
            phrases={"programs": listing(tools), "count": str(len(lost))},
            actual=" ".join(str(stage.id) for stage in lost),
        )
        yield context.locate(finding, lost[0].id)


def _passing(stage: Stage) -> bool:
    return stage.kind == "hash" or (
        stage.kind in _PREPARING and all(map(_TEMP.search, stage.outputs)) and bool(stage.outputs)
    )
