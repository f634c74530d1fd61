"""The small matrix, compiled and loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.judging import small
from toolmatrix.factbase.load import load
from toolmatrix.factbase.store import open_index
from toolmatrix.judging import sweep
from toolmatrix.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.model import Matrix
    from toolmatrix.finding import Finding


class Small(Value):
    """One small matrix in every form."""

    path: str
    index: Index
    matrix: Matrix

    def outcomes(self) -> list[sweep.ReleaseOutcome]:
        """What became of each release."""
        luck: dict[str, int] = {}
        return [sweep.judge_release(self.index, one, luck) for one in sweep.releases(self.index)]

    def answers(self) -> list[Finding]:
        """What has no answer."""
        promised = sweep.promised(self.index)
        return list(sweep.unanswered(self.outcomes(), promised, sweep.first_framework(self.index)))


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Small]:
    """`make(("old", "new"), facts="...")`: the small matrix with changes."""

    def built(*changes: tuple[str, str], facts: str = "") -> Small:
        path = small.write(tmp_path, *changes, facts=facts)
        return Small(path=path, index=open_index([path], {}), matrix=load([path]))

    return built
