"""Compiler flags of an answer: what the target and the request ask for, in the options of the chosen compiler.

Flags that were solved as components are taken as chosen; CPU names that archspec knows are spelled by archspec for the
chosen compiler and version. No I/O; archspec is imported only where a CPU was named.
"""

from __future__ import annotations

from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolmatrix.solve.resolve import Resolution

PTX = "compute_"
"""The beginning of the names of codegen archs that are not machine code: the driver compiles them."""


class Flags(Value):
    """Flags of one target; `missing` are wishes that the chosen compiler cannot say."""

    cflags: tuple[str, ...]
    cxxflags: tuple[str, ...]
    nvcc: tuple[str, ...]
    hipcc: tuple[str, ...]
    env: Mapping[str, str]
    archspec: str
    missing: tuple[str, ...]


def cpu_names() -> tuple[str, ...]:
    """The names of the CPUs that archspec knows."""
    from archspec.cpu import TARGETS

    return tuple(sorted(TARGETS))


def family(cpu: str) -> str:
    """The machine a CPU belongs to (`x86_64`, `aarch64`), or nothing where archspec does not know the CPU."""
    from archspec.cpu import TARGETS

    known = TARGETS.get(cpu) or TARGETS.get(cpu.replace("-", "_"))
    return str(known.family) if known is not None else ""


def of(resolution: Resolution, target: str) -> Flags:
    """The flags of one target of an answer."""
    index, request = resolution.index, resolution.request
    choices, chosen = resolution.targets[target], resolution.chosen(target)
    components = index.header["components"]
    host = [choice.version for choice in choices if components[choice.component]["flag"]]
    missing = [
        f"{component} {releases[0]}"
        for owner, component, releases in request.policies
        if owner == target and component not in chosen
    ]
    version, flag = "", f"-mcpu={request.cpu}"
    if request.cpu and flag not in host and f"{flag}+crc" not in host:
        spelled, version, complaint = _archspec(request.cpu, chosen)
        if flag in spelled and index.scale("cpu-flag").select(flag):
            # The facts know the name and this compiler does not: an early point release of its series.
            spelled, version, complaint = _archspec(request.cpu, chosen, ".0")
        if spelled:
            host = [flag for flag in host if not flag.startswith(("-march=", "-mcpu="))]
            host += spelled
        elif complaint:
            missing.append(complaint)
    # What is installed was compiled already: its archs are what it holds, and no flag makes others.
    built = any(ask.component == "from" and ask.selector == "source" for ask in request.asks)
    archs = [choice.version for choice in choices if choice.component == "arch"] if built else []
    return Flags(
        cflags=tuple(host),
        cxxflags=tuple(host),
        nvcc=tuple(nvcc(archs, host)),
        hipcc=tuple(hipcc(archs)),
        env={},
        archspec=version,
        missing=tuple(missing),
    )


def hipcc(archs: Iterable[str]) -> list[str]:
    """The flags of hipcc that make code for archs."""
    return [f"--offload-arch={arch}" for arch in dict.fromkeys(archs) if arch.startswith("gfx")]


def nvcc(archs: Iterable[str], host: Iterable[str] = ()) -> list[str]:
    """The flags of nvcc that make code for archs, and those that it hands to the host compiler."""
    flags = []
    for arch in dict.fromkeys(archs):
        # nvcc takes machine code as `sm_NN` of a virtual arch, and PTX as the virtual arch itself.
        kind, _, number = arch.partition("_")
        if kind == "sm":
            flags.append(f"-gencode=arch=compute_{number},code=sm_{number}")
        elif kind == "compute":
            flags.append(f"-gencode=arch=compute_{number},code=compute_{number}")
    # The host compiler gets the flags of the target through nvcc.
    return [*flags, *(f"-Xcompiler={flag}" for flag in host)] if flags else []


def _archspec(
    cpu: str, chosen: Mapping[str, str], point: str = ".99"
) -> tuple[tuple[str, ...], str, str]:
    """archspec's flags for a CPU as the chosen compiler says them, archspec's version, or what it cannot say."""
    import archspec
    from archspec.cpu import TARGETS, UnsupportedMicroarchitecture

    compiler = next((name for name in ("clang", "gcc") if name in chosen), "")
    # archspec has underscores where GCC has hyphens.
    name = cpu if cpu in TARGETS else cpu.replace("-", "_")
    if not compiler or name not in TARGETS:
        return (), "", f"--cpu {cpu}" if compiler else ""
    # A series means its latest point release, which most packages of it hold: archspec compares full versions.
    version = chosen[compiler] + (point if "." not in chosen[compiler] else "")
    try:
        flags = TARGETS[name].optimization_flags(compiler, version)
    except UnsupportedMicroarchitecture:
        return (), "", f"--cpu {cpu} with {compiler} {chosen[compiler]}"
    return tuple(flags.split()), archspec.__version__, ""
