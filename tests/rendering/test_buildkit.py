"""What only BuildKit can do, by a real engine: the same image twice, and one name for images of several platforms.

Debian has docker's plugin buildx from 13 on, and an engine whose BuildKit rewrites times; with an older one these are
skipped, and `tests/cli/test_build_exports.py` alone says what bake is told.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine import docker
from tests.engine.commands import ran
from tests.engine.docker import Engine
from tests.images import registries

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(7200)]

# BuildKit rewrites times from 0.13 on, with `COPY --link` from 0.13.2 (moby/buildkit, release notes). Which of its
# releases an engine has it does not say in every package; this is the oldest with which it was tried.
_REWRITES = (28, 5)
_STORE = "io.containerd.snapshotter.v1"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with docker.needed(*docker.PACKAGES) as found:
        if found.run("buildx", "version").returncode:
            pytest.skip("docker's plugin buildx is not installed, which Debian has from 13 on")
        if found.version < _REWRITES:
            pytest.skip(f"tried with Docker 28.5 and later; here is {found.version}")
        if _STORE not in found.done("info", "--format", "{{.DriverStatus}}"):
            pytest.skip("the engine writes no archives of OCI without the store of containerd")
        yield found


def digest(said: str) -> str:
    """The digest that a build told of."""
    found = re.search(r"^ +(sha256:[0-9a-f]{64})$", said, re.MULTILINE)
    assert found, said
    return found[1]


def test_the_same_image_is_built_twice_with_one_digest(engine: Engine, tmp_path: Path) -> None:
    ran(engine, tmp_path, "python -m tests.engine bookworm amd64")
    ran(
        engine,
        tmp_path,
        "toolmatrix render numpy==2.0.2 python --accelerator none --distro debian12 --target x86"
        " --syntax-line off --base debian:12=local/debian:bookworm-amd64 --output out",
    )
    build = "toolmatrix build out --reproducible -- --no-cache"
    first = digest(ran(engine, tmp_path, build))
    archive = tmp_path / "out" / "x86.oci.tar"
    archive.rename(tmp_path / "first.tar")
    assert digest(ran(engine, tmp_path, build)) == first
    # What was built anew lies there, and is what its lock says.
    validate = "toolmatrix validate archive:out/x86.oci.tar --lock out/toolmatrix.lock"
    ran(engine, tmp_path, validate)
    # Another time is another image.
    later = engine._replace(environment={**engine.environment, "SOURCE_DATE_EPOCH": "1700000000"})
    assert digest(ran(later, tmp_path, "toolmatrix build out --reproducible")) != first


def test_images_of_two_platforms_have_one_name_in_a_registry(
    engine: Engine, tmp_path: Path
) -> None:
    registries.need()
    ran(engine, tmp_path, "python -m tests.engine bookworm amd64 arm64")
    ran(
        engine,
        tmp_path,
        "toolmatrix render python==3.11 --accelerator none --distro debian12 --target x86,arm"
        " --with base-image --syntax-line off --output out",
    )
    bases = {
        f"BASE_{target}": f"docker-image://local/debian:bookworm-{arch}"
        for target, arch in (("X86", "amd64"), ("ARM", "arm64"))
    }
    based = engine._replace(environment={**engine.environment, **bases})
    with registries.running(tmp_path) as registry:
        name = f"{registry.host}/team/app:1"
        # The list of parts takes a scanner from Docker's registry.
        said = ran(based, tmp_path, f"toolmatrix build out --push {name} --sbom off")
        assert f"index {name} of {name}-x86, {name}-arm" in said
        words = ["skopeo", "inspect", "--raw", "--tls-verify=false", f"docker://{name}"]
        held = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    images = [one for one in held["manifests"] if "annotations" not in one]
    assert {one["platform"]["architecture"] for one in images} == {"amd64", "arm64"}
    # Each with its provenance.
    kinds = [
        one["annotations"]["vnd.docker.reference.type"]
        for one in held["manifests"]
        if one not in images
    ]
    assert kinds == ["attestation-manifest"] * 2
