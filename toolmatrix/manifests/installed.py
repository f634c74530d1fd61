"""What pastes list, put together: packages, and values of a machine, that agree are one environment.

A report or a list that contradicts those before it begins the next one. If one environment has two values of its
machine, neither counts.
"""

from __future__ import annotations

import re

from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import CONDA, PIP, Item, ManifestEnvironment, NotRead, Traced
from toolmatrix.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What a build of conda was compiled for: `py3.10_cuda11.8_cudnn8.7.0_0`, `cuda118_py39hbf661d7_301`.
_BUILT = re.compile(r"cuda_?(?P<major>\d{1,2})\.?(?P<minor>\d)(?!\d)")
# The packages of conda that say which toolkit an environment has, the surest first.
_TOOLKITS = ("pytorch-cuda", "cudatoolkit", "cuda-toolkit", "cuda-version", "cuda", "cuda-nvcc")


class MachineValue(NamedTuple):
    """A value of a machine; equal ones are `alike`, and a `weak` one counts where there is no other."""

    item: Item
    alike: str
    weak: bool


class Paste:
    """One paste: packages by what they are compared by, and values of the machine."""

    def __init__(self, line: int, *, is_report: bool = False) -> None:
        self.line = line
        self.is_report = is_report
        self.keys: set[str] = set()
        self.packages: dict[str, Item] = {}
        self.values: dict[str, list[MachineValue]] = {}
        self.builds: dict[str, Traced] = {}
        self.unread: list[NotRead] = []
        self.cuda = ""

    def add(self, key: str, item: Item) -> None:
        """A package; of one that is listed twice what says most is kept."""
        known = self.packages.get(key)
        if known is not None and not _agree(known, item):
            why = f"it is listed as {known.specifier.removeprefix('==')} as well"
            self.unread.append(NotRead(text=item.text, why=why))
        elif known is None or (known.kind == PIP and _detail(item) > _detail(known)):
            self.packages[key] = item

    def contradicts(self, other: Paste) -> bool:
        """True if it is of another environment."""
        packages = self.packages.items()
        if any(
            key in other.packages and not _agree(item, other.packages[key])
            for key, item in packages
        ):
            return True
        if any(
            text.text != other.builds.get(name, text).text for name, text in self.builds.items()
        ):
            return True
        if not (self.is_report and other.is_report):
            return False
        first, second = (
            {
                key: {value.alike for value in values if not value.weak}
                for key, values in paste.values.items()
            }
            for paste in (self, other)
        )
        return any((second.get(key) or alike) != alike for key, alike in first.items() if alike)

    def merge(self, other: Paste) -> None:
        """Take over what another paste of the same environment says."""
        for key, item in other.packages.items():
            self.add(key, item)
        for name, values in other.values.items():
            self.values.setdefault(name, []).extend(values)
        self.builds.update(other.builds)
        self.unread += other.unread
        self.cuda = self.cuda or other.cuda
        self.is_report = self.is_report or other.is_report

    def environment(self, name: str) -> ManifestEnvironment:
        """All of it as one environment."""
        items = list(self.packages.values())
        own = self._toolkit(items)
        conda = {called.of_conda(item.name) for item in (*items, *own) if item.kind == CONDA}
        # What an environment brings comes before what its machine has.
        others = [*self._settled(conda)]
        left = [item for item in items if not (item.kind == CONDA and item.name in _TOOLKITS)]
        torch = self.packages.get("torch")
        if torch is not None and torch.kind == PIP and self.cuda and "+" not in torch.specifier:
            specifier = f"{torch.specifier}+cu{self.cuda.replace('.', '')}"
            text = written(torch.text, f"{torch.name}{specifier}")
            left[left.index(torch)] = torch.replace(specifier=specifier, text=text)
        return ManifestEnvironment(name=name, items=(*left, *own, *others))

    def _toolkit(self, items: list[Item]) -> list[Item]:
        """The CUDA of an environment of conda: of the surest package, or of what the others were compiled for."""
        packages = {item.name: item for item in items if item.kind == CONDA}
        for name in _TOOLKITS:
            if name in packages:
                item = packages[name]
                return [item.replace(specifier=f"=={release_series(item.specifier[2:], 2)}.*")]
        built = ((text, _BUILT.search(text.text)) for text in self.builds.values())
        for text, match in built:
            if match:
                series = f"{match['major']}.{match['minor']}"
                label = written(text, f"cuda {series} of {text.text}")
                return [installed(CONDA, "pytorch-cuda", f"=={series}.*", label)]
        return []

    def _settled(self, conda: set[str]) -> Iterator[Item]:
        for name, values in self.values.items():
            strong = [value for value in values if not value.weak] or values
            if name == "device":
                unique: dict[str, Item] = {}
                for value in strong:
                    unique.setdefault(value.alike, value.item)
                yield from unique.values()
                continue
            if name in conda:
                continue
            first = strong[0]
            other = next((value for value in strong if value.alike != first.alike), None)
            if other is None:
                yield first.item
            else:
                why = f"{first.item.text.text} is listed as well, and it is unknown which counts"
                self.unread.append(NotRead(text=other.item.text, why=why))


def installed(
    kind: str, name: str, specifier: str, text: Traced, version: Traced | None = None
) -> Item:
    """An item that is there."""
    return Item(
        kind=kind, name=name, specifier=specifier, text=text, version=version, installed=True
    )


def written(at: Traced, text: str) -> Traced:
    """A text in the place of another one."""
    return Traced(at.source, text, [at.at[0]] * len(text))


def release_series(version: str, parts: int) -> str:
    """The first numbers of a version."""
    return ".".join(version.split(".")[:parts])


def _agree(first: Item, second: Item) -> bool:
    """True if two versions may be of one installation: some tools leave out for what it was built."""
    (own, _, build), (other, _, other_build) = (
        item.specifier[2:].partition("+") for item in (first, second)
    )
    return own == other and (not build or not other_build or build == other_build)


def _detail(item: Item) -> int:
    return 2 * (item.kind == CONDA) + ("+" in item.specifier)


def merged(pastes: Iterable[Paste]) -> list[Paste]:
    """The pastes of a text as environments: one that contradicts those before it begins the next."""
    environments: list[Paste] = []
    for paste in pastes:
        if environments and not environments[-1].contradicts(paste):
            environments[-1].merge(paste)
            continue
        # A list of packages alone is one of the machine that was named before it.
        for name, values in environments[-1].values.items() if environments else ():
            if not paste.is_report:
                paste.values.setdefault(name, list(values))
        environments.append(paste)
    return environments
