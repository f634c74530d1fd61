"""An image built from a rendered Dockerfile, ways in which it breaks a promise, and ways that only look so.

Each is a layer on top, or an edit of the configuration in what the engine saves. What they need is put beside the
packages of the image first, which changes nothing that a user gets: another GCC and Python, a CUDA runtime out of a
wheel, and a program that asks it for its version.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.engine.commands import ran
from tests.engine.docker import Engine

Document = dict[str, Any]

NAME = "toolmatrix-mutations"
GOOD = f"{NAME}:x86"
_BASE = "debian:12=local/debian:bookworm-amd64"
_COMMANDS = (
    "python -m tests.engine bookworm amd64",
    "toolmatrix lock gcc python numpy base-image --distro debian12 --target x86 --cpu haswell",
    f"toolmatrix render --dialect classic --base {_BASE} --output {NAME}",
    f"toolmatrix build {NAME}",
    "toolmatrix lock gcc python numpy base-image --distro debian12 --target x86 --output other.lock",
)
RUNTIME = (12, 4)
"""The CUDA that is beside what the lock asks for."""
EXPECTED = ("cuda=={}.{}.*".format(*RUNTIME), "soname==libcudart.so.12")
"""What is promised besides the lock, as `--expect` takes it."""
TOOL = "/opt/app/tool"
"""A program that prints the version which its CUDA runtime tells."""
_OLDER = "/etc/apt/sources.list.d/older.list"
_SITE = "/opt/venv/lib/python3.11/site-packages"
_CUDART = f"{_SITE}/nvidia/cuda_runtime/lib"
_SOURCE = """int printf(const char *, ...);
int cudaRuntimeGetVersion(int *);
int main(void) { int number = 0; cudaRuntimeGetVersion(&number); return printf("%d\\n", number) < 0; }
"""
_BESIDES = f"""FROM {GOOD}
USER root
RUN sed -n "s/ bookworm main$/ bullseye main/p" /etc/apt/sources.list > {_OLDER}; \\
    apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc-11 python3.9-minimal
RUN python -m pip install --no-deps -q nvidia-cuda-runtime-cu12==12.4.127; \\
    echo {_CUDART} > /etc/ld.so.conf.d/cudart.conf && ldconfig
COPY tool.c /opt/app/
RUN gcc $CFLAGS -o {TOOL} {TOOL}.c {_CUDART}/libcudart.so.12
"""
_LIBRARY = "/usr/lib/x86_64-linux-gnu/libisl.so"
# The scripts in its bin name the Python of the directory that it was made in.
_MOVED = "python3.11 -m venv /build/venv && mv /build/venv /opt/moved"
_UNLISTED = "rm /etc/ld.so.conf.d/cudart.conf && ldconfig"
# A program whose header says that it is one of AArch64 (e_machine of the System V gABI).
_FOREIGN = (
    "import os; data = bytearray(open('/usr/bin/true', 'rb').read()); data[18] = 183;"
    " open('/usr/local/bin/tool', 'wb').write(data); os.chmod('/usr/local/bin/tool', 0o755)"
)
# An image that is not made FROM this one has to repeat its variables and labels.
_REPEATED = "# what the image sets"


class Mutation(NamedTuple):
    """What is done, and the checks that do not pass then: verdict, code and name.

    `read` are those of an archive, where less is told as no program is run.
    """

    layer: str
    told: tuple[str, ...] = ()
    edit: Callable[[Document], object] | None = None
    read: tuple[str, ...] = ()


MUTATIONS = {
    "python": Mutation(
        "RUN cd /opt/venv/bin && ln -sf /usr/bin/python3.9 python3 && ln -sf python3 python",
        # Where a program is run, that Python does not import it either.
        ("FAIL TM401 python", "FAIL TM409 numpy", "FAIL TM420 numpy"),
        read=("FAIL TM401 python", "FAIL TM420 numpy"),
    ),
    "numpy": Mutation("RUN python -m pip install numpy==1.26.4", ("FAIL TM401 numpy",)),
    "gcc": Mutation("RUN ln -sf /usr/bin/gcc-11 /usr/local/bin/gcc", ("FAIL TM401 gcc",)),
    "shim": Mutation(
        "RUN cd /usr/local/bin && rm gcc &&"
        """ printf '#!/bin/sh\\nexec gcc-11 "$@"\\n' > gcc && chmod 755 gcc""",
        ("FAIL TM401 gcc",),
        read=("unknown TM480 gcc",),
    ),
    "cudart": Mutation(
        "RUN cd /tmp && python -m pip install --no-deps -q --target other"
        " nvidia-cuda-runtime-cu12==12.1.105 &&"
        f" cp other/nvidia/cuda_runtime/lib/libcudart.so.12 {_CUDART} && rm -r other",
        ("FAIL TM401 cuda",),
    ),
    "record": Mutation(
        f"RUN cd {_SITE} && rm -r numpy numpy.libs",
        ("FAIL TM402 numpy", "warn TM414 missing-files"),
    ),
    "soname": Mutation(f"RUN rm {_LIBRARY}.23*", ("FAIL TM405 libisl.so.23",)),
    "major": Mutation(
        f"RUN rm {_LIBRARY}.23* && gcc -shared -Wl,-soname,libisl.so.22 -o {_LIBRARY}.22",
        ("FAIL TM406 libisl.so.23",),
    ),
    "cache": Mutation(
        f"RUN rm {_CUDART}/libcudart.so.12",
        ("FAIL TM402 cuda", "FAIL TM405 libcudart.so.12", "warn TM414 missing-files"),
    ),
    "unlisted": Mutation(f"RUN {_UNLISTED}", ("FAIL TM405 libcudart.so.12",)),
    "dangling": Mutation(
        f"RUN mv {_LIBRARY}.23* /opt/app && ln -s /lib/../opt/app/libisl.so.23 {_LIBRARY}.23",
        ("warn TM417 libisl.so.23",),
    ),
    "interpreter": Mutation(
        f"RUN {_MOVED}\nENV PATH=$PATH:/opt/moved/bin", ("warn TM419 /build/venv/bin/python3.11",)
    ),
    "flags": Mutation(
        'ENV CFLAGS="-O2" CXXFLAGS="-O2"',
        ("FAIL TM404 -march=haswell", "FAIL TM404 -mtune=haswell"),
    ),
    "flags of C": Mutation('ENV CFLAGS="-march=haswell"', ("FAIL TM404 -mtune=haswell",)),
    "objects": Mutation(f"RUN gcc -g -c -o {TOOL}.o {TOOL}.c", ("warn TM413 -march=haswell",)),
    "configuration": Mutation(
        "", ("FAIL TM403 platform",), lambda config: config.update(architecture="arm64")
    ),
    "binary": Mutation(f'RUN python -c "{_FOREIGN}"', ("FAIL TM403 platform",)),
    "labels": Mutation(
        "",
        ("FAIL TM407 io.github.toolmatrix.lock.digest",),
        lambda config: config["config"].update(Labels=None),
    ),
    "lock": Mutation("COPY other.lock /usr/share/toolmatrix/toolmatrix.lock", ("FAIL TM411 lock",)),
}
"""Of each something is wrong."""

RIGHT = {
    "nothing": Mutation(""),
    "layer": Mutation("RUN true\nLABEL org.example.built=again"),
    "other Python": Mutation(
        "RUN python3.11 -m venv /opt/other && /opt/other/bin/pip install -q numpy==1.26.4"
    ),
    "sysroot": Mutation("RUN apt-get install -y -qq --no-install-recommends libc6-arm64-cross"),
    "runpath": Mutation(
        f"RUN {_UNLISTED} && gcc $CFLAGS -o {TOOL} {TOOL}.c"
        f" -Wl,--enable-new-dtags,-rpath,{_CUDART} {_CUDART}/libcudart.so.12"
    ),
    "variable": Mutation(
        f"RUN {_UNLISTED}\nENV LD_LIBRARY_PATH={_CUDART}", ("warn TM415 LD_LIBRARY_PATH",)
    ),
    "link": Mutation(
        f"RUN mv {_LIBRARY}.23* /opt/app && ln -s /lib/../../opt/app/libisl.so.23 {_LIBRARY}.23 &&"
        " ln -sf /bin/gcc-12 /usr/local/bin/gcc"
    ),
    "moved": Mutation(
        f"RUN {_MOVED} && ln -s /opt/moved /build/venv\nENV PATH=$PATH:/opt/moved/bin"
    ),
    "no shell": Mutation(
        "RUN rm -f /usr/bin/sh /usr/bin/bash /usr/bin/dash /usr/bin/rbash\n"
        f"FROM scratch\nCOPY --from=0 / /\n{_REPEATED}"
    ),
}
"""Nothing is wrong with these, though somebody who looks in one place alone may say so."""


def build(engine: Engine, folder: Path) -> str:
    """Build the image and what lies beside it; the name of the latter, which still is what the lock says."""
    for line in _COMMANDS:
        ran(engine, folder, line)
    (folder / "tool.c").write_text(_SOURCE, encoding="utf-8")
    return layered(engine, folder, "besides", _BESIDES)


def mutate(engine: Engine, folder: Path, name: str) -> str:
    """Make one of the images; the name that the engine has for it. One that is edited is left in `NAME.tar` as well."""
    mutation = {**MUTATIONS, **RIGHT}[name]
    tag = name.lower().replace(" ", "-")
    layer = mutation.layer.replace(_REPEATED, _settings(engine))
    image = layered(engine, folder, tag, f"FROM {NAME}:besides\n{layer}\nUSER 10001\n")
    if mutation.edit is not None:
        # What is edited is the same image under several names.
        saved = folder / "saved.tar"
        if not saved.exists():
            engine.done("save", "--output", str(saved), image)
        edited = folder / f"{tag}.tar"
        _edit(saved, edited, image, mutation.edit)
        engine.done("load", "--quiet", "--input", str(edited))
    return image


def _settings(engine: Engine) -> str:
    """The variables and labels of the image as instructions."""
    (held,) = json.loads(engine.done("inspect", "--format", "[{{json .Config}}]", GOOD))
    env = dict(one.split("=", 1) for one in held["Env"])
    kinds = (("ENV", env), ("LABEL", held["Labels"]))
    return "\n".join(
        f"{kind} {name}={json.dumps(value)}"
        for kind, several in kinds
        for name, value in several.items()
    )


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


def _edit(saved: Path, to: Path, image: str, edit: Callable[[Document], object]) -> None:
    """An archive as `docker save` wrote it before version 25, with another configuration."""
    with tarfile.open(saved) as old, tarfile.open(to, "w") as new:
        manifest = json.loads(_read(old, "manifest.json"))
        config = json.loads(_read(old, manifest[0]["Config"]))
        edit(config)
        manifest[0] |= {"Config": "config.json", "RepoTags": [image]}
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
