"""What each kind of stage does, in a few words and in a sentence, and which flags of the driver change it.

Prose of ours, as data: a stage is described by the first row of its kind whose conditions all hold.
"""

from __future__ import annotations

import re

from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.stages import Plan, Stage

HOST, DEVICE, BOTH = "host", "device", "both"


class Step(Value):
    """What one sort of stage does.

    `name` is a few words, `does` a sentence in which `{arch}` stands for the arch, `flags` are those of the driver
    that change it. The conditions are patterns, empty where anything goes: `driver` and `tool` for the names,
    `word`, `reads` and `writes` for one of the words, inputs and outputs; `arch` says whether there must be one.
    """

    kind: str
    side: str
    name: str
    does: str
    flags: tuple[str, ...] = ()
    driver: str = ""
    tool: str = ""
    word: str = ""
    reads: str = ""
    writes: str = ""
    arch: bool | None = None

    def describes(self, driver: str, stage: Stage) -> bool:
        """Whether all conditions hold for a stage of a driver."""
        if self.arch is not None and self.arch != (stage.arch is not None):
            return False
        return all(
            not pattern or any(map(re.compile(pattern).search, texts))
            for pattern, texts in (
                (self.driver, (driver,)),
                (self.tool, (stage.tool,)),
                (self.word, stage.argv),
                (self.reads, stage.inputs),
                (self.writes, stage.outputs),
            )
        )


_NVCC = "^nvcc$"
_PREPROCESSOR = ("-D", "-I", "-include")
_ARCHS = ("-arch", "-gencode")
_FRONT = ("-std", "-rdc", "--extended-lambda", "--expt-relaxed-constexpr")
_OLD_FRONT = ("-ccbin", "-m32")
_HOST = ("-O", "-g", "-ccbin", "-Xcompiler")
_GFX = ("--offload-arch",)
_SPLIT_HOST = "keeps the host half of the source, and puts a call of the CUDA run time in place of each kernel launch"

_STEPS = (
    Step(
        kind="preprocess",
        side=DEVICE,
        name="preprocess",
        does="preprocesses what the first cudafe took out of the source, as C for {arch}",
        flags=(*_PREPROCESSOR, *_ARCHS),
        driver=_NVCC,
        reads=r"cudafe1\.gpu$",
    ),
    Step(
        kind="preprocess",
        side=DEVICE,
        name="preprocess",
        does="preprocesses what the second cudafe left of the device code, as C for {arch} and its compiler",
        flags=(*_PREPROCESSOR, *_ARCHS),
        driver=_NVCC,
        reads=r"cudafe2\.gpu$",
    ),
    Step(
        kind="preprocess",
        side=DEVICE,
        name="preprocess",
        does="expands the headers and macros of the source as the device sees them, with `__CUDA_ARCH__` "
        "set for {arch}",
        flags=(*_PREPROCESSOR, *_ARCHS),
        driver=_NVCC,
        arch=True,
    ),
    Step(
        kind="preprocess",
        side=HOST,
        name="preprocess",
        does="puts the host half together: expands it with the stubs that start the kernels and with the "
        "fat binary as an array of bytes",
        flags=("-D", "-I", "-Xcompiler"),
        driver=_NVCC,
        reads=r"cudafe\d\.cpp$",
    ),
    Step(
        kind="preprocess",
        side=HOST,
        name="preprocess",
        does="expands the headers and macros of the source as the host sees them",
        flags=(*_PREPROCESSOR, "-ccbin"),
        driver=_NVCC,
    ),
    Step(
        kind="preprocess",
        side=DEVICE,
        name="preprocess",
        does="expands the headers and macros of the source as {arch} sees them",
        flags=(*_PREPROCESSOR, *_GFX),
        arch=True,
    ),
    Step(
        kind="preprocess",
        side=HOST,
        name="preprocess",
        does="expands the headers and macros of the source as the host sees them",
        flags=_PREPROCESSOR,
    ),
    Step(
        kind="cudafe",
        side=HOST,
        name="split",
        does=_SPLIT_HOST,
        flags=_FRONT,
        tool=r"^cudafe\+\+",
        word=r"^--c\+\+|^--orig_src_",
    ),
    Step(
        kind="cudafe",
        side=HOST,
        name="split",
        does=_SPLIT_HOST,
        flags=_OLD_FRONT,
        tool=r"^cudafe\+\+",
    ),
    Step(
        kind="cudafe",
        side=DEVICE,
        name="strip",
        does="drops from the device code what no kernel for {arch} needs",
        flags=_OLD_FRONT,
        writes=r"cudafe2\.gpu$",
    ),
    Step(
        kind="cudafe",
        side=DEVICE,
        name="split",
        does="takes the device code out of the source, and writes the stubs with which the host starts the "
        "kernels",
        flags=_OLD_FRONT,
    ),
    Step(
        kind="hash",
        side=DEVICE,
        name="hash",
        does="takes a checksum of the device code, so that equal code can be recognised",
    ),
    Step(
        kind="cicc",
        side=DEVICE,
        name="to LTO code",
        does="compiles the device code for {arch} to intermediate code: machine code is made when everything "
        "is linked",
        flags=("-dlto", "-gencode"),
        word=r"^-lto$",
    ),
    Step(
        kind="cicc",
        side=DEVICE,
        name="to OptiX IR",
        does="compiles the device code for {arch} to the intermediate code that OptiX takes",
        flags=("-optix-ir", "-arch"),
        writes=r"\.optixir$",
    ),
    Step(
        kind="cicc",
        side=DEVICE,
        name="to PTX",
        does="compiles the device code to PTX, the assembly of the virtual architecture {arch}, which a driver "
        "can still translate for newer devices",
        flags=(*_ARCHS, "-use_fast_math", "-fmad", "-G"),
    ),
    Step(
        kind="ptxas",
        side=DEVICE,
        name="to SASS",
        does="assembles the PTX to SASS, the machine code of {arch}, in a cubin",
        flags=(*_ARCHS, "-Xptxas", "-maxrregcount", "-G"),
        writes=".",
    ),
    Step(
        kind="ptxas",
        side=DEVICE,
        name="check PTX",
        does="checks that the PTX can be assembled, and writes nothing",
        flags=_ARCHS,
    ),
    Step(
        kind="tileiras",
        side=DEVICE,
        name="tile to SASS",
        does="compiles the tile code to the machine code of {arch}",
        flags=("--enable-tile", "-gencode"),
    ),
    Step(
        kind="fatbinary",
        side=DEVICE,
        name="bundle",
        does="bundles the linked device code of all archs into a fat binary, written as a C array for the "
        "link stub",
        flags=_ARCHS,
        word=r"^-link$",
    ),
    Step(
        kind="fatbinary",
        side=DEVICE,
        name="bundle",
        does="bundles SASS and PTX of all archs into a fat binary, written as a C array that the host code "
        "includes",
        flags=_ARCHS,
        writes=r"\.fatbin\.c$",
    ),
    Step(
        kind="fatbinary",
        side=DEVICE,
        name="bundle",
        does="bundles SASS and PTX of all archs into a fat binary",
        flags=_ARCHS,
    ),
    Step(
        kind="nvlink",
        side=DEVICE,
        name="device link",
        does="links the relocatable device code of all objects and libraries for {arch}",
        flags=("-rdc", "-dlink", "-dlto", "-Xnvlink", "-l"),
    ),
    Step(
        kind="host-compile",
        side=HOST,
        name="compile stub",
        does="compiles the stub that registers the linked device code with the CUDA run time",
        flags=("-rdc", "-dlink"),
        word=r"(^|[\\/])link\.stub$",
    ),
    Step(
        kind="host-compile",
        side=HOST,
        name="compile",
        does="compiles the host half, the fat binary inside, to an object",
        flags=_HOST,
        driver=_NVCC,
        reads=r"cudafe\d\.cpp$|\.cu\.cpp\.ii$",
    ),
    Step(
        kind="host-compile",
        side=HOST,
        name="compile",
        does="compiles a file without device code, as the host compiler alone would",
        flags=_HOST,
        driver=_NVCC,
    ),
    Step(
        kind="host-compile",
        side=HOST,
        name="compile",
        does="compiles the source for the host once more, with the device code of all archs inside",
        flags=("-O", "-g", "-std", "--offload-host-only"),
        word=r"^-fcuda-include-gpubinary$|^-fembed-offload-object=",
    ),
    Step(
        kind="host-compile",
        side=HOST,
        name="compile",
        does="compiles the source for the host",
        flags=("-O", "-g", "-std", "--offload-host-only"),
    ),
    Step(
        kind="device-compile",
        side=DEVICE,
        name="to bitcode",
        does="compiles the device half of the source to LLVM bitcode for {arch}; machine code is made when it is "
        "linked",
        flags=(*_GFX, "-O", "-D", "-I", "-fgpu-rdc"),
        word=r"^-emit-llvm(-bc)?$",
    ),
    Step(
        kind="device-compile",
        side=DEVICE,
        name="to assembly",
        does="compiles the device half of the source to the assembly of {arch}",
        flags=(*_GFX, "-O", "-D", "-I"),
        word=r"^-S$",
    ),
    Step(
        kind="device-compile",
        side=DEVICE,
        name="compile",
        does="compiles the device half of the source for {arch}",
        flags=(*_GFX, "-O", "-D", "-I", "-fgpu-rdc"),
    ),
    Step(
        kind="device-link",
        side=DEVICE,
        name="device link",
        does="links the device code for {arch} with the device libraries to a code object",
        flags=(*_GFX, "-fgpu-rdc", "-Xoffload-linker"),
    ),
    Step(
        kind="bundle",
        side=DEVICE,
        name="bundle",
        does="bundles the code objects of all archs into one file, which the host code embeds",
        flags=(*_GFX, "--offload-compress"),
        writes=r"\.hipfb$",
    ),
    Step(
        kind="bundle",
        side=BOTH,
        name="bundle",
        does="bundles what was made for the host and for each arch into one file",
        flags=(*_GFX, "-fgpu-rdc", "--offload-compress"),
    ),
    Step(
        kind="unbundle",
        side=BOTH,
        name="unbundle",
        does="takes the part of the host or of an arch out of a bundle",
        flags=(*_GFX, "-fgpu-rdc"),
    ),
    Step(
        kind="package",
        side=DEVICE,
        name="package",
        does="packs the device code of all archs into one file",
        flags=(*_GFX, "--offload-compress"),
    ),
    Step(
        kind="linker-wrapper",
        side=DEVICE,
        name="device link",
        does="links the packed device code of each arch and bundles it for the host to embed; how is not in this "
        "log",
        flags=(*_GFX, "-fgpu-rdc", "-Xoffload-linker"),
        word=r"^--emit-fatbin-only$",
    ),
    Step(
        kind="linker-wrapper",
        side=BOTH,
        name="link",
        does="links the device code that it finds in the objects, then the host code; how is not in this log",
        flags=("--offload-new-driver", "-fgpu-rdc", "-l", "-L", "-Xoffload-linker"),
    ),
    Step(
        kind="assemble",
        side=HOST,
        name="embed",
        does="makes an object that holds the linked device code",
        flags=("-fgpu-rdc",),
        reads=r"\.(mcin|hipfb)$",
    ),
    Step(
        kind="assemble",
        side=DEVICE,
        name="assemble",
        does="assembles the device code of {arch} to an object",
        flags=(*_GFX, "-save-temps"),
        arch=True,
    ),
    Step(kind="assemble", side=HOST, name="assemble", does="assembles to an object"),
    Step(
        kind="link",
        side=HOST,
        name="archive",
        does="puts the objects into a library",
        flags=("-lib",),
        tool=r"^(.*-)?ar$|^lib(\.exe)?$",
    ),
    Step(
        kind="link",
        side=HOST,
        name="link",
        does="links the objects with the CUDA run time and the libraries of the host",
        flags=("-l", "-L", "-cudart", "-shared", "-Xlinker"),
        driver=_NVCC,
        word="^-lcudart_static$|^-lcudadevrt$",
    ),
    Step(
        kind="link",
        side=HOST,
        name="link",
        does="links the objects with the CUDA run time and the libraries of the host",
        flags=("-l", "-L", "-shared", "-Xlinker"),
        driver=_NVCC,
    ),
    Step(
        kind="link",
        side=HOST,
        name="link",
        does="links the objects with the run time and the libraries of the host",
        flags=("-l", "-L", "-shared", "-Wl,"),
    ),
    Step(
        kind="other",
        side=DEVICE,
        name="prune",
        does="drops device code of other archs from the libraries before they are linked",
        flags=("-prune",),
        tool="^nvprune",
    ),
    Step(
        kind="other",
        side=BOTH,
        name="unknown",
        does="runs a program, or uses one in a way, that toolmatrix does not know; what its words name may be read or "
        "written",
    ),
)

_BY_KIND: dict[str, tuple[Step, ...]] = {
    kind: tuple(step for step in _STEPS if step.kind == kind)
    for kind in {one.kind for one in _STEPS}
}


def step_of(plan: Plan, stage: Stage) -> Step:
    """What a stage of a plan does; a kind of which nothing is written is told as unknown."""
    for step in _BY_KIND.get(stage.kind, ()):
        if step.describes(plan.tool, stage):
            return step
    return _BY_KIND["other"][-1]


def sentence(step: Step, arch: str | None) -> str:
    """What a stage does for an arch, and what changes it."""
    does = step.does.replace("{arch}", arch or "the device")
    if not step.flags:
        return does
    flags = [f"`{flag}`" for flag in step.flags]
    verb = "changes it" if len(flags) == 1 else "change it"
    *first, last = flags
    return f"{does}; {', '.join(first)}{' and ' if first else ''}{last} {verb}"
