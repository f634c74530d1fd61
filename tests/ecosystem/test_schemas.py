"""The schemas that editors are offered: that of settings is made of the options, a catalog names the files of each.

`UPDATE_GOLDEN=1 ./tests/run tests/ecosystem/test_schemas.py` writes the schema of settings anew.
"""

from __future__ import annotations

import fnmatch
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Cli
from tests.golden import VARIABLE
from toolmatrix.command import all_options
from toolmatrix.command.option import Option
from toolmatrix.resources import schema_path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


OPTIONS = all_options()
ROOT = Path(__file__).parents[2]
SETTINGS = Path(schema_path("settings"))
CATALOG = SETTINGS.with_name("catalog.json")
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def shape(option: Option) -> dict[str, Any]:
    """What a file may say of an option."""
    text: dict[str, Any] = {"type": "string"}
    if option.choices and not option.multiple:
        text["enum"] = list(option.choices)
    if option.shape == "date":
        text["format"] = "date"
    kinds: dict[str, dict[str, Any]] = {
        "flag": {"type": "boolean"},
        "count": {"type": "integer", "minimum": 0},
        "number": {"type": "integer", "minimum": 0},
        "text": text,
        "list": {"anyOf": [text, {"type": "array", "items": text}]},
    }
    return {"description": option.help, **kinds[option.kind]}


def settings() -> dict[str, Any]:
    """The schema of a settings file."""
    keys = {one.key: shape(one) for one in OPTIONS.values() if one.configurable}
    request = {
        "description": "what is asked for when the command line names nothing",
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    }
    table = {"type": "object", "additionalProperties": False}
    environment = table | {"properties": {"request": request, **keys}}
    environments = {
        "description": "requests with options of their own, asked by --environment NAME",
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/environment"},
    }
    return {
        "$schema": DRAFT,
        "title": "toolmatrix settings",
        "description": "What stands in toolmatrix.toml, or the table tool.toolmatrix of pyproject.toml, as any TOML "
        "reader sees it; docs/settings.md says what each key means.",
        "properties": {"request": request, "environments": environments, **keys},
        **table,
        "$defs": {"environment": environment},
    }


def test_the_schema_of_settings_is_what_the_options_declare() -> None:
    if os.environ.get(VARIABLE):
        SETTINGS.write_text(json.dumps(settings(), indent=2) + "\n")
    assert json.loads(SETTINGS.read_text()) == settings()
    jsonschema.Draft202012Validator.check_schema(settings())


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('request = "cuda"\ntarget = ["x86", "arm"]\ndepth = 2\n', True),
        ('[environments.train]\nrequest = ["torch"]\ndevice = "A100"\nascii = true\n', True),
        ('traget = "x86"\n', False),
        ("depth = true\n", False),
        ('prefer = "fastest"\n', False),
        ("[environments.train.more]\n", False),
    ],
)
def test_it_takes_what_the_program_takes(text: str, right: bool, real: Cli, here: Path) -> None:
    (here / "toolmatrix.toml").write_text(text)
    assert real("config").code == (0 if right else 2)
    found = jsonschema.Draft202012Validator(settings()).is_valid(tomllib.loads(text))
    assert found is right


def test_the_catalog_names_the_files_of_each_schema() -> None:
    catalog = json.loads(CATALOG.read_text())
    assert catalog["version"] == 1
    found = {Path(one["url"]).name: one["fileMatch"] for one in catalog["schemas"]}
    assert all((CATALOG.parent / name).is_file() for name in found)
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    place = urls["Repository"].replace("github.com", "raw.githubusercontent.com")
    assert {one["url"].rpartition("/")[0] for one in catalog["schemas"]} == {
        f"{place}/main/toolmatrix/schemas"
    }
    for path, schema in {
        "images/toolmatrix.toml": "settings",
        "images/toolmatrix.lock": "lock",
        "ours.toolmatrix.yaml": "facts",
        "toolmatrix-matrix.yaml": "matrix",
        "ours.toolmatrix-recipe.yaml": "recipe",
    }.items():
        named = [
            name
            for name, patterns in found.items()
            if any(fnmatch.fnmatch(Path(path).name, pattern) for pattern in patterns)
        ]
        assert named == [f"{schema}.schema.json"], path


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('target = ["x86"]\nrequest = "cuda"\n', ""),
        ('target = ["x86"]\ntraget = "x86"\n', "traget"),
        ('prefer = "fastest"\n', "best-evidence"),
    ],
)
def test_a_language_server_of_toml_checks_settings(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "toolmatrix.toml").write_text(text)
    (tmp_path / "tombi.toml").write_text(
        f'[[schemas]]\npath = "{SETTINGS}"\ninclude = ["toolmatrix.toml"]\n'
        "[schema.catalog]\npaths = []\n"
    )
    ended = subprocess.run(
        [Path(sys.executable).with_name("tombi"), "lint", "--offline", "toolmatrix.toml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode == 0) is (said == ""), ended.stdout + ended.stderr
    assert said in ended.stdout + ended.stderr
