"""What a program of an image gets decides, not what its records say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.amount import TIMES, growth
from tests.images import images as made
from tests.images.images import link
from tests.inspection.test_observe import TestLook, elf
from tests.judging.what_runs import OTHER, RIGHT, SITE, WRONG, Image, numpy, python, without
from toolmatrix.factbase.store import open_index
from toolmatrix.finding import FAIL, PASS, UNKNOWN, WARN, Verdict
from toolmatrix.images.layers import DIRECTORY
from toolmatrix.images.limits import Budget
from toolmatrix.inspection.observe import observe
from toolmatrix.judging import images
from toolmatrix.judging.expectations import Expectation, parse_expectation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from tarfile import TarInfo

    from toolmatrix.factbase.index import Index
    from toolmatrix.images.image import ImageMetadata
    from toolmatrix.images.layers import Tree

GOOD = RIGHT["pip"]


@pytest.fixture(scope="module")
def index(cache: str) -> Index:
    return open_index((), {"XDG_CACHE_HOME": cache})


def read(image: Image) -> tuple[ImageMetadata, Tree]:
    """An image out of its archive."""
    config = {"Cmd": ["sh"], **image.config}
    archive = made.saved(made.image(image.files, **config))
    metadata, tree = made.from_archive(archive, look=TestLook(Budget("image.tar")))
    for path, (mode, owner) in image.modes.items():
        entry = tree.entry(path)
        assert entry is not None
        assert entry.kind == DIRECTORY
        entry.mode, entry.owner = mode, (owner, owner)
    return metadata, tree


def judged(index: Index, image: Image, *words: str) -> list[Verdict]:
    """The verdicts with some words, by default those that decide."""
    expected = [*map(parse_expectation, image.expected), Expectation(kind="soname", name="*")]
    found = images.judge(observe(*read(image)), expected, index)
    return [verdict for verdict in found if verdict.word in (words or (PASS, FAIL, UNKNOWN))]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "copy on PYTHONPATH",
            (
                "python3 -> /usr/local -> PYTHONPATH=/vendor -> /vendor/numpy 1.26.4;"
                f" the record in /{SITE} says 2.1.3"
            ),
        ),
        (
            "newer files than the record",
            f"python3 -> /usr/local -> /{SITE}/numpy 2.2.0; its record says 2.1.3",
        ),
        ("pip --target off the path", "python3 -> /usr/local does not import from /opt/target"),
        (
            "files for Python 3.12",
            f"python3 -> /usr/local -> /{SITE}/numpy: it is made for cpython 3.12",
        ),
        (
            "user site of root",
            (
                "python3 -> /usr/local -> user site -> /root/.local/lib/python3.11/site-packages/numpy"
                f" 1.26.4; the record in /{SITE} says 2.1.3"
            ),
        ),
    ],
)
def test_a_finding_names_the_chain(index: Index, name: str, reason: str) -> None:
    assert [verdict.reason for verdict in judged(index, WRONG[name])][:1] == [reason]


def test_another_name_of_python_that_imports_another_version_is_a_warning(index: Index) -> None:
    files = {
        **GOOD.files,
        **without(python("opt/conda"), "bin/python3"),
        "opt/conda/bin/python": link("python3.11"),
        **numpy(OTHER, "opt/conda/lib/python3.11/site-packages"),
    }
    config = {"Env": ["PATH=/opt/conda/bin:/usr/local/bin:/bin"]}
    verdicts = judged(index, GOOD.replace(files=files, config=config), WARN)
    assert [(verdict.code, verdict.name, verdict.found) for verdict in verdicts] == [
        ("TM423", "numpy", "python -> /opt/conda -> 1.26.4")
    ]


PATH = "PATH=/usr/local/bin"


def environment(*variables: str) -> Image:
    """An image with some variables."""
    return GOOD.replace(config={"Env": [PATH, *variables]})


def command(*words: str) -> Image:
    """An image that starts a command."""
    return GOOD.replace(config={"Cmd": [*words]})


def beside(files: Mapping[str, bytes | TarInfo], **config: Any) -> Image:
    """An image with further files."""
    return GOOD.replace(files={**GOOD.files, **files}, config=config)


def path_file(line: bytes, **files: bytes) -> Image:
    """An image with code in a path file."""
    return beside(
        {f"{SITE}/x.pth": line, **{f"{SITE}/{name}.py": data for name, data in files.items()}}
    )


# So many files of their own are enough.
def _numbered(count: int, path: str, made: Callable[[int], bytes]) -> dict[str, bytes]:
    return {path.format(number): made(number) for number in range(count // 40)}


_FINDER = b"import __editable___a_finder; __editable___a_finder.install()\n"
HOSTILE: dict[str, Callable[[int], Image]] = {
    "doubling": lambda count: command(
        *("sh", "-c", ";".join(["export A=$A$A$A", *["A=$A$A; export A=$A$A"] * (count // 50)]))
    ),
    "arguments of arguments": lambda count: command(
        *("sh", "-c", "; ".join(["$@ " * 50] * 50), *["a"] * count)
    ),
    "conditions that nothing decides": lambda count: command(
        *("sh", "-c", "".join(f"if a{n}; then A{n}=1; fi; " for n in range(count // 40)))
    ),
    "loops in loops": lambda count: command(
        *("sh", "-c", "for i in $(a) 1 2; do " * 30 + "A=$A$i; " * (count // 40) + "done; " * 30)
    ),
    "scripts that source themselves": lambda count: GOOD.replace(
        files={**GOOD.files, "run.sh": b". /run.sh; sh /run.sh; /run.sh\n" * (count // 40)},
        config={"Cmd": ["sh", "/run.sh"]},
    ),
    "long line": lambda count: command("sh", "-c", "'" * count),
    "options": lambda count: command("python3", *["-u"] * count),
    "options of a shell": lambda count: command("sh", *["-e"] * count),
    "options of conda": lambda count: command("conda", "run", *["-n", "a"] * count),
    "deep code": lambda count: path_file(b"import a; a" + b".a" * count + b"(1)\n"),
    "deep mapping": lambda count: path_file(
        _FINDER, __editable___a_finder=b"MAPPING = {[]: " + b"(" * count + b"}\n"
    ),
    "long version": lambda count: beside(
        {f"{SITE}/numpy/version.py": b'version = "' + b"1" * count + b'"\n'}
    ),
    "deep name": lambda count: beside(
        {f"{SITE}/a-1.dist-info/METADATA": b"Name: a" + b".a" * (count // 25) + b"\nVersion: 1\n"}
    ),
    **{
        f"{name} with one directory": lambda count, name=name: environment(  # type: ignore[misc]
            f"{name}={':/a/b' * count}"
        )
        for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD")
    },
    **{
        f"{name} with many directories": lambda count, name=name: environment(  # type: ignore[misc]
            f"{name}={':'.join(f'/a/b{number}' for number in range(count))}"
        )
        for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD")
    },
    "a path file of itself": lambda count: path_file(b".\n../site-packages\n" * (count // 10)),
    "a path file that adds itself": lambda count: path_file(
        f"import site; site.addsitedir('/{SITE}')\n".encode() * (count // 50)
    ),
    "path files that add the next": lambda count: beside(
        _numbered(
            *(count, "opt/{}/x.pth"),
            lambda number: b"import site; site.addsitedir('/opt/%d')\n" % (number + 1),
        )
        | {f"{SITE}/x.pth": b"import site; site.addsitedir('/opt/0')\n"}
    ),
    "path files with code": lambda count: beside(
        _numbered(count, SITE + "/x{}.pth", lambda _: b"import a\n")
    ),
    "records": lambda count: beside(
        _numbered(
            *(count, SITE + "/p{}-1.dist-info/METADATA"),
            lambda number: b"Name: p%d\nVersion: 1\n" % number,
        )
    ),
    "modules": lambda count: beside(
        _numbered(count, SITE + "/p{}/__init__.py", lambda _: b"__version__ = '1'\n")
    ),
    "a chain of libraries": lambda count: beside(
        _numbered(
            *(count, "opt/liba{}.so"),
            lambda number: elf(
                soname=f"liba{number}.so", needed=[f"liba{number + 1}.so"], rpath=["/opt"]
            ),
        )
    ),
    "users of many libraries": lambda count: beside(
        _numbered(*(count, "usr/bin/a{}"), lambda number: elf(needed=[f"libcudart.so.{number}"]))
    ),
}
ODD: dict[str, Image] = {
    "settings of other kinds": GOOD.replace(
        config={"Cmd": "sh", "Entrypoint": [1, None], "User": 7, "WorkingDir": 5, "Env": [3]}
    ),
    "links in circles": beside(
        {f"{SITE}/x.pth": link("x.pth"), "srv": link("srv")},
        Env=["PATH=/srv:/usr/local/bin", "PYTHONPATH=/srv"],
        WorkingDir="/srv",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_images_are_judged(index: Index, name: str) -> None:
    assert judged(index, ODD[name])


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_images_are_judged_in_linear_time(index: Index, name: str) -> None:
    small, large = (read(HOSTILE[name](10_000 * times)) for times in (1, TIMES))
    first, then, is_linear = growth(
        lambda image: images.judge(observe(*image), [], index), small, large
    )
    assert is_linear, (first, then)


@pytest.mark.parametrize("name", WRONG)
def test_what_a_program_does_not_get_never_passes(index: Index, name: str) -> None:
    image = WRONG[name]
    verdicts = judged(index, image)
    assert tuple(verdict.code for verdict in verdicts if verdict.word == FAIL) == image.codes
    unknown = [verdict for verdict in verdicts if verdict.word == UNKNOWN]
    assert bool(unknown) == image.unknown
    assert all(verdict.reason for verdict in unknown)


@pytest.mark.parametrize("name", RIGHT)
def test_what_a_program_gets_passes(index: Index, name: str) -> None:
    verdicts = judged(index, RIGHT[name])
    wrong = [
        (verdict.code, verdict.name, verdict.reason) for verdict in verdicts if verdict.word != PASS
    ]
    assert wrong == []
    assert verdicts
