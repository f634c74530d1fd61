"""A package index on loopback, with wheels that are made here, which gives ranges as honestly as a test wants."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.images.hostile import Reply, running
from toolmatrix.harvest import families
from toolmatrix.harvest.families import Indexes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pytest

    from tests.images.hostile import Asked, Server

    Give = Callable[[Asked, bytes], Reply]

JSON = "application/vnd.pypi.simple.v1+json"


@contextmanager
def as_index_of_user(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that is the index of this machine's user, and is asked again at once where it fails."""
    monkeypatch.setattr("toolmatrix.http.BACKOFF", 0)
    with running() as found:
        where = Indexes(urls=(f"{found.url}/simple/",))
        monkeypatch.setattr(families, "indexes", lambda _env: where)
        yield found


class File(NamedTuple):
    """A file of a package: its name, its bytes, and what an index says of it."""

    name: str
    data: bytes
    said: Mapping[str, Any] = {}

    @property
    def sha256(self) -> str:
        """Its digest as indexes write it."""
        return hashlib.sha256(self.data).hexdigest()


def wheel(
    name: str,
    version: str,
    tags: str,
    requires: Sequence[str] = (),
    members: Mapping[str, bytes] | None = None,
    said: Mapping[str, Any] | None = None,
) -> File:
    """A wheel with METADATA at its end, as tools write it."""
    buffer = io.BytesIO()
    folder = f"{name.replace('-', '_')}-{version}"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {one}" for one in requires]
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in {
            **(members or {}),
            f"{folder}.dist-info/METADATA": "\n".join([*lines, "", "Words."]).encode(),
        }.items():
            archive.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED)
    return File(f"{folder}-{tags}.whl", buffer.getvalue(), said or {})


def installable(
    name: str,
    version: str,
    members: Mapping[str, bytes],
    requires: Sequence[str] = (),
    tags: str = "py3-none-any",
) -> File:
    """A wheel that installers take: it says of itself what it is, and lists its files."""
    folder = f"{name}-{version}.dist-info"
    said = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tags}\n"
    held = {**members, f"{folder}/WHEEL": said.encode()}
    listed = "".join(f"{path},,\n" for path in (*held, f"{folder}/METADATA", f"{folder}/RECORD"))
    held[f"{folder}/RECORD"] = listed.encode()
    return wheel(name, version, tags, requires, held)


def source(
    name: str, version: str, requires: Sequence[str] = (), builds: Sequence[str] | None = None
) -> File:
    """A source archive that says what it requires without being run (PEP 643), and what builds it (PEP 518)."""
    lines = ["Metadata-Version: 2.2", f"Name: {name}", f"Version: {version}"]
    members = {"PKG-INFO": "\n".join([*lines, *(f"Requires-Dist: {one}" for one in requires), ""])}
    members["setup.py"] = "from setuptools import setup\n\nsetup()\n"
    if builds is not None:
        members["pyproject.toml"] = f"[build-system]\nrequires = {json.dumps(list(builds))}\n"
    return archive(name, version, members)


def archive(name: str, version: str, members: Mapping[str, str]) -> File:
    """A source archive of some files in its top folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        for path, text in members.items():
            member = tarfile.TarInfo(f"{name}-{version}/{path}")
            member.size = len(text)
            packed.addfile(member, io.BytesIO(text.encode()))
    return File(f"{name}-{version}.tar.gz", buffer.getvalue())


def page(package: str, files: Sequence[File]) -> bytes:
    """The list of files as JSON (PEP 691)."""
    return json.dumps(
        {
            "meta": {"api-version": "1.1"},
            "name": package,
            "files": [
                {
                    "filename": one.name,
                    "url": f"/files/{one.name}",
                    "hashes": {"sha256": one.sha256},
                    "upload-time": "2024-05-06T07:08:09.123456Z",
                    **one.said,
                }
                for one in files
            ],
        }
    ).encode()


def html(files: Sequence[File]) -> bytes:
    """The list of files as HTML (PEP 503)."""
    links = "".join(
        f'<a href="/files/{one.name}#sha256={one.sha256}">{one.name}</a><br/>' for one in files
    )
    return f"<!DOCTYPE html><html><body>{links}</body></html>".encode()


def honest(asked: Asked, data: bytes) -> Reply:
    """A range as it was asked for, or everything."""
    wanted = asked.headers.get("Range", "")
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted)
    if not found:
        return Reply(body=data)
    if found[1]:
        first, last = int(found[1]), int(found[2] or len(data) - 1)
    else:
        first, last = max(0, len(data) - int(found[2])), len(data) - 1
    last = min(last, len(data) - 1)
    span = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
    return Reply(206, span, data[first : last + 1])


def stock(server: Server, package: str, files: Sequence[File], give: Give = honest) -> None:
    """Put the files of a package on the index of a server."""
    server.answers[f"/simple/{package}/"] = Reply(
        headers={"Content-Type": JSON}, body=page(package, files)
    )
    for one in files:
        server.answers[f"/files/{one.name}"] = _answer(give, one.data)


def _answer(give: Give, data: bytes) -> Callable[[Asked], Reply]:
    return lambda asked: give(asked, data)
