"""A minimum of evidence: the reasons by which answers are refused lose none that is known well enough."""

from __future__ import annotations

from typing import Any

import pytest

from tests import matrix
from tests.cli.conftest import SMALL
from tests.laws.requests import Draw
from toolmatrix.errors import ToolmatrixError
from toolmatrix.factbase import evidence
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.store import open_index
from toolmatrix.request.read import RequestContext, read
from toolmatrix.solve import resolve
from toolmatrix.solve.demand import Demand
from toolmatrix.solve.parts import Variable
from toolmatrix.solve.request import Request
from toolmatrix.solve.resolve import Resolution, attempt
from toolmatrix.solve.support import TargetAnswer, targets_of

REQUESTS = 25
ROUNDS = 60
"""Answers that are refused one by one before a request is left out."""
LEAST = ("derived", "stated", "tested", "artifact")


class TooManyError(Exception):
    """More answers than are worth trying."""


@pytest.fixture(scope="module")
def index() -> Index:
    return open_index([str(SMALL / "matrix.yaml")], {})


def asked(index: Index, draw: Draw, number: int, least: str) -> Request | None:
    """The request of a number, if its words make one."""
    try:
        return read(index, draw.request(number).replace(min_evidence=least))
    except ToolmatrixError:
        return None


def answer(index: Index, request: Request) -> tuple[int, ...] | None:
    """What is chosen, if there is an answer, which is worth what was asked for."""
    result = attempt(index, request)
    if not isinstance(result, Resolution):
        return None
    assert evidence.rank(result.evidence) >= evidence.rank(request.min_evidence)
    return result.values


@pytest.mark.parametrize("least", LEAST)
def test_a_reason_refuses_what_every_answer_of_it_is_refused_for(
    index: Index, monkeypatch: pytest.MonkeyPatch, least: str
) -> None:
    draw = Draw(index, 7)
    # Words that make no request have no answer to compare.
    requests = filter(None, (asked(index, draw, number, least) for number in range(REQUESTS)))
    answers = {request: answer(index, request) for request in requests}
    rounds = 0

    def alone(self: Demand, judged: TargetAnswer, _: Variable) -> dict[int, int]:
        nonlocal rounds
        rounds += 1
        if rounds > ROUNDS:
            raise TooManyError
        return self.whole(judged)

    # Without reasons, each answer that is known too little is refused by itself.
    monkeypatch.setattr(Demand, "reason", alone)
    compared = []
    for request, reasoned in answers.items():
        rounds = 0
        try:
            assert answer(index, request) == reasoned, request.arguments()
        except TooManyError:
            continue
        compared.append((reasoned is not None, rounds > 0))
    assert (True, True) in compared or (False, True) in compared
    assert (True, False) in compared


# What was refused one release at a time took hundreds of answers, and half a minute.
@pytest.mark.parametrize(
    "line",
    [
        "ml-dtypes python==3.14 jax --target=amd,arm --from=wheel --min-evidence=stated",
        "torchvision python --with numpy --target amd --min-evidence derived",
        "sglang-kernel cuda python --min-evidence stated",
    ],
)
def test_few_answers_are_refused_before_one_is_known_well_enough(
    monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    answers = 0

    def counted(*given: Any) -> Any:
        nonlocal answers
        answers += 1
        return targets_of(*given)

    monkeypatch.setattr(resolve, "targets_of", counted)
    context = RequestContext(index=matrix.index())
    attempt(context.index, context.read(line.split()))
    assert 0 < answers <= ROUNDS
