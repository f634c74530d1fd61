"""The machine that this runs on as a whole: what `host` reads for doctor, and packages, variables and readings.

Records of packages, what they name of modules, and the libraries of CUDA that the loader may take are read where the
machine keeps them and put into a tree, so that the observers of images can read them. The import path is the one that
`python3` prints. Of the environment only the variables of matrix/machine.yaml are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.layers import Tree
from toolmatrix.images.limits import Budget
from toolmatrix.inspection import flags, host, imports, loader, packages, python, toolkits
from toolmatrix.inspection.host import Machine
from toolmatrix.inspection.model import Inventory, Seen, Skipped
from toolmatrix.inspection.record import Record, View, sort_sightings
from toolmatrix.inspection.stated import VERSION_FILES

SUBJECT = "host"
_FILES = (
    "/etc/os-release",
    "/usr/lib/os-release",
    "/var/lib/dpkg/status",
    "/var/lib/dpkg/status.d/*",
    "/lib/apk/db/installed",
    "/usr/local/cuda/version.json",
    "/usr/local/cuda/version.txt",
    *("/etc/ld.so.cache", "/etc/ld.so.preload"),
)
# By these names the loader is known, and the directories of the architecture.
_NAMES = ("/lib/ld-musl-*", "/lib64", "/bin/sh")
# What is read below each directory that the default interpreter imports from.
_RECORDS = (
    "*.dist-info/METADATA",
    *("*.egg-info", "*.egg-info/PKG-INFO"),
    *("*.py", "*.so", *(f"*/{file}" for file in VERSION_FILES)),
    "_sysconfigdata*.py",
    "numpy/__config__.py",
    "numpy/_core/include/numpy/_numpyconfig.h",
    "numpy/core/include/numpy/_numpyconfig.h",
    "torch/version.py",
)
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
    view = _view(machine, image, sites)
    record = Record(view)
    for name, value in env.items():
        record.feature(f"env:{name}", value, "environment", name)
    packages.observe(view, record)
    for line in (machine.run(*_RPM) or "").splitlines():
        name, _, version = line.partition("\t")
        packages.record_package(record, "rpm", "rpm -qa", name, version)
    toolkits.observe(view, record)
    versions = [sighting.version for sighting in host_inventory.components.get("python", ())]
    path = imports.given_path(view, _SITES[0], "".join(versions[:1]), sites)
    python.observe_imports(view, record, [path])
    toolkits.record_taken(view, record, (), ())
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


def _view(machine: Machine, image: ImageMetadata, sites: Sequence[str]) -> View:
    budget = Budget(SUBJECT)
    tree = Tree()
    patterns = [*_FILES, *_NAMES, *(f"{site}/{record}" for site in sites for record in _RECORDS)]
    paths = [path for pattern in patterns for _, path in machine.paths(pattern)]
    # A directory on PYTHONPATH may be a whole project; what is below others belongs to packages.
    paths += [site for site in sites if site.endswith("-packages")]
    tree.apply(machine.layer(list(dict.fromkeys(paths))), budget)
    folders = loader.library_path(View(image, tree)).folders
    libraries = [
        f"/{folder}/{name}"
        for folder in dict.fromkeys(folders)
        for name in machine.names(f"/{folder}")
        if toolkits.component_of(name)
    ]
    tree.apply(machine.layer(libraries), budget)
    return View(image, tree)


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
