"""The driver of a release, fetched: its wheels by hash, unpacked where `toolmatrix stages` looks for drivers."""

from __future__ import annotations

import os
import os.path
import platform
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping

from toolmatrix.api.fetches import Fetched, FileGetter, WantedFile
from toolmatrix.errors import NothingMatched, OutputError
from toolmatrix.facts.index import Index

_TABLE = "nvcc-wheels"
_COMPONENT = "cuda"
_PARTS = "wheels"


def files(index: Index, release: str, machine: str) -> Iterator[tuple[str, str]]:
    """The wheels that the driver of a release is unpacked from on a machine, each with its SHA-256; none if unknown."""
    from toolmatrix.facts import lookups

    for _, cells in lookups.rows(index, _TABLE):
        if release in cells[_COMPONENT].split():
            words = cells.get(machine, "").split()
            yield from zip(words[::2], words[1::2], strict=True)


def command(index: Index, component: str, release: str) -> str:
    """The command that fetches the driver of a release for this machine; empty where no fact names its wheels."""
    known = component == _COMPONENT and any(files(index, release, platform.machine()))
    return f"toolmatrix fetch {component}=={release}" if known else ""


def fetch(
    word: str,
    env: Mapping[str, str],
    index: Index,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Fetched:
    """Fetch the driver of one release of a toolkit, such as `cuda==13.0.1`, into the cache.

    Raises NothingMatched where no wheels of it are known, IndexFailed for what cannot be had or is another file,
    OutputError.
    """
    from toolmatrix.facts.store import cache_folder
    from toolmatrix.harvest import families
    from toolmatrix.harvest.transport import Session

    component, _, release = word.partition("==")
    wheels = list(files(index, release, platform.machine())) if component == _COMPONENT else []
    cache = cache_folder(env)
    if not wheels:
        raise NothingMatched(
            f"no wheels contain the driver of {component} {release} for {platform.machine()}",
            expected=f"a release of {_COMPONENT} in table {_TABLE}",
            help="install that toolkit; `toolmatrix stages` finds it on PATH, in CUDA_HOME or ROCM_PATH",
        )
    if not cache:
        raise OutputError("no directory for a cache", expected="HOME or XDG_CACHE_HOME")
    to = os.path.join(cache, "drivers", f"{component}-{release}")
    session = Session()
    found = []
    try:
        where = families.indexes(env)
        session.trust(where.certificates, where.proxy)
        getter = FileGetter(session, where.urls)
        for done, (name, digest) in enumerate(wheels, 1):
            package = name.partition("-")[0].replace("_", "-")
            wanted = WantedFile(place=f"{_PARTS}/{name}", sha256=digest, package=package)
            found.append(getter.get(wanted, to))
            progress(done, len(wheels))
    finally:
        session.close()
    for one in found:
        _unpack(one.path, to)
    hint = "hint: `toolmatrix stages FILE --lock LOCK` uses it if the lock has that release"
    return Fetched(folder=to, files=tuple(found), left=(), hint=hint)


def _unpack(wheel: str, to: str) -> None:
    # A wheel is a zip archive; its programs have their modes in it, which zipfile does not set.
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            path = archive.extract(member, to)
            if member.external_attr >> 16 & stat.S_IXUSR:
                os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
