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
