"""An image built from a rendered Dockerfile, and ten ways in which it stops being what its lock says.

Each is a layer on top, or an edit of the configuration in what the engine saves. The packages they need are put beside
those of the image first, which changes nothing that a user gets.
"""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.engine.commands import ran

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.engine.docker import Engine

    Document = dict[str, Any]

NAME = "toolmatrix-mutations"
GOOD = f"{NAME}:x86"
_BASE = "debian:12=local/debian:bookworm-amd64"
_COMMANDS = (
    "python -m tests.engine bookworm amd64",
    "toolmatrix lock gcc python numpy bazel==4.2.3 base-image --distro debian12 --target x86 --cpu haswell",
    f"toolmatrix render --dialect classic --base {_BASE} --output {NAME}",
    f"toolmatrix build {NAME}",
    "toolmatrix lock gcc python numpy bazel==4.2.3 base-image --distro debian12 --target x86 --output other.lock",
)
_OLDER = "/etc/apt/sources.list.d/older.list"
_BESIDES = f"""FROM {GOOD}
USER root
RUN sed -n "s/ bookworm main$/ bullseye main/p" /etc/apt/sources.list > {_OLDER}; \\
    apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc-11 python3.9-minimal
"""
_LIBRARY = "/usr/lib/x86_64-linux-gnu/libisl.so"
# A program whose header says that it is one of AArch64 (e_machine of the System V gABI).
_FOREIGN = (
    "import os; data = bytearray(open('/usr/bin/true', 'rb').read()); data[18] = 183;"
    " open('/usr/local/bin/tool', 'wb').write(data); os.chmod('/usr/local/bin/tool', 0o755)"
)


class Mutation(NamedTuple):
    """What is done, and what has to be named for it: the code, and the names of the checks that fail."""

    layer: str
    code: str
    names: tuple[str, ...]
    edit: Callable[[Document], object] | None = None


MUTATIONS = {
    "python": Mutation(
        "RUN cd /opt/venv/bin && ln -sf /usr/bin/python3.9 python3 && ln -sf python3 python",
        "TM401",
        ("python",),
    ),
    "numpy": Mutation("RUN python -m pip install numpy==1.26.4", "TM401", ("numpy",)),
    "gcc": Mutation("RUN ln -sf /usr/bin/gcc-11 /usr/local/bin/gcc", "TM401", ("gcc",)),
    "bazel": Mutation(
        "RUN apt-get install -y -qq --no-install-recommends --allow-downgrades"
        " bazel-bootstrap=3.5.1+ds-3 bazel-bootstrap-data=3.5.1+ds-3",
        "TM401",
        ("bazel",),
    ),
    "soname": Mutation(f"RUN rm {_LIBRARY}.23*", "TM405", ("libisl.so.23",)),
    "major": Mutation(
        f"RUN rm {_LIBRARY}.23* && gcc -shared -Wl,-soname,libisl.so.22 -o {_LIBRARY}.22",
        "TM406",
        ("libisl.so.23",),
    ),
    "flags": Mutation(
        'ENV CFLAGS="-O2" CXXFLAGS="-O2"', "TM404", ("-march=haswell", "-mtune=haswell")
    ),
    "flags of C": Mutation('ENV CFLAGS="-march=haswell"', "TM404", ("-mtune=haswell",)),
    "configuration": Mutation(
        "", "TM403", ("platform",), lambda config: config.update(architecture="arm64")
    ),
    "binary": Mutation(f'RUN python -c "{_FOREIGN}"', "TM403", ("platform",)),
    "labels": Mutation(
        "",
        "TM407",
        ("io.github.toolmatrix.lock.digest",),
        lambda config: config["config"].update(Labels=None),
    ),
    "lock": Mutation("COPY other.lock /usr/share/toolmatrix/toolmatrix.lock", "TM411", ("lock",)),
}


def build(engine: Engine, folder: Path) -> str:
    """Build the image and what lies beside it; the name of the latter, which still is what the lock says."""
    for line in _COMMANDS:
        ran(engine, folder, line)
    return layered(engine, folder, "besides", _BESIDES)


def mutate(engine: Engine, folder: Path, name: str) -> str:
    """Make one of the mutations; the name of its image."""
    mutation = MUTATIONS[name]
    tag = name.replace(" ", "-")
    image = layered(engine, folder, tag, f"FROM {NAME}:besides\n{mutation.layer}\nUSER 10001\n")
    if mutation.edit is not None:
        saved = folder / f"{tag}.tar"
        engine.done("save", "--output", str(saved), image)
        edited = folder / f"{tag}-edited.tar"
        _edit(saved, edited, mutation.edit)
        engine.done("load", "--quiet", "--input", str(edited))
        saved.unlink()
        edited.unlink()
    return image


def layered(engine: Engine, folder: Path, tag: str, text: str) -> str:
    """Build an image out of a few lines."""
    image = f"{NAME}:{tag}"
    (folder / "Mutated").write_text(text, encoding="utf-8")
    engine.done("build", "--quiet", "--tag", image, "--file", str(folder / "Mutated"), str(folder))
    return image


def remove(engine: Engine) -> None:
    """Remove every image of these."""
    found = engine.done("images", "--quiet", NAME).split()
    if found:
        engine.done("rmi", "--force", *dict.fromkeys(found))


def _edit(saved: Path, to: Path, edit: Callable[[Document], object]) -> None:
    """An archive as `docker save` wrote it before version 25, with another configuration."""
    with tarfile.open(saved) as old, tarfile.open(to, "w") as new:
        manifest = json.loads(_read(old, "manifest.json"))
        config = json.loads(_read(old, manifest[0]["Config"]))
        edit(config)
        manifest[0]["Config"] = "config.json"
        for name, document in (("config.json", config), ("manifest.json", manifest)):
            data = json.dumps(document).encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))
        for name in dict.fromkeys(manifest[0]["Layers"]):
            member = old.getmember(name)
            new.addfile(member, old.extractfile(member) if member.isreg() else None)


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()
