"""Laws of captures: what must hold of every log of the corpus, or of every one of some kind.

A test runs every law on one capture and names each that broke, so that a capture is one case however many laws there
are. The modules of this package declare the laws of stages, `tests/report/stage_laws.py` those of how they are shown.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.compilation.corpus import Case


class Law(NamedTuple):
    """A law: its name, the captures that it speaks of, and the check, which raises where the law does not hold."""

    name: str
    speaks_of: Callable[[Case], object]
    check: Callable[[Case], None]

    def broken_by(self, case: Case) -> str:
        """Where and how a capture breaks this law; empty where it keeps it.

        Whatever is raised is told and not passed on, so that the other laws are judged as well.
        """
        try:
            if self.speaks_of(case):
                self.check(case)
        except Exception as error:  # noqa: BLE001
            shown = traceback.format_exception(error)
            return f"{case.name} breaks {self.name}\n{''.join(shown[-2:])}"
        return ""


class Laws(list[Law]):
    """Laws in the order in which they were declared."""

    def of(
        self, speaks_of: Callable[[Case], object]
    ) -> Callable[[Callable[[Case], None]], Callable[[Case], None]]:
        """A decorator that declares a law of certain captures; the function's name is what it says."""

        def declare(check: Callable[[Case], None]) -> Callable[[Case], None]:
            self.append(Law(check.__name__, speaks_of, check))
            return check

        return declare

    def broken_by(self, case: Case) -> list[str]:
        """The laws that a capture breaks, each with where and how."""
        return [broken for law in self if (broken := law.broken_by(case))]

    def idle(self, cases: Iterable[Case]) -> list[str]:
        """The laws that speak of none of these captures and so hold of nothing."""
        cases = list(cases)
        return [law.name for law in self if not any(map(law.speaks_of, cases))]


LAWS = Laws()
