"""What the log of a failure shows of the machine and its environment, and the words by which a remedy keeps it.

A remedy changes the sides of the relation that failed and nothing else that the log names: a log of ROCm gets no CUDA,
one of macOS neither, one of TensorFlow no PyTorch, and the Python, the driver, the GPU and the glibc of the log stay.
"""

from __future__ import annotations

import re

from toolmatrix.factbase import products
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.inspection.model import Seen
    from toolmatrix.logs.log import Fix

    Solve = Callable[[tuple[str, ...]], Fix | None]
    """Answers the words of a request, None where it does not resolve."""

CUDA, ROCM, NONE = "cuda", "rocm", "none"
# What does not run where a log is from, by the vendor of its GPU; on macOS neither does.
_FOREIGN: Mapping[str, frozenset[str]] = {
    "": frozenset(),
    CUDA: frozenset((ROCM,)),
    ROCM: frozenset((CUDA,)),
    NONE: frozenset((CUDA, ROCM)),
}
# Options by which a request says where its answer runs.
_PLACED = ("--device", "--arch", "--target", "--accelerator")
# So many answers are looked at, each after the words by which it keeps one more of what the log shows.
_MOST = 8
# Names in an answer that follow from the place that it is solved for.
_PLACE = ("device", "arch", "distro", "base-image")


class Constraints(Value):
    """The constraints of a log: vendor of the GPU, device, and the releases that stay; "" for what is unknown.

    On macOS the vendor is `none`.
    """

    vendor: str
    device: str
    releases: Mapping[str, str]
    builds: Mapping[str, str]
    programs: tuple[str, ...]

    def apply(self, words: tuple[str, ...], free: Collection[str], solve: Solve) -> Fix | None:
        """The answer to a request under these constraints, with the words that it needs for that; None if it has none.

        `free` are the components that the remedy may change.
        """
        if self.names_another_program(words, free):
            return None
        words, fix = self.settled(words, free, solve)
        if fix is None:
            return None
        for added in self.placing(words, fix, free):
            more, there = self.settled((*words, *added), free, solve)
            if there is None:
                return None
            if _installed(there) != _installed(fix):
                words, fix = more, there
        return fix

    def settled(
        self, words: tuple[str, ...], free: Collection[str], solve: Solve
    ) -> tuple[tuple[str, ...], Fix | None]:
        """A request with the words by which its answer contradicts no release of the log, and that answer."""
        for _ in range(_MOST):
            fix = solve(words)
            added = None if fix is None else self.contradicted(words, fix.answer, free)
            if added is None:
                return words, fix
            if not added:
                break
            words += added
        return words, None

    def names_another_program(self, words: Sequence[str], free: Collection[str]) -> bool:
        """Check whether a request is about a framework that the log does not show, while it shows another one."""
        visible = [name for name in self.programs if name in self.releases]
        named = {_name(word) for word in words} & {*self.programs}
        return bool(visible and named) and not named & {*visible, *free}

    def contradicted(
        self, words: Sequence[str], answer: Mapping[str, str], free: Collection[str]
    ) -> tuple[str, ...] | None:
        """The words by which an answer keeps what it contradicts, () where none do, None where there is nothing."""
        if not _FOREIGN[self.vendor].isdisjoint(answer):
            is_placed = self.vendor == CUDA or not {*_PLACED}.isdisjoint(words)
            return () if is_placed else ("--accelerator", self.vendor)
        # A component that a request names without a release is one to be shown.
        named = {_name(word) for word in words if _name(word) != word}
        for name, release in self.releases.items():
            if name not in answer or name in free or name in named:
                continue
            if name == "driver":
                if _numbers(answer[name]) > _numbers(release):
                    return ("--with", f"driver=={release}")
            elif not _same_series(answer[name], release):
                return ("--with", f"{name}=={release}")
        return None

    def placing(
        self, words: Sequence[str], fix: Fix, free: Collection[str]
    ) -> Iterator[tuple[str, str]]:
        """The words that place an answer on the log's GPU, and on its glibc."""
        built = any(name.endswith("-variant") for name in fix.answer)
        # The build that the log shows was taken for its GPU, whichever of its parts failed.
        placed = {*_PLACED[:2]} & {*words} or any(
            fix.answer.get(f"{name}-variant", "").startswith(f"{build}@")
            for name, build in self.builds.items()
        )
        if self.device and not placed and (built or {CUDA, ROCM} & {*fix.answer}):
            yield "--device", self.device
        glibc = self.releases.get("glibc")
        if glibc and built and not {"glibc", "distro"} & {*free, *map(_name, words)}:
            yield "--with", f"glibc=={glibc}"


def of_log(programs: Sequence[str], sightings: Mapping[str, Seen], gpu: str) -> Constraints:
    """The constraints that a log shows by the versions seen in it, and by the device of its GPUs."""
    versions = {name: sighting.version for name, sighting in sightings.items()}
    releases = {
        name: versions[name].partition("+")[0] for name in ("driver", *programs) if name in versions
    }
    for name, numbers in (("python", 2), ("glibc", 2)):
        if name in versions:
            releases[name] = ".".join(versions[name].split(".")[:numbers])
    device = versions.get("device", gpu)
    return Constraints(
        vendor=_vendor(versions, device),
        device=device,
        releases=releases,
        builds={name: versions[name] for name in programs if "+" in versions.get(name, "")},
        programs=tuple(programs),
    )


def device_of(index: Index, gpus: Iterable[Seen]) -> str:
    """The device that all GPUs of a log are by their names, "" where these are several or unknown."""
    devices = {device for gpu in gpus for device, _ in products.find(index, gpu.version)}
    return devices.pop() if len(devices) == 1 else ""


def _vendor(versions: Mapping[str, str], device: str) -> str:
    if "macos" in versions:
        return NONE
    local = versions.get("torch", "").partition("+")[2]
    rocm = local.startswith(ROCM) or {"torch-rocm", ROCM} & {*versions} or device.startswith("gfx")
    cuda = local.startswith("cu") or {"torch-cuda", "driver"} & {*versions} or device[:1].isdigit()
    return "" if bool(rocm) == bool(cuda) else ROCM if rocm else CUDA


def _installed(fix: Fix) -> tuple[dict[str, str], tuple[str, ...]]:
    return {
        name: release for name, release in fix.answer.items() if name not in _PLACE
    }, fix.install


def _name(word: str) -> str:
    return re.split(r"[<>=!~\[]", word, maxsplit=1)[0]


def _same_series(left: str, right: str) -> bool:
    # A log may name a release with fewer or more numbers than the matrix.
    short, long = sorted((left, right), key=len)
    return f"{long}.".startswith(f"{short}.")


def _numbers(release: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d{1,9}", release)]
