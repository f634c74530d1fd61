"""What is not plain YAML of the allowed shapes ends in one error with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from tests.factbase.small import said
from toolmatrix.errors import MatrixError
from toolmatrix.factbase import yamlfile

SHAPE = "`toolmatrix rule TM903` shows the layout of matrix files and the paths of their schemas"


def refusal(data: bytes) -> str:
    with pytest.raises(MatrixError) as caught:
        yamlfile.parse(data, "m.yaml")
    return said(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: 1\nb: *x\n",
            "m.yaml:2:4: aliases are not allowed; expected the value itself; found `*x`; " + SHAPE,
        ),
        (
            "a: &x 1\n",
            "m.yaml:1:4: anchors and tags are not allowed; expected plain YAML; found `x`; "
            + SHAPE,
        ),
        (
            "a: &x [1]\n",
            "m.yaml:1:4: anchors and tags are not allowed; expected plain YAML; found `x`; "
            + SHAPE,
        ),
        (
            'a:\n  - !!python/object/apply:os.system ["true"]\n',
            "m.yaml:2:5: anchors and tags are not allowed; expected plain YAML; "
            "found `tag:yaml.org,2002:python/object/apply:os.system`; " + SHAPE,
        ),
        (
            "a: !!str 1\n",
            "m.yaml:1:4: anchors and tags are not allowed; expected plain YAML; "
            "found `tag:yaml.org,2002:str`; " + SHAPE,
        ),
        (
            "a: !own {b: 1}\n",
            "m.yaml:1:4: anchors and tags are not allowed; expected plain YAML; found `!own`; "
            + SHAPE,
        ),
        (
            "a: 1\nb: 2\na: 3\n",
            "m.yaml:3:1: a key is used twice; expected each key once; found `a`; keep one of the two",
        ),
        (
            "a: {b: 1, b: 2}\n",
            "m.yaml:1:11: a key is used twice; expected each key once; found `b`; keep one of the two",
        ),
        (
            "? [a]\n: 1\n",
            "m.yaml:1:3: a key must be text; expected text; found a list or mapping; " + SHAPE,
        ),
        (
            "a: 1\n---\nb: 2\n",
            "m.yaml:2:1: a file must contain one document; expected one document; found `---`; "
            + SHAPE,
        ),
        ("", "m.yaml:1:1: the matrix file is empty; expected `schema: ...`; found ; " + SHAPE),
        (
            "# a comment\n",
            "m.yaml:1:1: the matrix file is empty; expected `schema: ...`; found ; " + SHAPE,
        ),
        (
            "a: [1,\n  2\n",
            "m.yaml:3:1: the matrix file is not YAML; expected ; "
            "found did not find expected ',' or ']'; " + SHAPE,
        ),
        (
            "a:\n\t- 1\n",
            "m.yaml:2:1: the matrix file is not YAML; expected ; "
            "found found character that cannot start any token; " + SHAPE,
        ),
        (
            "a: 'x\n",
            "m.yaml:2:1: the matrix file is not YAML; expected ; "
            "found found unexpected end of stream; " + SHAPE,
        ),
        (
            "a: x\nb: y\x07z\n",
            (
                "m.yaml:2:5: the matrix file contains a control character; expected printable text; "
                "found U+0007; remove it"
            ),
        ),
        (
            "[" * 100_000,
            "m.yaml:1:33: the matrix file is nested too deeply; expected at most 32 levels; found more; "
            + SHAPE,
        ),
        (
            "{a: " * 100_000,
            "m.yaml:1:129: the matrix file is nested too deeply; expected at most 32 levels; "
            "found more; " + SHAPE,
        ),
        (
            "- " * 100_000,
            "m.yaml:1:65: the matrix file is nested too deeply; expected at most 32 levels; found more; "
            + SHAPE,
        ),
    ],
)
def test_what_is_refused_and_where(text: str, message: str) -> None:
    assert refusal(text.encode()) == message


def test_a_file_that_is_not_utf_8() -> None:
    assert refusal("a: 1\nb: \u00e4\u00e4".encode() + b"\xff\n") == (
        "m.yaml:2:6: the matrix file is not UTF-8; expected UTF-8 text; found byte 0xff; "
        "save the file as UTF-8"
    )


def test_depth_may_be_as_deep_as_the_limit() -> None:
    limit = yamlfile.DEPTH_LIMIT
    yamlfile.parse(b"[" * limit + b"]" * limit, "m.yaml")


def test_every_value_knows_its_place_and_stays_as_written() -> None:
    root = yamlfile.parse(b"\xef\xbb\xbfa: 2026-01-01\nb: [3.10, {c: yes}]\n", "m.yaml")
    fields = root.mapping("it")
    items = fields["b"].sequence("it")
    assert fields["a"].text == "2026-01-01"
    assert (items[0].text, str(items[0].where)) == ("3.10", "m.yaml:2:5")
    assert (items[1].mapping("it")["c"].text, str(items[1].where)) == ("yes", "m.yaml:2:11")
    assert str(items[1].keys["c"]) == "m.yaml:2:12"


def file_refusal(path: Path) -> str:
    with pytest.raises(MatrixError) as caught:
        yamlfile.read(str(path))
    return said(caught.value).replace(f"{path.parent}/", "")


def test_a_file_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yamlfile, "SIZE_LIMIT", 1 << 20)
    with (tmp_path / "m.yaml").open("wb") as stream:
        stream.truncate(3 << 20)
    assert file_refusal(tmp_path / "m.yaml") == (
        "m.yaml: the matrix file is too large; expected at most 1 MiB; found more; "
        "split it, and list the parts under `files:`"
    )


def test_a_file_that_is_missing_or_a_directory(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    help = "check the path given by --matrix, `matrix:` or `files:`"
    assert file_refusal(tmp_path / "m.yaml") == (
        "m.yaml: the matrix file cannot be read; expected a readable file; "
        f"found No such file or directory; {help}"
    )
    assert file_refusal(tmp_path / "folder") == (
        f"folder: the matrix file cannot be read; expected a readable file; found Is a directory; {help}"
    )


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "m.yaml").write_text("a: 1")
    monkeypatch.setattr("builtins.open", refuse)
    assert file_refusal(tmp_path / "m.yaml") == (
        "m.yaml: the matrix file cannot be read; expected a readable file; found Permission denied; "
        "check the path given by --matrix, `matrix:` or `files:`"
    )


# what values may be


@pytest.mark.parametrize(
    ("text", "read", "message"),
    [
        (
            "[1]",
            "mapping",
            "1:1: it must be a mapping; expected `key: value` pairs; found a list; ",
        ),
        ("x", "mapping", "1:1: it must be a mapping; expected `key: value` pairs; found `x`; "),
        ("{a: 1}", "sequence", "1:1: it must be a list; expected a list; found a mapping; "),
        ("[]", "string", "1:1: it must be text; expected text; found a list; "),
        ("''", "string", "1:1: it must be text; expected text; found nothing; "),
        ("yes", "flag", "1:1: it is not a known word; expected true | false; found `yes`; "),
        (
            "1.0",
            "integer",
            "1:1: it must be a whole number; expected a whole number; found `1.0`; ",
        ),
        (
            "--1",
            "integer",
            "1:1: it must be a whole number; expected a whole number; found `--1`; ",
        ),
        (
            "\u00b2",
            "integer",
            "1:1: it must be a whole number; expected a whole number; found `\u00b2`; ",
        ),
        (
            "9" * 5000,
            "integer",
            f"1:1: it must be a whole number; expected a whole number; found `{'9' * 80}...`; ",
        ),
        (
            '"a\\e[31m\\nb"',
            "integer",
            "1:1: it must be a whole number; expected a whole number; found `a\\x1b[31m\\nb`; ",
        ),
    ],
)
def test_values_of_another_kind(text: str, read: str, message: str) -> None:
    node = yamlfile.parse(text.encode(), "m.yaml")
    with pytest.raises(MatrixError) as caught:
        getattr(node, read)("it")
    assert said(caught.value) == "m.yaml:" + message + SHAPE


def test_whole_numbers_and_flags() -> None:
    root = yamlfile.parse(b"[-12, 7, true, false]", "m.yaml").sequence("it")
    assert [root[0].integer("n"), root[1].integer("n")] == [-12, 7]
    assert [root[2].flag("f"), root[3].flag("f")] == [True, False]


# anything at all

pieces = st.sampled_from(
    [
        *"[]{}:,-?&*!|>'\"%@`#\n\t ",
        "a",
        "- ",
        ": ",
        "? ",
        "---\n",
        "...\n",
        "!!",
        "\x00",
        "\ufeff",
        "\u2028",
    ]
)


@pytest.mark.slow
@settings(max_examples=examples(500))
@given(st.lists(pieces, max_size=40).map("".join))
def test_text_of_yaml_pieces_is_read_or_refused(text: str) -> None:
    _read_or_refuse(text.encode())


@settings(max_examples=examples(300))
@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda text: text.encode())))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    _read_or_refuse(data)


def _read_or_refuse(data: bytes) -> None:
    try:
        yamlfile.parse(data, "m.yaml")
    except MatrixError as error:
        message = said(error)
    else:
        return
    assert message.startswith("m.yaml")
    assert not message.endswith("; ")
