"""What an image says of itself by the lock that lies inside it, and what another lock makes of that."""

from __future__ import annotations

from toolmatrix.errors import LockError
from toolmatrix.finding import FAIL, PASS
from toolmatrix.inventory.model import LOCK
from toolmatrix.judge import expectations, images
from toolmatrix.lock import read, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolmatrix.facts.index import Index
    from toolmatrix.finding import Verdict
    from toolmatrix.inventory.model import Inventory
    from toolmatrix.lock.model import Lock

_FOLLOWS = "the lock in the image wants it so"


def lock(inventory: Inventory) -> Lock:
    """The lock inside an image. Raises LockError where there is none, or one that was edited."""
    if not inventory.lock:
        raise LockError(
            "there is no lock in it",
            expected=f"/{LOCK}, as in a rendered image",
            help="name a lock with `--lock FILE`, or say what is wanted: `--expect python==3.11.*`",
        )
    return read.parse(inventory.lock.encode(), "/" + LOCK)


def told(
    verdicts: Iterable[Verdict], inventory: Inventory, index: Index, target: str
) -> list[Verdict]:
    """The verdicts; what is wrong only since the image follows a lock of its own says so, and asks for nothing."""
    found = list(verdicts)
    try:
        own = lock(inventory)
    except LockError:
        return found
    held = own.held.get(target)
    if held is None or not any(one.word == FAIL for one in found):
        return found
    wanted = expectations.of_lock(index, held, write.digest(own))
    follows = {
        (one.kind, one.name) for one in images.judge(inventory, wanted, index) if one.word == PASS
    }
    return [
        one.replace(reason=_FOLLOWS, help="")
        if one.word == FAIL and one.kind == "component" and (one.kind, one.name) in follows
        else one
        for one in found
    ]
