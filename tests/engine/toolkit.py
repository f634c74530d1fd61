"""A stand-in for an image of NVIDIA with compilers, where no registry can be reached: Ubuntu, and the vendor's wheels.

The package cuda-toolkit of the index names the wheels of a release (its METADATA, extras). What compiles is whole; of
the libraries, with which nothing is linked here, there are the headers. Each wheel becomes a package of dpkg below
/usr/local/cuda, as in an image of NVIDIA: the check of an image asks dpkg for them.

`python -m tests.engine.toolkit RELEASE` makes the image and loads it into the engine that runs, as root.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

from tests.engine import bases, docker
from tests.engine.__main__ import folder as cache

_COMPILES = ("nvcc", "cudart", "cccl", "crt", "nvvm", "profiler")
# What headers of PyTorch include (ATen/cuda/CUDAContextLight.h).
_HEADERS = ("cublas", "cusparse", "cusolver")
_RUNTIME = "nvidia-cuda-runtime"
_WHOLE = (_RUNTIME, "nvidia-cuda-nvcc", "nvidia-cuda-cccl", "nvidia-cuda-crt", "nvidia-nvvm")
_DOCKERFILE = """\
FROM {base}
RUN --mount=type=bind,target=/mnt dpkg --install /mnt/*.deb && ln -s {folder} /usr/local/cuda
ENV PATH="/usr/local/cuda/bin:${{PATH}}" NVIDIA_VISIBLE_DEVICES="all" NVIDIA_DRIVER_CAPABILITIES="compute,utility"
"""


def tag(release: str) -> str:
    """The name of the image."""
    return f"{bases.PREFIX}/cuda:{release}-noble-amd64"


def make(engine: docker.Engine, release: str, kept: Path) -> str:
    """Make the image of a release of the toolkit; its name. Raises BaseFailed and EngineFailed."""
    base = bases.Base("noble", "amd64")
    engine.done("load", "--quiet", "--input", str(bases.archive(base, kept)))
    with tempfile.TemporaryDirectory(dir=kept) as place:
        wheels, packages = Path(place, "wheels"), Path(place, "packages")
        packages.mkdir()
        _download(release, wheels)
        folder = f"usr/local/cuda-{'.'.join(release.split('.')[:2])}"
        for wheel in sorted(wheels.glob("nvidia_*.whl")):
            _package(wheel, release, folder, packages)
        text = _DOCKERFILE.format(base=base.tag, folder=f"/{folder}")
        (packages / "Dockerfile").write_text(text)
        engine.done("build", "--quiet", "--tag", tag(release), str(packages))
    return tag(release)


def _download(release: str, to: Path) -> None:
    wanted = f"cuda-toolkit[{','.join((*_COMPILES, *_HEADERS))}]=={release}.*"
    words = ["-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest", str(to), wanted]
    done = subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise bases.BaseFailed(f"the toolkit cannot be downloaded:\n{done.stderr}")


def _package(wheel: Path, release: str, folder: str, to: Path) -> None:
    """A wheel as a package of dpkg; that of the runtime is called as NVIDIA's, by which images are known."""
    name, version = wheel.name.split("-")[:2]
    name = name.replace("_", "-")
    compiles = name in _WHOLE
    called = f"cuda-cudart-{'-'.join(release.split('.')[:2])}" if name == _RUNTIME else name
    inside = f"nvidia/cu{release.partition('.')[0]}/"
    with tempfile.TemporaryDirectory(dir=to) as place:
        root = Path(place, "root")
        (root / "DEBIAN").mkdir(parents=True)
        control = {"Package": called, "Version": version, "Architecture": "amd64"}
        control |= {"Maintainer": "nobody", "Description": f"the wheel {wheel.name}"}
        lines = "".join(f"{key}: {text}\n" for key, text in control.items())
        (root / "DEBIAN" / "control").write_text(lines)
        with ZipFile(wheel) as archive:
            for member in archive.infolist():
                top, _, rest = member.filename.partition(inside)
                if top or member.is_dir() or not (compiles or rest.startswith("include/")):
                    continue
                path = root / folder / rest
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(member))
                # As pip does: what one may run all may run.
                path.chmod(0o755 if member.external_attr >> 16 & 0o100 else 0o644)
        _linked(root / folder)
        words = ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build"]
        subprocess.run([*words, root, to / f"{called}.deb"], check=True, capture_output=True)


def _linked(folder: Path) -> None:
    """The names by which libraries are linked, and the folder in which NVIDIA's images have them."""
    for library in folder.glob("lib/lib*.so.*"):
        (library.parent / f"{library.name.partition('.so.')[0]}.so").symlink_to(library.name)
    if (folder / "lib").is_dir():
        (folder / "lib64").symlink_to("lib")


def main(release: str) -> int:
    """Make the image and say its name; returns 1 where it cannot be made."""
    try:
        with docker.running() as engine:
            print(make(engine, release, cache()))  # noqa: T201
    except (bases.BaseFailed, docker.EngineFailed) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(*sys.argv[1:]))
