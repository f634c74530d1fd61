"""What is done with plans of real logs: they are compared, and made ready to run."""

from __future__ import annotations

import re

from tests.compilation.corpus import Case, log
from tests.compilation.laws import LAWS
from toolmatrix.compilation import parse_log
from toolmatrix.compilation.compare import compare
from toolmatrix.compilation.replay import replay

TEMP = re.compile(r"(?<=tmpxft_)[0-9a-f]+(?=_)|(?<=-)[0-9a-f]{6}(?=[./])")
SHIFTED = str.maketrans("0123456789abcdef", "123456789abcdef0")

every = LAWS.of(lambda _case: True)


@every
def a_log_differs_neither_from_itself_nor_from_another_run(case: Case) -> None:
    once = log(case.name)
    assert not compare(once, once)
    again = TEMP.sub(lambda found: found[0].translate(SHIFTED), case.text)
    assert not compare(once, parse_log(again.split("\n")))


@every
def every_plan_is_made_ready_with_its_temp_files_in_one_place(case: Case) -> None:
    for one in log(case.name).plans:
        made = replay(one, work="w")
        assert [step.id for step in made.steps] == [stage.id for stage in one.stages]
        read = {path for step in made.steps for path in step.inputs}
        absolute = [path for step in made.steps for path in step.outputs if path[0] == "/"]
        assert not [path for path in absolute if path in read or "tmpxft_" in path]
        assert not [path for path in made.results if "tmpxft_" in path]
