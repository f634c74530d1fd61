"""Topics of `toolmatrix help`: short texts that pages of the documentation hold as well, and tables of declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from toolmatrix import resources
from toolmatrix.command import COMMANDS
from toolmatrix.value import Value

Rows = Sequence[Sequence[str]]

# The codes of the classes of `toolmatrix.errors`, and those of `main`.
EXIT_CODES = {
    0: "yes or done",
    1: "the answer is no",
    2: "bad usage, configuration, matrix or lock",
    3: "nothing matched",
    4: "cannot say",
    5: "an outside tool is missing or failed",
    70: "internal error",
    130: "interrupted",
}


class Topic(Value):
    """A topic: its title, the page of docs/ that holds it, and its text around a table."""

    title: str
    page: str
    says: Sequence[str]
    head: Sequence[str]
    rows: Rows
    then: Sequence[str]


def load() -> dict[str, Topic]:
    """All topics by name."""
    return {
        name: Topic(
            title=entry["title"],
            page=entry["page"],
            says=_paragraphs(entry["says"]),
            head=entry["head"],
            rows=_GENERATED_ROWS[entry["made"]]() if "made" in entry else entry["rows"],
            then=_paragraphs(entry["then"]),
        )
        for name, entry in resources.load_yaml(resources.of_package("topics.yaml")).items()
    }


def _paragraphs(text: str) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def _exit_codes() -> Rows:
    return [[f"`{code}`", says] for code, says in EXIT_CODES.items()]


def _formats() -> Rows:
    by_forms: dict[tuple[str, ...], list[str]] = {}
    for command in COMMANDS.values():
        by_forms.setdefault(command.all_formats, []).append(f"`{command.name}`")
    groups = sorted(by_forms.items(), key=lambda entry: -len(entry[1]))
    return [[", ".join(names), ", ".join(f"`{form}`" for form in forms)] for forms, names in groups]


_GENERATED_ROWS: Mapping[str, Callable[[], Rows]] = {"exit_codes": _exit_codes, "formats": _formats}
