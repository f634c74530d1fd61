"""Inventories as documents: what is written is read again, and what the schema asks for has to be there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolmatrix.inspection.model import Inventory, Seen, Skipped, Soname

SEEN = Seen(version="12.2.0", seen_by="elf", where="usr/bin/gcc", layer="sha256:1", default=True)
WHOLE = Inventory(
    subject="archive:a.tar",
    platform="linux/amd64",
    digest="sha256:2",
    components={"gcc": (SEEN,)},
    features={"char": (SEEN.replace(version="signed", default=False),)},
    sonames=(Soname(name="liba.so.1", needed_by=("bin/a",), others=("liba.so.2",)),),
    history=(("sha256:1", "COPY a"),),
    skipped=(Skipped(what="rpm", reason="none"),),
    lock="a = 1\n",
)


def document() -> Any:
    """The document of an inventory, as it comes out of a file."""
    return json.loads(json.dumps(WHOLE.to_json()))


def test_what_is_written_is_read_again() -> None:
    assert Inventory.from_json(document()) == WHOLE


@pytest.mark.parametrize(
    ("place", "field"),
    [
        *(("components", field) for field in ("version", "seen_by", "where", "layer", "default")),
        *(("sonames", field) for field in ("name", "needed_by", "found", "others")),
        *(("skipped", field) for field in ("what", "reason")),
    ],
)
def test_what_the_schema_asks_for_has_to_be_there(place: str, field: str) -> None:
    body = document()
    held = body[place]["gcc"] if place == "components" else body[place]
    del held[0][field]
    with pytest.raises(KeyError, match=field):
        Inventory.from_json(body)


def test_a_field_of_a_later_version_is_passed_over() -> None:
    body = document()
    body["sonames"][0]["weight"] = 1
    assert Inventory.from_json(body) == WHOLE


def test_a_text_is_no_list_of_texts() -> None:
    body = document()
    body["sonames"][0]["others"] = "liba.so.2"
    with pytest.raises(TypeError, match=r"^`liba\.so\.2`, which is not a list$"):
        Inventory.from_json(body)
