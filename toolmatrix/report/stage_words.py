"""Prose of stages: what each kind does, in a few words and in a sentence, and which flags of the driver change it.

The sentences are data, in `stage_words.yaml`.
"""

from __future__ import annotations

import re
from functools import cache

from toolmatrix.resources import load_yaml, stage_words_path
from toolmatrix.stages.model import Plan, Stage
from toolmatrix.value import Value
from toolmatrix.wording import quoted

HOST, DEVICE, BOTH = "host", "device", "both"


class StageProse(Value):
    """An entry of `stage_words.yaml`, which describes the fields; a condition that is empty holds for every stage."""

    side: str
    name: str
    does: str
    flags: tuple[str, ...] = ()
    driver: str = ""
    tool: str = ""
    word: str = ""
    reads: str = ""
    writes: str = ""
    arch: bool | None = None

    def describes(self, driver: str, stage: Stage) -> bool:
        """Return whether all conditions hold for a stage of a driver."""
        if self.arch is not None and self.arch != (stage.arch is not None):
            return False
        # `re` keeps the patterns that it compiled.
        return all(
            not pattern or any(map(re.compile(pattern).search, texts))
            for pattern, texts in (
                (self.driver, (driver,)),
                (self.tool, (stage.tool,)),
                (self.word, stage.argv),
                (self.reads, stage.inputs),
                (self.writes, stage.outputs),
            )
        )


@cache
def catalog() -> dict[str, tuple[StageProse, ...]]:
    """The entries by the kind of stage, in the order in which they are tried."""
    return {
        kind: tuple(
            StageProse(**entry | {"flags": tuple(entry.get("flags", ()))}) for entry in entries
        )
        for kind, entries in load_yaml(stage_words_path()).items()
    }


def prose_of(plan: Plan, stage: Stage) -> StageProse:
    """The prose of a stage of a plan; that of an unknown program where nothing is written of its kind."""
    for entry in catalog().get(stage.kind, ()):
        if entry.describes(plan.tool, stage):
            return entry
    # The last entry of a kind is the most general one, and that of `other` says that the program is unknown.
    return catalog()["other"][-1]


def sentence(prose: StageProse, arch: str | None) -> str:
    """The sentence of a stage for an arch, with the flags that change it."""
    does = prose.does.replace("{arch}", arch or "the device")
    if not prose.flags:
        return does
    verb = "changes it" if len(prose.flags) == 1 else "change it"
    return f"{does}; {quoted(prose.flags)} {verb}"
