"""The places of data files.

A source checkout has `matrix.yaml`, `matrix/`, `recipes/`, `dockerfiles/` and `explorer/` at its root; a wheel
carries them under `toolmatrix/data/`, together with an index compiled from them.
"""

from __future__ import annotations

import os.path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Not by `importlib.resources`, whose import takes longer than a whole `resolve`.
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_DATA = os.path.join(_PACKAGE, "data")


def matrix_root() -> str:
    """The directory that holds `matrix.yaml`."""
    return _DATA if os.path.isdir(_DATA) else os.path.dirname(_PACKAGE)


def of_package(*names: str) -> str:
    """A file of the package, e.g. `of_package("images", "registries.yaml")`."""
    return os.path.join(_PACKAGE, *names)


def of_matrix(*names: str) -> str:
    """A file or directory beside `matrix.yaml`, e.g. `of_matrix("matrix", "audit.yaml")`."""
    return os.path.join(matrix_root(), *names)


def recipes_root() -> str:
    """The directory of the recipes."""
    return of_matrix("recipes")


def templates_root() -> str:
    """The directory of the templates."""
    return of_matrix("dockerfiles")


def builtin_index() -> str | None:
    """The folder of the compiled index that a wheel ships, or None in a source checkout."""
    path = os.path.join(_DATA, "index")
    return path if os.path.isdir(path) else None


def schema_path(name: str) -> str:
    """The JSON Schema of one document, e.g. `schema_path("resolution")`."""
    return of_package("schemas", name + ".schema.json")


def rules_path() -> str:
    """The pages of the TM codes."""
    return of_package("rules.yaml")


def operations_path() -> str:
    """The programs that are run in environments of releases."""
    return of_package("operations.yaml")


def families_path() -> str:
    """The families that harvesters read."""
    return of_matrix("matrix", "families.yaml")


def audit_path() -> str:
    """The rules that `toolmatrix audit` judges by."""
    return of_matrix("matrix", "audit.yaml")


def porting_path() -> str:
    """The differences to be expected between two environments."""
    return of_matrix("matrix", "porting.yaml")


def manifest_names_path() -> str:
    """What files of projects call components."""
    return of_package("manifests", "names.yaml")


def signatures_path() -> str:
    """The signatures of known failures in logs."""
    return of_matrix("matrix", "signatures.yaml")


def explorer_root() -> str:
    """The directory of what the explorer's page is made of."""
    return of_matrix("explorer")


def user_folder(env: Mapping[str, str], variable: str, *default: str) -> str:
    """The user's directory that a variable or, below the home, a default names; "" where there is none."""
    # The XDG base directory specification has a relative path ignored.
    home = env.get(variable, "")
    if not os.path.isabs(home):
        home = os.path.join(env["HOME"], *default) if env.get("HOME") else ""
    return os.path.join(home, "toolmatrix") if home else ""


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
