"""The laws hold for a sample of requests; `python -m tests.laws` tries any number."""

from __future__ import annotations

import pytest

from tests import matrix
from tests.amount import examples
from tests.laws import shrink
from tests.laws.ask import Asker
from tests.laws.laws import LAWS, broken
from tests.laws.requests import Draw
from toolmatrix.request.fields import Fields, parse_arguments

SEED = 7
CHECKED = ("facts-hold", "second-engine", "brings-what-it-requires")
ONCE_BROKEN = [
    ("met-already", "torchaudio==2.0.0"),
    ("met-already", "xformers --arch=gfx1011 --distro=debian13"),
    ("met-already", "python numpy>=1.18.2,<=2.0.2 --target=x86 --prefer=oldest"),
    (
        "met-already",
        "diffusers --from=wheel --target=x86 --accelerator=none --min-evidence=artifact",
    ),
    ("ways-out", "torch --with=python<=2.7"),
    ("own-pins-in-words", "tokenizers --target=arm"),
    (
        "each-target",
        "keras==2.2.1 --with=jaxlib==0.10.0 --from=source --target=x86,arm --arch=sm_86",
    ),
    ("each-target", "torch --target=amd,arm --with=triton"),
    ("each-target", "cudnn==9.25.0.15 --target=x86,arm"),
    (
        "own-pins",
        "wrapt<=1.13.2 scipy==1.2.2 --with=tensorflow --with=apache-tvm==0.14.0 --from=source",
    ),
    ("one-more", "tensorrt tritonserver --target=arm"),
    ("distro-is-with", "base-image --distro=debian12 --at=2022-11-01"),
    ("distro-is-with", "numba-cuda --target=arm,x86 --distro=manylinux2010"),
    ("worth-its-weakest", "torch"),
    ("worth-its-weakest", "torchaudio --with=ml-dtypes"),
    ("worth-its-weakest", "tensorrt-llm"),
    ("brings-what-it-requires", "transformers==4.57.1 datasets==5.2.0"),
    ("brings-what-it-requires", "tensorflow==2.13 pydantic==2.5 --from=wheel"),
    ("brings-what-it-requires", "tf2onnx==1.14 tensorflow==2.16"),
    ("brings-what-it-requires", "mlflow==2.15 datasets==5.2"),
    # What is left out may itself refuse a package that the request bounds.
    ("brings-what-it-requires", "gradio packaging<=20.3"),
]
"""The smallest requests by which laws were found broken, before what broke them was mended."""


@pytest.fixture(scope="module")
def asker() -> Asker:
    """The built-in matrix."""
    return Asker(matrix.index())


@pytest.mark.slow
@pytest.mark.parametrize("law", CHECKED)
def test_no_request_breaks(asker: Asker, law: str) -> None:
    draw = Draw(asker.index, SEED)
    for number in range(examples(160)):
        one = next(broken(asker, draw.request(number), (law,)), None)
        assert one is None, shrink.smallest(asker, one)


@pytest.mark.parametrize(("law", "line"), ONCE_BROKEN)
def test_what_was_mended_stays_so(asker: Asker, law: str, line: str) -> None:
    one = next(broken(asker, Fields(**parse_arguments(line.split())), (law,)), None)
    assert one is None, one


def test_a_reason_is_told_where_a_release_was_withdrawn_or_is_of_later(asker: Asker) -> None:
    for line, word in (
        ("torchaudio>=2.0.0,<2.0.1", "was withdrawn"),
        ("torch python==3.12 --from=wheel --at=2023-10-20", "was not yet released on 2023-10-20"),
    ):
        assert word in str(asker.ask(Fields(**parse_arguments(line.split()))).refusal)


def test_every_law_is_tried() -> None:
    assert set(CHECKED) <= set(LAWS)
