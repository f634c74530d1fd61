"""A request says itself: its words, read where nothing else is set, are the same request."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amount import examples
from toolmatrix.errors import CannotSay, NothingMatched, ToolmatrixError, UsageError
from toolmatrix.factbase.store import open_index
from toolmatrix.request import fields
from toolmatrix.request.fields import BadValue, Fields
from toolmatrix.request.read import RequestContext, read

WANTED = (
    *("tensorflow", "tensorflow-rocm", "torch", "jax", "onnxruntime", "cuda", "rocm", "cudnn"),
    *("gcc", "clang", "bazel", "python", "numpy", "protobuf", "driver", "libstdcxx"),
)
LISTED = {"arch": 2, "device": 2, "target": 3, "align": 2}


@lru_cache(maxsize=1)
def request_context(cache: str) -> RequestContext:
    return RequestContext(index=open_index((), {"XDG_CACHE_HOME": cache}))


def names(context: RequestContext, component: str) -> list[str]:
    return [str(name) for name in context.index.component(component).versions]


@st.composite
def lines(draw: Any, context: RequestContext) -> Fields:
    """Fields as somebody would write them: mostly releases, some names that are read in another way."""

    def spec(name: str) -> str:
        release = draw(st.sampled_from(names(context, name)))
        operator = draw(st.sampled_from(["==", "==", ">=", "<=", "~=", ""]))
        return f"{name}{operator}{release}" if operator else name

    known = [name for name in WANTED if name in context.index.header["components"]]
    wanted = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
    held = draw(st.lists(st.sampled_from(known), max_size=2, unique=True))
    targets = [*context.index.header["targets"]]
    choices = {
        "arch": [*names(context, "arch")],
        "device": [*names(context, "device"), "RTX 3090", "MI300X", "A100"],
        "target": [*targets, "aarch64", "amd64"],
        "align": known,
    }
    lists = {
        name: tuple(draw(st.lists(st.sampled_from(choices[name]), max_size=most, unique=True)))
        for name, most in LISTED.items()
        if draw(st.booleans())
    }
    texts = {
        "from_": ["", "source", "wheel", "pip"],
        "accelerator": ["", "none", "cuda", "rocm", "nvidia"],
        "distro": ["", *names(context, "distro"), "Ubuntu 22.04.3 LTS", "bookworm"],
        "cpu": ["", "", "", "neoverse-n1", "skylake"],
        "prefer": ["best-evidence", "newest", "oldest", "latest"],
        "min_evidence": ["unknown", "unknown", "tested", "derived"],
        "at": ["", "", "2021-06-30", "2025-01-01"],
    }
    chosen = {name: draw(st.sampled_from(values)) for name, values in texts.items()}
    return Fields().replace(
        wanted=tuple(spec(name) for name in wanted),
        with_=tuple(spec(name) for name in held),
        **lists,
        **chosen,
    )


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_reading_the_words_of_a_request_gives_the_request(cache: str, data: st.DataObject) -> None:
    context = request_context(cache)
    written = data.draw(lines(context))
    try:
        request = read(context.index, written)
    except ToolmatrixError:
        return
    assert context.read(request.arguments()) == request


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_the_words_of_fields_give_the_fields(cache: str, data: st.DataObject) -> None:
    written = data.draw(lines(request_context(cache)))
    assert Fields(**fields.parse_arguments(written.arguments())) == written


@pytest.mark.parametrize(
    "line",
    [
        "torch==2.6.0+cu124 numpy",
        "jax[cuda12] --with python==3.12",
        "tensorflow==2.6.5 --target x86,arm,amd --align tensorflow,python,cuda",
        "tensorflow-rocm",
        "torch --from wheel --device 6.1 --arch sm_60",
        "tensorflow==2.6.5 --target arm --cpu neoverse-n1 --distro ubuntu22.04",
        "numpy numpy==1.19.5 --prefer oldest --min-evidence tested --at 2023-01-01",
    ],
)
def test_the_law_holds_for(cache: str, line: str) -> None:
    context = request_context(cache)
    request = context.read(line.split())
    assert context.read(request.arguments()) == request


def test_words_leave_defaults_out(cache: str) -> None:
    context = request_context(cache)
    assert context.read(["numpy", "numpy"]).arguments() == ("numpy",)
    words = ("tensorflow==2.6.5", "--with", "gcc==9", "--target", "arm", "--accelerator", "none")
    shuffled = ("--accelerator=none", "--target=aarch64", "tensorflow==2.6.5", "--with=gcc==9")
    assert context.read(shuffled).arguments() == words


def test_what_is_set_around_holds_unless_words_say_otherwise(cache: str) -> None:
    context = request_context(cache).replace(fields=Fields(target=("arm",), prefer="oldest"))
    assert context.read(["tensorflow"]).targets == ("arm",)
    request = context.read(["tensorflow", "--target", "x86"])
    assert (request.targets, request.prefer) == (("x86",), "oldest")


@pytest.mark.parametrize(
    ("words", "kind", "message"),
    [
        (["cuda", "--lock", "x"], UsageError, "`--lock` is not an option of a request"),
        (["cuda", "--target"], BadValue, "bad value for `--target`"),
        (
            ["cuda", "--from", "wheel", "--from=source"],
            UsageError,
            "`--from wheel` and `--from source` contradict each other",
        ),
        (["cuda", "--target", "x87"], BadValue, "bad value for `target`"),
        (["cuda", "--prefer", "best"], BadValue, "bad value for `prefer`"),
        (["cuda", "--at", "2026-13-01"], BadValue, "bad value for `at`"),
        (["cuda", "--target", "riscv64"], CannotSay, "`--target riscv64`: no fact covers it"),
        (["cudda"], NothingMatched, "unknown component `cudda`"),
    ],
)
def test_words_that_cannot_be_read(
    cache: str, words: list[str], kind: type[ToolmatrixError], message: str
) -> None:
    with pytest.raises(ToolmatrixError) as caught:
        request_context(cache).read(words)
    assert (type(caught.value), caught.value.what) == (kind, message)
