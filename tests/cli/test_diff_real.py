"""Real systems of two architectures, made of Debian's packages: alike as they come, and drift named; nothing is run."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_diff import ARM_FLAGS, suspicious
from tests.engine import bases, docker
from tests.engine.__main__ import folder
from tests.images import images

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(7200)]

FLAGS = {"amd64": "-O2", "arm64": " ".join(("-O2", *ARM_FLAGS))}


@pytest.fixture(scope="module")
def systems() -> dict[str, Path]:
    """The archive of a base image for each architecture."""
    lacking = docker.missing("mmdebstrap", "qemu-aarch64-static")
    if lacking:
        docker.unable(f"real systems need {', '.join(lacking)}")
    try:
        return {
            arch: bases.archive(bases.Base("bookworm", arch), folder()) for arch in bases.EMULATORS
        }
    except bases.BaseFailed as error:
        docker.unable(str(error))


def layered(base: Path, to: Path, files: dict[str, bytes], flags: str) -> None:
    """A base image with one more layer and CFLAGS, as `docker save` would write it."""
    layer = images.tar(files)
    with tarfile.open(base) as old, tarfile.open(to, "w") as new:
        for member in old:
            data = old.extractfile(member)
            held = data.read() if data and member.name.endswith(".json") else None
            if member.name == "config.json" and held:
                held = _config(json.loads(held), images.digest(layer), flags)
            elif member.name == "manifest.json" and held:
                manifest = json.loads(held)
                manifest[0]["Layers"].append("added.tar")
                held = images.as_json(manifest)
            if held is not None:
                member.size, data = len(held), io.BytesIO(held)
            new.addfile(member, data)
        info = tarfile.TarInfo("added.tar")
        info.size = len(layer)
        new.addfile(info, io.BytesIO(layer))


def _config(config: dict[str, Any], digest: str, flags: str) -> bytes:
    config["rootfs"]["diff_ids"].append(digest)
    config["config"]["Env"].append(f"CFLAGS={flags}")
    return images.as_json(config)


def record(version: str) -> dict[str, bytes]:
    """A layer with a package of Python."""
    path = "usr/local/lib/python3.11/dist-packages/numpy-1.dist-info/METADATA"
    return {path: f"Name: numpy\nVersion: {version}\n".encode()}


def test_one_environment_on_two_architectures_and_drift(
    cli: Cli, here: Path, systems: dict[str, Path]
) -> None:
    for arch, base in systems.items():
        layered(base, here / f"{arch}.tar", record("1.26.4"), FLAGS[arch])
    run = cli("diff", "archive:amd64.tar", "archive:arm64.tar", "--json", "--exit-code")
    assert (run.code, suspicious(run.json())) == (0, {})
    assert run.json()["summary"]["same"] > 100
    layered(systems["arm64"], here / "drifted.tar", record("2.1.0"), "-O2")
    drifted = cli("diff", "archive:amd64.tar", "archive:drifted.tar", "--json", "--exit-code")
    assert drifted.code == 1
    assert suspicious(drifted.json()) == {
        "component:numpy": ("1.26.4", "2.1.0"),
        "effect:char": ("signed", "unsigned"),
    }
