"""Versions and selectors against `packaging`, their laws, and the schemes `series` and `names`."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.amount import examples
from toolmatrix.factbase.versions import Scale, SelectorError, key, order, parse, sort

SUFFIXES = ("", "a1", "b2", "rc1", "rc2", ".post1", ".post2", ".dev1", "a", ".post")


NUMBERS = [
    ".".join(map(str, numbers))
    for count in range(1, 5)
    for numbers in product(range(4), repeat=count)
]
finals = st.sampled_from(NUMBERS)
versions = st.sampled_from([number + suffix for number in NUMBERS for suffix in SUFFIXES])
compatible = st.sampled_from(
    [number + suffix for number in NUMBERS if "." in number for suffix in SUFFIXES]
)


def admits(selector: str, version: str) -> bool:
    return Scale("pep440", [version]).select(selector) == 2


def packaging_admits(specifier: str, version: str) -> bool:
    return SpecifierSet(specifier).contains(version, prereleases=True)


def is_finer(version: str, named: str) -> bool:
    """The documented addition: a later release whose numbers begin with those of the final one named."""
    one, other = Version(version), Version(named)
    numbers, prefix = key(version)[0], key(named)[0]
    final = not (other.is_prerelease or other.is_postrelease)
    longer = len(numbers) > len(prefix) and numbers[: len(prefix)] == prefix
    return final and longer and one > other


# order


@settings(max_examples=examples(400))
@given(versions, versions)
def test_versions_are_ordered_as_packaging_orders_them(one: str, other: str) -> None:
    mine, theirs = (order(key(one)), order(key(other))), (Version(one), Version(other))
    assert (mine[0] < mine[1]) == (theirs[0] < theirs[1])
    assert (mine[0] == mine[1]) == (theirs[0] == theirs[1])


@given(st.lists(versions, unique=True))
def test_sorting_is_that_of_packaging(given_versions: list[str]) -> None:
    found = sort("pep440", dict.fromkeys(given_versions, 0))
    assert [Version(version) for version in found] == sorted(map(Version, given_versions))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.0", "1"),
        ("v1.2", "1.2"),
        ("1.0RC1", "1.0rc1"),
        ("1.0c1", "1.0rc1"),
        ("1.0-a.1", "1.0a1"),
    ],
)
def test_spellings_of_one_version_are_equal(one: str, other: str) -> None:
    assert order(key(one)) == order(key(other))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "x",
        "1.",
        ".1",
        "1..2",
        "1.0+local",
        "1!2.0",
        "1.0rc1.dev2",
        "1-",
        "\u0661",
        "1.\u00b2",
    ],
)
def test_text_that_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(SelectorError) as caught:
        key(text)
    assert str(caught.value) == f"`{text}` is not a version"


def test_numbers_of_absurd_length_are_refused_and_not_computed() -> None:
    with pytest.raises(SelectorError):
        key("9" * 5000)


# selectors against packaging


@settings(max_examples=examples(800))
@given(st.sampled_from([">=", "<=", ">", "<"]), versions, versions)
def test_bounds_answer_as_packaging_does(operator: str, named: str, version: str) -> None:
    assert admits(operator + named, version) == packaging_admits(operator + named, version)


@settings(max_examples=examples(400))
@given(compatible, versions)
def test_compatible_release_answers_as_packaging_does(named: str, version: str) -> None:
    assert admits("~=" + named, version) == packaging_admits("~=" + named, version)


@settings(max_examples=examples(400))
@given(st.sampled_from(["==", "!="]), finals, versions)
def test_prefixes_answer_as_packaging_does(operator: str, prefix: str, version: str) -> None:
    specifier = f"{operator}{prefix}.*"
    assert admits(specifier, version) == packaging_admits(specifier, version)


@settings(max_examples=examples(800))
@given(st.sampled_from(["==", ""]), versions, versions)
def test_equality_admits_what_packaging_admits_and_finer_releases(
    operator: str, named: str, version: str
) -> None:
    wanted = packaging_admits("==" + named, version) or is_finer(version, named)
    assert admits(operator + named, version) == wanted


@settings(max_examples=examples(400))
@given(versions, versions)
def test_identity_admits_what_packaging_calls_equal(named: str, version: str) -> None:
    assert admits("===" + named, version) == packaging_admits("==" + named, version)


@settings(max_examples=examples(400))
@given(versions, versions)
def test_inequality_is_the_complement_of_equality(named: str, version: str) -> None:
    assert admits("!=" + named, version) != admits("==" + named, version)


def test_what_is_not_written_is_zero() -> None:
    for specifier, version in (("==1.0.*", "1"), ("!=1.0.*", "1"), ("~=1.0.0", "1.post1")):
        assert admits(specifier, version) == packaging_admits(specifier, version)
    assert admits("==1.0.*", "1")


def test_the_addition_by_example() -> None:
    assert admits("11.2", "11.2.2")
    assert admits("==11.2", "11.2")
    assert not admits("!=11.2", "11.2.2")
    assert not admits("11.2", "11.20")
    assert not admits("11.2", "11.2.0rc1")
    assert not admits("11.2.2", "11.2")


@given(finals, finals, versions)
def test_a_range_is_its_two_bounds_with_the_finer_releases_of_the_last(
    low: str, high: str, version: str
) -> None:
    wanted = admits(f">={low}", version) and (
        admits(f"<={high}", version) or admits(f"=={high}", version)
    )
    assert admits(f"{low}-{high}", version) == wanted


# laws


releases = st.lists(versions, min_size=1, max_size=8, unique=True)
clauses = st.one_of(
    st.just("*"),
    st.just("absent"),
    st.builds(str.__add__, st.sampled_from(["==", "!=", ">=", "<=", ">", "<", ""]), versions),
)
alternatives = st.lists(clauses, min_size=1, max_size=3).map(",".join)


@settings(max_examples=examples(300))
@given(
    releases,
    st.lists(alternatives, min_size=1, max_size=4),
    st.sampled_from([" ", "|", " | ", "  "]),
)
def test_alternatives_are_a_union(known: list[str], parts: list[str], between: str) -> None:
    scale = Scale("pep440", known)
    union = 0
    for part in parts:
        union |= scale.select(part)
    assert scale.select(between.join(parts)) == union


@settings(max_examples=examples(300))
@given(releases, st.lists(clauses, min_size=1, max_size=4), st.sampled_from([",", ", ", " , "]))
def test_clauses_are_an_intersection(known: list[str], parts: list[str], between: str) -> None:
    scale = Scale("pep440", known)
    intersection = -1
    for part in parts:
        intersection &= scale.select(part)
    assert scale.select(between.join(parts)) == intersection


@given(releases)
def test_a_star_is_every_release_and_absent_is_bit_zero(known: list[str]) -> None:
    scale = Scale("pep440", known)
    assert scale.select("*") == scale.everything == sum(scale.bit(name) for name in known)
    assert scale.select("absent") == 1
    assert scale.select("* absent") == scale.everything | 1
    # Of a complement all bits are set beyond what is known.
    assert scale.named(~1) == scale.named(-1) == [*scale.versions]
    for name in scale.versions:
        assert scale.named(scale.bit(name) | 1) == [name]


@given(releases, alternatives)
def test_what_is_written_back_admits_the_same(known: list[str], text: str) -> None:
    scale = Scale("pep440", known)
    written = " ".join(",".join(map(str, part)) for part in scale.parse(text))
    assert scale.select(written) == scale.select(text)


def test_an_unknown_release_has_no_bit() -> None:
    assert Scale("pep440", ["1.0"]).bit("1") == 0


def test_blanks_behind_an_operator_and_around_commas_do_not_part_a_clause() -> None:
    scale = Scale("pep440", ["11.1", "11.2", "12.0"])
    assert scale.select(">= 11.2 , < 12") == scale.select(">=11.2,<12") == scale.bit("11.2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an empty selector admits nothing"),
        (" | ", "an empty selector admits nothing"),
        (">=1,", "`>=1,` has an empty part between commas"),
        ("1,,2", "`1,,2` has an empty part between commas"),
        (">=x", "`x` is not a version"),
        (">=>=1", "`>=1` is not a version"),
        ("~=1", "`~=1` needs at least two numbers (PEP 440)"),
        ("==1.0rc1.*", "`1.0rc1.*`: only numbers may stand before `.*` (PEP 440)"),
        (">=1.*", "`1.*` is not a version"),
        ("!=absent", "`absent` is not a version"),
    ],
)
def test_selectors_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse(text)
    assert str(caught.value) == message


@given(st.text(max_size=30), st.booleans())
def test_any_text_is_a_selector_or_a_selector_error(text: str, names: bool) -> None:
    try:
        selector = parse(text, names=names)
    except SelectorError:
        return
    Scale("names" if names else "pep440", []).mask(selector)


# series

GCC = ("4.8", "4.9", *map(str, range(5, 17)))
PYTHON = ("2.7", *(f"3.{minor}" for minor in range(6, 15)))


def admitted(scheme: str, known: tuple[str, ...], selector: str) -> list[str]:
    mask = Scale(scheme, known).select(selector)
    return [name for place, name in enumerate(known) if mask >> place + 1 & 1]


@pytest.mark.parametrize(
    ("selector", "first", "last"),
    [
        ("*", "4.8", "16"),
        ("<=10", "4.8", "10"),
        ("<=10.2", "4.8", "10"),
        ("<=4", "4.8", "4.9"),
        ("<=4.8", "4.8", "4.8"),
        ("<=4.8.5", "4.8", "4.8"),
        ("<11.2", "4.8", "11"),
        ("<11", "4.8", "10"),
        ("<11.0", "4.8", "10"),
        ("<4.9", "4.8", "4.8"),
        (">=7.3.1", "7", "16"),
        (">=7", "7", "16"),
        (">=4", "4.8", "16"),
        ("==7.3.1", "7", "7"),
        ("7.5.0", "7", "7"),
        ("7", "7", "7"),
        ("4", "4.8", "4.9"),
        ("==4.*", "4.8", "4.9"),
        ("==4.8.*", "4.8", "4.8"),
        (">11", "12", "16"),
        (">11.2", "11", "16"),
        (">4", "5", "16"),
        (">4.9.2", "4.9", "16"),
        ("~=7.3", "7", "7"),
        ("~=4.8", "4.8", "4.9"),
        ("~=4.8.1", "4.8", "4.8"),
        ("4.8-7", "4.8", "7"),
        ("7.3-9.2", "7", "9"),
        (">=7,<11", "7", "10"),
    ],
)
def test_series_of_gcc(selector: str, first: str, last: str) -> None:
    wanted = list(GCC[GCC.index(first) : GCC.index(last) + 1])
    assert admitted("series", GCC, selector) == wanted


@pytest.mark.parametrize(
    ("selector", "first", "last"),
    [
        ("3.6-3.9", "3.6", "3.9"),
        ("3.6-3.9.5", "3.6", "3.9"),
        ("~=3.6", "3.6", "3.14"),
        ("~=3.6.1", "3.6", "3.6"),
        ("==3.9.*", "3.9", "3.9"),
        ("3.9.18", "3.9", "3.9"),
        (">=3.9.2,<3.9.5", "3.9", "3.9"),
        ("<3.9.2", "2.7", "3.9"),
        ("<3.9", "2.7", "3.8"),
        ("<=3.99.0", "2.7", "3.14"),
        (">=3.7.2", "3.7", "3.14"),
        (">3.9", "3.10", "3.14"),
        (">3.9.1", "3.9", "3.14"),
        ("<3", "2.7", "2.7"),
        ("3", "3.6", "3.14"),
        (">2", "3.6", "3.14"),
    ],
)
def test_series_of_python(selector: str, first: str, last: str) -> None:
    wanted = list(PYTHON[PYTHON.index(first) : PYTHON.index(last) + 1])
    assert admitted("series", PYTHON, selector) == wanted


def test_series_beyond_what_is_known() -> None:
    assert admitted("series", PYTHON, ">11") == []
    assert admitted("series", GCC, "<4") == []
    assert admitted("series", GCC, "17.1") == []


def test_a_series_is_left_out_only_as_a_whole() -> None:
    assert admitted("series", GCC, "!=7.3.1") == list(GCC)
    assert "7" not in admitted("series", GCC, "!=7")
    assert "7" not in admitted("series", GCC, "!=7.*")
    assert admitted("series", GCC, "!=4") == list(GCC[2:])


@given(st.sampled_from(GCC))
def test_a_bound_on_a_series_and_its_opposite_share_nothing(series: str) -> None:
    scale = Scale("series", GCC)
    assert scale.select(f"<={series}") | scale.select(f">{series}") == scale.everything
    assert scale.select(f"<={series}") & scale.select(f">{series}") == 0
    assert scale.select(f"<{series}") | scale.select(f">={series}") == scale.everything
    assert scale.select(f"<{series}") & scale.select(f">={series}") == 0


# names

ARCHS = ("compute_80", "sm_80", "sm_86", "sm_90", "sm_90a")


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("sm_80", ["sm_80"]),
        ("==sm_80", ["sm_80"]),
        ("sm_86 sm_80", ["sm_80", "sm_86"]),
        ("sm_80|sm_86", ["sm_80", "sm_86"]),
        ("sm_9*", ["sm_90", "sm_90a"]),
        ("*_80", ["compute_80", "sm_80"]),
        ("s*_*0", ["sm_80", "sm_90"]),
        ("*", list(ARCHS)),
        ("!=sm_80", ["compute_80", "sm_86", "sm_90", "sm_90a"]),
        ("!=sm_*", ["compute_80"]),
        ("sm_*,!=sm_90a", ["sm_80", "sm_86", "sm_90"]),
        ("sm_8", []),
        ("sm.80", []),
        ("SM_80", []),
    ],
)
def test_names(selector: str, wanted: list[str]) -> None:
    assert admitted("names", ARCHS, selector) == wanted


@pytest.mark.parametrize("operator", [">=", "<=", ">", "<", "~=", "==="])
def test_names_have_no_order(operator: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse(operator + "sm_80", names=True)
    assert str(caught.value) == f"names have no order: `{operator}sm_80` cannot be compared"


def test_names_are_sorted_by_rank_and_then_by_name() -> None:
    assert sort("names", {"b": 1, "a": 1, "c": 0}) == ["c", "a", "b"]


def test_a_name_may_look_like_a_range() -> None:
    image = "nvidia/cuda:11.2.2-cudnn8-devel-ubuntu20.04"
    assert admitted("names", (image,), image) == [image]
    assert admitted("names", ("1-2",), "1-2") == ["1-2"]
