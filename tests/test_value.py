"""Frozen values: what a field is, what two values share, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from toolmatrix.value import Value


class Release(Value):
    component: str
    version: str
    date: str = ""


class Yanked(Release):
    reason: str = "unknown"


class Empty(Value):
    pass


def make(kind: type[Any], **fields: object) -> Any:
    return kind(**fields)


def test_fields_are_read_as_attributes_with_their_defaults() -> None:
    release = Release(component="cuda", version="11.2")
    assert (release.component, release.version, release.date) == ("cuda", "11.2", "")


def test_a_missing_field_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^Release needs 'version'$"):
        make(Release, component="cuda")


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^Release has no field 'colour'$"):
        make(Release, component="cuda", version="11.2", colour="red")


def test_fields_have_no_order_in_the_call() -> None:
    with pytest.raises(TypeError):
        Release("cuda", "11.2")  # type: ignore[call-arg]


def test_values_are_frozen() -> None:
    release: Any = Release(component="cuda", version="11.2")
    with pytest.raises(AttributeError, match=r"^Release is frozen$"):
        release.version = "11.3"
    with pytest.raises(AttributeError, match=r"^Release is frozen$"):
        del release.version
    with pytest.raises(AttributeError, match=r"^Release is frozen$"):
        release.other = 1


def test_values_are_slotted() -> None:
    assert not hasattr(Release(component="cuda", version="11.2"), "__dict__")


def test_equal_fields_make_equal_values_with_equal_hashes() -> None:
    one = Release(component="cuda", version="11.2")
    other = Release(version="11.2", component="cuda", date="")
    assert one == other
    assert hash(one) == hash(other)
    assert one != Release(component="cuda", version="11.3")


def test_values_of_two_classes_are_never_equal() -> None:
    assert Release(component="a", version="1") != Yanked(component="a", version="1")
    assert Release(component="a", version="1") != ("a", "1", "")


def test_a_subclass_keeps_the_fields_and_defaults_of_its_base() -> None:
    yanked = Yanked(component="a", version="1")
    assert repr(yanked) == "Yanked(component='a', version='1', date='', reason='unknown')"


def test_replace_returns_a_changed_copy_of_the_same_class() -> None:
    yanked = Yanked(component="a", version="1")
    changed = yanked.replace(reason="broken")
    assert changed == Yanked(component="a", version="1", reason="broken")
    assert yanked.reason == "unknown"
    with pytest.raises(TypeError, match=r"^Yanked has no field 'colour'$"):
        yanked.replace(colour="red")


def test_a_value_may_have_no_fields() -> None:
    assert Empty() == Empty()
    assert repr(Empty()) == "Empty()"
