"""Programs that tests of harvesters run: small ones of our own, and those of the machine."""

from __future__ import annotations

import os
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from toolmatrix.factbase import yamlfile
from toolmatrix.harvest import families
from toolmatrix.harvest.families import Family, HarvestContext
from toolmatrix.harvest.transport import Session

DAY = date(2026, 11, 23)


def program(path: Path, text: str) -> str:
    """A shell script that may be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def needed(name: str, package: str) -> str:
    """The path of a program; the test is skipped, or fails in CI, where it is not installed."""
    found = shutil.which(name)
    if found:
        return found
    why = f"needs {name}: apt-get install {package}"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def family(text: str, file: str = "families.yaml") -> Family:
    """The family that a text is."""
    node = yamlfile.parse(text.encode(), file, families.FAMILIES)
    kind = (node.fields or {})["kind"].text or ""
    return Family(name="mine", kind=kind, about="what the tests read", node=node)


def harvested(one: Family, place: str) -> dict[str, Any]:
    """The document that a family becomes of a place."""
    return families.harvest(one, HarvestContext(session=Session(), day=DAY, place=place))
