"""What rendered files would fetch, brought into a folder beside them: downloads, and the wheels of a lock's packages.

Every file with a known SHA-256 is held to it. What was interrupted goes on where it ended, and what is there stays.
"""

from __future__ import annotations

import os
import os.path
import shutil
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from toolmatrix.api import PLAIN, Outcome
from toolmatrix.errors import IndexFailed, NothingMatched, Position
from toolmatrix.facts.index import Index
from toolmatrix.harvest.transport import Session
from toolmatrix.lock.model import LockedClosure
from toolmatrix.outputs import file_digest, os_errors_as
from toolmatrix.render.model import ImagePlan, Job
from toolmatrix.report.terminal import Terminal, plural, printable
from toolmatrix.value import Document, Value

SCHEMA = "toolmatrix.fetched/1"
FOLDER = "fetched"
"""What the folder is called where the lock names none."""
LARGEST = 16 << 30
"""Bytes of one file."""


class FetchedFile(Document):
    """One file: where it lies, its SHA-256, its size in bytes, and whether it was there before.

    `address` is that of a download; of a wheel it is empty, and only the index knows it. What is not `pinned` had no
    checksum to be held to.
    """

    path: str
    address: str
    sha256: str
    bytes: int
    pinned: bool
    there: bool


class Fetched(Outcome, Value):
    """The files of a folder, and for each image what a build without a network lacks; `hint` says how to go on."""

    folder: str
    files: tuple[FetchedFile, ...]
    left: tuple[tuple[str, str], ...]
    hint: str

    exit_code = 0

    def text(self, screen: Terminal = PLAIN) -> str:
        """A line for each file that came, the sum, and what is left."""
        del screen
        came = [one for one in self.files if not one.there]
        lines = [f"fetched {printable(one.path)}" for one in came]
        lines += [f"no checksum: {printable(one.path)}" for one in self.files if not one.pinned]
        size = sum(one.bytes for one in self.files)
        lines.append(
            f"{self.folder}: {plural(len(self.files), 'file')}, {size} bytes, {len(came)} of them new"
        )
        lines += [f"not fetched, {image}: {what}" for image, what in self.left]
        lines += [self.hint] if self.hint else []
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """The document that the command writes."""
        return {
            "schema": SCHEMA,
            "folder": self.folder,
            "files": [one.to_json() for one in self.files],
            "left": [{"image": image, "what": what} for image, what in self.left],
        }


class WantedFile(Value):
    """One file to have: its place below the folder, its SHA-256 if that is known, and how its address is found."""

    place: str
    sha256: str
    address: str = ""
    package: str = ""
    indexes: tuple[str, ...] = ()


def fetch(
    folder: str,
    env: Mapping[str, str],
    index: Index,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Fetched:
    """Fill the folder beside the files that were rendered in a directory, by the lock there.

    Raises LockError, IndexFailed for what cannot be had or is another file, OutputError, and what `render` raises.
    """
    from toolmatrix.api import files
    from toolmatrix.harvest import families
    from toolmatrix.harvest.transport import Session
    from toolmatrix.lock import lock_file
    from toolmatrix.render import mirrors as placing

    path = os.path.join(folder, files.LOCK)
    lock = lock_file.read(path)
    options = files.options_of(lock, path, index)
    named = options.fetched
    job = files.rendered(lock, options, files.rules(index, options), targets=options.target).job
    to = os.path.join(folder, named or FOLDER)
    wanted = {one.place: one for image in job.images for one in _wanted(image)}
    session = Session()
    try:
        where = families.indexes(env)
        session.trust(where.certificates, where.proxy)
        getter = FileGetter(session, where.urls)
        found = []
        for done, one in enumerate(wanted.values(), 1):
            found.append(getter.get(one, to))
            progress(done, len(wanted))
    finally:
        session.close()
    if any(map(placing.has_archives, job.images)):
        archives = os.path.join(to, placing.ARCHIVES)
        # A build takes the folder as it is, and none is no folder.
        with os_errors_as("cannot make the folder", archives):
            os.makedirs(archives, exist_ok=True)
    hint = f"hint: `toolmatrix render --output {folder} --fetched {FOLDER}` uses them"
    return Fetched(
        folder=to, files=tuple(found), left=tuple(_left(job)), hint="" if named else hint
    )


def _wanted(image: ImagePlan) -> Iterator[WantedFile]:
    from toolmatrix.render import mirrors

    for file in image.all_downloads:
        yield WantedFile(place=mirrors.place(file.url), sha256=file.checksum, address=file.url)
    if image.closure is None:
        return
    own = _indexes(image.closure)
    for name, package in (*image.installers.items(), *image.closure.packages.items()):
        for file_name, digest in package.files.items():
            place = f"{mirrors.wheel_folder(image)}/{mirrors.check_folder(file_name)}"
            yield WantedFile(
                place=place, sha256=digest, address=package.url, package=name, indexes=own
            )


def _indexes(closure: LockedClosure) -> tuple[str, ...]:
    words = closure.asked.options
    return tuple(word for option, word in pairwise(words) if option.endswith("index-url"))


def _left(job: Job) -> Iterator[tuple[str, str]]:
    from toolmatrix.render import mirrors

    for image in job.images:
        packages = " ".join(dict.fromkeys((*image.packages, *image.runtime.packages)))
        if packages:
            manager = image.distro.manager
            yield image.name, f"{manager}: {packages}; `--base` names an image that has them"
        for one in dict.fromkeys((*image.repositories, *image.runtime.repositories)):
            yield image.name, f"the key and the lists of {one.uri}; `--mirror` names another source"
        if (image.pip or image.builds) and image.closure is None:
            yield image.name, "Python packages; `toolmatrix lock --packages` names their files"
        if mirrors.has_archives(image):
            yield (
                image.name,
                f"archives that Bazel reads by name from `{mirrors.ARCHIVES}` there",
            )
        if any(step.run for step in image.steps):
            yield image.name, f"what the steps of `{image.recipe.name}` fetch by themselves"


class FileGetter:
    """Brings files, each once: an index is asked once for a package, and a wheel for several images is copied."""

    def __init__(self, session: Session, indexes: tuple[str, ...]) -> None:
        self.session = session
        self.indexes = indexes
        self.pages: dict[tuple[str, ...], dict[str, str]] = {}
        self.known: dict[str, str] = {}

    def get(self, wanted: WantedFile, to: str) -> FetchedFile:
        """One file at its place."""
        path = os.path.join(to, *wanted.place.split("/"))
        there = os.path.isfile(path)
        digest = _digest(path) if there else ""
        # One that is another was replaced, or has another version by the same name.
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
        from toolmatrix.harvest import project

        key = (wanted.package, *wanted.indexes)
        if key not in self.pages:
            asked = (*wanted.indexes, *self.indexes)
            self.pages[key] = project.addresses(self.session, asked, wanted.package)
        name = wanted.place.rpartition("/")[2]
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
