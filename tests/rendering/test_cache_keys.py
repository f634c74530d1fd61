"""What a build is cached by: only what is installed and built, and neither a date nor a digest of a lock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

import dockerfile
import pytest

from tests.rendering import hostile
from tests.rendering.jobs import LOCKS, job, lock
from toolmatrix.lockfile.model import Lock, LockedClosure
from toolmatrix.rendering import formats
from toolmatrix.rendering.dockerfile import DIALECTS

CHECKED = re.compile(r"\.check\.sh$")
BOUND = re.compile(r"type=bind,source=([^,]+),")
FROM = "--from="


def keys(text: str, context: Mapping[str, str]) -> dict[str, list[str]]:
    """By stage a key for each RUN but those of checks: of what stands before it, files and stages that it takes in."""
    stages: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    name = ""
    for one in dockerfile.parse_string(text):
        words = (one.cmd, *one.flags, *one.value, *(held.content for held in one.heredocs))
        if one.cmd == "FROM":
            start, name = one.value[0], one.value[-1]
            stages[name] = digest(stages.get(start, start))
            found[name] = []
            continue
        taken = [stages[flag.removeprefix(FROM)] for flag in one.flags if flag.startswith(FROM)]
        if one.cmd in ("COPY", "ADD") and not taken:
            taken = [context[word] for word in one.value[:-1] if "://" not in word]
        taken += [context[file] for flag in one.flags for file in BOUND.findall(flag)]
        stages[name] = digest(stages[name], *words, *taken)
        if one.cmd == "RUN" and not any(CHECKED.search(word) for word in one.value):
            found[name].append(stages[name])
    return found


def digest(*texts: str) -> str:
    """One digest of some texts."""
    return sha256("\0".join(texts).encode()).hexdigest()


def rendered(held: Lock, recipe: str, dialect: str, version: str) -> dict[str, str]:
    """Dockerfiles and what they take in, of one release of the program."""
    made = job(held, recipe=recipe, dialect=dialect).replace(version=version)
    if recipe == "toolchain":
        # With every package in a file of requirements, which a step takes in.
        images = (one.replace(closure=packages(held, one.target)) for one in made.images)
        made = made.replace(images=tuple(images))
    files = {
        path: text
        for name in ("dockerfile", "requirements")
        for path, text in formats.known()[name].files(made).items()
    }
    return {**files, "toolmatrix.lock": made.digest}


def packages(held: Lock, target: str) -> LockedClosure | None:
    """Some Python packages of a target."""
    return hostile.packaged(held, target).targets[target].closure


def moved(held: Lock) -> Lock:
    """The same answer of a later matrix."""
    return held.replace(matrix_date="2030-01-01", matrix_digest="sha256:" + "9" * 64)


CASES = [*((name, "toolchain") for name in LOCKS), ("tensorflow", "tensorflow")]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("name", "recipe"), CASES)
def test_a_later_matrix_and_program_build_nothing_anew(
    name: str, recipe: str, dialect: str
) -> None:
    held = lock(name)
    before = rendered(held, recipe, dialect, "1.0")
    after = rendered(moved(held), recipe, dialect, "2.0")
    assert before["toolmatrix.lock"] != after["toolmatrix.lock"]
    files = [path for path in before if path.endswith(".Dockerfile")]
    for path in files:
        wanted = keys(before[path], before)
        assert before[path] != after[path]
        assert keys(after[path], after) == wanted
        assert all(wanted[stage] for stage in wanted if stage != "tools")


def test_the_key_of_a_run_is_of_all_that_stands_before_it() -> None:
    text = (
        'FROM a AS one\nCOPY x /x\nRUN make\nFROM one AS two\nRUN ["sh", "x.check.sh"]\nRUN all\n'
    )
    other = text.replace("FROM one", "FROM b AS three\nCOPY --from=one /x /x\nRUN all\nFROM one")
    first = keys(text, {"x": "1"})
    assert [len(runs) for runs in first.values()] == [1, 1]
    second = keys(text, {"x": "2"})
    assert not {*first["one"], *first["two"]} & {*second["one"], *second["two"]}
    assert keys(other, {"x": "1"})["three"] != keys(other, {"x": "2"})["three"]
    bound = "FROM a AS one\nRUN --mount=type=bind,source=x,target=/x make\n"
    assert keys(bound, {"x": "1"}) != keys(bound, {"x": "2"})
