"""The words in which modules declare documents: a `TypedDict` for each object of those that they make, down to the
last, and a `Value` for each mapping of files that people write.

Type checkers hold the code to these declarations, and tests/schemas.py makes the JSON Schemas of them: the docstring of
a class, a field or the name of a type is its description. The metadata of `Annotated` are the values that a field may
have, the keys of a dictionary, the `toolmatrix.value.Document` whose `to_json` makes it, or the type that a file has in
its place. A key of a file has `-` where the field of a `Value` has `_`, and may be missing where the field has a
default. The attribute `extra_items` of a class is the type of other keys; of the keys `any_of` at least one is there,
and of `one_of` exactly one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any, Literal, TypeVar

    from typing_extensions import NotRequired, TypedDict

    _T = TypeVar("_T")

    NonEmpty = list[_T]
    Pair = list[_T]
    # Words of Python are no names of fields.
    HasFrom = TypedDict("HasFrom", {"from": str})
    HasIs = TypedDict("HasIs", {"is": str})
    HasWith = TypedDict("HasWith", {"with": list[str]})
else:
    # Annotations are never evaluated, so that these names need mean nothing.
    Annotated = Any = Literal = NotRequired = NonEmpty = Pair = None

    class _TypedDictType(type):
        # As nothing of a declaration is used, all are one class: making one for each would take longer than reading it.
        def __new__(mcls, name, bases, body, **_options):
            return bases[0] if bases else super().__new__(mcls, name, bases, body)

    class TypedDict(metaclass=_TypedDictType):
        """Declares a document to type checkers and readers; does nothing at run time."""

    HasFrom = HasIs = HasWith = TypedDict


__all__ = (
    "Amount",
    "Annotated",
    "Any",
    "Code",
    "ComponentName",
    "Count",
    "Day",
    "Digest",
    "Evidence",
    "FilePlace",
    "Flag",
    "HasFrom",
    "HasIs",
    "HasWith",
    "Id",
    "Literal",
    "MatrixHead",
    "Month",
    "NonEmpty",
    "NotRequired",
    "Ordinal",
    "PackageName",
    "Pair",
    "Rank",
    "Text",
    "TypedDict",
)

Day = str
"""A day as ISO 8601 writes it."""
Month = str
"""A month of a year, as ISO 8601 writes it."""
Digest = str
"""The SHA-256 of something, in hexadecimal digits behind `sha256:`."""
Code = str
"""The code of a rule: TM and three digits."""
Evidence = str
"""A word of `toolmatrix.factbase.evidence`."""
Count = int
"""A number from 0."""
Ordinal = int
"""A number from 1, as lines have."""
Amount = float
"""A number from 0 that need not be whole."""
Text = str
"""A text that is not empty; YAML reads some of them as numbers."""
Flag = bool
"""true or false, also as text."""
Rank = int
"""A whole number, also as text."""
Id = str
"""The name of a fact, which `#` would end."""
ComponentName = str
"""The name of a component."""
PackageName = str
"""The normalized name of a package (PEP 503)."""


class FilePlace(TypedDict):
    """A line of a file."""

    path: str
    line: Ordinal | None
    column: Ordinal | None


class MatrixHead(TypedDict):
    """The matrix that a document rests on."""

    digest: Digest
    date: Day
