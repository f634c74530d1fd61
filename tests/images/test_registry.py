"""Images out of a real registry: the same as from a layout and an archive, with and without accounts and TLS."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.images import hostile, images, registries
from tests.images.hostile import Asked, Reply
from tests.images.registries import Registry
from toolmatrix.errors import (
    AccessDenied,
    ConfigError,
    NothingMatched,
    RegistryFailed,
    SubjectError,
)
from toolmatrix.images import registry as registry_images
from toolmatrix.images import transport
from toolmatrix.inspection import subjects
from toolmatrix.inspection.model import Inventory
from toolmatrix.inspection.subjects import read_subjects

pytestmark = [pytest.mark.process]

ACCOUNT = ("me", "pass:word")
GZIP = f"{images.OCI}.layer.v1.tar+gzip"


def one(platform: str = "linux/amd64", version: str = "12") -> images.Made:
    """An image of two layers, packed."""
    release = f"ID=debian\nVERSION_ID={version}\n".encode()
    return images.image(
        {"etc/os-release": b"ID=other\n", "etc/a": b"1" * 50_000},
        {"etc/os-release": release, "etc/.wh.a": b""},
        platform=platform,
        pack=images.gzipped,
        media=GZIP,
    )


AMD, ARM = one(), one("linux/arm64", "13")
STATEMENT = images.image({"s": b""}, platform="unknown/unknown")


@pytest.fixture(scope="module")
def registry(_large: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry without accounts, and in it one image and an index of two with a statement."""
    registries.need()
    with registries.running(tmp_path_factory.mktemp("registry")) as found:
        found.push("team/one:1.0", AMD)
        found.push("team/many:1.0", AMD, ARM, STATEMENT)
        yield found


@pytest.fixture(autouse=True)
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Docker's files for a test: none yet."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setattr(transport, "ETC", str(tmp_path / "etc"))
    return tmp_path


def log_in(docker: Path, host: str, user: str, password: str) -> None:
    """What `docker login` writes."""
    auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    (docker / "config.json").write_text(json.dumps({"auths": {host: {"auth": auth}}}))


def same(found: Inventory) -> Inventory:
    """An inventory apart from where it was read."""
    return found.replace(subject="")


def test_every_way_gives_the_same_inventory(registry: Registry, tmp_path: Path) -> None:
    files = images.layout(AMD, ARM, STATEMENT)
    images.put(tmp_path / "layout", files)
    (tmp_path / "image.tar").write_bytes(images.tar(files))
    subject = f"registry://{registry.host}/team/many:1.0"
    ways = [subject, f"oci:{tmp_path}/layout", f"archive:{tmp_path}/image.tar"]
    found = [subjects.observe(way, "linux/arm64") for way in ways]
    assert [one.subject for one in found] == ways
    assert found[0].digest == ARM.entry["digest"]
    assert found[0].components["distro"][0].version == "debian13"
    assert same(found[0]) == same(found[1]) == same(found[2])


@pytest.mark.parametrize(
    "form",
    ["registry://{}/team/one:1.0", "registry:{}/team/one:1.0@{}", "registry://{}/team/one@{}"],
)
def test_tags_and_digests_name_it(registry: Registry, form: str) -> None:
    found = subjects.observe(form.format(registry.host, AMD.entry["digest"]))
    assert found.digest == AMD.entry["digest"]


@pytest.mark.parametrize(
    ("platform", "made"), [("linux/amd64", AMD), ("linux/arm64", ARM), ("linux/arm64/v8", ARM)]
)
def test_a_platform_picks_from_an_index(
    registry: Registry, platform: str, made: images.Made
) -> None:
    found = subjects.observe(f"registry://{registry.host}/team/many:1.0", platform)
    assert (found.digest, found.platform) == (made.entry["digest"], platform[:11])


@pytest.mark.parametrize(("machine", "made"), [("x86_64", AMD), ("aarch64", ARM)])
def test_without_a_platform_it_is_that_of_this_machine(
    registry: Registry, machine: str, made: images.Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(machine=machine))
    found = subjects.observe(f"registry://{registry.host}/team/many:1.0")
    assert found.digest == made.entry["digest"]


def test_an_only_image_is_taken_wherever_this_runs(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(machine="riscv64"))
    assert subjects.observe(f"registry://{registry.host}/team/one:1.0").platform == "linux/amd64"


def test_platforms_that_are_there_are_listed(registry: Registry) -> None:
    with pytest.raises(SubjectError) as caught:
        subjects.observe(f"registry://{registry.host}/team/many:1.0", "linux/riscv64")
    assert (caught.value.what, caught.value.found) == (
        "there is no image for this platform",
        "linux/amd64, linux/arm64",
    )


@pytest.mark.parametrize("name", ["team/one:2.0", "team/none:1.0", "team/one@sha256:" + "0" * 64])
def test_what_is_not_there_is_told(registry: Registry, name: str) -> None:
    with pytest.raises(SubjectError) as caught:
        subjects.observe(f"registry://{registry.host}/{name}")
    assert caught.value.what == "the registry does not have this"
    assert caught.value.found == "404 MANIFEST_UNKNOWN: manifest unknown"


def test_docker_s_media_types_are_read(registry: Registry) -> None:
    kinds = {
        images.MANIFEST: "application/vnd.docker.distribution.manifest.v2+json",
        f"{images.OCI}.config.v1+json": "application/vnd.docker.container.image.v1+json",
        GZIP: "application/vnd.docker.image.rootfs.diff.tar.gzip",
    }
    manifest = AMD.blobs[AMD.entry["digest"]].decode()
    for old, new in kinds.items():
        manifest = manifest.replace(f'"{old}"', f'"{new}"')
    registry.manifest("team/one", "docker", manifest.encode(), kinds[images.MANIFEST])
    found = subjects.observe(f"registry://{registry.host}/team/one:docker")
    assert found.digest == images.digest(manifest.encode())
    assert found.components["distro"][0].version == "debian12"


# Accounts


@pytest.fixture(scope="module")
def closed(_large: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry for one account, by TLS."""
    registries.need()
    folder = tmp_path_factory.mktemp("closed")
    with registries.running(folder, account=ACCOUNT, tls=True) as found:
        found.push("one:1.0", AMD)
        yield found


@pytest.fixture
def trusted(closed: Registry, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The same, trusted."""
    monkeypatch.setenv("SSL_CERT_FILE", closed.certificate)
    return closed


def test_an_account_lets_in(trusted: Registry, docker: Path) -> None:
    log_in(docker, trusted.host, *ACCOUNT)
    assert subjects.observe(f"registry://{trusted.host}/one:1.0").digest == AMD.entry["digest"]


@pytest.mark.parametrize("password", ["", "wrong secret"])
def test_no_account_and_another_are_told_apart(
    trusted: Registry, docker: Path, password: str
) -> None:
    if password:
        log_in(docker, trusted.host, "me", password)
    with pytest.raises(AccessDenied) as caught:
        subjects.observe(f"registry://{trusted.host}/one:1.0")
    error = caught.value
    assert error.expected == f"{'other' if password else 'any'} credentials in {docker}/config.json"
    assert error.help == f"`docker login {trusted.host}`, if the image exists"
    assert "secret" not in repr(vars(error))


def test_a_certificate_that_nobody_vouches_for_is_refused(closed: Registry, docker: Path) -> None:
    log_in(docker, closed.host, *ACCOUNT)
    with pytest.raises(RegistryFailed) as caught:
        subjects.observe(f"registry://{closed.host}/one:1.0")
    assert caught.value.found.startswith("its certificate is not trusted: self-signed certificate")


def test_docker_s_directory_of_certificates_vouches(closed: Registry, docker: Path) -> None:
    log_in(docker, closed.host, *ACCOUNT)
    folder = docker / "etc" / "certs.d" / closed.host
    folder.mkdir(parents=True)
    with open(closed.certificate, "rb") as file:
        (folder / "ca.crt").write_bytes(file.read())
    assert subjects.observe(f"registry://{closed.host}/one:1.0").platform == "linux/amd64"
    (folder / "ca.crt").write_text("no certificate")
    with pytest.raises(ConfigError, match="Docker's configuration cannot be used"):
        subjects.observe(f"registry://{closed.host}/one:1.0")


@pytest.mark.parametrize("table", ["credHelpers", "credsStore"])
def test_a_helper_lets_in(
    trusted: Registry, docker: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper(docker, monkeypatch, f'read server; echo "$server" > {docker}/asked; cat {docker}/told')
    told = {"ServerURL": trusted.host, "Username": ACCOUNT[0], "Secret": ACCOUNT[1]}
    (docker / "told").write_text(json.dumps(told))
    named = {trusted.host: "mine"} if table == "credHelpers" else "mine"
    (docker / "config.json").write_text(json.dumps({table: named, "auths": {trusted.host: {}}}))
    assert subjects.observe(f"registry://{trusted.host}/one:1.0").platform == "linux/amd64"
    assert (docker / "asked").read_text() == f"{trusted.host}\n"


@pytest.mark.parametrize(
    ("program", "note"),
    [
        ("exec sleep 60", "took too long"),
        ("echo secret; exit 0", "failed"),
        ("echo '[]'", ""),
        ("echo '[1]'", ""),
        ("head -c 100000 /dev/zero | tr '\\0' '['", "failed"),
        ("echo '{\"Username\": 1}'", ""),
        ("exit 1", ""),
        (None, "failed"),
    ],
)
def test_a_helper_that_does_not_help_leaves_no_credentials(
    trusted: Registry,
    docker: Path,
    program: str | None,
    note: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "HELPER_PATIENCE", 0.5)
    if program:
        helper(docker, monkeypatch, program)
    (docker / "config.json").write_text(json.dumps({"credsStore": "mine"}))
    with pytest.raises(AccessDenied) as caught:
        subjects.observe(f"registry://{trusted.host}/one:1.0")
    assert caught.value.found == (
        f"it wants credentials; docker-credential-mine {note}" if note else "it wants credentials"
    )


def helper(docker: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """A credential helper called `mine`."""
    path = docker / "docker-credential-mine"
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(docker), prepend=":")


def test_a_repository_is_the_list_of_its_tags(registry: Registry) -> None:
    names = [f"1.{number}" for number in range(5)]
    for name in [*names, "latest"]:
        registry.push(f"team/app:{name}", AMD)
    place = f"registry://{registry.host}/team/app"
    assert read_subjects(place, bytes) == [f"{place}:{name}" for name in [*names, "latest"]]
    assert read_subjects(f"{place}:1.[0-2]", bytes) == [f"{place}:{name}" for name in names[:3]]
    with pytest.raises(NothingMatched, match="no tag of the repository matches"):
        read_subjects(f"{place}:2.*", bytes)
    with pytest.raises(SubjectError, match="the registry does not have this"):
        read_subjects(f"registry://{registry.host}/team/none", bytes)


def test_tags_come_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    tags = [f"{number:03}" for number in range(7)]

    def page(asked: Asked) -> Reply:
        fields = dict(parse_qsl(urlsplit(asked.path).query))
        left = [tag for tag in tags if tag > fields.get("last", "")]
        more = {"Link": '</elsewhere>; rel="next"'} if len(left) > int(fields["n"]) else {}
        return Reply(headers=more, body=json.dumps({"tags": left[: int(fields["n"])]}).encode())

    monkeypatch.setattr(registry_images, "_PAGE", 3)
    with hostile.running() as server:
        server.answers["/v2/app/tags/list"] = page
        place = f"registry://{server.host}/app"
        assert read_subjects(place, bytes) == [f"{place}:{tag}" for tag in tags]
        monkeypatch.setattr(registry_images, "_MOST_TAGS", 5)
        with pytest.raises(SubjectError, match="too many tags"):
            read_subjects(place, bytes)
        for body in (b"[]", b"1", b'{"tags": [1]}', b'{"tags": ["../x"]}', b'{"tags": {}}', b"<"):
            server.answers["/v2/app/tags/list"] = Reply(body=body)
            with pytest.raises((RegistryFailed, SubjectError)):
                read_subjects(place, bytes)
