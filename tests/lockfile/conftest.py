"""Locks to write and read: a small one by hand, and any whatever."""

from __future__ import annotations

import pytest

from toolmatrix.lockfile.model import (
    Backed,
    Lock,
    LockedComponent,
    LockedEnvironment,
    LockedFlags,
    LockedTarget,
)


@pytest.fixture(scope="session")
def small() -> Lock:
    """A lock that has one of everything."""
    components = {
        "tensorflow": LockedComponent(
            version="2.6.5", evidence="artifact", facts=("wheels/2.6.5",)
        ),
        "cuda": LockedComponent(
            version="11.2.2", evidence="derived", facts=("row/2.6.0",), kept=True
        ),
        "driver": LockedComponent(
            version="450.80", floor=True, evidence="stated", facts=("floor",)
        ),
        "python": LockedComponent(
            version="3.9", evidence="artifact", facts=("a", "b"), disputed=("row/2.6.0#python",)
        ),
    }
    x86 = LockedTarget(
        accelerator="cuda",
        from_="source",
        platform="linux/amd64",
        evidence="derived",
        components=components,
        archs={"sm_86": Backed(evidence="ran", facts=("arch",))},
        devices={"8.6": Backed(evidence="stated", facts=("runs",), disputed=("other",))},
        flags=LockedFlags(
            cflags=("-O2",), nvcc=("-gencode=x",), env={"CC": "gcc-7"}, missing=("crc32",)
        ),
    )
    arm = x86.replace(
        accelerator="none",
        platform="linux/arm64",
        archs={},
        devices={},
        flags=LockedFlags(),
        components={"python": components["python"]},
    )
    return Lock(
        matrix_digest="sha256:00",
        matrix_date="2026-11-20",
        render={"recipe": "toolchain", "dialect": "classic", "base": ("debian:12=a", "b=c")},
        environments={
            "default": LockedEnvironment(
                request=("tensorflow==2.6.5", "--with=cuda>=11", "--target=x86,arm"),
                targets={"x86": x86, "arm": arm},
            ),
            "a b.c": LockedEnvironment(request=("Foo_Bar ~=1",), targets={"arm": arm}),
        },
    )
