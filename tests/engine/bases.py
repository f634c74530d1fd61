"""Base images out of packages of Debian or Ubuntu alone, for machines that reach a mirror and no container registry.

mmdebstrap writes the root file system; it is wrapped as an archive for `docker load`, whose configuration states the
architecture (`docker import --platform` of Docker 20.10 records the host's, moby/moby#42813). A foreign architecture
runs under qemu-user-static. The image uses the mirror of this machine's own apt, and trusts what this machine trusts.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PREFIX = "local"
UBUNTU = ("bionic", "focal", "noble", "resolute")
"""The suites that are Ubuntu's; others are Debian's."""

# Their pip asks at an address that only redirects today, which not every machine reaches.
_OLD_PIP = ("bionic",)

EMULATORS = {"amd64": "x86_64", "arm64": "aarch64"}
"""What qemu calls an architecture of Debian."""

VARIANTS = {"arm64": {"variant": "v8"}}
"""What an image says beside its architecture (OCI image index, platform variants)."""

_BINFMT = Path("/proc/sys/fs/binfmt_misc")
_AUTHORITIES = Path("/usr/local/share/ca-certificates")
# By which packages of Ubuntu are trusted: a file of a package that Debian has from this suite on.
_KEYRING, _KEYRING_SUITE = "usr/share/keyrings/ubuntu-archive-keyring.gpg", "trixie"
_HOOKS = "/usr/share/mmdebstrap/hooks/maybe-merged-usr"
# As in images of Debian and Ubuntu: no package is written to the disk before the next one is unpacked.
_DPKG = (
    "force-unsafe-io",
    *(f"path-exclude=/usr/share/{name}/*" for name in ("doc", "info", "locale")),
)
# What makes hashed links of some 140 certificates, which takes minutes where each of its programs is emulated.
_UPDATE = "/usr/sbin/update-ca-certificates"
_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_DIVERT = 'chroot "$1" dpkg-divert --quiet --local --rename'


class BaseFailed(Exception):
    """A base image cannot be made here; the text says why."""


class Base(NamedTuple):
    """A suite of Debian or Ubuntu for one architecture."""

    suite: str
    arch: str

    @property
    def tag(self) -> str:
        """The name of the image: the architecture is part of it, since an engine may keep one image to a name."""
        return f"{PREFIX}/{'ubuntu' if self.suite in UBUNTU else 'debian'}:{self.suite}-{self.arch}"


def archive(base: Base, folder: Path) -> Path:
    """The archive of a base image, made unless the folder has it; raises BaseFailed."""
    sources = _sources(base.suite)
    authorities = sorted(_AUTHORITIES.glob("*.crt"))
    settings = _settings_of_pip() if base.suite in _OLD_PIP else ""
    trusted = [_BUNDLE] if _BUNDLE.exists() else []
    contents = [*(path.read_text() for path in (*authorities, *trusted)), *_DPKG]
    made_from = (*base, *sources, *contents, *([settings] if settings else []))
    name = f"{base.suite}-{base.arch}-{hashlib.sha256(repr(made_from).encode()).hexdigest()[:12]}"
    kept = folder / f"{name}.tar"
    layer, part = folder / f"{name}.layer", folder / f"{name}.part"
    folder.mkdir(parents=True, exist_ok=True)
    # Tests that run side by side need the same one.
    with (folder / f"{name}.lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        if base.arch != _own_architecture():
            emulate(base.arch)
        if kept.exists():
            return kept
        try:
            with _keyring(base.suite) as keyring:
                _bootstrap(base, sources, authorities, layer, keyring, settings)
            _wrap(base, layer, part)
            part.rename(kept)
        finally:
            layer.unlink(missing_ok=True)
            part.unlink(missing_ok=True)
    return kept


def unpacked(base: Base, folder: Path, root: Path) -> None:
    """Unpack a base image into a new folder, as root, with the names that this machine knows; raises BaseFailed."""
    kept = archive(base, folder)
    root.mkdir()
    # Owners, modes and devices as they are, which is the tar of the system's business.
    with tarfile.open(kept) as held:
        layer = held.extractfile("layer.tar")
        assert layer is not None
        with subprocess.Popen(["tar", "-x", "-C", root], stdin=subprocess.PIPE) as tar:
            assert tar.stdin is not None
            shutil.copyfileobj(layer, tar.stdin)
            tar.stdin.close()
            if tar.wait():
                raise BaseFailed(f"tar ended with {tar.returncode}")
    for name in ("resolv.conf", "hosts"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)


def emulate(arch: str) -> None:
    """Let the kernel run programs of another architecture by qemu-user-static; raises BaseFailed.

    The flag F of its entry makes the kernel hold qemu open, so that it works inside containers as well (Linux
    documentation, binfmt-misc).
    """
    name = f"qemu-{EMULATORS[arch]}"
    if (_BINFMT / name).exists():
        return
    entry = Path(f"/usr/lib/binfmt.d/{name}.conf")
    if not entry.exists():
        raise BaseFailed(f"programs for {arch} do not run here: install qemu-user-static")
    try:
        if not (_BINFMT / "register").exists():
            _run(["mount", "-t", "binfmt_misc", "binfmt_misc", str(_BINFMT)])
        (_BINFMT / "register").write_text(entry.read_text().strip())
    except OSError as error:
        raise BaseFailed(f"programs for {arch} do not run here: {error}") from None


def _own_architecture() -> str:
    return _run(["dpkg", "--print-architecture"]).strip()


def mirrors() -> dict[str, str]:
    """The mirrors that apt of this machine uses, by their labels, such as `Debian` and `Debian-Security`."""
    words = ["apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages"]
    return dict(reversed([line.split() for line in _run(words).splitlines() if line]))


@contextlib.contextmanager
def _keyring(suite: str) -> Iterator[tuple[str, ...]]:
    """The option that names the keys of Ubuntu, which Debian's own keys vouch for."""
    if suite not in UBUNTU:
        yield ()
        return
    with tempfile.TemporaryDirectory() as folder:
        # apt reads them as a user of its own.
        Path(folder).chmod(0o711)
        package = Path(folder) / "package.tar"
        words = ("--variant=extract", "--include=ubuntu-archive-keyring", "--format=tar")
        _run(["mmdebstrap", *words, _KEYRING_SUITE, str(package), *_sources(_KEYRING_SUITE)])
        with tarfile.open(package) as tar:
            keys = tar.extractfile(f"./{_KEYRING}")
            assert keys is not None
            found = Path(folder) / "keys.gpg"
            found.write_bytes(keys.read())
        yield (f"--keyring={found}",)


def _sources(suite: str) -> tuple[str, ...]:
    """Lines for apt with the mirrors that this machine uses; none where it uses no mirror of that distribution."""
    found = mirrors()
    if suite in UBUNTU or "Debian" not in found:
        return ()
    main = found["Debian"]
    lines = [f"deb {main} {suite} main", f"deb {main} {suite}-updates main"]
    if "Debian-Security" in found:
        lines.append(f"deb {found['Debian-Security']} {suite}-security main")
    return tuple(lines)


def _settings_of_pip() -> str:
    """The settings by which an old pip asks the index that this machine's asks."""
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        check=False,
        capture_output=True,
        text=True,
    )
    default = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
    index = asked.stdout.strip() or _run([sys.executable, "-c", default]).strip()
    return f"[global]\nindex-url = {index}\n"


def _bootstrap(
    base: Base,
    sources: Iterable[str],
    authorities: Iterable[Path],
    layer: Path,
    keyring: Iterable[str],
    settings: str,
) -> None:
    diverting = []
    hooks = [f'mkdir -p "$1"{_AUTHORITIES}', *(f"upload {path} {path}" for path in authorities)]
    if _BUNDLE.exists():
        # The links and the bundle of this machine, which made them of the same certificates.
        certificates = _BUNDLE.parent
        diverting = [
            f'--essential-hook={_DIVERT} --add {_UPDATE}; ln -s /bin/true "$1"{_UPDATE}',
        ]
        hooks += [
            f'rm "$1"{_UPDATE}; {_DIVERT} --remove {_UPDATE}',
            f'tar -C {certificates.parent} -ch {certificates.name} | tar -C "$1"{certificates.parent} -x',
        ]
    else:
        hooks.append(f'chroot "$1" {_UPDATE}')
    if settings:
        hooks.append(f'printf %s {shlex.quote(settings)} > "$1/etc/pip.conf"')
    _run(
        [
            "mmdebstrap",
            "--mode=root",
            "--variant=minbase",
            "--format=tar",
            "--skip=check/qemu",  # `emulate` has looked
            f"--architectures={base.arch}",
            "--include=ca-certificates,apt",
            # Packages of Ubuntu make the links themselves, and its images have this as well.
            *(
                ("--components=main,universe",)
                if base.suite in UBUNTU
                else (f"--hook-dir={_HOOKS}",)
            ),
            *keyring,
            *(f"--dpkgopt={option}" for option in _DPKG),
            *diverting,
            *(f"--customize-hook={hook}" for hook in hooks),
            base.suite,
            str(layer),
            *sources,
        ]
    )


def _wrap(base: Base, layer: Path, to: Path) -> None:
    """The root file system as an archive for `docker load`."""
    digest = hashlib.sha256()
    with layer.open("rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            digest.update(part)
    config = json.dumps(
        {
            "architecture": base.arch,
            **VARIANTS.get(base.arch, {}),
            "os": "linux",
            "config": {
                "Cmd": ["bash"],
                "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest.hexdigest()}"]},
        }
    )
    manifest = [{"Config": "config.json", "RepoTags": [base.tag], "Layers": ["layer.tar"]}]
    with tarfile.open(to, "w") as tar:
        for name, text in (("config.json", config), ("manifest.json", json.dumps(manifest))):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
        tar.add(layer, "layer.tar")


def _run(words: list[str]) -> str:
    try:
        done = subprocess.run(
            words, check=False, capture_output=True, text=True, env=dict(_environment())
        )
    except OSError as error:
        raise BaseFailed(f"{words[0]} cannot be run: {error.strerror}") from None
    if done.returncode:
        said = "\n".join(done.stderr.splitlines()[-12:])
        raise BaseFailed(f"{words[0]} ended with {done.returncode}:\n{said}")
    return done.stdout


def _environment() -> Iterator[tuple[str, str]]:
    """The variables of this process without those of its language, which the image does not have."""
    for name, text in os.environ.items():
        if not name.startswith(("LC_", "LANG")):
            yield name, text
    yield "LC_ALL", "C.UTF-8"
