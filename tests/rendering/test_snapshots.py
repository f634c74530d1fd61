"""Packages of a distribution as they were on a day: what is rendered, and what a real apt makes of it on loopback."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.golden import assert_golden
from tests.images import hostile as servers
from tests.images.hostile import Reply, Server
from tests.rendering.jobs import job, lock
from toolmatrix.errors import NoImage, UsageError
from toolmatrix.rendering import formats, mirrors, pinning
from toolmatrix.rendering.dockerfile import DIALECTS
from toolmatrix.rendering.model import Job

DAY, EARLIER = "20261120T000000Z", "20260301T000000Z"
LIVE = "http://deb.debian.org/debian/"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("name", "target"), [("debian", "x86"), ("tensorflow", "amd")])
def test_sources_of_a_day(name: str, target: str, dialect: str) -> None:
    """Debian, and Ubuntu with a repository beside it, where lists are updated twice."""
    made = job(lock(name), targets=(target,), dialect=dialect, snapshot=DAY)
    text = formats.known()["dockerfile"].files(made)[f"{target}.Dockerfile"]
    assert_golden(f"render/snapshot/{dialect}/{name}-{target}.Dockerfile", text)


def test_every_stage_and_form_has_the_day() -> None:
    made = job(lock("tensorflow"), recipe="tensorflow", targets=("x86",), snapshot=DAY)
    text = formats.known()["dockerfile"].files(made)["x86.Dockerfile"]
    first, last = text.split("\nFROM nvidia/cuda:11.2.2-cudnn8-runtime-ubuntu20.04 AS runtime\n")
    for stage in (first, last):
        written, updated = stage.index("> /etc/apt/sources.list"), stage.index("apt-get update")
        assert written < updated
        assert stage.count("apt-get update") == stage.count(f"grep -v '/{DAY}/'")
        assert f"ARG SOURCE_DATE_EPOCH={pinning.epoch(DAY)}\n" in stage
    for form in ("apptainer", "devcontainer-feature"):
        scripts = formats.known()[form].files(made)
        assert f"grep -v '/{DAY}/'" in "".join(scripts.values())


def test_a_day_is_the_time_at_its_beginning() -> None:
    assert pinning.stamp("2026-11-20") == pinning.stamp(DAY) == DAY
    assert pinning.stamp("20261120T030405Z") == "20261120T030405Z"
    assert pinning.stamp("") == ""
    assert pinning.epoch("1970-01-02") == 24 * 60 * 60


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-1-2", "2026-02-30", "20261120", "2026-11-20T00:00:00Z", "x; id"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        pinning.stamp(text)


@pytest.mark.parametrize(
    ("name", "target", "day", "reason"),
    [
        ("rocky", "x86", DAY, "there is no snapshot of the packages of rockylinux9"),
        (
            *("tensorflow", "x86", "20230228T235959Z"),
            "snapshots of the packages of ubuntu20.04 start at 2023-03-01",
        ),
    ],
)
def test_what_no_service_keeps_is_no_image(name: str, target: str, day: str, reason: str) -> None:
    with pytest.raises(NoImage) as caught:
        job(lock(name), targets=(target,), snapshot=day)
    assert caught.value.found == f"{target}: {reason}"


def test_a_mirror_of_the_service_has_the_day() -> None:
    held = mirrors.parsed(["http://snapshot.debian.org/archive=https://mirror.invalid/snap"])
    (image,) = job(lock("debian"), targets=("x86",), snapshot=DAY, mirrors=held).images
    assert image.snapshot is not None
    addresses = {line.split()[3] for line in image.snapshot.lines}
    assert addresses == {
        f"https://mirror.invalid/snap/debian/{DAY}/",
        f"https://mirror.invalid/snap/debian-security/{DAY}/",
    }
    assert addresses <= {*mirrors.addresses(image)}


# A real apt


class Archive(NamedTuple):
    """Where an archive is served, and the key that signs it."""

    server: Server
    key: Path
    home: Path

    def suite(self, root: str, name: str, version: str, origin: str) -> None:
        """A suite below a folder with one package, of which the Release file is valid no more."""
        data = f"not a package of {version}".encode()
        file = f"pool/hello_{version}_all.deb"
        index = (
            f"Package: hello\nVersion: {version}\nArchitecture: all\nFilename: {file}\nSize: {len(data)}\n"
            f"SHA256: {hashlib.sha256(data).hexdigest()}\nDescription: x\n"
        ).encode()
        held = f" {hashlib.sha256(index).hexdigest()} {len(index)} main/binary-amd64/Packages"
        release = (
            f"Origin: {origin}\nSuite: {name}\nCodename: {name}\nArchitectures: amd64\nComponents: main\n"
            "Date: Fri, 20 Nov 2020 00:00:00 UTC\nValid-Until: Fri, 27 Nov 2020 00:00:00 UTC\n"
            f"SHA256:\n{held}\n"
        )
        signed = gpg(self.home, "--clearsign", said=release.encode())
        at = f"{root}/dists/{name}"
        self.server.answers[f"{at}/InRelease"] = Reply(body=signed)
        self.server.answers[f"{at}/main/binary-amd64/Packages"] = Reply(body=index)


def gpg(home: Path, *words: str, said: bytes = b"") -> bytes:
    """What gpg answers, with a folder of its own."""
    return subprocess.run(
        ["gpg", "--homedir", home, "--batch", "--quiet", *words],
        input=said,
        capture_output=True,
        check=True,
    ).stdout


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of gpg with a key of nobody."""
    if not (shutil.which("apt-get") and shutil.which("gpg")):
        pytest.skip("apt or gpg is not installed")
    found = tmp_path_factory.mktemp("gpg")
    found.chmod(0o700)
    gpg(found, "--passphrase", "", "--quick-generate-key", "a@example.org", "rsa2048", "sign")
    (found / "key.gpg").write_bytes(gpg(found, "--export"))
    return found


@pytest.fixture
def archive(home: Path) -> Iterator[Archive]:
    """An archive of Debian on two days and today, as its service lays it out."""
    with servers.running() as server:
        found = Archive(server, home / "key.gpg", home)
        for day, version in ((DAY, "2.0"), (EARLIER, "1.0")):
            main = f"/archive/debian/{day}"
            found.suite(main, "bookworm", version, "Debian")
            found.suite(main, "bookworm-updates", version, "Debian")
            found.suite(f"/archive/debian-security/{day}", "bookworm-security", version, "Debian")
        found.suite("/debian", "bookworm", "3.0", "Debian")
        found.suite("/other", "stable", "4.0", "Somebody")
        yield found


def updated(made: Job, root: Path, key: Path) -> subprocess.CompletedProcess[str]:
    """The lines of a script up to the first package, run by a shell with an apt of its own folder."""
    (image,) = made.images
    script = formats.known()["apptainer"].files(made)[f"{image.name}.def"]
    lines = script.partition("# Packages of ")[2].partition("\n")[2]
    lines = lines.partition("DEBIAN_FRONTEND")[0]
    for word, to in (("/etc/apt", root / "etc"), ("/usr/share/keyrings", root / "keys")):
        lines = lines.replace(word, str(to))
    for part in ("etc/sources.list.d", "etc/apt.conf.d", "keys", "state/lists/partial", "cache"):
        (root / part).mkdir(parents=True, exist_ok=True)
    for name in ("debian", "ubuntu"):
        shutil.copy(key, root / f"keys/{name}-archive-keyring.gpg")
    (root / "status").touch()
    (root / "apt.conf").write_text(
        f'Dir::Etc "{root}/etc";\nDir::State "{root}/state";\nDir::Cache "{root}/cache";\n'
        f'Dir::State::status "{root}/status";\nAPT::Architecture "amd64";\nAPT::Sandbox::User "root";\n'
        'Acquire::Languages "none";\nAcquire::http::Proxy "DIRECT";\nAcquire::https::Proxy "DIRECT";\n'
    )
    return subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", lines],
        env=environment(root),
        capture_output=True,
        text=True,
        check=False,
    )


def environment(root: Path) -> dict[str, str]:
    """An environment in which apt knows one folder alone."""
    return {"APT_CONFIG": str(root / "apt.conf"), "PATH": "/usr/bin:/bin", "LC_ALL": "C"}


def candidate(root: Path) -> str:
    """The version that apt would install."""
    told = subprocess.run(
        ["apt-cache", "policy", "hello"],
        env=environment(root),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return told.partition("Candidate: ")[2].partition("\n")[0] or "(none)"


def dated(archive: Archive, day: str) -> Job:
    """A job of packages of a day, which are at a mirror."""
    held = mirrors.parsed([f"http://snapshot.debian.org={archive.server.url}"])
    return job(lock("debian"), targets=("x86",), snapshot=day, mirrors=held)


@pytest.mark.process
@pytest.mark.parametrize(("day", "version"), [(DAY, "2.0"), (EARLIER, "1.0")])
def test_apt_has_the_packages_of_the_day(
    archive: Archive, tmp_path: Path, day: str, version: str
) -> None:
    listed = tmp_path / "etc/sources.list.d"
    listed.mkdir(parents=True)
    # What the image came with is gone, and what somebody else has stays.
    (listed / "debian.sources").write_text(f"Types: deb\nURIs: {LIVE}\nSuites: bookworm\n")
    (tmp_path / "etc/sources.list").write_text(f"deb {LIVE} bookworm main\n")
    (listed / "other.list").write_text(
        f"deb [check-valid-until=no signed-by={archive.key}] {archive.server.url}/other stable main\n"
    )
    told = updated(dated(archive, day), tmp_path, archive.key)
    assert told.returncode == 0, told.stdout + told.stderr
    asked = {one.path.partition("/dists/")[0] for one in archive.server.asked}
    assert asked == {f"/archive/debian/{day}", f"/archive/debian-security/{day}", "/other"}
    (listed / "other.list").unlink()
    assert candidate(tmp_path) == version


@pytest.mark.process
def test_packages_of_another_day_end_the_build(archive: Archive, tmp_path: Path) -> None:
    listed = tmp_path / "etc/sources.list.d"
    listed.mkdir(parents=True)
    (listed / "company.list").write_text(
        f"deb [check-valid-until=no signed-by={archive.key}] {archive.server.url}/debian bookworm main\n"
    )
    told = updated(dated(archive, DAY), tmp_path, archive.key)
    assert told.returncode == 1
    assert told.stderr == (
        f"{archive.server.url}/debian/\n"
        f"this image also knows packages of Debian that are not of {DAY}\n"
    )


@pytest.mark.process
def test_an_archive_that_nobody_signed_is_refused(archive: Archive, tmp_path: Path) -> None:
    at = f"/archive/debian/{DAY}/dists/bookworm/InRelease"
    reply = archive.server.answers[at]
    assert isinstance(reply, Reply)
    assert isinstance(reply.body, bytes)
    archive.server.answers[at] = Reply(
        body=reply.body.replace(b"Components: main", b"Components: evil")
    )
    told = updated(dated(archive, DAY), tmp_path, archive.key)
    assert told.returncode == 100
    assert "The following signatures were invalid: BADSIG" in told.stderr


@pytest.mark.long
@pytest.mark.process
def test_a_service_that_moves_to_https_needs_no_certificates(home: Path, tmp_path: Path) -> None:
    """An image of Ubuntu has none: what is trusted is the signature of the archive."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = ("-newkey", "rsa:2048", "-nodes", "-subj", "/CN=nobody", "-days", "1")
    subprocess.run(
        ["openssl", "req", "-x509", *words, "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    with servers.running((str(certificate), str(key))) as safe, servers.running() as plain:
        archive = Archive(safe, home / "key.gpg", home)
        for suite in ("focal", "focal-updates", "focal-security"):
            archive.suite(f"/ubuntu/{DAY}", suite, "5.0", "Ubuntu")
        for path in safe.answers:
            plain.answers[path] = Reply(301, {"Location": safe.url + path})
        held = mirrors.parsed([f"http://snapshot.ubuntu.com={plain.url}"])
        made = job(lock("tensorflow"), targets=("arm",), snapshot=DAY, mirrors=held)
        (image,) = made.images
        assert image.snapshot is not None
        assert image.snapshot.options == (
            'Acquire::https::snapshot.ubuntu.com::Verify-Peer "false";',
        )
        # apt gives up on a list that it cannot get, and goes on.
        for host, version in (("snapshot.ubuntu.com", "(none)"), ("localhost", "5.0")):
            known = tuple(
                one.replace("snapshot.ubuntu.com", host) for one in image.snapshot.options
            )
            other = image.replace(snapshot=image.snapshot.replace(options=known))
            told = updated(made.replace(images=(other,)), tmp_path / host, archive.key)
            assert told.returncode == 0, told.stdout + told.stderr
            assert ("The certificate is NOT trusted" in told.stdout) is (version == "(none)")
            assert candidate(tmp_path / host) == version, told.stdout + told.stderr
