"""Compose files and development containers that build a Dockerfile of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolmatrix.manifests import files, read

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from toolmatrix.manifests.model import ProjectManifest


def read_in(folder: Path, path: str, texts: Mapping[str, str]) -> ProjectManifest:
    """A file of a folder that has some more."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return read.manifest(files.read_file(str(folder / path), str(folder)))


def told(manifest: ProjectManifest) -> dict[str, list[str]]:
    return {
        one.name: [f"{item.name}{item.specifier} {item.where.line}" for item in one.items]
        for one in manifest.environments
    }


DOCKERFILE = """\
ARG CUDA=11.8.0
FROM nvidia/cuda:${CUDA}-devel-ubuntu22.04 AS build
ARG TORCH
COPY requirements.txt /app/
RUN pip install -r /app/requirements.txt torch==${TORCH:-2.1.0}
FROM build AS test
RUN pip install scipy
"""
PROJECT = {"gpu/Dockerfile.dev": DOCKERFILE, "gpu/requirements.txt": "numpy<2\n"}
CASES = {
    # The shape of vLLM's and many others' compose files: a context, a file in it, arguments and a target.
    "services with a target and arguments": (
        "compose.yaml",
        """\
services:
  one:
    image: own
    build:
      context: ./gpu
      dockerfile: Dockerfile.dev
      target: build
      args:
        CUDA: ${CUDA:-12.4.1}
        TORCH: "2.5.1"
    environment: [TORCH_CUDA_ARCH_LIST=8.6]
  two:
    build: {context: gpu, dockerfile: Dockerfile.dev, args: ["TORCH=2.4.0", OTHER]}
""",
        {
            "one": [
                "nvidia/cuda:12.4.1-devel-ubuntu22.04 2",
                "numpy<2 1",
                "torch==2.5.1 5",
                "TORCH_CUDA_ARCH_LIST8.6 11",
            ],
            "two": [
                "nvidia/cuda:11.8.0-devel-ubuntu22.04 2",
                "numpy<2 1",
                "torch==2.4.0 5",
                "scipy 7",
            ],
        },
        [],
    ),
    "what is not in the project": (
        "compose.yaml",
        """\
services:
  one: {build: https://example.org/repository.git}
  two: {build: ../}
  three: {build: {context: gpu, dockerfile_inline: FROM python}}
  four: {build: {context: gpu, dockerfile: Dockerfile.dev, target: none}}
  five: {build: {context: "${WHERE}"}}
  six: {build: {context: gpu, dockerfile: Dockerfile.dev, args: {CUDA: "${CUDA}"}, target: build}}
""",
        {"six": ["numpy<2 1", "torch==2.1.0 5"]},
        [
            "build: its Dockerfile is not a file of the project",
            "build: its Dockerfile is not a file of the project",
            "build: its Dockerfile is not a file of the project",
            "none: the Dockerfile has no such stage",
            "build: its Dockerfile is not a file of the project",
            "nvidia/cuda:${CUDA}-devel-ubuntu22.04: ${CUDA} is unknown",
        ],
    ),
    "a devcontainer with a build": (
        ".devcontainer/devcontainer.json",
        """\
{
  "build": {
    "dockerfile": "../gpu/Dockerfile.dev",
    "args": {"TORCH": "2.6.0"}, // the newest
    "target": "build",
  },
  "postCreateCommand": "pip install -r gpu/requirements.txt && pip install pandas==2.0"
}
""",
        {
            "": [
                "nvidia/cuda:11.8.0-devel-ubuntu22.04 2",
                "numpy<2 1",
                "torch==2.6.0 5",
                "numpy<2 1",
                "pandas==2.0 7",
            ]
        },
        [],
    ),
    "a devcontainer with the older fields": (
        ".devcontainer/gpu/devcontainer.json",
        ('{"dockerFile": "../../gpu/Dockerfile.dev", "context": "../../gpu",\n'
        ' "postCreateCommand": {"a": "pip install -e .", "b": ["pip", "install", "x"]}}'),
        {
            "": [
                "nvidia/cuda:11.8.0-devel-ubuntu22.04 2",
                "numpy<2 1",
                "torch==2.1.0 5",
                "scipy 7",
            ]
        },
        [],
    ),
    "a devcontainer that is a service": (
        ".devcontainer/devcontainer.json",
        '{"dockerComposeFile": ["../docker-compose.yml", "more.yml"], "service": "app"}',
        {
            "": [
                "nvidia/cuda:11.8.0-devel-ubuntu22.04 2",
                "numpy<2 1",
                "torch==2.1.0 5",
                "TORCH_CUDA_ARCH_LIST9.0 1",
            ]
        },
        [],
    ),
}  # fmt: skip
COMPOSE = {
    "docker-compose.yml": "services:\n  app:\n    build: {context: gpu, dockerfile: Dockerfile.dev, target: build}\n",
    ".devcontainer/more.yml": 'services: {app: {environment: {TORCH_CUDA_ARCH_LIST: "9.0"}}}\n',
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_built_is_read_with_its_arguments(name: str, tmp_path: Path) -> None:
    path, text, environments, unread = CASES[name]
    manifest = read_in(tmp_path, path, {**PROJECT, **COMPOSE, path: text})
    assert told(manifest) == environments
    assert [f"{one.text.text}: {one.why}" for one in manifest.unread] == unread


def test_a_dockerfile_is_built_as_often_as_files_may_be_opened(tmp_path: Path) -> None:
    services = "".join(f"  s{at}: {{build: gpu}}\n" for at in range(60))
    texts = {"compose.yaml": f"services:\n{services}", "gpu/Dockerfile": "FROM python:3.12\n"}
    manifest = read_in(tmp_path, "compose.yaml", texts)
    assert (len(manifest.environments), len(manifest.unread)) == (50, 10)
