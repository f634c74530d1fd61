"""Facts from runs, in files that each run adds to: images that were built, and packages that were imported together.

Rows of earlier runs, or of other machines, are kept. Bisection finds the first newer package with which a release
fails.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import yaml

from toolmatrix.errors import HarvestRefused, Position
from toolmatrix.factbase import pieces, yamlfile
from toolmatrix.factbase.layout import FACTS
from toolmatrix.factbase.model import BUILDS
from toolmatrix.factbase.yamlfile import YamlNode
from toolmatrix.value import Value
from toolmatrix.wording import plural, some

if TYPE_CHECKING:
    from toolmatrix.harvest.environments import ImportOutcome


_WIDEST = 1 << 30
"""Columns, more than any row has."""
_MOST_NAMED = 20
"""Rows to name in an error."""

_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class FactDifference(Value):
    """A row of a fact file that was added, removed or changed, with the old and new text of its changed cells."""

    row: str
    cells: Mapping[str, tuple[str, str]] = {}
    gone: bool = False
    new: bool = False


def text(document: Mapping[str, Any], about: str, by: str = "toolmatrix harvest") -> str:
    """A fact file: sources and tables sorted by name, a line for each row; `by` is the command."""
    lines = [
        "# yaml-language-server: $schema=../../toolmatrix/schemas/facts.schema.json",
        *(f"# {line}" for line in about.splitlines()),
        f"# Written by `{by}`, and never by hand.",
        f"schema: {FACTS}",
    ]
    for key in ("components", "sources"):
        if document.get(key):
            lines.append(f"{key}:")
            lines += (f"  {name}: {_flow(entry)}" for name, entry in sorted(document[key].items()))
    for key in ("channels", "releases", "tables", "statements", "data"):
        if document.get(key):
            lines += ["", f"{key}:"]
            lines += _blocks(sorted(document[key], key=lambda entry: entry["id"]))
    return "\n".join(lines) + "\n"


def _blocks(items: list[Mapping[str, Any]]) -> Iterator[str]:
    for item in items:
        dash = "  - "
        for key, value in item.items():
            if key == "rows":
                yield "    rows:"
                yield from (f"      - {_flow(row)}" for row in value)
            elif key == "columns" and isinstance(value, dict):
                yield "    columns:"
                yield from (f"      {name}: {_flow(column)}" for name, column in value.items())
            else:
                yield f"{dash}{key}: {_flow(value)}"
            dash = "    "


def _flow(value: Any) -> str:
    # A line of any length, so that diffs show rows.
    dumped: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        sort_keys=False,
        width=_WIDEST,
        allow_unicode=True,
    )
    # PyYAML without libyaml ends a document of one plain scalar with `...`.
    return dumped.removesuffix("\n").removesuffix("\n...")


def rows(node: YamlNode) -> dict[str, dict[str, str]]:
    """The cells of each row of a fact file as text, by the id of the row; in a data table by its first two cells."""
    by_id = {}
    for name, fields in _tables(node, "tables"):
        key = _plain_values(fields["key"]) if "key" in fields else ""
        for row in pieces.items(fields, "rows"):
            cells = {column: _plain_values(cell) for column, cell in (row.fields or {}).items()}
            by_id[cells.pop("id", f"{name}/{cells.get(key, '')}")] = cells
    for name, fields in _tables(node, "data"):
        columns = [_plain_values(column) for column in pieces.items(fields, "columns")]
        for row in pieces.items(fields, "rows"):
            values = [_plain_values(cell) for cell in row.items or []]
            # By index, every row after a new one would change.
            by_id[f"{name}/{' '.join(values[:2])}"] = dict(zip(columns, values, strict=False))
    return by_id


def _tables(node: YamlNode, kind: str) -> Iterator[tuple[str, Mapping[str, YamlNode]]]:
    for table in pieces.items(node.fields or {}, kind):
        fields = table.fields or {}
        yield (_plain_values(fields["id"]) if "id" in fields else ""), fields


def _plain_values(node: YamlNode) -> str:
    if node.text is not None:
        return node.text
    if node.items is not None:
        return "[" + ", ".join(map(_plain_values, node.items)) + "]"
    children = (f"{key}: {_plain_values(child)}" for key, child in (node.fields or {}).items())
    return "{" + ", ".join(children) + "}"


def differences(path: str, text: str) -> list[FactDifference]:
    """Rows in which a file differs from the text that would replace it; all are new if there is no file."""
    before = rows(yamlfile.read(path)) if os.path.exists(path) else {}
    after = rows(yamlfile.parse(text.encode(), path))
    changed = [name for name, cells in after.items() if before.get(name) != cells]
    # New rows first.
    changed.sort(key=before.__contains__)
    return [
        *(FactDifference(row=name, gone=True) for name in before if name not in after),
        *(
            FactDifference(
                row=name,
                cells=_changed(before.get(name, {}), after[name]),
                new=name not in before,
            )
            for name in changed
        ),
    ]


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    return {
        column: (before.get(column, ""), after.get(column, ""))
        for column in {**before, **after}
        if before.get(column) != after.get(column)
    }


def refuse_vanished(path: str, changes: Sequence[FactDifference]) -> None:
    """Refuse to lose rows: a source that shrank was probably read wrongly. Raises HarvestRefused."""
    gone = [change.row for change in changes if change.gone]
    if gone:
        raise HarvestRefused(
            f"{plural(len(gone), 'row')} "
            + ("is no longer at its" if len(gone) == 1 else "are no longer at their")
            + " source",
            where=Position(path),
            expected="every row that was read before",
            found="nothing of " + some(gone, _MOST_NAMED),
            help="the file is unchanged; once you know why they disappeared, `--accept` writes it without them",
        )


# The keys of a table, in the order in which they are written.
_TABLE = (
    *("id", "about", "source", "where", "evidence", "context", "key", "lists", "stands-for"),
    *("columns", "rows"),
)
_NEEDED = ("id", "source", "evidence", "key", "columns", "rows")


def read_tables(path: str) -> dict[str, dict[str, Any]]:
    """The tables of a file by id, {} if the file does not exist. Raises MatrixError."""
    if not os.path.exists(path):
        return {}
    fields = yamlfile.read(path).only(
        "a file of runs", ("schema", "sources", "tables"), ("schema",)
    )
    tables = {}
    for node in pieces.items(fields, "tables"):
        # Other keys were added by hand, and would get lost or break later steps.
        own = node.only("a table of runs", _TABLE, _NEEDED)
        for row in own["rows"].sequence("rows"):
            row.only("a row of runs", tuple(row.mapping("a row")), ("id", "day"))
        table = _plain(node)
        tables[table["id"]] = table
    return tables


def table_of(tables: dict[str, dict[str, Any]], id: str, head: Mapping[str, Any]) -> dict[str, Any]:
    """The table with an id; a new one with this head if it is missing."""
    return tables.setdefault(id, {"id": id, **head, "rows": []})


def replace_row(table: dict[str, Any], row: dict[str, Any]) -> None:
    """Add a row, instead of one with the same id."""
    table["rows"] = [other for other in table["rows"] if other["id"] != row["id"]] + [row]


def tables_document(
    tables: Mapping[str, Mapping[str, Any]],
    keys: Callable[[Mapping[str, Any], str], list[str]],
    title: str,
    at: str,
) -> dict[str, Any]:
    """The facts of tables whose sources are named KIND-COMPONENT, each read on the day of its newest row.

    `keys` gives the order of the keys of a row, by its subject; `{}` in `at` is the component.
    """
    days: dict[str, str] = {}
    for table in tables.values():
        last = max(row["day"] for row in table["rows"])
        days[table["source"]] = max(last, days.get(table["source"], ""))
    sources = {
        name: {"title": title, "at": at.format(name.partition("-")[2]), "read": day}
        for name, day in days.items()
    }
    return {"sources": sources, "tables": [_ordered(table, keys) for table in tables.values()]}


def _ordered(
    table: Mapping[str, Any], keys: Callable[[Mapping[str, Any], str], list[str]]
) -> dict[str, Any]:
    # Sorted, whether rows are old or new.
    columns = table["columns"]
    rows = sorted(table["rows"], key=lambda row: _numbers(row["id"]))
    ordered = {
        **table,
        "columns": {name: columns[name] for name in sorted(columns)},
        "rows": [{key: row[key] for key in keys(row, table["key"])} for row in rows],
    }
    return {key: ordered[key] for key in _TABLE if key in ordered}


def _numbers(text: str) -> list[tuple[int, str]]:
    return [
        (int(token), "") if token.isdigit() else (-1, token) for token in re.split(r"(\d+)", text)
    ]


def _plain(node: YamlNode) -> Any:
    if node.items is not None:
        return [_plain(child) for child in node.items]
    if node.fields is not None:
        return {name: _plain(child) for name, child in node.fields.items()}
    return True if node.text == "true" else node.text or ""


ABOUT_BUILDS = "Images that were built, and those that were not because an address was missing."

# The conditions of a row, and its attributes. Nothing here limits or ranks an answer.
_WHERE = ("machine", "from", "accelerator", "distro", "python")
_ATTRIBUTES = (
    *("build", "beside", "recipe", "base", "missing", "check", "seconds", "size", "engine", "lock"),
    "day",
)


class ImageBuild(Value):
    """One image, with what it was built from and the result, as in a row of facts.

    `release` belongs to `component`, the first component of the request; `build` is the installed variant, if any, and
    `beside` are the other components of the lock. `check` is the output of the check, or `missing` the address that was
    not available. `seconds` may be those of a build with cached layers; `size` is in bytes, 0 if the engine does not
    report it, and `packed` means the size of the compressed layers.
    """

    component: str
    release: str
    where: Mapping[str, str]
    beside: Mapping[str, str]
    recipe: str
    base: str
    engine: str
    lock: str
    day: str
    seconds: float
    build: str = ""
    check: str = ""
    missing: str = ""
    size: int = 0
    packed: bool = False

    @property
    def id(self) -> str:
        """The id of its row."""
        conditions = "/".join(self.where[name] for name in _WHERE if name in self.where)
        return f"{self.component}-builds/{self.release}/{conditions}"


def builds_document(path: str, builds: Iterable[ImageBuild]) -> dict[str, Any]:
    """The facts of a file with these builds added; the newest build of a release under the same conditions is kept."""
    tables = read_tables(path)
    for build in builds:
        table = table_of(tables, f"{build.component}-builds", _head(build.component))
        # Files of an earlier release lack it.
        table["lists"] = BUILDS
        others = {row["id"]: row for row in table["rows"]}
        # A missing address is a matter of the network, and does not replace a successful build.
        if not (build.missing and others.get(build.id, {}).get("check")):
            replace_row(table, _row(build))
    return tables_document(
        tables,
        lambda row, key: [name for name in ("id", key, *_WHERE, *_ATTRIBUTES) if name in row],
        title="toolmatrix, images that were built",
        at="builds of {} as each row names them, by `toolmatrix build --write`",
    )


def _head(name: str) -> dict[str, Any]:
    return {
        "about": f"{name}: images that were built, and what their check said",
        "source": f"built-{name}",
        "where": "the log of each build",
        "evidence": "ran",
        "key": name,
        "lists": BUILDS,
        "columns": {
            **{column: {"as": "when"} for column in _WHERE},
            **{column: {"as": "attribute"} for column in _ATTRIBUTES},
        },
    }


def _row(build: ImageBuild) -> dict[str, Any]:
    cells = {
        "build": build.build,
        "beside": "; ".join(f"{name} {release}" for name, release in sorted(build.beside.items())),
        "recipe": build.recipe,
        "base": build.base,
        "missing": build.missing,
        "check": build.check,
        "seconds": f"{build.seconds:.0f}" if build.check else "",
        "size": _size(build) if build.size else "",
        "engine": build.engine,
        "lock": build.lock,
        "day": build.day,
    }
    return {
        "id": build.id,
        # Exactly this one: `1.2` would be 1.2.1 as well.
        build.component: f"==={build.release}",
        **build.where,
        **{name: text for name, text in cells.items() if text},
    }


def _size(build: ImageBuild) -> str:
    return f"{build.size / 1e6:.0f} MB" + (" packed" if build.packed else "")


# A row is complete: packages that it lacks were not installed.
_RAN_WITH = {"as": "tested", "complete": True, "says": "ran with {subject} {release}"}
ABOUT_IMPORTS = (
    "Releases that were imported and used beside others, and newer releases with which they fail."
)


class Trial(Value):
    """The conditions of a run: full version of Python, machine, system, digest of the program, and day."""

    python: str
    machine: str
    system: str
    program: str
    day: str


class RanTogether(Value):
    """A release that ran with others; `also` are newer releases that it runs with, each replacing one of them."""

    component: str
    release: str
    series: str
    beside: Mapping[str, str]
    also: Mapping[str, str]
    trial: Trial


class Break(Value):
    """A release that fails with a newer one of a dependency; with `widens`, the rest of its series fails as well."""

    component: str
    release: str
    dependency: str
    bound: UpperBound
    trial: Trial
    widens: bool = False


def imports_document(
    path: str, together: Iterable[RanTogether], breaks: Iterable[Break]
) -> dict[str, Any]:
    """The facts of a file with these runs added; rows of other machines are kept."""
    tables = read_tables(path)
    for ran in together:
        name = f"{ran.component}-imports-{ran.trial.machine}"
        table = table_of(tables, name, _ran_head(ran))
        table["columns"] |= dict.fromkeys(("python", *ran.beside), _RAN_WITH)
        replace_row(table, _ran_row(ran))
    for broken in breaks:
        # A table for each dependency, so that no row has empty cells.
        name = f"{broken.component}-breaks-{broken.dependency}"
        table = table_of(tables, name, _break_head(broken))
        replace_row(table, _break_row(broken))
    return tables_document(
        tables,
        _import_keys,
        title="toolmatrix, imports that were run",
        at="imports of {} as each row names them, by `toolmatrix audit --import`",
    )


def _ran_head(ran: RanTogether) -> dict[str, Any]:
    name = ran.component
    return {
        "about": f"{name}: what it was imported and used with",
        "source": _source(name),
        "where": f"operations.yaml of toolmatrix, {name}",
        "evidence": "ran",
        "context": {"machine": ran.trial.machine, "from": "wheel", "accelerator": "none"},
        "key": name,
        "columns": {column: {"as": "attribute"} for column in ("also", "on", "program", "day")},
    }


def _ran_row(ran: RanTogether) -> dict[str, Any]:
    also = "; ".join(f"{name} {release}" for name, release in sorted(ran.also.items()))
    return {
        "id": f"{ran.component}-imports-{ran.trial.machine}/{ran.release}/{ran.series}",
        # Exactly this one: `1.2` would be 1.2.1 as well.
        ran.component: f"==={ran.release}",
        "python": ran.series,
        **ran.beside,
        **({"also": also} if also else {}),
        "on": f"CPython {ran.trial.python}, {ran.trial.system}",
        "program": ran.trial.program,
        "day": ran.trial.day,
    }


def _break_head(broken: Break) -> dict[str, Any]:
    name, dependency = broken.component, broken.dependency
    limits = {
        "as": "limits",
        # A topic of its own, so that other limits apply as well.
        "topic": f"{dependency}-imported",
        "says": "runs with {component} {value}",
    }
    return {
        "about": f"{name}: releases of {dependency} that its requirements let through, and with which it fails",
        "source": _source(name),
        "evidence": "ran",
        "key": name,
        **({"stands-for": ["same-minor"]} if broken.widens else {}),
        "columns": {
            dependency: limits,
            **{column: {"as": "attribute"} for column in ("program", "day")},
        },
    }


def _break_row(broken: Break) -> dict[str, Any]:
    bound, trial, name = broken.bound, broken.trial, broken.dependency
    several = f"{bound.fails} and {bound.newest}" if bound.newest != bound.fails else bound.fails
    message = bound.outcome.said if bound.outcome else ""
    return {
        "id": f"{broken.component}-breaks-{name}/{broken.release}",
        broken.component: f"==={broken.release}",
        name: f"<{bound.fails}",
        "where": f"runs with {name} {bound.works}, fails with {several}: {message}"
        f" (CPython {trial.python} on {trial.machine}, {trial.system})",
        "program": trial.program,
        "day": trial.day,
    }


def _source(component: str) -> str:
    return f"imported-{component}"


def _import_keys(row: Mapping[str, Any], subject: str) -> list[str]:
    first, last = ("id", subject, "python"), ("also", "where", "on", "program", "day")
    others = sorted(key for key in row if key not in (*first, *last))
    return [key for key in (*first, *others, *last) if key in row]


class UpperBound(Value):
    """The newest release that was run, the last that works, and the first that fails, if any, with its outcome.

    `works` is the newest one if all work; `undecided` is the reason why the search ended with `tried`.
    """

    newest: str
    works: str
    fails: str = ""
    outcome: ImportOutcome | None = None
    undecided: str = ""
    tried: str = ""


def search(
    versions: Sequence[str], attempt: Callable[[str], ImportOutcome | None], *, works: bool = True
) -> UpperBound | None:
    """The bound among sorted releases, the first of which `works`; None if no newer one can be installed.

    If the first is not known to work, the oldest that can be installed is run; None if that fails.

    `attempt` runs a release, and returns None if it cannot be installed. All releases from the first that fails up to
    the newest are assumed to fail.
    """
    # Imported here, as facts of builds need no environments.
    from toolmatrix.harvest.environments import FAILED, RAISED, RAN

    left = list(versions)
    oldest = RAN if works else ""
    while left and not oldest:
        first = attempt(left[0])
        oldest = first.state if first else ""
        left = left if first else left[1:]
    if oldest != RAN:
        return None
    low, high = 0, len(left)
    newest = ""
    failing: ImportOutcome | None = None
    while high - low > 1:
        # The newest first: it mostly works, and then there is no bound.
        at = (low + high) // 2 if newest else len(left) - 1
        outcome = attempt(left[at])
        if outcome is None:
            del left[at]
            high -= 1
            continue
        newest = newest or left[at]
        if outcome.state == FAILED:
            reason = outcome.said
            return UpperBound(newest=newest, works=left[low], undecided=reason, tried=left[at])
        if outcome.state == RAN:
            low = at
        elif outcome.state == RAISED:
            high, failing = at, outcome
    if not newest:
        return None
    return UpperBound(
        newest=newest, works=left[low], fails=left[high] if failing else "", outcome=failing
    )
