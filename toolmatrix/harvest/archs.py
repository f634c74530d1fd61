"""Codegen archs that the programs of a CUDA toolkit take, found by asking them."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping

from toolmatrix.errors import HarvestRefused, Position
from toolmatrix.harvest import programs
from toolmatrix.value import Value

PTXAS = "ptxas"
DRIVER = ("nvcc", "nvcc.profile")
"""The driver, and the file beside it without which it does not start."""
# PTX of the first version that has 64 bits; later archs take code for earlier ones.
_NOTHING = ".version 3.0\n.target sm_20\n.address_size 64\n"
_NAME = re.compile(r"'(sm_(\d+)[a-z]?)'")
_LISTED = re.compile(r"(?:sm|compute)_\d+[a-z]?")
_ARCH = re.compile(r"([a-z]+)_(\d+)([a-z]?)")


class KnownArchs(Value):
    """The archs of one toolkit."""

    # The `sm_` names that ptxas takes, and after them the `compute_` names of nvcc.
    archs: tuple[str, ...]
    # What `nvcc --list-gpu-code` prints, in its order; empty where there is no nvcc.
    listed: tuple[str, ...] = ()


def known_archs(files: Mapping[str, bytes], shown: str) -> KnownArchs:
    """The archs that programs take, given as their bytes by name: ptxas, and the driver where it is there.

    Raises HarvestRefused for a ptxas that takes none of the archs that it names, and ToolMissing where one cannot run.
    """
    with tempfile.TemporaryDirectory(prefix="toolmatrix-") as folder:
        for name, data in files.items():
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, 0o700)
        # Help and behaviour have differed, so what is named has to work as well.
        taken = _taken(folder)
        if not taken:
            raise HarvestRefused(
                "ptxas takes no arch that it names",
                where=Position(shown),
                expected="`--help` with names of archs, and code made for them",
            )
        if set(DRIVER) <= files.keys():
            listed = _list(folder, "--list-gpu-code")
            virtual = _list(folder, "--list-gpu-arch")
        else:
            # Every arch has a virtual one of its number, which nvcc names without a suffix.
            listed = ()
            virtual = tuple(
                f"compute_{name.partition('_')[2]}" for name in taken if name[-1].isdigit()
            )
    return KnownArchs(
        archs=(*sorted(taken, key=_order), *sorted(virtual, key=_order)), listed=listed
    )


def _taken(folder: str) -> list[str]:
    """The names in ptxas' help that it takes as well."""
    program = os.path.join(folder, PTXAS)
    with open(os.path.join(folder, "nothing.ptx"), "w", encoding="ascii") as file:
        file.write(_NOTHING)
    named = dict.fromkeys(name for name, _ in _NAME.findall(programs.ask([program, "--help"]).text))
    # With nothing to compile it is the name that fails, and never an instruction which an arch does not have.
    asked = [program, "nothing.ptx", "-o", os.devnull, "-arch"]
    return [name for name in named if not programs.ask([*asked, name], folder).status]


def _list(folder: str, option: str) -> tuple[str, ...]:
    said = programs.ask([os.path.join(folder, DRIVER[0]), option], folder)
    return tuple(_LISTED.findall(said.text)) if not said.status else ()


def _order(name: str) -> tuple[int, str]:
    # By numbers, as in the order of letters `sm_100` stands before `sm_75`.
    found = _ARCH.fullmatch(name)
    return (int(found[2]), found[3]) if found else (0, name)
