"""Writes the index of ten times the facts: each of the real ones, and nine more like it that nothing reaches.

Run by `resolve.py` with the interpreter that toolmatrix is installed for: `_tenfold.py FOLDER`.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from toolmatrix import resources
from toolmatrix.factbase import load
from toolmatrix.factbase.compile import compile_matrix
from toolmatrix.factbase.store import open_index, write_folder
from toolmatrix.factbase.writer import _Writer

COPIES = [f"~{number}" for number in range(1, 10)]


class Tenfold(_Writer):
    """Components, releases, claims, rows and sources, each ten times."""

    def components(self) -> None:
        """The files of components; those of the copies say the same under another name."""
        super().components()
        matrix = self.compiled.matrix
        for copy in COPIES:
            for name in matrix.components:
                self.lines[name + copy], self.ends[name + copy] = [], 0
                self.component_facts[name + copy] = self.component_facts[name]
            for claim in matrix.claims.values():
                (subject, releases), *conditions = claim.when
                when = ((subject + copy, releases), *conditions)
                number = self.claim(claim.replace(id=claim.id + copy, when=when))
                self.append(subject + copy, [[[1, 1], number, claim.evidence, []]])
            for release in matrix.releases.values():
                self.release(release.replace(component=release.component + copy))
            for row in matrix.rows.values():
                component, _, rest = row.subject.partition(" ")
                self.row(row.replace(id=row.id + copy, subject=f"{component}{copy} {rest}"), ())

    def head(self) -> dict[str, Any]:
        """The header, which lists all components."""
        head = super().head()
        for copy in COPIES:
            for name in self.compiled.matrix.components:
                part = head["components"][name]
                head["components"][name + copy] = part | {"given": False}
        return head | {"facts": 10 * head["facts"]}


def main(destination: str) -> None:
    """Write the index, as one of the files that lie beside the installed matrix."""
    front = os.path.join(resources.matrix_root(), "matrix.yaml")
    files = open_index((), {}).header["files"]
    matrix = load.load([front])
    matrix.sources |= {
        name + copy: source for name, source in matrix.sources.items() for copy in COPIES
    }
    shutil.rmtree(destination)
    write_folder(destination, Tenfold(compile_matrix(matrix), files, None).finish())


if __name__ == "__main__":
    main(sys.argv[1])
