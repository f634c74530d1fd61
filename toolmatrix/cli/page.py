"""`toolmatrix page`: the explorer as a folder of static files."""

from __future__ import annotations

from toolmatrix.api import pages
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.cli.context import Context

_FOLDER = "site"


def run(context: Context) -> int:
    """Write the files, and say how they are looked at."""
    output = context.options.output
    folder = context.path(_FOLDER) if output == "-" else output
    matrix = OpenMatrix(index=context.index())
    options = context.options
    found = pages.page(folder, pyodide=options.pyodide, earlier=options.earlier, matrix=matrix)
    context.say_after(f"hint: `python3 -m http.server -d {folder}` shows it at port 8000")
    return context.give(found)
