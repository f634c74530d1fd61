"""`toolmatrix inventory`: what a subject holds, and how each value was seen."""

from __future__ import annotations

from toolmatrix.judge import locked, probes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.cli.context import Context


def run(context: Context) -> int:
    """Print the inventory of a subject; raises SubjectError where it cannot be read."""
    options = context.options
    found = locked.observe(
        context.arguments[0],
        options.platform,
        options.directory,
        getattr(context.stdin, "buffer", None),
        None if options.no_run else lambda _: probes.of_index(context.index()),
    )
    if options.format == "json":
        context.write_json(found.to_json())
    else:
        from toolmatrix.report import inventory as report

        context.write(report.text(found, context.terminal, everything=options.all))
    return 0
