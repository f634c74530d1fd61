"""The templates of `dockerfiles/`: sandboxed, strict about names, and refusing every value that was not quoted."""

from __future__ import annotations

from functools import lru_cache

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from toolmatrix import resources
from toolmatrix.errors import Position, RenderError
from toolmatrix.render import quote


# Jinja calls this with every value that a template writes, and not with the template's own text.
def _quoted(value: object) -> object:
    if isinstance(value, quote.Quoted):
        return value
    raise RenderError(
        "a template writes a value that was not quoted for its place",
        expected="a quoting filter, such as `| sh`",
        found=f"`{value!a}`",
    )


@lru_cache(maxsize=1)
def environment(root: str) -> SandboxedEnvironment:
    """The templates below `root`. Autoescape makes what macros give count as quoted."""
    made = SandboxedEnvironment(
        loader=FileSystemLoader(root),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_quoted,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # None of Jinja's own but what may be done with values before they are quoted: `safe` would mark any as quoted.
    plain = {name: made.filters[name] for name in ("dictsort", "join")}
    made.filters = {**plain, **quote.filters()}
    return made


def render(name: str, **values: object) -> str:
    """The text of a template; raises RenderError with the file and line of what is wrong in it."""
    root = resources.templates_root()
    try:
        return environment(root).get_template(name).render(**values)
    # Only errors of syntax have a line, and only these and those of a missing file a name.
    except TemplateError as error:
        raise RenderError(
            "a template cannot be used",
            where=Position(
                f"{root}/{getattr(error, 'name', None) or name}", getattr(error, "lineno", 0) or 0
            ),
            found=error.message or type(error).__name__,
        ) from None
