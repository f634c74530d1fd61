"""Warnings about an image, reported beside the checks: faults that break none of its promises.

Each kind is a feature of inventories; what is the same in many files is one warning.
"""

from __future__ import annotations

from toolmatrix.finding import EVIDENCE, WARN
from toolmatrix.inventory import secrets
from toolmatrix.inventory.model import BY_VARIABLE, FOREIGN_PROGRAM, GONE, UNKEPT
from toolmatrix.judge.expectations import Expectation
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolmatrix.finding import Verdict
    from toolmatrix.inventory.model import Inventory, Seen

# Further files that one warning names.
_MOST_OTHERS = 8


class WarningKind(Value):
    """A kind of warning: the beginning of its features, its code, reason and help; `each` value may be a warning."""

    feature: str
    code: str
    reason: str
    help: str
    each: bool = False


_KINDS = (
    WarningKind(
        feature=FOREIGN_PROGRAM,
        code="TM412",
        reason="a program for another processor",
        help="take the program of the platform of the image, or leave it out",
    ),
    WarningKind(
        feature=UNKEPT,
        code="TM413",
        reason="compiled without what the variables of the image promise",
        help="build it again with the flags, or take the flags out of the variables",
    ),
    WarningKind(
        feature=GONE,
        code="TM414",
        reason="what its record lists is gone",
        help="install the package again, or remove it with its package manager",
        each=True,
    ),
    WarningKind(
        feature=BY_VARIABLE,
        code="TM415",
        reason="found by way of LD_LIBRARY_PATH alone",
        help="list its directory in /etc/ld.so.conf.d and run ldconfig: a process without the variable does not start",
    ),
    WarningKind(
        feature=secrets.FEATURE,
        code="TM416",
        reason="a secret that everybody can read who has the image",
        help="revoke it, and build with `RUN --mount=type=secret`, which leaves nothing behind",
        each=True,
    ),
)


def warnings(inventory: Inventory) -> Iterator[Verdict]:
    """A warning for each feature or value of each kind, with the instruction that brought the first of its files."""
    history = dict(inventory.history)
    for kind in _KINDS:
        for feature, several in inventory.features.items():
            if feature.partition(":")[0] == kind.feature:
                alike: dict[str, list[Seen]] = {}
                for one in several:
                    alike.setdefault(one.version if kind.each else "", []).append(one)
                name, _, about = feature.partition(":")
                check = Expectation(kind=EVIDENCE, name=about or name)
                for first, *others in alike.values():
                    yield check.verdict(
                        WARN,
                        kind.code,
                        first,
                        reason=kind.reason,
                        help=kind.help,
                        made_by=history.get(first.layer, ""),
                        others=others[:_MOST_OTHERS],
                    )
