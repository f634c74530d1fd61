"""The releases that sentences of a README name, and the sentences that say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolmatrix.manifests import files
from toolmatrix.manifests.prose import named_releases

if TYPE_CHECKING:
    from pathlib import Path

# What a text says, as `NAME SPECIFIER`.
NAMED = {
    "Python 3.8, PyTorch 1.8.1, CUDA 11.1": "Python ==3.8.* PyTorch ==1.8.1 CUDA ==11.1.*",
    "- Python >= 3.8": "Python >=3.8",
    "* PyTorch 1.1 or higher (tested on PyTorch 1.1, 1,3, 1,5~1.10)": "PyTorch >=1.1",
    "* [PyTorch](https://pytorch.org/) version >= 1.10.0": "PyTorch >=1.10.0",
    "1. torch 2.1.1 + cu118": "torch ==2.1.1",
    "- PyTorch ≥ 1.8 and [torchvision](https://a.b/c) that matches": "PyTorch >=1.8",
    "- [Detector](https://a.b/c) v1.0": "Detector ==1.0.*",
    "Tested with PyTorch >= 1.10.": "PyTorch >=1.10",
    "This code was tested with TensorFlow 1.11.0. It is fast.": "TensorFlow ==1.11.0",
    "Then, install PyTorch 1.5+ and torchvision 0.6+:": "PyTorch >=1.5 torchvision >=0.6",
    "First, [install PyTorch 1.7.1](https://a.b/c) (or later) and the rest.": "PyTorch >=1.7.1",
    "The code requires `python>=3.8`, as well as `pytorch>=1.7` and `torchvision>=0.8`.": (
        "python >=3.8 pytorch >=1.7 torchvision >=0.8"
    ),
    "We recommend you to use **`PyTorch >= 1.8.0`**.": "PyTorch >=1.8.0",
    "It is based on [`timm==0.3.2`](https://a.b/c), for which a fix is needed to work with PyTorch 1.8.1+.": (
        "timm ==0.3.2"
    ),
    "Environment: Python 3.9 with JAX 0.4.20 on Ubuntu 20.04": (
        "Python ==3.9.* JAX ==0.4.20 Ubuntu ==20.04.*"
    ),
    "The code was developed using python 3.7 on Ubuntu 20.04.": "python ==3.7.* Ubuntu ==20.04.*",
    "## Requirements\n- PyTorch 1.8.1\n## News\n- PyTorch 2.0 works": "PyTorch ==1.8.1",
}
SILENT = (
    "It does not work with PyTorch 1.8.1.",
    "If you use PyTorch 1.1, install spconv v1.0.",
    "We observed errors when trained with PyTorch 1.6.0.",
    "Support PyTorch 1.1~1.10 and spconv 1.0~2.x",
    "- Python 3.7 or 3.8",
    "- timm==0.4.8/0.4.12",
    "- PyTorch 2.7 RC+ or Nightly",
    "We support Python 3.7, 3.8, 3.9 and 3.10 on Linux.",
    "- 2021-03-04: tested with PyTorch 1.8.0",
    "Install PyTorch, e.g. PyTorch 2.4.0 and CUDA 12.1",
    "PyTorch 1.8.1 is a framework.",
    "pip install torch==1.8.1",
    "- `pip install torch==2.1.1 torchvision==0.16.1`",
    "```\nPyTorch 1.8.1, Python 3.8\n```",
    "## Related projects\n### One\n- PyTorch 1.8.1",
    "![pytorch 1.8.1](badge.svg)",
    "Training took 1.5 hours with batch 2.0.",
    "It beats the others, which require PyTorch 1.8.1.",
    "A" * 2000 + " requires PyTorch 1.8.1" * 100,
)


def named(text: str, folder: Path) -> list[str]:
    """What a text says."""
    (folder / "README.md").write_text(text)
    source = files.read_file(str(folder / "README.md"))
    return [f"{release.item.name} {release.item.specifier}" for release in named_releases(source)]


@pytest.mark.parametrize("text", NAMED)
def test_what_a_sentence_says(text: str, tmp_path: Path) -> None:
    assert " ".join(named(text, tmp_path)) == NAMED[text]


@pytest.mark.parametrize("text", SILENT[:-1])
def test_sentences_that_say_nothing(text: str, tmp_path: Path) -> None:
    assert named(text, tmp_path) == []


def test_a_long_line_is_read(tmp_path: Path) -> None:
    assert len(named(SILENT[-1], tmp_path)) <= 100


def test_a_statement_is_where_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# A\n\nWe use [PyTorch](https://a.b/c)>=1.8.0 here.\n")
    (release,) = named_releases(files.read_file(str(tmp_path / "README.md")))
    assert (release.item.text.text, release.is_compared) == ("PyTorch>=1.8.0", True)
    assert (release.item.where.line, release.item.where.column) == (3, 9)
