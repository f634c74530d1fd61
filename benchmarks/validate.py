"""How long reading an image takes beside unpacking it, and what is caught beside goss; benchmarks/README.md says more.

    python benchmarks/validate.py [--quick] [--rounds N] [--reading | --catching]

It needs root, Docker's engine, mmdebstrap, a Debian mirror and a package index; what it measures runs offline. What it
builds is the image of tests/engine/mutations.py, with two libraries of NVIDIA's on top to make it large.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _catching import CHECK, RUN, caught, goss
from _measure import Place, spread
from resolve import Line, compared, machine, scaled, table, tell

from tests.engine import docker, mutations
from tests.engine.docker import Engine

LARGE = f"{mutations.NAME}:large"
WHEELS = (
    *("nvidia-cublas-cu12==12.4.5.8", "nvidia-cusolver-cu12==11.6.1.9", "nvidia-nccl-cu12"),
    *("nvidia-cusparse-cu12==12.3.1.170", "nvidia-nvjitlink-cu12==12.4.127"),
)
"""Real libraries, with device code in them, of which a gigabyte is added."""
PACKED, PLAIN, MEMORY = 0.7, 1.5, 150
SECOND = 1.1
"""Of the second image on a base, beside its own layers alone."""
AGAIN, ASKED_AGAIN = 1000, 2000
"""Milliseconds for an image of the engine that is known, without and with its programs."""
OWN = "nvidia-nvjitlink-cu12==12.4.127"
"""What the second image has on top."""
TOOLMATRIX = (sys.executable, "-m", "toolmatrix")
LAYER = "application/vnd.oci.image.layer.v1.tar"


class Subjects:
    """The engine, the images, and the archives of the large one: as saved, and with layers packed by gzip."""

    def __init__(self, engine: Engine, work: Path) -> None:
        self.engine = engine
        self.work = work
        env = {**engine.environment, "PYTHONPATH": str(Path(mutations.__file__).parents[2])}
        # What is installed is compiled once, and not at each start.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        self.place = Place(str(work), env)
        self.lock = str(work / "toolmatrix.lock")
        self.plain = work / "plain.tar"
        self.packed = work / "packed.tar"
        self.second = work / "second.tar"
        self.own = work / "own.tar"
        self.images = ("", "")

    def build(self, *, small: bool) -> None:
        """Make an image of it that is large, save and pack it."""
        image = mutations.GOOD
        if not small:
            tell("making it large")
            image = mutations.layered(
                self.engine,
                self.work,
                "large",
                f"FROM {image}\nUSER root\nRUN python -m pip install --no-deps -q {' '.join(WHEELS)}\n",
            )
        self.engine.done("save", "--output", str(self.plain), image)
        tell("packing its layers")
        _pack(self.plain, self.packed)
        tell("making a second image on it")
        second = mutations.layered(
            self.engine,
            self.work,
            "second",
            f"FROM {image}\nUSER root\nRUN python -m pip install --target /opt/own --no-deps -q {OWN}\n",
        )
        self.engine.done("save", "--output", str(self.second), second)
        _last(self.second, self.own)
        self.images = (
            second,
            mutations.layered(
                self.engine,
                self.work,
                "own",
                f"FROM scratch\nCOPY --from={second} /opt/own /opt/own\n",
            ),
        )

    def ours(self, subject: str, *more: str) -> list[str]:
        """Our command, which must find the image right; everything is read unless a store is named."""
        words = more or ("--no-store",)
        return [*TOOLMATRIX, "validate", subject, "--lock", self.lock, *words]


def _pack(plain: Path, packed: Path) -> None:
    """The same image in the OCI shape, each layer packed as registries keep them."""
    with tarfile.open(plain) as old, tarfile.open(packed, "w") as new:
        manifest = json.load(_file(old, "manifest.json"))[0]
        config = _file(old, manifest["Config"]).read()
        layers = []
        for name in manifest["Layers"]:
            stream = io.BytesIO()
            with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=6, mtime=0) as file:
                shutil.copyfileobj(_file(old, name), file, 1 << 20)
            layers.append(_blob(new, stream.getvalue(), LAYER + "+gzip"))
        body = {
            "schemaVersion": 2,
            "config": _blob(new, config, "application/vnd.oci.image.config.v1+json"),
            "layers": layers,
        }
        media = "application/vnd.oci.image.manifest.v1+json"
        index = {"schemaVersion": 2, "manifests": [_blob(new, json.dumps(body).encode(), media)]}
        _put(new, "index.json", json.dumps(index).encode())


def _last(saved: Path, to: Path) -> None:
    """The uppermost layer of an image by itself."""
    with tarfile.open(saved) as old, tarfile.open(to, "w") as new:
        manifest = json.load(_file(old, "manifest.json"))[0]
        config = json.load(_file(old, manifest["Config"]))
        config["rootfs"]["diff_ids"] = config["rootfs"]["diff_ids"][-1:]
        document = {"Config": "config.json", "Layers": ["layer.tar"]}
        _put(new, "manifest.json", json.dumps([document]).encode())
        _put(new, "config.json", json.dumps(config).encode())
        _put(new, "layer.tar", _file(old, manifest["Layers"][-1]).read())


def _file(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    file = archive.extractfile(name)
    if file is None:
        raise SystemExit(f"{name} is no file of the archive")
    return file


def _blob(archive: tarfile.TarFile, data: bytes, media: str) -> dict[str, object]:
    digest = sha256(data).hexdigest()
    _put(archive, f"blobs/sha256/{digest}", data)
    return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}


def _put(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def layers(archive: Path, unpack: str, then: str) -> str:
    """A script that hands every layer of an archive to a command of GNU tar, each unpacked on the way."""
    with tarfile.open(archive) as held:
        names = [
            one.name
            for one in held
            if one.isreg() and one.size > 1 << 14 and "json" not in one.name
        ]
    each = (
        f"tar --extract --to-stdout --file={shlex.quote(str(archive))} {{}} | {unpack} | tar {then}"
    )
    return "; ".join(each.format(shlex.quote(name)) for name in names)


def listing(archive: Path, unpack: str) -> list[str]:
    """Listing every layer of an archive."""
    script = layers(archive, unpack, "--list --verbose")
    return ["bash", "-c", f"tar --list --file={shlex.quote(str(archive))}; {script}"]


def unpacking(archive: Path, unpack: str, folder: Path) -> list[str]:
    """Unpacking every layer of an archive into a folder, which is new each time, and listing that."""
    script = layers(archive, unpack, '--extract --directory="$to"')
    new = f"to=$(mktemp --directory --tmpdir={shlex.quote(str(folder))})"
    return ["bash", "-c", f'{new}; {script}; ls -lR "$to" > /dev/null']


def bytes_read(place: Place, command: Sequence[str]) -> float:
    """The MiB that a command and its processes read of files and pipes, as proc(5) counts them (rchar)."""
    silent = subprocess.DEVNULL
    child = subprocess.Popen(command, cwd=place.directory, env=place.env, stdout=silent)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    rchar = int(Path(f"/proc/{child.pid}/io").read_text().split()[1])
    if child.wait():
        raise SystemExit(f"{shlex.join(command)} failed")
    return rchar / (1 << 20)


def reading(made: Subjects, rounds: int) -> list[Line]:
    """Reading beside unpacking, and again, and the second image on a base."""
    lines = []
    store = made.work / "store"
    for what, archive, unpack, bar in (
        ("layers packed by gzip", made.packed, "gzip -dc", PACKED),
        ("layers as `docker save` has them", made.plain, "cat", PLAIN),
    ):
        tell(what)
        ours = made.ours(f"archive:{archive}")
        pairs = made.place.pairs(ours, listing(archive, unpack), rounds)
        size = f"{what}, {archive.stat().st_size >> 20} MiB"
        lines += compared(f"{size} / list, unpacked on the way", pairs, bar)
        with tempfile.TemporaryDirectory(dir=made.work) as folder:
            into = unpacking(archive, unpack, Path(folder))
            pairs = made.place.pairs(ours, into, rounds)
        lines += compared(f"{size} / unpack into a folder and list", pairs, bar)
        peak = made.place.peak([shutil.which(ours[0]) or ours[0], *ours[1:]], 1)
        lines.append(Line("    peak memory", "MiB", peak, bar=MEMORY))
        again = made.ours(f"archive:{archive}", f"--store={store}")
        lines += compared("    again / first", made.place.pairs(again, ours, rounds), None)
    store.rename(made.work / "known")
    return lines + second_images(made, rounds)


def second_images(made: Subjects, rounds: int) -> list[Line]:
    """The second image on a base that the store `known` has, beside its own layers alone."""
    tell("the second image on a base")
    lines = []
    store, known = made.work / "store", made.work / "known"
    image, alone = made.images
    sizes = [f"{file.stat().st_size >> 20} MiB" for file in (made.second, made.own)]
    for where, second, own in (
        ("an archive", [f"archive:{made.second}"], [f"archive:{made.own}"]),
        ("the engine", [f"docker:{image}", "--no-run"], [f"docker:{alone}", "--no-run"]),
    ):
        ours = shlex.join([*TOOLMATRIX, "inventory", *second, f"--store={store}"])
        on_base = ["sh", "-c", f"rm -rf {store} && cp -r {known} {store} && exec {ours}"]
        by_itself = [*TOOLMATRIX, "inventory", *own, "--no-store"]
        pairs = made.place.pairs(on_base, by_itself, rounds)
        lines += compared(f"second image of {where}, {' / its own '.join(sizes)}", pairs, SECOND)
        read = [bytes_read(made.place, command) for command in (on_base, by_itself)]
        shown = [spread([value]) for value in (*read, read[0] / read[1])]
        lines.append(Line("    bytes read", "MiB", shown[0], shown[1], shown[2], SECOND))
    return lines


def running(made: Subjects, image: str, asks: Sequence[str], rounds: int) -> list[Line]:
    """Validating an image of the engine beside running it."""
    lines = []
    asked = [*RUN, *asks, image, "/goss", "-g", "/goss.yaml", "validate"]
    for what, theirs in (
        ("the check by docker run", [*RUN, image, *CHECK.split()]),
        ("goss by docker run", asked),
    ):
        tell(what)
        ours = made.ours(f"docker:{image}")
        pairs = made.place.pairs(ours, theirs, rounds)
        lines.append(compared(f"docker:NAME / {what}", pairs, None)[1])
    store = made.work / "engine"
    for what, words, bar in (
        ("docker:NAME --no-run again, wall", ("--no-run",), AGAIN),
        ("docker:NAME again, wall", (), ASKED_AGAIN),
    ):
        tell(what)
        known = made.ours(f"docker:{image}", f"--store={store}", *words)
        made.place.cost(known)
        walls = spread([made.place.cost(known).wall for _ in range(rounds)])
        lines.append(Line(what, "ms", scaled(walls, 1000), bar=bar))
    return lines


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description="How long reading an image takes.")
    parser.add_argument(
        "--quick", action="store_true", help="a smaller image, one round: to see that it works"
    )
    parser.add_argument("--rounds", type=int, help="3, or 1 with --quick")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--reading", action="store_true", help="only the first table, of reading")
    only.add_argument(
        "--catching", action="store_true", help="only the last table, of what is caught"
    )
    options = parser.parse_args()
    rounds = options.rounds or (1 if options.quick else 3)
    lines: list[Line] = []
    found = ""
    with tempfile.TemporaryDirectory(prefix="toolmatrix-bench-") as work, docker.engine() as engine:
        made = Subjects(engine, Path(work))
        os.environ.update(engine.environment)
        try:
            tell("building the image")
            image = mutations.build(engine, made.work)
            asks = [] if options.reading else goss(made.work)
            if not options.catching:
                made.build(small=options.quick)
                lines += reading(made, rounds)
            if asks and not options.catching:
                lines += running(made, image, asks, rounds)
            if options.catching or (asks and not options.quick):
                found = caught(made, asks, rounds)
        finally:
            mutations.remove(engine)
    print("; ".join(f"{name} {value}" for name, value in machine().items()))
    print("\n\n".join(filter(None, (table(lines) if lines else "", found))))


if __name__ == "__main__":
    main()
