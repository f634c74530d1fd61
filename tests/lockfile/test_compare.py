"""What differs between two mappings, and between two locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from toolmatrix.lockfile.model import LockedValue, compare, locks

if TYPE_CHECKING:
    from toolmatrix.lockfile.model import Lock

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
