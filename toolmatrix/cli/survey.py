"""`toolmatrix show` and `what`: a component at a glance, and what goes with a release."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


def show(context: Context) -> int:
    """Print the releases of a component and the builds of the newest; exit 3 for what nobody knows."""
    from toolmatrix.api import components

    options = context.options
    subject = " ".join(context.arguments)
    found = components.shown(context.index(), subject, everything=options.all, at=options.at)
    return context.give(found)


def what(context: Context) -> int:
    """Print what goes with releases of a component; exit 4 where no fact says that anything does."""
    from toolmatrix.api import components
    from toolmatrix.cli import ask

    index, options = context.index(), context.options
    component = components.subject_of(index, context.arguments[0])
    requests = [
        ask.build(context.replace(options=options.replace(**way)), index, varied=(component,))
        for way in components.ways(index, options.from_, options.accelerator)
    ]
    return context.give(components.around(index, component, requests, everything=options.all))
