"""A value is found in the one way that a family names, or it is told what stood there instead."""

from __future__ import annotations

import pytest

from toolmatrix.errors import HarvestRefused, MatrixError
from toolmatrix.factbase import yamlfile
from toolmatrix.harvest import families, reading
from toolmatrix.harvest.families import FAMILIES
from toolmatrix.harvest.reading import Unread


def node(text: str) -> yamlfile.YamlNode:
    return yamlfile.parse(text.encode(), "f.yaml", FAMILIES)


def cell(text: str) -> reading.CellReading:
    (found,) = reading.file(node(f"cells: {{x: {text}}}")).cells["x"]
    assert isinstance(found, reading.CellReading)
    return found


def values(text: str, *texts: str) -> list[str]:
    return cell(text).values(texts)


@pytest.mark.parametrize(
    ("written", "text", "found"),
    [
        ("{match: '[0-9.]+'}", "bazel 3.7.2", ["3.7.2"]),
        ("{match: '[0-9.]+'}", "3.7.2\nand 3.7.2", ["3.7.2"]),
        ("{match: 'a(?P<b>.)', is: '<{b}>'}", "a1", ["<1>"]),
        ("{match: 'a(?P<b>[0-9]+)', is: '>={b},<{b+1}'}", "a19", [">=19,<20"]),
        ("{match: '^(?P<b>.)(?P<c>x)?$', is: '{b}-{c}'}", "1", ["1-"]),
        ("{match: '[0-9]', several: blanks}", "1 2 1", ["1", "2"]),
        ("{key: a, nothing: [N/A]}", "N/A", []),
        ("{key: a, nothing: [N/A]}", " 1.2 ", ["1.2"]),
    ],
)
def test_a_pattern_takes_a_text_apart(written: str, text: str, found: list[str]) -> None:
    assert values(written, text) == found


@pytest.mark.parametrize(
    ("written", "texts", "found"),
    [
        ("{match: '[0-9]'}", ["x"], "'x'"),
        ("{match: '[0-9]'}", ["12"], "2 values: 1, 2"),
        ("{key: a}", [], "nothing"),
        ("{match: '[0-9]'}", ["x" * 200], repr("x" * 80)),
    ],
)
def test_what_is_found_instead_is_told(written: str, texts: list[str], found: str) -> None:
    with pytest.raises(Unread) as caught:
        values(written, *texts)
    assert str(caught.value) == found


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{is: x}", "a cell needs exactly one way to read it"),
        ("{key: a, assignment: b}", "a cell needs exactly one way to read it"),
        ("{match: '('}", "a pattern cannot be read"),
        ("{match: x, is: '{y}'}", "`match` has no group `y`"),
        ("{match: x, releases: '>=x'}", "a selector cannot be read"),
        ("{match: x, several: yes}", "several is not a known word"),
        ("{march: x}", "a cell has an unknown key"),
    ],
)
def test_a_family_that_is_written_wrongly_is_refused(written: str, message: str) -> None:
    with pytest.raises(MatrixError) as caught:
        cell(written)
    assert caught.value.what == message
    assert caught.value.where is not None
    assert str(caught.value.where).startswith("f.yaml:1:")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("p.toml", "[project]\nrequires = ['>=3', '<4']\n"),
        ("p.json", '{"project": {"requires": [">=3", "<4"]}}'),
        ("p.yaml", "project:\n  requires: ['>=3', <4]\n"),
    ],
)
def test_a_key_of_each_format(path: str, text: str) -> None:
    assert reading.key(text, path, node("[project, requires]")) == [">=3", "<4"]
    with pytest.raises(Unread, match="no key `wants`"):
        reading.key(text, path, node("[project, wants]"))
    with pytest.raises(Unread, match="neither text nor numbers"):
        reading.key(text, path, node("project"))


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"a": 1'])
def test_what_is_no_json_is_unread(text: str) -> None:
    with pytest.raises(Unread, match="no JSON"):
        reading.key(text, "p.json", node("a"))


@pytest.mark.parametrize(
    ("path", "text"), [("p.toml", "a = ["), ("p.yaml", "a: *b"), ("p.yaml", "[" * 99)]
)
def test_what_is_no_toml_or_yaml_is_refused(path: str, text: str) -> None:
    with pytest.raises(HarvestRefused):
        reading.key(text, path, node("a"))


PYTHON = """\
from __future__ import print_function
_MIN = '1.0.0'
_MAX: str = "1.1.0"
REQUIRED = ['numpy >= 1.16', 'six' + 'x', "wrapt"]
if True:
    PINS = ("a", 1, 2.5)
_LATE = compute()
"""


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("_MIN", ["1.0.0"]),
        ("_MAX", ["1.1.0"]),
        ("REQUIRED", ["numpy >= 1.16", "wrapt"]),
        ("PINS", ["a", "1", "2.5"]),
        ("_LATE", []),
    ],
)
def test_literals_that_python_assigns(name: str, found: list[str]) -> None:
    assert reading.assignment(PYTHON, "configure.py", node(name)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("_MIN = ", "no Python"),
        ("print 'x'", "no Python"),
        ("\0", "no Python"),
        ("x = 1", "nothing is assigned to `_MIN`"),
    ],
)
def test_what_python_does_not_assign_is_unread(text: str, found: str) -> None:
    with pytest.raises(Unread, match=found):
        reading.assignment(text, "configure.py", node("_MIN"))


DOCKERFILE = """\
# syntax=docker/dockerfile:1
ARG BASE=ubuntu:22.04
FROM --platform=linux/amd64 nvidia/cuda:12.4.1-devel AS build
env NV_VERSION 12.4.1-1
ENV NCCL_VERSION=2.21.5 \\
# in between
    NAME="a b"
FROM scratch
"""


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("FROM", ["nvidia/cuda:12.4.1-devel", "scratch"]),
        ("ARG BASE", ["ubuntu:22.04"]),
        ("ENV NV_VERSION", ["12.4.1-1"]),
        ("ENV NCCL_VERSION", ["2.21.5"]),
        ("ENV NAME", ["a b"]),
        ("ENV NOTHING", []),
    ],
)
def test_what_a_dockerfile_says(word: str, found: list[str]) -> None:
    assert reading.dockerfile(DOCKERFILE, "Dockerfile", node(word)) == found


CSV = """\
Version,6.3,6.2
Systems,"Ubuntu 24.04, 22.04",Ubuntu 22.04
,RHEL 9,
Library,1.2,N/A
"""


def test_a_table_whose_columns_are_records() -> None:
    assert reading.grid(CSV, "m.csv", columns=True, after="") == [
        {"Version": ["6.3"], "Systems": ["Ubuntu 24.04, 22.04", "RHEL 9"], "Library": ["1.2"]},
        {"Version": ["6.2"], "Systems": ["Ubuntu 22.04", ""], "Library": ["N/A"]},
    ]


MARKDOWN = """\
| not | this |
| --- | --- |
| 1 | 2 |

## Matrix

| Version | CUDA |
|:---:| --- |
| 2.3 | CUDA 11.8 |
| 2.2 |

text
"""

HTML = """\
#### GPU
<table>
<tr><th>Version</th><th>CUDA</th></tr>
<tr><td>lib-2.3</td><td>11.8 <b>or</b> 12</td></tr>
</table>
<table><tr><td>other</td></tr></table>
"""


def test_a_table_of_a_page_behind_a_heading() -> None:
    assert reading.grid(MARKDOWN, "R.md", columns=False, after="^## Matrix") == [
        {"Version": ["2.3"], "CUDA": ["CUDA 11.8"]},
        {"Version": ["2.2"]},
    ]
    assert reading.grid(HTML, "source.md", columns=False, after="^#### GPU") == [
        {"Version": ["lib-2.3"], "CUDA": ["11.8 or 12"]}
    ]


@pytest.mark.parametrize(
    ("text", "path", "after", "found"),
    [
        (MARKDOWN, "R.md", "^## Other", "nothing that matches `^## Other`"),
        ("no table", "R.md", "", "no table"),
        ("", "m.csv", "", "no table"),
        ("<table>", "R.md", "", "no table"),
    ],
)
def test_a_page_without_its_table_is_unread(text: str, path: str, after: str, found: str) -> None:
    with pytest.raises(Unread) as caught:
        reading.grid(text, path, columns=False, after=after)
    assert str(caught.value) == found


def test_a_column_is_the_one_whose_label_fits() -> None:
    record = {"CUDA": ["11.8", ""], "CUDNN": ["8"]}
    assert reading.column(record, "CUDA") == ["11.8"]
    with pytest.raises(Unread, match=r"2 columns that fit `CUD\.\*`, among CUDA, CUDNN"):
        reading.column(record, "CUD.*")


def test_families_of_trees_are_written_well() -> None:
    known = [one for one in families.families().values() if one.kind == "tree"]
    assert known
    for family in known:
        for name in ("tags", "branches"):
            for pattern in family.fields[name].several() if name in family.fields else []:
                named = reading.pattern(pattern).groupindex
                assert "release" in named or "version" in family.fields, family.name
        for part in family.fields["version"].several() if "version" in family.fields else []:
            assert set(reading.file(part).cells) == {"release"}, family.name
        for table in family.fields["tables"].sequence("tables"):
            fields = table.mapping("table")
            columns = {*fields["columns"].mapping("columns"), "id", "date"}
            for part in fields["read"].several():
                assert set(reading.file(part).cells) <= columns, family.name
