"""HPCCM's Dockerfile of a compiler, a Python and, where asked for, CMake on a base image.

`_hpccm.py IMAGE GCC PYTHON` prints it with CMake.
"""

from __future__ import annotations

import sys

import hpccm
from hpccm.building_blocks import cmake, gnu, packages
from hpccm.primitives import baseimage


def dockerfile(image: str, gcc: str, python: str, *, with_cmake: bool = False) -> str:
    """The text, by HPCCM's own building blocks and defaults."""
    hpccm.config.set_container_format("docker")
    stage = hpccm.Stage()
    stage += baseimage(image=image)
    stage += gnu(version=gcc)
    stage += packages(apt=[f"python{python}", f"python{python}-dev", f"python{python}-venv"])
    if with_cmake:
        stage += cmake(eula=True)
    return str(stage)


if __name__ == "__main__":
    print(dockerfile(*sys.argv[1:], with_cmake=True))
