"""Every capture is shown as the laws of this room say; a law that it breaks is named."""

from __future__ import annotations

import pytest

from tests.amount import sampled
from tests.compilation import corpus
from tests.report.stage_laws import SHOWN


@pytest.mark.parametrize("case", sampled(corpus.cases(), every=6), ids=lambda case: case.name)
def test_a_capture_is_shown_as_it_should_be(case: corpus.Case) -> None:
    broken = SHOWN.broken_by(case)
    assert not broken, "\n".join(broken)
