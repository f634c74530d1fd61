"""The paths of data files; no other module knows them.

A source checkout has `matrix.yaml`, `matrix/`, `recipes/`, `dockerfiles/` and `explorer/` at its root; a wheel
carries them under `toolmatrix/data/`, together with an index compiled from them.
"""

from __future__ import annotations

import os.path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Not by `importlib.resources`, whose import takes longer than a whole `resolve`.
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_DATA = os.path.join(_PACKAGE, "data")


def matrix_root() -> str:
    """The directory that holds `matrix.yaml`."""
    return _DATA if os.path.isdir(_DATA) else os.path.dirname(_PACKAGE)


def recipes_root() -> str:
    """The directory of the recipes."""
    return os.path.join(matrix_root(), "recipes")


def templates_root() -> str:
    """The directory of the templates."""
    return os.path.join(matrix_root(), "dockerfiles")


def builtin_index() -> str | None:
    """The folder of the compiled index that a wheel ships, or None in a source checkout."""
    path = os.path.join(_DATA, "index")
    return path if os.path.isdir(path) else None


def schema_path(name: str) -> str:
    """The JSON Schema of one document, e.g. `schema_path("resolution")`."""
    return os.path.join(_PACKAGE, "schemas", name + ".schema.json")


def rules_path() -> str:
    """The pages of the TM codes."""
    return os.path.join(_PACKAGE, "rules.yaml")


def operations_path() -> str:
    """The programs that are run in environments of releases."""
    return os.path.join(_PACKAGE, "operations.yaml")


def isolated_path() -> str:
    """What runs a program as the Python of an environment, where this package is not installed."""
    return os.path.join(_PACKAGE, "harvest", "isolated.py")


def topics_path() -> str:
    """The topics of `toolmatrix help`."""
    return os.path.join(_PACKAGE, "topics.yaml")


def stage_words_path() -> str:
    """The words for what each kind of stage does."""
    return os.path.join(_PACKAGE, "stage_words.yaml")


def families_path() -> str:
    """The families that harvesters read."""
    return os.path.join(matrix_root(), "matrix", "families.yaml")


def harvested_root() -> str:
    """The directory of the fact files that harvesters write."""
    return os.path.join(matrix_root(), "matrix", "harvested")


def audit_path() -> str:
    """The rules that `toolmatrix audit` judges by."""
    return os.path.join(matrix_root(), "matrix", "audit.yaml")


def signatures_path() -> str:
    """The signatures of known failures in logs."""
    return os.path.join(matrix_root(), "matrix", "signatures.yaml")


def machine_path() -> str:
    """The readings of a running machine."""
    return os.path.join(matrix_root(), "matrix", "machine.yaml")


def porting_path() -> str:
    """The differences to be expected between two environments."""
    return os.path.join(matrix_root(), "matrix", "porting.yaml")


def flags_path() -> str:
    """The meanings of words of a dry run."""
    return os.path.join(_PACKAGE, "compilation", "flags.yaml")


def stage_steps_path() -> str:
    """What each stage of a driver reads and writes."""
    return os.path.join(_PACKAGE, "compilation", "steps.yaml")


def replay_facts_path() -> str:
    """What releases of a driver changed in files that it writes by itself."""
    return os.path.join(_PACKAGE, "compilation", "replay.yaml")


def registries_path() -> str:
    """Registries with several names."""
    return os.path.join(_PACKAGE, "images", "registries.yaml")


def outside_path() -> str:
    """The names that CI services and package channels have for the things in rendered files."""
    return os.path.join(_PACKAGE, "rendering", "outside.yaml")


def manifest_names_path() -> str:
    """What files of projects call components."""
    return os.path.join(_PACKAGE, "manifests", "names.yaml")


def explorer_root() -> str:
    """The directory of what the explorer's page is made of."""
    return os.path.join(matrix_root(), "explorer")


def load_json(path: str) -> Any:
    """The values of a JSON file that is part of the package."""
    import json

    with open(path, encoding="utf-8") as file:
        return json.load(file)


def load_yaml(path: str) -> Any:
    """The values of a YAML file that is part of the package: its shape is checked by tests, not here."""
    import yaml

    with open(path, encoding="utf-8") as file:
        # The loader in C is ten times as fast, and not part of every build of PyYAML.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return yaml.load(file, Loader=loader)  # noqa: S506 - both are safe loaders
