"""Commands in the cells of notebooks, with their places in the file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolmatrix.errors import ManifestError
from toolmatrix.manifests import files, read
from toolmatrix.manifests.model import FileText, Item


def notebook(*cells: Any, ascii: bool = False) -> str:
    """A notebook as Jupyter writes it, whose cells are of code unless they are dictionaries."""
    whole = [
        cell
        if isinstance(cell, dict)
        else {"cell_type": "code", "metadata": {}, "outputs": [], "source": cell}
        for cell in cells
    ]
    body = {"cells": whole, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(body, indent=1, ensure_ascii=ascii)


def items(text: str) -> list[Item]:
    """What a notebook installs."""
    environments = read.manifest(files.decode(text.encode(), "a.ipynb")).environments
    return [item for environment in environments for item in environment.items]


@pytest.mark.parametrize(
    ("cell", "asked"),
    [
        (["!pip install torch==2.1.0 numpy\n", "import torch"], ["torch==2.1.0", "numpy"]),
        (["%pip install -q 'numpy<2'"], ["numpy<2"]),
        (["!!python -m pip install numpy"], ["numpy"]),
        (["!pip install torch==2.1.0 \\\n", "    numpy\n", "x = 1"], ["torch==2.1.0", "numpy"]),
        (["%%bash\n", "pip install numpy\n", "pip install torch"], ["numpy", "torch"]),
        ("%%capture\n!pip install numpy\n", ["numpy"]),
        (["if colab:\n", "    !pip install numpy"], ["numpy"]),
        (['print("!pip install numpy")\n', "pip = 'pip install torch'"], []),
        (["# !pip install numpy"], []),
        (["%timeit pip\n", "%matplotlib inline"], []),
        ({"cell_type": "markdown", "source": ["!pip install numpy"]}, []),
    ],
)
def test_the_commands_of_a_cell(cell: Any, asked: list[str]) -> None:
    assert [f"{item.name}{item.specifier}" for item in items(notebook(cell))] == asked


@pytest.mark.parametrize("ascii", [False, True])
def test_an_item_has_its_place_in_the_file(ascii: bool) -> None:
    said = {
        "cell_type": "code",
        "outputs": [{"text": ["!pip install x\n"]}],
        "source": ["x = 'é'\n"],
    }
    text = notebook(said, ["é = 'é'; \"\n", "!pip install x\n"], ascii=ascii)
    (item,) = items(text)
    assert item.text.span is not None
    start, end = item.text.span
    assert (text[start:end], text.count("!pip install x", 0, start)) == ("x", 1)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"cells": [1]}', '{"cells": [{"source": [1], "cell_type": "code"}]}']
)
def test_what_is_no_notebook(text: str) -> None:
    with pytest.raises(ManifestError, match="the file is no notebook"):
        read.manifest(FileText("a.ipynb", text))
