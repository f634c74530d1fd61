"""A diagnosis: the causes found in a log, the components involved, and the way out. A judge makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolmatrix.finding import Finding
from toolmatrix.logs.log import Followed
from toolmatrix.value import Value

if TYPE_CHECKING:
    from toolmatrix.finding import Words


class Involved(Value):
    """One side of a failure: a component or what stands for one, its version where the log tells it, and where.

    `needed` is the library, header or symbol that is asked of it, `wanted` what the lock holds of it, and `bring` the
    packages that would bring it.
    """

    component: str
    version: str = ""
    where: str = ""
    needed: str = ""
    wanted: str = ""
    bring: str = ""


class Fix(Value):
    """A request that was solved, the releases that it gives, and the commands that install its wheels."""

    request: tuple[str, ...]
    answer: Mapping[str, str]
    install: tuple[str, ...] = ()


class Cause(Finding):
    """One diagnosed failure: the components involved, the line of the log, and how to mend it.

    Its code is that of the signature that matched. `allowed` are releases of the first side that the facts let go with
    the second, as far as they are known. `follows` is the line of what it is a consequence of, 0 for a cause.
    """

    code: str
    signature: str
    what: str
    between: tuple[Involved, ...]
    text: str
    count: int
    do: str
    source: str
    evidence: str
    fix: Fix | None = None
    instead: Fix | None = None
    allowed: tuple[str, tuple[str, ...]] | None = None
    follows: int = 0

    def sentence(self, _words: Words) -> str:
        return f"{self.what}: {self.actual}"

    def help(self) -> str:
        return self.do


class Diagnosis(Value):
    """Causes, the worst and earliest first, then what follows from them; `left` are causes beyond the limit."""

    subject: str
    lines: int
    causes: tuple[Cause, ...]
    followed: Followed | None = None
    following: int = 0
    left: int = 0
    components: Mapping[str, tuple[str, ...]] = {}
