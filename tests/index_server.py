"""A package index on the loopback address, as PEP 503, 658 and 700 describe one."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class PackageIndex:
    """Packages by name, each a list of wheels; `url` is what pip's `--index-url` takes."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.asked: list[str] = []

    def publish(self, package: str, wheels: Sequence[bytes]) -> None:
        """List the wheels of a package, and serve them with their METADATA."""
        files = []
        for data in wheels:
            name, metadata = _opened(data)
            self.pages[f"/files/{name}"] = ("application/zip", data)
            self.pages[f"/files/{name}.metadata"] = ("text/plain", metadata)
            files.append(
                {
                    "filename": name,
                    "url": f"../../files/{name}",
                    "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
                    "core-metadata": {"sha256": hashlib.sha256(metadata).hexdigest()},
                    "upload-time": "2026-01-01T00:00:00Z",
                    "size": len(data),
                    "yanked": False,
                }
            )
        page = {"meta": {"api-version": "1.1"}, "name": package, "files": files}
        kind = "application/vnd.pypi.simple.v1+json"
        self.pages[f"/simple/{package}/"] = (kind, json.dumps(page).encode())


def wheel(name: str, tags: str, requires: Sequence[str] = ()) -> bytes:
    """A wheel `NAME-VERSION` for some tags that requires other packages."""
    package, version = name.split("-")
    lines = ["Metadata-Version: 2.1", f"Name: {package}", f"Version: {version}"]
    lines += [f"Requires-Dist: {one}" for one in requires]
    folder = f"{package}-{version}.dist-info"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(f"{folder}/METADATA", "\n".join(lines) + "\n")
        archive.writestr(f"{folder}/WHEEL", f"Wheel-Version: 1.0\nTag: {tags}\n")
        archive.writestr(f"{folder}/RECORD", f"{name}-{tags}.whl\n")
    return data.getvalue()


def _opened(data: bytes) -> tuple[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        held = {name.rpartition("/")[2]: archive.read(name) for name in archive.namelist()}
    return held["RECORD"].decode().strip(), held["METADATA"]


@contextmanager
def serving() -> Iterator[PackageIndex]:
    """An empty index, for as long as the context is open."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            index.asked.append(self.path)
            kind, data = index.pages.get(self.path, ("", b""))
            self.send_response(200 if kind else 404)
            self._headers({"Content-Type": kind or "text/plain", "Content-Length": str(len(data))})
            self.wfile.write(data)

        def do_HEAD(self) -> None:
            self.send_response(405)
            self._headers({"Content-Length": "0"})

        def log_message(self, *_: object) -> None:
            pass

        def _headers(self, held: Mapping[str, str]) -> None:
            for name, value in held.items():
                self.send_header(name, value)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index = PackageIndex(f"http://127.0.0.1:{server.server_port}/simple")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
