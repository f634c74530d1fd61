"""A real registry on loopback, Debian's docker-registry, with an account or TLS if asked."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.images import images

# How long a registry may take until it answers.
_SECONDS = 30
PACKAGES = {
    "docker-registry": "docker-registry",
    "htpasswd": "apache2-utils",
    "openssl": "openssl",
}
"""Programs, and the Debian packages that bring them."""


class Registry(NamedTuple):
    """A registry that answers: `host` with its port, its certificate, and the header that lets in."""

    host: str
    certificate: str = ""
    headers: Mapping[str, str] = {}

    def ask(
        self, method: str, path: str, body: bytes = b"", **headers: str
    ) -> tuple[int, dict[str, str]]:
        """Status and headers of an answer."""
        if self.certificate:
            context = ssl.create_default_context(cafile=self.certificate)
            line: http.client.HTTPConnection = http.client.HTTPSConnection(
                self.host, context=context, timeout=_SECONDS
            )
        else:
            line = http.client.HTTPConnection(self.host, timeout=_SECONDS)
        with contextlib.closing(line):
            line.request(method, path, body, {**self.headers, **headers})
            answer = line.getresponse()
            answer.read()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}

    def push(self, name: str, *made: images.Made) -> None:
        """Put images under `NAME:TAG`, as an index where they are several or have entries of their own."""
        name, _, tag = name.partition(":")
        for one in made:
            for digest, blob in one.blobs.items():
                if digest != one.entry["digest"]:
                    self._blob(name, digest, blob)
            manifest = one.blobs[one.entry["digest"]]
            self.manifest(name, one.entry["digest"], manifest, images.MANIFEST)
        if len(made) == 1:
            self.manifest(name, tag, manifest, images.MANIFEST)
        else:
            self.manifest(name, tag, images.index(*made), images.INDEX)

    def artifact(self, name: str, files: Sequence[Path]) -> None:
        """Put files under `NAME:TAG` as `oras push` does: a layer each, with its name."""
        name, _, tag = name.partition(":")
        empty = {**_entry(b"{}"), "mediaType": "application/vnd.oci.empty.v1+json"}
        self._blob(name, empty["digest"], b"{}")
        layers = []
        for file in files:
            data = file.read_bytes()
            layer = _entry(data)
            self._blob(name, layer["digest"], data)
            layers.append({**layer, "annotations": {"org.opencontainers.image.title": file.name}})
        manifest = {
            "schemaVersion": 2,
            "mediaType": images.MANIFEST,
            "artifactType": "application/vnd.toolmatrix.matrix.v1",
            "config": empty,
            "layers": layers,
        }
        self.manifest(name, tag, images.as_json(manifest), images.MANIFEST)

    def manifest(self, name: str, version: str, data: bytes, media: str) -> None:
        """Put a manifest or an index."""
        path = f"/v2/{name}/manifests/{version}"
        status, _ = self.ask("PUT", path, data, **{"Content-Type": media})
        assert status == 201

    def _blob(self, name: str, digest: str, blob: bytes) -> None:
        status, headers = self.ask("POST", f"/v2/{name}/blobs/uploads/")
        assert status == 202
        place = headers["location"].partition(self.host)[2]
        joint = "&" if "?" in place else "?"
        status, _ = self.ask("PUT", f"{place}{joint}digest={digest}", blob)
        assert status == 201


def _entry(data: bytes) -> dict[str, Any]:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return {"mediaType": "application/octet-stream", "digest": digest, "size": len(data)}


def need(*tools: str) -> None:
    """Skip where a registry cannot be started, or these tools are not there, or fail where all must be there."""
    lacking = sorted({PACKAGES[tool] for tool in tools or PACKAGES if not shutil.which(tool)})
    if lacking and os.environ.get("CI"):
        pytest.fail(f"install {' '.join(lacking)}")
    if lacking:
        pytest.skip(f"install {' '.join(lacking)}")


@contextlib.contextmanager
def running(folder: Path, *, account: Sequence[str] = (), tls: bool = False) -> Iterator[Registry]:
    """A registry that keeps everything in `folder`; `account` is a name and a password."""
    port = _free_port()
    config = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "storage")}},
        "http": {"addr": f"127.0.0.1:{port}", "secret": "of this test"},
    }
    found = Registry(f"localhost:{port}")
    if tls:
        certificate, key = certified(folder)
        config["http"]["tls"] = {"certificate": certificate, "key": key}  # type: ignore[index]
        found = found._replace(certificate=certificate)
    if account:
        told = _run("htpasswd", "-Bbn", *account).stdout
        (folder / "htpasswd").write_bytes(told)
        config["auth"] = {"htpasswd": {"realm": "test", "path": str(folder / "htpasswd")}}
        found = found._replace(headers={"Authorization": basic(*account)})
    (folder / "config.yml").write_text(yaml.safe_dump(config))
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            ["docker-registry", "serve", str(folder / "config.yml")],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "OTEL_TRACES_EXPORTER": "none"},
        )
    try:
        _await(found, server, folder / "log")
        yield found
    finally:
        server.terminate()
        server.wait(_SECONDS)


def basic(user: str, password: str) -> str:
    """The header that names an account."""
    import base64

    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def certified(folder: Path) -> tuple[str, str]:
    """A certificate for this machine that signs itself, and its key."""
    certificate, key = str(folder / "ca.crt"), str(folder / "ca.key")
    words = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    usage = "keyUsage=critical,digitalSignature,keyCertSign"
    where = ("-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=toolmatrix test")
    _run("openssl", *words, *where, "-addext", names, "-addext", usage)
    return certificate, key


def _run(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(words, check=True, capture_output=True, timeout=_SECONDS)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _await(found: Registry, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _SECONDS
    while not _answers(found):
        if server.poll() is not None or time.monotonic() > end:
            pytest.fail(f"docker-registry does not answer:\n{log.read_text()[-2000:]}")
        time.sleep(0.05)


def _answers(found: Registry) -> bool:
    try:
        found.ask("GET", "/v2/")
    except OSError:
        return False
    return True
