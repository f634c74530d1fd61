"""Quoting for each place: what is quoted reads back as it was, what cannot be is refused."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmatrix.errors import RenderError
from toolmatrix.rendering import dockerfile, quote

HOSTILE = (
    "1.0; rm -rf /",
    "1.0\nRUN true",
    "$(id)",
    "`id`",
    "a\\",
    '"',
    "'",
    "a b",
    "\u2028",
    "\x1b[31m",
    "",
    "../..//x y",
)


@pytest.mark.parametrize("place", sorted(set(quote.PATTERNS) - {"condition"}))
@pytest.mark.parametrize("text", HOSTILE)
def test_no_place_without_quotes_takes_a_hostile_text(place: str, text: str) -> None:
    with pytest.raises(RenderError, match="a template cannot use this value"):
        quote.plain(place, text)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("release", "450.80.02"),
        ("release", "2.15.0.post1"),
        ("reference", "nvidia/cuda:11.2.2-cudnn8-devel-ubuntu20.04"),
        ("reference", "registry.example.org:5000/a/b@sha256:" + "0" * 64),
        ("flag", "-march=armv8-a+crc"),
        ("flag", "-gencode=arch=compute_86,code=sm_86"),
        ("flag", "--offload-arch=gfx90a:xnack+"),
        ("path", "/usr/lib/x86_64-linux-gnu"),
        ("url", "https://example.org/a-1.0+b/c_d~e?f=g"),
    ],
)
def test_each_place_takes_its_own(place: str, text: str) -> None:
    assert quote.plain(place, text) == text


@given(st.text())
def test_a_word_of_shell_is_one_word_or_refused(text: str) -> None:
    try:
        quoted = quote.sh(text)
    except RenderError:
        return
    assert "\n" not in quoted
    assert shlex.split(quoted) == [text]


@given(st.text())
def test_a_value_of_an_instruction_keeps_its_quotes(text: str) -> None:
    try:
        quoted = quote.value(text)
    except RenderError:
        return
    inside = quoted[1:-1].replace('\\"', "").replace("\\$", "")
    assert not set(inside) & set('"$\\')
    assert quoted.isprintable()


@given(st.text())
def test_a_comment_stays_on_its_line(text: str) -> None:
    try:
        quoted = quote.comment(text)
    except RenderError:
        return
    assert len(f"# {quoted}".splitlines()) == 1


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("{{ text }}", "a template writes an unquoted value"),
        ("{{ none | sh }}", "a template cannot use this value"),
        ("{{ missing | sh }}", "a template cannot use this value"),
        ("{{ missing.name | sh }}", "a template cannot be used"),
        ("{% for %}", "a template cannot be used"),
        ("{{ text.__class__.__mro__ | sh }}", "a template cannot be used"),
    ],
)
def test_what_a_template_may_not_do(
    source: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.j2").write_text(source)
    monkeypatch.setattr("toolmatrix.resources.templates_root", lambda: str(tmp_path))
    with pytest.raises(RenderError) as caught:
        dockerfile.render("one.j2", text="a")
    assert caught.value.what == what
