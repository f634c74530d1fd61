"""What differs between two mappings, and between two locks."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.golden import VARIABLE
from toolmatrix import resources
from toolmatrix.factbase.evidence import WORDS
from toolmatrix.lockfile import lock_file, model
from toolmatrix.lockfile.lock_file import Fields
from toolmatrix.lockfile.model import Lock, LockedValue, compare, locks

HELD = st.builds(LockedValue, value=st.sampled_from("ab"), facts=st.sampled_from([(), ("f",)]))
SIDE = st.dictionaries(st.sampled_from("xyz"), HELD)


@given(SIDE, SIDE)
def test_each_name_is_told_once_and_turning_the_sides_turns_the_signs(
    old: dict[str, LockedValue], new: dict[str, LockedValue]
) -> None:
    found, turned = compare(old, new), compare(new, old)
    changed = {change.component for change in found.changes if change.kind != "moved"}
    same = {name for _, _, name, _ in found.same}
    assert changed | same == {*old, *new}
    assert not changed & same
    assert found.count("added") == turned.count("removed") == len(new.keys() - old.keys())
    for kind in ("changed", "moved"):
        assert found.count(kind) == turned.count(kind)
    assert found.any == bool(changed)
    assert compare(old, old).changes == ()


def test_locks_are_compared_target_by_target(small: Lock) -> None:
    default = small.environments["default"]
    x86, arm = default.targets["x86"], default.targets["arm"]
    components = dict(x86.components)
    del components["cuda"]
    components["numpy"] = components["python"]
    components["driver"] = components["driver"].replace(version="460.00")
    components["python"] = components["python"].replace(facts=("a",))
    moved = x86.replace(
        components=components, archs={}, flags=x86.flags.replace(cflags=("-O3",), env={})
    )
    targets = {"x86": moved, "amd": arm}
    new = small.replace(environments={"default": default.replace(targets=targets)})
    found = locks(small, new)
    told = [
        (change.environment, change.target, change.component, change.kind)
        for change in found.changes
    ]
    assert told == [
        ("a b.c", "arm", "python", "removed"),
        ("default", "amd", "python", "added"),
        ("default", "arm", "python", "removed"),
        ("default", "x86", "arch", "removed"),
        ("default", "x86", "cflags", "changed"),
        ("default", "x86", "cuda", "removed"),
        ("default", "x86", "driver", "changed"),
        ("default", "x86", "env CC", "removed"),
        ("default", "x86", "numpy", "added"),
        ("default", "x86", "python", "moved"),
    ]
    driver = next(change for change in found.changes if change.component == "driver")
    assert driver.old is not None
    assert driver.new is not None
    assert (driver.old.value, driver.new.value) == (">=450.80", ">=460.00")
    assert found.same == (
        ("default", "x86", "device", "8.6"),
        ("default", "x86", "python", "3.9"),
        ("default", "x86", "tensorflow", "2.6.5"),
    )
    assert locks(small, small).changes == ()


def test_what_was_kept_is_no_difference(small: Lock) -> None:
    default = small.environments["default"]
    x86 = default.targets["x86"]
    fresh = {name: part.replace(kept=False) for name, part in x86.components.items()}
    targets = {**default.targets, "x86": x86.replace(components=fresh)}
    new = {**small.environments, "default": default.replace(targets=targets)}
    assert locks(small, small.replace(environments=new)).changes == ()


# The shipped schema of locks says what the reader takes: it is made from the same tables.


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


PATH = Path(resources.schema_path("lock"))
KINDS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "list": {"type": "array", "items": {"type": "string"}},
    "true": {"const": True},
    "word": {"enum": list(WORDS)},
}
ABOUT = {
    "": "What stands in a lock, as any TOML reader sees it; the seal is a comment. `request` are words that ask for"
    " it again; a component has a `version`, or a `floor` where any newer will do; `kept` ones were taken from an"
    " earlier lock. `render` is how its directory was rendered.",
    "render": "Options of `toolmatrix render` by which the directory of the lock was rendered; they are no part of the"
    " lock's digest.",
    "inside": "The component whose build brings it.",
    "variants": "The builds that are installed, by component, with what installs each: requirements, then arguments"
    " of pip.",
}


def table(fields: Fields, name: str = "") -> dict[str, Any]:
    """What a table may hold."""
    made: dict[str, Any] = {"type": "object"}
    if name in ABOUT:
        made["description"] = ABOUT[name]
    inner = {field.removesuffix("?"): of(kind, field) for field, kind in sorted(fields.items())}
    made["additionalProperties"] = inner.pop("*", False)
    if inner:
        made["properties"] = inner
    if {"version", "floor"} <= inner.keys():
        made["oneOf"] = [{"required": ["version"]}, {"required": ["floor"]}]
    if required := sorted(field for field in fields if field[-1] not in "?*"):
        made["required"] = required
    return made


def of(kind: str | Fields, field: str) -> dict[str, Any]:
    """What the value of a key may be."""
    name = field.removesuffix("?")
    if not isinstance(kind, str):
        return table(kind, name)
    if name == "schema":
        return {"const": model.SCHEMA}
    made: dict[str, Any] = {"$ref": f"#/$defs/{kind}"}
    return {**made, "description": ABOUT[name]} if name in ABOUT else made


def schema() -> dict[str, Any]:
    """The schema of locks."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": model.SCHEMA,
        **table(lock_file.FIELDS),
        "$defs": KINDS,
    }


def test_the_schema_says_what_the_reader_takes(small: Lock) -> None:
    made = json.dumps(schema(), indent=2) + "\n"
    if os.environ.get(VARIABLE):
        PATH.write_text(made)
    Draft202012Validator.check_schema(schema())
    assert PATH.read_text() == made
    assert (
        list(Draft202012Validator(schema()).iter_errors(tomllib.loads(lock_file.text(small)))) == []
    )
