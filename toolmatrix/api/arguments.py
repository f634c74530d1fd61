"""Arguments of the public functions, by their annotations: what is of another type is refused by its name.

`Wanted` are words such as `torch==2.6`, also as a mapping from components to versions.
"""

from __future__ import annotations

import os
from functools import wraps

from toolmatrix.api.caller import caller
from toolmatrix.errors import UsageError
from toolmatrix.request.fields import BadValue, Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FunctionType
    from typing import Any

    from toolmatrix.api import Wanted

_OPERATORS = ("=", "<", ">", "!", "~")
# CO_VARARGS and CO_VARKEYWORDS of the module `inspect`, which takes long to import.
_VARIABLE, _NAMED = 0x04, 0x08
# Letters of a wrong value that are shown.
_LONGEST_REPR = 80
_MOST = 10**18


def words(*wanted: Wanted) -> tuple[str, ...]:
    """The words of requests: of a mapping from components to versions `component==version`. Raises BadValue."""
    return tuple(word for entry in wanted for word in _requests(entry))


def request(wanted: tuple[Wanted, ...], function: str, *first: str) -> tuple[str, ...]:
    """The words of what is wanted, at least one; `first` go before them in an example. Raises UsageError."""
    requested = tuple(filter(None, map(str.strip, words(*wanted))))
    if not requested:
        raise UsageError(
            "no request to answer",
            expected=caller().requests,
            found="none",
            help=caller().example(function, *first, "torch==2.6.0"),
        )
    return requested


def _requests(wanted: Any) -> Iterator[str]:
    if isinstance(wanted, str):
        yield wanted
    elif _is_mapping(wanted):
        for name, version in wanted.items():
            if not isinstance(name, str) or not (isinstance(version, str) or _is_number(version)):
                # 2.10 is another version than the number 2.1.
                raise BadValue("components with versions, both as strings", _abbreviate(wanted))
            text = str(version).strip() or "*"
            yield f"{name}{'' if text.startswith(_OPERATORS) else '=='}{text}"
    else:
        yield from _elements(wanted, "a string, a list of strings, or versions by component")


def _is_mapping(value: object) -> bool:
    return hasattr(value, "items") and hasattr(value, "keys")


def _elements(value: Any, expected: str, kinds: tuple[type, ...] = (str,)) -> Iterator[Any]:
    # Bytes and mappings are iterable too, and give numbers and keys.
    if (
        isinstance(value, (bytes, bytearray))
        or _is_mapping(value)
        or not hasattr(value, "__iter__")
    ):
        raise BadValue(expected, _abbreviate(value))
    for element in value:
        if not isinstance(element, kinds):
            raise BadValue(expected, _abbreviate(value))
        yield element


def _abbreviate(value: object) -> str:
    try:
        text = repr(value)
    # Python does not print a number of thousands of digits, and what other classes print is theirs.
    except Exception:  # noqa: BLE001
        return f"a value of the type {type(value).__name__}"
    return text if len(text) <= _LONGEST_REPR else f"{text[:_LONGEST_REPR]}..."


def _instance_of(expected: str, *kinds: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise BadValue(expected, _abbreviate(value))
        return value

    return check


def _instances_of(expected: str, *kinds: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        # One alone has a meaning of its own, such as commas.
        return value if isinstance(value, kinds) else tuple(_elements(value, expected, kinds))

    return check


def _optional(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else check(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def _whole_number(value: Any) -> Any:
    if not _is_number(value):
        raise BadValue("a whole number, 0 or more", _abbreviate(value))
    return value


def _wanted(value: Any) -> Any:
    return value if isinstance(value, str) else words(value)


def _log(value: Any) -> Any:
    expected = "a path, or the lines of a log"
    return value if isinstance(value, _PATH) else tuple(_elements(value, expected))


def _matrix(value: Any) -> Any:
    if isinstance(value, bytes):
        return value
    return _files_of_matrix(value, "an open matrix, paths of files, or an index in bytes")


def _files_of_matrix(value: Any, expected: str = "an open matrix, or paths of files") -> Any:
    from toolmatrix.api.requests import OpenMatrix

    return value if isinstance(value, OpenMatrix) else _instances_of(expected, *_PATH)(value)


def _open_matrix(value: Any) -> Any:
    from toolmatrix.api.requests import OpenMatrix

    return _instance_of("an open matrix", OpenMatrix)(value)


def _lock(value: Any) -> Any:
    from toolmatrix.lockfile.model import Lock

    return _instance_of("a lock", Lock)(value)


def _lock_or_path(value: Any) -> Any:
    from toolmatrix.api.locks import Locked
    from toolmatrix.lockfile.model import Lock

    return _instance_of("a lock, or its path", Locked, Lock, *_PATH)(value)


_PATH = (str, os.PathLike)
_A_PATH = _instance_of("a path", *_PATH)
_CHECKS: dict[str, Callable[[Any], Any]] = {
    "str": _instance_of("a string", str),
    "bool": _instance_of("True or False", bool),
    "int": _whole_number,
    "int | None": _optional(_whole_number),
    "Wanted": _wanted,
    "Iterable[str]": _instances_of("a list of strings", str),
    "Words": _instances_of("a string or a list of strings", str),
    "Path": _A_PATH,
    "Path | None": _optional(_A_PATH),
    "Path | Iterable[Path]": _instances_of("a path or a list of paths", *_PATH),
    **dict.fromkeys(("Path | Iterable[str]", "str | os.PathLike[str] | Iterable[str]"), _log),
    "Matrix": _optional(_matrix),
    "OpenMatrix | Path | Sequence[Path] | None": _optional(_files_of_matrix),
    "OpenMatrix | None": _optional(_open_matrix),
    "Lock | None": _optional(_lock),
    "Locked | Lock | Path": _lock_or_path,
}
"""The check for each annotation of a public function."""
_BESIDE = {"with_": "Wanted", "keep": "Path", "matrix": "Matrix"}
# The options of a request, of which `Fields` has most.
_OF_REQUEST = {
    name: "Words" if isinstance(default, tuple) else "str"
    for name, default in Fields._defaults.items()
    if name != "wanted"
} | _BESIDE


def checking_arguments(function: FunctionType) -> Callable[..., Any]:
    """A public function that refuses a wrong value by its name, with BadValue, before it does anything."""
    code, kinds = function.__code__, function.__annotations__
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    positional = code.co_varnames[: code.co_argcount]
    rest = code.co_varnames[len(named)] if code.co_flags & _VARIABLE else ""
    known = {name: kinds[name] for name in named}
    known |= _OF_REQUEST if code.co_flags & _NAMED else {}

    @wraps(function)
    def ask(*args: Any, **options: Any) -> Any:
        for name in options:
            if name not in known:
                raise TypeError(
                    f"{function.__name__}() has no keyword `{name}`: it takes {', '.join(known)}"
                )
        values = [
            _check_argument(positional[index] if index < len(positional) else rest, kinds, value)
            for index, value in enumerate(args)
            if index < len(positional) or rest
        ]
        # What is given too often, or not at all, Python says well.
        values += args[len(values) :]
        return function(
            *values,
            **{name: _check_argument(name, known, option) for name, option in options.items()},
        )

    return ask


def _check_argument(name: str, kinds: dict[str, str], value: Any) -> Any:
    try:
        return _CHECKS[kinds[name]](value)
    except BadValue as bad:
        raise BadValue(bad.expected, bad.found, bad.help, name=name) from None
