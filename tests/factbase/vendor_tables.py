"""The rows of vendors' tables as questions: what a row says together is asked for together."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

import toolmatrix
from tests import matrix
from toolmatrix.resources import matrix_root

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolmatrix import NoAnswer, Resolved
    from toolmatrix.factbase.index import Index

# Tables that a vendor prints and that the matrix holds at less than tested.
PRINTED = (
    "cudnn-support-matrix",
    "torchvision-torch",
    "torchaudio-torch",
    "ngc-tensorrt-images",
    "ngc-pytorch-images",
    "ngc-tensorflow-images",
    "ngc-paddlepaddle-images",
    "ngc-mxnet-images",
    "ngc-tritonserver-trtllm-images",
    "ngc-tritonserver-vllm-images",
)
# What a row may say besides its columns.
ROW = ("id", "where", "source", "evidence", "note", "decides")
COPIED = Path(__file__).with_name("vendor_rows.csv")
TARGETS = {"aarch64": "arm", "x86_64": "x86"}


class Row(NamedTuple):
    """One row: its subject, what it vouches for by component, and the context that it speaks in."""

    id: str
    subject: str
    release: str
    cells: Mapping[str, str]
    context: Mapping[str, str]


class Outcome(NamedTuple):
    """`holds`, `disputed` or `differs`, with what was asked and answered."""

    verdict: str
    asked: str
    found: str


def index() -> Index:
    """The built-in matrix, compiled once for all tests."""
    return matrix.opened_once((), {"XDG_CACHE_HOME": matrix.folder()})


def rows() -> Iterator[Row]:
    """Every row of a vendor's table, as the files print it; read without any of the code that answers."""
    root = Path(matrix_root())
    front = yaml.load((root / "matrix.yaml").read_text(), yaml.CSafeLoader)
    for file in front["files"]:
        facts = yaml.load((root / file).read_text(), yaml.CSafeLoader)
        for table in facts.get("tables", ()):
            yield from _of_table(table)


def copied() -> Iterator[Row]:
    """Rows of `vendor_rows.csv`: vendors' tables that were copied by hand, apart from the matrix."""
    with open(COPIED, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield Row(
                id="/".join((row["table"], row["release"], row["cells"].replace(" ", ","))),
                subject=row["subject"],
                release=row["release"],
                cells=dict(word.split("==") for word in row["cells"].split()),
                context={name: row[name] for name in ("machine", "accelerator") if row[name] != ""},
            )


def apart(index: Index, row: Row) -> Iterator[Row]:
    """The same row once for each word of its cells, alone: of a range both ends."""
    for name, text in row.cells.items():
        for word in text.replace("|", " ").split():
            found = admitted(index, name, word) if word[0].isalnum() else []
            ends = (found[0], found[-1]) if "-" in word and found else (word,)
            for value in dict.fromkeys(ends if found else ()):
                yield row._replace(cells={name: value})


def _of_table(table: dict[str, Any]) -> Iterator[Row]:
    key = table["key"]
    meanings = {
        name: part if isinstance(part, list) else [part] for name, part in table["columns"].items()
    }
    for row in table["rows"]:
        evidence = row.get("evidence", table["evidence"])
        if (evidence != "tested" and table["id"] not in PRINTED) or row.get("decides") is False:
            continue
        common = {name: str(value) for name, value in table.get("context", {}).items()}
        told: list[tuple[str, str, dict[str, str]]] = []
        for name in row.keys() & meanings.keys():
            for meaning in meanings[name]:
                component = meaning.get("component", name)
                text = _text(row[name])
                if meaning["as"] == "when":
                    common[component] = text
                elif meaning["as"] in ("tested", "carries") and text:
                    own = meaning.get("context", {})
                    told.append((component, text, {k: str(v) for k, v in own.items()}))
        identity = row.get("id", f"{table['id']}/{row[key]}")
        # What a row says of one accelerator or machine alone is not asked for together with what it says of another.
        for own in [own for _, _, own in told if own] or [{}]:
            cells = {name: text for name, text, where in told if not where or where == own}
            if cells:
                yield Row(identity, key, str(row[key]), cells, common | own)


def _text(cell: object) -> str:
    # A cell that holds under a condition, or decides nothing, is no part of what a row says together.
    if isinstance(cell, dict):
        plain = "when" not in cell and cell.get("decides", True)
        return str(cell["is"]) if plain else ""
    return "" if isinstance(cell, list) else str(cell)


def admitted(index: Index, component: str, text: str) -> list[str]:
    """The releases that a cell admits, ascending; a point release that is finer than any stands for its series."""
    scale = index.scale(component)
    found = scale.named(scale.select(text))
    while not found and "." in text:
        text = text.rpartition(".")[0]
        found = scale.named(scale.select(text))
    return found


def ask(index: Index, row: Row) -> Outcome:
    """Ask for the releases of the row's subject, one after the other, with what each of its cells prints.

    Of several that a cell names the newest is asked for, of a minimum the oldest. A vendor tested one release of a
    minor series and prints the series: it holds when one has the answer that the row is.
    """
    cells = {name: admitted(index, name, text) for name, text in row.cells.items()}
    with_ = [_word(name, row.cells[name], cell) for name, cell in cells.items()]
    subject = f"{row.subject}=={row.release}"
    for release in admitted(index, row.subject, row.release):
        subject = f"{row.subject}=={release}"
        found = _resolve(row, subject, *with_)
        if found.ok and all(found.components[name].version in cell for name, cell in cells.items()):
            return Outcome("holds", " ".join((subject, *with_)), "")
    alone = _resolve(row, subject)
    # Of its own accord an answer says which rows it does not follow.
    targets = alone.to_json()["targets"].values() if alone.ok else ()
    disputes = [part["disputed"] for target in targets for part in target["components"].values()]
    verdict = "disputed" if f'"{row.id}#' in json.dumps(disputes) else "differs"
    return Outcome(verdict, " ".join((subject, *with_)), str(found))


def _word(name: str, text: str, releases: list[str]) -> str:
    # What the row prints where it leaves a choice, else the one that it names.
    plain = text.replace(".", "").isdigit() and len(releases) > 1
    # Of a minimum the release that it names: of what came after its day it does not speak.
    minimum = text.startswith(">=") and "<" not in text
    return f"{name}=={text if plain else releases[0 if minimum else -1]}"


def _resolve(row: Row, *words: str) -> Resolved | NoAnswer:
    # Rows of both machines or several accelerators are asked for the first.
    first = {name: text.split()[0] for name, text in row.context.items()}
    named = (row.subject, *row.cells)
    accelerator = first.get("accelerator", "cuda" if "cuda" in named else "")
    rocm = "rocm" in (*named, accelerator)
    # Where the result runs, and what code is made for, is said by options.
    options = {
        name: [word.partition("==")[2] for word in words if word.startswith(f"{name}==")]
        for name in ("device", "arch")
    }
    return toolmatrix.resolve(
        *(word for word in words if word.partition("==")[0] not in options),
        device=options["device"],
        arch=options["arch"],
        target="amd" if rocm else TARGETS[first.get("machine", "x86_64")],
        accelerator="rocm" if rocm else accelerator,
        from_=first.get("from", ""),
    )
