"""The law of outputs: what a plan says is written may be deleted and written anew, so it is never a user's file.

It is a temporary, or lies in the directory for temporaries, or the command names it behind an output option; and a
file that is read before anything writes it was there before, so nothing makes it.
"""

from __future__ import annotations

import re

from tests.compilation import corpus
from tests.compilation.laws import LAWS
from toolmatrix.compilation import Plan, Stage, parse_log

OUTPUT_OPTION = re.compile(
    r"""(?:^|\s|")(?:
        -o | -olto | -MF | -output | -dependency-file | --output(?:-file)?
        | --?(?:create|embedded-fatbin|register-link-binaries)
        | --(?:gen_c|gen_device|tile_bc|stub)_file_name | --module_id_file_name
        | [12]?>
    )["\s=]*$""",
    re.VERBOSE,
)
TEMPORARY = re.compile(r"(?:^|/)tmpxft_[^/]*$|^/tmp/")


def named_behind_an_output_option(stage: Stage, path: str) -> bool:
    """Whether a command as printed has the path right behind one of its output options, or as the archive of `ar`."""
    places = (found.start() for found in re.finditer(re.escape(path), stage.text))
    if any(OUTPUT_OPTION.search(stage.text[:place]) for place in places):
        return True
    return stage.tool.endswith("ar") and stage.argv[2] == path


def broken(plan: Plan) -> list[str]:
    """What breaks the law in a plan."""
    there: set[str] = set()
    written: set[str] = set()
    found = []
    for stage in plan.stages:
        there.update(path for path in stage.inputs if path not in written)
        written.update(stage.outputs)
        for path in stage.outputs:
            if path in there:
                found.append(f"{stage.id}: {path} was there before")
            elif not path or not (
                TEMPORARY.search(path) or named_behind_an_output_option(stage, path)
            ):
                found.append(f"{stage.id}: {path} is behind no output option")
    return found


every = LAWS.of(lambda _case: True)


@every
def no_file_of_the_user_is_an_output(case: corpus.Case) -> None:
    for plan in corpus.log(case.name).plans:
        assert broken(plan) == []


@every
def options_that_nobody_knows_make_no_file_of_the_user_an_output(case: corpus.Case) -> None:
    """A release to come may put options that no table here has before any file of its command lines."""
    for option in ("--brand-new ", "--brand-new="):
        lines = case.text.split("\n")
        for plan in corpus.log(case.name).plans:
            for stage in plan.stages:
                for path in stage.inputs:
                    word = re.compile(rf'(?<![=\w,./"-])("?{re.escape(path)}"?)(?=\s|$)')
                    line = lines[stage.line - 1]
                    lines[stage.line - 1] = word.sub(rf"{option}\1", line)
        changed = parse_log(lines).plans
        assert case.text.split("\n") != lines or not any(plan.stages for plan in changed)
        for plan in changed:
            assert broken(plan) == [], option
