"""Dockerfiles: instructions as BuildKit's own parser finds them, and what stages ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dockerfile as buildkit
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolmatrix.manifests import dockerfile, files, read
from toolmatrix.manifests.model import FileText

if TYPE_CHECKING:
    from pathlib import Path

    from toolmatrix.manifests.model import ProjectManifest

STAGES = """\
# syntax=docker/dockerfile:1
ARG CUDA=11.0.3
ARG BASE
FROM --platform=linux/arm64 nvidia/cuda:${CUDA}-devel-ubuntu20.04 AS build
ARG TORCH=2.1.0
ENV TORCH_CUDA_ARCH_LIST="8.0 8.6+PTX" \\
    OTHER=1
RUN apt-get update && apt-get install -y --no-install-recommends \\
        python3-pip \\
        # a comment within
        git
RUN python3.9 -m pip install -i https://example.org/simple "torch==${TORCH}" 'numpy>=2'
RUN <<EOF
pip install transformers==4.30.0
EOF
FROM ${BASE}
FROM build
RUN ["pip", "install", "xformers==0.0.22"]
"""


def asked(text: str, path: str = "Dockerfile") -> ProjectManifest:
    return read.manifest(FileText(path, text))


def told(text: str) -> list[str]:
    """Kind, name, specifier and line of each item of the last stage."""
    items = asked(text).environments[-1].items
    return [f"{one.kind} {one.name}{one.specifier} {one.where.line}" for one in items]


def unread(text: str) -> list[str]:
    return [f"{one.text.text}: {one.why}" for one in asked(text).unread]


def test_a_stage_has_what_the_stage_it_starts_from_has() -> None:
    assert told(STAGES) == [
        "image nvidia/cuda:11.0.3-devel-ubuntu20.04 4",
        "platform linux/arm64 4",
        "variable TORCH_CUDA_ARCH_LIST8.0 8.6+PTX 6",
        "system python3-pip 9",
        "pip torch==2.1.0 12",
        "pip numpy>=2 12",
        "system pip pip 12",
        "pip transformers==4.30.0 14",
        "system pip pip 14",
        "pip xformers==0.0.22 18",
        "system pip pip 18",
    ]
    assert unread(STAGES) == ["${BASE}: ${BASE} is unknown"]
    assert [one.name for one in asked(STAGES).environments] == ["build", "2"]


def test_what_a_variable_brings_stands_where_its_value_is() -> None:
    torch = next(one for one in asked(STAGES).environments[0].items if one.name == "torch")
    version = torch.version
    assert version is not None
    assert version.text == "==2.1.0"
    assert version.span is None
    assert version[2:].span is not None
    assert version[2:].where == (5, 11)
    assert (torch.python, torch.indexes, torch.alone) == (
        "3.9",
        ("https://example.org/simple",),
        True,
    )


@pytest.mark.parametrize(
    ("line", "items", "left"),
    [
        ("RUN pip install torch>2.0", ["pip torch 2"], []),
        (
            "RUN pip install torch==2.0;pip install numpy==1",
            ["pip torch==2.0 2", "pip numpy==1 2"],
            [],
        ),
        ("RUN X=2.0; pip install torch==$X", ["pip torch==2.0 2"], []),
        ("RUN X=2.0 && pip install torch==${X}", ["pip torch==2.0 2"], []),
        ("RUN pip install torch==${X:-2.0}", ["pip torch==2.0 2"], []),
        ("RUN pip install torch==$X", [], ["torch==$X: $X is unknown"]),
        (
            "RUN pip install torch==$(cat version)",
            [],
            ["torch==$(cat version): $(...) is unknown"],
        ),
        (
            'RUN if [ "$A" = 1 ]; then pip install torch==1; else pip install torch==2; fi',
            [],
            [
                "torch==1: a condition decides whether it is installed",
                "torch==2: a condition decides whether it is installed",
            ],
        ),
        (
            "RUN pip install torch==1 || pip install torch==2",
            ["pip torch==1 2"],
            ["torch==2: a condition decides whether it is installed"],
        ),
        (
            "RUN [ -n $A ] && pip install torch==2",
            [],
            ["torch==2: a condition decides whether it is installed"],
        ),
        ("RUN echo pip install torch==2", [], []),
        ("RUN sudo -- ls # pip install torch==2", [], []),
        (
            "RUN conda install -y -c pytorch pytorch=1.13 'numpy>=1.2,<2'",
            ["channel pytorch 2", "conda pytorch==1.13.* 2", "conda numpy>=1.2,<2 2"],
            [],
        ),
        ("RUN conda run -n a pip install torch==2", ["pip torch==2 2"], []),
        ("RUN uv pip install --python 3.11 torch==2", ["pip torch==2 2"], []),
        ("RUN uv venv --python 3.11", ["python python==3.11 2"], []),
        ("RUN pip install --no-deps torch==2", ["pip torch==2 2"], []),
        ("RUN pip install -r other.txt", [], ["other.txt: not a file of the project"]),
        (
            "RUN pip install . ./x git+https://example.org/y",
            [],
            [f"{one}: a URL or a path" for one in (".", "./x", "git+https://example.org/y")],
        ),
        (
            "RUN TORCH_CUDA_ARCH_LIST=8.0 pip install x",
            ["variable TORCH_CUDA_ARCH_LIST8.0 2", "pip x 2"],
            [],
        ),
    ],
)
def test_what_a_command_installs(line: str, items: list[str], left: list[str]) -> None:
    text = f"FROM scratch\n{line}\n"
    assert (told(text) if asked(text).environments else []) == items
    assert unread(text) == left


def test_requirements_beside_it_are_read_by_the_name_they_are_copied_from(tmp_path: Path) -> None:
    (tmp_path / "needs").mkdir()
    (tmp_path / "needs" / "base.txt").write_text("torch==2.0\n-r more.txt\n")
    (tmp_path / "needs" / "more.txt").write_text("numpy==1.26\n-r base.txt\n-r ../../outside.txt\n")
    path = tmp_path / "Dockerfile"
    path.write_text("FROM scratch\nCOPY needs/base.txt /app/r.txt\nRUN pip install -r /app/r.txt\n")
    found = read.manifest(files.read_file(str(path)))
    items = found.environments[0].items
    assert [(one.name, one.where.line) for one in items] == [("torch", 1), ("numpy", 1)]
    assert items[0].where.path == str(tmp_path / "needs" / "base.txt")
    assert [one.why for one in found.unread] == ["not a file of the project"]


@pytest.mark.parametrize(
    ("copies", "path"),
    [
        ("COPY needs/ /r/", "/r/base.txt"),
        ("COPY needs /r", "/r/base.txt"),
        ("COPY . /srv", "/srv/needs/base.txt"),
        ("COPY setup.py needs /srv/", "/srv/base.txt"),
        ("COPY . /srv\nCOPY needs /other", "/srv/needs/base.txt"),
        ("COPY . .", "needs/base.txt"),
    ],
)
def test_a_file_of_a_copied_folder_is_found(tmp_path: Path, copies: str, path: str) -> None:
    (tmp_path / "needs").mkdir()
    (tmp_path / "needs/base.txt").write_text("torch==2.1.0\n")
    (tmp_path / "Dockerfile").write_text(
        f"FROM python:3.10\nWORKDIR /srv\n{copies}\nRUN pip install -r {path}\n"
    )
    found = read.manifest(files.read_file(str(tmp_path / "Dockerfile")))
    (environment,) = found.environments
    assert [item.name for item in environment.items] == ["python:3.10", "torch"]
    assert found.unread == ()


LINES = st.lists(
    st.sampled_from(
        [
            "FROM python:3.10",
            "FROM a AS b",
            "run pip install x \\",
            "    && true",
            "# a comment",
            "",
            "ENV A=1 B='2 3' \\",
            "ARG A",
            "ARG A=$B",
            "RUN echo \\ ",
            "COPY a b",
            'RUN echo "a',
            "  RUN ls",
            "LABEL a=b",
            "RUN <<EOF",
            "EOF",
            "pip install torch==2",
            'RUN ["pip", "install", "x"]',
            "\tRUN x",
        ]
    ),
    max_size=12,
)


@given(LINES)
def test_instructions_are_those_of_buildkit(lines: list[str]) -> None:
    text = "\n".join(lines)
    try:
        parsed = buildkit.parse_string(text)
    except buildkit.GoParseError:
        return
    mine = [(one.word, one.line) for one in dockerfile.instructions(FileText("Dockerfile", text))]
    known = [(one.cmd.upper(), one.start_line) for one in parsed]
    assert mine == [one for one in known if one[0] in dockerfile.WORDS]


@example("<<a")
@given(st.text(alphabet="FROM RUNpipinstal=-\\\n\"'$(){};&|<>#torch21.0", max_size=200))
def test_any_text_is_read_and_every_place_lies_in_it(text: str) -> None:
    found = asked("FROM a\nRUN " + text)
    for item in (one for environment in found.environments for one in environment.items):
        where = item.where
        assert 0 < where.line <= text.count("\n") + 2
        if item.text.span:
            start, end = item.text.span
            assert found.sources[0].text[start:end] == item.text.text


@pytest.mark.parametrize(
    ("command", "upgrade"),
    [
        ("pip install torch", ""),
        ("pip install -U torch", "named"),
        ("pip install -qU torch", "named"),
        ("pip install --upgrade torch", "named"),
        ("pip install --upgrade --upgrade-strategy eager torch", "all"),
        ("pip install --upgrade-strategy only-if-needed --upgrade torch", "named"),
        ("pip install --force-reinstall torch", "all"),
        ("pip install -I torch", "all"),
        ("uv pip install -U torch", "all"),
        ("uv pip install --reinstall torch", "all"),
        ("pip install -i https://example.org/U torch", ""),
    ],
)
def test_what_a_command_upgrades(command: str, upgrade: str) -> None:
    (item,) = asked(f"FROM scratch\nRUN {command}\n").environments[0].items
    assert item.upgrade == upgrade
