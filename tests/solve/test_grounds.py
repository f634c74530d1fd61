"""What of a core is told: facts about one pair of components as one line, narrowed to what the others leave."""

from __future__ import annotations

import pytest

from tests.cli.conftest import SMALL
from toolmatrix.factbase.store import open_index
from toolmatrix.solve.request import Ask, Request
from toolmatrix.solve.resolve import Unsatisfiable, resolve


@pytest.mark.parametrize("align", [("python",), ()])
def test_an_aligned_component_is_narrowed_on_every_target(align: tuple[str, ...]) -> None:
    """Python 3.12 is asked for on arm alone; app on x86 clashes with it where the two are one."""
    context = {"x86": "x86_64", "arm": "aarch64"}
    asks = [
        Ask(component="app", selector="2.1.3", text="app==2.1.3", target="x86"),
        Ask(component="python", selector="3.12", text="python==3.12", target="arm"),
        *(
            Ask(component=name, selector=value, text="", target=target)
            for target, machine in context.items()
            for name, value in (("target", target), ("machine", machine), ("accelerator", "none"))
        ),
        Ask(component="from", selector="source", text=""),
    ]
    index = open_index([str(SMALL / "matrix.yaml")], {})
    found = resolve(index, Request(asks=tuple(asks), targets=tuple(context), align=align))
    assert isinstance(found, Unsatisfiable) == bool(align)
    if isinstance(found, Unsatisfiable):
        told = found.cores[0].lines
        facts = [line.ground for line in told if line.ground is not None]
        assert [(one.subject, one.component, one.clashing) for one in facts] == [
            ("app", "python", ("3.12",))
        ]
        assert facts[0].releases == ("2.1.3",)
        assert [line.ask.text for line in told if line.ask] == ["app==2.1.3", "python==3.12"]
