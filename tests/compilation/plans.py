"""Small plans made in a test: by hand, or at random, with commands that any shell can run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

from toolmatrix.compilation import Plan, Stage, model

EXTERNAL = ("a.cu", "b b.h")


def stage(
    id: int,
    reads: Iterable[str] = (),
    writes: Iterable[str] = (),
    *,
    kind: str = "other",
    arch: str | None = None,
    text: str | None = None,
) -> Stage:
    """One stage; without a text its command writes what it read, and its number, to all that it writes."""
    reads, writes = tuple(reads), tuple(writes)
    return Stage(
        id=id,
        line=id + 1,
        kind=kind,
        tool=kind,
        arch=arch,
        inputs=reads,
        outputs=writes,
        argv=(kind,),
        text=mixing(id, reads, writes) if text is None else text,
    )


def mixing(id: int, reads: tuple[str, ...], writes: tuple[str, ...]) -> str:
    """A command whose outputs tell, for ever after, what stood in its inputs when it ran."""
    sources = " ".join(f'"{path}"' for path in reads)
    read = f"cat {sources}" if reads else "true"
    return "; ".join(
        [f"told=$({read} | cksum)"]
        + [f'echo "$told" {id} {n} > "{p}"' for n, p in enumerate(writes)]
    )


def plan(*stages: Stage, tool: str = "nvcc", env: Mapping[str, str] | None = None) -> Plan:
    """A plan of some stages."""
    return Plan(
        tool=tool,
        version="",
        line=1,
        env=env or {},
        stages=stages,
        edges=model.stage_edges(stages),
    )


@st.composite
def random_plans(draw: st.DrawFn) -> Plan:
    """Plans in which files are read before and after they are written anew, also by the stage that reads them."""
    names = [*EXTERNAL, "m/x", "m/y z", "m/$w:", "out"]
    stages = []
    there = set(EXTERNAL)
    for id in range(draw(st.integers(1, 9))):
        reads = draw(st.lists(st.sampled_from(sorted(there)), max_size=3, unique=True))
        writes = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        there.update(writes)
        stages.append(
            stage(
                id,
                reads,
                writes,
                kind=draw(st.sampled_from(("cicc", "ptxas", "other"))),
                arch=draw(st.sampled_from((None, "sm_1", "sm_2"))),
                text=mixing(
                    id,
                    *(tuple(one.replace("$", "\\$") for one in paths) for paths in (reads, writes)),
                ),
            )
        )
    return plan(*stages)
