"""`toolmatrix facts`, `export`, `check`, `audit`, `diagnose`: what a matrix says, its soundness, what a log shows."""

from __future__ import annotations

import os.path

from toolmatrix.cli.context import Context
from toolmatrix.errors import UsageError

# Each command imports what it asks, and nothing of what the others ask.


def facts(context: Context) -> int:
    """Print facts; exit 1 only when `--stale` was asked and something is."""
    from toolmatrix.api import facts

    options, ids = context.options, context.arguments
    full = options.verbose > 0
    found = facts.found(context.index(), ids, options.source, options.stale, context.env, full=full)
    if options.format != "json" and not (ids or options.source or options.stale is not None):
        context.say_after(
            "hint: `toolmatrix facts ID` shows one; an id is a row, `ROW#column`, a table or `cuda==VERSION`"
        )
    return context.give(found)


def export(context: Context) -> int:
    """Write facts for other tools, as JSON where nothing else is asked for."""
    from toolmatrix.api import exports

    found = exports.exported(context.index(), context.arguments)
    context.pour(found.pieces(context.options.format))
    return found.exit_code


def check(context: Context) -> int:
    """Judge the matrix and print what was found; 1 when an error is among it, but 0 where a SARIF reader judges."""
    from toolmatrix.api import checks
    from toolmatrix.cli.progress import Progress, summarize

    context = _with_files(context)
    options = context.options
    if options.render:
        return _renders(context)
    index, progress = context.index(), Progress(context, "solving", "releases")
    found = checks.checked(
        index,
        context.matrices,
        options.only,
        options.stale,
        context.env,
        processes=options.jobs or 0,
        executor=options.executor,
        progress=progress.at,
    )
    progress.end()
    if options.format == "github":
        summarize(context, found.written("md"))
    return context.give(found)


def _with_files(context: Context) -> Context:
    """This run with the files that it names in force, and they alone judged."""
    from toolmatrix.api import checks

    if not context.arguments:
        return context
    files = tuple(map(context.path, context.arguments))
    there = set(map(os.path.realpath, checks.files(context.matrices)))
    more = tuple(path for path in files if os.path.realpath(path) not in there)
    options = context.options
    only = () if options.render else files
    return context.replace(
        options=options.replace(
            matrix=(*options.matrix, *more),
            only=(*options.only, *only),
        )
    )


def _renders(context: Context) -> int:
    from toolmatrix.api import renders
    from toolmatrix.cli.progress import Progress

    options, index = context.options, context.index()
    if options.format not in ("text", "json"):
        raise UsageError(
            "`--render` has no such format", expected="text or json", found=f"`{options.format}`"
        )
    asked = renders.questions(index, options.arch, options.only)
    progress = Progress(context, "rendering", "answers")
    found = renders.rendered(
        index,
        context.matrices,
        asked,
        processes=options.jobs or 0,
        executor=options.executor,
        progress=progress.at,
    )
    progress.end()
    return context.give(found)


def audit(context: Context) -> int:
    """Print what the matrix covers and what is wrong; 1 when an error is found, but 0 where a SARIF reader judges."""
    from toolmatrix.api import audits
    from toolmatrix.cli.progress import Progress, summarize

    if context.options.import_:
        return _imports(context)
    if context.options.python or context.options.write:
        raise UsageError("only `--import` takes `--python` and `--write`")
    index, progress = context.index(), Progress(context, "judging", "answers")
    sources = audits.asked_online(context.env) if context.options.online else None
    # A setting or variable says how frameworks get there, and no path.
    said = context.origins["from_"].kind == "flag"
    found = audits.audited(
        index,
        context.matrices,
        context.arguments,
        context.env,
        sources,
        clones=context.path(context.options.from_) if said else "",
        processes=context.options.jobs or 0,
        executor=context.options.executor,
        progress=progress.at,
    )
    progress.end()
    if context.options.format == "github":
        summarize(context, found.written("md"))
    return context.give(found)


def _imports(context: Context) -> int:
    from toolmatrix.api import harvests, imports
    from toolmatrix.cli.progress import Progress

    index, options = context.index(), context.options
    if context.origins["executor"].kind == "flag":
        raise UsageError(
            "`--import` uses the interpreters of this machine, and takes no `--executor`"
        )
    progress = Progress(context, "importing", "releases")
    try:
        found = imports.imported_releases(
            index,
            context.matrices,
            context.arguments,
            options.python,
            context.env,
            jobs=options.jobs or 1,
            progress=progress.at,
        )
    finally:
        progress.end()
    if options.write:
        file = imports.put(found, options.write)
        context.say_after(harvests.describe_changes(file).removesuffix("\n"))
    return context.give(imports.reported(index, context.matrices, context.arguments, found))


def diagnose(context: Context) -> int:
    """Print what is known of the failures in a log; 1 when there is one, but 0 where a SARIF reader judges."""
    from toolmatrix.api import diagnoses
    from toolmatrix.cli import ask
    from toolmatrix.stages.saved import called

    options = context.options
    path = context.arguments[0]
    is_said = context.origins["lock"].kind != "default"
    index = context.index()
    found = diagnoses.diagnosed(
        index,
        diagnoses.observe_log(context.path(path), context.stdin, called(path)),
        options.lock if is_said or os.path.isfile(options.lock) else "",
        diagnoses.MOST if options.limit is None else options.limit,
        # Settings are read anew for it, which a log without a known way out can do without.
        lambda: ask.request_context(context, index),
    )
    if options.format == "github":
        from toolmatrix.cli.progress import summarize

        summarize(context, found.written("md", context.title))
    return context.give(found)
