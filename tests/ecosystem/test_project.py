"""What describes the project: the citation, the policy of security, the workflow of releases, its bill of materials."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.rendering.test_consumers import missing
from toolmatrix import __version__

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
VENDORED = sorted((ROOT / "explorer/vendor").glob("*.LICENSE"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RELEASE: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())


@pytest.mark.process
@pytest.mark.long
def test_the_citation_is_one_of_this_release() -> None:
    path = ROOT / "CITATION.cff"
    program = Path(sys.executable).with_name("check-jsonschema")
    ended = subprocess.run(
        [program, "--builtin-schema", "vendor.citation-file-format", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    cited = yaml.safe_load(path.read_text())
    assert cited["version"] == __version__
    assert cited["license"] == PROJECT["license"]
    assert cited["repository-code"] == PROJECT["urls"]["Repository"]
    assert set(cited["keywords"]) <= set(PROJECT["keywords"])


def test_urls_of_the_project_lead_to_what_is_here() -> None:
    home = PROJECT["urls"]["Repository"]
    for url in PROJECT["urls"].values():
        assert url.startswith(home)
        if found := re.search(r"/(?:blob|tree)/main/(.+)$", url):
            assert (ROOT / found[1]).exists()
    policy = (ROOT / "SECURITY.md").read_text()
    assert f"--repo {home.removeprefix('https://github.com/')}`" in policy
    assert all((ROOT / path).exists() for path in re.findall(r"`(\.github/[^`]+)`", policy))
    promises = (ROOT / "docs/threats.md").read_text()
    assert all((ROOT / path).exists() for path in re.findall(r"`(tests/[^`]+)`", promises))


def test_a_release_is_published_without_a_token_and_by_pinned_actions() -> None:
    build, publish = RELEASE["jobs"]["build"], RELEASE["jobs"]["publish"]
    assert RELEASE["permissions"] == {}
    assert publish["permissions"] == {"contents": "write", "id-token": "write"}
    assert publish["environment"] == "release"
    steps = [*build["steps"], *publish["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert sum("attest-build-provenance@" in one for one in used) == 1
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text()
    # What is signed and built is what is published: nothing is checked out anew.
    assert not any("checkout" in step.get("uses", "") for step in publish["steps"])
    assert not any("${{" in step.get("run", "") for step in steps)


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda one: one.stem
)
def test_a_workflow_runs_nothing_that_can_be_moved(path: Path) -> None:
    text = path.read_text()
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert [
        action
        for action, comment in used
        if action != "./"
        and not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action + comment)
    ] == []
    workflow: dict[Any, Any] = yaml.safe_load(text)
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for job in workflow["jobs"].values():
        # What may write runs nothing that it installed; where a token can be made, that has its digest.
        commands = [step.get("run", "") for step in job["steps"]]
        if job.get("permissions", {}).get("contents") == "write":
            assert not any("install -e" in one or "toolmatrix " in one for one in commands), path
        if "id-token" in job.get("permissions", ()):
            installing = [
                one for one in commands if "pip install" in one and "dist/*.whl" not in one
            ]
            assert all("--require-hashes" in one for one in installing), path


def test_all_that_builds_a_release_has_its_digest() -> None:
    lines = (ROOT / ".github/release.txt").read_text().replace("\\\n", "").splitlines()
    pinned = [line.split() for line in lines if line and not line.startswith("#")]
    assert {"build", "hatchling", "pyyaml"} <= {words[0].partition("==")[0] for words in pinned}
    for name, *digests in pinned:
        assert re.fullmatch(r"[\w.-]+==[\w.]+", name)
        assert digests
        assert all(one.startswith("--hash=sha256:") for one in digests)


@pytest.mark.process
@pytest.mark.long
def test_zizmor_finds_nothing_above_low_in_workflows() -> None:
    program = Path(sys.executable).with_name("zizmor")
    if not program.exists():
        missing("needs zizmor: pip install '.[test]'")
    subjects = (ROOT / ".github/workflows", ROOT / "action.yml")
    ended = subprocess.run(
        [program, "--offline", "--no-progress", "--min-severity=medium", *subjects],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.process
def test_the_bill_of_a_wheel_lists_what_it_requires_and_what_it_carries(tmp_path: Path) -> None:
    path = tmp_path / "toolmatrix-1.whl"
    required = [f"Requires-Dist: {line}" for line in PROJECT["dependencies"]]
    lines = ["Name: toolmatrix", "Version: 1", "License-Expression: Apache-2.0", *required]
    with ZipFile(path, "w") as wheel:
        extra = "Requires-Dist: mcp>=2; extra == 'mcp'"
        wheel.writestr("toolmatrix-1.dist-info/METADATA", "\n".join([*lines, extra, "", ""]))
        for file in ("package.json", *(f"vendor/{one.name}" for one in VENDORED)):
            wheel.write(ROOT / "explorer" / file, f"toolmatrix/data/explorer/{file}")
    program = [sys.executable, str(ROOT / ".github/sbom.py"), str(path)]
    text = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert JsonStrictValidator(SchemaVersion.V1_7).validate_str(text) is None
    components = {one["name"]: one for one in json.loads(text)["components"]}
    names = {re.split(r"[^\w-]", line)[0] for line in PROJECT["dependencies"]}
    assert set(components) == names | {one.stem for one in VENDORED}
    assert components["urllib3"]["versionRange"] == "vers:pypi/>=2.2"
    versions = json.loads((ROOT / "explorer/package.json").read_text())["dependencies"]
    assert components["preact"]["version"] == versions["preact"]
