"""Files of strangers: what grows faster than what is read is bounded, and nothing outside a project is read."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

import toolmatrix
from tests import matrix
from tests.amount import within
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.errors import ManifestError
from toolmatrix.manifests import files, read
from toolmatrix.manifests.model import FileText

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

    from toolmatrix.manifests.model import ProjectManifest


def asked(path: str, text: str) -> ProjectManifest:
    return read.manifest(FileText(path, text))


def doubled(first: str, line: str, last: str, times: int = 60) -> str:
    """Each value is the one before it, twice."""
    return first + "".join(line.format(at + 1, at) for at in range(times)) + last.format(times)


MANY = "more than 1,000 characters"
VALUE = "variables expand it to more than 10,000 characters"
LINE = "a line of more than 32,768 characters"
BOUNDED = {
    "values of ARG": ("Dockerfile", doubled("ARG A0=x\n", "ARG A{0}=${{A{1}}}${{A{1}}}\n", "FROM $A{0}"), VALUE),
    "values of ENV": (
        "Dockerfile",
        doubled("FROM a\nENV A0=x\n", "ENV A{0}=${{A{1}}}$A{1}\n", "RUN pip install $A{0}"),
        VALUE,
    ),
    "values of a shell": (
        "Dockerfile",
        doubled("FROM a\nRUN A0=x; ", "A{0}=$A{1}$A{1}; ", "pip install $A{0}"),
        VALUE,
    ),
    "many values": (
        "Dockerfile",
        f"FROM a\nENV A={'x' * 9_000}\n" + "ENV B=$A\n" * 200,
        "or all values to more than 1,048,576",
    ),
    "brackets": ("requirements.txt", "torch" + "[" * 30_000, MANY),
    "numbers": ("requirements.txt", "torch==1" + ".1" * 16_000, MANY),
    "digits": ("requirements.txt", "torch==" + "9" * 32_000, MANY),
    "blanks": ("requirements.txt", f"torch{' ' * 30_000}x", MANY),
    "a line": ("requirements.txt", "a" * 500_000, LINE),
    "a line of a Dockerfile": ("Dockerfile", f"FROM a\nENV {'a' * 500_000}", LINE),
    "a package of conda": ("environment.yml", f"dependencies: [python=3.{'1' * 2_000}]", MANY),
    "a dependency": ("pyproject.toml", f'[project]\ndependencies = ["t{"t" * 40_000}"]', MANY),
    "a wheel": ("requirements.txt", f"https://a/{'a-' * 2_000}.whl x", MANY),
}  # fmt: skip


@pytest.mark.parametrize("name", BOUNDED)
def test_what_is_too_long_is_reported_and_not_read(name: str) -> None:
    path, text, why = BOUNDED[name]
    found = [one for one in asked(path, text).unread if why in one.why]
    assert len(found) == 1
    assert 0 < len(found[0].text) <= 1_000
    assert found[0].where.line


@pytest.mark.parametrize(
    "text",
    [
        doubled("ARG A0=xxxx\n", "ARG A{0}=${{A{1}}}${{A{1}}}\n", "FROM $A{0}\n", 20),
        doubled("FROM a\nENV A0=x\n", "ENV A{0}=$A{1}$A{1}\n", "RUN pip install $A{0}\n", 20),
    ],
)
def test_what_is_too_long_is_one_short_line(text: str) -> None:
    (found,) = asked("Dockerfile", text).unread
    assert VALUE in found.why
    assert 0 < len(found.text) <= 60


REFUSED = {
    "too many packages": ("requirements.txt", "torch\n" * 5_001, "asks for too many packages"),
    "too many of all": (
        "Dockerfile",
        "FROM a AS s0\nRUN pip install " + "torch " * 4_000
        + "".join(f"\nFROM s{at} AS s{at + 1}" for at in range(20)),
        "asks for too many packages",
    ),
    "each with what all need": (
        "pyproject.toml",
        "[project]\ndependencies = [" + '"a",' * 4_000 + "]\n[project.optional-dependencies]\n"
        + "".join(f'e{at} = ["b"]\n' for at in range(20)),
        "asks for too many packages",
    ),
    "too many environments": (
        "Dockerfile",
        "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\n" * 501,
        "too many environments",
    ),
    "groups of groups": (
        "pyproject.toml",
        "[dependency-groups]\n" + "".join(f'g{at} = [{{include-group = "g{at + 1}"}}]\n' for at in range(500)),
        "asks for too many packages",
    ),
    "too many instructions": ("Dockerfile", "FROM a\n" * 5_001, "too many instructions"),
    "mappings merged": (
        "compose.yaml",
        doubled("services:\n  a0: &a0 {{}}\n", "  a{0}: &a{0} {{<<: [*a{1}, *a{1}]}}\n", "", 39),
        "expands to too many values",
    ),
    "digits of a number": ("pyproject.toml", f"a = {'9' * 100_000}", "too long"),
    "digits of another base": ("pyproject.toml", f"a = 0x{'f' * 100_000}", "too long"),
    "parts of a key": ("pyproject.toml", f"{'a.' * 100_000}a = 1", "too long"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_stands_for_too_much_is_refused_with_its_file(name: str) -> None:
    path, text, what = REFUSED[name]
    with pytest.raises(ManifestError, match=what) as found:
        asked(path, text)
    assert found.value.where
    assert found.value.where.path == path
    assert found.value.expected


def test_a_group_that_is_included_twice_counts_once() -> None:
    groups = "".join(
        f'g{at} = [{{include-group = "g{at + 1}"}}, {{include-group = "g{at + 1}"}}]\n'
        for at in range(40)
    )
    found = asked("pyproject.toml", f'[dependency-groups]\n{groups}g40 = ["torch"]\n')
    assert [len(one.items) for one in found.environments] == [1] * 41


# What is repeated, behind what stands first.
GROWING: dict[str, tuple[str, str, Callable[[int], str]]] = {
    "packages": ("requirements.txt", "", "p{}==1.0\n".format),
    "indexes": ("requirements.txt", "", "--extra-index-url https://a/{}\n".format),
    "lines that go on": ("requirements.txt", "torch", " \\\n # {}".format),
    "variables": ("Dockerfile", "FROM a\n", "ENV A{}=1\n".format),
    "options": ("Dockerfile", "FROM a\nRUN ", "--a={} \\\n".format),
    "assignments": ("Dockerfile", "FROM a\nRUN ", "A{}=1 \\\n".format),
    "words": ("Dockerfile", "FROM a\nRUN ", "a{} \\\n".format),
    "services": ("compose.yaml", "services:\n", "  s{}: {{image: a}}\n".format),
    "names of conda": ("environment.yml", "dependencies:\n", "- p{}=1.0\n".format),
    "builds": (
        "compose.yaml",
        "services:\n",
        "  s{}: {{build: {{context: a, args: [A=1]}}}}\n".format,
    ),
    "names of a script": (
        "setup.py",
        "",
        "a{0} = ['torch']\nsetup(install_requires=a{0})\n".format,
    ),
    "a list that grows": ("setup.py", "a = []\nsetup(x=a)\n", "a += ['a', f'{{a}}{}']\n".format),
    "lists of lists": ("setup.py", "a = ['a']\n", "a = a + a # {}\n".format),
    "calls of a function": (
        "setup.py",
        "def f(a): return " + "open('a.txt'), " * 200 + "\nsetup(install_requires=[",
        "f({}),".format,
    ),
    "one long line": ("setup.py", "setup(install_requires=['é',", "'é{}',".format),
    "lines of a configuration": ("setup.cfg", "[options]\ninstall_requires =\n", " a{}\n".format),
    "locked packages": (
        "uv.lock",
        '[[package]]\nname = "a"\nsource = {virtual = "."}\ndependencies = [{name = "p0"}]\n',
        '[[package]]\nname = "p{}"\nversion = "1"\nsource = {{url = "a"}}\ndependencies = [{{name = "p0"}}]\n'.format,
    ),
    "edges of a lock": (
        "uv.lock",
        '[[package]]\nname = "b"\n' * 2
        + '[[package]]\nname = "a"\nsource = {virtual = "."}\ndependencies = [',
        '{{name = "b", marker = "python_version < \'3.{0}\'"}}, '.format,
    ),
    "versions of a package": (
        "poetry.lock",
        "",
        '[[package]]\nname = "a"\nversion = "{}"\n'.format,
    ),
    "packages of a lock": (
        "conda-lock.yml",
        "package:\n",
        "- {{name: a{}, version: 1, platform: linux-64}}\n".format,
    ),
    "tables": ("pixi.toml", "[dependencies]\n", 'a{} = ">=1"\n'.format),
    "features": ("pixi.toml", "", "[feature.a{0}.dependencies]\na{0} = '*'\n".format),
    "blocks": ("README.md", "", "```\npip install a{0}\n```\n".format),
    "lines of a block": ("README.md", "```\n", "$ pip install a{} \\\n".format),
    "functions": ("install.sh", "", "f{} () {{\npip install a\n}}\n".format),
    "recipes": ("Makefile", "", "A{0} = $(A)\na{0}: b\n\tpip install $(A{0}) $$a\n".format),
    "steps": (
        ".github/workflows/a.yml",
        "jobs:\n a:\n  steps:\n",
        "  - run: 'pip install a{} ${{{{ a }}}}'\n".format,
    ),
    "values of a matrix": (
        ".github/workflows/a.yml",
        "jobs:\n a:\n  steps: [{run: pip install a}]\n  strategy:\n   matrix:\n    include:\n",
        "    - {{a: {}}}\n".format,
    ),
    "jobs": (".gitlab-ci.yml", ".b: {script: pip install b}\n", "a{}: {{extends: .b}}\n".format),
    "commands": ("cog.yaml", "build:\n run:\n", " - pip install a{}\n".format),
    "extras": ("pyproject.toml", "[project.optional-dependencies]\n", 'e{} = ["torch"]\n'.format),
}


# Blanks and brackets without an end, which a pattern may try in every way.
LONG = {
    "prompts": ("README.md", "```\n" + "(" * 30_000 + " " * 30_000),
    "a function": ("install.sh", "f ()" + " " * 30_000 + "x"),
    "a target": ("Makefile", "a" + " " * 30_000 + "b\n" + "a " * 15_000),
    "an expression": (
        ".github/workflows/a.yml",
        "jobs: {a: {steps: [{run: '" + "${{ " * 100_000 + " " * 100_000 + "'}]}}",
    ),
    "a name": ("uv.lock", f'[[package]]\nname = "{"a" * 900_000}"\nversion = "1"\n'),
    "a marker": (
        "uv.lock",
        '[[package]]\nname = "a"\nsource = {virtual = "."}\ndependencies = [{name = "a", marker = "'
        + "extra " * 100_000
        + '"}]',
    ),
    "a bracket": ("setup.py", "setup(install_requires=" + "(" * 150 + ")" * 150 + ")"),
    "a sum": ("setup.py", "a = 'a'" + " + 'a'" * 900 + "\nsetup(name=a)"),
    "a value": ("setup.cfg", "[options]\ninstall_requires" + " " * 30_000 + "x"),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_a_long_text_is_read_at_once(name: str) -> None:
    path, text = LONG[name]
    before = time.process_time()
    assert not read.manifest(FileText(path, text)).environments
    assert within(time.process_time() - before, 2)


def ending(path: str, first: str) -> str:
    """What closes the brackets of a beginning."""
    if path.endswith("py") and first.endswith(("[", ",")):
        return "])"
    return "]" if first.endswith("[") else ""


@pytest.mark.parametrize("name", GROWING)
def test_twice_the_input_takes_twice_the_calls(name: str) -> None:
    path, first, repeated = GROWING[name]
    last = ending(path, first)
    once, twice = (
        _calls(path, first + "".join(map(repeated, range(number))) + last) for number in (200, 400)
    )
    assert twice < 2.5 * once


def _calls(path: str, text: str) -> int:
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    source = FileText(path, text)
    read.manifest(source)
    source = FileText(path, text)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        read.manifest(source)
    finally:
        sys.setprofile(before)
    return calls


def names(path: str, folder: str = "") -> set[str]:
    """What a file asks for, and those that it names."""
    found = read.manifest(files.read_file(path, folder or files.root_of(path)))
    return {item.name for one in found.environments for item in one.items}


OUT = {"p/requirements.txt": "out.txt", "p/more": "more"}
IN = {"p/requirements.txt": "p/base.txt", "p/more": "p/lists"}


@pytest.mark.parametrize("by_its_folder", [True, False])
@pytest.mark.parametrize(("link", "target"), [*OUT.items(), *IN.items()])
def test_no_link_leads_out_of_what_is_judged(
    link: str, target: str, by_its_folder: bool, tmp_path: Path
) -> None:
    for name in ("out.txt", "p/base.txt", "more/base.txt", "p/lists/base.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("numpy==1.26.4\n")
    (tmp_path / "p/requirements.txt").write_text("-r more/base.txt\n")
    (tmp_path / link).unlink(missing_ok=True)
    (tmp_path / link).symlink_to(tmp_path / target)
    path, folder = str(tmp_path / "p/requirements.txt"), str(tmp_path / "p")
    named = folder if by_its_folder else ""
    if target == "out.txt":
        with pytest.raises(ManifestError, match="a link that leaves"):
            names(path, named)
        assert (
            "a link that leaves"
            in toolmatrix.judge(
                [folder], edit=False, matrix=OpenMatrix(index=matrix.index())
            ).text()
        )
    else:
        assert names(path, named) == (set() if target in OUT.values() else {"numpy"})


def test_a_file_names_others_of_its_working_tree(tmp_path: Path) -> None:
    for name, text in (
        ("outside.txt", "scipy\n"),
        ("p/base.txt", "numpy\n"),
        ("p/b/more.txt", "pandas\n"),
        ("p/a/requirements.txt", "-r ../base.txt\n-r ../b/more.txt\n-r ../../outside.txt\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    path = str(tmp_path / "p/a/requirements.txt")
    assert names(path) == set()
    (tmp_path / "p/.git").mkdir()
    assert names(path) == {"numpy", "pandas"}
