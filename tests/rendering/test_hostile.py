"""Nothing that a lock, a recipe, a user or a matrix says gets out of its place, in any format and both dialects.

Each text is either refused by one clear error, or a real parser of the format finds it in its place, as it was, and
everything else as it is with a harmless text there.
"""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples, sampled, some
from tests.rendering import hostile, parsers
from tests.rendering.hostile import Leaf
from tests.rendering.jobs import index, job, lock
from toolmatrix.errors import RecipeError, RenderError, ToolmatrixError
from toolmatrix.factbase import lookups, yamlfile
from toolmatrix.lockfile import lock_file
from toolmatrix.recipes import read
from toolmatrix.rendering import formats, mirrors
from toolmatrix.rendering.dockerfile import DIALECTS
from toolmatrix.rendering.model import Job

NAMES = tuple(formats.known())
TARGET = "arm"
ALWAYS = ("x\nUSER root", "$(id)", "`id`", "a'b", 'a"b', "a\\", "1.0; rm -rf /")
"""What every place is tried with; of the other texts each place gets some, in turn."""
MORE = 4

LOOKED_UP = (".images[].probes[][]", ".images[].distro.manager")
"""Names by which something is looked up, and which stand in no file."""


@cache
def full(dialect: str) -> Job:
    """A job with one of everything; the modern dialect has a runtime image and locked packages."""
    modern = dialect == DIALECTS[0]
    text = hostile.RECIPE + (hostile.ARTIFACTS if modern else "")
    held = hostile.flagged("debian", TARGET)
    made = job(
        hostile.packaged(held, TARGET, "wheel==1") if modern else held,
        recipe=hostile.recipe(text),
        targets=(TARGET,),
        dialect=dialect,
        options=("debug",),
        snapshot="20261120T000000Z",
    )
    return made.replace(excluded=(("amd", "no answer"),))


def dialects(name: str) -> tuple[str, ...]:
    """The dialects that a format has."""
    return DIALECTS if name == "dockerfile" else DIALECTS[:1]


@cache
def living(name: str, dialect: str) -> tuple[Leaf, ...]:
    """One text of each kind that a format writes somewhere."""
    base = full(dialect)
    before = hostile.outcome(base, name)
    return tuple(
        leaf
        for kind, leaf in hostile.kinds(base).items()
        if kind not in LOOKED_UP
        and hostile.outcome(leaf.put(leaf.text + hostile.END), name) != before
    )


PLACES = [(name, dialect) for name in NAMES for dialect in dialects(name)]
EVERY = 12


@pytest.mark.parametrize(("name", "dialect"), PLACES)
def test_every_format_takes_the_job_as_it_is(name: str, dialect: str) -> None:
    assert hostile.outcome(full(dialect), name).files


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dialect"), sampled(PLACES, EVERY))
def test_every_text_of_a_job_stays_in_its_place(name: str, dialect: str) -> None:
    rest = cycle(text for text in hostile.TEXTS if text not in ALWAYS)
    faults = []
    assert len(living(name, dialect)) >= 3
    for leaf in living(name, dialect):
        for text in (*ALWAYS, *islice(rest, MORE)):
            sides = [
                {"first": leaf.text},
                *([] if leaf.kind.endswith("key") else [{"last": leaf.text}]),
            ]
            for side in sides[len(text) % len(sides) :][:1]:
                found = hostile.fault(leaf.put, name, leaf.kind, text, **side)
                if found:
                    faults.append(f"{leaf.kind} {text!r}: {found}")
    assert faults == []


ANY_TEXT = st.lists(
    st.one_of(st.sampled_from(hostile.TEXTS), st.text(max_size=4)), min_size=1, max_size=3
).map("".join)


@given(place=st.sampled_from(some(PLACES, EVERY)), pick=st.integers(0, 10**6), text=ANY_TEXT)
@settings(max_examples=examples(300))
def test_any_text_stays_in_its_place(place: tuple[str, str], pick: int, text: str) -> None:
    name, dialect = place
    leaves = living(name, dialect)
    leaf = leaves[pick % len(leaves)]
    assert hostile.fault(leaf.put, name, leaf.kind, text, first=leaf.text) == ""


# From what a user holds: a lock, a recipe, options


@pytest.fixture
def _one_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every lock has one digest, so that files differ only where a text stands."""
    monkeypatch.setattr(lock_file, "digest", lambda _lock: "sha256:" + "0" * 64)


def judged(make: Callable[[str], Job], text: str) -> list[str]:
    """What is wrong with the formats where a hostile text was given to `make`, if it was not refused there."""
    made = cache(make)
    try:
        made(text + hostile.END)
    except ToolmatrixError as error:
        found = hostile.unclear(error)
        return [found] if found else []
    return [f"{name}: {found}" for name in NAMES if (found := hostile.fault(made, name, "", text))]


def lock_kinds() -> dict[str, Leaf]:
    """One text of each kind of a lock, of the target that is rendered."""
    held = hostile.packaged(hostile.flagged("debian", TARGET), TARGET, "wheel==1")
    return {
        leaf.kind: leaf
        for leaf in hostile.leaves(held)
        if leaf.text not in ("arm", "linux/arm64", "default")
    }


@pytest.mark.slow
@pytest.mark.usefixtures("_one_digest")
@pytest.mark.parametrize("kind", sampled(sorted(lock_kinds()), every=4))
def test_no_text_of_a_lock_gets_out(kind: str) -> None:
    leaf = lock_kinds()[kind]

    recipe = hostile.recipe(hostile.RECIPE)

    def make(text: str) -> Job:
        return job(leaf.put(leaf.text + text), recipe=recipe, targets=(TARGET,))

    faults = [found for text in ALWAYS for found in judged(make, text)]
    assert faults == []


DOCUMENT = yaml.load(hostile.RECIPE + hostile.ARTIFACTS, Loader=yaml.BaseLoader)  # noqa: S506 - makes texts alone


def scalars(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of each text of a document."""
    if isinstance(node, dict):
        for name, part in node.items():
            yield from scalars(part, (*path, name))
    elif isinstance(node, list):
        for place, part in enumerate(node):
            yield from scalars(part, (*path, place))
    else:
        yield path


def replaced(path: tuple[Any, ...], text: str) -> str:
    """The recipe with more text at one place."""
    document = copy.deepcopy(DOCUMENT)
    node = document
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] += text
    return str(yaml.dump(document, allow_unicode=False, width=10_000))


RECIPE_PLACES = list(scalars(DOCUMENT))
WORDS = [path for path in RECIPE_PLACES if "run" not in path or "probes" in path]


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    sampled([(path,) for path in WORDS], every=3),
    ids=lambda path: ".".join(map(str, path)),
)
def test_no_text_of_a_recipe_gets_out(path: tuple[Any, ...]) -> None:
    def make(text: str) -> Job:
        root = yamlfile.parse(replaced(path, text).encode(), "mine.yaml", read.RECIPE_FILE)
        made = read.parse(root, index())
        return job(
            hostile.flagged("debian", TARGET), recipe=made, targets=(TARGET,), options=("debug",)
        )

    faults = [found for text in ALWAYS for found in judged(make, text)]
    assert faults == []


CODE = [path for path in RECIPE_PLACES if "run" in path and "probes" not in path]
BEYOND = (
    "x\nUSER root",
    "x\nEOF\nUSER root\n",
    "x\\",
    "x 'y",
    'x "y',
    "x; # y",
    "x <<EOF",
    "x |",
    "x &&",
    "x\u2028y",
)
"""Lines that reach beyond their end."""


@pytest.mark.parametrize("text", BEYOND)
@pytest.mark.parametrize("path", CODE, ids=lambda path: ".".join(map(str, path)))
def test_a_line_of_shell_that_reaches_beyond_its_end_is_refused(
    path: tuple[Any, ...], text: str
) -> None:
    root = yamlfile.parse(replaced(path, text).encode(), "mine.yaml", read.RECIPE_FILE)
    with pytest.raises(RecipeError):
        read.parse(root, index())


@pytest.mark.parametrize("text", sampled(hostile.TEXTS, every=3))
@pytest.mark.parametrize("choice", ["base", "mirror", "syntax_line", "option", "snapshot"])
def test_no_choice_of_a_user_gets_out(choice: str, text: str) -> None:
    held = hostile.flagged("debian", TARGET)
    base = held.environments["default"].targets[TARGET].components["base-image"].version
    recipe = hostile.recipe(hostile.RECIPE)

    def make(text: str) -> Job:
        given: dict[str, dict[str, Any]] = {
            "base": {"stand_ins": {base: "local/image" + text}},
            "mirror": {
                "mirrors": mirrors.parsed([f"https://example.org=https://m.invalid/{text}"])
            },
            "syntax_line": {"syntax_line": "docker/dockerfile:1" + text},
            "option": {"options": ("debug" + text,)},
            "snapshot": {"snapshot": "20261120T000000Z" + text},
        }
        return job(held, recipe=recipe, targets=(TARGET,), **given[choice])

    assert judged(make, text) == []


@pytest.mark.parametrize("text", sampled(hostile.TEXTS, every=3))
def test_no_checksum_of_a_matrix_gets_out(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {"sha256": "0" * 64 + text}
    monkeypatch.setattr(lookups, "row", lambda _index, name: ((name,), cells))
    with pytest.raises(RenderError):
        formats.known()["dockerfile"].files(job(lock("tensorflow"), targets=("x86",)))


# By real shells


@pytest.mark.process
@pytest.mark.parametrize("text", sampled(hostile.TEXTS, every=3))
def test_a_shell_reads_variables_as_they_are(text: str, tmp_path: Path) -> None:
    leaf = hostile.kinds(full("modern"))[".images[].locked.flags.env{}"]
    try:
        made = formats.known()["env"].files(leaf.put(text))
    except RenderError:
        return
    (tmp_path / "env.sh").write_text(made[f"{TARGET}.env.sh"])
    found = subprocess.run(
        ["sh", "-c", '. ./env.sh; printf %s "$CUDAHOSTCXX"'],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert (found.stdout.decode(), found.stderr) == (text, b"")
    assert [path.name for path in tmp_path.iterdir()] == ["env.sh"]


@pytest.mark.process
@pytest.mark.parametrize("text", sampled(hostile.TEXTS, every=3))
def test_a_shell_reads_the_script_of_a_feature(text: str, tmp_path: Path) -> None:
    for kind in (".images[].locked.flags.env{}", ".images[].device_env{}", ".images[].distro.os"):
        leaf = hostile.kinds(full("modern"))[kind]
        try:
            made = formats.known()["devcontainer-feature"].files(leaf.put(text))
        except RenderError:
            continue
        (script,) = [found for path, found in made.items() if path.endswith("install.sh")]
        # It is read and not run: it would install.
        told = subprocess.run(
            ["bash", "-n"], input=script, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (told.returncode, told.stderr) == (0, "")


STUB = """#!/bin/sh
for word; do printf '%s\\0' "$word"; done >> "$RECORD"
echo 1
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "text", sampled([*hostile.TEXTS, "$(touch made)", "`touch made`", "; touch made"], every=2)
)
def test_a_check_hands_words_to_commands_as_they_are(text: str, tmp_path: Path) -> None:
    leaf = next(
        leaf
        for leaf in hostile.leaves(full("classic"))
        if leaf.kind == ".images[].probes[][].run[]" and leaf.text == "-dumpversion"
    )
    try:
        made = formats.known()["dockerfile"].files(leaf.put(text))
    except RenderError:
        return
    (tmp_path / "bin").mkdir()
    # The word is handed to gcc alone; the real drivers of this machine would take a second to find their devices.
    for program in ("gcc", "hipcc", "nvcc"):
        (tmp_path / "bin" / program).write_text(STUB if program == "gcc" else "#!/bin/sh\nexit 1\n")
        (tmp_path / "bin" / program).chmod(0o755)
    (tmp_path / "work").mkdir()
    (tmp_path / "check.sh").write_text(made[f"{TARGET}.check.sh"])
    subprocess.run(
        ["sh", tmp_path / "check.sh"],
        cwd=tmp_path / "work",
        env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "RECORD": f"{tmp_path}/record"},
        capture_output=True,
        check=False,
    )
    assert text in (tmp_path / "record").read_bytes().decode().split("\0")
    assert list((tmp_path / "work").iterdir()) == []


def test_the_parsers_tell_what_does_something_from_what_is_text() -> None:
    assert parsers.shell("a '$(id)' \"$(id)\" `id`;b\\;") == [
        "a",
        "$(id)",
        f"{parsers.ACTIVE}$(id)",
        f"{parsers.ACTIVE}`id{parsers.ACTIVE}`",
        f"{parsers.ACTIVE};",
        "b;",
    ]
    assert parsers.of_dockerfile("FROM a\nUSER root\n") != parsers.of_dockerfile(
        "FROM a\n# USER root\n"
    )
    with pytest.raises(parsers.Broken):
        parsers.shell("'open")
