"""The sample of mutants: which tests are a module's own, where a mutant stands, and what is reported."""

from __future__ import annotations

import pytest
import yaml

from tests.mutants.__main__ import (
    MODULES,
    ROOT,
    Equivalent,
    Mutant,
    equivalents,
    own_tests,
    placed,
    report,
)

LISTED = yaml.safe_load(MODULES.read_text())["tests"]
SOURCE = """\
class One:
    def act(self):
        return 1

    def pick(self, x):
        y = x
        if x:
            y = x
        return y


def pick(x):
    return x + 1
"""


@pytest.mark.parametrize("module", LISTED)
def test_a_listed_module_and_its_tests_are_there(module: str) -> None:
    for path in (module, *own_tests(module)):
        assert (ROOT / path.partition("::")[0]).is_file(), path


def test_a_module_that_is_not_listed_is_tested_by_what_imports_it() -> None:
    assert own_tests("toolmatrix/value.py") == ["tests/test_value.py"]


@pytest.mark.parametrize(
    ("name", "diff", "found"),
    [
        ("toolmatrix.a.x_pick__mutmut_1", "@@ -1,2 +1,2 @@\n def\n-    return x + 1\n+    return x - 1",
         Mutant(13, "return x + 1", "return x - 1", "survived")),
        ("toolmatrix.a.xǁOneǁpick__mutmut_2", "@@ -2,4 +2,4 @@\n a\n b\n-            y = x\n+            y = None",
         Mutant(8, "y = x", "y = None", "survived")),
    ],
)  # fmt: skip
def test_a_mutant_has_the_line_of_its_source(name: str, diff: str, found: Mutant) -> None:
    assert placed(SOURCE, name, "survived", diff) == found


def test_equivalents_do_not_count_and_hangs_do(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "toolmatrix/value.py"
    known = [
        Equivalent(module, "from __future__ import annotations", "pass", "it is"),
        Equivalent(module, "gone()", "pass", "it was"),
        Equivalent("toolmatrix/errors.py", "also_gone()", "pass", "it was"),
    ]
    monkeypatch.setattr("tests.mutants.__main__.equivalents", lambda: known)
    mutants = [
        Mutant(3, known[0].old, known[0].new, "survived"),
        Mutant(5, "a < b", "a <= b", "survived"),
        Mutant(4, "f(a)", "pass", "no tests"),
        Mutant(6, "x", "y", "timeout"),
        *[Mutant(place, "x", "z", "killed") for place in range(7)],
    ]
    assert list(report(module, mutants, 80.0)) == [
        f"{module}: an equivalent is listed for what no longer stands there: gone()",
        f"{module}:4: no tests",
        "  - f(a)",
        "  + pass",
        f"{module}:5: survived",
        "  - a < b",
        "  + a <= b",
        f"{module}:3: equivalent: it is",
        "  + pass",
        f"{module}: 8 of 10 killed (80.0 %), 1 of these by the time limit; 1 equivalent",
        True,
    ]
    assert list(report(module, mutants, 80.1))[-1] is False


def test_what_is_listed_as_equivalent_has_a_reason_and_is_of_a_listed_module() -> None:
    for one in equivalents():
        assert one.reason
        assert one.module in LISTED
        assert one.old != one.new
