"""The plan of a driver that is not installed, from the order of stages that captures of its releases show.

The order is a fact: words such as `cudafe++! each(preprocess cicc ptxas) fatbinary`, see the tables nvcc-stages and
hipcc-stages. Inputs and outputs of a stage are the same in every release that has it, see steps.yaml. Commands have
only the words that decide a stage, not all that a driver would print.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePath

from toolmatrix.compilation import model
from toolmatrix.compilation.model import Plan, Stage
from toolmatrix.errors import ToolMissing, UsageError
from toolmatrix.resources import load_yaml, of_package
from toolmatrix.value import Value

_STEP = re.compile(r"(each|last|others)\(([^)]*)\)|(\S+)")
_GENCODE = re.compile(r"arch=(?P<virtual>\w+),code=\[?(?P<codes>[\w,]+)\]?")
# Words that change no stage; those that end in a blank take the next word.
_HARMLESS = (
    *("-D", "-I", "-O", "-g", "-W", "-w", "-m", "-f", "-std=", "--std=", "-isystem ", "-include "),
    *("-Xcompiler", "-Xptxas", "-use_fast_math", "-lineinfo", "--expt-", "--extended-"),
    *("-allow-unsupported-compiler", "-l", "-L", "-G", "-v", "-maxrregcount"),
)
_VALUED = ("-Xcompiler", "-Xptxas", "-isystem", "-include", "-D", "-I", "-L", "-l")
# File endings that a driver takes for sources of device code.
_SOURCES = {"nvcc": (".cu",), "hipcc": (".hip", ".cu", ".cpp")}
# These begin like harmless words, but change the plan.
_OTHERWISE = ("-fatbin", "-fgpu-rdc", "-gpu", "-lib", "-ltoir", "-flto")
_TARGET = re.compile(r"gfx[0-9a-f]+(:[a-z+-]+)*")


class Code(Value):
    """Code for one virtual arch: the real archs that it is assembled for, and whether it stays as PTX as well."""

    virtual: str
    real: tuple[str, ...]
    ptx: bool = False


class CommandWords(Value):
    """The request of a command line: codegen archs, the output file, and whether that is an object."""

    codes: tuple[Code, ...]
    output: str = ""
    compiles: bool = False
    # The host compiler by name, where one is named.
    ccbin: str = ""


class _Step(Value):
    # The kind of arch of the stage: `virtual`, `real`, `checked` (PTX that is not assembled), or none.
    kind: str
    tool: str
    arch: str = ""
    words: Sequence[str] = ()
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()


@cache
def _steps() -> Mapping[str, _Step]:
    return {
        name: _Step(**step)
        for name, step in load_yaml(of_package("compilation", "steps.yaml")).items()
    }


# Stages that read the module id, once it is written.
_NAMED_BY_MODULE = ("cudafe", "cudafe-2", "cudafe++", "cicc")
_MODULE = "{stem}.module_id"
# The arch of a stage that checks the PTX of code without a real arch.
_OF = {"checked": "virtual"}


class Order(Value):
    """The order of stages: of each source, and of a link; `images` is how fatbinary names what it bundles."""

    compile: str
    link: str
    images: str = ""


def parse_command_words(words: Sequence[str], archs: Sequence[str] = ()) -> CommandWords:
    """The request of a command line, with `archs` as the default.

    Raises ToolMissing for a word whose effect on the stages only a driver knows.
    """
    codes: dict[str, Code] = {}
    output, ccbin, compiles, rest = "", "", False, list(words)
    while rest:
        word = rest.pop(0)
        if rest and word in (
            "-o",
            "-arch",
            "-gencode",
            "--gpu-architecture",
            "--generate-code",
            "-ccbin",
        ):
            word = f"{word}={rest.pop(0)}"
        name, _, value = word.partition("=")
        if word == "-c":
            compiles = True
        elif name == "-o":
            output = value
        elif name == "-ccbin":
            ccbin = PurePath(value).name
        elif name in ("-gencode", "--generate-code") and (gencode := _GENCODE.fullmatch(value)):
            for arch_name in gencode["codes"].split(","):
                _add(codes, gencode["virtual"], arch_name)
        elif name in ("-arch", "--gpu-architecture") and value.startswith("sm_"):
            virtual = value.replace("sm_", "compute_")
            _add(codes, virtual, value)
            _add(codes, virtual, virtual)
        elif name == "--offload-arch" and _TARGET.fullmatch(value):
            _add(codes, value, value)
        elif word.startswith(_HARMLESS) and not word.startswith(_OTHERWISE):
            if word in _VALUED and rest:
                rest.pop(0)
        else:
            raise ToolMissing(
                f"only a driver knows how `{word}` changes the stages",
                expected="options that leave the stages as they are, `-c`, `-o FILE` and archs",
            )
    for arch in archs if not codes else ():
        virtual = arch.replace("sm_", "compute_")
        _add(codes, virtual, arch)
        if virtual != arch:
            _add(codes, virtual, virtual)
    # clang sorts its targets by name; nvcc keeps the order that it was asked in.
    ordered = (
        sorted(codes.items()) if all(name.startswith("gfx") for name in codes) else codes.items()
    )
    sorted_codes = tuple(code for _, code in ordered)
    return CommandWords(codes=sorted_codes, output=output, compiles=compiles, ccbin=ccbin)


def _add(codes: dict[str, Code], virtual: str, arch: str) -> None:
    code = codes.get(virtual, Code(virtual=virtual, real=()))
    ptx = code.ptx or (arch == virtual and arch.startswith("compute_"))
    # nvcc assembles code of a family for that family.
    arch += "f" if virtual.endswith("f") and arch[-1:].isdecimal() else ""
    real = code.real if arch.startswith("compute_") else tuple(dict.fromkeys((*code.real, arch)))
    codes[virtual] = code.replace(real=real, ptx=ptx)


def plan(
    tool: str,
    version: str,
    order: Order,
    request: CommandWords,
    sources: Sequence[str],
    host: tuple[str, str] = ("", ""),
    *,
    hip: str = "",
) -> Plan:
    """The stages in their order; `host` is the host compiler and its version. Raises UsageError, ToolMissing."""
    if not request.codes:
        raise UsageError("no arch is named", expected="an arch to make code for")
    other = next((source for source in sources if not source.endswith(_SOURCES[tool])), "")
    if other:
        raise ToolMissing(
            f"only a driver knows what {tool} does with `{other}`",
            expected=f"sources that end in {' or '.join(_SOURCES[tool])}",
        )
    stages: list[Stage] = []
    stems = [PurePath(source).stem for source in sources]
    objects = [
        request.output if request.compiles and request.output else f"{stem}.o" for stem in stems
    ]
    whole = _scope(request, host) | {"objects": tuple(objects)}
    for source, stem, target_object in zip(sources, stems, objects, strict=True):
        own = whole | {"source": source, "stem": stem, "object": target_object}
        _add_stages(stages, order.compile, own, request.codes, order.images)
    if not request.compiles:
        product = request.output or "a.out"
        link = f"{PurePath(product).stem}_dlink"
        own = whole | {"product": product, "link": link, "stem": link}
        _add_stages(stages, order.link, own, request.codes, order.images)
    return Plan(
        tool=tool,
        version=version,
        line=1,
        env={},
        stages=tuple(stages),
        edges=model.stage_edges(stages),
        hip=hip,
    )


_Scope = dict[str, "str | tuple[str, ...]"]


def _scope(request: CommandWords, host: tuple[str, str]) -> _Scope:
    compiler, version = host
    numbers = [int(part) for part in version.split(".") if part.isdecimal()]
    major, minor, patch = (*numbers, 0, 0, 0)[:3]
    name = {"gcc": "gnu", "clang": "clang"}.get(compiler, "")
    clang = compiler == "clang"
    targets = (f"hipv4-amdgcn-amd-amdhsa--{code.virtual}" for code in request.codes)
    return {
        "cc": request.ccbin or ("clang" if clang else "gcc"),
        "ld": request.ccbin or ("clang++" if clang else "g++"),
        "host": (f"--{name}_version={major}{minor:02}{patch:02}",) if name and numbers else (),
        "targets": ",".join(("host-x86_64-unknown-linux", *targets)),
    }


def _add_stages(
    stages: list[Stage], order: str, scope: _Scope, codes: Sequence[Code], images: str
) -> None:
    """Add the stages of one source, or of a link."""
    stem = str(scope["stem"])
    at = {code.virtual: f"{stem}.{code.virtual}" if len(codes) > 1 else stem for code in codes}
    names = scope | _joined(stem, codes, at, images)
    for name, code, real, alone in _each(order, codes):
        own = at[code.virtual]
        more: _Scope = {
            "at": own,
            "own": own if alone else stem,
            "virtual": code.virtual,
            "number": code.virtual.rpartition("_")[2].rstrip("af"),
            "real": real,
            "cubin": _cubin(own, code, real),
        }
        stages.append(_stage(stages, name, names | more))


def _each(order: str, codes: Sequence[Code]) -> Iterator[tuple[str, Code, str, bool]]:
    """Each stage of an order, with its code, its real arch if it has one, and whether it is for that code alone."""
    groups = {"each": codes, "last": codes[-1:], "others": codes[:-1]}
    every = tuple(dict.fromkeys(real for code in codes for real in code.real))
    for group, inside, single in _STEP.findall(order):
        for code in groups.get(group, codes[-1:]):
            for name in (inside or single).split():
                reals = {
                    "real": code.real if group else every,
                    "checked": () if code.real else (code.virtual,),
                }
                for real in reals.get(_steps()[name.rstrip("!")].arch, ("",)):
                    yield name, code, real, bool(group)


def _joined(stem: str, codes: Sequence[Code], at: Mapping[str, str], images: str) -> _Scope:
    # The inputs of stages that join the codes of all archs.
    inside = [
        image
        for code in codes
        for image in (
            *((real, code.virtual, _cubin(at[code.virtual], code, real)) for real in code.real),
            *(((code.virtual, "", f"{at[code.virtual]}.ptx"),) if code.ptx else ()),
        )
    ]
    linked = [(real, code.virtual, f"{stem}.{real}.cubin") for code in codes for real in code.real]
    return {
        "first": at[codes[0].virtual],
        "hashed": tuple(f"{prefix}.cpp3.i" for prefix in at.values()),
        "images": tuple(path for *_, path in inside),
        "bundled": tuple(_image(images, *image) for image in inside),
        "linked": tuple(path for *_, path in linked),
        "relinked": tuple(_image(images, *image) for image in linked),
        "outs": tuple(f"{stem}-{code.virtual}.out" for code in codes),
    }


def _cubin(at: str, code: Code, real: str) -> str:
    alone = len(code.real) == 1 and not code.ptx
    return f"{at}.cubin" if alone else f"{at}.{real}.cubin"


def _image(images: str, arch: str, virtual: str, path: str) -> str:
    if images == "profile":
        return f"--image=profile={arch}{'@' * bool(virtual)}{virtual},file={path}"
    kind = "elf" if virtual else "ptx"
    return f"--image3=kind={kind},sm={arch.partition('_')[2]},file={path}"


def _stage(stages: Sequence[Stage], name: str, scope: _Scope) -> Stage:
    step = _steps()[name.rstrip("!")]
    reads, writes, words = (
        tuple(word for text in texts for word in _expand(text, scope))
        for texts in (step.reads, step.writes, step.words)
    )
    module = _MODULE.format(**scope)
    if name.endswith("!"):
        writes = (*writes, module)
    elif name in _NAMED_BY_MODULE and any(module in stage.outputs for stage in stages):
        reads = (*reads, module)
    argv = (*_expand(step.tool, scope), *words, *reads, *(f"-o{path}" for path in writes[:1]))
    return Stage(
        id=len(stages),
        line=len(stages) + 1,
        kind=step.kind,
        tool=argv[0],
        arch=str(scope[_OF.get(step.arch, step.arch)]) if step.arch else None,
        inputs=reads,
        outputs=writes,
        argv=argv,
        text=shlex.join(argv),
    )


def _expand(text: str, scope: _Scope) -> tuple[str, ...]:
    # A name with several values is alone in its braces.
    many = scope.get(text[1:-1]) if text.startswith("{") else None
    return many if isinstance(many, tuple) else (text.format(**scope),)
