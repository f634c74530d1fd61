"""The modules that code imports from elsewhere: those that it needs, and those that it goes on without."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.amount import TIMES, growth
from toolmatrix.manifests import names
from toolmatrix.manifests.imports import source_imports
from toolmatrix.manifests.model import position

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = {"pyproject.toml": "[project]\nname = 'own'\n", "own/__init__.py": ""}
# Files, the modules that are needed, and those that are optional; those apart have a test of their own.
CODE: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    "top-level modules": (
        {"a.py": "import os, numpy.linalg as n\nfrom torch.nn import Linear\n"},
        ["numpy", "torch"],
        [],
    ),
    "a line with several modules, of which one is known": (
        {"a.py": "import numpy\n", "b.py": "import numpy as np, yaml  # both\n"},
        ["numpy", "yaml"],
        [],
    ),
    "a module in a namespace": (
        {"a.py": "from google import protobuf\nimport google.auth\n"},
        ["google.auth", "google.protobuf"],
        [],
    ),
    "an error that is caught": (
        {
            "a.py": "try:\n    import apex\nexcept ImportError:\n    import fallback\nelse:\n    import wandb\n"
        },
        ["wandb"],
        ["apex", "fallback"],
    ),
    "another error": ({"a.py": "try:\n    import apex\nexcept OSError:\n    pass\n"}, ["apex"], []),
    "a function and a class": (
        {"a.py": "def f():\n    import wandb\nclass C:\n    import yaml\n"},
        ["yaml"],
        ["wandb"],
    ),
    "a condition": (
        {"a.py": "if sys.version_info < (3, 11):\n    import tomli\nelse:\n    import tomllib\n"},
        [],
        ["tomli"],
    ),
    "type checkers": (
        {"a.py": "if TYPE_CHECKING:\n    import numpy\nelse:\n    import jax\n"},
        ["jax"],
        [],
    ),
    "a program": ({"a.py": "if __name__ == '__main__':\n    import fire\n"}, ["fire"], []),
    "a program in a module of a package": (
        {"own/__init__.py": "", "own/a.py": "if __name__ == '__main__':\n    import fire\n"},
        [],
        ["fire"],
    ),
    "a module that its package goes on without": (
        {
            **PROJECT,
            "own/__init__.py": "from .b import B\ntry:\n    from .a import A\n    from own.c import C\n"
            "    from .b import D\nexcept ImportError:\n    pass\n",
            "own/a.py": "import dgl\n",
            "own/b.py": "import numpy\n",
            "own/c.py": "import yaml\n",
        },
        ["numpy"],
        ["dgl", "yaml"],
    ),
    "one that another file needs": (
        {"a.py": "def f():\n    import yaml\n", "b.py": "import yaml\n"},
        ["yaml"],
        [],
    ),
    "its own modules": ({"a.py": "import b\nfrom c import d\n", "b.py": "", "c/d.py": ""}, [], []),
    "a module of a package has no name of its own": (
        {"models/__init__.py": "", "models/timm.py": "import timm\n"},
        ["timm"],
        [],
    ),
    "an unknown name may be one of its own": (
        {"models/__init__.py": "", "models/layers.py": "", "models/net.py": "import layers\n"},
        [],
        [],
    ),
    "beside the package of a project": (
        {**PROJECT, "own/__init__.py": "import numpy\n", "train.py": "import wandb\n"},
        ["numpy"],
        ["wandb"],
    ),
    "what builds and tests it": (
        {
            "setup.py": "import torch\n",
            "tests/test_a.py": "import pytest\n",
            "examples/a.py": "import jax\n",
        },
        [],
        [],
    ),
    "an example in a docstring": (
        {"a.py": '"""\nimport torch\n"""\nimport numpy\n'},
        ["numpy"],
        [],
    ),
    "code for Python 2": ({"a.py": "import numpy\nprint numpy.pi\n"}, ["numpy"], []),
}


SETUP = "from setuptools import setup\nsetup()\n"
# Files, the modules that are needed, and those that only code needs that nothing leads to.
APART: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    "a module that no package imports": (
        {**PROJECT, "own/core.py": "import numpy\n", "own/__init__.py": "from .core import f\n"},
        ["numpy"],
        [],
    ),
    "one that a user has to name": (
        {**PROJECT, "own/kenlm.py": "import pygtrie\n"},
        [],
        ["pygtrie"],
    ),
    "modules lead to others": (
        {
            **PROJECT,
            "own/__init__.py": "from own import (\n    a,  # first\n    b as c,\n)\n",
            "own/a.py": "import own.d.e as e, os\n",
            "own/d/__init__.py": "",
            "own/d/e.py": "from . import f\n",
            "own/d/f.py": "from ..g import h\n",
            "own/g.py": "import numpy\n",
            "own/k.py": "import yaml\n",
        },
        ["numpy"],
        ["yaml"],
    ),
    "those of a module that its package goes on without": (
        {
            **PROJECT,
            "own/__init__.py": "try:\n    from .a import A\nexcept ImportError:\n    pass\n",
            "own/a.py": "from own.b import B\n",
            "own/b.py": "import dgl\n",
        },
        [],
        ["dgl"],
    ),
    "a program at the top of a project without a package": (
        {"setup.py": SETUP, "main.py": "from lib.a import b\n", "lib/a.py": "import numpy\n"},
        ["numpy"],
        [],
    ),
    "what a project does not say leads to nothing": (
        {"lib/__init__.py": "", "lib/a.py": "import numpy\n"},
        ["numpy"],
        [],
    ),
    "a folder with requirements of its own": (
        {
            "requirements.txt": "torch\n",
            "a.py": "import torch\n",
            "hub/dinov2/requirements.txt": "",
            "hub/dinov2/eval/b.py": "import cuml\n",
            "server/Dockerfile": "FROM scratch\n",
            "server/c.py": "import tensorrt_llm\n",
        },
        ["torch"],
        ["cuml", "tensorrt_llm"],
    ),
    "a repository without requirements at its top": (
        {"model/requirements.txt": "torch\n", "model/a.py": "import torch\n"},
        ["torch"],
        [],
    ),
    "a package with requirements of its project": (
        {"setup.py": SETUP, "own/__init__.py": "import torch\n", "own/requirements.txt": ""},
        ["torch"],
        [],
    ),
}


def write(folder: Path, files: dict[str, str]) -> str:
    """Files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder)


PACKAGES = frozenset(("pytorch-lightning", "timm", "torch"))


@pytest.mark.parametrize("name", CODE)
def test_what_code_imports(name: str, tmp_path: Path) -> None:
    files, needed, optional = CODE[name]
    imports = source_imports(write(tmp_path, files), PACKAGES)
    assert ([*imports.needed], [*imports.optional]) == (needed, optional)


@pytest.mark.parametrize("name", APART)
def test_what_nothing_leads_to(name: str, tmp_path: Path) -> None:
    files, needed, apart = APART[name]
    imports = source_imports(write(tmp_path, files), PACKAGES)
    assert ([*imports.needed], [*imports.apart]) == (needed, apart)


NAMES = ("numpy.float", "torch._six", "scipy.misc.imread", "imp", "own.old", "tensorflow.Session")
# Files, and the places of those names that the code uses.
USES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "a member by an alias": (
        {"a.py": "import numpy as np\n\ndef f(x):\n    return x.astype(np.float)\n"},
        {"numpy.float": "a.py:4:21"},
    ),
    "a module, and what is in it": (
        {"a.py": "from torch._six import string_classes\n"},
        {"torch._six": "a.py:1:6"},
    ),
    "one of several members": (
        {"a.py": "from scipy.misc import (\n    face,\n    imread,\n)\n"},
        {"scipy.misc.imread": "a.py:3:5"},
    ),
    "a module of a module": (
        {"a.py": "from scipy import misc\nmisc.imread('a.png').shape\n"},
        {"scipy.misc.imread": "a.py:2:1"},
    ),
    "a call in a chain": (
        {"a.py": "import numpy\nf(numpy.zeros(3, numpy.float)).sum().x\n"},
        {"numpy.float": "a.py:2:18"},
    ),
    "the standard library": ({"a.py": "import imp\n"}, {"imp": "a.py:1:8"}),
    "a longer name": ({"a.py": "import numpy as np\nnp.float32(np.floating)\n"}, {}),
    "a comment and a text": ({"a.py": "import numpy as np\n# np.float\nx = 'np.float'\n"}, {}),
    "another module by the same alias": (
        {"a.py": "import tensorflow.compat.v1 as tf\ntf.Session()\n"},
        {},
    ),
    "an alias of two modules": (
        {
            "a.py": "if x:\n    import tensorflow.compat.v1 as tf\nelse:\n    import tensorflow as tf\ntf.Session()\n"
        },
        {},
    ),
    "a name that may be missing": (
        {
            "a.py": "import numpy as np\ntry:\n    np.float\nexcept AttributeError:\n    pass\n"
            "if hasattr(np, 'float'):\n    np.float\nx = np.float if np.__version__ < '1.24' else float\n"
        },
        {},
    ),
    "a branch for some releases": (
        {
            "a.py": "if TORCH_1_13:\n    from torch._six import inf\n"
            "if is_greater_or_equal('numpy', '1.24'):\n    x = float\nelse:\n    import numpy\n    x = numpy.float\n"
        },
        {},
    ),
    "a name that the code defines": (
        {
            "a.py": "import numpy as np\nnp.float = float\n",
            "b.py": "import numpy\nnumpy.float(1)\n",
        },
        {},
    ),
    "a module of the project": (
        {"own/__init__.py": "", "own/old.py": "", "imp.py": "", "a.py": "import imp, own.old\n"},
        {},
    ),
    "code that nothing leads to": (
        {**PROJECT, "own/a.py": "import torch._six\n", "own/b.py": "import imp\n"},
        {},
    ),
    "a condition that is nested too deeply": (
        {"a.py": f"import numpy\nif {' + '.join(['x'] * 900)}:\n    numpy.float\n"},
        {},
    ),
    "code that cannot be parsed": ({"a.py": "import imp\nprint 'imp'\n"}, {}),
}


@pytest.mark.parametrize("name", USES)
def test_the_names_that_code_uses(name: str, tmp_path: Path) -> None:
    files, uses = USES[name]
    imports = source_imports(write(tmp_path, files), PACKAGES, NAMES)
    found = {name: position(place) for name, place in imports.uses.items()}
    assert {
        name: f"{os.path.relpath(where.path, tmp_path)}:{where.line}:{where.column}"
        for name, where in found.items()
    } == uses


@pytest.mark.parametrize("run", ["a", "a.", "a.b "])
def test_the_place_of_a_name_is_looked_for_in_linear_time(run: str, tmp_path: Path) -> None:
    def read(times: int) -> None:
        text = f"import numpy\nif 1: '{run * times}'; numpy.float\n"
        assert source_imports(write(tmp_path, {"a.py": text}), PACKAGES, NAMES).uses

    assert growth(read, 5000, 5000 * TIMES)[2]


def test_a_module_has_the_place_that_names_it_first(tmp_path: Path) -> None:
    text = "# é numpy\nimport os\nfrom numpy import pi\n"
    (place,) = source_imports(write(tmp_path, {"a.py": text}), PACKAGES).needed.values()
    assert (place.text, place.where) == ("numpy", (3, 6))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"b.py": "import numpy\ndef f(:\n"})
    (tmp_path / "a.py").write_bytes(b"\xff")
    (tmp_path / "c.py").symlink_to("/etc/passwd")
    imports = source_imports(str(tmp_path), PACKAGES)
    assert imports.unparsed == ("a.py", "b.py")
    assert [*imports.needed] == ["numpy"]


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("cv2", "opencv-python"),
        ("PIL", "pillow"),
        ("google.protobuf", "protobuf"),
        ("torch", "torch"),
        ("pytorch_lightning", "pytorch-lightning"),
        ("google", ""),
        ("some_module_of_nobody", ""),
    ],
)
def test_the_package_of_a_module(module: str, package: str) -> None:
    assert next(iter(names.providers(module, PACKAGES)), "") == package
