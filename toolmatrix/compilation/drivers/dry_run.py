"""Dry runs of real drivers, in a fresh directory and with a time limit; no printed command is run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

from toolmatrix.errors import ToolMissing, UsageError
from toolmatrix.value import Value

# Seconds that a dry run may take.
LIMIT = 60

# The number of output lines that an error repeats.
LAST_LINES = 12


class DriverFamily(Value):
    """Drivers with the same command line: their names, the options of a dry run, how to install them."""

    name: str
    programs: tuple[str, ...]
    dry: tuple[str, ...]
    install: str


FAMILIES = {
    family.name: family
    for family in (
        DriverFamily(
            name="nvcc",
            programs=("nvcc",),
            dry=("--dryrun",),
            install="install the CUDA toolkit (or `pip install nvidia-cuda-nvcc`) and put its bin directory on PATH",
        ),
        DriverFamily(
            name="hipcc",
            programs=("hipcc",),
            dry=("-###",),
            install="install hipcc (Debian and Ubuntu: `apt-get install hipcc`)",
        ),
        DriverFamily(
            name="clang",
            programs=("clang++", "clang"),
            dry=("-###",),
            install="install clang (Debian and Ubuntu: `apt-get install clang`)",
        ),
    )
}

# The drivers of a language; the first one on PATH is used.
_DRIVERS_BY_LANGUAGE = {"cuda": ("nvcc", "clang"), "hip": ("hipcc", "clang")}

# Words that say for which archs code is made.
_ARCH_WORDS = (
    *("-arch", "--gpu-architecture", "-gencode", "--generate-code"),
    *("--offload-arch", "--cuda-gpu-arch"),
)
_NVIDIA_PLATFORM = ("nvidia", "nvcc")
_PASSED_BY_ENVIRONMENT = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
_OWN_TEMPS = re.compile(r"--?(keep|keep-dir|save-temps|objtemp|objdir)(=.*)?|-save-temps=.*")

_SOURCES = (".cu", ".c", ".cc", ".cpp", ".cxx", ".ptx")

# Options of nvcc that are removed from a dry run; an empty group means that the value is the next word.
_STRIPPED = (
    (re.compile(r"(?:-t|--threads)=?(\d*)"), "nvcc's dry run is not reliable with threads"),
    (re.compile(r"--?time(?:=(.+))?"), "a dry run has no times to record"),
)


class DryRun(Value):
    """Output of a driver, and how it was called.

    `text` is both streams in order, with `work` in place of the fresh directory that held its temp files. `words`
    are the sources and flags it got, `asked` also those that the environment adds, for later checks.
    `notes` are sentences about what was chosen or left out.
    """

    family: str
    program: str
    words: tuple[str, ...]
    command_line: tuple[str, ...]
    env: Mapping[str, str]
    work: str
    text: str
    exit_code: int
    notes: tuple[str, ...] = ()

    def failure(self) -> ToolMissing | None:
        """The error if the driver failed: the end of its output."""
        if self.exit_code == 0:
            return None
        printed = [line for line in self.text.splitlines() if not line.startswith("#$ ")]
        return ToolMissing(
            f"`{_name(self.program)}` failed with exit code {self.exit_code}",
            found="\n".join(printed[-LAST_LINES:]),
            help="correct the reported error, or read a saved log with --from-log",
        )


def dry_run(
    sources: Sequence[str],
    flags: Sequence[str] = (),
    driver: str | None = None,
    *,
    archs: Sequence[str] = (),
    work: str = "",
    limit: float = LIMIT,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> DryRun:
    """Make a dry run for `archs` in addition to those of its flags; see `DryRun`.

    The driver runs in `cwd`, since sources and flags may be relative; its temp files go to a fresh directory, which
    the text calls `work` (by default the first source's name with `.stages`). Raises ToolMissing where the driver is
    missing or does not finish in `limit` seconds, UsageError for one of no known kind.
    """
    environment = dict(os.environ if environ is None else environ)
    family, program = find(sources, [*flags, *archs], driver, environment.get("PATH"))
    notes = [f"`{program}` was run: the first of its kind on PATH"] if driver is None else []
    typed = [*sources, *flags, *arch_flags(archs, family.name)]
    family, added = _platform(family, environment, notes)
    words, env = _without_stripped(family, typed, environment, notes)
    env |= added
    work = work or work_name(sources)
    prepended, appended = (_split(environment.get(name, "")) for name in _PASSED_BY_ENVIRONMENT)
    with tempfile.TemporaryDirectory(prefix="toolmatrix-") as fresh:
        command, temps = _command(family, program, words, fresh)
        code, text = _finish([*command, *family.dry], {**env, **temps}, cwd, limit)
        # The plan names `work`, so that two dry runs of the same words are the same text.
        text = text.replace(fresh, work)
    return DryRun(
        family=family.name,
        program=program,
        words=tuple(words),
        command_line=(program, *prepended, *words, *appended),
        env={name: value for name, value in env.items() if environment.get(name) != value},
        work=work,
        text=text,
        exit_code=code,
        notes=tuple(notes),
    )


def output_of(command: Sequence[str], env: Mapping[str, str], limit: float = LIMIT) -> str:
    """The output of a program. Raises ToolMissing where it cannot be started or does not finish."""
    return _finish(command, env, None, limit)[1]


def build(dry: DryRun, *, cwd: Path | None = None, limit: float) -> None:
    """Run the driver itself, with the words of the dry run and its temp files in `dry.work` under `cwd`.

    Raises ToolMissing where it fails or does not finish.
    """
    work = (cwd or Path.cwd()) / dry.work
    work.mkdir(parents=True, exist_ok=True)
    # What --keep names is part of what nvcc makes, so it has to be the relative path that a replay has.
    at = dry.work if dry.family == "nvcc" else str(work)
    command, temps = _command(FAMILIES[dry.family], dry.program, dry.words, at)
    code, text = _finish(command, {**os.environ, **dry.env, **temps}, cwd, limit)
    failed = dry.replace(text=text, exit_code=code).failure()
    if failed:
        raise failed


def work_name(sources: Sequence[str]) -> str:
    """A directory name for the temp files of some sources that needs no quoting in any shell."""
    stem = Path(sources[0]).stem if sources else "plan"
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", stem).lstrip("-.") + ".stages"


def find(
    sources: Sequence[str], flags: Sequence[str], driver: str | None, path: str | None = None
) -> tuple[DriverFamily, str]:
    """The driver's family and program: the one named, or the first on PATH that compiles such sources.

    Raises ToolMissing where there is none, UsageError where a named one is of no known kind.
    """
    if driver is not None:
        known = [family for name, family in FAMILIES.items() if name in _name(driver)]
        if not known:
            raise UsageError(
                "unknown kind of driver",
                expected="a program whose name holds nvcc, hipcc or clang",
                found=driver,
            )
        families, wanted = known[:1], {driver: known[0]}
    else:
        families = [FAMILIES[name] for name in _candidates(sources, flags)]
        wanted = {program: family for family in families for program in family.programs}
    for program, family in wanted.items():
        executable = shutil.which(program, path=path)
        if executable:
            return family, executable
    raise ToolMissing(
        f"`{next(iter(wanted))}` is not on PATH",
        help=f"{families[0].install}; or name the driver with --driver, or read a saved log with --from-log",
    )


def _candidates(sources: Sequence[str], flags: Sequence[str]) -> tuple[str, ...]:
    language = ""
    for word, following in zip(flags, [*flags[1:], ""], strict=False):
        if word.startswith("-x"):
            language = word[2:] or following
    if language not in _DRIVERS_BY_LANGUAGE:
        hip = any(source.endswith(".hip") for source in sources)
        language = "hip" if hip or any("gfx" in flag for flag in flags) else "cuda"
    names = _DRIVERS_BY_LANGUAGE[language]
    # Both compile CUDA; only clang understands its own words for it.
    spoken_to_clang = any(flag.startswith(("--cuda-", "--offload-")) for flag in flags)
    return names[::-1] if language == "cuda" and spoken_to_clang else names


def names_archs(flags: Iterable[str]) -> bool:
    """Check whether flags of a driver say for which archs code is made."""
    return any(word.startswith(_ARCH_WORDS) for word in flags)


def arch_flags(archs: Sequence[str], family: str) -> list[str]:
    """The driver's own flags for codegen archs: as `nvcc -arch=sm_NN` means it, SASS and the PTX that it is made of."""
    if family != "nvcc":
        return [f"--offload-arch={arch}" for arch in archs]
    # nvcc takes -arch once, so several archs need its longer words for the same.
    if len(archs) == 1:
        return [f"-arch={archs[0]}"]
    pairs = [(arch.replace("sm_", "compute_"), arch) for arch in archs]
    return [
        f"-gencode=arch={virtual},code={f'[{arch},{virtual}]' if arch != virtual else arch}"
        for virtual, arch in pairs
    ]


def _platform(
    family: DriverFamily, environment: Mapping[str, str], notes: list[str]
) -> tuple[DriverFamily, dict[str, str]]:
    # hipcc runs nvcc where HIP_PLATFORM says so, or where it is unset and nvcc is found: so it is always set.
    if family.name != "hipcc":
        return family, {}
    platform = environment.get("HIP_PLATFORM", "")
    if platform in _NVIDIA_PLATFORM:
        notes.append(f"HIP_PLATFORM={platform}: hipcc calls nvcc")
        return FAMILIES["nvcc"], {}
    notes.append(
        f"HIP_PLATFORM={platform or 'amd'}"
        + ("" if platform else " was chosen because it was not set")
    )
    return family, {"HIP_PLATFORM": platform or "amd"}


def _without_stripped(
    family: DriverFamily, words: Iterable[str], environment: Mapping[str, str], notes: list[str]
) -> tuple[list[str], dict[str, str]]:
    # nvcc adds words of two variables to those of its command line, so these are read as well.
    if family.name != "nvcc":
        return list(words), dict(environment)
    env = dict(environment)
    for name in _PASSED_BY_ENVIRONMENT:
        before = _split(env.get(name, ""))
        after = _strip(before, f" in {name}", notes)
        # What stays as it was keeps its own quotes.
        if after != before:
            env[name] = shlex.join(after)
    return _strip(list(words), "", notes), env


def _strip(words: Sequence[str], where: str, notes: list[str]) -> list[str]:
    remaining: list[str] = []
    rest = iter(words)
    for word in rest:
        for option, reason in _STRIPPED:
            match = option.fullmatch(word)
            if match:
                value = "" if match[1] else next(rest, "")
                notes.append(f"`{' '.join(filter(None, (word, value)))}`{where} left out: {reason}")
                break
        else:
            remaining.append(word)
    return remaining


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        # A quote is open, and nvcc will say so better.
        return text.split()


def _command(
    family: DriverFamily, program: str, words: Sequence[str], temps: str
) -> tuple[list[str], dict[str, str]]:
    # TMPDIR alone is not enough: nvcc puts its pid into the names there, so that no two runs make the same.
    keep: tuple[str, ...] = ()
    if family.name == "nvcc" and not _names_collide(words):
        keep = ("--keep", "--keep-dir", temps)
    return [program, *words, *keep], {"TMPDIR": temps}


def _names_collide(words: Sequence[str]) -> bool:
    # --keep drops the directory and the pid from the names, so sources of one name would overwrite each other.
    stems = [Path(word).stem for word in words if Path(word).suffix in _SOURCES]
    return len(set(stems)) < len(stems) or any(_OWN_TEMPS.fullmatch(word) for word in words)


def _finish(
    command: Sequence[str], env: Mapping[str, str], cwd: Path | None, limit: float
) -> tuple[int, str]:
    try:
        child = start_group(command, env, cwd)
    except OSError as error:
        raise ToolMissing(f"`{_name(command[0])}` cannot be started", found=str(error)) from error
    try:
        output, _ = child.communicate(timeout=limit)
    except BaseException as error:
        end_group(child)
        child.wait()
        if child.stdout:
            child.stdout.close()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        raise ToolMissing(
            f"`{_name(command[0])}` did not finish within {limit:g} s and was stopped",
            help="give it more time with --timeout, or read a saved log with --from-log",
        ) from error
    return child.returncode, output.decode("utf-8", "replace")


def start_group(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | str | None = None,
    output: int | IO[bytes] = subprocess.PIPE,
) -> subprocess.Popen[bytes]:
    """Start a program that leads a group of its own, without input, with both its streams in one.

    Raises OSError.
    """
    # What a program has started goes on when it alone is ended, so it gets a group of processes.
    return subprocess.Popen(  # noqa: S603 - the program that the user asked for, as a list of arguments
        list(command),
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def end_group(child: subprocess.Popen[bytes]) -> None:
    """End a process that leads a group of its own, and the whole group."""
    # A process that has just ended leads no group any more.
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        child.kill()


def _name(program: str) -> str:
    return Path(program).name
