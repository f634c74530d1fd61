"""`toolmatrix show`, `what`, `plan`, `upgrade`: a component, what goes with it, archs for devices, newer releases."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolmatrix.cli.context import Context
    from toolmatrix.solve.request import Request


def show(context: Context) -> int:
    """Print the releases of a component and the builds of the newest; exit 3 for what nobody knows."""
    from toolmatrix.api import components
    from toolmatrix.cli import ask

    context = ask.with_online_packages(context)
    options = context.options
    subject = " ".join(context.arguments)
    found = components.shown(context.index(), subject, everything=options.all, at=options.at)
    return context.give(found)


def what(context: Context) -> int:
    """Print what goes with releases of a component; exit 4 where no fact says that anything does."""
    from toolmatrix.api import components
    from toolmatrix.cli import ask

    context = ask.with_online_packages(context)
    index, options = context.index(), context.options
    component = components.subject_of(index, context.arguments[0])
    requests = [
        ask.build(context.replace(options=options.replace(**way)), index, varied=(component,))
        for way in components.install_methods(index, options.from_, options.accelerator)
    ]
    return context.give(
        components.what_goes_with(index, component, requests, everything=options.all)
    )


def plan(context: Context) -> int:
    """Print which codegen archs to make for devices; exit 1 where no release of the toolkit makes code for all."""
    from toolmatrix.api import plans
    from toolmatrix.cli import ask

    context = ask.with_online_packages(context)
    index, options = context.index(), context.options
    if options.arch:
        raise plans.no_archs()

    def read(devices: Sequence[str], way: str) -> Request:
        changed = context.replace(options=options.replace(device=tuple(devices), from_=way))
        return ask.build(changed, index, ("arch", *context.arguments), varied=("arch",))

    return context.give(plans.planned(index, read, options.device, everything=options.all))


def upgrade(context: Context) -> int:
    """Print what in a lock could move and what stands in the way; exit 1 where its request has no answer any more."""
    from toolmatrix.api import upgrades
    from toolmatrix.cli.progress import Progress
    from toolmatrix.lock.read import read

    # A path is said as it was given, so that the commands that are printed name the same file.
    path = context.path(context.arguments[0]) if context.arguments else context.options.lock
    progress = Progress(context, "solving", "components")
    # A command that is printed has to ask the same files for the same move.
    carried = [word for one in context.options.matrix for word in ("--matrix", one)]
    found = upgrades.found(context.index(), path, read(path), carried, progress.at)
    progress.end()
    return context.give(found)
