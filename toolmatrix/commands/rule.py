"""`toolmatrix rule`: what a code means, offline."""

from __future__ import annotations

from toolmatrix.api import Report
from toolmatrix.command import command
from toolmatrix.documents import Annotated, Any, Literal, TypedDict
from toolmatrix.errors import NothingMatched
from toolmatrix.report.rules import CodePage, load_rules
from toolmatrix.report.terminal import Terminal, columns, wrap
from toolmatrix.request.spelling import suggestion


class RulesDocument(TypedDict):
    """What `toolmatrix rule --json` prints."""

    schema: Literal["toolmatrix.rules/1"]
    rules: list[Annotated[dict[str, Any], CodePage]]


@command(
    group="About this program",
    order=2,
    usage="[CODE...]",
    completer="code",
    examples=("toolmatrix rule TM101", "toolmatrix rule"),
)
def rule(*codes: str) -> Report:
    """Explain a code such as TM101.

    The pages of the codes given, or the list of all codes. Raises NothingMatched.
    """
    rules = load_rules()
    wanted = [_find(rules, code) for code in codes]
    rows = [(entry.code, entry.severity, entry.name) for entry in rules.values()]
    document: RulesDocument = {
        "schema": "toolmatrix.rules/1",
        "rules": [entry.to_json() for entry in wanted or rules.values()],
    }
    return Report(
        words=lambda screen: (
            "\n".join(_page(entry, screen) for entry in wanted) or "\n".join(columns(rows)) + "\n"
        ),
        document=lambda: document,
        hint="" if wanted else "`toolmatrix rule TM101` shows the page of a code",
    )


def _find(rules: dict[str, CodePage], code: str) -> CodePage:
    rule = rules.get(code.upper())
    if rule is None:
        raise NothingMatched(
            f"unknown code `{code}`",
            help=suggestion(code.upper(), tuple(rules), "`toolmatrix rule` lists the codes"),
        )
    return rule


def _page(rule: CodePage, terminal: Terminal) -> str:
    lines = [
        f"{terminal.style(rule.code, 'bold')} {rule.name} ({rule.severity}, since {rule.since})"
    ]
    for title, text in (("what", rule.what), ("why", rule.why)):
        lines += ["", f"{title}:", *wrap(text, terminal.width, indent="  ")]
    # Show an example verbatim: it is from a file or a log.
    lines += ["", "example:", *(f"  {line}".rstrip() for line in rule.example.splitlines())]
    lines += ["", "remedy:", *wrap(rule.remedy, terminal.width, indent="  ")]
    return "\n".join(lines) + "\n"
