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
_SHOWN = 80
_MOST = 10**18


def words(*given: Wanted) -> tuple[str, ...]:
    """The words of requests: of a mapping from components to versions `component==version`. Raises BadValue."""
    return tuple(word for one in given for word in _requests(one))


def request(given: tuple[Wanted, ...], function: str, *first: str) -> tuple[str, ...]:
    """The words of what is wanted, at least one; `first` go before them in an example. Raises UsageError."""
    found = tuple(filter(None, map(str.strip, words(*given))))
    if not found:
        raise UsageError(
            "no request to answer",
            expected=caller().requests,
            found="none",
            help=caller().example(function, *first, "torch==2.6.0"),
        )
    return found


def _requests(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    elif _is_mapping(given):
        for name, version in given.items():
            if not isinstance(name, str) or not (isinstance(version, str) or _is_number(version)):
                # 2.10 is another version than the number 2.1.
                raise BadValue("components with versions, both as strings", _shown(given))
            text = str(version).strip() or "*"
            yield f"{name}{'' if text.startswith(_OPERATORS) else '=='}{text}"
    else:
        yield from _listed(given, "a string, a list of strings, or versions by component")


def _is_mapping(given: object) -> bool:
    return hasattr(given, "items") and hasattr(given, "keys")


def _listed(given: Any, expected: str, kinds: tuple[type, ...] = (str,)) -> Iterator[Any]:
    # Bytes and mappings are iterable too, and give numbers and keys.
    if isinstance(given, (bytes, bytearray)) or _is_mapping(given) or not _iterable(given):
        raise BadValue(expected, _shown(given))
    for one in given:
        if not isinstance(one, kinds):
            raise BadValue(expected, _shown(given))
        yield one


def _iterable(given: object) -> bool:
    return hasattr(given, "__iter__")


def _shown(given: object) -> str:
    try:
        text = repr(given)
    # Python does not print a number of thousands of digits, and what other classes print is theirs.
    except Exception:  # noqa: BLE001
        return f"a value of the type {type(given).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _one_of(expected: str, *kinds: type) -> Callable[[Any], Any]:
    def check(given: Any) -> Any:
        if not isinstance(given, kinds) or (isinstance(given, bool) and bool not in kinds):
            raise BadValue(expected, _shown(given))
        return given

    return check


def _several(expected: str, *kinds: type) -> Callable[[Any], Any]:
    def check(given: Any) -> Any:
        # One alone has a meaning of its own, such as commas.
        return given if isinstance(given, kinds) else tuple(_listed(given, expected, kinds))

    return check


def _optional(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda given: None if given is None else check(given)


def _is_number(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and 0 <= given < _MOST


def _number(given: Any) -> Any:
    if not _is_number(given):
        raise BadValue("a whole number, 0 or more", _shown(given))
    return given


def _wanted(given: Any) -> Any:
    return given if isinstance(given, str) else words(given)


def _log(given: Any) -> Any:
    expected = "a path, or the lines of a log"
    return given if isinstance(given, _PATH) else tuple(_listed(given, expected))


def _matrix(given: Any) -> Any:
    if isinstance(given, bytes):
        return given
    return _files_of_matrix(given, "an open matrix, paths of files, or an index in bytes")


def _files_of_matrix(given: Any, expected: str = "an open matrix, or paths of files") -> Any:
    from toolmatrix.api.requests import OpenMatrix

    return given if isinstance(given, OpenMatrix) else _several(expected, *_PATH)(given)


def _open_matrix(given: Any) -> Any:
    from toolmatrix.api.requests import OpenMatrix

    return _one_of("an open matrix", OpenMatrix)(given)


def _lock(given: Any) -> Any:
    from toolmatrix.lock.model import Lock

    return _one_of("a lock", Lock)(given)


def _lock_or_path(given: Any) -> Any:
    from toolmatrix.api.locks import Locked
    from toolmatrix.lock.model import Lock

    return _one_of("a lock, or its path", Locked, Lock, *_PATH)(given)


_PATH = (str, os.PathLike)
_TEXT = _one_of("a string", str)
_A_PATH = _one_of("a path", *_PATH)
_CHECKS: dict[str, Callable[[Any], Any]] = {
    "str": _TEXT,
    "bool": _one_of("True or False", bool),
    "int": _number,
    "int | None": _optional(_number),
    "Wanted": _wanted,
    "Iterable[str]": _several("a list of strings", str),
    "Words": _several("a string or a list of strings", str),
    "Path": _A_PATH,
    "Path | None": _optional(_A_PATH),
    "Path | Iterable[Path]": _several("a path or a list of paths", *_PATH),
    **dict.fromkeys(("Path | Iterable[str]", "str | os.PathLike[str] | Iterable[str]"), _log),
    "Matrix": _optional(_matrix),
    "OpenMatrix | Path | Sequence[Path] | None": _optional(_files_of_matrix),
    "OpenMatrix | None": _optional(_open_matrix),
    "Lock | None": _optional(_lock),
    "Locked | Lock | Path": _lock_or_path,
}
"""What each annotation of a public function stands for."""
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
    places = code.co_varnames[: code.co_argcount]
    rest = code.co_varnames[len(named)] if code.co_flags & _VARIABLE else ""
    known = {name: kinds[name] for name in named}
    known |= _OF_REQUEST if code.co_flags & _NAMED else {}

    @wraps(function)
    def ask(*given: Any, **options: Any) -> Any:
        for name in options:
            if name not in known:
                raise TypeError(
                    f"{function.__name__}() has no keyword `{name}`: it takes {', '.join(known)}"
                )
        values = [
            _checked(places[at] if at < len(places) else rest, kinds, value)
            for at, value in enumerate(given)
            if at < len(places) or rest
        ]
        # What is given too often, or not at all, Python says well.
        values += given[len(values) :]
        return function(
            *values, **{name: _checked(name, known, one) for name, one in options.items()}
        )

    return ask


def _checked(name: str, kinds: dict[str, str], value: Any) -> Any:
    try:
        return _CHECKS[kinds[name]](value)
    except BadValue as bad:
        raise BadValue(bad.expected, bad.found, bad.help, name=name) from None
