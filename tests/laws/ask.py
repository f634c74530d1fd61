"""One matrix that is asked many times in this process, and its replies."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from time import process_time
from typing import Any, NamedTuple

from toolmatrix.api import answers
from toolmatrix.api.answers import NoAnswer, Resolved
from toolmatrix.errors import ToolmatrixError
from toolmatrix.factbase.index import Index
from toolmatrix.request.fields import Fields
from toolmatrix.request.read import RequestContext, read
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.solve.request import Request
from toolmatrix.solve.resolve import Resolution

YES, NO, CANNOT_SAY = 0, 1, 4
_KEPT = 4096

Versions = dict[str, dict[str, str]]
"""By target and component; of several codegen archs or devices all, without order."""


class Reply(NamedTuple):
    """What came of a request: an answer, a refusal, or an error about its words."""

    fields: Fields
    code: int
    outcome: Resolved | NoAnswer | None
    error: ToolmatrixError | None
    seconds: float

    @property
    def answer(self) -> Resolution | None:
        """The answer, if there is one."""
        return self.outcome.resolution if isinstance(self.outcome, answers.Resolved) else None

    @property
    def refusal(self) -> NoAnswer | None:
        """The refusal, if it is one."""
        return self.outcome if isinstance(self.outcome, answers.NoAnswer) else None

    @property
    def request(self) -> Request:
        """The request as it was read."""
        if isinstance(self.outcome, answers.NoAnswer):
            return self.outcome.refusal.request
        assert self.answer is not None
        return self.answer.request

    @property
    def versions(self) -> Versions:
        """What the answer chose."""
        return {} if self.answer is None else versions(self.answer)

    @property
    def document(self) -> Mapping[str, Any]:
        """What came of it as JSON."""
        assert self.outcome is not None
        return self.outcome.to_json()

    def __str__(self) -> str:
        kinds = {YES: "yes", NO: "no", CANNOT_SAY: "cannot say"}
        return kinds.get(self.code, f"exit code {self.code}")


def versions(answer: Resolution) -> Versions:
    """What an answer chose."""
    found: Versions = {}
    for target, choices in answer.targets.items():
        held: dict[str, list[str]] = {}
        for choice in choices:
            held.setdefault(choice.component, []).append(choice.version)
        found[target] = {
            name: " ".join(sorted({*several}) if name in SEVERAL else several)
            for name, several in held.items()
        }
    return found


def command(fields: Fields, name: str = "resolve") -> str:
    """The command line of a request."""
    return shlex.join(("toolmatrix", name, *fields.arguments()))


class Asker:
    """Asks one matrix, and remembers what it replied."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.context = RequestContext(index=index)
        self._replies: dict[tuple[str, ...], Reply] = {}

    def ask(self, fields: Fields) -> Reply:
        """The reply of `resolve`."""
        words = fields.arguments()
        if words not in self._replies:
            if len(self._replies) >= _KEPT:
                self._replies.clear()
            self._replies[words] = self._asked(fields)
        return self._replies[words]

    def solved(self, request: Request) -> Resolved | NoAnswer:
        """The reply to a request that no words may say."""
        return answers.resolve_request(self.context, request)

    def _asked(self, fields: Fields) -> Reply:
        start = process_time()
        try:
            outcome = answers.resolve_request(self.context, read(self.index, fields))
        except ToolmatrixError as error:
            return Reply(fields, error.exit_code, None, error, process_time() - start)
        return Reply(fields, outcome.exit_code, outcome, None, process_time() - start)
