"""`toolmatrix page`: the explorer as a folder of static files."""

from __future__ import annotations

from toolmatrix.api import pages
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.cli.context import Context
from toolmatrix.command import command
from toolmatrix.command.option import option

_FOLDER = "site"


@command(
    group="Lock and build",
    order=6,
    saves=True,
    does="writing the page",
    examples=(
        "toolmatrix page --output site",
        "toolmatrix page --output site --pyodide node_modules/pyodide",
        "toolmatrix page --output site --earlier released/matrix.yaml",
    ),
    own={
        "pyodide": option(
            "--pyodide",
            kind="text",
            metavar="DIR",
            completer="dir",
            shape="path",
            configurable=False,
            help="Unpacked npm package `pyodide` [default: fetched once with npm]",
        ),
        "earlier": option(
            "--earlier",
            kind="text",
            metavar="FILE",
            completer="file",
            shape="path",
            configurable=False,
            help="Earlier matrix (an index or a front page) to show changes since",
        ),
    },
)
def run(context: Context) -> int:
    """Write the explorer, a static web page.

    Write the files, and say how they are looked at.
    """
    output = context.options.output
    folder = context.path(_FOLDER) if output == "-" else output
    matrix = OpenMatrix(index=context.index())
    options = context.options
    found = pages.page(folder, pyodide=options.pyodide, earlier=options.earlier, matrix=matrix)
    context.say_after(f"hint: `python3 -m http.server -d {folder}` shows it at port 8000")
    return context.give(found)
