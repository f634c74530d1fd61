"""Two plans side by side: what stays equal is not told, what differs is, and nothing is only a name."""

from __future__ import annotations

from itertools import pairwise

import pytest
from jsonschema import Draft202012Validator

from tests.compilation import corpus
from tests.compilation.laws.used import TEMP
from tests.schemas import shipped
from toolmatrix.compilation import Log, parse_log
from toolmatrix.compilation.compare import LogComparison, compare
from toolmatrix.report.stage_diff import document, load_flags

NAMED = [case.name for case in corpus.cases()][::40]


def read(name: str) -> Log:
    return parse_log(corpus.case(name).text.splitlines())


def words(found: LogComparison, only: str) -> set[str]:
    return {
        word
        for difference in found.differences
        for one in difference.words
        if one.only == only
        for word in one.words
    }


def test_the_front_end_moved_between_two_toolkits() -> None:
    found = compare(read("nvcc-11.8.89__c-default-arch"), read("nvcc-13.0.88__c-default-arch"))
    (difference,) = found.differences
    assert [(one.step.kind, one.step.side, one.old, one.new) for one in difference.moves] == [
        ("preprocess", "host", 5, 1),
        ("cudafe", "host", 6, 2),
    ]
    changes = {one.name: (one.old, one.new) for one in difference.changes}
    assert changes["version"] == ("11.8.89", "13.0.88")
    assert changes["archs"] == ("compute_52, sm_52", "compute_75, sm_75")
    (handed,) = difference.handovers
    assert handed.file == "saxpy.module_id"
    assert handed.old == (("cicc",), ("cudafe",))
    assert handed.new == (("cudafe",), ("cicc",))
    assert "--static-host-stub" in words(found, "new")
    assert not difference.gone
    assert not difference.come


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("nvcc-11.8.89__c-default-arch", "nvcc-13.0.88__c-default-arch"),
        ("nvcc-9.1.85__c-many-gencode-ptx", "nvcc-13.3.73__c-many-gencode-ptx"),
        ("clang-19.1.7__hip-c-many", "clang-23.1.4__hip-c-many"),
        ("hipcc-5.2.3__c-many-gfx", "hipcc-7.0.2__c-many-gfx"),
    ],
)
def test_no_difference_is_only_a_name(old: str, new: str) -> None:
    found = compare(read(old), read(new))
    told = words(found, "old") | words(found, "new")
    assert told
    assert not [word for word in told if "tmp" in word or TEMP.search(word)]


def test_a_comparison_turned_round_tells_the_same() -> None:
    old, new = read("nvcc-12.4.131__c-many-gencode-ptx"), read("nvcc-13.3.73__c-many-gencode-ptx")
    there, back = compare(old, new), compare(new, old)
    assert words(there, "new") == words(back, "old")
    assert words(there, "old") == words(back, "new")
    assert there.differences[0].gone == back.differences[0].come


def test_the_pipeline_of_hip_changed_its_stages() -> None:
    old, new = read("clang-19.1.7__hip-c-many"), read("clang-23.1.4__hip-c-many")
    (difference,) = compare(old, new).differences
    assert {old.plans[0].stages[at].kind for at in difference.gone} == {"device-link", "bundle"}
    assert {new.plans[0].stages[at].kind for at in difference.come} == {"package", "linker-wrapper"}


def test_plans_are_paired_by_their_sources() -> None:
    log = read("nvcc-13.0.88__make-log")
    turned = Log(plans=log.plans[::-1])
    found = compare(log, turned)
    assert not any(found.differences)
    fewer = compare(log, Log(plans=log.plans[1:]))
    assert fewer.gone == (0,)
    assert not fewer.come


def printed_by() -> dict[str, set[str]]:
    """For each captured toolkit, by its minor release, the words of plain compiles that its dry runs print."""
    found: dict[str, set[str]] = {}
    for case in corpus.cases("nvcc"):
        minor = ".".join(case.version.split(".")[:2])
        plans = parse_log(case.text.splitlines()).plans
        held = {
            word.partition("=")[0] for plan in plans for one in plan.stages for word in one.argv
        }
        found.setdefault(minor, set()).update(held)
    return found


def test_what_is_said_of_a_flag_agrees_with_the_captures() -> None:
    seen = printed_by()
    for name, flag in load_flags().items():
        for there, missing in ((flag.first, flag.before), (flag.last, flag.after)):
            if there:
                assert name in seen[there], f"{name} is not printed by {there}"
                assert missing in seen, f"{name}: nothing captured of {missing}"
        if flag.before and not flag.driver:
            assert name not in seen[flag.before], f"{name} is printed by {flag.before}"


def test_every_comparison_is_a_document_of_its_schema() -> None:
    validator = Draft202012Validator(shipped("stage-differences"))
    logs = [read(name) for name in NAMED]
    for old, new in pairwise(logs):
        validator.validate(document(("old", old), ("new", new), compare(old, new)))
