"""`setup.py` and `setup.cfg`, and projects that leave their dependencies to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.manifests.test_containers import read_in, told
from toolmatrix.errors import ManifestError
from toolmatrix.manifests import read
from toolmatrix.manifests.model import FileText

if TYPE_CHECKING:
    from pathlib import Path

BESIDE = {
    "requirements.txt": "torch==2.1.0\n# a comment\nnumpy<2\n",
    "requirements/dev.txt": "scipy\n",
    "notes.txt": "-r nothing.txt",
}
RUN_TIME = "an expression whose value is known at run time"
CONDITION = "a condition decides whether it is required"

# The shape of each is that of a public project.
SCRIPTS = {
    # Most of them.
    "literals": (
        """\
from setuptools import find_packages, setup
setup(
    name="x", packages=find_packages(), python_requires=">=3.8,<3.12",
    install_requires=["torch==2.1.0", 'numpy'
        '<2', "x==1; sys_platform == 'win32'"],
    extras_require={"dev": ["scipy"], "test:sys_platform == 'win32'": ["pandas"]},
)
""",
        {
            "": ["python>=3.8,<3.12 3", "torch==2.1.0 4", "numpy<2 4"],
            "dev": ["python>=3.8,<3.12 3", "torch==2.1.0 4", "numpy<2 4", "scipy 6"],
        },
        [],
    ),
    # huggingface/transformers and diffusers: a list, a table by name, and a function that looks up names.
    "a table of requirements": (
        """\
_deps = [
    "numpy>=1.17",
    "torch>=1.0",
    "jax>=0.2.8,!=0.3.2",
    "onnxruntime>=1.4.0",
]
deps = {b: a for a, b in (re.findall(r"^(([^!=<>]+)(?:[!=<>].*)?$)", x)[0] for x in _deps)}
def deps_list(*pkgs):
    return [deps[pkg] for pkg in pkgs]
extras = {}
if os.name == "nt":
    extras["flax"] = []
else:
    extras["flax"] = deps_list("jax")
extras["torch"] = deps_list("torch")
extras["onnx"] = deps_list("onnxruntime") + extras["torch"]
install_requires = [deps["numpy"], deps["tqdm"]]
setup(extras_require=extras, install_requires=install_requires)
""",
        {
            "": ["numpy>=1.17 2"],
            "torch": ["numpy>=1.17 2", "torch>=1.0 3"],
            "onnx": ["numpy>=1.17 2", "onnxruntime>=1.4.0 5", "torch>=1.0 3"],
        },
        [f'deps["tqdm"]]: {RUN_TIME}', f'deps_list("jax"): {CONDITION}'],
    ),
    # deepspeedai/DeepSpeed: a function that is given the name.
    "a function that reads what it is given": (
        """\
def fetch_requirements(path):
    with open(path, 'r') as fd:
        return [r.strip() for r in fd.readlines()]
install_requires = fetch_requirements('requirements.txt')
extras_require = {'dev': fetch_requirements('requirements/dev.txt'), 'none': fetch_requirements('none.txt')}
if torch_available:
    install_requires.append('pynvml')
    extras_require['dev'].append('cupy')
def main():
    setup(install_requires=install_requires, extras_require=extras_require)
""",
        {
            "": ["torch==2.1.0 1", "numpy<2 3"],
            "dev": ["torch==2.1.0 1", "numpy<2 3", "scipy 1"],
        },
        [f"fetch_requirements('none.txt')}}: {RUN_TIME}"],
    ),
    # open-mmlab's, and one of those that put the folder in front.
    "a function with a default": (
        """\
def parse_requirements(fname='requirements.txt', with_version=True):
    require_fpath = fname
    return list(gen(require_fpath))
def read(*names):
    return open(os.path.join(os.path.dirname(__file__), *names)).read()
def extra(name):
    path = os.path.join(HERE, "requirements", name)
    return open(path).read().splitlines()
if __name__ == '__main__':
    setup(long_description=read("README.md"), install_requires=parse_requirements(),
          extras_require={"dev": extra("dev.txt")})
""",
        {
            "": ["torch==2.1.0 1", "numpy<2 3"],
            "dev": ["torch==2.1.0 1", "numpy<2 3", "scipy 1"],
        },
        [],
    ),
    "an open file": (
        """\
from pathlib import Path
here = Path(__file__).parent
with open(os.path.join(here, 'requirements.txt'), encoding="utf-8") as f:
    required = [line for line in f.read().splitlines() if line and not line.startswith('#')]
dev = (here / "requirements" / "dev.txt").read_text().strip().split("\\n")
both = []
for line in open(here / "requirements.txt"):
    both.append(line.strip())
setup(install_requires=required, extras_require=dict(dev=dev, both=both))
""",
        {
            "": ["torch==2.1.0 1", "numpy<2 3"],
            "dev": ["torch==2.1.0 1", "numpy<2 3", "scipy 1"],
            "both": ["torch==2.1.0 1", "numpy<2 3"] * 2,
        },
        [],
    ),
    "lines of a text, and values that are put together": (
        """\
REQUIRED = '''
numpy<2
# a comment
torch
'''
TORCH = "2.5.1"
kwargs = {"install_requires": REQUIRED.splitlines() + [f"torchvision=={VISION}", "torchaudio==" + TORCH]}
kwargs["extras_require"] = {"a": [*kwargs["install_requires"]], "b": "scipy"}
setup(**kwargs)
""",
        {
            "": ["numpy<2 2", "torch 4", "torchaudio==2.5.1 7"],
            "a": [*["numpy<2 2", "torch 4", "torchaudio==2.5.1 7"] * 2],
            "b": ["numpy<2 2", "torch 4", "torchaudio==2.5.1 7", "scipy 8"],
        },
        [f'f"torchvision=={{VISION}}", "torchaudio==" + TORCH]}}: {RUN_TIME}'] * 2,
    ),
    "what is left out of a list": (
        """\
names = open("requirements.txt").read().split()
setup(install_requires=[name for name in names if "torch" not in name])
""",
        {},
        [f'[name for name in names if "torch" not in name]): {RUN_TIME}'],
    ),
    "what is removed from a list": (
        """\
needed = ["torch", "numpy"]
if ROCM:
    needed.remove("torch")
setup(install_requires=needed, extras_require={"a": [x for x, y in z]})
""",
        {},
        [f'needed.remove("torch"): {CONDITION}', f"[x for x, y in z]}}): {RUN_TIME}"],
    ),
    "letters of several bytes": (
        "é = 1; setup(author='é', install_requires=['torch==2.1.0'])\n",
        {"": ["torch==2.1.0 1"]},
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_followed_and_not_run(name: str, tmp_path: Path) -> None:
    text, environments, unread = SCRIPTS[name]
    manifest = read_in(tmp_path, "setup.py", {**BESIDE, "setup.py": text})
    assert told(manifest) == environments
    assert [f"{one.text.text}: {one.why}" for one in manifest.unread] == unread


def test_a_literal_is_where_an_edit_replaces_it() -> None:
    text = SCRIPTS["letters of several bytes"][0]
    (torch,) = read.manifest(FileText("setup.py", text)).environments[0].items
    assert torch.version
    assert torch.version.span == (text.index("==2.1.0"), text.index("==2.1.0") + 7)


CONFIGURATION = """\
[metadata]
name = x
[options]
python_requires = >=3.8
install-requires =
    torch==2.1.0
    # a comment
    numpy<2; python_version > "2"
[options.extras_require]
dev = scipy
gpu =
    onnxruntime-gpu==1.16.0
file = file: requirements.txt, none.txt
[tool:pytest]
install_requires = pandas
"""
BASE = ["python>=3.8 4", "torch==2.1.0 6"]
PROJECTS = {
    "setup.cfg": (
        {"setup.cfg": CONFIGURATION},
        {
            "": BASE,
            "dev": [*BASE, "scipy 10"],
            "gpu": [*BASE, "onnxruntime-gpu==1.16.0 12"],
            "file": [*BASE, "torch==2.1.0 1", "numpy<2 3"],
        },
        [
            'numpy<2; python_version > "2": its marker depends on Python',
            "file: requirements.txt, none.txt: not a file of the project",
        ],
    ),
    "pyproject.toml": (
        {
            "pyproject.toml": """\
[project]
name = "x"
dynamic = ["version", "dependencies", "optional-dependencies"]
requires-python = ">=3.9"
[tool.setuptools.dynamic]
dependencies = {file = ["requirements.txt"]}
optional-dependencies.dev = {file = "requirements/dev.txt"}
optional-dependencies.none = {file = ["none.txt"]}
"""
        },
        {
            "": ["python>=3.9 4", "torch==2.1.0 1", "numpy<2 3"],
            "dev": ["python>=3.9 4", "torch==2.1.0 1", "numpy<2 3", "scipy 1"],
        },
        ["none.txt: not a file of the project"],
    ),
    "hatch/pyproject.toml": (
        {
            "hatch/pyproject.toml": '[project]\ndynamic = ["dependencies"]\n'
            '[tool.hatch.metadata.hooks.requirements_txt]\nfiles = ["../requirements.txt"]\n'
        },
        {"": ["torch==2.1.0 1", "numpy<2 3"]},
        [],
    ),
    "old/pyproject.toml": (
        {
            "old/pyproject.toml": '[project]\ndynamic = ["dependencies"]\n',
            "old/setup.cfg": "[options]\ninstall_requires = pandas\n",
            "old/setup.py": "setup(extras_require={'gpu': ['jax']})\n",
        },
        {"": ["pandas 2"], "gpu": ["pandas 2", "jax 1"]},
        [],
    ),
    "other/pyproject.toml": (
        {"other/pyproject.toml": '[project]\nname = "x"\ndynamic = ["dependencies"]\n'},
        {},
        ["dependencies: what builds the project lists them"],
    ),
}


@pytest.mark.parametrize("path", PROJECTS)
def test_dependencies_are_where_the_project_leaves_them(path: str, tmp_path: Path) -> None:
    texts, environments, unread = PROJECTS[path]
    manifest = read_in(tmp_path, path, {**BESIDE, **texts})
    assert told(manifest) == environments
    assert [f"{one.text.text}: {one.why}" for one in manifest.unread] == unread


def test_what_is_no_python_is_refused_with_its_line() -> None:
    with pytest.raises(ManifestError) as found:
        read.manifest(FileText("setup.py", "import os\nprint 'x'\n"))
    assert (found.value.what, str(found.value.where)) == ("the file is not Python", "setup.py:2")


WORDS = (
    "setup( install_requires= extras_require= [ ] { } ( ) : , + += = * ** \n a b 'torch==2' \"x\" f'{a}' .append( "
    "open( 'requirements.txt' if for in def return with as"
)


@given(st.lists(st.sampled_from(WORDS.split(" ")), max_size=25).map(" ".join))
def test_any_script_is_read_or_refused(text: str) -> None:
    for start in ("", "setup(install_requires="):
        try:
            manifest = read.manifest(FileText("setup.py", start + text))
        except ManifestError:
            continue
        for one in manifest.environments:
            assert all(0 < item.where.line <= text.count("\n") + 1 for item in one.items)
