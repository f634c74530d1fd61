"""What `resolve` prints as JSON keeps to the schemas that are shipped, whatever is asked; and prints the same twice."""

from __future__ import annotations

import os
import subprocess
import sys

import jsonschema
import pytest

from tests.cli.conftest import Cli
from tests.schemas import shipped

ANSWERED = [
    "tensorflow==2.6.5",
    "tensorflow==2.6.5 --arch sm_86 --device 8.6",
    "tensorflow==2.15.0 --from wheel --accelerator cuda",
    "tensorflow==2.6.5 --target x86,arm,amd --align python,numpy",
    "tensorflow --target arm --cpu neoverse-n1",
    "cuda==11.2.2 --with gcc==9",
    "tensorflow==2.12.0 --accelerator none --distro ubuntu20.04 --prefer newest",
]
REFUSED = [
    "tensorflow==2.6.5 cuda==11.0 --arch sm_86",
    "tensorflow==1.15.0 --target arm",
    "tensorflow==2.6.5 --min-evidence ran",
    "tensorflow-cpu==2.6.5 --target arm --from wheel",
]
FAILED = ["tensorflow==2.6.55", "tensorflo", "tensorflow --tagret x86", "tensorflow>=3,<2"]


@pytest.mark.parametrize(
    "name", ["resolution", "conflict", "findings", "fact", "facts-list", "error"]
)
def test_a_schema_is_a_schema_and_leaves_room_to_grow(name: str) -> None:
    document = shipped(name)
    jsonschema.Draft202012Validator.check_schema(document)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert document["title"].startswith("toolmatrix.")
    assert document.get("additionalProperties", True) is True
    assert document["required"]


@pytest.mark.parametrize("words", ANSWERED)
def test_an_answer_keeps_the_contract(cli: Cli, cache: str, words: str) -> None:
    run = cli("resolve", *words.split(), "--json", XDG_CACHE_HOME=cache)
    assert run.code == 0, run.out
    jsonschema.validate(run.json(), shipped("resolution"))


@pytest.mark.parametrize("words", REFUSED)
def test_a_refusal_keeps_the_contract(cli: Cli, cache: str, words: str) -> None:
    run = cli("resolve", *words.split(), "--json", XDG_CACHE_HOME=cache)
    assert run.code == 1, run.out
    document = run.json()
    jsonschema.validate(document, shipped("conflict"))
    for repair in document["repairs"]:
        jsonschema.validate(repair["resolution"], shipped("resolution"))


@pytest.mark.parametrize("words", FAILED)
def test_a_failure_keeps_the_contract(cli: Cli, cache: str, words: str) -> None:
    run = cli("resolve", *words.split(), "--json", XDG_CACHE_HOME=cache)
    assert run.code in (2, 3)
    jsonschema.validate(run.json(), shipped("error"))


@pytest.mark.parametrize("words", [ANSWERED[3], REFUSED[0]])
def test_the_same_request_gives_the_same_bytes(cli: Cli, cache: str, words: str) -> None:
    for form in ("text", "json"):
        argv = ("resolve", *words.split(), "--format", form)
        assert cli(*argv, XDG_CACHE_HOME=cache) == cli(*argv, XDG_CACHE_HOME=cache)


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize(
    "words", [f"resolve {ANSWERED[3]}", f"resolve {REFUSED[0]}", "facts cuda-archs"]
)
def test_the_order_of_hashes_changes_no_byte(cache: str, words: str) -> None:
    """In processes with different hash seeds, and once more with an index that was made under the last of them."""
    found = set()
    for seed, home in (("0", cache), ("1", cache), ("2", f"{cache}/seed-2")):
        env = os.environ | {"PYTHONHASHSEED": seed, "XDG_CACHE_HOME": home}
        run = subprocess.run(
            [sys.executable, "-m", "toolmatrix", *words.split(), "--json"],
            env=env,
            capture_output=True,
            check=False,
        )
        assert run.stdout, run.stderr.decode()
        found.add(run.stdout)
    assert len(found) == 1
