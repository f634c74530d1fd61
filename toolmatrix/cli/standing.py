"""Requests that stand somewhere: in the configuration, one or several, or in a lock that is made again.

A request is kept as words, positional ones first and then one `--option=value` for each option that is
not at its default, so that the words alone ask the same again.
"""

from __future__ import annotations

import copy

from toolmatrix.cli.options import OPTIONS, REQUEST, Options
from toolmatrix.cli.parser import parse
from toolmatrix.errors import UsageError
from toolmatrix.lock.model import DEFAULT
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context
    from toolmatrix.lock.model import Lock

    Environments = dict[str, "Standing"]

# Options of requests that do not change what is asked: the lock has the answer of `--keep`.
_NOT_ASKED = ("keep", "depth", "ascii", "all")
_ASKED = (*(name for name in REQUEST if name not in _NOT_ASKED), "at", "min_evidence")


class Standing(Value):
    """One request: the run that asks it, its positional words, and all its words."""

    context: Context
    arguments: tuple[str, ...]
    words: tuple[str, ...]


def environments(context: Context, held: Lock | None) -> Environments:
    """The requests of a run by environment: the one given, else those configured, else those of a lock."""
    configured = context.arguments == context.configured_request
    if context.environments and (configured or not context.arguments):
        return _configured(context)
    if context.arguments:
        return {DEFAULT: _standing(context)}
    if held is None or not held.environments:
        raise no_request()
    return {
        name: _again(context, environment.request)
        for name, environment in held.environments.items()
    }


def no_request() -> UsageError:
    """Nothing says what to lock."""
    return UsageError(
        "no request to lock",
        expected="a request, `request` in toolmatrix.toml, or a lock to make again",
        help="`toolmatrix lock tensorflow==2.6.5 --target x86,arm`",
    )


def _configured(context: Context) -> Environments:
    found = {}
    if context.configured_request and DEFAULT not in context.environments:
        found[DEFAULT] = _standing(context)
    for name in sorted(context.environments):
        inside = context.for_environment(name)
        if not inside.arguments:
            raise UsageError(
                f"the environment `{name}` has no request",
                expected="`request` in its table, or above all tables",
            )
        found[name] = _standing(inside)
    return found


def _standing(context: Context) -> Standing:
    """`--keep` is left out: what is kept is settled once for all environments."""
    made = copy.copy(context)
    made.options = context.options.replace(keep="")
    return Standing(context=made, arguments=made.arguments, words=_words(made))


def _again(context: Context, words: tuple[str, ...]) -> Standing:
    """The request of a lock; an option said in this run replaces the same option of it."""
    parsed = parse(["lock", *words])
    said = {
        name: context.options[name]
        for name in _ASKED
        if name in context.origins and context.origins[name].kind != "default"
    }
    asked = {name: value for name, value in parsed.given.items() if name in _ASKED}
    own = {name: context.options[name] for name in OPTIONS if name not in _ASKED}
    made = copy.copy(context)
    made.options = Options(own | asked | said)
    made.arguments = tuple(parsed.arguments)
    return _standing(made)


def _words(context: Context) -> tuple[str, ...]:
    found = list(context.arguments)
    for name in _ASKED:
        option, value = OPTIONS[name], context.options[name]
        if value == option.default:
            continue
        said = [option.show(value)]
        if option.kind == "list":
            said = [",".join(value)] if option.split else list(value)
        found += [f"{option.flags[-1]}={one}" for one in said]
    return tuple(found)
