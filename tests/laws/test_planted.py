"""Each law finds what is planted: an answer with another release, evidence or exit code than the solver gave it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import matrix
from tests.laws.ask import NO, YES, Asker, Reply
from tests.laws.laws import LAWS
from toolmatrix.api.answers import Resolved
from toolmatrix.request.fields import Fields, parse_arguments

Doctor = Callable[[Asker, Reply], Reply]

LINE = "torch==2.6.0 numpy --from=wheel --target=x86"


@pytest.fixture(scope="module")
def asker() -> Asker:
    """The built-in matrix."""
    return Asker(matrix.index())


def released(component: str, version: str) -> Doctor:
    """Another release of a component."""

    def doctored(asker: Asker, reply: Reply) -> Reply:
        assert reply.answer is not None
        targets = {
            target: tuple(
                choice.replace(version=version) if choice.component == component else choice
                for choice in choices
            )
            for target, choices in reply.answer.targets.items()
        }
        answer = reply.answer.replace(targets=targets)
        return reply._replace(outcome=Resolved(asker.context, answer))

    return doctored


def asked(line: str) -> Doctor:
    """The answer of one request for that of another."""

    def doctored(asker: Asker, reply: Reply) -> Reply:
        assert reply.answer is not None
        other = asker.ask(Fields(**parse_arguments(line.split()))).request
        return reply._replace(outcome=Resolved(asker.context, reply.answer.replace(request=other)))

    return doctored


def exits(code: int) -> Doctor:
    """Another exit code."""
    return lambda _, reply: reply._replace(code=code)


def worth(evidence: str) -> Doctor:
    """Another weakest evidence."""

    def doctored(asker: Asker, reply: Reply) -> Reply:
        assert reply.answer is not None
        answer = reply.answer.replace(evidence=evidence)
        return reply._replace(outcome=Resolved(asker.context, answer))

    return doctored


@pytest.mark.parametrize(
    ("law", "line", "doctor"),
    [
        ("facts-hold", LINE, released("python", "2.7")),
        ("second-engine", LINE, asked("torch==2.6.0 python==2.7 --from=wheel --target=x86")),
        ("own-pins", LINE, released("python", "2.7")),
        ("own-pins-in-words", LINE, released("python", "2.7")),
        ("one-more", LINE, exits(NO)),
        ("met-already", LINE, released("numpy", "1.26.4")),
        ("each-target", "torch --target=x86,arm --from=wheel", released("torch", "2.6.0")),
        ("commands-agree", LINE, exits(NO)),
        ("worth-its-weakest", LINE, worth("ran")),
        ("distro-is-with", f"{LINE} --distro=ubuntu22.04", exits(NO)),
    ],
)
def test_a_law_breaks_where_an_answer_is_doctored(
    asker: Asker, law: str, line: str, doctor: Doctor
) -> None:
    reply = asker.ask(Fields(**parse_arguments(line.split())))
    assert reply.code == YES
    assert list(LAWS[law](asker, doctor(asker, reply)))
