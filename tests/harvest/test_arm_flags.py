"""The flags of ARM in the matrix agree with every compiler that was run, distribution by distribution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from toolmatrix.factbase.versions import Scale

MATRIX = Path(__file__).parent.parent.parent / "matrix"


def rows(file: str, table: str) -> list[dict[str, Any]]:
    """The rows of a table of the matrix, as the file has them."""
    document = yaml.load((MATRIX / file).read_text(), yaml.CSafeLoader)
    return next(one["rows"] for one in document["tables"] if one["id"] == table)


def allowed(scale: Scale, cell: Any, distro: str) -> int:
    """The series that a cell admits on a distribution."""
    mask = scale.everything
    for part in cell if isinstance(cell, list) else [{"is": cell}]:
        if distro in part.get("when", {}).get("distro", distro).split():
            mask &= scale.select(str(part["is"]))
    return mask


def test_a_flag_is_admitted_where_the_compiler_of_the_distribution_takes_it() -> None:
    ran = [
        one
        for one in rows("harvested/compilers.yaml", "compiler-names")
        if (one["compiler"], one["machine"]) == ("gcc", "aarch64")
    ]
    versions = {str(one["series"]) for one in ran}
    scale = Scale("series", sorted(versions, key=lambda one: [*map(int, one.split("."))]))
    asked = 0
    wrong = []
    for row in rows("curated/arm.yaml", "arm-cpu-flags"):
        option, _, name = row["cpu-flag"].strip("-").partition("=")
        for one in ran:
            admitted = bool(
                allowed(scale, row["gcc"], one["distro"]) & scale.bit(str(one["series"]))
            )
            taken = name in one[option].split()
            asked += 1
            if admitted != taken:
                wrong.append(f"{row['cpu-flag']} {one['id']}: {row['gcc']}, taken {taken}")
    assert wrong == []
    assert asked > 5000
