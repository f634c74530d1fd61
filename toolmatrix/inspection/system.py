"""The machine that this runs on as a whole: what `host` reads for doctor, and packages, variables and readings.

Records of packages are read where the machine keeps them and put into a tree, so that the observers of images can read
them. Of the environment only the variables of matrix/machine.yaml are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.layers import FILE, Entry, Layer, Tree
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import flags, host, packages, python, toolkits
from toolmatrix.inspection.host import Machine
from toolmatrix.inspection.model import Inventory, Seen, Skipped
from toolmatrix.inspection.record import Record, View, sort_sightings

SUBJECT = "host"
_FILES = (
    "/etc/os-release",
    "/usr/lib/os-release",
    "/var/lib/dpkg/status",
    "/var/lib/dpkg/status.d/*",
    "/lib/apk/db/installed",
    "/usr/local/cuda/version.json",
    "/usr/local/cuda/version.txt",
)
# What is read below each directory that the default interpreter imports from.
_RECORDS = (
    "*.dist-info/METADATA",
    "*.egg-info",
    "*.egg-info/PKG-INFO",
    "_sysconfigdata*.py",
    "numpy/__config__.py",
    "numpy/_core/include/numpy/_numpyconfig.h",
    "numpy/core/include/numpy/_numpyconfig.h",
    "torch/version.py",
)
_LARGEST = 32 << 20
_SITES = ("python3", "-c", "import sys; print('\\n'.join(sys.path))")
_RPM = ("rpm", "-qa", "--qf", "%{NAME}\\t%{VERSION}-%{RELEASE}\\n")


def observe(machine: Machine, directory: str = "/") -> Inventory:
    """The inventory of a machine; the disk is that of `directory`. What cannot be seen is skipped with its reason."""
    host_inventory = host.observe(machine, directory)
    sites = [path for path in (machine.run(*_SITES) or "").splitlines() if path.startswith("/")]
    env = {
        name: value
        for name in host.load_readings().environment
        if (value := machine.variable(name))
    }
    # A tree in memory: observers of images read here the files of the machine, copied in by the same paths.
    settings = {"Env": [f"{name}={value}" for name, value in env.items()]}
    image = ImageMetadata(subject=SUBJECT, config={"config": settings})
    view = View(image, _tree(machine, sites))
    record = Record(view)
    for name, value in env.items():
        record.feature(f"env:{name}", value, "environment", name)
    packages.observe(view, record)
    for line in (machine.run(*_RPM) or "").splitlines():
        name, _, version = line.partition("\t")
        packages.record_package(record, "rpm", "rpm -qa", name, version)
    toolkits.observe(view, record)
    python.observe(view, record, [site.strip("/") for site in sites])
    flags.settings(view, record)
    read = _readings(machine, record)
    return Inventory(
        subject=SUBJECT,
        platform=host_inventory.platform,
        components=_joined(host_inventory.components, sort_sightings(record.components)),
        features=_joined(host_inventory.features, sort_sightings(record.features)),
        skipped=(
            *host_inventory.skipped,
            *record.skipped,
            *host.unseen_readings(machine, read),
            *_never(sites),
        ),
    )


def _tree(machine: Machine, sites: Sequence[str]) -> Tree:
    patterns = [*_FILES, *(f"{site}/{record}" for site in sites for record in _RECORDS)]
    entries = []
    for path in dict.fromkeys(path for pattern in patterns for _, path in machine.paths(pattern)):
        text = machine.text(path, _LARGEST)
        if text:
            entries.append((path.strip("/"), Entry(FILE, content=text.encode())))
    tree = Tree()
    tree.apply(Layer(digest="", diff_id="", entries=tuple(entries)), Budget(SUBJECT))
    return tree


# The result are the names of the readings with a value.
def _readings(machine: Machine, record: Record) -> frozenset[str]:
    read = set()
    for reading, name, sighting in host.observe_readings(machine):
        sightings = record.components if reading.component else record.features
        # Not by the methods of a record, which take only so many sightings of one value: a machine has more cores.
        sightings.setdefault(name, {})[sighting] = None
        read.add(reading.name)
    return frozenset(read)


def _joined(*maps: Mapping[str, tuple[Seen, ...]]) -> dict[str, tuple[Seen, ...]]:
    joined: dict[str, tuple[Seen, ...]] = {}
    for name, sightings in chain.from_iterable(
        sightings_by_name.items() for sightings_by_name in maps
    ):
        joined[name] = (*joined.get(name, ()), *sightings)
    return dict(sorted(joined.items()))


def _never(sites: Iterable[str]) -> Iterator[Skipped]:
    yield Skipped(what="labels", reason="a machine has none")
    yield Skipped(
        what="libstdcxx", reason="it is in a library, and only the names of libraries are read"
    )
    if not any(sites):
        yield Skipped(what="python packages", reason="no python3 prints its import path")
