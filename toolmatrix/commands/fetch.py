"""`toolmatrix fetch`: what rendered files download, for builds without a network; or the driver of a toolkit.

Every file with a known SHA-256 is held to it. What was interrupted goes on where it ended, and what is there stays.
"""

from __future__ import annotations

import os
import os.path
import platform
import shutil
import stat
import zipfile
from contextlib import closing
from itertools import pairwise

from toolmatrix.api import PLAIN, Outcome, driver_wheels, files
from toolmatrix.api.caller import caller
from toolmatrix.api.requests import open_matrix
from toolmatrix.command import command
from toolmatrix.documents import Annotated, Any, Count, TypedDict
from toolmatrix.errors import IndexFailed, NothingMatched, OutputError, Position
from toolmatrix.factbase.store import cache_folder
from toolmatrix.harvest import families, project
from toolmatrix.lockfile import lock_file
from toolmatrix.outputs import file_digest, os_errors_as
from toolmatrix.rendering import mirrors as placing
from toolmatrix.report.terminal import plural, printable
from toolmatrix.value import Document, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from toolmatrix.api import Matrix
    from toolmatrix.factbase.index import Index
    from toolmatrix.harvest.transport import Session
    from toolmatrix.rendering.model import ImagePlan, Job
    from toolmatrix.report.terminal import Terminal

SCHEMA = "toolmatrix.fetched/1"
FOLDER = "fetched"
"""What the folder is called where the lock names none."""
LARGEST = 16 << 30
"""Bytes of one file."""
# The folder of a driver's wheels, beside their unpacked files.
_PARTS = "wheels"


class LeftOver(TypedDict):
    """What a build of an image lacks."""

    image: str
    what: str


class FetchedDocument(TypedDict):
    """What `toolmatrix fetch --json` prints: each file of the folder with its SHA-256 and its size in bytes, whether a
    checksum was known to hold it to (`pinned`), and whether it was there before; `left` is what a build without a
    network lacks.
    """

    schema: Annotated[str, SCHEMA]
    folder: str
    files: list[Annotated[dict[str, Any], FetchedFile]]
    left: list[LeftOver]


class FetchedFile(Document):
    """One file: where it lies, its SHA-256, its size in bytes, and whether it was there before.

    `address` is that of a download; of a wheel it is empty, and only the index knows it. What is not `pinned` had no
    checksum to be held to.
    """

    path: str
    address: str
    sha256: str
    bytes: Count
    pinned: bool
    there: bool


class Fetched(Outcome, Value):
    """The files of a folder, and for each image what a build without a network lacks; `how` says how to go on."""

    folder: str
    files: tuple[FetchedFile, ...]
    left: tuple[tuple[str, str], ...]
    how: str

    exit_code = 0

    def text(self, screen: Terminal = PLAIN) -> str:
        """A line for each new file, the total, and what is left."""
        del screen
        came = [file for file in self.files if not file.there]
        lines = [f"fetched {printable(file.path)}" for file in came]
        lines += [f"no checksum: {printable(file.path)}" for file in self.files if not file.pinned]
        size = sum(file.bytes for file in self.files)
        lines.append(
            f"{self.folder}: {plural(len(self.files), 'file')}, {size} bytes, {len(came)} of them new"
        )
        lines += [f"not fetched, {image}: {what}" for image, what in self.left]
        lines += [self.how] if self.how else []
        return "\n".join(lines) + "\n"

    def to_json(self) -> FetchedDocument:
        """The document that the command writes."""
        return {
            "schema": SCHEMA,
            "folder": self.folder,
            "files": [file.to_json() for file in self.files],
            "left": [{"image": image, "what": what} for image, what in self.left],
        }


class WantedFile(Value):
    """One file to have: its place below the folder, its SHA-256 if that is known, and how its address is found."""

    path: str
    sha256: str
    address: str = ""
    package: str = ""
    indexes: tuple[str, ...] = ()


@command(
    group="Lock and build",
    order=4,
    usage="[DIR | cuda==RELEASE]",
    completer="file",
    examples=("toolmatrix fetch out", "toolmatrix fetch cuda==13.0.1 --json"),
)
def fetch(subject: str = ".", *, matrix: Matrix = None) -> Fetched:
    """Download what rendered files need, or the nvcc of a toolkit.

    Of a directory of rendered files the folder beside them is filled, by the lock there; of a release such as
    `cuda==13.0.1` the driver is put into the cache. Raises LockError, NothingMatched, IndexFailed for what cannot be
    had or is another file, OutputError, and what `render` raises.
    """
    index, path = open_matrix(matrix).index, caller().path(subject)
    if "==" in subject and not os.path.isdir(path):
        return _driver(subject, index)
    return _downloads(path, index)


def _downloads(folder: str, index: Index) -> Fetched:
    path = os.path.join(folder, files.LOCK)
    lock = lock_file.read(path)
    options = files.options_of(lock, path, index)
    named = options.fetched
    job = files.render_lock(lock, options, files.rules(index, options), targets=options.target).job
    to = os.path.join(folder, named or FOLDER)
    wanted = {file.path: file for image in job.images for file in _wanted(image)}
    came = _fetched(wanted.values(), to)
    if any(map(placing.has_archives, job.images)):
        archives = os.path.join(to, placing.ARCHIVES)
        # A build copies the folder, so it has to exist even if it is empty.
        with os_errors_as("cannot make the folder", archives):
            os.makedirs(archives, exist_ok=True)
    how = f"hint: `toolmatrix render --output {folder} --fetched {FOLDER}` uses them"
    return Fetched(folder=to, files=came, left=tuple(_left(job)), how="" if named else how)


def _driver(toolkit: str, index: Index) -> Fetched:
    component, _, release = toolkit.partition("==")
    wheels = [*driver_wheels.files(index, component, release, platform.machine())]
    if not wheels:
        raise NothingMatched(
            f"no wheels contain the driver of {component} {release} for {platform.machine()}",
            expected=f"a release of {driver_wheels.COMPONENT} in table {driver_wheels.TABLE}",
            help="install that toolkit; `toolmatrix stages` finds it on PATH, in CUDA_HOME or ROCM_PATH",
        )
    cache = cache_folder(caller().env)
    if not cache:
        raise OutputError("no directory for a cache", expected="HOME or XDG_CACHE_HOME")
    to = os.path.join(cache, "drivers", f"{component}-{release}")
    wanted = [
        WantedFile(
            path=f"{_PARTS}/{name}",
            sha256=digest,
            package=name.partition("-")[0].replace("_", "-"),
        )
        for name, digest in wheels
    ]
    came = _fetched(wanted, to)
    for file in came:
        _unpack(file.path, to)
    how = "hint: `toolmatrix stages FILE --lock LOCK` uses it if the lock has that release"
    return Fetched(folder=to, files=came, left=(), how=how)


def _fetched(wanted: Collection[WantedFile], to: str) -> tuple[FetchedFile, ...]:
    came = []
    session, urls = families.open_session(caller().env)
    with caller().progress("fetching", "files") as progress, closing(session):
        getter = FileGetter(session, urls)
        for done, file in enumerate(wanted, 1):
            came.append(getter.get(file, to))
            progress.at(done, len(wanted))
    return tuple(came)


def _unpack(wheel: str, to: str) -> None:
    # A wheel is a zip archive; its programs have their modes in it, which zipfile does not set.
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            path = archive.extract(member, to)
            if member.external_attr >> 16 & stat.S_IXUSR:
                os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def _wanted(image: ImagePlan) -> Iterator[WantedFile]:
    for file in image.all_downloads:
        yield WantedFile(path=placing.local_path(file.url), sha256=file.checksum, address=file.url)
    if image.closure is None:
        return
    words = image.closure.asked.options
    own = tuple(value for option, value in pairwise(words) if option.endswith("index-url"))
    for name, package in (*image.installers.items(), *image.closure.packages.items()):
        for file_name, digest in package.files.items():
            path = f"{placing.wheel_folder(image)}/{placing.check_folder(file_name)}"
            yield WantedFile(
                path=path, sha256=digest, address=package.url, package=name, indexes=own
            )


def _left(job: Job) -> Iterator[tuple[str, str]]:
    for image in job.images:
        packages = " ".join(dict.fromkeys((*image.packages, *image.runtime.packages)))
        if packages:
            manager = image.distro.manager
            yield image.name, f"{manager}: {packages}; `--base` names an image that has them"
        for repository in dict.fromkeys((*image.repositories, *image.runtime.repositories)):
            yield (
                image.name,
                f"the key and the lists of {repository.uri}; `--mirror` names another source",
            )
        if (image.pip or image.builds) and image.closure is None:
            yield image.name, "Python packages; `toolmatrix lock --packages` names their files"
        if placing.has_archives(image):
            yield (
                image.name,
                f"archives that Bazel reads by name from `{placing.ARCHIVES}` there",
            )
        if any(step.run for step in image.steps):
            yield image.name, f"downloads made by the steps of `{image.recipe.name}`"


class FileGetter:
    """Downloads files: asks an index once for each package, and copies a wheel that several images need."""

    def __init__(self, session: Session, indexes: tuple[str, ...]) -> None:
        self.session = session
        self.indexes = indexes
        self.pages: dict[tuple[str, ...], dict[str, str]] = {}
        self.known: dict[str, str] = {}

    def get(self, wanted: WantedFile, to: str) -> FetchedFile:
        """Get one file."""
        path = os.path.join(to, *wanted.path.split("/"))
        there = os.path.isfile(path)
        digest = _digest(path) if there else ""
        # A file with another checksum was replaced upstream.
        if digest != (wanted.sha256 or digest) or not there:
            digest, there = self._bring(wanted, path), False
        self.known.setdefault(digest, path)
        return FetchedFile(
            path=path,
            address="" if wanted.package else wanted.address,
            sha256=digest,
            bytes=os.path.getsize(path),
            pinned=bool(wanted.sha256),
            there=there,
        )

    def _bring(self, wanted: WantedFile, path: str) -> str:
        beside = path + ".part"
        with os_errors_as("cannot write a fetched file", path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if wanted.sha256 in self.known:
                shutil.copyfile(self.known[wanted.sha256], beside)
            else:
                self._save(self._address(wanted), beside)
            digest = _digest(beside)
            if digest != (wanted.sha256 or digest):
                os.remove(beside)
                raise IndexFailed(
                    "a fetched file differs from the expected one",
                    where=Position(path),
                    expected=f"sha256 {wanted.sha256}",
                    found=digest,
                    help="it was not kept, but the others were; run the same command again to continue",
                )
            os.replace(beside, path)
        return digest

    def _save(self, address: str, beside: str) -> None:
        try:
            self.session.save(address, beside, LARGEST)
        except IndexFailed as failed:
            raise IndexFailed(
                "a file cannot be fetched",
                where=failed.where,
                expected=failed.expected,
                found=failed.found,
                help="run the same command again to continue",
            ) from None

    def _address(self, wanted: WantedFile) -> str:
        if wanted.address:
            return wanted.address
        key = (wanted.package, *wanted.indexes)
        if key not in self.pages:
            indexes = (*wanted.indexes, *self.indexes)
            self.pages[key] = project.addresses(self.session, indexes, wanted.package)
        name = wanted.path.rpartition("/")[2]
        try:
            return self.pages[key][name]
        except KeyError:
            raise NothingMatched(
                f"no index has `{printable(name)}` any longer",
                where=Position(wanted.package),
                expected="the file that the lock names",
                help="`toolmatrix lock --packages --upgrade` locks one that exists",
            ) from None


def _digest(path: str) -> str:
    with os_errors_as("cannot read a fetched file", path):
        return file_digest(path)
