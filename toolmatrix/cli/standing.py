"""Requests that stand somewhere: in the configuration, one or several, or in a lock that is made again.

A request is kept as words, positional ones first and then one `--option=value` for each option that is
not at its default, so that the words alone ask the same again.
"""

from __future__ import annotations

from toolmatrix.cli import ask
from toolmatrix.cli.options import OPTIONS
from toolmatrix.errors import UsageError
from toolmatrix.lock.model import DEFAULT
from toolmatrix.request import fields
from toolmatrix.request.fields import given
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context
    from toolmatrix.lock.model import Lock

    Environments = dict[str, "Standing"]


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
    made = context.replace(options=context.options.replace(keep=""))
    words = ask.written(made.options, made.arguments).words()
    return Standing(context=made, arguments=made.arguments, words=words)


def _again(context: Context, words: tuple[str, ...]) -> Standing:
    """The request of a lock; an option said in this run replaces the same option of it."""
    held = given(words)
    wanted = held.pop("wanted")
    for name in fields.OPTIONS:
        if name in context.origins and context.origins[name].kind != "default":
            held[name] = context.options[name]
        else:
            held.setdefault(name, OPTIONS[name].default)
    return _standing(context.replace(options=context.options.replace(**held), arguments=wanted))
