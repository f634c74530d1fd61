"""Little git repositories, made by the tests that read them."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolmatrix.errors import HarvestRefused
from toolmatrix.factbase import yamlfile
from toolmatrix.harvest import tree
from toolmatrix.harvest.families import FAMILIES, Family, HarvestContext
from toolmatrix.harvest.transport import Session

DAY = dt.date(2026, 11, 23)
PATH = {"PATH": os.environ.get("PATH", os.defpath)}

FAMILY = """
kind: tree
about: what the tags of a project say
title: Project
repository: owner/project
tags: 'v(?P<release>[0-9.]+)'
marks: [setup.py]
tables:
  - id: project-bazel
    about: Bazel that .bazelversion names
    evidence: artifact
    key: project
    columns:
      bazel: {as: tested}
    floor: 2
    read:
      path: .bazelversion
      cells:
        bazel: {match: '\\A(?P<whole>[0-9.]+)\\n\\Z', is: "{whole}"}
"""


class GitRepo:
    """A repository with a work tree."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.git("init", "--quiet", "--initial-branch=main", str(place), at=place.parent)

    def git(self, *arguments: str, at: Path | None = None, said: bytes = b"") -> str:
        """What git prints. The day of every commit and tag is the same."""
        env = {
            **PATH,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_NAME": "somebody" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "somebody@project.example" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_DATE": "2021-05-14T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
        }
        ended = subprocess.run(
            ["git", *arguments],
            cwd=at or self.place,
            env=env,
            input=said,
            capture_output=True,
            check=True,
        )
        return ended.stdout.decode().strip()

    def release(self, tag: str, files: Mapping[str, str | bytes]) -> str:
        """Commit files and tag the commit, which is returned."""
        for name, text in files.items():
            path = self.place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", tag)
        self.git("tag", tag)
        return self.git("rev-parse", "HEAD")


def family(text: str = FAMILY, name: str = "project-source") -> Family:
    """A family out of its keys."""
    node = yamlfile.parse(text.encode(), "families.yaml", FAMILIES)
    return Family(name=name, kind="tree", about="", node=node)


def context(place: Path | str, env: Mapping[str, str] = PATH) -> HarvestContext:
    """What a harvester of trees is given."""
    return HarvestContext(session=Session(), day=DAY, place=str(place), env=env)


def harvested(place: Path | str, text: str = FAMILY) -> dict[str, Any]:
    """The document that a tree gives."""
    return tree.harvest(family(text), context(place))


def refusal(place: Path | str, text: str = FAMILY) -> str:
    """Everything that the error of a tree says but its help."""
    try:
        harvested(place, text)
    except HarvestRefused as error:
        told = [error.what, f"at {error.where}", f"expected {error.expected}"]
        return "; ".join([*told, f"found {error.found}"] if error.found else told)
    raise AssertionError("it was harvested")
