"""Frozen, slotted, keyword-only values that cost nothing to define.

A subclass lists its fields as annotations:

    class Release(Value):
        component: str
        version: str
        date: str = ""

Type checkers read it as a dataclass (PEP 681).
"""

# `dataclasses` would do the same, but importing it (it brings `inspect`) and decorating ten classes takes longer than a
# whole `resolve`; see benchmarks/README.md.

from __future__ import annotations

__all__ = ("NamedTuple", "Value")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_options):
        return lambda decorated: decorated


class _ValueType(type):
    def __new__(
        mcls, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any
    ) -> type:
        own = tuple(body.get("__annotations__", ()))
        # A slot and a class attribute of the same name do not go together.
        defaults = {field: body.pop(field) for field in own if field in body}
        body["__slots__"] = own
        cls = super().__new__(mcls, name, bases, body, **options)
        fields: tuple[str, ...] = ()
        inherited: dict[str, Any] = {}
        for base in reversed(bases):
            fields += getattr(base, "_fields", ())
            inherited |= getattr(base, "_defaults", {})
        cls._fields = fields + own  # type: ignore[attr-defined]
        cls._names = dict.fromkeys(cls._fields).keys()  # type: ignore[attr-defined]
        cls._defaults = inherited | defaults  # type: ignore[attr-defined]
        return cls


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Value(metaclass=_ValueType):
    """Base of frozen values: equal by fields, hashable where the fields are.

    Raises TypeError for a missing or unknown field and AttributeError for assignment.
    """

    if TYPE_CHECKING:
        _fields: tuple[str, ...]
        _defaults: Mapping[str, Any]
    else:

        def __init__(self, **kwargs):
            kind = type(self)
            values = kind._defaults | kwargs
            # One comparison of sets finds missing and unknown fields, of which there are mostly none.
            if values.keys() != kind._names:
                missing = [field for field in kind._fields if field not in values]
                wrong = f"needs {missing[0]!r}" if missing else ""
                extra = next((field for field in kwargs if field not in kind._names), None)
                raise TypeError(f"{kind.__name__} {wrong or f'has no field {extra!r}'}")
            # Its own `__setattr__` refuses: the value is frozen from the first.
            set_field = object.__setattr__
            for field, value in values.items():
                set_field(self, field, value)

        def __setattr__(self, name, *_value):
            raise AttributeError(f"{type(self).__name__} is frozen")

        __delattr__ = __setattr__

        # By default `pickle` calls no constructor and sets attributes.
        def __reduce__(self):
            return _rebuild, (type(self), self._astuple())

    def _astuple(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field) for field in self._fields)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._astuple() == other._astuple()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._astuple()))

    def __repr__(self) -> str:
        inside = ", ".join(f"{field}={getattr(self, field)!r}" for field in self._fields)
        return f"{type(self).__name__}({inside})"

    def as_dict(self, *names: str) -> dict[str, Any]:
        """The fields of these names, or all."""
        return {field: getattr(self, field) for field in names or self._fields}

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**(self.as_dict() | changes))


class Document(Value):
    """A value that is written as JSON field by field."""

    def to_json(self) -> dict[str, Any]:
        """The value as documents hold it."""
        return {field: _as_json(getattr(self, field)) for field in self._fields}


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_as_json(element) for element in value]
    return value.to_json() if isinstance(value, Document) else value


def _rebuild(kind: type[Value], fields: tuple[Any, ...]) -> Value:
    return kind(**dict(zip(kind._fields, fields, strict=True)))


if TYPE_CHECKING:
    from typing import NamedTuple
else:
    # What `typing` and `collections` make of NamedTuple compiles source for each class: a tenth of a millisecond each,
    # beside the import. The getters are the same, and so is the cost of reading a field.
    from _collections import _tuplegetter

    class _NamedTupleType(type):
        def __new__(mcls, name, bases, body):
            body["__slots__"] = ()
            body["_fields"] = tuple(body.get("__annotations__", ()))
            for index, field in enumerate(body["_fields"]):
                body[field] = _tuplegetter(index, None)
            return super().__new__(mcls, name, bases, body)

    class NamedTuple(tuple, metaclass=_NamedTupleType):  # noqa: SLOT001 - the metaclass does
        """A NamedTuple without defaults: what is read in numbers and made out of lists."""

        _make = classmethod(tuple.__new__)

        def __new__(cls, *values, **kwargs):
            if not kwargs:
                return tuple.__new__(cls, values)
            return tuple.__new__(cls, (*values, *map(kwargs.pop, cls._fields[len(values) :])))

        # That of tuples would hand all fields to `__new__` as one.
        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            inside = ", ".join(f"{field}={getattr(self, field)!r}" for field in self._fields)
            return f"{type(self).__name__}({inside})"

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **changes):
            return type(self)(**(self._asdict() | changes))
